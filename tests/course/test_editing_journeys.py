"""What the workbench saves at a step, the step's check passes."""

from answers import read_planted
from sampling import drawn_by_day

from cypresskit.editing.answering import LocalAnswerer
from cypresskit.editing.steps import STEPS


def is_saved(step, text):
    """Whether the workbench saves the text, as correct and as fast as the step's first target."""
    heard = []
    job = {"edit": "e", "text": text, "name": step.file, "like": step.like, "n": step.n}
    LocalAnswerer(heard.append).ask(
        job | {"step": step.name, "parts": ["code", "verdict", "clocks"]}
    )
    parts = {message["part"]: message for message in heard if "part" in message}
    is_right = parts.get("verdict", {}).get("is_correct", False)
    return is_right and parts["clocks"].get("gflops", 0) >= step.targets.minimum


#: The checks of the climb, by step.
CHECKS = {
    "01a": "check_two_by_two",
    "02": "check_larger_block",
    "03": "check_products",
    "06": "check_in_double",
    "12": "check_two_steps",
}


@drawn_by_day("step", CHECKS, 3)
def test_the_workbench_saves_what_the_check_passes(step):
    """A text of the catalog, too, which the check doesn't pass."""
    check, row = next(item for item in read_planted().items() if item[0].__name__ == CHECKS[step])
    answers = [*row.right, *(answer for answer, _ in row.wrong[::5])]
    texts = [text for text in answers if isinstance(text, str) and text.startswith("il_")]
    assert len(texts) > 1
    for text in texts:
        verdict = check(text)
        passes = verdict.right or "unchanged" in verdict.message
        assert is_saved(STEPS[step], text) == passes, text
