"""What one could do next: each step's figures are the report's, and its lines do what it says."""

import re
from dataclasses import replace

import pytest

import cypresskit as ck
from cypresskit.editing import dynamic_answers
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.editing.suggestions import (
    _room_for_one_more,
    bottleneck,
    suggest,
)
from cypresskit.timing.launch_time import bound

NAMES = ("sgemm_naive", "sgemm_nn", "sgemm_tn", "sgemm_64x64_lds", "sgemv_n", "dgemm_tn")
N = 256


def report_of(name):
    kernel = ck.kernels[name]
    return ck.simulate(kernel, 1 if kernel.is_vector else N, m=N, k=N)


@pytest.mark.parametrize("name", NAMES)
def test_each_step_is_about_lines_of_the_text_that_do_something(name):
    kernel = ck.kernels[name]
    lines = {i.line: i for i in kernel.program.body}
    steps = suggest(report_of(name), kernel)
    assert steps or name == "sgemv_n"
    for step in steps:
        assert set(step.lines) <= set(lines)
        if "fetch" in step.text.lower() and len(step.lines) > 1:
            assert {lines[n].op.kind for n in step.lines} == {"fetch"}


UNITS = ("ALU", "texture", "LDS", "L2", "DRAM", "DRAM rows")
IDLE = dict.fromkeys(UNITS, 0.1)
BOUNDS = {
    **{unit: bound(IDLE | {unit: 0.9}, 0.5, 2.0) for unit in UNITS},
    "DRAM channel": bound(IDLE, 0.5, 2.0, [(0.1, 0.1), (0.9, 0.1)]),
    "DRAM rows of channel": bound(IDLE, 0.5, 2.0, [(0.1, 0.1), (0.4, 0.5)]),
    "latency": bound(IDLE, 1.0, 2.0),
    "tail": bound(IDLE, 0.5, 2.0),
    "too few wavefronts": bound(IDLE, 0.5, 0.5),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_each_bound_has_its_help_and_rules(name):
    """In the report's own words, some with a channel's number."""
    assert BOUNDS[name].startswith(name)
    words, rules = bottleneck(BOUNDS[name])
    assert " would " in words and rules
    assert ("rows of memory" in words) == ("rows" in name)


@pytest.mark.parametrize("name", NAMES)
def test_dear_accesses_have_the_clocks_of_the_account(name):
    kernel, report = ck.kernels[name], report_of(name)
    for step in suggest(report, kernel):
        seen = re.match(r"A fetch here takes ([\d.]+) clocks, elsewhere ([\d.]+)", step.text)
        if seen is None:
            continue
        clocks = {w.line: w.clocks["texture"] / w.runs for w in report.lines if w.runs}
        assert max(clocks[line] for line in step.lines) == pytest.approx(float(seen[1]), rel=1e-2)
        least = min(value for value in clocks.values() if value)
        assert least == pytest.approx(float(seen[2]), rel=1e-2)
        assert all(clocks[line] > least for line in step.lines)


SOME = ["sgemm_tn", "block_8x8"]
OTHERS = ["sgemm_nn", "start 12"]


@pytest.mark.parametrize(
    "name", SOME + [pytest.param(name, marks=pytest.mark.slow) for name in OTHERS]
)
def test_wavefronts_that_would_make_a_launch_slower_are_never_advised(name):
    """The same code on chips whose registers hold from 5 to 12 wavefronts of it."""
    step = STEPS[name.removeprefix("start ")] if name.startswith("start") else None
    kernel = (
        ck.load_kernel(step.starter, like=reference_kernel(step.like))
        if step
        else reference_kernel(name)
    )
    gprs = ck.simulate(kernel, N).registers
    reports = {}
    for active in range(5, 13):
        board = replace(ck.HD5870, register_pool=active * gprs)
        reports[active] = ck.simulate(kernel, 1024, device=board, progress=False)
    for report in reports.values():
        step = _room_for_one_more(report, kernel)
        if step is None:
            continue
        more = int(re.search(r"would allow (\d+)", step.text)[1])
        if more in reports:
            assert reports[more].clocks <= 1.01 * report.clocks, step.text


@pytest.mark.parametrize("name", ["dgemm_tn", "dgemm_nn"])
def test_a_product_that_is_done_in_part_is_not_timed(name):
    """And the reader isn't told to look at what only the caller of the model gives."""
    kernel = ck.kernels[name]
    lines = [n for n, i in enumerate(kernel.program.lines) if re.match(r"\s*d?mad r[3-9]", i)]
    left = [text for n, text in enumerate(kernel.program.lines) if n not in lines[2:]]
    mine = ck.load_kernel("\n".join(left), like=kernel)
    with pytest.raises(ValueError, match="leaves out some of the products") as error:
        dynamic_answers.report_at(mine, 1024)
    assert "flops, or" not in str(error.value)


def test_a_naive_kernel_is_led_to_texels_and_blocks_and_a_large_block_is_not():
    naive = [step.text for step in suggest(report_of("sgemm_naive"), ck.kernels["sgemm_naive"])]
    assert any("could return 4" in text for text in naive)
    assert any("each of B once" in text for text in naive)
    block = [step.text for step in suggest(report_of("sgemm_nn"), ck.kernels["sgemm_nn"])]
    assert not any("could return" in text or "larger block" in text for text in block)


@pytest.mark.parametrize("kept", ["xy", "xyzw"])
def test_of_components_that_have_no_room_it_says_what_they_must_be(kept):
    """And not once more that all of the texel is to be stored."""
    text = ck.kernels["sgemm_naive"].text
    text = text.replace("mov o0.x, r10.x", f"mov o0.{kept}, r10.{kept}")
    mine = dynamic_answers.judged_kernel(text, "mine.il", "sgemm_naive").kernel
    steps = suggest(ck.simulate(mine, N), mine)
    (step,) = (step for step in steps if "must be a sum of its own" in step.text)
    lost = ", ".join(f"o0.{component}" for component in kept[1:])
    assert step.text.startswith(f"Writing {lost} is not enough")
    assert [mine.program.lines[line - 1].split()[1] for line in step.lines] == [f"o0.{kept},"]
    assert not any("could return" in step.text for step in steps)


@pytest.mark.parametrize(
    ("row", "added", "problem"), [(10**6, "", "no element"), (0, "mov g[0], r0\n", "global memory")]
)
def test_why_an_element_has_no_terms_is_said_in_a_line(row, added, problem):
    text = ck.kernels["sgemm_naive"].text.replace("endmain", f"{added}endmain")
    seen = ck.verify(ck.load_kernel(text, like="sgemm_naive"))
    answer = dynamic_answers.replay_answer(seen, None, row, 0)
    assert problem in answer["problem"] and len(answer["problem"].splitlines()) == 1
