"""Widgets hear Python, and are heard, on a busy page and while a cell runs."""

from browsing import hold_clock, script_errors
from playwright.sync_api import expect

from cypresskit.editing import page_files

#: A widget on a page that this test holds: `sent` is what it sends, `tell` what Python says.
WIDGET = """async (code) => {
    const hears = new Set()
    window.sent = []
    window.tell = (message) => hears.forEach((hear) => hear(message))
    const python = {
        send: ({type}) => sent.push(type),
        on: (kind, hear) => kind === "msg:custom" && hears.add(hear),
        off: (kind, hear) => hears.delete(hear),
    }
    const model = {get: () => "id", widget_manager: {get_model: async () => python}}
    const url = URL.createObjectURL(new Blob([code], {type: "text/javascript"}))
    window.leave = await (await import(url)).default.render({model, el: document.body})
}"""
STATE = """() => tell({
    type: "state", name: "my.il", file: "/my.il", text: "end", edit: "file-0", problem: "",
    step: null,
    tables: {statistics: {}, il_minute: [], legend: []},
    history: {entries: [], saved: null, wait: null},
})"""


def test_hello_is_repeated_until_it_is_answered_and_answered_once(clock, page):
    """The first one may wait behind a running cell. A second answer would outdate what is shown."""
    hold_clock(page)
    page.evaluate(WIDGET, page_files.widget_module())
    assert page.evaluate("() => sent") == ["hello"]
    page.clock.run_for(2500)
    assert page.evaluate("() => sent") == ["hello"] * 3
    page.evaluate(STATE)
    page.evaluate("() => { sent.length = 0 }")
    page.evaluate(STATE)
    page.clock.run_for(5000)
    assert page.evaluate("() => sent") == []
    page.evaluate("() => leave()")


def test_a_page_without_an_answer_says_why(clock, page):
    """Nothing for three seconds; then what is so by then."""
    hold_clock(page)
    page.evaluate(WIDGET, page_files.widget_module())
    waiting = page.locator(".ckw-waiting")
    page.clock.run_for(2900)
    assert waiting.inner_text() == "The workbench opens …"
    page.clock.run_for(200)
    assert "computer" in waiting.inner_text() and "cell" not in waiting.inner_text()
    page.evaluate("""() => document.body.insertAdjacentHTML("beforeend",
        '<p class="jp-InputPrompt">[*]:</p>')""")
    page.clock.run_for(3000)
    assert "running a cell" in waiting.inner_text()
    page.evaluate("() => { document.querySelector('.jp-InputPrompt').textContent = '[1]:' }")
    page.clock.run_for(3000)
    assert "run the first cell and this cell again" in waiting.inner_text()
    page.evaluate("() => tell({type: 'gone'})")
    page.clock.run_for(9000)
    assert "was restarted" in waiting.inner_text()


#: A page that is busy whenever the module of a widget is loaded, for longer than anywidget waits.
BUSY_PAGE = """
from IPython.display import HTML, display
display(HTML('''<script>{
    const make = URL.createObjectURL
    URL.createObjectURL = (blob) => {
        if (blob.type === "text/javascript") {
            const end = performance.now() + 2500
            while (performance.now() < end);
        }
        return make.call(URL, blob)
    }
}</script>'''))"""
BEGIN = "from pathlib import Path\nimport cypresskit as ck\nck.draw.load()"
BENCH = "ck.workbench('busy.il', like='sgemm_tn', n=256)"
CURVE = "guess = ck.draw.predict('How fast?', curve=[1, 2, 3], top=10)"
SLIDER = "ck.draw.interactive(lambda n: f'now {n * 111}', n=[1, 2])"


def test_an_anywidget_works_on_a_page_that_was_busy_for_too_long(lab, page):
    failed = script_errors(page)
    lab.write(page, "busy_page.ipynb", BUSY_PAGE, BEGIN, BENCH, CURVE, "guess.value")
    lab.run_all(page)
    page.wait_for_selector(".ckw-verdict[data-kind=right]")
    assert any("Failed to initialize model" in message for message in failed)
    page.locator(".cypresskit-guess-chart circle").nth(1).press("End")
    lab.run_until(page, "guess.value", "2: 10")


def test_a_page_is_answered_while_a_cell_runs(lab, page):
    """The workbench, with what its buttons ask for, and sliders."""
    steps = "bench = ck.workbench(step='00')\nbench"
    waits = "import time\nwhile not Path('enough').exists():\n    time.sleep(0.05)"
    lab.write(page, "beside.ipynb", BEGIN, SLIDER, steps, waits)
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
    page.wait_for_selector(".ckw-verdict[data-kind]")
    page.locator(".ckw-area").press("Control+a")
    page.keyboard.insert_text("il_ps_2_0\nnothing r1\nend")
    page.wait_for_selector(".ckw-verdict[data-kind=fault]")
    page.locator(".cypresskit-controls [role=slider]").press("ArrowRight")
    page.wait_for_selector("text=now 222")
    for words in ("Climb", "Share your climb"):
        page.locator(f".ckw button:text-is('{words}')").click()
    page.wait_for_selector(".ckw-climb > *", state="attached")
    expect(page.locator(".jp-InputPrompt", has_text="*")).to_have_count(1)
    (lab.root / "enough").touch()
    page.wait_for_function(
        "() => !document.querySelector('.jp-Notebook').textContent.includes('[*]')"
    )
