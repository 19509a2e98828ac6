"""Charts in Chromium: no text on another or outside, keys, light and dark, guesses."""

import io

import numpy as np
from PIL import Image
from players import CHARTS, makers
from readable import PHONE, unreadable
from sampling import drawn_by_day

from cypresskit import draw

#: Of the drawing that is seen: texts over texts or outside, and small letters, as painted.
FAULTS = """() => {
    const drawn = [...document.querySelectorAll("svg.ck-chart")]
    const svg = drawn.find((one) => one.getClientRects().length)
    const all = [...svg.querySelectorAll("text")]
    const boxes = all.map((text) => [text.textContent, text.getBoundingClientRect()])
    const whole = svg.getBoundingClientRect()
    const found = []
    boxes.forEach(([name, box], n) => {
        if (box.left < whole.left - 1 || box.right > whole.right + 1) found.push(`outside: ${name}`)
        const turned = all[n].hasAttribute("transform")
        for (const [other, place] of boxes.slice(n + 1)) {
            const apart = box.left > place.right - 1 || place.left > box.right - 1 ||
                box.top > place.bottom - 4 || place.top > box.bottom - 4
            if (!apart && !turned) found.push(`${name} on ${other}`)
        }
    })
    return found
}"""


@drawn_by_day("name", CHARTS, 4)
def test_a_chart_can_be_read_on_a_screen_and_on_a_phone_and_by_anybody(name, page):
    """The image becomes part of the page."""
    html = CHARTS[name]().page("")

    def show():
        page.set_content(html)
        page.locator("svg.ck-chart >> visible=true").wait_for()
        assert page.evaluate(FAULTS) == [], page.viewport_size

    assert unreadable(page, show, PHONE) == []


@drawn_by_day("name", makers("curves"), 3)
def test_arrow_keys_go_along_a_curve(name, page):
    """Each mark is told above the drawing, as that which is pointed at. Only these have no curves:
    the climb and the roofline, whose dots are far apart.
    """
    page.set_content(CHARTS[name]().page(""))
    first = page.locator("[data-group] >> visible=true").first
    first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    said, now = page.get_by_role("status"), first.locator(".now")
    assert said.text_content() == now.get_attribute("data-words")
    page.evaluate("scrollTo(0, 0)")
    box, drawing = said.bounding_box(), page.locator("svg.ck-chart >> visible=true")
    assert box["y"] + box["height"] <= drawing.bounding_box()["y"] + 1, "it covers nothing"
    assert len(first.get_attribute("aria-label") or "") < 100, "not all of its marks"
    mark = page.locator(".point >> visible=true").last
    mark.dispatch_event("pointerover")
    assert said.text_content() == mark.get_attribute("data-words")


def test_a_tap_tells_what_is_tapped(page):
    """Not the first of its group, which then has the focus."""
    page.set_content(f"<!doctype html><body>{CHARTS['compilers']().to_html()}")
    mark = page.locator("[data-group] >> visible=true").locator(".point").nth(7)
    mark.locator("path").first.click(position={"x": 6, "y": 6})
    assert page.get_by_role("status").text_content() == mark.get_attribute("data-words")


#: Keys at a curve, and what is said then.
KEYS = [("ArrowRight", "7 at 1"), ("ArrowRight", "8 at 2"), ("ArrowDown", "8 at 2")]
KEYS += [("ArrowUp", "7 at 1"), ("ArrowDown", "8 at 2"), ("ArrowLeft", "7 at 1")]
#: All that moves stands as at a time.
SET_TIME = """(time) => document.getAnimations().forEach((one) => {
    one.pause()
    one.currentTime = time
})"""


def guessed():
    """A chart with a guess."""
    guess = draw.Prediction("?", (), (1, 2), 10, "")
    guess.enter([3.0, 4.0])
    look = {"kind": "modeled", "about": "b x b", "guess": guess, "title": "It is 8"}
    return draw.line_chart({"speed": {1: 7, 2: 8}}, *"by", **look)


def test_a_guess_is_answered_by_its_button(page):
    """Nothing is given away before, by what is seen or by what is heard."""
    page.set_content(f"<!doctype html><body>{guessed().to_html()}")
    page.emulate_media(reduced_motion="reduce")
    hidden = page.get_by_text("It is 8"), page.locator("svg.wide .end.later")
    assert not any(one.is_visible() for one in hidden)
    assert "8 at 2" not in page.locator("body").aria_snapshot()
    page.get_by_role("button", name="Draw the result").click()
    assert all(one.is_visible() for one in hidden)
    page.locator("g[data-name=speed] >> visible=true").focus()
    for key, said in KEYS:
        page.keyboard.press(key)
        assert said in page.locator("body").aria_snapshot(), key


def test_a_result_comes_from_the_left(page):
    """Its end is seen last, and its finding after it."""
    page.set_content(f"<!doctype html><body>{guessed().to_html()}")
    page.get_by_role("button", name="Draw the result").click()
    shots = {}
    for seconds in (0, 3, 6):
        page.evaluate(SET_TIME, 1000 * seconds)
        shot = page.locator("svg.wide").screenshot()
        shots[seconds] = np.asarray(Image.open(io.BytesIO(shot)).convert("L"), int)
    new = [np.flatnonzero((shots[at] != shots[0]).any(axis=0)) for at in (3, 6)]
    half = shots[0].shape[1] / 2
    assert new[0].max() < half + 3 < new[1].max() and set(new[0]) == set(new[1][new[1] < half])
