"""The timing model as a whole: what bounds a kernel, what-if boards, reports."""

import re
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from kernel_texts import TEXTURE, pixel
from sampling import ROWS, drawn_by_day, from_rows

import cypresskit as ck
from cypresskit import published
from cypresskit.devices import HD5870, HD5970
from cypresskit.host.rates import kernel_rate
from cypresskit.il import assemble
from cypresskit.kernels import KERNELS
from cypresskit.kernels.own import load_kernel as own_kernel
from cypresskit.machine.launch import prepare
from cypresskit.machine.shape import LaunchShape
from cypresskit.timing import simulate

UNNORMALIZED, FETCH = TEXTURE.format(0), "sample_resource(0)_sampler(0)"
FEW = "too few wavefronts"


def test_what_bounds_kernels():
    found = {
        name: simulate(name, 1024, k=512).bound for name in ("dgemm_nn", "dgemm_tn", "sgemm_64x64")
    }
    assert found == {"dgemm_nn": "texture", "dgemm_tn": "ALU", "sgemm_64x64": "texture"}


def test_one_wavefront_by_hand():
    """One TEX clause and ALU bundles of one wavefront: the sum of what each takes, on a board
    without surprises.
    """
    program = pixel(UNNORMALIZED, f"{FETCH} r0, vWinCoord0.xy00", "add r1, r0, r0", "mov o0, r1")
    zeros = np.zeros((8, 8, 4), np.float32)
    launch = prepare(program, (8, 8), inputs={0: zeros}, outputs={0: zeros.copy()})
    board = replace(HD5870, clause_switch_clocks=0, clause_overhead_clocks=0, dram_row_clocks=0)
    report = simulate(launch.shape, device=board)
    fetch = next(e for e in report.timeline if e.kind == "TEX")
    # The two rows of a quad are of 8 texels, so that they lie in the same banks: 2 clocks for each
    # of 16 quads.
    assert fetch.end - fetch.start == pytest.approx(board.dram_clocks + 32, abs=8 * 3.37)  # lines
    assert (
        report.bytes["L1"] == 64 * 16 and report.bytes["DRAM"] == 16 * 64 == report.bytes["written"]
    )
    assert report.gflops == 0 and report.wavefronts == 1


@from_rows(drawn=6)
def test_what_if_boards_go_the_way_they_must(kernel, change, faster):
    usual, other = (
        simulate(kernel, 1024, k=512, device=board) for board in (HD5870, replace(HD5870, **change))
    )
    assert (
        (other.seconds < 0.99 * usual.seconds) if faster else (other.seconds > 1.01 * usual.seconds)
    )


def seconds(kernel, board):
    return simulate(kernel, 512, k=256, device=board).clocks / board.clock_ghz


@drawn_by_day(
    ("kernel", "changes"),
    product(["sgemm_tn", "dgemm_nn"], ROWS["test_timing"]["growing_boards"]),
    6,
)
def test_more_of_anything_is_never_slower(kernel, changes):
    times = [seconds(kernel, replace(HD5870, **change)) for change in changes]
    for less, more in pairwise(times):
        assert more <= 1.05 * less, times  # the order of events shifts a little with every change


@pytest.mark.parametrize("engines", [1, 2, 3, 4, 5, 9])
def test_report_and_limits_agree_on_too_few_wavefronts(engines):
    """Four wavefronts, of which the first runs longest: four engines are filled exactly."""
    board = replace(HD5870, simd_engines=engines, max_wavefronts=1)
    program = pixel(
        """
            dcl_literal l0, 8.0, 1.0, 300.0, 0
            lt r0.x, vWinCoord0.x, l0.x
            cmov_logical r0.y, r0.x, l0.z, l0.y
            mov r1, l0.w
            whileloop
            ge r0.z, r1.x, r0.y
            break_logicalnz r0.z
            add r1.x, r1.x, l0.y
            endloop
            mov o0, r1.x
        """
    )
    report = simulate(LaunchShape(program, (32, 8)), device=board)
    assert report.active_wavefronts == 1 and report.wavefronts == 4
    assert report.bound == ("latency" if engines < 2 else "tail" if engines <= 4 else FEW)
    assert ck.what_if(report)["empty wavefront slots"].lesson == ("08" if engines > 4 else "00")


def test_a_channel_that_is_busy_while_others_wait_is_named():
    text = """il_cs_2_0
    dcl_num_thread_per_group 64
    dcl_literal l0, 7, 0, 0, 0
    ishl r0.x, vAbsTidFlat.x, l0.x
    mov r1, g[r0.x]
    mov g[r0.x], r1
    end"""
    program = assemble(text)  # 2 KB from one work-item's place to the next: all on one channel
    report = simulate(LaunchShape(program, (64 * 200, 1, 1)))
    assert report.bound in ("DRAM channel 0", "DRAM rows of channel 0"), report
    assert report.busy["DRAM"] < 0.2


@pytest.mark.parametrize("n", [512, 1000])
@pytest.mark.parametrize("kernel", ["dgemm_nn_buffer", "dgemm_tn_buffer", "sgemm_nn_buffer"])
def test_of_dram_and_its_rows_the_one_is_named_that_costs_more(kernel, n):
    """Kernels that read A without a cache, some from all channels and some from one after
    another.
    """
    without = {"DRAM": {"memory_gb_s": 1e5}, "DRAM rows": {"dram_row_clocks": 0}}
    gains = {
        name: simulate(kernel, n, k=128, device=replace(HD5870, **change)).gflops
        for name, change in without.items()
    }
    named = simulate(kernel, n, k=128).bound
    assert named.startswith("DRAM"), named
    costs_more = max(gains, key=gains.get)
    assert named.startswith("DRAM rows") == (costs_more == "DRAM rows"), (named, gains)


@pytest.mark.parametrize(
    "name", ["sgemm_tn", "dgemm_nn_buffer", "dgemm_tn_stream_2x8", "sgemm_64x64_lds"]
)
def test_a_kernel_that_leaves_out_products_is_not_timed(name):
    """A loop that ends early takes less time, but its C is wrong."""
    text = ck.kernels[name].text
    bound = re.search(r"ge (\S+), (\S+), cb0\[0\].z", text)
    less = f"mov r99.x, l99.x\nmin r99.x, r99.x, cb0[0].z\nge {bound[1]}, {bound[2]}, r99.x"
    for most in (512, 1000):
        literal = f"dcl_literal l99, {most}.0, 0.0, 0.0, 0.0\n"
        short = text.replace(bound[0], less).replace("dcl_literal", f"{literal}dcl_literal", 1)
        kernel = ck.load_kernel(short, like=name)
        assert ck.verify(kernel)
        assert simulate(kernel, 192, k=512).gflops
        with pytest.raises(ValueError, match=r"makes at most \S+ % of them") as error:
            simulate(kernel, 192, k=1024)
        share = float(re.search(r"most (\S+) %", str(error.value))[1])
        assert most / 10.24 <= share < min(most / 10.24 + 1.5, 100)


def test_a_kernel_without_its_fetches_is_timed():
    """Lesson 04 deletes them. Multiplications by constants are as many."""
    text = ck.kernels["sgemm_naive"].text
    fetches = re.findall(r"(?m)^.*sample_resource\([01]\).*$", text)
    for one in fetches:
        text = text.replace(one, "", 1)
    assert len(fetches) == 2 and simulate(text, 64).gflops


def test_a_kernel_of_floats_that_sums_in_double_is_timed():
    text = ck.kernels["sgemm_naive"].text
    product = re.search(r"mad (r10).x, (\S+), (\S+), r10.x", text)
    wide = (
        f"f2d r30.xy, {product[2]}\nf2d r31.xy, {product[3]}\ndmad r32.xy, r30.xy, r31.xy, r32.xy"
    )
    text = text.replace(product[0], wide, 1).replace("whileloop", "mov r32, r10\nwhileloop", 1)
    mine = ck.load_kernel(
        text.replace("endloop", "endloop\nd2f r10.x, r32.xy", 1), like="sgemm_naive"
    )
    assert ck.verify(mine)
    assert simulate(mine, 128).gflops


def test_a_report_prints_its_error_unless_it_is_0():
    steady_report = simulate("sgemm_tn", 512)
    assert "±" not in str(steady_report) + steady_report.speed
    for error, shown in ((0.0004, 1), (0.02, 2), (0.0201, 3)):
        assert f" ± {shown} % Gflop/s" in str(replace(steady_report, error=error))
    report = replace(steady_report, error=0.184, simulated=0.1)
    assert f"{report.clocks:,.0f} ± 19 % clocks" in str(report)
    assert f" {report.gflops:,.0f} ± 19 % Gflop/s" in str(report)


#: What the figures that they are calibrated on allow, as docs/model.md says.
LEFT_OPEN = {"dram_clocks": (300, 380), "clause_overhead_clocks": (4, 7)}


@pytest.mark.nightly
def test_what_is_left_open_is_what_the_evidence_allows(monkeypatch):
    """Within 5 % of its rows at both ends."""
    options = published.conditions("dgemm_tn").options

    def errors(name, value):
        boards = [replace(board, **{name: value}) for board in (HD5870, HD5970)]
        if name == "dram_clocks":
            speeds = [
                simulate(kernel, 2048, device=boards[0], **options).gflops
                for kernel in ("sgemm_tn", "sgemm_tn_37")
            ]
            return [speeds[0] / speeds[1] / 1.3 - 1]
        unit = kernel_rate("dgemm_tn", 2048, 2048, 4096, boards[1]) / HD5970.double_gflops / 1e9
        speed = simulate("dgemm_tn", 1664, device=boards[0], **options).gflops
        return [speed / 472 - 1, unit / 0.94 - 1]

    for name, two in LEFT_OPEN.items():
        for value in two:
            assert max(map(abs, errors(name, value))) < 0.05, (name, value)


def test_other_lines_of_the_same_program_are_seen_anew():
    text = KERNELS["sgemm_tn_stream"].text
    header, body = text.split("\n", 1)
    first, second = (
        simulate(own_kernel(source, like="sgemm_tn_stream"), 192)
        for source in (text, f"{header}\n; a comment\n{body}")
    )
    assert [line.line + 1 for line in first.lines] == [line.line for line in second.lines]
    assert [line.clocks for line in first.lines] == [line.clocks for line in second.lines]
