"""What of a notebook's cells is compared with what a file holds."""

import json
import re

from nbval.plugin import get_sanitize_patterns
from repository import ROOT

from cypresskit.editing.step_outputs import MIME

DIFFERS = get_sanitize_patterns((ROOT / "cypresskit/data/nbval_sanitize.cfg").read_text())
WIDGET = "application/vnd.jupyter.widget-view+json"  # has ids, new each time


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def exempt(cell):
    return "nbval-ignore-output" in cell.metadata.get("tags", ())


def output_texts(outputs):
    """What a cell's outputs tell: texts in order, without what may differ between two runs. A
    workbench's invisible output is empty until the text has been checked.
    """
    texts = []
    for out in outputs:
        if out["output_type"] == "stream":
            if texts and texts[-1][0] == out["name"]:
                texts[-1][1] += out["text"]
            else:
                texts.append([out["name"], out["text"]])
        elif MIME not in out["data"] and any(out["data"].values()):
            texts += [
                [kind, data if isinstance(data, str) else json.dumps(data, sort_keys=True)]
                for kind, data in sorted(out["data"].items())
                if kind != WIDGET
            ]
    for text in texts:
        for pattern, replacement in DIFFERS:
            text[1] = re.sub(pattern, replacement, text[1])
    return texts
