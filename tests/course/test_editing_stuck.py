"""A reader who is stuck is shown one more line; the history and the notebook say so."""

import json
import random
import re

import pytest
from actors import Actor, judge
from sampling import seeded

import cypresskit as ck
from cypresskit.editing import stuck, workbench
from cypresskit.editing.answering import LocalAnswerer
from cypresskit.editing.conversation import Conversation
from cypresskit.editing.edit_history import BROUGHT_NOTE, SHOWN_NOTE, Edit
from cypresskit.editing.kernel_file import KernelFile
from cypresskit.editing.step_outputs import MIME
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.editing.stuck import STUCK_SECONDS, STUCK_TRIES, find_next_line, seconds_until_help
from cypresskit.il.cursor import bare_line

STEP = STEPS["01a"]


def talk_after(tmp_path, tries, seconds, right=False, step=STEP):
    """A conversation after so many tries, the first so long ago, and what its page hears."""
    path = tmp_path / step.file
    path.write_text(step.starter)
    file = KernelFile(path)
    for n in range(tries):
        age = seconds * (1 - n / tries)
        file.edits.add(Edit(f"{step.starter};{n}\n", is_correct=False, time=stuck.time() - age))
    if right:
        file.edits.add(Edit("right", is_correct=True, gflops=1.0, n=step.n))
    heard: list[dict] = []
    talk = Conversation(file, {"like": step.like, "n": step.n, "step": step.name}, LocalAnswerer)
    talk.pages.append(heard.append)
    return talk, heard


NOTED = [("own", "step own from its beginning")]


@pytest.mark.parametrize(
    ("name", "note"), [(name, "") for name, step in STEPS.items() if step.solution[1:]] + NOTED
)
def test_each_press_shows_a_hint_and_then_its_line_until_there_is_none(tmp_path, name, note):
    """Not one that the reader has, nor one that wasn't asked for, wherever the text comes from. The
    hint has none of its sources; the last press says why there is no line.
    """
    step = STEPS[name]
    talk, heard = talk_after(tmp_path, STUCK_TRIES, STUCK_SECONDS + 60, step=step)
    text = f"{step.starter}\n{step.solution[-1].replace(', ', ',')}\n"
    talk.load(text, note)
    has = {*map(bare_line, text.splitlines())}
    lacks = [line for line in dict.fromkeys(step.solution) if line not in has]
    for number, line in enumerate(lacks):
        op, *operands = re.split(",? ", line)
        hints = [" ".join([op, *operands[:1]]) + ", ?" * len(operands[1:])] * bool(operands[1:])
        for hint in [*hints, ""]:  # and the line itself
            talk.hear({"type": "hello"}, heard.append)
            told = json.dumps(heard)
            assert [json.dumps(each) in told for each in lacks] == [
                n < number for n, _ in enumerate(lacks)
            ]
            talk.hear({"type": "line"}, heard.append)
            assert heard[-1]["hint"] == hint
        assert heard[-1]["lines"] == lacks[: number + 1]
        assert sum(edit.note == SHOWN_NOTE for edit in talk.edits) == number + 1
    ours = "\n".join(step.solution)
    for has, why in (
        (text, "These are all lines of our solution that your kernel lacks."),
        (ours, "Your kernel has all lines of our solution: look at their order, and at others."),
    ):
        talk.load(has, "")
        talk.hear({"type": "line"}, heard.append)
        assert heard[-1]["end"] == why


# More tries and seconds than a reader needs who is stuck; a correct kernel; is a line shown?
@pytest.mark.parametrize(
    "tries, seconds, right, shown",
    [(0, 60, False, True), (-1, 60, False, False), (0, -60, False, False), (0, 60, True, False)],
)
def test_a_line_is_shown_after_time_and_tries_alone(
    tmp_path, monkeypatch, tries, seconds, right, shown
):
    seconds += STUCK_SECONDS
    monkeypatch.setattr(stuck, "time", lambda: 1e9)
    talk, heard = talk_after(tmp_path, STUCK_TRIES + tries, seconds, right)
    for _ in range(2):  # a hint comes first
        talk.hear({"type": "line"}, heard.append)
    said = [message["lines"] for message in heard if message["type"] == "line"]
    assert said == ([[], ["mad r11.xy__, r2.y, r3, r11"]] if shown else [])
    assert (seconds_until_help(talk.edits, STEP) or 0) == max(STUCK_SECONDS - seconds, 0)
    assert (talk.edits[-1].note == SHOWN_NOTE) == shown
    assert (SHOWN_NOTE in str(talk.edits[-1])) == shown


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
    while line := find_next_line(before + after, step):
        before += f"{line}\n"
    assert ck.verify(ck.load_kernel(before + after, like=reference_kernel(step.like)))


def test_other_steps_show_nothing():
    edits = [Edit("x", n, False, time=1.0) for n in range(9)]
    assert (
        seconds_until_help(edits, STEPS["contest"]) is None
        and seconds_until_help(edits, STEP) == 0.0
    )


# -- what the button promises


class Reader:
    """A reader of a step: presses, edits, opens the notebook again, here or in another folder."""

    def __init__(self, folder, step, monkeypatch):
        self.folder, self.step, self.monkeypatch = folder, step, monkeypatch
        self.notebook = folder / "lesson.ipynb"
        self.bundle: dict = {}
        self.heard: list[dict] = []  # by the page
        self.shown = 0  # presses after which the page had one more line
        monkeypatch.setenv("JPY_SESSION_NAME", str(self.notebook))
        monkeypatch.setattr("IPython.display.display", self.display)
        self.open()

    def display(self, bundle, **_):
        self.bundle = bundle
        return self

    def update(self, bundle, raw):
        self.bundle = bundle

    def open(self):
        for talk in workbench.open_conversations.values():  # those of a Python that has ended
            talk.close()
            talk.edits.on_change = lambda: None
            talk.pages.clear()
        workbench.open_conversations.clear()
        self.monkeypatch.chdir(self.folder)
        self.bench = ck.workbench(step=self.step)
        self.talk = self.bench.conversation
        self.talk.supervisor.start = Actor
        workbench.show_submitted(self.talk)

    def press(self):
        self.heard.clear()
        self.talk.hear({"type": "line"}, self.heard.append)
        self.shown += sum(m["type"] == "line" and not m["end"] + m["hint"] for m in self.heard)

    def edit(self, text, judged, right=False):
        self.talk.take_text(f"a-{random.random()}", text)
        if judged:
            judge(self.talk, 9.0 * right, right)

    def begin_anew(self):
        self.talk.hear({"type": "restart"})

    def recall(self, number):
        self.talk.hear({"type": "recall", "entry": number})

    def save(self):
        outputs = [{"output_type": "display_data", "data": self.bundle}]
        self.notebook.write_text(json.dumps({"cells": [{"outputs": outputs}]}))

    def move(self, folder):
        self.save()
        text = self.bundle.get(MIME, {}).get("text")
        folder.mkdir()
        self.notebook = self.notebook.rename(folder / "lesson.ipynb")
        self.monkeypatch.setenv("JPY_SESSION_NAME", str(self.notebook))
        self.folder = folder
        self.open()
        notes = [kept.note for kept in self.bench.history[-1:]]
        starter = STEPS[self.step].starter
        opened = (starter, []) if text is None else (text, [BROUGHT_NOTE])
        assert (self.bench.text, notes) == opened


@seeded(20)
def test_the_history_and_the_notebook_say_how_many_lines_were_shown(seed, tmp_path, monkeypatch):
    """The law of the button: after any presses, edits, restarts and moves of the notebook."""
    chance = random.Random(seed)
    monkeypatch.setattr(stuck, "STUCK_TRIES", 1)
    monkeypatch.setattr(stuck, "STUCK_SECONDS", 0)
    step = chance.choice([name for name, step in STEPS.items() if step.solution[3:]])
    reader = Reader(tmp_path, step, monkeypatch)
    starter = STEPS[step].starter
    texts = [starter, *(f"{starter}; {n}\n{line}\n" for n, line in enumerate(STEPS[step].solution))]
    for number in range(30):
        act = chance.choice(["press"] * 4 + ["edit"] * 3 + ["again", "anew", "recall", "move"])
        if act == "press":
            reader.press()
        elif act == "edit":
            reader.edit(chance.choice(texts), chance.random() < 0.7, chance.random() < 0.1)
        elif act == "again":
            reader.save()
            reader.open()
        elif act == "anew":
            reader.begin_anew()
        elif act == "recall":
            reader.recall(chance.randrange(1, 9))
        elif chance.random() < 0.4:
            reader.move(tmp_path / f"{number}")
        told = reader.bundle.get(MIME, {}).get("lines_shown", 0)
        assert sum(edit.note == SHOWN_NOTE for edit in reader.bench.history) == told == reader.shown
    reader.talk.close()
