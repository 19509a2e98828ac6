"""The files of the climb: each step has one, such as ``climb/02.il``, and a history beside it.

A step saves the reader's fastest correct edit that reaches the minimum: this is computed from its
history, and marked nowhere. The given text is no edit of the reader's.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cypresskit.editing.edit_history import SHOWN, Edit, Edits, history_path
from cypresskit.editing.kernel_file import whole_letters
from cypresskit.editing.steps import STEPS, Step, saved_texts
from cypresskit.editing.stuck import edit_of_shown_line, shown_lines
from cypresskit.files.atomic import save_file
from cypresskit.kernels.own import read_text

CLIMB = os.environ.get("CYPRESSKIT_CLIMB", "climb")  # the folder
BROUGHT = "brought back from this notebook"  # note on a text that was typed in another folder
REPLACED = "replaced by another text"  # note on a text that no longer counts


def histories(folder: Path) -> dict[str, Edits]:
    """Return the histories of all steps in a folder, by the steps' names."""
    return {step.name: Edits(history_path(folder / step.file)) for step in STEPS.values()}


def saved_edit(edits: Edits, step: Step) -> Edit | None:
    """Return the reader's fastest correct edit that reaches the step's minimum, or None."""
    return edits.fastest(step.n, step.targets.minimum, given=step.starter)


def submitted_edit(edits: Edits, step: Step) -> Edit | None:
    """Return the edit that is submitted for a step: the saved one; until there is one, the last
    that was checked or brought back, or at which a line was shown; or None.
    """
    notes = BROUGHT, SHOWN
    judged = (edit for edit in reversed(edits) if edit.right is not None or edit.note in notes)
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
    known = submitted_edit(edits, step)
    made = histories(path.parent)
    earlier = () if step.reorders else _steps_before(step)
    before = [(each, made[each.name].fastest(each.n)) for each in earlier]
    own = [(edit.gflops, each.name, edit.text) for each, edit in before if edit is not None]
    gflops, name, text = max(own, default=(0.0, "", step.starter))
    save_file(path, known.text if known else text)
    if name and not known:
        with suppress(OSError):
            note = f"your kernel from step {name}, {gflops:,.0f} Gflop/s"
            edits.add(Edit(0, text, note=note))


def _steps_before(step: Step) -> Iterator[Step]:
    """Yield the steps before a step, the nearest first."""
    while step.previous:
        step = STEPS[step.previous]
        yield step


def bring_back(path: Path, step: Step) -> None:
    """Restore texts from the saved notebook, after it was moved, into the files of steps that save
    nothing here. What a file held goes into its history. The file of ``step`` is at ``path``.
    """
    for name, held in saved_texts().items():
        place = path if name == step.name else path.with_name(STEPS[name].file)
        edits = Edits(history_path(place))
        text = whole_letters(held.text)
        told = min(held.lines_shown, len(STEPS[name].solution))
        with suppress(OSError):
            for _ in range(told - len(shown_lines(edits, STEPS[name]))):
                edits.add(edit_of_shown_line(edits, text))
        counts = saved_edit(edits, STEPS[name]) if held.kept else submitted_edit(edits, STEPS[name])
        if counts is not None or edits.known(text):
            continue
        with suppress(OSError, ValueError):
            before = read_text(place) if place.exists() else ""
            if before.strip() and edits.known(before) is None:
                edits.add(Edit(0, before, note=REPLACED))
            edits.add(Edit(0, text, note=BROUGHT))
            save_file(place, text)
