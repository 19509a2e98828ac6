"""The workbench's page alone, in Chromium: a test holds the other end of its channel, and answers
as it likes: late, out of turn, or never. Laws on random edits; long texts; keys; other hosts.
"""

import json
import re
from pathlib import Path

import pytest
from browsing import JS, close_at_script_errors, script_errors
from readable import axe_finds
from sampling import drawn_by_day

import cypresskit as ck
from cypresskit.draw.scripts import join_modules, read_packaged
from cypresskit.editing import page_files
from cypresskit.editing.steps import STEPS

FAKE = (Path(__file__).with_name("workbench_page.js")).read_text()
PAGE = """<!doctype html><html lang="en"><title>Workbench</title><body class="cypresskit">
<style>%s</style><main><div id="bench"></div></main>
<script type="module">%s
Object.assign(window, {Answerer, unmarkedStatements, stampOf})</script>
<script type="module">%s
let seed = %d
const random = (low, high) => {
  seed = (seed * 1103515245 + 12345) %% 2147483648
  return low + Math.floor((seed / 2147483648) * (high - low))
}
const host = document.querySelector("#bench")
const channel = new Answerer(random, %r)
Object.assign(window, {host, channel, random, Workbench, StepHead, makeSentence})
const bench = new Workbench(host, channel)
window.end = () => bench.end()
</script></body></html>"""
TEXT = "\n".join(f"mad r{n}, r1, r2, r{n}" for n in range(12))
AREA = ".ckw-area"


@pytest.fixture
def begin(page):
    """A function that begins a workbench on a page with a fake answerer."""
    faults = close_at_script_errors(page)
    page.emulate_media(reduced_motion="reduce")

    def make(text=TEXT, seed=1):
        script = join_modules(*page_files.MODULES)
        page.set_content(PAGE % (page_files.style(), FAKE, script, seed, text))
        page.wait_for_selector(".ckw-slot")

    yield make
    assert not faults


RANDOM_EDITS = """async (count) => {
    const area = host.querySelector(".ckw-area")
    const wrong = new Set()
    let looks = 0
    const look = () => {
        looks++
        for (const one of unmarkedStatements(host)) wrong.add(one)
    }
    const watch = new MutationObserver(look)
    watch.observe(host, {subtree: true, childList: true, attributes: true, characterData: true})
    const typed = ["x", "fault", "wrong", " ", "refuse", "\\n", "mov r3, r4\\n", "r2", "7"]
    for (let n = 0; n < count; n++) {
        area.focus()
        const at = random(0, area.value.length)
        const kind = random(0, 10)
        if (kind === 0) channel.bring(area.value.slice(0, at) + "mov r5, r6")
        else if (kind === 1) document.execCommand("undo")
        else if (kind < 4) {
            area.setSelectionRange(at, Math.min(area.value.length, at + random(1, 40)))
            document.execCommand("delete")
        } else {
            area.setSelectionRange(at, at)
            document.execCommand("insertText", false, typed[random(0, typed.length)])
        }
        if (kind === 9) {
            area.select()
            document.execCommand("insertText", false, `mad r1, r2, r3, r${n}\\n`.repeat(9))
        }
        look()
        const picks = ".ckw-slot, .ckw-term, .ckw-matrices button, .ckw-row"
        const all = [...host.querySelectorAll(picks)]
        const places = all.filter((one) => one.getClientRects().length)
        if (kind === 5 && places.length) places[random(0, places.length)].click()
        if (kind === 6) channel.silent = !channel.silent
        await new Promise((go) => setTimeout(go, random(0, 12) ? random(0, 150) : 900))
        look()
    }
    watch.disconnect()
    return {wrong: [...wrong], looks}
}"""


def test_each_statement_is_of_this_text_or_looks_old(begin, page):
    begin(seed=2)
    seen = page.evaluate(RANDOM_EDITS, 80)
    assert seen["wrong"] == []
    assert seen["looks"] > 200


def test_all_statements_come_for_the_last_text(begin, page):
    """Nothing stays old once all answers are there: then each says the stamp of the text."""
    begin()
    page.focus(AREA)
    page.keyboard.type("wrong ")
    page.wait_for_selector("#bench[data-stale='']")
    assert not page.evaluate("() => unmarkedStatements(host)")
    stamp = str(page.evaluate("() => stampOf(host.querySelector('.ckw-area').value)"))
    for place in ("findings", "terms", "card", "costliest"):
        said = page.text_content(f".ckw-{place}").replace(",", "")
        assert stamp in said, place
    assert page.text_content(".ckw-speed") == ""
    assert "once C is correct" in page.text_content(".ckw-units")


# -- keys, focus, and what is heard

FOCUS = "() => document.activeElement.className"


def test_a_text_from_elsewhere_is_shown_and_undo_goes_back_beyond_it_word_by_word(begin, page):
    begin()
    page.focus(AREA)
    page.keyboard.press("Control+Home")
    page.keyboard.type("; two words", delay=20)
    page.wait_for_selector("#bench[data-stale='']")
    theirs = "mov r1, r2"
    page.evaluate("theirs => channel.bring(theirs)", theirs)
    assert page.input_value(AREA) == theirs
    page.keyboard.type("yes")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    last = f"{theirs}y"
    assert page.input_value(AREA) == last
    before = [
        f"{theirs}yes",
        theirs,
        *(f"{mine}{TEXT}" for mine in ("; two words", "; two ", "; ", "")),
    ]
    for text in (*before, TEXT):
        page.keyboard.press("Control+z")
        assert page.input_value(AREA) == text
    for text in (*reversed(before[:-1]), last, last):
        page.keyboard.press("Control+y")
        assert page.input_value(AREA) == text
    page.wait_for_selector("#bench[data-stale='']")


@pytest.mark.parametrize("back", [False, True])
def test_tab_indents_and_escape_then_tab_leaves(begin, page, back):
    """Wherever the caret is, whatever is selected; one undo takes it back, and no letter that is
    typed next goes elsewhere.
    """
    text = "mov r1, r2\n  mov r3, r1\n\tmov r4, r1"
    indented = "    mov r1, r2\n      mov r3, r1\n\tmov r4, r1"
    begin(indented if back else text)
    key = "Shift+Tab" if back else "Tab"
    keys = page.locator(".ckw-keys")  # in sight at the editor's top, and spoken with it
    assert keys.is_visible() and keys.inner_text().endswith("Escape, then Tab, leaves the editor.")
    spoken = "area => area.ariaDescribedByElements.map(({className}) => className.split(' ')[0])"
    assert page.locator(AREA).evaluate(spoken) == ["ckw-keys", "ckw-verdict"]
    made = [((1, 20), text if back else indented)]
    if not back:
        made += [((0, 0), f"    {text}"), ((1, 1), f"m   {text[1:]}"), ((1, 5), f"m   {text[5:]}")]
    for at, changed in made:
        page.focus(AREA)
        page.locator(AREA).evaluate("(area, at) => area.setSelectionRange(...at)", at)
        page.keyboard.press(key)
        assert page.input_value(AREA) == changed
        assert page.evaluate(FOCUS) == "ckw-area"
        page.keyboard.press("Control+z")
        assert page.input_value(AREA) == (indented if back else text)
    page.keyboard.press("Escape")
    assert page.evaluate(FOCUS) == "ckw-area"
    page.keyboard.press(key)
    assert page.evaluate(FOCUS) != "ckw-area"
    page.focus(AREA)
    for each in ("Escape", "x", "Tab"):  # a letter in between: it indents again
        page.keyboard.press(each)
    assert page.evaluate(FOCUS) == "ckw-area"


@pytest.mark.parametrize("place", [".ckw-buttons button", ".ckw-below", AREA])
def test_no_single_key_in_the_workbench_is_the_notebooks(begin, page, place):
    """In the notebook's command mode x cuts the cell, b adds one, and an arrow selects another. Its
    commands, which a capital C or a small one with Shift opens, are never the workbench's.
    """
    begin()
    page.evaluate(
        """() => document.addEventListener("keydown", ({target}) => {
            window.kept = target.closest("[data-lm-suppress-shortcuts]") !== null
        }, true)"""
    )
    commands = ("Control+s", "Control+Shift+C", "Control+Shift+c")
    for key in ("x", "b", "m", "0", "ArrowLeft", "ArrowUp", "Shift+ArrowDown", *commands):
        page.focus(place)
        page.keyboard.press(key)
        assert page.evaluate("() => window.kept") == (key not in commands), key


@pytest.mark.parametrize("key", ["Shift+Enter", "Control+Enter"])
def test_keys_that_run_a_cell_leave_the_text_its_undo_and_say_that_it_is_checked(begin, page, key):
    """The notebook doesn't get them: it would make the editor anew."""
    begin()
    page.focus(AREA)
    page.keyboard.type("x")
    text = page.input_value(AREA)
    page.evaluate(
        """() => document.addEventListener("keydown", ({target}) => {
            window.kept = target.hasAttribute("data-lm-suppress-shortcuts")
        })"""
    )
    page.keyboard.press(key)
    assert page.evaluate("() => window.kept")
    assert "checked as you type" in page.text_content(".ckw-note")
    assert page.input_value(AREA) == text
    page.keyboard.press("Control+z")
    assert page.input_value(AREA) == TEXT
    assert page.text_content(".ckw-note") == ""


#: What a page shows of a step.
STEP = {"name": "02", "title": "", "idea": "", "hint": "", "open_panels": [], "record": "Nakasato"}
STEP |= {"targets": {"minimum": 0, "reference": 0, "published": 0}}
OPENED = f"""(step) => {{
    end()
    host.replaceChildren()
    delete host.dataset.stale
    window.channel = new Answerer(channel.wait, channel.text) // what the other says comes late
    channel.step = {{...{json.dumps(STEP)}, ...step}}
    const bench = new Workbench(host, channel)
    window.end = () => bench.end()
}}"""


PANELS = ("costs", "limits", "bundles", "registers", "history", "climb")


@pytest.mark.parametrize("step", ["00", "03", "contest"])
def test_a_step_opens_its_panels_and_no_other(begin, page, step):
    """The headline, the code and C are there in any case; what is open is seen, no more is. A step
    about bundles has them beside the code.
    """
    begin()
    opens = list(STEPS[step].open_panels)
    page.evaluate(OPENED, {"name": step, "open_panels": opens})
    page.wait_for_selector("#bench[data-stale='']")
    page.wait_for_selector(".ckw-costliest button", state="attached")
    seen = [
        name
        for name in (*PANELS, "il")
        if page.locator(f".ckw-panel-{name}").get_attribute("hidden") is None
    ]
    assert sorted(seen) == sorted(opens)
    assert page.locator(".ckw-matrices").is_visible()
    assert page.locator(".ckw-main .ckw-panel-bundles").is_visible() == ("bundles" in opens)
    code, right = (page.locator(one).bounding_box() for one in (".ckw-frame", ".ckw-right"))
    assert right["y"] == code["y"] and right["x"] > code["x"] + code["width"]
    assert page.text_content(".ckw-hint p").startswith("help ")
    assert page.locator(".ckw-row .ckw-cost").first.is_visible() == ("costs" in opens)
    assert page.locator(".ckw-row .ckw-live").first.is_visible() == ("registers" in opens)
    for name in PANELS:
        button = page.locator(".ckw-open button", has_text=name.capitalize())
        before = page.locator(f".ckw-panel-{name}").is_visible()
        button.click()
        assert page.locator(f".ckw-panel-{name}").is_visible() != before
        assert button.get_attribute("aria-expanded") == str(not before).lower()


@drawn_by_day("step", STEPS, 4)
def test_a_step_is_seen_whole_down_to_its_help_line_on_a_small_screen(begin, page, step):
    """1366 x 768 less the browser's bars: 1366 x 657; JupyterLab leaves 934 x 535 of it."""
    begin()
    page.set_viewport_size({"width": 1366, "height": 657})
    page.evaluate("() => { host.style.width = '934px' }")
    shown = {"name": step, "title": STEPS[step].title, "idea": STEPS[step].idea, "hint": "a"}
    page.evaluate(OPENED, shown)
    page.wait_for_selector(".ckw-help")
    help_line, bench = (page.locator(one).first.bounding_box() for one in (".ckw-help", ".ckw"))
    assert help_line["y"] + help_line["height"] - bench["y"] <= 535


def test_a_fault_is_no_error_in_a_given_text_and_its_button_leads_to_what_il_is(begin, page):
    begin()
    page.evaluate("() => channel.bring('fault')")
    page.evaluate(OPENED, {"starter": "fault"})
    panel = page.locator(".ckw-panel-il")
    assert panel.get_attribute("hidden") is not None
    page.locator(".ckw-findings button", has_text="IL in a minute").click()
    assert panel.get_attribute("hidden") is None
    color = "() => getComputedStyle(host.querySelector('.ckw-verdict')).color"
    given = page.evaluate(color)
    page.evaluate("() => channel.bring('fault, too')")
    page.wait_for_selector(".ckw-verdict[data-kind=fault]")
    assert page.evaluate(color) != given


CARET = "() => host.querySelector('.ckw-area').selectionStart"


@drawn_by_day("step", STEPS, 4)
def test_the_caret_begins_where_the_readers_line_belongs(begin, page, step):
    """At the end of the line that says so, if the step has one: Enter begins the reader's."""
    text = STEPS[step].starter
    begin(text)
    caret = page.evaluate(CARET)
    lines = [n for n, line in enumerate(text.splitlines()) if "your line" in line]
    at = text[:caret].count("\n")
    assert at == lines[0] if lines else at > 0
    assert (text[caret] == "\n") == bool(lines)


@pytest.mark.parametrize("count", [3, 99])
def test_the_wheel_moves_the_code_only_if_not_all_of_it_is_seen(begin, page, count):
    begin("\n".join([TEXT.splitlines()[0]] * count) + "\n")
    page.locator(AREA).hover()
    page.mouse.wheel(0, 200)
    page.wait_for_timeout(300)
    assert (page.locator(AREA).evaluate("area => area.scrollTop") > 0) == (count > 3)


def test_a_tap_repeats_the_instruction_above_and_another_undoes_it(begin, page):
    """The buttons are where a finger is."""
    before = "mov r1, r2 ; a remark\n; another\nmov r3, r4"
    begin(before)
    assert page.locator(".ckw-taps").is_hidden()
    page.locator(AREA).evaluate("area => area.setSelectionRange(25, 25)")
    for name, text in (
        ("Add", before.replace("\nmov r3", "\nmov r1, r2\nmov r3")),
        ("Undo", before),
    ):
        page.locator("button", has_text=name).evaluate("button => button.click()")
        assert page.input_value(AREA) == text


def test_a_shown_line_is_at_its_button_and_heard(begin, page):
    begin()
    page.set_viewport_size({"width": 1366, "height": 657})
    page.evaluate(OPENED, {"name": "02"})
    page.wait_for_selector(AREA)
    page.evaluate("() => channel.say({type: 'history', entries: [], wait: 0.3})")
    button = page.locator("button", has_text="Stuck?")
    assert not button.is_visible()
    button.click()  # once it is there
    assert page.evaluate("() => channel.heard.at(-1).type") == "line"
    shown = page.locator(".ckw-step [role='status']")
    for lines, end in ([["mad r1"], ""], [["mad r1", "mad r2"], "No more."]):
        page.evaluate("([lines, end]) => channel.say({type: 'line', lines, end})", [lines, end])
        assert [*filter(None, shown.inner_text().splitlines())] == [*lines, *filter(None, [end])]
    at, below = button.bounding_box(), shown.bounding_box()
    assert at["width"] < 250
    assert 0 <= below["y"] - at["y"] - at["height"] < 12
    code = page.locator(AREA).bounding_box()
    assert at["y"] > code["y"] + code["height"], "it comes late, and moves no code"
    page.evaluate("() => channel.say({type: 'history', entries: [], wait: null})")
    assert not shown.is_visible()


def test_a_refusal_names_its_line(begin, page):
    begin()
    page.evaluate("() => channel.bring('refuse')")
    page.wait_for_function(
        "() => /^Line 1: refused/.test(host.querySelector('.ckw-verdict').innerText)"
    )


def guess_late(page, line, by):
    """Guess once the costs are known, which nothing shows before."""
    prompt = page.locator(".ckw-prompt")
    number = page.locator(".ckw-row .ckw-number")
    page.focus(AREA)
    for key in ("Control+Home", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    page.wait_for_function("() => host.querySelector('.ckw-help b')")
    stamp = str(page.evaluate("() => stampOf(host.querySelector('.ckw-area').value)"))
    assert stamp not in page.text_content(".ckw-help"), "the cost, before the guess"
    number.nth(0).click()  # a line without a cost is no guess
    assert not page.locator(".ckw-panel-costs").is_visible()
    if by == "mouse":
        number.nth(line - 1).click()
    else:
        page.focus(AREA)
        page.keyboard.press("Control+Home")
        for _ in range(line - 1):
            page.keyboard.press("ArrowDown")
        prompt.locator("button").focus()
        page.keyboard.press("Enter")


@pytest.mark.parametrize(("line", "by"), [(9, "mouse"), (6, "keys"), (3, "mouse, early")])
def test_costs_open_once_the_reader_has_guessed(begin, page, line, by):
    begin()
    early = "early" in by
    if early:  # the answers come slowly, the costs last
        page.evaluate("() => { channel.wait = () => 1000 }")
    page.evaluate(OPENED, {"name": "00", "has_guess": True})
    prompt = page.locator(".ckw-prompt")
    prompt.wait_for()
    number = page.locator(".ckw-row .ckw-number")
    if early:
        number.nth(line - 1).click()
        soon = f"Your guess is line {line}: its cost comes soon."
        assert prompt.text_content() in (soon, f"Your guess, line {line}, is correct.")
    else:
        page.wait_for_selector("#bench[data-stale='']")
        guess_late(page, line, by)
    page.locator(".ckw-panel-costs").wait_for()
    said = prompt.text_content()
    assert said == f"Your guess, line {line}, is {'correct' if line in (3, 9) else 'incorrect'}."
    page.focus(AREA)
    page.keyboard.type("x")
    assert prompt.is_hidden()


def test_costs_that_are_open_leave_nothing_to_guess(begin, page):
    begin()
    page.evaluate(OPENED, {"name": "00", "has_guess": True})
    prompt = page.locator(".ckw-prompt")
    prompt.wait_for()
    page.wait_for_selector("#bench[data-stale='']")
    page.locator(".ckw-open button", has_text="Costs").click()
    page.locator(".ckw-row .ckw-number").nth(5).click()
    assert prompt.is_hidden()


#: From now on, each place that the editor has had in its workbench, and its width.
PLACES = """() => {
    window.places = new Set()
    const note = () => {
        const [editor, bench] = [".ckw-frame", ".ckw"].map((one) => document.querySelector(one))
        const {y, width} = editor.getBoundingClientRect()
        places.add(`${y - bench.getBoundingClientRect().y}, ${width}`)
        requestAnimationFrame(note)
    }
    note()
}"""


@pytest.mark.parametrize("width", [360, 1366])
def test_passing_a_target_is_told_once_and_shows_the_climb(width, begin, page):
    """The speed is the text's stamp, between 20,000 and 30,000. Neither a key nor what comes of it
    moves the editor, also if a text has no small product.
    """
    page.set_viewport_size({"width": width, "height": 700})
    begin()
    own = page.evaluate("() => stampOf(host.querySelector('.ckw-area').value)")
    check = "<div data-cypresskit-check>Not yet.</div>"
    page.evaluate(
        "html => document.querySelector('main').insertAdjacentHTML('beforeend', html)", check
    )
    # The second is reached from the beginning, as speeds are shown.
    targets = {"minimum": own - 5, "reference": own + 0.4, "published": own + 0.6}
    page.evaluate(OPENED, {"name": "02", "targets": targets})
    page.wait_for_selector("#bench[data-stale='']")
    passed = page.locator(".ckw-passed:not(.ckw-soft)")
    assert passed.is_hidden(), "nobody has typed"
    slower = page.evaluate(
        OPENED.replace("(step)", "async (step)"), {"name": "02", "targets": targets}
    )
    assert slower is None
    page.wait_for_selector("#bench[data-stale='']")
    told = []
    page.evaluate(PLACES)
    page.focus(AREA)
    fastest = own
    for letter in (*"abcdefg", "endless"):
        page.keyboard.press("Control+End")
        page.keyboard.insert_text(letter)
        page.wait_for_selector("#bench[data-stale='']")
        speed = page.evaluate("() => stampOf(host.querySelector('.ckw-area').value)")
        passes = fastest < targets["published"] <= speed
        assert passed.is_visible() == passes, (fastest, speed)
        lacks = page.locator(".ckw-passed", has_text=f"{targets['minimum']:,} to pass")
        assert lacks.is_visible() == (speed < targets["minimum"])
        if passes:
            assert passed.text_content() == f"{speed:,}: past Nakasato's {own + 1:,}"
            assert page.evaluate("() => channel.heard.at(-1).part") == "climb"
        told.append(passes)
        fastest = max(fastest, speed)
        saved = {"type": "history", "entries": [], "saved": fastest, "wait": 0}
        page.evaluate("saved => channel.say(saved)", saved)
    assert sum(told) == 1
    assert len(page.evaluate("[...places]")) == 1
    assert page.get_attribute("[data-cypresskit-check]", "data-cypresskit-check") == "old"


def test_that_the_kernel_is_gone_is_said(begin, page):
    """Whether the channel says so, or fails."""
    begin()
    said = "() => document.querySelector('.ckw-unsaved').textContent"
    page.evaluate("() => channel.say({type: 'gone'})")
    assert "this cell again" in page.evaluate(said)
    begin()
    page.evaluate("() => { channel.send = () => { throw new Error('Cannot send') } }")
    page.focus(AREA)
    page.keyboard.type("x")
    page.wait_for_selector(".ckw-unsaved:not([hidden])")
    assert "this cell again" in page.evaluate(said)


def test_a_text_that_cant_be_sent_is_kept_whatever_another_workbench_sends(begin, page):
    """Two workbenches on one file; the kernel of one was restarted. The text is sent when its cell
    runs again, for the history only, and then no more.
    """
    page.route(
        "http://127.0.0.1:1/", lambda route: route.fulfill(body="", content_type="text/html")
    )
    page.goto("http://127.0.0.1:1/")  # which, unlike about:blank, may store something
    begin()
    page.evaluate(
        """() => {
            const other = document.body.appendChild(document.createElement("div"))
            other.id = "other"
            window.otherChannel = new Answerer(random, channel.text)
            new Workbench(other, otherChannel)
            channel.send = () => { throw new Error("Cannot send") }
        }"""
    )
    page.wait_for_selector("#other[data-stale='']")
    page.focus(f"#bench {AREA}")
    page.keyboard.type("; lost")
    page.wait_for_selector("#bench .ckw-unsaved:not([hidden])")
    lost = page.input_value(f"#bench {AREA}")
    page.focus(f"#other {AREA}")
    page.keyboard.type("; sent")
    page.wait_for_selector("#other[data-stale='']")
    page.wait_for_selector("#other:not([aria-busy])")
    sent = page.input_value(f"#other {AREA}")
    again = """() => {
        end()
        host.replaceChildren()
        const fresh = new Answerer(random, otherChannel.text)
        const bench = new Workbench(host, fresh)
        window.end = () => bench.end()
        window.fresh = fresh
    }"""
    kept = "() => fresh.heard.filter(({type}) => type === 'unsent').map(({text}) => text)"
    for unsent in ([lost], []):
        page.evaluate(again)
        page.wait_for_selector("#bench[data-stale='']")
        page.wait_for_selector("#bench:not([aria-busy])")
        assert page.evaluate(kept) == unsent
        assert page.input_value(f"#bench {AREA}") == sent


#: A speed; the minimum, the reference, and the record, which has to be passed; what is shown.
TICKED = [
    (0, (1000, 1500, 2014), ["1,000", "1,500", "2,014"]),
    (999, (1000, 1500, 2014), ["1,000", "1,500", "2,014"]),
    (1000, (1000, 1500, 2014), ["✓1,000", "1,500", "2,014"]),
    (1500, (1000, 1500, 2014), ["✓1,000", "✓1,500", "2,014"]),
    (2014, (1000, 1500, 2014), ["✓1,000", "✓1,500", "2,014"]),
    (2015, (1000, 1500, 2014), ["✓1,000", "✓1,500", "✓2,014"]),
    (1300, (1000, 1500, 1200), ["✓1,000", "✓1,200", "1,500"]),
    (1300, (1000, 999, 2014), ["✓1,000", "2,014"]),
]


@pytest.mark.parametrize("kind", ["speed", "saved"])
def test_a_target_is_ticked_if_the_speed_reaches_it(kind, begin, page):
    """What is saved keeps its tick while another text is checked."""
    begin()
    spans = """([step, more]) => {
        const head = new StepHead(...Array(3).fill(document.body), step, {})
        Object.assign(head, more)
        head.showTargets()
        const spans = [...head.targetsLine.querySelectorAll("span")]
        return spans.map((one) => one.textContent.match(/✓|[0-9,]+$/g).join(""))
    }"""
    for speed, targets, shown in TICKED:
        step = STEP | {"targets": dict(zip(("minimum", "reference", "published"), targets))}
        assert page.evaluate(spans, [step, {kind: speed}]) == shown


def test_the_bundles_are_those_of_the_compiler_that_was_chosen(begin, page):
    """LLVM's are asked for, for each text anew; why it has none is said in place of them."""
    begin()
    page.wait_for_selector("#bench[data-stale='']")
    ours = page.inner_text(".ckw-panel-bundles h3")
    page.locator(".ckw-panel-bundles select").select_option("LLVM")
    asked = page.evaluate("() => channel.heard.at(-1)")
    assert (asked["type"], asked["part"]) == ("ask", "llvm")
    code = "{rows: [{kind: 'alu', loop: true, clause: 0, operations: [[1, 'MUL', 2, 'MUL']]}]"
    answer = f"{code}, card: {{gprs: 33}}, gflops: 986}}"
    say = "() => channel.say({type: 'answer', edit: '%s', part: 'llvm', ...%s})"
    page.evaluate(say % (asked["edit"], answer))
    assert (
        page.inner_text(".ckw-panel-bundles h3")
        == "1 bundles in the loop, 33 registers, 986 Gflop/s"
    )
    page.evaluate(
        say % (asked["edit"], "{refusal: {line: 0, message: 'it needs an installation'}}")
    )
    assert page.inner_text(".ckw-panel-bundles h3") == "it needs an installation"
    page.locator(".ckw-panel-bundles select").select_option("cypresskit")
    assert page.inner_text(".ckw-panel-bundles h3") == ours


LISTS = (".ckw-matrices", ".ckw-buttons", ".ckw-bundles", ".ckw-edits")


def test_a_list_is_one_stop_of_tab_and_arrow_keys_move_in_it(begin, page):
    """C, the panels' buttons, bundles and edits, of which the newest; and its focus stays when it
    is drawn anew.
    """
    begin()
    page.wait_for_selector("#bench[data-stale='']")
    entry = "{number: %d, gflops: 7, is_correct: true, summary: 'an edit'}"
    entries = ", ".join(entry % n for n in (1, 2))
    page.evaluate(f"() => channel.say({{type: 'history', entries: [{entries}]}})")
    focused = "place => [...host.querySelectorAll(`${place} *`)].indexOf(document.activeElement)"
    page.focus(AREA)
    page.keyboard.press("Escape")
    stops = []
    while not stops or page.evaluate("() => host.contains(document.activeElement)"):
        page.keyboard.press("Tab")
        stops += [place for place in LISTS if page.evaluate(focused, place) >= 0]
    assert stops == list(LISTS)
    newest = page.locator(".ckw-edits [tabindex='0']")
    assert newest.get_attribute("data-number") == "2"
    for place in LISTS:
        page.focus(f"{place} [tabindex='0']")
        page.keyboard.press("Home")
        first = page.evaluate(focused, place)
        page.keyboard.press("ArrowDown" if place == ".ckw-edits" else "ArrowRight")
        assert page.evaluate(focused, place) > first
    page.keyboard.press("Enter")
    assert page.evaluate("() => channel.heard.at(-1)") == {"type": "recall", "entry": 1}
    page.evaluate(f"() => channel.say({{type: 'history', entries: [{entries}]}})")
    assert page.evaluate(focused, ".ckw-edits") == 1
    page.focus(".ckw-buttons [tabindex='0']")
    opened = page.locator(".ckw-buttons [tabindex='0']")
    before = opened.get_attribute("aria-expanded")
    page.keyboard.press("Enter")
    assert opened.get_attribute("aria-expanded") != before


def test_a_word_that_only_javascript_knows_has_no_meaning(begin, page):
    begin("constructor r1\nmov r3, r4\nmov r5, r6")
    page.focus(AREA)
    page.keyboard.press("Control+Home")
    page.wait_for_function(
        "() => host.querySelector('.ckw-help').textContent.includes('Put the caret on a word')"
    )


def test_a_long_remark_is_shown_whole_below_the_editor_and_hides_no_line_of_it(begin, page):
    begin("\n".join([TEXT] * 9))
    page.focus(AREA)
    page.keyboard.press("Control+Home")
    down = page.locator(AREA).evaluate("(area) => Math.floor(area.clientHeight / 16) - 1")
    for _ in range(down):
        page.keyboard.press("ArrowDown")
    page.keyboard.insert_text(" ; " + "a remark of many words " * 20)
    help_line = page.locator(".ckw-help").first
    help_line.filter(has_text=re.compile(r"many words mad .*\d Put")).wait_for()
    assert help_line.evaluate("(one) => one.scrollHeight <= one.offsetHeight")
    page.wait_for_function(
        """() => {
            const area = host.querySelector(".ckw-area")
            const line = host.querySelector(".ckw-paint > .ckw-here").getBoundingClientRect()
            return line.bottom <= area.getBoundingClientRect().top + area.clientHeight + 1
        }"""
    )


def test_faults_are_underlined_also_in_a_browser_of_2023(begin, page):
    """It can't group by a function."""
    begin()
    page.evaluate("() => { delete Map.groupBy; delete Object.groupBy }")
    page.focus(AREA)
    page.keyboard.type("fault ")
    page.wait_for_function("() => CSS.highlights.get('ckw-fault')?.size === 1")


def test_verdicts_and_faults_are_heard(begin, page):
    begin()
    heard = "words => host.querySelector('[aria-live]').textContent.includes(words)"
    page.wait_for_function(heard, arg="verdict")
    page.evaluate(
        """() => {
            const answer = {type: "answer", edit: channel.heard.at(-1).edit, part: "verdict"}
            const verdict = {is_correct: true, message: "C.", findings: []}
            channel.say({...answer, ...verdict, aside: "It has a `mad`."})
            channel.say({...answer, part: "clocks", problem: "Not timed."})
        }"""
    )
    page.wait_for_function(heard, arg="It has a mad.")
    page.focus(AREA)
    page.wait_for_function("host.querySelector('.ckw-help').textContent")
    page.keyboard.press("F2")
    assert page.inner_text(".ckw-heard") == page.inner_text(".ckw-help >> nth=0").strip()
    assert page.get_attribute(".ckw-verdict", "data-kind") == "right"
    assert (
        page.inner_html(".ckw-verdict") == "<b>C. Not timed.</b>"
    )  # what is aside isn't cut: it is below
    below = page.inner_html(".ckw-findings")  # what is aside isn't cut
    assert below == '<p class="ckw-soft">It has a <code>mad</code>.</p>'
    page.focus(AREA)
    page.keyboard.type("fault")
    page.wait_for_function(heard, arg="Line 3, column 1: fault")
    assert page.get_attribute(AREA, "aria-invalid") == "true"


def test_a_click_on_a_wrong_term_lights_its_line_and_its_slots(begin, page):
    begin()
    page.focus(AREA)
    page.keyboard.type("wrong")
    page.wait_for_selector("#bench[data-stale='']")
    page.locator(".ckw-matrices .ckw-wrong").click()
    assert page.evaluate("() => channel.heard.at(-1).part") == "replay"
    page.hover(".ckw-term")
    assert page.locator(".ckw-slot.ckw-lit").count() == 2, "of all lines that touched the term"
    page.click(".ckw-term")
    assert page.text_content(".ckw-row.ckw-here .ckw-number") == "3"
    assert page.locator(".ckw-slot.ckw-lit").count() == 1
    page.wait_for_selector(".ckw-costliest button")
    page.keyboard.press("Control+Home")
    page.click(".ckw-costliest button")
    assert page.text_content(".ckw-row.ckw-here .ckw-number") == "3"
    assert page.evaluate(FOCUS) == "ckw-area"


# -- screens

#: While a text is checked: where the editor begins, and how high the head is.
CHECKED = """() => {
    host.querySelector(".ckw-verdict").dataset.kind = ""
    return [host.querySelector(".ckw-area").getBoundingClientRect().y,
        host.querySelector(".ckw-head").offsetHeight]
}"""
LISTED = """() => {
    const {scrollHeight, clientHeight} = host.querySelector(".ckw-verdict")
    return scrollHeight > clientHeight + 1 === Boolean(host.querySelector(".ckw-findings p"))
}"""
CUT = """() => [...host.querySelectorAll(".ckw-share, .ckw-unit .ckw-name, .ckw-slot")]
    .filter((one) => one.scrollWidth > one.clientWidth + 1 || one.offsetHeight > 24)
    .map((one) => `${one.className}: ${one.textContent}`)"""


@pytest.mark.parametrize("width, height", [(683, 384), (390, 844)])
def test_nothing_is_cut_off_or_too_small(begin, page, width, height):
    """At 200 per cent a screen of 1366 x 768 is one of 683 x 384."""
    page.set_viewport_size({"width": width, "height": height})
    begin()
    top = page.locator(AREA).bounding_box()["y"]
    for words in ("short", "a sentence " * 13, "a long sentence " * 20):
        verdict = {"type": "answer", "part": "verdict", "message": words}
        verdict["findings"] = [{"message": words}]
        verdict["edit"] = page.evaluate("channel.heard.at(-1).edit")
        page.evaluate("verdict => channel.say(verdict)", verdict)
        page.locator(".ckw-verdict", has_text=words.strip()).wait_for()
        assert page.locator(AREA).bounding_box()["y"] == top
        assert page.evaluate(LISTED), "below, if it is cut off"
    page.evaluate(
        """() => channel.say({type: "answer", edit: channel.heard.at(-1).edit, part: "clocks",
            size: [64, 64, 64], gflops: 1, bound: "texture",
            busy: {ALU: 1, texture: 1, LDS: 1, L2: 1, DRAM: 1}})"""
    )
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert page.evaluate(JS.small) == []
    assert page.evaluate(CUT) == []
    page.focus(AREA)
    page.keyboard.press("Control+End")
    page.keyboard.type("\nmov")
    assert page.text_content(".ckw-row.ckw-here .ckw-number") == "13"
    assert page.locator(".ckw-paint > .ckw-here").is_visible()
    page.evaluate("scrollTo(0, 0)")
    y, height = page.evaluate(CHECKED)
    assert y == top and height <= 40, "one line covers one"


def test_forced_colors_hide_nothing(begin, page):
    page.emulate_media(forced_colors="active", color_scheme="dark", reduced_motion="reduce")
    begin()
    page.wait_for_selector(".ckw-bar i", state="attached")
    bar = "() => getComputedStyle(host.querySelector('.ckw-bar i')).backgroundColor"
    page_color = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert page.evaluate(bar) != page_color
    page.focus(AREA)
    page.keyboard.type("wrong")
    page.wait_for_selector("#bench[data-stale='']")
    ink = "(place) => getComputedStyle(host.querySelector(place)).color"
    black = page.evaluate("() => getComputedStyle(document.body).color")
    assert page.evaluate(ink, AREA) == black, "the letters are the text area's"
    assert page.evaluate(ink, ".ckw-paint").endswith(", 0)"), "and not painted twice"
    bad = "() => getComputedStyle(host.querySelector('.ckw-bad .ckw-number')).backgroundColor"
    assert page.evaluate(bad) != page_color, "the number of a line with a fault"
    chip = "() => getComputedStyle(host.querySelector('.ckw-chip[style]')).backgroundColor"
    assert page.evaluate(chip) != page_color
    assert not axe_finds(page)


# -- other hosts

FRAME = """<!doctype html><html><head><meta http-equiv="Content-Security-Policy"
content="default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'">
</head><body%s><div id="cell"></div><script type="module">
%s
const channel = new Answerer(() => 5, %s)
const listeners = new Set()
channel.listen((message) => listeners.forEach((hear) => hear(message)))
const python = {
  send: (message) => channel.send(message),
  on: (kind, hear) => kind === "msg:custom" && listeners.add(hear),
  off: (kind, hear) => listeners.delete(hear),
}
const model = {get: () => "python", widget_manager: {get_model: async () => python}}
const cell = document.querySelector("#cell")
const root = %s ? cell.attachShadow({mode: "open"}) : cell
const style = document.createElement("style")
style.textContent = %s
const el = document.createElement("div")
root.append(style, el)
const code = new Blob([%s], {type: "text/javascript"})
const widget = (await import(URL.createObjectURL(code))).default
const leave = await widget.render({model, el})
Object.assign(window, {host: el, channel, leave, unmarkedStatements, stampOf})
</script></body></html>"""


@pytest.mark.parametrize(
    ("shadow", "body"),
    [(False, " data-vscode-theme-kind='vscode-dark'"), (True, " data-theme='light'")],
    ids=["VS Code", "in a shadow root elsewhere"],
)
def test_it_works_in_a_frame_without_jupyter_or_network(page, shadow, body):
    """As hosts of widgets do it: the module from a blob, in a frame whose policy allows no request,
    perhaps in a shadow tree.
    """
    faults = script_errors(page)
    page.on("console", lambda said: said.type == "error" and faults.append(said.text))
    texts = [
        json.dumps(text).replace("</", "<\\/")
        for text in (TEXT, page_files.style(), page_files.widget_module())
    ]
    own, style, module = texts
    inner = FRAME % (body, FAKE, own, json.dumps(shadow), style, module)
    page.set_content("<!doctype html><iframe id='frame' style='width: 1200px; height: 700px'>")
    page.evaluate(
        """(text) => {
            const frame = document.querySelector("#frame")
            frame.setAttribute("sandbox", "allow-scripts")
            frame.srcdoc = text
        }""",
        inner,
    )
    frame = page.frame_locator("#frame")
    frame.locator(".ckw-verdict[data-kind=right]").wait_for()
    area = frame.locator(AREA)
    area.focus()
    page.keyboard.press("Control+Home")
    page.keyboard.type("wrong ")
    frame.locator(".ckw-verdict[data-kind=wrong]").wait_for()
    frame.locator(".ckw-costliest button").wait_for()
    assert frame.locator(".ckw-row.ckw-here .ckw-number").text_content() == "1"
    assert area.input_value() == "wrong " + TEXT
    inside = page.frames[-1]
    assert not inside.evaluate("() => unmarkedStatements(host)")
    look = inside.evaluate("() => host.dataset.look")
    assert look == ("dark" if "dark" in body else "light")
    ink = "() => getComputedStyle(host.querySelector('.ckw-paint')).color"
    assert inside.evaluate(ink) == ("rgb(236, 236, 241)" if look == "dark" else "rgb(27, 27, 31)")
    for _ in "wrong ":
        page.keyboard.press("Control+z")
    frame.locator(".ckw-verdict[data-kind=right]").wait_for()
    inside.evaluate("() => leave()")
    assert not faults


# -- colors


MATRICES = """([code, texts]) => import("data:text/javascript," + encodeURIComponent(code)).then(
    (made) => texts.map((text) => Object.fromEntries(made.matrices(text.split("\\n")))))"""


def test_a_register_has_the_color_of_the_matrix_that_it_holds(page):
    """Of A, B or C, by the texture that it was fetched from, or since it is a sum."""
    names = ["sgemm_naive", "sgemm_tn", "dgemm_nn", "sgemm_tn_37"]
    source = read_packaged("draw/il_colors.js")
    found = page.evaluate(MATRICES, [source, [ck.kernels[name].text for name in names]])
    for name, held in zip(names, found, strict=True):
        expected = {}
        for i in ck.kernels[name].program.body:
            fetches = i.opcode.startswith("sample") and i.controls.resource < 2
            sums = i.opcode in ("mad", "dmad") and i.dest.register == i.sources[2].register
            if fetches or sums:
                kind = "ab"[i.controls.resource] if fetches else "c"
                expected[str(i.dest.register)] = kind
        assert held == expected, name
