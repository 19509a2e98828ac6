"""The history of a kernel's edits: what each text became, kept beside the file.

An edit is kept once it is known whether it is right and how fast: not each letter typed, but each
text whose figures (right or wrong, speed, bundles, registers) aren't those of the one before. Two
attempts at the same thing that are both wrong, within seconds, are one. A text that was changed
outside, or never reached the file, is kept without being judged. Workbenches with other arguments
on the same file share its history: each edit says with which it was judged.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from cypresskit.saving import save_file
from cypresskit.tables import quantity, table

MOST = 300  # edits that are kept; of older ones, the fastest
BURST = 15.0  # seconds within which wrong attempts are one
LETTERS = 48  # of a line that is quoted
LAUNCH_LETTERS = 6  # that tell one launch with arrays from another


@dataclass(frozen=True)
class Edit:
    """A text and what it became.

    ``number`` counts from 1 and is never used twice. ``right``: whether C is, None if that wasn't
    judged. ``gflops`` at ``n``, 0 if it wasn't timed; ``bound``, what binds it. ``bundles``,
    ``registers``, ``wavefronts`` are the card's. ``note`` says where it came from, if not from
    typing; ``time`` in seconds since 1970; ``change`` says what it changed of the edit before it.
    ``arguments``: with which arguments of ``ck.workbench`` it was judged, in words; "" if it wasn't
    judged, and in histories of former versions.
    """

    number: int
    text: str
    right: bool | None
    gflops: float
    n: int
    bound: str
    bundles: int
    registers: int
    wavefronts: int
    note: str = ""
    time: float = 0.0
    change: str = ""
    arguments: str = ""

    @property
    def judgement(self) -> str:
        """Whether C is right, in words."""
        if self.right is None:
            return "not judged"
        return "right" if self.right else "wrong"

    def judged_with(self, arguments: str) -> bool:
        """Whether what it says holds for a workbench with these arguments; "" are any."""
        return not arguments or self.arguments in ("", arguments)

    def shown(self, arguments: str = "") -> dict[str, Any]:
        """What a page with these arguments needs of it: all but the text. One that was judged with
        others isn't judged with these; ``others`` says what it was with them, or is "".
        """
        left_out = ("text", "arguments")
        row = {name: value for name, value in asdict(self).items() if name not in left_out}
        if self.judged_with(arguments):
            return row | {"others": ""}
        return row | {"right": None, "others": f"C is {self.judgement} with {self.arguments}"}


class Edits(Sequence[Edit]):
    """The edits of a kernel, the oldest first, kept in the file at ``path``."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.kept: list[Edit] = []
        if path is not None and path.exists():
            self.kept = _read(path)

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, number):
        return self.kept[number]

    def __iter__(self) -> Iterator[Edit]:
        return iter(tuple(self.kept))

    def find(self, number: int) -> Edit | None:
        """The edit of a number, or None."""
        return next((edit for edit in self.kept if edit.number == number), None)

    def known(self, text: str, arguments: str | None = None) -> Edit | None:
        """The latest edit with this text, or None; given arguments, the latest judged with them."""
        return next(
            (
                edit
                for edit in reversed(self.kept)
                if edit.text == text and (arguments is None or edit.judged_with(arguments))
            ),
            None,
        )

    def last(self, arguments: str) -> Edit | None:
        """The latest edit that was judged with these arguments, or not at all; or None."""
        return next((edit for edit in reversed(self.kept) if edit.judged_with(arguments)), None)

    def shown(self, arguments: str) -> list[dict[str, Any]]:
        """What a page with these arguments shows: its own edits, and those of other arguments
        whose texts were never judged with its own.
        """
        judged = {edit.text for edit in self.kept if edit.arguments == arguments}
        return [
            edit.shown(arguments)
            for edit in self.kept
            if edit.judged_with(arguments) or edit.text not in judged
        ]

    def add(self, edit: Edit) -> Edit:
        """Keep an edit, with the next number. Raises ``OSError`` if the file can't be written; it
        is kept in memory all the same.
        """
        last = self.last(edit.arguments)
        now = edit.time or time.time()
        number = self.kept[-1].number + 1 if self.kept else 1
        edit = replace(edit, number=number, time=round(now, 1))
        attempt = last is not None and not (last.right or edit.right or last.note or edit.note)
        if last is not None and attempt and now - last.time < BURST:
            self.kept.remove(last)
        if (before := self.last(edit.arguments)) is not None:
            edit = replace(edit, change=change_between(before.text, edit.text))
        self.kept.append(edit)
        while len(self.kept) > MOST:
            self._drop()
        self.save()
        return edit

    def _drop(self) -> None:
        """Forget one of the older half: one that isn't known to be right, or the slowest."""
        older = self.kept[: len(self.kept) // 2]
        self.kept.remove(min(older, key=lambda edit: (bool(edit.right), edit.gflops, edit.number)))

    def save(self) -> None:
        """Write the file."""
        if self.path is not None:
            rows = [json.dumps(asdict(edit)) for edit in self.kept]
            save_file(self.path, "[\n" + ",\n".join(rows) + "\n]\n")

    def _remark(self, edit: Edit) -> str:
        """Where an edit came from, and with which arguments it was judged, if not all with one."""
        arguments = {edit.arguments for edit in self.kept if edit.arguments}
        judged = f"with {edit.arguments}" if edit.arguments and len(arguments) > 1 else ""
        return ", ".join(filter(None, (edit.note, judged)))

    def __repr__(self) -> str:
        lines = [f"{len(self)} edits"]
        for edit in self.kept:
            at = f" at N = {edit.n}" if edit.n else ""
            speed = f"{edit.gflops:8.1f} Gflop/s{at}" if edit.gflops else "not timed"
            code = f"{edit.bundles} bundles, {edit.registers} registers"
            line = f"  {edit.number:3}  {edit.judgement}  {speed}, {code}  {self._remark(edit)}"
            lines.append(line.rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names = "edit", "C", "Gflop/s", "N", "bound by", "bundles", "registers", "wavefronts", ""
        rows = (
            (
                edit.number,
                edit.judgement,
                edit.gflops,
                edit.n,
                edit.bound,
                edit.bundles,
                edit.registers,
                edit.wavefronts,
                self._remark(edit),
            )
            for edit in self.kept
        )
        return table(names, rows)


def arguments_in_words(settings: Mapping[str, Any]) -> str:
    """The arguments of ``ck.workbench`` that a text is judged with."""
    words = []
    for name, value in settings.items():
        if value is None:
            continue
        if name == "launch":
            words.append(f"arrays {Path(value).stem[:LAUNCH_LETTERS]}")
        else:
            words.append(f"{name}={tuple(value)}" if name == "block" else f"{name}={value!r}")
    return ", ".join(words) or "no arguments"


def change_between(before: str, after: str) -> str:
    """What was changed in a text, in a few words: "" if nothing was."""
    old, new = before.splitlines(), after.splitlines()
    shorter = min(len(old), len(new))
    first = 0
    while first < shorter and old[first] == new[first]:
        first += 1
    same = 0
    while same < shorter - first and old[-1 - same] == new[-1 - same]:
        same += 1
    removed, added = old[first : len(old) - same], new[first : len(new) - same]
    if (len(removed), len(added)) == (0, 0):
        return ""
    if (len(removed), len(added)) == (1, 1):
        return f"line {first + 1} is now {_quoted(added[0])}"
    if (len(removed), len(added)) == (0, 1):
        return f"line {first + 1} is new: {_quoted(added[0])}"
    if (len(removed), len(added)) == (1, 0):
        return f"line {first + 1} is gone: {_quoted(removed[0])}"
    if len(removed) == len(added):
        count = sum(one != other for one, other in zip(removed, added))
        return f"{count} lines are changed, the first is line {first + 1}"
    return f"from line {first + 1}, {quantity(len(added), 'line')} in place of {len(removed)}"


def _quoted(line: str) -> str:
    line = line.strip()
    if not line:
        return "empty"
    return line if len(line) <= LETTERS else f"{line[: LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"


def history_path(path: Path) -> Path:
    """Where the history of a kernel's file is: beside it, hidden."""
    return path.with_name(f".{path.name}.history.json")


def _read(path: Path) -> list[Edit]:
    """The edits in a file. One that can't be read is put aside, not lost."""
    names = {field.name for field in fields(Edit)}
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        edits = [Edit(**{name: row[name] for name in names & row.keys()}) for row in rows]
        if isinstance(rows, list) and all(_is_sound(edit) for edit in edits):
            return edits
    except (OSError, ValueError, TypeError, AttributeError):
        pass
    with suppress(OSError):
        path.replace(path.with_name(path.name + ".unreadable"))
    return []


def _is_sound(edit: Edit) -> bool:
    """Whether the fields have the types that they should have."""
    texts = (edit.text, edit.bound, edit.note, edit.change, edit.arguments)
    wholes = (edit.number, edit.n, edit.bundles, edit.registers, edit.wavefronts)
    return (
        all(isinstance(value, str) for value in texts)
        and all(type(value) is int for value in wholes)
        and isinstance(edit.right, bool | None)
        and all(isinstance(value, int | float) for value in (edit.gflops, edit.time))
    )
