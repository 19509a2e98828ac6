"""The kernels, numbers and riddles of the site's first page are those of ``simulate``."""

import random
import re
from collections import Counter
from itertools import pairwise
from operator import attrgetter, itemgetter

import numpy as np
import pytest
from repository import ROOT, marked_cells
from sampling import drawn_by_day, seeded

from cypresskit import published, today
from cypresskit.compiler import compile
from cypresskit.compiler.ports import CYCLES
from cypresskit.gains import FIGURES, IDEAS, Timed
from cypresskit.kernels import Kernel
from cypresskit.timing import simulate, simulate_published
from tools.climb_page import kernels, numbers, riddles

pytestmark = pytest.mark.usefixtures("timed_once")
TEXT = (ROOT / "tools/climb_page/page.md").read_text()
#: Numbers of three digits and more that the text may state: years, a board, sizes, a length.
STATED = {"5870", "2009", "2010", "1,024", "2,048", "4,352", "4,000"}


def test_every_number_of_a_step_is_simulated(soup):
    for name in kernels.KERNELS:
        step = soup.find(id=name)
        report = simulate(kernels.kernel(name), kernels.N)
        assert step.select_one("[data-count]").text == f"{report.gflops:,.0f}"
        shares = [bar.b.text for bar in step.select(".prose .gauges li")]
        busy = {unit: f"{100 * share:.0f} %" for unit, share in report.busy.items()}
        assert set(shares) <= set(busy.values())
        most = step.select_one(".prose .gauges .most")
        assert most.span.text == numbers.UNITS[report.bound] if most else report.bound == "latency"


def rows_of(soup):
    """The cells of the table at the top, by step: speed, of peak, gain, on an H200."""
    rows = soup.select(".gains tr:has(td)")
    return {row.a["href"][1:]: [cell.text for cell in row.select("td")] for row in rows}


def test_a_gain_is_the_same_number_wherever_it_stands(soup):
    """In a step's title, beside its speed, and in the table."""

    def numbers_of(text):
        return [f"{float(each):.0f}" for each in re.findall(r"[\d.]+(?=\s%| ×| times)", text)]

    steps = {step["id"]: step for step in soup.select(".part .step")}
    gains = {name: numbers_of(step.small.text) for name, step in steps.items()}
    titles = {name: numbers_of(step["data-title"]) for name, step in steps.items()}
    table = {name: numbers_of(gain) for name, (*_, gain, _) in rows_of(soup).items()}
    told = [
        {name: numbers for name, numbers in place.items() if numbers} for place in (table, titles)
    ]
    assert [len(place) for place in told] == [5, 2]
    assert all(gains | place == gains for place in told)


def test_speeds_are_those_of_the_one_list():
    listed = {idea.launch: idea.gflops for idea in IDEAS} | {
        launch: figure.gflops for launch, figure in FIGURES.items()
    }
    launches = {name: Timed(shown.kernel, kernels.N) for name, shown in kernels.KERNELS.items()}
    expected = {name: listed[launch] for name, launch in launches.items() if launch in listed}
    assert "12" in expected
    assert {name: numbers.speed(name) for name in expected} == pytest.approx(expected, abs=0.06)
    assert {idea.step for idea in IDEAS if idea.is_step} - {"larger"} <= set(kernels.KERNELS)


def test_the_text_states_no_speed_of_its_own():
    """Each is an expression."""
    prose = re.sub(r"\{[^{}]*\}|\]\([^)]*\)", "", TEXT)
    assert set(re.findall(r"\b\d[\d,.]*\d\d\b", prose)) <= STATED
    assert "{" in TEXT and numbers.filled("{RECORD:,}") == "2,014"


def test_beside_the_record_stands_the_model_timed_as_its_authors_did(soup):
    """Far from the first screen, which has one speed for the record: its step's."""
    paper = published.kernel("sgemm_tn")
    said = simulate_published(numbers.PAPER, numbers.BEST_N).gflops
    stated = {f"{paper['gflops_max']:,}", f"{said:,.0f}", f"{numbers.left_out():,}"}
    speeds = set(re.findall(r"\d,\d{3}", soup.find(id="measured").get_text()))
    first = set(
        re.findall(r"\d,\d{3}", soup.select_one(".top").text + soup.find("nav", "rail").text)
    )
    assert stated <= speeds and f"{numbers.speed('12'):,.0f}" in first and not stated & first
    assert said < numbers.speed("12", paper["n_at_max"]), "the launch is in it"


@pytest.mark.parametrize("name", [*kernels.KERNELS][1:])
def test_a_diff_makes_the_kernel_of_the_kernel_before(name):
    """What isn't added was there; what isn't shown is the same."""
    shown = kernels.KERNELS[name]
    texts = [kernels.kernel(each).text for each in (shown.before, name)]
    old, new = (kernels.comparable(text, shown.part) for text in texts)
    rows = kernels.changes(name)
    added, removed = (sum(sign == each for sign, _ in rows) for each in "+-")
    assert added and len(new) - len(old) == added - removed
    assert {row for sign, row in rows if sign in "+ "} <= {*kernels.lines(texts[1], shown.part)}
    assert {row for sign, row in rows if sign == "-"} <= {*kernels.lines(texts[0], shown.part)}


@seeded(3)
def test_other_registers_are_no_difference(seed):
    """Only what they hold counts."""
    chance = random.Random(seed)
    text = kernels.kernel(chance.choice(["01b", "02", "03", "12"])).text
    held = sorted(set(re.findall(r"\br(\d+)\b", text)), key=int)
    loop = [r for r in held if int(r) > 1]  # r0 and r1 are the kernel's counters
    others = dict(zip(loop, chance.sample(range(100, 200), len(loop))))
    renamed = re.sub(r"\br(\d+)\b", lambda r: f"r{others.get(r[1], r[1])}", text)
    assert kernels.difference(text, renamed, "loop") == []
    line = next(row for row in kernels.lines(renamed, "loop") if row.startswith("mad"))
    changed = renamed.replace(line, line.replace("mad", "add"))
    assert [sign for sign, _ in kernels.difference(text, changed, "loop") if sign in "+-"]


def test_registers_have_a_matrix_s_color_in_the_loop_only():
    """Before it, they hold addresses."""
    for name, shown in kernels.KERNELS.items():
        is_loop, _ = kernels.PARTS[shown.part]
        assert any("<span" in line for _, line in kernels.diff(name)) == is_loop, name


def test_each_candidate_has_what_the_chip_answers():
    """In numpy, what each line makes of C: row 1 of a block is row 0, both sums are in row 0, the
    sum keeps its last product.
    """
    frames = [*riddles.film()]
    right = frames.pop(1 + riddles.CANDIDATES.index(riddles.SOLUTION))
    speed = round(simulate(kernels.kernel("01a"), kernels.N).gflops)
    assert (right.kind, right.gflops) == ("right", speed)
    causes = [float(each) for each in re.findall(r"\d+\.\d", right.says)]
    gained = speed / frames[0].gflops
    assert causes == pytest.approx([gained, *numbers.idea_of("01a").causes], abs=0.05)

    def c_of(frame):
        return np.reshape([number for number, _ in frame.shown[0]], (8, 8))

    c, (nothing, component, register, last) = c_of(right), map(c_of, frames)
    even, odd = c[::2], c[1::2]
    assert (nothing[1::2] == 0).all() and (component[1::2] == even).all()
    assert (register[::2] == even + odd).all() and (register[1::2] == 0).all()
    assert (last[::2] == even).all() and (last[1::2] < odd).all()
    for frame in frames:
        cells, where = frame.shown
        wrong = [is_wrong for _, is_wrong in cells]
        assert frame.kind != "right" and wrong == (c_of(frame) != c).ravel().tolist()
        assert frame.says.startswith(f"{sum(wrong)} of 64 are wrong. ")
        assert where == f"rows {'0 to 7' if all(wrong) else '1, 3, 5 and 7'} are wrong"
        assert ("line 21" if frame.choice else "row 1") in frame.says.lower()


def test_the_largest_block_is_not_the_fastest():
    """It makes the most of a fetch, and leaves room for the fewest wavefronts."""
    before, *frames = riddles.sizes()
    used, held, wavefronts = (
        [number for number, _ in side]
        for side in zip(*(frame.shown.values() for frame in frames), strict=True)
    )
    assert used == sorted(used) and held == sorted(held)
    assert wavefronts == sorted(wavefronts, reverse=True)
    pool = numbers.report("01b").device.register_pool
    assert wavefronts[1:] == [pool // each for each in held[1:]]
    speeds = [frame.gflops for frame in frames]
    assert [frame.kind == "right" for frame in frames] == [each == max(speeds) for each in speeds]
    assert max(speeds) == round(numbers.speed("02")) > before.gflops == round(numbers.speed("01b"))
    limits = ["fetches are", "arithmetic is", "too few", "too few"]
    assert all(limit in frame.says for limit, frame in zip(limits, frames, strict=True))
    words = [frame.says.partition(":")[0] for frame in frames]
    assert words == ["No", "Right", *["Faster, but not the fastest"] * 2]


@pytest.mark.parametrize("name", ["orders", "layouts"])
def test_of_each_riddle_one_answer_is_the_fastest(name):
    """It takes the fewest bundles or clocks; more are slower."""
    before, *frames = riddles.RIDDLES[name]()
    costs = [
        len(frame.shown[1]) if name == "orders" else sum(map(len, frame.shown[0].values()))
        for frame in frames
    ]
    assert len(frames) == 4 and costs.count(min(costs)) == 1
    for cost, frame in sorted(zip(costs, frames), key=itemgetter(0)):
        is_right = cost == min(costs)
        assert frame.kind == ("right" if is_right else "wrong")
        word = "Faster, but not the fastest" if frame.gflops > before.gflops else "No"
        assert frame.says.startswith(f"{'Right' if is_right else word}: {cost} ")
    speeds = dict(zip(costs, (frame.gflops for frame in frames)))
    assert [speeds[cost] for cost in sorted(speeds)] == sorted(speeds.values(), reverse=True)
    step, was = ("03", "02") if name == "orders" else (kernels.LAST, "nn")
    assert (before.gflops, before.unit) == (round(numbers.speed(was)), riddles.BEFORE)
    assert max(speeds.values()) == round(numbers.speed(step)) > before.gflops


def test_a_slower_order_s_answer_names_what_the_first_bundle_of_four_left_out():
    """With it, the bundle would read more numbers of that letter, alone, than it has ports."""
    tried = zip(riddles.orders()[1:], riddles.ordered().values(), strict=True)
    slower = [(frame.says, kernel) for frame, kernel in tried if frame.kind != "right"]
    assert len(slower) == 3
    for says, kernel in slower:
        said = re.search(r"Row (\d+) has no fifth: (r\d+)\.(.) finds no port of \3\.", says)
        row, register, letter = said.groups()
        loop = [bundle for each in compile(kernel.program).main_loop for bundle in each.bundles]
        four, following = loop[int(row) - 1 :][:2]
        left = min(following.operations, key=attrgetter("at", "channel"))
        assert kernel.text.splitlines()[left.line - 1].strip().startswith(f"mad {register}, ")
        read = {(r.channel, r.index) for each in (*four.operations, left) for r in each.reads}
        assert four.products == four.filled == 4 and "xyzw"[left.channel] == letter
        assert [n for n in range(4) if [c for c, _ in read].count(n) > CYCLES] == [left.channel]


def test_the_table_compares_measured_kernels_of_the_same_blocks(soup):
    rows = rows_of(soup)
    blocks, orders = today.figures("block"), [*today.figures("order").values()]
    measured = [blocks[f"{side} x {side}"] for side in (1, 2, 4, 8)]
    listed = [row[1] for row in marked_cells("first page", "current_gpu.md")]
    assert listed == [f"{each:,.0f}" for each in (*measured, *orders)]
    pairs = [*pairwise(measured), *pairwise(orders)]
    assert [*rows] == numbers.UP and [name for name, row in rows.items() if row[3]] == [*rows][1:]
    for (name, (speed, *_, now)), pair in zip([*rows.items()][1:], pairs, strict=True):
        old, new = pair
        factor = new / old
        assert float(re.sub("[^0-9.]", "", now)) == pytest.approx(
            factor if factor > 1.5 else 100 * (factor - 1), abs=0.5
        )
        assert speed == f"{numbers.speed(name):,.0f}"
    assert {numbers.report(name).size for name in rows} == {(kernels.N,) * 3}


def test_the_other_order_has_the_same_products_in_fewer_bundles():
    before, after = (
        riddles.bundles(kernels.kernel(name), kernels.roles(name)) for name in ("02", "03")
    )
    held = [
        Counter(target for row in rows for _, target in row.values()) for rows in (before, after)
    ]
    assert held[0] == held[1] and len(held[0]) == 64 + 3
    for name, rows in (("02", before), ("03", after)):
        assert len(rows) == compile(kernels.kernel(name).program).stats().bundles_per_iteration

    def alternate(rows):
        """The bundles whose texel of B is neither the one before nor the one after."""
        held = [(next(iter(row.values()))[0], row) for row in rows]
        held = [(texel, row) for texel, row in held if texel]
        threes = zip(held, held[1:], held[2:])
        return [b[1] for a, b, c in threes if b[0] not in (a[0], c[0])]

    assert len(alternate(before)) > 5 and not alternate(after)
    assert all(len(row) == 4 for row in alternate(before))


@drawn_by_day(("left_out", "gain"), [("rows", 1), ("lds", 1), ("rows lds", 20)], 1)
def test_shared_memory_has_two_limits(left_out, gain):
    """Without one of them the other holds the kernel back."""
    given = kernels.kernel("lds")
    text = given.text
    if "rows" in left_out:  # four in a column fetch one texel of B
        text = text.replace("ushr r1.z, v", "ushr r1.w, v").replace("iand r1.w, v", "iand r1.z, v")
    if "lds" in left_out:
        text = re.sub(r" +(lds_(store|load)|fence).*\n", "", text)
        text = re.sub(r"\br2[01]\.", "r4.", text)
    report = simulate(Kernel("changed", text, given.convention), kernels.N)
    gained = 100 * (report.gflops / numbers.speed("lds") - 1)
    assert text != given.text and (gained > gain) == (gain > 1)
