"""Guesses: what a reader enters, what is shown over it, and that nothing is told before."""

from types import SimpleNamespace

import pytest
from charted import Charted
from sampling import from_rows

from cypresskit import draw, session
from cypresskit.draw.chart import WIDE
from cypresskit.draw.guess_chart import guess_chart
from cypresskit.draw.predict import read_number

SPEED = {"speed": {1: 200.0, 2: 400.0, 4: 1030.0}}


def enter(guess, *values):
    if guess.curve and values:
        guess.enter([*map(float, values)])
    elif values:
        guess.enter(values[0])
    return guess


@from_rows
def test_guess_and_result_stand_in_a_line(how, values, truth, said):
    assert enter(draw.predict("?", **how), *values).reveal(truth) == said
    stated = said.removeprefix("? ").replace("You said", "you said").replace("It is", "it is")
    assert enter(draw.predict("n is", **how), *values).reveal(truth) == f"n is: {stated}"


@from_rows
def test_a_number_is_read_as_people_write_it(text, value):
    assert read_number(text, "") == (value if value is None else pytest.approx(value))


@from_rows
def test_a_guess_is_noted_as_it_is_entered(how, values, noted):
    """Or, if nobody can read it, that is said at once, and not beside the result."""
    guess = draw.predict("How many?", **how)
    assert guess.feedback == "Enter your guess, then run the next cell."
    assert noted in enter(guess, *values).feedback


@pytest.mark.parametrize("how", [{}, {"choices": [1, 2]}, {"curve": [1, 2], "top": 10}])
def test_fields_of_a_guess_have_names_for_those_who_listen(how):
    guess = draw.predict("How many?", **how)
    guess._repr_mimebundle_()
    assert "How many?" in (getattr(guess._entry, "name", "") or guess._entry.tooltip)


def test_a_guessed_curve_is_drawn_with_the_result():
    assert guess_chart("?", [1, 2, 4], 2720).value == [0, 0, 0], "nothing is drawn"
    guess = enter(draw.predict("?", curve=[1, 2, 4], top=2720), 100, 900, 2000)
    assert guess.value == {1: 100, 2: 900, 4: 2000}
    chart = draw.line_chart(SPEED, "b", "Gflop/s", guess=guess, kind="modeled", about="b x b")
    drawn = Charted(chart, WIDE)
    for place, height in guess.value.items():
        drawn.assert_shown("your guess", place, height)
    for place, height in SPEED["speed"].items():
        drawn.assert_shown("speed", place, height)
    assert "guess" not in str(chart), "the text form is the same for all"


@pytest.mark.parametrize(
    "kernel, user",
    [
        ({"content": {"allow_stdin": True}}, True),
        ({"content": {"allow_stdin": False}}, False),
        ({"content": {}}, False),
        ({}, False),
    ],
)
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
