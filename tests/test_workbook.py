"""The workbook behind a link: in Chromium, lessons give the outputs that their files hold, and what
a reader writes stays.
"""

from pathlib import Path

import nbformat
import pytest
from pages import site_with_python
from playwright.sync_api import Page
from test_notebooks import code_cells, exempt, told

from cypresskit.grading import course
from tools import bench_page, workbook
from tools.bench_page.browser import TIMEOUT_MS, served

APP = "window.cypresskitApp"
NOTEBOOK = f"{APP}.shell.currentWidget.content"
CELLS = f"{NOTEBOOK}.widgets.filter((cell) => cell.model.type === 'code')"
RESTING = f"""() => {CELLS}.every((cell) => !cell.inputArea?.promptNode?.textContent.includes('*'))
    && {APP}.shell.currentWidget.sessionContext.kernelDisplayStatus === 'idle'"""
#: Runs code beside the cells: its outputs, and how it ended.
RUN = f"""async (code) => {{
    const kernel = {APP}.shell.currentWidget.sessionContext.session.kernel
    const future = kernel.requestExecute({{code, allow_stdin: true}})
    const texts = []
    future.onStdin = () => kernel.sendInputReply({{value: "typed", status: "ok"}})
    future.onIOPub = ({{content}}) => texts.push(content.text ?? content.evalue ?? "")
    const reply = await future.done
    return [texts.join(""), reply.content.status]
}}"""

#: Calls a function; fails if it hasn't ended after some milliseconds.
WITHIN = """([script, argument, most]) => Promise.race([
    eval(`(${script})`)(argument),
    new Promise((_, fail) => setTimeout(fail, most, new Error(`no end: ${script}`))),
])"""


@pytest.fixture(scope="module")
def site(tmp_path_factory, once):
    """The address of a site with the workbook, on this computer."""
    parts = {"bench": bench_page.write_page, "workbook": workbook.write_workbook}
    folder = site_with_python(tmp_path_factory, once, **parts)
    with served(folder) as address:
        yield f"{address}/workbook"


@pytest.fixture
def reader(browser):
    """A window of a browser that keeps nothing yet."""
    context = browser.new_context()
    yield opened(context)
    context.close()


@pytest.fixture(scope="module")
def visited(browser):
    """A browser that keeps what a Python that has begun has in its memory."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def again(visited):
    """A window of that browser."""
    yield opened(visited)
    for page in visited.pages:
        page.close()


def opened(context) -> Page:
    """A new window."""
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    return page


def evaluate(page: Page, script: str, argument: object = None):
    """The value of a JavaScript function, which has to end."""
    return page.evaluate(WITHIN, [script, argument, TIMEOUT_MS])


def open_lesson(page: Page, site: str, lesson: str) -> None:
    """Open a lesson by its number, and wait until its Python runs."""
    page.goto(f"{site}/?lesson={lesson}")
    page.wait_for_function(
        f"lesson => {APP}?.shell.currentWidget?.context?.path.startsWith(lesson)"
        f" && {APP}.shell.currentWidget.context.isReady",
        arg=lesson,
    )
    page.wait_for_function("[...cypresskitKernels.values()].some((kernel) => kernel.begun)")
    evaluate(page, "() => [...cypresskitKernels.values()].find((kernel) => kernel.begun).begun")


def run_all(page: Page) -> list[list[dict]]:
    """Run all cells. Return the outputs of each."""
    evaluate(page, f"() => {APP}.commands.execute('notebook:run-all-cells')")
    page.wait_for_timeout(500)
    page.wait_for_function(RESTING)
    return page.evaluate(f"{CELLS}.map((cell) => cell.model.outputs.toJSON())")


def is_progress(output: dict) -> bool:
    """Whether an output is a progress bar, which the last of its texts wipes out."""
    return output.get("name") == "stderr" and not output["text"].strip()


def differences(path: Path, ran: list[list[dict]]) -> list:
    """Return the cells of a saved notebook whose outputs differ from those of a run."""
    found: list = []
    for number, (cell, outputs) in enumerate(
        zip(code_cells(nbformat.read(path, 4)), ran, strict=True)
    ):
        outputs = [one for one in outputs if not is_progress(one)]
        errors = [one["evalue"] for one in outputs if one["output_type"] == "error"]
        if errors:
            found.append((number, errors))
        elif not exempt(cell) and told(outputs) != told(cell.outputs):
            found.append((number, told(cell.outputs), told(outputs)))
    return found


#: The lesson of each change, and those of each night.
LESSONS = [
    pytest.param(path, id=path.stem, marks=mark)
    for path in workbook.lessons()
    for mark in [[] if path.stem.startswith("01") else pytest.mark.nightly]
]


@pytest.mark.slow
@pytest.mark.parametrize("path", LESSONS)
def test_a_lesson_gives_what_its_file_holds(path, site, reader):
    """And shows no list of files."""
    open_lesson(reader, site, path.stem[:2])
    assert differences(path, run_all(reader)) == []
    assert reader.evaluate(f"{APP}.shell.leftCollapsed")


@pytest.mark.slow
def test_what_a_cell_may_do_in_a_page(site, again):
    """It asks, awaits, writes files, and ends when it is stopped, which says what is left."""
    open_lesson(again, site, "01")

    def run(code: str) -> list[str]:
        return evaluate(again, RUN, code)

    assert run("print(input('name? '))") == ["typed\n", "ok"]
    assert run("import asyncio; await asyncio.sleep(0.01); print('slept')") == ["slept\n", "ok"]
    assert "no shell" in run("!ls")[0]
    assert run("x = 1; open('mine.txt', 'w').write('kept')")[1] == "ok"
    again.evaluate(f"() => {{ window.endless = ({RUN})('while True: pass') }}")
    again.wait_for_timeout(500)
    evaluate(again, f"() => {APP}.commands.execute('notebook:interrupt-kernel')")
    text, status = evaluate(again, "() => window.endless")
    assert status == "error" and "Your files are kept" in text and "gone" in text
    assert run("print(open('mine.txt').read(), 'x' in globals())") == ["kept False\n", "ok"]


@pytest.mark.slow
def test_a_file_that_is_changed_elsewhere_reaches_python(site, again):
    open_lesson(again, site, "01")
    model = {"type": "file", "format": "text", "content": "from the editor"}
    save = f"(model) => {APP}.serviceManager.contents.save('other.txt', model)"
    evaluate(again, save, model)
    again.wait_for_timeout(500)
    assert evaluate(again, RUN, "print(open('other.txt').read())")[0] == "from the editor\n"


@pytest.mark.slow
def test_a_second_tab_runs_no_python_and_says_where_it_runs(site, again):
    open_lesson(again, site, "01")
    assert evaluate(again, RUN, "open('mine.txt', 'w').write('first')")[1] == "ok"
    second = opened(again.context)
    second.goto(f"{site}/?lesson=01")
    second.wait_for_function(f"{APP}?.shell.currentWidget?.context?.isReady")
    second.wait_for_function(f"{APP}.shell.currentWidget.sessionContext.session?.kernel")
    text, status = evaluate(second, RUN, "open('mine.txt', 'w').write('second')")
    assert status == "error" and "open in another tab" in text
    assert evaluate(again, RUN, "print(open('mine.txt').read())")[0] == "first\n"


@pytest.mark.slow
def test_what_a_reader_writes_is_there_after_a_reload_and_is_graded(site, again, tmp_path):
    """Also by the command that grades a download."""
    open_lesson(again, site, "01")
    run_all(again)
    evaluate(again, f"() => {{ {CELLS}[0].model.sharedModel.setSource('mine = 1') }}")
    evaluate(again, f"() => {APP}.commands.execute('docmanager:save')")
    open_lesson(again, site, "01")
    assert evaluate(again, f"() => {CELLS}[0].model.sharedModel.getSource()") == "mine = 1"
    held = f"{APP}.serviceManager.contents.get('climb', {{content: true}})"
    listed = "({content}) => content.map((file) => file.name)"
    names = evaluate(again, f"() => {held}.then({listed})")
    assert "01a.il" in names
    with again.expect_download() as saved:
        again.evaluate(f"() => {{ {APP}.commands.execute('docmanager:download') }}")
    saved.value.save_as(tmp_path / "mine.ipynb")
    cells = course.parse_cells((tmp_path / "mine.ipynb").read_bytes())
    assert course.identify_lesson("mine.ipynb", cells, course.read_lessons()) == "01_register_block"
    assert "01a" in course.find_saved_kernels(cells)


@pytest.mark.slow
def test_the_start_page_says_what_a_browser_lacks(site, reader):
    reader.add_init_script("delete WebAssembly.compileStreaming")
    reader.goto(f"{site}/?lesson=01")
    assert "can't run the workbook" in reader.locator("#problem").inner_text()
    assert "lesson=01" in reader.url
