"""The rows of A in the LDS that are laid out by hand: what the page counts, and how it is
played.
"""

import re

import numpy as np
import pytest
from sampling import seeded

import cypresskit as ck
from cypresskit.chip.units.lds_banks import access_clocks
from cypresskit.teach.l05_texture_cache.checks import unit_clocks
from cypresskit.teach.l07_lds.lds_pitch import PITCHES, lds_pitch

TOY = ".cypresskit-figure"
#: The words of rows, the texts and the bars: what each tells, its center and size on the page.
MARKS = """() => ["rect.lie", "text", 'rect[fill="var(--ck-read)"]'].map((kind) =>
    [...document.querySelectorAll(`.banks ${kind}`)].map((one) => {
        const {x, y, width, height} = one.getBoundingClientRect()
        return [one.textContent, x + width / 2, y + height / 2, width, height]
    }))"""
HAS_COLOR = """(bar, color) => {
    bar.style.color = color
    return getComputedStyle(bar).stroke === getComputedStyle(bar).color
}"""
#: Whether one panel is below the other.
STACKED = "(is) => is === document.querySelector('.banks').viewBox.baseVal.height > 600"


def access_costs(first):
    """The clocks of an iteration's store, and of each of its loads."""
    item = np.arange(64)
    begins = [first, *(first[item // 8 * 8 + j] for j in range(8))]
    asked = (4 * (words + np.arange(4)[:, np.newaxis])[np.newaxis] for words in begins)
    return [int(access_clocks(words, ck.HD5870)[0]) for words in asked]


def iteration_clocks(first):
    """What the device charges for an iteration in which each of 64 rows is stored and loaded, by
    the words they begin at.
    """
    return sum(access_costs(first))


@pytest.fixture
def toy(page, tmp_path):
    page.goto(lds_pitch().save(tmp_path / "pitch.html").as_uri())
    page.wait_for_selector(f"{TOY}[data-ready]")
    return page.locator(TOY)


def clocks(toy):
    return int(toy.get_attribute("data-clocks"))


@seeded(1)
def test_dragged_rows_cost_what_the_lds_charges(seed, page, toy):
    """Any pitch, and then rows moved to any bank by mouse and keys."""
    rng = np.random.default_rng(seed)
    for pitch in (*PITCHES, 100, -5, 1000):
        page.locator("input").fill(str(pitch))  # without Enter, which JupyterLab keeps to itself
        assert clocks(toy) == iteration_clocks(max(4, min(pitch, 128)) * np.arange(64)), pitch
    bank, wide = (
        np.zeros(16, int),
        16 * page.evaluate("document.querySelector('.banks').getScreenCTM().a"),
    )
    for row in rng.permutation(16):
        bank[row] = rng.integers(1, 28)
        box = page.locator(f".lie >> nth={4 * row + 1}").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + wide * bank[row], y, steps=2)
        page.mouse.up()
        assert clocks(toy) == iteration_clocks(np.tile(bank, 4) + 64 * np.arange(64)), bank
    page.keyboard.press("ArrowLeft")
    bank[row] -= 1
    assert clocks(toy) == iteration_clocks(np.tile(bank, 4) + 64 * np.arange(64))


def test_the_first_pitch_is_that_of_rows(page, toy):
    assert clocks(toy) == unit_clocks("sgemm_64x64_lds_rows")["LDS"]
    assert toy.locator(".fewest, .most").count() == 0 and "72" not in toy.inner_text()
    toy.get_by_role("button", name="8", exact=True).click()
    assert "You said 8, but it is 6: 72 clocks per iteration, not 160." in toy.inner_text()
    assert (clocks(toy), toy.locator(".fewest").count(), toy.locator(".most").count()) == (72, 8, 1)
    for bars, color in (".fewest", "var(--ck-c)"), (".most", "var(--ck-wait)"):
        assert toy.locator(bars).first.evaluate(HAS_COLOR, color), bars
    assert toy.bounding_box()["height"] < 620


def test_a_row_is_in_its_banks_and_all_fits_on_any_screen(page, toy):
    """On a phone, too. What pointing at a word tells is where it is, and where the bank's number
    is; a bar is above its pitch, and as high as its clocks.
    """
    toy.get_by_role("button", name="6", exact=True).click()
    for width in (1366, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(STACKED, arg=width < 640)
        words, texts, bars = page.evaluate(MARKS)
        assert max(x + w / 2 for _, x, _, w, _ in (*words, *texts, *bars)) <= width
        banks = [(int(told), x) for told, x, *_ in texts if told in ("8", "16", "24")]
        (first, left), *_, (_, right) = sorted(banks[:3])
        rows = {}
        for told, x, y, *_ in words[: len(words) // 2]:
            row, word, bank = map(int, re.findall(r"\d+", told))
            assert bank == (6 * row + word) % 32
            assert left + (bank - first) * (right - left) / 16 == pytest.approx(x, abs=2)
            rows.setdefault(row, set()).add(round(y))
        assert [rows[row] for row in range(16)] == sorted(rows.values(), key=min)
        heights = set()
        for (pitch, x, *_), (cost, above, *_), bar in zip(texts[-64::2], texts[-63::2], bars):
            assert int(cost) == iteration_clocks(int(pitch) * np.arange(64))
            assert (above, bar[1]) == pytest.approx((x, x), abs=2)
            heights.add(round(100 * bar[4] / int(cost) / bar[3]))
        assert len(bars) == 32 and len(heights) == 1


@pytest.mark.parametrize(("button", "end"), [(0, "pointerup"), (0, "pointercancel"), (2, "")])
def test_a_drag_needs_the_first_button_and_ends_with_its_pointer(page, toy, button, end):
    before = clocks(toy)
    page.evaluate(
        """([button, end]) => {
            const row = document.querySelector(".lie")
            row.dispatchEvent(new PointerEvent("pointerdown", {button, bubbles: true}))
            if (end) window.dispatchEvent(new PointerEvent(end))
            window.dispatchEvent(new PointerEvent("pointermove", {clientX: 90}))
        }""",
        [button, end],
    )
    assert clocks(toy) == before
