"""The files of the climb: each step has one, such as ``climb/02.il``, and a history beside it.

A step saves the reader's fastest correct edit that reaches the minimum: this is computed from its
history, and marked nowhere. The given text is no edit of the reader's.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from cypresskit.editing.edit_history import BROUGHT_NOTE, SHOWN_NOTE, Edit, Edits, history_path
from cypresskit.editing.steps import STEPS, Step
from cypresskit.files.atomic import save_file

CLIMB_FOLDER = os.environ.get("CYPRESSKIT_CLIMB", "climb")


def read_histories(folder: Path) -> dict[str, Edits]:
    """Return the histories of all steps in a folder, by the steps' names."""
    return {step.name: Edits(history_path(folder / step.file)) for step in STEPS.values()}


def fastest_edit(edits: Edits, step: Step, least: float = 0.0) -> Edit | None:
    """Return the reader's fastest correct edit of a step, or None if none reaches ``least``."""
    return edits.find_fastest(step.n, least, given=step.starter)


def saved_edit(edits: Edits, step: Step) -> Edit | None:
    """Return the reader's fastest correct edit that reaches the step's minimum, or None."""
    return fastest_edit(edits, step, step.targets.minimum)


def submitted_edit(edits: Edits, step: Step) -> Edit | None:
    """Return the edit that is submitted for a step: the saved one; until there is one, the last
    that was checked or brought back, or at which a line was shown; or None.
    """
    notes = BROUGHT_NOTE, SHOWN_NOTE
    judged = (edit for edit in reversed(edits) if edit.is_correct is not None or edit.note in notes)
    return saved_edit(edits, step) or next(judged, None)


def begin_step(path: Path, step: Step) -> None:
    """Make a step's file, if there is none.

    It holds the submitted text of its history; or the fastest correct text of the steps before it,
    with a note in its history, unless this step only reorders lines, which may be in order there;
    or the starter. Raises ``OSError`` if it can't be written.
    """
    if path.exists():
        return
    edits = Edits(history_path(path))
    if submitted := submitted_edit(edits, step):
        save_file(path, submitted.text)
        return
    histories = read_histories(path.parent)
    earlier = () if step.is_reordered else _steps_before(step)
    kernels = [
        (edit.gflops, each.name, edit.text)
        for each in earlier
        if (edit := fastest_edit(histories[each.name], each))
    ]
    gflops, name, text = max(kernels, default=(0.0, "", step.starter))
    save_file(path, text)
    if name:
        edits.keep(text, f"your kernel from step {name}, {gflops:,.0f} Gflop/s")


def _steps_before(step: Step) -> Iterator[Step]:
    """Yield the steps before a step, the nearest first."""
    while step.previous_step:
        step = STEPS[step.previous_step]
        yield step
