"""Find the fault of an incorrect kernel among the lines that its reader has changed.

The last correct text is known, or the given one that a step starts from. Each repair changes one
thing: a change is undone (a line that is gone is put back), a line deleted or moved to a loop's
end, one word replaced. It is run, and counts only if ``verify`` then finds nothing: all of C is
correct, and an iteration takes the values of k for which the kernel is launched. So a line is never
called wrong without a run that shows it. Where no repair counts, the notes on an incorrect element
say what is certain.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import chain, zip_longest
from typing import NamedTuple

from cypresskit.diagnosis.element_trace import ElementTrace, trace_element
from cypresskit.diagnosis.notes import Note, Values, note
from cypresskit.diagnosis.verification import Verification, verify
from cypresskit.il import ILError
from cypresskit.il.cursor import bare_line
from cypresskit.kernels.products import make_product
from cypresskit.machine import KernelError
from cypresskit.machine.checks.findings import named_bits
from cypresskit.machine.observer import Observer, StepEvent

FAILURES = ILError, KernelError, ValueError, TypeError  # of a text that can't be run
MAX_STEPS = 20_000  # of all repairs that are run: at most some two seconds
SEED, LARGEST = 12, 99  # of the product's numbers: so large, none becomes correct by chance
SCALE = 7.0  # of the shown alpha and beta, so that no literal of the kernel equals them
#: Opcodes that are taken for each other.
COMPARISONS = "ge", "lt"
CONFUSED = COMPARISONS, ("add", "iadd", "sub", "mul", "ior")


class Changes(NamedTuple):
    """How a text differs from a known one; lines are counted from 0.

    Attributes
    ----------
    replaced
        The changed lines, each with the known line in its place, or "".
    gone
        The known lines that are gone, each with the line before which it stood.
    """

    replaced: dict[int, str]
    gone: list[tuple[int, str]]

    @property
    def own(self) -> list[int]:
        """The lines that aren't as they were."""
        return sorted(self.replaced)


class Repair(NamedTuple):
    """The lines of a text without a fault, if it is the fault."""

    fault: Note
    lines: list[str]


def find_changed_fault(seen: Verification, known: str) -> Note | None:
    """Return the fault of an incorrect kernel among the lines that differ from a ``known`` text, or
    None.

    If work-items store to one place, the note names the missing bits of the address, because many
    unrelated changes would also repair it; and the line whose change does, if it is another one.
    """
    found = _repaired_fault(seen, known)
    for race in seen.findings:
        if race.lost_bits and not (found and found.line == race.line):
            lines = [found.line] if found else []
            bits = named_bits(race.lost_bits)
            names: Values = {"item": race.work_item, "other": race.other_item, "bits": bits}
            return note("one place", race.line, *lines, repair=str(found or ""), **names)
    return found


def _repaired_fault(seen: Verification, known: str) -> Note | None:
    """Return the fault whose repair counts, or None."""
    kinds = {finding.kind for finding in seen.findings}
    if seen.right or seen.size is None or "endless loop" in kinds or not known:
        return None
    lines = seen.kernel.text.splitlines()
    changes = _changes(known.splitlines(), lines)
    # That a value was never set tells more than what it was before
    undone = () if "uninitialised" in kinds else _undone(lines, changes)
    counts = _Trial(seen)
    own = changes.own[::-1]
    for fault, text in chain(undone, _moved_or_deleted(lines, own), _replaced(lines, own)):
        if counts.steps_left < 0:
            break
        if counts("\n".join(text)):
            return fault
    return None


def trace_wrong(seen: Verification) -> ElementTrace | None:
    """Return the trace of the incorrect element; None if there is none, or if an earlier store is
    out of range.
    """
    if seen.wrong is None:
        return None
    row, column, *_ = seen.wrong
    with suppress(KernelError, ValueError):
        return trace_element(
            seen.kernel, row, column, size=seen.size, alpha=seen.alpha, beta=seen.beta
        )
    return None


def lead_to_fault(fault: Note | None, trace: ElementTrace | None, known: str) -> list[Note]:
    """Return the notes of an element's trace, first of them the fault. It leaves only the notes
    that name its line. Without one, and if no term is missing and no known line is gone, the line
    to look at is the only changed one.
    """
    faults = trace.faults if trace else ()
    if fault:
        return [fault, *(each for each in faults if fault.line in each.lines)]
    if not trace or not faults:
        return []
    first, *others = faults
    lines = trace.kernel.text.splitlines()
    changes = _changes(known.splitlines(), lines)
    own = [at + 1 for at in changes.own] if known and not changes.gone else []
    if len(own) == 1 and own[0] not in first.lines and not first.term:
        first = replace(first, line=own[0], yours=own[0])
    return [first, *others]


def _words(line: str) -> list[str]:
    """Return the words of a line: the opcode, the result, and the sources."""
    op, _, operands = bare_line(line).partition(" ")
    return [op.lower(), *(operand.strip() for operand in operands.split(","))]


def _changes(old: Sequence[str], new: Sequence[str]) -> Changes:
    """Return how a text differs from an old one. Comments, spaces and empty lines don't count."""
    before = [line for line in map(bare_line, old) if line]
    places = [at for at, line in enumerate(new) if bare_line(line)]
    after = [bare_line(new[at]) for at in places]
    replaced: dict[int, str] = {}
    gone: list[tuple[int, str]] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, before, after, False).get_opcodes():
        if kind != "equal":
            is_paired = i2 - i1 == j2 - j1
            replaced |= zip(places[j1:j2], before[i1:i2] if is_paired else [""] * (j2 - j1))
            gone += [((*places, len(new))[j1], line) for line in before[i1:i2] if not is_paired]

    return Changes(replaced, gone)


def _undone(lines: list[str], changes: Changes) -> Iterator[Repair]:
    """Yield the repairs that put a line back, or undo a change."""
    for at, old in sorted(changes.replaced.items(), reverse=True):
        if old:
            words, right = _words(lines[at]), _words(old)
            wrong = [one for one, other in zip(words, right) if one != other]
            is_word = len(words) == len(right) and not wrong[1:]
            fault = note("else", at + 1, wrong=wrong[0]) if is_word else note("undone", at + 1)
            yield Repair(fault, [*lines[:at], old, *lines[at + 1 :]])
    for at, line in reversed(changes.gone):
        yield Repair(note("line missing", at + 1, text=line), [*lines[:at], line, *lines[at:]])


def _moved_or_deleted(lines: list[str], near: Sequence[int]) -> Iterator[Repair]:
    """Yield the repairs that delete a line, or move it to a loop's end."""
    ends = [at for at, line in enumerate(lines) if bare_line(line) == "endloop"]
    for at in near:
        yield Repair(note("without", at + 1), [*lines[:at], *lines[at + 1 :]])
        for end in () if bare_line(lines[at]).startswith("break") else ends:
            yield _moved(lines, at, end)


def _moved(lines: list[str], at: int, place: int) -> Repair:
    """Return the repair that moves a line to right before another."""
    left = [line for n, line in enumerate(lines) if n != at]
    left.insert(place - (at < place), lines[at])
    return Repair(note("place", at + 1, before=place + 1), left)


def _replaced(lines: list[str], near: Sequence[int]) -> Iterator[Repair]:
    """Yield the repairs that replace one word: of each line the likeliest one first."""
    for turn in zip_longest(*(_other_words(lines, at) for at in near)):
        yield from filter(None, turn)


def _other_words(lines: list[str], at: int) -> Iterator[Repair]:
    """Yield the repairs of a line by another opcode, another component, or without a mask."""
    op, *operands = _words(lines[at])
    opcodes = [other for group in CONFUSED if op in group for other in group if other != op]
    texts = [(op, f"{other} {', '.join(operands)}") for other in opcodes]
    if op in COMPARISONS:  # later, or earlier, by one iteration
        turned = [operands[0], *operands[:0:-1]]
        texts.append((bare_line(lines[at]), f"{opcodes[0]} {', '.join(turned)}"))
    for n in (*range(1, len(operands)), 0):
        name, _, components = operands[n].rpartition(".")
        letters = [] if components[1:] else "xyzw"
        for other in [f"{name}.{letter}" for letter in letters] if n else [name]:
            if name and other != operands[n]:
                put = [*operands[:n], other, *operands[n + 1 :]]
                texts.append((operands[n], f"{op} {', '.join(put)}"))
    for wrong, text in texts:
        fault = note("else", at + 1, wrong=wrong)
        yield Repair(fault, [*lines[:at], text, *lines[at + 1 :]])


class _Trial(Observer):
    """Tells whether a text is a repair: all of C is correct, and nothing is found."""

    def __init__(self, seen: Verification) -> None:
        assert seen.size is not None
        alpha = seen.alpha if seen.alpha == 1 else SCALE * seen.alpha
        beta = SCALE * seen.beta
        self.seen = seen
        self.given = make_product(seen.kernel, seen.size, alpha, beta, SEED, LARGEST)
        self.steps_left = MAX_STEPS
        self.tried: set[str] = set()

    def step(self, event: StepEvent) -> None:
        self.steps_left -= 1

    def __call__(self, text: str) -> bool:
        if text in self.tried:
            return False
        self.tried.add(text)
        kernel = replace(self.seen.kernel, text=text, given=None)
        with suppress(*FAILURES):
            before = self.steps_left
            given = replace(self.given, kernel=kernel)
            if given.wrong(given.run(engine="interpreter", observers=[self])).any():
                return False
            # `verify` runs it at four sizes
            self.steps_left -= 4 * (before - self.steps_left)
            return verify(kernel).right
        return False
