"""Fixtures for all tests: Chromium, a JupyterLab that runs for the whole session, and a page that
it is shown in.

A browser test asks for `lab` and `page`::

    def test_lesson_runs(lab, page):
        lab.open(page, "01_register_block.ipynb")
        lab.run_all(page)

Cells are run by JupyterLab's own commands, since typed Shift+Enter loses key presses. JupyterLab
serves a copy of notebooks/, so nothing a test does there changes the work tree.
"""

import ast
import fcntl
import functools
import gc
import linecache
import os
import pickle
import random
import re
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest

# What tests compile is kept, but not among the reader's own: set before the package looks.
os.environ["XDG_CACHE_HOME"] = str(Path(sys.prefix, "cache"))

import cypresskit as ck
from cypresskit.isolated.process import find_sandbox
from cypresskit.session import running_shell
from cypresskit.teach import check as shell
from cypresskit.teach.answer_source import AnswerSource, find_source
from tools.fuzz.guards import FLUSH, guarded
from tools.host_score import host_rows
from tools.score import score as kernel_rows

TEXTURE = "dcl_resource_id({})_type({})_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"
ROOT = Path(__file__).resolve().parent.parent
READY = "() => document.querySelector('[data-ready]')"
#: The functions of pages.js, for `page.evaluate`.
SCRIPTS = re.findall(
    r"(?ms)^const (\w+) = (.+?)\n(?=\n|\Z)", (ROOT / "tests/pages.js").read_text(encoding="utf-8")
)
PLACE = (ROOT / "tests/place.js").read_text(encoding="utf-8")
JS = SimpleNamespace(**dict(SCRIPTS), place=PLACE)
SIZE = {"width": 1400, "height": 1000}
IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")

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

MAIN = sys.modules["__main__"]
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


def pixel(*lines: str) -> ck.Program:
    """A pixel kernel of these lines."""
    return ck.assemble("\n".join(["il_ps_2_0", *lines, "end"]), "test.il")


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
    """A compute kernel of these lines."""
    return ck.assemble("\n".join(["il_cs_2_0", *lines, "end"]), "test.il")


#: The first seed of laws, and what shifts the draw from tables: see ``pytest_configure``.
FIRST_SEED, DAY = 0, 0


def seeds(count: int) -> range:
    """Return the seeds of a law's examples: the same in every run, others with ``--new``."""
    return range(FIRST_SEED, FIRST_SEED + count)


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


ROWS = tomllib.loads((ROOT / "tests/cases/rows.toml").read_text(encoding="utf-8"))


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


#: What a skipped test lacks, and how to get it.
LACKING = {"bubblewrap": "apt-get install bubblewrap", "Chromium": "apt-get install chromium"}


def describe_skipped(reasons: list[str]) -> str:
    """Return what was skipped and how to get it, on one line; "" if nothing was."""
    parts = []
    for what, command in LACKING.items():
        if count := sum(reason.startswith(f"Skipped: {what}") for reason in reasons):
            parts.append(f"{count} need {what}: `{command}`")
    others = len(reasons) - sum(int(part.split()[0]) for part in parts)
    parts += [f"{others} for reasons that `-rs` shows"] * (others > 0)
    return f"{len(reasons)} tests were skipped: {'; '.join(parts)}" if reasons else ""


def pytest_report_header(config):
    return f"Using --day={DAY}"


def pytest_unconfigure(config):
    """End with one line on what was skipped, below pytest's own summary."""
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        skipped = reporter.stats.get("skipped", [])
        reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
        reporter.write_line(describe_skipped(reasons) or "no test was skipped")


def without_a_loop(test):
    """The test in a thread of its own: in this one a browser's event loop may run, and controls
    draw later.
    """

    @functools.wraps(test)
    def run(*arguments, **options):
        with ThreadPoolExecutor(1) as alone:
            return alone.submit(test, *arguments, **options).result()

    return run


LIMITS = [value for name, value in vars(resource).items() if name.startswith("RLIMIT_")]
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGPROF)
#: Threads that may be there after a test, by class and name: a launch's; an event loop's
#: and jupyter_core's, which both keep for the next call; jupyter_client's, which ends with a beat;
#: and those of a folder that a module's tests share, each of which ends with its request.
KEPT = re.compile(
    r"\w+ (cypresskit|asyncio_)|.* - runner$|HBChannel "
    r"|.*\(process_request_thread\)$"
)


def process_state() -> dict:
    """Return what all tests of a process share."""
    return {
        "environment": os.environ.copy() | {"PYTEST_CURRENT_TEST": ""},
        "working folder": os.getcwd(),
        "signal handlers": [*map(signal.getsignal, HANDLED)],
        "limits": [*map(resource.getrlimit, LIMITS)],
        "timers": [signal.getitimer(which)[0] > 0 for which in range(3)],
        "limit of recursion": sys.getrecursionlimit(),
        "garbage collection": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0),
    }


def own_threads() -> set[threading.Thread]:
    """Return the running threads without those in ``KEPT``."""
    named = ((thread, f"{type(thread).__name__} {thread.name}") for thread in threading.enumerate())
    return {thread for thread, name in named if not KEPT.match(name)}


@pytest.fixture(autouse=True)
def leaves_no_trace():
    """Fail a test that changes what all tests of its process share, or leaves a thread running."""
    before, threads = process_state(), own_threads()
    yield
    after = process_state()
    changed = [
        f"{name}: {before[name]} -> {now}" for name, now in after.items() if now != before[name]
    ]
    assert not changed, f"the test changes the process for all that follow: {'; '.join(changed)}"
    late = time.monotonic() + 60  # an executor's threads, on a busy machine
    while (left := own_threads() - threads) and time.monotonic() < late:
        time.sleep(0.01)
    assert not left, f"the test leaves threads running: {left}"


@pytest.fixture(autouse=True)
def untouched(leaves_no_trace, monkeypatch):
    """A test's checks have ten times as long, as a busy computer is no mistake; and it leaves
    `__main__`, which IPython replaces and empties, as it was: what starts processes would trip
    there.
    """
    if check := sys.modules.get("cypresskit.teach.check"):
        monkeypatch.setattr(check, "SECONDS", 10 * check.SECONDS)
    yield
    sys.modules["__main__"] = MAIN


def draw_the_same(monkeypatch, seed: str) -> None:
    """Begin every source of random numbers anew, with those that belong to ``seed``."""
    own = random.Random(seed)
    random.seed(seed)
    monkeypatch.setattr(secrets, "token_hex", lambda size=None: own.randbytes(size or 32).hex())
    if check := sys.modules.get("cypresskit.teach.check"):
        check.check_rng.seed(seed)


@pytest.fixture(autouse=True)
def same_numbers(leaves_no_trace, monkeypatch, request):
    """A test draws the same numbers in every run, whatever ran before it; others with ``--new``."""
    draw_the_same(monkeypatch, f"{request.config.getoption('new')} {request.node.nodeid}")


@pytest.fixture
def guard_pages(request):
    """In this test, every array that compiled code may touch lies between guard pages: what
    touches memory beside one ends the process.
    """
    with guarded(FLUSH[len(request.node.name) % len(FLUSH)]):
        yield


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


def demanded(found, what: str):
    """What was found. Without it a test is skipped, saying how to get it; in CI it fails."""
    if found is None:
        reason = f"{what} is missing or doesn't work here, and this test needs it:"
        (pytest.fail if IN_CI else pytest.skip)(f"{reason} `{LACKING[what]}`")
    return found


@pytest.fixture(scope="session")
def sandbox():
    """The walls in which answers are marked."""
    return demanded(find_sandbox(), "bubblewrap")


@pytest.fixture(scope="session")
def chromium():
    """The path of Chromium."""
    return demanded(shutil.which("chromium") or shutil.which("chromium-browser"), "Chromium")


@pytest.fixture(scope="session")
def browser(chromium):
    """One Chromium for the session, which can reach this computer only."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=120_000)  # as in every page
    quiet = [
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
    ]
    offline = "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    arguments = [f"--{name}" for name in ("no-sandbox", "disable-gpu", *quiet, offline)]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def context(browser):
    """One cache for all pages: JupyterLab's scripts are loaded and compiled once."""
    return browser.new_context(viewport=SIZE)


def close_at_script_errors(page) -> list[str]:
    """Close a page when a script of it fails, so that no test waits for what can't come any more.
    Returns the list of errors, which grows.
    """
    errors: list[str] = []

    def close(error) -> None:
        errors.append(f"{error.name}: {error.message}")
        page.close()

    page.on("pageerror", close)
    return errors


@pytest.fixture
def clock(browser):
    """A context of its own for this test's page, with a clock that the test can stop: see
    ``pages.hold_clock``.
    """
    context = browser.new_context(viewport=SIZE)
    context.clock.install()
    return context


@pytest.fixture
def page(context, request):
    """A new page of 1400 x 1000; the test fails if it asked another computer for anything."""
    outside = []
    if "clock" in request.fixturenames:
        context = request.getfixturevalue("clock")

    def note(request):
        if not request.url.startswith(
            ("http://127.0.0.1:", "ws://127.0.0.1:", "file:", "data:", "blob:", "about:")
        ):
            outside.append(request.url)

    page = context.new_page()
    page.set_default_timeout(120_000)  # what hangs ends; what is slow is no mistake
    page.on("request", note)
    yield page
    page.close()
    assert not outside, f"the page asked the network for {outside}"


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """A function that saves a player as a page, each once, and gives its path."""
    folder = tmp_path_factory.mktemp("pages")
    return functools.cache(lambda player: player.save(folder / f"{id(player)}.html"))


@pytest.fixture
def show(page, saved):
    """A function that opens a player's saved page from disk, on which no script may fail."""
    faults = close_at_script_errors(page)

    def goto(player):
        page.goto(saved(player).as_uri())
        page.wait_for_function(READY)
        return page

    yield goto
    assert not faults


def wait_for(what, pause=lambda: time.sleep(0.05)) -> None:
    """Wait until it is so. What never comes, ends."""
    late = time.monotonic() + 120
    while not what():
        assert time.monotonic() < late
        pause()


class Lab:
    """A running JupyterLab: `url` with no slash at its end, the path that it `opens`, the directory
    `root` served.
    """

    def __init__(self, url: str, opens: str, root: Path):
        self.url, self.opens, self.root = url, opens, root

    def open(self, page, notebook: str, timeout: float = 600) -> None:
        """Show `notebook` (a path below `root`) alone and wait until its kernel is idle."""
        page.goto(f"{self.url}/lab/workspaces/auto-{time.monotonic_ns()}/tree/{notebook}")
        page.wait_for_function(JS.idle, arg=notebook, timeout=1000 * timeout)

    def write(self, page, name: str, *cells: str, outputs=(), markdown: str = "") -> None:
        """Make a notebook of code cells, of which the last has the outputs, perhaps below a text,
        and open it.
        """
        import nbformat  # not at the top: the core's tests run without it

        *cells, last = map(nbformat.v4.new_code_cell, cells)
        last.outputs += outputs
        texts = [nbformat.v4.new_markdown_cell(markdown)] if markdown else []
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        nbformat.write(
            nbformat.v4.new_notebook(cells=[*texts, *cells, last], metadata=kernel),
            self.root / name,
        )
        self.open(page, name)

    def run_all(self, page, timeout: float = 1200) -> None:
        """Run every cell of the notebook shown and wait for the last; an error in a cell fails the
        test.
        """
        page.evaluate(JS.runAll, timeout)
        errors = [
            out for cell in self.outputs(page) for out in cell if out["output_type"] == "error"
        ]
        assert not errors, "\n".join(f"{out['ename']}: {out['evalue']}" for out in errors)

    def run(self, page, *texts: str | tuple[str, str, str]) -> None:
        """Run the first code cell that has each text; of a text, an old word and a new one, with
        the word replaced.
        """
        page.evaluate(JS.run, texts)

    def run_until(self, page, cell: str, said: str) -> None:
        """Run the last code cell, whose text is given, until its output has some words: what the
        page has sent before may still be on its way.
        """
        wait_for(lambda: said in str(self.outputs(page)[-1]), lambda: self.run(page, cell))

    def outputs(self, page) -> list[list[dict]]:
        """What each code cell of the notebook shown has put out, as a notebook file would hold
        it.
        """
        return page.evaluate(JS.outputs)


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """JupyterLab as `cypresskit lab` starts it, but on a copy of notebooks/, without a token, with
    its own settings.
    """
    home = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", home / "notebooks", ignore=shutil.ignore_patterns(".*"))
    options = {
        "port": 0,  # a free one
        "IdentityProvider.token": "",
        "LabApp.expose_app_in_browser": True,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.user_settings_dir": home / "settings",
    }
    directories = {
        f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")
    }
    command = [
        sys.executable,
        "-m",
        "cypresskit",
        "lab",
        "--no-browser",
        *(f"--{name}={value}" for name, value in options.items()),
    ]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=home / "notebooks", env=os.environ | directories, stdout=log, stderr=log
        )
    try:
        yield Lab(*address(server, home / "log"), home / "notebooks")
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def address(server: subprocess.Popen, log: Path, timeout: float = 600) -> tuple[str, str]:
    """Where JupyterLab answers, and the path that it opens; fail, showing the log, if it died or
    the time is up.
    """
    end = time.monotonic() + timeout
    while server.poll() is None and time.monotonic() < end:
        if found := re.search(r"(http://127\.0\.0\.1:\d+)(/lab\S*)\n", log.read_text()):
            with suppress(OSError):
                urllib.request.urlopen(f"{found[1]}/api/status", timeout=5).close()
                return found[1], found[2]
        time.sleep(0.1)
    pytest.fail(f"JupyterLab did not answer. Its log ends:\n{log.read_text()[-3000:]}")
