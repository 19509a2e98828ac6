"""A kernel's machine code: its instructions, as NVIDIA's disassembler prints them.

``SassCode.text`` has a line for each instruction: the line of the source, the control code in
hexadecimal, and the instruction. The control code has how long a warp stalls after it (bits 0 to
3), the scoreboard that it sets until its data arrive (bits 5 to 7; 7 is none), and those that it
waits for (bits 11 to 16): Z. Jia and colleagues, "Dissecting the NVIDIA Volta GPU architecture via
microbenchmarking", 2018.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from string import digits

import numpy as np

from cypresskit.today.gpus import ISSUE_CLOCKS

CONTROL = 41  # bits of an instruction's second word below its control code
#: What a listing has: a label, a line of the source, or an instruction with its second word.
LISTED = (
    r"^\s*([.$]\S+):$"
    r'|//## File ".*", line (\d+)'
    r"|/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;?\s*/\* 0x\w+ \*/\s*/\* 0x([0-9a-f]{16}) \*/"
)
BYTES = {"64": 8, "WIDE": 8, "CS2R": 8, "128": 16}  # of an access or a result, if not 4
SCOREBOARDS = 6
NUMBER = r"0x[0-9a-f]+|\d+"
NAMES = r"U?R\d+|U?RZ|U?P\d|U?PT|SR_[\w.]+|SRZ"
CLOCKS_OF = {name: clocks for names, clocks in ISSUE_CLOCKS.items() for name in names.split()}
CONTROL_FLOW = "BRA", "BSSY", "BSYNC", "BAR", "NOP", "WARPSYNC", "EXIT"
LOADS, STORES = ("LDG", "LDS"), ("STG", "STS")
SHARED = "LDS", "STS"
PRODUCTS = "FFMA", "FMUL", "DFMA", "DMUL"
SUMS = "FADD", "DADD"


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
        The registers, predicates and numbers that it reads, with their signs: "-R2", "!P0". Of an
        access, they are the address; of a branch, the last is the instruction that it goes to.
    size
        Bytes of an access, or of a result, for a thread.
    stall
        Clocks until the warp's next instruction.
    sets
        The scoreboard that it sets; 7 is none.
    waits
        A mask of the scoreboards that it waits for.
    text
        What the disassembler prints.
    """

    index: int
    line: int
    name: str
    modifiers: tuple[str, ...]
    conditions: list[str]
    results: list[str]
    sources: list[str]
    size: int
    stall: int
    sets: int
    waits: int
    text: str

    @property
    def issue_clocks(self) -> float:
        """Clocks that it takes a scheduler."""
        if self.name == "IMAD" and "WIDE" in self.modifiers:
            return CLOCKS_OF["IMAD.WIDE"]
        is_uniform = self.name[0] == "U" and self.name != "ULDC"
        return CLOCKS_OF.get(self.name, CLOCKS_OF["uniform" if is_uniform else "other"])

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
        return int(self.sources[-1])


@dataclass(frozen=True)
class SassCode:
    """The machine code of a kernel.

    Attributes
    ----------
    registers, shared_bytes
        Of a thread, and of a block, with those that its launch requests.
    text
        A line for each instruction, as the module says.
    """

    registers: int
    shared_bytes: int
    text: str

    @cached_property
    def instructions(self) -> list[SassInstruction]:
        return [_instruction(n, line) for n, line in enumerate(self.text.splitlines())]

    @cached_property
    def scoreboards(self) -> dict[int, int]:
        """The scoreboard that each load sets. Loads of shared memory arrive in order: one without a
        scoreboard has that of the load after it.
        """
        found = {}
        last = 0
        for one in reversed(self.instructions):
            if one.is_load:
                last = found[one.index] = one.sets if one.sets < SCOREBOARDS else last
        return found

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
    if name == "HFMA2" and sources[:2] == ["-RZ", "RZ"]:  # a constant of two halves
        halves = np.array([float(half) for half in sources[:1:-1]], np.float16)
        name, modifiers, sources = "MOV", [], [hex(halves.view(np.uint32)[0])]
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
        sets=bits >> 5 & 7,
        waits=bits >> 11 & (1 << SCOREBOARDS) - 1,
        text=text,
    )


def _split(
    name: str, modifiers: list[str], words: int, operands: list[str]
) -> tuple[list[str], list[str]]:
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


def _is_predicate(operand: str) -> bool:
    return re.fullmatch(r"U?P[T\d]", operand) is not None


def _words(operands: list[str], count: int) -> list[str]:
    """Return operands, each with the registers, or words of the constant bank, that follow it."""
    found = []
    for name in operands:
        letters = name.rstrip(digits)
        first = name.removeprefix(letters)
        words = [f"{letters}{int(first) + n}" if first else name for n in range(count)]
        if re.fullmatch(rf"-?({NUMBER})", name):
            words = [name, "-0x1" if name[0] == "-" else "0x0"][:count]
        elif name[0] == "-" and count > 1:  # no case has it
            words = ["?"] * count
        found += words
    return found


def _operands(text: str) -> list[str]:
    """Return the operands of an instruction. Word n of the constant bank is named "c" + n."""
    text = re.sub(r"desc\[\w+\]|(?<=[\dZ])\.(64|reuse)", "", text)
    text = text.replace("c[0x0][RZ]", "c0")
    text = re.sub(r"c\[0x0\]\[(0x\w+)\]", lambda found: f"c{int(found[1], 16) // 4}", text)
    return re.findall(rf"[-~!]?(?:{NAMES}|c\d+|0x[0-9a-f]+|[\d.]+(?:e[-+]\d+)?)", text)


def read_listing(listing: str) -> str:
    """Return the text of a ``SassCode``, given a listing by `nvdisasm -hex -g -c`."""
    rows: list[str] = []
    labels: dict[str, str] = {}
    line = "0"
    for label, number, code, word in re.findall(LISTED, listing, re.MULTILINE):
        if label:
            labels[label] = str(len(rows))
        elif number:
            line = number
        else:
            rows.append(f"{line} {int(word, 16) >> CONTROL:x} {' '.join(code.split())}")
    text = "\n".join(rows).replace(".reuse", "")
    text = re.sub(r"`\(([^)]*)\)", lambda found: labels.get(found[1], "0"), text)
    return re.sub(r"(\n.* NOP)+$", "", text)
