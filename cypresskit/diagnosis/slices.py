"""Follow an element of C backward from its store: the products in its sum, and the steps that made
them.

How it works
------------
1. The work-item that stores the element runs with its workgroup, and each step is recorded: what is
   active, and which texels and words it reads or stores.
2. A backward slice from the store finds the steps whose results reach it, through registers, LDS
   and global memory. Addresses aren't followed.
3. These steps are computed again, on sums of products of matrix elements in place of numbers. A
   fetch gives an element, a multiply-add adds a product.

Not covered: results that are no sums of products, such as a maximum (``UNKNOWN``).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cypresskit.il import Instruction, Source
from cypresskit.il.dataflow import Key, defines, is_address, read_positions
from cypresskit.il.program import LETTERS
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.products import Product
from cypresskit.machine import KernelError, interpreter
from cypresskit.machine.launch import Launch
from cypresskit.machine.observer import FetchEvent, MemoryEvent, Observer, StepEvent, WroteEvent
from cypresskit.machine.replicas import group_of, make_replicas

MAX_TERMS = 1 << 14  # most terms of a sum; a kernel that makes more multiplies sums by sums
COPIES = {"mov", "dmov", "d2f", "f2d"}
SUMS = {"add": 1.0, "dadd": 1.0, "sub": -1.0}  # of two sources, the second times this
PRODUCTS = {"mul", "mad", "fma", "dmul", "dmad", "dp2", "dp3", "dp4"}


class MatrixElement(NamedTuple):
    """An element of A, B or C as stored; ``matrix`` is its letter. The low part of a double-double
    has a lowercase letter.
    """

    matrix: str
    row: int
    column: int

    def __str__(self) -> str:
        return f"{self.matrix}[{self.row}, {self.column}]"


Elements = tuple[MatrixElement, ...]
NO_ELEMENT = MatrixElement("", 0, 0)  # stands for padding, and for numbers such as alpha
UNKNOWN = MatrixElement("?", 0, 0)
Node = tuple[int, int]  # a step and a work-item


@dataclass(frozen=True)
class ReadElement:
    """An element that was read at a step by a work-item, and the steps that then moved it."""

    element: MatrixElement
    step: int
    item: int
    path: tuple[int, ...] = ()


@dataclass(frozen=True)
class Addend:
    """A term of a sum: the product of ``factors`` and a number.

    ``made`` is the step and work-item that multiplied two factors, and ``scaled`` the steps that
    multiplied by a number.
    """

    factors: tuple[ReadElement, ...] = ()
    times: float = 1.0
    made: Node | None = None
    scaled: tuple[int, ...] = ()

    @property
    def elements(self) -> Elements:
        return tuple(factor.element for factor in self.factors)


Sum = dict[Elements, tuple[Addend, ...]]
OPAQUE: Sum = {(UNKNOWN,): (Addend((ReadElement(UNKNOWN, 0, 0),)),)}


def constant(number: float) -> Sum:
    """Return a number as a sum."""
    return {(): (Addend(times=float(number)),)} if number else {}


def number_of(terms: Sum) -> float:
    """Return the part of a sum that isn't from a matrix."""
    return sum(addend.times for addend in terms.get((), ()))


def added(first: Sum, second: Sum, sign: float = 1.0) -> Sum:
    """Return the first sum plus ``sign`` times the second. Terms that cancel are left out."""
    if len(first) < len(second) and sign == 1:
        first, second = second, first
    total = dict(first)
    for elements, addends in second.items():
        held = list(total.pop(elements, ()))
        for addend in addends:
            term = addend if sign == 1 else replace(addend, times=sign * addend.times)
            opposite = next((n for n, other in enumerate(held) if other.times == -term.times), -1)
            if opposite >= 0:
                del held[opposite]
            else:
                held.append(term)
        if held:
            total[elements] = tuple(held)
    return total


def multiplied(first: Sum, second: Sum, node: Node) -> Sum:
    """Return the product of two sums, made at a step by a work-item."""
    if len(first) * len(second) > MAX_TERMS:
        return OPAQUE
    total: Sum = {}
    for one in (addend for addends in first.values() for addend in addends):
        for other in (addend for addends in second.values() for addend in addends):
            factors = tuple(sorted(one.factors + other.factors, key=lambda read: read.element))
            scaled = one.scaled + other.scaled
            made = one.made or other.made
            if one.factors and other.factors:
                made = node
            elif factors:
                scaled += (node[0],)
            term = Addend(factors, one.times * other.times, made, scaled)
            total[term.elements] = (*total.get(term.elements, ()), term)
    return total


class StoredAt(NamedTuple):
    """Where an element of C is stored.

    Attributes
    ----------
    number, word
        The first word is component ``word`` of element ``number`` of ``g[]``, or of the output of
        work-item ``number``.
    stream
        The output stream; None for ``g[]``.
    """

    number: int
    word: int
    stream: int | None

    def writers(self, event: WroteEvent) -> np.ndarray:
        """Return the work-items that write this element in an event."""
        nobody = np.zeros(0, int)
        if self.word not in event.components:
            return nobody
        if event.register.kind == "g" and self.stream is None:
            return np.flatnonzero(event.active & (event.element == self.number))
        to_stream = event.register.kind == "o" and event.register.index == self.stream
        return np.array([self.number]) if to_stream and event.active[self.number] else nobody


class StoreRecorder(Observer):
    """Records the last store to ``place``: ``writer`` is (instruction, work-item)."""

    def __init__(self, place: StoredAt) -> None:
        self.place = place
        self.writer: tuple[int, int] | None = None

    def wrote(self, event: WroteEvent) -> None:
        items = self.place.writers(event)
        if len(items):
            self.writer = event.at, int(items[-1])


@dataclass
class RecordedStep:
    """What an instruction did, for all work-items of the group."""

    at: int
    active: np.ndarray
    chosen: np.ndarray | None = None  # of a cmov_logical: whether each position takes the first
    words: dict[int, np.ndarray] = field(default_factory=dict)  # what it wrote, by component
    fetched: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # x, y, inside
    elements: list[np.ndarray] = field(default_factory=list)  # of g[], by operand
    byte: np.ndarray | None = None  # of LDS


class StepRecorder(Observer):
    """Records the steps of a run; ``store`` is the last in which ``item`` stores ``place``."""

    def __init__(self, item: int, place: StoredAt) -> None:
        self.item = item
        self.place = place._replace(number=item) if place.stream is not None else place
        self.store = -1
        self.steps: list[RecordedStep] = []

    def start(self, launch: Launch) -> None:
        self.program = launch.program

    def step(self, event: StepEvent) -> None:
        step = RecordedStep(event.at, event.active.copy())
        self.steps.append(step)
        i = event.instruction
        if i.opcode == "cmov_logical":
            rows = np.broadcast_to(
                event.rows(i.sources[0], i.sources[0].swizzle), (4, len(event.active))
            )
            step.chosen = rows != 0

    def wrote(self, event: WroteEvent) -> None:
        if self.item in self.place.writers(event):
            self.store = len(self.steps) - 1
        shape = len(event.components), len(event.active)
        rows = np.broadcast_to(event.rows, shape).astype(np.uint32)
        self.steps[-1].words = dict(zip(event.components, rows))

    def fetch(self, event: FetchEvent) -> None:
        self.steps[-1].fetched = event.x.copy(), event.y.copy(), event.inside.copy()

    def memory(self, event: MemoryEvent) -> None:
        if event.space == "lds":
            self.steps[-1].byte = event.element & ~3
        else:
            self.steps[-1].elements.append(
                np.broadcast_to(event.element, event.active.shape).copy()
            )


@dataclass(frozen=True, eq=False)
class TracedElement:
    """The element of C to trace, in a small product."""

    given: Product
    row: int
    column: int

    @property
    def kernel(self) -> Kernel:
        return self.given.kernel

    @cached_property
    def words(self) -> int:
        """Words per number of C."""
        return BYTES[self.kernel.precision] // 4

    @cached_property
    def place(self) -> StoredAt:
        """Where the element of C is stored."""
        kernel = self.kernel
        _, n, _ = kernel.convention.padded(*self.given.size)
        if not kernel.convention.streams:
            return StoredAt(*divmod((self.row * n + self.column) * self.words, 4), None)
        rows, columns = kernel.block
        stripes = kernel.convention.streams // rows
        stripe, within = divmod(self.column % columns, columns // stripes)
        item = self.row // rows * (n // columns) + self.column // columns
        return StoredAt(item, within * self.words, self.row % rows * stripes + stripe)

    def wanted(self, k: int) -> Elements:
        """Return the elements of A and B whose product is term ``k`` of the correct sum."""
        return factors_of_term(self.kernel, self.row, self.column, k)


def factors_of_term(kernel: Kernel, row: int, column: int, k: int) -> Elements:
    """Return the elements of A and B whose product is term ``k`` of the correct C[row, column]."""
    a = (k, row) if kernel.trans_a else (row, k)
    b = (column, k) if kernel.trans_b else (k, column)
    return MatrixElement("A", *a), MatrixElement("B", *b)


class ElementLayout:
    """Which element of a matrix each word of the textures and of ``g[]`` holds."""

    def __init__(self, given: Product) -> None:
        kernel = given.kernel
        pairs = kernel.precision == "double-double"
        self.words = 1 if kernel.precision == "single" else 2
        self.elements = [NO_ELEMENT]
        numbered = []
        for letter in "ABCabc" if pairs else "ABC":
            matrix = {"a": given.a, "b": given.b, "c": given.c}[letter.lower()]
            rows, columns = np.divmod(np.arange(matrix.size), matrix.shape[-1])
            numbers = len(self.elements) + np.arange(matrix.size)
            numbered.append(numbers.reshape(matrix.shape).astype(kernel.dtype))
            letters = [letter] * matrix.size
            self.elements += map(MatrixElement, letters, rows.tolist(), columns.tolist())
        stored = [np.stack(parts, axis=-1) for parts in zip(numbered[:3], numbered[3:])]
        a, b, c = stored or numbered
        arguments = kernel.arguments(a, b, c, 1.0, 1.0)
        self.textures = {n: t.astype(np.int64) for n, t in arguments["inputs"].items()}
        self.memory = arguments.get("global_memory", np.zeros(0)).reshape(-1).astype(np.int64)

    def texel(self, resource: int, x: int, y: int, component: int) -> MatrixElement:
        """Return the element of a texel's component."""
        texel = self.textures[resource][y, x]
        number = component // self.words
        return self.elements[texel[number]] if number < len(texel) else NO_ELEMENT

    def in_memory(self, element: int, component: int) -> MatrixElement:
        """Return the element of a component of ``g[element]``."""
        number = (4 * element + component) // self.words
        inside = 0 <= number < len(self.memory)
        return self.elements[self.memory[number]] if inside else NO_ELEMENT


class Slice:
    """The sum that is stored as an element of C, and the steps of the work-item that stored it.

    Attributes
    ----------
    item
        The work-item's number in its group.
    store
        The step that stored the element.
    terms
        The terms of the stored sum, by their elements.
    singles
        Lines that compute with halves of doubles as if they were floats.
    """

    def __init__(self, traced: TracedElement, item: int) -> None:
        self.traced = traced
        self.program = traced.kernel.program
        given = traced.given
        self.layout = ElementLayout(given)
        count = len(given.a) if traced.kernel.convention.packed else 1
        self.whole = traced.kernel.shape(*given.size, given.alpha, given.beta, count)
        members = group_of(self.whole, item)
        self.item = item - int(members[0])
        recorder = StepRecorder(self.item, traced.place)
        arrays = given.arguments()
        memory = arrays.get("global_memory", np.zeros(4, np.float32))
        textures = {n: texture[np.newaxis] for n, texture in arrays["inputs"].items()}
        self.launch = make_replicas(
            self.whole, int(members[0]), textures, memory.reshape(1, -1), given.longest
        )
        try:
            interpreter.run(self.launch, (recorder,))
        except KernelError:
            pass  # it failed after the store: ``verify`` has reported any failure before it
        self.steps = recorder.steps
        self.store = recorder.store
        self.singles: list[int] = []
        self.values: dict[tuple[int, int, int], Sum] = {}  # by work-item and register component
        self.words: dict[tuple[int, int, int], int] = {}
        self.stored: dict[tuple[int, ...], Sum] = {}  # by word of LDS or g[]
        self.terms = self._stored_sum()

    # Steps

    def instruction(self, step: int) -> Instruction:
        return self.program.body[self.steps[step].at]

    def line(self, step: int) -> int:
        return self.instruction(step).line

    def _data(self, step: int, item: int, wanted: Iterable[int]) -> Iterator[tuple[Source, int]]:
        """Yield the sources and positions from which a step's wanted components come."""
        i = self.instruction(step)
        by_component = i.op.kind == "alu" and not (i.op.across or i.op.double)
        for n, source in enumerate(i.sources):
            if is_address(i, n):
                continue
            for position in read_positions(self.program, i, n):
                if by_component and position not in wanted:
                    continue
                chosen = self.steps[step].chosen
                if chosen is None or n == (1 if chosen[position, item] else 2):
                    yield source, position

    def _memory_words(self, step: int, item: int) -> dict[int, tuple[int, ...]]:
        """Return the words of LDS, or of ``g[]``, that a step accesses, by component."""
        i = self.instruction(step)
        record = self.steps[step]
        if i.op.kind == "lds" and record.byte is not None:
            written = i.dest.written if i.dest else (0,)
            first = int(record.byte[item]) // 4
            return {c: (i.controls.id, first + c * (i.op.words > 1)) for c in written}
        if i.dest and i.dest.register.kind == "g":
            element = int(record.elements[-1][item])
            return {c: (-1, element, c) for c in i.dest.written}
        return {}

    def _loaded_word(self, step: int, item: int, source: Source, letter: str) -> tuple[int, ...]:
        """Return the word of ``g[]`` that an operand reads."""
        loads = [s for s in self.instruction(step).sources if s.register.kind == "g"]
        n = next(n for n, other in enumerate(loads) if other is source)
        return -1, int(self.steps[step].elements[n][item]), LETTERS.index(letter)

    def _stored_sum(self) -> Sum:
        """Slice backward from the store, then compute the sum forward."""
        word = self.traced.place.word
        needed: dict[Key, set[int]] = defaultdict(set)
        memory: set[tuple[int, ...]] = set()
        # A step, a work-item, and the components that are needed of its result
        path: list[tuple[int, int, tuple[int, ...]]] = []

        def need(step: int, item: int, wanted: tuple[int, ...]) -> None:
            path.append((step, item, wanted))
            i = self.instruction(step)
            if i.op.kind == "lds" and not i.op.store:
                words = self._memory_words(step, item)
                memory.update(words[c] for c in wanted if c in words)
            for source, position in self._data(step, item, wanted):
                letter = source.swizzle[position]
                if letter in LETTERS and source.register.kind == "r":
                    needed[source.register.index, LETTERS.index(letter)].add(item)
                elif letter in LETTERS and source.register.kind == "g":
                    memory.add(self._loaded_word(step, item, source, letter))

        need(self.store, self.item, tuple(range(word, word + min(self.traced.words, 2))))
        for step in range(self.store - 1, -1, -1):
            i = self.instruction(step)
            active = self.steps[step].active
            found: dict[int, list[int]] = defaultdict(list)
            for key in defines(i):
                for item in [item for item in needed.get(key, ()) if active[item]]:
                    needed[key].remove(item)
                    found[item].append(key[1])
            if memory and (i.op.store or (i.dest and i.dest.register.kind == "g")):
                for item in np.flatnonzero(active).tolist():
                    words = self._memory_words(step, item)
                    found[item] = [c for c, place in words.items() if place in memory]
                    memory -= {words[c] for c in found[item]}
            for item, components in found.items():
                if components:
                    need(step, item, tuple(components))
        for step, item, wanted in reversed(path):
            self._compute(step, item, wanted)
        self.path = {(step, item) for step, item, _ in path}
        return self.final

    # Values

    def _compute(self, step: int, item: int, wanted: tuple[int, ...]) -> None:
        """Compute the wanted components of a step's result."""
        i = self.instruction(step)
        is_register = i.dest is not None and i.dest.register.kind == "r" and not i.op.store
        results = {c: self._result(step, item, i, c) for c in wanted}
        if step == self.store and item == self.item:
            self.final = results[max(results)]
        for c, value in results.items():
            if is_register and i.dest:
                key = item, i.dest.register.index, c
                self.values[key] = value
                self.words[key] = int(self.steps[step].words[c][item])
            else:
                self.stored[self._memory_words(step, item).get(c, ())] = value

    def _result(self, step: int, item: int, i: Instruction, c: int) -> Sum:
        """Return a component of a step's result."""
        node = step, item
        name = i.opcode
        if i.dest and i.dest.mask[c] in "01":
            return constant(float(i.dest.mask[c]))
        if i.op.kind == "fetch":
            x, y, inside = (int(place[item]) for place in self.steps[step].fetched or ())
            return (
                self._read(self.layout.texel(i.controls.resource, x, y, c), node) if inside else {}
            )
        if i.op.kind == "lds" and not i.op.store:
            place = self._memory_words(step, item)[c]
            return _moved(self.stored.get(place, {}), step)
        operands = [(n, source) for n, source in enumerate(i.sources) if not is_address(i, n)]
        if i.op.store:
            n, source = operands[-1]
            return _moved(self._operand(step, item, source, n, c if i.op.words > 1 else 0), step)
        if name == "cmov_logical":
            chosen = self.steps[step].chosen
            n = 1 if chosen is not None and chosen[c, item] else 2
            return _moved(self._operand(step, item, i.sources[n], n, c), step)
        if i.op.across:
            total: Sum = {}
            for p in range(i.op.across):
                first, second = (self._operand(step, item, s, n, p) for n, s in operands)
                total = added(total, multiplied(first, second, node))
        else:
            values = [self._operand(step, item, source, n, c) for n, source in operands]
            total = self._combined(step, item, c, name, values)
        if i.saturate and any(total):
            return OPAQUE
        return multiplied(total, constant(i.shift), node) if i.shift != 1 else total

    def _combined(self, step: int, item: int, c: int, name: str, values: list[Sum]) -> Sum:
        """Return what an instruction makes of its operands."""
        i = self.instruction(step)
        node = step, item
        halves = self.layout.words == 2 and not i.op.double and "f" in i.op.sources
        if halves and any(any(value) for value in values) and name != "f2d":
            self.singles.append(i.line)
            return OPAQUE
        if name in COPIES:
            return _moved(values[0], step)
        if name in SUMS:
            return added(values[0], values[1], SUMS[name])
        if name in PRODUCTS:
            product = multiplied(values[0], values[1], node)
            return added(values[2], product) if len(values) > 2 else product
        if any(any(value) for value in values):
            return OPAQUE
        words = self.steps[step].words
        if i.op.result == "d":
            pair = [int(words[w][item]) for w in (c & ~1, c | 1) if w in words]
            return constant(_as_double(*pair)) if len(pair) == 2 else {}
        return constant(_as_float(int(words[c][item]))) if c in words else {}

    def _operand(self, step: int, item: int, source: Source, n: int, position: int) -> Sum:
        """Return an operand's value, with its modifiers."""
        i = self.instruction(step)
        double = i.op.sources[n] == "d"
        if double:
            low, high = (self._word(step, item, source, p) for p in (0, 1))
            if not any(low[0]) and not any(high[0]):
                value = constant(_as_double(low[1], high[1]))
            else:
                value = high[0] if low[0].keys() == high[0].keys() else OPAQUE
        else:
            at = position if read_positions(self.program, i, n) != (0,) else 0
            value, word = self._word(step, item, source, at)
            if not any(value) and i.op.sources[n] == "f":
                value = constant(_as_float(word))
        negated = source.negates_double if double else LETTERS[position] in source.negate
        if source.is_modified and replace(source, negate="").is_modified:
            value = OPAQUE if any(value) else constant(abs(number_of(value)))
        return added({}, value, -1.0) if negated else value

    def _word(self, step: int, item: int, source: Source, position: int) -> tuple[Sum, int]:
        """Return the value of a component that an operand reads, and its bits if it is a number."""
        letter = source.swizzle[position]
        register = source.register
        if letter not in LETTERS:
            return constant(float(letter)), 0x3F800000 * int(letter)
        c = LETTERS.index(letter)
        if register.kind == "r":
            key = item, register.index, c
            return self.values.get(key, {}), self.words.get(key, 0)
        if register.kind == "g":
            place = self._loaded_word(step, item, source, letter)
            stored = self.stored.get(place)
            if stored is not None:
                return stored, 0
            return self._read(self.layout.in_memory(*place[1:]), (step, item)), 0
        if register.kind == "l":
            word = self.program.literals[register.index][c]
        elif register.kind == "cb":
            word = self.whole.constants[register.index][register.element][c]
        else:
            word = self.launch.ids[register.kind][c][item]
        return constant(_as_float(int(word))), int(word)

    def _read(self, element: MatrixElement, node: Node) -> Sum:
        """Return an element as a sum; nothing for padding."""
        if element == NO_ELEMENT:
            return {}
        return {(element,): (Addend((ReadElement(element, *node),)),)}

    @cached_property
    def reads(self) -> dict[MatrixElement, list[Node]]:
        """The steps and work-items that read each element, from a texture or ``g[]``."""
        found: dict[MatrixElement, list[Node]] = defaultdict(list)
        for step, record in enumerate(self.steps):
            i = self.instruction(step)
            for item in np.flatnonzero(record.active).tolist():
                for c in i.dest.written if i.dest else ():
                    if record.fetched and record.fetched[2][item]:
                        x, y, _ = (int(place[item]) for place in record.fetched)
                        found[self.layout.texel(i.controls.resource, x, y, c)].append((step, item))
                if record.elements and i.dest and i.dest.register.kind == "r":
                    for c in range(4):
                        element = self.layout.in_memory(int(record.elements[0][item]), c)
                        found[element].append((step, item))
        return found

    @cached_property
    def products(self) -> dict[Elements, list[tuple[int, int, int]]]:
        """The steps in which the work-item multiplied two elements: step, register, component."""
        held: dict[Key, MatrixElement] = {}
        found: dict[Elements, list[tuple[int, int, int]]] = defaultdict(list)
        for step, record in enumerate(self.steps):
            i = self.instruction(step)
            if not record.active[self.item] or not defines(i) or not i.dest:
                continue
            values: dict[int, MatrixElement] = {}
            for c in i.dest.written:
                if record.fetched and record.fetched[2][self.item]:
                    x, y, _ = (int(place[self.item]) for place in record.fetched)
                    values[c] = self.layout.texel(i.controls.resource, x, y, c)
                elif i.op.kind == "lds":
                    value = self.stored.get(self._memory_words(step, self.item)[c], {})
                    values[c] = (
                        next(iter(value), (NO_ELEMENT,))[0] if len(value) == 1 else NO_ELEMENT
                    )
                elif i.opcode in ("mov", "dmov"):
                    values[c] = self._held(held, i.sources[0], c)
                elif i.opcode in PRODUCTS and not i.op.across:
                    position = 1 if i.op.double else c
                    pair = sorted(self._held(held, s, position) for s in i.sources[:2])
                    if NO_ELEMENT not in pair:
                        found[tuple(pair)].append((step, i.dest.register.index, c))
            for key in defines(i):
                held[key] = values.get(key[1], NO_ELEMENT)
        return found

    def _held(self, held: dict[Key, MatrixElement], source: Source, position: int) -> MatrixElement:
        letter = source.swizzle[position]
        if source.register.kind != "r" or letter not in LETTERS:
            return NO_ELEMENT
        return held.get((source.register.index, LETTERS.index(letter)), NO_ELEMENT)


def _moved(value: Sum, step: int) -> Sum:
    """Return a value that a step moved: a read element remembers its path."""
    if len(value) != 1:
        return value
    ((elements, addends),) = value.items()
    if len(elements) != 1 or len(addends) != 1 or addends[0].scaled:
        return value
    (factor,) = addends[0].factors
    factor = replace(factor, path=(*factor.path, step))
    return {elements: (replace(addends[0], factors=(factor,)),)}


def _as_float(word: int) -> float:
    return float(np.uint32(word).view(np.float32))


def _as_double(low: int, high: int) -> float:
    return float(np.array([low, high], np.uint32).view(np.float64)[0])
