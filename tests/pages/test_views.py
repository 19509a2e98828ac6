"""The views in Chromium: they play, can be read, and follow the mouse and keys."""

import nbformat
import numpy as np
import pytest
from browsing import JS, READY, at, hold_clock
from players import IN_LESSONS, VIEWS, view
from readable import PHONE, unreadable
from repository import ROOT
from sampling import drawn_by_day

from cypresskit import draw
from cypresskit.timing import simulate
from tools import gallery

# -- on the site


def test_every_view_is_on_the_site():
    names = {name for name in draw.VIEWS if name.islower()}
    others = {"climb", "interactive", "load", "predict", "line_chart"}
    assert names - others <= gallery.VIEWS.keys()


# -- in the browser


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_values_travel_unless_motion_is_reduced(motion, clock, page, show):
    """By a clock that the test holds, so that it doesn't matter how long a frame takes here. What
    stands still meanwhile is copied, and looks as it would if it were painted.
    """
    page.emulate_media(reduced_motion=motion)
    show(view("lds_transpose"))
    at(page, len(view("lds_transpose")) // 3)
    hold_clock(page)
    for act in (JS.travel, JS.travel, JS.painted):
        page.evaluate(act)
        page.clock.run_for(300)
    drawn = page.evaluate("() => drawn()")
    assert drawn > 6 if motion == "no-preference" else drawn <= 1, (
        "thirty a second for 220 ms, or the step alone"
    )
    assert page.evaluate(JS.painted) < 8


def assert_plays(page):
    """From the first frame on."""
    at(page, 0)
    page.evaluate(JS.begin, "20")
    page.wait_for_function("() => +document.querySelector('[data-ready]').dataset.frame >= 1")
    page.locator("[data-ready]").press("Space")


PICTURES = {name: make for name, (_, make) in gallery.VIEWS.items()} | VIEWS
CHARTS = "compilers", "published", "roofline"  # see test_draw_chart.py, test_places.py
PICTURES |= {f"{name} in its lesson": make for name, make in IN_LESSONS.items()}
PLAYERS = [name for name in PICTURES if name not in (*CHARTS, "explore", "lds_pitch")]


@drawn_by_day("name", PLAYERS, 5)
def test_everybody_can_read_a_player(name, show):
    """At its first, middle and last frame, on both screens, all marks and texts lie inside their
    figure, and no two texts overlap; each stop of Tab has a name.
    """
    player = PICTURES[name]()
    page = show(player)

    def look():
        page.evaluate(JS.settled)
        for frame in sorted({0, len(player) // 2, len(player) - 1}):
            at(page, frame)
            assert page.evaluate(JS.faults) == [], f"frame {frame}, {page.viewport_size}"
        assert page.evaluate(JS.strangeStops) == []

    assert unreadable(page, look, PHONE) == []


#: With scenes, and a long listing: the player is one for all views.
OTHERS = ["lds_transpose", pytest.param("bundles in its lesson", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("name", ["wavefronts", *OTHERS])
def test_in_the_browser(name, saved, show):
    """A page shows its tracks at chosen steps, plays, has at most 620 pixels in a low window, and
    reads out each frame.
    """
    player = view(name.split()[0], in_lesson=" " in name)
    page = show(player)
    assert saved(player).stat().st_size < 3_000_000
    last = player.scenes[0][1] - 1
    for step in {0, last // 3, last // 2, last, len(player) - 1}:
        seen = at(page, step)
        assert seen["frame"] == step
        for track in player.tracks:
            got = np.array(seen["data"][track.source.name][track.column], dtype=float)
            assert np.array_equal(got, track.frames[step].astype(float), equal_nan=True), (
                track.source.name
            )
            if track.names:
                assert seen["data"][track.source.name][track.text] == [
                    track.names[v] if v >= 0 else "" for v in track.frames[step]
                ]
    for scene in page.locator("[data-part=scene] button:visible").all()[:1]:
        assert (
            scene.click()
            or page.evaluate("() => document.activeElement.shadowRoot.activeElement") is None
        )
    if last:
        assert_plays(page)
    assert player.captions[0].split()[0].strip("*,.") in at(page)["words"]
    page.set_viewport_size({"width": 1366, "height": 600})
    page.evaluate(JS.settled)
    assert page.locator("[data-ready]").bounding_box()["height"] <= 620
    if last:
        bottoms = page.evaluate(JS.bottoms)
        assert len(bottoms) == 5 and max(bottoms) < 120, "the controls stand on top"
        at(page, 0)
        page.keyboard.press("ArrowRight")  # nothing was clicked or focused
        assert at(page)["frame"] == 1


def test_a_click_lights_the_same_thing_in_every_part(show):
    page = show(view("lds_transpose"))
    at(page, 8)
    page.mouse.click(*page.evaluate(JS.place, ["registers lds", 33]))
    page.wait_for_function("() => document.querySelector('[data-ready]').dataset.pick === '33'")
    lit = page.evaluate(JS.selected)
    assert {key for _, key in lit} == {33}
    assert {name for name, _ in lit} >= {
        "registers lds",
        "registers lds_rows",
        "lds lds_rows",
        "arrived lds",
    }
    assert page.get_by_text("A[8, k = 1]").first.is_visible()
    page.keyboard.press("Space")
    page.wait_for_function("() => +document.querySelector('[data-ready]').dataset.frame > 10")
    page.keyboard.press("Space")
    assert {key for _, key in page.evaluate(JS.selected)} == {33}
    page.keyboard.press("ArrowDown")
    assert {key for _, key in page.evaluate(JS.selected)} == {34}
    page.keyboard.press("Escape")
    assert page.evaluate(JS.selected) == []


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


def test_a_click_on_a_line_of_code_goes_to_where_it_runs(show):
    page = show(view("register_block"))
    at(page, 40)
    line = page.locator(".code [data-line]").nth(6)
    number = int(line.get_attribute("data-line"))
    current = view("register_block").figures[0].tags[0]["listing"]["current"]
    line.click()
    frame = int(page.locator("[data-ready]").get_attribute("data-frame"))
    assert number in current[frame] or [number] not in current


def test_a_picture_that_opens_at_its_end_plays_from_its_first_frame(show):
    page = show(view("digits"))
    picture = page.locator("[data-ready]")
    last = int(picture.get_attribute("data-frame"))
    assert last == len(view("digits").captions) - 1 > 0
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(
        f"""() => document.querySelector("[data-ready]").dataset.frame < {last}"""
    )


def test_a_page_plays_where_nothing_may_be_evaluated(saved, tmp_path, page):
    policy = "script-src 'self' 'unsafe-inline'"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>'
    (path := tmp_path / "strict.html").write_text(
        saved(view("texture_fetch")).read_text().replace("<title>", meta, 1)
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
    race.
    """
    page.set_viewport_size({"width": 390, "height": 844})
    show(gallery.VIEWS[name][1]())
    page.evaluate(JS.settled)
    x, y = page.evaluate(JS.place, [source, 0])
    assert 0 < x < 390 and 0 < y < 844


@pytest.mark.parametrize("name", ["digits", "timeline", "wavefronts"])
def test_a_phone_shows_a_whole_run_beside_the_names_of_its_rows(name, page, show):
    """No text is cut off or on another, no mark is outside, each share can be read; and it is as
    before on a wide page.
    """
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
    for key in ("Home", "End"):
        page.locator("[data-ready]").focus()
        page.keyboard.press(key)
        page.evaluate(JS.settled)
        assert page.evaluate(JS.faults) == []
    assert all(page.evaluate(shares))
    page.set_viewport_size({"width": 1366, "height": 768})
    page.evaluate(JS.settled)
    assert page.evaluate(figure) == before


def test_keys_select_only_what_the_scene_shows(show):
    """And what another scene has is selected no longer."""
    page = show(draw.chip([simulate("sgemm_tn", n) for n in (128, 256)]))
    at(page, 130)
    page.keyboard.press("ArrowDown")
    assert at(page)["frame"] == 130 and "</b> of N = 256" in at(page)["words"]
    at(page, 5)
    assert "of N = 256" not in at(page)["words"]
