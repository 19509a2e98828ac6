"""Compiled code walked without data: its addresses, what it refuses, and that a counted loop is the
loop.
"""

from dataclasses import fields, replace

import numpy as np
import pytest

from cypresskit.compiler import compile
from cypresskit.devices import HD5870, Device
from cypresskit.il import assemble
from cypresskit.kernels import KERNELS
from cypresskit.machine import shape
from cypresskit.machine.shape import Extent, Shape
from cypresskit.timing import DataDependentError, loops, walk
from cypresskit.timing.surfaces import READ, Surfaces
from cypresskit.timing.work import KINDS

HEAD = """
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_cb cb0[1]
dcl_literal l0, 1.0, 2.0, 4.0, 0.0
dcl_literal l1, 1, 2, 3, 0
"""

FETCH = "sample_resource(0)_sampler(0)"


def shapes(body, domain=(8, 8), constants=(0.0, 0.0, 0.0, 0.0), width=64):
    program = assemble(f"il_ps_2_0{HEAD}{body}\nend\n", "test.il")
    cb0 = np.array([constants], np.float32).view(np.uint32)
    return Shape(program, (*domain, 1), {0: Extent(width, 64, 16)}, {0: cb0})


def paths(of, layout="linear", code=None):
    code = code or compile(of.program)
    walk._walks.clear()
    return walk.walk(code, Surfaces(of, HD5870, layout), np.arange(of.wavefronts))


def streams(of, layout="linear"):
    """The streams of the only path's TEX clauses."""
    (path,) = paths(of, layout)
    return [
        s for body, _ in path.segments for c in body if KINDS[c.kind] == "TEX" for s in c.streams
    ]


def unrolled(path):
    """Every clause of a path with the cost and sorted lines of each access and wavefront, whatever
    form it has.
    """
    result = []
    for body, times in path.segments:
        for n in range(times):
            for clause in body:
                accesses = []
                for s in clause.streams:
                    entries = np.arange(len(path.wavefronts)) * s.phases + n % s.phases
                    lines = [
                        np.sort(s.line[s.ptr[e] : s.ptr[e + 1]] + n // s.phases * s.step).tolist()
                        for e in entries
                    ]
                    accesses.append((s.cost[entries].tolist(), lines))
                result.append((clause.kind, clause.bundles, accesses))
    return result


@pytest.mark.parametrize("layout", ["linear", "tiled"])
@pytest.mark.parametrize(
    "name", ["sgemm_tn", "sgemm_nn", "dgemm_nn", "ddgemm_tn_fma", "sgemm_64x64_lds"]
)
def test_a_counted_loop_is_the_loop_turn_by_turn(name, layout, monkeypatch):
    of = KERNELS[name].shape(128, 64, 48, 1.0, 0.0, 1)
    (counted,) = paths(of, layout)
    assert max(times for _, times in counted.segments) > 4
    monkeypatch.setattr(walk, "can_count", lambda code, start: False)
    (stepped,) = paths(of, layout)
    assert all(times == 1 for _, times in stepped.segments)
    assert unrolled(counted) == unrolled(stepped)


# a loop's start, its step, its test: of x in l0 and r0, which are floats, or l1, which are integers
COUNTERS = {
    "up": ("mov r0.x, l0.w", "add r0.x, r0.x, l0.x", "ge r1.x, r0.x, l2.x"),
    "down": ("mov r0.x, l2.x", "sub r0.x, r0.x, l0.x", "ge r1.x, l0.w, r0.x"),
    "by two": ("mov r0.x, l0.w", "add r0.x, r0.x, l0.y", "ge r1.x, r0.x, l2.x"),
    "until equal": ("mov r0.x, l0.w", "add r0.x, r0.x, l0.x", "eq r1.x, r0.x, l2.x"),
    "while equal": ("mov r0.x, l0.w", "add r0.x, r0.x, l0.x", "ne r1.x, r0.x, l0.w"),
    "halves": ("mov r0.x, l0.w", "add r0.x, r0.x, l2.y", "lt r1.x, l2.x, r0.x"),
    "thirds": ("mov r0.x, l0.w", "add r0.x, r0.x, l2.z", "ge r1.x, r0.x, l2.x"),
    "times two": ("mov r0.x, l0.x", "mul r0.x, r0.x, l0.y", "ge r1.x, r0.x, l2.x"),
    "unsigned": ("mov r0.x, l0.w", "add r0.x, r0.x, l0.x", "ftou r1.x, r0.x\nult r1.x, l3.x, r1.x"),
    "through the texture": ("mov r0.x, l4.x", "add r0.x, r0.x, l4.y", "ge r1.x, r0.x, l4.z"),
    "to -infinity": (
        "mov r0.x, l0.w",
        "add r0.x, r0.x, l0.x",
        "breakc_relop(ge) r0.x, l3.y\nge r1.x, r0.x, l2.x",
    ),
}


@pytest.mark.parametrize("counter", COUNTERS)
def test_every_kind_of_counter_takes_its_turns(counter, monkeypatch):
    start, step, test = COUNTERS[counter]
    of = shapes(
        f"""
        dcl_literal l2, 20.0, 0.5, 0.3, 0.0
        dcl_literal l3, 20, 0xFF800000, 0, 0
        dcl_literal l4, -20.0, 10.0, 100.0, 0.0
        {start}
        whileloop
            {test}
            break_logicalnz r1.x
            sample_resource(0)_sampler(0) r2, r0.x0
            add r3, r3, r2
            {step}
        endloop
        mov g[0], r3
    """.replace("r0.x0", "r0.xx00")
    )
    (counted,) = paths(of)
    at_once = ("while equal", "to -infinity")
    stepped_too = (
        *at_once,
        "halves",
        "thirds",
        "times two",
        "through the texture",
    )  # half texels, inexact, not affine
    assert counter in stepped_too or max(times for _, times in counted.segments) > 4
    monkeypatch.setattr(walk, "can_count", lambda code, start: False)
    (stepped,) = paths(of)
    assert unrolled(counted) == unrolled(stepped)


def test_what_a_loop_leaves_behind_is_an_address(monkeypatch):
    """Values of the last turn and of the counter, one of them (a square) no affine function of the
    turn.
    """
    of = shapes("""
        mov r0.x, l0.w
        whileloop
            ge r1.x, r0.x, l0.z
            break_logicalnz r1.x
            sample_resource(0)_sampler(0) r2, r0.xx00
            mul r5.x, r0.x, r0.x
            add r4.x, r0.x, l0.y
            add r0.x, r0.x, l0.x
        endloop
        mov r4.y, r5.x
        sample_resource(0)_sampler(0) r3, r4.xy00
        sample_resource(0)_sampler(0) r2, r0.xx00
        add r3, r3, r2
        mov g[0], r3
    """)
    (counted,) = paths(of)
    monkeypatch.setattr(walk, "can_count", lambda code, start: False)
    assert unrolled(counted) == unrolled(paths(of)[0])


def test_data_arithmetic_is_no_address():
    body = """
        mov r0.xy, vWinCoord0.xy
        sample_resource(0)_sampler(0) r1, r0.xy00
        mad r2, r1, r1, r1
        add r0.x, r0.x, l0.y
        sample_resource(0)_sampler(0) r3, r0.xy00
        add r4, r2, r3
        mov g[0], r4
    """
    assert len(streams(shapes(body))) == 2


def test_a_register_used_for_an_address_first_and_for_data_later_is_no_data_address():
    body = f"mov r0.xy, vWinCoord0.xy\n{FETCH} r0, r0.xy00\nmul r0, r0, r0\nmov g[0], r0"
    assert len(streams(shapes(body))) == 1


def test_data_of_some_lanes_are_no_address_of_others():
    body = """
        mov r0.xy, vWinCoord0.xy
        lt r1.x, vWinCoord0.x, l0.z
        if_logicalnz r1.x
            sample_resource(0)_sampler(0) r0, r0.xy00
        endif
        {test}
            sample_resource(0)_sampler(0) r2, r0.xy00
        endif
        add r2, r2, r0
        mov g[0], r2
    """
    assert len(streams(shapes(body.format(test="if_logicalz r1.x")))) == 2
    with pytest.raises(DataDependentError, match=r"(?s)test\.il:11: .*the one in\ntest\.il:14: "):
        streams(shapes(body.format(test="if_logicalnz r1.x")))


@pytest.mark.parametrize(
    "body, lines",
    [
        (f"{FETCH} r1, vWinCoord0.xy00\n{FETCH} r2, r1.xy00\nmov g[0], r2\n", (8, 9)),
        (f"{FETCH} r1, vWinCoord0.xy00\nftoi r2.x, r1.x\nmov g[r2.x], r1\n", (8, 10)),
        ("mov r1, g[3]\nif_logicalnz r1.x\nmov g[0], r1\nendif\n", (8, 9)),
        (
            (
                "mov r1, g[3]\nwhileloop\nbreak_logicalnz r1.x\nmov g[0], r1\nadd r1.x, r1.x,"
                " l0.x\nendloop\n"
            ),
            (8, 10),
        ),
    ],
)
def test_addresses_and_branches_that_depend_on_data_are_refused_with_both_lines(body, lines):
    with pytest.raises(DataDependentError) as error:
        streams(shapes("\n" + body))
    assert f"test.il:{lines[0]}:" in str(error.value)
    assert f"the one in\ntest.il:{lines[1]}:" in str(error.value)


def test_quads_of_a_pixel_wavefront_are_two_by_two():
    of = shapes("mov g[0], l0", (12, 8))
    first, second, active = shape.lanes(of, np.arange(2))
    registers = shape.input_registers(of, first, second)
    x, y = (np.floor(row.view(np.float32)).astype(int) for row in registers["vWinCoord0"][:2])
    assert list(zip(x[:4], y[:4])) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert (x[16], y[16]) == (0, 2)
    assert active.reshape(2, 64).sum(axis=1).tolist() == [64, 32]  # the second tile sticks out


def test_wavefronts_that_take_different_ways_are_walked_apart():
    of = shapes(
        """
        lt r0.x, vWinCoord0.x, l0.z
        add r1.x, vWinCoord0.x, l0.z
        flr r1.x, r1.x
        itof r2.x, l1.w
        whileloop
            ge r3.x, r2.x, vWinCoord0.x
            break_logicalnz r3.x
            sample_resource(0)_sampler(0) r4, r2.xx00
            add r2.x, r2.x, l0.x
        endloop
        mov g[0], r4
        """,
        (16, 8),
    )
    # Work-items of a wavefront leave one by one: the last one, at x = 7.5 or 15.5, sets the number
    # of turns.
    fetches = {
        int(p.wavefronts[0]): [c for c in unrolled(p) if KINDS[c[0]] == "TEX"] for p in paths(of)
    }
    assert {w: len(turns) for w, turns in fetches.items()} == {0: 8, 1: 16}


def test_both_sides_of_a_branch_are_taken_by_who_goes_there():
    body = """
        lt r0.x, vWinCoord0.x, l0.z
        if_logicalnz r0.x
            sample_resource(0)_sampler(0) r1, vWinCoord0.xy00
        else
            sample_resource(0)_sampler(0) r1, l0.ww00
        endif
        mov g[0], r1
    """
    assert [int(s.cost[0]) for s in streams(shapes(body))] == [16, 8]
    everybody = shapes(body.replace("l0.z", "cb0[0].x"), constants=(8.0, 0, 0, 0))
    assert [int(s.cost[0]) for s in streams(everybody)] == [32]


def test_fetches_outside_a_texture_touch_no_line():
    (fetch,) = streams(
        shapes("sample_resource(0)_sampler(0) r1, vWinCoord0.xy00\nmov g[0], r1", width=4)
    )
    assert int(fetch.ptr[-1]) == 8  # half the tile: a line for each row


def test_a_tiled_image_has_eight_rows_in_a_kilobyte():
    body = "sample_resource(0)_sampler(0) r1, vWinCoord0.xy00\nmov g[0], r1"
    lines = {layout: streams(shapes(body), layout)[0].line for layout in ("linear", "tiled")}
    assert sorted(lines["tiled"]) == list(range(16))
    assert sorted(lines["linear"]) == sorted(16 * y + x for y in range(8) for x in range(2))
    (below,) = streams(shapes(body, (8, 16), width=60), "tiled")
    assert sorted(below.line) == [
        *range(16),
        *range(128, 144),
    ], "a row of eight tiles, of which the last is cut"


@pytest.mark.parametrize("step", ["add r0.x, r0.x, l0.w", "mul r0.x, r0.x, l0.x"])
def test_a_loop_without_end_is_an_error(step, monkeypatch):
    monkeypatch.setattr(loops, "MOST_TURNS", 100)
    monkeypatch.setattr(walk, "MOST_TURNS", 100)
    fetch = "sample_resource(0)_sampler(0) r1, vWinCoord0.xy00"
    body = (
        "mov r0.x, l0.w\nwhileloop\nge r2.x, r0.x, l0.x\nbreak_logicalnz"
        f" r2.x\n{fetch}\n{step}\nendloop\nmov g[0], r1"
    )
    with pytest.raises(
        RuntimeError, match=r"test\.il:9: whileloop\n +this loop has not ended after 100 turns"
    ):
        paths(shapes("\n" + body))


@pytest.mark.parametrize("name", ["sgemm_tn", "sgemm_64x64_lds", "dgemm_tn_buffer"])
@pytest.mark.parametrize("layout", ["linear", "tiled"])
def test_what_a_walk_reads_of_a_board_is_listed(name, layout):
    """Boards that differ in anything else share a walk; of others each has its own."""
    read = set()

    class Watched(Device):
        def __getattribute__(self, field):
            read.add(field)
            return super().__getattribute__(field)

    device = Watched(**{field.name: getattr(HD5870, field.name) for field in fields(Device)})
    shape, code = KERNELS[name].shape(64, 64, 64, 1.0, 0.5, 1), compile(KERNELS[name].program)
    read.clear()
    walk._walked(code, Surfaces(shape, device, layout), np.arange(shape.wavefronts))
    assert read & {field.name for field in fields(Device)} <= {*READ, "name"}


def test_walks_are_shared_by_boards_that_look_alike_to_them():
    shape, code = (
        KERNELS["sgemm_tn"].shape(128, 128, 64, 1.0, 0.5, 1),
        compile(KERNELS["sgemm_tn"].program),
    )
    beta = KERNELS["sgemm_tn"].shape(128, 128, 64, 1.0, 0.0, 1)
    boards = (
        HD5870,
        replace(HD5870, dram_clocks=900),
        replace(HD5870, texture_banks=8),
        HD5870,
        HD5870,
    )
    one, *others = (
        walk.walk(code, Surfaces(of, board, "linear"), np.arange(count))
        for board, of, count in zip(boards, [shape] * 4 + [beta], (4, 4, 4, 2, 4))
    )
    assert [other is one for other in others] == [True, False, False, False]
