"""What a check says: findings that name the kernel's line, the work-item and the element, one for each fault.

``Check`` is the observer that all checks are built on. A fault has a key (what is wrong, at which instruction); the
first work-item that hits it is described, the others are counted.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cypresskit.il import ILError
from cypresskit.machine.launch import Launch
from cypresskit.machine.observer import INFINITE, NOWHERE, Observer

FAR = 1 << 31  # a coordinate that isn't worth all its digits
SHOWN = 20  # findings printed before the rest are only counted
CALLS = 4  # macro calls printed


@dataclass(frozen=True)
class Finding:
    """One fault. ``kind`` names its sort ("fetch outside", "race", ...); ``line`` and ``column`` (from 1) of the kernel
    and the line's ``text``; ``message`` says what happened to ``work_item`` (its place in the domain, or None) with
    ``element``, as ``A[3, 17]`` or ``lds[16]``; ``more`` counts further work-items or places; ``other`` is the other
    side of a race and ``other_line`` its line; ``advice`` the likely mistake and its cure; ``also`` has further lines
    with the same fault; ``calls`` the macro calls that led to the line, the innermost first."""

    kind: str
    name: str
    line: int
    column: int
    text: str
    message: str
    advice: str
    work_item: tuple[int, int] | int | None = None
    element: str = ""
    more: int = 0
    other: str = ""
    other_line: int = 0
    also: tuple[int, ...] = ()
    calls: tuple[str, ...] = ()

    def __str__(self) -> str:
        start = max(0, self.column - 81)
        lines = [f"{self.name}:{self.line}:{self.column}: {self.kind}: {self.message}"]
        if self.text:
            shown = "".join(c if c.isprintable() else " " for c in self.text[start : start + 160])
            lines += [f"    {shown}", f"    {' ' * (self.column - 1 - start)}^"]
        lines += [f"    called in {call}" for call in self.calls[:CALLS]]
        if len(self.calls) > CALLS:
            lines.append(f"    ... and in {len(self.calls) - CALLS} more places")
        if self.other:
            lines.append(f"    the other side: {self.other}")
        if self.more:
            lines.append(f"    and {self.more:,} more like it")
        if self.also:
            lines.append(f"    likewise in line{'s' * (len(self.also) > 1)} {', '.join(map(str, self.also))}")
        return "\n".join([*lines, f"    {self.advice}"])


class Findings(tuple[Finding, ...]):
    """The findings of a check, in the order of their lines; empty (and false) if nothing was found."""

    def __str__(self) -> str:
        if not self:
            return "Nothing found."
        rest = len(self) - SHOWN
        return "\n".join([*map(str, self[:SHOWN]), *([f"... and {rest} more findings"] if rest > 0 else [])])

    __repr__ = __str__

    @classmethod
    def of(cls, found: Iterable[Finding]) -> "Findings":
        """Findings by line; one fault that several lines have is told once."""
        first: dict[tuple, Finding] = {}
        for finding in sorted(found, key=lambda finding: (finding.line, finding.column)):
            who, memory = finding.other.split(",")[0], re.split(r"[\[.]", finding.element)[0]
            line = finding.line if finding.kind == "number" else 0
            key = (finding.kind, finding.work_item, finding.advice, who, memory, line)
            if key not in first:
                first[key] = finding
            elif finding.line != first[key].line:
                first[key] = replace(first[key], also=(*first[key].also, finding.line))
            else:
                first[key, finding.element] = finding
        return cls(first.values())


class Places:
    """How places are called: work-items of ``launch``, and elements of its memories by the caller's ``names``.

    ``names`` maps a resource number, "g" or "o0" .. "o7" to a name; ``shape`` and ``dtype`` of global memory are those
    of the caller's array.
    """

    def __init__(self, launch: Launch, names: Mapping, dtypes: Mapping, shape: tuple[int, ...]):
        given = [*launch.textures, *(f"o{n}" for n in launch.outputs), *["g"] * (launch.global_memory is not None)]
        if not isinstance(names, Mapping) or not set(names) <= set(given):
            raise ValueError(f"names maps what was given ({', '.join(map(repr, given))}) to names; found {names!r}")
        self.launch, self.names, self.dtypes, self.shape = launch, names, dtypes, shape

    def wavefront(self, item: int | np.ndarray):
        """The number of the wavefront that a work-item belongs to."""
        if self.launch.program.mode == "pixel":
            width = self.launch.domain[0]
            return item // width // 8 * -(-width // 8) + item % width // 8
        size = int(np.prod(self.launch.program.group))
        return item // size * -(-size // 64) + item % size // 64

    def item(self, item: int) -> str:
        """``work-item (3, 5), wavefront 0``."""
        return f"{self.launch.item_name(item)}, wavefront {self.wavefront(item)}"

    def texture(self, resource: int) -> str:
        """The name of a texture."""
        return str(self.names.get(resource, f"texture {resource}"))

    def texel(self, resource: int, x: int, y: int) -> str:
        """A texel as ``A[row, column]``, or ``A[row, first..last]`` where it holds several numbers."""
        count = self._numbers(resource)
        place = [coordinate(y), coordinate(x) if abs(x) >= FAR else str(x * count)]
        if count > 1 and abs(x) < FAR:
            place[1] += f"..{x * count + count - 1}"
        if self.launch.program.textures[resource].dimensions == 1:
            del place[0]
        return f"{self.texture(resource)}[{', '.join(place)}]"

    def extent(self, resource: int) -> str:
        """``A has 4 rows and 64 columns``."""
        surface = self.launch.textures[resource]
        return (
            f"{self.texture(resource)} has {surface.height} rows and {surface.width * self._numbers(resource)} columns"
        )

    def _numbers(self, resource: int) -> int:
        words = self.launch.textures[resource].words.shape[2]
        return max(1, 4 * words // np.dtype(self.dtypes.get(resource, np.float32)).itemsize)

    def element(self, element: int, word: int | None = None) -> str:
        """A 128-bit element of global memory (or one ``word`` of it) as ``g[70]``, or ``C[3, 16..19]`` if named."""
        if "g" not in self.names:
            return f"g[{element}]" + ("" if word is None else f".{'xyzw'[word]}")
        size = np.dtype(self.dtypes.get("g", np.float32)).itemsize
        first, count = element * 16 // size, 16 // size
        if word is not None:
            first, count = first + 4 * word // size, 1
        columns = self.shape[-1] if len(self.shape) > 1 else 0
        row, column = divmod(first, columns) if columns else (0, first)
        last = f"..{column + count - 1}" if count > 1 else ""
        return f"{self.names['g']}[{f'{row}, ' if columns else ''}{column}{last}]"

    def lds(self, block: int, byte: int) -> str:
        """A 32-bit word of LDS as ``lds[16]``."""
        return f"lds{block or ''}[{byte // 4}]"


def coordinate(place: int) -> str:
    """A whole coordinate as an event has it: in short form if it is far from every texture."""
    if abs(place) < FAR:
        return str(place)
    beyond = " or beyond" * (abs(place) == 1 << 62)  # where events end
    return {NOWHERE: "NaN", INFINITE: "infinity", -INFINITE: "-infinity"}.get(place) or f"{place:.2g}{beyond}"


class Check(Observer):
    """An observer that collects faults; see the module."""

    def __init__(self, places: Places):
        self.places, self.launch, self.program = places, places.launch, places.launch.program
        self.found: dict[tuple, dict] = {}

    def report(self, kind: str, at: int, message: str, advice: str, *, key=(), count: int = 1, word: str = "", **more):
        """Note a fault at ``body[at]`` that ``count`` work-items hit; ``word`` is what the caret shows."""
        line = self.program.body[at].line if at >= 0 else 1
        calls = self.program.called(self.program.body[at]) if at >= 0 else []
        name = (kind, line, *(self.program.as_written(str(part)) for part in key))
        if name in self.found:
            self.found[name]["more"] += count
            self.found[name]["calls"] = tuple(dict.fromkeys([*self.found[name]["calls"], *calls]))
            return
        text = self.program.lines[line - 1] if 0 < line <= len(self.program.lines) else ""
        item = more.pop("item", None)
        place = None if item is None else self.launch.place(item)
        more |= {"message": message, "advice": advice}
        more = {part: self.program.as_written(told) if isinstance(told, str) else told for part, told in more.items()}
        where = column(text, self.program.as_written(word))
        self.found[name] = {"kind": kind, "name": self.program.name, "line": line, "column": where, "text": text}
        self.found[name] |= {"more": count - 1, "work_item": place, "calls": tuple(calls)} | more

    def findings(self) -> Iterator[Finding]:
        """What was found."""
        return (Finding(**fault) for fault in self.found.values())


def column(text: str, word: str) -> int:
    """Where ``word`` stands in a line, from 1; the line's first word if it isn't there. With a comma before it, it is
    rather a source than the destination."""
    code = re.split(r";|//", text, maxsplit=1)[0]
    pattern = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(word.lstrip(','))}(?![0-9])", re.IGNORECASE)
    source = pattern.search(code, code.find(",") + 1) if word[:1] == "," else None
    found = (source or pattern.search(code)) if word else None
    return found.start() + 1 if found else len(text) - len(text.lstrip()) + 1


def of_text(error: ILError) -> Findings:
    """The faults of a text that can't be assembled, as findings."""
    advice = "The kernel was not run."
    return Findings(Finding("text", error.name, f.line, f.column, f.text, f.message, advice) for f in error.faults)
