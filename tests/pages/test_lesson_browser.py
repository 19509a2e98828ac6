"""A player on a saved page, and what lessons do in JupyterLab: pictures, guesses, charts with
controls, colors of IL, prose.
"""

import numpy as np
import pytest
from browsing import JS, at
from players import record_launch, view
from playwright.sync_api import expect

import cypresskit as ck
from cypresskit.draw.display import ADVICE

LESSON = "01_register_block.ipynb"
PLAYS = "ck.draw.register_block(*lesson.small_run())"


@pytest.fixture(scope="module")
def recording():
    rng = np.random.default_rng(5)
    return record_launch(
        "sgemm_tn", *(rng.standard_normal((6, n)).astype(np.float32) for n in (16, 24)), (2, 1)
    )[0]


@pytest.fixture(scope="module")
def player(recording):
    return ck.draw.register_block(recording)


@pytest.fixture
def shown(show, player):
    """The saved page, opened from disk."""
    return show(player)


def press(page, *keys):
    """The frame shown after these keys."""
    for key in keys:
        page.keyboard.press(key)
    return at(page, None, "cells C")["frame"]


def test_keys_step_jump_and_play(shown, player, recording):
    at(shown, 40)
    shown.locator("[data-ready]").focus()
    assert press(shown, "ArrowRight", "ArrowRight") == 42
    assert press(shown, "ArrowLeft") == 41
    assert press(shown, "End") == len(recording) - 1
    assert press(shown, "Home") == 0
    first = press(shown, "ArrowRight")
    shown.keyboard.press("Space")
    shown.wait_for_function(
        "k => +document.querySelector('[data-ready]').dataset.frame > k + 3", arg=first
    )
    stopped = press(shown, "Space")
    shown.wait_for_timeout(300)
    assert at(shown)["frame"] == stopped


def test_a_screen_reader_hears_each_step_but_not_while_playing(shown):
    at(shown, 12)
    status = shown.locator("[role=status][aria-live=polite]")
    heard = status.inner_text()
    assert heard.startswith("Step 13 of") and "<" not in heard
    shown.locator("[data-ready]").focus()
    shown.keyboard.press("Space")
    shown.wait_for_function("() => +document.querySelector('[data-ready]').dataset.frame > 15")
    assert status.inner_text() == heard


def test_each_click_goes_a_level_deeper_and_escape_back(page, show):
    page.set_viewport_size({"width": 1366, "height": 768})
    journey = ck.draw.explore("sgemm_tn", 64)
    show(journey)
    wide = [one.player for one in journey.levels]
    bars = wide[1].tracks[0].source.data["x"]
    for level, (name, cell) in enumerate(
        (("engines", 0), ("computes sgemm_tn to come", len(bars) // 2), ("slots", 10))
    ):
        page.evaluate(JS.settled)
        assert page.evaluate(JS.level)[0] == level and page.evaluate(JS.level)[3] <= 660
        page.mouse.click(*page.evaluate(JS.place, [name, cell]))
        page.wait_for_function(f"() => ({JS.level})()?.[0] === {level + 1}")
        page.wait_for_function("() => !document.getAnimations().length")  # it zooms in
    line = next(
        line
        for line, way in journey.levels[2].links.items()
        if way.frame == page.evaluate(JS.level)[2]
    )
    expect(page.get_by_text(f"line {line}:").first).to_be_visible()  # where it runs first
    page.mouse.click(*page.evaluate(JS.place, ["cells C", 9]))
    page.wait_for_function(f"() => ({JS.level})()[1] === '9'")
    element = wide[3].about[9][0][1].split("**")[1]
    page.get_by_text(element).locator("visible=true").first.wait_for()  # its sum is told
    for level in (2, 1, 0):
        page.keyboard.press("Escape")
        page.wait_for_function(f"() => ({JS.level})()?.[0] === {level}")


def framed(page, output, sandbox, policy=""):
    """A page that shows an output in a frame of its own."""
    page.set_content(f'<iframe sandbox="{sandbox}" width="1000" height="700"></iframe>')
    page.evaluate("html => { document.querySelector('iframe').srcdoc = html }", policy + output)
    return page.frame_locator("iframe")


@pytest.mark.parametrize(("sandbox", "rule"), [("", ""), ("allow-scripts", "script-src 'none'")])
def test_without_bokehs_script_the_text_and_a_sentence_stand(page, player, sandbox, rule):
    """A front end that gives each output a frame of its own, without scripts, with some, and one
    that forbids them.
    """
    policy = f'<meta http-equiv="Content-Security-Policy" content="{rule}">' * bool(rule)
    inner = framed(page, player.bundle()["text/html"], sandbox, policy)
    inner.locator("pre").wait_for()
    assert inner.locator("body").inner_text() == f"{player!r}\n\n{ADVICE}", "no wall of text"


def test_scripts_at_the_end_of_an_output_find_their_pictures(page, show):
    """VS Code runs copies of an output's scripts, appended to it one after another."""
    show(view("digits"))  # a page with the scripts
    pictures = {
        ".cypresskit-journey [data-ready]": ck.draw.explore,
        ".cypresskit-figure[data-ready]": ck.teach.lds.lds_pitch,
    }
    for ready, make in pictures.items():
        page.evaluate(JS.append, make().bundle()["text/html"])
        page.wait_for_selector(ready)
    page.evaluate("delete window.DecompressionStream")  # which unpacks pictures
    page.evaluate(JS.append, view("digits").bundle()["text/html"])
    page.get_by_text("This picture can't play here").wait_for()


def test_the_first_page_is_a_lesson_and_asks_nothing(lab, page):
    page.goto(f"{lab.url}{lab.opens}")
    page.wait_for_function(JS.idle, arg=lab.opens.split("/")[-1], timeout=600_000)
    assert not page.locator(".jp-DirListing:visible, .jp-Dialog, .Toastify__toast").count()


#: Whether the picture of the cell that has these words is whole in view; null until it is there.
IN_VIEW = """words => {
    const cells = [...document.querySelectorAll(".jp-CodeCell")]
    const cell = cells.find((one) => one.textContent.includes(words))
    const picture = cell?.querySelector("cypresskit-picture:has([data-ready]), .ckw-main")
    if (!picture) return null
    const room = picture.closest(".jp-WindowedPanel-outer").getBoundingClientRect()
    const {top, bottom} = picture.getBoundingClientRect()
    return {seen: top >= room.top - 1 && bottom <= room.bottom + 1}
}"""


def test_a_picture_comes_into_view_when_its_reader_ran_it(lab, page):
    """By the keyboard: whole, with its controls, wherever its cell stood; not on a page that was
    scrolled since. Of a workbench, its editor.
    """
    page.set_viewport_size({"width": 1366, "height": 768})
    long = "\n".join(["# a line"] * 22)
    load, bench, at_once, late = (
        "import time, cypresskit as ck\nck.draw.load()",
        "bench = ck.workbench(step='00')\nbench",
        "time.sleep(0)\nck.draw.register_block('sgemm_tn')",
        "time.sleep(2)\nck.draw.register_block('sgemm_tn')",
    )
    far = [long] * 4
    lab.write(page, "view.ipynb", load, long, late, *far, at_once, *far, bench, *far, "1 + 1")
    lab.run(page, load)
    for cell, scrolls in ((at_once, False), (bench, False), (late, True)):
        words = cell.partition("\n")[0]
        page.emulate_media(reduced_motion="reduce" if scrolls else "no-preference")
        page.locator(".jp-CodeCell", has_text=words).locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        if scrolls:
            page.mouse.wheel(0, -3000)
        page.wait_for_function(f"words => ({IN_VIEW})(words) !== null", arg=words)
        if scrolls:
            page.wait_for_timeout(1500)  # it would have come meanwhile
            assert not page.evaluate(IN_VIEW, words)["seen"]
        else:
            page.wait_for_function(f"words => ({IN_VIEW})(words).seen", arg=words, timeout=60_000)


#: How light the letters of the registers are.
INK = """() => {
    const doc = Bokeh.documents.findLast((d) => d.get_model_by_name("cells C"))
    const text = [...doc.all_models].find((model) => model.type === "Text")
    const canvas = document.createElement("canvas").getContext("2d")
    canvas.fillStyle = text.text_color.value
    canvas.fillRect(0, 0, 1, 1)
    return canvas.getImageData(0, 0, 1, 1).data[0]
}"""


@pytest.fixture(scope="module")
def lesson(lab, context):
    """A page of lesson 01, whose first player plays."""
    page = context.new_page()
    lab.open(page, LESSON)
    lab.run(page, "import numpy", "ck.draw.load()", PLAYS)
    page.locator(".jp-CodeCell", has_text=PLAYS).locator("[data-ready]").wait_for(state="attached")
    yield page
    page.close()


def test_prose_with_solutions_stays_rendered(lesson):
    lesson.locator(".jp-RenderedMarkdown").first.dblclick()
    assert lesson.locator(".jp-MarkdownCell .cm-editor:visible").count() == 0


def test_the_wheel_over_a_player_scrolls_the_notebook(lesson):
    """Its output has no scroll bar of its own."""
    assert not lesson.evaluate(JS.scrolled)


def test_keys_are_the_players_while_it_has_the_focus(lesson):
    at(lesson, 30, "cells C")
    lesson.locator("[data-ready]").first.focus()
    active = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"
    cell = lesson.evaluate(active)
    assert press(lesson, "ArrowRight", "ArrowRight", "ArrowLeft") == 31
    lesson.keyboard.press("Space")
    lesson.wait_for_function("() => +document.querySelector('[data-ready]').dataset.frame > 35")
    frame = press(lesson, "Space")
    assert lesson.evaluate(active) == cell
    lesson.evaluate(
        "() => { document.activeElement.blur();"
        " window.jupyterapp.shell.currentWidget.content.activate() }"
    )
    lesson.wait_for_function("() => document.activeElement.closest('.jp-Notebook')")
    lesson.keyboard.press("ArrowDown")
    lesson.wait_for_function(f"next => ({active})() === next", arg=cell + 1)
    assert press(lesson) == frame


def test_letters_of_a_player_stand_out_in_jupyterlabs_themes(lesson):
    for theme, look in (("Dark", "dark"), ("Light", "light")):
        change = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
        lesson.evaluate(change, f"JupyterLab {theme}")
        lesson.wait_for_selector(f".cypresskit-player[data-look={look}] [data-ready]")
        lesson.wait_for_function(f"isDark => ({INK})() > 200 === isDark", arg=look == "dark")


LOAD = "import cypresskit as ck\nck.draw.load()"
# Not `input`: while its field waits, JupyterLab refuses to run another cell, with a dialog.
WAITS = "from pathlib import Path\nwhile not Path('go').exists(): pass", "'end'"
GUESSES = (
    "times = ck.draw.predict('How often?', unit='times')\n"
    "change = ck.draw.predict('What happens to W?', ['the same', 'double'])",
    "print(times.reveal(8))\nprint(change.reveal('the same'))",
)
CURVE = (
    "guess = ck.draw.predict('how fast', curve=(1, 2, 4), top=200)",
    "speed = {'speed': {1: 50, 2: 100, 4: 190}}\n"
    "ck.draw.line_chart(speed, 'b', 'Gflop/s', guess=guess, kind='modeled', about='b x b')",
    "guess.value",
)
MISTYPED = "\n".join(
    line
    for line in ck.kernels["sgemm_naive"].text.replace("mad r10", "mda r10", 1).splitlines()
    if line[:1] != ";" or "alpha" in line
)
IL = f"own = '''{MISTYPED}'''\nck.assemble(own, 'own.il')"
CONTROLS = """ck.draw.interactive(
    lambda item: ck.draw.line_chart(
        {'a': {0: item}}, 'x', 'y', kind='counted', about='one', title=f'Item {item}'),
    item=[1, 2, 3])"""


@pytest.fixture(scope="module")
def cells(lab, context):
    """A page of one notebook with the cells of the next tests."""
    page = context.new_page()
    lab.write(page, "cells.ipynb", LOAD, *WAITS, IL, CONTROLS, *GUESSES, *CURVE)
    lab.run(page, LOAD)
    yield page
    page.close()


def test_guesses_are_told_beside_the_truth(lab, cells):
    """A number and a choice; and the control that was filled in is still there."""
    ask, reveal = GUESSES
    lab.run(cells, ask)
    entry = cells.get_by_placeholder("a number")
    entry.scroll_into_view_if_needed()
    entry.fill("8")
    entry.press("Tab")
    cells.get_by_text("Noted: 8.").wait_for()
    cells.get_by_role("button", name="double", exact=True).click()
    cells.get_by_text("Noted: double.").wait_for()
    lab.run(cells, reveal)
    said = "".join(out.get("text", "") for cell in lab.outputs(cells) for out in cell)
    assert "You said 8, and it is 8 times: well guessed!" in said
    assert "You said double, and it is the same." in said
    assert entry.input_value() == "8"


def test_a_curve_that_is_drawn_reaches_python(lab, cells):
    """By the keys of its points, which JupyterLab leaves alone; and it stays when it is kept."""
    guess, chart, value = CURVE
    lab.run(cells, guess)
    points = cells.get_by_role("slider", name="how fast at")
    points.nth(2).press("End")
    points.nth(0).press("PageUp")
    lab.run(cells, chart)
    lab.run_until(cells, value, "{1: 20.0, 2: 0.0, 4: 200.0}")
    assert points.nth(2).get_attribute("aria-valuenow") == "200", "it is still there"


def test_controls_in_jupyterlab_answer(lab, cells):
    """A slider's step runs Python again and puts a new chart in the old one's place."""
    lab.run(cells, CONTROLS)
    cell = cells.locator(".jp-CodeCell", has_text="ck.draw.interactive(")
    cell.scroll_into_view_if_needed()
    title = cell.locator(".finding")
    title.get_by_text("Item 1").wait_for()
    cell.locator(".widget-slider .noUi-handle").first.focus()
    for item in (2, 3):
        cells.keyboard.press("ArrowRight")
        cells.get_by_text(f"item = {item}").wait_for()  # progress, and then the answer
        title.get_by_text(f"Item {item}").wait_for()
    expect(title).to_have_count(1)  # the old chart goes


def test_il_in_a_cell_has_colors_and_line_numbers(lab, cells):
    lab.run(cells, IL)
    cells.locator(".jp-CodeCell", has_text="own = ").first.evaluate("cell => cell.scrollIntoView()")
    cells.wait_for_function(
        f"() => ['mda', 'dcl_cb'].every(one => ({JS.colored})().keyword.includes(one))"
    )
    seen = cells.evaluate(JS.colored)
    assert {"whileloop", "mda", "sample_resource(0)_sampler(0)", "dcl_cb"} <= set(seen["keyword"])
    assert {"r10", "r2.x", "cb0[0].z", "vWinCoord0.yx"} <= set(seen["def"])
    assert "-0.5" in seen["number"]
    assert "; times alpha" in seen["comment"]
    verdict = cells.wait_for_function(
        """() => [...document.querySelectorAll(".jp-OutputArea-output")]
        .map(one => one.textContent).find(text => text.includes("own.il:"))"""
    ).json_value()
    assert f"own.il:{seen['wrong']}:" in verdict, (seen["wrong"], verdict)


def test_prose_is_narrow_and_of_one_typeface(lab, page):
    """At most 80 letters in a line; tables and charts have the typeface of prose."""
    prose = "word " * 100
    lab.write(page, "prose.ipynb", "1", markdown=prose)
    page.locator(".jp-RenderedMarkdown p").wait_for()
    letters = page.evaluate("""() => {
        const text = document.querySelector(".jp-RenderedMarkdown p").firstChild
        const tops = [...text.data].map((letter, n) => {
            const range = document.createRange()
            range.setStart(text, n)
            range.setEnd(text, n + 1)
            return range.getBoundingClientRect().top
        })
        return tops.filter((top) => top === tops[0]).length
    }""")
    assert 55 <= letters <= 80
    font = "(one) => getComputedStyle(one).fontFamily"
    prose_font = page.locator(".jp-RenderedMarkdown p").evaluate(font)
    assert prose_font.startswith("Helvetica")


def test_a_cell_that_runs_for_over_a_second_says_so(lab, cells):
    for cell in WAITS:  # neither is waited for
        cells.evaluate(f"cell => {{ ({JS.run})([cell]) }}", cell)
    told = """text => [...document.querySelectorAll(".jp-CodeCell")]
        .filter(cell => text.split("\\n")[0] === cell.querySelector(".cm-line")?.innerText)
        .map(cell => cell.querySelector(".jp-InputPrompt").dataset.works ?? "").join()"""
    waiting, behind = WAITS
    try:
        cells.wait_for_function(f"text => /^[2-9] s|^\\d\\d+ s/.test(({told})(text))", arg=waiting)
        assert cells.evaluate(told, behind) == "", "the one behind it only waits"
    finally:
        (lab.root / "go").touch()
    cells.wait_for_function(f"text => !({told})(text)", arg=waiting)
