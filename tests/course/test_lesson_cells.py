"""What cells of lessons show, run as in their notebooks: each with those that it needs."""

import ast
import random
import re
from itertools import product

import nbformat
import pytest
from repository import ROOT
from sampling import drawn_by_day

from cypresskit import draw
from cypresskit.teach.bindings import find_needed_cells

SOME = 3  # settings that are tried
CELLS = {
    path.stem: [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
}


def places(is_chosen):
    """The cells of all lessons of which something is true."""
    return [
        (stem, place)
        for stem, cells in CELLS.items()
        for place, cell in enumerate(cells)
        if is_chosen(cell)
    ]


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """A function that runs a cell, and returns the results that a notebook shows of it."""
    monkeypatch.chdir(tmp_path)
    found, names = [], {}
    monkeypatch.setattr("sys.displayhook", found.append)

    def run(stem, place):
        code = [re.sub(r"(?m)^[%!].*", "", cell.source) for cell in CELLS[stem]]
        for n in [*find_needed_cells(code[:place], code[place]), place]:
            exec(compile(ast.Interactive(ast.parse(code[n]).body), stem, "single"), names)
        return found

    return run


def is_control(cell):
    return "draw.interactive(" in cell.source


def has_value(cell):
    """Whether a notebook shows what the cell returns, and that isn't a control."""
    return not is_control(cell) and any(
        each.output_type == "execute_result" for each in cell.outputs
    )


@drawn_by_day(("stem", "place"), places(has_value), 8)
def test_what_a_lesson_shows_is_in_its_notebook(stem, place, shown):
    saved = CELLS[stem][place].outputs[-1]["data"]["text/plain"]
    assert repr(shown(stem, place)[-1]) == saved


@drawn_by_day(("stem", "place"), places(is_control), 1)
def test_a_control_shows_numbers_for_each_of_its_settings(stem, place, shown, monkeypatch):
    offered = []
    monkeypatch.setattr(
        draw, "interactive", lambda view, start=None, **choices: offered.append((view, choices))
    )
    shown(stem, place)
    ((view, choices),) = offered
    settings = [dict(zip(choices, chosen)) for chosen in product(*choices.values())]
    texts = [str(view(**setting)) for setting in random.Random(1).sample(settings, SOME)]
    assert all(re.search(r"\d", text) for text in texts), texts
    assert len({*texts}) > 1, "it shows the same whatever is chosen"
