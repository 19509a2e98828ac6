"""Follow an element of C backward from its store: the products in its sum, and the steps that made
them.

How it works
------------
1. The kernel runs on matrices whose elements are all different. Each step of the work-item that
   stores the element is recorded: which words it reads and writes.
2. A word that is one of these numbers is that element, wherever it stands. A second run has other
   numbers. A word that is the same in both comes from no matrix: it is a number, such as
   alpha, or a rounding error, which is 0 here.
3. From the store, sums are followed backward through registers, down to the products of two
   elements. Addresses aren't followed.

Not covered (``UNKNOWN``): results that are no sums of products, such as a maximum, and sums that
pass through memory or the LDS.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cypresskit.il import Instruction, Source
from cypresskit.il.dataflow import Key, defines, is_address, keys, read_positions, uses
from cypresskit.il.program import LETTERS
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.products import Product
from cypresskit.machine import KernelError
from cypresskit.machine.launch import Launch
from cypresskit.machine.observer import Observer, StepEvent, WroteEvent

SUMS = {"add": 1.0, "dadd": 1.0, "sub": -1.0}  # of two sources, the second times this
PRODUCTS = {"mul", "mad", "fma", "dmul", "dmad", "dp4"}
#: The elements are whole, from here on and below twice this: a double's high word tells all.
LEAST = 1 << 19
LDS: Key = (-1, 0)  # stands for all of it among the components of registers


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
Node = tuple[int, int]  # a step, and a component of its result


@dataclass(frozen=True)
class Reading:
    """A factor of a term: an element that was read.

    Attributes
    ----------
    element
        The element.
    line, step
        The line that read it from memory or the LDS, and its step; 0 and -1 if none did.
    """

    element: MatrixElement
    line: int = 0
    step: int = -1

    def __str__(self) -> str:
        return f"{self.element}"


@dataclass(frozen=True)
class Addend:
    """A term of a sum: the product of ``factors`` and a number.

    ``made`` is the step that multiplied two factors, or took a single one; ``scaled`` has the steps
    that multiplied by a number, and ``crossed`` those that took the sum from another register.
    """

    factors: tuple[Reading, ...]
    times: float
    made: int = -1
    scaled: tuple[int, ...] = ()
    crossed: tuple[int, ...] = ()

    @property
    def elements(self) -> Elements:
        return tuple(factor.element for factor in self.factors)


class Way(NamedTuple):
    """What happens to a result on its way to the stored sum; the fields are those of `Addend`."""

    times: float = 1.0
    scaled: tuple[int, ...] = ()
    crossed: tuple[int, ...] = ()


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
    """Records the last store to ``place``: ``writer`` is (instruction, work-item); and the
    ``shape`` of the launch.
    """

    def __init__(self, place: StoredAt) -> None:
        self.place = place
        self.writer: tuple[int, int] | None = None

    def start(self, launch: Launch) -> None:
        self.shape = launch.shape

    def wrote(self, event: WroteEvent) -> None:
        items = self.place.writers(event)
        if len(items):
            self.writer = event.at, int(items[-1])


class RecordedStep(NamedTuple):
    """What an instruction did.

    Attributes
    ----------
    at
        The instruction.
    sources
        The words of each source, without modifiers, at its four positions; none for addresses.
    words
        What it wrote, by component.
    """

    at: int
    sources: dict[int, list[int]]
    words: dict[int, int]


class StepRecorder(Observer):
    """Records the steps of a work-item, and in ``writers`` those that write each component of a
    register; ``store`` is the last in which it stores ``place``.
    """

    def __init__(self, item: int, place: StoredAt | None = None) -> None:
        self.item, self.place = item, place
        self.store = -1
        self.steps: list[RecordedStep] = []
        self.writers: dict[Key, list[int]] = defaultdict(list)

    def start(self, launch: Launch) -> None:
        self.program = launch.program

    def step(self, event: StepEvent) -> None:
        if event.active[self.item]:
            i = event.instruction
            for key in (*defines(i), *[LDS] * i.op.store):
                self.writers[key].append(len(self.steps))
            sources = {
                n: self._words(event.rows(source, source.swizzle), 4, event.active)
                for n, source in enumerate(i.sources)
                if not is_address(i, n)
            }
            self.steps.append(RecordedStep(event.at, sources, {}))

    def wrote(self, event: WroteEvent) -> None:
        if self.place and self.item in self.place.writers(event):
            self.store = len(self.steps) - 1
        if event.active[self.item]:
            rows = event.rows.astype(np.uint32)
            words = self._words(rows, len(event.components), event.active)
            self.steps[-1].words.update(zip(event.components, words))

    def _words(self, rows: np.ndarray, count: int, active: np.ndarray) -> list[int]:
        """Return the work-item's words of an event."""
        return np.broadcast_to(rows, (count, len(active)))[:, self.item].tolist()

    def instruction(self, step: int) -> Instruction:
        return self.program.body[self.steps[step].at]

    def line(self, step: int) -> int:
        return self.instruction(step).line

    def last_writers(self, keys: Iterable[Key], step: int) -> set[int]:
        """Return the steps that wrote components of registers last before a step."""
        found = set()
        for key in keys:
            before = bisect_left(self.writers[key], step)
            found |= {*self.writers[key][:before][-1:]}
        return found

    def origins(self, steps: Iterable[int], values: bool = False) -> set[int]:
        """Return the steps whose results lead to the addresses at which ``steps`` read or store, or
        through the LDS to what they load; with ``values``, also to all else that they use.
        """
        found: set[int] = set()
        begun = {*steps}
        left = [*begun]
        while left:
            at = left.pop()
            i = self.instruction(at)
            is_whole = values or at not in begun
            used = keys(use for use in uses(self.program, i) if is_whole or is_address(i, use[0]))
            loaded = [LDS] * (i.op.kind == "lds" and not i.op.store)
            new = self.last_writers((*used, *loaded), at) - found
            found |= new
            left += new
        return found


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
    n: int
    position: int


class Slice:
    """The sum that is stored as an element of C, and the steps of the work-item that stored it.

    Attributes
    ----------
    store
        The step that stored the element.
    terms
        The terms of the stored sum, by their elements.
    number
        The part of the sum that is from no matrix.
    numbers
        The steps that wrote or added such a number, but 0.
    zeroed
        Operands that are multiplied by 0, each with that operand.
    opaque
        Operands of products that are no elements of a matrix, nor numbers times one.
    """

    def __init__(self, traced: TracedElement, item: int) -> None:
        self.traced = traced
        self.program = traced.kernel.program
        (first, self.elements), (second, _) = (numbered(traced.given, seed) for seed in (1, 2))
        runs = [StepRecorder(item, traced.place) for _ in range(2)]
        for given, run in zip((first, second), runs):
            # A failure is after the store: ``verify`` has reported any before it
            with suppress(KernelError):
                given.run(observers=[run])
        self.run, other = runs
        self.steps, self.other_steps = self.run.steps, other.steps
        self.store, self.writers = self.run.store, self.run.writers
        self.instruction, self.line = self.run.instruction, self.run.line
        self.number = 0.0
        self.numbers: list[int] = []
        self.zeroed: list[tuple[ReadWord, ReadWord]] = []
        self.opaque: list[ReadWord] = []
        self.terms: dict[Elements, tuple[Addend, ...]] = defaultdict(tuple)
        ran, also_ran = ([step.at for step in steps] for steps in (self.steps, self.other_steps))
        if ran == also_ran:
            self._follow((self.store, traced.place.word + (traced.words > 1)))
        else:  # branches depend on the elements
            self._add_term(OPAQUE)

    # Values

    def _words(self, at: ReadWord) -> tuple[int, int]:
        """Return what an operand reads, without its modifiers, in both runs."""
        one, other = (
            steps[at.step].sources[at.n][at.position] for steps in (self.steps, self.other_steps)
        )
        return one, other

    def element(self, at: ReadWord) -> MatrixElement:
        """Return the element that an operand reads, or ``NO_ELEMENT``."""
        return self.elements.get(self._words(at)[0], NO_ELEMENT)

    def _source(self, at: ReadWord) -> Source:
        return self.instruction(at.step).sources[at.n]

    def operands(self, step: int, c: int) -> list[ReadWord]:
        """Return the operands from which component ``c`` of a step's result is computed; of a dot
        product, those of its first position.
        """
        i = self.instruction(step)
        found = []
        for n in self.steps[step].sources:
            read = read_positions(self.program, i, n)
            wide = i.op.sources[n] == "d"
            position = 1 if wide else 0 if read == (0,) or i.op.across else c
            found.append(ReadWord(step, n, position))
        return found

    def key(self, at: ReadWord) -> Key | None:
        """Return the component of a register that an operand reads; None if it reads none."""
        source = self._source(at)
        letter = source.swizzle[at.position]
        if letter not in LETTERS or source.register.kind != "r":
            return None
        return source.register.index, LETTERS.index(letter)

    def name(self, at: ReadWord) -> str:
        """Return the name of what an operand reads, such as ``r5.x``."""
        source = self._source(at)
        return f"{source.register}.{source.swizzle[at.position]}"

    def writer(self, at: ReadWord) -> Node | None:
        """Return what wrote the word of a register that an operand reads; None if nothing did."""
        if not (key := self.key(at)):
            return None
        steps = self.writers[key]
        before = bisect_left(steps, at.step)
        return (steps[before - 1], key[1]) if before else None

    # The sum

    def _follow(self, node: Node) -> None:
        """Collect the terms of a result."""
        left: list[tuple[Node | None, Way]] = [(node, Way())]
        while left:
            found, way = left.pop()
            i = self.instruction(found[0]) if found else None
            if found is None or i is None or i.op.kind == "lds":
                self._add_term(OPAQUE)
                continue
            operands = self.operands(*found)
            halves = self.traced.words > 1 and "f" in i.op.sources
            computed = any(len({*self._words(at)}) > 1 for at in operands)
            if computed and halves:
                self._add_term(OPAQUE)
                continue
            if i.opcode in SUMS:
                left += self._summand(operands[0], way)
                left += self._summand(operands[1], way, SUMS[i.opcode])
            elif i.opcode in PRODUCTS:
                for p in range(max(i.op.across, 1)):
                    a, b = (at._replace(position=p) if i.op.across else at for at in operands[:2])
                    left += self._product(a, b, way)
                for at in operands[2:]:
                    left += self._summand(at, way)
            elif i.opcode == "mov":
                left += self._summand(operands[0], way)
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
            low = self.steps[at.step].sources[at.n][at.position - 1]
            value = float(np.array([low, first], np.uint32).view(np.float64)[0])
        return value * self._signed(at)

    def _summand(
        self, at: ReadWord, way: Way, times: float = 1.0
    ) -> Iterator[tuple[Node | None, Way]]:
        """Add ``times`` an operand to the sum if it is a number or an element; else yield what
        wrote it.
        """
        number, writer = self.number_at(at), self.writer(at)
        way = way._replace(times=way.times * times * self._signed(at))
        if number is not None:
            self.number += way.times * number * self._signed(at)
            self.numbers += [writer[0] if writer else at.step] * bool(number)
            if number or not writer or self.instruction(writer[0]).opcode not in {"mov", *PRODUCTS}:
                return
        if self.element(at) != NO_ELEMENT:
            self._add_term(Addend((self.read(at),), way.times, at.step, *way[1:]))
            return
        i = self.instruction(at.step)
        is_copy = i.opcode == "mov" and at.step == self.store
        if i.dest and i.dest.register != self._source(at).register and not is_copy:
            way = way._replace(crossed=(at.step, *way.crossed))
        yield writer, way

    def _product(self, a: ReadWord, b: ReadWord, way: Way) -> Iterator[tuple[Node | None, Way]]:
        """Add a product to the sum, or yield what it multiplies by a number."""
        first, second = self.number_at(a), self.number_at(b)
        if 0 in (first, second):
            self.zeroed.append((b, a) if first == 0 else (a, b))
            return
        if first is not None or second is not None:
            number, other = (first, b) if first is not None else (second, a)
            yield from self._summand(
                other, way._replace(scaled=(a.step, *way.scaled)), number or 0.0
            )
            return
        factors = []
        times, scaled = way.times, way.scaled
        for factor in (a, b):
            at, number, by = self._unscaled(factor)
            times, scaled = times * number * self._signed(at), (*by, *scaled)
            factors.append(self.read(at))
            if self.element(at) == NO_ELEMENT:
                self.opaque.append(factor)
                self._add_term(OPAQUE)
                return
        factors.sort(key=lambda read: read.element)
        self._add_term(Addend(tuple(factors), times, a.step, scaled, way.crossed))

    def _unscaled(self, at: ReadWord) -> tuple[ReadWord, float, tuple[int, ...]]:
        """Return an operand that is a number times an element as the operand that reads the
        element, the number, and the steps that multiply by it.
        """
        times, scaled = 1.0, tuple[int, ...]()
        while self.element(at) == NO_ELEMENT and (node := self.writer(at)):
            operands = self.operands(*node)
            others = [each for each in operands if self.number_at(each) is None]
            if self.instruction(node[0]).opcode not in ("mov", "mul", "dmul") or len(others) != 1:
                break
            for each in operands:
                times *= self.number_at(each) or 1.0
            times *= self._signed(at)
            scaled = (node[0], *scaled) if operands[1:] else scaled
            (at,) = others
        return at, times, scaled

    def _add_term(self, term: Addend) -> None:
        """Add a term to the sum. Terms that cancel are left out."""
        held = self.terms[term.elements]
        opposite = next((n for n, other in enumerate(held) if other.times == -term.times), -1)
        self.terms[term.elements] = (
            (*held, term) if opposite < 0 else held[:opposite] + held[opposite + 1 :]
        )

    # Where elements are

    def read(self, at: ReadWord) -> Reading:
        """Return where the element of an operand was read."""
        element, step = self.element(at), at.step
        while node := self.writer(at):
            step = node[0]
            moved = [each for each in self.operands(*node) if self.element(each) == element]
            if not moved or self.instruction(step).op.kind in ("fetch", "lds"):
                break
            (at, *_) = moved
        return Reading(element, self.line(step), step)

    @cached_property
    def reads(self) -> dict[MatrixElement, list[int]]:
        """The steps that read each element, from a texture, ``g[]`` or the LDS."""
        found: dict[MatrixElement, list[int]] = defaultdict(list)
        for step, record in enumerate(self.steps):
            i = self.instruction(step)
            words = [*record.words.values()] if i.op.kind in ("fetch", "lds") else []
            for n, source in record.sources.items():
                words += source if i.sources[n].register.kind == "g" else []
            for element in map(self.elements.get, words):
                if element:
                    found[element].append(step)
        return found

    def holds(self, element: MatrixElement, step: int) -> bool:
        """Return whether an element is in a register before a step."""
        words = (
            self.steps[steps[before - 1]].words.get(c, 0)
            for (_, c), steps in self.writers.items()
            if (before := bisect_left(steps, step))
        )
        return element in map(self.elements.get, words)

    @cached_property
    def leads(self) -> frozenset[int]:
        """The lines that lead to the stored number, with the tests of loops and branches, and all
        that is stored in the LDS.
        """
        ops = [self.instruction(step).op for step in range(len(self.steps))]
        begun = [self.store, *(n for n, op in enumerate(ops) if op.flow or op.kind == "lds")]
        ran = {*map(self.line, range(len(self.steps)))}
        others = {i.line for i in self.program.body} - ran if self.program.lds else set()
        return frozenset(map(self.line, {*begun, *self.run.origins(begun, values=True)})) | others

    @cached_property
    def products(self) -> dict[Elements, list[tuple[int, int, int]]]:
        """The steps in which the work-item multiplied elements, or one by a number: step, register,
        component.
        """
        found: dict[Elements, list[tuple[int, int, int]]] = defaultdict(list)
        for step in range(len(self.steps)):
            i = self.instruction(step)
            if i.opcode not in PRODUCTS or i.op.across:
                continue
            for register, c in defines(i):
                factors = self.operands(step, c)[:2]
                elements = [self.element(at) for at in factors if self.number_at(at) is None]
                if NO_ELEMENT not in elements:
                    found[tuple(sorted(elements))].append((step, register, c))
        return found
