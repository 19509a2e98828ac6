"""The workbench's page alone, in Chromium: a test holds the other end of its channel, and answers
as it likes: late, out of turn, or never. Laws on random edits; long texts; keys; other hosts.
"""

from pathlib import Path

import pytest

from cypresskit.editing import page_files
from cypresskit.il.parser import MAX_TEXT

FAKE = (Path(__file__).parent / "workbench_page.js").read_text(encoding="utf-8")
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
Object.assign(window, {host, channel, random})
window.end = beginWorkbench(host, channel)
</script></body></html>"""
TEXT = "\n".join(f"mad r{n}, r1, r2, r{n}" for n in range(12))
AREA = ".ckw-area"


@pytest.fixture
def begin(page):
    """A function that begins a workbench on a page with a fake answerer."""
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.emulate_media(reduced_motion="reduce")

    def make(text=TEXT, seed=1):
        script = page_files.joined(*page_files.MODULES)
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
    const typed = ["x", "fault", "wrong", " ", "refuse", "\\n", "mov r3, r4\\n", "r2", "wrong ", "7"]
    for (let n = 0; n < count; n++) {
        area.focus()
        const at = random(0, area.value.length)
        const kind = random(0, 10)
        if (kind < 2) document.execCommand("undo")
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
        const places = host.querySelectorAll(".ckw-slot, .ckw-term, .ckw-map, .ckw-row")
        if (kind === 5 && places.length) places[random(0, places.length)].click()
        if (kind === 6) channel.silent = !channel.silent
        await new Promise((go) => setTimeout(go, random(0, 12) ? random(0, 150) : 900))
        look()
    }
    watch.disconnect()
    return {wrong: [...wrong], looks}
}"""


@pytest.mark.parametrize("seed", range(3))
def test_each_statement_is_of_this_text_or_looks_old(begin, page, seed):
    begin(seed=seed)
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
    for place in ("findings", "speed", "terms", "units", "card", "dear"):
        said = page.text_content(f".ckw-{place}").replace(",", "")
        assert stamp in said, place
    assert page.locator(".ckw-more").count() == 0


@pytest.mark.parametrize("letters", [500_000, MAX_TEXT - 1000])
def test_a_long_text_is_edited_like_any_other(begin, page, letters):
    """Only lines in sight have elements; the last line is typed in and undone."""
    line = "    mad r10, r2.x, r4, r10 ; a line of a long text\n"
    begin()
    page.evaluate(
        """(text) => {
            channel.silent = true
            const area = host.querySelector(".ckw-area")
            area.focus()
            area.value = text
            area.dispatchEvent(new Event("input"))
        }""",
        line * (letters // len(line)),
    )
    page.keyboard.press("Control+End")
    page.keyboard.type("mov")
    count = letters // len(line) + 1
    assert page.text_content(".ckw-row.ckw-here .ckw-number") == str(count)
    assert page.text_content(".ckw-paint > .ckw-here") == "mov"
    assert page.evaluate("() => host.querySelectorAll('*').length") < 2000
    inside = page.evaluate(
        """() => {
            const box = host.querySelector(".ckw-scroll").getBoundingClientRect()
            const line = host.querySelector(".ckw-paint > .ckw-here").getBoundingClientRect()
            return box.top <= line.top && line.bottom <= box.bottom + 4
        }"""
    )
    assert inside
