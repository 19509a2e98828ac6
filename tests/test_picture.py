"""The element that every picture is, in Chromium: what it gives back when it leaves the page, what
stays when it can't play, which keys it takes, and that text is never an element.
"""

import base64
import json
import re
import zlib
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import hostile
import ipywidgets
import numpy as np
import pytest
from conftest import ROOT
from pages import view

import cypresskit as ck
from cypresskit.draw import display, pipelines, theme
from cypresskit.draw.climb_picture import Climb
from cypresskit.draw.predict import BETWEEN
from cypresskit.draw.scripts import join_modules, read_packaged
from tools import gallery

PICTURE = "cypresskit-picture"
DATA = re.compile(r'(<script type="application/x-cypresskit">)([^<]*)')
SIZES = """() => ({
    documents: Bokeh.documents.length,
    nodes: document.querySelectorAll("*").length,
    listeners: [...Bokeh.index.roots].length,
})"""
#: Scripts that innerHTML makes never run.
PUT = """html => document.body.replaceChildren(
    document.createRange().createContextualFragment(html))"""
SHOWN = f"() => document.querySelector('{PICTURE} [data-ready]')"


@pytest.fixture
def stage(page):
    """A page with the scripts and nothing else, and a function that puts HTML on it, whose own
    scripts run, as in JupyterLab and VS Code.
    """
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto("about:blank")
    page.set_content("<body></body>")
    page.add_script_tag(content=display.scripts())
    page.wait_for_function("() => customElements.get('cypresskit-picture')")

    def put(html: str) -> None:
        page.evaluate(PUT, html)

    page.put = put
    page.errors = errors
    return page


def packed_data(html: str) -> dict:
    return json.loads(zlib.decompress(base64.b64decode(DATA.search(html)[2])))


def with_data(html: str, data: dict) -> str:
    return DATA.sub(lambda found: found[1] + display.pack_json(json.dumps(data)), html)


def test_thirty_redraws_leave_what_three_leave(stage):
    """A cell that runs again, or a slider that is moved: no document, element or view stays."""
    html = view("digits").to_html(still=False)
    sizes = []
    for _ in range(30):
        stage.put(html)
        stage.wait_for_function(SHOWN)
        stage.wait_for_function("() => Bokeh.documents.length === 1")  # the one before is gone
        sizes.append(stage.evaluate(SIZES))
    assert sizes[2] == sizes[29], (sizes[2], sizes[29])


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


def broken(data: dict):
    """The data with each field removed, and renamed, in turn."""
    tag = next(model for model in data["document"]["roots"] if model["attributes"].get("tags"))
    spec = tag["attributes"]["tags"][0]
    pairs = spec["entries"] if isinstance(spec, dict) and spec.get("type") == "map" else None
    assert pairs, "how Bokeh writes a mapping"
    for place in ({"": data}, {"document.": data["document"]}):
        ((where, fields),) = place.items()
        for name in list(fields):
            value = fields.pop(name)
            yield f"{where}{name} removed", data
            fields[f"{name}_"] = value
            yield f"{where}{name} renamed", data
            del fields[f"{name}_"]
            fields[name] = value
    for n, (name, value) in enumerate(list(pairs)):
        del pairs[n]
        yield f"{name} removed", data
        pairs.insert(n, [f"{name}_", value])
        yield f"{name} renamed", data
        pairs[n] = [name, value]


def test_a_still_stays_whatever_field_of_the_data_is_missing(stage):
    """Of a picture that another version saved: either it plays, or its still can be read."""
    stage.put("")
    html = view("register_block").to_html()
    for what, data in broken(packed_data(html)):
        stage.put(with_data(html, data))
        stage.wait_for_function(
            """() => {
            const picture = document.querySelector("cypresskit-picture")
            return picture.querySelector("[data-ready]") ||
                picture.querySelector("p").textContent.includes("can't play here")
        }""",
        )
        seen = stage.evaluate(
            """() => {
            const still = document.querySelector(".cypresskit-still")
            const ready = document.querySelector("[data-ready]")
            const high = (one) => one ? one.getBoundingClientRect().height : 0
            const figures = [...(ready?.shadowRoot.querySelectorAll(".figure > *") ?? [])]
            return {still: high(still), figures: figures.map(high)}
        }"""
        )
        assert seen["still"] > 100 or sum(seen["figures"]) > 100, (what, seen)
    assert stage.evaluate("Bokeh.documents.length") <= 1


def test_a_picture_of_another_format_says_so_and_keeps_its_still(stage):
    html = view("digits").to_html()
    stage.put(html.replace(display.FORMAT, "00000000"))
    stage.get_by_text("saved by another version of cypresskit").wait_for()
    assert stage.locator("img").bounding_box()["height"] > 100


#: What of hostile texts has become a part of the page, at any depth.
BECAME = """() => {
    const all = (root) => [...root.querySelectorAll("*")].flatMap(
        (one) => [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])])
    const active = (one) => one.matches(".hostile") || one.hasAttribute("onmouseover")
    return all(document).filter(active).length + Number(Boolean(window.hostile))
}"""


@pytest.mark.parametrize("view", hostile.PICTURES)
def test_a_hostile_text_stays_text_in_every_picture(stage, view):
    """Names, captions, comments and labels that somebody else wrote, at the first and last frame,
    with everything that can be pointed at or chosen.
    """
    stage.put(hostile.PICTURES[view](hostile.TEXT).to_html())
    stage.wait_for_function(SHOWN)
    for key in ("ArrowDown", "End"):
        stage.keyboard.press(key)
    assert not stage.evaluate(BECAME)
    assert not stage.errors
    assert stage.evaluate("() => document.documentElement.scrollWidth") < 3000


@pytest.mark.few(4)
@pytest.mark.parametrize("view", hostile.PICTURES)
def test_whatever_a_text_is_a_picture_can_be_saved(view, tmp_path):
    """As a page and as a still that is well-formed, and its text form can be printed."""
    picture = hostile.PICTURES[view](hostile.TEXT)
    still = ElementTree.fromstring(picture.save(tmp_path / "still.svg").read_text("utf-8"))
    assert not [part for part in still.iter() if part.tag.endswith(("img", "script"))]
    html = picture.bundle()["text/html"]
    assert len(html) < 1_000_000, "a long name is cut"
    assert html.encode() and repr(picture).encode()
    for tag in ("class=hostile", "onerror=", "<!--"):
        assert tag not in re.sub(r'alt="[^"]*"', "", html)


KINDS = {name: lambda name=name: view(name) for name in ("register_block", "timeline")} | {
    "climb": ck.draw.climb,
    "a reader's climb": lambda: Climb("none", ()),
    "explore": lambda: ck.draw.explore("sgemm_tn", 64),
    "line_chart": lambda: ck.draw.line_chart({"a": {1: 2, 2: 3}}, "x", "y"),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_saved_as_what_its_ending_says_or_refused(kind, tmp_path):
    """And the path is returned, also of a text, whatever kind of picture it is."""
    picture = KINDS[kind]()
    begins = {"a.svg": "<svg", "b.html": "<!DOCTYPE html>", "c.d.htm": "<!DOCTYPE html>"}
    for name, begin in begins.items():
        path = picture.save(str(tmp_path / name))
        assert path == tmp_path / name and path.read_text("utf-8").startswith(begin)
    for name in ("climb.png", "a.jpg", "a.pdf", "svg", "a.svg.gz", "a.SVGZ", "a.", "html"):
        with pytest.raises(ValueError, match=r"are saved as \.html or \.svg"):
            picture.save(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == begins.keys()


def test_every_view_is_fed_hostile_texts_or_takes_none():
    views = {name for name in ck.draw.VIEWS if name.islower()}
    others = {"interactive", "load", "predict"}
    assert views <= {*hostile.PICTURES, *hostile.NO_TEXT, *others}


def test_hostile_names_and_values_become_no_element_in_controls(page):
    with ThreadPoolExecutor(1) as alone:  # in this thread a browser's event loop runs
        written = alone.submit(hostile_controls).result()
    for html in written:
        page.set_content(html)
        assert page.locator(".hostile").count() == 0, html


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


def fail(**_):
    raise TypeError(hostile.TAG)


# -- keys

KEYS = {
    "player": (lambda: view("register_block"), ["ArrowRight", "End", " ", "Escape"]),
    "game": (ck.teach.bundles.bundle_game, ["ArrowDown", "b", "u", "Escape"]),
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

    def hearer(key: str) -> str:
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

THEMES = {
    "vscode-light": (False, False),
    "vscode-dark": (True, False),
    "vscode-high-contrast": (True, True),
    "vscode-high-contrast-light": (False, True),
}
INK = """selector => {
    const host = document.querySelector(selector)
    const [red] = getComputedStyle(host).color.match(/\\d+/g)
    return Number(red)
}"""


@pytest.mark.parametrize("wish", ["light", "dark"])
@pytest.mark.parametrize("kind", THEMES)
def test_players_and_toys_stand_out_in_each_theme_of_vs_code(stage, kind, wish):
    """Whatever the computer's own setting is."""
    dark, contrast = THEMES[kind]
    stage.emulate_media(color_scheme=wish)
    stage.put(view("digits").to_html() + ck.teach.lds.lds_pitch().to_html())
    stage.wait_for_function("() => document.querySelectorAll('[data-ready]').length === 2")
    stage.evaluate("kind => { document.body.dataset.vscodeThemeKind = kind }", kind)
    wanted = f".cypresskit[data-look={'dark' if dark else 'light'}] > [data-ready]"
    stage.wait_for_function(f"() => document.querySelectorAll('{wanted}').length === 2")
    for host in stage.locator("[data-ready]").all():
        ink = host.evaluate("one => +getComputedStyle(one).color.match(/\\d+/)[0]")
        assert ink > 200 if dark else ink < 60
        if contrast:
            assert ink in (0, 255)


def test_every_color_has_a_light_and_a_dark_one():
    names = set(re.findall(r"--ck-(\w+):.*light-dark", read_packaged("draw/look.css")))
    sizes = {"control", "label", "result", "sans", "sentence", "text"}
    assert names == set(theme.TOKENS) and len(names) > 15
    used = re.findall(r"var\(--ck-(\w+)\)", display.look() + read_packaged("draw/player.css"))
    assert set(used) <= names | sizes | {"high", "room"}


def test_colors_are_the_themes():
    """A color that a view writes itself is the same on a dark page and in high contrast."""
    for path in sorted((ROOT / "cypresskit").rglob("*.py")):
        if path.name != "theme.py":
            text = path.read_text(encoding="utf-8")
            assert not re.findall(r"""["']#(?:[0-9a-fA-F]{3}){1,2}\b""", text), path
            rgb = re.findall(r"rgba?\((\d+),(\d+),(\d+)", text)
            assert all(red == green == blue for red, green, blue in rgb), path


def test_words_on_tints_can_be_read():
    for tint in pipelines.TINTS:
        name, alpha = tint.split()
        for look in (0, 1):
            hues = [theme.TOKENS[which][look][1:] for which in (name, "page", "ink")]
            hue, page, ink = (np.array([*bytes.fromhex(color)]) / 255 for color in hues)
            below = float(alpha) * hue + (1 - float(alpha)) * page
            dark, bright = sorted(map(luminance, (below, ink)))
            assert (bright + 0.05) / (dark + 0.05) >= 4.5, (tint, look)


def luminance(color: np.ndarray) -> float:
    """How bright a color is: WCAG's relative luminance."""
    linear = np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


# -- the scripts


def test_bokeh_is_used_by_its_public_names():
    package = ROOT / "cypresskit"
    drawing = [*package.glob("draw/*.py"), *package.glob("teach/l*/*.py")]
    own = {
        "py": "\n".join(file.read_text() for file in drawing),
        "js": join_modules(*display.MODULES),
    }
    assert not re.findall(r"(?<!self)(?<!cls)\.(_(?!_)\w+)", own["js"])
    for name in ("renderer_views", "canvas_view", "glyph_view", "Bokeh.index"):
        assert name not in own["js"]
    assert not re.findall(r"bokeh\S* import .*\b_\w", own["py"]) and "._args" not in own["py"]
