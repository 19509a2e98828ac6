"""What controls of lessons show, made by the cells that each needs."""

import random
import re
from itertools import product

import nbformat
from repository import ROOT
from sampling import drawn_by_day

from cypresskit import draw
from cypresskit.teach.bindings import find_needed_cells

SOME = 3  # settings that are tried
CODE = {
    path.stem: [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
}
CONTROLS = [
    (stem, place)
    for stem, sources in CODE.items()
    for place, source in enumerate(sources)
    if "draw.interactive(" in source
]


@drawn_by_day(("stem", "place"), CONTROLS, 1)
def test_a_control_shows_numbers_for_each_of_its_settings(stem, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    offered, names = [], {}
    monkeypatch.setattr(
        draw, "interactive", lambda view, start=None, **choices: offered.append((view, choices))
    )
    code = [re.sub(r"(?m)^[%!].*", "", source) for source in CODE[stem]]
    for number in [*find_needed_cells(code[:place], code[place]), place]:
        exec(code[number], names)
    ((view, choices),) = offered
    settings = [dict(zip(choices, chosen)) for chosen in product(*choices.values())]
    texts = [str(view(**setting)) for setting in random.Random(1).sample(settings, SOME)]
    assert all(re.search(r"\d", text) for text in texts), texts
    assert len({*texts}) > 1, "it shows the same whatever is chosen"
