"""The outputs of a notebook that hold the texts of steps, for grades and after a move.

A workbench displays an invisible one, and replaces it when the history changes. A notebook
that was moved to another folder holds the only copies.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from cypresskit.editing.edit_history import BROUGHT_NOTE, SHOWN_NOTE, Edits
from cypresskit.editing.kernel_file import REPLACED_NOTE, KernelFile, replace_surrogates
from cypresskit.editing.step_files import saved_edit, submitted_edit
from cypresskit.editing.steps import STEPS, Step
from cypresskit.editing.stuck import find_shown_lines
from cypresskit.files.received import read_plain
from cypresskit.il.parser import MAX_TEXT

#: Types of an output's data; the first holds a step's text.
MIME = "application/vnd.cypresskit.step+json"
PLAIN, HTML = "text/plain", "text/html"
MAX_NOTEBOOK_BYTES = 64 << 20
MAX_TEXT_CHARACTERS = MAX_TEXT // 4  # of a text in a notebook: then its bytes fit into a file


class StepText(NamedTuple):
    """The text that a notebook submits for a step."""

    text: str
    is_saved: bool  #: whether it passed the step
    lines_shown: int = 0  #: of the solution, to a reader who was stuck


def submitted_output(edits: Edits, step: Step) -> dict[str, Any]:
    """Return the output that holds the submitted text of a step, by the types of its data."""
    edit = submitted_edit(edits, step)
    if edit is None:
        return {HTML: "", PLAIN: ""}
    is_saved = edit == saved_edit(edits, step)
    content = {"step": step.name, "text": edit.text, "is_saved": is_saved}
    if lines := find_shown_lines(edits, step):
        content["lines_shown"] = len(lines)
    return {MIME: content, HTML: "", PLAIN: "Saved." if is_saved else ""}


def find_step_texts(outputs: object) -> dict[str, StepText]:
    """Return the submitted texts, by step, in the ``outputs`` of a notebook's cell; for each step,
    the last one. All other outputs are ignored.
    """
    texts = {}
    for output in outputs if isinstance(outputs, list) else []:
        with suppress(KeyError, TypeError, AttributeError):
            content = output["data"][MIME]
            step, text = content["step"], content["text"]
            if step in STEPS and isinstance(text, str):
                shown, is_saved = content.get("lines_shown"), content.get("is_saved") is not False
                texts[step] = StepText(text, is_saved, shown if type(shown) is int else 0)
    return texts


def read_step_texts() -> dict[str, StepText]:
    """Return the submitted texts, by step, in the saved file of this notebook. Without a file that
    Jupyter names, the result is empty.
    """
    path = Path(os.environ.get("JPY_SESSION_NAME", ""))
    if path.suffix != ".ipynb":
        return {}
    try:
        cells = json.loads(read_plain(Path(os.path.realpath(path)), MAX_NOTEBOOK_BYTES))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
    texts = find_step_texts(outputs)
    return {step: each for step, each in texts.items() if 0 < len(each.text) <= MAX_TEXT_CHARACTERS}


def restore_texts(path: Path, step: Step) -> None:
    """Restore the texts of the saved notebook, after it was moved, into the files of their steps.
    The file of ``step`` is at ``path``. Those of files that can't be read stay in the notebook.
    """
    for name, saved in read_step_texts().items():
        place = path if name == step.name else path.with_name(STEPS[name].file)
        with suppress(OSError, ValueError):
            _restore_text(KernelFile(place), STEPS[name], saved)


def _restore_text(file: KernelFile, step: Step, saved: StepText) -> None:
    """Restore a step's text, unless the history has it, or one that counts as much: then it is only
    kept there.
    """
    edits, text = file.edits, replace_surrogates(saved.text)
    find = saved_edit if saved.is_saved else submitted_edit
    is_here = find(edits, step) or edits.find_text(text)
    lines_shown = min(saved.lines_shown, len(step.solution))
    for _ in range(lines_shown - len(find_shown_lines(edits, step))):
        edits.keep(text, SHOWN_NOTE, can_repeat=True)
    if is_here:
        edits.keep(text, REPLACED_NOTE)
    else:
        file.replace(text, BROUGHT_NOTE)
