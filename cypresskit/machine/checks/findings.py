"""Describe faults: a ``Finding`` for each, with the kernel's line, the work-item and the element.

``Check`` is the base of all checks. A fault has a key (what is wrong, in which line); the first
work-item with that fault is described, the others are counted.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cypresskit.il.cursor import strip_comment
from cypresskit.il.errors import point_at_column
from cypresskit.il.program import LETTERS
from cypresskit.machine.addressing import NOWHERE
from cypresskit.machine.launch import Arrays, Launch
from cypresskit.machine.observer import Observer
from cypresskit.machine.shape import wavefront
from cypresskit.tables import plural, quantity, ranged

FAR = 1 << 31  # coordinates from here on are shortened
SHOWN = 20  # findings printed before the rest are only counted
#: The kinds of findings.
FETCH_OUTSIDE, LOAD_OUTSIDE, STORE_OUTSIDE = "fetch outside", "load outside", "store outside"
RACE, BARRIER, ENDLESS_LOOP = "race", "barrier", "endless loop"
UNINITIALIZED, UNALIGNED, WHOLE_COORDINATE = "uninitialized", "unaligned", "whole coordinate"
ENDING_KINDS = STORE_OUTSIDE, BARRIER, ENDLESS_LOOP  # those that end a run
HARMLESS_KINDS = FETCH_OUTSIDE, LOAD_OUTSIDE  # those that a correct result may have: they give 0


class ElementName(NamedTuple):
    """The name of an element: of its memory or register, such as ``A``, and its place in that, such
    as ``[3, 17]``.
    """

    memory: str = ""
    place: str = ""

    def __str__(self) -> str:
        return self.memory + self.place


NO_ELEMENT = ElementName()


@dataclass(frozen=True)
class Finding:
    """One fault.

    Attributes
    ----------
    kind
        Its sort: one of those above.
    name, line, column, text
        The kernel, the place in it (from 1), and the text of the line.
    message, work_item, element
        What happened, to which work-item (its place in the domain, or None), with which element, as
        ``A[3, 17]`` or ``lds[16]``.
    memory
        What the element belongs to, as ``A`` or ``lds``.
    advice
        The likely mistake and its cure.
    more
        The number of further work-items or places.
    other_side, other_item, other_line
        The other side of a race: a sentence, the number of its work-item, and its line.
    other_lines
        Further lines with the same fault.
    call_text
        A line of text about the macro call that led to the line; "" without.
    is_address
        Whether an address is at fault, which another line may have computed.
    """

    kind: str
    name: str
    line: int
    column: int
    text: str
    message: str
    advice: str
    work_item: tuple[int, int] | int | None = None
    element: str = ""
    memory: str = ""
    more: int = 0
    other_side: str = ""
    other_item: int = -1
    other_line: int = 0
    other_lines: tuple[int, ...] = ()
    call_text: str = ""
    is_address: bool = False

    def __str__(self) -> str:
        at = f"{self.name}:{self.line}:{self.column}"
        shown = point_at_column(self.text, self.column)
        lines = [f"{at}: {self.kind}: {self.message}{shown}{self.call_text}"]
        if self.other_side:
            lines.append(f"    the other side: {self.other_side}")
        if self.more:
            lines.append(f"    and {self.more:,} more like it")
        if self.other_lines:
            others = ", ".join(map(str, self.other_lines))
            lines.append(f"    likewise in {plural('line', len(self.other_lines))} {others}")
        return "\n".join([*lines, f"    {self.advice}"])


def named_bits(bits: Sequence[int]) -> str:
    """Return "bit 3", or "bits 0, 2 and 3"."""
    return f"{plural('bit', len(bits))} {ranged(bits)}"


class Findings(tuple[Finding, ...]):
    """The findings of a check, in the order of their lines; empty (and false) if there are none.
    ``ended_early``: whether the kernel ended the run.
    """

    ended_early = False

    def __str__(self) -> str:
        hidden = len(self) - SHOWN
        shown = [str(finding) for finding in self[:SHOWN]]
        if hidden > 0:
            shown.append(f"... and {quantity(hidden, 'more finding')}")
        return "\n".join(shown) or "Nothing found."

    __repr__ = __str__

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> "Findings":
        """Sort findings by line, but whole coordinates first, since other faults follow from them;
        a fault of several lines is reported once.
        """
        first: dict[tuple[Any, ...], Finding] = {}
        for finding in sorted(
            findings, key=lambda each: (each.kind != WHOLE_COORDINATE, each.line, each.column)
        ):
            items = finding.work_item, finding.other_item
            key = (finding.kind, items, finding.advice, finding.memory)
            if key not in first:
                first[key] = finding
            elif finding.line in first[key].other_lines:
                continue
            elif finding.line != first[key].line:
                lines = *first[key].other_lines, finding.line
                first[key] = replace(first[key], other_lines=lines)
            else:
                first[key, finding.element] = finding
        return cls(first.values())


class Naming:
    """A checked launch, and names for its work-items and elements.

    Attributes
    ----------
    names
        The caller's: resource number, "g" or "o0" .. "o7" to a name.
    textures, memory
        The caller's arrays: textures by number, and global memory.
    """

    def __init__(
        self,
        launch: Launch,
        names: Mapping[Any, Any],
        textures: Arrays,
        memory: np.ndarray | None,
    ):
        given = [
            *launch.textures,
            *(f"o{n}" for n in launch.outputs),
            *["g"] * (memory is not None),
        ]
        if not isinstance(names, Mapping) or not set(names) <= set(given):
            raise ValueError(
                f"names maps what was given ({', '.join(map(repr, given))}) to names; found"
                f" {names!r}"
            )
        self.launch, self.names, self.textures, self.memory = launch, names, textures, memory

    def item(self, item: int) -> str:
        """Return ``work-item (3, 5), wavefront 0``."""
        return (
            f"{self.launch.shape.item_name(item)}, wavefront {wavefront(self.launch.shape, item)}"
        )

    def texel(self, resource: int, x: int, y: int) -> ElementName:
        """Return a texel as ``A[row, column]``, or ``A[row, first..last]`` if it holds several
        numbers.
        """
        count = self.numbers(resource)
        column = coordinate(x) if abs(x) >= FAR else _range(x * count, count)
        return ElementName(self.texture(resource), f"[{coordinate(y)}, {column}]")

    def extent(self, resource: int) -> str:
        """Return ``A has 4 rows and 64 columns``."""
        surface = self.launch.textures[resource]
        rows = quantity(surface.height, "row")
        columns = quantity(surface.width * self.numbers(resource), "column")
        return f"{self.texture(resource)} has {rows} and {columns}"

    def texture(self, resource: int) -> str:
        """Return the caller's name of a texture, or ``texture 0``."""
        return str(self.names.get(resource, f"texture {resource}"))

    def numbers(self, resource: int) -> int:
        """Return how many numbers a texel holds."""
        return self.launch.textures[resource].texel // self.textures[resource].itemsize

    def element(self, element: int, word: int | None = None) -> ElementName:
        """Return a 128-bit element of global memory (or one ``word`` of it) as ``g[70]``, or ``C[3,
        16..19]`` if named.
        """
        if "g" not in self.names or self.memory is None:
            return ElementName("g", f"[{element}]" + ("" if word is None else f".{LETTERS[word]}"))
        size = self.memory.itemsize
        first = (element * 16 + 4 * (word or 0)) // size
        count = 16 // size if word is None else 1
        row = ""
        if self.memory.ndim > 1 and (columns := self.memory.shape[-1]):
            row = f"{first // columns}, "
            first %= columns
        return ElementName(self.names["g"], f"[{row}{_range(first, count)}]")

    def lds(self, array: int, byte: int) -> ElementName:
        """Return a 32-bit word of LDS as ``lds[16]``."""
        return ElementName(f"lds{array or ''}", f"[{byte // 4}]")


def _range(first: int, count: int) -> str:
    return str(first) if count == 1 else f"{first}..{first + count - 1}"


def coordinate(place: int) -> str:
    """Return a coordinate of an event as text, shortened if it is far from every texture."""
    if abs(place) == NOWHERE:
        return "NaN or huge"
    return str(place) if abs(place) < FAR else f"{place:.2g}"


class Check(Observer):
    """An observer that collects faults."""

    def __init__(self, naming: Naming):
        self.naming = naming
        self.launch = naming.launch
        self.program = naming.launch.program
        self.group = naming.launch.group
        self.found: dict[tuple[Any, ...], Finding] = {}

    def report(
        self,
        kind: str,
        at: int,
        message: str,
        advice: str,
        *,
        key: Any = (),
        count: int = 1,
        word: str = "",
        element: ElementName = NO_ELEMENT,
        **more: Any,
    ) -> None:
        """Report a fault at ``body[at]`` of ``count`` work-items. ``key``: what keeps it apart from
        others of its kind in that line. ``word``: what the caret shows.
        """
        program = self.program
        line = program.body[at].line
        name = (kind, line, *(program.as_written(str(part)) for part in key))
        if old := self.found.get(name):
            self.found[name] = replace(old, more=old.more + count)
            return
        text = program.text_of(line)
        item = more.pop("item", None)
        more |= {"message": message, "advice": advice, "more": count - 1}
        more |= {"element": str(element), "memory": element.memory}
        more["call_text"] = program.called(program.body[at])
        more |= {
            part: program.as_written(value)
            for part, value in more.items()
            if isinstance(value, str)
        }
        place = None if item is None else self.launch.shape.place(item)
        where = column(text, program.as_written(word))
        self.found[name] = Finding(kind, program.name, line, where, text, work_item=place, **more)


def column(text: str, word: str) -> int:
    """Return the column of ``word`` in a line, from 1, or of the line's first word. A comma before
    it means: rather a source than the destination.
    """
    code = strip_comment(text)
    pattern = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(word.lstrip(','))}(?![0-9])", re.IGNORECASE)
    source = pattern.search(code, code.find(",") + 1) if word[:1] == "," else None
    match = (source or pattern.search(code)) if word else None
    return match.start() + 1 if match else len(text) - len(text.lstrip()) + 1
