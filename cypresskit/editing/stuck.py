"""Help for a reader who is stuck: the lines of a step's solution, one after another, each at first
without its sources, if it has any.

The history says how many were shown: an edit for each, with the note ``SHOWN_NOTE``.
"""

from itertools import takewhile
from time import time
from typing import Any

from cypresskit.editing.edit_history import SHOWN_NOTE, Edits
from cypresskit.editing.steps import Step
from cypresskit.il.cursor import bare_line

STUCK_TRIES, STUCK_SECONDS = 5, 180  # without a correct kernel, until one more line can be shown
#: Why there is no further line.
ALL_SHOWN = "These are all lines of our solution that your kernel lacks."
ALL_TYPED = "Your kernel has all lines of our solution: look at their order, and at others."


def seconds_until_help(edits: Edits, step: Step | None) -> float | None:
    """Return in how many seconds one more line of a step's solution can be shown to a reader who
    has had many edits and no correct kernel among them; None for others, and where there is none.
    """
    tries = [*takewhile(lambda edit: not edit.is_correct, reversed(edits))]
    if step is None or not step.solution or len(tries) < STUCK_TRIES:
        return None
    return max(0.0, tries[-1].time + STUCK_SECONDS - time())


def find_next_line(text: str, step: Step) -> str:
    """Return the first line of a step's solution that a text lacks, or "" if it has all."""
    has = {*map(bare_line, text.splitlines())}
    return next((line for line in step.solution if line not in has), "")


def hide_sources(line: str) -> str:
    """Return a line of IL with a question mark in place of each operand but the first: a hint."""
    name, _, rest = line.partition(" ")
    target, *sources = rest.split(", ")
    return " ".join(filter(None, [name, ", ".join([target, *"?" * len(sources)])]))


def find_shown_lines(edits: Edits, step: Step) -> list[str]:
    """Return the lines of a step's solution that its reader was shown, one for each edit that says
    so: the first that its text and the lines before it lack.
    """
    lines: list[str] = []
    for edit in edits:
        if edit.note == SHOWN_NOTE:
            lines.append(find_next_line("\n".join([edit.text, *lines]), step))
    return lines


class ShownLines:
    """What a reader is shown at each press: the next line without its sources, then that line."""

    def __init__(self, edits: Edits, step: Step) -> None:
        self.edits, self.step = edits, step
        self.hinted_line = ""  # the line whose hint was shown last

    def press(self, text: str) -> dict[str, Any]:
        """Return what is shown beside a text. The history gets an edit for each whole line."""
        shown = find_shown_lines(self.edits, self.step)
        line = find_next_line("\n".join([text, *shown]), self.step)
        hint = hide_sources(line)
        is_hint = line not in (hint, self.hinted_line)
        self.hinted_line = line
        if line and not is_hint:
            self.edits.keep(text, SHOWN_NOTE, can_repeat=True)
            shown.append(line)
        end = ALL_SHOWN if find_next_line(text, self.step) else ALL_TYPED
        return {
            "lines": [*filter(None, shown)],
            "hint": hint if is_hint else "",
            "end": "" if line else end,
        }
