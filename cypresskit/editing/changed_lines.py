"""Find the fault of an incorrect kernel among the lines that its reader has changed.

The last correct text is known, or the given one that a step starts from. The trace of an incorrect
element tells which changed lines are part of its sum. Each variant of the text is one repair of one
mistake there: a change undone, another opcode, component or register. A variant counts as the
repair if each element of C that it changes becomes correct. So a sentence never blames a line
without a run that shows it.

Limitations
-----------
One mistake is found, or several that affect different elements of C; not two in one sum. For those,
a sentence names the changed line that is part of the sum.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher, get_close_matches
from itertools import chain, zip_longest
from time import process_time
from typing import NamedTuple

import numpy as np

from cypresskit.diagnosis.element_trace import trace_element
from cypresskit.diagnosis.verification import Verification, verify
from cypresskit.il import ILError, Program
from cypresskit.il.cursor import strip_comment
from cypresskit.il.dataflow import ADDRESS, Key, defines, keys, uses
from cypresskit.kernels import Kernel
from cypresskit.kernels.products import Product, make_product
from cypresskit.machine import KernelError
from cypresskit.tables import elided, listed

SECONDS = 1.5  # of processor time for all variants of a text
MAX_CHANGES = 64  # a text with more changed lines is another kernel
MAX_UNDONE = 12  # of more new lines, none is tried without: most of a kernel is new
SEEDS = 12, 13, 14, 15  # of products, two of which must be incorrect
LARGEST = 9  # number in them
LETTERS = 48  # of a line that is quoted
SIMILAR = 0.8  # from this ratio on, a new line counts as a change of an old one
ARITHMETIC = ("mad", "mul", "add", "dmad", "dmul", "dadd")
#: Tests of a loop, and their opposites.
TESTS = {"ge": "lt", "lt": "ge", "break_logicalz": "break_logicalnz"}
TESTS |= {opposite: op for op, opposite in TESTS.items()}
PRODUCTS = "mad", "dmad", "mul", "dmul"
TRACED = "sample", *PRODUCTS[:2]  # lines that the trace of an element names
STORED = re.compile(r"Line \d+ stores the sum of (C\[\d+, \d+\])")
EXCHANGED = ": the factors of A and B are exchanged."
UNREAD, NOWHERE = "no line reads", "No work-item stores"  # in such a sentence
OFFSET = re.compile(r"_aoffimmi\([-\d,]+\)")
OFFSETS = "1,0,0", "0,1,0", "1,1,0", "0,2,0", "1,2,0"
RESOURCE = re.compile(r"_resource\((\d)\)_sampler\((\d)\)")


class LineFault(NamedTuple):
    """A line of the text, and what is wrong with it, in a sentence."""

    line: int
    message: str

    def is_named_by(self, sentence: str) -> bool:
        """Return whether a sentence on the terms of a sum names the line, too: it says more."""
        return self.line in _numbers(sentence)


class LineChange(NamedTuple):
    """A changed line: its index in the new lines, and the ``old`` lines in place of which it came;
    ``new`` is 0 where old lines were deleted before it.
    """

    at: int
    old: tuple[str, ...]
    new: int


class Variant(NamedTuple):
    """A new text of the line at an index, and a sentence on the fault that it would repair; the
    lines at the indices ``moved`` go.
    """

    at: int
    text: str
    message: str
    moved: tuple[int, ...] = ()


def find_changed_fault(seen: Verification, known: str) -> LineFault | None:
    """Return the fault of an incorrect kernel among the lines that differ from a ``known`` text,
    or None if no repair of one line is found.
    """
    lines = seen.kernel.text.splitlines()
    changes = _changes(known.splitlines(), lines)
    endless = any(finding.kind == "endless loop" for finding in seen.findings)
    if seen.right or seen.size is None or endless:
        return None
    if not known or not 0 < len(changes) <= MAX_CHANGES:
        return None
    notes, traced = _traced(seen)
    own = {change.at + 1 for change in changes if change.new}
    if any(STORED.match(note) and _numbers(note) & own for note in notes):
        return None  # the note itself names the store
    fault = _Search(seen, lines).fault(changes, traced, " ".join(notes))
    return fault and LineFault((fault.moved or (fault.at,))[0] + 1, fault.message)


def _traced(seen: Verification) -> tuple[Sequence[str], set[int]]:
    """Return the notes on an incorrect element, and the lines that are part of its sum, if they are
    known.
    """
    trace = None
    if seen.wrong is not None:
        row, column = seen.wrong[:2]
        alpha, beta = seen.alpha, seen.beta
        with suppress(KernelError, ValueError):  # a store out of range, before the element's
            trace = trace_element(seen.kernel, row, column, size=seen.size, alpha=alpha, beta=beta)
    if trace is None:
        return (), set()
    lines = {line for term in trace.terms if not term.right for line in term.lines}
    return trace.notes, lines.union(*map(_numbers, trace.notes))


def name_own_line(note: str, lines: Collection[int], known: str, made: Kernel) -> LineFault | None:
    """Return a trace's note on a given line, with its reader's lines among the ``lines`` of the
    wrong sum, or of the address at which no work-item stores; None if the note names one of these
    itself, if there is none, or if what is missing is a line that reads a number.
    """
    changes = _changes(known.splitlines(), made.text.splitlines()) if known else ()
    own = {change.at + 1 for change in changes if change.new}
    nowhere = NOWHERE in note
    mine = sorted(own & (_address_lines(made.program) if nowhere else {*lines}))
    named = _numbers(note)
    if not (named or nowhere) or named & own or not mine or UNREAD in note:
        return None
    line = mine[-1]
    what = "the address" if nowhere else "that sum"
    are = f"{listed(mine)} are" if mine[1:] else f"line {line} is"
    message = f"{note} Of your lines, {are} part of {what}."
    if other := STORED.match(note):
        message = f"Line {line} adds products of {other[1]} to this sum: check its factors."
    return LineFault(line, message)


def _address_lines(program: Program) -> set[int]:
    """Return the lines that compute the addresses at which a program stores and loads C."""
    needed: set[Key] = set()
    found = set()
    for i in reversed(program.body):
        operands = [*uses(program, i)]
        if needed & {*defines(i)}:
            needed = needed - {*defines(i)} | keys(operands)
            found.add(i.line)
        needed |= keys(use for use in operands if use[0] == ADDRESS)
    return found


def _bare(line: str) -> str:
    """Return a line without its comment and needless spaces."""
    return " ".join(strip_comment(line).split())


def _numbers(sentence: str) -> set[int]:
    """Return the numbers of lines that a sentence names."""
    found = re.findall(r"\b[Ll]ines? (\d+)(?: and (\d+))?", sentence)
    return {int(number) for pair in found for number in pair if number}


def _changes(old: Sequence[str], new: Sequence[str]) -> list[LineChange]:
    """Return the changed lines of a text. Comments, spaces and empty lines don't count."""
    before = [line for line in map(_bare, old) if line]
    places = [at for at, line in enumerate(new) if _bare(line)]
    after = [_bare(new[at]) for at in places]
    changes: list[LineChange] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, before, after, False).get_opcodes():
        gone = before[i1:i2] if kind != "equal" else []
        if kind == "delete":
            changes.append(LineChange(places[j1] if j1 < len(places) else len(new), (*gone,), 0))
        for at in places[j1:j2] if kind != "equal" else ():
            like = get_close_matches(_bare(new[at]), gone, 1, SIMILAR) or _of_same_result(
                new[at], gone
            )
            gone = [line for line in gone if line not in like]
            changes.append(LineChange(at, (*like,), 1))
    return _without_moved_changes(changes, new)


def _of_same_result(line: str, gone: Sequence[str]) -> list[str]:
    """Return the first of some lines that writes the same components of a register."""
    return [other for other in gone if "," in line and _parts(other)[1] == _parts(line)[1]][:1]


def _without_moved_changes(changes: list[LineChange], new: Sequence[str]) -> list[LineChange]:
    """Return the changes; a line that was deleted in one place, and written with a change in
    another, is one change.
    """
    for deleted in [change for change in changes if not change.new and len(change.old) == 1]:
        for place, change in enumerate(changes):
            like = (
                get_close_matches(_bare(new[change.at]), deleted.old, 1, SIMILAR)
                if change.new
                else []
            )
            if like and not change.old and _bare(new[change.at]) != like[0]:
                changes[place] = change._replace(old=deleted.old)
                changes.remove(deleted)
                break
    return changes


class _Search:
    """The search for a variant of ``lines`` that repairs the product."""

    def __init__(self, seen: Verification, lines: list[str]) -> None:
        assert seen.size is not None
        self.seen, self.lines = seen, lines
        self.end = process_time() + SECONDS
        self.tried: list[tuple[Product, np.ndarray]] = []  # products, and what came out
        for seed in SEEDS:
            given = make_product(seen.kernel, seen.size, seen.alpha, seen.beta, seed, LARGEST)
            result = _result(given, seen.kernel.text)
            if len(self.tried) < 2 and given.wrong(result).any():
                self.tried.append((given, result))
        self.what = "C" if self.tried else "the kernel"

    def fault(self, changes: Sequence[LineChange], traced: set[int], notes: str) -> Variant | None:
        """Return the variant that repairs the product, or None. First, each change is undone; then
        the changed lines are repaired, those first that the trace of an incorrect element names. By
        its ``notes``, these are no products, if an element isn't read; if it isn't stored, a change
        alone tells which of the lines that compute its address is wrong.
        """
        if self.seen.wrong is not None and len(self.tried) < 2:
            return None
        own = [change.at for change in changes if change.new]
        suspects = [at for at in own if at + 1 in traced or not self._starts(at, TRACED)]
        few = len(own) <= MAX_UNDONE
        if UNREAD in notes or not self.tried:
            own = suspects = [at for at in own if not self._starts(at, PRODUCTS)]
        if not self.tried:
            suspects = [at for at in own if self._starts(at, (*TESTS,))]
        changes = [
            change for change in reversed(changes) if change.old or (few and change.at in suspects)
        ]
        undone = self._best((self._undo(change, own) for change in changes), whole=True)
        if undone is not None:
            own = [change.at for change in changes if change.at == undone.at and change.old]
            suspects = own
        elif NOWHERE in notes:
            return None
        others = [at for at in own if at not in suspects]
        in_turn = chain(self._in_turn(suspects), self._in_turn(others))
        return self._best(in_turn) or undone

    def _starts(self, at: int, opcodes: tuple[str, ...]) -> bool:
        return self.lines[at].strip().startswith(opcodes)

    def _in_turn(self, own: Sequence[int]) -> Iterator[Variant]:
        """Yield the first repair of each line, then the second of each, and so on."""
        repairs = [_repairs(self.lines, at) for at in own]
        return (variant for turn in zip_longest(*repairs) for variant in turn if variant)

    def _undo(self, change: LineChange, own: Sequence[int]) -> Variant:
        """Return the text without a change."""
        at = change.at
        if change.new:
            what = "the change in this line" if change.old else "this line"
            message = f"Line {at + 1}: {self.what} is correct without {what}."
            return Variant(at, "\n".join(change.old), message)
        elsewhere = {_bare(self.lines[n]): n for n in sorted(own, reverse=True)}
        lost = [line for line in change.old if line not in elsewhere]
        moved = () if lost else tuple(elsewhere[line] for line in change.old)
        message = f"A line is missing before line {at + 1}: {elided((*lost, '')[0], LETTERS)}"
        if moved:
            message = (
                f"Line {moved[0] + 1} is in the wrong place: {self.what} is correct if it comes"
                f" right before line {at + 1}."
            )
        following = self.lines[at] if at < len(self.lines) else ""
        return Variant(at, "\n".join((*(lost or change.old), following)), message, moved)

    def _best(self, variants: Iterable[Variant], whole: bool = False) -> Variant | None:
        """Return the variant that makes C correct or, unless only a ``whole`` C counts, most of it;
        on two products, since one of a few numbers may become correct by chance.
        """
        best, most = None, 0
        for variant in variants:
            if process_time() > self.end:
                break
            new = [*self.lines, ""]
            for moved in variant.moved:
                new[moved] = ""
            new[variant.at] = variant.text
            if self.seen.wrong is None and not self.tried:
                if self._is_right("\n".join(new)):
                    return variant
                continue
            repaired, left = self._repaired("\n".join(new), 0)
            if repaired > most and self._repaired("\n".join(new), 1)[0]:
                if not left:
                    return variant
                if not whole:
                    best, most = variant, repaired
        return best

    def _is_right(self, text: str) -> bool:
        """Return whether nothing is found in a text, in place of one whose C is right."""
        with suppress(ILError, KernelError, ValueError, TypeError):
            kernel = replace(self.seen.kernel, text=text, given=None)
            return verify(kernel, alpha=self.seen.alpha, beta=self.seen.beta).right
        return False

    def _repaired(self, text: str, number: int) -> tuple[int, int]:
        """Return how many elements of a product a text makes correct, and how many it leaves
        incorrect; (0, 0) if it changes another one.
        """
        given, before = self.tried[number]
        result = _result(given, text)
        wrong = given.wrong(result)
        if (wrong & (result != before) & ~np.isnan(before)).any():
            return 0, 0
        return int((given.wrong(before) & ~wrong).sum()), int(wrong.sum())


def _result(given: Product, text: str) -> np.ndarray:
    """Return the C of a text; NaN if it can't be run."""
    made: Kernel = replace(given.kernel, text=text, given=None)
    try:
        return replace(given, kernel=made).run(engine="interpreter")
    except (ILError, KernelError, ValueError, TypeError):
        return np.full(given.expected.shape, np.nan)


# -- mistakes: each yields the opcode and operands without it, and what is wrong

Repair = tuple[str, list[str], str]


def _parts(line: str) -> list[str]:
    """Return the opcode and the operands of a line."""
    op, _, operands = _bare(line).partition(" ")
    return [op, *(operand.strip() for operand in operands.split(","))]


def _repairs(lines: Sequence[str], at: int) -> Iterator[Variant]:
    """Yield a line without each of the mistakes that it may have, the commonest first."""
    op, *operands = _parts(lines[at])
    repairs = [*_opcode_repairs(op, operands, lines), *_operand_repairs(op, operands, lines)]
    repairs.sort(key=lambda repair: ("components are" not in repair[2], EXCHANGED in repair[2]))
    for its_op, its_operands, message in repairs:
        text = f"{its_op} {', '.join(its_operands)}"
        yield Variant(at, text, f"Line {at + 1}{message}")


def _opcode_repairs(op: str, operands: list[str], lines: Sequence[str]) -> Iterator[Repair]:
    """Yield a line with another opcode, sum or mask, or with exchanged operands."""
    if op in TESTS:
        message = ": the test is the wrong way round, so the loop ends at once."
        yield TESTS[op], operands, message
        yield op, [*operands[:1], *operands[:0:-1]], message
        message = ": the test is true too late, or too early, by one iteration."
        yield TESTS[op], [*operands[:1], *operands[:0:-1]], message
    if resource := RESOURCE.search(op):
        other = str(int(resource[1] == "0"))
        fixed = op.replace(resource[0], f"_resource({other})_sampler({other})")
        yield fixed, operands, f" fetches from texture {resource[1]}; texture 0 is A, 1 is B."
    for offset in ("", *map("_aoffimmi({})".format, OFFSETS)) if resource else ():
        message = " fetches another texel than belongs here: look at its offset."
        yield OFFSET.sub("", op) + offset, operands, message
    to, *sources = operands
    for other in _unset(lines) if resource else ():
        yield op, [other, *sources], f" writes {to}, and no line sets {other}, which is read."
    if op not in ARITHMETIC or len(operands) < 3:
        return
    name, _, letters = to.partition(".")
    masks = {_parts(line)[1].partition(".")[2] for line in lines if op in line} | {*letters}
    for mask in sorted(masks - {"_"}):
        message = f" writes {to}; the mask leaves out, or has, a component too many."
        yield op, [f"{name}.{mask}".rstrip("."), *sources], message
    first, second, *rest = sources
    mad = "d" * op.startswith("d") + "mad"
    own = to if op.startswith("d") else to.partition(".")[0]
    factors = first.partition(".")[0], second.partition(".")[0]
    if not rest and to.partition(".")[0] in factors:
        return  # it counts, or scales
    if not rest:
        what = "adds its operands" if op.endswith("add") else "only multiplies"
        yield mad, [*operands, own], f": `{op}` {what}. A product is added to a sum by `{mad}`."
        return
    if rest[0] not in (own, to):
        message = f" adds to {rest[0]}, but writes {to}: a sum stays in its own register."
        yield op, [to, first, second, own], message
    for letters in _letters(op):
        yield op, [to, f"{factors[1]}.{letters}", factors[0], *rest], EXCHANGED


def _unset(lines: Sequence[str]) -> list[str]:
    """Return the registers that lines read, and none writes."""
    read = {name for line in lines for name in re.findall(r"\br\d+", _bare(line).partition(",")[2])}
    return sorted(read - {_parts(line)[1].partition(".")[0] for line in lines})


def _letters(op: str) -> Sequence[str]:
    """Return the components that hold a number."""
    return ("xy", "zw") if op.startswith("d") else "xyzw"


def _operand_repairs(op: str, operands: list[str], lines: Sequence[str]) -> Iterator[Repair]:
    """Yield a line with other components, or another register, in one of its operands."""
    fetched = {_parts(line)[1] for line in lines if line.strip().startswith("sample")}
    for place, operand in enumerate(operands[1:], 1):
        if operand == operands[0] and len(operands) == 3:
            continue  # it counts
        name, _, components = operand.partition(".")
        others = []
        if len(components) > 1:
            turned = f"{name}.{components[1::-1]}{components[2:]}"
            others.append((turned, "its components are exchanged"))
        if len(components) <= len(_letters(op)[0]):
            which = "another" if components else "one"
            text = f"{which} component belongs here"
            others += [(f"{name}.{letters}", text) for letters in _letters(op)]
        if components and op in ARITHMETIC:
            others.append((name, "all components belong here"))
        if name in fetched or op in ARITHMETIC:
            text = "another register belongs here"
            others += [(operand.replace(name, other), text) for other in sorted(fetched - {name})]
        for other, text in others:
            if other != operand:
                replaced = [*operands[:place], other, *operands[place + 1 :]]
                yield op, replaced, f" reads {operand}; {text}."
