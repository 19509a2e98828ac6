"""Follow an element of C backward from its store: the terms of its sum, and the steps that made
them.

From the store, sums are followed through registers, down to the products of two elements
(``operands`` tells which operand holds which). Addresses aren't followed.

Not covered (``unknown``): results that are no sums of products, such as a maximum, and sums that
pass through memory or the LDS.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cypresskit.diagnosis.elements import NO_ELEMENT, Elements
from cypresskit.diagnosis.notes import Lines, Note, note
from cypresskit.diagnosis.operands import Node, Reading, ReadWord, TracedRun

SUMS = {"add": 1.0, "dadd": 1.0, "sub": -1.0}  # of two sources, the second times this


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
    """What happens to a result on its way to the stored sum; the fields are those of ``Addend``."""

    times: float = 1.0
    scaled: tuple[int, ...] = ()
    crossed: tuple[int, ...] = ()


class Slice:
    """The sum that is stored as an element of C.

    Attributes
    ----------
    terms
        The terms of the stored sum, by their elements.
    number
        The part of the sum that is from no matrix.
    numbers
        The steps that wrote or added such a number, but 0.
    unknown
        The steps whose results aren't followed.
    """

    def __init__(self, run: TracedRun) -> None:
        self.run = run
        self.number = 0.0
        self.numbers: list[int] = []
        self.terms: dict[Elements, tuple[Addend, ...]] = defaultdict(tuple)
        self.unknown = [*run.undecided]
        if not self.unknown:
            self._follow((run.store, run.traced.place.word + (run.traced.words > 1)))

    def note_unknown(self) -> Note:
        """Return the note on the first step whose result isn't followed."""
        step = min(self.unknown, default=-1)
        if step < 0:
            return note("unknown")
        line = self.run.line(step)
        is_load = self.run.instruction(step).op.kind == "lds" or self.run.read_words(step)
        return note("unknown", loads=Lines([line])) if is_load else note("unknown", line)

    def _follow(self, node: Node) -> None:
        """Collect the terms of a result."""
        run = self.run
        left: list[tuple[Node, Way]] = [(node, Way())]
        while left:
            found, way = left.pop()
            i = run.instruction(found[0])
            operands = run.operands(*found)
            halves = run.traced.words > 1 and "f" in i.op.sources
            computed = any(len({*run.words(at)}) > 1 for at in operands)
            torn = any(map(run.is_torn, operands))
            if torn or (computed and halves) or i.op.kind == "lds":
                self.unknown.append(found[0])
            elif i.opcode in SUMS:
                left += self._summand(operands[0], way)
                left += self._summand(operands[1], way, SUMS[i.opcode])
            elif i.op.multiplies:
                for p in range(max(i.op.across, 1)):
                    a, b = (at._replace(position=p) if i.op.across else at for at in operands[:2])
                    left += self._product(a, b, way)
                for at in operands[2:]:
                    left += self._summand(at, way)
            elif i.opcode == "mov":
                left += self._summand(operands[0], way)
            elif computed:
                self.unknown.append(found[0])
        for elements, kept in self.terms.items():
            self.terms[elements] = tuple(term for term in kept[::-1] if term.times) or kept[-1:]

    def _summand(self, at: ReadWord, way: Way, times: float = 1.0) -> Iterator[tuple[Node, Way]]:
        """Add ``times`` an operand to the sum if it is a number or an element; else yield what
        wrote it.
        """
        run = self.run
        number, writer = run.number(at), run.writer(at)
        way = way._replace(times=way.times * times * run.sign(at))
        if number is not None:
            self.number += way.times * number * run.sign(at)
            self.numbers += [writer[0] if writer else at.step] * bool(number)
            made = run.instruction(writer[0]) if writer and not number else None
            if made is None or not (made.opcode == "mov" or made.op.multiplies):
                return
        if run.element(at) != NO_ELEMENT:
            self._add_term(Addend((run.reading(at),), way.times, at.step, *way[1:]))
            return
        i = run.instruction(at.step)
        is_copy = i.opcode == "mov" and at.step == run.store
        if i.dest and i.dest.register != run.source(at).register and not is_copy:
            way = way._replace(crossed=(at.step, *way.crossed))
        if writer:
            yield writer, way
        else:
            self.unknown.append(at.step)

    def _product(self, a: ReadWord, b: ReadWord, way: Way) -> Iterator[tuple[Node, Way]]:
        """Add a product to the sum, or yield what it multiplies by a number."""
        first, second = self.run.number(a), self.run.number(b)
        if first is not None or second is not None:
            number, other = (first, b) if first is not None else (second, a)
            number = number or 0.0
            yield from self._summand(other, way._replace(scaled=(a.step, *way.scaled)), number)
            return
        if NO_ELEMENT in map(self.run.element, (a, b)):
            self.unknown.append(a.step)
            return
        factors = sorted(map(self.run.reading, (a, b)), key=lambda read: read.element)
        times = way.times * self.run.sign(a) * self.run.sign(b)
        self._add_term(Addend(tuple(factors), times, a.step, *way[1:]))

    def _add_term(self, term: Addend) -> None:
        """Add a term to the sum, but no incorrect one times 0."""
        if term.times or term.elements in self.run.traced.correct:
            self.terms[term.elements] += (term,)
