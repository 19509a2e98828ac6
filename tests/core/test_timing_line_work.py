"""Work, line by line, is what the report's units are busy for."""

import math
import pickle
import random
from dataclasses import replace

from kept import sampled
from sampling import each_of_six, seeded

import cypresskit as ck
from cypresskit.kernels import KERNELS
from tools.fuzz import law

BOARDS = [ck.HD5870, replace(ck.HD5870, texture_banks=2, lds_banks=16), ck.HD5850]


def check_account(report):
    """The clocks of each unit that the lines ask for are those that it is busy for."""
    clocks = report.clocks * report.device.simd_engines
    for unit in ("ALU", "texture", "LDS"):
        asked = sum(line.clocks[unit] for line in report.lines)
        assert math.isclose(asked, report.busy[unit] * clocks, rel_tol=1e-9, abs_tol=1e-6)


@each_of_six
def test_the_account_balances_for_a_kernel_of_each_kind(name):
    sizes = {"k": 24} if KERNELS[name].is_vector else {"m": 130, "k": 24}
    check_account(ck.simulate(name, 72, **sizes, exact=True))


@seeded(4)
def test_the_account_balances_for_a_program_of_any_accesses_on_any_board(seed):
    rng = random.Random(seed)
    check_account(ck.simulate(law.accesses(rng), exact=True, device=rng.choice(BOARDS)))


def test_a_sampled_report_has_the_work_of_the_whole_launch():
    with sampled(effort=1e6):
        report = ck.simulate("sgemm_naive", 504, k=64)
    assert report.simulated < 1
    check_account(report)


def test_lines_have_their_source_and_what_they_request():
    report = ck.simulate("sgemm_nn", 128, k=64)
    text = KERNELS["sgemm_nn"].text.splitlines()
    for line in report.lines:
        assert line.text == text[line.line - 1].strip()
        assert bool(line.clocks["texture"]) == (
            any(line.clocks.values()) and line.text.startswith("sample")
        )
    old = [
        line for line in report.lines if " g[" in line.text and not line.text.startswith("mov g")
    ]
    assert old and not any(any(line.clocks.values()) for line in old)  # C is read only if beta != 0
    assert pickle.loads(pickle.dumps(report)).lines == report.lines


def test_the_call_of_a_macro_has_the_work_of_its_lines():
    report = ck.simulate("ddgemm_naive", 64)
    first = max(report.lines, key=lambda line: line.clocks["ALU"])
    assert first.text == "mcall(1) (r10), (r10, r20)"
