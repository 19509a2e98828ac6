"""The units of the chip: schedules of a few wavefronts, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from sampling import from_rows

from cypresskit.chip import work
from cypresskit.chip.engine import run
from cypresskit.chip.units.dram import address_bits, dram_location
from cypresskit.chip.work import (
    ALU,
    BARRIER,
    KINDS,
    TEX,
    WRITE,
    Clause,
    Stream,
    WavefrontPath,
    combine_stores,
    cost_amounts,
    pack,
)
from cypresskit.devices import HD5870

# One engine, latencies that are easy to add, no cost for a switch.
LATENCIES = {"l1_clocks": 100, "l2_clocks": 150, "dram_clocks": 300, "dram_row_clocks": 0}
ONE = replace(HD5870, simd_engines=1, clause_switch_clocks=0, clause_overhead_clocks=0, **LATENCIES)
LANES = np.arange(64)


def outcome(clauses, wavefronts=1, slots=4, device=ONE, repeats=1):
    path = WavefrontPath(np.arange(wavefronts), ((tuple(clauses), repeats),))
    return run(pack([path]), device, slots)


def schedule(result):
    """``slot kind start-end`` of engine 0, in the order of ends."""
    return " | ".join(f"{int(r[0])} {KINDS[int(r[2])]} {r[3]:g}-{r[4]:g}" for r in result.timeline)


def address_stream(addresses, active=None, device=HD5870, **more):
    """All work-items, and lines from 0 on in one phase, unless ``more`` says otherwise."""
    on = np.ones(addresses.shape, bool) if active is None else active
    how = {"base": 0, "phases": 1, "step": 0, "uncached": False} | more
    return work.address_stream(addresses, on, device, **how)


def fetch(addresses, wavefronts=1, **more):
    return address_stream(np.tile(np.asarray(addresses, np.int64), (wavefronts, 1)), **more)


# The ALU (units.alu)


@from_rows
def test_clauses_are_scheduled_as_by_hand(bundles, wavefronts, slots, board, scheduled):
    clauses = [Clause(ALU, count) for count in bundles]
    result = outcome(clauses, wavefronts, slots, replace(ONE, **board))
    assert schedule(result) == scheduled
    assert result.counts["alu"] == 4 * sum(bundles) * wavefronts


def test_an_alu_clause_lasts_as_long_as_the_lds_needs():
    none = np.zeros(0, np.int64)
    lds = Stream(
        cost_amounts(np.array([100, 100])), np.zeros(3, np.int64), none, none.astype(np.int32)
    )
    assert schedule(outcome([Clause(ALU, 10, (lds,))], 2)) == "0 ALU 0-100 | 1 ALU 0-200"
    late = replace(ONE, clause_overhead_clocks=7)
    assert schedule(outcome([Clause(ALU, 10, (lds,))], device=late)) == "0 ALU 0-107"


# The dispatcher (units.dispatch) and the order of clauses (units.sequencer)


def test_wavefronts_go_round_the_engines():
    result = outcome([Clause(ALU, 10)], 5, slots=1, device=replace(ONE, simd_engines=4))
    assert result.engine.tolist() == [0, 1, 2, 3, 0]


def test_a_workgroup_starts_only_when_all_its_slots_are_free():
    short, long_ = (Clause(ALU, 1),), (Clause(ALU, 10),)
    paths = [
        WavefrontPath(np.array([0, 2, 3]), ((short, 1),)),
        WavefrontPath(np.array([1]), ((long_, 1),)),
    ]
    assert run(pack(paths, 2), ONE, 2).start.tolist() == [0, 0, 80, 80]


def test_workgroups_retire_in_order_behind_a_long_one():
    paths = [
        WavefrontPath(np.array([0]), (((Clause(ALU, 10),), 1),)),
        WavefrontPath(np.arange(1, 4), (((Clause(ALU, 1),), 1),)),
    ]
    result = run(pack(paths), ONE, 2)
    assert result.end.tolist()[:2] == [80, 8] and result.start.tolist() == [0, 0, 80, 80]


def test_segments_follow_one_another_each_for_its_iterations():
    segments = (((Clause(ALU, 1), Clause(ALU, 2)), 2), ((Clause(ALU, 3),), 1))
    result = run(pack([WavefrontPath(np.arange(1), segments)]), ONE, 1)
    assert schedule(result) == "0 ALU 0-8 | 0 ALU 8-24 | 0 ALU 24-32 | 0 ALU 32-48 | 0 ALU 48-72"


# Barriers (units.sequencer)


def test_a_barrier_holds_a_workgroup_until_its_last_wavefront():
    clauses = (Clause(ALU, 10), Clause(BARRIER), Clause(ALU, 1))
    result = run(pack([WavefrontPath(np.arange(3), ((clauses, 1),))], 3), ONE, 3)
    assert result.end.tolist() == [168, 168, 176]  # the third came at 160


@pytest.mark.parametrize("bundles", [1, 100])
def test_a_workgroup_whose_wavefronts_reach_other_barriers_is_refused(bundles):
    """Whether the wavefront that reaches none ends before the others wait, or after."""
    waits = (Clause(ALU, 10), Clause(BARRIER), Clause(ALU, 1))
    paths = [
        WavefrontPath(np.array([0]), (((Clause(ALU, bundles),), 1),)),
        WavefrontPath(np.array([1, 2]), ((waits, 1),)),
    ]
    with pytest.raises(ValueError, match="workgroup 0 waits forever"):
        run(pack(paths, 3), ONE, 3)


# The texture unit (units.texture)


@pytest.mark.parametrize(
    "addresses, cost, lines",
    [
        (16 * LANES, 16, 16),  # each quad one line: float4 of consecutive work-items
        (0 * LANES, 16, 1),  # all the same line: still a clock for each quad
        (64 * LANES, 64, 64),  # four lines a quad
        (32 * (LANES % 2) + 4096 * (LANES // 2), 32, 32),  # two pairs a quad: NN's two rows of A
    ],
)
def test_a_quad_takes_a_clock_for_each_of_its_lines(addresses, cost, lines):
    made = fetch(addresses)
    assert (int(made.cost[0]), len(made.line)) == (cost, lines)


def test_work_items_that_are_not_there_take_no_clocks():
    assert int(fetch(64 * LANES, active=(LANES < 4)[np.newaxis]).cost[0]) == 4


def test_a_miss_costs_dram_and_a_line_on_its_way_is_awaited():
    one_line = fetch(0 * LANES, 2)
    result = outcome([Clause(TEX, streams=(one_line,))], 2)
    # Asked at 0, there at 300, then the other 16 quads pass; the second wavefront's data follow
    # right behind.
    assert schedule(result) == "0 TEX 0-316 | 1 TEX 16-332"
    counts = [result.counts[name] for name in ("l1_requests", "l1_misses", "l2_misses")]
    assert counts == [32, 1, 1]


def test_a_line_that_another_engine_awaits_comes_from_l2_when_it_is_there():
    clauses = [Clause(TEX, streams=(fetch(0 * LANES, 2),))]
    first, second = outcome(clauses, 2, device=replace(ONE, simd_engines=2)).end
    assert 300 < first == second


def test_the_texture_unit_serves_in_the_order_of_coming():
    clauses = [Clause(ALU, 1), Clause(TEX, streams=(fetch(0 * LANES, 3),))]
    assert [part for part in schedule(outcome(clauses, 3)).split(" | ") if "TEX" in part] == [
        "0 TEX 8-324",
        "1 TEX 24-340",
        "2 TEX 40-356",
    ]


# L2 (units.l2); DRAM by itself is in test_chip_units


@pytest.mark.parametrize("bytes_clock, clocks", [(64, 16 + 150), (16, 60 + 150 + 1)])
def test_a_slice_gives_its_lines_one_after_another(bytes_clock, clocks):
    """16 lines of one slice, which L2 has by then; at a quarter of the rate the last is sent in
    clock 60, not 15.
    """
    board = replace(ONE, l2_slice_bytes_clock=bytes_clock, l1_bytes=0)
    same = [
        byte
        for byte in range(0, 1 << 20, 256)
        if dram_location(byte // 64, address_bits(board))[0] == 0
    ]
    lines = fetch(np.array(same)[LANES // 4])
    clauses = [Clause(TEX, streams=(lines,)), Clause(ALU, 1000), Clause(TEX, streams=(lines,))]
    *_, last = outcome(clauses, device=board).timeline
    assert last[4] - last[3] == clocks


def test_latencies_of_the_three_levels():
    warm = [Clause(TEX, streams=(fetch(0 * LANES),)), Clause(ALU, 100)]
    again = schedule(outcome([*warm, Clause(TEX, streams=(fetch(0 * LANES),))])).split(" | ")[-1]
    assert again == "0 TEX 1116-1232"  # 16 + l1_clocks
    past_l1 = Clause(TEX, streams=(fetch(0 * LANES, uncached=True),))
    assert (
        schedule(outcome([*warm, past_l1])).split(" | ")[-1] == "0 TEX 1116-1282"
    )  # 16 + l2_clocks


def test_a_loop_moves_its_lines_after_every_round_of_phases():
    rows = np.stack([0 * LANES, 16 + 0 * LANES]).astype(np.int64)  # phase 0 and 1: the same line
    moving = address_stream(rows, phases=2, step=1)
    result = outcome([Clause(TEX, streams=(moving,))], repeats=6)
    assert (result.counts["l1_requests"], result.counts["l1_misses"]) == (6 * 16, 3)


# The store path (units.store_path)


def store(count):
    """Stores of 64 lines to one channel each."""
    one = replace(
        fetch(2048 * LANES, base=1 << 34, uncached=True), amounts=cost_amounts(np.array([8]))
    )
    return Clause(WRITE, streams=(one,) * count)


#: Clocks: 3.3730 for each of the lines.
STORED = pytest.approx(8 + 64 * 3.3730, abs=0.01)


def test_a_wavefront_waits_until_its_stores_are_taken():
    result = outcome([store(1)])
    assert result.end_clock == result.end[0] == STORED


def test_reads_go_before_stores_that_wait():
    read = Clause(TEX, streams=(fetch(0 * LANES, 2, base=1 << 34, uncached=True),))
    paths = [
        WavefrontPath(np.array([0]), (((store(1),), 1),)),
        WavefrontPath(np.array([1]), (((Clause(ALU, 5), read), 1),)),
    ]
    result = run(pack(paths), ONE, 2)
    assert result.end[1] == 40 + 300 + 16  # it found 64 lines to be stored and passed them
    assert result.end[0] == STORED
    assert result.end_clock == result.end[1]


def test_stores_leave_together_each_line_once_in_order():
    first, second = (fetch(4096 * (LANES % 4)[::-1] + offset) for offset in (0, 16))
    clauses = combine_stores(
        [Clause(WRITE, streams=(first,)), Clause(ALU, 1), Clause(WRITE, streams=(second,))]
    )
    assert [s.line.tolist() for c in clauses for s in c.streams] == [[], [0, 64, 128, 192]]
    assert [c.kind for c in clauses] == [WRITE, ALU, WRITE]


def test_paths_must_have_every_wavefront():
    with pytest.raises(ValueError, match="every wavefront once"):
        pack([WavefrontPath(np.array([1]), (((Clause(ALU, 1),), 1),))])
