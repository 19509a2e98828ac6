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

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import chain, zip_longest
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
    Kind,
    line_repairs,
    misplaced,
    mistake,
    words_of,
)
from cypresskit.il import ILError
from cypresskit.il.cursor import bare_line
from cypresskit.il.dataflow import Key, defines, is_address, keys, liveness, uses
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.products import Product, make_product
from cypresskit.kernels.statement import find_statement
from cypresskit.machine import KernelError
from cypresskit.machine.observer import Observer, StepEvent, WroteEvent
from cypresskit.tables import listed, ranged

FAILURES = ILError, KernelError, ValueError, TypeError  # of a text that can't be run
SECONDS = 2.0  # of processor time for all variants of a text
LIKELY = 6  # repairs of a line, before which it isn't moved
SEED, LARGEST = 12, 99  # of the product's numbers: so large, none becomes correct by chance
OTHER = 7.0  # times the scalars that are shown, so that no literal is one of them by chance
#: Lines that the trace of an element names.
TRACED = "sample", "mad", "dmad"
#: Lines of which each changes some elements of C: one may be right though others aren't.
SEPARATE = "sample", "lds_", "mov o", "mov g", *ARITHMETIC, *DOTS, "sub"


class LineChange(NamedTuple):
    """A changed line: its index in the new lines, and the ``old`` lines in place of which it came;
    ``new`` is 0 where old lines were deleted before it. ``moved``: the index before which it stood.
    """

    at: int
    old: tuple[str, ...] = ()
    new: int = 1
    moved: int | None = None


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
        if re.search("reads .* another", fault.text):  # a note may say which
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
        which = f"line{'s' * (len(mine) > 1)} {listed(mine)}"
        said, _, more = first.text.partition(". ")
        text = f"{said.removesuffix('.')}: look at your {which}. {more}"
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
    gone: list[tuple[int, str]] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, before, after, False).get_opcodes():
        lines = before[i1:i2] if kind != "equal" else []
        if len(lines) == j2 - j1:
            changes += [LineChange(at, (line,)) for at, line in zip(places[j1:j2], lines)]
        elif kind != "equal":
            gone += [((*places, len(new))[j1], line) for line in lines]
            changes += map(LineChange, places[j1:j2])
    for n, change in enumerate(changes):
        words = words_of(new[change.at])
        alike = [] if change.old else [some for some in gone if words_of(some[1])[:2] == words[:2]]
        for place, line in alike if len(alike) == 1 else ():  # its opcode and result
            gone.remove((place, line))
            same = words_of(line) == words
            changes[n] = LineChange(change.at, () if same else (line,), 1, place if same else None)
    deleted: dict[int, tuple[str, ...]] = {}
    for place, line in gone:
        deleted[place] = *deleted.get(place, ()), line
    changes += [LineChange(*each, 0) for each in deleted.items()]
    return sorted(changes, key=lambda change: change[:3])


class _Origins(Observer):
    """Records from which lines' results some lines compute their addresses, and where each
    work-item first stores in ``g[]``.
    """

    def __init__(self, seen: Verification, lines: Iterable[int]) -> None:
        self.program = seen.kernel.program
        self.found: dict[int, set[int]] = {line: set() for line in lines}
        self.stored: list[int] = []
        self.lines: dict[Key, set[int]] = defaultdict(set)  # whose results are in each component
        if self.found and seen.size:
            given = make_product(seen.kernel, seen.size, seen.alpha, seen.beta)
            _result(given, seen.kernel.text, [self])

    def step(self, event: StepEvent) -> None:
        i = event.instruction
        used = [*uses(self.program, i)]
        if i.line in self.found:
            address = keys(use for use in used if is_address(i, use[0]))
            self.found[i.line].update(*map(self.lines.__getitem__, address))
        lines = {i.line}.union(*map(self.lines.__getitem__, keys(used)))
        for key in defines(i):
            self.lines[key] = lines if event.active.all() else lines | self.lines[key]

    def wrote(self, event: WroteEvent) -> None:
        if event.element is not None and not self.stored:
            self.stored = event.element.tolist()


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
        self.unset = any(f.kind == "uninitialised" for f in seen.findings)
        self.named = any(note.kind == "factor" for note in self.notes)
        self.places = [f for f in seen.findings if f.kind.endswith(("outside", "race"))]
        self.origins = _Origins(seen, (finding.line for finding in self.places))
        wrong = [term.lines for term in (trace.terms if trace else ()) if not term.right]
        self.near = {*sum([*wrong, *(note.lines for note in self.notes)], ())}
        self.near.add(trace.line if trace else 0)
        self.near = self.near.union(self.origins.found, *self.origins.found.values())
        self.end = process_time() + SECONDS
        alpha = seen.alpha if seen.alpha == 1 else OTHER * seen.alpha
        beta = OTHER * seen.beta
        self.given = make_product(seen.kernel, seen.size, alpha, beta, SEED, LARGEST)
        self.before = _result(self.given, seen.kernel.text)
        self.wrong = self.given.wrong(self.before)

    def fault(self) -> Note | None:
        """Return the fault that a variant repairs, or else what changed lines do, or None.

        First, moved lines are put back, and each change is undone; then changed lines are repaired.
        By the notes of an incorrect element, a product isn't at fault if an element isn't read. If
        C is correct, tests of a loop are repaired, and lines that lead to what was found. A value
        that was never set tells more than changes undone.
        """
        if note := self._iterates():
            return note
        own = [change.at for change in self.changes if change.new]
        counts = [self.words[at][:2] for at in own if self.words[at][0] == "add"]
        own[:0] = [n for n, line in enumerate(self.words) if line[:2] in counts and n not in own]
        if any(note.kind == "unread" for note in self.notes):
            own = [at for at in own if not self._starts(at, PRODUCTS)]
        found = None if self.unset else self._best(self._undone())
        if not self.wrong.any():
            own = [at for at in own if at + 1 in self.near or self._starts(at, TESTS)]
        found = found or self._best(self._repairs(own))
        return found.fault if found else self._unread() or self._placed()

    def _iterates(self) -> Note | None:
        """Return a note if an iteration takes twice as many values of k as it is launched for, or
        as a line counts. It does if the kernel is correct with a double ``k_step``, or with that
        line written twice.
        """
        kernel = self.seen.kernel
        double = replace(kernel.convention, k_step=2 * kernel.k_step)
        if self.seen.sizes and self._is_right(replace(kernel, convention=double)):
            line, _ = find_statement(kernel.text)
            takes = f"an iteration takes {double.k_step} values of k"
            if line:
                return Note(f"Line {line} states k {kernel.k_step}, but {takes}.", line)
            return Note(f"C is correct only where k is a multiple of {double.k_step}: {takes}.")
        if any(note.kind == "repeated" for note in self.notes):
            for at, (op, to, *sources) in enumerate(self.words):
                twice = LineChange(at, (self.lines[at],) * 2)
                counts = op == "add" and to in sources
                if counts and self._repaired(self._text([twice])) == (self.wrong.sum(), 0):
                    text = f"Line {at + 1} counts half of the values of k that an iteration takes."
                    return Note(text, at + 1)
        return None

    def _unread(self) -> Note | None:
        """Return the changed line that overwrites a result before a line reads it; or, if no note
        names a changed line, the one whose own result no line reads.
        """
        named = any(self.own.intersection(note.lines) for note in self.notes)
        program = self.seen.kernel.program
        live = liveness(program)
        for at, i in enumerate(program.body):
            written = {*defines(i)}
            if not written or written & live[at + 1]:
                continue
            later = (j for j in program.body[at + 1 :] if written & {*defines(j)})
            over = next(later, i).line
            set_here = str(i.dest).replace("_", "")
            if over in self.own and over != i.line:
                text = f"Line {over} overwrites {set_here}, which line {i.line} set, before a line"
                return Note(f"{text} reads it.", over)
            if over == i.line in self.own and not named:
                return Note(f"Line {over} sets {set_here}, but no later line reads it.", over)
        return None

    def _placed(self) -> Note | None:
        """Return the changed lines that compute the place of an access outside, or of a race; None
        if a note says which changed line has another element.
        """
        own = self.own
        if any(note.kind in ("factor", "unread") and own & {*note.lines} for note in self.notes):
            return None
        for finding in self.places:
            line, kind = finding.line, finding.kind
            found = sorted(own & self.origins.found[line])
            if found and (kind != "race" or line not in own):
                first, *more = found
                same = self._same_place() if kind == "race" else ""
                lines = f"lines {ranged(found)} compute" if more else f"line {first} computes"
                lines = f"{same}, which {lines}" if same else f"{lines} its place"
                return Note(f"Line {line}, {kind}: {lines}.", 0 if more else first)
            if line in own and kind in ("load outside", "store outside"):
                return Note(f"Line {line}, {kind}: {finding.advice}", line)
        return None

    def _same_place(self) -> str:
        """Return which work-items first store to one place; "" if each has its own."""
        items: dict[int, list[int]] = defaultdict(list)
        for item, place in enumerate(self.origins.stored):
            items[place].append(item)
        some = next((alike for alike in items.values() if alike[1:]), [])
        return f"work-items {listed(some[:4])} store to one place" if some else ""

    def _starts(self, at: int, words: tuple[str, ...]) -> bool:
        return bare_line(self.lines[at]).startswith(words)

    # Changes undone

    def _undone(self) -> Iterator[Variant]:
        """Yield the variants with moved lines put back, then those with a change undone."""
        moved = [each for each in self.changes if each.moved is not None]
        yield from (self._moved(each.at, each.moved or 0, whole=False) for each in moved)
        for change in reversed(self.changes):
            said = ""
            if change.new and change.old:
                said = mistake(self.words[change.at], words_of(change.old[0]))
            if said:
                yield Variant((change,), _note(change.at, said), whole=False)
            elif change.old and not (change.old[1:] and not change.new and self.named):
                yield Variant((change,), self._without(change))

    def _moved(self, at: int, place: int, whole: bool) -> Variant:
        """Return the variant with a line moved to right before another."""
        moved = LineChange(at), LineChange(place, (self.lines[at],), 0)
        return Variant(moved, _note(at, misplaced(place)), whole)

    def _without(self, change: LineChange) -> Note:
        """Return the fault if the product is correct without a change."""
        if change.new:
            what = "the change in " * bool(change.old)
            text = f"Without {what}line {change.at + 1} the kernel is correct."
            return Note(text, change.at + 1)
        line, *more = change.old
        lines = f"{len(more) + 1} lines are" if more else "A line is"
        number = change.at + 1
        return Note(f"{lines} missing before line {number}: {line}{' …' * bool(more)}", number)

    def _text(self, undone: Iterable[LineChange]) -> str:
        """Return the text with changes undone."""
        slots = [*([line] for line in self.lines), []]
        for change in undone:
            slot = slots[change.at]
            if change.new:
                slot[-1:] = change.old
            else:
                slot[-1:-1] = change.old
        return "\n".join(line for slot in slots for line in slot)

    # Lines repaired

    def _repairs(self, places: Sequence[int]) -> Iterator[Variant]:
        """Yield the variants with one line repaired, or with several in the same way: first the
        lines that lead to what was found, and each line's likeliest repair. If the sum is stored
        elsewhere or nowhere, only a whole C tells which line is wrong. It does so, too, if one line
        alone was changed.
        """
        only_whole = (
            self.unset or len(self.changes) == 1 or any("store" in note.kind for note in self.notes)
        )
        alike: dict[Kind, dict[int, Variant]] = defaultdict(dict)
        all_words = [*self.words, *self.known]
        ranked: tuple[list[list[Variant]], ...] = ([], [])
        ends = [n for n, (op, *_) in enumerate(self.words) if op in ("whileloop", "endloop")]
        for at in places:
            is_separate = self._starts(at, SEPARATE)
            gone = LineChange(at)
            single = [Variant((gone,), self._without(gone))]
            for text, kinds, said, elsewhere in line_repairs(self.words[at], all_words):
                whole = only_whole or elsewhere or not is_separate
                single.append(Variant((LineChange(at, (text,)),), _note(at, said), whole))
                for kind in kinds if is_separate else ():
                    alike[kind].setdefault(at, single[-1])
            moves: list[Variant] = []
            is_traced = self._starts(at, TRACED)
            for place in ends[-1:] if is_traced else ends[::-1]:  # to the loop's end, or before it
                moves.append(self._moved(at, place, only_whole or not is_traced))
                if at > place:
                    alike[self.words[at][0], place].setdefault(at, moves[-1])
            single[LIKELY:LIKELY] = moves
            is_near = at + 1 in self.near or self._starts(at, ("lds_store",))
            ranked[not is_near].insert(0, single)
        groups = dict.fromkeys(tuple(group.values()) for group in alike.values())
        several = [_together(group) for group in groups if len(group) > 1]
        ranked[0].insert(0, several)
        for turn in chain.from_iterable(zip_longest(*lines) for lines in ranked):
            yield from filter(None, turn)

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
            elif not left and self._is_right(replace(self.seen.kernel, text=text, given=None)):
                return variant
        return best

    def _is_right(self, kernel: Kernel) -> bool:
        """Return whether nothing is found in a kernel, in place of one whose C is right."""
        with suppress(*FAILURES):
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


def _note(at: int, said: str) -> Note:
    """Return the note on a line, by its index."""
    return Note(f"Line {at + 1}{said}", at + 1)


def _result(given: Product, text: str, observers: Sequence[Observer] = ()) -> np.ndarray:
    """Return the C of a text; NaN if it can't be run."""
    with suppress(*FAILURES):
        made = replace(given.kernel, text=text, given=None)
        return replace(given, kernel=made).run(engine="interpreter", observers=observers)
    return np.full(given.expected.shape, np.nan)


def _together(variants: Sequence[Variant]) -> Variant:
    """Return the variant that repairs several lines in the same way."""
    first, *others = (variant.fault for variant in variants)
    lines = listed([fault.line for fault in others])
    text = f"{first.text} The same is wrong in line{'s' * (len(others) > 1)} {lines}."
    undone = tuple(change for variant in variants for change in variant.undone)
    return Variant(undone, Note(text, first.line))
