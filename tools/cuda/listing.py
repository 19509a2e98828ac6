"""Read a kernel's loop from a listing of `nvdisasm -hex -c`.

Stalls and waits are in the control code of each instruction: its stall in bits 105 to 108, the
scoreboard that it sets in bits 110 to 112 (7: none), and those that it waits for in bits 116 to 121
(Z. Jia and colleagues, "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking", 2018).
"""

import re

from cypresskit.today.cuda_code import BRANCH, MULTIPLY_ADDS, Loop

LETTERS = {"FFMA": "f", "DFMA": "d", "FMUL": "f", "FADD": "f", "DMUL": "d", "DADD": "d"} | {
    "LDG": "L", "LD": "L", "LDS": "S", "STS": "T", "BAR": "B", "IMAD": "m", "VIADD": "m"
}  # fmt: skip
ARITHMETIC = "IADD3 LOP3 LEA SHF SEL ISETP PRMT MOV IABS IMNMX FSETP FSEL PLOP3".split()
LETTERS |= dict.fromkeys(ARITHMETIC, "a")
CONTROL = 41  # bits of an instruction's second word below its control code

Bounds = tuple[int, int]  # first instruction of a loop, and the one after it


def read_listing(listing: str, name: str = "this kernel", registers: int = 0) -> Loop:
    """Return the innermost loop with the most multiply-adds, and what is around it if that is a
    loop: then the inner one is in brackets. Raises ``ValueError`` for a listing without one, or
    without control codes.
    """
    code, jumps = _instructions(listing)
    letters = [_letter(operation) for operation, _ in code]

    def multiply_adds(loop: Bounds) -> int:
        return sum(letter in MULTIPLY_ADDS for letter in letters[slice(*loop)])

    loops = [loop for loop in jumps if multiply_adds(loop)]
    if not loops:
        raise ValueError(f"the listing of {name} has no loop with multiply-adds")
    inner = max(loops, key=lambda loop: (multiply_adds(loop), loop[0] - loop[1]))
    around = [loop for loop in loops if loop[0] <= inner[0] and inner[1] < loop[1]]
    outer = min(around, key=lambda loop: loop[1] - loop[0], default=inner)
    if any(control < 0 for _, control in code[slice(*outer)]):
        raise ValueError(
            f"the listing of {name} lacks control codes: `nvdisasm -hex -c` prints them"
        )
    controls = [control for _, control in code]
    return Loop(name, registers, _text(letters, controls, inner, outer))


def _instructions(listing: str) -> tuple[list[tuple[str, int]], list[Bounds]]:
    """The operation and control code of each instruction, -1 if that is missing; and the loops."""
    code: list[tuple[str, int]] = []
    labels: dict[str, int] = {}
    loops: list[Bounds] = []
    for line in listing.splitlines():
        if label := re.match(r"\s*(\.L_\w+):", line):
            labels[label[1]] = len(code)
        elif found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([\w.]+)", line):
            code.append((found[1], -1))
            target = re.search(r"BRA.*\((\.L_\w+)\)", line)
            if target and labels.get(target[1], len(code)) < len(code):
                loops.append((labels[target[1]], len(code)))
        elif found := re.match(r"\s*/\* 0x([0-9a-f]{16}) \*/", line):
            code[-1] = code[-1][0], int(found[1], 16) >> CONTROL
    return code, loops


def _text(letters: list[str], controls: list[int], inner: Bounds, outer: Bounds) -> str:
    """The letters of a loop, with waits, stalls, and its inner loop in brackets."""
    text = ""
    sets = [""] * len(letters)
    last = ""
    for n in reversed(range(*outer)):
        if letters[n] in "LS":  # those of shared memory arrive in order: only the last has one
            last = sets[n] = _digits(1 << (controls[n] >> 5 & 7)) or last
    for n in range(*outer):
        if n == inner[0] != outer[0]:
            text += "["
        waits = [digit for digit in _digits(controls[n] >> 11) if digit in sets]
        if waits:
            text += "w" + "".join(waits)
        text += letters[n] + sets[n] + "." * max((controls[n] & 15) - 1, 0)
        if n in (inner[1] - 1, outer[1] - 1):
            text += "." * BRANCH
        if n == inner[1] - 1 and inner != outer:
            text += "]"
    return text


def _digits(mask: int) -> str:
    """The numbers of the six scoreboards in a mask."""
    return "".join(str(n) for n in range(6) if mask >> n & 1)


def _letter(operation: str) -> str:
    name = operation.split(".")[0]
    if name == "IMAD" and "WIDE" in operation:
        return "p"
    return LETTERS.get(name, "u" if name[0] == "U" and name != "ULDC" else "o")
