"""The lessons run from top to bottom, and every output is what the file holds.

nbval runs each solved notebook in a kernel of its own and compares the outputs with the saved ones.
Those that students get run one after another in one kernel of the process that tests; each has
names and a folder of its own. That proves something only while most cells have outputs, few are
exempt, and a wrong digit is noticed: that is tested here too.
"""

import base64
import json
import os
import random
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from cell_outputs import code_cells, exempt, output_texts
from charted import Charted, assert_kinds_told
from jupyter_client import KernelManager
from nbclient import NotebookClient
from repository import ROOT
from sampling import drawn_by_day

from cypresskit.cli import cmd_lab
from cypresskit.editing.step_outputs import MIME
from cypresskit.grading.course import METADATA_KEY

NOTEBOOKS = sorted((ROOT / "notebooks").rglob("[0-9]*.ipynb"))  # those with solutions too

SOLVED = [path for path in NOTEBOOKS if path.parent.name == "solutions"]
GIVEN = [path for path in NOTEBOOKS if path.parent.name == "notebooks"]
TIMED = "print(lesson.speed_here(product))"  # on a GPU, if there is one
#: Without a grammar of addresses in all scripts, which takes a second to load, and which no
#: notebook's format needs.
PYTEST = "import sys, pytest; sys.modules['rfc3987_syntax'] = None; sys.exit(pytest.main())"

each_notebook = pytest.mark.parametrize(
    "path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}-{path.stem}"
)
#: A digit, and before it what two runs may show otherwise: see nbval_sanitize.cfg.
DIGIT = re.compile(r"numpy's.*|(?s:<cypresskit-(\w+).*</cypresskit-\1>)|(?P<digit>\d)")
NUMBER = re.compile(r"\b\d+(?:,\d{3})*(?:\.\d+)?")
BEGIN = "get_ipython().reset(); import os; os.chdir({!r}); del os"
#: Each line of a lesson that says what a comparison with numpy found. How near they are is masked.
COMPARED = re.compile(r"[\d,]+ elements equal numpy's")
#: Counts, cell by cell, the launches of kernels that say that they multiply matrices by blocks of
#: several elements: at the engines' own doors.
COUNT = """
def _count_launches():
    import builtins
    from cypresskit.kernels.statement import read_statement
    from cypresskit.machine import compiled, engines, interpreter

    builtins.launches_of_cells = []

    def counted(run):
        def launched(launch, *args, **how):
            program = launch.program
            how_launched = read_statement("\\n".join(program.lines), program.name)
            is_matrix = how_launched is not None and not how_launched.is_vector
            builtins.launches_of_cells[-1] += is_matrix and max(how_launched.block) > 1
            return run(launch, *args, **how)
        return launched

    for engine in (compiled, interpreter):
        engine.run = counted(engine.run)
    begin = lambda info: builtins.launches_of_cells.append(0)
    get_ipython().events.register("pre_run_cell", begin)

_count_launches()
"""


#: A reader's environment: without the tests' variable, so what students get reads the times that
#: the solved lessons simulated, as a reader's second run does.
READERS = {name: value for name, value in os.environ.items() if name != "CYPRESSKIT_KEEP"}
READERS["PYTHONPATH"] = str(ROOT)


def nbval(path, environment):
    """Run the notebook at `path` in its directory and compare its outputs, without pytest's other
    plugins.
    """
    options = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=600"]
    options += ["-c", "/dev/null", "-p", "nbval.plugin", "-p", "cypresskit_nbval"]
    options += ["-p", "no:cacheprovider", "-q", "--color=no", f"--rootdir={path.parent}"]
    return subprocess.run(
        [sys.executable, "-c", PYTEST, *options, path.name],
        cwd=path.parent,
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=1800,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs a notebook in a folder where no other lesson's star shines, and gives
    its code cells. Their metadata say how many blocked kernels they ``launched``.
    """
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=READERS)
    count = [COUNT]  # once in this kernel

    def cells(path):
        notebook = nbformat.read(path, as_version=4)
        for cell in code_cells(notebook):
            cell.outputs = []
        begin = BEGIN.format(str(tmp_path_factory.mktemp("lesson")))
        begin = nbformat.v4.new_code_cell(begin + (count.pop() if count else ""))
        launches = "import json; print(json.dumps(launches_of_cells))"
        notebook.cells = [begin, *notebook.cells, nbformat.v4.new_code_cell(launches)]
        NotebookClient(notebook, km=manager, timeout=600).execute()
        ran = code_cells(notebook)[1:-1]
        launched = json.loads(code_cells(notebook)[-1].outputs[0].text)[:-1]
        for cell, count_of_cell in zip(ran, launched[-len(ran) :], strict=True):
            cell.metadata["launched"] = count_of_cell
        return ran

    yield cells
    manager.shutdown_kernel(now=True)


def is_check(cell):
    return cell.metadata.get(METADATA_KEY, {}).get("part") == "check"


@drawn_by_day("path", SOLVED, 1, ids=lambda path: path.stem)
def test_runs_and_prints_what_it_holds(path, tmp_path):
    result = nbval(
        shutil.copy(path, tmp_path / path.name), READERS
    )  # alone: no other lesson's star
    assert result.returncode == 0, result.stdout[-6000:]


def commands():
    """What the documents tell a reader to type who wants a lesson compared."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    text = "\n".join(page.read_text() for page in pages)
    return set(re.findall(r"(pytest --nbval [^`\n]+)", text))


def assert_compared(command, cells, folder, cache):
    """Nothing differs, with nothing compiled, and no file is left."""
    files = {path: path.stat().st_mtime_ns for path in folder.rglob("*.ipynb")}
    listed = {*folder.iterdir()}
    empty = dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"), str(cache))
    done = subprocess.run(
        [sys.executable, "-m", *command, "-p", "no:cacheprovider"],
        cwd=folder,
        env=READERS | empty,
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0 and f"\n{cells} passed" in done.stdout, done.stdout[-6000:]
    assert {*folder.iterdir()} == listed
    assert all(path.stat().st_mtime_ns == time for path, time in files.items())


@pytest.mark.nightly
def test_the_documents_command_compares_a_lesson_in_a_clone(tmp_path):
    """As it is typed."""
    (command,) = commands()
    cells = code_cells(nbformat.read(ROOT / command.split()[-1], 4))
    assert_compared([*command.split(), "-q"], len(cells), ROOT, tmp_path)


@pytest.mark.nightly
def test_a_reader_compares_all_lessons_at_once_in_their_folder(tmp_path):
    """Without any option, and with a kernel of theirs in the folder."""
    lessons = cmd_lab.find_lessons(tmp_path / "mine")
    own = tmp_path / "mine/climb"
    own.mkdir()
    (own / "01a.il").write_text("; mine")
    count = sum(len(code_cells(nbformat.read(path, 4))) for path in lessons)
    command = ["pytest", "--nbval", "-q", *(path.name for path in lessons)]
    assert_compared(command, count, tmp_path / "mine", tmp_path / "cache")
    assert [path.name for path in own.iterdir()] == ["01a.il"]


def said_by(cell):
    """What a cell shows as text."""
    return "\n".join(
        text for kind, text in output_texts(cell.outputs) if kind in ("stdout", "text/plain")
    )


@drawn_by_day("path", GIVEN, 1, ids=lambda path: path.stem)
def test_what_students_get_prints_what_it_holds_and_checks_a_product(path, run):
    """Each check fails until its exercise is solved. And in the body of the lesson, outside of
    exercises and workbenches, whose cells needn't be run, a cell launches a blocked kernel on the
    simulated device, and shows its C compared with numpy's.
    """
    saved, ran = code_cells(nbformat.read(path, as_version=4)), run(path)
    for cell, again in zip(saved, ran, strict=True):
        same = output_texts(again.outputs) == output_texts(cell.outputs)
        assert same or exempt(cell), cell.source
    verdicts = [said_by(cell) for cell in ran if is_check(cell)]
    assert all(said.startswith("Not yet.") and "Where to look:" in said for said in verdicts)
    body = [cell for cell in ran if METADATA_KEY not in cell.metadata]
    launches = [cell for cell in body if cell.metadata["launched"]]
    compared = [cell for cell in launches if COMPARED.search(said_by(cell))]
    assert compared, "no cell launches a blocked kernel and prints ck.compare or ck.verify of it"


@each_notebook
def test_most_cells_are_compared(path):
    cells = code_cells(nbformat.read(path, as_version=4))
    cells = [cell for cell in cells if not (is_check(cell) and exempt(cell))]
    compared = [cell for cell in cells if cell.outputs and not exempt(cell)]
    ignored = {cell.source for cell in cells if exempt(cell)}
    assert ignored <= {"ck.draw.load()", TIMED}, "only these may be exempt from comparison"
    assert len(compared) >= 0.7 * len(cells), (
        f"{len(compared)} of {len(cells)} cells have outputs to compare"
    )


@each_notebook
def test_a_wrong_digit_is_noticed(path):
    """Wherever it is shown, but in a picture, a workbench, and how near a product is to numpy's."""
    cells, chance = code_cells(nbformat.read(path, as_version=4)), random.Random(path.stem)
    for out in (out for cell in cells for out in cell.outputs if MIME not in out.get("data", ())):
        saved, data = output_texts([out]), out.get("data", out)
        for kind in sorted({"text", "text/plain", "text/html"} & data.keys()):
            text = data[kind]
            digits = [found for found in DIGIT.finditer(text) if found["digit"]]
            for digit in chance.sample(digits, min(9, len(digits))):
                wrong = str(9 - int(digit[0]))
                data[kind] = f"{text[: digit.start()]}{wrong}{text[digit.end() :]}"
                assert output_texts([out]) != saved, digit
            data[kind] = text


@each_notebook
def test_file_is_small_and_clean(path):
    text = path.read_text()
    assert len(text.encode()) < 600_000, "over 600 kB: has the loader cell's output been cleared?"
    assert (
        text.endswith("}\n")
        and json.dumps(json.loads(text), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        == text
    ), (
        "not written as JupyterLab writes it (one blank per level, keys sorted): diffs would be"
        " noise"
    )
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    numbers = [cell.execution_count for cell in code_cells(notebook) if cell.source.strip()]
    assert numbers == list(range(1, len(numbers) + 1)), "not saved after one run from top to bottom"
    outputs = [out for cell in code_cells(notebook) for out in cell.outputs]
    assert not [out for out in outputs if out.output_type == "error" or out.get("name") == "stderr"]
    texts = [json.dumps(out) for out in outputs]
    assert max(len(text.encode()) for text in texts) < 300_000, "a view weighs more than 300 kB"
    pictures = [text for text in texts if "<cypresskit-picture" in text]
    assert all("data:image/webp" in text for text in pictures), "a picture has no image"


@each_notebook
def test_names_no_path_of_a_computer(path):
    text = path.read_text()
    assert str(ROOT) not in text and not re.search(r"/home/\w|/root/|[A-Z]:\\+Users", text)


def saved_charts(path):
    """Each chart of a lesson, and the output that has it."""
    cells = code_cells(nbformat.read(path, as_version=4))
    outputs = [output.get("data", {}) for cell in cells for output in cell.outputs]
    for html in (output.get("text/html", "") for output in outputs):
        for image in re.findall(r'<img src="data:image/svg\+xml;base64,([^"]*)', html):
            svg = base64.b64decode(image).decode()
            if "data-name" in svg:  # a climb may have no step yet
                yield svg, html


@each_notebook
def test_a_saved_chart_tells_of_which_kind_it_is(path):
    for svg, html in saved_charts(path):
        assert_kinds_told(Charted(svg), " ".join(re.findall(r"<div[^>]*>([^<>]*)</div>", html)))


@each_notebook
def test_each_number_of_a_saved_charts_title_is_written_in_the_chart(path):
    for svg, html in saved_charts(path):
        written = NUMBER.findall(str(re.findall('words="(.*?)"|<text.*?>(.*?)<', svg)))
        (title,) = re.findall('class="finding.*?>(.*?)<', html)
        assert set(NUMBER.findall(title)) <= {*written} or 'data-axis="y"' not in svg, title
