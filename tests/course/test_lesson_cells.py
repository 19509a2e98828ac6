"""What cells of lessons show, run as in their notebooks: each with those that it needs."""

import ast
import random
import re
from itertools import product

import nbformat
import pytest
from repository import ROOT
from sampling import by_day, drawn_by_day

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


def is_lessons(cell):
    """Whether a cell's result is that of a function of its lesson: a table, or a chart."""
    results = [each for each in cell.outputs if each.output_type == "execute_result"]
    return bool(results) and cell.source.splitlines()[-1].startswith("lesson.")


def is_slow(cell):
    """Whether it times many kernels, or LLVM's code."""
    return bool(re.search("measured|comparison|llvm", cell.source))


QUICK = places(lambda cell: is_lessons(cell) and not is_slow(cell))
SLOW = places(lambda cell: is_lessons(cell) and is_slow(cell))


@pytest.mark.parametrize(("stem", "place"), [*by_day(SLOW, 1), *QUICK])
def test_what_a_lesson_shows_is_in_its_notebook(stem, place, shown):
    saved = CELLS[stem][place].outputs[-1]["data"]["text/plain"]
    assert repr(shown(stem, place)[-1]) == saved


@drawn_by_day(("stem", "place"), places(lambda cell: "draw.interactive(" in cell.source), 1)
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
