"""Texture fetches: what the picture says is what a unit with four banks does for the recording."""

import re
from dataclasses import replace

import numpy as np
import pytest
from pages import (
    finish,
    frames,
    view,
)
from said import Rule, Said, assert_held

import cypresskit as ck
from cypresskit.chip.work import quad_clocks
from cypresskit.draw.texture_fetch import texture_fetch
from cypresskit.kernels import samples
from cypresskit.timing import simulate
from cypresskit.trace.memory_layout import MemoryLayout

RUNS = [("dgemm_tn", "dgemm_nn"), ("sgemm_tn", "sgemm_tn_compute")]
BANKS, WORD, LINE = 4, 16, 64


class Unit:
    """A wavefront's first fetches, clock by clock: of each quad's words every bank gives one."""

    def __init__(self, kernel: str, fetches: int = 16) -> None:
        self.name = kernel
        run = samples.record_traffic(kernel, n=max(32, 8 * ck.kernels[kernel].block[0]), k=16)
        memory_layout = MemoryLayout(run.launch, ck.HD5870.geometry, "linear")
        self.run, self.clocks, self.missed, self.asked = run, [], 0, 0
        self.address = memory_layout.address
        self.behind: list[list[int]] = []  # words that wait for a later clock
        self.held: set[int] = set()  # lines in L1, which is larger than all that is fetched here
        for number, access in enumerate([a for a in run.accesses if a.kind == "fetch"][:fetches]):
            words = memory_layout.address(access.resource, access.x, access.y) // WORD
            for quad in range(16):
                own = slice(4 * quad, 4 * quad + 4)
                wanted = list(dict.fromkeys(words[own][access.active[own]].tolist()))
                self._serve(access, number, quad, wanted)

    def _serve(self, access, fetch: int, quad: int, wanted: list[int]) -> None:
        seen: set[int] = set()
        clock = 0
        while wanted:
            given: dict[int, int] = {}
            for word in wanted:
                given.setdefault(word % BANKS, word)
            wanted = [word for word in wanted if word not in given.values()]
            self.behind.append(wanted)
            lines = {word * WORD // LINE for word in given.values()} - seen
            seen |= lines
            new = lines - self.held
            self.held |= lines
            self.missed, self.asked = self.missed + len(new), self.asked + len(lines)
            self.clocks.append((access, fetch, quad, clock, given, len(wanted), bool(new)))
            clock += 1


def rules(kernels: tuple[str, ...]) -> dict[str, Rule]:
    units = [Unit(kernel) for kernel in kernels]

    def unit(say: Said) -> Unit:
        return next(u for u in reversed(units) if say.where.endswith(f" {u.name}"))

    def caption(say: Said, _):
        if say.frame == 0:
            return [0]
        text = f"Clock {say.frame}."
        for one in units:
            if say.frame >= len(one.clocks):
                lines = f"{one.missed} of {one.asked} requested lines"
                text += f" **{one.name}**: done; {lines} missed L1."
                continue
            access, fetch, quad, _, given, waiting, _ = one.clocks[say.frame - 1]
            line = one.run.launch.program.body[access.at].line
            where = f"fetch {fetch + 1}, of {'AB'[access.resource]} (line {line}), quad {quad + 1}"
            banks = f"bank{'s' * (len(given) > 1)} {' and '.join(map(str, sorted(given)))}"
            more = f"; {waiting} more wait" if waiting else ""
            text += f" **{one.name}**: {where}: a texel from {banks}{more}."
        return say.text == text

    def tick(say: Said, _):
        _, fetch, quad, clock, _, _, missed = unit(say).clocks[say.index]
        assert say.text.endswith(f"k {clock + 1}, L1 {'miss' if missed else 'hit'}")
        return [say.index + 1, quad + 1, fetch + 1, clock + 1]

    def word_of(one: Unit, text: str) -> int:
        """The word of a text's first texel."""
        matrix, row, texel = re.match(r".*?([AB]), row (\d+), texels? (\d+)", text).groups()
        return int(one.address("AB".index(matrix), int(texel), int(row))) // WORD

    def words_of(one: Unit, matrix: str) -> list[int]:
        """The words of a matrix, as they lie in memory."""
        texture = one.run.launch.textures["AB".index(matrix)]
        y, x = np.divmod(np.arange(texture.width * texture.height), texture.width)
        return np.unique(one.address("AB".index(matrix), x, y) // WORD).tolist()

    def texels(one: Unit, text: str, box: int) -> list[int]:
        """Row and texels of the word that has a box."""
        matrix, row, first, *more = re.search(
            r"([AB])\W*, row (\d+), texels? (\d+)(?: to (\d+))?", text
        ).groups()
        last = int(more[0] or first)
        words = words_of(one, matrix)
        box -= len(words_of(one, "A")) if matrix == "B" and box >= len(words) else 0
        for texel in (int(first), last):
            assert int(one.address("AB".index(matrix), texel, int(row))) // WORD == words[box]
        return [int(row), int(first), last][: 2 + (more[0] is not None)]

    def word(say: Said, _):
        one = unit(say)
        return [*texels(one, say.text, say.index), word_of(one, say.text) % BANKS]

    def fetch_label(say: Said, _):
        """The number of a fetch, of which every second or so is named; or that of a bank."""
        if ":" not in say.text:
            return [say.index % BANKS]
        orders = [[a.resource for a in u.run.accesses if a.kind == "fetch"][:16] for u in units]
        step = -(-16 // len(say.data["x"]))
        assert any(say.text.endswith("AB"[order[say.index * step]]) for order in orders)
        return [say.index * step + 1]

    def about(say: Said, _):
        one = units[say.index // 10_000]
        mine = word_of(one, say.text)
        place = texels(one, say.text, say.index % 10_000)
        assert say.text.startswith(f"{one.name}: ")
        if "first delivered" not in say.text:
            return [*place, mine % BANKS]
        first = next(
            n
            for n, c in enumerate(one.clocks, 1)
            if mine in c[4].values()
            and "AB"[c[0].resource] == say.text.split(": ")[1].strip("*")[0]
        )
        return [*place, mine % BANKS, first] if first <= say.frame else []

    def queued(say: Said, _):
        """A word at a door: the unit's of this clock, of this bank, in the order of their turns."""
        one = unit(say)
        text = re.sub(r".*?([AB], row)", r"\1", say.text)
        matrix = words_of(one, text[0])
        place = texels(one, text, matrix.index(word_of(one, text)))
        bank = say.index // 4 % BANKS
        given = one.clocks[say.frame - 1][4]
        waits = [word for word in one.behind[say.frame - 1] if word % BANKS == bank]
        lane = [given[bank], *waits]
        assert (say.cell("wait") == 0) == (lane.index(word_of(one, text)) == 0)
        return [*place, bank]

    def waited(say: Said, _):
        """Those that weren't given in the first clock of their quad."""
        first = [c for c in unit(say).clocks[: say.frame] if c[3] == 0]
        return [sum(c[5] for c in first)]

    def texture(say: Said, _):
        of = units[0].run.launch.textures["AB".index(say.text[0])]
        others = [u.run.launch.textures["AB".index(say.text[0])] for u in units]
        sizes = [[t.height, t.width] for t in (of, *others)]
        return any(say.text.endswith(f": {h} rows of {w} texels") for h, w in sizes)

    return {
        r"Clock #\. .*": caption,
        r"clock #: quad # of fetch #, its clock #, L1 (hit|miss)": tick,
        r"[AB], row #, texels? #( to #)?: bank #": lambda say, _: (
            queued(say, _) if "queue" in say.where else word(say, _)
        ),
        r"bank #": lambda say, _: [say.index],
        r"# texels waited": waited,
        r"@: [AB], row #, texels? #( to #)?: bank #(, first delivered in clock #)?\.": about,
        r"work-item # of the wavefront, in quad #": lambda say, _: [say.index, say.index // 4 + 1],
        r"# work-items, in quads": lambda *_: [64],
        r"[AB]: # rows of # texels": texture,
        r"clock #": lambda say, _: [min(say.frame, len(unit(say).clocks))],
        r"done at clock #": lambda say, _: [len(unit(say).clocks)],
        r"#(: [AB])?": fetch_label,
    }


@pytest.mark.slow
@pytest.mark.parametrize("kernels", RUNS)
def test_every_number_is_the_units(kernels):
    player = texture_fetch(*kernels)
    frames = sorted({*range(0, len(player), 61), len(player) // 2, len(player) - 1})
    assert_held(player, rules(kernels), frames=frames)


def test_quads_take_their_fullest_banks_clocks_in_either_layout():
    """Question 1 of lesson 05, asked of the picture."""
    player = view("texture_fetch", in_lesson=True)
    assert (finish(player, "dgemm_tn"), finish(player, "dgemm_nn")) == (256, 384)
    assert frames(player, "clocks dgemm_nn", "value")[:, 0].tolist() == list(range(385))
    for name, of_a in (("dgemm_tn", 16), ("dgemm_nn", 32)):
        data = next(t.source.data for t in player.tracks if t.source.name == f"ticks {name}")
        across = frames(player, f"ticks {name}", "x")
        assert len({*zip(across[-1], data["y"])}) == len(data["y"]), "each clock has a box"
        paid = np.isfinite(across)
        assert paid.sum(axis=1).tolist() == [
            min(clock, finish(player, name)) for clock in range(385)
        ]
        matrix = data["shade"]
        fetches = [matrix[data["y"] == y] for y in np.unique(data["y"])]
        assert [(len(f), set(f)) for f in fetches] == [
            (16 if f[0] else of_a, {f[0]}) for f in fetches
        ]
        assert sum(f[0] == 0 for f in fetches) == 8
    hits = [
        1 - np.mean(frames(player, f"ticks {name}", "missed")[-1] > 0)
        for name in ("dgemm_tn", "dgemm_nn")
    ]
    assert hits[0] == pytest.approx(hits[1], abs=0.01), "question 3: NN doesn't miss more often"


def test_at_the_end_nothing_is_under_way():
    player = view("texture_fetch", in_lesson=True)
    assert "done; 32 of 256 requested lines missed L1" in player.captions[-1]
    assert player.captions[-1].count("done;") == 2
    for name in ("arrows dgemm_nn", "quad dgemm_nn"):
        moving = next(
            t.frames for t in player.tracks if t.source.name == name and t.column in ("x", "x0")
        )
        assert np.isnan(moving[-1]).all() and not np.isnan(moving[-2]).all()
    for name in ("lds", "lds_rows"):
        assert np.isnan(frames(view("lds_transpose"), f"requests {name}", "x")[-1]).all()


def test_what_a_quad_asks_for_are_the_recorded_texels():
    player = texture_fetch("dgemm_nn")
    traffic = samples.record_traffic("dgemm_nn", n=32, k=16)
    first = next(a for a in traffic.accesses if a.kind == "fetch")
    x1, y1 = (frames(player, "arrows dgemm_nn", column) for column in ("x1", "y1"))
    for quad in range(16):
        texels = {
            (x, y)
            for x, y in zip(first.x[4 * quad : 4 * quad + 4], first.y[4 * quad : 4 * quad + 4])
        }
        assert len({(x, y) for x, y in zip(x1[1 + 2 * quad], y1[1 + 2 * quad])}) == len(texels)
        waits = frames(player, "words A dgemm_nn", "wait")[1 + 2 * quad : 3 + 2 * quad] > 0
        assert waits.sum(axis=1).tolist() == [1, 0], "the second word of its bank waits for a clock"


@pytest.mark.parametrize(
    "kernel", ["dgemm_nn", "sgemm_tn_compute", "sgemm_64x64_lds", "sgemm_naive"]
)
def test_a_fetch_takes_the_clocks_of_the_timing_model(kernel):
    """The picture queues words at banks; the model counts the fullest bank. Both know four banks of
    16 bytes.
    """
    traffic = samples.record_traffic(kernel, n=64, k=16)
    player, clocks = texture_fetch(traffic, fetches=6), 0
    for access in [a for a in traffic.accesses if a.kind == "fetch"][:6]:
        texel = 4 * traffic.launch.textures[access.resource].words.shape[2]
        row = -(-traffic.launch.textures[access.resource].width * texel // 64) * 64
        places = access.y.astype(np.int64) * row + access.x * texel
        clocks += sum(
            quad_clocks(places[q : q + 4], access.active[q : q + 4], 4) for q in range(0, 64, 4)
        )
    assert finish(player, kernel) == clocks


def test_a_small_l1_evicts_what_is_wanted_again():
    small = replace(ck.HD5870, l1_bytes=256, l1_ways=4)
    missed = [
        (
            frames(
                texture_fetch("dgemm_nn", device=chip),
                "ticks dgemm_nn",
                "missed",
            )[-1]
            > 0
        ).sum()
        for chip in (ck.HD5870, small)
    ]
    assert missed[0] == 8 * 4 + 4 * 4 and missed[1] > 1.5 * missed[0]


@pytest.mark.parametrize("l2_bytes", [0, ck.HD5870.l2_bytes])
@pytest.mark.parametrize("l1_bytes", [0, 64, 512, ck.HD5870.l1_bytes])
def test_a_board_with_any_caches_is_drawn_and_timed(l1_bytes, l2_bytes):
    ways = 1 if l1_bytes == 64 else 8
    board = replace(ck.HD5870, l1_bytes=l1_bytes, l1_ways=ways, l2_bytes=l2_bytes)
    report = simulate("sgemm_nn", 64, k=16, device=board)
    assert report.clocks > 0 and (report.hits["L1"] == 0 or l1_bytes)
    for draw in (ck.draw.chip, ck.draw.wavefronts):
        draw(report)
    player = texture_fetch("sgemm_nn", device=board)
    counts = re.search(r"(\d+) of (\d+) requested lines missed L1", player.captions[-1])
    missed, requested = map(int, counts.groups())
    assert missed == requested if not l1_bytes else missed <= requested


def test_another_number_of_banks_of_l1_is_drawn_as_it_is_timed():
    rule = {"texture_bank": lambda x, y: (x * y + x // 4) % 8}
    for banks, change in ((2, {}), (8, {}), (8, rule)):
        board = replace(ck.HD5870, texture_banks=banks, **change)
        report = simulate("dgemm_nn", 64, k=16, device=board)
        clocks = report.busy["texture"] * report.clocks * board.simd_engines / report.wavefronts
        player = texture_fetch("dgemm_nn", fetches=64, device=board)
        assert finish(player, "dgemm_nn") == round(clocks), "all 64 fetches that k = 16 has"
        assert f"bank {banks - 1}" in str(player.captions) and f"bank {banks}" not in str(
            player.captions
        )


def test_modes_change_the_lines():
    modes = texture_fetch("sgemm_tn", "sgemm_tn_compute")
    clocks = [finish(modes, name) for name in ("sgemm_tn", "sgemm_tn_compute")]
    assert clocks == [256, 384], "a row reads four words of B from two banks"
