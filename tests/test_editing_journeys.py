"""What the workbench calls right at a step, the step's check does."""

import pytest
from answers import planted

from cypresskit.editing.answering import AnswerHere
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.kernels.compiled import kernel_stats


def is_right(step, text):
    """Whether the workbench says so, at the step."""
    heard = []
    job = {"edit": "e", "text": text, "name": step.file, "like": step.like, "n": 64}
    AnswerHere(heard.append).ask(job | {"step": step.name, "parts": ["code", "verdict"]})
    return any(message.get("right") for message in heard if message.get("part") == "verdict")


#: The checks of the climb, by step.
CHECKS = {
    "01a": "check_two_by_two",
    "02": "check_larger_block",
    "06": "check_in_double",
    "12": "check_two_steps",
}


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("step", CHECKS)
def test_the_workbench_calls_right_what_the_check_does(step):
    """At its step: what isn't right isn't kept, and a hand-in that is kept is marked right."""
    answers = {check.__name__: (check, *rest) for check, *rest in planted().items()}
    check, (right, wrong) = answers[CHECKS[step]]
    for text in (*right, *(answer for answer, _ in wrong[::5])):
        if isinstance(text, str) and text.startswith("il_"):
            message = check(text).message
            said = message.startswith("C is correct") or "unchanged" in message
            assert is_right(STEPS[step], text) == said, text


def test_a_hint_that_names_figures_of_the_book_has_those_of_its_code():
    made = kernel_stats(reference_kernel(STEPS["03"].reference))
    bundles = f"{made.bundles_per_iteration} bundles"
    words = f"{bundles} and {made.gprs} registers, for {made.wavefronts} wave"
    assert words in STEPS["03"].hint
