"""What a run of tests draws, its options, and what tests of several folders share."""

import ast
import fcntl
import functools
import linecache
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest

# What tests compile is kept, but not among the reader's own: set before the package looks.
os.environ["XDG_CACHE_HOME"] = str(Path(sys.prefix, "cache"))

import cypresskit as ck
from cypresskit.session import running_shell
from cypresskit.teach import check as shell
from cypresskit.teach.answer_source import AnswerSource, find_source
from cypresskit.timing.simulate import forget_reports
from tools.fuzz.guards import FLUSH, guarded
from tools.host_score import host_rows
from tools.score import score as kernel_rows

TEXTURE = "dcl_resource_id({})_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"
ROOT = Path(__file__).resolve().parent.parent

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # in the background of a script: tests of interrupts would hang
    signal.signal(signal.SIGINT, signal.default_int_handler)

if not os.access(
    Path.home(), os.W_OK
):  # as in some containers; what Jupyter and Chromium keep goes elsewhere
    os.environ["HOME"] = tempfile.mkdtemp()

os.environ["CYPRESSKIT_KEEP"] = "0"  # tests time each launch anew, but for those of notebooks

sys.modules["rfc3987_syntax"] = (
    None  # a grammar that jsonschema compiles for a second, and nothing here needs
)

pytest_plugins = ["needs", "browsing", "no_trace"]
# No deadline: a first example compiles its kernel. The same examples every time, so that red means
# a change; new ones come with `--new`.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("new", deadline=None, database=None)
hypothesis.settings.load_profile("same")


#: Kernels that have, together, each precision, mode and convention: laws that no kernel's own text
#: could break are tried on these.
SIX = (
    "sgemm_tn",
    "dgemm_nn_buffer",
    "ddgemm_tt_nofma",
    "dgemm_tn_stream_2x8",
    "sgemm_64x64_lds",
    "sgemv_n_reduce4",
)
each_of_six = pytest.mark.parametrize("name", SIX)


def pixel(*lines: str) -> ck.Program:
    """A pixel kernel of these lines or texts."""
    return ck.assemble("\n".join(["il_ps_2_0", *map(str.strip, lines), "end"]), "test.il")


def find_function(function, name: str) -> AnswerSource:
    """The source of a notebook's answer; outside of a notebook that of a function in a file: its
    text, after the other statements of the file.
    """
    if running_shell():
        return find_source(function, name)
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename))
    tree = ast.parse(text)
    cells = [ast.get_source_segment(text, statement) for statement in tree.body]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno == code.co_firstlineno:
            return AnswerSource([*cells, ast.unparse(node)], node.name)
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            constants = compile(ast.Expression(node), "", "eval").co_consts
            made = [each for each in constants if hasattr(each, "co_names")][-1]
            if (made.co_names, made.co_varnames) == (code.co_names, code.co_varnames):
                return AnswerSource([*cells, f"it = {ast.unparse(node)}"], "it")
    raise ValueError("its file isn't there")


shell.find_source = find_function  # checks are given functions of tests


def compute(*lines: str) -> ck.Program:
    """A compute kernel of these lines or texts."""
    return ck.assemble("\n".join(["il_cs_2_0", *map(str.strip, lines), "end"]), "test.il")


#: The first seed of laws, and what shifts the draw from tables: see ``pytest_configure``.
FIRST_SEED, DAY = 0, 0


def seeded(count: int):
    """Run a law on so many seeds: the same in every run, others with ``--new``."""
    return pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + count))


def by_day(cases: Iterable, count: int) -> list:
    """Return the cases of an expensive table, of which ``count``, drawn anew each day, run by day
    and the others at night.
    """
    cases = list(cases)
    chosen = random.Random(DAY).sample(range(len(cases)), min(count, len(cases)))
    made = []
    for number, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        made.append(pytest.param(*values, marks=[pytest.mark.nightly] * (number not in chosen)))
    return made


def drawn_by_day(names: str | tuple[str, ...], cases: Iterable, count: int, **options):
    """Run a test on the cases of an expensive table: see ``by_day``."""
    return pytest.mark.parametrize(names, by_day(cases, count), **options)


ROWS = tomllib.loads((ROOT / "tests/cases/rows.toml").read_text())


def from_rows(test):
    """Run a test on its rows of ``cases/rows.toml``. The first names the arguments; what is left
    out at a row's end is None.
    """
    names, *rows = ROWS[test.__name__]
    filled = [row + [None] * (len(names) - len(row)) for row in rows]
    return pytest.mark.parametrize(names, filled)(test)


def pytest_addoption(parser):
    parser.addoption(
        "--new",
        type=int,
        metavar="SEED",
        help="run the laws on random examples alone, with those of this seed, as `make fuzz` does",
    )
    parser.addoption(
        "--day",
        type=int,
        metavar="NUMBER",
        default=date.today().toordinal(),
        help="which cases of expensive tables are drawn; by default another draw each day",
    )
    parser.addoption(
        "--accept", action="store_true", help="write what cases report into their files"
    )


def pytest_configure(config):
    global FIRST_SEED, DAY
    config.option.randomly_reset_seed = False  # a test's numbers are its own: ``same_numbers``
    DAY = config.getoption("day")
    if config.getoption("new") is not None:
        FIRST_SEED = config.getoption("new")
        hypothesis.settings.load_profile("new")
        hypothesis.core.global_force_seed = FIRST_SEED


def is_random(item) -> bool:
    """Whether a test draws its examples: by Hypothesis, or by a seed."""
    seeded = "seed" in getattr(getattr(item, "callspec", None), "params", ())
    return seeded or getattr(item.obj, "is_hypothesis_test", False)


def pytest_collection_modifyitems(items, config):
    """With ``--new``, only what is random."""
    if config.getoption("new") is not None:
        config.hook.pytest_deselected(items=[item for item in items if not is_random(item)])
        items[:] = filter(is_random, items)


def pytest_report_header(config):
    return f"Using --day={DAY}"


def without_a_loop(test):
    """The test in a thread of its own: in this one a browser's event loop may run, and controls
    draw later.
    """

    @functools.wraps(test)
    def run(*arguments, **options):
        with ThreadPoolExecutor(1) as alone:
            return alone.submit(test, *arguments, **options).result()

    return run


@pytest.fixture
def guard_pages(request):
    """In this test, every array that compiled code may touch lies between guard pages: what
    touches memory beside one ends the process.
    """
    with guarded(FLUSH[len(request.node.name) % len(FLUSH)]):
        yield


@pytest.fixture
def kept_results(tmp_path, monkeypatch):
    """The folder of simulated times and compiled code: empty, in use, with none in memory."""
    monkeypatch.setenv("CYPRESSKIT_KEEP", "1")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget_reports()
    yield tmp_path / "cache/cypresskit"
    forget_reports()


@pytest.fixture(scope="session")
def once(tmp_path_factory, request):
    """A function that makes something, which can be pickled, once for all processes that run tests;
    they wait for it and get it by its name.
    """
    ours = tmp_path_factory.getbasetemp()
    folder = (ours.parent if hasattr(request.config, "workerinput") else ours) / "once"
    folder.mkdir(exist_ok=True)

    def get(name: str, make):
        made = folder / name
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # by one process alone; the system frees a dead one's
            if not made.exists():
                part = made.with_suffix(".part")
                part.write_bytes(pickle.dumps(make()))
                part.replace(made)
        return pickle.loads(made.read_bytes())

    return get


@pytest.fixture(scope="session")
def scored(once):
    """The score's rows, of ``kernels`` and of ``hosts``."""

    def score():
        return {"kernels": kernel_rows(), "hosts": host_rows()}

    return SimpleNamespace(**once("score", score))


@pytest.fixture(scope="session")
def python_site(tmp_path_factory, once):
    """A site's parts that run Python, made once, and why there are none: see ``pages.require``."""
    from pages import make_python_site  # not at the top: the core's tests run without its tools

    folder = tmp_path_factory.mktemp("python")
    return once("python-site", lambda: make_python_site(folder))


@pytest.fixture(scope="module")
def timed_once(tmp_path_factory, once, python_site):
    """The tests of a file, and what they start, time a launch once for all: those that the site's
    workbench opens with were timed for the site.
    """

    def begin():
        folder = tmp_path_factory.mktemp("timed")
        if (timed := python_site[0] / "bench/launches").is_dir():
            shutil.copytree(timed, folder / "cypresskit")
        return folder

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(once("timed", begin)))
        patch.setenv("CYPRESSKIT_KEEP", "1")
        yield


def wait_for(what, pause=lambda: time.sleep(0.05)) -> None:
    """Wait until it is so. What never comes, ends."""
    late = time.monotonic() + 120
    while not what():
        assert time.monotonic() < late
        pause()
