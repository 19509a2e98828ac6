"""What is shown of a widget: in a kernel, and in the page of a notebook that was run."""

import subprocess
import sys

import nbformat
import pytest
from waiting import without_a_loop

import cypresskit as ck
from cypresskit import session

WIDGETS = (
    "guess('How many?')",
    "guess('Which?', ('a', 'b'))",
    "guess('a curve', curve=(1, 2, 3), top=4.0)",
    "ck.draw.interactive(lambda n: str(n), n=[1, 2])",
    "ck.draw.interactive(lambda n: ck.draw.register_block(f'sgemm_{n}'), n=['nn', 'tn'])",
    "ck.workbench('mine.il', like='sgemm_naive')",
    "ck.workbench(step='00')",
)
HEIGHTS = """() => [...document.querySelectorAll(".jp-OutputArea-output")].map(
    area => [area.getBoundingClientRect().height, area.innerText])"""


def test_a_page_of_a_run_notebook_shows_something_of_every_widget_without_a_network(
    browser, tmp_path
):
    """As ``jupyter nbconvert --execute --to html`` writes it: there is no room that stays empty."""
    begin = "import cypresskit as ck\nguess = ck.draw.predict\n"
    cells = [nbformat.v4.new_code_cell(begin + code) for code in WIDGETS]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "all.ipynb")
    command = [sys.executable, "-m", "nbconvert", "--execute", "--to", "html", "all.ipynb"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto((tmp_path / "all.html").as_uri(), wait_until="load")
    areas = [(high, text) for high, text in page.evaluate(HEIGHTS) if "Kept" not in text]
    context.close()
    seen = [text for high, text in areas if high > 10 and text.strip()]
    assert len(seen) >= len(WIDGETS), areas
    for word in ("How many?", "Which?", "a curve", "n", "mine.il", "00.il"):
        assert any(word in text for text in seen), word


@pytest.mark.parametrize("code", WIDGETS)
@pytest.mark.parametrize("user", [True, False])
def test_a_widget_is_shown_where_somebody_can_move_it(code, user, monkeypatch, tmp_path):
    """And elsewhere what else there is of it; outside a kernel nothing is known."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "has_user", lambda: user)
    made = without_a_loop(eval)(code, {"ck": ck, "guess": ck.draw.predict})
    shown = made._repr_mimebundle_()
    if hasattr(made, "conversation"):
        made.conversation.close()
    data, metadata = shown if isinstance(shown, tuple) else (shown, {})
    assert (session.WIDGET_MIME in data) == (user is not False)
    assert data["text/plain"].strip() and (user or session.WIDGET_MIME not in metadata)
