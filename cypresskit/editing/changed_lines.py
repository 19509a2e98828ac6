"""Find the fault of an incorrect kernel among the lines that its reader has changed.

The last correct text is known, or the given one that a step starts from. Each variant of the text
is one repair of one mistake: a change undone, two factors or components exchanged, another
register. A variant counts as the repair if it makes more of C correct, and no correct element
incorrect. So a sentence never blames a line without a run that shows it.

Limitations
-----------
One mistake is found, or several that affect different elements of C; not two in one sum.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import combinations, zip_longest
from time import process_time
from typing import NamedTuple

import numpy as np

from cypresskit.diagnosis.verification import Verification
from cypresskit.il import ILError
from cypresskit.il.cursor import strip_comment
from cypresskit.kernels import Kernel
from cypresskit.kernels.products import Product, make_product
from cypresskit.machine import KernelError
from cypresskit.tables import elided

SECONDS = 1.5  # of processor time for all variants of a text
MAX_CHANGES = 40  # a text with more changed lines is another kernel
SEEDS = 12, 13, 14, 15  # of products, two of which must be incorrect
LARGEST = 9  # number in them
LETTERS = 48  # of a line that is quoted
ARITHMETIC = ("mad", "mul", "add", "dmad", "dmul", "dadd")
OFFSET = re.compile(r"_aoffimmi\((-?\d+),(-?\d+),(-?\d+)\)")
RESOURCE = re.compile(r"_resource\((\d)\)_sampler\((\d)\)")


class LineFault(NamedTuple):
    """A line of the text, and what is wrong with it, in a sentence."""

    line: int
    message: str

    def is_named_by(self, sentence: str) -> bool:
        """Return whether a sentence on the terms of a sum names the line, too: it says more."""
        return re.search(rf"\b[Ll]ine {self.line}\b", sentence) is not None


class LineChange(NamedTuple):
    """A changed line: its index in the new lines, and the ``old`` lines in place of which it came;
    ``new`` is 0 where old lines were deleted before it.
    """

    at: int
    old: tuple[str, ...]
    new: int


class Variant(NamedTuple):
    """New contents of some lines, by index, and the fault that they would repair."""

    lines: dict[int, str]
    fault: LineFault


@dataclass(frozen=True)
class TriedProduct:
    """The C of a text, and which of its elements are incorrect; all are if it can't be run."""

    result: np.ndarray
    wrong: np.ndarray

    def repairs(self, before: "TriedProduct") -> int:
        """Return how many elements became correct; 0 if another became incorrect."""
        if (self.wrong & ~before.wrong).any():
            return 0
        return int(before.wrong.sum() - self.wrong.sum())


def find_changed_fault(seen: Verification, known: str) -> LineFault | None:
    """Return the fault of an incorrect kernel among the lines that differ from a ``known`` text,
    or None if no repair of one line is found.
    """
    lines = seen.kernel.text.splitlines()
    changes = _changes(known.splitlines(), lines)
    if seen.right or seen.size is None or not known or not 0 < len(changes) <= MAX_CHANGES:
        return None
    return _Search(seen, lines).search(changes)


def _changes(old: Sequence[str], new: Sequence[str]) -> list[LineChange]:
    """Return the changed lines of a text. Comments and spaces don't count."""
    bare_old, bare_new = ([" ".join(strip_comment(line).split()) for line in t] for t in (old, new))
    changes: list[LineChange] = []
    matcher = SequenceMatcher(None, bare_old, bare_new, autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            continue
        gone = [old[i] for i in range(i1, i2) if bare_old[i]]
        come = [j for j in range(j1, j2) if bare_new[j]]
        if not come and gone:
            changes.append(LineChange(j1, tuple(gone), 0))
        elif len(gone) == len(come):
            changes += [LineChange(at, (line,), 1) for at, line in zip(come, gone)]
        else:
            changes += [LineChange(at, (), 1) for at in come]
    return changes


class _Search:
    """The search for a variant of ``lines`` that repairs the product."""

    def __init__(self, seen: Verification, lines: list[str]) -> None:
        self.lines = lines
        assert seen.size is not None
        self.end = process_time() + SECONDS
        self.products: list[Product] = []
        self.before: list[TriedProduct] = []
        self.runs: dict[tuple, TriedProduct] = {}
        for seed in SEEDS:
            given = make_product(seen.kernel, seen.size, seen.alpha, seen.beta, seed, LARGEST)
            ends = not seen.findings.ended_early  # an endless loop takes long
            outcome = _outcome(given, seen.kernel.text) if ends else _nothing(given)
            if outcome.wrong.any() and len(self.products) < 2:
                self.products.append(given)
                self.before.append(outcome)

    def search(self, changes: Sequence[LineChange]) -> LineFault | None:
        if len(self.products) < 2:
            return None
        undone = self._best([self._undo(change) for change in reversed(changes)], whole=True)
        if undone is not None:
            (at,) = undone.lines
            changes = [
                change for change in changes if change.at == at and change.new and change.old
            ]
        changed = [change.at for change in changes if change.new]
        suspects = [at for at in changed if self._harms(at)] or changed
        likely = [_likely_repairs(self.lines, at) for at in suspects]
        pairs = [_exchanges(self.lines, *pair) for pair in combinations(suspects, 2)]
        others = [_other_repairs(self.lines, at) for at in suspects]
        repairs = [variant for kind in (likely, pairs, others) for variant in _in_turn(kind)]
        found = self._best(repairs) or undone
        return found.fault if found else None

    def _undo(self, change: LineChange) -> Variant:
        """Return the text without a change."""
        at = change.at
        if not change.new:
            quoted = elided(strip_comment(change.old[0]).strip(), LETTERS)
            following = self.lines[at] if at < len(self.lines) else ""
            message = f"A line is missing before line {at + 1}: {quoted}"
            return Variant({at: "\n".join((*change.old, following))}, LineFault(at + 1, message))
        what = "the change in this line" if change.old else "this line"
        message = f"Line {at + 1}: C is correct without {what}."
        return Variant({at: "\n".join(change.old)}, LineFault(at + 1, message))

    def _harms(self, at: int) -> bool:
        """Return whether incorrect elements of C depend on a line."""
        without = self._run({at: ""})
        depends = without.result != self.before[0].result
        return bool((depends & self.before[0].wrong).any())

    def _best(self, variants: Sequence[Variant], whole: bool = False) -> Variant | None:
        """Return the variant that makes C correct or, unless only a ``whole`` C counts, most of it;
        on two products, since one of a few numbers may become correct by chance.
        """
        best, most = None, 0
        for variant in variants:
            if process_time() > self.end:
                break
            outcome = self._run(variant.lines)
            repaired = outcome.repairs(self.before[0])
            if repaired > most and self._run(variant.lines, 1).repairs(self.before[1]):
                if not outcome.wrong.any():
                    return variant
                if not whole:
                    best, most = variant, repaired
        return best

    def _run(self, lines: dict[int, str], product: int = 0) -> TriedProduct:
        key = (product, *lines.items())
        if key not in self.runs:
            new = [lines.get(at, line) for at, line in enumerate([*self.lines, ""])]
            self.runs[key] = _outcome(self.products[product], "\n".join(new))
        return self.runs[key]


def _in_turn(kinds: Sequence[Iterator[Variant]]) -> Iterator[Variant]:
    """Yield the first variant of each line, then the second ones, and so on."""
    for turn in zip_longest(*kinds):
        yield from filter(None, turn)


def _outcome(given: Product, text: str) -> TriedProduct:
    """Run a product with another text."""
    made: Kernel = replace(given.kernel, text=text, given=None)
    try:
        result = replace(given, kernel=made).run(engine="interpreter")
    except (ILError, KernelError, ValueError, TypeError):
        return _nothing(given)
    return TriedProduct(result, given.wrong(result))


def _nothing(given: Product) -> TriedProduct:
    """Return the outcome of a text that can't be run."""
    result = np.full(given.expected.shape, np.nan)
    return TriedProduct(result, np.ones(result.shape, bool))


# -- mistakes: each yields the line without it


def _parts(line: str) -> list[str]:
    """Return the opcode and the operands of a line."""
    op, _, operands = strip_comment(line).strip().partition(" ")
    return [op, *(operand.strip() for operand in operands.split(","))]


def _likely_repairs(lines: Sequence[str], at: int) -> Iterator[Variant]:
    """Yield a line without each of the commonest mistakes that it may have."""
    op, *operands = _parts(lines[at])
    line = f"Line {at + 1}"

    def variant(op: str, operands: Sequence[str], message: str) -> Variant:
        return Variant({at: f"{op} {', '.join(operands)}"}, LineFault(at + 1, f"{line}{message}"))

    if op.startswith("sample"):
        for its_op, message in _fetches(op):
            yield variant(its_op, operands, f" {message}")
    if op in ARITHMETIC and len(operands) >= 3:
        yield from _sum_repairs(variant, op, operands)
    for place, operand in enumerate(operands[1:], 1):
        name, _, components = operand.partition(".")
        for letter in "xyzw":
            if len(components) <= 1 and components != letter:
                which = "another" if components else "one"
                message = f" reads {operand}; {which} component belongs here."
                yield variant(op, _with(operands, place, f"{name}.{letter}"), message)
        if components:
            message = f" reads {operand}; all components belong here."
            yield variant(op, _with(operands, place, name), message)


def _sum_repairs(variant: Callable, op: str, operands: Sequence[str]) -> Iterator[Variant]:
    """Yield an arithmetic line without each of its commonest mistakes."""
    to, first, second, *rest = operands
    target = to.partition(".")[0]
    scalar, vector = second.partition(".")[0], first.partition(".")[0]
    mad = op if rest else f"{op[: op.startswith('d')]}mad"
    if not rest:
        what = "adds its operands" if op.endswith("add") else "only multiplies"
        message = f": `{op}` {what}. A product is added to a sum by `{mad}`."
        yield variant(mad, [*operands, target], message)
    elif rest[0].partition(".")[0] != target:
        message = f" adds to {rest[0]}, but writes {to}: a sum stays in its own register."
        yield variant(op, [to, first, second, target], message)
        yield variant(op, [rest[0], first, second, rest[0]], message)
    for letter in "xyzw":
        exchanged = [to, f"{scalar}.{letter}", vector, *(rest or [target])]
        yield variant(mad, exchanged, ": the factors of A and B are exchanged.")
    if "." in second and "." not in first:
        for letter in "xyzw":
            other_way = [to, f"{first}.{letter}", scalar, *(rest or [target])]
            message = f": one component of {first} belongs here, and all of {scalar}."
            yield variant(mad, other_way, message)


def _other_repairs(lines: Sequence[str], at: int) -> Iterator[Variant]:
    """Yield a line without each of some other mistakes that it may have."""
    op, *operands = _parts(lines[at])

    def variant(op: str, operands: Sequence[str], message: str) -> Variant:
        return Variant(
            {at: f"{op} {', '.join(operands)}"}, LineFault(at + 1, f"Line {at + 1} {message}")
        )

    targets = {_parts(each)[1] for each in lines if _parts(each)[0] in (*ARITHMETIC, "mov")}
    sums = {target.partition(".")[0] for target in targets}
    for place, operand in enumerate(operands[1:], 1):
        name = operand.partition(".")[0]
        for other in sorted(_fetched(lines) - {name} if name in _fetched(lines) else ()):
            message = f"reads {operand}; another register belongs here."
            yield variant(op, _with(operands, place, operand.replace(name, other)), message)
    if op in ARITHMETIC and len(operands) == 4:
        to, *factors, total = operands
        name, dot, mask = to.partition(".")
        for other in sorted(sums - {name}):
            message = f"adds to {name}; its product belongs to another sum."
            yield variant(op, [other + dot + mask, *factors, other], message)
        for other in sorted({"", *(t.partition(".")[2] for t in targets)} - {mask}):
            message = f"writes {to}; the mask leaves out, or has, a component too many."
            yield variant(op, [f"{name}.{other}".rstrip("."), *factors, total], message)


def _with(operands: Sequence[str], place: int, operand: str) -> list[str]:
    """Return the operands with one replaced."""
    return [*operands[:place], operand, *operands[place + 1 :]]


def _fetched(lines: Sequence[str]) -> set[str]:
    """Return the registers that the fetches of a text fill."""
    return {_parts(line)[1] for line in lines if line.strip().startswith("sample")}


def _fetches(op: str) -> Iterator[tuple[str, str]]:
    """Yield the opcode of a fetch without each of its mistakes, and a message."""
    found = OFFSET.search(op)
    now = (int(found[1]), int(found[2])) if found else (0, 0)
    bare = OFFSET.sub("", op)
    for at in ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)):
        if at != now:
            offset = f"_aoffimmi({at[0]},{at[1]},0)" if any(at) else ""
            yield bare + offset, "fetches another texel than belongs here: look at its offset."
    if resource := RESOURCE.search(op):
        other = str(int(resource[1] == "0"))
        fixed = op.replace(resource[0], f"_resource({other})_sampler({other})")
        yield fixed, f"fetches from texture {resource[1]}; texture 0 is A, texture 1 is B."


def _exchanges(lines: Sequence[str], one: int, other: int) -> Iterator[Variant]:
    """Yield two lines with one of their operands exchanged: targets, components, or registers."""
    (op, *mine), (other_op, *others) = _parts(lines[one]), _parts(lines[other])
    if op.partition("_")[0] != other_op.partition("_")[0] or len(mine) != len(others):
        return
    where = f"Lines {one + 1} and {other + 1}"
    for places, what in (
        ([0, len(mine) - 1], "right products, each added to the other's sum"),
        ([0], "each writes what the other should write"),
        ([1], "their first factors are exchanged"),
        ([2], "their second factors are exchanged"),
    ):
        if max(places) >= len(mine) or all(mine[p] == others[p] for p in places):
            continue
        swapped = [list(mine), list(others)]
        for place in places:
            swapped[0][place], swapped[1][place] = others[place], mine[place]
        texts = {one: f"{op} {', '.join(swapped[0])}", other: f"{other_op} {', '.join(swapped[1])}"}
        yield Variant(texts, LineFault(one + 1, f"{where}: {what}."))
