"""Find the fault of an incorrect kernel among the lines that its reader has changed.

The last correct text is known, or the given one that a step starts from. Each variant of the text
is one repair: a moved line put back, a change undone, a line deleted or moved, one word replaced.
A variant counts only if all of C becomes correct, and if the checks then find nothing. So a line is
never called wrong without a run that shows it. Where no variant is a repair, the notes on an
incorrect element say what is certain.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import chain, zip_longest
from typing import NamedTuple

from cypresskit.diagnosis.element_trace import ElementTrace, trace_element
from cypresskit.diagnosis.notes import Note, note
from cypresskit.diagnosis.verification import Verification, verify
from cypresskit.il import ILError
from cypresskit.il.cursor import bare_line
from cypresskit.kernels.products import make_product
from cypresskit.machine import KernelError
from cypresskit.machine.observer import Observer, StepEvent

FAILURES = ILError, KernelError, ValueError, TypeError  # of a text that can't be run
MAX_STEPS = 20_000  # of all variants that are run: at most some two seconds
MISSING = 4  # deleted lines that may be a mistake
SEED, LARGEST = 12, 99  # of the product's numbers: so large, none becomes correct by chance
OTHER = 7.0  # times the scalars that are shown, so that no literal is one of them by chance
#: What notes are about where no line that is there is wrong.
MISSING_KINDS = "missing", "unread", "count", "no store"
#: Opcodes that are taken for each other.
CONFUSED = (
    ("ge", "lt"),
    ("break_logicalz", "break_logicalnz"),
    ("add", "iadd", "sub", "mul", "ior"),
    ("ishl", "ushr"),
    ("iand", "ior"),
    ("mad", "dmad"),
)


class LineChange(NamedTuple):
    """A changed line: its index in the new lines, and the ``old`` lines in place of which it came;
    ``new`` is 0 where old lines were deleted before it. ``moved``: the index before which it stood.
    """

    at: int
    old: tuple[str, ...] = ()
    new: int = 1
    moved: int | None = None


Variant = tuple[Note, tuple[LineChange, ...]]  # the fault that undoing these changes would repair


def find_changed_fault(seen: Verification, known: str, trace: ElementTrace | None) -> Note | None:
    """Return the fault of an incorrect kernel among the lines that differ from a ``known`` text, or
    None. ``trace``: as of ``trace_wrong``.
    """
    endless = any(finding.kind == "endless loop" for finding in seen.findings)
    if seen.right or seen.size is None or endless or not known:
        return None
    kinds = [each.about for each in trace.faults] if trace else []
    if kinds[:1] == ["count"] and "repeated" in kinds:
        return None  # the trace says it best
    lines = seen.kernel.text.splitlines()
    changes = _changes(known.splitlines(), lines)
    unset = any(finding.kind == "uninitialised" for finding in seen.findings)
    undone = () if unset else _undone(lines, changes)  # that a value was never set tells more
    own = [change.at for change in changes if change.new]
    leads = trace.leads if trace and seen.wrong else ()
    near = [at for at in own if not leads or at + 1 in leads]
    is_repair = _Trial(seen)
    for fault, variant in chain(undone, _repairs(lines, near, own)):
        if is_repair.steps_left < 0:
            break
        if is_repair(_text(lines, variant)):
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
    that name its line. Without one, the line to look at is a changed one: of those that the first
    note names, or the only one that leads to the element.
    """
    faults = trace.faults if trace else ()
    if fault:
        return [fault, *(each for each in faults if fault.line in each.lines)]
    if not trace or not faults:
        return []
    first, *others = faults
    changes = _changes(known.splitlines(), trace.kernel.text.splitlines()) if known else ()
    own = {change.at + 1 for change in changes if change.new}
    named = own.intersection(first.lines)
    if named and first.line not in (0, *named):
        first = replace(first, line=max(named))
    mine = own & trace.leads
    if len(mine) == 1 and not named and first.about not in MISSING_KINDS:
        (line,) = mine
        first = replace(first, line=line, yours=line)
    return [first, *others]


def _words(line: str) -> list[str]:
    """Return the words of a line: the opcode, the result, and the sources."""
    op, _, operands = bare_line(line).partition(" ")
    return [op.lower(), *(operand.strip() for operand in operands.split(","))]


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
        words = _words(new[change.at])
        alike = [] if change.old else [some for some in gone if _words(some[1])[:2] == words[:2]]
        for place, line in alike if len(alike) == 1 else ():  # its opcode and result
            gone.remove((place, line))
            same = _words(line) == words
            changes[n] = LineChange(change.at, () if same else (line,), 1, place if same else None)
    deleted: dict[int, tuple[str, ...]] = {}
    for place, line in gone:
        deleted[place] = *deleted.get(place, ()), line
    changes += [LineChange(*each, 0) for each in deleted.items()]
    return sorted(changes, key=lambda change: change[:3])


def _undone(lines: Sequence[str], changes: Sequence[LineChange]) -> Iterator[Variant]:
    """Yield the variants with moved lines put back, then those with a change undone."""
    yield from (_moved(lines, c.at, c.moved) for c in changes if c.moved is not None)
    for change in reversed(changes):
        at, old = change.at + 1, change.old
        if change.new and old:
            words, right = _words(lines[change.at]), _words(old[0])
            wrong = [one for one, other in zip(words, right) if one != other]
            is_word = len(words) == len(right) and not wrong[1:]
            fault = note("else", at, wrong=wrong[0]) if is_word else note("undone", at)
            yield fault, (change,)
        elif old and not old[MISSING:]:  # more of them are being written anew
            kind = "lines missing" if old[1:] else "line missing"
            yield note(kind, at, text=old[0], count=len(old)), (change,)


def _moved(lines: Sequence[str], at: int, place: int) -> Variant:
    """Return the variant with a line moved to right before another."""
    moved = LineChange(at), LineChange(place, (lines[at],), 0)
    return note("place", at + 1, before=place + 1), moved


def _repairs(lines: Sequence[str], near: Sequence[int], own: Sequence[int]) -> Iterator[Variant]:
    """Yield the variants without a line, or with it at its loop's end, and then with one word
    replaced: each line's likeliest repair first. An opcode is also replaced in all ``own`` lines.
    """
    ends = [n for n, line in enumerate(lines) if bare_line(line) == "endloop"]
    for at in reversed(near):
        yield note("without", at + 1), (LineChange(at),)
        if not bare_line(lines[at]).startswith("break"):
            yield from (_moved(lines, at, end) for end in ends[:1])
    for turn in zip_longest(*(_replaced(lines, at, own) for at in reversed(near))):
        yield from filter(None, turn)


def _replaced(lines: Sequence[str], at: int, own: Sequence[int]) -> Iterator[Variant]:
    """Yield the variants of a line with another opcode, or with one operand replaced: by its
    components in another order, by another component, or by the sum that the line writes; or
    written without a mask.
    """
    words = _words(lines[at])
    op = words[0]
    for other in (other for group in CONFUSED if op in group for other in group if other != op):
        alike = [n for n in own if _words(lines[n])[0] == op]
        for some in ([at], alike) if alike[1:] and at == alike[0] else ([at],):
            fault = replace(
                note("else", at + 1, wrong=op), alike=tuple(n + 1 for n in some if n != at)
            )
            yield (
                fault,
                tuple(LineChange(n, (lines[n].lower().replace(op, other, 1),)) for n in some),
            )
    if op in ("ge", "lt"):  # later, or earlier, by one iteration
        turned = f"{'lt' if op == 'ge' else 'ge'} {', '.join([words[1], *words[:1:-1]])}"
        yield note("else", at + 1, wrong=op), (LineChange(at, (turned,)),)
    for place in (*range(2, len(words)), 1):
        name, _, components = (word := words[place]).rpartition(".")
        letters = [components[1::-1] + components[2:]] if components[1:] else "xyzw"
        put = [f"{name}.{some}" for some in letters if name] + [words[1]]
        put = put if place > 1 else [name] * bool(name)
        for other in put:
            if other != word:
                text = f"{op} {', '.join([*words[1:place], other, *words[place + 1 :]])}"
                yield note("else", at + 1, wrong=word), (LineChange(at, (text,)),)


def _text(lines: Sequence[str], undone: Sequence[LineChange]) -> str:
    """Return the text with changes undone."""
    slots = [*([line] for line in lines), []]
    for change in undone:
        slot = slots[change.at]
        if change.new:
            slot[-1:] = change.old
        else:
            slot[-1:-1] = change.old
    return "\n".join(line for slot in slots for line in slot)


class _Trial(Observer):
    """Tells whether a text is a repair: all of C is correct, and nothing is found."""

    def __init__(self, seen: Verification) -> None:
        assert seen.size is not None
        alpha = seen.alpha if seen.alpha == 1 else OTHER * seen.alpha
        beta = OTHER * seen.beta
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
            self.steps_left -= 4 * (before - self.steps_left)
            alpha, beta = self.seen.alpha, self.seen.beta
            found = verify(kernel)
            if alpha == found.alpha and beta in (found.beta, 0):
                return found.right
            return found.right and verify(kernel, alpha=alpha, beta=beta).right
        return False
