"""The life of an element: what it says is what the timeline, the report and the recording say."""

import re
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from said import Rule, Said, assert_held, value

import cypresskit as ck
from cypresskit import host
from cypresskit.teach.l12_contest.life import _parts
from cypresskit.timing import simulate

N, CLOCK = 256, 1 / 0.85e9


class Life:
    """The same times, put together from their sources."""

    def __init__(self, element: tuple[int, int]) -> None:
        self.report = simulate("sgemm_tn", N)
        rate = self.report.flops / self.report.seconds
        self.trip = host.round_trip_timeline(
            N, 1e9 * host.Machine(ck.HD5870).host.dma_gb_s, rate, "single"
        )
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
        self.spent["switches clauses"] = self.whole - sum(self.spent.values())


def in_seconds(words: str) -> float:
    """A duration as it is written."""
    number, unit = words.split(" ")
    return value(number) * {"ms": 1e-3, "\N{MICRO SIGN}s": 1e-6, "clocks": CLOCK}[unit]


def close(words: str, seconds: float) -> bool:
    return abs(in_seconds(words) - seconds) <= 0.006 * seconds + 0.5 * CLOCK


#: A multiply-add, as the register held it before and after.
TERM = re.compile(r"([-.\de]+) \+ ([-.\de]+) \N{MULTIPLICATION SIGN} ([-.\de]+) = ([-.\de]*\d)")


def multiply_adds(element: tuple[int, int]) -> set[tuple[int, ...]]:
    """(sum before, number of A, number of B, sum after) for each step of k, in either order."""
    random = np.random.default_rng(8)
    a, b = (random.integers(-3, 4, (N, N)) for _ in "AB")
    terms, so_far = set(), 0
    for x, y in zip(a[:, element[0]].tolist(), b[:, element[1]].tolist()):
        terms |= {(so_far, x, y, so_far + x * y), (so_far, y, x, so_far + x * y)}
        so_far += x * y
    return terms


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
        return "texture unit fetches" not in text or fetch(say, shown)

    terms = multiply_adds(element)

    def sound(say: Said) -> bool:
        """Whether all is true that any of the sentences says of wavefront, terms and lesson."""
        text = say.text.replace("*", "")
        placed = re.findall(r"wavefront (\d+) runs on SIMD engine (\d+)", text)
        added = [tuple(int(n) for n in term) for term in TERM.findall(text)]
        return (
            linked(say)
            and all((int(w), int(e)) == (wavefront, engine) for w, e in placed)
            and all(term in terms for term in added)
            and all(w == "0" for w in re.findall(r"timed like wavefront (\d+)", text))
        )

    def checked(rule: Rule) -> Rule:
        """The rule, of a text that is sound besides."""
        return lambda say, shown: rule(say, shown) if sound(say) else False

    def linked(say: Said) -> bool:
        """Whether a part's lesson is the one that its link leads to."""
        found = re.search(r"\[lesson (\d+)\]\((\d+)_\w+\)", say.text)
        return say.where != "about" or bool(found and found[1] == found[2])

    def once(numbers: Iterable) -> bool:
        """Whether what is said twice is the same."""
        return len(set(numbers)) == 1

    def part_of(kind: str, seconds: Callable[[re.Match], float]) -> Rule:
        """A part of the life that is called so, and how long it takes."""

        def rule(say: Said, _):
            found = re.match(rf"{kind}, (?P<took>.+?): ", say.text.replace("*", ""))
            return linked(say) and close(found["took"], seconds(found))

        return rule

    def of_wavefront(found: re.Match) -> float:
        start, stop = life.report.use.wavefronts[wavefront][1:3]
        return CLOCK * (stop - start) if int(found[1]) == wavefront else float("nan")

    def trip(say: Said, _):
        name, took = re.match(r"\W*(.+?)\W*, (.+?):", say.text).groups()
        span = next(s for s in life.trip.spans if s.task.name == name)
        return close(took, span.end - span.start) and linked(say)

    def runs(say: Said, _):
        numbers = [int(n) for n in re.findall(r"(?:wavefront|engine) (\d+)", say.text)]
        return set(numbers[:-1]) | {wavefront} == {wavefront} and numbers[-1] in (wavefront, engine)

    def fetch(say: Said, _):
        """A texel of four numbers of the middle turn, of A's or B's rows for two steps of k."""
        found = re.search(r"([AB])\[(\d+), (\d+):(\d+)\]", say.text)
        k, low, high = map(int, found.groups()[1:])
        across = element[0] if found[1] == "A" else element[1]
        block = across // 8 * 8
        clocks = re.findall(r"(?:in|,) (\d+) clocks", say.text)
        held = all(value(c) == 16 for c in clocks)  # four quads a clock, 16 of them
        inside = 0 <= k < N and block <= low and high <= block + 8 and high == low + 4
        places = re.findall(r"[AB]\[[\d:, ]*\]", say.text)
        others = re.search(r"texels of (\d+) others", say.text)
        held = held and once(places) and (others is None or others[1] == "63")
        return inside and held and linked(say)

    def arithmetic(say: Said, shown):
        return bool(TERM.search(say.text)) and bundle(say, shown)

    def bundle(say: Said, shown):
        clocks = re.search(r", (\d+) clocks", say.text)
        return linked(say) and (clocks is None or int(clocks[1]) == ck.HD5870.alu_latency_clocks)

    def in_flight(_) -> float:
        fetches = [e for e in life.report.timeline if e.wavefront == 0 and e.kind == "TEX"]
        middle = fetches[len(fetches) // 2]
        return CLOCK * (middle.end - middle.served)

    def lane(say: Said, _):
        """The lessons that the lanes are named after, from above."""
        return [(9, 0, 4, 5, 3, 1)[say.index]]

    table = {
        r"(bus|launch|waits|fetches|computes|stores|switches clauses): # (ms|µs|clocks)": part,
        r"# (ms|µs|clocks) in sight\. .*": caption,
        r"(send|fetch) [ABC], # .*|kernel, # .*": trip,
        r"launch, # .*": part_of("launch", lambda _: life.spent["launch"]),
        r"wavefront #, # .*": part_of(r"wavefront (\d+)", of_wavefront),
        r"its wavefront goes .*, timed like wavefront #.*": lambda *_: [0],
        r"(wavefront #, # .*: )?wavefront #( runs on SIMD engine #)?.*": runs,
        r".*[AB]\[#, #:#\].*": fetch,
        r".*# \+ # × # = #.*": arithmetic,
        r"[xyzwt ]+, # clocks: a bundle with .*": bundle,
        r"in flight, # clocks: .*": part_of("in flight", in_flight),
        r"lesson #": lane,
    }
    return {pattern: checked(rule) for pattern, rule in table.items()}


@pytest.mark.few(1)
@pytest.mark.parametrize("element", [(5, 3), (70, 131), (255, 255)])
def test_every_number_is_its_sources(element):
    assert_held(ck.teach.contest.life(element), rules(element))


def test_the_text_form_has_the_same_sums():
    life, text = Life((5, 3)), repr(ck.teach.contest.life())
    for name, seconds in life.spent.items():
        assert close(re.search(rf"{name} ([\d.]+ \S+?)[,.]", text)[1], seconds), name


def test_a_life_is_what_the_report_and_the_recording_say():
    parts, clauses = list(_parts((70, 131))), simulate("sgemm_tn", 256).timeline
    spent = [
        sum(p.end - p.start for p in parts if p.name == name) / CLOCK
        for name in ("computes", "fetches")
    ]
    kinds = [sum(e.served - e.start for e in clauses if e.kind == kind) for kind in ("ALU", "TEX")]
    assert spent == pytest.approx(kinds)
    own = [p for p in parts if p.mine]
    assert "wavefront 6 runs on SIMD engine 6" in [p.story for p in own], (
        "row 1, column 2 of 4 x 4 tiles"
    )
    sums = [p.name.replace("\N{MULTIPLICATION SIGN}", "*").split(" = ") for p in own if p.lane == 5]
    assert [eval(left) for left, _ in sums] == [float(right) for _, right in sums] and len(
        sums
    ) == 2


def test_a_saved_page_has_no_links_and_clamps_its_frame(show):
    page = show(player := ck.teach.contest.life())
    assert (
        page.get_by_text("lesson 09").count()
        and not page.get_by_role("link", name="lesson").count()
    )
    page.evaluate("() => { location.hash = 'frame=99999' }")
    page.locator(f"[data-frame='{len(player) - 1}']").wait_for()
