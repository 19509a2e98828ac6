"""Verdicts in a notebook: what is shown of them, and what load() changes in IPython."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import ROOT
from traitlets.config import Config

import cypresskit as ck
from cypresskit.teach import formula
from cypresskit.teach.notebook import install, unread

CHECK = "ck.teach.start_here.check_peak(peak)"
GOOD, BROKEN = "def peak(e):\n    return e", "def peak(e):\n    return (e"


def test_reports_a_syntax_error_instead_of_a_stale_verdict():
    told = str(unread(["", GOOD, CHECK, BROKEN, CHECK]))
    assert told.startswith("Not yet. Your cell with peak isn't valid Python") and "Line 2" in told
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
    quiet = {"HistoryManager": {"enabled": False}}  # which would start a thread

    def start(installed=True, **members):
        running = type("Kernel", (kind,), members).instance(config=Config(quiet))
        if installed:
            install(running)
        running.user_ns["ck"] = ck
        return running

    yield start
    kind.clear_instance()


def run(shell, *cells: str, kept: bool = True) -> None:
    """Run cells in a thread of their own: the main one may have Chromium's event loop."""
    with ThreadPoolExecutor(1) as thread:
        for cell in cells:
            thread.submit(shell.run_cell, cell, store_history=kept).result()


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
    last = ["half is 2", "half is a function"]
    assert shown == ["N = 896 reaches 71", isnt, *[stopped] * 3, lacks, *last]


def test_reports_why_an_answer_was_never_set(ipython, capsys):
    run(ipython(), "half = 2\nhalf = = 2", HALF, "print(other)")
    _, told, rest = re.split(r"(Not yet.*)", capsys.readouterr().out, maxsplit=1)
    assert "Your cell with half isn't valid Python" in told and "previous" not in told + rest
    assert (
        "Line 2 of that cell" in rest
        and "name 'half'" not in rest
        and "name 'other' is not defined" in rest
    )


def test_exit_in_a_notebooks_cell_is_an_error_also_after_a_check(ipython, capsys):
    left: list = []
    running = ipython(ask_exit=lambda _: left.append(1), kernel=True)
    run(running, "def peak(*_):\n    exit()", CHECK)
    assert "tries to quit Python" in capsys.readouterr().out
    for cell in ("def f():\n    exit()\nf()", "exit"):
        run(running, cell)
        assert "would end the notebook's kernel" in capsys.readouterr().out
    run(running, "half = 2", "exit()", "def half():\n    quit()\nhalf()", HALF)
    assert (
        "Not yet. half is " in capsys.readouterr().out
    )  # the definition didn't stop, but the line after it
    assert not left


@pytest.mark.slow
def test_importing_changes_nothing_in_ipython_and_load_does():
    """In a new Python: what IPython has before `ck.teach` is imported, after, and after load()."""
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.ask_exit = leave = lambda: None
shell.kernel = True
def mine(*_): pass
shell.set_custom_exc((NameError,), mine)
def state():
    callbacks = {name: [*kinds] for name, kinds in shell.events.callbacks.items()}
    formatters = {n: dict(f.type_printers) for n, f in shell.display_formatter.formatters.items()}
    return shell.custom_exceptions, shell.CustomTB, shell.ask_exit, callbacks, formatters
before = state()
import cypresskit as ck
ck.teach.start_here, ck.teach.contest, ck.draw
assert state() == before
if LOAD == "extension":
    shell.run_line_magic("load_ext", "cypresskit")
else:
    ck.draw.load()
after = state()
assert after != before and shell.ask_exit is not leave
ck.draw.load()
assert state() == after, "once"
"""
    for how in ("extension", "load"):
        done = subprocess.run(
            [sys.executable, "-c", code.replace("LOAD", repr(how))],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert done.returncode == 0, done.stderr


def test_what_an_answer_displays_is_printed(ipython, capsys):
    run(ipython(), "def peak(e, p, u, g):\n    display(42)\n    return 2 * e * p * u * g", CHECK)
    assert capsys.readouterr().out.count("42\n") == 4 + formula.N_RANDOM_CASES


PEAK = "def peak(e, p, u, g):\n    return {} * e * p * u * g"


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([PEAK.format("FLOPS"), "FLOPS = 2", CHECK], "Right."),
        ([PEAK.format(3), PEAK.format(2), CHECK], "Right."),
        ([PEAK.format(2), PEAK.format(3), CHECK], "Not yet. peak(20"),
        (["import asyncio\nawait asyncio.sleep(0)\n" + PEAK.format(2), CHECK], "Right."),
        (["%time 1\n" + PEAK.format(2) + "\n!true", CHECK], "Right."),
        (["lines = !true\n" + PEAK.format(2), CHECK], "Right."),
        (["from functools import cache\n@cache\n" + PEAK.format(2), CHECK], "Right."),
        (["class P:\n  def __call__(s, *a): return 2 * np.prod(a)\npeak = P()", CHECK], "Right."),
        (["f = lambda *a: 2 * np.prod(a)", "peak = f", CHECK], "Right."),
        ([CHECK.replace("(peak", "(lambda *a: 2 * np.prod(a)")], "Right."),
        ([PEAK.format(2).replace("peak", "mine"), CHECK.replace("peak)", "mine)")], "Right."),
        (["exec('def peak(*a): return 1')", CHECK], "Not yet. The source of peak can't be read"),
        ([PEAK.format("K"), CHECK], "Not yet. peak stops with NameError: name 'K'"),
    ],
)
@pytest.mark.parametrize("kept", [True, False])
def test_an_answer_is_made_of_the_cells_that_it_needs(ipython, capsys, cells, said, kept):
    """Also where no cell is kept in the history, as nbval runs a notebook."""
    run(ipython(), "import numpy as np", *cells, kept=kept)
    assert said in capsys.readouterr().out
