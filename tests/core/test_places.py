"""Where marks stand: at the places of what pointing there, a label beside them or the caption tells
(``said`` holds these), or of what was compiled, recorded or timed.
"""

import re
from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import players
import pytest
from charted import LETTER, SVG, WIDTHS, Charted
from placed import Seen
from players import record_launch, view
from products import whole_numbers
from pytest import approx
from sampling import from_rows

import cypresskit as ck
from cypresskit import draw, host
from cypresskit.compiler import compile
from cypresskit.compiler.isa import SCALAR_SWIZZLES, VECTOR_SWIZZLES
from cypresskit.draw.chart import WIDE
from cypresskit.kernels import samples
from cypresskit.machine.shape import lanes
from cypresskit.timing import simulate


@cache
def journey():
    return draw.explore("sgemm_tn", 64)


PLAYERS = players.PLAYERS | {
    f"explore {n}": lambda n=n: journey().levels[n].player for n in range(4)
}
#: What a mark does, or is told to be, behind its name.
DOES = r": | in |,? computes| waits| stores| is in | = -?\d+\.\d"
#: What has a color.
COLORS = {
    "alu": "comput|multipl|ALU",
    "texture": "texture|L2|channel",
    "c": "^C[ ,]|from the card|stores",
    "a": "^A[ ,]",
    "b": "^B[ ,]",
}
SPAN = re.compile(r"([ABC])\[(\d+)(?::(\d+))?, (\d+)(?::(\d+))?\]")
PLACE = re.compile(r"(\d+), (?:column|texel)s? (\d+)|\[(\d+), (\d+)\]")


def elements(top, bottom, left, right):
    return {(y, x) for y in range(top, int(bottom)) for x in range(left, int(right))}


def number(text):
    return float(text.replace(",", ""))


def some_frames(name):
    """Each figure of a picture at four frames."""
    player = PLAYERS[name]()
    for figure in range(len(player.figures)):
        for frame in np.linspace(0, len(player) - 1, 4).astype(int):
            yield Seen(player, frame, figure)


@from_rows
def test_rows_are_numbered_from_above_and_columns_from_the_left(name, count):
    """So many kinds of marks have a row and a column, or a number behind a word."""
    kinds = set()
    for seen in some_frames(name):
        axes = defaultdict(list)
        for source, marks in seen.items():
            for mark in marks:
                if place := PLACE.search(mark.words):
                    row, column = (int(number) for number in place.groups() if number)
                    kinds.add(kind := (source, mark.words[0]))
                    axes[kind, "y"].append((row, mark.y))
                    axes[kind, "x"].append((column, mark.x))
                elif named := re.fullmatch(r"(\w+[ =])(\d+)", mark.words):
                    kinds.add(kind := named[1])
                    axes[kind, round(mark.x)].append((int(named[2]), mark.y))
                    axes[kind, -round(mark.y)].append((int(named[2]), mark.x))
        for axis, places in axes.items():
            assert (np.diff([along for _, along in sorted(places)]) > -0.8).all(), axis
    assert len(kinds) == count, kinds


@from_rows
def test_bars_grow_from_a_fixed_foot(name, count):
    """Those of so many sources."""
    moves, feet = defaultdict(set), defaultdict(set)
    for track in PLAYERS[name]().tracks:
        moves[track.source.name] |= {track.column} if track.moves else set()
    growing = [source for source, columns in moves.items() if columns in ({"x", "w"}, {"y", "h"})]
    for seen in some_frames(name):
        for source in set(growing) & set(seen):
            for n, mark in enumerate(seen[source]):
                foot = mark.x - mark.w / 2, mark.y + mark.h / 2
                feet[source, n].add((round(foot[0]), round(foot[1])))
    assert {len(at) for at in feet.values()} == {1}, feet
    assert len({source for source, _ in feet}) == count


@from_rows
def test_a_click_tells_of_what_is_pointed_at(name, count):
    """Those of so many sources; the others tell something else."""
    player, told = PLAYERS[name](), defaultdict(set)
    for seen in some_frames(name):
        for source, marks in seen.items():
            for mark in marks:
                about = str(player.about.get(mark.data.get("key", -1), ""))
                if about and mark.words and source:
                    thing = re.split(DOES, mark.words)[0].casefold()
                    told[source].add(re.search(rf"\b{re.escape(thing)}", about, re.I) is not None)
    assert [*told.values()].count({True}) == count and {True, False} not in told.values(), told


@from_rows
def test_a_mark_has_the_color_of_what_it_is(name, count):
    """By its words, or the same in each place by its key; so many things have one."""
    found = defaultdict(set)
    for seen in some_frames(name):
        for source in seen:
            told = seen.get(f"{source} to come") or seen.get(source.replace("colors ", "slots "))
            for mark, other in zip(seen[source], told or seen[source]):
                color, key = mark.data["color"].split(" ")[0], other.data.get("key", -1)
                if color in COLORS and (kind := re.search("|".join(COLORS.values()), other.words)):
                    found[kind[0]].add(color)
                    assert re.search(COLORS[color], kind[0]), mark
                if color.startswith("#") and key >= 0:
                    found[key].add(color)
    assert {len(colors) for colors in found.values()} == {1} and len(found) == count, found


@pytest.mark.parametrize("name", ["wavefronts", "explore 1", "timeline_default"])
def test_bars_are_where_the_head_is_at_their_times(name):
    """And they are filled as far as the head, which is where it is at the caption's time."""
    frames = [*some_frames(name)]
    heads = [next(seen[name][0].x for name in seen if "head " in name) for seen in frames]
    times = [number(re.search(r"(?:Clock|At) ([\d,.]*\d)", seen.caption)[1]) for seen in frames]
    ends = times[:: len(times) - 1], heads[:: len(heads) - 1]
    assert heads == approx(np.interp(times, *ends), abs=0.2)
    found = 0
    for seen, head in zip(frames, heads):
        for source in seen:
            for whole, bar in zip(seen.get(f"{source} to come", ()), seen[source]):
                if told := re.search(r"([\d,.]+) to ([\d,.]*\d)", whole.words):
                    left, right = np.interp([*map(number, told.groups())], *ends)
                    low, high = whole.x - whole.w / 2, whole.x + whole.w / 2
                    assert left - 1.3 < low < high < right + 1.3, "or a part of it"
                    filled = bar.x - bar.w / 2, bar.x + bar.w / 2
                    assert filled == approx((low, np.clip(head, low, high)), abs=1.3)
                    found += 1
    assert found > 40


@pytest.mark.parametrize("name", ["texture_fetch", "lds_transpose", "block_race"])
def test_a_race_is_done_where_its_clock_ends(name):
    *_, seen = some_frames(name)
    ends = [mark.x + mark.w / 2 for name in seen if "clock " in name for mark in seen[name]]
    done = seen.labels("done at (.*)")
    assert done
    for clock, text in done:
        assert approx(text.x, abs=1) in ends
        assert clock.split()[-1] in seen.caption, "it ends with who is done when"


@pytest.mark.parametrize("kernel", ["sgemm_tn", "ddgemm_tn_fma"])
def test_wires_lead_from_what_is_read_to_the_slot_that_reads(kernel):
    """As the compiled operations say: their swizzle is the cycle of each operand."""
    player, code = draw.bundles(kernel), compile(ck.kernels[kernel].program)
    packed = [bundle for clause in code.main_loop for bundle in clause.bundles]
    for n in range(0, len(player), 2):
        seen = Seen(player, n, 1)

        letters = seen.labels("([xyzwt])")

        def slot(x, letters=letters):
            return min((abs(text.x - x), letter) for letter, text in letters)[1]

        ports = {}
        for drop in seen["drops"][::2]:
            ports[drop.w] = seen.at("port", drop.x - 1, drop.y).words
        wires = {(ports[wire.x], slot(wire.w)) for wire in seen["wires"]}
        passed = {(slot(arrow.x), slot(arrow.w)) for arrow in seen["passed on"]}
        read = defaultdict(set)
        for o in packed[n].operations:
            swizzles = SCALAR_SWIZZLES if o.slot == 4 else VECTOR_SWIZZLES
            for cycle, source in zip(swizzles.get(o.swizzle, (2, 1, 0)), o.reads):
                bank = "xyzw"[source.channel]
                places = {"gpr": f"cycle {cycle}, bank {bank}", "pv": bank, "ps": "t"}
                read[source.kind].add((places.get(source.kind), "xyzwt"[o.slot]))
        assert (wires, passed) == (read["gpr"], read["pv"] | read["ps"])
        shades = {slot(mark.x): mark.data["shade"] for mark in seen["colors current"]}
        table = Seen(player, n)
        lit = [mark.data["shade"] for mark in table["slots"] if mark.data["now"]]
        for number, text in table.labels(r"(\d+)"):
            assert table["slots"][5 * int(number) - 5].y == approx(text.y, abs=0.1)
        assert [shades[letter] for letter in "xyzwt"] == lit


@pytest.mark.parametrize("kernel", ["dgemm_nn", "sgemm_64x64_lds"])
def test_a_quads_arrows_lead_to_its_texels_and_these_to_their_banks(kernel):
    run = samples.record_traffic(kernel, n=max(32, 8 * ck.kernels[kernel].block[0]), k=16)
    fetches = [access for access in run.accesses if access.kind == "fetch"]
    places = lanes(run.launch.shape, np.zeros(1, int))[:2]
    if not run.launch.shape.pixels:
        places = np.arange(64) % 8, np.arange(64) // 8
    player = draw.texture_fetch(kernel)
    for frame in range(1, len(player) - 1, 29):
        tile, texels, quad, arrows, queue, ticks = (
            f"{name} {kernel}" for name in ("tile", "texels", "quad", "arrows", "queue", "ticks")
        )
        seen = Seen(player, frame)
        for place, centers in zip(places, np.transpose([mark[:2] for mark in seen[tile]])):
            assert (np.unique(centers, return_inverse=True)[1] == place).all()
        told = re.search(r"fetch (\d+).*quad (\d+)", player.captions[frame])
        fetch = fetches[int(told[1]) - 1]
        inside = [item for item in seen[tile] if seen[quad][0].has(*item[:2])]
        assert {item.numbers[1] for item in inside} == {int(told[2])} and len(inside) == 4
        for arrow in seen[arrows]:
            item = seen.at(tile, *arrow[:2]).numbers[0]
            texel = seen.at(texels, *arrow[2:4]).numbers[:2]
            assert texel == [fetch.y[item], fetch.x[item]]
        for _, text in seen.labels(r"(\d-\d)"):
            banks = [*range(text.numbers[0], text.numbers[1] + 1)]
            near = sorted((mark.numbers[0], abs(mark.x - text.x), mark) for mark in seen[texels])
            above = sorted((mark.x, mark.numbers[2]) for *_, mark in near[: len(banks)])
            assert [bank for _, bank in above] == banks
        for mark in seen[queue]:
            heads = [bank for bank in seen[f"banks {kernel}"] if bank.has(*mark[:2])]
            assert bool(mark.data["wait"]) == (not heads), "in red: what no bank delivers now"
            banks = {text.x: int(n) for n, text in seen.labels(r"(\d)") if text.y == mark.y}
            assert banks[max(x for x in banks if x < mark.x)] == mark.numbers[2]
        rows = {int(n): text.y for n, text in seen.labels(r"fetch (\d+)")}
        for mark in seen[ticks]:
            y = rows[1] + (mark.numbers[2] - 1) * (rows[5] - rows[1]) / 4
            assert mark.y == approx(y, abs=0.5)


def test_a_register_stands_at_the_row_the_column_and_the_k_of_its_element():
    a, b = whole_numbers(4, (8, 16), (8, 24))
    player = draw.register_block(*record_launch("sgemm_tn", a, b, (2, 1)))
    seen = Seen(player, len(player) - 1)
    for mark in seen["cells C"]:
        assert mark.data["value"] == (a.T @ b)[8 + int(mark.y), 16 + int(mark.x)]
        (names,) = (names for names, text in seen.labels(r"(r\d+ r\d+)") if text.y == mark.y)
        assert mark.words.partition(".")[0] in names.split()
    room, stripes = player.figures[1].x_range, Seen(player, 0, 1)["stripes"]
    edge = max(stripe.x + stripe.w / 2 for stripe in stripes)
    assert room.end - edge == approx(-room.start), "C ends as far from the edge as A begins"
    for frame, caption in [*enumerate(player.captions[:-1])][::3]:
        seen, maps, named, framed = Seen(player, frame), Seen(player, frame, 1), {}, {}
        for name, *ends in SPAN.findall(caption):
            named[name] = elements(
                *(int(end or int(ends[n - 1]) + 1) for n, end in enumerate(ends))
            )
        left = {text.x: name for name, text in maps.labels("([ABC]).*")}
        for m in maps["marks"]:
            edge = max(x for x in left if x <= m.x)
            corner = round(m.y - m.h / 2), round(m.x - m.w / 2 - edge)
            framed[left[edge]] = elements(corner[0], corner[0] + m.h, corner[1], corner[1] + m.w)
        assert framed == named, "what the caption names is framed in the matrices"
        used = {"C": {(8 + int(m.y), 16 + int(m.x)) for m in seen["cells C"] if m.data["wrote"]}}
        for name, matrix, k_side, first in (("A", a, 0, 8), ("B", b, 1, 16)):
            heads = {round(float(text[k_side]), 1): int(k) for k, text in seen.labels(r"k=(\d)")}
            for mark in seen[f"cells {name}"]:
                k = heads.get(round(float(mark[k_side]), 1))
                place = k, first + int(mark[1 - k_side])
                assert k is None or mark.data["value"] == matrix[place]
                used.setdefault(name, set()).update({place} if mark.data["read"] else ())
        assert used == named or " grows " not in caption, "and in the registers"


@pytest.mark.parametrize(("kernel", "across"), [("sgemm_tn", 8), ("sgemv_n_reduce4", 1)])
def test_a_wavefront_goes_from_its_tile_to_its_engine_and_a_share_is_part_of_a_room(kernel, across):
    report = simulate(kernel, 512)
    player, use = draw.chip(report), report.use
    heights = []
    for frame in range(1, 24):
        before, c, seen = Seen(player, frame - 1), Seen(player, frame), Seen(player, frame, 1)
        assert (c["dots"], c.keys() & {"engines"}) == (seen["dots"], set()), "they leave C"
        seen |= {"map": c["map"]}
        homes = {mark.data["key"]: mark for mark in seen["map"]}
        was = {mark.data[""]: mark for mark in before["dots"]}
        for dot in seen["dots"]:
            if (key := dot.data["key"]) >= 0:
                home, first, side = homes[key], homes[0], sum(homes[1][:2]) - sum(homes[0][:2])
                down, right = divmod(key, across)
                assert home[:2] == approx((first.x + right * side, first.y + down * side))
                assert seen.at("engines", *dot[:2]).numbers[0] == use.wavefronts[key, 0]
                old = was[dot.data[""]]
                assert old.data["key"] == key or home.has(*old[:2])
        running = [dot for dot in seen["dots"] if dot.data["key"] >= 0]
        engines = {seen.at("engines", *dot[:2]).words for dot in running}
        done = [tile for tile in seen["map"] if tile.data["shade"] == 2]
        told = re.search(r": (\d+) wave.* on (\d+) of .*, (\d+) are", seen.caption).groups()
        assert tuple(map(int, told)) == (len(running), len(engines), len(done))
        ((most, _),), (room,), (head,) = (
            c.labels(r"room for (\d+)"),
            c["room running"],
            c["head"],
        )
        bar = c.at("run", head.x, room.y + room.h / 2 - 1)
        heights.append((bar.h / room.h, len(running) / int(most)))
        assert [b.data["shade"] for b in c["run"]] == [int(b.x <= bar.x) for b in c["run"]]
        ((now, _),), ((over, _),) = c.labels(r"running: (\d+)"), c.labels(r"done: (\d+)")
        assert (now, over) == (told[0], told[2])
    tall = np.array([pair for pair in heights if pair[1] > 0.1])  # the lowest are drawn higher
    assert across == 1 or (len(tall) > 15 and tall[:, 0] == approx(tall[:, 1], rel=0.01))
    clock = int(re.search(r"Clock ([\d,]+)", seen.caption)[1].replace(",", ""))
    interval = sum(use.clocks[1:] <= clock)
    for unit, name in {"ALU": "", "texture": "", "L2": "L2", "DRAM": "mem"}.items():
        for bar, room in zip(seen[unit], seen[f"room {unit}"]):
            filled = 100 * bar.w * bar.h / room.w / room.h
            assert filled == approx(float(bar.data["percent"]), rel=0.01, abs=0.51)
            share = use.shares[unit][interval, bar.data[""]]
            assert bar.data["percent"] == approx(100 * share, abs=0.51)
            foot = bar.x - bar.w / 2, bar.y + bar.h / 2
            assert foot == approx((room.x - room.w / 2, room.y + room.h / 2), abs=0.1)
        for n, text in seen.labels(rf"{name} (\d)"):
            assert seen[f"room {unit}"][int(n)].has(*text[:2])


def test_a_clause_is_in_its_slot_at_its_clocks_and_a_share_is_an_area():
    report = simulate("sgemm_tn_37", 256)
    player = draw.wavefronts(report, window=(2000, 6000))
    seen = Seen(player, len(player) - 1)
    ends = [Seen(player, n)["head sgemm_tn_37"][0].x for n in (0, len(player) - 1)]
    rows = {int(slot): text.y for slot, text in seen.labels(r"(\d)") if text.x < ends[0]}
    bars = [mark for marks in seen.values() for mark in marks if "clocks" in mark.words]
    found = 0
    for event in report.timeline:
        for begin, end in pairwise(sorted({event.start, event.served or event.end, event.end})):
            x = np.interp((begin + end) / 2, (2000, 6000), ends, np.nan, np.nan)
            if end - begin > 20 and x > 0:
                (told,) = (mark.words for mark in bars if mark.has(x, rows[event.slot]))
                assert told.startswith(f"wavefront {event.wavefront} ")
                assert told.endswith(f" clocks {begin:,.0f} to {end:,.0f}")
                found += 1
    assert found > 15
    for unit, named, high in (("ALU", "(one|two) comp.*37", 16), ("TEX", "the tex.*37", 12)):
        ((_, row),) = seen.labels(f"({unit})")
        done = [mark for name in seen if re.fullmatch(named, name) for mark in seen[name]]
        (percent,) = (int(n) for n, text in seen.labels(r"(\d+) %") if text.y == row.y)
        area = sum((mark.w + 0.7) * mark.h for mark in done) / high / np.ptp(ends)
        assert 100 * area == approx(percent, abs=1)
        assert {mark.y + mark.h / 2 for mark in done} == {row.y + high / 2}


@pytest.mark.parametrize("make", [host.four_stage, host.five_stage])
def test_a_task_is_in_its_rows_at_its_time_and_its_share_is_its_height(make):
    run = make(4096, 4096, 1024, host.Machine())
    player = draw.timeline(run, names=("it",))
    seen = Seen(player, len(player) - 1)
    foot = max(text.y for text in seen[""])
    ticks = [
        (float(t) / 1e3, text.x) for t, text in seen.labels(r"(\d+)(?: ms)?") if text.y == foot
    ]
    to_x = np.poly1d(np.polyfit(*np.transpose(ticks), 1))
    bars = [mark for marks in seen.values() for mark in marks if " ms, " in mark.words]
    edges = np.unique([time for span in run.spans for time in (span.start, span.end)])
    names = [
        (name, text.y) for name, text in seen.labels(r"([\w ]+?)(?:: .*)?") if name in run.resources
    ]
    found = 0
    for row, y in names:
        (room,) = seen[f"row {row} it"]
        uses = [span.task.uses.get(row, 0) / run.resources[row] for span in run.spans]
        (percent,) = (
            int(n) for n, text in seen.labels(r"busy (\d+) %") if text.y == y < room.y - room.h / 2
        )
        assert percent == approx(100 * sum(uses) / run.seconds, abs=0.51)
        for begin, end in pairwise(edges):
            now = (begin + end) / 2
            on = [n for n, s in enumerate(run.spans) if uses[n] and s.start < now < s.end]
            here = [m for m in bars if m.has(to_x(now), m.y) and room.has(room.x, m.y)]
            if to_x(end) - to_x(begin) < 2 or len(here) == len(on) == 0:
                continue
            told = {re.search(r": (\S+) to", mark.words)[1] for mark in here}
            assert told == {f"{1e3 * run.spans[n].start:.1f}" for n in on}, row
            found += 1
            if f"capacity {row} it" in seen:
                share = min(1, sum(uses[n] / (run.spans[n].end - run.spans[n].start) for n in on))
                sides = sorted(m.y + side * m.h / 2 for m in here for side in (-1, 1))
                assert (sides[0], sides[-1]) == approx(
                    (sides[-1] - share * room.h, room.y + room.h / 2), abs=0.4
                )
                assert sides[1:-1:2] == approx(sides[2::2], abs=0.1)
    assert found > 50
    path = [run.spans[n] for n in run.critical_path()]
    for span, mark in zip(path, seen["path it"], strict=True):
        assert mark.x == approx(to_x((span.start + span.end) / 2), abs=0.2)
        rooms = [seen[f"row {row} it"][0] for row, _ in names if span.task.uses.get(row)]
        assert any(room.has(room.x, mark.y) and 4 * (mark.y - room.y) > room.h for room in rooms)
    assert not Seen(player, len(player) - 2)["path it"]
    for _, text in seen.labels("(unit .*)"):
        assert any(mark.words.startswith(text.words) for mark in bars if mark.has(*text[:2]))


def test_a_stored_word_comes_to_its_bank():
    player, moved = view("lds_transpose"), 0
    for before, seen in pairwise(Seen(player, frame) for frame in range(40)):
        banks = {int(n): text.x for n, text in seen.labels("(8|24)")}
        for old, word in zip(before["lds lds"], seen["lds lds"]):
            x = banks[8] + (word.numbers[1] - 8) * (banks[24] - banks[8]) / 16
            assert word.x == approx(x, abs=1)
            if old.data["key"] != (key := word.data["key"]):
                dots = [dot for dot in seen["requests lds"] if dot.data["key"] == key]
                assert any(word.has(*dot[:2]) for dot in dots)
                moved += 1
        homes = [*seen["lds lds"], *seen["registers lds"]]
        dots = seen["requests lds"]
        stacked = [dot for dot in dots if not any(home.has(*dot[:2]) for home in homes)]
        for dot in dots:
            below = [other for other in stacked if other.x == dot.x and other.y > dot.y]
            waits = dot in stacked and len(below) > 0
            framed = [frame for frame in seen["waiting lds"] if frame.has(*dot[:2])]
            assert bool(framed) == waits, "in red: what isn't served next"
    assert moved > 100


@pytest.mark.parametrize("frame", [1, 3, 7])
def test_digits_are_in_the_places_that_are_named_above(frame):
    """Those of the error are the first of the number beside them."""
    seen, powers = Seen(view("digits"), frame), str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    named = [(text.x, int(n.translate(powers))) for n, text in seen.labels("10([^ .]+)")]
    to_place = np.poly1d(np.polyfit(*np.transpose(named), 1))
    row = seen["digits exact"][0].y
    digits = [(int(n), to_place(text.x)) for n, text in seen.labels(r"(\d)") if text.y == row]
    total = sum(digit * 10.0 ** round(place) for digit, place in digits)
    a, b = ck.teach.double_double.hilbert(8)
    exact = sum(map(Fraction, a[2, : frame + 1] * b[: frame + 1, 4]))
    assert total == approx(abs(float(exact)))
    for name in ("single", "double", "double-double"):
        boxes = {round(to_place(box.x)): box for box in seen[f"digits {name}"]}
        digits = [(n, round(to_place(text.x)), text.y) for n, text in seen.labels(r"(\d)")]
        y = boxes[0].y
        wrong = [(int(n), at) for n, at, row in digits if row == y and boxes[at].data["shade"] == 2]
        error = sum(n * 10.0**at for n, at in wrong)
        near = [off for off, text in seen.labels("off by (.*)") if 0 < y - text.y < 40]
        assert [error] == approx(
            [float(off.replace(" x 10", "e").translate(powers)) for off in near], rel=0.3
        )


@WIDTHS
@pytest.mark.parametrize("kernel", ["sgemm_tn", "sgemm_nn_buffer"])
def test_a_cell_of_two_compilers_is_in_its_bundle_and_slot(kernel, width):
    """By the letters above, and by the numbers at the side; it has a box of its own."""
    chart = draw.compilers(kernel, 64)
    root = ElementTree.fromstring(chart.to_svg(width))
    assert {mark.attrib["data-words"] for mark in root[-1]} <= {*chart.lines}
    texts = [
        (float(t.attrib["x"]), float(t.attrib["y"]) - 4, t.text, t.attrib.get("text-anchor"))
        for t in root.iter(f"{SVG}text")
    ]
    letters = [[x for x, _, text, _ in texts if text == letter] for letter in "xyzwt"]
    high = min(y for _, y, text, _ in texts if text == "1")
    codes = [ck.compile(kernel, by=by) for by in ("cypresskit", "llvm")]
    boxes = [
        [float(n) for n in corner]
        for path in root.iter(f"{SVG}path")
        for corner in re.findall(r"M(\S+) (\S+?)h(\S+?)v(\S+?)h", path.attrib.get("d", ""))
        if path.attrib.get("class") != "spot"
    ]
    for code, slots in zip(codes, zip(*letters), strict=True):
        edge = slots[0] - (slots[1] - slots[0]) / 2
        inside = [text for text in texts if edge < text[0] < edge + 5 * (slots[1] - slots[0])]
        rows = {
            y: int(text)
            for x, y, text, anchor in texts
            if anchor == "end" and text.isdigit() and edge - 30 < x < edge
        }
        drawn = [
            (rows[y], int(np.abs(np.subtract(slots, x)).argmin()), int(text))
            for x, y, text, anchor in inside
            if anchor == "middle" and text.isdigit() and y in rows
        ]
        bundles = [bundle for control in code.main_loop for bundle in control.bundles]
        filled = [(n, o.slot, o.line) for n, b in enumerate(bundles, 1) for o in b.operations]
        assert sorted(drawn) == sorted(filled)
        for x, y, text, anchor in inside:
            if anchor == "middle" and text.isdigit():
                around = [b for b in boxes if b[0] < x < b[0] + b[2] and b[1] < y < b[1] + b[3]]
                assert len(around) == 1 and LETTER * len(text) < around[0][2]
        mine = [
            b for b in boxes if edge < b[0] < edge + 5 * (slots[1] - slots[0]) and b[1] >= high - 7
        ]
        assert len(mine) == 5 * len(bundles), "the others are empty"


def test_the_climbs_dots_and_starts_are_on_its_scale_and_each_number_is_at_its_dot():
    climb = draw.climb()
    seen = Charted(climb, WIDE, log="x")
    starts = dict(re.findall(r'data-name="start ([^"]+)"[^>]* cx="([\d.]+)"', climb.to_svg(WIDE)))
    assert len(starts) > 3
    for name, line in seen.lines.items():
        number = f"{float(name.split()[-1]):,g}" if name.startswith("level ") else ""
        ends = [label.box[::2] for label in seen.labels if number in label.text]
        assert not number or np.abs(np.subtract(ends, line[0, 0])).min() < 2
    for bar in (*climb.bars, *climb.beside):
        (dot,), start = seen.marks[bar.name], float(starts.get(bar.name, "nan"))
        for x, gflops in ((dot.x, bar.gflops), (start, bar.before)):
            assert np.isnan(x) or seen.value("x", x) == approx(gflops, rel=0.01), bar.name
        row = [label for label in seen.labels if label.box[1] < dot.y < label.box[3]]
        (number,) = (label.box for label in row if label.text == f"{bar.gflops:,.0f}")
        assert min(abs(number[0] - dot.x), abs(number[2] - dot.x)) < 12
        texts = [label.text.split(" x") for label in row if " x" in label.text]
        factors = [float(times) ** (-1 if slower else 1) for times, slower in texts]
        before = [bar.gflops / factor for factor in factors]
        assert before == approx([bar.before] * bool(bar.before), rel=0.01)


def test_frames_of_the_race_are_around_what_has_changed():
    """And what is fetched and added is counted below."""
    player = view("block_race")
    for before, seen in pairwise(Seen(player, frame, 2) for frame in range(len(player))):
        times = defaultdict(int)
        for was, now in zip(before["cells 8 x 8"], seen["cells 8 x 8"]):
            assert bool(now.data["now"]) == (now.data["times"] > was.data["times"])
            times[now.words[0]] += int(now.data["times"])
        ((counted, _),) = seen.labels("(.* words for .* flops)")
        assert counted == f"{times['A'] + times['B']:,} words for {2 * times['C']:,} flops"
