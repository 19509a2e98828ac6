"""The bundles of a loop: what they say is what was compiled."""

import numpy as np
from pages import (
    frames,
    view,
)

import cypresskit as ck
from cypresskit.compiler import compile
from cypresskit.draw.bundles import bundles


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
