"""Where a result comes from: the words of memory that went into it, and each line on their way.

``Provenance`` is an observer that keeps what every instruction of a run did. Asked for a value that
was stored, it follows the data back: through registers, through the LDS to the work-item that left
it there, to the texels and elements that were read. Then it goes forward again over what it found,
with sums of products in place of numbers: a ``mad`` adds the products of what its factors hold to
what was there.

Addresses and branches are taken as they were in the run. Left out: what a number does in an
operation that is neither a sum, a product nor a choice; the result then holds the terms of its
operands, and says that it is ``mixed``.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cypresskit.il import Instruction, Source
from cypresskit.il.dataflow import lds_words, read_positions, uses
from cypresskit.machine import places
from cypresskit.machine.launch import Launch
from cypresskit.machine.observer import FetchEvent, MemoryEvent, Observer, StepEvent, WroteEvent

MULTIPLY = {"mul", "mad", "fma", "dmul", "dmad", "dp2", "dp3", "dp4"}
MOST_TERMS = 4096  # of a product; one that would have more is mixed


class MemoryWord(NamedTuple):
    """A word of memory that was read: component ``word`` of the texel (x, y) of texture ``number``
    (``space`` "texture"), or of element x of global memory ("g").
    """

    space: str
    number: int
    x: int
    y: int
    word: int
    inside: bool = True


class Factor(NamedTuple):
    """A number that was read at ``step``: its first word, and the steps that passed it on since."""

    word: MemoryWord
    step: int
    path: tuple[int, ...] = ()


class Key(NamedTuple):
    """A term of a sum: its factors, and the step that multiplied them."""

    factors: tuple[Factor, ...]
    step: int


class Amount(NamedTuple):
    """How often a term is in a sum, and the steps that multiplied it by plain numbers. It stays in
    the sum when it cancels itself, and when it is multiplied by 0.
    """

    times: float
    scaled: tuple[int, ...] = ()


@dataclass(frozen=True)
class FormalSum:
    """A number as a sum: ``plain`` and the ``terms``. ``mixed``: it is something else that was made
    of them. ``half``: 0 or 1 for the low or high word of a double, else -1.
    """

    plain: float = 0.0
    terms: dict[Key, Amount] = field(default_factory=dict)
    mixed: bool = False
    half: int = -1

    def as_half(self, half: int) -> "FormalSum":
        return FormalSum(self.plain, self.terms, self.mixed, half)


Node = tuple[int, int]  # step, work-item
Results = dict[Node, dict[int, FormalSum]]  # the components that steps wrote


class _FetchStep(NamedTuple):
    """Where a fetch looked, for all work-items."""

    resource: int
    x: np.ndarray
    y: np.ndarray
    inside: np.ndarray


class _LdsStep(NamedTuple):
    """What a load or store of the LDS accessed: ``words`` of the element that begins at ``byte``
    (of each work-item) of an array.
    """

    array: int
    store: bool
    byte: np.ndarray
    words: tuple[int, ...]


@dataclass(eq=False)
class _Executed:
    """What one instruction did for all work-items."""

    at: int
    active: np.ndarray
    fetch: _FetchStep | None = None
    lds: _LdsStep | None = None
    written: tuple[int, ...] = ()
    rows: np.ndarray | None = None
    element: np.ndarray | None = None


class Provenance(Observer):
    """Keeps what every instruction of a small launch did, and follows values back."""

    def __init__(self) -> None:
        self.steps: list[_Executed] = []
        self.definitions: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.global_stores: list[int] = []
        self.lds_stores: dict[int, list[int]] = defaultdict(list)
        self.output_stores: dict[int, list[int]] = defaultdict(list)
        self.known_addresses: dict[tuple[int, int], list[int]] = {}

    # What the run says

    def start(self, launch: Launch) -> None:
        self.launch = launch
        self.program = launch.program
        self.body = launch.program.body
        memory = launch.memory
        self.before = np.zeros((0, 4), np.uint32) if memory is None else memory.copy()

    def step(self, event: StepEvent) -> None:
        self.steps.append(_Executed(event.at, event.active.copy()))

    def fetch(self, event: FetchEvent) -> None:
        self.steps[-1].fetch = _FetchStep(
            event.resource, event.x.copy(), event.y.copy(), event.inside.copy()
        )

    def memory(self, event: MemoryEvent) -> None:
        if event.space != "lds":
            return
        self.steps[-1].lds = _LdsStep(event.array, event.store, event.element.copy(), event.words)
        if event.store:
            self.lds_stores[event.array].append(len(self.steps) - 1)

    def wrote(self, event: WroteEvent) -> None:
        now = self.steps[-1]
        register = event.register
        now.written = event.components
        now.rows = np.array(event.rows)
        number = len(self.steps) - 1
        if register.kind == "r":
            for component in event.components:
                self.definitions[register.index, component].append(number)
        elif register.kind == "g":
            now.element = np.array(event.element)
            self.global_stores.append(number)
        elif register.kind == "o":
            self.output_stores[register.index].append(number)

    # Who wrote what

    def line(self, step: int) -> int:
        """The kernel's line that ran at a step."""
        return self.body[self.steps[step].at].line

    def stored(self, element: int, word: int) -> Node | None:
        """The last step, and its work-item, that stored to a word of global memory."""
        return self._stored(element, word, len(self.steps))

    def _stored(self, element: int, word: int, before: int) -> Node | None:
        for number in reversed(self.global_stores[: bisect_left(self.global_stores, before)]):
            step = self.steps[number]
            if word not in step.written:
                continue
            items = np.flatnonzero(step.active & (step.element == element))
            if len(items):
                return number, int(items[-1])
        return None

    def streamed(self, output: int, item: int, word: int) -> Node | None:
        """The last step of a work-item that wrote a word of an output stream."""
        for number in reversed(self.output_stores[output]):
            step = self.steps[number]
            if step.active[item] and word in step.written:
                return number, item
        return None

    def _left(self, array: int, place: int, item: int, before: int) -> tuple[Node, int] | None:
        """The step and work-item that left a word in the LDS of a work-item's group, and which of
        the words that it stored.
        """
        stores = self.lds_stores[array]
        size = self.program.lds[array][1]
        group = item // self.launch.group_items
        first = group * self.launch.group_items
        members = slice(first, first + self.launch.group_items)
        for number in reversed(stores[: bisect_left(stores, before)]):
            step = self.steps[number]
            assert step.lds is not None
            for word in step.lds.words:
                words, inside = places.lds_inside(step.lds.byte[members], word, size)
                items = np.flatnonzero(step.active[members] & inside & (words == place))
                if len(items):
                    return (number, first + int(items[-1])), word
        return None

    def _defined(self, register: int, component: int, item: int, before: int) -> int | None:
        """The last step before another one that wrote a component of a work-item's register."""
        steps = self.definitions[register, component]
        for number in reversed(steps[: bisect_left(steps, before)]):
            if self.steps[number].active[item]:
                return number
        return None

    # Bits

    def _bits(self, node: Node, component: int) -> int:
        """What a step wrote to a component, for a work-item."""
        number, item = node
        step = self.steps[number]
        assert step.rows is not None
        row = step.rows[step.written.index(component) if len(step.rows) > 1 else 0]
        return int(row[item if len(row) > 1 else 0])

    def _read_bits(self, source: Source, position: int, node: Node) -> int:
        """What a source holds at a position, without its modifiers."""
        letter = source.swizzle[position]
        if letter in "01":
            return 0x3F800000 if letter == "1" else 0
        component = "xyzw".index(letter)
        register = source.register
        if register.kind == "r":
            definition = self._defined(register.index, component, node[1], node[0])
            return 0 if definition is None else self._bits((definition, node[1]), component)
        if register.kind == "l":
            return self.program.literals[register.index][component]
        if register.kind == "cb":
            return int(self.launch.constants[register.index][register.element][component])
        if register.kind == "g":
            element = self._element(source, node)
            stored = self._stored(element, component, node[0])
            if stored is not None:
                return self._bits(stored, component)
            inside = 0 <= element < len(self.before)
            return int(self.before[element][component]) if inside else 0
        return int(self.launch.ids[register.kind][component][node[1]])

    def _element(self, source: Source, node: Node) -> int:
        """The element of ``g[...]`` that a source reads."""
        address = source.register.address
        if address is None:
            return source.register.element
        index = np.uint32(self._read_bits(address, 0, node)).view(np.int32)
        return int(index) + source.register.element

    # Which steps belong to a value

    def backward_slice(self, *nodes: Node) -> list[Node]:
        """Some steps and those that passed data on to them, in the order in which they ran."""
        nodes_behind, open_nodes = set(nodes), list(nodes)
        while open_nodes:
            for earlier in self._sources(open_nodes.pop()):
                if earlier not in nodes_behind:
                    nodes_behind.add(earlier)
                    open_nodes.append(earlier)
        return sorted(nodes_behind)

    def _sources(self, node: Node) -> Iterator[Node]:
        """The steps whose results a step took as data, not as an address or a condition."""
        number, item = node
        step = self.steps[number]
        i = self.body[step.at]
        if step.fetch is not None:
            return
        if step.lds is not None and not step.lds.store:
            for _, place in self._lds_places(node):
                left = self._left(step.lds.array, place, item, number)
                if left is not None:
                    yield left[0]
            return
        for n, source in enumerate(i.sources):
            if step.lds is not None and n not in i.op.passed:
                continue
            positions = lds_words(i) if step.lds is not None else read_positions(self.program, i, n)
            for position in positions:
                yield from self._source(source, position, node)

    def _source(self, source: Source, position: int, node: Node) -> Iterator[Node]:
        letter = source.swizzle[position]
        if letter in "01":
            return
        component = "xyzw".index(letter)
        if source.register.kind == "r":
            definition = self._defined(source.register.index, component, node[1], node[0])
            if definition is not None:
                yield definition, node[1]
        elif source.register.kind == "g":
            stored = self._stored(self._element(source, node), component, node[0])
            if stored is not None:
                yield stored

    def _lds_places(self, node: Node) -> Iterator[tuple[int, int]]:
        """The words that a load or store of the LDS asked for: which, and where it lies."""
        step = self.steps[node[0]]
        assert step.lds is not None
        size = self.program.lds[step.lds.array][1]
        byte = step.lds.byte[node[1] : node[1] + 1]
        for word in step.lds.words:
            place, inside = places.lds_inside(byte, word, size)
            if inside[0]:
                yield word, int(place[0])

    def addresses(self, step: int, item: int) -> list[int]:
        """The lines that computed where a step looked, in their order."""
        if (step, item) not in self.known_addresses:
            self.known_addresses[step, item] = self._address_lines(step, item)
        return self.known_addresses[step, item]

    def _address_lines(self, step: int, item: int) -> list[int]:
        open_nodes = [step]
        steps: set[int] = set()
        lines: set[int] = set()
        while open_nodes:
            number = open_nodes.pop()
            i = self.body[self.steps[number].at]
            for n, source, positions in uses(self.program, i):
                passed = number == step and i.op.kind == "lds" and n in i.op.passed
                if source.register.kind != "r" or passed:
                    continue
                for letter in {source.swizzle[p] for p in positions} & set("xyzw"):
                    earlier = self._defined(
                        source.register.index, "xyzw".index(letter), item, number
                    )
                    if earlier is not None and earlier not in steps:
                        steps.add(earlier)
                        lines.add(self.line(earlier))
                        open_nodes.append(earlier)
        return sorted(lines)

    def products(self, item: int) -> Iterator[tuple[int, int, FormalSum]]:
        """Each step in which a work-item multiplied, a component that it wrote, and what that then
        held.
        """
        nodes = [
            (number, item)
            for number, step in enumerate(self.steps)
            if step.active[item] and self.body[step.at].op.name in MULTIPLY
        ]
        values: Results = {}
        for earlier in self.backward_slice(*nodes):
            values[earlier] = self._evaluated(earlier, values)
        for node in nodes:
            yield from ((node[0], component, value) for component, value in values[node].items())

    def overwritten(self, step: int, component: int, item: int) -> int | None:
        """The step that first wrote to a component without the sum that a step left there, or
        None.
        """
        dest = self.body[self.steps[step].at].dest
        assert dest is not None
        for number in self.definitions[dest.register.index, component]:
            if number <= step or not self.steps[number].active[item]:
                continue
            if (step, item) not in self._sources((number, item)):
                return number
            step = number
        return None

    def held(self, item: int) -> Iterator[tuple[int, MemoryWord]]:
        """The words of memory that a work-item read, or loaded from the LDS, and the steps."""
        for number, step in enumerate(self.steps):
            if not step.active[item]:
                continue
            node = number, item
            if step.fetch is not None or (step.lds is not None and not step.lds.store):
                for word in self.results(node):
                    yield number, word
            elif step.lds is None:
                yield from ((number, word) for word in self._elements_read(node))

    def results(self, node: Node) -> list[MemoryWord]:
        """The words of memory that a step's results are made of."""
        values: Results = {}
        for earlier in self.backward_slice(node):
            values[earlier] = self._evaluated(earlier, values)
        terms = (term for value in values[node].values() for term in value.terms)
        return [factor.word for term in terms for factor in term.factors]

    def _elements_read(self, node: Node) -> Iterator[MemoryWord]:
        i = self.body[self.steps[node[0]].at]
        for n, source in enumerate(i.sources):
            if source.register.kind != "g":
                continue
            element = self._element(source, node)
            for position in read_positions(self.program, i, n):
                if source.swizzle[position] in "xyzw":
                    word = "xyzw".index(source.swizzle[position])
                    yield MemoryWord("g", 0, element, 0, word, 0 <= element < len(self.before))

    # Sums

    def value(self, node: Node, words: tuple[int, ...]) -> FormalSum:
        """What a step wrote to a word, or to the two words of a double, as a sum."""
        values: Results = {}
        for earlier in self.backward_slice(node):
            values[earlier] = self._evaluated(earlier, values)
        parts = [values[node][word] for word in words]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _evaluated(self, node: Node, values: Results) -> dict[int, FormalSum]:
        """The components that a step wrote, or of a store to the LDS its words."""
        step = self.steps[node[0]]
        i = self.body[step.at]
        if step.fetch is not None:
            return self._fetched(node)
        if step.lds is not None:
            return self._through_lds(node, i, values)
        written = i.dest.written if i.dest else ()
        results = {c: self._plain(node, c) for c in step.written if c not in written}
        if i.op.double and i.op.result == "d":
            return results | self._double(node, i, values)
        for component in written:
            if component in step.written:
                results[component] = self._computed(node, i, component, values)
        return results

    def _plain(self, node: Node, component: int) -> FormalSum:
        return FormalSum(float(np.uint32(self._bits(node, component)).view(np.float32)))

    def _fetched(self, node: Node) -> dict[int, FormalSum]:
        number, item = node
        step = self.steps[number]
        assert step.fetch is not None
        x = int(step.fetch.x[item])
        y = int(step.fetch.y[item])
        inside = bool(step.fetch.inside[item])
        resource = step.fetch.resource
        texel = self.launch.textures[resource].texel // 4
        results = {}
        for component in step.written:
            if component >= texel:
                results[component] = self._plain(node, component)
                continue
            word = MemoryWord("texture", resource, x, y, component, inside)
            results[component] = _read(word, number)
        return results

    def _through_lds(self, node: Node, i: Instruction, values: Results) -> dict[int, FormalSum]:
        number, item = node
        step = self.steps[number]
        assert step.lds is not None
        words = step.lds.words
        if step.lds.store:
            source = i.sources[i.op.passed[0]]
            return {w: _passed(self._operand(node, source, w, values), number) for w in words}
        loaded = {}
        for word, place in self._lds_places(node):
            left = self._left(step.lds.array, place, item, number)
            if left is not None:
                loaded[word] = _passed(values[left[0]][left[1]], number)
        only = words[0] if len(words) == 1 else None
        return {c: loaded.get(c if only is None else only, FormalSum()) for c in step.written}

    def _operand(self, node: Node, source: Source, position: int, values: Results) -> FormalSum:
        """A source at a position, without its modifiers."""
        letter = source.swizzle[position]
        if letter not in "01":
            component = "xyzw".index(letter)
            for earlier in self._source(source, position, node):
                return values[earlier][component]
            if source.register.kind == "g":
                element = self._element(source, node)
                inside = 0 <= element < len(self.before)
                return _read(MemoryWord("g", 0, element, 0, component, inside), node[0])
        bits = self._read_bits(source, position, node)
        return FormalSum(float(np.uint32(bits).view(np.float32)))

    def _single(
        self,
        node: Node,
        i: Instruction,
        n: int,
        position: int,
        values: Results,
    ) -> tuple[FormalSum, float]:
        """Source ``n`` at a position with its modifiers, and the number that it was."""
        source = i.sources[n]
        value = self._operand(node, source, position, values)
        number = float(np.uint32(self._read_bits(source, position, node)).view(np.float32))
        if source.invert:
            value = _sum(FormalSum(1.0), _times(value, -1.0))
            number = 1.0 - number
        if source.bias:
            value = _sum(value, FormalSum(-0.5))
            number = number - 0.5
        if source.x2:
            value = _times(value, 2.0)
            number = 2 * number
        if source.sign:
            value = _mixed([value])
            number = float(np.sign(number))
        if source.abs:
            value, number = (_times(value, -1.0), -number) if number < 0 else (value, number)
        if "xyzw"[position] in source.negate:
            value = _times(value, -1.0)
            number = -number
        return value, number

    def _computed(self, node: Node, i: Instruction, component: int, values: Results) -> FormalSum:
        """What an operation in single precision, or on plain bits, wrote to a component."""
        name = i.op.name
        number = node[0]
        if i.op.double:
            pairs = [
                self._pair(node, i, n, values)
                for n in range(len(i.sources))
                if i.op.sources[n] == "d"
            ]
            if name == "d2f":
                return pairs[0]
            return self._chosen(node, component, pairs)
        positions = range(i.op.across) if i.op.across else (component,)
        rows = [
            [self._single(node, i, n, position, values) for position in positions]
            for n in range(len(i.sources))
        ]
        first = [row[0][0] for row in rows]
        if not any(value.terms or value.half >= 0 for row in rows for value, _ in row):
            return self._plain(node, component)
        if name in ("mov", "cmov_logical"):
            taken = 0
            if name == "cmov_logical":
                taken = 1 if self._read_bits(i.sources[0], component, node) else 2
            result = _passed(first[taken], number)
        elif name == "add":
            result = _sum(*first)
        elif name == "sub":
            result = _sum(first[0], _times(first[1], -1.0))
        elif name == "mul":
            result = _product(first[0], first[1], number)
        elif name in ("mad", "fma"):
            result = _sum(first[2], _product(first[0], first[1], number))
        elif i.op.across:
            result = FormalSum()
            for (left, _), (right, _) in zip(*rows, strict=True):
                result = _sum(result, _product(left, right, number))
        elif name == "div" and not first[1].terms and first[1].plain:
            result = _times(first[0], 1 / first[1].plain, number)
        else:
            return self._chosen(node, component, first)
        if i.shift != 1.0:
            result = _times(result, i.shift)
        return _mixed([result]) if i.saturate else result

    def _chosen(self, node: Node, component: int, operands: list[FormalSum]) -> FormalSum:
        """The result of an operation that isn't known as a sum: nothing but a number if its
        operands are; else something made of their terms.
        """
        if not any(value.terms for value in operands):
            return self._plain(node, component)
        return _mixed(operands)

    def _double(self, node: Node, i: Instruction, values: Results) -> dict[int, FormalSum]:
        """What an operation with a double result wrote."""
        name = i.op.name
        number = node[0]
        step = self.steps[number]
        assert i.dest is not None
        if name == "f2d":
            operands = [self._single(node, i, 0, 0, values)[0]]
        else:
            operands = [self._pair(node, i, n, values) for n in range(len(i.sources))]
        if name == "f2d":
            result = operands[0]
        elif name == "dadd":
            result = _sum(*operands)
        elif name == "dmul":
            result = _product(operands[0], operands[1], number)
        elif name == "dmad":
            result = _sum(operands[2], _product(operands[0], operands[1], number))
        elif name == "ddiv" and not operands[1].terms and operands[1].plain:
            result = _times(operands[0], 1 / operands[1].plain, number)
        else:
            result = _mixed(operands)
        if not result.terms and not result.mixed:
            result = FormalSum(self._double_bits(node, i))
        return {c: result.as_half(c % 2) for c in i.dest.written if c in step.written}

    def _double_bits(self, node: Node, i: Instruction) -> float:
        """The double that a step wrote; of half a double, whose other word isn't there, 0."""
        assert i.dest is not None
        written = set(i.dest.written)
        for low in (0, 2):
            if {low, low + 1} <= written:
                words = [self._bits(node, low), self._bits(node, low + 1)]
                return float(np.array(words, np.uint32).view(np.float64)[0])
        return 0.0

    def _pair(self, node: Node, i: Instruction, n: int, values: Results) -> FormalSum:
        """Source ``n`` as a double, with its modifiers."""
        source = i.sources[n]
        parts = [self._operand(node, source, position, values) for position in (0, 1)]
        words = [self._read_bits(source, position, node) for position in (0, 1)]
        number = float(np.array(words, np.uint32).view(np.float64)[0])
        plain = not any(part.terms or part.mixed for part in parts)
        value = FormalSum(number) if plain else _joined(parts)
        if source.abs and number < 0:
            value = _times(value, -1.0)
        return _times(value, -1.0) if source.negates_double else value


def _read(word: MemoryWord, step: int) -> FormalSum:
    """A number that was just read; it may be half of a double, which the other half tells."""
    return FormalSum(0.0, {Key((Factor(word, step),), -1): Amount(1.0)})


def _joined(parts: list[FormalSum]) -> FormalSum:
    """The double of two words: the same number's halves, or two words that were read side by
    side.
    """
    low, high = parts
    if (low.half, high.half) == (0, 1) and (low.plain, low.terms) == (high.plain, high.terms):
        return low.as_half(-1)
    if low.half < 0 and high.half < 0 and len(low.terms) == len(high.terms) == 1:
        (low_product, amount), (high_product, _) = *low.terms.items(), *high.terms.items()
        word, next_word = low_product.factors[0].word, high_product.factors[0].word
        beside = word._replace(word=word.word + 1) == next_word and word.word % 2 == 0
        if beside and len(low_product.factors) == len(high_product.factors) == 1:
            return FormalSum(0.0, {low_product: amount})
    return _mixed(parts)


def _mixed(operands: Iterable[FormalSum]) -> FormalSum:
    """Something made of the terms of several values."""
    terms: dict[Key, Amount] = {}
    for value in operands:
        terms |= value.terms
    return FormalSum(0.0, terms, mixed=bool(terms))


def _sum(left: FormalSum, right: FormalSum) -> FormalSum:
    terms = dict(left.terms)
    for key, amount in right.terms.items():
        _add(terms, key, amount)
    return FormalSum(left.plain + right.plain, terms, left.mixed or right.mixed)


def _add(terms: dict[Key, Amount], key: Key, amount: Amount) -> None:
    """Add a term to those of a sum, which may have it already."""
    if key in terms:
        before = terms[key]
        amount = Amount(before.times + amount.times, before.scaled or amount.scaled)
    terms[key] = amount


def _times(value: FormalSum, factor: float, step: int | None = None) -> FormalSum:
    """A value times a plain number."""
    scaled = () if step is None else (step,)
    terms = {
        key: Amount(amount.times * factor, (*amount.scaled, *scaled))
        for key, amount in value.terms.items()
    }
    return FormalSum(value.plain * factor, terms, value.mixed)


def _product(left: FormalSum, right: FormalSum, step: int) -> FormalSum:
    if not left.terms:
        return _times(right, left.plain, step)
    if not right.terms:
        return _times(left, right.plain, step)
    if len(left.terms) * len(right.terms) > MOST_TERMS:
        return _mixed([left, right])
    result = FormalSum(left.plain * right.plain)
    if right.plain:
        result = _sum(result, _times(FormalSum(0.0, left.terms), right.plain, step))
    if left.plain:
        result = _sum(result, _times(FormalSum(0.0, right.terms), left.plain, step))
    return _sum(result, _crossed(left, right, step))


def _crossed(left: FormalSum, right: FormalSum, step: int) -> FormalSum:
    """Each term of one value times each of another."""
    terms: dict[Key, Amount] = {}
    for left_product, amount in left.terms.items():
        for other, times in right.terms.items():
            factors = tuple(sorted((*left_product.factors, *other.factors)))
            scaled = (*amount.scaled, *times.scaled)
            _add(terms, Key(factors, step), Amount(amount.times * times.times, scaled))
    return FormalSum(0.0, terms, left.mixed or right.mixed)


def _passed(value: FormalSum, step: int) -> FormalSum:
    """A value after a step that passed it on as it was; numbers that were read note that."""
    terms = {
        Key(tuple(f._replace(path=(*f.path, step)) for f in key.factors), key.step)
        if key.step < 0
        else key: amount
        for key, amount in value.terms.items()
    }
    return FormalSum(value.plain, terms, value.mixed, value.half)
