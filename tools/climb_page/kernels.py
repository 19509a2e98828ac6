"""The kernels of the page: what a reader's kernel is after each step, and the lines that changed.

Neighboring kernels number registers and literals in other ways. So lines are compared by what their
registers hold (a texel of A or B, or a sum of products of two of them), and by their literals'
values: 4 x 4 to 8 x 8 then is two fetches and twelve products.
"""

import difflib
import re
from functools import cache
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from cypresskit.editing.steps import reference_kernel
from cypresskit.gains import LARGER
from cypresskit.kernels import Kernel
from cypresskit.kernels.convention import MATRICES
from cypresskit.timing import Report, simulate

OFFSETS = re.compile(r"_aoffimmi\((\d+),(\d+),0\)")
REGISTER = re.compile(r"\b(r\d+)(\.\w+)?")
N = LARGER.n  # of every speed of the page
LITERAL = re.compile(r"dcl_literal (l\d+), ([^;\n]*)")


class Shown(NamedTuple):
    """A kernel that the page shows."""

    kernel: str  #: as in ``gains``
    before: str = ""  #: the id of the kernel whose lines are compared
    part: str = "loop"  #: which lines: a key of ``PARTS``


#: By id: the steps up, then the decisions that are undone.
KERNELS = {
    "00": Shown("sgemm_naive"),
    "01a": Shown("our_step_01a", "00"),
    "01b": Shown("our_step_01b", "01a"),
    "02": Shown("our_step_02", "01b"),
    "03": Shown("our_step_03", "02"),
    "12": Shown(LARGER.kernel, "03"),
    "37": Shown("sgemm_tn_37", "12", "old C"),
    "nn": Shown("sgemm_nn", "12", "fetches"),
    "compute": Shown("sgemm_tn_compute", "12", "before"),
    "lds": Shown("sgemm_64x64_lds", "nn", "sharing"),
}
STEPS = [*KERNELS]
LAST = "12"  # the last step up, which the others undo
UP = STEPS[: STEPS.index(LAST) + 1]
#: Of each part: whether it is in the loop or before it, and the lines that belong to it.
PARTS = {
    "loop": (True, r""),
    "fetches": (True, r"sample"),
    "sharing": (True, r"lds|fence"),
    "old C": (False, r"g\[|if_|endif|iadd"),
    "before": (False, r"^(?!\s*mov r\d+, l\d\.\w$)"),
}


@cache
def kernel(name: str) -> Kernel:
    """Return the kernel of a step by its id."""
    return reference_kernel(KERNELS[name].kernel)


@cache
def report(name: str, n: int = N) -> Report:
    """Return how long a kernel takes on the chip alone."""
    return simulate(kernel(name), n)


def compared(name: str) -> str:
    """Return the id of the kernel whose speed a step's is compared with."""
    return KERNELS[name].before if name in UP else LAST


def lines(text: str, part: str) -> list[str]:
    """Return the lines of a part of a kernel's text, as the page shows them: with short
    names of the two textures and of offsets.
    """
    for at, matrix in MATRICES.items():
        text = text.replace(f"_resource({at})_sampler({at})", f"_{matrix}")
    rows = [row.split(";")[0].rstrip() for row in OFFSETS.sub(r"[\1,\2]", text).splitlines()]
    rows = [row for row in rows if row.strip() and not row.startswith(("il_", "dcl_"))]
    begin = rows.index("whileloop")
    end = rows.index("endloop", begin)
    is_loop, pattern = PARTS[part]
    chosen = rows[begin + 1 : end] if is_loop else rows[:begin]
    return [row.removeprefix("    ") for row in chosen if re.search(pattern, row)]


def comparable(text: str, part: str) -> list[str]:
    """Return the same lines with registers by what they hold, and literals by value."""
    values = {}
    for literal, numbers in LITERAL.findall(text):
        for letter, number in zip("xyzw", numbers.split(",")):
            values[f"{literal}.{letter}"] = number.strip().removesuffix(".0")
    texels: dict[str, str] = {}  # what a register holds, by its name
    rows = []
    for row in lines(text, part):
        words = [values.get(str(word), str(word)) for word in re.split(r",\s+|\s+", row.strip())]
        if part == "loop" and words[0].startswith("sample_"):
            texels[words[1]] = words[0]
            words[1] = ""
        left, _, component = words[2].partition(".") if len(words) == 5 else ("", "", "")
        if part == "loop" and words[0] == "mad" and left in texels:
            mask = words[1].partition(".")[2]
            words = ["mad", mask, texels[left], component, texels.get(words[3], words[3])]
        rows.append(" ".join(words))
    return rows


def changes(name: str) -> list[tuple[str, str]]:
    """Return the lines of a step's diff, each with its sign: " ", "+", "-", or "~" for a gap."""
    shown = KERNELS[name]
    if not shown.before:
        return [(" ", row) for row in lines(kernel(name).text, shown.part)]
    texts = kernel(shown.before).text, kernel(name).text
    return difference(*texts, shown.part)


def difference(before: str, after: str, part: str) -> list[tuple[str, str]]:
    """Return the diff of a part of two kernels' texts."""
    old, new = lines(before, part), lines(after, part)
    match = difflib.SequenceMatcher(
        None, comparable(before, part), comparable(after, part), autojunk=False
    )
    rows: list[tuple[str, str]] = []
    for group in match.get_grouped_opcodes(1):
        rows += [("~", "")] * bool(rows)
        for kind, old_from, old_to, new_from, new_to in group:
            if kind == "equal":
                rows += [(" ", row) for row in new[new_from:new_to]]
            else:
                rows += [("-", row) for row in old[old_from:old_to]]
                rows += [("+", row) for row in new[new_from:new_to]]
    return rows


@cache
def roles(name: str) -> dict[str, str]:
    """Return the matrix that each register holds in the loop: "a", "b" or "c"."""
    found = {}
    for row in lines(kernel(name).text, "loop"):
        target = REGISTER.search(row)
        if target and row.strip().startswith("sample_"):
            found[target[1]] = row.strip()[len("sample_")].lower()
        elif target and row.strip().startswith("mad") and row.count(target[1]) > 1:
            found[target[1]] = "c"
    return found


def colored(line: str, holds: dict[str, str]) -> Markup:
    """Return a line as HTML, in which a register has the color of the matrix that it holds."""

    def span(found: re.Match) -> str:
        role = holds.get(found[1])
        return f'<span class="{role}">{found[0]}</span>' if role else found[0]

    words = re.sub(r"^(\s*)([\w\[\],]+)", r"\1<b>\2</b>", escape(line))
    return Markup(REGISTER.sub(span, words))


def diff(name: str) -> list[tuple[str, Markup]]:
    """Return a step's ``changes``, with their lines as HTML. In a loop, registers hold matrices."""
    shown, rows = KERNELS[name], []
    is_loop, _ = PARTS[shown.part]
    for sign, line in changes(name):
        holds = roles(shown.before if sign == "-" else name) if is_loop else {}
        rows.append((sign, colored(line, holds)))
    return rows
