"""What is said of the place of an access outside or of a race, and of a sum's way to its store."""

import random
import re

import numpy as np
import pytest
import test_editing_alike as alike

from cypresskit.diagnosis.verification import verify
from cypresskit.editing import changed_lines
from cypresskit.editing.changed_lines import find_changed_fault, lead_to_fault, trace_wrong
from cypresskit.editing.dynamic_answers import judged_kernel
from cypresskit.editing.steps import STEPS
from cypresskit.kernels.catalogue import KERNELS
from cypresskit.kernels.own import load_kernel

ROW = "    ; row 1: your line goes below this one\n"
RIGHT = {
    "01a": STEPS["01a"].starter.replace(ROW, f"{ROW}    mad r11.xy__, r2.y, r3, r11\n"),
    "07": alike.RIGHT["07"],
}
ENDS = "mov o1.xy__, r11"


def judged(step: str, text: str):
    """What verifies a step's text, and the trace of its incorrect element."""
    chosen = STEPS[step]
    seen = judged_kernel(text, chosen.file, chosen.like, scales=chosen.scales)
    return seen, trace_wrong(seen)


#: A step, and a mistake in its right text: what is replaced by what, and what is said.
MISTAKES = {
    "first k": (
        "01a",
        ("mov r0.z, l0.y", "mov r0.z, l0.z"),
        "The first k that is added is 1: see line 11.",
    ),
    "number": ("01a", (ENDS, "add o1.xy__, r11, l0.z"), "is from no matrix: see line 26."),
    "first value": ("01a", ("mov r11, l0.y", "mov r11, l0.z"), "is from no matrix: see line 13."),
    "zeroed": ("01a", (ENDS, "mul o1.xy__, r11, l0.y"), "which line 26 multiplies by l0.y = 0."),
    "in its place": ("01a", (ENDS, "mov o1.xy__, l0.y"), "into r11.x, but line 26 stores l0.y."),
    "alien sum": (
        "01a",
        (ENDS, "add o1.xy__, r11, r10"),
        "Line 26 takes a sum that doesn't belong",
    ),
    "a sum multiplied": (
        "01a",
        ("mad r11.xy__, r2.y, r3, r11", "mad r11.xy__, r2.y, r10, r11"),
        "Line 22 multiplies by r10.x, which is no number of A or B: line 20 computes it.",
    ),
    "scaled twice": (
        "01a",
        ("    mad r11.xy__, r2.y, r3", "    add r4, r3, r3\n    mad r11.xy__, r2.y, r4"),
        "Line 23 multiplies by r4.x, which is no number of A or B: line 22 computes it.",
    ),
    "scaled": (
        "01a",
        ("    mad r11.xy__, r2.y, r3", "    mul r4, r3, l0.x\n    mad r11.xy__, r2.y, r4"),
        "is multiplied by -0.5, not by alpha = 1: see line 22.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("is_known", [True, False])
def test_what_is_said_names_the_line_and_why(name, is_known, monkeypatch):
    """Where no repair is tried."""
    monkeypatch.setattr(changed_lines, "MAX_STEPS", -1)
    step, (right, wrong), said = MISTAKES[name]
    assert right in RIGHT[step]
    seen, trace = judged(step, RIGHT[step].replace(right, wrong, 1))
    known = RIGHT[step] if is_known else STEPS[step].starter
    first, *_ = lead_to_fault(find_changed_fault(seen, known, trace), trace, known)
    assert said in first.text


EPILOGUE = """mul r10.x, r10.x, cb0[0].x
mov r12.x, r10.x
if_logicalnz cb0[4].x
    sample_resource(2)_sampler(2) r2, r0.yx00
    mad r12.x, r2.x, cb0[0].y, r10.x
endif
mov o0.x, r12.x
"""


def test_a_right_sum_in_another_register_is_not_blamed(monkeypatch):
    """Two mistakes are elsewhere: both fetches take exchanged coordinates."""
    monkeypatch.setattr(changed_lines, "MAX_STEPS", -1)
    starter = STEPS["00"].starter
    start, end = starter.index("mul r10.x"), starter.index("endmain")
    text = starter[:start] + EPILOGUE + starter[end:]
    seen, _ = judged("00", text)
    assert seen.right, seen
    seen, trace = judged("00", text.replace("r0.zx00", "r0.xz00").replace("r0.yz00", "r0.zy00"))
    (first, *_) = lead_to_fault(find_changed_fault(seen, starter, trace), trace, starter)
    line = text.splitlines().index("    mad r12.x, r2.x, cb0[0].y, r10.x") + 1
    assert f"ine {line} " not in first.text, first
    seen, trace = judged("00", text.replace("mul r10.x, r10.x, cb0[0].x", "mul r10.x, r10.x, l0.z"))
    notes = lead_to_fault(find_changed_fault(seen, starter, trace), trace, starter)
    line = text.splitlines().index("mul r10.x, r10.x, cb0[0].x") + 1
    assert f"which line {line} multiplies by l0.z = 0" in notes[0].text, "not what copies it"


def test_a_line_that_only_other_work_items_run_is_repaired():
    """The shown element's own work-item doesn't run it."""
    right = KERNELS["sgemm_nn_reduce2"].text
    line = next(line for line in right.splitlines() if line.strip() == "iadd r4.y, r4.y, l2.w")
    wrong = right.replace(line, line.replace("l2.w", "l2.z"), 1)
    seen = verify(load_kernel(wrong, like="sgemm_nn_reduce2"))
    known = "\n".join(
        f"{each} ; {n}" if each == line else each for n, each in enumerate(right.splitlines())
    )
    fault = find_changed_fault(seen, known.replace(line, "mov r99, r98", 6), trace_wrong(seen))
    assert fault and "l2.z" in fault.text, fault


@pytest.mark.parametrize("name", ["alien sum", "scaled", "zeroed", "first value"])
def test_no_variant_that_could_help_is_left_out(name):
    """What isn't tried leaves the shown element as it is: a law over all variants of a text."""
    step, (right, wrong), _ = MISTAKES[name]
    seen, trace = judged(step, RIGHT[step].replace(right, wrong, 1))
    search = changed_lines._Search(seen, STEPS[step].starter, trace)
    variants = [*search._undone(search.changes), *search._repairs(range(9, len(search.lines)))]
    left_out = [variant for variant in variants if not search._may_help(variant)]
    assert left_out and len(left_out) < len(variants)
    place = (..., seen.wrong.row, seen.wrong.column)
    for variant in random.Random(0).sample(left_out, min(len(left_out), 60)):
        result = changed_lines._result(search.given, search._text(variant.undone))
        assert np.isnan(result).all() or (result[place] == search.before[place]).all(), variant


@pytest.mark.parametrize("column", range(1, 4))
def test_an_exchange_behind_the_products_that_need_it_is_named_and_not_the_load_before(column):
    """Which is right for the column before."""
    exchange = alike.EXCHANGE.format("xyzw"[column])
    here = f"{exchange}    ; column {column} of A\n"
    before, after = RIGHT["07"].split(here)
    products, mark, rest = after.partition("    fence" if column < 3 else "    add")
    text = before + products + exchange + mark + rest
    _, trace = judged("07", text)
    loads = [n for n, line in enumerate(text.splitlines(), 1) if "lds_load" in line]
    first = next(note for note in trace.notes if "in place of" in note)
    named = [*map(int, re.findall(r"[Ll]ine (\d+)", first))]
    assert text.splitlines()[named[0] - 1].strip().startswith("mad"), trace.notes
    assert named[1] in loads[2 * column - 2 : 2 * column]
    if column == 3:  # the others are in a register, of the fetched texel
        assert "reads only later" in first and named[2] in loads[2 * column :]
