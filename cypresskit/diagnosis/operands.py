"""Which element of a matrix each operand of a work-item's steps holds, and where it was read.

The kernel runs on matrices whose elements are all different, so a word that is one of these numbers
is that element, wherever it stands. A second run has other numbers. A word that is the same in both
comes from no matrix: it is a number, such as alpha, or a rounding error, which is 0 here.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cypresskit.diagnosis.elements import (
    NO_ELEMENT,
    Elements,
    MatrixElement,
    TracedElement,
    number_elements,
)
from cypresskit.diagnosis.recorded import LdsStore, StepRecorder
from cypresskit.il import Instruction, Source
from cypresskit.il.dataflow import Key, defines, read_positions
from cypresskit.il.program import LETTERS

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


class ReadWord(NamedTuple):
    """What a step reads to compute a component of its result.

    Attributes
    ----------
    step, n
        The step, and the number of the source.
    position
        The position of the word in the source: of a double, that of its high word.
    result
        The component of the result.
    """

    step: int
    n: int
    position: int
    result: int


class TracedRun:
    """What the work-item did that stored an element of C, on two products of different numbers.

    Attributes
    ----------
    store
        The step that stored the element; -1 if none did.
    traced, program
        The element, and the program.
    elements
        The element of each word, in the first product.
    recorded, steps
        What the work-item did in the first product, and what each step read and wrote.
    other_steps
        The steps in the second product.
    is_data_dependent
        Whether with other elements other steps run, or C is stored elsewhere.
    """

    def __init__(self, traced: TracedElement, item: int) -> None:
        self.traced = traced
        self.program = traced.kernel.program
        (first, self.elements), (second, _) = (
            number_elements(traced.product, is_turned) for is_turned in (False, True)
        )
        runs = [StepRecorder(item, traced.place) for _ in range(2)]
        for product, run in zip((first, second), runs):
            product.run(observers=[run])
        self.recorded = runs[0]
        self.steps, self.other_steps = (run.steps for run in runs)
        self.store = self.recorded.store
        one, other = ([step.at for step in steps] for steps in (self.steps, self.other_steps))
        self.is_data_dependent = one != other or self.store < 0

    def instruction(self, step: int) -> Instruction:
        return self.program.body[self.steps[step].at]

    def line(self, step: int) -> int:
        """Return the line of a step; in a macro, that of the call."""
        return self.instruction(step).written_line

    @property
    def stored_node(self) -> Node:
        """The store, and the component that it stores: of a double, its high word."""
        word = self.traced.place.word
        return self.store, word if self.traced.number_words == 1 else word + 1

    def name(self, key: Key) -> str:
        """Return the name of a component of a register as it is written, such as ``r5.x``."""
        return self.program.as_written(f"r{key[0]}.{LETTERS[key[1]]}")

    # What operands hold

    def words(self, at: ReadWord) -> tuple[int, int]:
        """Return what an operand reads, without its modifiers, in both runs."""
        one, other = (
            steps[at.step].sources[at.n][at.position] for steps in (self.steps, self.other_steps)
        )
        return one, other

    def element(self, at: ReadWord) -> MatrixElement:
        """Return the element that an operand reads, or ``NO_ELEMENT``."""
        return self.elements.get(self.words(at)[0], NO_ELEMENT)

    def is_torn(self, at: ReadWord) -> bool:
        """Return whether an operand is a double of two words that aren't one in a register."""
        source, letter = self.source(at), self.instruction(at.step).op.sources[at.n]
        halves = source.swizzle[at.position - 1 : at.position + 1]
        return letter == "d" and source.register.kind == "r" and halves not in ("xy", "zw")

    def number(self, at: ReadWord) -> float | None:
        """Return the number that an operand reads if it is from no matrix, else None."""
        first, second = self.words(at)
        if first != second:
            return None
        value = float(np.uint32(first).view(np.float32))
        letter = self.instruction(at.step).op.sources[at.n]
        if letter == "d" or (letter == "b" and self.traced.number_words > 1):
            low = self.steps[at.step].sources[at.n][at.position - 1]
            value = float(np.array([low, first], np.uint32).view(np.float64)[0])
        return value * self.sign(at)

    def sign(self, at: ReadWord) -> float:
        """Return 1, or -1 for an operand that is negated."""
        return -1.0 if self.source(at).negated else 1.0

    # Where operands come from

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
            found.append(ReadWord(step, n, position, c))
        return found

    def factors(self, step: int, c: int) -> list[list[ReadWord]]:
        """Return the pairs of operands whose products a step adds to component ``c``."""
        pair, across = self.operands(step, c)[:2], self.instruction(step).op.across
        return [[at._replace(position=p) for at in pair] for p in range(across)] or [pair]

    def source(self, at: ReadWord) -> Source:
        """Return an operand as it is written."""
        return self.instruction(at.step).sources[at.n]

    def key(self, at: ReadWord) -> Key | None:
        """Return the component of a register that an operand reads; None if it reads none."""
        source = self.source(at)
        letter = source.swizzle[at.position]
        if letter not in LETTERS or source.register.kind != "r":
            return None
        return source.register.index, LETTERS.index(letter)

    def writer(self, at: ReadWord) -> Node | None:
        """Return what wrote the word of a register that an operand reads; None if nothing did."""
        key = self.key(at)
        step = self.recorded.last_writer(key, at.step) if key else None
        return None if key is None or step is None else (step, key[1])

    def reading(self, at: ReadWord) -> Reading:
        """Return where the element of an operand was read."""
        element, step = self.element(at), at.step
        while node := self.writer(at):
            step = node[0]
            moved = [each for each in self.operands(*node) if self.element(each) == element]
            if not moved:
                break
            (at, *_) = moved
        return Reading(element, self.line(step), step)

    # What was read and multiplied

    def read_words(self, step: int) -> list[int]:
        """Return the words that a step reads from a texture, ``g[]`` or the LDS."""
        i, record = self.instruction(step), self.steps[step]
        words = [*record.words.values()] if i.op.kind in ("fetch", "lds") else []
        for n, source in record.sources.items():
            words += source if i.sources[n].register.kind == "g" else []
        return words

    def readers(self, matrix: str) -> list[int]:
        """Return the steps that read a matrix, wherever, but not through the LDS."""
        reads, steps = self.traced.kernel.convention.reads, range(len(self.steps))
        return [step for step in steps if reads(self.instruction(step), matrix)]

    @cached_property
    def reads(self) -> dict[MatrixElement, list[int]]:
        """The steps that read each element, from a texture, ``g[]`` or the LDS."""
        found: dict[MatrixElement, list[int]] = defaultdict(list)
        for step in range(len(self.steps)):
            for element in map(self.elements.get, self.read_words(step)):
                if element:
                    found[element].append(step)
        return found

    @cached_property
    def lds_stores(self) -> list[tuple[LdsStore, set[MatrixElement]]]:
        """The stores to the LDS, each with the elements that it put there."""
        return [
            (store, {self.elements[word] for word in store.words if word in self.elements})
            for store in self.recorded.lds_stores
        ]

    @cached_property
    def products(self) -> dict[Elements, list[tuple[int, int, int]]]:
        """The steps that multiplied elements, or one by a number: step, register, component."""
        found: dict[Elements, list[tuple[int, int, int]]] = defaultdict(list)
        for step in range(len(self.steps)):
            i = self.instruction(step)
            for register, c in defines(i) if i.op.multiplies else ():
                for pair in self.factors(step, c):
                    elements = [self.element(at) for at in pair if self.number(at) is None]
                    if NO_ELEMENT not in elements:
                        found[tuple(sorted(elements))].append((step, register, c))
        return found

    @cached_property
    def summed_nodes(self) -> set[Node]:
        """The results from which the stored word is computed."""
        pending = [self.stored_node]
        followed: set[Node] = set()
        while pending:
            followed.add(node := pending.pop())
            writers = {self.writer(at) for at in self.operands(*node)}
            pending += filter(None, writers - followed)
        return followed

    @cached_property
    def empty_loads(self) -> list[int]:
        """The loads of a 0 from which the stored word is computed. No element is 0: they load
        outside of ``g[]``, or from the LDS what no store has written, or as 0.
        """
        zeros = {step for step, c in self.summed_nodes if not self.steps[step].words.get(c, 1)}
        loads = (step for step in sorted(zeros) if self.instruction(step).op.kind != "fetch")
        return [step for step in loads if self.read_words(step)]
