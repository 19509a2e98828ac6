"""Type confusion: integers or halves of doubles that float instructions read, results that are
stored to an array of another kind, and instructions in comments.

A float instruction reads the bits of an integer as a subnormal, which counts as 0. An array of
float64 is read as pairs of words; without double instructions, a float instruction reads halves of
its numbers. The check follows the source from the first line to the last, without running it: a
register holds what the last line before wrote, and ``mov`` copies it. Left out: values carried
around loops. Float bits in an integer array that is read are no fault.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cypresskit.il.dataflow import ADDRESS, Key, defines, uses
from cypresskit.il.opcodes import OPCODES
from cypresskit.il.parser import find_lost_instructions
from cypresskit.il.program import LETTERS, Dest, Instruction, Source
from cypresskit.machine.checks.findings import Check, Finding, Naming

SUBNORMAL = 1 << 23  # words below it are subnormal floats, which count as 0
# How the launch gave a number that is misread, and advice
INTEGER = (
    "an integer; read as a float, that is 0",
    "Pass a float (with a point: 64.0), or convert it with `itof`.",
)
DOUBLES = (
    "doubles: a float instruction reads each as two words",
    "No instruction here takes doubles: give the array .astype(np.float32), or use `dadd`, `dmul`,"
    " ...",
)
#: By a result's type letter: what it is, the dtype of an array that holds it, and advice.
STORED = {
    "f": ("a float", np.float32, "Give an array of np.float32: numpy's default is float64"),
    "d": ("a double", np.float64, "Give an array of np.float64"),
    "i": ("an integer", np.int32, "Give an array of np.int32, or convert it with `itof`"),
    "u": ("an integer", np.int32, "Give an array of np.uint32, or convert it with `itof`"),
}
Kind = tuple[str, str] | None  # INTEGER or DOUBLES; None for what isn't misread


@dataclass(frozen=True)
class _Origin:
    """Where a number that is misread came from, as "cb0[1].x" or "texture 0", and its ``kind``."""

    place: str
    kind: tuple[str, str]


class TypeConfusionCheck(Check):
    """Reports float instructions that read integers or halves of doubles from the caller's arrays:
    ``constants`` by number, textures and global memory; and results that are stored to
    ``outputs`` or global memory of another kind.
    """

    def __init__(self, naming: Naming, constants: Mapping, outputs: Mapping):
        super().__init__(naming)
        doubles = any("d" in i.op.types for i in self.program.body)
        self.constants = {n: _word_kinds(array, doubles) for n, array in constants.items()}
        self.textures = {n: _array_kind(array, doubles) for n, array in naming.textures.items()}
        self.memory_kind = _array_kind(naming.memory, doubles)
        self.outputs = outputs
        self.held: dict[Key, _Origin | None] = {}
        self.made: dict[Key, str] = {}  # the opcode whose result a component holds
        self._report_comments()
        for at, i in enumerate(self.program.body):
            self._look(at, i)

    def _look(self, at: int, i: Instruction) -> None:
        """Report what instruction ``i`` misreads, and note what its result holds."""
        misread: dict[str, tuple[Source, _Origin]] = {}
        for n, source, positions in uses(self.program, i):
            if n == ADDRESS or i.op.sources[n] != "f":
                continue
            for position in positions:
                if origin := self._origin(source, position):
                    misread.setdefault(origin.place.split(".")[0], (source, origin))
        for source, origin in misread.values():
            self._report_origin(at, i, source, origin)
        if i.dest and i.dest.register.kind == "g":
            self.memory_kind = None  # what is stored there isn't the caller's
        if i.dest and i.dest.register.kind in ("g", "o"):
            self._report_store(at, i, i.dest)
        self.made |= {key: self._maker(i, key[1]) for key in defines(i)}
        self.held |= {key: self._result(i, key[1]) for key in defines(i)}

    def _result(self, i: Instruction, c: int) -> _Origin | None:
        if i.op.kind == "fetch":
            n = i.controls.resource
            kind = self.textures.get(n)
            return _Origin(self.naming.texture(n), kind) if kind else None
        if i.opcode == "mov" and i.dest and c in i.dest.written:
            return self._origin(i.sources[0], c)
        return None

    def _maker(self, i: Instruction, c: int) -> str:
        """Return the opcode whose result component ``c`` of an instruction's destination holds."""
        if i.opcode != "mov" or not i.dest or c not in i.dest.written:
            return i.opcode if i.op.kind == "alu" else ""
        source = i.sources[0]
        letter = source.swizzle[c]
        if source.register.kind != "r" or letter not in LETTERS:
            return ""
        return self.made.get((source.register.index, LETTERS.index(letter)), "")

    def _report_store(self, at: int, i: Instruction, dest: Dest) -> None:
        """Report a result that is stored to an array of another kind."""
        register = dest.register
        array = self.naming.memory if register.kind == "g" else self.outputs.get(register.index)
        makers = dict.fromkeys(self._maker(i, c) for c in dest.written)
        for maker in filter(None, makers):
            what, dtype, advice = STORED.get(OPCODES[maker].result, ("", None, ""))
            if dtype is None or array is None or not _holds_other(array.dtype, dtype):
                continue
            own = str(register) if register.kind == "o" else "g"
            place = self.naming.names.get(own, "g[]" if own == "g" else own)
            self.report(
                "number kind",
                at,
                f"{what}, the result of `{maker}`, is stored to {place}, an array of {array.dtype}",
                f"{advice}.",
                key=(place,),
                word=str(register) if register.kind == "o" else "",
                element=place,
            )
            return

    def _origin(self, source: Source, position: int) -> _Origin | None:
        letter = source.swizzle[position]
        register = source.register
        if letter not in LETTERS:
            return None
        c = LETTERS.index(letter)
        if register.kind == "r":
            return self.held.get((register.index, c))
        if register.kind == "g":
            kind = self.memory_kind
            return _Origin(self.naming.names.get("g", "g[]"), kind) if kind else None
        if register.kind == "cb":
            kinds = self.constants.get(register.index, [])
            word = 4 * register.element + c
            kind = kinds[word] if word < len(kinds) else None
            return _Origin(f"{register}.{letter}", kind) if kind else None
        return None

    def _report_origin(self, at: int, i: Instruction, source: Source, origin: _Origin) -> None:
        given, advice = origin.kind
        read = "" if str(source.register) in origin.place else f" (in {source.register})"
        what = f"`{i.opcode}` reads {origin.place}{read} as a float"
        element = origin.place.split(".")[0] if origin.place.startswith("cb") else origin.place
        self.report(
            "number kind",
            at,
            f"{what}, which the launch gave as {given}",
            advice,
            key=(element,),
            word=str(source.register),
            element=element,
        )

    def _report_comments(self) -> None:
        for lost, fault in find_lost_instructions(self.program.lines):
            if " " in lost:  # a word alone may well be a comment
                advice = "IL has one instruction per line."
                place = self.program.name, fault.line, fault.column, fault.text
                self.found["comment", fault.line] = Finding(
                    "comment", *place, fault.message, advice
                )


def _holds_other(given: np.dtype, wanted: type) -> bool:
    """Return whether an array holds numbers of another kind. One of uint32 may hold any bits."""
    if given == np.uint32 or np.dtype(wanted).kind == given.kind == "i":
        return False
    return given != wanted


def _array_kind(array, doubles: bool) -> Kind:
    """Return what a float instruction would misread in all of an array, or None. An integer array
    with a value of 2^23 or more is taken for the bits of floats.
    """
    numbers = np.asarray(array)
    if numbers.dtype.kind in "iu" and (np.abs(numbers.astype(np.int64)) >= SUBNORMAL).any():
        return None
    return next(filter(None, _word_kinds(array, doubles)), None)


def _word_kinds(values, doubles: bool) -> list[Kind]:
    """Return what a float instruction would misread in each 32-bit word of an array, or of plain
    numbers.
    """
    array = np.asarray(values)
    if array.dtype == np.float64 and isinstance(values, np.ndarray):
        return [None if doubles else DOUBLES] * (2 * array.size)
    if array.dtype.kind not in "iu":
        return [None] * array.size
    numbers = np.abs(array.reshape(-1).astype(np.int64))
    return [INTEGER if small else None for small in (numbers > 0) & (numbers < SUBNORMAL)]
