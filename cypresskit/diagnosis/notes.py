"""What is found out about an incorrect kernel: a ``Note`` is data, and ``SENTENCES`` says it.

In a sentence, ``{0}`` is the first of the note's lines, ``{lines}`` all, and other names are its
values. A part in brackets is left out if a value in it is missing or empty.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from cypresskit.tables import named_lines, quantity

AT_SIZE = "C is correct at small sizes, but at {at_size}:"
#: What is said of each kind of note.
SENTENCES = {
    # A line has an element in place of another.
    "reads": "line {0} reads {element}[, which {stored:store},] in place of {wanted}"
    "[: {why.clause}]",
    "multiplies": "line {0} multiplies {element} in place of {wanted}[, which {reader:read}]",
    "multiplies unread": "line {0} multiplies {element} in place of {wanted}, which no line reads",
    "set": "line {0} sets {register} to {value:g}",
    # No line reads an element.
    "unread": "this work-item doesn't read {element}[; {lines:read} others of {matrix}]",
    "reads outside": "this work-item doesn't read {element}; {lines:read} outside of {matrix}",
    "loads outside": "{lines:read} outside of C",
    "not stored": "{lines:load} 0 from the LDS, where no store has put an element",
    "not fetched": "this work-item doesn't read {element}: {why.clause}",
    "skipped": "[in iteration {iteration} ]line {0} skips {skipped}[, and tests what line {1}"
    " sets]",
    "no loop": "line {0} is in no loop",
    # A sum is stored as another element, or no line stores it.
    "stores": "line {1} adds up {element}, which line {0} stores as {wanted}",
    "no store": "no line stores C",
    "block": "[no work-item stores {element}: ]a work-item stores {stored} elements of C, but is"
    " launched for {rows} x {columns}[: perhaps change that in line {0}][, as in `{example}`]",
    "nowhere": "no work-item stores {element}[: check the address of line {0}][, which doesn't"
    " depend on {bits} of a work-item's number]",
    # A term is there, but not as it should be.
    "repeated": "{name} is added {times} times, in {places}[: {why.clause}]",
    "not multiplied": "{lines:read} its factors, but no line multiplies them in that iteration",
    "masked": "line {0} multiplies its factors, but its mask leaves out {component}",
    "scaled": "{name} is multiplied by {times:g}, not by {scalar} = {value:g}[: see {lines}]",
    "old C": "[{lines:read} it; ]add it, times beta = {beta:g}",
    "late read": "line {0} reads C after line {1} has stored there",
    # Where a product was lost.
    "overwritten": "line {0} puts it into {register}, which line {1} overwrites",
    "overwritten next": "line {0} puts it into {register}, which the next iteration overwrites",
    "elsewhere": "line {0} puts it into {register}, but it isn't in what line {1} stores",
    # What is added belongs to no correct sum.
    "sum": "line {0} takes a sum that doesn't belong here: line {1} adds {product}",
    "extra": "line {0} adds {product}, which doesn't belong in this sum[; {read:read} {odd}]",
    "by number": "line {0} multiplies {element} by {number:g}, not by {other}",
    "number": "the sum includes {number:g}, which is from no matrix[: see {lines}]",
    "spreads": "line {0} uses C although beta is 0, so that a NaN in it spreads to the sum",
    # The terms aren't known, or all right.
    "varies": "the terms aren't known: with other elements, other lines run, or store elsewhere",
    "loads a sum": "the terms aren't known: {loads:load} a sum, which isn't followed",
    "no sum": "the terms aren't known: line {0} gives neither a product of two elements, nor a sum"
    " of such, nor a number times a sum",
    "halves": "line {0} computes with halves of doubles: write the operation for doubles, such as"
    " `dmad`",
    "values": "with other elements than these the sum is correct: it depends on their values",
    # The kernel reads outside of an array, or isn't launched as it computes.
    "reads 0": "{lines:read} outside of an array, which gives 0 and leaves C correct"
    "[; {why.clause}]",
    "overlong": "line {0} fetches outside in more than a third of its runs",
    # The kernel can't be compared, or its C is incorrect only in part.
    "not given": "line {0} {does}, which its launch doesn't give",
    "not launched": "{error}",
    "low parts": "C's high parts are correct, and its low parts aren't. They should have what the"
    " high parts round off, A's high parts times B's low ones, and A's low times B's high",
    "fails at size": f"{AT_SIZE} {{error}}",
    "off at size": f"{AT_SIZE} {{element}} is {{value:.9g}}; {{comparison}}",
    "stores few": f"{AT_SIZE} {{parts}} parts of the launch store {{stored:,}} of their"
    " {wanted:,} elements",
    # A change of the text that makes the kernel correct.
    "without": "without line {0} the kernel is correct",
    "undone": "without the change in line {0} the kernel is correct",
    "line missing": "a line is missing before line {0}: `{text}`",
    "moved": "line {0} is in the wrong place: it belongs right before line {before}",
    "states k": "an iteration takes {values} of k, but line {0} states k = {stated}: write"
    " `k {k}` there",
    "launched for k": "an iteration takes {values} of k, but it is launched for k = {stated}:"
    " end line 1 with `{state}`",
    "changed word": "in line {0}, `{wrong}` is incorrect",
}
WHOLE_SENTENCE = "[{term} is missing: ]{clause}."
Values = dict[str, Any]  # what the names in a sentence stand for


class Lines(tuple[int, ...]):
    """Numbers of lines: "lines 3 and 4"; with a verb, as in ``{lines:read}``, "line 3 reads"."""

    __slots__ = ()

    def __format__(self, verb: str) -> str:
        return named_lines(self, verb) if self else ""


@dataclass(frozen=True)
class Note:
    """What was found. Equal notes say the same; they can't be hashed, since a dict is in them.

    Attributes
    ----------
    kind
        A key of ``SENTENCES``; "" only if there is nothing to say.
    line
        The line to look at first, or 0.
    lines
        All lines that are named.
    values
        What the names in the sentence stand for.
    term
        The name of a term that is missing for this reason, or "".
    more_terms
        The number of other terms with the same fault.
    """

    kind: str = ""
    line: int = 0
    lines: tuple[int, ...] = ()
    values: Values = field(default_factory=dict)
    term: str = ""
    more_terms: int = 0

    @property
    def sentence(self) -> str:
        """What was found, as a sentence, or ""."""
        if not self:
            return ""
        said = _fill(WHOLE_SENTENCE, term=self.term, clause=self.clause)
        return said[0].upper() + said[1:]

    @property
    def aside(self) -> str:
        """What has the same fault, as a sentence, or ""."""
        return (
            f"The same fault affects {quantity(self.more_terms, 'more term')}."
            if self.more_terms
            else ""
        )

    @property
    def text(self) -> str:
        """All that is said of it."""
        return f"{self.sentence} {self.aside}".strip()

    def __bool__(self) -> bool:
        return bool(self.kind)

    def __str__(self) -> str:
        return self.text

    @property
    def clause(self) -> str:
        """What was found, to be part of a sentence."""
        said = _fill(SENTENCES[self.kind], *self.lines, lines=Lines(self.lines), **self.values)
        return said.removesuffix(".")  # of an error's sentence


NO_NOTE = Note()


def note(kind: str, /, *lines: int, at: int = 0, **values: Any) -> Note:
    """Return a note on some lines, of which the one ``at`` this place is to look at first."""
    return Note(kind, lines[at] if lines else 0, lines, values)


def _fill(sentence: str, *lines: int, **values: Any) -> str:
    """Return a sentence with its lines and values."""
    named = values | {str(n): line for n, line in enumerate(lines)}

    def optional(part: re.Match) -> str:
        names = re.findall(r"{(\w+)", part[1])
        return part[1] if all(f"{named.get(name, '')}" for name in names) else ""

    return re.sub(r"\[(.*?)\]", optional, sentence).format(*lines, **values)
