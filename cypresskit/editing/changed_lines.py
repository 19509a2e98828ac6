"""Find the fault of an incorrect kernel among the lines that its reader has changed.

The last correct text is known, or the given one that a step starts from. The trace of an incorrect
element tells which changed lines are part of its sum. Each variant of the text is one repair of one
mistake there: a change undone, another opcode, component or register. A variant counts as the
repair if each element of C that it changes becomes correct, with the one that is shown; and if C is
correct, if the checks find nothing. So a sentence never blames a line without a run that shows it.

Limitations
-----------
One mistake is found, or several that affect different elements of C; not two in one sum. For those,
a sentence names the changed line that is part of the sum.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import permutations, product, zip_longest
from time import process_time
from typing import NamedTuple

import numpy as np

from cypresskit.diagnosis.element_trace import ElementTrace, trace_element
from cypresskit.diagnosis.verification import Verification, verify
from cypresskit.il import ILError
from cypresskit.il.cursor import bare_line
from cypresskit.kernels import Kernel
from cypresskit.kernels.products import Product, make_product
from cypresskit.machine import KernelError
from cypresskit.tables import listed

FAILURES = ILError, KernelError, ValueError, TypeError  # of a text that can't be run
SECONDS = 1.5  # of processor time for all variants of a text
MAX_UNDONE = 12  # of more new lines, none is tried without: most of a kernel is new
SEED, LARGEST = 12, 99  # of the product's numbers: so large, none becomes correct by chance
#: Tests of a loop, and their opposites.
TESTS = {"ge": "lt", "lt": "ge", "break_logicalz": "break_logicalnz"}
TESTS |= {opposite: op for op, opposite in TESTS.items()}
PRODUCTS = "mad", "dmad", "mul", "dmul"
ARITHMETIC = *PRODUCTS, "add", "dadd"
DOTS = "dp2", "dp3", "dp4"
TRACED = "sample", *PRODUCTS[:2]  # lines that the trace of an element names
SHOULD = re.compile(r"Line (\d+) (\w+) ([^;]+); it should \w+ ([^.]+)\.")
HOLDS = r"This sum has \3 in place of \4: line \1 \2 it."
Terms = Iterable[tuple[bool, Collection[int]]]  # of a sum: whether each is right, and its lines
#: In such a sentence.
STORES = "stores the sum of"
UNREAD, NOWHERE = "no line reads", "No work-item stores"
OFFSETS = ("", *map("_aoffimmi({})".format, ("1,0,0", "0,1,0", "1,1,0", "0,2,0", "1,2,0")))
REGISTER = re.compile(r"r\d")
FETCH = re.compile(r"sample_resource\(([01])\)_sampler\(\1\)")


class LineFault(NamedTuple):
    """A line of the text, and what is wrong with it, in a sentence."""

    line: int
    message: str


class LineChange(NamedTuple):
    """A changed line: its index in the new lines, and the ``old`` lines in place of which it came;
    ``new`` is 0 where old lines were deleted before it.
    """

    at: int
    old: tuple[str, ...]
    new: int


class Variant(NamedTuple):
    """A text, and the fault that it would repair: the line, and a sentence."""

    text: str
    fault: LineFault


def find_changed_fault(seen: Verification, known: str) -> LineFault | None:
    """Return the fault of an incorrect kernel among the lines that differ from a ``known`` text,
    or None if no repair of one line is found.
    """
    lines = seen.kernel.text.splitlines()
    changes = _changes(known.splitlines(), lines)
    endless = any(finding.kind == "endless loop" for finding in seen.findings)
    if seen.right or seen.size is None or endless or not known:
        return None
    trace = trace_wrong(seen)
    notes, terms = (trace.notes, trace.terms) if trace else ((), ())
    wrong = {line for term in terms if not term.right for line in term.lines}
    own = {change.at + 1 for change in changes if change.new}
    if any(STORES in note and _numbers(note) & own for note in notes):
        return None
    traced = wrong.union(*map(_numbers, notes))
    return _Search(seen, lines).fault(changes, traced, " ".join(notes))


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


def lead_to_fault(
    fault: LineFault | None, notes: Sequence[str], terms: Terms, known: str, made: Kernel
) -> tuple[list[str], int]:
    """Return the notes of an element's trace, first of them the fault, and its line; 0 if that note
    is the trace's own. A fault leaves only the notes that name its line; and of a line that is as
    in the ``known`` text none says what it should do.
    """
    if fault:
        notes = [fault.message, *(note for note in notes if fault.line in _numbers(note))]
        if "another" in fault.message:  # a note may say which
            notes.sort(key=lambda note: not SHOULD.match(note))
        return notes, fault.line
    changes = _changes(known.splitlines(), made.text.splitlines()) if known else ()
    own = {change.at + 1 for change in changes if change.new}
    if own:
        notes = [note if _numbers(note) & own else SHOULD.sub(HOLDS, note) for note in notes]
    right = {line for is_right, lines in terms if is_right for line in lines}
    red = next((lines for is_right, lines in terms if not is_right), ())
    mine = sorted(own.intersection(red) - right)
    named = _numbers(notes[0])
    if not mine or not named or named & own or UNREAD in notes[0]:
        return [*notes], 0
    said = notes[0].partition(": check")[0].removesuffix(".")
    return [f"{said}. Your lines in that sum: {listed(mine)}.", *notes[1:]], mine[-1]


def _numbers(sentence: str) -> set[int]:
    """Return the numbers of lines that a sentence names."""
    found = re.findall(r"\b[Ll]ines? (\d+)(?: and (\d+))?", sentence)
    return {int(number) for pair in found for number in pair if number}


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
    """The search for a variant of ``lines`` that repairs the product."""

    def __init__(self, seen: Verification, lines: list[str]) -> None:
        assert seen.size is not None
        self.seen, self.lines = seen, lines
        self.end = process_time() + SECONDS
        self.given = make_product(seen.kernel, seen.size, seen.alpha, seen.beta, SEED, LARGEST)
        self.before = _result(self.given, seen.kernel.text)
        self.wrong = self.given.wrong(self.before)

    def fault(
        self, changes: Sequence[LineChange], traced: set[int], notes: str
    ) -> LineFault | None:
        """Return the fault that a variant repairs, or None. First, moved lines are put back, and
        each change is undone; then a word of a changed line is replaced, of those first that the
        trace of an incorrect element names. By its ``notes``, a product isn't at fault if an
        element isn't read; if it isn't stored, only a whole C tells which of the lines that compute
        its address is wrong. Nor is a part of C enough if one line alone was changed. If C is
        correct, tests of a loop are repaired.
        """
        own = [change.at for change in changes if change.new]
        is_alone = len(changes) == 1
        suspects = {at for at in own if at + 1 in traced or not self._starts(at, TRACED)}
        if UNREAD in notes:
            own = [at for at in own if not self._starts(at, PRODUCTS)]
            suspects = {*own}
        few = suspects if len(own) <= MAX_UNDONE else ()
        changes = [each for each in reversed(changes) if each.old or each.at in few]
        moves = [pair for pair in permutations(changes, 2) if few and self._said(*pair)]
        likely = [self._undo(*some) for some in (*moves, *zip(changes))]
        found = self._best(likely, whole=True)
        if not self.wrong.any():
            own = [at for at in own if self._starts(at, (*TESTS,))]
            suspects = {*own}
        for part in suspects, {*own} - suspects:
            repairs = [self._repairs(at) for at in sorted(part)]
            in_turn = (each for turn in zip_longest(*repairs) for each in turn if each)
            found = found or self._best(in_turn, whole=is_alone or NOWHERE in notes)
        return found and found.fault

    def _starts(self, at: int, opcodes: tuple[str, ...]) -> bool:
        return self.lines[at].strip().startswith(opcodes)

    def _undo(self, first: LineChange, *others: LineChange) -> Variant:
        """Return the text without a change, or with a moved line put back."""
        slots = [*([line] for line in self.lines), []]
        for change in first, *others:
            slot = slots[change.at]
            if change.new:
                slot[-1:] = change.old
            else:
                slot[:0] = self._lost(change) or change.old
        text = "\n".join(line for slot in slots for line in slot)
        number = first.at + 1
        if said := self._said(first, *others):
            message = f"Line {number}{said}"
        elif not first.new:
            line = (*self._lost(first), *first.old)[0]
            message = f"A line is missing before line {number}: {line}"
        else:
            what = "the change in this line" if first.old else "this line"
            message = f"Line {number}: the kernel is correct without {what}."
        return Variant(text, LineFault(number, message))

    def _lost(self, change: LineChange) -> list[str]:
        """Return the lines that a change deleted and that stand nowhere else."""
        held = {*map(bare_line, self.lines)}
        return [line for line in change.old if line not in held]

    def _said(self, new: LineChange, *others: LineChange) -> str:
        """Return what is wrong in a new line that was another one, here or elsewhere; or ""."""
        old = [line for change in (new, *others) for line in change.old]
        if not new.new or len(old) != 1 or any(change.new for change in others):
            return ""
        line = self.lines[new.at]
        if bare_line(line) != old[0]:
            return _mistake(_parts(line), _parts(old[0]))
        place = f"right before line {others[0].at + 1}"
        return f" is in the wrong place: the kernel is correct if it comes {place}."

    def _repairs(self, at: int) -> Iterator[Variant]:
        """Yield the text with a word of a line replaced, the likeliest first."""
        words = _parts(self.lines[at])
        for right in _repaired_words(words, [*map(_parts, self.lines)]):
            if right == words:
                continue
            text = f"{right[0]} {', '.join(right[1:])}"
            lines = [*self.lines[:at], text, *self.lines[at + 1 :]]
            message = f"Line {at + 1}{_mistake(words, right)}"
            yield Variant("\n".join(lines), LineFault(at + 1, message))

    def _best(self, variants: Iterable[Variant], whole: bool = False) -> Variant | None:
        """Return the variant that makes C correct or, unless only a ``whole`` C counts, most of
        it.
        """
        best, most = None, 0 if self.wrong.any() else -1
        for variant in variants:
            if process_time() > self.end:
                break
            repaired, left = self._repaired(variant.text)
            if repaired <= most:
                continue
            if left and not whole:
                best, most = variant, repaired
            elif not left and self._is_right(variant.text):
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


def _result(given: Product, text: str) -> np.ndarray:
    """Return the C of a text; NaN if it can't be run."""
    with suppress(*FAILURES):
        made = replace(given.kernel, text=text, given=None)
        return replace(given, kernel=made).run(engine="interpreter")
    return np.full(given.expected.shape, np.nan)


# -- words of a line

Words = list[str]  # the opcode, the result, and the sources


def _parts(line: str) -> Words:
    """Return the words of a line."""
    op, _, operands = bare_line(line).partition(" ")
    return [op, *(operand.strip() for operand in operands.split(","))]


def _split(operand: str) -> tuple[str, str]:
    """Return a register, or an element of memory such as ``g[r1.x]``, and its components."""
    closed = operand.rfind("]") + 1
    name, _, components = operand[closed:].partition(".")
    return operand[:closed] + name, components


def _name(operand: str) -> str:
    return _split(operand)[0]


def _repaired_words(words: Words, lines: Sequence[Words]) -> Iterator[Words]:
    """Yield the words of a line with one replaced by what such lines have there, or two exchanged,
    the likeliest first.
    """
    op, to, *sources = words
    is_double = op.startswith("d") and op not in DOTS
    letters = ("xy", "zw") if is_double else ("x", "y", "z", "w")
    own = to if is_double else _name(to)
    alike = [other for other in lines if other[0] == op and len(other) == len(words)]

    def put(place: int, word: str) -> Words:
        return [*words[:place], word, *words[place + 1 :]]

    if op == "sub":
        yield put(0, "add")
    if op in DOTS:
        first, second = map(_name, sources)
        yield from (["mad", to, f"{first}.{some}", second, own] for some in letters)
    for place, source in enumerate(sources, 2):
        name, components = _split(source)
        if len(components) > 1:
            yield put(place, f"{name}.{components[1::-1]}{components[2:]}")
    if op in TESTS:
        for test, operands in product((TESTS[op], op), (sources, sources[::-1])):
            yield [test, to, *operands]
    if fetch := FETCH.match(op):
        factors = {_name(source) for line in lines if line[0] in PRODUCTS for source in line[2:4]}
        yield from (put(1, name) for name in sorted(factors - {_name(line[1]) for line in lines}))
        other = "10"[int(fetch[1])]
        yield put(0, op.replace(fetch[0], f"sample_resource({other})_sampler({other})"))
        for offset in OFFSETS:
            yield put(0, fetch[0] + offset)
    is_product = op in ARITHMETIC and _name(to) not in map(_name, sources[:2])
    if is_product:
        yield ["dmad" if is_double else "mad", to, *sources[:2], own]
        masks = {_split(other[1])[1] for other in alike} | {*_split(to)[1]}
        for mask in sorted(masks - {"_"}):
            yield put(1, f"{_name(to)}.{mask}".rstrip("."))
    for place, source in enumerate(sources[:2], 2):
        if source == to:
            continue  # it counts
        name, components = _split(source)
        for some in (*letters, *[""] * is_product):
            if len(components) <= len(letters[0]):
                yield put(place, f"{name}.{some}".rstrip("."))
        others = sorted({_name(other[place]) for other in alike})
        for other in others if name[0] != "r" else filter(REGISTER.match, others):
            yield put(place, source.replace(name, other))
            if is_product:
                yield put(place, other)
    if is_product and len(sources) == 3:
        first, second = map(_name, sources[:2])
        for some in letters:
            yield [op, to, f"{second}.{some}", first, sources[2]]


def _mistake(words: Words, right: Words) -> str:
    """Return what is wrong in a line whose words should be others, or "" if much is."""
    op = words[0]
    places = [place for place, pair in enumerate(zip(words, right)) if pair[0] != pair[1]]
    if op in TESTS and right[0] in TESTS and {*words[1:]} == {*right[1:]}:
        late = places[0] == 0 and len(places) > 1
        how = "true too late, or too early, by one iteration" if late else "the wrong way round"
        return f": the test is {how}."
    if op in (*ARITHMETIC, *DOTS) and len(words) < len(right):
        what = "adds its operands" if op.endswith("add") else "only multiplies"
        if op in DOTS:
            what = "adds up the products of components"
        return f": `{op}` {what}. A product is added to a sum by `{right[0]}`."
    if len(words) != len(right) or op.startswith("dcl"):
        return ""
    if places == [2, 3] and _name(words[2]) == _name(right[3]):
        return ": the factors of A and B are exchanged."
    if len(places) > 1:
        return ""
    (place,) = places
    wrong, good = words[place], right[place]
    name, letters = _split(wrong)
    other, others = _split(good)
    what = f"another {'address' if '[' in wrong else 'register'} belongs here"
    if place == 0 and (fetch := FETCH.match(op)):
        if good.startswith(fetch[0]):
            return " fetches another texel than belongs here: look at its offset."
        return f" fetches from texture {fetch[1]}; texture 0 is A, 1 is B."
    if place == 0:
        return f": another opcode than `{op}` belongs here."
    if place == 1 and name == other:
        held, wanted = (len(mask.replace("_", "")) or len("xyzw") for mask in (letters, others))
        what = "another component belongs here"
        if held != wanted:
            what = f"its mask has too {'few' if held < wanted else 'many'} components"
    if place == 1:
        return f" writes {wrong}; {what}."
    if place == 4 and op in ARITHMETIC and other == _name(words[1]):
        return f" adds to {wrong}, but writes {words[1]}: a sum stays in its own register."
    if name == other and sorted(letters) == sorted(others):
        what = "its components are exchanged"
    elif name == other:
        what = "all components belong here"
        if others:
            what = f"{'another' if letters else 'one'} component belongs here"
    return f" reads {wrong}; {what}."
