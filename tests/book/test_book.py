"""The notebooks are what their sources make, solving adds lines only, and the teacher's guide has
every lesson.
"""

import ast
import re
import symtable
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
from lesson_sources import SOURCES, each_lesson
from repository import ROOT

from cypresskit import teach
from tools import book

BOOK = ROOT / "notebooks"
CALLED = re.compile(r"\.check_\w+\((\w+)\)\s*\Z")
AGAIN = "the notebook is not what its source makes: run `make book`"


FROM_SOURCE = "tags", "jupyter", book.METADATA_KEY


def decided_by_source(notebook):
    """What the source decides: all but what a run adds."""
    return [
        (c.cell_type, c.id, c.source, *(c.metadata.get(name) for name in FROM_SOURCE))
        for c in notebook.cells
    ]


def read_notebook(path, folder=""):
    return nbformat.read(BOOK / folder / f"{path.stem}.ipynb", as_version=4)


@each_lesson
def test_no_other_cell_sets_the_name_of_an_exercise(path):
    cells = [cell.source for cell in book.read(path).cells if cell.cell_type == "code"]
    answers = [match[1] for cell in cells if (match := CALLED.search(cell))]
    assert answers
    names = [name for cell in cells for name in _set_by(cell) if name in answers]
    assert sorted(names) == sorted(answers)


def _set_by(cell):
    """The names that a cell sets outside of its functions; of a cell that isn't Python, those of
    its first line.
    """
    if magic := re.match(r"%%\w+ (\w+)", cell):
        return {magic[1]}
    return {
        each.get_name()
        for each in symtable.symtable(cell, "cell", "exec").get_symbols()
        if each.is_assigned()
    }


def test_every_notebook_has_a_source():
    names = {path.stem for path in SOURCES}
    assert (
        names
        == {path.stem for path in BOOK.glob("[0-9]*.ipynb")}
        == {p.stem for p in BOOK.glob("solutions/*.ipynb")}
    )


GLOSSARY = re.compile(r"\]\(([^)]*glossary\.\w+[^)]*)\)")  # a link to it


def test_the_glossary_is_the_words_of_contributing():
    assert decided_by_source(book.glossary()) == decided_by_source(
        read_notebook(Path("glossary.md"))
    ), AGAIN


@each_lesson
def test_a_lesson_links_to_the_glossary(path):
    """It stands beside the lessons wherever they are copied."""
    assert "glossary.ipynb" in GLOSSARY.findall(path.read_text())


@each_lesson
def test_notebooks_are_what_their_source_makes(path):
    source = book.read(path)
    assert decided_by_source(book.student(source)) == decided_by_source(read_notebook(path)), AGAIN
    assert decided_by_source(book.solved(source)) == decided_by_source(
        read_notebook(path, "solutions")
    ), AGAIN


@each_lesson
def test_solving_only_adds_lines(path):
    source = book.read(path)
    for cell in source.cells:  # apart from what a source says is to be replaced
        cell.source = book.GIVEN.sub("", cell.source)
    student, solved = book.student(source).cells, book.solved(source).cells
    assert len(student) == len(solved)
    for before, after in zip(student, solved):
        lines = iter(after.source.splitlines())
        assert all(line in lines for line in before.source.splitlines() if line.strip()), (
            f"lines were lost:\n{before.source}"
        )
    for cell in student + solved:
        assert "SOLUTION" not in cell.source and book.FOLD not in cell.source


def test_what_is_to_be_replaced_is_in_the_students_notebook_alone(tmp_path):
    source = "# A\n\n```python\n### BEGIN GIVEN\nslow = 1\n### END GIVEN\n"
    source += "### BEGIN SOLUTION\nfast = 1\n### END SOLUTION\n```\n"
    path = tmp_path / "lesson.md"
    path.write_text(source)
    made = [kind(book.read(path)).cells[-1].source for kind in (book.student, book.solved)]
    assert made == ["slow = 1", "fast = 1"]
    path.write_text(source.replace("### END GIVEN\n", ""))
    with pytest.raises(ValueError, match="BEGIN GIVEN and END GIVEN don't"):
        book.read(path)


def test_no_output_shows_how_new_the_computer_was():
    assert not book.lasting({"text": book.NOTICE})
    cells = [cell for path in BOOK.rglob("[!.]*.ipynb") for cell in nbformat.read(path, 4).cells]
    assert all(book.lasting(output) for cell in cells for output in cell.get("outputs", ()))


def verdicts(notebook):
    """What the checks of an executed notebook said, in order."""
    checks = [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and book.CHECK.search(cell.source)
    ]
    return [
        out.data["text/plain"]
        for cell in checks
        for out in cell.outputs
        if out.output_type == "execute_result"
    ]


@each_lesson
def test_three_exercises_each_right_when_solved(path):
    source = book.read(path)
    marked = [cell for cell in source.cells if book.SOLUTION.search(cell.source)]
    before, after = verdicts(read_notebook(path)), verdicts(read_notebook(path, "solutions"))
    least = 2 if path.name.startswith("00") else 3  # lesson 00 takes twenty minutes
    assert len(marked) == len(after) >= least, "each exercise has one answer cell and one check"
    assert not before, "a student's checks have no verdict yet"
    assert all(said.startswith("Right.") and "Where to look:" not in said for said in after), after


PARTS = ("title", "answer", "check", "solution", "question", "sentence", "good")


def entries(notebook):
    """What the cells say of their exercises, those that say anything."""
    found = [cell.metadata.get(book.METADATA_KEY) for cell in notebook.cells]
    return [entry for entry in found if entry and "exercise" in entry]


@each_lesson
def test_each_exercise_has_its_cells_and_they_say_so(path):
    source = book.read(path)
    for notebook in book.student(source), book.solved(source):
        by_exercise = {}
        for entry in entries(notebook):
            by_exercise.setdefault(entry["exercise"], []).append(entry)
        assert list(by_exercise) == list(range(1, len(by_exercise) + 1)) != []
        for parts in by_exercise.values():
            assert tuple(entry["part"] for entry in parts) == PARTS
            whole = {name: value for entry in parts for name, value in entry.items()}
            assert whole["question"].endswith("?") and len(whole["good"]) > 20
            assert CALLED.search(whole["check"])


@each_lesson
def test_sentences_stand_in_the_solved_notebook_and_folded_in_both(path):
    source = book.read(path)
    student, solved = book.student(source).cells, book.solved(source).cells
    for cells, stand in ((student, False), (solved, True)):
        asked = [n for n, cell in enumerate(cells) if cell.source.startswith(book.ASKS)]
        for place, good in (cells[n + 1 : n + 3] for n in asked):
            told = good.metadata[book.METADATA_KEY]["good"]
            assert called_text(place.source) == told * stand
            assert told in good.source and not place.metadata["deletable"]


def called_text(cell):
    (call,) = ast.parse(cell).body
    return " ".join(ast.literal_eval(call.value.args[0]).split())


@each_lesson
def test_the_teachers_guide_has_the_lesson(path):
    """Its title, its minutes, and, apart, answers to what it asks."""
    text = path.read_text()
    number, title = text.splitlines()[0].removeprefix("# ").split(" ", 1)
    minutes = re.search(r"(\d+) minutes", text[text.index("**What you need**") :])[1]
    guide = (ROOT / "docs/teaching.md").read_text() + "\n#"
    section = re.search(
        rf"^### {number} {re.escape(title)} \({minutes} minutes.*?^#", guide, re.M | re.S
    )
    assert section, f"docs/teaching.md has no ### {number} {title} ({minutes} minutes ...)"
    assert not [item for item in ("Goal", "Goes wrong") if f"- *{item}.* " not in section[0]]
    assert "*Going further.*" not in guide, "answers have a page of their own"
    answers = (ROOT / "docs/answers.md").read_text()
    assert f"\n## {number} {title}\n" in answers


def names_of_parts(path):
    """The headings, folds and bold sentences of a lesson, a line each."""
    text = path.read_text()
    return "\n" + "\n".join(re.findall(r"(?:(?m:^)##+ |<summary>|\*\*)([^\n*<]+)", text))


QUOTED = re.compile(r'"([A-Z][^"]* [^"]*)"')  # two words or more, the first with a capital


def test_each_heading_that_a_hint_or_an_answer_names_is_there():
    """In the hint's own lesson; in any lesson or guide for the answers to teachers, and for the
    parts of the five sources.
    """
    parts = {path.name[:2]: names_of_parts(path) for path in SOURCES}
    named = []
    for module in (ROOT / "cypresskit/teach").glob("l[0-9][0-9]_*/*.py"):
        tree = ast.parse(module.read_text())
        texts = [str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        own = parts[module.parent.name[1:3]]
        named += [(name, own) for text in texts for name in QUOTED.findall(text)]
    guide = (ROOT / "docs/teaching.md").read_text()
    everything = "".join([*parts.values(), names_of_parts(ROOT / "docs/teaching.md")])
    everything += book.ASKS.replace("**", "\n")
    texts = [(ROOT / "docs" / page).read_text() for page in ("answers.md", "questions.md")]
    for text in (*texts, guide.partition("## Where the five sources are")[2]):
        named += [(name, everything) for name in QUOTED.findall(" ".join(text.split()))]
    lost = [name for name, where in named if f"\n{name}" not in where]
    assert not lost and {where == everything for _, where in named} == {True, False}


@each_lesson
def test_a_lessons_checks_are_defined_in_the_order_of_its_exercises(path):
    """The line of dots below a verdict has them in this order."""
    called = dict.fromkeys(re.findall(r"ck\.teach\.(\w+)\.(check_\w+)", path.read_text()))
    for lesson in {name for name, _ in called}:
        module = import_module(f"{getattr(teach, lesson).__name__}.checks")
        own = [f for f in vars(module).values() if getattr(f, "__module__", "") == module.__name__]
        names = [f.__name__ for f in own if getattr(f, "__name__", "").startswith("check_")]
        assert names == [name for each, name in called if each == lesson]


SOURCE = """# A lesson

```python
def double(x):
    answer = x  # your line goes below this one
    ### BEGIN SOLUTION
    answer = 2 * x
    ### END SOLUTION
    return answer
```

```python
ck.teach.none.check_double(double)
```

<!-- solution -->
"""


@pytest.fixture
def lesson(tmp_path):
    path = tmp_path / "source" / "99_example.md"
    path.parent.mkdir()
    path.write_text(SOURCE)
    return path


def test_marked_lines_are_kept_folded_or_left_out(lesson):
    source = book.read(lesson)
    student, solved = book.student(source).cells, book.solved(source).cells
    assert "2 * x" not in student[1].source and "2 * x" in student[3].source
    assert "\n    answer = 2 * x\n    return answer" in solved[1].source
    assert [cell.id for cell in student][2:] == [cell.id for cell in solved][2:]


def _shown(cell):
    """What a cell puts out, as text."""
    return "\n".join(
        out.get("text", "") or out.get("data", {}).get("text/plain", "") for out in cell.outputs
    )


@each_lesson
def test_a_prediction_is_entered_before_anything_is_shown(path):
    """Prose that asks for one is followed by a control, that by the folded result; and the result
    stands neither in the prose, nor in the control's text form, nor in the line of the folded
    output that JupyterLab shows.
    """
    cells = read_notebook(path).cells
    asks = [n for n, cell in enumerate(cells) if "**Predict first" in cell.source]
    controls = [n for n, cell in enumerate(cells) if book.PREDICT in cell.source]
    assert controls == [n + 1 for n in asks]
    for before, control, result in (cells[n : n + 3] for n in asks):
        assert result.metadata.jupyter.outputs_hidden
        assert result.outputs[0].output_type == "stream", "of a picture, JupyterLab would show HTML"
        shown = _shown(result)
        truths = re.findall(r"[Ii]t is (.+?)\. \(You made no guess", shown)
        assert truths or "guess=" in result.source, "the result is shown over the guess"
        assert not [truth for truth in truths if _has(shown.splitlines()[0], truth)]
        numbers = [n for truth in truths for n in re.findall(r"^[\d,.]*\d\d(?= \w+$|$)", truth)]
        assert not [n for n in numbers if _has(before.source, n) and n not in _shown(control)]


def _has(text, number):
    return re.search(rf"(?<![\w.]){re.escape(number)}(?![\w.])", text)


@pytest.mark.parametrize("mark", ["### BEGIN SOLUTION\n", "### END SOLUTION\n"])
def test_marks_without_their_partner_are_refused(lesson, mark):
    lesson.write_text(SOURCE.replace(mark, ""))
    with pytest.raises(ValueError, match="don't pair"):
        book.read(lesson)


def test_an_unknown_lesson_is_refused(tmp_path, capsys):
    assert book.main([str(tmp_path), "77"]) == 1
    assert "no lesson 77" in capsys.readouterr().err
