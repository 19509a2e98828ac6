"""A kernel's machine code: its instructions, as NVIDIA's disassembler prints them.

``SassCode.text`` has a line for each instruction: the line of the source, the control code in
hexadecimal, and the instruction. The control code has how long a warp stalls after it (bits 0 to
3), the scoreboard that it sets until its data arrive (bits 5 to 7; 7 is none), and those that it
waits for (bits 11 to 16): Z. Jia and colleagues, "Dissecting the NVIDIA Volta GPU architecture via
microbenchmarking", 2018.
"""

import operator
import re
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import takewhile
from string import digits
from typing import NamedTuple

CONTROL = 41  # bits of an instruction's second word below its control code
BYTES = {"64": 8, "WIDE": 8, "CS2R": 8, "128": 16}  # of an access or a result, if not 4
SCOREBOARDS = 6
NAMES = r"U?R\d+|U?RZ|U?P\d|U?PT|PR|SR_[\w.]+|SRZ"
#: Kinds of instructions, by which a scheduler's clocks differ (``gpus``); any other is "other".
KINDS = {
    "single": "FFMA FMUL FADD",
    "double": "DFMA DMUL DADD",
    "integer": "IADD3 LOP3 LEA SHF SEL ISETP PRMT MOV IABS IMNMX VIMNMX FSETP FSEL PLOP3",
    "product": "IMAD VIADD",
    "barrier": "BAR",
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}
CONTROL_FLOW = "BRA", "BSSY", "BSYNC", "BAR", "NOP", "WARPSYNC", "EXIT"
LOADS, STORES = ("LDG", "LDS"), ("STG", "STS")
SHARED = "LDS", "STS"
PRODUCTS = "FFMA", "FMUL", "DFMA", "DMUL"
SUMS = "FADD", "DADD"


class Operand(NamedTuple):
    """An operand: the ``sign`` before it ("-", "~", "!" or ""), and the name of a register or
    predicate, or digits.
    """

    sign: str
    value: str


@dataclass(frozen=True, eq=False)
class SassInstruction:
    """An instruction.

    Attributes
    ----------
    index
        Its number in the code.
    line
        The line of the source.
    name, modifiers
        "IADD3", and what follows its name: ("X",).
    conditions
        The predicates that it depends on.
    results
        The registers and predicates that it writes, two registers for 64 bits.
    sources
        What it reads: of an access, its address; of a branch, at last the instruction that it
        goes to.
    size
        Bytes of an access, or of a result, for a thread.
    stall
        Clocks until the warp's next instruction.
    sets
        A mask of the scoreboard that it sets.
    waits
        A mask of the scoreboards that it waits for.
    text
        What the disassembler prints.
    """

    index: int
    line: int
    name: str
    modifiers: tuple[str, ...]
    conditions: list[Operand]
    results: list[Operand]
    sources: list[Operand]
    size: int
    stall: int
    sets: int
    waits: int
    text: str

    @property
    def kind(self) -> str:
        """What its clocks of a scheduler depend on."""
        if self.name == "IMAD" and "WIDE" in self.modifiers:
            return "wide product"
        is_uniform = self.name[0] == "U" and self.name != "ULDC"
        return KIND_OF.get(self.name, "uniform" if is_uniform else "other")

    @property
    def is_load(self) -> bool:
        return self.name in LOADS

    @property
    def is_access(self) -> bool:
        return self.name in LOADS + STORES

    @property
    def is_shared(self) -> bool:
        """Whether it accesses shared memory."""
        return self.name in SHARED

    @property
    def target(self) -> int:
        """The instruction that a branch goes to."""
        return int(self.sources[-1].value)


@dataclass(frozen=True)
class SassCode:
    """The machine code of a kernel.

    Attributes
    ----------
    entry
        What the kernel is called in it.
    registers, shared_bytes
        Of a thread, and of a block.
    text
        A line for each instruction, as the module says.
    """

    entry: str
    registers: int
    shared_bytes: int
    text: str

    @cached_property
    def instructions(self) -> list[SassInstruction]:
        return [_instruction(n, line) for n, line in enumerate(self.text.splitlines())]

    @cached_property
    def scoreboards(self) -> dict[int, int]:
        """The mask of the scoreboard that each load sets. Loads of shared memory arrive in order:
        one without a scoreboard has that of the load after it.
        """
        found = {}
        last = 0
        for one in reversed(self.instructions):
            if one.is_load:
                last = found[one.index] = one.sets or last
        return found

    @cached_property
    def set_by_loads(self) -> int:
        """The mask of all these scoreboards."""
        return reduce(operator.or_, self.scoreboards.values(), 0)

    @cached_property
    def loops(self) -> dict[int, int]:
        """The instructions to which a branch goes back, each with the last such branch; of loops
        that are in no other loop.
        """
        found: dict[int, int] = {}
        end = -1
        branches = [one for one in self.instructions if one.name == "BRA"]
        for header, last in sorted((one.target, one.index) for one in branches):
            if header < last and (header in found or header > end):
                found[header] = end = last
        return found


def _instruction(index: int, line: str) -> SassInstruction:
    number, control, text = line.split(" ", 2)
    bits = int(control, 16)
    [(guard, name, rest)] = re.findall(r"^(?:@(\S+) )?(\S+) ?(.*)", text)
    name, *modifiers = name.split(".")
    size = max(BYTES.get(word, 4) for word in (name, *modifiers))
    results, sources = _split(name, modifiers, size // 4, _operands(rest))
    scoreboard = bits >> 5 & 7
    return SassInstruction(
        index=index,
        line=int(number),
        name=name,
        modifiers=tuple(modifiers),
        conditions=_operands(guard) + (sources[:-1] if name == "BRA" else []),
        results=results,
        sources=sources,
        size=size,
        stall=bits & 15,
        sets=1 << scoreboard if scoreboard < SCOREBOARDS else 0,
        waits=bits >> 11 & (1 << SCOREBOARDS) - 1,
        text=text,
    )


def _split(
    name: str, modifiers: list[str], words: int, operands: list[Operand]
) -> tuple[list[Operand], list[Operand]]:
    """Return an instruction's results, a register with the predicates before it or after it, and
    what it reads.
    """
    if name in CONTROL_FLOW + STORES:
        return [], operands[: -1 if name in STORES else None]
    if name.lstrip("U") == "LOP3" and _is_predicate(operands[0]):
        operands[:2] = operands[1::-1]
    flags = [*takewhile(_is_predicate, operands[1 : 2 if "PLOP3" in name else 3])]
    sources = operands[1 + len(flags) :]
    at = 2 if "IMAD" in name else 0
    if (words == 2 and name not in LOADS) or (at and "HI" in modifiers):
        sources[at : at + 1] = _words(sources[at : at + 1], 2)
    return _words(operands[:1], words) + flags, sources


def _is_predicate(operand: Operand) -> bool:
    return re.fullmatch(r"U?P[T\d]", str(operand.value)) is not None


def _words(operands: list[Operand], count: int) -> list[Operand]:
    """Return operands, each with the registers, or words of the constant bank, that follow it."""
    found = []
    for sign, name in operands:
        letters = name.rstrip(digits)
        first = name.removeprefix(letters)
        found += [
            Operand(sign, f"{letters}{int(first) + n}" if first else name) for n in range(count)
        ]
    return found


def _operands(text: str) -> list[Operand]:
    """Return the operands of an instruction. Word n of the constant bank is named "c" + n."""
    text = re.sub(r"desc\[\w+\]|(?<=[\dZ])\.(64|reuse)", "", text)
    text = text.replace("c[0x0][RZ]", "c0")
    text = re.sub(r"c\[0x0\]\[(0x\w+)\]", lambda found: f"c{int(found[1], 16) // 4}", text)
    found = re.findall(rf"([-~!|]?)({NAMES}|c\d+|0x[0-9a-f]+|[\d.]+(?:e[-+]\d+)?)", text)
    return [Operand(sign, value) for sign, value in found]


def read_listing(listing: str) -> str:
    """Return the text of a ``SassCode``, given a listing by `nvdisasm -hex -g -c`."""
    rows: list[list[str]] = []
    labels: dict[str, int] = {}
    line = "0"
    for row in listing.splitlines():
        if label := re.match(r"\s*([.$]\S+):$", row):
            labels[label[1]] = len(rows)
        elif found := re.search(r'//## File ".*", line (\d+)', row):
            line = found[1]
        elif found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;?\s*/\* 0x\w+ \*/", row):
            text = re.sub(r"\s+", " ", found[1].removesuffix(" ;")).replace(".reuse", "")
            rows.append([line, "", text])
        elif found := re.match(r"\s*/\* 0x([0-9a-f]{16}) \*/", row):
            rows[-1][1] = f"{int(found[1], 16) >> CONTROL:x}"
    for words in rows:
        words[2] = re.sub(r"`\(([^)]*)\)", lambda found: str(labels.get(found[1], 0)), words[2])
    last = max((n for n, row in enumerate(rows) if not row[2].startswith("NOP")), default=-1)
    return "\n".join(" ".join(row) for row in rows[: last + 1])
