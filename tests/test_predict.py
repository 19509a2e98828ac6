"""Guesses: what a reader enters, what is shown over it, and that nothing is told before."""

import pytest

from cypresskit import draw

SPEED = {"speed": {1: 200.0, 2: 400.0, 4: 1030.0}}


def entered(guess, *values):
    guess._repr_mimebundle_()
    for entry, value in zip(guess._entries, values):
        entry.value = value
    return guess


@pytest.mark.parametrize(
    ("how", "values", "truth", "said"),
    [
        ({"unit": "bundles"}, ["30"], 31, "You said 30, and it is 31 bundles: well guessed!"),
        ({"unit": "bundles"}, [], 1, "It is 1 bundle. (You made no guess.)"),
        ({"unit": "Gflop/s"}, [], 1, "It is 1 Gflop/s. (You made no guess.)"),
        ({"unit": "times"}, ["3"], 4.173, "You said 3, and it is 4.2 times."),
        ({"choices": [0.07, 0.17]}, [0.07], 0.17, "You said 0.07, and it is 0.17."),
        ({}, ["1,000"], 31, "You said 1,000, and it is 31."),
        ({}, ["many"], 31, "It is 31. (You made no guess.)"),
        ({}, ["1e999"], 31, "It is 31. (You made no guess.)"),
        ({"choices": [4, 8]}, [4], 8, "You said 4, and it is 8."),
        ({"choices": ["TN", "NN"]}, ["NN"], "NN", "You said NN, and it is NN: well guessed!"),
        ({"choices": ["TN", "NN"]}, [], "NN", "It is NN. (You made no guess.)"),
    ],
)
def test_guess_and_result_stand_in_a_line(how, values, truth, said):
    assert entered(draw.predict("?", **how), *values).said(truth) == said


def test_a_guessed_curve_is_drawn_with_the_result():
    guess = entered(draw.predict("?", curve=[1, 2, 4], top=2720), 100, 900, 2000)
    assert guess.value == {1: 100, 2: 900, 4: 2000}
    player = draw.curves(SPEED, "b", "Gflop/s", guess=guess)
    sources = {renderer.data_source.name: renderer.data_source.data for renderer in player.figures[0].renderers}
    assert list(sources["points your guess"]["y"]) == [100, 900, 2000]
    assert list(sources["points speed"]["y"]) == [200, 400, 1030]
    assert "guess" not in str(player), "the text form is the same for all"


def test_an_untouched_curve_is_none():
    guess = entered(draw.predict("?", curve=[1, 2], top=10))
    assert guess.value is None and "your guess" not in draw.curves(SPEED, "b", "y", guess=guess).still()


def test_a_curve_needs_a_top_and_curves_a_point():
    with pytest.raises(ValueError, match="largest height"):
        draw.predict("?", curve=[1, 2])
    with pytest.raises(ValueError, match="nothing to draw"):
        draw.curves({}, "x", "y")


@pytest.mark.parametrize("log", ["", "x", "y", "xy"])
def test_the_text_form_has_every_point(log):
    assert str(draw.curves(SPEED, "b", "Gflop/s", log=log)) == "Gflop/s against b\nspeed: 1: 200, 2: 400, 4: 1030"


def test_controls_show_text_too_and_begin_where_asked():
    box = draw.controls(lambda b: f"b is {b}", start={"b": 8}, b=[4, 8])
    (_, slider), place = box.children[0].children, box.children[-1]
    assert place.outputs[0]["data"]["text/plain"] == "b is 8"
    slider.value = 4
    assert place.outputs[0]["data"]["text/plain"] == "b is 4"
