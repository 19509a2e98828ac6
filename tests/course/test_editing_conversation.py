"""The conversation: nothing waits for ever, no text is lost, and no answer is of another text."""

import json
import math
import os
import random
import threading
import time
from pathlib import Path

import pytest
from actors import FIGURES, SETTINGS, Actor, judge
from sampling import drawn_by_day, from_rows, seeded

import cypresskit as ck
from cypresskit.editing import edit_history, supervisor, workbench
from cypresskit.editing.conversation import AT_ONCE, Conversation
from cypresskit.editing.edit_history import LINKED_NOTE, Edit, Edits, history_path
from cypresskit.editing.kernel_file import KernelFile
from cypresskit.editing.protocol import ALL_PARTS
from cypresskit.editing.step_files import saved_edit, submitted_edit
from cypresskit.editing.step_outputs import (
    MIME,
    find_step_texts,
    read_step_texts,
    restore_texts,
)
from cypresskit.editing.steps import STEPS, starter_text
from cypresskit.editing.supervisor import NO_ANSWER, NO_PROCESS
from cypresskit.editing.workbench import show_submitted
from cypresskit.il.parser import MAX_TEXT

NAIVE = ck.kernels["sgemm_naive"].text
OTHER = ck.kernels["sgemm_tn"].text


class Talk:
    """A conversation about a file whose processes and whose clock a test moves."""

    def __init__(self, path, text=NAIVE):
        if not path.exists():
            path.write_text(text)
        self.path, self.messages, self.actors, self.now = path, [], [], 0.0
        self.starts = 0
        self.failures = 0  # of the next starts
        settings = dict(SETTINGS)
        self.conversation = Conversation(KernelFile(path), settings, self.start, lambda: self.now)
        self.conversation.pages.append(
            self.messages.append
        )  # without a thread that looks at the file

    def start(self, *arguments):
        self.starts += 1
        if self.failures:
            self.failures -= 1
            raise OSError(11, "Resource temporarily unavailable")
        self.actors.append(Actor(*arguments))
        return self.actors[-1]

    def type(self, edit, text):
        self.conversation.hear({"type": "text", "edit": edit, "text": text})

    def wait(self):
        """Look again once the process has ended or the deadline has come. Returns whether one of
        them did.
        """
        supervisor = self.conversation.supervisor
        due = supervisor.deadline
        is_dead = supervisor.answerer is not None and not supervisor.answerer.is_alive
        if due == math.inf and not is_dead:
            return False
        if not is_dead:
            self.now = due
        self.conversation.look()
        return True

    def speakers(self):
        return [actor for actor in self.actors if actor.can_speak]

    def is_done(self, edit):
        return any(
            message.get("edit") == edit
            and (message["type"] == "done" or bool(message.get("faults")))
            for message in self.messages
        )

    def settle(self, edit):
        """Let everybody work until the edit is done. Returns in how many steps."""
        for step in range(200):
            if self.is_done(edit) and self.conversation.supervisor.job is None:
                return step
            if speakers := self.speakers():
                speakers[0].speak()
            elif not self.wait():
                break
        raise AssertionError(f"{edit} has no end: {self.messages[-3:]}")

    def troubles(self):
        return [message["message"] for message in self.messages if message["type"] == "trouble"]


@pytest.fixture
def talk(tmp_path):
    talk = Talk(tmp_path / "my.il")
    yield talk
    talk.conversation.close()


# -- it never gets stuck


def can_be_written(path):
    return path.is_file() and bool(path.stat().st_mode & 0o200)


def free(path):
    """Remove what can't be written."""
    if path.is_dir():
        path.rmdir()
    elif not can_be_written(path):
        path.unlink(missing_ok=True)


def into_link(path):
    path.symlink_to("/dev/null")


def read_only(path):
    path.chmod(0o444)


class Mishaps(Talk):
    """What may happen to a conversation: each act once, by chance."""

    def __init__(self, path, rng):
        super().__init__(path)
        self.rng = rng
        self.texts = {self.conversation.edit: NAIVE}  # by edit
        self.last = ""  # edit that was typed

    def alive(self):
        return [actor for actor in self.actors if actor.is_alive]

    def type_text(self):
        number = len(self.texts)
        bodies = "", "madd r0\n", "; \ud83d\n", "mov r1, r0\n" * self.rng.choice([1, 400])
        text = f"il_ps_2_0\n; {number}\n{self.rng.choice(bodies)}end\n"
        self.last = f"a-{number}"
        self.texts[self.last] = text.replace("\ud83d", "\ufffd")  # half a letter
        self.type(self.last, text)

    def answer(self):
        if speakers := self.speakers():
            self.rng.choice(speakers).speak()

    def late_answer(self):
        """A process that was ended had written something before."""
        if ended := [actor for actor in self.actors if not actor.is_alive and actor.saying]:
            actor = self.rng.choice(ended)
            actor.hear(actor.saying.pop(0))

    def die(self):
        if alive := self.alive():
            self.rng.choice(alive).dead = True

    def hang(self):
        if alive := self.alive():
            self.rng.choice(alive).hangs = True

    def end_process(self):
        """A cell makes another workbench, and ends this one's process."""
        self.conversation.supervisor.stop()

    def refuse_to_start(self):
        self.failures = self.rng.choice([1, 2])

    def break_page(self):
        def send(message):
            raise RuntimeError("this page is gone")

        pages = self.conversation.pages
        pages.insert(self.rng.randint(0, len(pages)), send)

    def change_outside(self):
        """Another editor changes the file."""
        text = f"il_ps_2_0\n; theirs {self.rng.random()}\nend\n"
        if can_be_written(self.path):
            self.path.write_text(text)
            self.conversation.look()
        if self.conversation.text == text:
            self.texts[self.conversation.edit] = text

    def protect(self):
        """The file becomes what can't be written, or can be written again."""
        if can_be_written(self.path):
            become = self.rng.choice([Path.mkdir, os.mkfifo, into_link, read_only])
            if become is not read_only:
                self.path.unlink()
            become(self.path)
        else:
            free(self.path)

    def replay(self):
        part = {"part": "replay", "element": [self.rng.randrange(2), 0]}
        self.conversation.hear({"type": "ask", "edit": self.conversation.edit} | part)

    def hello(self):
        self.conversation.hear({"type": "hello"}, self.messages.append)

    def happen(self, *acts):
        """One of these happens, and every message that follows is of the text that is there."""
        before = len(self.messages)
        self.rng.choice(acts)()
        messages = self.messages[before:]
        for message in (each for each in messages if each["type"] == "answer"):
            text = self.texts[message["edit"]]
            assert message["edit"] == self.conversation.edit and message.get("of", text) == text
        for message in (each for each in messages if each["type"] == "state"):
            assert message["problem"] == self.conversation.file.problem


@seeded(8)
def test_whatever_happens_the_last_text_is_done_and_its_process_alive(seed, tmp_path):
    """The law: texts, deaths, hangs, failed starts, late answers, pages that are gone, files that
    can't be written, in any order; then everybody works, and the last text is answered to its end.
    """
    talk = Mishaps(tmp_path / "my.il", random.Random(seed))
    conversation = talk.conversation
    deadly = [talk.late_answer, talk.die, talk.hang, talk.replay, talk.end_process]
    acts = [talk.type_text] * 4 + [talk.answer] * 8 + deadly
    acts += [talk.break_page, talk.change_outside, talk.protect, talk.hello, talk.wait]
    acts += [conversation.look, talk.refuse_to_start]
    talk.type_text()
    for _ in range(80):
        talk.happen(*acts)
    talk.type_text()
    for _ in range(5):
        talk.happen(talk.answer, *deadly)
    talk.settle(talk.last)
    conversation.look()

    given_up = any(m["type"] == "trouble" and m.get("edit") == talk.last for m in talk.messages)
    faults = conversation.answers.get("text", {}).get("faults")
    assert (
        given_up or faults or {"code", "verdict", "clocks", "costs"} <= conversation.answers.keys()
    )
    assert conversation.supervisor.job is None and conversation.supervisor.deadline == math.inf
    assert conversation.edit == talk.last and conversation.text == talk.texts[talk.last]
    while conversation.supervisor.answerer is None:  # the next text without faults starts one
        talk.failures = 0
        talk.type_text()
        talk.settle(talk.last)
    assert talk.alive() == [conversation.supervisor.answerer]
    for problem in (conversation.file.problem, ""):
        heard = [m for m in talk.messages if m["type"] == "heard" and m["edit"] == talk.last]
        assert heard[-1]["problem"] == problem
        assert bool(problem) != can_be_written(talk.path)
        free(talk.path)
        conversation.look()
    assert talk.path.read_text() == talk.texts[talk.last]
    conversation.close()


def test_an_idle_process_is_ended_by_a_cell_only_when_nothing_is_asked(tmp_path):
    """The cell waits until the page's message is heard."""
    old = ck.workbench(tmp_path / "a.il", like="sgemm_naive").conversation
    old.supervisor.start = Actor
    old.supervisor.prepare()
    others = [tmp_path / f"{number}.il" for number in range(workbench.MAX_PROCESSES)]

    def run_cells():
        for path in others:
            ck.workbench(path, like="sgemm_naive")

    cells = threading.Thread(target=run_cells)
    with old.lock:
        cells.start()
        cells.join(1)
        assert cells.is_alive() and old.supervisor.answerer is not None
        old.take_text("a-1", NAIVE + "; 1\n")
    cells.join()
    assert old.supervisor.job and old.supervisor.answerer is not None
    old.close()


@pytest.mark.parametrize("count", range(12))
def test_the_last_request_is_answered_and_no_other_part_is_lost(talk, count):
    """Two elements are clicked, and LLVM's code is chosen, after so many of its messages."""
    talk.type("a-1", NAIVE)
    for _ in range(count):
        if speakers := talk.speakers():
            speakers[0].speak()
    for element in ([0, 0], [1, 1]):
        talk.conversation.hear({"type": "ask", "edit": "a-1", "part": "replay", "element": element})
    assert talk.actors[-1].job["element"] == [1, 1]
    talk.conversation.hear({"type": "ask", "edit": "a-1", "part": "llvm"})
    talk.messages.clear()
    talk.settle("a-1")
    assert {"text", *ALL_PARTS} == {*talk.conversation.answers}
    assert {"replay", "llvm"} <= {message.get("part") for message in talk.messages}
    other = []
    talk.conversation.hear({"type": "ask", "edit": "a-1", "part": "climb"}, other.append)
    assert other[-1]["part"] == "climb" != talk.messages[-1].get("part"), "its page alone gets it"


@pytest.mark.parametrize(
    ("fate", "trouble"),
    [("dead", NO_PROCESS), ("hangs", NO_ANSWER), ("not started", NO_PROCESS)],
)
def test_a_text_is_given_to_so_many_processes_and_then_given_up(talk, fate, trouble):
    """Whether they end over it, never begin with it, or can't be started."""
    talk.failures = 99 * (fate == "not started")
    talk.type("a-1", NAIVE)
    while not talk.is_done("a-1"):
        if speakers := talk.speakers():
            setattr(speakers[0], fate, True)
        elif not talk.wait():
            talk.conversation.look()
    assert talk.starts == supervisor.MAX_TRIES
    assert talk.troubles() == [trouble]


def test_a_process_that_is_killed_is_begun_anew_and_the_last_text_answered(tmp_path):
    """With the process itself, killed while it begins and while it works."""
    path = tmp_path / "my.il"
    path.write_text(NAIVE)
    talk = Conversation(KernelFile(path), dict(SETTINGS))
    heard, done = [], threading.Event()

    def hear(message):
        heard.append(message)
        if message.get("part") == "clocks" and message["type"] == "answer":
            done.set()

    talk.connect(hear)  # from then on, it looks whether the process has ended
    try:
        for number, pause in enumerate([0.3, 2.0]):
            talk.take_text(f"a-{number}", NAIVE + f"; {number}\n")
            time.sleep(pause)
            while (quick := talk.supervisor.answerer) is None or quick.process.poll() is not None:
                time.sleep(0.01)  # the one before is dead, and a new one is being begun
            quick.process.kill()
        done.clear()
        talk.take_text("a-last", NAIVE + "; last\n")
        assert done.wait(200)
        assert talk.answers["verdict"]["is_correct"]
        assert talk.supervisor.answerer.process.poll() is None
    finally:
        talk.close()


@from_rows
def test_what_is_no_message_changes_nothing(talk, message):
    talk.conversation.hear(message)
    assert {message["type"] for message in talk.messages} <= {"trouble"}
    assert talk.path.read_text() == NAIVE


# -- no text is lost


def test_what_another_editor_writes_counts_while_no_page_is_shown(tmp_path):
    bench = ck.workbench(tmp_path / "my.il", like="sgemm_naive")
    theirs = OTHER + "; from another editor\n"
    bench.path.write_text(theirs)
    assert bench.text == theirs
    talk = bench.conversation
    talk.supervisor.start = Actor
    bench.path.write_text(theirs + "; again\n")
    talk.hear({"type": "hello"})
    assert talk.text == theirs + "; again\n"
    talk.take_text("a-1", NAIVE + "; typed\n")
    assert bench.path.read_text() == NAIVE + "; typed\n"
    assert {theirs, theirs + "; again\n"} <= {edit.text for edit in bench.history}
    talk.close()


def test_a_file_that_is_gone_or_no_text_for_a_moment_is_no_news(talk):
    talk.path.unlink()
    talk.conversation.look()
    talk.path.write_bytes(b"\xff\xfe")
    talk.conversation.look()
    assert talk.conversation.text == NAIVE
    talk.path.write_text(OTHER)
    talk.conversation.look()
    assert talk.conversation.text == OTHER


class Losses:
    """Acts on a file, and the texts that must be found after each: those that left the file, unless
    their reader typed on, and those that were acknowledged.
    """

    def __init__(self, path, rng, monkeypatch):
        self.rng, self.talk = rng, Talk(path)
        self.notebook = path.with_name("lesson.ipynb")
        self.wanted, self.typed, self.typed_on = set(), set(), set()
        self.fails = False  # whether the history can't be written
        write = edit_history.save_file

        def save(*given):
            if self.fails:
                raise OSError(28, "No space left on device")
            return write(*given)

        monkeypatch.setattr(edit_history, "save_file", save)
        monkeypatch.setenv("JPY_SESSION_NAME", str(self.notebook))

    def type(self, text):
        """On a page that has seen the last text, or hasn't, or was opened again."""
        edit, before = self.talk.conversation.edit, self.talk.conversation.text
        base = self.rng.choice([edit, edit, "an older edit", ""])
        if base == edit and before in self.typed:
            self.typed_on.add(before)
        self.typed.add(text)
        self.talk.conversation.hear({"type": "text", "edit": text[-4:], "text": text, "base": base})
        assert (AT_ONCE in self.talk.troubles()) == (base == "an older edit")
        problems = [m["problem"] for m in self.talk.messages if m["type"] == "heard"]
        assert (problems[-1] == "") == (self.talk.path.read_text() == text)

    def load(self, text):
        self.talk.conversation.load(text, LINKED_NOTE)

    def recall(self, _):
        if edits := self.talk.conversation.edits:
            self.talk.conversation.hear({"type": "recall", "entry": self.rng.choice(edits).number})

    def answer(self, _):
        self.talk.conversation.hear({"type": "shown", "edit": self.talk.conversation.edit})
        self.talk.settle(self.talk.conversation.edit)

    def unsent(self, text):
        text = self.rng.choice([text, self.talk.conversation.text, ""])
        self.talk.conversation.hear({"type": "unsent", "edit": "b", "text": text})
        is_heard = "b" in [m["edit"] for m in self.talk.messages if m["type"] == "heard"]
        assert is_heard or self.fails
        self.wanted |= {text} if is_heard else set()

    def theirs(self, text):
        """Another program writes, once or twice, and the conversation looks, or doesn't."""
        if not can_be_written(self.talk.path):
            return
        looks, before = self.rng.random() < 0.5, self.talk.conversation.text
        self.talk.path.write_text(text)
        if looks:
            self.talk.conversation.look()
        if looks and not self.fails and before not in self.typed_on:
            self.wanted.add(before)

    def move(self, text):
        """A notebook that was moved here is opened."""
        content = {"step": "00", "text": text, "is_saved": self.rng.random() < 0.5}
        content["lines_shown"] = 1
        save_notebook(self.notebook, [[{"data": {MIME: content}}]])
        restore_texts(self.talk.path, STEPS["00"])
        self.notebook.unlink()
        if not self.fails:
            self.wanted.add(text)

    def other(self, text):
        """Another workbench adds an edit."""
        if not self.fails:
            Edits(history_path(self.talk.path)).add(Edit(text, note="other"))
            self.wanted.add(text)

    def fail(self, _):
        self.fails = not self.fails

    def lock(self, _):
        self.talk.path.chmod(self.talk.path.stat().st_mode ^ 0o222)

    def damage(self, _):
        path = history_path(self.talk.path)
        path.write_text(path.read_text() + "}" if path.exists() else "")

    def end(self, _):
        self.talk = Talk(self.talk.path)

    def look(self, _):
        self.talk.conversation.look()

    def lost(self):
        folder = self.talk.path.parent
        found = "".join(each.read_text() for each in folder.iterdir())
        now = self.talk.path.read_text()
        return {text for text in self.wanted - {now} if json.dumps(text)[1:-1] not in found}


@seeded(20)
def test_a_text_leaves_the_file_only_into_the_history(seed, tmp_path, monkeypatch):
    """The law of texts: whatever takes its place, whatever can't be written or read, and whenever
    Python ends.
    """
    rng = random.Random(seed)
    losses = Losses(tmp_path / "00.il", rng, monkeypatch)
    acts = [losses.type] * 5 + [losses.theirs] * 3 + [losses.unsent] * 2 + [losses.answer] * 2
    acts += [losses.load, losses.recall, losses.move, losses.other, losses.damage]
    acts += [losses.fail, losses.lock, losses.end, losses.look]
    for number in range(1000, 1060):
        losses.talk.messages.clear()
        before = losses.talk.path.read_text()
        act = rng.choice(acts)
        act(f"{NAIVE}; {number}")
        has_left = losses.talk.path.read_text() != before
        if has_left and act != losses.theirs and before not in losses.typed_on:
            losses.wanted.add(before)
        assert losses.lost() == set(), act.__name__
    losses.fails = False
    losses.talk.path.chmod(0o644)
    losses.talk.conversation.look()
    assert losses.talk.path.read_text() == losses.talk.conversation.text
    assert not losses.talk.conversation.file.problem and losses.lost() == set()


def test_a_recalled_text_is_that_of_the_history(talk):
    for n in (1, 2):
        talk.type(f"a-{n}", NAIVE + f"; {n}")
        talk.conversation.edits.add(
            Edit(NAIVE + f"; {n}", is_correct=True, gflops=100.0 * n, n=128)
        )
    talk.conversation.hear({"type": "recall", "entry": talk.conversation.edits[-2].number})
    assert talk.messages[-1]["type"] == "text" and talk.messages[-1]["text"] == NAIVE + "; 1"
    assert talk.path.read_text() == NAIVE + "; 1"
    talk.conversation.hear({"type": "recall", "entry": float("inf")})
    assert talk.messages[-1]["type"] == "trouble"


@pytest.mark.parametrize(("full", "order"), [(0.0, list), (0.5, sorted)])
@seeded(4)
def test_two_workbenches_share_a_history_and_lose_nothing(seed, full, order, tmp_path, monkeypatch):
    """All that was added is read, in order, also if one adds while the other writes; on a disk
    that is full or can't be read now and then it is written later.
    """
    rng, write, read = random.Random(seed), edit_history.save_file, os.open
    waiting: list[Edit] = []

    def fail():
        if rng.random() < full:
            raise OSError(28, "No space left on device, or too many open files")

    monkeypatch.setattr(os, "open", lambda *given, **more: fail() or read(*given, **more))

    def save(*given):
        fail()
        edits, waiting[:] = [*waiting], []
        for edit in edits:
            other.add(edit)
        return write(*given)

    monkeypatch.setattr(edit_history, "save_file", save)
    path = tmp_path / "history.json"
    workbenches = [Edits(path), Edits(path)]
    fastest = {}
    for number in range(31):
        edit = Edit(f"; {number}", is_correct=True, gflops=float(number), n=rng.choice([64, 128]))
        one, other = rng.sample(workbenches, 2)
        (waiting.append if number % 2 else one.add)(edit)
        fastest[edit.n] = edit.text
    monkeypatch.undo()
    for edit in waiting:
        other.add(edit)
    for edits in workbenches:
        edits.read_changes()
        edits.save()
    written = Edits(path)
    assert order(int(edit.text[2:]) for edit in written) == [*range(31)]
    assert len({edit.number for edit in written}) == 31
    assert {n: written.find_fastest(n).text for n in fastest} == fastest
    assert written.find_fastest(64, 31.0) is None


@pytest.mark.parametrize("name", ["sgemm_tn", "sgemm_naive", "dgemm_nn"])
def test_a_catalog_kernels_text_takes_no_readers_place(tmp_path, name):
    """However fast it is, and with whatever spaces. Nor does an incorrect one."""
    edits, given = Edits(tmp_path / ".my.il.history.json"), ck.kernels[name].text
    mine = Edit(given + "\nmov r99, r98", is_correct=True, gflops=1.0, n=64)
    for text in (given, given.replace("\n", "\n\n  ")):
        edits.add(mine)
        edits.add(Edit(text, is_correct=True, gflops=2.0, n=64))
        edits.add(Edit("incorrect", is_correct=False, gflops=3.0, n=64))
        assert edits.find_fastest(64).text == mine.text


@seeded(8)
def test_a_new_step_begins_with_the_readers_best_and_no_text_is_replaced(
    seed, tmp_path, monkeypatch
):
    """The law: of the steps that a step goes on from, whatever was made there, in any order. A step
    that reorders lines begins with the given order.
    """
    chance = random.Random(seed)
    monkeypatch.chdir(tmp_path)
    best = {}
    steps = chance.sample(["01b", "02", "03", "04", "12", "contest"], 6)
    made = {}
    for number, step in enumerate(steps):
        chain = [step]
        while STEPS[chain[-1]].previous_step and not STEPS[step].is_reordered:
            chain.append(STEPS[chain[-1]].previous_step)
        before = max((best[s] for s in chain if s in best), default=None)
        bench = ck.workbench(step=step)
        if before is None:
            assert bench.text == STEPS[step].starter
        else:
            assert bench.text == before[1]
            origin = f"your kernel from step {before[2]}, {before[0]:,.0f} Gflop/s"
            assert bench.history[0].note == origin
        text, gflops = f"{NAIVE}; {number}\n", chance.uniform(100, 2000)
        if chance.random() < 0.3:
            text = STEPS[step].starter
        right = chance.random() < 0.7
        talk = bench.conversation
        talk.supervisor.start = Actor
        talk.take_text(f"a-{number}", text)
        judge(talk, gflops, right)
        talk.close()
        if right and text != STEPS[step].starter:
            best[step] = gflops, text, step
        made[step] = text
        assert {s: Path("climb", STEPS[s].file).read_text() for s in made} == made


def handed_in(step, monkeypatch):
    """What a notebook's cell that opens a step's workbench is saved with, and the workbench."""
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: shown.append(bundle))
    bench = ck.workbench(step=step)
    show_submitted(bench.conversation)
    return [{"output_type": "display_data", "data": shown[0]}], bench


def save_notebook(path, outputs):
    path.write_text(json.dumps({"cells": [{"source": ""}, *({"outputs": o} for o in outputs)]}))


def test_run_all_in_another_folder_loses_nothing_that_a_notebook_keeps(tmp_path, monkeypatch):
    """A notebook's cells are run in a folder whose history keeps some of the steps, and each is
    saved with what that history keeps, or else with what it was saved with. A workbench opens with
    it, and what the folder's file held is not lost.
    """
    monkeypatch.chdir(tmp_path)
    Path("climb").mkdir()
    places = {step: Path("climb", STEPS[step].file) for step in ("03", "01b", "00", "02", "01a")}
    brought = {step: f"{NAIVE}; {step}, brought\ud83d\n" for step in ("00", "01a", "02")}
    own = {step: f"il_ps_2_0\n; {step}, of here" for step in ("01b", "02")}
    for step, text in own.items():
        kept = Edit(text, is_correct=True, gflops=9999.0, n=STEPS[step].n)
        Edits(history_path(places[step])).add(kept)
    held = "il_ps_2_0\n; of here"
    places["01a"].write_text(held)
    saved = [[{"data": {MIME: {"step": step, "text": text}}}] for step, text in brought.items()]
    save_notebook(tmp_path / "moved.ipynb", saved)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "moved.ipynb"))
    wanted = {step: text.replace("\ud83d", "\ufffd") for step, text in brought.items()} | own
    outputs, saved_kernels = [], []
    for step in places:
        output, bench = handed_in(step, monkeypatch)
        outputs.append(output)
        handed = {name: kept.text for name, kept in find_step_texts(output).items()}
        assert handed == {name: text for name, text in wanted.items() if name == step}
        assert bench.text == bench.path.read_text() == wanted.get(step, STEPS[step].starter)
        if step not in own and bench.saved_kernel:
            saved_kernels.append(step)
    assert saved_kernels == ["00"], "no other target is as low"
    found = {step: Edits(history_path(path)) for step, path in places.items()}
    assert {step: submitted_edit(found[step], STEPS[step]).text for step in wanted} == wanted
    assert found["01a"].find_text(held)
    save_notebook(tmp_path / "moved.ipynb", outputs)
    assert {step: saved.text for step, saved in read_step_texts().items()} == wanted


def test_until_a_step_keeps_a_text_its_last_one_is_handed_in(tmp_path, monkeypatch):
    """The law of hand-ins: what was typed and judged last, right or wrong; then what is kept."""
    shown = []

    class Handle:
        def update(self, bundle, raw):
            shown.append(bundle)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "IPython.display.display", lambda bundle, **_: shown.append(bundle) or Handle()
    )
    bench = ck.workbench(step="01b")
    talk = bench.conversation
    talk.supervisor.start = Actor
    show_submitted(talk)
    assert MIME not in shown[0], "nothing was typed"
    wanted = []
    for edit, (gflops, right) in enumerate(
        [(90.0, False), (300.0, True), (1000.0, True), (9.0, False)]
    ):
        talk.take_text(f"a-{edit}", f"{NAIVE}; {edit}\n")
        judge(talk, gflops, right)
        wanted.append((talk.text, gflops == 1000.0) if edit < 3 else wanted[-1])
        held = find_step_texts([{"data": shown[-1]}])
        assert held["01b"][:2] == wanted[-1]
        kept = [text for text, reaches_target in wanted if reaches_target]
        assert [bench.saved_kernel.text if bench.saved_kernel else None] == (kept or [None])[-1:]
    talk.close()


@pytest.mark.parametrize(
    "saved",
    [
        "{",
        "[" * 100_000,
        "7",
        '{"cells": 7}',
        '{"cells": [7]}',
        '{"cells": [{"outputs": 7}]}',
        *(
            json.dumps({"cells": [{"outputs": [{"data": {MIME: {"step": "00", "text": text}}}]}]})
            for text in (7, "", "a" * MAX_TEXT)
        ),
        None,
    ],
    ids=lambda saved: str(saved)[:20],
)
def test_a_notebook_that_holds_no_kept_text_brings_none(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if saved:
        Path("odd.ipynb").write_text(saved)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "odd.ipynb"))
    bench = ck.workbench(step="00")
    assert bench.text == STEPS["00"].starter and not saved_edit(bench.history, STEPS["00"])


@pytest.mark.parametrize("right", [False, True])
def test_what_was_read_is_in_the_history_whatever_replaces_it(talk, right, monkeypatch):
    """Also if the figures are those of a half-typed line. Of a burst, whose judgments nobody could
    read, the last text is kept, and the one that it began with.
    """
    now = 1e9
    monkeypatch.setattr("time.time", lambda: now)
    verdict = {"is_correct": right, "message": ""}
    monkeypatch.setitem(FIGURES, "verdict", verdict)
    typed = "; finished"
    texts = [NAIVE + typed[:end] for end in range(len(typed) + 1)]
    talk.conversation.hear({"type": "shown", "edit": "file-0"})
    talk.settle("file-0")
    for number, text in enumerate(texts):
        talk.type(f"a-{number}", text)
        talk.settle(f"a-{number}")
        now += 0.06
    now += 3.5
    others = [NAIVE + "; other", NAIVE + "; one more"]
    for number, text in enumerate([others[0], "", others[1]]):
        talk.type(f"b-{number}", text)
        talk.settle(f"b-{number}")
        now += 3.5
    talk.conversation.hear({"type": "hello"})
    talk.conversation.hear({"type": "shown", "edit": talk.conversation.edit})
    assert [edit.text for edit in talk.conversation.edits if edit.text] == [
        NAIVE,
        texts[-1],
        *others,
    ]
    timed = [edit.bound for edit in talk.conversation.edits if edit.gflops]
    assert {*timed} == {FIGURES["clocks"]["bound"]}


@drawn_by_day("name", ["00", "own"], 1)
def test_a_step_saves_what_the_reader_wrote_alone(name, tmp_path, monkeypatch):
    """Neither the text that it begins with, nor one that came with a link."""
    monkeypatch.chdir(tmp_path)
    step, bench = STEPS[name], ck.workbench(step=name)
    talk = bench.conversation
    talk.supervisor.start = Actor
    talk.answer_here()
    assert bench.text == step.starter and bench.history and bench.saved_kernel is None
    assert "costs" in talk.missing_parts  # a page gets those, too
    linked = starter_text(step.reference) + "; theirs"
    talk.load(linked, LINKED_NOTE)
    talk.answer_here()
    assert bench.history[-1].is_correct and bench.saved_kernel is None
    for again in (step.starter, linked):
        talk.load(again, "again")
        talk.answer_here()
    assert bench.history[-1].is_correct and bench.saved_kernel is None
    talk.take_text("a-1", linked + "; mine")
    talk.answer_here()
    assert bench.saved_kernel.text == linked + "; mine"


@pytest.mark.parametrize("name", ["static_answers.code_answer", "answering.multiply_small"])
def test_a_fault_of_the_package_is_told_where_no_page_is(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"cypresskit.editing.{name}", None)
    with pytest.warns(UserWarning, match="a bug in cypresskit"):
        ck.workbench(step="00", text=NAIVE.replace("r3.x", "r2.x"))


@pytest.mark.parametrize("step", ["larger", "contest"])
def test_the_record_is_not_given(step):
    assert STEPS[step].starter == STEPS["12"].starter


# -- several workbenches


def test_only_a_workbench_that_is_shown_judges(tmp_path):
    """Of two with other sizes of one file."""
    path = tmp_path / "my.il"
    path.write_text(NAIVE)
    shown, other = (ck.workbench(path, like="sgemm_naive", n=n).conversation for n in (256, 512))
    actors = {}

    def begin(talk):
        def start(hear):
            actors[talk] = Actor(hear)
            return actors[talk]

        return start

    for talk in (shown, other):
        talk.supervisor.start = begin(talk)
    shown.hear({"type": "hello"}, [].append)
    shown.hear({"type": "shown", "edit": shown.edit})
    shown.hear({"type": "text", "edit": "a-1", "text": NAIVE + "; mine"}, [].append)
    other.look()
    assert other.text == NAIVE + "; mine" and other not in actors
    while actors[shown].can_speak:
        actors[shown].speak()
    assert any(edit.gflops for edit in shown.edits)
    for talk in (shown, other):
        talk.close()
