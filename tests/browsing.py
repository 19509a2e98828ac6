"""Chromium, its pages, and a JupyterLab that runs for the whole session.

A browser test asks for `lab` and `page`::

    def test_lesson_runs(lab, page):
        lab.open(page, "01_register_block.ipynb")
        lab.run_all(page)

Cells are run by JupyterLab's own commands, since typed Shift+Enter loses key presses. JupyterLab
serves a copy of notebooks/, so nothing a test does there changes the work tree.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from types import SimpleNamespace

import pytest
from needs import demand
from repository import ROOT
from waiting import wait_for

READY = "() => document.querySelector('[data-ready]')"
#: The functions of pages.js, for `page.evaluate`.
SCRIPTS = re.findall(r"(?ms)^const (\w+) = (.+?)\n(?=\n|\Z)", (ROOT / "tests/pages.js").read_text())
JS = SimpleNamespace(**dict(SCRIPTS))
SIZE = {"width": 1400, "height": 1000}
PATIENCE = 120_000  # ms of every page: what hangs ends; what is slow is no mistake


@pytest.fixture(scope="session")
def chromium():
    """The path of Chromium."""
    from tools.bench_page.browser import find_chromium  # which needs Playwright, too

    return demand(find_chromium(), "Chromium")


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
    context = browser.new_context(viewport=SIZE)
    context.set_default_timeout(PATIENCE)
    return context


def script_errors(page, then=lambda: None):
    """A list of the errors of a page's scripts, which grows; ``then`` is called at each."""
    errors = []

    def note(error):
        errors.append(f"{error.name}: {error.message}")
        then()

    page.on("pageerror", note)
    return errors


def close_at_script_errors(page):
    """Close a page when a script of it fails, so that no test waits for what can't come any more.
    Returns the list of errors, which grows.
    """
    return script_errors(page, page.close)


@pytest.fixture
def clock(browser):
    """A context of its own for this test's page, with a clock that the test can stop: see
    ``hold_clock``.
    """
    context = browser.new_context(viewport=SIZE)
    context.set_default_timeout(PATIENCE)
    context.clock.install()
    return context


def hold_clock(page):
    """Stop the page's clock. It goes on by `page.clock.run_for`, however long that takes here. For
    tests that ask for ``clock``.
    """
    from playwright.sync_api import Error  # not at the top: the core's tests run without it

    for ahead in 0.2, 0.5, 1, 2, 4:  # seconds: on a busy computer the moment may be over already
        try:
            page.clock.pause_at(page.evaluate("Date.now()") / 1000 + ahead)
            return
        except Error as error:
            if "past" not in str(error):
                raise
    raise AssertionError("this page's clock runs away from the test")


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
    page.on("request", note)
    yield page
    page.close()
    assert not outside, f"the page asked the network for {outside}"


@pytest.fixture(scope="session")
def save_player(tmp_path_factory):
    """A function that saves a player as a page, each once, and gives its path."""
    folder = tmp_path_factory.mktemp("pages")
    return functools.cache(lambda player: player.save(folder / f"{id(player)}.html"))


@pytest.fixture
def show(page, save_player):
    """A function that opens a player's saved page from disk, on which no script may fail."""
    faults = close_at_script_errors(page)

    def goto(player):
        page.goto(save_player(player).as_uri())
        page.wait_for_function(READY)
        return page

    yield goto
    assert not faults


def at(page, frame=None, source=""):
    """What the player shows at a frame."""
    return page.evaluate(JS.at, [frame, source])


class Lab:
    """A running JupyterLab: `url` with no slash at its end, the path that it `opens`, the directory
    `root` served.
    """

    def __init__(self, url, opens, root):
        self.url, self.opens, self.root = url, opens, root

    def open(self, page, notebook):
        """Show `notebook` (a path below `root`) alone and wait until its kernel is idle."""
        page.goto(f"{self.url}/lab/workspaces/auto-{time.monotonic_ns()}/tree/{notebook}")
        page.wait_for_function(JS.idle, arg=notebook, timeout=600_000)

    def write(self, page, name, *cells, outputs=(), markdown=""):
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

    def run_all(self, page):
        """Run every cell of the notebook shown and wait for the last; an error in a cell fails the
        test.
        """
        page.evaluate(JS.runAll, 1200)
        errors = [
            out for cell in self.outputs(page) for out in cell if out["output_type"] == "error"
        ]
        assert not errors, "\n".join(f"{out['ename']}: {out['evalue']}" for out in errors)

    def run(self, page, *texts):
        """Run the first code cell that has each text; of a text, an old word and a new one, with
        the word replaced.
        """
        page.evaluate(JS.run, texts)

    def run_until(self, page, cell, said):
        """Run the last code cell, whose text is given, until its output has some words: what the
        page has sent before may still be on its way.
        """
        wait_for(lambda: said in str(self.outputs(page)[-1]), lambda: self.run(page, cell))

    def outputs(self, page):
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


def address(server, log):
    """Where JupyterLab answers, and the path that it opens; fail, showing the log, if it died or
    the time is up.
    """
    end = time.monotonic() + 600
    while server.poll() is None and time.monotonic() < end:
        if found := re.search(r"(http://127\.0\.0\.1:\d+)(/lab\S*)\n", log.read_text()):
            with suppress(OSError):
                urllib.request.urlopen(f"{found[1]}/api/status", timeout=5).close()
                return found[1], found[2]
        time.sleep(0.1)
    pytest.fail(f"JupyterLab did not answer. Its log ends:\n{log.read_text()[-3000:]}")
