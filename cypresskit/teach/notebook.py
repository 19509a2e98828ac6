"""How a notebook shows a verdict: with a colour, a sign and words, and how many of the lesson's exercises are right.

A cell that can't be read leaves the answer of before in place, which is told. The text form is the verdict's own.
Importing this tells a running IPython how to show verdicts; without one it does nothing.
"""

import ast
import re
import sys
from collections.abc import Sequence
from html import escape
from importlib import import_module

from cypresskit.teach.verdict import Verdict

BLUE, ORANGE = "#0072b2", "#b84f00"  # as different to those who can't tell red from green, on light and on dark


def unread(cells: Sequence[str]) -> Verdict | None:
    """What to say in a verdict's place if the cell that sets what ``cells[-1]`` checks isn't Python as it was run last,
    else nothing; ``cells`` in the order in which they were run."""
    answer = re.search(r"\((\w+)\)\s*\Z", cells[-1])
    sets = re.compile(rf"^(def )?{answer[1]} *[=(]" if answer else r"\Z.", re.M)
    cell = next((cell for cell in reversed(cells[:-1]) if sets.search(cell)), "")
    try:
        ast.parse(cell)
    except SyntaxError as error:
        it = f"Your cell with {answer and answer[1]} isn't valid Python: {error.msg}."
        return Verdict(
            False, it, f"line {error.lineno} of that cell. Until it runs, your previous answer would be judged."
        )
    return None


def html(verdict: Verdict, progress: str = "") -> str:
    """A verdict for the eye; ``progress`` stands below it."""
    colour, sign, head = (BLUE, "✓", "Right.") if verdict.right else (ORANGE, "○", "Not yet.")
    mono = "font-family: var(--jp-code-font-family, monospace); " * ("\n" in verdict.finding)
    parts = [f'<b style="color: {colour}">{sign} {head}</b> <span style="{mono}">{escape(verdict.finding)}</span>']
    if verdict.hint:
        parts.append(f"<b>Where to look:</b> {escape(verdict.hint)}")
    if progress:
        parts.append(f'<span style="opacity: 0.75">{progress}</span>')
    style = f"border-left: 5px solid {colour}; padding: 0.2em 0.8em; white-space: pre-wrap"
    return f'<div style="{style}">' + "\n".join(parts) + "</div>"


class Progress:
    """Which of the lessons' exercises were right when they were checked last."""

    def __init__(self) -> None:
        self.right: dict[tuple[str, str], bool] = {}

    def line(self, check: tuple[str, str] | None, right: bool) -> str:
        """``Exercises of this lesson: ● ○ ○ 1 of 3 right``, after a check said whether its answer is."""
        if not check:
            return ""
        self.right[check] = right
        lesson = check[0]
        exercises = [f for name, f in vars(import_module(lesson)).items() if name.startswith("check_")]
        done = [self.right.get((lesson, f.__name__), False) for f in exercises if f.__module__ == lesson]
        signs = " ".join("●" if each else "○" for each in done)
        return f"Exercises of this lesson: {signs} {sum(done)} of {len(done)} right"


def install(shell) -> None:
    """Let ``shell``, an IPython, show verdicts."""
    progress = Progress()

    def shown(verdict: Verdict) -> Verdict:
        return unread(shell.user_ns["In"]) or verdict

    def page(verdict: Verdict) -> str:
        told = shown(verdict)
        return html(told, progress.line(verdict.check, told.right))

    formatters = shell.display_formatter.formatters
    formatters["text/plain"].for_type(Verdict, lambda verdict, printer, cycle: printer.text(str(shown(verdict))))
    formatters["text/html"].for_type(Verdict, page)


if "IPython" in sys.modules and (running := sys.modules["IPython"].get_ipython()):
    install(running)
