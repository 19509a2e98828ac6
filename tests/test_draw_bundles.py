"""The bundles of a loop: what they say is what was compiled."""

import numpy as np
import pytest
from pages import (
    frames,
    view,
)
from said import Rule, Said, assert_held

import cypresskit as ck
from cypresskit import draw
from cypresskit.compiler import compile
from cypresskit.draw.bundles import bundles

LOOPS = [("sgemm_tn",), ("ddgemm_tn_fma", "sgemm_tn"), ("sgemm_64x64_lds",)]


def rules(kernels: tuple[str, ...]) -> dict[str, Rule]:
    codes = [ck.compile(ck.kernels[kernel].program) for kernel in kernels]
    loops = [[b for clause in code.main_loop for b in clause.bundles] for code in codes]
    frames = [(n, at) for n, loop in enumerate(loops) for at in range(len(loop))]

    def source(loop: int, line: int) -> str:
        return codes[loop].program.lines[line - 1].split(";")[0].strip()

    def caption(say: Said, _):
        loop, at = frames[say.frame]
        bundle = loops[loop][at]
        lines = sorted({o.line for o in bundle.operations})
        reads = {
            (o.slot, k, r.kind, r.index, r.channel)
            for o in bundle.operations
            for k, r in enumerate(o.reads)
        }
        ports = {(kind, index, channel) for _, _, kind, index, channel in reads if kind == "gpr"}
        handed = {
            (kind, channel if kind == "pv" else 4, slot)
            for slot, _, kind, _, channel in reads
            if kind in ("pv", "ps")
        }
        numbers = [at + 1, len(loops[loop]), bundle.filled, 5, *lines, len(ports), 12]
        return numbers + [len(handed)] * bool(handed)

    def last(say: Said, shown):
        """A loop's last caption: the bundle, and then what the card says of a turn."""
        loop, at = frames[say.frame]
        assert at + 1 == len(loops[loop])
        card = codes[loop].stats(*ck.kernels[kernels[loop]].convention.per_iteration)
        slots = [len(bundle.operations) for bundle in loops[loop]]
        turn = [
            card.bundles_per_iteration,
            card.multiply_adds,
            sum(slots),
            5 * len(slots),
            card.slots5_pct,
        ]
        return caption(say, shown) + turn + [card.clocks_per_iteration]

    def story(say: Said, _):
        loop, line = divmod(say.index, 10_000)
        places = [
            f"{at + 1} {'xyzwt'[o.slot]}"
            for at, bundle in enumerate(loops[loop])
            for o in bundle.operations
            if o.line == line
        ]
        code = source(loop, line)
        done = f"runs in these bundles and slots: {', '.join(places)}."
        return say.text == f"**Line {line}**, {code}, {done}"

    def line(say: Said, shown):
        loop, _ = frames[say.frame]
        number, text = int(shown[0]), say.text.strip("\u200b ")
        code = f"{number}  {source(loop, number)}"
        return text == code or (text.endswith("…") and code.startswith(text[:-1]))

    def tip(say: Said, _):
        loop, _ = frames[say.frame]
        return any(
            source(loop, n) == say.text for n in range(1, len(codes[loop].program.lines) + 1)
        )

    return {
        r"@, bundle # of #.*": caption,
        r"@, bundle # of #.*\nOne iteration of the loop: .*": last,
        r"Line #, .*": story,
        r"cycle #, bank .": lambda say, _: [say.index // 4],
        r"cycle #": lambda say, _: [say.index],
        r" *# +.*": line,
        r".*#.*": tip,
    }


@pytest.mark.slow
@pytest.mark.parametrize("kernels", LOOPS)
def test_every_number_is_the_codes(kernels):
    player = draw.bundles(*kernels)
    assert_held(player, rules(kernels))


def test_a_loop_ends_on_what_its_card_says():
    """Each scene's last frame does, and no other."""
    player = draw.bundles("ddgemm_tn_fma", "sgemm_tn")
    ends = np.cumsum([count for _, count in player.scenes]) - 1
    sums = [n for n, words in enumerate(player.captions) if "One iteration of the loop" in words]
    assert sums == ends.tolist()


def main_loop(kernel: str) -> list:
    """The bundles of a kernel's inner loop."""
    code = compile(ck.kernels[kernel].program)
    return [bundle for clause in code.main_loop for bundle in clause.bundles]


def test_bundles_show_the_compiled_loop():
    loop, player = main_loop("sgemm_tn"), view("bundles")
    slots = frames(player, "slots", "key")[0].reshape(-1, 5)
    lines = [[o.line for o in sorted(b.operations, key=lambda o: o.slot)] for b in loop]
    assert lines == [[line for line in row if line >= 0] for row in slots.tolist()]
    color = frames(player, "slots", "shade")[0].reshape(-1, 5)
    of = {line: set(color[slots == line]) for line in set(slots.ravel()) - {-1}}
    assert all(len(colors) == 1 for colors in of.values()), "a line has one color"
    assert len(player) == len(loop)
    names = next(t.names for t in player.tracks if t.source.name == "ports")
    text = ck.kernels["sgemm_tn"].text.splitlines()
    for bundle, shown in zip(loop, frames(player, "ports", "value")):
        read = {(r.index, r.channel) for o in bundle.operations for r in o.reads if r.kind == "gpr"}
        ports = {(names[name], place % 4) for place, name in enumerate(shown) if name >= 0}
        assert {(int(name.rpartition("R")[2]), bank) for name, bank in ports} == read
        lines = " ".join(text[o.line - 1] for o in bundle.operations)
        assert all(name.partition(" ")[0] in lines for name, _ in ports if " " in name)


def test_forwarded_results_are_arrows_and_loops_are_scenes():
    names = ("ddgemm_tn_fma", "sgemm_tn")
    loops, player = [main_loop(name) for name in names], bundles(*names)
    assert player.scenes == [(name, len(loop)) for name, loop in zip(names, loops)]
    for bundle, shown in zip(
        [b for loop in loops for b in loop], frames(player, "passed on", "x1")
    ):
        pairs = {
            (r.kind, r.channel, o.slot)
            for o in bundle.operations
            for r in o.reads
            if r.kind in ("pv", "ps")
        }
        assert np.isfinite(shown).sum() == min(
            5, len({(4 if k == "ps" else c, s) for k, c, s in pairs})
        )


def test_bundles_are_drawn_of_a_program_and_of_a_kernel_too():
    kernel = ck.kernels["sgemm_naive"]
    assert (
        repr(ck.draw.bundles(kernel))
        == repr(ck.draw.bundles(kernel.program))
        == repr(ck.draw.bundles(kernel.name))
    )
