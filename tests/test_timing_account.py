"""Work, line by line, is what the report's units are busy for."""

import math
import pickle
import random
from dataclasses import replace

import numpy as np
import pytest

import cypresskit as ck
from cypresskit.compiler import compile
from cypresskit.kernels import KERNELS
from cypresskit.timing.account import lines_of_work, stream_clocks
from cypresskit.timing.work import ALU, BARRIER, TEX, Clause, Path, Stream
from tools.fuzz import law

BOARDS = [ck.HD5870, replace(ck.HD5870, texture_banks=2, lds_banks=16), ck.HD5850]


def sums(report):
    """The clocks of each unit that the lines ask for."""
    return {u: sum(line.clocks[u] for line in report.lines) for u in ("ALU", "texture", "LDS")}


def busy(report):
    clocks = report.clocks * report.device.simd_engines
    return {unit: report.busy[unit] * clocks for unit in ("ALU", "texture", "LDS")}


def lives(report):
    """The clocks that the report's wavefronts lived for."""
    _, start, end = report.use.wavefronts.T
    return (end - start).sum()


def work_and_waits(report):
    """The clocks in which its wavefronts were worked on, changed clauses, and waited."""
    launch = report.launch
    worked = 0.0
    for path in launch.walk(report.wavefronts):
        last = [clause for body, _ in path.segments for clause in body if clause.kind != BARRIER][
            -1
        ]
        for body, turns in path.segments:
            for clause in body:
                times = turns * len(path.wavefronts)
                if clause.kind == ALU:
                    clocks = clause.bundles * report.device.result_clocks
                    worked += times * (clocks + report.device.clause_clocks)
                elif clause.kind != BARRIER:
                    worked += sum(stream_clocks(stream, turns) for stream in clause.streams)
                if clause.kind != BARRIER:
                    worked += times * report.device.switch_clocks
        ended = path.segments[-1][0][-1] is last  # nothing follows it
        worked -= ended * len(path.wavefronts) * report.device.switch_clocks
    return worked + sum(sum(line.waited.values()) for line in report.lines)


def check_account(report):
    for unit, clocks in busy(report).items():
        assert math.isclose(sums(report)[unit], clocks, rel_tol=1e-9, abs_tol=1e-6)
    for kind in ("DRAM", "written"):
        moved = sum(line.bytes[kind] for line in report.lines)
        assert math.isclose(moved, report.bytes[kind], rel_tol=1e-9, abs_tol=1e-6)
    assert math.isclose(work_and_waits(report), lives(report), rel_tol=1e-9)
    assert min(min(line.waited.values()) for line in report.lines) >= -1e-6


@pytest.mark.parametrize("name", list(KERNELS))
def test_the_account_balances_for_every_kernel(name):
    sizes = {"k": 24} if KERNELS[name].vector else {"m": 130, "k": 24}
    check_account(ck.simulate(name, 72, **sizes, exact=True))


@pytest.mark.parametrize("seed", range(12))
def test_the_account_balances_for_a_program_of_any_accesses(seed):
    shape = law.accesses(random.Random(seed))
    check_account(ck.simulate(shape.program, launch=shape, exact=True))


@pytest.mark.parametrize("layout", ["linear", "tiled"])
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: f"{board.name} {board.lds_banks}")
def test_the_account_balances_on_every_board_and_layout(board, layout):
    for name in ("sgemm_nn", "sgemm_64x64_lds", "dgemm_tn"):
        check_account(ck.simulate(name, 136, device=board, layout=layout, exact=True))


def test_a_sampled_report_has_the_work_of_the_whole_launch():
    report = ck.simulate("sgemm_tn", 1536)
    assert report.simulated < 1
    for unit, clocks in busy(report).items():
        assert math.isclose(sums(report)[unit], clocks, rel_tol=1e-9, abs_tol=1e-6)
    for kind in ("DRAM", "written"):
        moved = sum(line.bytes[kind] for line in report.lines)
        assert math.isclose(moved, report.bytes[kind], rel_tol=1e-6)


def test_lines_say_how_often_wavefronts_ran_them_and_what_for():
    report = ck.simulate("sgemm_nn", 128, k=64)
    text = KERNELS["sgemm_nn"].text.splitlines()
    for line in report.lines:
        assert line.text == text[line.line - 1].strip()
        if line.runs:
            assert bool(line.clocks["texture"]) == line.text.startswith("sample")
    turns = max(line.runs for line in report.lines)
    assert turns % report.wavefronts == 0
    assert min(line.runs for line in report.lines if line.runs) == report.wavefronts
    old = [
        line for line in report.lines if " g[" in line.text and not line.text.startswith("mov g")
    ]
    assert old and not any(line.runs for line in old)  # C is read only if beta isn't 0
    assert pickle.loads(pickle.dumps(report)).lines == report.lines


def test_a_stream_costs_what_its_phases_do_in_turn():
    none = np.zeros(0, np.int64)
    costs = Stream(np.array([1, 10, 2, 20]), np.zeros(5, np.int64), none, none, phases=2)
    program = KERNELS["sgemm_nn"].program
    (fetch, *_) = [at for at, i in enumerate(program.body) if i.op.kind == "fetch"]
    clause = Clause(TEX, 0, (costs,), sources=(fetch,))
    path = Path(np.arange(2), (((clause,), 3),))
    (line,) = [line for line in lines_of_work(compile(program), [path], 4) if line.runs]
    assert line.clocks["texture"] == (1 + 10 + 1) + (2 + 20 + 2)
    assert line.runs == 6
