"""The race of blocks: what it says is what the device counts."""

import numpy as np
import pytest
from pages import (
    finish,
    frames,
    view,
)
from said import Rule, Said, assert_held

import cypresskit as ck

FRAMES, N = 129, 8


def fetches(b: int) -> dict[tuple[int, int, int], list[int]]:
    """For each number (resource, row, column) that a launch with b x b blocks fetches, how many
    words had been fetched with it each time, work-item by work-item.
    """
    runs = ck.teach.register_block.block_runs((b,))[f"{b} x {b}"]
    words, fetched = 0, {}
    for run in sorted(runs, key=lambda recording: recording.item):
        for _, resource, x, y, _ in run.fetches.tolist():
            wide = run.textures[resource][2]
            for c in range(wide):
                words += 1
                fetched.setdefault((resource, y, x * wide + c), []).append(words)
    return fetched


def rules(blocks: tuple[int, ...]) -> dict[str, Rule]:
    most = 2 * N**3 // min(blocks)
    done = {b: fetches(b) for b in blocks}

    clocks = np.linspace(0, most, FRAMES).astype(int).tolist()

    def clock(say: Said) -> int:
        return clocks[say.frame]

    def size(say: Said) -> int:
        return int(say.where.split()[-1])

    def caption(say: Said, _):
        if say.frame == FRAMES - 1:
            return [max(blocks), max(blocks), 2 * N**3 // max(blocks), most]
        return [clock(say)]

    def so_far(say: Said) -> int:
        return min(clock(say), 2 * N**3 // size(say))

    def cell(say: Said, shown):
        matrix, number = divmod(say.index, N * N)
        i, j = divmod(number, N)
        b = size(say)
        if matrix == 2:
            return terms(say, b, i, j, shown)
        place = (i, j) if matrix else (j, i)  # A is stored by columns
        at_words = done[b].get((matrix, *place), ())
        times = sum(word <= clock(say) for word in at_words)
        return [i, j, times]

    def terms(say: Said, b: int, i: int, j: int, shown):
        """A term is added when its work-item has fetched both of its numbers; the last two may
        still be under way.
        """
        came = [max(done[b][0, k, i][j // b], done[b][1, k, j][i // b]) for k in range(N)]
        most = sum(word <= clock(say) for word in came)
        return [i, j, shown[2]] if most - 2 <= shown[2] <= most else []

    def count(say: Said, shown):
        """Words are the clock's; of flops at most what these words allow, and nearly that."""
        words, flops, b = so_far(say), shown[1], size(say)
        most_of_them = min(2 * b * b * (words // (2 * b)), 2 * N**3)
        return [words, flops] if most_of_them - 2 * b * b <= flops <= most_of_them else []

    def rate(say: Said, shown):
        b = size(say)
        return shown if abs(shown[0] - 1 / b) < 1 / b / max(1, so_far(say) // (4 * b * b)) else []

    return {
        r"After at most # words: .*": caption,
        r"# x # needed the fewest words: # against #\.": caption,
        r"[ABC]\[#, #\]: (times fetched|terms added): #": cell,
        r"# x #": lambda _, shown: shown if shown[0] in blocks and shown[0] == shown[1] else [],
        r"word #": lambda say, _: [so_far(say)],
        r"done at word #": lambda say, _: [2 * N**3 // size(say)],
        r"# words for # flops": count,
        r"# words per flop": rate,
    }


@pytest.mark.parametrize("blocks", [(1, 2, 4, 8), (4, 8)])
def test_every_number_is_the_recordings(blocks):
    player = ck.teach.register_block.block_race(ck.teach.register_block.block_runs(blocks))
    assert_held(player, rules(blocks))


def test_the_largest_block_is_done_first():
    """Lesson 01, asked of the picture: 1/b words per flop, and why: how often each element is
    fetched.
    """
    player, n = view("block_race"), 8
    assert player.captions[-1] == "8 x 8 needed the fewest words: 128 against 1024."
    for b in (1, 2, 8):
        name = f"{b} x {b}"
        words = ck.teach.register_block.words_per_flop(b, n) * 2 * n**3
        assert finish(player, name) == words == 2 * n**3 // b
        fetched, terms = np.split(frames(player, f"cells {name}", "times"), [2 * n * n], axis=1)
        assert (fetched[-1] == n // b).all(), "every element of A and B"
        assert (terms[-1] == n).all() and (np.diff(terms, axis=0) >= 0).all()
        rate = next(t for t in player.tracks if t.source.name == f"rate {name}")
        assert rate.names[-1] == f"{1 / b:.3f} words per flop"
        at = len(player) // 20
        words = round(at * 2 * n**3 / (len(player) - 1))
        each = 2 * b * b / (2 * b)
        assert abs(2 * terms[at].sum() - min(words * each, 2 * n**3)) <= 2 * b * b
