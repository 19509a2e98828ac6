"""Guesses: what a reader enters, what is shown over it, and that nothing is told before."""

import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from charted import Charted
from readable import axe_finds
from sampling import from_rows
from waiting import without_a_loop

import cypresskit as ck
from cypresskit import draw, session
from cypresskit.draw.chart import WIDE
from cypresskit.draw.guess_chart import guess_chart
from cypresskit.draw.predict import read_number
from cypresskit.draw.scripts import join_modules, read_packaged

SPEED = {"speed": {1: 200.0, 2: 400.0, 4: 1030.0}}


def entered(guess, *values):
    guess._repr_mimebundle_()
    if values:
        guess._entry.value = [*map(float, values)] if guess.curve else values[0]
    return guess


@from_rows
def test_guess_and_result_stand_in_a_line(how, values, truth, said):
    assert entered(draw.predict("?", **how), *values).reveal(truth) == said
    stated = said.removeprefix("? ").replace("You said", "you said").replace("It is", "it is")
    assert entered(draw.predict("n is", **how), *values).reveal(truth) == f"n is: {stated}"


@from_rows
def test_a_number_is_read_as_people_write_it(text, value):
    assert read_number(text, "") == (value if value is None else pytest.approx(value))


@from_rows
def test_a_guess_is_noted_as_it_is_entered(how, values, noted):
    """Or, if nobody can read it, that is said at once, and not beside the result."""
    guess = draw.predict("How many?", **how)
    guess._repr_mimebundle_()
    assert guess._status.value == "Enter your guess, then run the next cell."
    assert noted in entered(guess, *values)._status.value


@pytest.mark.parametrize("how", [{}, {"choices": [1, 2]}, {"curve": [1, 2], "top": 10}])
def test_fields_of_a_guess_have_names_for_those_who_listen(how):
    guess = entered(draw.predict("How many?", **how))
    assert "How many?" in (getattr(guess._entry, "name", "") or guess._entry.tooltip)


def test_a_guessed_curve_is_drawn_with_the_result():
    assert guess_chart("?", [1, 2, 4], 2720).value == [0, 0, 0], "nothing is drawn"
    guess = entered(draw.predict("?", curve=[1, 2, 4], top=2720), 100, 900, 2000)
    assert guess.value == {1: 100, 2: 900, 4: 2000}
    chart = draw.line_chart(SPEED, "b", "Gflop/s", guess=guess, kind="modeled", about="b x b")
    drawn = Charted(chart, WIDE)
    for place, height in guess.value.items():
        drawn.assert_shown("your guess", place, height)
    for place, height in SPEED["speed"].items():
        drawn.assert_shown("speed", place, height)
    assert "guess" not in str(chart), "the text form is the same for all"


MODEL = """(source) => import("data:text/javascript," + encodeURIComponent(source)).then((made) => {
    const values = {name: "How fast?", places: [256, 512, 3072], top: 2720, value: [0, 0, 0]}
    const row = document.body.appendChild(document.createElement("div"))
    row.style.display = "flex" // as widgets stand side by side
    const el = row.appendChild(document.createElement("div"))
    window.saved = []
    const model = {
        get: (name) => values[name],
        set: (name, value) => { values[name] = value },
        save_changes: () => saved.push(values.value),
        on() {},
        off() {},
    }
    made.default.render({model, el})
})"""


def test_a_curve_is_drawn_on_its_chart(page):
    """In Chromium: with the mouse in one stroke, or by the keys of each point."""
    page.set_content("<!doctype html><html lang=en><title>A guess</title><body><h1>A guess</h1>")
    page.add_style_tag(content=read_packaged("draw/look.css"))
    page.evaluate(MODEL, join_modules("draw/shell.js", "draw/guess_chart.js"))
    points = page.get_by_role("slider")
    assert [point.get_attribute("tabindex") for point in points.all()] == ["0", "-1", "-1"]
    points.nth(0).press("ArrowRight")
    assert page.evaluate("() => document.activeElement.ariaLabel") == "How fast? at 512"
    assert [point.get_attribute("tabindex") for point in points.all()] == ["-1", "0", "-1"]
    names = [point.get_attribute("aria-label") for point in points.all()]
    assert names == [f"How fast? at {place}" for place in (256, 512, 3072)]
    first, last = (points.nth(n).bounding_box() for n in (0, 2))
    high = page.locator(".level").last.bounding_box()["y"]
    page.mouse.move(first["x"] + 7, (first["y"] + high) / 2)
    page.mouse.down()
    page.mouse.move(last["x"] + 7, high, steps=30)
    page.mouse.up()
    drawn = page.evaluate("() => saved.at(-1)")
    assert 0 < drawn[0] < drawn[1] < drawn[2] == 2720
    points.nth(0).press("Home")
    points.nth(0).press("PageUp")
    points.nth(0).press("ArrowUp")
    assert page.evaluate("() => saved.at(-1)")[0] == pytest.approx(2720 * 0.11)
    assert points.nth(0).get_attribute("aria-valuenow") == "299"
    assert not axe_finds(page)


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


@from_rows
def test_a_user_is_who_may_be_asked(kernel, user, monkeypatch):
    """By the kernel's last request; a kernel may have none, or not tell."""
    told = SimpleNamespace(get_parent=lambda: kernel)
    monkeypatch.setattr(session, "running_shell", lambda: SimpleNamespace(kernel=told))
    assert session.has_user() == user


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("user", [True, False, None])
def test_notices_are_shown_where_somebody_sees_them(user, terminal, monkeypatch):
    """In a notebook with a user, or outside of one in a terminal."""
    monkeypatch.setattr(session, "has_user", lambda: user)
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: terminal))
    assert session.is_watched() == (terminal if user is None else user)
