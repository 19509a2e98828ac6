"""The slice of a program: what it keeps, what it runs, and that a loop taken as a straight line is the loop."""

import numpy as np
import pytest

from cypresskit.devices import HD5870
from cypresskit.il import assemble
from cypresskit.kernels import KERNELS
from cypresskit.timing import addresses
from cypresskit.timing.addresses import Scope, walk
from cypresskit.timing.shapes import Shapes, work_items
from cypresskit.timing.slices import SliceError, find_slice

HEAD = """
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_cb cb0[1]
dcl_literal l0, 1.0, 2.0, 4.0, 0.0
dcl_literal l1, 1, 2, 3, 0
"""


def shapes(body, domain=(8, 8), constants=(0.0, 0.0, 0.0, 0.0), width=64):
    program = assemble(f"il_ps_2_0{HEAD}{body}\nend\n", "test.il")
    cb0 = np.array([constants], np.float32).view(np.uint32)
    return Shapes(program, (*domain, 1), {0: (width, 64, 16)}, {0: cb0})


def only(of, layout="linear", device=HD5870):
    ((_, scope),) = walk(of, device, np.arange(of.wavefronts), layout)
    return scope


def turns(scope, of):
    """Every turn of the only loop as {access: cost and sorted lines of each wavefront}, whatever form it has."""
    (loop,) = scope.loops.values()
    result, many = [], of.wavefronts
    for turn, times in loop:
        for n in range(times):
            accesses = {}
            for at, streams in turn.streams.items():
                for number, s in enumerate(streams):
                    entries = np.arange(many) * s.phases + n % s.phases
                    lines = [
                        np.sort(s.line[s.ptr[e] : s.ptr[e + 1]] + n // s.phases * s.step).tolist() for e in entries
                    ]
                    accesses[at, number] = (s.cost[entries].tolist(), lines)
            result.append(accesses)
    return result


@pytest.mark.parametrize("layout", ["linear", "tiled"])
@pytest.mark.parametrize("name", ["sgemm_tn", "sgemm_nn", "dgemm_nn", "ddgemm_tn_fma", "sgemm_64x64_lds"])
def test_a_loop_as_a_straight_line_is_the_loop_turn_by_turn(name, layout, monkeypatch):
    from cypresskit.timing.simulate import gemm_shapes

    of = gemm_shapes(KERNELS[name], 128, 64, 48)
    straight = only(of, layout)
    assert max(times for loop in straight.loops.values() for _, times in loop) > 4
    monkeypatch.setattr(addresses._Walk, "_countable", lambda self, at: False)
    stepped = only(of, layout)
    assert all(times == 1 for loop in stepped.loops.values() for _, times in loop)
    assert turns(straight, of) == turns(stepped, of)


def test_the_slice_has_no_data_arithmetic():
    of = shapes("""
        mov r0.xy, vWinCoord0.xy
        sample_resource(0)_sampler(0) r1, r0.xy00
        mad r2, r1, r1, r1
        add r0.x, r0.x, l0.y
        sample_resource(0)_sampler(0) r3, r0.xy00
        add r4, r2, r3
        mov g[0], r4
    """)
    chosen, _ = find_slice(of.program)
    assert {of.program.body[at].opcode: matter for at, matter in chosen.items()} == {"mov": {0, 1}, "add": {0}}


def test_a_register_used_for_an_address_first_and_for_data_later_is_no_data_address():
    find_slice(
        shapes("""
        mov r0.xy, vWinCoord0.xy
        sample_resource(0)_sampler(0) r0, r0.xy00
        mul r0, r0, r0
        mov g[0], r0
        """).program
    )


@pytest.mark.parametrize(
    "body, lines",
    [
        ("sample_resource(0)_sampler(0) r1, vWinCoord0.xy00\nsample_resource(0)_sampler(0) r2, r1.xy00\n", (8, 9)),
        ("sample_resource(0)_sampler(0) r1, vWinCoord0.xy00\nftoi r2.x, r1.x\nmov g[r2.x], r1\n", (8, 10)),
        ("mov r1, g[3]\nif_logicalnz r1.x\nmov g[0], r1\nendif\n", (8, 9)),
    ],
)
def test_addresses_and_branches_that_depend_on_data_are_refused_with_both_lines(body, lines):
    with pytest.raises(SliceError) as error:
        find_slice(shapes("\n" + body).program)
    assert f"test.il:{lines[0]}:" in str(error.value)
    assert f"the one in\ntest.il:{lines[1]}:" in str(error.value)


def test_quads_of_a_pixel_wavefront_are_two_by_two():
    ids, active = work_items(shapes("mov g[0], l0", (12, 8)), np.array([0, 1]))
    x, y = (np.floor(row.view(np.float32)).astype(int) for row in ids["vWinCoord0"][:2])
    assert list(zip(x[:4], y[:4])) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert (x[16], y[16]) == (0, 2)
    assert active.reshape(2, 64).sum(axis=1).tolist() == [64, 32]  # the second tile sticks out


def test_ids_of_a_compute_wavefront():
    program = assemble("il_cs_2_0\ndcl_num_thread_per_group 96\nmov g[0], vAbsTidFlat\nend\n", "test.il")
    of = Shapes(program, (192, 1, 1), {}, {})
    assert (of.wavefronts, of.group_wavefronts) == (4, 2)
    ids, active = work_items(of, np.array([2, 3]))
    assert ids["vAbsTidFlat"][0, :2].tolist() == [96, 97] and ids["vTidInGrpFlat"][0, 64] == 64
    assert active.sum() == 96


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
    parties = walk(of, HD5870, np.arange(2), "linear")
    assert sorted(int(p[0]) for p, _ in parties) == [0, 1]
    lengths = {int(p[0]): [n for _, n in next(iter(scope.loops.values()))] for p, scope in parties}
    # Work-items of a wavefront leave one by one: the last one, at x = 7.5 or 15.5, sets the number of turns.
    assert {w: sum(times) - 1 for w, times in lengths.items()} == {0: 8, 1: 16}


def test_branches_note_who_went_where():
    body = """
        lt r0.x, vWinCoord0.x, l0.z
        if_logicalnz r0.x
            sample_resource(0)_sampler(0) r1, vWinCoord0.xy00
        else
            sample_resource(0)_sampler(0) r1, l0.ww00
        endif
        mov g[0], r1
    """
    (choice,) = only(shapes(body)).choices.values()
    then, otherwise = choice.sides
    assert [int(next(iter(side.streams.values()))[0].cost[0]) for side in (then, otherwise)] == [16, 8]
    parties = walk(shapes(body.replace("l0.z", "cb0[0].x"), constants=(8.0, 0, 0, 0)), HD5870, np.arange(1), "linear")
    (choice,) = parties[0][1].choices.values()
    assert isinstance(choice.sides[0], Scope) and choice.sides[1] is None


def test_fetches_outside_a_texture_touch_no_line():
    scope = only(shapes("sample_resource(0)_sampler(0) r1, vWinCoord0.xy00\nmov g[0], r1", width=4))
    assert int(next(iter(scope.streams.values()))[0].ptr[-1]) == 8  # half the tile: a line for each row


def test_a_tiled_image_has_eight_rows_in_a_kilobyte():
    body = "sample_resource(0)_sampler(0) r1, vWinCoord0.xy00\nmov g[0], r1"
    lines = {layout: next(iter(only(shapes(body), layout).streams.values()))[0].line for layout in ("linear", "tiled")}
    assert sorted(lines["tiled"]) == list(range(16))
    assert sorted(lines["linear"]) == sorted(16 * y + x for y in range(8) for x in range(2))


def test_a_loop_without_end_is_told(monkeypatch):
    monkeypatch.setattr(addresses, "MOST_TURNS", 100)
    with pytest.raises(RuntimeError, match="this loop has not ended"):
        only(shapes("whileloop\nsample_resource(0)_sampler(0) r1, vWinCoord0.xy00\nendloop\nmov g[0], r1"))
