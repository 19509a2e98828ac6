"""Verdicts in a notebook: a color, a sign and words, and how many of the lesson's exercises are
right.

If the cell with an answer isn't valid Python or stops too early, the previous answer stays in
place, or none; the verdict then says so. Its text form is the same. ``exit`` is an error, and the
kernel lives on. ``install`` sets all that up in a running IPython, which ``ck.draw.load()`` or
``%load_ext cypresskit`` calls; importing this module changes nothing.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib import import_module
from traceback import walk_tb

from cypresskit.draw.theme import TOKENS
from cypresskit.isolated import here
from cypresskit.isolated.answer import OWN
from cypresskit.isolated.serving import error_text
from cypresskit.teach import bindings
from cypresskit.teach.check import Verdict

# On white: no color of letters can be read on both light and dark pages
BLUE = TOKENS["a"][0]
ORANGE = TOKENS["wrote"][0]


def unread(
    cells: Sequence[str], failed: Mapping[int, tuple[int, str]] | None = None
) -> Verdict | None:
    """Return a verdict if the answer that ``cells[-1]`` checks was never set, because its cell
    isn't valid Python or stopped too early; otherwise None.

    Parameters
    ----------
    cells
        In the order in which they were run.
    failed
        The number of a cell that stopped, to the line and the error.
    """
    match = re.search(r"\((\w+)\)\s*\Z", cells[-1])
    if not match:
        return None
    answer = match[1]
    before = range(len(cells) - 1)
    cell = next((n for n in reversed(before) if bindings.is_set_in(cells[n], answer)), None)
    if cell is None:
        return None
    try:
        tree = ast.parse(cells[cell])
    except SyntaxError as unclear:
        message = f"Your cell with {answer} isn't valid Python: {unclear.msg}."
        hint = f"line {unclear.lineno} of that cell."
        if others := _set_since(cells[cell + 1 : -1]):
            message += f" The cell that you ran after it sets {', '.join(sorted(others))} instead."
            hint = f"the name: the check looks at {answer}."
        return Verdict(False, message, hint)
    binds = [
        node.end_lineno or 0 for node in tree.body if answer in bindings.find_bound_names(node)
    ]
    line, error = (failed or {}).get(cell, (0, ""))
    if not error or line > max(binds, default=0):
        return None
    message = f"Your cell with {answer} stopped with {error}."
    return Verdict(False, message, f"line {line} of that cell.")


def _set_since(cells: Sequence[str]) -> set[str]:
    """Return the functions that the last of these cells defines, if it is valid."""
    tree = bindings.parse_cell(cells[-1]) if cells else None
    body = tree.body if tree else []
    return {statement.name for statement in body if isinstance(statement, ast.FunctionDef)}


def html(verdict: Verdict, below: str = "") -> str:
    """Return a verdict as HTML, with the words ``below`` it; text between backticks is code."""
    color, sign, head = (BLUE, "✓", "Right.") if verdict.right else (ORANGE, "○", "Not yet.")
    if verdict.is_broken:
        sign, head = "⚠", "Not judged."
    mono = "font-family: var(--jp-code-font-family, monospace); " * ("\n" in verdict.message)
    badge = f"background: {color}; color: #fff; padding: 1px 6px; border-radius: 3px"
    parts = [
        f'<b style="{badge}">{sign} {head}</b> <span'
        f' style="{mono}">{_coded(verdict.message)}</span>'
    ]
    parts += [f"<b>Where to look:</b> {_coded(verdict.hint)}"] * bool(verdict.hint)
    parts += [f'<span style="opacity: 0.75">{below}</span>'] * bool(below)
    style = f"border-left: 5px solid {color}; padding: 0.2em 0.8em; white-space: pre-wrap"
    return f'<div data-cypresskit-check style="{style}">' + "\n".join(parts) + "</div>"


def _coded(text: str) -> str:
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def progress(known: dict[tuple[str, str], bool], check: tuple[str, str] | None, right: bool) -> str:
    """Return ``Exercises of this lesson: ● ○ ○ 1 of 3 right`` after ``check`` has given its
    verdict, ``right`` or not. ``known`` collects the verdicts of all checks so far.
    """
    if not check:
        return ""
    known[check] = right
    lesson = check[0]
    exercises = [f for name, f in vars(import_module(lesson)).items() if name.startswith("check_")]
    done = [known.get((lesson, f.__name__), False) for f in exercises if f.__module__ == lesson]
    signs = " ".join("●" if is_right else "○" for is_right in done)
    return f"Exercises of this lesson: {signs} {sum(done)} of {len(done)} right"


def install(shell) -> None:
    """Let ``shell``, an IPython, show verdicts, and start the process in which answers run."""
    if not here.IS_USED:
        OWN.start()
    known: dict[tuple[str, str], bool] = {}
    ended: dict[
        int, tuple[int, str]
    ] = {}  # as text: the error itself would keep its functions' data alive

    def ran(result) -> None:
        error = result.error_in_exec
        how = (0, "")
        if isinstance(error, Exception):
            lines = [
                line
                for frame, line in walk_tb(error.__traceback__)
                if frame.f_code.co_name == "<module>"
            ]
            if lines:
                how = lines[0], error_text(error).rstrip(".")
        # A cell `exit` isn't in this list, but has a number
        ended.setdefault(len(shell.user_ns["In"]) - 1, how)

    def shown(verdict: Verdict) -> Verdict:
        unset = unread(shell.user_ns["In"], ended)
        if not unset:
            return verdict
        return replace(
            unset, hint=f"{unset.hint} Until it runs, your previous answer would be judged."
        )

    def unnamed(shell, kind, error: NameError, trace, tb_offset=None) -> None:
        """Show the error; if a check's answer was never set, show why instead."""
        cells = shell.user_ns["In"]
        if re.search(rf"check_\w+\({error.name}\)\s*\Z", cells[-1]) and (
            unset := unread(cells, ended)
        ):
            error._render_traceback_ = lambda: [str(unset)]  # type: ignore[attr-defined]
        shell.showtraceback((kind, error, trace), running_compiled_code=True)

    def stay() -> None:
        raise RuntimeError(
            "this would end the notebook's kernel. Leave out `exit`: `return` ends a function."
        )

    def page(verdict: Verdict) -> str:
        final = shown(verdict)
        return html(final, progress(known, verdict.check, final.right))

    shell.events.register("post_run_cell", ran)
    shell.set_custom_exc((NameError,), unnamed)
    if hasattr(shell, "kernel"):  # an IPython in a terminal may be quit
        shell.ask_exit = stay
    formatters = shell.display_formatter.formatters
    formatters["text/plain"].for_type(
        Verdict, lambda verdict, printer, cycle: printer.text(str(shown(verdict)))
    )
    formatters["text/html"].for_type(Verdict, page)
