"""Verdicts in a notebook: what is shown of them, and what load() changes in IPython."""

import linecache

import pytest
from new_python import printed_by
from repository import ROOT
from sampling import from_rows
from traitlets.config import Config
from waiting import without_a_loop

import cypresskit as ck
from cypresskit.teach import formula
from cypresskit.teach.notebook import install

CHECK = "ck.teach.start_here.check_peak(peak)"


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


@without_a_loop
def run(shell, *cells, kept=True):
    """Run cells."""
    for cell in cells:
        shell.run_cell(cell, store_history=kept)


HALF = "ck.teach.start_here.check_half(half)"


def test_exit_in_a_notebooks_cell_is_an_error_also_after_a_check(ipython, capsys):
    left = []
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


def test_importing_changes_nothing_in_ipython_and_load_does():
    """In a new Python: what IPython has before `ck.teach` is imported, after, and after load()."""
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.ask_exit = leave = lambda: None
shell.kernel = True
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
        printed_by(code.replace("LOAD", repr(how)), PYTHONPATH=str(ROOT))


def test_what_an_answer_displays_is_printed_and_what_its_cell_does_is_not_again(ipython, capsys):
    cell = "def peak(e, p, u, g):\n    display(42)\n    return 2 * e * p * u * g\nprint('made')"
    run(ipython(), cell, CHECK)
    out = capsys.readouterr().out
    assert out.count("42\n") == 4 + formula.N_RANDOM_CASES and out.count("made") == 1


PEAK = "def peak(e, p, u, g):\n    return {} * e * p * u * g"


@from_rows
@pytest.mark.parametrize("kept", [True, False])
def test_an_answer_is_made_of_the_cells_that_it_needs(
    ipython, capsys, monkeypatch, cells, said, kept
):
    """Also where no cell is kept in the history, as nbval runs a notebook, in a new Python."""
    monkeypatch.setattr(linecache, "cache", {})  # planted answers are in the other
    run(ipython(), "import numpy as np", *cells, kept=kept)
    assert said in capsys.readouterr().out


@from_rows
def test_a_newer_cell_that_failed_is_judged_not_the_answer_before_it(ipython, capsys, last, said):
    run(ipython(), "import numpy as np", PEAK.format(2), CHECK, last, CHECK)
    assert said in capsys.readouterr().out
