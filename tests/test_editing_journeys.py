"""Journeys over the conversation: from the right answer of each exercise whose answer is a kernel,
and of each step of the climb, to each wrong one.

What the workbench says of a text is what the package says of it: faults are those of ``assemble``,
findings those of ``check``; and the red terms of a wrong product lead to the line that was changed.
"""

from collections import defaultdict
from difflib import SequenceMatcher

import numpy as np
import pytest
from answers import kernel_answers, planted, right_kernel

import cypresskit as ck
from cypresskit.editing.answering import AnswerHere
from cypresskit.editing.conversation import Conversation
from cypresskit.editing.kernel_file import KernelFile
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.kernels.statement import state

NOTHING = {"like": None, "n": 64}


class Untimed(AnswerHere):
    """Answers here, without clocks and costs, which take longest."""

    def ask(self, job):
        parts = [part for part in job["parts"] if part not in ("clocks", "costs")]
        super().ask(job | {"parts": parts})


class Journey:
    """A conversation that begins with a right text."""

    def __init__(self, path, right, settings=NOTHING):
        path.write_text(right)
        self.talk = Conversation(KernelFile(path), dict(settings), Untimed)
        self.said, self.typed = [], 0
        self.talk.pages.append(self.said.append)
        assert self.type(right)["verdict"]["right"]

    def type(self, text):
        """The answers to a text, by part."""
        self.typed += 1
        edit = f"a-{self.typed}"
        self.said.clear()
        self.talk.begin(edit, text)
        assert {message["edit"] for message in self.said if "edit" in message} == {edit}
        assert not [message for message in self.said if message["type"] == "trouble"]
        return {m["part"]: m for m in self.said if m["type"] == "answer"}


def changed_lines(right, wrong):
    """The lines of a wrong text that a right one hasn't, and those beside a gap."""
    matcher = SequenceMatcher(None, right.splitlines(), wrong.splitlines(), autojunk=False)
    changes = set()
    for kind, _, _, first, last in matcher.get_opcodes():
        if kind != "equal":
            changes |= set(range(first + 1, last + 1)) or {first, first + 1}
    return changes


def assembled(text):
    """The program, or the faults' places."""
    try:
        return ck.assemble(text, "my.il"), []
    except ck.ILError as error:
        return None, [(fault.line, fault.column) for fault in error.faults]


def products():
    """Those that multiply matrices: {(exercise, right text): [wrong text, ...]}."""
    by_exercise = defaultdict(list)
    for name, right, wrong in kernel_answers():
        if name not in LAUNCHES:
            by_exercise[name, right].append(wrong)
    return by_exercise


def added_numbers():
    """The launch of the exercise on adding 16 numbers."""
    texels = np.random.default_rng(16).integers(1, 1000, (1, 5, 4)).astype(np.float32)
    out = np.zeros((1, 2, 4), np.float32)
    return {"domain": (2, 1), "inputs": {0: texels}, "outputs": {0: out}}


LAUNCHES = {"check_sum": added_numbers}
#: The checks of the climb, by step.
CHECKS = {
    "01a": "check_two_by_two",
    "02": "check_larger_block",
    "06": "check_in_double",
    "12": "check_two_steps",
}


@pytest.mark.slow
@pytest.mark.parametrize("step", CHECKS)
def test_the_workbench_calls_right_what_the_check_does(tmp_path, step):
    """At its step: what isn't right isn't kept, and a hand-in that is kept is marked right."""
    answers = {check.__name__: (check, *rest) for check, *rest in planted().items()}
    check, (right, wrong) = answers[CHECKS[step]]
    settings = NOTHING | {"like": STEPS[step].like, "step": step}
    journey = Journey(tmp_path / "my_kernel.il", right[0], settings)
    for text in (*right[1:], *(answer for answer, _ in wrong[::5])):
        if isinstance(text, str) and text.startswith("il_"):
            shown = journey.type(text).get("verdict", {"right": False})["right"]
            message = check(text).message
            assert shown == message.startswith("C is correct") or "unchanged" in message, text


@pytest.mark.slow
def test_wrong_answers_of_the_exercises_are_found_at_their_lines(tmp_path):
    counts = defaultdict(int)
    missed = []
    for (name, right), texts in products().items():
        like = right_kernel(right)
        if like is None:
            counts["without a launch"] += len(texts)
            continue
        head = right.partition("\n")[0]
        if "; product" in head:
            told = head
        else:  # its launch is that of a step
            told = f"{head}  {state(like.convention)}"
        right, *texts = (text.replace(head, told, 1) for text in (right, *texts))
        journey = Journey(tmp_path / f"{name.replace(' ', '_')}.il", right)
        for wrong in texts[::10]:  # every tenth one of an exercise
            found = journey.type(wrong)
            program, faults = assembled(wrong)
            if faults:
                places = [(fault["line"], fault["column"]) for fault in found["text"]["faults"]]
                assert places == faults
                assert list(found) == ["text"]
                counts["faults"] += 1
                continue
            assert not found["text"]["faults"]
            if "refusal" in found["code"]:
                with pytest.raises((ck.CompileError, ValueError)):
                    ck.compile(program)
                counts["refused"] += 1
                continue
            verdict = found["verdict"]
            lines = [
                found["line"]
                for found in verdict["findings"]
                if found["kind"] not in ("launch", "answer", "changed")
            ]
            try:
                mine = ck.load_kernel(wrong, like=like, block=like.block, k_step=like.k_step)
                findings = ck.verify(mine).findings
            except ValueError:
                findings = ()
            wanted = [f.line for f in findings]
            names_change = any(found["kind"] == "changed" for found in verdict["findings"])
            assert lines == wanted or names_change, f"{name}:\n{wrong}"
            counts["findings"] += len(lines)
            if any(found["kind"] == "answer" for found in verdict["findings"]):
                terms = found["replay"].get("terms", ())
                red = [term for term in terms if not term["right"]]
                changes = changed_lines(right, wrong)
                counts["wrong products"] += 1
                hit = any(changes & {term["line"], *term["lines"]} for term in red)
                absent = all(not term["line"] or "is missing" in term["note"] for term in red)
                counts["of them at the line to go to"] += any(t["line"] in changes for t in red)
                counts["of them of a line that is gone"] += absent and not hit
                counts["red at the planted line"] += hit or absent
                if not (hit or absent):
                    missed.append(f"{name}: {sorted(changes)}, {found['replay'].get('notes')}")
            counts["right" if verdict["right"] else "wrong"] += 1
    print(dict(counts), *missed, sep="\n")
    assert counts["wrong products"] > 7
    assert counts["red at the planted line"] >= 0.9 * counts["wrong products"], "\n".join(missed)


def test_a_hint_that_names_figures_of_the_book_has_those_of_its_code():
    made = kernel_stats(reference_kernel(STEPS["03"].reference))
    bundles = f"{made.bundles_per_iteration} bundles"
    words = f"{bundles} and {made.gprs} registers, for {made.wavefronts} wave"
    assert words in STEPS["03"].hint
