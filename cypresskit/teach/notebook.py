"""Verdicts in a notebook: a color, a sign and words, and how many of the lesson's exercises are
right.

``exit`` is an error, and the kernel lives on. ``install`` sets all that up in a running IPython,
which ``ck.draw.load()`` or ``%load_ext cypresskit`` calls; importing this module changes nothing.
"""

import re
from html import escape
from importlib import import_module

from cypresskit.draw.theme import TOKENS
from cypresskit.isolated import here
from cypresskit.isolated.answer import NOTEBOOK_SERVER
from cypresskit.teach.check import Verdict

# On white: no color of letters can be read on both light and dark pages
BLUE = TOKENS["a"][0]
ORANGE = TOKENS["wrote"][0]


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
        NOTEBOOK_SERVER.start()
    known: dict[tuple[str, str], bool] = {}

    def stay() -> None:
        raise RuntimeError(
            "this would end the notebook's kernel. Leave out `exit`: `return` ends a function."
        )

    def page(verdict: Verdict) -> str:
        return html(verdict, progress(known, verdict.check, verdict.right))

    if hasattr(shell, "kernel"):  # an IPython in a terminal may be quit
        shell.ask_exit = stay
    shell.display_formatter.formatters["text/html"].for_type(Verdict, page)
