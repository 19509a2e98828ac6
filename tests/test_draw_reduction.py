"""A reduction: what it says is what the accesses of one wavefront were."""

import re

import numpy as np
import pytest
from pages import (
    drawn,
    finish,
    frames,
)
from said import Rule, Said, assert_held

import cypresskit as ck
from cypresskit.kernels.samples import run
from cypresskit.machine.traffic import Traffic

HELPED = ["sgemv_n_reduce2", "sgemv_n_reduce4"]


class Side:
    """A kernel's accesses to A and the LDS on the rows of A that the picture shows."""

    def __init__(self, name: str, rows: int, k: int) -> None:
        traffic = Traffic()
        run(ck.kernels[name], rows, 1, k, traffic)
        self.name, self.parts = name, ck.kernels[name].convention.parts
        items = np.arange(64) < rows // 4 * self.parts
        self.steps = [
            (a, items & a.active) for a in traffic.accesses if a.kind != "fetch" or a.resource == 0
        ]

    def lines(self, n: int) -> int:
        """Lines that the quads ask for in step ``n``, each quad for its own."""
        access, active = self.steps[n]
        if access.kind != "fetch":
            return 0
        quads = np.arange(64) // 4
        return len(set(zip(quads[active], access.y[active], access.x[active] // 4)))

    def does(self, n: int, words: str, shown) -> bool:
        """Whether a sentence on step ``n`` is true."""
        if n >= len(self.steps):
            return words == f"done after {len(self.steps)} steps."
        access, active = self.steps[n - 1]
        does = {
            "fetch": f"fetch a texel each, from {self.lines(n - 1)} lines, and add its products.",
            "store": "leave their sums in the LDS. A barrier: all wait for all.",
            "load": "load a helper's sum and add it to their own; the others sleep.",
        }
        return words == f"{active.sum()} work-items {does[access.kind]}"


def rules(kernel: str) -> dict[str, Rule]:
    parts = ck.kernels[kernel].convention.parts
    rows = 64 // parts * ck.kernels[kernel].block[0]
    sides = [Side(name, rows, 4 * ck.kernels[kernel].k_step) for name in ("sgemv_n", kernel)]
    plain, helped = sides

    def side(say: Said) -> Side:
        return next(s for s in reversed(sides) if say.where.endswith(s.name))

    def caption(say: Said, shown):
        if say.frame == 0:
            return [rows, parts]
        told = re.split(r"\*\*(.+?)\*\*: ", say.text)[1:]
        last = len(plain.steps) / len(helped.steps), len_lines(plain) / len_lines(helped)
        times = f"{last[0]:.1f} times the steps and {last[1]:.0f} times the lines"
        end = f" Without helpers it takes {times}."
        if say.frame == max(len(plain.steps), len(helped.steps)):
            assert told[3].endswith(end)
            told[3] = told[3].removesuffix(end)
        said = {name: words.strip() for name, words in zip(told[::2], told[1::2])}
        return all(s.does(say.frame, said[s.name], shown) for s in sides)

    def len_lines(of: Side) -> int:
        return sum(map(of.lines, range(len(of.steps))))

    def texel(say: Said, _):
        across = 4 * ck.kernels[kernel].k_step // 4
        return divmod(say.index, across)

    def group(say: Said, _):
        role = "leader" if say.index % parts == 0 else "helper"
        return say.text == f"**Work-item {say.index}**, the {role} of group {say.index // parts}."

    return {
        r"(#|@).*(yet|steps|products|lines|sleep|for all).*": caption,
        r"A: row #, texel #": texel,
        r"work-item #: .*": lambda say, _: [say.index],
        r"Work-item #, the (leader|helper) of group #\.": group,
        r"A: # rows": lambda *_: [rows],
        r"# of # have work": lambda *_: [rows // 4, 64],
        r"# work-items": lambda *_: [64],
        r"step #": lambda say, _: [min(say.frame, len(side(say).steps))],
        r"lines requested: #": lambda say, _: [
            sum(map(side(say).lines, range(min(say.frame, len(side(say).steps)))))
        ],
        r"done at step #": lambda say, _: [len(side(say).steps)],
    }


@pytest.mark.slow
@pytest.mark.parametrize("kernel", HELPED)
def test_every_number_is_the_recordings(kernel):
    player = ck.teach.small.reduction(kernel)
    assert_held(player, rules(kernel))


@pytest.mark.parametrize("kernel", ["sgemv_n_reduce2", "sgemv_n_reduce4"])
def test_a_reduction_shows_who_reads_and_who_adds(kernel):
    """Lesson 08's questions, asked of the picture: a row's texels go round, and leaders add the
    sums of all parts.
    """
    player, parts = ck.teach.small.reduction(kernel), ck.kernels[kernel].convention.parts
    steps, leaders = finish(player, kernel), 64 // parts
    for name, column in (
        (kernel, lambda texel: texel % parts),
        ("sgemv_n", lambda texel: 0 * texel),
    ):
        texel = frames(player, f"texels {name}", "shade")
        rows = texel[-1].reshape(leaders * 4, -1)
        assert (rows == column(np.arange(rows.shape[1]))).all() and (texel[0] == 8).all()
    several = (frames(player, f"{name} {kernel}", "shade") for name in ("item", "lds", "sum"))
    item, lds, sums = ((shade < parts).sum(axis=1) for shade in several)
    assert item[[0, -1]].tolist() == [64, leaders] and lds[[0, -1]].tolist() == [0, 64]
    assert (np.asarray(drawn(player, "item sgemv_n")["shade"]) < parts).sum() == leaders, (
        "the others have no row"
    )
    assert sums[steps - parts + 1 : steps + 1].tolist() == [
        leaders * n for n in range(1, parts + 1)
    ]
    # The same work: each of the fewer work-items fetches all of its rows, and asks for a line once
    # for each texel.
    plain, helped = (
        frames(player, f"requested {name}", "value")[-1, 0] for name in ("sgemv_n", kernel)
    )
    assert plain == parts * helped and finish(player, "sgemv_n") == parts * (steps - parts)
