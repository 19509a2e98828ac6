"""Texture fetches: what the picture says is what a unit with four banks does for the recording."""

import re
import sys

import pytest
from said import Rule, Said, assert_held, unheld

import cypresskit as ck
from cypresskit import draw
from cypresskit.kernels import samples
from cypresskit.timing.surfaces import Surfaces

RUNS = [("dgemm_tn", "dgemm_nn"), ("sgemm_tn", "sgemm_tn_compute")]
BANKS, WORD, LINE = 4, 16, 64


class Unit:
    """A wavefront's first fetches, clock by clock: of each quad's words every bank gives one."""

    def __init__(self, kernel: str, fetches: int = 16) -> None:
        self.name = kernel
        run = samples.listened(kernel, n=max(32, 8 * ck.kernels[kernel].block[0]), k=16)
        surfaces = Surfaces(run.launch, ck.HD5870.geometry, "linear")
        self.run, self.clocks, self.missed, self.asked = run, [], 0, 0
        self.address = surfaces.address
        self.held: set[int] = set()  # lines in L1, which is larger than all that is fetched here
        for number, access in enumerate([a for a in run.accesses if a.kind == "fetch"][:fetches]):
            words = surfaces.address(access.resource, access.x, access.y) // WORD
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
                lines = f"{one.missed} of {one.asked} lines asked for"
                text += f" **{one.name}**: done; {lines} were not in L1."
                continue
            access, fetch, quad, _, given, waiting, _ = one.clocks[say.frame - 1]
            line = one.run.launch.program.body[access.at].line
            where = f"fetch {fetch + 1}, of {'AB'[access.resource]} (line {line}), quad {quad + 1}"
            banks = " and one of bank ".join(map(str, sorted(given)))
            more = f"; {waiting} more wait" if waiting else ""
            text += f" **{one.name}**: {where}: a word of bank {banks}{more}."
        return say.text == text

    def tick(say: Said, _):
        _, fetch, quad, clock, _, _, missed = unit(say).clocks[say.index]
        assert say.text.endswith(", not in L1" if missed else f"k {clock + 1}, in L1")
        return [say.index + 1, quad + 1, fetch + 1, clock + 1]

    def word_of(one: Unit, text: str) -> int:
        """The word of a text's first texel."""
        matrix, row, texel = re.match(r".*?([AB]), row (\d+), texel (\d+)", text).groups()
        return int(one.address("AB".index(matrix), int(texel), int(row))) // WORD

    def word(say: Said, shown):
        return [*shown[:-1], word_of(unit(say), say.text) % BANKS]

    def about(say: Said, shown):
        one = units[say.index // 10_000]
        mine = word_of(one, say.text)
        assert say.text.startswith(f"{one.name}: ")
        if "first given" not in say.text:
            return [*shown[:-1], mine % BANKS]
        first = next(
            n
            for n, c in enumerate(one.clocks, 1)
            if mine in c[4].values()
            and "AB"[c[0].resource] == say.text.split(": ")[1].strip("*")[0]
        )
        return [*shown[:-2], mine % BANKS, first] if first <= say.frame else []

    def texture(say: Said, _):
        of = units[0].run.launch.textures["AB".index(say.text[0])]
        others = [u.run.launch.textures["AB".index(say.text[0])] for u in units]
        sizes = [[t.height, t.width] for t in (of, *others)]
        return any(say.text.endswith(f": {h} rows of {w} texels") for h, w in sizes)

    return {
        r"Clock #\. .*": caption,
        r"clock #: quad # of fetch #, its clock #, (not )?in L1": tick,
        r"[AB], row #, texel #( to #)?: a word of bank #": word,
        r"@: [AB], row #, texel #( to #)?: a word of bank #(, first given in clock #)?\.": about,
        r"work-item # of the wavefront, in quad #": lambda say, _: [say.index, say.index // 4 + 1],
        r"# work-items, in quads": lambda *_: [64],
        r"[AB]: # rows of # texels": texture,
        r"clock #": lambda say, _: [min(say.frame, len(unit(say).clocks))],
        r"done at clock #": lambda say, _: [len(unit(say).clocks)],
        r"#(: [AB])?": lambda _, shown: shown if 0 <= shown[0] <= 16 else [],
    }


@pytest.mark.parametrize("kernels", RUNS)
def test_every_number_is_the_units(kernels):
    player = draw.texture_fetch(*kernels)
    frames = sorted({*range(0, len(player), 61), len(player) // 2, len(player) - 1})
    assert_held(player, rules(kernels), frames=frames)


def test_another_fetch_is_found(monkeypatch):
    replay = sys.modules["cypresskit.draw.texture_fetch"]._Replay
    true = replay.say
    monkeypatch.setattr(replay, "say", lambda self, clock: true(self, clock + 1))
    assert unheld(draw.texture_fetch(*RUNS[0]), rules(RUNS[0]), frames=[10, 50])
