"""Find the fault of an incorrect kernel among the lines that its reader has changed.

The last correct text is known, or the given one that a step starts from. Each variant of the text
is one repair of one mistake: a change undone; a line moved into the loop, or out of it; or a word
of a line replaced by one that other lines have there, in one line or in several alike. A variant
counts as the repair if each element of C that it changes becomes correct, with the one that is
shown; and if C is correct, if the checks find nothing. So a line is never called wrong without a
run that shows it. Where no variant is a repair, a sentence only says what changed lines do: one
overwrites a result, or some compute the place of an access outside.

Limitations
-----------
One mistake is found, or several that affect different elements of C; not two in one sum. For those,
a sentence names the changed line that is part of the sum.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import product, zip_longest
from time import process_time
from typing import NamedTuple

import numpy as np

from cypresskit.diagnosis.element_trace import ElementTrace, Note, trace_element
from cypresskit.diagnosis.verification import Verification, verify
from cypresskit.editing.line_repairs import (
    ARITHMETIC,
    DOTS,
    PRODUCTS,
    TESTS,
    line_repairs,
    misplaced,
    mistake,
    words_of,
)
from cypresskit.il import ILError, Program
from cypresskit.il.cursor import bare_line
from cypresskit.il.dataflow import defines, is_address, keys, liveness, uses
from cypresskit.kernels.products import Product, make_product
from cypresskit.machine import KernelError
from cypresskit.tables import listed, ranged

FAILURES = ILError, KernelError, ValueError, TypeError  # of a text that can't be run
SECONDS = 2.0  # of processor time for all variants of a text
MAX_UNDONE = 12  # of more new lines, none is left out first: most of a kernel is new
LIKELY = 6  # repairs of a line, before which it is neither left out nor moved
SEED, LARGEST = 12, 99  # of the product's numbers: so large, none becomes correct by chance
#: Lines that the trace of an element names.
TRACED = "sample", "mad", "dmad"
#: Lines of which each changes some elements of C: one may be right though others aren't.
SEPARATE = "sample", "lds_", "mov o", "mov g", *ARITHMETIC, *DOTS, "sub"


class LineChange(NamedTuple):
    """A changed line: its index in the new lines, and the ``old`` lines in place of which it came;
    ``new`` is 0 where old lines were deleted before it.
    """

    at: int
    old: tuple[str, ...]
    new: int


class Variant(NamedTuple):
    """The changes that are undone in a variant of the text, and the fault that it would repair.

    ``whole``: whether it counts only if all of C becomes correct.
    """

    undone: tuple[LineChange, ...]
    fault: Note
    whole: bool = True


def find_changed_fault(seen: Verification, known: str, trace: ElementTrace | None) -> Note | None:
    """Return the fault of an incorrect kernel among the lines that differ from a ``known`` text,
    or what such lines do where no repair is found; or None. ``trace``: as of ``trace_wrong``.
    """
    endless = any(finding.kind == "endless loop" for finding in seen.findings)
    if seen.right or seen.size is None or endless or not known:
        return None
    return _Search(seen, known, trace).fault()


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
    that name its line. Without one, the first note also names the changed lines of the sum.
    """
    faults = trace.faults if trace else ()
    if fault:
        notes = [fault, *(note for note in faults if fault.line in note.lines)]
        if "another" in fault.text:  # a note may say which
            notes.sort(key=lambda note: note.kind != "factor")
        return notes
    if not trace or not faults:
        return []
    first, *others = faults
    own = _own_lines(_changes(known.splitlines(), trace.kernel.text.splitlines()))
    right = {line for term in trace.terms if term.right for line in term.lines}
    red = next((term.lines for term in trace.terms if not term.right), ())
    mine = sorted(own.intersection(red) - right) if known else []
    if mine and first.kind in ("factor", "store") and not own.intersection(first.lines):
        which = f"lines {listed(mine)} lead" if mine[1:] else f"line {mine[0]} leads"
        said, _, more = first.text.partition(". ")
        text = f"{said.removesuffix('.')}: your {which} there. {more}"
        first = Note(text.rstrip(), mine[-1])
    return [first, *others]


def _own_lines(changes: Iterable[LineChange]) -> set[int]:
    return {change.at + 1 for change in changes if change.new}


def _changes(old: Sequence[str], new: Sequence[str]) -> list[LineChange]:
    """Return the changed lines of a text. Comments, spaces and empty lines don't count."""
    before = [line for line in map(bare_line, old) if line]
    places = [at for at, line in enumerate(new) if bare_line(line)]
    after = [bare_line(new[at]) for at in places]
    changes: list[LineChange] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, before, after, False).get_opcodes():
        gone = before[i1:i2]
        if kind == "delete":
            changes.append(LineChange((*places, len(new))[j1], (*gone,), 0))
        for n, place in enumerate(places[j1:j2] if kind != "equal" else ()):
            old_line = gone[n : n + 1] if i2 - i1 == j2 - j1 else ()
            changes.append(LineChange(place, (*old_line,), 1))
    return changes


class _Search:
    """The search for a variant of a text that repairs the product."""

    def __init__(self, seen: Verification, known: str, trace: ElementTrace | None) -> None:
        assert seen.size is not None
        self.seen, self.lines = seen, seen.kernel.text.splitlines()
        self.words = [*map(words_of, self.lines)]
        self.known = [*map(words_of, known.splitlines())]
        self.changes = _changes(known.splitlines(), self.lines)
        self.own = _own_lines(self.changes)
        self.notes = trace.faults if trace else ()
        wrong = [term.lines for term in trace.terms if not term.right] if trace else []
        self.places = [
            (finding.line, finding.kind, _lines_before(seen.kernel.program, finding.line))
            for finding in seen.findings
            if finding.kind.endswith(("outside", "race"))
        ]
        self.near = {*sum([*wrong, *(note.lines for note in self.notes)], ())}
        self.near = self.near.union(*({line, *before} for line, _, before in self.places))
        self.end = process_time() + SECONDS
        self.given = make_product(seen.kernel, seen.size, seen.alpha, seen.beta, SEED, LARGEST)
        self.before = _result(self.given, seen.kernel.text)
        self.wrong = self.given.wrong(self.before)

    def fault(self) -> Note | None:
        """Return the fault that a variant repairs, or else what changed lines do, or None.

        First, moved lines are put back, and each change is undone; then changed lines are repaired.
        By the notes of an incorrect element, a product isn't at fault if an element isn't read. If
        C is correct, tests of a loop are repaired.
        """
        own = [change.at for change in self.changes if change.new]
        if any(note.kind == "unread" for note in self.notes):
            own = [at for at in own if not self._starts(at, PRODUCTS)]
        few = own if len(own) <= MAX_UNDONE else ()
        changes = [each for each in reversed(self.changes) if each.old or each.at in few]
        new = [each for each in self.changes if each.new]
        moves = [pair for pair in product(new, changes) if self._said(*pair)]
        found = self._best(
            Variant(some, self._undone(*some), whole=not self._said(*some))
            for some in (*moves, *zip(changes))
        )
        if not self.wrong.any():
            own = [at for at in own if self._starts(at, TESTS)]
        found = found or self._best(self._repairs(own))
        return found.fault if found else self._overwritten() or self._placed()

    def _overwritten(self) -> Note | None:
        """Return the changed line that overwrites a result before a line reads it."""
        program = self.seen.kernel.program
        live = liveness(program)
        for at, i in enumerate(program.body):
            written = {*defines(i)}
            later = (j for j in program.body[at + 1 :] if written & {*defines(j)})
            if written and not written & live[at + 1] and (over := next(later, None)):
                if over.line in self.own and i.line != over.line:
                    text = (
                        f"Line {over.line} overwrites {i.dest}, which line {i.line} set, before a"
                    )
                    return Note(f"{text} line reads it.", over.line)
        return None

    def _placed(self) -> Note | None:
        """Return the changed lines, with those beside them, that compute the place of an access
        outside, or of a race; None if a note says which changed line has another element.
        """
        own = self.own
        if any(note.kind == "factor" and own.intersection(note.lines) for note in self.notes):
            return None
        for line, kind, before in self.places:
            found = sorted(n for n in before if own & {n - 1, n, n + 1})
            if own.intersection(found):
                lines, compute = f"line {found[0]}", "computes"
                if found[1:]:
                    lines, compute = f"lines {ranged(found)}", "compute"
                if line in own:
                    lines = f"look at it, and at {lines}, which"
                accesses = {"fetch": "fetches", "load": "loads"}.get(kind.split()[0], "stores")
                text = f"Line {line}, {kind}: {lines} {compute} where it {accesses}."
                return Note(text, 0 if found[1:] or line in own else found[0])
        return None

    def _starts(self, at: int, words: tuple[str, ...]) -> bool:
        return bare_line(self.lines[at]).startswith(words)

    # Changes undone

    def _undone(self, first: LineChange, *others: LineChange) -> Note:
        """Return the fault if the product is correct without a change, or with a moved line put
        back.
        """
        number = first.at + 1
        if said := self._said(first, *others):
            return Note(f"Line {number}{said}", number)
        if not first.new:
            line = (*self._lost(first), *first.old)[0]
            return Note(f"A line is missing before line {number}: {line}", number)
        what = "the change in this line" if first.old else "this line"
        return Note(f"Line {number}: the kernel is correct without {what}.", number)

    def _lost(self, change: LineChange) -> list[str]:
        """Return the lines that a change deleted and that stand nowhere else."""
        held = {*map(bare_line, self.lines)}
        return [line for line in change.old if line not in held]

    def _said(self, new: LineChange, *others: LineChange) -> str:
        """Return what is wrong in a new line that was another one, here or elsewhere; or ""."""
        old = [line for change in (new, *others) for line in change.old]
        if not new.new or len(old) != 1 or any(change.new for change in others):
            return ""
        if bare_line(self.lines[new.at]) != old[0]:
            return mistake(self.words[new.at], words_of(old[0]))
        return misplaced(others[0].at)

    def _text(self, undone: Iterable[LineChange]) -> str:
        """Return the text with changes undone."""
        slots = [*([line] for line in self.lines), []]
        for change in undone:
            slot = slots[change.at]
            if change.new:
                slot[-1:] = change.old
            else:
                slot[:0] = self._lost(change) or change.old
        return "\n".join(line for slot in slots for line in slot)

    # Lines repaired

    def _repairs(self, places: Sequence[int]) -> Iterator[Variant]:
        """Yield the variants with one line repaired, or with several in the same way: first the
        lines that lead to what was found, and each line's likeliest repair; last the given lines
        beside. If the sum is stored elsewhere or nowhere, only a whole C tells which line is wrong.
        It does so, too, if one line alone was changed.
        """
        is_elsewhere = any("store" in note.kind for note in self.notes)
        alike: dict[Hashable, dict[int, Variant]] = defaultdict(dict)
        all_words = [*self.words, *self.known]
        near: list[list[Variant]] = []
        others: list[list[Variant]] = []
        written = {n for n, line in enumerate(self.lines) if bare_line(line)}
        beside = {n for at in places for n in (at - 1, at + 1)} & written - {*places}
        for at in (*places, *sorted(beside)):
            whole = is_elsewhere or len(self.changes) == 1 or at in beside
            whole = whole or not self._starts(at, SEPARATE)
            single: list[Variant] = []
            for text, kind, said, elsewhere in line_repairs(self.words[at], all_words):
                fault = Note(f"Line {at + 1}{said}", at + 1)
                undone = (LineChange(at, (text,), 1),)
                single.append(Variant(undone, fault, whole or elsewhere))
                if self._starts(at, SEPARATE):
                    alike[kind].setdefault(at, single[-1])
            gone = LineChange(at, (), 1)
            single[LIKELY:LIKELY] = [Variant((gone,), self._undone(gone)), *self._moved(at)]
            (near if at + 1 in self.near and at not in beside else others).append(single)
        several = [_together([*some.values()]) for some in alike.values() if len(some) > 1]
        for turn in (*zip_longest(several, *near), *zip_longest(*others)):
            yield from filter(None, turn)

    def _moved(self, at: int) -> list[Variant]:
        """Return the variants with a line moved to the loop's end, or before the loop."""
        loop = [n for n, (op, *_) in enumerate(self.words) if op in ("whileloop", "endloop")]
        traced = self._starts(at, TRACED)
        variants = []
        for place in loop[-1:] + loop[: not traced]:
            if place < at or not traced:
                moved = LineChange(at, (), 1), LineChange(place, (self.lines[at],), 0)
                fault = Note(f"Line {at + 1}{misplaced(place)}", at + 1)
                variants.append(Variant(moved, fault, whole=not traced))
        return variants

    # Variants tried

    def _best(self, variants: Iterable[Variant]) -> Variant | None:
        """Return the variant that makes C correct or, unless only a whole C counts, most of it."""
        best, most = None, 0 if self.wrong.any() else -1
        for variant in variants:
            if process_time() > self.end:
                break
            text = self._text(variant.undone)
            repaired, left = self._repaired(text)
            if repaired <= most:
                continue
            if left and not variant.whole:
                best, most = variant, repaired
            elif not left and self._is_right(text):
                return variant
        return best

    def _is_right(self, text: str) -> bool:
        """Return whether nothing is found in a text, in place of one whose C is right."""
        with suppress(*FAILURES):
            kernel = replace(self.seen.kernel, text=text, given=None)
            return verify(kernel, alpha=self.seen.alpha, beta=self.seen.beta).right
        return False

    def _repaired(self, text: str) -> tuple[int, int]:
        """Return how many elements of a product a text makes correct, and how many it leaves
        incorrect; (0, 0) if it changes one of these, or leaves the one that is shown.
        """
        result = _result(self.given, text)
        wrong = self.given.wrong(result)
        if (wrong & (result != self.before) & ~np.isnan(self.before)).any():
            return 0, 0
        if (shown := self.seen.wrong) and wrong[..., shown.row, shown.column].any():
            return 0, 0
        return int((self.wrong & ~wrong).sum()), int(wrong.sum())


def _lines_before(program: Program, line: int) -> set[int]:
    """Return the lines from which the address of a line's access is computed."""
    there = [i for i in program.body if i.line == line]
    used = keys(use for i in there for use in uses(program, i) if is_address(i, use[0]))
    lines: set[int] = set()
    while True:
        writers = [i for i in program.body if i.line not in lines and used & {*defines(i)}]
        if not writers:
            return lines
        lines.update(i.line for i in writers)
        used = used.union(*(keys(uses(program, i)) for i in writers))


def _result(given: Product, text: str) -> np.ndarray:
    """Return the C of a text; NaN if it can't be run."""
    with suppress(*FAILURES):
        made = replace(given.kernel, text=text, given=None)
        return replace(given, kernel=made).run(engine="interpreter")
    return np.full(given.expected.shape, np.nan)


def _together(variants: Sequence[Variant]) -> Variant:
    """Return the variant that repairs several lines in the same way."""
    first, *others = (variant.fault for variant in variants)
    lines = listed([fault.line for fault in others])
    text = f"{first.text} The same is wrong in line{'s' * (len(others) > 1)} {lines}."
    undone = tuple(change for variant in variants for change in variant.undone)
    return Variant(undone, Note(text, first.line))
