"""The element that every picture is, in Chromium: what it gives back when it leaves the page, what
stays when it can't play, which keys it takes, and that text is never an element.
"""

import io
import re

import hostile
import ipywidgets
import nbformat
import numpy as np
import pytest
from browsing import script_errors
from PIL import Image
from players import VIEWS, view
from sampling import drawn_by_day
from waiting import without_a_loop

import cypresskit as ck
from cypresskit.draw import display, theme
from cypresskit.draw.climb_picture import Climb
from cypresskit.draw.predict import BETWEEN
from tools import gallery, stills

PICTURE = "cypresskit-picture"
#: Scripts that innerHTML makes never run.
PUT = """html => document.body.replaceChildren(
    document.createRange().createContextualFragment(html))"""
SHOWN = f"() => document.querySelector('{PICTURE} [data-ready]')"


@pytest.fixture
def stage(page):
    """A page with the scripts and nothing else, and a function that puts HTML on it, whose own
    scripts run, as in JupyterLab and VS Code.
    """
    page.errors = script_errors(page)
    page.goto("about:blank")
    page.set_content("<body></body>")
    page.add_script_tag(content=display.scripts())
    page.wait_for_function("() => customElements.get('cypresskit-picture')")

    def put(html):
        page.evaluate(PUT, html)

    page.put = put
    return page


def test_a_picture_that_comes_back_goes_on_where_it_was(stage):
    """As an output does that a notebook takes off the page while it is far from the screen."""
    stage.put(view("digits").to_html())
    stage.wait_for_function(SHOWN)
    stage.locator("[data-ready]").focus()
    for _ in range(3):
        stage.keyboard.press("ArrowRight")
    frame = stage.locator("[data-ready]").get_attribute("data-frame")
    stage.evaluate(f"() => {{ window.away = document.querySelector('{PICTURE}'); away.remove() }}")
    stage.wait_for_function("() => Bokeh.documents.length === 0")
    stage.evaluate("() => document.body.append(away)")
    stage.wait_for_selector(f"[data-ready][data-frame='{frame}']")


def test_a_picture_of_another_format_says_so_and_keeps_its_text(stage):
    html = view("digits").to_html()
    stage.put(html.replace(display.FORMAT, "00000000"))
    stage.get_by_text("saved by another version of cypresskit").wait_for()
    assert stage.locator("pre").inner_text() == repr(view("digits"))


def test_each_image_is_of_its_picture_alone(chromium):
    """Whatever was taken before it."""
    html = view("digits").to_html()
    images = without_a_loop(stills.take)([html, html])
    assert images[0] == images[1]


def test_an_image_keeps_rare_colors(stage):
    """As the thin red frame of what waits, beside the large orange parts of B."""
    stage.put(view("texture_fetch").to_html())
    stage.wait_for_function(stills.PLAYING)
    shot = stage.screenshot()
    taken, kept = (
        np.asarray(Image.open(io.BytesIO(image)).convert("RGB"), int)
        for image in (shot, stills.shrink(shot))
    )
    assert abs(taken - kept).max() <= 40, "half as far as its red is from its orange"


def test_an_image_in_a_lesson_has_the_page_s_look_and_stays_legible_on_a_phone(chromium, page):
    """Without any script or style sheet."""
    html = view("digits").to_html()
    output = nbformat.v4.new_output("display_data", data={"text/html": html})
    lesson = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=[output])])
    without_a_loop(stills.put_in)(lesson)
    page.set_viewport_size({"width": 390, "height": 800})
    image = page.locator("img")
    for look, brightest in (("light", 255), ("dark", 60)):
        page.emulate_media(color_scheme=look)
        page.set_content(lesson.cells[0].outputs[0].data["text/html"])  # until its image is there
        corner = Image.open(io.BytesIO(image.screenshot())).convert("L").getpixel((2, 2))
        assert brightest - 60 < corner <= brightest, look
    own = int(image.get_attribute("width"))
    assert image.bounding_box()["width"] >= theme.SMALLEST * own - 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "only the image scrolls"


#: How many controls are seen, at any depth.
CONTROLS = """() => {
    const all = (root) => [...root.querySelectorAll("*")].flatMap(
        (one) => [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])])
    const isControl = (one) => one.matches("button, input, select, summary")
    return all(document).filter((one) => isControl(one) && one.getClientRects().length).length
}"""


@pytest.mark.parametrize("name", ["digits", "explore", "lds_pitch"])
def test_an_image_shows_no_control(stage, name):
    """Nothing in it can be clicked."""
    stage.put(gallery.VIEWS[name][1]().to_html())
    stage.wait_for_function(stills.PLAYING)
    assert stage.evaluate(CONTROLS) > 0
    stage.evaluate(stills.POSE)
    assert stage.evaluate(CONTROLS) == 0


#: What of hostile texts has become a part of the page, at any depth.
BECAME = """() => {
    const all = (root) => [...root.querySelectorAll("*")].flatMap(
        (one) => [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])])
    const active = (one) => one.matches(".hostile") || one.hasAttribute("onmouseover")
    return all(document).filter(active).length + Number(Boolean(window.hostile))
}"""


def of_own(name, drawn):
    return lambda text: drawn(hostile.name_kernel(text, name))


OF_TEXT = {name: of_own(*view.own) for name, view in VIEWS.items() if view.own}
OF_TEXT |= {name: view.of_text for name, view in VIEWS.items() if view.of_text}
OF_TEXT["a sheet"] = hostile.sheet


@pytest.mark.parametrize("view", ["a sheet", "line_chart"])
def test_a_hostile_text_stays_text_in_a_player_and_a_chart(stage, view):
    """Names, captions, comments and labels that somebody else wrote, at the first and last frame,
    with everything that can be pointed at or chosen.
    """
    stage.put(OF_TEXT[view](hostile.TEXT).to_html())
    if view == "line_chart":
        stage.locator("svg.wide").wait_for()
    else:
        stage.wait_for_function(SHOWN)
    for key in ("ArrowDown", "End"):
        stage.keyboard.press(key)
    assert not stage.evaluate(BECAME)
    assert not stage.errors
    assert stage.evaluate("() => document.documentElement.scrollWidth") < 3000


@drawn_by_day("view", OF_TEXT, 3)
def test_whatever_a_text_is_a_picture_can_be_saved(view, tmp_path):
    """And its text form can be printed."""
    picture = OF_TEXT[view](hostile.TEXT)
    picture.save(tmp_path / "page.html")
    html = picture.bundle()["text/html"]
    assert len(html) < 1_000_000, "a long name is cut"
    assert html.encode() and repr(picture).encode()
    for tag in ("<img src=x", "<b class=hostile", "<!--", 'x" onmouseover='):
        assert tag not in re.sub("<pre>[^<]*</pre>", "", html)


TINTS = """() => {
    const figure = Bokeh.documents.at(-1).roots()[0]
    return [...figure.references()].flatMap((one) => one.palette ?? [])
}"""


def test_a_tint_keeps_its_alpha_where_the_theme_s_color_has_one(stage):
    """As in JupyterLab, whose soft text is rgba(0, 0, 0, 0.54)."""
    sheet = ck.draw.sheet.Sheet("Tints")
    sheet.stage("Tints", 100, 100)
    sheet.boxes("soft", [20, 40], 20, 10, 10, fill=(["soft 0.2", "ink"], [0, 1]))
    theme = "<style>:root { --jp-content-font-color2: rgba(0, 0, 0, 0.54) }</style>"
    stage.put(theme + sheet.player(["A box"], ["a box"]).to_html())
    stage.wait_for_function(SHOWN)
    palette = stage.evaluate(TINTS)
    assert "rgba(0, 0, 0, 0.2)" in [str(color) for color in palette], palette


ENTER = """() => {
    const [first, second] = document.querySelectorAll(".cypresskit-journey section")
    const player = first.querySelector(".cypresskit-player")
    const at = {bubbles: true, clientX: 300, clientY: 200}
    player.dispatchEvent(new PointerEvent("pointerdown", at))
    const detail = {key: Number(first.querySelector("[data-ready]").dataset.pick), frame: 0}
    const enter = {bubbles: true, cancelable: true, detail}
    player.dispatchEvent(new CustomEvent("cypresskit-enter", enter))
    const isWhole = second.getBoundingClientRect().width === second.offsetWidth
    const lengths = second.getAnimations().map((one) => one.effect.getTiming().duration)
    return [second.hidden, isWhole, lengths]
}"""


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_level_opens_where_it_was_clicked_unless_motion_is_reduced(stage, motion):
    """At its full size from the start: pictures measure it."""
    stage.emulate_media(reduced_motion=motion)
    stage.put(ck.draw.explore("sgemm_tn", 64).to_html())
    stage.wait_for_function(SHOWN)
    assert stage.evaluate(ENTER) == [False, True, [400] if motion == "no-preference" else []]


KINDS = {view.kind: view.make for view in VIEWS.values()}
KINDS["a reader's climb"] = lambda: Climb("none", ())


@drawn_by_day("kind", KINDS, 3)
def test_a_picture_is_saved_as_what_its_ending_says_or_refused(kind, tmp_path):
    """And the path is returned, also of a text, whatever kind of picture it is."""
    picture = KINDS[kind]()
    names = {"b.html", "c.d.htm"}
    for name in names:
        path = picture.save(str(tmp_path / name))
        assert path == tmp_path / name and path.read_text().startswith("<!DOCTYPE html>")
    for name in ("climb.png", "a.jpg", "a.pdf", "a.svg", "a.HTMLZ", "a.", "html"):
        with pytest.raises(ValueError, match=r"are saved as \.html"):
            picture.save(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == names


def fail(**_):
    raise TypeError(hostile.TAG)


@without_a_loop
def hostile_controls():
    """All HTML that controls write."""
    seen = []
    box = ck.draw.interactive(lambda **_: "text", **{hostile.TAG: [hostile.TAG, "b"], "n": [1, 2]})
    seen.append(box._repr_mimebundle_()["text/html"])
    widgets = [box]
    while widgets:
        widget = widgets.pop()
        widgets += getattr(widget, "children", ())
        if isinstance(widget, ipywidgets.HTML):
            seen.append(widget.value)
        elif getattr(widget, "description", ""):
            assert not widget.description_allow_html
    failing = ck.draw.interactive(fail, **{hostile.TAG: [1, 2]})
    seen += [child.value for child in failing.children if isinstance(child, ipywidgets.HTML)]
    return seen


def test_hostile_names_and_values_become_no_element_in_controls(page):
    for html in hostile_controls():
        page.set_content(html)
        assert page.locator(".hostile").count() == 0, html


# -- keys

KEYS = {
    "player": (lambda: view("register_block"), ["ArrowRight", "End", " ", "Escape"]),
    "pitch": (ck.teach.lds.lds_pitch, ["ArrowLeft", "r", "Escape"]),
}
FREE = ["Shift+Enter", "Control+s", "Control+b", "Alt+ArrowRight", "Meta+z", "Tab", "Shift+Tab"]


@pytest.mark.parametrize("name", KEYS)
def test_a_picture_takes_only_the_keys_that_it_uses(stage, name):
    """As JupyterLab asks: at the document, before the page's elements see a key, by an attribute
    of what the key is for.
    """
    make, taken = KEYS[name]
    stage.put(f'<div class="jp-Cell" tabindex="0">{make().to_html()}</div>')
    stage.wait_for_function(SHOWN)
    stage.evaluate(
        """() => {
        window.heard = []
        document.addEventListener("keydown", (event) => {
            let node = event.target
            while (node && !node.hasAttribute("data-lm-suppress-shortcuts"))
                node = node.parentElement
            heard.push(node ? "picture" : "notebook")
        }, true)
    }"""
    )

    def hearer(key):
        stage.locator("[data-ready]").focus()
        stage.keyboard.press(key)
        return stage.evaluate("heard.at(-1)")

    assert {key: hearer(key) for key in taken} == dict.fromkeys(taken, "picture")
    assert {key: hearer(key) for key in FREE} == dict.fromkeys(FREE, "notebook")


@pytest.mark.parametrize(
    ("prints", "guess", "reads"),
    [
        ("Which? It is NN.", "TN, by <b>much", "Which? You said TN, by <b>much, and it is NN."),
        ("n is: it is 4.", "8", "n is: you said 8, and it is 4."),
    ],
)
def test_a_lessons_question_on_a_page_is_answered_by_the_guess(stage, prints, guess, reads):
    """On the site, where no kernel runs: at once, and in the folded result, as text. The first
    guess counts.
    """
    question = re.match(r"Which\?|n is", prints)[0]
    choices = BETWEEN.join(["TN, by <b>much", "NN"])
    after = f" ({choices})" if question == "Which?" else " bundles"
    stage.put(f'{gallery.field(question, after)}<div class="cell_output"><pre>{prints}</pre></div>')
    stage.wait_for_function(SHOWN)
    box = stage.locator("[data-ready]")
    if question == "Which?":
        box.get_by_role("button", name=guess).click()
        box.get_by_role("button", name="NN").click()
    else:
        field = box.get_by_role("textbox", name="n is")
        field.fill("four")
        field.press("Tab")
        assert field.get_attribute("aria-invalid") == "true"
        assert "can't be read" in box.inner_text()
        field.fill(guess)
        field.press("Tab")
        field.press("9")
        field.press("Tab")
        assert field.input_value() == guess
    assert f"You said {guess}, and it is {prints.split()[-1]}" in box.inner_text()
    assert stage.locator("pre").inner_text() == reads
    assert stage.locator("pre b").count() == 0


# -- looks

#: Whether each is dark, and from where to where the red of its text may be.
THEMES = {
    "vscode-light": (False, 0, 59),
    "vscode-dark": (True, 201, 255),
    "vscode-high-contrast": (True, 255, 255),
    "vscode-high-contrast-light": (False, 0, 0),
}


@pytest.mark.parametrize("kind", THEMES)
def test_players_and_toys_stand_out_in_each_theme_of_vs_code(stage, kind):
    """Whatever the computer's own setting is."""
    dark, least, most = THEMES[kind]
    stage.emulate_media(color_scheme="light" if dark else "dark")
    stage.put(view("digits").to_html() + ck.teach.lds.lds_pitch().to_html())
    stage.wait_for_function("() => document.querySelectorAll('[data-ready]').length === 2")
    stage.evaluate("kind => { document.body.dataset.vscodeThemeKind = kind }", kind)
    wanted = f".cypresskit[data-look={'dark' if dark else 'light'}] > [data-ready]"
    stage.wait_for_function(f"() => document.querySelectorAll('{wanted}').length === 2")
    for host in stage.locator("[data-ready]").all():
        ink = host.evaluate("one => +getComputedStyle(one).color.match(/\\d+/)[0]")
        assert least <= ink <= most
