"""Find the elements of A, B and C that contribute to an element of C, and the steps that use them.

How it works
------------
The work-item that computes the element is replayed on other matrices, many copies at once. A kernel
computes a polynomial in the elements of A, B and C; its addresses and branches don't depend on
them, so all copies execute the same steps.

1. In one copy, all elements are 0. In each other copy, one or two elements are 1: a step that
   writes another value than in the first copy is on the path of these elements.
2. A copy in which an element is 2 distinguishes the element from its square.
3. To find the elements that affect the result, all are changed at once, then each quarter of those
   that changed it, and so on.

Not covered: products of more than two elements.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from cypresskit.il import Instruction
from cypresskit.il.dataflow import Key, defines, is_address, keys, uses
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.products import Product
from cypresskit.machine import KernelError, interpreter
from cypresskit.machine.launch import Launch
from cypresskit.machine.observer import FetchEvent, Observer, StepEvent, WroteEvent
from cypresskit.machine.replicas import group_of, make_replicas

MAX_WORK_ITEMS = 1 << 16  # most work-items of all copies per launch
N_PARTS = 4  # into which a set of elements that affects the result is split
NO_ITEMS = np.zeros(0, int)
FACTORS = (0, 1)  # the factors among a multiplication's sources
MULTIPLY = {"mul", "mad", "fma", "dmul", "dmad", "dp2", "dp3", "dp4"}


class MatrixElement(NamedTuple):
    """An element of A, B or C as stored; ``matrix`` is its letter."""

    matrix: str
    row: int
    column: int

    def __str__(self) -> str:
        return f"{self.matrix}[{self.row}, {self.column}]"


Elements = tuple[MatrixElement, ...]
NO_ELEMENT = MatrixElement("", 0, 0)  # stands for padding, and for numbers such as alpha


def low_part(element: MatrixElement) -> MatrixElement:
    """Return the low part of a double-double element. Its matrix has a lowercase letter."""
    return element._replace(matrix=element.matrix.lower())


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
        if self.word not in event.components:
            return NO_ITEMS
        if event.register.kind == "g" and self.stream is None:
            return np.flatnonzero(event.active & (event.element == self.number))
        to_stream = event.register.kind == "o" and event.register.index == self.stream
        if to_stream and event.active[self.number]:
            return np.array([self.number])
        return NO_ITEMS


class Change(NamedTuple):
    """A write or read whose value in a copy differs from the first copy's."""

    step: int
    item: int  #: the work-item
    what: int  #: of a write, a bit per written component; of a read, the number of the source


Changes = defaultdict[int, list[Change]]  # by copy


class OutsideFetch(NamedTuple):
    """A fetch outside of texture ``resource``, at texel (x, y)."""

    step: int
    item: int
    resource: int
    x: int
    y: int


class StoreRecorder(Observer):
    """Records the last store to ``place``: ``writer`` is (instruction, work-item)."""

    def __init__(self, place: StoredAt) -> None:
        self.place = place
        self.writer: tuple[int, int] | None = None

    def wrote(self, event: WroteEvent) -> None:
        items = self.place.writers(event)
        if len(items):
            self.writer = event.at, int(items[-1])


class StepRecorder(Observer):
    """Records the steps of the first copy, and the changes in the other copies.

    Parameters
    ----------
    items
        The work-items of a copy.
    item
        The work-item that stores ``place``.
    place
        The stored element.

    Attributes
    ----------
    store
        The last step in which ``item`` stores ``place``.
    written, read
        The changed writes of each copy, and its changed reads of data.
    """

    def __init__(self, items: int, item: int, place: StoredAt) -> None:
        self.items, self.item = items, item
        self.place = place._replace(number=item) if place.stream is not None else place
        self.store = -1
        self.at: list[int] = []
        self.active: list[np.ndarray] = []
        self.outside: list[OutsideFetch] = []
        self.written: Changes = defaultdict(list)
        self.read: Changes = defaultdict(list)

    def start(self, launch: Launch) -> None:
        self.program = launch.program

    def step(self, event: StepEvent) -> None:
        i = event.instruction
        self.at.append(event.at)
        self.active.append(event.active[: self.items].copy())
        for n, source, positions in uses(self.program, i):
            if is_address(i, n) or source.register.kind not in ("r", "g"):
                continue
            letters = "".join(source.swizzle[p] for p in positions)
            changed = self._changed(event.rows(source, letters), event.active)
            any_changed = np.logical_or.reduce(changed)
            self._note(self.read, any_changed, n)
            if i.op.kind == "lds":  # it writes the value that it reads
                self._note(self.written, any_changed, 0)

    def wrote(self, event: WroteEvent) -> None:
        if self.item in self.place.writers(event):
            self.store = len(self.at) - 1
        changed = self._changed(event.rows, event.active)
        if not changed.any():
            return
        bits = np.zeros(changed.shape[1:], np.int64)
        rows = np.broadcast_to(changed, (len(event.components), *bits.shape))
        for component, row in zip(event.components, rows, strict=True):
            bits |= row.astype(np.int64) << component
        self._note(self.written, bits)

    def fetch(self, event: FetchEvent) -> None:
        beyond = np.flatnonzero(self.active[-1] & ~event.inside[: self.items])
        for item in beyond.tolist():
            place = int(event.x[item]), int(event.y[item])
            self.outside.append(OutsideFetch(len(self.at) - 1, item, event.resource, *place))

    def _changed(self, rows: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Return in which copies and work-items a row differs from the first copy's (bool)."""
        if rows.shape[1] == 1:
            return np.zeros((len(rows), 1, self.items), bool)
        apart = rows.reshape(len(rows), -1, self.items)
        changed: np.ndarray = (apart != apart[:, :1]) & active.reshape(-1, self.items)
        return changed

    def _note(self, changes: Changes, changed: np.ndarray, what: int | None = None) -> None:
        """Note a change wherever ``changed`` isn't 0: ``what``, or else its value there."""
        for copy, item in np.argwhere(changed).tolist():
            value = int(changed[copy, item]) if what is None else what
            changes[copy].append(Change(len(self.at) - 1, item, value))


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
        """Words per number of C. Of double-doubles, only the high part is traced."""
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


class Probes:
    """The terms of an element of C, and the steps on their paths.

    Attributes
    ----------
    terms
        The factor of each term, by the elements in it.
    plain
        The rest of the sum, in which there are no elements.
    steps
        The steps of the replay.
    """

    def __init__(self, traced: TracedElement, item: int) -> None:
        self.traced, self.kernel, self.given = traced, traced.kernel, traced.given
        self.body = self.kernel.program.body
        self.rng = np.random.default_rng(3)
        self._number_elements()
        given = self.given
        count = len(given.a) if self.kernel.convention.packed else 1
        self.whole = self.kernel.shape(*given.size, given.alpha, given.beta, count)
        members = group_of(self.whole, item)
        self.first = int(members[0])
        self.members = len(members)
        self.item = item - self.first
        self.products = cache(self._products)
        self.scaling = cache(self._scaling)
        self.data_steps = cache(self._data_steps)
        self.addresses = cache(self._addresses)
        self.copy: dict[Elements, int] = {(): 0}
        self.terms = self._terms()

    # The elements, by number

    def _number_elements(self) -> None:
        """Number the elements of A, B and C, and find each in textures and ``g[]``."""
        given, kernel = self.given, self.kernel
        pairs = kernel.precision == "double-double"
        self.elements = [NO_ELEMENT]
        self.of: dict[str, np.ndarray] = {}
        numbered = []
        for letter in "ABCabc" if pairs else "ABC":
            matrix = {"a": given.a, "b": given.b, "c": given.c}[letter.lower()]
            rows, columns = np.divmod(np.arange(matrix.size), matrix.shape[-1])
            self.of[letter] = len(self.elements) + np.arange(matrix.size)
            letters = [letter] * matrix.size
            self.elements += map(MatrixElement, letters, rows.tolist(), columns.tolist())
            numbered.append(self.of[letter].reshape(matrix.shape).astype(kernel.dtype))
        self.number = {element: n for n, element in enumerate(self.elements)}
        stored = [np.stack(parts, axis=-1) for parts in zip(numbered[:3], numbered[3:])]
        a, b, c = stored or numbered
        arguments = kernel.arguments(a, b, c, given.alpha, given.beta)
        self.layout = {n: texture.astype(np.int64) for n, texture in arguments["inputs"].items()}
        memory = arguments.get("global_memory", np.zeros(0))
        self.memory = memory.reshape(-1).astype(np.int64)

    def _launched(self, table: np.ndarray, observers: tuple[Observer, ...] = ()) -> np.ndarray:
        """Return the traced element of C in each copy.

        A copy has a row of ``table``, which holds a value for each numbered element; the first is
        0.
        """
        table = table.astype(self.kernel.dtype)
        textures = {n: table[:, numbers] for n, numbers in self.layout.items()}
        memory = table[:, self.memory]
        launch = make_replicas(self.whole, self.first, textures, memory, self.given.longest)
        try:
            interpreter.run(launch, observers)
        except KernelError:
            pass  # it failed after the store: ``verify`` has reported any failure before it
        number, word, stream = self.traced.place
        words = min(self.traced.words, 2)
        if stream is None:
            stored = launch.memory.reshape(len(table), -1, 4)[:, number, word : word + words]
        else:
            stored = launch.outputs[stream].words[:, 0, word : word + words]
        values: np.ndarray = np.ascontiguousarray(stored).view(self.kernel.dtype)[:, 0]
        return values.astype(np.float64)

    def _values(self, table: np.ndarray) -> np.ndarray:
        """Return the traced element of C for each row, in launches of limited size."""
        size = max(1, MAX_WORK_ITEMS // self.members)
        parts = [table[n : n + size] for n in range(0, len(table), size)]
        return np.concatenate([np.zeros(0), *map(self._launched, parts)])

    def _numbers(self, *elements: int, value: float = 1.0) -> np.ndarray:
        """Return a row with ``value`` for these elements, and 0 for all others."""
        row = np.zeros(len(self.elements))
        row[list(elements)] = value
        return row

    # Terms

    def _effective(self, fixed: np.ndarray, candidates: list[np.ndarray]) -> list[list[int]]:
        """Return the candidates of each row of ``fixed`` that affect the result.

        All candidates of a row are changed at once. If the result changes, they are split, and the
        parts are tried again.
        """
        plain = self._values(fixed)
        found: list[list[int]] = [[] for _ in candidates]
        untried = list(enumerate(candidates))
        while untried:
            table = fixed[[n for n, _ in untried]]
            for row, (_, elements) in zip(table, untried, strict=True):
                row[elements] += self.rng.integers(1, 8, len(elements))
            values = self._values(table)
            effective = [
                (n, elements)
                for (n, elements), value in zip(untried, values, strict=True)
                if len(elements) and not np.array_equal(value, plain[n], equal_nan=True)
            ]
            for n, elements in effective:
                found[n] += elements.tolist() if len(elements) == 1 else []
            untried = [
                (n, part)
                for n, elements in effective
                if len(elements) > 1
                for part in np.array_split(elements, min(N_PARTS, len(elements)))
            ]
        return found

    def _terms(self) -> dict[Elements, float]:
        """Return the terms of the element with their factors. Set ``plain`` and ``steps``."""
        matrices = [self.of[letter] for letter in "ABC"]  # terms of A B and of C could cancel
        every = np.concatenate(matrices)
        full = np.zeros(len(self.elements))
        full[every] = self.rng.integers(1, 8, len(every))
        found = self._effective(np.stack([full] * 3), matrices)
        alone = [n for numbers in found for n in numbers]
        tries = [(n, matrix[matrix > n]) for n in alone for matrix in matrices]
        tries = [(n, later) for n, later in tries if len(later)]
        ones = np.array([self._numbers(n) for n, _ in tries])
        partners = self._effective(ones, [later for _, later in tries]) if tries else []
        pairs = [(n, m) for (n, _), numbers in zip(tries, partners, strict=True) for m in numbers]
        tried = dict.fromkeys([(), *((n,) for n in alone), *pairs, *self._wanted_numbers()])
        tried |= dict.fromkeys((n,) for numbers in list(tried) for n in numbers)
        rows = [self._numbers(*numbers) for numbers in tried]
        twos = [self._numbers(n, value=2) for n in alone]
        self.steps = StepRecorder(self.members, self.item, self.traced.place)
        values = self._launched(np.stack([*rows, *twos]), (self.steps,))
        self.plain = float(values[0])
        rise = dict(zip(tried, (values - self.plain).tolist()))
        self.copy = {self._named(numbers): n for n, numbers in enumerate(tried)}
        terms: dict[tuple[int, ...], float] = {}
        for n, doubled in zip(alone, (values[len(rows) :] - self.plain).tolist()):
            square = (doubled - 2 * rise[n,]) / 2
            terms[n,] = rise[n,] - square
            terms[n, n] = square
            self.copy[self._named((n, n))] = self.copy[self._named((n,))]
        for numbers in pairs:
            terms[numbers] = rise[numbers] - sum(rise[n,] for n in numbers)
        return {self._named(numbers): times for numbers, times in terms.items() if times}

    def _named(self, numbers: tuple[int, ...]) -> Elements:
        return tuple(self.elements[n] for n in numbers)

    def _wanted_numbers(self) -> Iterator[tuple[int, ...]]:
        """Yield the numbers of the elements of each correct term, also with low parts."""
        for k in range(self.given.size[2]):
            a, b = self.wanted(k)
            yield self.number[a], self.number[b]
            if low_part(a) in self.number:
                yield self.number[low_part(a)], self.number[b]
                yield self.number[a], self.number[low_part(b)]
        yield (self.number[MatrixElement("C", self.traced.row, self.traced.column)],)

    def wanted(self, k: int) -> Elements:
        """Return the elements of A and B whose product is term ``k`` of the correct sum."""
        return factors_of_term(self.kernel, self.traced.row, self.traced.column, k)

    # Steps

    def line(self, step: int) -> int:
        """Return the line of a step."""
        return self.instruction(step).line

    def instruction(self, step: int) -> Instruction:
        return self.body[self.steps.at[step]]

    def written(self, elements: Elements) -> list[Change]:
        """Return the changed writes of the copy in which these elements are 1."""
        return self.steps.written.get(self.copy.get(elements, 0), [])

    def own_steps(self, elements: Elements) -> list[int]:
        """Return the steps in which the traced work-item itself writes a changed value."""
        return [change.step for change in self.written(elements) if change.item == self.item]

    def factors_read(self, elements: Elements) -> set[tuple[int, int]]:
        """Return the steps and work-items that multiply a value that depends on these elements."""
        changes = self.steps.read.get(self.copy.get(elements, 0), [])
        return {
            (step, item)
            for step, item, source in changes
            if source in FACTORS and self.instruction(step).op.name in MULTIPLY
        }

    def _products(self, elements: Elements) -> list[tuple[int, int]]:
        """Return the steps and work-items that multiply two elements.

        If some of these steps are on the path of the stored element, only those. Empty for a single
        element.
        """
        if len(elements) != 2:
            return []
        first, second = elements
        both = self.factors_read((first,)) & self.factors_read((second,))
        made = sorted({change[:2] for change in self.written(elements)} & both)
        on_path = [node for node in made if node[0] in self.path]
        own = [node for node in made if node[1] == self.item]
        return on_path or own or made

    def _scaling(self, elements: Elements) -> list[int]:
        """Return the steps on the path that scale these elements, or their product, by a number."""
        made = {step for step, _ in self.products(elements)}
        own = {step for step, item in self.factors_read(elements) if item == self.item}
        return sorted((own & self.path) - made)

    @cached_property
    def path(self) -> set[int]:
        """The steps whose results reach the stored number through the work-item's registers."""
        i = self.instruction(self.steps.store)
        word = self.traced.place.word
        stored = tuple(range(word, word + min(self.traced.words, 2)))
        read = [
            (n, source, tuple(p for p in positions if p in stored or i.op.double))
            for n, source, positions in uses(self.kernel.program, i)
            if not is_address(i, n)
        ]
        return self._source_steps(self.steps.store, keys(read), self.item, addresses=False)

    def _data_steps(self, step: int, item: int) -> set[int]:
        """Return a step and the steps whose results reach the data that a work-item reads in it.

        Of a multiplication, only its factors count.
        """
        i = self.instruction(step)
        data = [use for use in uses(self.kernel.program, i) if not is_address(i, use[0])]
        multiplies = i.op.name in MULTIPLY
        read = keys(use for use in data if use[0] in FACTORS or not multiplies)
        return self._source_steps(step, read, item, addresses=False) | {step}

    def _addresses(self, step: int, item: int) -> list[int]:
        """Return the lines that computed the address of a step, in order."""
        i = self.instruction(step)
        read = keys(use for use in uses(self.kernel.program, i) if is_address(i, use[0]))
        steps = self._source_steps(step, read, item, addresses=True)
        return sorted({self.line(earlier) for earlier in steps})

    def _source_steps(self, step: int, needed: set[Key], item: int, *, addresses: bool) -> set[int]:
        """Return the steps of a work-item from which register components get their values.

        Parameters
        ----------
        step
            The step before which the components are needed.
        needed
            The components.
        item
            The work-item.
        addresses
            Whether the addresses of reads count as sources, too.
        """
        program = self.kernel.program
        needed = set(needed)
        steps = set()
        for earlier in range(step - 1, -1, -1):
            i = self.instruction(earlier)
            if not i.dest or i.dest.register.kind != "r" or not self.steps.active[earlier][item]:
                continue
            made = {c for n, c in defines(i) if (n, c) in needed}
            if not made:
                continue
            steps.add(earlier)
            needed -= {(i.dest.register.index, c) for c in made}
            by_component = i.op.kind == "alu" and not (i.op.across or i.op.double)
            for n, source, positions in uses(program, i):
                if addresses or not is_address(i, n):
                    read = tuple(p for p in positions if p in made) if by_component else positions
                    needed |= keys([(n, source, read)])
        return steps


def factors_of_term(kernel: Kernel, row: int, column: int, k: int) -> Elements:
    """Return the elements of A and B whose product is term ``k`` of the correct C[row, column]."""
    a = (k, row) if kernel.trans_a else (row, k)
    b = (column, k) if kernel.trans_b else (k, column)
    return MatrixElement("A", *a), MatrixElement("B", *b)
