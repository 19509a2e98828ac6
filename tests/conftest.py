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
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
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


#: What fails most often: files that disagree, notebooks that aren't those of their sources.
FIRST = ("test_project", "test_book", "test_draw", "test_teach")
#: Cases of a family marked ``few`` that run by day, unless the mark says another number.
FEW = 6


def pytest_addoption(parser):
    parser.addoption(
        "--part",
        choices=("first", "rest", "needy_rest", "whole"),
        default="whole",
        help="first: what `make test` runs, the laws and a proof that lessons and pages work; rest:"
        " what that leaves out, but for nightly tests; needy_rest: also those of the first"
        " that need bubblewrap or Chromium",
    )
    parser.addoption(
        "--new",
        type=int,
        metavar="SEED",
        help="run the laws on random examples alone, with those of this seed, as `make fuzz` does",
    )
    parser.addoption(
        "--order",
        type=int,
        metavar="SEED",
        help="the order of files, and of tests in a file; by default another one in each run",
    )


def pytest_configure(config):
    given = getattr(config, "workerinput", {}).get("order", config.getoption("order"))
    config.option.order = random.randrange(10_000) if given is None else given
    if config.getoption("new") is not None:
        hypothesis.settings.load_profile("new")
        hypothesis.core.global_force_seed = config.getoption("new")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Give each process of pytest-xdist the same order."""
    node.workerinput["order"] = node.config.getoption("order")


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc):
    """Shift the seeds of a test with a parameter ``seed``, should new ones be asked for."""
    first = metafunc.config.getoption("new")
    for mark in metafunc.definition.iter_markers("parametrize"):
        names, values = mark.args[:2]
        if first is not None and names == "seed" and isinstance(values, range):
            shifted = range(first + values.start, first + values.stop, values.step)
            object.__setattr__(mark, "args", (names, shifted, *mark.args[2:]))


def is_random(item) -> bool:
    """Whether a test draws its examples: by Hypothesis, or by a seed."""
    seeded = "seed" in getattr(getattr(item, "callspec", None), "params", ())
    return seeded or getattr(item.obj, "is_hypothesis_test", False)


def is_heavy(item) -> bool:
    """Whether a test needs Chromium, runs whole lessons, or is marked ``slow``."""
    return "chromium" in item.fixturenames or any(
        map(item.get_closest_marker, ("notebook", "slow"))
    )


def left_out_of_families(items: list) -> set:
    """Return the cases of families marked ``few`` but for so many of each as the mark says, which
    are spread over its table.
    """
    families: dict[tuple[str, int], list] = {}
    for item in items:
        if given := item.get_closest_marker("few"):
            count = given.args[0] if given.args else FEW
            families.setdefault((item.nodeid.partition("[")[0], count), []).append(item)
    left_out = set()
    for (_, count), cases in families.items():
        step = (len(cases) - 1) / max(count - 1, 1)
        left_out |= set(cases) - {cases[round(n * step)] for n in range(count)}
    return left_out


def pytest_collection_modifyitems(items, config):
    """The part that is asked for, in an order in which all processes end together."""
    part = config.getoption("part")
    for item in left_out_of_families(items):
        item.add_marker("nightly")
    chosen = items
    if part != "whole":
        daily = [item for item in items if not item.get_closest_marker("nightly")]
        first = {item for item in daily if item.get_closest_marker("proof") or not is_heavy(item)}
        if part == "needy_rest":
            first = {item for item in first if not NEEDS & {*item.fixturenames}}
        chosen = [item for item in daily if (item in first) == (part == "first")]
    if config.getoption("new") is not None:
        chosen = [item for item in chosen if is_random(item)]
    if len(chosen) < len(items):
        left_out = set(items) - set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = chosen
    shuffle(items, config.getoption("order"))
    order(items)


def shuffle(items: list, seed: int) -> None:
    """Put files, and the tests in each file, into an order that belongs to ``seed``."""
    chance = random.Random(seed)
    items.sort(key=lambda item: item.nodeid)
    files = sorted({item.path for item in items})
    chance.shuffle(files)
    place = {file: number for number, file in enumerate(files)}
    chance.shuffle(items)
    items.sort(key=lambda item: place[item.path])


def order(items) -> None:
    """Each process that runs tests begins with a part of the list. What fails most often comes
    first, then what takes long, so that all end together; tests that would wait for the same thing
    are in one part.
    """
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    soon, parts, short = [], [[] for _ in range(count)], []
    made_once = ("scored", "site", "lab", "served")
    for item in items:
        if "chromium" in item.fixturenames:
            item.add_marker(pytest.mark.browser)
        waits = [part % count for part, name in enumerate(made_once) if name in item.fixturenames]
        if waits or any(map(item.get_closest_marker, ("notebook", "slow"))):
            (parts[waits[0]] if waits else min(parts, key=len)).append(item)
        else:
            (
                soon if item.path.stem in FIRST and "chromium" not in item.fixturenames else short
            ).append(item)
    soon.sort(key=lambda item: FIRST.index(item.path.stem))
    size, rest = -(-len(items) // count), iter(short)
    parts = [[*soon[first::count], *part] for first, part in enumerate(parts)]
    items[:] = [
        item for part in parts for item in (*part, *islice(rest, max(size - len(part), 0)))
    ] + list(rest)


NEEDS = {"sandbox", "chromium"}  # fixtures of programs that a stranger may lack
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
    return order_line(config)


def order_line(config) -> str:
    """Return which order the tests have, and how to repeat it."""
    return f"tests in the order {config.getoption('order')}: --order repeats it"


def pytest_unconfigure(config):
    """End with one line on the order and on what was skipped, below pytest's own summary."""
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        skipped = reporter.stats.get("skipped", [])
        reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
        parts = [describe_skipped(reasons) or "no test was skipped", order_line(config)]
        reporter.write_line("; ".join(parts))


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
    late = time.monotonic() + 5  # an executor's threads, on a busy machine
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


@pytest.fixture(scope="session")
def sandbox():
    """The walls in which answers are marked. Without bubblewrap a test is skipped, saying so; in CI
    it fails.
    """
    made = find_sandbox()
    if made is None:
        reason = (
            "bubblewrap is missing or doesn't work here, and this test judges answers in it:"
            f" `{LACKING['bubblewrap']}`"
        )
        (pytest.fail if IN_CI else pytest.skip)(reason)
    return made


@pytest.fixture(scope="session")
def chromium():
    """The path of Chromium. Without it a test is skipped, saying so; in CI it fails."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        reason = (
            f"Chromium is missing, and this test looks at a page in it: `{LACKING['Chromium']}`"
        )
        (pytest.fail if IN_CI else pytest.skip)(reason)
    return path


@pytest.fixture(scope="session")
def browser(chromium):
    """One Chromium for the session, which can reach this computer only."""
    from playwright.sync_api import sync_playwright

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
def page(browser, context, request):
    """A new page of 1400 x 1000; the test fails if it asked another computer for anything. Of a
    test marked ``clock`` it has a clock that the test can stop: see ``pages.hold_clock``.
    """
    outside = []
    if request.node.get_closest_marker("clock"):
        context = browser.new_context(viewport=SIZE)  # one context, one clock
        context.clock.install()

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
