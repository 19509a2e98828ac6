"""Checks find the bug and say what to do: the bug zoo, near misses, and incorrect kernels.

A file of tests/zoo holds a title, a launch, a kernel with a bug, the findings expected, and a near
miss that must stay silent, perhaps in another launch (``near_launch``).
"""

import random
import re
import tomllib

import numpy as np
import pytest
from kernel_files import launch_of
from kernel_texts import TEXTURE, compute, pixel
from products import random_matrices
from repository import ROOT
from sampling import each_of_six, seeded

import cypresskit as ck
from cypresskit.diagnosis.verification import verify
from cypresskit.editing.steps import STEPS, reference_kernel, starter_text
from cypresskit.machine.checks import Finding, Findings, check

ZOO = sorted((ROOT / "tests/zoo").glob("*.toml"))


def read(path):
    """A file of the zoo."""
    return tomllib.loads(path.read_text())


def parts(path):
    """The kernel with the bug, the near miss, and the launch of each."""
    case = read(path)
    launch, near_launch = case["launch"], case.get("near_launch", case["launch"])
    return case["bug"], case["near_miss"], launch_of(launch), launch_of(near_launch)


def place(item):
    """A work-item of a file, as findings have it; "none" if no one did it."""
    if item == "none":
        return None
    return tuple(item) if isinstance(item, list) else item


def check_text(text, launch):
    try:
        program = ck.assemble(text, "zoo.il")
    except ck.ILError as error:
        advice = "The kernel was not run."
        return Findings(
            Finding("text", error.name, f.line, f.column, f.text, f.message, advice)
            for f in error.faults
        )
    return check(program, **launch)


@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_the_zoo_is_found(path):
    bug, _, launch, _ = parts(path)
    found = list(check_text(bug, launch))
    for expected in read(path)["findings"]:
        finding = next((f for f in found if f.line == expected["line"]), None)
        assert finding, f"nothing was found in line {expected['line']}\nfound:\n{Findings(found)}"
        found.remove(finding)
        shown = finding.kind, finding.work_item, finding.element, finding.more, finding.other_line
        item, element = place(expected.get("work_item")), expected.get("element", "")
        line = expected.get("other_line", 0)
        assert shown == (expected["kind"], item, element, expected["more"], line), str(finding)
        assert expected["advice"] in finding.advice, str(finding)
        assert finding.text[finding.column - 1] != " "
        other = f"work-item {place(expected['other'])}" if "other" in expected else ""
        assert bool(finding.other_side) == bool(other), str(finding)
        assert finding.other_side.startswith(other), str(finding)
    assert not found, f"found as well:\n{Findings(found)}"


@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_near_misses_stay_silent(path):
    _, near, _, launch = parts(path)
    assert not (found := check_text(near, launch)), str(found)


@seeded(6)
def test_the_word_of_the_lds_that_no_store_has_written_is_named(seed):
    """Whichever it is, and whichever work-item loads it, among others."""
    draw = random.Random(seed)
    unset, turn = draw.randrange(256), draw.randrange(64)
    store = "imul r0.z, r0.x, l0.x\nlds_store_id(0) r0.z, l0.w"
    program = compute(
        f"""
            dcl_num_thread_per_group 64
            dcl_lds_id(0) 1024
            dcl_literal l0, 4, 64, {unset}, {turn}
            dcl_literal l1, 16, 0, 0, 0
            mov r0.x, vTidInGrpFlat.x
        """,
        *[f"ine r0.y, r0.x, l0.z\nif_logicalnz r0.y\n{store}\nendif\niadd r0.x, r0.x, l0.y"] * 4,
        """
            fence_threads_lds
            ixor r1.x, vTidInGrpFlat.x, l0.w
            imul r1.x, r1.x, l1.x
            lds_load_vec_id(0) r2, r1.x, r1.x
            mov g[vAbsTidFlat.x], r2
        """,
    )
    (finding,) = check(program, 64, global_memory=np.zeros((64, 4), np.uint32))
    shown = finding.kind, finding.element, finding.work_item, finding.more
    assert shown == ("uninitialized", f"lds[{unset}]", unset // 4 ^ turn, 0)


@seeded(6)
def test_a_fault_of_every_iteration_is_counted_in_each(seed):
    draw = random.Random(seed)
    iterations, wide = draw.randint(1, 5), draw.randint(3, 7)
    program = pixel(
        TEXTURE.format(0),
        f"""
            dcl_literal l0, 0, 1, {iterations}, 0
            mov r0, l0.x
            mov r1, l0.x
            whileloop
            ige r0.y, r0.x, l0.z
            break_logicalnz r0.y
            sample_resource(0)_sampler(0) r2, vWinCoord0.xy00
            add r1, r1, r2
            iadd r0.x, r0.x, l0.y
            endloop
            mov o0, r1
        """,
    )
    texture, output = (np.ones((2, width, 4), np.float32) for width in (wide, 8))
    (finding,) = check(program, (8, 2), inputs={0: texture}, outputs={0: output})
    assert (finding.kind, 1 + finding.more) == ("fetch outside", iterations * 2 * (8 - wide))


# Faults after which a run goes on, and faults that end it
GOES_ON = {
    "race": "mov g[r0.w], r0",
    "load outside": "mov r4, g[r0.z]\nmov g[r0.x], r4",
    "unaligned": "lds_store_id(0) r0.y, r0.y",
    "fetch outside": "sample_resource(0)_sampler(0) r5, r1.xx00\nmov g[r0.x], r5",
}
ENDS = {
    "store outside": "mov g[r0.z], r0",
    "barrier": "if_logicalnz r0.x\nfence_threads_lds\nendif",
    "endless loop": "whileloop\nmov r6, r0\nendloop",
}
UNSET = "add r7, r9, r0\nmov g[r0.x], r7"


def kinds_found(*parts):
    """The kinds of fault that the check finds, sorted, and whether the run was ended."""
    program = compute(
        "dcl_num_thread_per_group 64",
        "dcl_lds_id(0) 512",
        TEXTURE.format(0),
        """
            dcl_literal l0, 1, 100, 99.0, 0
            mov r0.x, vTidInGrpFlat.x
            mov r0.y, l0.x
            mov r0.z, l0.y
            mov r0.w, l0.w
            mov r1, l0.z
        """,
        *parts,
    )
    texture = {0: np.ones((2, 2, 4), np.float32)}
    memory = np.zeros((64, 4), np.uint32)
    found = check(program, 64, inputs=texture, global_memory=memory, max_instructions=1000)
    return sorted(f.kind for f in found), found.ended_early


@pytest.mark.parametrize("kind", GOES_ON)
def test_what_was_found_before_an_unset_value_is_reported_and_not_what_may_follow(kind):
    fault = GOES_ON[kind]
    assert kinds_found(fault) == ([kind], False)
    assert kinds_found(fault, UNSET) == (sorted([kind, "uninitialized"]), False)
    assert kinds_found(UNSET, fault) == (["uninitialized"], False)


@pytest.mark.parametrize("kind", ENDS)
def test_what_ended_the_run_is_reported_after_an_unset_value(kind):
    assert kinds_found(ENDS[kind]) == ([kind], True)
    assert kinds_found(UNSET, ENDS[kind]) == (sorted([kind, "uninitialized"]), True)
    for before in GOES_ON:
        both = sorted([before, kind, "uninitialized"])
        assert kinds_found(GOES_ON[before], UNSET, ENDS[kind]) == (both, True)


# Products


def test_of_a_program_without_its_load_from_the_lds_it_says_that_it_is_missing():
    mine = ck.load_kernel(starter_text("07"), like="sgemm_64x64_lds")
    found = next(f for f in verify(mine).findings if f.kind == "uninitialized")
    said = f"No line sets {found.element}, and none loads from the LDS. Is that load missing?"
    assert found.advice == said


@pytest.mark.parametrize(
    "line, names",
    [
        ("mov r0.xy, l9.xy", False),
        ("iand r0.xy, vTidInGrpFlat.x, l9.x", None),
        ("ior r0.xy, l9.x, l9.y", None),
        ("ftoi r0.xy, r0", True),
        ("iadd r0.xy, l9.x, l9.y", True),
    ],
)
def test_whatever_puts_an_integer_into_a_coordinate_it_is_found(line, names):
    """And a line of integers below the loop, for an address, isn't named."""
    text = starter_text("00").replace("dcl_literal", "dcl_literal l9, 2, 4, 6, 1\ndcl_literal", 1)
    text = text.replace("whileloop", f"{line.replace('vTidInGrpFlat', 'l9')}\nwhileloop", 1)
    text = text.replace("endloop", "endloop\nftoi r0.xy, r0\nitof r0.xy, r0", 1)
    number = text[: text.index("\nwhileloop")].count("\n") + 1
    found = verify(ck.load_kernel(text, like=reference_kernel(STEPS["00"].like))).findings
    said = [f.message for f in found if f.kind == "whole coordinate"]
    assert said and all(f"see line {number})" in one or "see" not in one for one in said), said
    assert names is None or all(("see" in one) == names for one in said), said


@pytest.mark.parametrize("kernel", ["own", "free"])
def test_of_a_line_that_no_work_item_has_run_no_other_one_is_said_to_run_it(kernel):
    """A loop that is left at once, and sums that have no first value."""
    text = starter_text(STEPS[kernel].like)
    text = re.sub(r"ge (r1.x), (r0..), (cb0.0..z)", r"ge \1, \3, \2", text)
    text = re.sub(r"mov r1\d, l0.y\n", "", text)
    found = verify(ck.load_kernel(text, like=reference_kernel(STEPS[kernel].like))).findings[0]
    assert "this work-item has not run that line" in found.advice, found


@each_of_six
def test_a_kernel_of_each_kind_is_clean(name):
    kernel = ck.kernels[name]
    (m, n), k = kernel.convention.multiple, 2 * kernel.k_step
    arguments = kernel.arguments(
        *random_matrices(kernel, m, n, k, np.random.default_rng(1)), 1.5, 0.5
    )
    assert not (found := check(kernel.program, **arguments)), str(found)


def test_every_fence_of_the_lds_kernel_is_needed():
    kernel = ck.kernels["sgemm_64x64_lds"]
    a, b = np.random.default_rng(5).standard_normal((2, 64, 64)).astype(np.float32)
    launch, text = kernel.arguments(a, b, None, 1.0, 0.0), kernel.text
    for fence in re.finditer("fence_threads_lds", text):
        wrong = ck.assemble(text[: fence.start()] + text[fence.end() :], "wrong.il")
        assert {f.kind for f in check(wrong, **launch, names=kernel.convention.names)} == {"race"}


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
def test_errors_in_macros_name_the_call(engine):
    macro = ("mdef(1)_out(0)_in(1)", "mov g[in0.x], in0", "mend")
    program = pixel(*macro, "dcl_literal l0, 9, 9, 9, 9", "mcall(1) (), (l0)")
    with pytest.raises(
        ck.KernelError, match=r"test.il:3: mov g\[in0.x\], in0\n    called in test.il:6: mcall"
    ) as caught:
        ck.launch(program, (1, 1), global_memory=np.zeros((1, 4), np.float32), engine=engine)
    assert caught.value.line == 3


@pytest.mark.parametrize("x", [-1, 0, 4, 5])
@pytest.mark.parametrize("y", [-1, 0, 2, 3])
def test_a_fetch_outside_is_told_by_which_side(x, y):
    """Of a texture of 5 x 3: the row first, where both are outside."""
    program = pixel(
        f"dcl_literal l0, {x}.0, {y}.0, 0.0, 0.0",
        TEXTURE.format(0),
        "sample_resource(0)_sampler(0) o0, l0.xy00",
    )
    inputs = {0: np.zeros((3, 5, 4), np.float32)}
    report = ck.check(program, (1, 1), inputs=inputs, outputs={0: np.zeros((1, 1, 4), np.float32)})
    outside = [place for place, size in ((y, 3), (x, 5)) if not 0 <= place < size]
    assert len(report) == bool(outside)
    for finding in report:
        side = "row, y," if not 0 <= y < 3 else "column, x,"
        what = "negative" if outside[0] < 0 else "too large"
        assert side in finding.advice and what in finding.advice
