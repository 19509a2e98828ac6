"""The shell around a check: whatever an answer does becomes a verdict that isn't right, and a fault
of the package is never reported as the student's.
"""

import math
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import cheats
import numpy as np
import pytest

import cypresskit as ck
from cypresskit.editing.steps import STEPS
from cypresskit.il.errors import ArgumentError
from cypresskit.isolated import answer, here, process
from cypresskit.teach import check as shell
from cypresskit.teach import formula, kernels
from cypresskit.teach.answer_source import AnswerSource
from cypresskit.teach.check import Verdict
from cypresskit.teach.l00_start_here import checks as start
from cypresskit.teach.l08_small import checks as small
from cypresskit.teach.l09_bus import checks as bus
from cypresskit.teach.l10_larger import checks as larger
from cypresskit.teach.l12_contest import checks as contest
from cypresskit.teach.notebook import progress


@pytest.fixture
def soon(monkeypatch):
    """An answer may take 2 s."""
    monkeypatch.setattr(shell, "SECONDS", 2.0)


@pytest.fixture(params=[False, True], ids=["apart", "here"])
def either_process(request, monkeypatch):
    """An answer runs in a process of its own, or in the notebook's, as in a browser."""
    monkeypatch.setattr(here, "IS_USED", request.param)


def forever(*_):
    while True:
        pass


def twice(*_):
    try:
        return twice()
    except RecursionError:
        return twice()


def endless(*_):
    while True:
        yield 0, 0


class Unsayable(BaseException):
    def __str__(self):
        raise ValueError("no text")


def unsayable(*_):
    raise Unsayable


PEAK = "peak(20, 16, 5, 0.85)"


@pytest.mark.parametrize(
    ("check", "answer", "call", "main"),
    [
        (start.check_peak, forever, PEAK, False),
        (start.check_peak, twice, PEAK, True),
        (larger.check_order, endless, "order(2, 3)", True),
    ],
)
def test_an_answer_that_does_not_end_is_stopped(soon, check, answer, call, main):
    with ThreadPoolExecutor(1) as pool:
        verdict = check(answer) if main else pool.submit(check, answer).result()
    assert str(verdict).startswith(
        f"Not yet. `{call}` had not ended after 2 s: does its loop end?\n"
    )
    assert check(lambda *_: 0).message != verdict.message, "the next one has its own time"


def test_an_answer_that_waits_is_stopped(soon):
    assert "had not ended after 2 s" in start.check_peak(lambda *_: time.sleep(100)).message


@pytest.mark.parametrize("answer", [lambda *_: "x" * 10**10, lambda *_: list(iter(int, 1))])
def test_an_answer_that_fills_the_memory_is_stopped(monkeypatch, answer):
    monkeypatch.setattr(shell, "MEGABYTES", 20)
    verdict = start.check_peak(answer)
    assert (
        verdict.message
        == f"`{PEAK}` fills the memory: is an array too large, or growing without end?"
        and "add to" in verdict.hint
    )


def test_an_answer_that_ends_python_ends_a_copy(capsys):
    verdict = start.check_peak(lambda *_: print("before") or os.kill(os.getpid(), signal.SIGKILL))
    assert verdict.message == f"`{PEAK}` crashes Python (SIGKILL)."
    assert capsys.readouterr().out == "before\n"
    assert f"`{PEAK}` crashes Python." in start.check_peak(lambda *_: os._exit(0)).message


def test_what_an_answer_changes_is_gone_afterwards():
    seen = []
    before = sys.getrecursionlimit(), os.getcwd(), formula.isclose
    start.check_peak(lambda *_: seen.append(1) or os.chdir("/") or math.isclose.no)
    assert not seen and before == (sys.getrecursionlimit(), os.getcwd(), formula.isclose)


def test_where_no_python_can_be_started_no_answer_is_run(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no room")

    monkeypatch.setattr(answer, "NOTEBOOK_SERVER", process.ForkServer())
    monkeypatch.setattr(process.subprocess, "Popen", refuse)
    assert "no Python can be started here (no room)" in start.check_peak(lambda *_: 0).message


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda *_: sys.exit(), "tries to quit Python"),
        (lambda *_: input("?"), f"`{PEAK}` waits for `input`"),
        (lambda *_: bytes(10**18), f"`{PEAK}` fills the memory"),
        (lambda *a: exec("f = lambda n: f(n)\nf(1)", {}), "RecursionError"),
        (unsayable, "stops with Unsayable, in line"),
    ],
)
def test_what_would_leave_the_check_becomes_a_verdict(soon, answer, said):
    verdict = start.check_peak(answer)
    assert not verdict.right and verdict.hint and said in verdict.message


@pytest.fixture
def calls(monkeypatch):
    """The calls that a formula's check has made, as a student would write them."""
    made = []

    def call_answer(call, *arguments, **options):
        made.append(call)
        return shell.call_answer(call, *arguments, **options)

    monkeypatch.setattr(formula, "call_answer", call_answer)
    return made


def test_an_answer_that_does_not_end_is_called_once(soon, calls):
    assert "had not ended after" in start.check_peak(forever).message
    assert calls == [PEAK]


def test_the_stop_button_stops_an_answer(calls):
    for seconds in (1, 4, 16, 64):  # a busy computer may not have begun with it sooner
        signalled = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        signalled.start()  # what JupyterLab's button sends
        calls.clear()
        verdict = start.check_peak(forever)
        if verdict.message != "The check was stopped.":
            break
    assert verdict.message == f"You stopped it while `{PEAK}` was running: does its loop end?"
    assert calls == [PEAK], "no other call is tried"
    assert start.check_peak(lambda *given: 2 * np.prod(given)).right, "the next one is judged"


def test_a_page_of_what_an_answer_prints_is_shown(either_process, capsys):
    def talks(e, p, u, g):
        for n in range(5_000):
            print("line", n)
        print("x" * 10_000_000, end="")
        return 2 * e * p * u * g

    assert start.check_peak(talks).right
    out = capsys.readouterr().out.splitlines()
    assert out[19:] == ["line 19", "..."]
    assert start.check_peak(lambda e, p, u, g: print("once") or 2 * e * p * u * g).right
    assert capsys.readouterr().out == "once\n" * (4 + formula.N_RANDOM_CASES)


def peak_that_fails(engines, processors, lanes, clock):
    chips = [engines]
    return chips[3]


def test_an_error_in_an_answer_names_its_line(either_process):
    finding = start.check_peak(peak_that_fails).message
    assert finding.endswith(
        " stops with IndexError: list index out of range, in line 3: `return chips[3]`."
    )


@pytest.mark.parametrize(
    ("message", "shown"),
    [("x" * 4_000, "x" * 4_000), ("x" * 4_001, "x" * 4_000 + " ... (4,001 characters)")],
)
def test_a_verdict_is_cut_behind_the_most_that_is_shown(message, shown):
    assert shell.exercise(lambda text: Verdict(False, message))("").message == shown


def test_progress_counts_the_lessons_exercises():
    line = partial(progress, {})
    bus = "cypresskit.teach.l09_bus.checks"
    assert line((bus, "check_balance"), False) == "Exercises of this lesson: ○ ○ ○ 0 of 3 right"
    assert line((bus, "check_size_for"), True) == "Exercises of this lesson: ○ ○ ● 1 of 3 right"
    assert line(None, True) == ""


# -- cheats: each earned credit once


BODIES = "HALTED FRAMES OBJECTS EQUAL FORGED PATCHED".split()
CHEATS = {
    "two sizes": (cheats.TWO_SIZES, "ceiling", small.check_ceiling),
    "reference": (cheats.REFERENCE, "seconds", bus.check_seconds),
    "by host": (cheats.BY_HOST, "product", larger.check_product),
    "larger card": (cheats.LARGER_CARD, "product", larger.check_product),
}
for name in BODIES:
    cell = f"def seconds(*given):\n{getattr(cheats, name)}"
    CHEATS[name] = cell, "seconds", bus.check_seconds


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_earns_nothing(name):
    cell, asked, check = CHEATS[name]
    verdict = check(AnswerSource(["import cypresskit as ck", cell], asked))
    assert not verdict.right and not verdict.is_broken and verdict.hint, verdict


# -- the package's own faults


FAULTS = [RuntimeError("internal error 17"), ValueError("operands")]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("target", "check", "answer"),
    [
        ("l00_start_here.checks.simulate", start.check_half, 896),
        (
            "climb.verify_text",
            ck.teach.texture_cache.check_numbering,
            ck.teach.starter_text("05"),
        ),
    ],
)
def test_a_fault_of_the_package_is_not_the_students(target, check, answer, fault, monkeypatch):
    def fails(*_, **__):
        raise fault

    monkeypatch.setattr(f"cypresskit.teach.{target}", fails)
    verdict = check(answer)
    text = str(verdict)
    assert verdict.is_broken and not verdict.right and text.startswith("Not judged."), text
    assert "This check is broken" in text and "Traceback" in text and "report it" in text
    assert type(fault).__name__ in text and "return just what" not in text


@pytest.mark.parametrize(
    ("step", "check"),
    [
        ("01b", ck.teach.register_block.check_four_by_four),
        ("03", ck.teach.bundles.check_products),
        ("contest", contest.check_entry),
    ],
)
@pytest.mark.parametrize("text", ["", " \n"])
def test_where_a_step_keeps_nothing_its_check_says_so(step, check, text):
    verdict = check(text)
    assert (
        not verdict.right
        and f'Nothing was saved for the step "{STEPS[step].title}"' in verdict.message
    )
    assert "assemble" not in str(verdict) and 'it says "Saved"' in verdict.hint


def test_a_fault_while_the_contest_judges_is_no_score(monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("internal error 17")

    monkeypatch.setattr(contest, "time_kernel", fails)
    score = contest.judge(replace(contest.generate_kernel(4, 4, 1), name="fails"), n=256)
    assert score.verdict.is_broken and "internal error 17" in score.verdict.message


def test_the_limit_of_a_cell_that_does_not_end_is_told(monkeypatch):
    monkeypatch.setattr(shell, "MAKING", answer.CallLimits(1.5, 2_000))
    source = AnswerSource(["half = 1\nwhile True:\n    pass"], "half")
    verdict = shell.exercise(lambda half: None)(source)
    assert "`the cell of half` had not ended after 1.5 s" in verdict.message


def no_answer(given, *_):
    """A check that says what it was given. Its annotations aren't objects."""
    return Verdict(True, type(given).__name__)


@pytest.mark.parametrize(
    ("decorated", "kind"), [(shell.exercise, "Other"), (shell.function_exercise, "Answer")]
)
def test_the_decorator_alone_says_whether_an_answer_is_called(decorated, kind):
    source = AnswerSource(["given = abs"], "given")
    assert decorated(no_answer)(source) == Verdict(True, kind)


@pytest.mark.parametrize(
    ("error", "is_students"),
    [(ArgumentError("a size"), True), (ValueError("a size"), False), (TypeError("x"), False)],
)
def test_only_an_argument_error_is_the_students(error, is_students):
    """Wherever it is raised: here, in no file of the package."""

    def judge(_):
        raise error

    verdict = kernels.kernel_exercise("own.il")(judge)(
        "il_ps_2_0\ndcl_output_generic o0\ndcl_literal l0, 0, 0, 0, 0\nmov o0, l0\nend"
    )
    assert verdict.is_broken == (not is_students) and not verdict.right
    assert "a size" in verdict.message or not is_students


@pytest.mark.parametrize("watched", [True, False])
def test_a_check_that_takes_long_says_what_it_still_does_to_who_watches(
    watched, monkeypatch, capsys
):
    monkeypatch.setattr(shell, "PATIENCE", 0.0)
    monkeypatch.setattr(shell, "is_watched", lambda: watched)
    with shell.announce_if_slow("C is correct."):
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join()
    assert capsys.readouterr().err == "C is correct.\n" * watched


@pytest.mark.parametrize(
    ("text", "noted"), [("", "Write"), ("Yes", "(1 word)"), ("a b", "(2 words)")]
)
def test_an_explanation_is_noted_by_its_words(text, noted):
    assert noted in repr(ck.teach.explanation(text))
