"""An empty editor leads to a whole kernel, one sentence at a time, from the state of the kernel."""

import pytest
from conftest import from_rows

import cypresskit as ck
from cypresskit.editing.answering import AnswerHere
from cypresskit.editing.steps import STEPS, reference_kernel

STEP = STEPS["own"]
WHOLE = reference_kernel(STEP.like).text.splitlines()
FIRST = WHOLE.index(next(line for line in WHOLE if line.startswith("dcl_literal"))) + 1


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


@from_rows
def test_the_state_of_the_kernel_gives_the_sentence(said, lines, lacks):
    ours = without(*lacks) if lacks is not None else []
    assert headline([*lines, *ours]) == said


@pytest.mark.parametrize("name", ["own", "free"])
def test_each_empty_step_has_a_solution(name):
    step = STEPS[name]
    assert not ck.verify(reference_kernel(step.like)).wrong
    assert "mad" not in step.starter
