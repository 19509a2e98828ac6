"""The workbook behind a link: in Chromium, lessons give the outputs that their files hold, and what
a reader writes stays.
"""

import re

import nbformat
import pytest
from cell_outputs import code_cells, exempt, output_texts
from python_sites import LAUNCH, make_python_site, require
from readable import axe_finds
from waiting import wait_for

import cypresskit as ck
from cypresskit.editing import step_outputs
from cypresskit.grading import course
from tools import bench_page, workbook
from tools.bench_page import PROBLEMS
from tools.bench_page.browser import TIMEOUT_MS, served

APP = "window.cypresskitApp"
NOTEBOOK = f"{APP}.shell.currentWidget.content"
CELLS = f"{NOTEBOOK}.widgets.filter((cell) => cell.model.type === 'code')"
RESTING = f"""() => {CELLS}.every((cell) => !cell.inputArea?.promptNode?.textContent.includes('*'))
    && {APP}.shell.currentWidget.sessionContext.kernelDisplayStatus === 'idle'"""
#: Runs code beside the cells: its outputs (so far: `printed`), and how it ended.
RUN = f"""async (code) => {{
    const kernel = {APP}.shell.currentWidget.sessionContext.session.kernel
    const future = kernel.requestExecute({{code}})
    const texts = (window.printed = [])
    future.onIOPub = ({{content}}) => texts.push(content.text ?? content.evalue ?? "")
    const reply = await future.done
    return [texts.join(""), reply.content.status]
}}"""

ENDLESS = "print('endless')\nwhile True: pass"

(LESSON_01,) = (path for path in workbook.lessons() if path.stem.startswith("01"))

#: Calls a function; fails if it hasn't ended after some milliseconds.
WITHIN = """([script, argument, most]) => Promise.race([
    eval(`(${script})`)(argument),
    new Promise((_, fail) => setTimeout(fail, most, new Error(`no end: ${script}`))),
])"""


@pytest.fixture(scope="module")
def site(python_site):
    """The address of a site with the workbook, on this computer."""
    with served(require(python_site)) as address:
        yield f"{address}/workbook"


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory, once):
    """The same with the results of all lessons' launches, as `make docs` builds it, in minutes."""
    folder = tmp_path_factory.mktemp("whole")
    made = once("whole-site", lambda: make_python_site(folder, workbook.lessons()))
    with served(require(made)) as address:
        yield f"{address}/workbook"


def open_window(context):
    """A new window."""
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    return page


@pytest.fixture
def reader(browser):
    """A window of a browser that keeps nothing yet."""
    context = browser.new_context()
    yield open_window(context)
    context.close()


def evaluate(page, script, argument=None):
    """The value of a JavaScript function, which has to end."""
    return page.evaluate(WITHIN, [script, argument, TIMEOUT_MS])


def show_lesson(page, site, lesson):
    """Open a lesson by its number."""
    page.goto(f"{site}/?lesson={lesson}")
    page.wait_for_function(
        f"lesson => {APP}?.shell.currentWidget?.context?.path.startsWith(lesson)"
        f" && {APP}.shell.currentWidget.context.isReady",
        arg=lesson,
    )


def open_lesson(page, site, lesson):
    """Open a lesson by its number, and wait until its Python runs."""
    show_lesson(page, site, lesson)
    page.wait_for_function("[...cypresskitKernels.values()].some((kernel) => kernel.begun)")
    evaluate(page, "() => [...cypresskitKernels.values()].find((kernel) => kernel.begun).begun")


@pytest.fixture(scope="module")
def running(site, browser):
    """A window with lesson 01, whose Python these tests share."""
    context = browser.new_context()
    page = open_window(context)
    open_lesson(page, site, "01")
    yield page
    context.close()


def run_all(page):
    """Run all cells. Return the outputs of each."""
    evaluate(page, f"() => {APP}.commands.execute('notebook:run-all-cells')")
    page.wait_for_timeout(500)
    page.wait_for_function(RESTING)
    return page.evaluate(f"{CELLS}.map((cell) => cell.model.outputs.toJSON())")


def stop(page, code):
    """Run code, then a loop that never ends, and stop it. Return its outputs, and how it ended."""
    page.evaluate(f"(code) => {{ window.endless = ({RUN})(code) }}", f"{code}\n{ENDLESS}")
    page.wait_for_function("printed.join('').includes('endless')")
    evaluate(page, f"() => {APP}.commands.execute('notebook:interrupt-kernel')")
    return evaluate(page, "() => window.endless")


AT_SIZE = re.compile(r"(At \d+ x \d+), k = \d+(: (All )?[\d,]+ elements equal numpy's).*")


def told_anywhere(outputs):
    """What outputs tell, but for k and errors of a product at a given size: a browser, where
    nothing is compiled, computes it with a smaller k.
    """
    return [[kind, AT_SIZE.sub(r"\1\2", text)] for kind, text in output_texts(outputs)]


def differences(path, ran):
    """Return the cells of a saved notebook whose outputs differ from those of a run."""
    found: list = []
    for number, (cell, outputs) in enumerate(
        zip(code_cells(nbformat.read(path, 4)), ran, strict=True)
    ):
        errors = [one["evalue"] for one in outputs if one["output_type"] == "error"]
        if errors:
            found.append((number, errors))
        elif not exempt(cell) and told_anywhere(outputs) != told_anywhere(cell.outputs):
            found.append((number, told_anywhere(cell.outputs), told_anywhere(outputs)))
    return found


@pytest.mark.nightly
@pytest.mark.parametrize(
    "path", [path for path in workbook.lessons() if path != LESSON_01], ids=lambda path: path.stem
)
def test_a_lesson_gives_what_its_file_holds(path, whole_site, reader):
    """Each night; 01, with each change: see below."""
    open_lesson(reader, whole_site, path.stem[:2])
    assert differences(path, run_all(reader)) == []


def test_what_each_lesson_gave_is_kept_when_another_fails(tmp_path, monkeypatch, capfd):
    """A second run goes on with that. What failed is told in two lines."""
    monkeypatch.setattr(bench_page, "DOWNLOADS", tmp_path / "kept")
    ran = tmp_path / "ran"
    texts = {"00_right": f"open({str(ran)!r}, 'a').write('0')", "01_wrong": "1 / 0"}
    lessons = [tmp_path / f"{name}.ipynb" for name in texts]
    for lesson, text in zip(lessons, texts.values()):
        cell = nbformat.v4.new_code_cell(text, id="one")
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), lesson)
    with pytest.raises(SystemExit, match="A second run goes on"):
        bench_page.launches("launches", [], "cypresskit.cli.ahead", *map(str, lessons))
    assert capfd.readouterr().err == "01_wrong.ipynb failed. ZeroDivisionError: division by zero\n"
    lessons[1].write_text(lessons[1].read_text().replace("1 / 0", "1 / 1"))
    bench_page.launches("launches", [], "cypresskit.cli.ahead", *map(str, lessons))
    assert ran.read_text() == "0"


def test_what_a_cell_may_do_in_a_page(running):
    """It writes files, and ends when it is stopped, which says what is left."""

    def run(code):
        return evaluate(running, RUN, code)

    for refused in ("input('name? ')", "import asyncio; await asyncio.sleep(0.01)", "!ls"):
        text, status = run(refused)
        assert "no input, await, shell or pip in this page" in text and status == "error"
    assert "number of items" in run("help(len)")[0]
    assert run("x = 1")[1] == "ok"
    text, status = stop(running, "open('mine.txt', 'w').write('kept')")
    assert status == "error" and "Your files are kept" in text and "gone" in text
    assert run("print(open('mine.txt').read(), 'x' in globals())") == ["kept False\n", "ok"]


def test_what_a_full_store_refuses_stays_and_is_stored_later(running):
    """Also after a restart of Python."""
    contents, line = f"{APP}.serviceManager.contents", running.locator("#cypresskit-kernel")
    full = "async () => { throw new DOMException('full', 'QuotaExceededError') }"
    evaluate(running, f"() => {{ {contents}.save = {full} }}")
    try:
        stop(running, "open('late.txt', 'w').write('kept')")
        assert evaluate(running, RUN, "print(open('late.txt').read())") == ["kept\n", "ok"]
        line.filter(has_text="can't save your files").wait_for()
    finally:
        evaluate(running, f"() => {{ delete {contents}.save }}")
    assert evaluate(running, RUN, "open('mine.txt', 'w').write('now')")[1] == "ok"
    line.wait_for(state="hidden")
    held = "(name) => " + contents + ".get(name, {content: true}).then(({content}) => content)"
    assert [evaluate(running, held, name) for name in ("late.txt", "mine.txt")] == ["kept", "now"]


def test_a_file_whose_change_is_noticed_while_python_begins_is_there(running):
    """The notice of what the Python before has saved may come late."""
    assert evaluate(running, RUN, "open('mine.txt', 'w').write('kept')")[1] == "ok"
    contents = f"{APP}.serviceManager.contents"
    late = f"""() => {{
        const get = {contents}.get
        const [kernel] = [...cypresskitKernels.values()].filter((kernel) => kernel.begun)
        {contents}.get = async (...asked) => {{
            delete {contents}.get
            await kernel.changed(kernel.files.folder + "mine.txt")
            return get.apply({contents}, asked)
        }}
    }}"""
    running.evaluate(f"(code) => {{ window.endless = ({RUN})(code) }}", ENDLESS)
    running.wait_for_function("printed.join('').includes('endless')")
    running.evaluate(late)
    evaluate(running, f"() => {APP}.commands.execute('notebook:interrupt-kernel')")
    assert evaluate(running, "() => window.endless")[1] == "error"
    assert evaluate(running, RUN, "print(open('mine.txt').read())") == ["kept\n", "ok"]


def test_a_python_that_ends_between_two_cells_says_so(running):
    assert evaluate(running, RUN, "x = 1")[1] == "ok"
    running.workers[-1].evaluate("() => setTimeout(() => { throw new Error('killed') })")
    line = running.locator("#cypresskit-kernel")
    line.filter(has_text="killed").filter(has_text="Run the first cell again").wait_for()
    assert evaluate(running, RUN, "print('x' in globals())") == ["False\n", "ok"]


def test_without_a_network_a_stopped_python_says_what_it_needs(running):
    running.context.set_offline(True)
    try:
        stop(running, "open('mine.txt', 'w').write('kept')")
        line = running.locator("#cypresskit-kernel")
        line.filter(has_text=PROBLEMS["network"]).wait_for()
        assert "Your files are kept" in evaluate(running, RUN, "x = 1")[0]
    finally:
        running.context.set_offline(False)
    assert evaluate(running, RUN, "print(open('mine.txt').read())") == ["kept\n", "ok"]


def test_a_launch_of_a_lesson_is_read_from_the_site_and_another_is_simulated(running):
    fetched = []
    running.on("requestfinished", lambda request: fetched.append(request.url))
    with running.expect_request_finished(lambda request: "/launches/result-" in request.url):
        first = evaluate(running, RUN, LAUNCH.format(256))
    read = len(fetched)
    second = evaluate(running, RUN, LAUNCH.format(128))
    for n, ran in ((256, first), (128, second)):
        assert ran == [f"{ck.simulate('sgemm_tn', n).clocks}\n", "ok"]
    others = [url for url in fetched[read:] if "/launches/result-" in url]
    assert len(others) <= 1, "the kernel's compiled code alone, which the bench's steps share"


def test_a_file_that_is_changed_elsewhere_reaches_python(running):
    model = {"type": "file", "format": "text", "content": "from the editor"}
    save = f"(model) => {APP}.serviceManager.contents.save('other.txt', model)"
    evaluate(running, save, model)
    read = "print(open('other.txt').read())"
    wait_for(lambda: evaluate(running, RUN, read)[0] == "from the editor\n")


def test_a_second_tab_runs_no_python_and_says_where_it_runs(site, running):
    assert evaluate(running, RUN, "open('mine.txt', 'w').write('first')")[1] == "ok"
    second = open_window(running.context)
    second.goto(f"{site}/?lesson=01")
    second.wait_for_function(f"{APP}?.shell.currentWidget?.context?.isReady")
    second.wait_for_function(f"{APP}.shell.currentWidget.sessionContext.session?.kernel")
    text, status = evaluate(second, RUN, "open('mine.txt', 'w').write('second')")
    assert status == "error" and "open in another tab" in text
    second.close()
    assert evaluate(running, RUN, "print(open('mine.txt').read())")[0] == "first\n"


def test_a_lesson_runs_is_kept_and_is_graded(site, reader, tmp_path):
    """It shows and gives what its file holds, beside no list of files; what a reader writes is
    there after a reload, and in what the command grades.
    """
    open_lesson(reader, site, "01")
    shown = reader.evaluate(f"{CELLS}.flatMap((cell) => cell.model.outputs.toJSON())")
    held = [one for cell in code_cells(nbformat.read(LESSON_01, 4)) for one in cell.outputs]
    assert [str(one.get("text")) for one in shown] == [str(one.get("text")) for one in held]
    assert differences(LESSON_01, run_all(reader)) == []
    assert reader.evaluate(f"{APP}.shell.leftCollapsed")
    evaluate(reader, f"() => {{ {CELLS}[0].model.sharedModel.setSource('mine = 1') }}")
    evaluate(reader, f"() => {APP}.commands.execute('docmanager:save')")
    show_lesson(reader, site, "01")
    assert evaluate(reader, f"() => {CELLS}[0].model.sharedModel.getSource()") == "mine = 1"
    held = f"{APP}.serviceManager.contents.get('climb', {{content: true}})"
    listed = "({content}) => content.map((file) => file.name)"
    names = evaluate(reader, f"() => {held}.then({listed})")
    assert "01a.il" in names
    with reader.expect_download() as saved:
        reader.evaluate(f"() => {{ {APP}.commands.execute('docmanager:download') }}")
    saved.value.save_as(tmp_path / "mine.ipynb")
    cells = course.parse_cells((tmp_path / "mine.ipynb").read_bytes())
    assert course.identify_lessons(cells, course.read_lessons()) == ["01_register_block"]
    outputs = [each for cell in cells for each in cell["outputs"]]
    assert "01a" in step_outputs.find_step_texts(outputs)


#: As if JupyterLite opened no lesson. It opens that of the address before it restores the layout of
#: the last visit, which may close it.
LOST = """
let app
Object.defineProperty(window, "cypresskitApp", {get: () => app, set: (started) => {
    app = started
    const execute = app.commands.execute.bind(app.commands)
    app.commands.execute = (id, ...given) =>
        id === "router:tree" ? Promise.resolve() : execute(id, ...given)
}})
"""


def test_a_link_shows_its_lesson_and_python_begins_for_it_alone(site, reader):
    """Though JupyterLab restores the lessons of earlier visits, and may open no other."""
    begun = "[...cypresskitKernels.values()].filter((kernel) => kernel.begun).length"
    show_lesson(reader, site, "03")
    for visited, (lesson, script) in enumerate({"01": "", "02": LOST}.items(), 1):
        reader.wait_for_timeout(2000)  # JupyterLab saves its layout
        reader.add_init_script(script)
        open_lesson(reader, site, lesson)
        reader.wait_for_function(f"cypresskitKernels.size === {visited + 1}")
        reader.wait_for_timeout(2000)
        assert reader.evaluate(begun) == 1
        assert evaluate(reader, RUN, "print(1)") == ["1\n", "ok"]
        assert reader.evaluate(f"{APP}.shell.currentWidget.context.path").startswith(lesson)


def test_on_a_phone_the_start_page_stays_and_offers_what_works_there(site, reader):
    loaded = []
    reader.on("request", lambda request: loaded.append(request.url))
    reader.set_viewport_size({"width": 390, "height": 844})
    reader.goto(f"{site}/?lesson=01")
    reader.wait_for_selector("#small:visible")
    assert [link.get_attribute("href") for link in reader.locator("#small a").all()] == [
        "../notebooks/01_register_block.html",
        "../bench/index.html",
        "lab/index.html?path=01_register_block.ipynb",
    ]
    assert not [url for url in loaded if "/lab/" in url]
    assert not axe_finds(reader)


def test_the_start_page_says_what_a_browser_lacks(site, reader):
    reader.add_init_script("delete WebAssembly.compileStreaming")
    reader.goto(f"{site}/?lesson=01")
    assert reader.locator("#problem").inner_text() == PROBLEMS["failed"]
    assert "lesson=01" in reader.url
