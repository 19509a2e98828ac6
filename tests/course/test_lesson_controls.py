"""The controls of the lessons show something for the choices that they offer."""

import ast
import random
import re
from itertools import product

from repository import ROOT
from sampling import drawn_by_day

from cypresskit import draw
from cypresskit.teach.bindings import find_needed_cells

SOME = 3  # settings that are tried
SOURCES = sorted((ROOT / "notebooks/source").glob("*.md"))
OFFER = "draw.interactive("


def statements(path):
    """The Python of a lesson."""
    cells = re.findall(r"^```python[^\n]*\n(.*?)^```", path.read_text(), re.M | re.S)
    plain = [re.sub(r"(?m)^[%!].*", "", cell) for cell in cells]
    return [ast.unparse(s) for cell in plain for s in ast.parse(cell).body]


CONTROLS = [
    (path, place)
    for path in SOURCES
    for place, code in enumerate(statements(path))
    if OFFER in code
]


@drawn_by_day(("path", "place"), CONTROLS, 1)
def test_a_control_shows_numbers_for_each_of_its_settings(path, place, monkeypatch):
    """A lesson's own code is run, no further than its control needs."""
    code, offered, names = statements(path), [], dict[str, object]()
    monkeypatch.setattr(
        draw, "interactive", lambda view, start=None, **choices: offered.append((view, choices))
    )
    for n in [*find_needed_cells(code[:place], code[place]), place]:
        exec(compile(code[n], path.name, "exec"), names)
    ((view, choices),) = offered
    settings = [dict(zip(choices, chosen)) for chosen in product(*choices.values())]
    texts = [str(view(**setting)) for setting in random.Random(1).sample(settings, SOME)]
    assert all(re.search(r"\d", text) for text in texts), texts
    assert len({*texts}) > 1, "it shows the same whatever is chosen"
