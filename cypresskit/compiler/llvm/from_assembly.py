"""Read LLVM's assembly for the r600 target into our instructions.

The control flow comes first, then the clauses that it names. In a bundle, ``*`` marks the last
operation. Slots aren't printed: an operation is in its channel's, or in t if that isn't after the
slot before. KC0 and KC1 are what the clause locks of constant buffers. ``.loc`` gives the line of
what follows (see ``to_ir``). What LLVM added has none: a copy gets that of what it copies, anything
else that of its loop.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from cypresskit.compiler.assembly import (
    Bundle,
    Control,
    FetchInstruction,
    Operation,
    Read,
    StoreInstruction,
)
from cypresskit.compiler.ir import CompileError, FetchDetail, LdsAccess, StoreDetail
from cypresskit.compiler.isa import OPS, T
from cypresskit.compiler.llvm.to_ir import Unprinted
from cypresskit.il import Program
from cypresskit.il.bits import ALL, HALF, ONE
from cypresskit.il.program import LETTERS

#: LLVM's names of operations where they differ from the manual's.
NAMES = {
    "LSHL": "LSHL_INT",
    "LSHR": "LSHR_INT",
    "ASHR": "ASHR_INT",
    "MULLO_UINT": "MULLO_INT",
    "MULHI": "MULHI_UINT",
    "MAX": "MAX_DX10",
    "MIN": "MIN_DX10",
}
#: Its names of control flow without a clause or a store, and ours.
FLOW = {name: name for name in ("LOOP_START_DX10", "JUMP", "ELSE", "POP", "LOOP_BREAK")} | {
    "END_LOOP": "LOOP_END",
    "CF_END": "END",
}
INLINE = {"0.0": 0, "1.0": ONE, "0.5": HALF, "1": 1, "-1": ALL, "0": 0}
KINDS = {"T": "gpr", "PV": "pv", "PS": "ps", "OQAP": "queue"}
UNKNOWN = -1  # the line of what LLVM added

LOCATION = re.compile(r"\t\.loc\t1 (\d+)")
CLAUSE = re.compile(r"\t(?:Fetch|ALU) clause starting at (\d+):")
LITERALS = re.compile(r"(?:^|, )(-?\d+)\(")
TARGET = re.compile(r"@(\d+)")
OPERATION = re.compile(r"(?P<name>\S+)\s+\*?\s*(?P<operands>.*?)(BS:(?P<swizzle>\S+))?")
OPERAND = re.compile(r"(T|PV|PS|OQAP|KC|literal)(\d*)(?:\[(\d+)\])?(?:\.(\w))?")
REGISTER = re.compile(r"\bT(\d+)")
RESULT = re.compile(r"T(\d+)\.(\w)\s*(\(MASKED\))?")
LOCKED = re.compile(r"KC(\d)\[CB(\d+):(\d+)-\d+\]")
FETCH = re.compile(
    r"(?:TEX_SAMPLE|VTX_READ_128) T(\d+)\.(\w{4}), T(\d+)\.(\w+)(?:, (\d+), #1| RID:(\d+) .*)$"
)
STORE = re.compile(r"MEM_RAT STORE_TYPED RAT\((\d+)\) T(\d+), T(\d+)")


class AssemblyLine(NamedTuple):
    """A line of assembly, and the instruction in ``Program.body`` that it comes from."""

    text: str
    at: int

    @property
    def target(self) -> int:
        """The place in the assembly that it names, or -1."""
        found = TARGET.search(self.text)
        return int(found[1]) if found else -1


def read(
    text: str, unprinted: Sequence[Unprinted], program: Program
) -> tuple[tuple[Control, ...], int]:
    """Return the instructions of an assembly, and the number of registers.

    Parameters
    ----------
    text
        The assembly.
    unprinted
        What its resources and memories stand for.
    program
        The program that it was made of.

    Raises
    ------
    CompileError
        For what isn't ours, such as an absolute operand.
    """
    return _Reader(text, unprinted, program).run()


class _Reader:
    """Reads one assembly.

    Attributes
    ----------
    flow, clauses
        The lines of the control flow, and of each clause by its place.
    controls, firsts
        The instructions so far, and the index of the first one of each line of the control flow.
    begins
        The instruction in ``Program.body`` that begins each loop, by its line of the control flow.
    opened
        The indices of the LOOP_STARTs of the loops that are open.
    locked, literals
        What the current clause locks of constant buffers: (buffer, first element); the literals of
        the current bundle.
    made
        The instruction in ``Program.body`` whose result a place holds: kind, index and channel of
        an operand.
    """

    def __init__(self, text: str, unprinted: Sequence[Unprinted], program: Program):
        self.unprinted, self.program = unprinted, program
        self.flow: list[AssemblyLine] = []
        self.clauses: dict[int, list[AssemblyLine]] = {}
        self.gprs = max(map(int, REGISTER.findall(text)), default=0) + 1
        self.split(text)
        self.controls: list[Control] = []
        self.firsts: list[int] = []
        self.begins = dict(self.loops())
        self.opened: list[int] = []
        self.locked: dict[str, tuple[int, int]] = {}
        self.literals: list[int] = []
        self.made: dict[tuple[str, int, int], int] = {}
        self.lds = next((LdsAccess(n, 0, size, 0) for n, size in program.lds.items()), None)

    def split(self, text: str) -> None:
        """Split the text into control flow and clauses."""
        at = UNKNOWN
        into = self.flow
        for line in text.splitlines():
            if location := LOCATION.match(line):
                at = int(location[1]) - 1
            elif clause := CLAUSE.match(line):
                into = self.clauses[int(clause[1])] = []
            elif not line.startswith(("\t.", ".")):
                into.append(AssemblyLine(line.strip(), at))

    def run(self) -> tuple[tuple[Control, ...], int]:
        for n, line in enumerate(self.flow):
            self.firsts.append(len(self.controls))
            self.control(line._replace(at=self.begins.get(n, line.at)))
        self.firsts.append(len(self.controls))
        return tuple(map(self.jump, self.controls)), self.gprs

    def refuse(self, what: str) -> CompileError:
        return CompileError(
            f"{self.program.name}: LLVM's code has {what}, for which our form of code has no place:"
            ' leave out by="llvm"'
        )

    # Control flow

    def loops(self) -> Iterator[tuple[int, int]]:
        """Yield the line of the control flow that begins a loop, and the instruction in
        ``Program.body`` that does: the innermost loop of the IL that has all lines of LLVM's. LLVM
        exchanges loops, and drops some.
        """
        body, ends = self.program.body, self.program.matching
        spans = [range(at + 1, ends[at]) for at, i in enumerate(body) if i.op.flow == "loop"]
        opened: list[tuple[int, set[int]]] = []
        for n, line in enumerate(self.flow):
            if line.text.startswith("LOOP_START_DX10"):
                opened.append((n, set()))
            parts = {part.at for part in (line, *self.clauses.get(line.target, ()))} - {UNKNOWN}
            for _, lines in opened:
                lines |= parts
            if line.text.startswith("END_LOOP"):
                first, lines = opened.pop()
                around = [span for span in spans if all(at in span for at in lines)]
                if not lines or not around:
                    raise self.refuse("a loop whose lines are in no loop of the kernel")
                begin = around[-1].start - 1
                for _, lines in opened:
                    lines.add(begin)  # the loop around it is another one
                yield first, begin

    def control(self, line: AssemblyLine) -> None:
        """Append the instructions of a line of the control flow."""
        name = line.text.split()[0]
        if name in ("ALU", "ALU_PUSH_BEFORE", "ALU_POP_AFTER"):
            locks = LOCKED.findall(line.text)
            self.locked = {lock: (int(buffer), int(first)) for lock, buffer, first in locks}
            bundles = tuple(self.bundles(self.clauses[line.target]))
            at = bundles[0].operations[0].at
            self.add(name.removesuffix("_POP_AFTER"), at, bundles=bundles)
            if name == "ALU_POP_AFTER":
                self.add("POP", at)
        elif name in ("TEX", "VTX"):
            fetches = tuple(map(self.fetch, self.clauses[line.target]))
            self.add("TEX", fetches[0].at, fetches=fetches)
        elif name == "MEM_RAT":
            self.store(line)
        elif name in FLOW:
            if name == "LOOP_START_DX10":
                self.opened.append(len(self.controls))
            self.add(FLOW[name], line.at, target=line.target if name in ("JUMP", "ELSE") else -1)
            if name == "END_LOOP":
                start, end = self.opened.pop(), len(self.controls) - 1
                self.controls[start] = replace(self.controls[start], target=end + 1)
                at = self.controls[start].at
                self.controls[end] = replace(self.controls[end], at=at, target=start + 1)
        elif name != "PAD":
            raise self.refuse(f"`{line.text}`")

    def add(self, name: str, at: int, **fields) -> None:
        depth, at = len(self.opened), self.place(at)["at"]
        self.controls.append(Control(name, depth=depth, at=at, **fields))

    def place(self, at: int) -> dict[str, int]:
        """Return an instruction of ``Program.body`` and its line: if none is known, that of the
        loop, or the first.
        """
        if at == UNKNOWN:
            at = self.controls[self.opened[-1]].at if self.opened else 0
        return {"at": at, "line": self.program.body[at].line}

    def jump(self, control: Control) -> Control:
        """Return a jump with its target: LLVM's go past the POP or to it, ours to the ELSE or
        POP.
        """
        if control.name not in ("JUMP", "ELSE"):
            return control
        target = self.firsts[control.target]
        if control.name == "ELSE" or self.controls[target].name != "ELSE":
            target -= 1
            if self.controls[target].name != "POP":
                raise self.refuse(f"`{control.name} @{control.target}`")
        return replace(control, target=target)

    # Bundles

    def bundles(self, lines: list[AssemblyLine]) -> Iterator[Bundle]:
        """Yield the bundles of a clause."""
        bundle: list[AssemblyLine] = []
        rest = deque(lines)
        while rest:
            bundle.append(rest.popleft())
            if "*" not in bundle[-1].text:
                continue
            self.literals = []
            while rest and (literals := LITERALS.findall(rest[0].text)):
                rest.popleft()
                self.literals += [int(literal) & ALL for literal in literals]
            operations = list(self.operations(bundle))
            used = [r.channel + 1 for o in operations for r in o.reads if r.kind == "literal"]
            yield Bundle(
                tuple(sorted(operations, key=lambda o: o.slot)),
                tuple(self.literals[: max(used, default=0)]),
            )
            for o in operations:
                self.made["ps" if o.slot == T else "pv", 0, o.slot % T] = o.at
                if o.dest is not None:
                    self.made["gpr", *o.dest] = o.at
            bundle = []

    def operations(self, bundle: list[AssemblyLine]) -> Iterator[Operation]:
        """Yield the operations of a bundle, each in its slot."""
        last = -1  # channel
        for number, (text, at) in enumerate(bundle):
            found = OPERATION.fullmatch(text)
            assert found is not None
            name = NAMES.get(found["name"], found["name"])
            parts = [part.strip() for part in found["operands"].split(",") if part.strip()]
            row = OPS.get(name)
            if row is None:
                raise self.refuse(f"`{text}`")
            channel, dest = 0, None
            if row.words:
                result = RESULT.fullmatch(parts.pop(0))
                if result is None:
                    raise self.refuse(f"`{text}`")
                channel = LETTERS.index(result[2].lower())
                dest = None if result[3] else (int(result[1]), channel)
            elif row.is_test:  # its channel isn't printed: a guess, which the rules allow
                channel = (last + 1) % T
                parts = parts[-2:]
            elif row.kind == "lds":
                parts = [part for part in parts if part != "OQAP"]
            slot = T if row.slots == "t" or channel <= last else channel
            last = max(last, channel)
            reads = tuple(map(self.operand, parts))
            vector, _, scalar = (found["swizzle"] or "VEC_012/SCL_210").partition("/")
            if at == UNKNOWN and name == "MOV":
                source = reads[0]
                at = self.made.get((source.kind, source.index, source.channel), UNKNOWN)
            yield Operation(
                name,
                slot,
                channel,
                reads,
                dest,
                swizzle=scalar if slot == T else vector,
                **self.place(at),
                number=number,
                place=0,
                lds=self.lds if row.kind == "lds" else None,
            )

    def operand(self, text: str) -> Read:
        """Return an operand of the current bundle."""
        neg = text.startswith("-") and text not in INLINE
        bare = text.removeprefix("-") if neg else text
        if bare in INLINE:
            return Read("inline", bits=INLINE[bare], neg=neg)
        found = OPERAND.fullmatch(bare)
        if found is None:
            raise self.refuse(f"`{text}`")
        kind, number, element, letter = found.groups()
        channel = LETTERS.index(letter.lower()) if letter else 0
        if kind == "KC":
            buffer, first = self.locked[number]
            return Read("constant", buffer, channel, first + int(element), neg=neg)
        if kind == "literal":
            return Read(kind, channel=channel, bits=self.literals[channel], neg=neg)
        return Read(KINDS[kind], int(number or 0), channel, neg=neg)

    # Memory

    def fetch(self, line: AssemblyLine) -> FetchInstruction:
        """Return a fetch."""
        found = FETCH.match(line.text)
        if found is None:
            raise self.refuse(f"`{line.text}`")
        dest, select, source, coordinates, element, number = found.groups()
        fetched = Unprinted("MEM_READ", FetchDetail((int(element or 0),)))
        if number:
            fetched = self.unprinted[int(number)]
            coordinates = coordinates[:2]
        name, detail = fetched
        assert isinstance(detail, FetchDetail)
        return FetchInstruction(
            name,
            int(dest),
            select.lower(),
            int(source),
            coordinates.lower(),
            detail.offset,
            resource=detail.resource,
            **self.place(line.at),
        )

    def store(self, line: AssemblyLine) -> None:
        """Append a store."""
        found = STORE.match(line.text)
        if found is None:
            raise self.refuse(f"`{line.text}`")
        number, source, index = map(int, found.groups())
        name, detail = self.unprinted[number]
        assert isinstance(detail, StoreDetail)
        select = "".join(c if n in detail.mask else "_" for n, c in enumerate(LETTERS))
        is_export = name == "EXPORT"
        store = StoreInstruction(
            name,
            source,
            select,
            detail.place,
            None if is_export else index,
            **self.place(line.at),
        )
        self.add("EXPORT" if is_export else "MEM_EXPORT_WRITE_IND", line.at, store=store)
