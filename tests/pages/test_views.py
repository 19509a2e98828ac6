"""The views in Chromium: they play, can be read, and follow the mouse and keys."""

from html import unescape

import nbformat
import numpy as np
import pytest
from browsing import JS, READY, at, hold_clock
from players import PICTURES, PLAYERS, frames, view
from readable import unreadable
from repository import ROOT
from sampling import drawn_by_day, from_rows

from cypresskit.draw.theme import unmarked
from tools import gallery


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_values_travel_unless_motion_is_reduced(motion, clock, page, show):
    """Ever nearer to where they end, by a clock that the test holds, so that it doesn't matter how
    long a frame takes here. What stands still meanwhile is copied, and looks as if it were painted.
    """
    page.emulate_media(reduced_motion=motion)
    show(player := view("lds_transpose"))
    at(page, len(player) // 3)
    frame = len(player) // 3 + 2
    hold_clock(page)
    for act in (JS.travel, JS.travel, JS.painted):
        page.evaluate(act)
        page.clock.run_for(300)
    away = [
        np.nansum(np.abs(np.array(path) - frames(player, *column)[frame]), axis=1)
        for *column, path in page.evaluate("() => drawn()")
    ]
    drawn = max(map(len, away))
    assert drawn > 6 if motion == "no-preference" else drawn <= 1, (
        "thirty a second for 220 ms, or the step alone"
    )
    assert all(np.all((np.diff(far) < 0) | (far[0] == 0)) and far[-1] == 0 for far in away)
    assert page.evaluate(JS.painted) < 8


def assert_shows(page, player, frame, pick=""):
    """Fail unless every part of a player is of that frame, and lights what is chosen."""
    seen, said = at(page), page.evaluate(JS.said)
    spec, data = player.figures[0].tags[0], seen["data"]
    lines, current = spec["listing"]["lines"], spec["listing"]["current"]
    scene = max(n for n, (first, _) in enumerate(spec["scenes"]) if first <= frame)
    first, count = spec["scenes"][scene]
    words = " ".join(unmarked(player.captions[frame]).split())
    value = f"{spec['step'].lower()} {frame - first + 1} of {count}: {words}"
    assert (seen["frame"], seen["step"], said["pick"]) == (frame, frame - first, pick)
    assert (said["caption"], said["value"]) == (words, value)
    assert (said["scene"], said["most"]) == (player.scenes[scene][0], max(count - 1, 1))
    for number, code, is_now in said["lines"]:
        assert (code, is_now) == (unescape(lines[number - 1]), number in current[frame])
    for track in player.tracks:
        column = data[track.source.name]
        got = np.array(column[track.column], dtype=float)
        assert np.array_equal(got, track.frames[frame].astype(float), equal_nan=True), column
        if track.text:
            assert column[track.text] == list(map(track.text_of, track.frames[frame].tolist()))
    for source in spec["picks"]:
        keys = data[source["source"].name]["key"]
        lit = [key for key, on in zip(keys, data[source["source"].name]["lit"]) if float(on)]
        assert lit == [key for key in keys if key == pick]
    if pick:
        about = player.about[int(pick)]
        told = (
            about if isinstance(about, str) else [words for at, words in about if at <= frame][-1]
        )
        assert said["chosen"] == " ".join(unmarked(told).split())


def assert_plays(page):
    """From the first frame on."""
    at(page, 0)
    page.evaluate(JS.begin, "20")
    page.wait_for_function("() => +document.querySelector('[data-ready]').dataset.frame >= 1")
    page.locator("[data-ready]").press("Space")


#: Some are others in a lesson.
READ = PLAYERS | {
    name: PICTURES[name]
    for name in (
        *("block_race in its lesson", "lds_transpose in its lesson"),
        *("bundles with the LDS", "wavefronts of one round", "timeline by hand"),
    )
}


@drawn_by_day("name", READ, 5)
def test_everybody_can_read_a_player(name, show):
    """At its first, middle and last frame, on both screens, all marks and texts lie inside their
    figure, and no two texts overlap; each stop of Tab has a name.
    """
    player = READ[name]()
    page = show(player)

    def look():
        page.evaluate(JS.settled)
        for frame in sorted({0, len(player) // 2, len(player) - 1}):
            at(page, frame)
            assert page.evaluate(JS.faults) == [], f"frame {frame}, {page.viewport_size}"
        assert page.evaluate(JS.strangeStops) == []

    assert unreadable(page, look) == []


#: With scenes, and a long listing: the player is one for all views.
OTHERS = ["lds_transpose", pytest.param("bundles with the LDS", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("name", ["wavefronts", *OTHERS])
def test_in_the_browser(name, save_player, show):
    """A page shows its tracks at chosen steps, plays, has at most 620 pixels in a low window, and
    reads out each frame.
    """
    player = view(name)
    page = show(player)
    assert save_player(player).stat().st_size < 3_000_000
    last = player.scenes[0][1] - 1
    for step in {0, last // 3, last // 2, last, len(player) - 1}:
        at(page, step)
        assert_shows(page, player, step)
    for scene in page.locator("[data-part=scene] button:visible").all()[:1]:
        scene.click()
        assert page.evaluate("() => document.activeElement.shadowRoot.activeElement") is None
    assert_plays(page)
    assert player.captions[0].split()[0].strip("*,.") in at(page)["words"]
    page.set_viewport_size({"width": 1366, "height": 600})
    page.evaluate(JS.settled)
    assert page.locator("[data-ready]").bounding_box()["height"] <= 620
    bottoms = page.evaluate(JS.bottoms)
    assert len(bottoms) == 5 and max(bottoms) < 120, "the controls stand on top"
    at(page, 0)
    page.keyboard.press("ArrowRight")  # nothing was clicked or focused
    assert at(page)["frame"] == 1


def click_cell(page, place):
    name, *numbers = place.split(", ")
    page.wait_for_timeout(400)  # two clicks at once are a double click
    page.mouse.click(*page.evaluate(JS.place, [name, *map(float, numbers)]))


ACTS = {
    "key": lambda page, name: page.locator("[data-ready]").press(name),
    "button": lambda page, name: page.get_by_role("button", name=name).click(),
    "slider": lambda page, step: page.get_by_role("slider").fill(step),
    "line": lambda page, number: page.locator(f".code [data-line='{number}']").click(),
    "cell": click_cell,
}


@from_rows
def test_each_control_does_what_its_name_says(name, acts, page, show):
    """Each act, and the frame and the chosen key after it."""
    page.emulate_media(reduced_motion="reduce")
    show(player := view(name))
    for act, frame, pick in acts:
        kind, what = act.split(" ", 1)
        ACTS[kind](page, what)
        assert_shows(page, player, frame, pick)


def test_the_sign_for_keys_opens_and_closes_by_keys_and_plays_nothing(show):
    page = show(view("lds_transpose"))
    page.get_by_label("Keys", exact=True).focus()
    words = page.get_by_text("Keys: Space plays")
    for key in ("Space", "Enter"):
        page.keyboard.press(key)
        assert words.is_visible(), key
        page.keyboard.press(key)
        assert not words.is_visible(), key
    assert page.locator("[data-playing=yes]").count() == 0


def test_a_picture_that_opens_at_its_end_plays_from_its_first_frame(show):
    page = show(view("digits"))
    picture = page.locator("[data-ready]")
    last = int(picture.get_attribute("data-frame"))
    assert last == len(view("digits").captions) - 1 > 0
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(
        f"""() => document.querySelector("[data-ready]").dataset.frame < {last}"""
    )


def test_a_page_plays_where_nothing_may_be_evaluated(save_player, tmp_path, page):
    policy = "script-src 'self' 'unsafe-inline'"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>'
    (path := tmp_path / "strict.html").write_text(
        save_player(view("texture_fetch")).read_text().replace("<title>", meta, 1)
    )
    page.goto(path.as_uri())
    page.wait_for_function(READY)


def test_an_untrusted_lesson_shows_images(lab, page):
    lesson = nbformat.read(ROOT / "notebooks/05_texture_cache.ipynb", as_version=4)
    outputs = [output for cell in lesson.cells for output in cell.get("outputs", ())]
    shown = [output for output in outputs if "<cypresskit-picture" in str(output.get("data"))]
    lab.write(page, "untrusted.ipynb", "x", outputs=shown[:1])
    page.wait_for_function(
        "() => document.querySelector('.jp-RenderedHTML img')?.naturalWidth > 600"
    )


# -- on a phone


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("explore", "engines"),
        ("digits", "off double-double"),
        ("block_race", "cells 8 x 8"),
    ],
)
def test_a_phone_shows_what_a_picture_is_about(name, source, page, show):
    """The engine that explore asks to click, the error that digits end with, the fourth runner of a
    race: also on a narrower phone.
    """
    page.set_viewport_size({"width": 360, "height": 800})
    show(gallery.VIEWS[name][1]())
    page.evaluate(JS.settled)
    x, y = page.evaluate(JS.place, [source, 0])
    assert 0 < x < 360 and 0 < y < 800


@pytest.mark.parametrize("name", ["digits", "timeline", "wavefronts"])
def test_a_phone_shows_a_whole_run_beside_the_names_of_its_rows(name, page, show):
    """Each share can be read; and it is as before on a wide page."""
    show(gallery.VIEWS[name][1]())
    figure = """() => { const figure = Bokeh.documents.flatMap(doc => [...doc.all_models])
        .find(({type}) => type === "Plot"), {start, end} = figure.x_range
        return [start, end, figure.aspect_ratio] }"""
    shares = """() => Bokeh.documents.flatMap(doc => [...doc.all_models])
        .filter(({type}) => type === "GlyphRenderer")
        .filter(({data_source}) => /share/.test(data_source.name))
        .map(({visible}) => visible)"""
    page.evaluate(JS.settled)
    before = page.evaluate(figure)
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate(JS.settled)
    (start, end, _), (least, most, _) = page.evaluate(figure), before
    assert start < least and end > most
    box = page.locator("[data-ready] .picture")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert all(page.evaluate(shares))
    page.set_viewport_size({"width": 1366, "height": 768})
    page.evaluate(JS.settled)
    assert page.evaluate(figure) == before
