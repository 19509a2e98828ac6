"""Controls that draw again."""

import asyncio
from threading import Thread

import numpy as np
from waiting import without_a_loop

from cypresskit import draw


def controls(view, **choices):
    """The sliders of a view's controls, the line of their state, and the place of what is drawn."""
    choosers, status, place = draw.interactive(view, **choices).children
    return choosers.children, status, place


@without_a_loop
def test_controls_draw_again_and_say_why_they_cannot():
    asked = []

    def view(b, name):
        asked.append((b, name))
        if b == 3:
            raise ValueError("three is too many")
        return draw.line_chart({"a": {0: b, 1: 2}}, "x", "y", kind="counted", about="b")

    (slider, other), status, _ = controls(view, b=[1, 2, 3], name=["x", "y"])
    slider.value, other.value = 2, "y"
    assert asked == [(1, "x"), (2, "x"), (2, "y")] and "b = 2" in status.value
    slider.value = 3
    assert "three is too many" in status.value and 'role="alert"' in status.value


@without_a_loop
def test_controls_draw_only_the_last_choice():
    seen = []

    def view(n):
        seen.append(int(n))
        if n == 2:
            raise KeyError("<two>")
        return f"n is {n}"

    (slider,), status, _ = controls(view, n=np.arange(4))

    async def hurry(*values):
        for value in values:
            slider.value = slider.options[value][1]
        await asyncio.sleep(0.2)

    asyncio.run(hurry(1, 2, 3))
    assert seen == [0, 3]
    slider.value = slider.options[2][1]
    assert (
        "n = 2: KeyError: &#x27;&lt;two&gt;&#x27;" in status.value
        and 'role="alert"' in status.value
    )


def test_controls_draw_from_a_thread_of_jupyters():
    (slider,), status, place = controls(lambda n: f"n is {n}", n=[1, 2])
    thread = Thread(target=setattr, args=(slider, "value", 2))
    thread.start()
    thread.join()
    assert place.outputs[0]["data"]["text/plain"] == "n is 2" and "n = 2" in status.value
