"""The site's compile page: what stands there for numpy computes the same bits; and in Chromium, in
Pyodide's core, the compiler answers as it does here, byte for byte.
"""

import json
import random
import re
import subprocess
import sys
import threading
import zipfile
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path

import folding
import pytest
from conftest import JS
from pages import axe_finds

import cypresskit as ck
from tools import compile_page
from tools.compile_page.answering import Session
from tools.random_edits import random_edits

LOOP = "whileloop", "endloop"
EDITS = 60
UP = 300_000  # milliseconds that a busy computer may take to bring Python up
ANSWERED = "text => document.querySelector('.ckw-verdict')?.textContent.includes(text)"


def test_constants_are_folded_as_with_numpy(tmp_path):
    """The stand-in runs the package's own arithmetic, and gives numpy's bits."""
    (tmp_path / "page.zip").write_bytes(compile_page.archive())
    with zipfile.ZipFile(tmp_path / "page.zip") as packed:
        packed.extractall(tmp_path)
    program = "import sys, json; sys.path[:0] = sys.argv[1:]; import folding, numpy\n"
    program += "print(json.dumps([numpy.__file__, folding.folded(100)]))"
    command = [sys.executable, "-I", "-c", program, str(tmp_path), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    module, results = json.loads(done.stdout)
    assert Path(module).parent == tmp_path
    assert [one for one, other in zip(results, folding.folded(100)) if one != other] == []
    assert len({name for name, *_ in results}) > 60


@cache
def beginnings() -> dict[str, dict]:
    """What the page begins with of each kernel."""
    return json.loads(compile_page.beginnings())["kernels"]


def test_equal_sources_make_equal_archives():
    assert compile_page.archive() == compile_page.archive()


@pytest.mark.parametrize("name", ["sgemm_tn", "ddgemm_tn_nofma"])
def test_the_page_has_the_card_of_a_known_kernel(name):
    session, own = Session(), beginnings()[name]
    list(session.receive(json.dumps({"type": "open", "like": name, "own": own})))
    text = json.dumps({"type": "text", "edit": "1", "text": own["text"]})
    card = json.loads(list(session.receive(text))[-1])["card"]
    assert card.items() <= vars(ck.card(name)).items()


@pytest.mark.parametrize("seed", range(6))
def test_no_deleted_line_makes_a_kernel_faster(seed):
    """Of any kernel of the catalogue, whichever line of its loop goes: where a product is missing
    there is no speed, and words that say so.
    """
    chance = random.Random(seed)
    name = chance.choice(sorted(ck.kernels))
    own = beginnings()[name]
    lines = own["text"].splitlines()
    begin, end = (next(n for n, line in enumerate(lines) if word in line) for word in LOOP)
    products = [n for n in range(begin, end) if re.match(r"\s*d?mad\b", lines[n])]
    session = Session()
    list(session.receive(json.dumps({"type": "open", "like": name, "own": own})))

    def card(text: str) -> dict:
        message = json.dumps({"type": "text", "edit": "1", "text": text})
        return json.loads(list(session.receive(message))[-1]).get("card", {})

    assert card(own["text"])["nominal_gflops"] > 0
    for gone in chance.sample(products, min(3, len(products))):
        shown = card("\n".join(lines[:gone] + lines[gone + 1 :]))
        if shown:
            assert shown["nominal_gflops"] is None and "left: no speed" in shown["no_speed"]


# -- in Chromium


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of the page, on this computer."""
    folder = tmp_path_factory.mktemp("site")
    try:
        compile_page.write_page(folder / "compile")
    except compile_page.NoPyodide as why:
        pytest.skip(f"Pyodide can't be had: {why}")
    (folder / "index.html").write_text("<!DOCTYPE html><title>The site</title>")
    handler = partial(SilentHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/compile/"
        server.shutdown()
        thread.join()


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.slow
def test_page_and_cpython_answer_alike_byte_for_byte(served, page):
    """Some kernels, and random edits of all, one after another in one session of the page."""
    asked = [(name, kernel.text) for name, kernel in islice(ck.kernels.items(), 0, None, 7)]
    asked += random_edits(11, EDITS)
    session, kernels = Session(), json.loads(compile_page.beginnings())["kernels"]
    here = []
    messages = []
    for number, (name, text) in enumerate(asked):
        messages += [
            json.dumps({"type": "open", "like": name, "own": kernels[name]}),
            json.dumps({"type": "text", "edit": str(number), "text": text}),
        ]
    for message in messages:
        here += session.receive(message)
    page.goto(served)
    page.set_default_timeout(UP)
    there = page.evaluate(JS.compileInWorker, messages)
    assert [one for one, other in zip(here, there) if one != other] == []
    assert len(here) == len(there) > 1.4 * len(asked)
    faulty = sum(bool(json.loads(answer).get("faults")) for answer in here)
    assert EDITS / 10 < faulty < EDITS, "edits of both kinds"


@pytest.mark.slow
def test_an_edit_is_answered_and_shared_by_its_link(served, page):
    page.goto(served)
    page.wait_for_function(ANSWERED, arg="31 bundles", timeout=UP)
    nominal = ck.card("sgemm_tn").nominal_gflops
    assert page.get_by_text(f"{nominal:.0f}").count(), "the nominal speed"
    editor = page.get_by_role("textbox")
    editor.click()
    page.keyboard.press("Control+Home")
    page.keyboard.press("End")
    page.keyboard.type("\nmadd r1, r2, r3")
    page.wait_for_function(ANSWERED, arg="madd", timeout=UP)
    page.wait_for_function("location.hash.includes('text=')")
    other = page.context.browser.new_context()
    try:
        elsewhere = other.new_page()
        elsewhere.goto(page.url)
        elsewhere.wait_for_function(ANSWERED, arg="madd", timeout=UP)
        assert "madd r1, r2, r3" in elsewhere.get_by_role("textbox").input_value()
    finally:
        other.close()
    page.get_by_label("Begin with").select_option("dgemm_tn")
    page.wait_for_function(ANSWERED, arg="It assembles", timeout=UP)
    assert page.url.endswith("#like=dgemm_tn")


@pytest.mark.slow
def test_the_page_is_accessible_on_screens_of_both_sizes(served, page):
    page.goto(served)
    page.wait_for_function(ANSWERED, arg="31 bundles", timeout=UP)
    for width, height, scheme in ((1366, 768, "light"), (390, 844, "dark")):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not axe_finds(page)
    assert page.locator("#status[role=status]").inner_text().startswith("Compiled")
    assert "31 bundles" in page.locator("[aria-live=polite]").last.inner_text()


@pytest.mark.slow
def test_it_works_with_the_network_off_once_it_was_loaded(served, page):
    page.goto(served)
    page.wait_for_function(ANSWERED, arg="31 bundles", timeout=UP)
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.context.set_offline(True)
    try:
        page.reload()
        page.wait_for_function(ANSWERED, arg="31 bundles", timeout=UP)
    finally:
        page.context.set_offline(False)


HOSTILE = (
    "text=%00",
    "text=AAAA&like=sgemm_tn",
    "like=__proto__",
    "like=constructor&text=",
    "%",
    "text=" + "A" * 5000,
)


def test_an_address_that_holds_no_kernel_opens_another(served, page):
    for hostile in HOSTILE:
        page.goto(f"{served}#{hostile}")
        page.reload()
        page.wait_for_selector(".ckw-head")
        assert "il_ps_2_0" in page.get_by_role("textbox").input_value(), hostile
        assert page.get_by_label("Begin with").input_value() == "sgemm_tn", hostile


def test_what_is_packed_is_unpacked(served, page):
    page.goto(served)
    texts = ["", "é\t;\r\n", ck.kernels["sgemm_tn"].text]
    assert page.evaluate(JS.packAndUnpack, texts) == texts
    bomb = page.evaluate(JS.packAndUnpack, ["x" * 1_000_000])
    assert bomb == ["refused"]


def test_a_page_from_disk_says_what_it_needs(tmp_path, page):
    """Browsers start no worker from a file."""
    text = (compile_page.HERE / "page.html").read_text().replace("$look", "")
    (tmp_path / "index.html").write_text(text)
    page.goto((tmp_path / "index.html").as_uri())
    assert "http.server" in page.locator("#status").inner_text()


def test_a_site_without_pyodide_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(compile_page, "KEPT", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(compile_page.NoPyodide, match="npm isn't here"):
        compile_page.write_page(tmp_path / "site")
    assert not (tmp_path / "site").exists()
