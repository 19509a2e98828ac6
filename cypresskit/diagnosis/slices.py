"""Follow an element of C backward from its store: the products in its sum, and the steps that made
them.

How it works
------------
1. The work-item that stores the element runs with its workgroup, on matrices whose elements are all
   different. Each step is recorded: what is active, which words it reads and writes.
2. A word that is one of these numbers is that element, wherever it stands. A second run has other
   numbers. A word that is the same in both comes from no matrix: it is a number, such as
   alpha, or a rounding error, which is 0 here.
3. From the store, sums are followed backward, through registers, LDS and global memory, down to the
   products of two elements. Addresses aren't followed.

Not covered: results that are no sums of products, such as a maximum (``UNKNOWN``).
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
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
from cypresskit.machine.group_launch import launch_of_group
from cypresskit.machine.observer import MemoryEvent, Observer, StepEvent, WroteEvent

SUMS = {"add": 1.0, "dadd": 1.0, "sub": -1.0}  # of two sources, the second times this
PRODUCTS = {"mul", "mad", "fma", "dmul", "dmad", "dp2", "dp3", "dp4"}
COPIES = {"mov", "dmov", "cmov_logical", "d2f", "f2d"}
#: The elements are whole, from here on and below twice this: a double's high word tells all.
LEAST = 1 << 19


class MatrixElement(NamedTuple):
    """An element of A, B or C as stored; ``matrix`` is its letter."""

    matrix: str
    row: int
    column: int

    def __str__(self) -> str:
        return f"{self.matrix}[{self.row}, {self.column}]"


Elements = tuple[MatrixElement, ...]
NO_ELEMENT = MatrixElement("", 0, 0)  # stands for what is no element of a matrix
UNKNOWN = MatrixElement("?", 0, 0)
Node = tuple[int, int, int]  # a step, a work-item, and a component of the result


@dataclass(frozen=True)
class Reading:
    """A factor of a term: an element that was read.

    Attributes
    ----------
    element
        The element.
    line, step
        The line that read it, and its step; 0 and -1 if none did.
    path
        The lines that then moved it (``mov``, stores to and loads from the LDS).
    """

    element: MatrixElement
    line: int = 0
    step: int = -1
    path: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.element}"


@dataclass(frozen=True)
class Addend:
    """A term of a sum: the product of ``factors`` and a number.

    ``made`` is the step that multiplied two factors, or took a single one; ``scaled`` has the steps
    that multiplied by a number.
    """

    factors: tuple[Reading, ...]
    times: float
    made: int = -1
    scaled: tuple[int, ...] = ()

    @property
    def elements(self) -> Elements:
        return tuple(factor.element for factor in self.factors)


OPAQUE = Addend((Reading(UNKNOWN),), 1.0)


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
    """What an instruction did, for all work-items of the group.

    Attributes
    ----------
    at, active
        The instruction, and the work-items that ran it.
    sources
        The words of each source, without modifiers, at its four positions; none for addresses.
    words
        What it wrote, by component.
    place
        The memory that it accesses, -1 for ``g[]``; and the first word, by work-item.
    """

    at: int
    active: np.ndarray
    sources: dict[int, np.ndarray] = field(default_factory=dict)
    words: dict[int, np.ndarray] = field(default_factory=dict)
    place: tuple[int, np.ndarray] | None = None


class StepRecorder(Observer):
    """Records the steps of a run; ``store`` is the last in which ``item`` stores ``place``."""

    def __init__(self, item: int, place: StoredAt) -> None:
        self.item = item
        self.place = place._replace(number=item) if place.stream is not None else place
        self.store = -1
        self.steps: list[RecordedStep] = []

    def step(self, event: StepEvent) -> None:
        step = RecordedStep(event.at, event.active.copy())
        self.steps.append(step)
        i = event.instruction
        for n, source in enumerate(i.sources):
            if not is_address(i, n):
                rows = event.rows(source, source.swizzle)
                step.sources[n] = np.broadcast_to(rows, (4, len(event.active))).copy()

    def wrote(self, event: WroteEvent) -> None:
        if self.item in self.place.writers(event):
            self.store = len(self.steps) - 1
        shape = len(event.components), len(event.active)
        rows = np.broadcast_to(event.rows, shape).astype(np.uint32)
        self.steps[-1].words = dict(zip(event.components, rows))

    def memory(self, event: MemoryEvent) -> None:
        lds = event.space == "lds"
        first = event.element >> 2 if lds else 4 * event.element
        words = np.broadcast_to(first, event.active.shape).copy()
        self.steps[-1].place = event.array if lds else -1, words


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


def correct_products(kernel: Kernel, row: int, column: int, k: int) -> list[Elements]:
    """Return the elements whose products are the ``k`` terms of the correct C[row, column]."""
    return [
        (
            MatrixElement("A", *((at, row) if kernel.trans_a else (row, at))),
            MatrixElement("B", *((column, at) if kernel.trans_b else (at, column))),
        )
        for at in range(k)
    ]


def numbered(given: Product, seed: int) -> tuple[Product, dict[int, MatrixElement]]:
    """Return a product whose elements are all different, and the element of each word: of a double,
    of its high word.
    """
    kind = np.dtype(np.float32 if given.kernel.precision == "single" else np.float64)
    matrices = {"A": given.a, "B": given.b, "C": given.c}
    count = sum(matrix.size for matrix in matrices.values())
    numbers = np.random.default_rng(seed).choice(LEAST, count, replace=False) + float(LEAST)
    elements: dict[int, MatrixElement] = {}
    made = []
    for letter, matrix in matrices.items():
        own, numbers = np.split(numbers, [matrix.size])
        rows, columns = np.divmod(np.arange(matrix.size), matrix.shape[-1])
        places = map(MatrixElement, [letter] * len(own), rows.tolist(), columns.tolist())
        words = own.astype(kind).view(np.uint32).reshape(len(own), -1)[:, -1]
        elements |= zip(words.tolist(), places)
        made.append(own.reshape(matrix.shape))
    a, b, c = made
    return replace(given, a=a, b=b, c=c), elements


class ReadWord(NamedTuple):
    """A source of a step, by its number, at one position: of a double, that of the high word."""

    step: int
    item: int
    n: int
    position: int


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
    number
        The part of the sum that is from no matrix.
    singles
        Lines that compute with halves of doubles as if they were floats, with their opcodes.
    """

    def __init__(self, traced: TracedElement, item: int) -> None:
        self.traced = traced
        self.program = traced.kernel.program
        given = traced.given
        count = len(given.a) if traced.kernel.convention.packed else 1
        self.whole = traced.kernel.shape(*given.size, given.alpha, given.beta, count)
        self.item = item % self.whole.group_items
        (first, self.elements), (second, _) = (numbered(given, seed) for seed in (1, 2))
        runs = [self._run(product, item) for product in (first, second)]
        self.steps, self.other_steps = (run.steps for run in runs)
        self.store = runs[0].store
        self.writers: dict[Key, list[int]] = defaultdict(list)
        self.stores: dict[tuple[int, int], list[Node]] = defaultdict(list)
        for step in range(self.store + 1):
            self._index(step)
        self.singles: list[tuple[int, str]] = []
        self.number = 0.0
        self.terms: dict[Elements, tuple[Addend, ...]] = defaultdict(tuple)
        ran, also_ran = ([(s.at, s.active.tobytes()) for s in run.steps] for run in runs)
        if ran == also_ran:
            self._follow((self.store, self.item, traced.place.word + (traced.words > 1)))
        else:  # branches depend on the elements
            self._add_term(OPAQUE)

    def _run(self, product: Product, item: int) -> StepRecorder:
        """Run the work-item with its group, on a product of its launch's shape."""
        recorder = StepRecorder(self.item, self.traced.place)
        arrays = product.arguments()
        memory = arrays.get("global_memory", np.zeros(4, np.float32))
        launch = launch_of_group(
            self.whole, item, arrays["inputs"], memory, product.max_instructions
        )
        # A failure is after the store: ``verify`` has reported any before it
        with suppress(KernelError):
            interpreter.run(launch, (recorder,))
        return recorder

    def instruction(self, step: int) -> Instruction:
        return self.program.body[self.steps[step].at]

    def line(self, step: int) -> int:
        return self.instruction(step).line

    def _index(self, step: int) -> None:
        """Note the register components and the words of memory that a step writes."""
        i = self.instruction(step)
        record = self.steps[step]
        for key in defines(i):
            self.writers[key].append(step)
        if record.place and (i.op.store or (i.dest and i.dest.register.kind == "g")):
            memory, first = record.place
            for item in np.flatnonzero(record.active).tolist():
                for c in i.dest.written if i.dest else (0,):
                    self.stores[memory, int(first[item]) + c].append((step, item, c))

    # Values

    def _words(self, at: ReadWord) -> tuple[int, int]:
        """Return what an operand reads, without its modifiers, in both runs."""
        one, other = (
            int(steps[at.step].sources[at.n][at.position, at.item])
            for steps in (self.steps, self.other_steps)
        )
        return one, other

    def element(self, at: ReadWord) -> MatrixElement:
        """Return the element that an operand reads, or ``NO_ELEMENT``."""
        return self.elements.get(self._words(at)[0], NO_ELEMENT)

    def _source(self, at: ReadWord) -> Source:
        return self.instruction(at.step).sources[at.n]

    def operands(self, step: int, item: int, c: int) -> list[ReadWord]:
        """Return the operands from which component ``c`` of a step's result is computed; of a dot
        product, those of its first position.
        """
        i = self.instruction(step)
        found = []
        for n in self.steps[step].sources:
            read = read_positions(self.program, i, n)
            wide = i.op.sources[n] == "d"
            scalar = i.op.store and i.op.words == 1
            position = 1 if wide else 0 if scalar or read == (0,) or i.op.across else c
            found.append(ReadWord(step, item, n, position))
        return found

    def _writer(self, at: ReadWord) -> Node | None:
        """Return what wrote the word that an operand reads; None for an input."""
        source = self._source(at)
        letter = source.swizzle[at.position]
        if letter not in LETTERS:
            return None
        c = LETTERS.index(letter)
        if source.register.kind == "g":
            return self._stored(at.step, at.item, c)
        if source.register.kind != "r":
            return None
        steps = self.writers[source.register.index, c]
        for step in reversed(steps[: bisect_left(steps, at.step)]):
            if self.steps[step].active[at.item]:
                return step, at.item, c
        return None

    def _stored(self, step: int, item: int, c: int) -> Node | None:
        """Return what stored word ``c`` of those that a step loads; None for an input."""
        place = self.steps[step].place
        stored = self.stores[place[0], int(place[1][item]) + c] if place else []
        return next((node for node in reversed(stored) if node[0] < step), None)

    def _loaded(self, node: Node) -> Node | None:
        """Return what stored the word that an LDS load gives as this component of its result."""
        step, item, c = node
        return self._stored(step, item, c if self.instruction(step).op.words > 1 else 0)

    # The sum

    def _follow(self, node: Node) -> None:
        """Collect the terms of a result."""
        left: list[tuple[Node | None, float, tuple[int, ...]]] = [(node, 1.0, ())]
        while left:
            found, times, scaled = left.pop()
            if found is None:
                continue
            i = self.instruction(found[0])
            if i.op.kind == "lds" and not i.op.store:
                left.append((self._loaded(found), times, scaled))
                continue
            operands = self.operands(*found)
            halves = self.traced.words > 1 and "f" in i.op.sources and i.opcode != "f2d"
            computed = [at for at in operands if len({*self._words(at)}) > 1]
            if computed and halves:
                self.singles.append((i.line, i.op.name))
                self._add_term(OPAQUE)
                continue
            if i.opcode in SUMS:
                left += self._summand(operands[0], times, scaled)
                left += self._summand(operands[1], times * SUMS[i.opcode], scaled)
            elif i.opcode in PRODUCTS:
                for p in range(max(i.op.across, 1)):
                    a, b = (at._replace(position=p) if i.op.across else at for at in operands[:2])
                    left += self._product(a, b, times, scaled)
                for at in operands[2:]:
                    left += self._summand(at, times, scaled)
            elif i.opcode in COPIES or i.op.store:
                chosen = operands[-1:] if i.op.store else operands[:1]
                if i.opcode == "cmov_logical":
                    taken = self.steps[found[0]].sources[0][found[2], found[1]] != 0
                    chosen = [operands[1 if taken else 2]]
                left += self._summand(chosen[0], times, scaled)
            elif computed:
                self._add_term(OPAQUE)
        self.terms = {elements: kept[::-1] for elements, kept in self.terms.items() if kept}

    def _signed(self, at: ReadWord) -> float:
        """Return 1, or -1 for an operand that is negated."""
        return -1.0 if self._source(at).negated else 1.0

    def number_at(self, at: ReadWord) -> float | None:
        """Return the number that an operand reads if it is from no matrix, else None."""
        first, second = self._words(at)
        if first != second:
            return None
        value = float(np.uint32(first).view(np.float32))
        letter = self.instruction(at.step).op.sources[at.n]
        if letter == "d" or (letter == "b" and self.traced.words > 1):
            low = int(self.steps[at.step].sources[at.n][at.position - 1][at.item])
            value = float(np.array([low, first], np.uint32).view(np.float64)[0])
        return value * self._signed(at)

    def _summand(
        self, at: ReadWord, times: float, scaled: tuple[int, ...]
    ) -> Iterator[tuple[Node | None, float, tuple[int, ...]]]:
        """Add an operand to the sum if it is a number or an element; else yield what wrote it."""
        number = self.number_at(at)
        if number is not None:
            self.number += times * number
            return
        sign = self._signed(at)
        if self.element(at) != NO_ELEMENT:
            self._add_term(Addend((self._read(at),), sign * times, at.step, scaled))
        else:
            yield self._writer(at), sign * times, scaled

    def _product(
        self, a: ReadWord, b: ReadWord, times: float, scaled: tuple[int, ...]
    ) -> Iterator[tuple[Node | None, float, tuple[int, ...]]]:
        """Add a product to the sum, or yield what it multiplies by a number."""
        first, second = self.number_at(a), self.number_at(b)
        if 0 in (first, second):
            return
        if first is not None or second is not None:
            number, other = (first, b) if first is not None else (second, a)
            yield from self._summand(other, times * (number or 0.0), (a.step, *scaled))
        elif NO_ELEMENT in (self.element(a), self.element(b)):
            self._add_term(OPAQUE)
        else:
            sign = self._signed(a) * self._signed(b)
            reads = sorted(map(self._read, (a, b)), key=lambda read: read.element)
            self._add_term(Addend(tuple(reads), sign * times, a.step, scaled))

    def _add_term(self, term: Addend) -> None:
        """Add a term to the sum. Terms that cancel are left out."""
        held = self.terms[term.elements]
        opposite = next((n for n, other in enumerate(held) if other.times == -term.times), -1)
        self.terms[term.elements] = (
            (*held, term) if opposite < 0 else held[:opposite] + held[opposite + 1 :]
        )

    # Where elements are

    def _read(self, at: ReadWord) -> Reading:
        """Return where the element of an operand was read, and the lines that moved it."""
        element = self.element(at)
        path: list[int] = []
        node = self._writer(at)
        while node is not None:
            step, item, c = node
            i = self.instruction(step)
            if i.op.kind == "fetch":
                return self._reading(element, step, path)
            path.append(step)
            if i.op.kind == "lds" and not i.op.store:
                node = self._loaded(node)
                continue
            at = next(
                (at for at in self.operands(step, item, c) if self.element(at) == element), at
            )
            node = self._writer(at) if at.step == step else None
        return self._reading(element, at.step, path)

    def _reading(self, element: MatrixElement, step: int, path: list[int]) -> Reading:
        """Return an element that was read at a step; ``path`` has the steps from its use back."""
        line = self.line(step)
        moved = [at for at in dict.fromkeys(map(self.line, reversed(path))) if at != line]
        return Reading(element, line, step, tuple(moved))

    @cached_property
    def reads(self) -> dict[MatrixElement, list[tuple[int, int]]]:
        """The steps and work-items that read each element, from a texture or ``g[]``."""
        found: dict[MatrixElement, list[tuple[int, int]]] = defaultdict(list)
        for step, record in enumerate(self.steps):
            i = self.instruction(step)
            rows = [*record.words.values()] if i.op.kind == "fetch" else []
            rows += [
                row
                for n, rows_ in record.sources.items()
                if i.sources[n].register.kind == "g"
                for row in rows_
            ]
            for row in rows:
                for item in np.flatnonzero(record.active).tolist():
                    element = self.elements.get(int(row[item]))
                    if element:
                        found[element].append((step, item))
        return found

    def is_multiplied_elsewhere(self, term: Addend) -> bool:
        """Return whether another line, too, multiplies the registers of a term: for another element
        of C.
        """
        own = self.instruction(term.made)
        lines = {i.line for i in self.program.body if i.sources[:2] == own.sources[:2]}
        return len(term.factors) > 1 and len(lines) > 1

    @cached_property
    def products(self) -> dict[Elements, list[tuple[int, int, int]]]:
        """The steps in which the work-item multiplied two elements: step, register, component."""
        found: dict[Elements, list[tuple[int, int, int]]] = defaultdict(list)
        for step, record in enumerate(self.steps):
            i = self.instruction(step)
            if i.opcode not in PRODUCTS or i.op.across or not record.active[self.item]:
                continue
            for register, c in defines(i):
                pair = sorted(map(self.element, self.operands(step, self.item, c)[:2]))
                if NO_ELEMENT not in pair:
                    found[tuple(pair)].append((step, register, c))
        return found
