"""A reader who is stuck is shown one more line; the history and the notebook say so."""

import re
import time

import pytest

import cypresskit as ck
from cypresskit.editing.answering import AnswerHere
from cypresskit.editing.conversation import Conversation
from cypresskit.editing.edit_history import Edit
from cypresskit.editing.kernel_file import KernelFile
from cypresskit.editing.step_files import SHOWN, STUCK_SECONDS, STUCK_TRIES, next_line, stuck_in
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.il.cursor import bare_line

STEP = STEPS["01a"]


def talk_after(tmp_path, tries: int, seconds: float, right: bool = False, step=STEP):
    """A conversation after so many tries, the first so long ago, and what its page hears."""
    path = tmp_path / step.file
    path.write_text(step.starter)
    file = KernelFile(path)
    for n in range(tries):
        age = seconds * (1 - n / tries)
        file.edits.add(Edit(0, f"{step.starter};{n}\n", right=False, time=time.time() - age))
    if right:
        file.edits.add(Edit(0, "right", right=True, gflops=1.0, n=step.n))
    heard: list[dict] = []
    talk = Conversation(file, {"like": step.like, "n": step.n, "step": step.name}, AnswerHere)
    talk.pages.append(heard.append)
    return talk, heard


@pytest.mark.parametrize(
    ("tries", "seconds", "right", "shown"),
    [
        (STUCK_TRIES, STUCK_SECONDS + 60, False, True),
        (STUCK_TRIES - 1, STUCK_SECONDS + 60, False, False),
        (STUCK_TRIES, STUCK_SECONDS - 60, False, False),
        (STUCK_TRIES, STUCK_SECONDS + 60, True, False),
    ],
)
def test_a_line_is_shown_after_time_and_tries_alone(tmp_path, tries, seconds, right, shown):
    talk, heard = talk_after(tmp_path, tries, seconds, right)
    talk.hear({"type": "line"}, heard.append)
    said = [message["lines"] for message in heard if message["type"] == "line"]
    assert said == ([["mad r11.xy__, r2.y, r3, r11"]] if shown else [])
    waits = seconds < STUCK_SECONDS
    assert (57 < (stuck_in(talk.edits, STEP) or 0) <= 61) == waits
    assert (talk.edits[-1].note == SHOWN) == shown
    assert (SHOWN in str(talk.edits[-1])) == shown


@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if step.solution[1:]])
def test_each_press_shows_a_further_line_until_there_is_none(tmp_path, name):
    """A line that the reader has isn't shown; the last press says why there is none."""
    step = STEPS[name]
    talk, heard = talk_after(tmp_path, STUCK_TRIES, STUCK_SECONDS + 60, step=step)
    last = step.solution[-1]
    talk.put(f"{step.starter}\n{last}\n", "")
    for _ in step.solution:
        talk.hear({"type": "line"}, heard.append)
    *_, before, end = [message for message in heard if message["type"] == "line"]
    has = {*map(bare_line, step.starter.splitlines()), last}
    lacks = [line for line in dict.fromkeys(step.solution) if line not in has]
    assert before["lines"] == end["lines"] == lacks
    assert end["end"] == "These are all lines of our solution that your kernel lacks."
    talk.put("\n".join(step.solution), "")
    talk.hear({"type": "line"}, heard.append)
    assert heard[-1]["end"] == "Your kernel has all lines of our solution: look at their order."


@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if step.solution])
def test_the_shown_lines_lead_to_a_correct_kernel(name):
    """Each is put where the last comment asks for lines."""
    step = STEPS[name]
    text, asked = (
        step.starter,
        re.compile(r".*(?:goes? below this one|kernel goes here|go below this one)\n"),
    )
    *_, gap = asked.finditer(text)
    before, after = text[: gap.end()], text[gap.end() :]
    while line := next_line(before + after, step):
        before += f"{line}\n"
    assert ck.verify(ck.load_kernel(before + after, like=reference_kernel(step.like)))


def test_other_steps_show_nothing():
    edits = [Edit(n, "x", right=False, time=1.0) for n in range(9)]
    assert stuck_in(edits, STEPS["contest"]) is None and stuck_in(edits, STEP) == 0.0
