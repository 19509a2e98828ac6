"""The controls of the lessons show something for the choices that they offer."""

import ast
import random
import re
from itertools import product

import pytest
from conftest import ROOT

from cypresskit import draw
from cypresskit.teach.bindings import find_needed_cells

SOME = 3  # settings that are tried
TEXTS = ("09", "10", "11", "12", "14")


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("lesson", TEXTS)
def test_a_control_shows_numbers_for_each_of_its_settings(lesson, monkeypatch):
    """A lesson's own code is run, no further than its control needs."""
    (path,) = sorted((ROOT / "notebooks/source").glob(f"{lesson}_*.md"))
    cells = re.findall(r"^```python[^\n]*\n(.*?)^```", path.read_text(), re.M | re.S)
    plain = [re.sub(r"(?m)^[%!].*", "", cell) for cell in cells]
    statements = [ast.unparse(s) for cell in plain for s in ast.parse(cell).body]
    place = next(n for n, code in enumerate(statements) if "draw.interactive(" in code)
    offered, names = [], dict[str, object]()
    monkeypatch.setattr(
        draw, "interactive", lambda view, start=None, **choices: offered.append((view, choices))
    )
    for n in [*find_needed_cells(statements[:place], statements[place]), place]:
        exec(compile(statements[n], path.name, "exec"), names)
    ((view, choices),) = offered
    settings = [dict(zip(choices, chosen)) for chosen in product(*choices.values())]
    texts = [str(view(**setting)) for setting in random.Random(1).sample(settings, SOME)]
    assert all(re.search(r"\d", text) for text in texts), texts
    assert len({*texts}) > 1, "it shows the same whatever is chosen"


def test_every_control_of_a_lesson_is_held():
    """That of lesson 04 shows lines of waiting: see test_draw_wavefronts."""
    sources = sorted((ROOT / "notebooks/source").glob("*.md"))
    offer = {path.name[:2] for path in sources if "draw.interactive(" in path.read_text()}
    assert offer == {"04", *TEXTS}
