"""Find the fault of an incorrect kernel among the lines that its reader has changed.

The last correct text is known, or the given one that a step starts from. Each variant of the text
is one repair of one mistake: a change undone; a line deleted, or moved into the loop or out of it;
a word of a line replaced by one that other lines have there; or such a change, or an exchange of
two names, in several lines of one kind. A variant counts as the repair if each element of C that it
changes becomes correct, with the one that is shown; and if C is correct, if the checks find
nothing. So a line is never called wrong without a run that shows it. Where no variant is a repair,
a sentence only says which changed lines compute the address of an access outside.

Limitations
-----------
One mistake is found, or the same one in several lines, or several that affect different elements of
C; not two in one sum. For those, the notes on an incorrect element say what is certain.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np

from cypresskit.diagnosis.element_trace import ElementTrace, trace_element
from cypresskit.diagnosis.notes import Lines, Note, note
from cypresskit.diagnosis.verification import Verification, taking_twice_k, verify
from cypresskit.editing.line_repairs import (
    ARITHMETIC,
    REGISTER,
    TESTS,
    exchanges,
    likewise,
    line_repairs,
    mistake,
    register_of,
    words_of,
)
from cypresskit.editing.places import note_on_place, origins
from cypresskit.il import ILError
from cypresskit.il.cursor import bare_line
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.products import Product, make_product
from cypresskit.kernels.statement import find_statement, read_statement
from cypresskit.machine import KernelError
from cypresskit.machine.observer import Observer, StepEvent

FAILURES = ILError, KernelError, ValueError, TypeError  # of a text that can't be run
MAX_STEPS = 20_000  # of all variants that are run: at most some two seconds
MISSING = 4  # deleted lines that may be a mistake
LIKELY = 6  # repairs of a line, before which it isn't moved
SEED, LARGEST = 12, 99  # of the product's numbers: so large, none becomes correct by chance
OTHER = 7.0  # times the scalars that are shown, so that no literal is one of them by chance
#: What notes are about where no line that is there is wrong.
MISSING_KINDS = "missing", "unread", "count", "no store"
#: Lines of which each changes some elements of C: one may be right though others aren't.
SEPARATE = "sample", "lds_", *ARITHMETIC, "sub"


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
    that name its line. Without one, the line to look at is a changed one: of those that the first
    note names, or the only one that leads to the element.
    """
    faults = trace.faults if trace else ()
    if fault:
        beside = (each for each in faults if fault.line in each.lines)
        return [fault, *(each for each in beside if each.about != fault.about)]
    if not trace or not faults:
        return []
    first, *others = faults
    own = _own(known, trace)
    other = _other_sum(own, [*map(words_of, trace.kernel.text.splitlines())])
    if other and (other.line not in first.lines or first.about == "sum"):
        return [other, *faults]
    named = own.intersection(first.lines)
    if named and first.line not in (0, *named):
        first = replace(first, line=max(named))
    mine = own & trace.leads
    if len(mine) == 1 and not named and first.about not in MISSING_KINDS:
        (line,) = mine
        first = replace(first, line=line, yours=line)
    return [first, *others]


def _own(known: str, trace: ElementTrace | None) -> set[int]:
    """Return the changed lines of a traced kernel."""
    if not trace or not known:
        return set()
    return _own_lines(_changes(known.splitlines(), trace.kernel.text.splitlines()))


def _other_sum(own: Iterable[int], lines: Sequence[Sequence[str]]) -> Note | None:
    """Return a note on the first of the reader's lines that adds to another register's sum than it
    writes; or None.
    """
    sums = {
        n: (register_of(words[1]), [*map(register_of, words[4:] or words[2:])])
        for n, words in enumerate(lines, 1)
        if words[0] in ("mad", "dmad", "add", "dadd") and REGISTER.match(words[-1])
    }
    held = {to for to, added in sums.values() if to in added}
    for n in sorted(own):
        to, added = sums.get(n, ("", ()))
        for place, other in enumerate(added, 4 if lines[n - 1][4:] else 2):
            # A register may hold a sum times alpha plus another, or two sums
            is_sum = to in held or (place == 4 and REGISTER.match(lines[n - 1][3]))
            if is_sum and other in held and to not in added:
                words = lines[n - 1]
                right = [*words[:place], to, *words[place + 1 :]]
                return mistake(n, [*words], right)
    return None


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


class _Search:
    """The search for a variant of a text that repairs the product."""

    def __init__(self, seen: Verification, known: str, trace: ElementTrace | None) -> None:
        assert seen.size is not None
        self.seen, self.size, self.lines = seen, seen.size, seen.kernel.text.splitlines()
        self.words = [*map(words_of, self.lines)]
        self.known_text = known
        self.known = [*map(words_of, known.splitlines())]
        self.changes = _changes(known.splitlines(), self.lines)
        self.own = _own_lines(self.changes)
        self.notes = trace.faults if trace else ()
        #: Registers whose components are addresses or coordinates
        text = "\n".join(map(bare_line, self.lines))
        self.addresses = {*re.findall(r"(?:g\[|sample.* )(r\d+)\b", text)}
        self.unset = any(f.kind == "uninitialised" for f in seen.findings)
        # The first of them are enough to name a line
        self.places = [f for f in seen.findings if f.kind.endswith(("outside", "race"))][:4]
        terms = trace.terms if trace else ()
        self.near = {*sum((term.lines for term in terms if not term.right), ())}
        self.near.update(*(each.lines for each in self.notes))
        lines = self.near | {finding.line for finding in self.places}
        body = seen.kernel.program.body
        self.near |= origins(seen.kernel.program, (i for i in body if i.line in lines))
        self.near |= {i.line for i in body if i.op.kind == "lds" and i.op.store}
        self.leads = trace.leads if trace else frozenset()
        #: The registers that these lines read or write
        self.reach = {name for n in self.leads for name in map(register_of, self.words[n - 1][1:])}
        alpha = seen.alpha if seen.alpha == 1 else OTHER * seen.alpha
        beta = OTHER * seen.beta
        self.given = make_product(seen.kernel, seen.size, alpha, beta, SEED, LARGEST)
        counted = StepCount()
        self.before = _result(self.given, seen.kernel.text, counted)
        self.step_cost = BYTES[seen.kernel.precision] // 4  # doubles take twice as long
        self.steps = counted.steps  # of the latest run
        self.steps_left = MAX_STEPS
        self.wrong = self.given.wrong(self.before)

    def fault(self) -> Note | None:
        """Return the fault that a variant repairs, or else what changed lines do, or None.

        First, moved lines are put back, and each change is undone; then changed lines are repaired.
        If C is correct, tests of a loop are repaired, and lines that lead to what was found. A
        value that was never set tells more than changes undone.
        """
        kinds = [each.about for each in self.notes]
        if "repeated" in kinds and kinds[0] == "count":
            return self.notes[0]
        if iterates := self._iterates():
            return iterates
        own = [change.at for change in self.changes if change.new]
        counts = [self.words[at][:2] for at in own if self.words[at][0] == "add"]
        own[:0] = [n for n, line in enumerate(self.words) if line[:2] in counts and n not in own]
        found = None if self.unset else self._best(self._undone(self.changes))
        if not self.wrong.any():
            tests = [at for at in own if self._starts(at, TESTS)]
            found = found or self._best(self._repairs(tests))
            own = [at for at in own if at + 1 in self.near]
        found = found or self._best(self._repairs(own))
        if found and found.fault.kind == "exchange":
            return self._either(found.fault, own)
        return found.fault if found else self._placed()

    def _either(self, found: Note, places: Sequence[int]) -> Note:
        """Return the note on an exchange, with another that repairs the kernel as well: whole rows
        are exchanged by their products, or by their stores.
        """
        variants = chain.from_iterable(self._alike(places))
        exchanged = (each for each in variants if each.fault.kind == "exchange")
        other = self._best(each for each in exchanged if not {*each.fault.lines} & {*found.lines})
        if not other:
            return found
        more = {"others": Lines(other.fault.lines), "other_names": other.fault.values["names"]}
        return replace(found, values=found.values | more)

    def _iterates(self) -> Note | None:
        """Return a note if the kernel is correct as it was stated before, or if an iteration takes
        twice as many values of k as it is launched for: if it is correct with a double ``k_step``.
        """
        kernel = self.seen.kernel
        line, stated = find_statement(kernel.text)
        before = find_statement(self.known_text)[1]
        if stated and before not in ("", stated):
            convention = read_statement(self.known_text, kernel.name)
            if convention and self._is_right(replace(kernel, convention=convention)):
                return note("stated", line, stated=stated, before=before)
        double, found = taking_twice_k(kernel)
        return found if self.seen.sizes and self._is_right(double) else None

    def _placed(self) -> Note | None:
        """Return the changed lines that compute the place of an access outside, or of a race; None
        if a note says which changed line has another element.
        """
        own = self.own
        if any(
            each.about in ("factor", "unread") and own & {*each.lines[:1]} for each in self.notes
        ):
            return None
        for finding in self.places:
            if place := note_on_place(finding, self.given.kernel.program, own):
                return place
        return None

    def _target(self, at: int) -> str:
        return register_of(self.words[at][1])

    def _starts(self, at: int, words: tuple[str, ...]) -> bool:
        return bare_line(self.lines[at]).startswith(words)

    # Changes undone

    def _undone(self, changes: Sequence[LineChange]) -> Iterator[Variant]:
        """Yield the variants with moved lines put back, then those with a change undone."""
        moved = [each for each in changes if each.moved is not None]
        yield from (self._moved(each.at, each.moved or 0, whole=False) for each in moved)
        for change in reversed(changes):
            fault = None
            if change.new and change.old:
                fault = mistake(change.at + 1, self.words[change.at], words_of(change.old[0]))
            for line in change.old if change.old[1:] else ():
                one = change._replace(old=(line,))
                yield Variant((one,), self._without(one))
            if fault:
                yield Variant((change,), fault, whole=False)
            elif change.old[MISSING:] and not change.new:
                continue  # it is being written anew
            elif change.old:
                yield Variant((change,), self._without(change))

    def _moved(self, at: int, place: int, whole: bool) -> Variant:
        """Return the variant with a line moved to right before another."""
        moved = LineChange(at), LineChange(place, (self.lines[at],), 0)
        return Variant(moved, note("place", at + 1, before=place + 1), whole)

    def _without(self, change: LineChange) -> Note:
        """Return the fault if the product is correct without a change."""
        if change.new:
            return note("undone" if change.old else "without", change.at + 1)
        kind = "lines missing" if change.old[1:] else "line missing"
        return note(kind, change.at + 1, text=change.old[0], count=len(change.old))

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
        """Yield the variants without a line, and then with one repaired: first the lines that lead
        to what was found, and each line's likeliest repair. If the sum is stored elsewhere or
        nowhere, or if a store is outside, only a whole C tells which line is wrong. It does so,
        too, if one line alone was changed, and for a line that computes an address.
        """
        for at in places:  # a counter's place tells more than its first value
            if self.words[at][0] == "add" and self.words[at][1] in self.words[at][2:]:
                ends = [n for n, (op, *_) in enumerate(self.words) if op == "endloop" and n > at]
                yield from (self._moved(at, place, whole=True) for place in ends[:1])
        gone = map(LineChange, reversed(places))  # lines that the reader didn't write come last
        yield from (Variant((line,), self._without(line)) for line in gone)
        only_whole = (
            self.unset
            or len(self.changes) == 1
            or any("store" in each.about for each in self.notes)
            or any(finding.kind == "store outside" for finding in self.places)
        )
        all_words = [*self.words, *self.known]
        ranked: tuple[list[list[Variant]], ...] = ([], [])
        ends = [n for n, (op, *_) in enumerate(self.words) if op in ("whileloop", "endloop")]
        for at in places:
            single = []
            is_separate = self._starts(at, SEPARATE) and self._target(at) not in self.addresses
            for text, fault, elsewhere in line_repairs(at + 1, self.words[at], all_words):
                whole = only_whole or elsewhere or not is_separate
                # A coordinate that is 0 by chance is right for the first blocks
                whole |= self._starts(at, ("sample",)) and words_of(text)[2] != self.words[at][2]
                single.append(Variant((LineChange(at, (text,)),), fault, whole))
            to = ends[-1:] if is_separate else ends[::-1]  # to the loop's end, or before it
            moves = [self._moved(at, place, only_whole or not is_separate) for place in to]
            single[LIKELY:LIKELY] = moves
            ranked[at + 1 not in self.near].insert(0, single)
        ranked[0].extend(self._alike(places))
        for turn in chain.from_iterable(zip_longest(*lines) for lines in ranked):
            yield from filter(None, turn)

    def _alike(self, places: Sequence[int]) -> Iterator[list[Variant]]:
        """Yield, for each kind of line, the variants with one mistake repaired in several."""
        kinds: dict[str, list[int]] = {}
        for at in sorted(places):
            kinds.setdefault(self.words[at][0].partition("(")[0], []).append(at)
        for group in kinds.values():
            lines = [self.words[at] for at in group]
            variants: list[Variant | None] = []
            for names, made in exchanges(lines) if group[1:] else ():
                variants.append(self._together(group, made, note("exchange", names=names)))
            repairs = line_repairs(group[0] + 1, lines[0], self.words) if group[1:] else ()
            for text, fault, _ in repairs:
                made = [likewise(lines[0], words_of(text), words) for words in lines]
                variants.append(self._together(group, made, fault))
            yield [*filter(None, variants)]

    def _together(
        self, places: Sequence[int], right: Sequence[Sequence[str]], fault: Note
    ) -> Variant | None:
        """Return the variant with several lines changed, or None for fewer than two."""
        pairs = [(at, words) for at, words in zip(places, right) if words != self.words[at]]
        if not pairs[1:]:
            return None
        changed = tuple(LineChange(at, (f"{op} {', '.join(words)}",)) for at, (op, *words) in pairs)
        lines = tuple(at + 1 for at, _ in pairs)
        alike = lines[1:] if fault.kind != "exchange" else ()
        return Variant(changed, replace(fault, line=lines[0], lines=lines, alike=alike))

    # Variants tried

    def _best(self, variants: Iterable[Variant]) -> Variant | None:
        """Return the variant that makes C correct or, unless only a whole C counts, most of it."""
        best, most = None, 0 if self.wrong.any() else -1
        for variant in variants:
            if self.steps_left < 0:
                break
            if not self._may_help(variant):
                continue
            text = self._text(variant.undone)
            repaired, left = self._repaired(text)
            if repaired <= most:
                continue
            if left and not variant.whole:
                best, most = variant, repaired
            elif not left and self._is_right(replace(self.seen.kernel, text=text, given=None)):
                return variant
        return best

    def _may_help(self, variant: Variant) -> bool:
        """Return whether a variant changes a line that leads to the element that is shown, writes a
        register of those lines, or stores elsewhere: only then can the element become correct.
        """
        if not self.leads:
            return True
        for change in variant.undone:
            if change.new and change.at + 1 in self.leads:
                return True
            to = self.words[change.at][1] if change.new else ""
            for put in (words_of(line)[1] for line in change.old):
                name = register_of(put)
                is_place = REGISTER.match(name) or name.startswith(("g[", "o"))
                if not is_place or (put != to and (name in self.reach or name[0] != "r")):
                    return True
        return False

    def _is_right(self, kernel: Kernel) -> bool:
        """Return whether nothing is found in a kernel, in place of one whose C is right."""
        self.steps_left -= 4 * self.steps * self.step_cost
        with suppress(*FAILURES):
            alpha, beta = self.seen.alpha, self.seen.beta
            found = verify(kernel)
            if alpha == found.alpha and beta in (found.beta, 0):  # its products had these scalars
                return found.right
            return found.right and verify(kernel, alpha=alpha, beta=beta).right
        return False

    def _repaired(self, text: str) -> tuple[int, int]:
        """Return how many elements of a product a text makes correct, and how many it leaves
        incorrect; (0, 0) if it changes one of these, or leaves the one that is shown.
        """
        counted = StepCount()
        result = _result(self.given, text, counted)
        self.steps = counted.steps
        self.steps_left -= self.steps * self.step_cost
        wrong = self.given.wrong(result)
        if (wrong & (result != self.before) & ~np.isnan(self.before)).any():
            return 0, 0
        if (shown := self.seen.wrong) and wrong[..., shown.row, shown.column].any():
            return 0, 0
        return int((self.wrong & ~wrong).sum()), int(wrong.sum())


class StepCount(Observer):
    """Counts the instructions that are run."""

    def __init__(self) -> None:
        self.steps = 0

    def step(self, event: StepEvent) -> None:
        self.steps += 1


def _result(given: Product, text: str, *observers: Observer) -> np.ndarray:
    """Return the C of a text; NaN if it can't be run."""
    with suppress(*FAILURES):
        made = replace(given.kernel, text=text, given=None)
        return replace(given, kernel=made).run(engine="interpreter", observers=observers)
    return np.full(given.expected.shape, np.nan)
