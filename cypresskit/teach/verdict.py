"""What a check says: whether an answer is right, what was found, and where to look.

In a notebook a cell that can't be read leaves the answer of before in place. So what is shown there depends on how the
cell of the answer was run last, too: ``unread`` looks it up.
"""

import ast
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cypresskit.il import ILError, Program, assemble
from cypresskit.machine.checks import Findings


@dataclass(frozen=True, repr=False)
class Verdict:
    """``right``, one sentence of ``finding``, and a ``hint`` if the answer is not right yet. As a cell's value it shows
    its text, or that the answer's cell can't be read."""

    right: bool
    finding: str
    hint: str = ""

    def __str__(self) -> str:
        head = "Right." if self.right else "Not yet."
        return f"{head} {self.finding}" + (f"\nWhere to look: {self.hint}" if self.hint else "")

    def __repr__(self) -> str:
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
        return (unread(shell.user_ns["In"]) if shell else "") or str(self)


def unread(cells: Sequence[str]) -> str:
    """What to say in a verdict's place if the cell that sets what ``cells[-1]`` checks isn't Python as it was run last,
    else nothing; ``cells`` in the order in which they were run."""
    answer = re.search(r"\((\w+)\)\s*\Z", cells[-1])
    sets = re.compile(rf"^(def )?{answer[1]} *[=(]" if answer else r"\Z.", re.M)
    cell = next((cell for cell in reversed(cells[:-1]) if sets.search(cell)), "")
    try:
        ast.parse(cell)
    except SyntaxError as error:
        it = f"Not yet. The cell of {answer and answer[1]} isn't Python, as it was run last: {error.msg}."
        return f"{it}\nWhere to look: line {error.lineno} of that cell. (Checked was the answer of before.)"
    return ""


def said(error: Exception) -> str:
    """An exception in one line or more, as a student should see it."""
    return f"{type(error).__name__}: {error}"


def stopped(name: str, error: Exception, hint: str) -> Verdict:
    """The verdict on a student's function ``name`` that raised ``error``, or returned what can't be used."""
    return Verdict(False, f"{name} stops with {said(error).rstrip('.')}.", hint)


def judge_kernel(text, name: str, check: Callable[[Program], Findings]) -> Verdict | None:
    """The verdict on IL that a student wrote, or None if ``check`` finds nothing in the program it makes."""
    if not isinstance(text, str):
        return Verdict(False, f"The kernel is a {type(text).__name__}, not text.", "pass the IL between quotes.")
    try:
        found = check(assemble(text, name))
    except ILError as error:
        return Verdict(False, f"The kernel does not assemble.\n{error}", "the line above the caret.")
    except (TypeError, ValueError) as error:
        return Verdict(False, f"The kernel does not run: {said(error)}.", "is a declaration missing, or changed?")
    if not found:
        return None
    first = found[0]
    line = f" Line {first.line} of the kernel: {first.text.strip()}" if first.text else ""
    more = f" ({len(found) - 1} more findings follow from it, or come next.)" if len(found) > 1 else ""
    return Verdict(False, f"{first.message}.{line}{more}", first.advice)
