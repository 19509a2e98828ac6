"""Follow an element of C backward from its store: the terms of its sum, and the steps that made
them.

From the store, sums are followed through registers, down to the products of two elements
(``operands`` tells which operand holds which). Addresses aren't followed.

Not covered (``explain_unknown``): results that are no sums of products, such as a maximum; doubles
of two halves that aren't one in a register; sums that pass through memory or the LDS; and kernels
that branch on elements.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan, nan
from typing import NamedTuple

from cypresskit.diagnosis.elements import NO_ELEMENT, Elements
from cypresskit.diagnosis.notes import Lines, Note, note
from cypresskit.diagnosis.operands import Node, Reading, ReadWord, TracedRun
from cypresskit.il.dataflow import defines

#: By what the sources of an instruction are multiplied in the sum that it makes.
SUMS = {"mov": (1.0,), "add": (1.0, 1.0), "dadd": (1.0, 1.0), "sub": (1.0, -1.0)}


@dataclass(frozen=True)
class Addend:
    """A term of a sum: the product of factors and a number.

    Attributes
    ----------
    factors
        Two elements, or a single one.
    times
        The number.
    step
        The step that multiplied the factors, or took the single one.
    scalings
        The steps that multiplied by a number, each with it.
    moves
        The operands by which the sum was taken from another component or register than that of the
        result.
    """

    factors: tuple[Reading, ...]
    times: float
    step: int = -1
    scalings: tuple[tuple[int, float], ...] = ()
    moves: tuple[ReadWord, ...] = ()

    @property
    def elements(self) -> Elements:
        return tuple(factor.element for factor in self.factors)


class Path(NamedTuple):
    """What happens to a result until it is stored; the fields are those of ``Addend``."""

    times: float = 1.0
    scalings: tuple[tuple[int, float], ...] = ()
    moves: tuple[ReadWord, ...] = ()


class Slice:
    """The sum that is stored as an element of C.

    Attributes
    ----------
    terms
        The terms of the stored sum, by their elements.
    number
        The part of the sum that is from no matrix.
    number_steps
        The steps that wrote or added such a number, but 0.
    unknown_steps
        The steps whose results aren't followed.
    """

    def __init__(self, run: TracedRun) -> None:
        self.run = run
        self.number = 0.0
        self.number_steps: list[int] = []
        self.terms: dict[Elements, tuple[Addend, ...]] = defaultdict(tuple)
        self.unknown_steps: list[int] = []
        if not run.is_data_dependent:
            self._follow(run.stored_node)

    def explain_unknown(self) -> Note | None:
        """Return why the terms aren't known; None if they are."""
        run = self.run
        if run.is_data_dependent:
            return note("varies")
        if not self.unknown_steps:
            return None
        step = min(self.unknown_steps)
        line = run.line(step)
        if run.instruction(step).op.kind == "lds" or run.read_words(step):
            return note("loads a sum", loads=Lines([line]))
        return note("halves", line) if self._takes_halves(step) else note("no sum", line)

    def _takes_halves(self, step: int) -> bool:
        """Return whether a step computes with halves of doubles as with numbers."""
        return self.run.traced.number_words > 1 and "f" in self.run.instruction(step).op.sources

    def _follow(self, node: Node) -> None:
        """Collect the terms of a result."""
        run = self.run
        pending: list[tuple[Node, Path]] = [(node, Path())]
        while pending:
            (step, component), path = pending.pop()
            i = run.instruction(step)
            operands = run.operands(step, component)
            computed = any(len({*run.words(at)}) > 1 for at in operands)
            is_unknown = any(map(run.is_torn, operands)) or i.op.kind == "lds"
            if is_unknown or (computed and self._takes_halves(step)):
                self.unknown_steps.append(step)
            elif i.opcode in SUMS:
                for at, times in zip(operands, SUMS[i.opcode]):
                    pending += self._add(at, path, times)
            elif i.op.multiplies:
                for a, b in run.factors(step, component):
                    pending += self._multiply(a, b, path)
                for at in operands[2:]:
                    pending += self._add(at, path)
            elif computed:
                self.unknown_steps.append(step)
        for elements, kept in self.terms.items():
            self.terms[elements] = kept[::-1]

    def _add(self, at: ReadWord, path: Path, times: float = 1.0) -> Iterator[tuple[Node, Path]]:
        """Add ``times`` an operand to the sum if it is a number or an element; else yield what
        wrote it, also of a 0 or NaN that was copied or multiplied: elements may be in it.
        """
        run = self.run
        number, writer = run.number(at), run.writer(at)
        if number is not None:
            self.number += path.times * times * number
            if number:
                self.number_steps.append(writer[0] if writer else at.step)
            hides = not number or isnan(number)
            made = run.instruction(writer[0]) if writer and hides else None
            if made is None or not (made.opcode == "mov" or made.op.multiplies):
                return
        path = path._replace(times=path.times * times * run.sign(at))
        if run.element(at) != NO_ELEMENT:
            self._add_term(Addend((run.reading(at),), path.times, at.step, *path[1:]))
            return
        i = run.instruction(at.step)
        is_copy = i.opcode == "mov" and at.step == run.store
        if not is_copy and run.key(at) not in [key for key in defines(i) if key[1] == at.result]:
            path = path._replace(moves=(at, *path.moves))
        if writer:
            yield writer, path
        else:
            self.unknown_steps.append(at.step)

    def _multiply(self, a: ReadWord, b: ReadWord, path: Path) -> Iterator[tuple[Node, Path]]:
        """Add a product to the sum, or yield what it multiplies by a number."""
        first, second = self.run.number(a), self.run.number(b)
        if first is not None or second is not None:
            if isnan((first or 0.0) * (second or 0.0)):  # of a C that isn't to be used
                self.number, self.number_steps = nan, [a.step]
                return
            number, other = (first, b) if first is not None else (second or 0.0, a)
            scaled = path._replace(scalings=((a.step, number), *path.scalings))
            yield from self._add(other, scaled, number)
            return
        if NO_ELEMENT in map(self.run.element, (a, b)):
            self.unknown_steps.append(a.step)
            return
        factors = sorted(map(self.run.reading, (a, b)), key=lambda read: read.element)
        times = path.times * self.run.sign(a) * self.run.sign(b)
        self._add_term(Addend(tuple(factors), times, a.step, *path[1:]))

    def _add_term(self, term: Addend) -> None:
        """Add a term to the sum, but no incorrect one times 0."""
        if term.times or term.elements in self.run.traced.correct_terms:
            self.terms[term.elements] += (term,)
