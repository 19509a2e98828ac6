"""A guessed curve, drawn in Chromium."""

import numpy as np
import pytest
from readable import axe_finds

from cypresskit.draw.scripts import join_modules, read_packaged

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

#: The center of each text, and of each point; and the line's corners.
PLACES = """() => {
    const of = (kind) => [...document.querySelectorAll(`svg ${kind}`)].map((one) => {
        const {x, y, width, height} = one.getBBox()
        return [one.textContent, x + width / 2, y + height / 2]
    })
    const corners = document.querySelector("svg polyline").points
    return [of("text"), of("circle"), Array.from(corners, ({x, y}) => ["", x, y])]
}"""


def test_a_curve_is_drawn_on_its_chart(page):
    """In Chromium: with the mouse in one stroke, or by the keys of each point. Each is above its
    place, at the height of its value.
    """
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
    texts, points, corners = page.evaluate(PLACES)
    assert corners == points
    places = {text: x for text, x, y in texts if y > 210}
    assert [x for _, x, _ in points] == pytest.approx([*places.values()], abs=1)
    first, middle, last = places.values()
    share = np.log(512 / 256) / np.log(3072 / 256)
    assert middle == pytest.approx(first + share * (last - first), abs=1)
    levels = [(y, float(text.replace(",", ""))) for text, _, y in texts if text not in places]
    to_value = np.poly1d(np.polyfit(*np.transpose(levels), 1))
    assert to_value(levels[1][0]) == pytest.approx(levels[1][1], abs=1)
    drawn = page.evaluate("() => saved.at(-1)")
    assert [to_value(y) for _, _, y in points] == pytest.approx(drawn, abs=20)
    assert not axe_finds(page)
