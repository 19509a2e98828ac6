"""An empty editor leads to a whole kernel, one sentence at a time, from the state of the kernel."""

import pytest

import cypresskit as ck
from cypresskit.editing.answering import AnswerHere
from cypresskit.editing.steps import STEPS, reference_kernel

STEP = STEPS["own"]
WHOLE = reference_kernel(STEP.like).text.splitlines()
FIRST = WHOLE.index(next(line for line in WHOLE if line.startswith("dcl_literal"))) + 1
#: With a fetch outside of A, since half a pixel isn't subtracted.
FETCHED = ["sample_resource(0)_sampler(0) r2, vWinCoord0.xy00", "mov o0, r2"]
STORES = [f"mov o{row}, l0.y" for row in range(4)]
UNSET = [f"mov o{row}, r1{row}" for row in range(4)]
FETCHES = [f"sample_resource({n})_sampler({n}) r{n + 2}, r0.xy00" for n in range(2)]


def headline(lines: list[str]) -> str:
    """What the workbench says of the declarations and these lines."""
    heard: list[dict] = []
    text = "\n".join([*WHOLE[:FIRST], *lines, "endmain", "end"])
    job = {"edit": "e", "text": text, "name": STEP.file, "like": STEP.like, "n": STEP.n}
    parts = ["code", "verdict", "replay"]
    AnswerHere(heard.append).ask(job | {"step": "own", "known": STEP.starter, "parts": parts})
    said = [m["notes"][0] if m.get("notes") else m.get("message") for m in heard]
    return [sentence for sentence in said if sentence][-1]


def without(*words: str) -> list[str]:
    """The solution's lines, without those that have one of the words."""
    return [line for line in WHOLE[FIRST:-2] if not any(word in line for word in words)]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "No work-item stores C yet."),
        (STORES[:1], "Row 0 is stored, rows 1 to 3 are not."),
        ([STORES[0], STORES[3]], "Rows 0 and 3 are stored, rows 1 and 2 are not."),
        (FETCHED, "Row 0 is stored, rows 1 to 3 are not."),
        (
            [*STORES[:3], "mov o4, l0.y"],
            "Line 14, launch: there is no output 4: this kernel's launch has only 0 to 3.",
        ),
        (STORES, "No number of A is fetched yet: A is texture 0."),
        (UNSET[:1], "Row 0 is stored, rows 1 to 3 are not."),
        (UNSET, "No number of A is fetched yet: A is texture 0."),
        (FETCHES[:1] + UNSET[:1], "Line 11 fetches at r0.x, which was never set."),
        ([*FETCHES, *UNSET], "Line 11 fetches at r0.x, which was never set."),
        (["mov r0, l0.y", *FETCHES, *UNSET], "Numbers of A and B are fetched, but not multiplied."),
        ([STORES[0], *UNSET], "No number of A is fetched yet: A is texture 0."),
        (without("resource(0)", "mad"), "No number of A is fetched yet: A is texture 0."),
        (without("resource(1)", "mad"), "No number of B is fetched yet: B is texture 1."),
        (without("mad"), "Numbers of A and B are fetched, but not multiplied."),
        (
            without(),
            "C is correct. Tested sizes: 4 x 8, 8 x 4, 8 x 12 and 12 x 8, k from 2 to 5; 4,096"
            " elements at 2048 x 2048, k = 2048. It doesn't read alpha and beta.",
        ),
    ],
)
def test_the_state_of_the_kernel_gives_the_sentence(lines, said):
    assert headline(lines) == said


def test_a_place_and_a_loop_are_missed():
    loop = ("whileloop", "ge r1", "break", "add r0.z", "endloop")
    assert headline(without(*loop)).startswith("Each sum has one product")
    unset = ["mov r0, l0.y", *FETCHES, "mul r10, r2.x, r3", *UNSET]
    assert "none reads its place" in headline(unset)
    here = [line.replace("add r0.xy, vWinCoord0.yx, l0.x", "mov r0, l0.y") for line in without()]
    assert "none reads its place" in headline(here)


@pytest.mark.parametrize("name", ["own", "free"])
def test_each_empty_step_has_a_solution(name):
    step = STEPS[name]
    assert not ck.verify(reference_kernel(step.like)).wrong
    assert "mad" not in step.starter


@pytest.mark.parametrize("line", ["mov g[r0.x], r0", "mov r10, g[r0.x]", "mov r10, cb7[0]"])
def test_what_the_launch_lacks_is_said_with_its_line(line):
    declared = ["dcl_cb cb7[1]"] * ("cb7" in line)
    at = FIRST + len(declared) + 1
    said = headline([*declared, line, *STORES])
    assert said.startswith(f"Line {at} ") and said.endswith(", which its launch doesn't give.")
