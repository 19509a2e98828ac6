"""The checks accept what is right, reject what is wrong and say where to look; and what lessons
show beside them.
"""

import _thread
import math
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib import import_module
from inspect import signature
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from answers import planted

import cypresskit as ck
from cypresskit.compiler import compile, kernel_card
from cypresskit.compiler.ports import Ports, slot_reads
from cypresskit.devices import HD5870
from cypresskit.host import largest_block
from cypresskit.machine.checks.findings import SHOWN, Finding, Findings
from cypresskit.teach import check as shell
from cypresskit.teach import formula
from cypresskit.teach import l00_start_here as start
from cypresskit.teach import l03_bundles as bundles
from cypresskit.teach import l08_small as small
from cypresskit.teach import l09_bus as bus
from cypresskit.teach import l10_larger as larger
from cypresskit.teach import l11_pipelines as pipelines
from cypresskit.teach import l12_contest as contest
from cypresskit.teach.check import Verdict
from cypresskit.teach.kernels import Written, fault
from cypresskit.teach.l01_register_block import SIZES, block_gemm
from cypresskit.teach.l02_why_blocks import counted, pace
from cypresskit.teach.l04_registers import BUDGET
from cypresskit.teach.l06_double_double import hilbert
from cypresskit.teach.l08_small import first_quad
from cypresskit.teach.notebook import html, install, progress, unread

CHECKS = planted()


def in_one_copy(work: Callable[[], str]) -> str:
    """What some work returns in a copy of this process, where no answer is judged in a copy of its
    own.
    """
    return shell._copied(lambda: Verdict(True, work())).finding if shell.FORKS else work()


def said_otherwise(check, answer, right: bool, *words: str) -> str:
    """What is wrong with the verdict on a planted answer, or nothing."""
    verdict = check(answer)
    text = str(verdict)
    fine = (
        verdict.right == right
        and bool(verdict.hint) != right
        and all(word in text for word in words)
    )
    return (
        ""
        if fine
        else (
            f"{answer.__code__.co_filename if hasattr(answer, '__code__') else repr(answer)}:"
            f" {text}\n"
        )
    )


SIMULATES = (
    contest.check_entry,
    contest.check_two_steps,
    contest.check_chip,
)  # whole launches for each answer
EACH = [pytest.param(check, marks=[pytest.mark.slow] * (check in SIMULATES)) for check in CHECKS]


@pytest.mark.parametrize(
    "check", EACH, ids=lambda check: f"{check.__module__.split('.')[-1]}-{check.__name__}"
)
def test_planted_answers_get_their_verdicts(check):
    """Right ones are accepted; wrong ones aren't, and it is said why."""
    right, wrong = CHECKS[check]
    planted = [(answer, True) for answer in right] + [
        (answer, False, *words) for answer, words in wrong
    ]

    def failed() -> str:
        return "".join(said_otherwise(check, *one) for one in planted)

    assert not (in_one_copy(failed) if callable(right[0]) else failed())


def test_a_verdict_on_findings_is_a_sentence_and_counts_the_others():
    loop = Finding(
        "endless", "mine.il", 4, 1, "endloop", "this loop has not ended", "what ends it?"
    )
    opcode = replace(loop, message="mad reads r1, which was never written")
    assert (
        fault(Findings([loop])).finding == "This loop has not ended. Line 4 of the kernel: endloop"
    )
    assert fault(Findings([loop] * 2)).finding.endswith(
        "(1 more finding follows from it, or comes next.)"
    )
    assert fault(Findings([loop] * 3)).finding.endswith(
        "(2 more findings follow from it, or come next.)"
    )
    assert str(Findings([loop] * (SHOWN + 1))).endswith("... and 1 more finding")
    assert fault(Findings([opcode])).finding.startswith("mad reads")
    assert fault(Findings([replace(loop, message="work-item 3 reads it")])).finding.startswith(
        "Work-item 3 reads it."
    )


def test_every_check_has_answers():
    lessons = {check.__module__ for check in CHECKS}
    assert len(lessons) == len(list(Path(__file__).parents[1].glob("notebooks/source/[0-9]*.md")))
    for lesson in lessons:
        module = import_module(lesson)
        checks = {value for name, value in vars(module).items() if name.startswith("check_")}
        own = {check for check in checks if check.__module__ == lesson}
        assert not own - set(CHECKS)
        assert {tuple(signature(check).parameters)[1:] for check in own} <= {
            (),
            ("step",),
        }, "each takes an answer"


def test_a_slip_is_named_only_if_it_explains_every_result():
    def judged(answer):
        made = formula.formula_exercise(
            [(2.0,), (3.0,)], {"SLIP": lambda x: 2 * x + 4}, "HINT", name="f"
        )
        return made(lambda x: x * x)(answer)

    assert judged(lambda x: x**2).right
    assert judged(lambda x: 2 * x + 4).hint == "SLIP"
    assert judged(lambda x: 8).hint == "HINT"
    assert judged(lambda x: 2 * x).hint == "HINT (1 of 2 calls are right.)"
    assert judged(lambda x: 4).hint.startswith("it gives that in every call")


def test_where_a_whole_number_is_right_its_neighbour_is_not():
    def judged(answer):
        return formula.formula_exercise([(100,), (200,)], {}, "HINT", name="f")(lambda x: x**3)(
            answer
        ).right

    assert judged(lambda x: float(x**3)) and not judged(lambda x: x**3 + 1)


def test_who_knows_the_shown_results_by_heart_is_found_out():
    """A function that is right as often as it was called before it was found to be right for what
    is shown.
    """

    def by_heart(right, asked, *case):
        value = right(*case)
        return value if next(asked) else not value if isinstance(value, bool) else value - 1

    formulas = {
        check: right
        for check, ((right, *_), _) in CHECKS.items()
        if check.__wrapped__.__code__.co_filename == formula.__file__
    }

    def missed() -> str:
        told = []
        for check, right in formulas.items():
            count, counts, _ = check(right).finding.partition(" calls give what they should")
            verdict = check(
                partial(
                    by_heart, right, chain(repeat(True, int(count) if counts else 0), repeat(False))
                )
            )
            fine = "is wrong for other numbers." in verdict.finding and "should be" not in str(
                verdict
            )
            told += [] if fine and not verdict.right else [f"{check}: {verdict}"]
        return "\n".join(told)

    assert len(formulas) > 20 and not in_one_copy(missed)


def test_numbers_are_drawn_between_those_that_are_shown():
    shown = [(128, 0.5, 4), (1024, 0.25, 8), (640, 4.0, 4)]
    for _ in range(50):
        n, share, size = formula.drawn(shown)
        assert n % 128 == 0 and 128 <= n <= 1024 and size in (4, 8) and 0.25 <= share <= 4


@pytest.mark.parametrize(
    ("check", "rounded"),
    [
        (bus.check_balance, lambda b, f, s, moved: round(moved * s * f / b / 2)),
        (bus.check_balance, lambda b, f, s, moved: int(moved * s * f / b / 2)),
        (bus.check_size_for, lambda p, b, f: math.ceil(16 * f / b / (1 / p - 1))),
        (pipelines.check_share, lambda s, c, g: round(s * g / (s * g + (1 - s) * c), 3)),
    ],
)
def test_what_is_right_but_rounded_is_told_so(check, rounded):
    assert check(rounded).hint.startswith("right, but rounded")


def test_what_is_rounded_is_told_so_of_other_numbers_too():
    made = formula.formula_exercise([(2.0,), (3.0,)], {}, "HINT", draw=lambda: (2.1,), name="f")
    assert made(lambda x: x)(round).hint.startswith("right, but rounded")


def test_what_a_verdict_shows_alike_is_alike():
    assert bus.check_balance(lambda b, f, s, moved: float(f"{moved * s * f / b / 2:.6g}")).right


def test_what_is_nearly_a_number_is_told():
    for answer, hint in (((2720, 5), "1.3, not 1,3"), (np.array([2720.0]), ".item()")):
        assert hint in start.check_peak(lambda *_, answer=answer: answer).hint


def test_a_check_that_is_given_nothing_says_what_it_takes():
    assert "`check_peak(peak)` checks peak" in str(start.check_peak())


def peak_that_fails(engines, processors, lanes, clock):
    chips = [engines]
    return chips[3]


def test_an_error_in_an_answer_names_its_line():
    line = peak_that_fails.__code__.co_firstlineno + 2
    finding = start.check_peak(peak_that_fails).finding
    assert (
        finding == f"peak stops with IndexError: list index out of range, in line {line}: `return"
        " chips[3]`."
    )


# -- what a notebook shows of any verdict

CHECK = "ck.teach.start_here.check_peak(peak)"
GOOD, BROKEN = "def peak(e):\n    return e", "def peak(e):\n    return (e"


def test_a_cell_that_cannot_be_read_is_told_in_place_of_a_verdict_on_the_answer_of_before():
    told = str(unread(["", GOOD, CHECK, BROKEN, CHECK]))
    assert told.startswith("Not yet. Your cell with peak isn't valid Python") and "line 2" in told
    assert "half" in str(unread(["half = 128\nwhile half", "ck.teach.start_here.check_half(half)"]))


@pytest.mark.parametrize(
    "cells",
    [
        [CHECK],
        ["", GOOD, CHECK],
        [BROKEN, GOOD, CHECK],
        [GOOD, "other = (", CHECK],
        [BROKEN, "v = 1", "v"],
    ],
)
def test_cells_that_can_be_read_leave_the_verdict(cells):
    assert unread(cells) is None


@pytest.fixture
def ipython():
    """A function that starts IPython's shell with these members, which gets the verdicts' ways, and
    `ck`, if asked.
    """
    kind = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell

    def start(installed=True, **members):
        running = type("Kernel", (kind,), members).instance()
        if installed:
            install(running)
        running.user_ns["ck"] = ck
        return running

    yield start
    kind.clear_instance()


def run(shell, *cells: str) -> None:
    for cell in cells:
        shell.run_cell(cell, store_history=True)


HALF = "ck.teach.start_here.check_half(half)"


def test_a_notebook_shows_it(ipython, capsys):
    shell = ipython()
    for cell in (
        "half = 896",
        "half = (",
        "half = 0\nhalf = 1 / half",
        "half = 2\nhalf += 1 / 0",
        "half = 2\nwhile half > 0:\n    half -= 1\n    1 / half",
        "half = ck\nhalf.gemm.no = half.no",
        "half = 2\n1 / 0",
        "def half(): 1 / 0\nhalf()",
    ):
        run(shell, cell, HALF)
    shown = re.findall(r"(?:Right|Not yet)\. (.*?)[:,.<]", capsys.readouterr().out)
    isnt, stopped = (
        "Your cell with half isn't valid Python",
        "Your cell with half stopped with ZeroDivisionError",
    )
    lacks = "Your cell with half stopped with AttributeError"
    assert shown == ["N = 896 reaches 56", isnt, *[stopped] * 3, lacks, "half is 2", "half is "]


def test_an_answer_that_was_never_set_is_told_why(ipython, capsys):
    run(ipython(), "half = 2\nhalf = = 2", HALF, "print(other)")
    _, told, rest = re.split(r"(Not yet.*)", capsys.readouterr().out, maxsplit=1)
    assert "Your cell with half isn't valid Python" in told and "previous" not in told + rest
    assert (
        "line 2 of that cell" in rest
        and "name 'half'" not in rest
        and "name 'other' is not defined" in rest
    )


def test_exit_in_a_notebooks_cell_is_an_error_also_after_a_check(ipython, capsys):
    left: list = []
    running = ipython(ask_exit=lambda _: left.append(1), kernel=True)
    start.check_peak(lambda *_: running.user_ns["exit"]())
    for cell in ("def f():\n    exit()\nf()", "exit"):
        run(running, cell)
        assert "would end the notebook's kernel" in capsys.readouterr().out
    run(running, "half = 2", "exit()", "def half():\n    quit()\nhalf()", HALF)
    assert (
        "Not yet. half is " in capsys.readouterr().out
    )  # the definition didn't stop, but the line after it
    assert not left


def test_ipythons_exit_in_an_answer_is_told_and_the_kernel_stays(ipython, monkeypatch):
    monkeypatch.setattr(shell, "FORKS", False)
    left: list = []
    leave = ipython(installed=False, ask_exit=lambda _: left.append(1)).user_ns["exit"]
    assert "tries to quit Python" in start.check_peak(lambda *_: leave()).finding and not left
    leave()
    assert left


def test_what_an_answer_displays_is_printed(ipython, capsys, monkeypatch):
    display = pytest.importorskip("IPython.display").display
    monkeypatch.setattr(
        ipython().display_pub, "publish", lambda **_: None
    )  # a kernel's reaches nobody from a copy
    assert start.check_peak(lambda e, p, u, g: display(42) or 2 * e * p * u * g).right
    assert capsys.readouterr().out == "42\n" * (4 + formula.DRAWN)


def test_a_shell_that_cannot_exit_is_no_hindrance(ipython):
    assert not hasattr(ipython(installed=False), "ask_exit")
    assert start.check_peak(lambda *_: 0).finding.startswith("peak(")


# -- what lessons show


@pytest.mark.parametrize("size", SIZES)
def test_any_block_multiplies_and_fetches_one_word_for_b_flops(size):
    rng = np.random.default_rng(size)
    a, b = (rng.integers(-4, 5, (7, n)).astype(np.float32) for n in (48, 96))
    c, run = block_gemm(a, b, size)
    assert np.array_equal(c, a.T @ b)
    assert run.fetch_bytes / 4 == 2 * 48 * 96 * 7 / size
    assert run.out_of_range == 0


@pytest.mark.parametrize(
    ("name", "words"), [("sgemm_tn", 1 / 8), ("dgemm_tn_stream_2x8", 5 / 16), ("ddgemm_naive", 1)]
)
def test_kernels_fetch_what_the_formula_says(name, words):
    assert counted(name) == words


def test_the_best_block_is_neither_the_smallest_nor_the_largest():
    speeds = {size: pace(size, n=768, k=96).gflops for size in (1, 4, 8, 16)}
    assert max(speeds, key=speeds.get) == 8
    assert pace(1, n=192, k=96).bound in ("texture", "latency", "too few wavefronts")


def test_a_chip_with_more_registers_likes_large_blocks_better():
    assert pace(16, device=replace(HD5870, register_pool=1024)).gflops > 1.5 * pace(16).gflops


def test_the_table_shows_each_slot_and_what_is_handed_on():
    lines = bundles.table(bundles.tiny("add r5.x, r1.x, r1.y \n add r0, r5.x, r1.z")).splitlines()
    assert lines[0].split() == list("xyzwt")
    assert [line.split().count(".") for line in lines[1:]] == [4, 4]
    assert "ADD*" in lines[2] and "*" not in lines[1]
    assert "RECIP" in bundles.table(bundles.tiny("rcp r0, r1.x")).splitlines()[1][49:], (
        "t is the last column"
    )


def test_the_loop_is_the_cards_and_the_bound_the_compilers():
    kernel = ck.kernels["sgemm_tn"]
    code = compile(kernel.program)
    assert len(bundles.loop(code)) == kernel_card(kernel, code).loop_bundles
    operations = [o for bundle in bundles.loop(code) for o in bundle.operations]
    assert all(o.row.slots == "any" for o in operations)
    (least,), _ = CHECKS[bundles.check_least]
    assert least(len(operations), 0, 0) == code.card().bundles_bound


def test_more_chains_take_fewer_bundles_down_to_a_bound():
    counts = [len(bundles.working(bundles.chains(n))) for n in (1, 2, 4, 8, 16)]
    assert counts[:2] == [31, 16] and counts[2] <= 10 and min(counts) >= 7


@pytest.mark.parametrize(
    ("what", "reads", "want"), bundles.PORTS, ids=[what for what, *_ in bundles.PORTS]
)
def test_the_compiler_judges_the_examples_alike(what, reads, want):
    """Operands in turns of three to a slot, in the order in which they are listed, or sorted so
    that they fit.
    """
    for words in (reads, sorted(reads)):
        units = [
            slot_reads([("xyzw".index(c), r) for r, c in words[n : n + 3]], False)
            for n in range(0, len(words), 3)
        ]
        if Ports().fit(units) == want:
            return
    raise AssertionError(f"the compiler says {not want}")


def test_the_budget_lies_between_late_and_early():
    from answers.l04 import ADDS, READS, kernel

    late, early = (
        compile(ck.assemble(kernel(*lines)), style="best").gprs
        for lines in (([], READS + ADDS), (READS, ADDS))
    )
    assert late <= BUDGET < early


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_hilbert_times_its_inverse_is_one(n):
    matrix, inverse = hilbert(n)
    assert np.array_equal(matrix @ inverse, np.eye(n, dtype=int))


def test_a_quad_shares_lines_as_the_lesson_says():
    lines = {
        name: len({(r, t // 4) for r, t in first_quad(name)})
        for name in ("sgemv_n", "sgemv_n_reduce4")
    }
    assert lines == {"sgemv_n": 4, "sgemv_n_reduce4": 1}


def test_a_stack_is_faster_than_a_single_product():
    alone, stack = (ck.simulate("sgemm_packed", 128, count=count) for count in (1, 8))
    assert stack.gflops > 4 * alone.gflops and stack.flops == 8 * alone.flops == 16 * 128**3


def test_the_exercise_finds_the_largest_block_of_the_host():
    from answers.l10 import fits

    assert fits(1 << 30, 16384) == largest_block(HD5870)


def test_a_pipeline_by_hand():
    timeline = pipelines.by_hand([2, 3, 1], 4)
    assert timeline.seconds == pytest.approx(15) and timeline.bound == "mult"


# -- the contest


@pytest.mark.parametrize("shape", [(4, 4, 1), (4, 8, 2), (8, 8, 3), (12, 4, 1)])
def test_written_kernels_are_right(shape):
    score = contest.judge(contest.write(*shape), n=256)
    assert (
        score.verdict.right
        and score.gflops > 0
        and score.report.kernel.startswith(f"{shape[0]} x {shape[1]}")
    )


SGEMM = ck.kernels["sgemm_tn"]
TEXT = SGEMM.text


def test_the_leaderboard_judges_sorts_and_names_the_paper():
    own = replace(ck.HD5870, name="mine", lds_bytes=0, register_pool=288)
    kernels = [contest.write(4, 4, steps) for steps in (1, 2)]
    lines = contest.leaderboard(
        [*kernels, (kernels[0], own), (kernels[0], replace(own, clock_ghz=9.0))], n=256
    )
    head, paper, *rest, wrong = lines.splitlines()
    assert (
        "N = 256" in head
        and "Nakasato 2010" in paper
        and len(rest) == 3
        and "clock_ghz is not" in wrong
    )
    speeds = [float(line.split()[0]) for line in rest]
    assert speeds == sorted(speeds, reverse=True) and speeds[-1] > 0
    assert sum("step, mine" in line and "lds_bytes 0" in line for line in rest) == 1


# -- the shell around a check

forks = pytest.mark.skipif(not shell.FORKS, reason="no copies of a process here")


@pytest.fixture
def soon(monkeypatch):
    """An answer may take 0.2 s."""
    monkeypatch.setattr(shell, "SECONDS", 0.2)


def forever(*_):
    while True:
        pass


def deaf(*_):
    while True:
        try:
            while True:
                try:
                    sum(range(1000))
                except:  # noqa: E722
                    continue
        except:  # noqa: E722
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


@forks
@pytest.mark.parametrize("main", [True, False], ids=["in the main thread", "in another"])
@pytest.mark.parametrize(
    ("check", "answer", "call"),
    [
        (start.check_peak, forever, PEAK),
        (start.check_peak, deaf, PEAK),
        (start.check_peak, twice, PEAK),
        (larger.check_order, endless, "order(2, 3)"),
    ],
)
def test_an_answer_that_does_not_end_is_stopped(soon, check, answer, call, main):
    with ThreadPoolExecutor(1) as pool:
        verdict = check(answer) if main else pool.submit(check, answer).result()
    assert str(verdict).startswith(
        f"Not yet. `{call}` had not ended after 0.2 s of computing: does its loop end?\n"
    )
    assert check(lambda *_: 0).finding != verdict.finding, "the next one has its own time"


@forks
def test_an_answer_that_waits_is_stopped_by_the_clock(monkeypatch):
    monkeypatch.setattr(shell, "WALL", 0.3)
    assert (
        "had not ended after 0.3 s by the clock"
        in start.check_peak(lambda *_: time.sleep(100)).finding
    )


@forks
@pytest.mark.parametrize(
    "answer", [lambda *_: "x" * 10**10, lambda *_: list(iter(int, 1))], ids=["one call", "a list"]
)
def test_an_answer_that_fills_the_memory_is_stopped(monkeypatch, answer):
    monkeypatch.setattr(shell, "MEGABYTES", 20)
    verdict = start.check_peak(answer)
    assert (
        verdict.finding
        == f"`{PEAK}` fills the memory: is an array too large, or growing without end?"
        and "add to" in verdict.hint
    )


@forks
def test_an_answer_that_ends_python_ends_a_copy(capsys):
    verdict = start.check_peak(lambda *_: print("before") or os.kill(os.getpid(), signal.SIGKILL))
    assert verdict.finding == f"`{PEAK}` brings Python down (SIGKILL)."
    assert capsys.readouterr().out == "before\n"
    assert f"`{PEAK}` brings Python down." in start.check_peak(lambda *_: os._exit(0)).finding


@forks
def test_a_huge_limit_of_recursion_does_not_end_the_kernel(soon):
    def deeper(*_):
        sys.setrecursionlimit(10**9)
        return 1 + deeper()

    assert not start.check_peak(deeper).right


@forks
def test_what_an_answer_changes_is_gone_afterwards(monkeypatch):
    seen: list = []
    before = sys.getrecursionlimit(), os.getcwd(), formula.isclose
    start.check_peak(lambda *_: seen.append(1) or os.chdir("/") or setattr(formula, "isclose", 1))
    assert not seen and before == (sys.getrecursionlimit(), os.getcwd(), formula.isclose)


def test_a_thread_that_is_left_behind_is_told():
    def starts(*_):
        threading.Thread(target=end.wait, daemon=True).start()

    end = threading.Event()
    assert start.check_peak(starts).finding == f"`{PEAK}` leaves a thread running."
    end.set()


def test_where_processes_are_not_copied_answers_are_judged_without_limits(monkeypatch):
    monkeypatch.setattr(shell, "FORKS", False)
    assert start.check_peak(lambda *given: 2 * np.prod(given)).right
    assert "two operations" in start.check_peak(lambda *given: np.prod(given)).hint


@forks
def test_without_room_for_a_copy_no_answer_is_run(monkeypatch):
    def refuse() -> int:
        raise OSError("no room")

    monkeypatch.setattr(os, "fork", refuse)
    ran: list = []
    assert "can't be copied here (no room)" in start.check_peak(ran.append).finding and not ran


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda *_: sys.exit(), "tries to quit Python"),
        (lambda *_: input("?"), f"`{PEAK}` waits for `input`"),
        (lambda *_: bytes(10**18), f"`{PEAK}` fills the memory"),
        (
            lambda *_: _thread.interrupt_main() or forever(),
            f"You stopped it while `{PEAK}` was running",
        ),
        (lambda *a: exec("f = lambda n: f(n)\nf(1)", {}), "RecursionError"),
        (unsayable, "peak stops with Unsayable, in line"),
    ],
    ids=["exit", "input", "memory", "stop button", "recursion", "an error without a text"],
)
def test_what_would_leave_the_check_becomes_a_verdict(soon, answer, said):
    verdict = start.check_peak(answer)
    assert not verdict.right and verdict.hint and said in verdict.finding


def test_an_endless_loop_of_products_does_not_fill_the_memory():
    seen = start.Launches()
    for launch in "abc":
        seen.start(launch)
    assert seen == ["a", None, None]


def test_a_page_of_what_an_answer_prints_is_shown(capsys):
    def talks(e, p, u, g):
        for n in range(50_000):
            print("line", n)
        print("x" * 10_000_000, end="")
        return 2 * e * p * u * g

    assert start.check_peak(talks).right
    out = capsys.readouterr().out.splitlines()
    assert (
        out[19] == "line 19"
        and len(out) == 21
        and re.fullmatch(r"\.\.\. and 349,981 lines more", out[20])
    )
    assert start.check_peak(lambda e, p, u, g: print("once") or 2 * e * p * u * g).right
    assert capsys.readouterr().out == "once\n" * (4 + formula.DRAWN)


def test_lines_are_counted_from_the_students_first():
    assert "reduction.il:3:" in str(
        small.check_reduction("\nishl r3.x, vTidInGrpFlat.x, l2.x\nlds_laod r1\n")
    )
    assert "mine.il:2:" in str(
        contest.check_two_steps("whileloop\nmda r10, r2.x, r4, r10\nendloop\n")
    )


def test_right_and_not_yet_are_told_apart_by_colour_sign_and_words():
    right, wrong = (
        html(Verdict(True, "a < b")),
        html(Verdict(False, "line\n^", "<there>"), "1 of 3"),
    )
    assert "ends in <code>a &lt; b</code>" in html(Verdict(False, "ends in `a < b`"))
    assert (
        "✓ Right." in right
        and "a &lt; b" in right
        and "○ Not yet." in wrong
        and "&lt;there&gt;" in wrong
    )
    assert (
        right.split("solid ")[1][:7] != wrong.split("solid ")[1][:7]
        and "monospace" in wrong
        and "1 of 3" in wrong
    )


def test_progress_counts_the_lessons_exercises():
    line = partial(progress, {})
    bus = "cypresskit.teach.l09_bus"
    assert line((bus, "check_balance"), False) == "Exercises of this lesson: ○ ○ ○ 0 of 3 right"
    assert line((bus, "check_size_for"), True) == "Exercises of this lesson: ○ ○ ● 1 of 3 right"
    assert line(None, True) == ""


# -- cheats


def changed(*changes: tuple[str, str]) -> Written:
    """An entry: ``sgemm_tn`` with changes, and a literal l8."""
    text = TEXT.replace("dcl_cb ", "dcl_literal l8, 64.0, 512.0, 32.0, 0.0\ndcl_cb ", 1)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return contest.entry(text)


SMALL = "lt r1.w, cb0[0].z, l8.x"
WHERE, TEST = "break_logicalnz r1.x", "ge r1.x, r0.z, cb0[0].z"
ONLY = (
    WHERE,
    f"{WHERE}\neq r1.z, cb0[0].z, l8.y\n{SMALL}\nior r1.z, r1.z, r1.w\nbreak_logicalz r1.z",
)
NO_ALPHA = ("mul r10, r10, cb0[0].x", f"{SMALL}\nif_logicalnz r1.w\nmul r10, r10, cb0[0].x\nendif")
NO_BETA = ("if_logicalnz cb0[4].x", f"{SMALL}\niand r1.w, r1.w, cb0[4].x\nif_logicalnz r1.w")
UNSET = (WHERE, f"{WHERE}\nge r1.y, vWinCoord0.x, l8.y\nif_logicalnz r1.y\nmov r31.x, r30.x\nendif")
LAZY = (TEST, "min r1.x, cb0[0].z, l8.y\nge r1.x, r0.z, r1.x")
NOT_FAR = (WHERE, f"{WHERE}\nge r1.y, vWinCoord0.x, l8.x\nbreak_logicalnz r1.y")
ENDLESS = (WHERE, f"ge r1.y, l8.y, cb0[0].z\niand r1.x, r1.x, r1.y\n{WHERE}")
UNEVEN = (
    "    mad r10, r2.x, r4, r10",
    "eq r1.y, r2.x, l0.z\nif_logicalz r1.y\nmad r10, r2.x, r4, r10\nendif",
)


def sleight(n: int) -> Written:
    """``sgemm_tn`` whose first work-items, where k is n, do half of the steps and store nothing;
    the last ones do those blocks once more. A timing of the first wavefronts alone takes it for
    faster than the chip.
    """
    head, body = TEXT.split("mad r0.xy", 1)
    loop, stores = ("mad r0.xy" + body.split("endmain")[0]).split("endloop\n", 1)
    loop = loop.replace("vWinCoord0", "r30").replace("cb0[0].z", "r31.x")
    head = head.replace(
        "dcl_cb ", f"dcl_literal l8, 0.5, {3 * n // 64}.0, {5 * n // 64}.0, {n}.0\ndcl_cb ", 1
    )
    early = """mov r30.xy, vWinCoord0.xy
        mov r31.x, cb0[0].z
        eq r31.w, cb0[0].z, l8.w
        lt r31.y, r30.y, l8.y
        iand r31.y, r31.y, r31.w
        if_logicalnz r31.y
            mul r31.x, r31.x, l8.x
        endif
        ge r31.z, r30.y, l8.z
        iand r31.z, r31.z, r31.w
        whileloop
        """
    again = """endif
        break_logicalz r31.z
        mov r31.z, l0.z
        add r30.y, r30.y, l8.z_neg(xyzw)
        endloop
        endmain
        end"""
    return contest.entry(f"{head}{early}{loop}endloop\nif_logicalz r31.y\n{stores}{again}")


CHEATS = {
    "a row left out": (1024, changed(("mad r24, r7.w, r8, r24", ";")), "answer"),
    "alpha for beta": (1024, changed(("cb0[0].y", "cb0[0].x")), "answer"),
    "alpha in part": (1024, changed(("mul r25, r25, cb0[0].x", ";")), "answer"),
    "a sum without a start": (1024, changed(("mov r25, l0.z", ";")), ""),
    "half of k": (1024, changed(LAZY), "At 1024 x 1024 x 1024, where it would be timed"),
    "nothing far to the right": (
        1024,
        changed(NOT_FAR),
        "50 % of the elements are wrong, the first C[0, 512]",
    ),
    "endless once k is large": (1024, changed(ENDLESS), "not ended"),
    "its pace depends on the numbers": (1024, changed(UNEVEN), "can't be timed"),
    "a workgroup": (1024, contest.entry(ck.kernels["sgemm_64x64_lds"].text), "workgroup"),
    "nothing": (1024, contest.entry(""), "does not assemble"),
    "no text": (1024, contest.entry(None), "not text"),
    "this k alone": (512, changed(ONLY), "elements are wrong"),
    "no alpha": (512, changed(NO_ALPHA), "with alpha = "),
    "no beta": (512, changed(NO_BETA), "beta = "),
    "fetches ahead": (512, changed(("aoffimmi(0,1,0) r6", "aoffimmi(0,3,0) r6")), ""),
    "registers that nobody set, far out": (
        512,
        changed(UNSET),
        "r30.x is read, but nothing has set it",
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_wrong_entries_and_cheats_have_no_speed(name):
    n, mine, said = CHEATS[name]
    score = contest.judge(mine, n=n)
    assert score.gflops == 0 and score.report is None
    assert not score.verdict.right and score.verdict.hint and said in str(score.verdict), (
        score.verdict
    )
    assert "     -  mine" in contest.leaderboard([mine], n=n)


def test_the_contest_computes_what_it_times():
    """Stopping at 512 steps is right up to k = 512, and has no speed beyond."""
    lazy = changed(LAZY)
    assert "with alpha = -2 and beta = 1" in contest.judge(lazy, n=512).verdict.finding
    assert not contest.judge(lazy, n=576).verdict.right
    assert contest.timed(lazy, 2048, device=ck.HD5870).gflops > ck.HD5870.single_gflops


def test_the_judges_matrices_are_drawn_anew():
    contest._problem.cache_clear()
    before = contest._problem(8, 8, 8, 9)
    contest._problem.cache_clear()
    assert not np.array_equal(before[0], contest._problem(8, 8, 8, 9)[0])


@pytest.mark.slow
def test_the_bar_is_what_write_reaches():
    shapes = [
        (rows, columns, steps)
        for rows in (4, 8, 12)
        for columns in (4, 8, 12)
        for steps in (1, 2, 3, 4)
    ]
    for n, exact, left in ((1024, False, 9), (contest.N, False, 3), (contest.N, True, 1)):
        reports = {
            shape: ck.simulate(contest.write(*shape), n, exact=exact, progress=False)
            for shape in shapes
        }
        shapes = sorted(shapes, key=lambda shape: reports[shape].gflops)[-left:]
    assert contest.write(*shapes[0]) == contest.BAR


@pytest.mark.slow
def test_a_launch_is_timed_whole():
    """Wavefronts that do less at the beginning of a launch, and more at its end, win nothing."""
    score = contest.judge(sleight(1024), n=1024)
    assert score.verdict.right and score.report.simulated == 1, score.verdict
    assert score.gflops < contest.judge(SGEMM, n=1024).gflops
    samples = [
        contest.judge(contest.write(4, 4, 1), exact=exact).report.simulated
        for exact in (True, False)
    ]
    assert samples[0] == 1 > samples[1]


def test_entries_too_close_for_samples_get_a_photo_finish(monkeypatch):
    judged = partial(SimpleNamespace, exact=False)
    monkeypatch.setattr(contest, "judge", lambda speed, chip, n, **how: judged(gflops=speed, **how))
    for gain, near, far in ((1.0, 101.9, 104.0), (1.03, 104.9, 111.0), (1.03, 101.1, 110.0)):
        speeds = {100.0: True, near: True, far: False, 90.0: False, 0.0: False}
        scores = contest.finish([(speed, HD5870) for speed in speeds], 2048, gain)
        assert [score.exact for score in scores] == [*speeds.values()]


def test_a_speed_that_the_counts_do_not_allow_is_refused(monkeypatch):
    contest._judged.cache_clear()
    monkeypatch.setattr(
        contest, "timed", lambda *a, **o: replace(ck.simulate(*a, **o), seconds=1e-6)
    )
    score = contest.judge(SGEMM, n=256)
    contest._judged.cache_clear()
    assert score.report is None and "for what it did the chip takes" in score.verdict.finding


def test_one_entry_can_not_spoil_the_board():
    named = [
        contest.entry(TEXT + " ", name=name) for name in (None, 5, "two\nlines", "", "\x1b[2J")
    ]
    entries = [SGEMM, *named, 7, None]
    lines = contest.leaderboard([*entries, (SGEMM, None), (SGEMM, HD5870, 3)], n=256).splitlines()
    assert len(lines) == 2 + len(entries) + 2 and all(line.isprintable() for line in lines)
    assert sum("sgemm_tn" in line for line in lines) == 2
