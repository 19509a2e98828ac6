"""Find where an element of C comes from, by replaying its work-item on other numbers.

What a kernel computes is a form in the elements of A, B and C; neither addresses nor branches
depend on them. A matrix with a single 1 in it shows what happens to that element: all runs take the
same steps, and a step that writes something else in one of them is on the element's path. A single
2 tells an element's square from the element. The elements that matter are found by bisection. The
copies of a work-item run at once.

Not covered: products of more than two elements.
"""

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

AT_ONCE = 1 << 16  # most work-items of all copies per launch
PARTS = 4  # of a split in the bisection
NOBODY = np.zeros(0, int)
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
NOTHING = MatrixElement("", 0, 0)  # stands for padding and plain numbers


def low(element: MatrixElement) -> MatrixElement:
    """Return the low part of a double-double element: its matrix has a small letter."""
    return element._replace(matrix=element.matrix.lower())


class StoredAt(NamedTuple):
    """Where an element of C is stored.

    Attributes
    ----------
    number, word
        First component ``word`` of element ``number`` of ``g[]``, or of the texel of work-item
        ``number``.
    stream
        The output stream; None for ``g[]``.
    """

    number: int
    word: int
    stream: int | None

    def writers(self, event: WroteEvent) -> np.ndarray:
        """Return the work-items that write the place in an event."""
        if self.word not in event.components:
            return NOBODY
        if event.register.kind == "g" and self.stream is None:
            return np.flatnonzero(event.active & (event.element == self.number))
        if event.register.kind == "o" and event.register.index == self.stream:
            return np.array([self.number]) if event.active[self.number] else NOBODY
        return NOBODY


class Change(NamedTuple):
    """A step that wrote or read something else in a copy than in the first, and the work-item.

    ``what`` has a bit for each component that was written, or is the number of the source.
    """

    step: int
    item: int
    what: int


class OutsideFetch(NamedTuple):
    """A work-item's fetch beyond the edge of texture ``resource``, at texel (x, y)."""

    step: int
    item: int
    resource: int
    x: int
    y: int


class Stores(Observer):
    """Records which work-item stored ``place`` last: ``writer`` is (instruction, work-item)."""

    def __init__(self, place: StoredAt) -> None:
        self.place = place
        self.writer: tuple[int, int] | None = None

    def wrote(self, event: WroteEvent) -> None:
        items = self.place.writers(event)
        if len(items):
            self.writer = event.at, int(items[-1])


class Steps(Observer):
    """Records what the copies of a group of ``items`` wrote and read that differs from the first
    copy, and the last step, ``store``, in which ``item`` stored a ``place``.
    """

    def __init__(self, items: int, item: int, place: StoredAt) -> None:
        self.items, self.item = items, item
        self.place = place._replace(number=item) if place.stream is not None else place
        self.store = -1
        self.at: list[int] = []
        self.active: list[np.ndarray] = []
        self.outside: list[OutsideFetch] = []
        self.writes: list[np.ndarray] = []
        self.reads: list[np.ndarray] = []

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
            self.reads += [self._rows(any_changed, n)]
            if i.op.kind == "lds":  # what it passes on is what it writes
                self.writes += [self._rows(any_changed, 0)]

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
        self.writes += [self._rows(bits, None)]

    def fetch(self, event: FetchEvent) -> None:
        beyond = np.flatnonzero(self.active[-1] & ~event.inside[: self.items])
        for item in beyond.tolist():
            place = int(event.x[item]), int(event.y[item])
            self.outside.append(OutsideFetch(len(self.at) - 1, item, event.resource, *place))

    def _changed(self, rows: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Return which work-items of which copies have another row than the first copy's."""
        if rows.shape[1] == 1:
            return np.zeros((len(rows), 1, self.items), bool)
        apart = rows.reshape(len(rows), -1, self.items)
        changed: np.ndarray = (apart != apart[:, :1]) & active.reshape(-1, self.items)
        return changed

    def _rows(self, changed: np.ndarray, what: int | None) -> np.ndarray:
        """Return step, copy, work-item and what of each change."""
        copy, item = np.nonzero(changed)
        whats = changed[copy, item] if what is None else np.full(len(copy), what)
        return np.stack([np.full(len(copy), len(self.at) - 1), copy, item, whats], axis=1)

    @cached_property
    def written(self) -> dict[int, list[Change]]:
        """Return the changes that each copy wrote."""
        return _by_copy(self.writes)

    @cached_property
    def read(self) -> dict[int, list[Change]]:
        """Return the changes that each copy read as data."""
        return _by_copy(self.reads)


def _by_copy(rows: list[np.ndarray]) -> dict[int, list[Change]]:
    by_copy: dict[int, list[Change]] = {}
    for step, copy, item, what in np.concatenate([np.zeros((0, 4), int), *rows]).tolist():
        by_copy.setdefault(copy, []).append(Change(step, item, what))
    return by_copy


@dataclass(frozen=True, eq=False)
class TracedElement:
    """A small product that a kernel computes, and the element of C to trace."""

    given: Product
    row: int
    column: int

    @property
    def kernel(self) -> Kernel:
        return self.given.kernel

    @cached_property
    def padded(self) -> tuple[int, int, int]:
        return self.kernel.convention.padded(*self.given.size)

    @cached_property
    def words(self) -> int:
        """Words per number of C. Double-doubles are identified by their high parts."""
        return BYTES[self.kernel.precision] // 4

    @cached_property
    def place(self) -> StoredAt:
        """Where the element of C is stored."""
        kernel = self.kernel
        _, n, _ = self.padded
        if not kernel.convention.streams:
            return StoredAt(*divmod((self.row * n + self.column) * self.words, 4), None)
        rows, columns = kernel.block
        stripes = kernel.convention.streams // rows
        stripe, within = divmod(self.column % columns, columns // stripes)
        item = self.row // rows * (n // columns) + self.column // columns
        return StoredAt(item, within * self.words, self.row % rows * stripes + stripe)


class Probes:
    """The terms of one element of C, and the steps on their paths."""

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

    # Numbers in the matrices

    def _number_elements(self) -> None:
        """Number the elements of A, B and C, and find each in textures and ``g[]``."""
        given, kernel = self.given, self.kernel
        pairs = kernel.precision == "double-double"
        self.elements = [NOTHING]
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
        """Return the element of C in copies, one per row of ``table``: a number for each element,
        after a 0.
        """
        table = table.astype(self.kernel.dtype)
        textures = {n: table[:, numbers] for n, numbers in self.layout.items()}
        memory = table[:, self.memory]
        launch = make_replicas(self.whole, self.first, textures, memory, self.given.longest)
        try:
            interpreter.run(launch, observers)
        except KernelError:
            pass  # after the element was stored, since an earlier failure would have been reported
        number, word, stream = self.traced.place
        words = min(self.traced.words, 2)
        if stream is None:
            stored = launch.memory.reshape(len(table), -1, 4)[:, number, word : word + words]
        else:
            stored = launch.outputs[stream].words[:, 0, word : word + words]
        values: np.ndarray = np.ascontiguousarray(stored).view(self.kernel.dtype)[:, 0]
        return values.astype(np.float64)

    def _values(self, table: np.ndarray) -> np.ndarray:
        """Return the element of C for each row of numbers, as many at once as memory holds."""
        size = max(1, AT_ONCE // self.members)
        parts = [table[n : n + size] for n in range(0, len(table), size)]
        return np.concatenate([np.zeros(0), *map(self._launched, parts)])

    def _numbers(self, *elements: int, value: float = 1.0) -> np.ndarray:
        """Return numbers that are ``value`` for these elements, and 0 for all others."""
        row = np.zeros(len(self.elements))
        row[list(elements)] = value
        return row

    # Terms

    def _that_matter(self, fixed: np.ndarray, candidates: list[np.ndarray]) -> list[list[int]]:
        """Return, for each row of ``fixed`` numbers, those of its candidates that change the result
        if they are other numbers. Candidates that do so together are split and tried again.
        """
        plain = self._values(fixed)
        mattering: list[list[int]] = [[] for _ in candidates]
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
                mattering[n] += elements.tolist() if len(elements) == 1 else []
            untried = [
                (n, part)
                for n, elements in effective
                if len(elements) > 1
                for part in np.array_split(elements, min(PARTS, len(elements)))
            ]
        return mattering

    def _terms(self) -> dict[Elements, float]:
        """Return the terms of the element, each with its multiplicity, and the sum's ``plain``
        rest; then the steps of the copies that show them.
        """
        matrices = [self.of[letter] for letter in "ABC"]  # apart: alpha and beta may have two signs
        every = np.concatenate(matrices)
        full = np.zeros(len(self.elements))
        full[every] = self.rng.integers(1, 8, len(every))
        found = self._that_matter(np.stack([full] * 3), matrices)
        alone = [n for numbers in found for n in numbers]
        tries = [(n, matrix[matrix > n]) for n in alone for matrix in matrices]
        tries = [(n, later) for n, later in tries if len(later)]
        ones = np.array([self._numbers(n) for n, _ in tries])
        partners = self._that_matter(ones, [later for _, later in tries]) if tries else []
        pairs = [(n, m) for (n, _), numbers in zip(tries, partners, strict=True) for m in numbers]
        tried = dict.fromkeys([(), *((n,) for n in alone), *pairs, *self._wanted_numbers()])
        tried |= dict.fromkeys((n,) for numbers in list(tried) for n in numbers)
        rows = [self._numbers(*numbers) for numbers in tried]
        twos = [self._numbers(n, value=2) for n in alone]
        self.steps = Steps(self.members, self.item, self.traced.place)
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
        """Yield the numbers of the elements of each correct term, and of their low parts."""
        for k in range(self.given.size[2]):
            a, b = self.wanted(k)
            yield self.number[a], self.number[b]
            if low(a) in self.number:
                yield self.number[low(a)], self.number[b]
                yield self.number[a], self.number[low(b)]
        yield (self.number[MatrixElement("C", self.traced.row, self.traced.column)],)

    def wanted(self, k: int) -> Elements:
        """Return the elements of A and B whose product is term ``k`` of the correct sum."""
        return product_of(self.kernel, self.traced.row, self.traced.column, k)

    # Steps

    def line(self, step: int) -> int:
        """Return the kernel's line that ran at a step."""
        return self.instruction(step).line

    def instruction(self, step: int) -> Instruction:
        return self.body[self.steps.at[step]]

    def written(self, elements: Elements) -> list[Change]:
        """Return what is written differently where these elements are 1."""
        return self.steps.written.get(self.copy.get(elements, 0), [])

    def own_steps(self, elements: Elements) -> list[int]:
        """Return the steps in which the work-item itself writes something else."""
        return [change.step for change in self.written(elements) if change.item == self.item]

    def factors_read(self, elements: Elements) -> set[tuple[int, int]]:
        """Return the steps and work-items that multiply a value that has these elements in it."""
        changes = self.steps.read.get(self.copy.get(elements, 0), [])
        return {
            (step, item)
            for step, item, source in changes
            if source in FACTORS and self.instruction(step).op.name in MULTIPLY
        }

    def _products(self, elements: Elements) -> list[tuple[int, int]]:
        """Return the steps and work-items that multiply two elements; those on the element's path,
        if there are any.
        """
        first, second = elements
        both = self.factors_read((first,)) & self.factors_read((second,))
        made = sorted({change[:2] for change in self.written(elements)} & both)
        on_way = [node for node in made if node[0] in self.way]
        own = [node for node in made if node[1] == self.item]
        return on_way or own or made

    def _scaling(self, elements: Elements) -> list[int]:
        """Return the steps on the path that multiply what these elements made by a plain number."""
        made = {step for step, _ in self.products(elements)} if len(elements) == 2 else set()
        own = {step for step, item in self.factors_read(elements) if item == self.item}
        return sorted((own & self.way) - made)

    @cached_property
    def way(self) -> set[int]:
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
        """Return the steps whose results reach what a work-item reads as data at a step, and that
        step; of a multiplication, as one of its factors.
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
        """Return the steps of a work-item that made these components of registers before a step,
        and what they were made from; with ``addresses``, also the addresses that were read.
        """
        program = self.kernel.program
        needed = set(needed)
        steps = set()
        for earlier in range(step - 1, -1, -1):
            i = self.instruction(earlier)
            if not i.dest or i.dest.register.kind != "r" or not self.steps.active[earlier][item]:
                continue
            made = {c for c in defines(i) if (i.dest.register.index, c) in needed}
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


def product_of(kernel: Kernel, row: int, column: int, k: int) -> Elements:
    """Return the elements of A and B whose product is term ``k`` of the correct C[row, column]."""
    a = (k, row) if kernel.trans_a else (row, k)
    b = (column, k) if kernel.trans_b else (k, column)
    return MatrixElement("A", *a), MatrixElement("B", *b)
