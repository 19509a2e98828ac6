"""The workbench in Chromium: journeys at the keyboard, over a real conversation and its process."""

import json
import re
from importlib.util import find_spec
from queue import SimpleQueue

import pytest
from browsing import JS, close_at_script_errors
from needs import demand
from playwright.sync_api import expect
from waiting import wait_for

import cypresskit as ck
from cypresskit.draw.scripts import join_modules
from cypresskit.editing import page_files
from cypresskit.editing.conversation import Conversation
from cypresskit.editing.kernel_file import KernelFile
from cypresskit.editing.step_outputs import find_step_texts
from cypresskit.editing.steps import STEPS, starter_text
from cypresskit.kernels.generated import block_kernel

NAIVE = ck.kernels["sgemm_naive"].text
N = 256  # of the products
BLOCK_4, BLOCK_8 = (block_kernel(n, n, 2, scaled=True).text for n in (4, 8))
PAGE = """<!doctype html><html lang="en"><title>Workbench</title><body class="cypresskit">
<style>%s</style><main><div id="bench"></div></main><script type="module">
%s
const channel = {
  hearers: [],
  send: (message) => window.say(JSON.stringify(message)),
  listen(hear) {
    this.hearers.push(hear)
    return () => {}
  },
}
setInterval(async () => {
  for (const message of JSON.parse(await window.poll()))
    for (const hear of channel.hearers) hear(message)
}, 30)
new Workbench(document.querySelector("#bench"), channel)
</script></body></html>"""
AREA = ".ckw-area"
SELECT = """([before, inside]) => {
    const area = document.querySelector(".ckw-area")
    const at = area.value.indexOf(before + inside) + before.length
    area.focus()
    area.setSelectionRange(at, at + inside.length)
}"""


#: Whether all these lines are in sight.
LINES_IN_SIGHT = """(expected) => {
    const box = document.querySelector(".ckw-area").getBoundingClientRect()
    const inSight = [...document.querySelectorAll(".ckw-row")].filter((row) => {
        const {top, bottom} = row.getBoundingClientRect()
        return top >= box.top - 1 && bottom <= box.bottom - 11 // where there may be a scrollbar
    }).map((row) => parseInt(row.firstChild.textContent))
    return expected.every((line) => inSight.includes(line))
}"""


class Bench:
    """A page with a workbench on a file."""

    def __init__(self, page, path, like):
        self.page, self.path = page, path
        self.queue = SimpleQueue()
        settings = {"like": like, "n": N}
        self.talk = Conversation(KernelFile(path), settings)
        self.talk.connect(self.queue.put)
        page.expose_function("say", lambda message: self.talk.hear(json.loads(message)))
        page.expose_function("poll", self.poll)
        page.set_content(PAGE % (page_files.style(), join_modules(*page_files.MODULES)))
        page.wait_for_selector(".ckw-slot")

    def poll(self):
        messages = []
        while not self.queue.empty():
            messages.append(self.queue.get())
        return json.dumps(messages)

    def verdict(self, kind):
        """Wait for the picture's sentence, and give it."""
        self.page.wait_for_function(
            "kind => document.querySelector('.ckw-verdict').dataset.kind === kind", arg=kind
        )
        return self.page.text_content(".ckw-verdict")

    def dots(self, count):
        """Wait for that many edits, and give their kinds."""
        self.page.wait_for_function(
            "count => document.querySelectorAll('.ckw-edit').length >= count", arg=count
        )
        return [edit.is_correct for edit in self.talk.edits]

    def file_has(self, words):
        """Wait until what was typed has reached the file."""
        wait_for(lambda: words in self.path.read_text(), lambda: self.page.wait_for_timeout(50))

    def paste(self, text):
        """All of the text, as from the clipboard."""
        self.page.focus(AREA)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def type_in(self, before, inside, typed):
        """Select ``inside``, which follows ``before``, and type something in its place."""
        self.page.evaluate(SELECT, [before, inside])
        self.page.keyboard.type(typed)


@pytest.fixture
def begin(page, tmp_path):
    """A function that begins a workbench with a text."""
    begun, faults = [], close_at_script_errors(page)

    def make(text, like="sgemm_naive"):
        path = tmp_path / "my_kernel.il"
        path.write_text(text)
        begun.append(Bench(page, path, like))
        return begun[-1]

    yield make
    for bench in begun:
        bench.talk.close()
    assert not faults


@pytest.mark.parametrize("step", ["00", "01a", "02"])
def test_a_kernel_that_fits_is_seen_whole_and_of_another_its_loop(begin, page, step):
    text = starter_text(step)
    if step == "01a":  # with the reader's line, too
        text = text.replace("endloop", f"{STEPS[step].solution[0]}\nendloop")
    page.set_viewport_size({"width": 960, "height": 768})
    begin(text)
    page.wait_for_selector(".ckw-slot")
    if step != "02":
        expected = list(range(1, text.count("\n") + 2))
    else:
        loop = text.partition("whileloop")[0].count("\n") + 1
        expected = list(range(loop, loop + 20))
    page.wait_for_function(LINES_IN_SIGHT, arg=expected)


def bench_kernel(text):
    return ck.load_kernel(text, like="sgemm_tn")


def test_a_journey_from_naive_to_a_block_of_8_x_8(begin, page):
    bench = begin(NAIVE)
    assert "is correct" in bench.verdict("right")
    bench.dots(1)
    page.evaluate(SELECT, ["", "mad r10.x, r2.x, r3.x, r10.x"])
    page.keyboard.insert_text("mul r4.x, r2.x, r3.x\n    add r10.x, r4.x, r10.x")
    bench.dots(2)
    assert "\n    add r10.x, r4.x, r10.x\n" in bench.path.read_text()
    bench.paste(BLOCK_4)
    bench.dots(3)
    bench.paste(BLOCK_8)
    rights = bench.dots(4)
    bench.verdict("right")
    assert all(rights)
    speeds = [edit.gflops for edit in bench.talk.edits]
    assert speeds[0] < min(speeds[-2:])
    speed = f"{ck.simulate(bench_kernel(BLOCK_8), N).gflops:,.0f}"
    expect(page.locator(".ckw-speed b")).to_have_text(speed)


def test_that_a_text_isnt_saved_is_shown_until_it_is(begin, page):
    bench = begin(NAIVE)
    bench.verdict("right")
    bench.path.unlink()
    bench.path.mkdir()
    bench.type_in("; times alpha", "", " of mine")
    page.wait_for_selector(".ckw-unsaved:not([hidden])")
    page.wait_for_selector("#bench[data-stale='']")
    bench.type_in("; times alpha of mine", "", " too")
    page.wait_for_selector("#bench[data-stale='']")
    assert "no plain file" in page.inner_text(".ckw-unsaved")
    bench.path.rmdir()
    page.wait_for_selector(".ckw-unsaved", state="hidden")
    bench.file_has("; times alpha of mine too")


#: The meanings in the legend that another one covers or stands beside, line by line.
COLLIDING = """() => {
    const entries = [...document.querySelectorAll(".ckw-panel-legend:not([hidden]) dl > div")]
    const meet = (a, b) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 6 && b.top < a.bottom - 6
    const lines = entries.map((entry) =>
        [...entry.children].flatMap((part) => [...part.getClientRects()]))
    const height = (entry) => entry.getBoundingClientRect().height
    return entries.filter((entry, n) =>
        height(entry) < 10 ||
        lines.some((others, m) => m > n && others.some((b) => lines[n].some((a) => meet(a, b))))
    ).map((entry) => entry.textContent)
}"""


def test_in_jupyterlab_it_answers_and_undo_is_the_editors(lab, page):
    demand(find_spec("anywidget"), "anywidget")
    cell = "import cypresskit as ck\nck.workbench('my.il', like='sgemm_tn', n=256)"
    lab.write(page, "bench.ipynb", cell)
    lab.run_all(page)
    page.wait_for_selector(".ckw-verdict[data-kind=right]")
    page.evaluate(SELECT, ["mad r12, r2.", "y"])
    page.keyboard.type("x")
    page.wait_for_selector(".ckw-verdict[data-kind=wrong]")
    page.keyboard.press("Shift+Enter")  # doesn't run the cell, which would end undo
    page.wait_for_selector(".ckw-note:has-text('checked as you type')")
    page.keyboard.press("Control+z")
    page.wait_for_selector(".ckw-verdict[data-kind=right]")
    assert re.search(r"mad r12, r2\.y", (lab.root / "my.il").read_text())
    page.keyboard.press("Control+y")
    page.wait_for_selector(".ckw-verdict[data-kind=wrong]")
    page.keyboard.press("Control+z")
    page.evaluate(SELECT, ["", "mad r12, r2.y"])
    page.keyboard.type("; mine\nmad r12, r2.y")
    page.wait_for_function(
        "() => document.querySelector('.ckw-area').value.includes('; mine\\n    mad r12, r2.y')"
    )
    page.wait_for_selector(".ckw-verdict[data-kind=right]")
    page.locator(".ckw-open button", has_text="Legend").click()
    page.wait_for_selector(".ckw-panel-legend:not([hidden])")
    assert page.evaluate(COLLIDING) == [], "meanings of the legend, as JupyterLab styles them"


OPEN = "path => window.jupyterapp.commands.execute('docmanager:open', {path})"


def test_in_jupyterlab_a_saved_notebook_has_what_the_page_says_is_kept(lab, page):
    """At once, and not when the costs are there: whoever saves and closes hands it in."""
    demand(find_spec("anywidget"), "anywidget")
    lab.write(page, "step.ipynb", "import cypresskit as ck\nck.workbench(step='00')")
    lab.run_all(page)
    text = starter_text("00") + "; mine"
    page.wait_for_selector(".ckw-area")
    page.evaluate("() => document.querySelector('.ckw-area').select()")
    page.keyboard.insert_text(text)
    page.locator(".ckw", has_text="Saved: 45").wait_for()
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    notebook = json.loads((lab.root / "step.ipynb").read_text())
    assert find_step_texts(notebook["cells"][0]["outputs"]) == {"00": (text, True, 0)}
    moved = lab.root / "moved" / "step.ipynb"
    moved.parent.mkdir()
    moved.write_text(json.dumps(notebook))
    page.evaluate(OPEN, "moved/step.ipynb")
    page.wait_for_function(JS.idle, arg="moved/step.ipynb")
    lab.run_all(page)
    edit = page.locator(".ckw-edit", has_text="brought back from this notebook")
    edit.wait_for(state="attached")
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    again = json.loads(moved.read_text())
    assert again != notebook and find_step_texts(again["cells"][0]["outputs"]) == {
        "00": (text, True, 0)
    }
