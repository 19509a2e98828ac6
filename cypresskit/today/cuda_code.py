"""The machine code of a loop on a GPU of today, as far as time hangs on it.

NVIDIA's compiler decides how many turns of a loop it does at once, in which order loads leave,
and where they are waited for. ``read_listing`` finds that in a listing of `nvdisasm`, or of
`kernel.inspect_sass()`. ``nearest`` is for a kernel without one: the code of that kernel in
``loops.json`` (``tools.cuda.loops`` makes it, without a GPU) whose turn is most like this one's.

A loop is a text of letters: f and d multiply-adds in single and double, a an integer instruction
of the arithmetic unit, m one of the multipliers, o any other; L a load, S and T a load and a store
of shared memory, B a barrier; w waits for all that was loaded, a dot is a
clock in which a warp waits for a result. An inner loop stands in brackets.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from math import log2
from pathlib import Path

LETTERS = {"FFMA": "f", "DFMA": "d", "FMUL": "f", "FADD": "f", "DMUL": "d", "DADD": "d"} | {
    "LDG": "L", "LD": "L", "LDS": "S", "STS": "T", "BAR": "B", "IMAD": "m"
}  # fmt: skip
ARITHMETIC = "IADD3 VIADD LOP3 LEA SHF SEL ISETP PRMT MOV IABS IMNMX FSETP FSEL".split()
LETTERS |= dict.fromkeys(ARITHMETIC, "a")
MULTIPLY_ADDS = "fd"
LATENCY, DOUBLE_LATENCY = 4, 8  # clocks until another instruction has the result


@dataclass(frozen=True)
class Loop:
    """The loop that computes, of a kernel whose threads have so many ``registers``. ``fmas``,
    ``loads`` (of the card's memory and of shared) and ``kind`` are those of a turn of the source.
    """

    name: str
    registers: int
    text: str
    fmas: float = 0
    loads: float = 0
    item: int = 4
    kind: str = "while"


def read_listing(listing: str, name: str = "this kernel", registers: int = 0) -> Loop:
    """The innermost loop with the most multiply-adds, and what is around it if that is a loop."""
    code: list[str] = []
    guards: list[list[str]] = []  # predicates that an instruction waits for
    labels: dict[str, int] = {}
    jumps: list[tuple[int, int]] = []
    for line in listing.splitlines():
        if label := re.match(r"\s*(\.L_\w+):", line):
            labels[label[1]] = len(code)
        elif found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([^;]+)", line):
            code.append(found[2].strip())
            guards.append(re.findall(r"U?P\d", found[1] or ""))
            target = re.search(r"BRA.*\((\.L_\w+)\)", line)
            if target and labels.get(target[1], len(code)) < len(code):
                jumps.append((labels[target[1]], len(code)))
    letters = [LETTERS.get(one.split()[0].split(".")[0], "o") for one in code]

    def fmas(loop: tuple[int, int]) -> int:
        return sum(letter in MULTIPLY_ADDS for letter in letters[slice(*loop)])

    loops = [loop for loop in jumps if fmas(loop)]
    if not loops:
        raise ValueError(f"the listing of {name} has no loop with multiply-adds")
    inner = max(loops, key=lambda loop: (fmas(loop), loop[0] - loop[1]))
    around = [loop for loop in loops if loop[0] <= inner[0] and inner[1] < loop[1]]
    outer = min(around, key=lambda loop: loop[1] - loop[0], default=inner)
    text = ""
    loaded: set[str] = set()
    ready: dict[str, int] = {}
    clock = 0
    for n in range(*outer):
        text += "[" * (n == inner[0] != outer[0])
        operation, _, rest = code[n].partition(" ")
        made, *asked = [_registers(one) for one in rest.split(",")]
        while asked and re.fullmatch(
            r" *U?P\d", rest.split(",")[len(rest.split(",")) - len(asked)]
        ):
            made = [*made, *asked.pop(0)]
        if re.search(r"WIDE|^D|\.64", operation):
            made += [f"R{int(name[1:]) + 1}" for name in made if name[0] == "R"]
        if ".128" in operation:
            made += [f"R{int(made[0][1:]) + more}" for more in (1, 2, 3)]
        reads = {name for names in asked for name in names} | set(guards[n])
        if letters[n] not in "LS" and (
            loaded & (reads | set(made)) or (letters[n] == "B" and loaded)
        ):
            text += "w"
            loaded.clear()
            ready.clear()
        begin = max([clock, *(ready.get(name, 0) for name in reads)])
        text += "." * (begin - clock) + letters[n] + "]" * (n == inner[1] - 1 and inner != outer)
        clock = begin + 1
        if letters[n] in "LS":
            loaded |= set(made)
        else:
            ready |= dict.fromkeys(made, begin + (DOUBLE_LATENCY if letters[n] == "d" else LATENCY))
    return Loop(name, registers, text)


def _registers(operand: str) -> list[str]:
    """The registers and predicates that an operand names."""
    names = re.findall(r"\bU?[RP]\d+", operand)
    return names + [f"R{int(name) + 1}" for name in re.findall(r"\bR(\d+)\.64", operand)]


@cache
def known() -> tuple[Loop, ...]:
    """The loops that come with the package."""
    text = Path(__file__).with_name("loops.json").read_text(encoding="utf-8")
    return tuple(Loop(**row) for row in json.loads(text))


def nearest(fmas: float, loads: float, item: int, kind: str, shared: bool = False) -> Loop:
    """The known loop whose turn is most like one with so many multiply-adds and loads, of
    ``shared`` memory, too, or not.
    """

    def far(loop: Loop) -> float:
        counts = abs(log2(loop.fmas / fmas)) + abs(log2(loop.loads / loads))
        other = shared != ("S" in loop.text)
        return counts + 4 * (loop.item != item) + (loop.kind != kind) + 100 * other

    return min(known(), key=far)
