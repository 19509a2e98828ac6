"""Chromium, its pages, and the functions that they evaluate."""

import functools
import re
from types import SimpleNamespace

import pytest
from needs import demand
from repository import ROOT

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

    expect.set_options(timeout=PATIENCE)
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
