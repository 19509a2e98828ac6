"""A tile of A through the LDS: what the picture says is what the accesses do at 32 banks."""

import re
from collections import Counter

import numpy as np
import pytest
from pages import (
    finish,
    frames,
    view,
)
from said import Rule, Said, assert_held

import cypresskit as ck
from cypresskit.chip.units.lds_banks import access_clocks
from cypresskit.kernels import samples


class Bank:
    """The first turn's accesses of a layout, served clock by clock: 16 work-items ask at a time,
    each for two words at most, and a bank gives one word a clock.
    """

    def __init__(self, kernel: str) -> None:
        traffic = samples.record_traffic(kernel)
        self.name = kernel.removeprefix("sgemm_64x64_")
        body = traffic.launch.program.body
        lds = [a for a in traffic.accesses if a.kind != "fetch"]
        turn = [a for n, a in enumerate(lds) if sum(b.at == lds[0].at for b in lds[: n + 1]) == 1]
        self.clocks, self.asked, self.groups, held = 0, [], [], {}
        for access in turn:
            words = access.addresses // 4
            store = access.kind == "store"
            if store:
                swizzle = body[access.at].sources[-1].swizzle
                for row, letter in zip(words, swizzle):
                    held |= {int(w): (item, "xyzw".index(letter)) for item, w in enumerate(row)}
            for first in range(0, len(words), 2):
                for lane in range(0, 64, 16):
                    self._serve(
                        words[first : first + 2, lane : lane + 16],
                        lane,
                        store,
                        held,
                        body[access.at].line,
                    )

    def _serve(self, words, lane: int, store: bool, held: dict, line: int) -> None:
        who: dict[int, list[int]] = {}
        for row in words:
            for n, word in enumerate(row.tolist()):
                who.setdefault(word, []).append(lane + n)
        depth: Counter[int] = Counter()
        for word, items in who.items():
            self.asked.append((store, self.clocks + depth[word % 32], word, held[word], items))
            depth[word % 32] += 1
        items = sorted({item for group in who.values() for item in group})
        self.groups.append((self.clocks, line, items, store, len(who), max(depth.values())))
        self.clocks += max(depth.values())

    def of(self, element: int, store: bool) -> tuple:
        """(clock, word, items) of the first request that stores or loads an element."""
        place = divmod(element, 4)
        return next((c, w, items) for s, c, w, e, items in self.asked if s == store and e == place)


def rules(kernels: list[str]) -> dict[str, Rule]:
    banks = [Bank(kernel) for kernel in kernels]

    def caption(say: Said, _):
        if say.frame == 0:
            return [0, 64]
        clock, numbers = say.frame - 1, [say.frame - 1]
        for bank in banks:
            if clock >= bank.clocks:
                numbers.append(bank.clocks)
                continue
            _, line, items, store, words, deep = max(g for g in bank.groups if g[0] <= clock)
            assert f"{items[0]} to {items[-1]} {'store' if store else 'load'} {words} " in say.text
            numbers += [line, items[0], items[-1], words, deep]
        return numbers

    def story(say: Said, _):
        row, k = divmod(say.index, 4)
        numbers = [row, k]
        for bank in banks:
            begin, word, by = bank.of(say.index, True)
            loaded, _, items = bank.of(say.index, False)
            numbers += [*by, word, word % 32, begin, items[0], items[-1], loaded]
        return numbers

    def bank_of(say: Said) -> Bank:
        return next(bank for bank in reversed(banks) if say.where.endswith(f" {bank.name}"))

    def place(say: Said, _):
        return divmod(say.index, 4) + (say.index // 4,)

    def arrived(say: Said, _):
        k, n = divmod(say.index, 8)
        return [8 + n, k, 9]

    return {
        r"Clock #\. .*": caption,
        r"A\[#, k = #\]\. .*": story,
        r"A\[#, k = #\] in work-item #": place,
        r"A\[#, k = #\] in a register of work-item #": arrived,
        r"word #, bank #": lambda say, _: [say.index, say.index % 32],
        r"clock #": lambda say, _: [min(max(say.frame - 1, 0), bank_of(say).clocks)],
        r"done at clock #": lambda say, _: [bank_of(say).clocks],
        r"k = #": lambda say, _: [say.index],
        r"(bank )?#": lambda _, shown: shown if shown[0] in (0, 8, 16, 24, 31) else [],
        r"# work-items, each with .*": lambda *_: [64],
        r"Work-item # gets columns": lambda *_: [9],
    }


LAYOUTS = (
    ["sgemm_64x64_lds_padded", "sgemm_64x64_lds_worst"],
    ["sgemm_64x64_lds", "sgemm_64x64_lds_rows"],
)


@pytest.mark.slow
@pytest.mark.parametrize("kernels", LAYOUTS)
def test_every_number_is_the_banks(kernels):
    player = ck.teach.lds.lds_transpose(*kernels)
    frames = sorted({*range(0, len(player), 20), len(player) - 1})
    assert_held(player, rules(kernels), frames=frames)


@pytest.mark.parametrize("name", ["lds", "lds_rows", "lds_padded", "lds_worst"])
def test_the_lds_is_done_when_its_banks_have_answered(name):
    kernel = f"sgemm_64x64_{name}"
    lds = [a for a in samples.record_traffic(kernel).accesses if a.kind != "fetch"]
    turn = [a for n, a in enumerate(lds) if sum(b.at == lds[0].at for b in lds[: n + 1]) == 1]
    clocks = sum(access_clocks(a.addresses[np.newaxis], ck.HD5870)[0] for a in turn)
    player = ck.teach.lds.lds_transpose(kernel)
    assert finish(player, name) == clocks == len(player) - 2


def test_requests_stack_in_their_bank_and_a_layer_takes_a_clock():
    player = view("lds_transpose")
    for name in ("lds", "lds_rows"):
        x, y, wait = (frames(player, f"requests {name}", column) for column in ("x", "y", "wait"))
        assert (wait.max() > 0) == (name == "lds_rows"), "a column at a time has no conflict"
        for frame in range(1, 1 + finish(player, name)):
            here = np.isfinite(x[frame]) & (y[frame] > 130) & (y[frame] < 232)
            words = frames(player, f"requests {name}", "key")[frame, here]
            places = np.unique(np.stack([words, x[frame, here], y[frame, here]], axis=1), axis=0)
            assert len(places) == len(np.unique(places[:, 1:], axis=0)) > 0, (
                "no two words in one place"
            )
            deep = max(np.unique(places[:, 1], return_counts=True)[1])
            assert (deep > 1) == wait[frame].any()


def test_a_work_item_gets_columns_of_its_own_rows():
    player = view("lds_transpose")
    for name in ("lds", "lds_rows"):
        row = frames(player, f"arrived {name}", "shade")
        assert (row[0] == 8).all() and (row[-1].reshape(4, 8) == range(8)).all(), (
            "eight rows of A for each k"
        )
    stored = frames(player, "lds lds_rows", "key")[-1]
    traffic = samples.record_traffic("sgemm_64x64_lds_rows")
    places = next(a for a in traffic.accesses if a.kind == "store").addresses // 4
    assert all(stored[places[k, item]] == 4 * item + k for item in range(64) for k in range(4))
    story = dict(player.figures[0].tags[0]["about"])[4 * 8]
    stored = r"<b>A\[8, k = 0\]</b>\. lds: stored by work-item 8 in word 8, bank 8, in clock \d+,"
    assert re.match(
        stored + r" loaded by work-items 8 to 15 in clock \d+\. lds_rows: stored by", story
    )
