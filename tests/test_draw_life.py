"""The life of an element: what it says is what the timeline, the report and the recording say."""

import re
import sys

import pytest
from said import Rule, Said, assert_held, unheld, value

import cypresskit as ck
from cypresskit import draw, host
from cypresskit.draw.life import _parts
from cypresskit.timing import simulate

N, CLOCK = 256, 1 / 0.85e9


class Life:
    """The same times, put together from their sources."""

    def __init__(self, element: tuple[int, int]) -> None:
        self.report = simulate("sgemm_tn", N)
        rate = self.report.flops / self.report.seconds
        self.trip = host.round_trip(N, 1e9 * host.Machine(ck.HD5870).host.dma_gb_s, rate, "single")
        self.whole = self.trip.seconds
        row, column = element
        self.wavefront = row // 64 * (N // 64) + column // 64
        events = [e for e in self.report.timeline if e.wavefront == 0]
        spent = {"computes": "ALU", "fetches": "TEX", "stores": "WRITE"}
        self.spent = {
            name: CLOCK * sum(e.served - e.start for e in events if e.kind == kind)
            for name, kind in spent.items()
        }
        self.spent["waits"] = CLOCK * sum(e.end - e.served for e in events)
        self.spent["bus"] = sum(s.end - s.start for s in self.trip.spans if s.task.name != "kernel")
        self.spent["launch"] = self.report.seconds - self.report.clocks * CLOCK
        self.spent["changes clauses"] = self.whole - sum(self.spent.values())


def in_seconds(words: str) -> float:
    """A duration as it is written."""
    number, unit = words.split(" ")
    return value(number) * {"ms": 1e-3, "\N{MICRO SIGN}s": 1e-6, "clocks": CLOCK}[unit]


def close(words: str, seconds: float) -> bool:
    return abs(in_seconds(words) - seconds) <= 0.006 * seconds + 0.5 * CLOCK


def rules(element: tuple[int, int]) -> dict[str, Rule]:
    life = Life(element)
    wavefront, engine = life.wavefront, int(life.report.use.wavefronts[life.wavefront][0])

    def part(say: Said, _):
        """The bar's parts are the seconds spent so."""
        name, took = say.text.split(": ")
        return close(took, life.spent[name])

    def caption(say: Said, shown):
        text = say.text.replace("*", "")
        share = (64 * CLOCK / life.whole) ** ((say.frame % 40) / 39)
        assert close(text.split(" in sight")[0], life.whole * share), text
        runs = re.search(r"wavefront (\d+) runs on SIMD engine (\d+)", text)
        return runs is None or list(map(int, runs.groups())) == [wavefront, engine]

    def trip(say: Said, _):
        name, took = re.match(r"\*\*(.+?)\*\*, (.+?):", say.text).groups()
        span = next(s for s in life.trip.spans if s.task.name == name)
        return close(took, span.end - span.start)

    def launch(say: Said, _):
        return close(say.text.split(", ")[1].split(":")[0], life.spent["launch"])

    def runs(say: Said, _):
        numbers = [int(n) for n in re.findall(r"(?:wavefront|engine) (\d+)", say.text)]
        return set(numbers[:-1]) | {wavefront} == {wavefront} and numbers[-1] in (wavefront, engine)

    def fetch(say: Said, _):
        """A texel of four numbers of the middle turn, of A's or B's rows for two steps of k."""
        found = re.search(r"([AB])\[(\d+), (\d+):(\d+)\]", say.text)
        k, low, high = map(int, found.groups()[1:])
        across = element[0] if found[1] == "A" else element[1]
        block = across // 8 * 8
        clocks = re.findall(r"(\d+) clocks", say.text)
        held = all(value(c) == 16 for c in clocks)  # four quads a clock, 16 of them
        inside = 0 <= k < N and block <= low and high <= block + 8 and high == low + 4
        return inside and held and ("63" in say.text or "others" not in say.text)

    def arithmetic(say: Said, _):
        """A multiply-add, as the register held it before and after."""
        text = say.text.replace("*", "")
        found = re.search(r"(\S+) \+ (\S+) \N{MULTIPLICATION SIGN} (\S+) = ([-.\de]*\d)", text)
        old, a, b, new = map(value, found.groups())
        return old + a * b == new

    def bundle(say: Said, shown):
        clocks = re.search(r", (\d+) clocks", say.text)
        return clocks is None or int(clocks[1]) == ck.HD5870.result_clocks

    return {
        r"(bus|launch|waits|fetches|computes|stores|changes clauses): # (ms|µs|clocks)": part,
        r"# (ms|µs|clocks) in sight\. .*": caption,
        r"(send|fetch) [ABC], # .*|kernel, # .*": trip,
        r"launch, # .*": launch,
        r"its wavefront goes .*, timed as wavefront #'s, .*": lambda *_: [0],
        r"(wavefront #, # .*: )?wavefront #( runs on SIMD engine #)?.*": runs,
        r".*[AB]\[#, #:#\].*": fetch,
        r".*# \+ # × # = #.*": arithmetic,
        r"[xyzwt ]+, # clocks: a bundle with .*": bundle,
        r"on their way, # clocks: .*": lambda *_: True,
        r"lesson #": lambda _, shown: shown if shown[0] in (0, 1, 3, 4, 5, 9) else [],
    }


@pytest.mark.parametrize("element", [(5, 3), (70, 131), (255, 255)])
def test_every_number_is_its_sources(element):
    assert_held(draw.life(element), rules(element))


def test_the_text_form_has_the_same_sums():
    life, text = Life((5, 3)), repr(draw.life())
    for name, seconds in life.spent.items():
        assert close(re.search(rf"{name} ([\d.]+ \S+?)[,.]", text)[1], seconds), name


def test_seconds_ten_times_off_are_found(monkeypatch):
    module = sys.modules["cypresskit.draw.life"]
    true = module._took
    monkeypatch.setattr(module, "_took", lambda seconds: true(10 * seconds))
    assert unheld(draw.life(), rules((5, 3)), frames=[0])


def test_a_life_is_what_the_report_and_the_recording_say():
    parts, clauses = list(_parts(draw.follow(70, 131))), simulate("sgemm_tn", 256).timeline
    spent = [
        sum(p.end - p.start for p in parts if p.name == name) / CLOCK
        for name in ("computes", "fetches")
    ]
    kinds = [sum(e.served - e.start for e in clauses if e.kind == kind) for kind in ("ALU", "TEX")]
    assert spent == pytest.approx(kinds)
    own = [p for p in parts if p.mine]
    assert "wavefront 6 runs on SIMD engine 6" in [p.said for p in own], (
        "row 1, column 2 of 4 x 4 tiles"
    )
    sums = [p.name.replace("\N{MULTIPLICATION SIGN}", "*").split(" = ") for p in own if p.lane == 5]
    assert [eval(left) for left, _ in sums] == [float(right) for _, right in sums] and len(
        sums
    ) == 2


def test_a_saved_page_links_to_no_lesson_and_an_address_beyond_the_end_is_the_last_frame(show):
    page = show(player := draw.life())
    assert (
        page.get_by_text("lesson 09").count()
        and not page.get_by_role("link", name="lesson").count()
    )
    page.evaluate("() => { location.hash = 'frame=99999' }")
    page.locator(f"[data-frame='{len(player) - 1}']").wait_for()
