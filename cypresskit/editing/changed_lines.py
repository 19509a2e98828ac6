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
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, get_close_matches
from itertools import zip_longest
from time import process_time
from typing import NamedTuple

import numpy as np

from cypresskit.diagnosis.element_trace import ElementTrace, trace_element
from cypresskit.diagnosis.verification import Verification
from cypresskit.il import ILError
from cypresskit.il.cursor import strip_comment
from cypresskit.kernels import Kernel
from cypresskit.kernels.products import Product, make_product
from cypresskit.machine import KernelError
from cypresskit.tables import elided

SECONDS = 1.5  # of processor time for all variants of a text
MAX_CHANGES = 40  # a text with more changed lines is another kernel
MAX_UNDONE = 12  # of more new lines, none is tried without: most of a kernel is new
SEEDS = 12, 13, 14, 15  # of products, two of which must be incorrect
LARGEST = 9  # number in them
LETTERS = 48  # of a line that is quoted
SIMILAR = 0.8  # from this ratio on, a new line counts as a change of an old one
ARITHMETIC = ("mad", "mul", "add", "dmad", "dmul", "dadd")
#: Tests of a loop, and their opposites.
TESTS = {"ge": "lt", "lt": "ge", "break_logicalz": "break_logicalnz"}
TESTS |= {opposite: op for op, opposite in TESTS.items()}
STORED = re.compile(r"Line \d+ stores the sum of (C\[\d+, \d+\])")
OFFSET = re.compile(r"_aoffimmi\((-?\d+),(-?\d+),(-?\d+)\)")
OFFSETS = ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2))
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
    """A new text of the line at an index, and a sentence on the fault that it would repair."""

    at: int
    text: str
    message: str


@dataclass(frozen=True)
class TriedProduct:
    """The C of a text, and which of its elements are incorrect; all are if it can't be run."""

    result: np.ndarray
    wrong: np.ndarray

    def repairs(self, before: "TriedProduct") -> int:
        """Return how many elements became correct; 0 if another one changed."""
        changed = (self.result != before.result) & ~(self.wrong & np.isnan(before.result))
        return 0 if (self.wrong & changed).any() else int((before.wrong & ~self.wrong).sum())


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
    trace = None
    if seen.wrong is not None:
        row, column = seen.wrong[:2]
        alpha, beta = seen.alpha, seen.beta
        with suppress(KernelError, ValueError):  # a store out of range, before the element's
            trace = trace_element(seen.kernel, row, column, size=seen.size, alpha=alpha, beta=beta)
    return _Search(seen, lines, changes, trace).fault()


def name_own_line(note: str, lines: Collection[int], known: str, text: str) -> LineFault | None:
    """Return a trace's note on a given line, with the last of its reader's lines among the
    ``lines`` of the wrong sum; None if the note names one of these itself, or there is none.
    """
    changes = _changes(known.splitlines(), text.splitlines()) if known else ()
    own = {change.at + 1 for change in changes if change.new}
    named = _numbers(note)
    if not named or named & own or not own & {*lines}:
        return None
    line = max(own & {*lines})
    message = f"{note} Of your lines, line {line} is part of that sum."
    if other := STORED.match(note):
        message = f"Line {line} adds products of {other[1]} to this sum: check its factors."
    return LineFault(line, message)


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
            like = get_close_matches(_bare(new[at]), gone, 1, SIMILAR)
            gone = [line for line in gone if line not in like]
            changes.append(LineChange(at, (*like,), 1))
    return changes


class _Search:
    """The search for a variant of ``lines`` that repairs the product."""

    def __init__(
        self,
        seen: Verification,
        lines: list[str],
        changes: Sequence[LineChange],
        trace: ElementTrace | None,
    ) -> None:
        self.lines, self.changes = lines, changes
        self.own = [change.at for change in changes if change.new]
        self.trace = trace
        traced = self._traced()
        if trace and not any(term.kind == "missing" for term in trace.terms):
            self.suspects = [at for at in self.own if at in traced or not self._adds(at)]
        else:
            self.suspects = sorted(self.own, key=lambda at: at not in traced and self._adds(at))
        assert seen.size is not None
        self.end = process_time() + SECONDS
        self.products: list[Product] = []
        self.before: list[TriedProduct] = []
        for seed in SEEDS:
            given = make_product(seen.kernel, seen.size, seen.alpha, seen.beta, seed, LARGEST)
            outcome = _outcome(given, seen.kernel.text)
            if outcome.wrong.any() and len(self.products) < 2:
                self.products.append(given)
                self.before.append(outcome)

    def _traced(self) -> set[int]:
        """Return the changed lines that are part of the sum of an incorrect element."""
        if self.trace is None:
            return {*self.own}
        lines = {line for term in self.trace.terms if not term.right for line in term.lines}
        lines |= {line for note in self.trace.notes for line in _numbers(note)}
        return {at for at in self.own if at + 1 in lines}

    def _adds(self, at: int) -> bool:
        """Return whether a line adds a product to a sum, or fetches: the trace has those."""
        op, *operands = _parts(self.lines[at])
        names = [operand.partition(".")[0] for operand in operands]
        return op.startswith("sample") or (op.endswith("mad") and names[0] == names[-1])

    def fault(self) -> LineFault | None:
        """Return the fault that a variant repairs, or None."""
        found = self._repair() if len(self.products) == 2 else None
        return LineFault(found.at + 1, found.message) if found else None

    def _repair(self) -> Variant | None:
        tried = self.suspects if len(self.suspects) <= MAX_UNDONE else ()
        changes = [c for c in reversed(self.changes) if not c.new or c.old or c.at in tried]
        undone = self._best(map(self._undo, changes), whole=True)
        suspects = self.suspects
        if undone is not None:
            suspects = [c.at for c in changes if c.at == undone.at and c.new and c.old]
        repairs = [_repairs(self.lines, at) for at in suspects]
        in_turn = (v for turn in zip_longest(*repairs) for v in turn if v)
        return self._best(in_turn) or undone

    def _undo(self, change: LineChange) -> Variant:
        """Return the text without a change."""
        at = change.at
        if change.new:
            what = "the change in this line" if change.old else "this line"
            message = f"Line {at + 1}: C is correct without {what}."
            return Variant(at, "\n".join(change.old), message)
        quoted = elided(change.old[0], LETTERS)
        message = f"A line is missing before line {at + 1}: {quoted}"
        moved = [n + 1 for n in self.own if _bare(self.lines[n]) == change.old[0]]
        if moved:
            message = f"Line {moved[0]} has to come before line {at + 1}: {quoted}"
        following = self.lines[at] if at < len(self.lines) else ""
        return Variant(at, "\n".join((*change.old, following)), message)

    def _best(self, variants: Iterable[Variant], whole: bool = False) -> Variant | None:
        """Return the variant that makes C correct or, unless only a ``whole`` C counts, most of it;
        on two products, since one of a few numbers may become correct by chance.
        """
        best, most = None, 0
        for variant in variants:
            if process_time() > self.end:
                break
            outcome = self._run(variant)
            repaired = outcome.repairs(self.before[0])
            if repaired > most and self._run(variant, 1).repairs(self.before[1]):
                if not outcome.wrong.any():
                    return variant
                without = self._run(Variant(variant.at, "", ""))
                if not whole and (outcome.result != without.result).any():
                    best, most = variant, repaired
        return best

    def _run(self, variant: Variant, product: int = 0) -> TriedProduct:
        new = [*self.lines, ""]
        new[variant.at] = variant.text
        return _outcome(self.products[product], "\n".join(new))


def _outcome(given: Product, text: str) -> TriedProduct:
    """Run a product with another text."""
    made: Kernel = replace(given.kernel, text=text, given=None)
    try:
        result = replace(given, kernel=made).run(engine="interpreter")
    except (ILError, KernelError, ValueError, TypeError):
        result = np.full(given.expected.shape, np.nan)
        return TriedProduct(result, np.ones(result.shape, bool))
    return TriedProduct(result, given.wrong(result))


# -- mistakes: each yields the line without it


def _parts(line: str) -> list[str]:
    """Return the opcode and the operands of a line."""
    op, _, operands = _bare(line).partition(" ")
    return [op, *(operand.strip() for operand in operands.split(","))]


def _repairs(lines: Sequence[str], at: int) -> Iterator[Variant]:
    """Yield a line without each of the mistakes that it may have, the commonest first."""
    op, *operands = _parts(lines[at])
    found = _test_repairs(op, operands)
    if op.startswith("sample"):
        found = ((its_op, operands, message) for its_op, message in _fetches(op))
    elif op in ARITHMETIC and len(operands) >= 3:
        found = _sum_repairs(op, operands, lines)
    repairs = [*found, *_operand_repairs(op, operands, lines)]
    repairs.sort(key=lambda repair: "components are" not in repair[2])  # one run, and a likely one
    for its_op, its_operands, message in repairs:
        text = f"{its_op} {', '.join(its_operands)}"
        yield Variant(at, text, f"Line {at + 1}{message}")


Repair = tuple[str, list[str], str]  # opcode, operands, what was wrong


def _test_repairs(op: str, operands: list[str]) -> Iterator[Repair]:
    """Yield the opposite of a loop's test."""
    if op in TESTS:
        message = ": the test is the wrong way round, so the loop ends at once."
        yield TESTS[op], operands, message
        yield op, [*operands[:1], *operands[:0:-1]], message


def _sum_repairs(op: str, operands: list[str], lines: Sequence[str]) -> Iterator[Repair]:
    """Yield a line of arithmetic with another opcode, sum, or mask."""
    to, first, second, *rest = operands
    total, _, mask = to.partition(".")
    double = "d" * op.startswith("d")
    own = to if double else total
    if not rest:
        what = "adds its operands" if op.endswith("add") else "only multiplies"
        message = f": `{op}` {what}. A product is added to a sum by `{double}mad`."
        yield f"{double}mad", [*operands, own], message
    elif rest[0] not in (own, to):
        message = f" adds to {rest[0]}, but writes {to}: a sum stays in its own register."
        yield op, [to, first, second, own], message
    factors = first.partition(".")[0], second.partition(".")[0]
    for letters in _letters(op) if rest else ():
        message = ": the factors of A and B are exchanged."
        yield op, [to, f"{factors[1]}.{letters}", factors[0], *rest], message
    masks = {_parts(line)[1].partition(".")[2] for line in lines if _parts(line)[0] == op}
    for other in sorted({"", *masks} - {mask}):
        message = f" writes {to}; the mask leaves out, or has, a component too many."
        yield op, [f"{total}.{other}".rstrip("."), *operands[1:]], message


def _letters(op: str) -> Sequence[str]:
    """Return the components that hold a number."""
    return ("xy", "zw") if op.startswith("d") else "xyzw"


def _operand_repairs(op: str, operands: list[str], lines: Sequence[str]) -> Iterator[Repair]:
    """Yield a line with other components, or another register, in one of its operands."""
    fetched = {_parts(line)[1] for line in lines if line.strip().startswith("sample")}
    for place, operand in enumerate(operands[1:], 1):
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


def _fetches(op: str) -> Iterator[tuple[str, str]]:
    """Yield the opcode of a fetch without each of its mistakes, and a message."""
    if resource := RESOURCE.search(op):
        other = str(int(resource[1] == "0"))
        fixed = op.replace(resource[0], f"_resource({other})_sampler({other})")
        yield fixed, f" fetches from texture {resource[1]}; texture 0 is A, texture 1 is B."
    found = OFFSET.search(op)
    now = (int(found[1]), int(found[2])) if found else (0, 0)
    for at in OFFSETS:
        if at != now:
            offset = f"_aoffimmi({at[0]},{at[1]},0)" if any(at) else ""
            message = " fetches another texel than belongs here: look at its offset."
            yield OFFSET.sub("", op) + offset, message
