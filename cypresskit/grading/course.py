"""Read the lessons' exercises, and find a student's answers in a submitted notebook.

Lessons are read from the notebooks that students get, in a checkout or as installed. The metadata
of a cell state its role in an exercise (``tools/book.py`` writes them). A submitted notebook is
identified by its title or else by its checks, so its file may have any name.
"""

import ast
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cypresskit.editing.steps import StepText, step_texts
from cypresskit.tables import elided
from cypresskit.teach import bindings, explanations

PACKAGE = Path(__file__).parents[1]
CHECKOUT = PACKAGE.parent / "notebooks"
INSTALLED = PACKAGE / "lessons"
METADATA_KEY = "cypresskit"  # the key of a cell's metadata
NOT_FOR_STUDENTS = "solution", "good"  # parts that are left out of a handout
ELSEWHERE = "(not in its place)"  # precedes texts that may explain an exercise
MAX_VERSIONS = 5  # of an answer to an exercise that are judged, the last ones
EMPTY = "the file is empty: ask for another copy"
DAMAGED = (
    "the file is no whole notebook: it is damaged, was saved only in part, or is an archive. Unpack"
    " it, or ask for another copy. Nothing in it was read"
)
OLD = "it is a notebook in an old format: open it in JupyterLab, save it, and run the command again"
UNREAD = "a call of explanation() whose text only a run would give"
MAX_CELLS = 2_000  # cells of a notebook; a lesson has fewer than two hundred
MAX_CELL_CHARACTERS = 200_000  # characters of a cell that are read
TITLE = re.compile(r"# (\d\d .+)")
LINK = re.compile(r"\[([^]]{0,200})\]\([^)]{0,200}\)")  # handouts lack those to other lessons
LISTED = re.compile(r"\n(?=\n|[-*]|\W?\d+[.):])")  # before a paragraph, or a line of a list
KERNEL = r"\br\d+[.\w]*,"  # is in any text of a kernel: a register, and what it gets
IL_CODE = re.compile(r"^[ \t]*[a-z]\S*+([ \t]+-?(?=\w+[.\[]\w|[a-z]+\d)\S++)+[ \t]*(;|$)", re.M)
FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.S)
COMMENT = re.compile(r"(?:#|^\s*!|^\s*%(?=\s))(.*)")  # or a command
PROSE = re.compile(r"[^\W\d_]{2}[^\w\n].*[^\W\d_]{2}|[^\0-\u02ff]{4}")  # two words in a line

Cell = dict[str, Any]


class Exercise(NamedTuple):
    """An exercise of a lesson."""

    number: int
    name: str  #: as in "09 The bus, exercise 1: without the old C"
    check: str  #: its check, as the lesson calls it
    why: str  #: the question that asks for an explanation
    good: str = ""  #: a good explanation, worth two points
    step: str = ""  #: the climb's step, if the answer is a kernel saved in a workbench
    samples: Sequence[str] = ()  #: explanations worth one point and none, with the reasons

    template: str = ""  #: the given source of the answer

    @property
    def answer(self) -> str:
        """The name of the variable that is checked."""
        return _answer(self.check)

    @property
    def checker(self) -> str:
        """The name of the check."""
        return self.check.partition("(")[0].rpartition(".")[2]

    @property
    def pattern(self) -> str:
        """What is in the source of any answer: a function, a kernel's registers, or a value."""
        if "def " in self.template:
            return r"\bdef\s+\w+\s*\(|\blambda\b"
        return KERNEL if "'''" in self.template or self.step else r"\w\s*=\s*\w"


class Lesson(NamedTuple):
    """A lesson."""

    name: str  #: as in "09 The bus"
    cells: list[Cell]
    exercises: tuple[Exercise, ...]  #: those that count

    @property
    def checks(self) -> dict[str, int]:
        """The checks of all exercises, with their numbers."""
        entries = [find_entry(cell) for cell in self.cells]
        return {entry["check"]: entry["exercise"] for entry in entries if "check" in entry}

    @property
    def answers(self) -> list[str]:
        """The names of all answers."""
        return [_answer(check) for check in self.checks]


def _answer(check: str) -> str:
    return check.rpartition("(")[2].rstrip(")")


def lessons_folder() -> Path:
    """Return the folder of the lessons."""
    return CHECKOUT if any(CHECKOUT.glob("[0-9]*.ipynb")) else INSTALLED


def read_lessons() -> dict[str, Lesson]:
    """Read all lessons, by the stem of their file."""
    return {path.stem: read(path) for path in sorted(lessons_folder().glob("[0-9]*.ipynb"))}


def select_notebooks(numbers: Sequence[str]) -> list[Path]:
    """Return the notebooks of the lessons with these numbers.

    Raises
    ------
    ValueError
        If there is no lesson of a number.
    """
    chosen = []
    for number in numbers:
        notebooks = sorted(lessons_folder().glob(f"{number}_*.ipynb")) if number.isdecimal() else []
        if not notebooks:
            raise ValueError(f"there is no lesson {number}: give numbers such as 07")
        chosen += notebooks
    return chosen


def select_exercises(lessons: Mapping[str, Lesson], names: Sequence[str]) -> dict[str, Lesson]:
    """Return lessons with the exercises of these names, as in "05.1"; all of a lesson that has none
    of them.

    Raises
    ------
    ValueError
        If there is no exercise of a name.
    """
    keys = {
        e: f"{lesson.name[:2]}.{e.number}" for lesson in lessons.values() for e in lesson.exercises
    }
    if unknown := {*names}.difference(keys.values()):
        raise ValueError(f"there is no exercise {min(unknown)}: give numbers such as 05.1")
    chosen = {}
    for stem, lesson in lessons.items():
        own = tuple(exercise for exercise in lesson.exercises if keys[exercise] in names)
        chosen[stem] = lesson._replace(exercises=own or lesson.exercises)
    return chosen


def read(path: Path) -> Lesson:
    """Read a lesson from its notebook."""
    cells = parse_cells(path.read_bytes())
    name = next(title[1] for cell in cells if (title := TITLE.match(cell["source"])))
    found: dict[int, dict[str, Any]] = {}
    templates: dict[int, str] = {}
    for cell in cells:
        entry = find_entry(cell)
        if "exercise" in entry:
            found.setdefault(entry["exercise"], {}).update(entry)
            if entry["part"] == "answer":
                templates[entry["exercise"]] = cell["source"]
    samples = read_samples()
    exercises = [
        Exercise(
            number,
            f"{name}, exercise {number}: {parts['title']}",
            parts["check"],
            parts["question"],
            parts.get("good", ""),
            parts.get("step", ""),
            samples.get(f"{name[:2]}.{number}", ()),
            templates.get(number, ""),
        )
        for number, parts in found.items()
        if "check" in parts
    ]
    return Lesson(name, cells, tuple(exercises))


@cache
def read_samples() -> dict[str, tuple[str, ...]]:
    """Return explanations worth one point and none, by lesson and exercise, as in "09.1"."""
    text = Path(__file__).with_name("samples.toml").read_text(encoding="utf-8")
    return {key: tuple(samples) for key, samples in tomllib.loads(text).items()}


def identify_lesson(cells: Iterable[Cell], lessons: Mapping[str, Lesson]) -> str | None:
    """Return which lesson a submitted notebook is, by its title, or else by its checks; or None."""
    text = "\n".join(cell["source"] for cell in cells)
    found = [stem for stem, lesson in lessons.items() if f"# {lesson.name}" in text]
    for stem, lesson in lessons.items():
        found += [stem for exercise in lesson.exercises if exercise.check in text]
    return found[0] if found else None


def parse_cells(data: bytes) -> list[Cell]:
    """Return the cells of a notebook's file, in an encoding of Unicode or else Windows-1252.

    Each has a ``cell_type``, ``source``, ``metadata``, ``outputs`` and ``id`` of the right types;
    malformed parts are left out.

    Raises
    ------
    ValueError
        If this is no notebook, or has more than ``MAX_CELLS`` cells; it says what to do.
    """
    try:
        try:
            content = json.loads(data)
        except UnicodeDecodeError:
            content = json.loads(data.decode("cp1252", "replace"))
    except (ValueError, RecursionError):
        raise ValueError(DAMAGED if data.strip() else EMPTY) from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if isinstance(content, dict) and "worksheets" in content:
        raise ValueError(OLD)
    if not isinstance(cells, list) or not cells:
        raise ValueError("it has no cells")
    if len(cells) > MAX_CELLS:
        raise ValueError(f"it has more than {MAX_CELLS:,} cells")
    return [_cell(cell) for cell in cells if isinstance(cell, dict)]


def _cell(cell: dict) -> Cell:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    source = source if isinstance(source, str) else ""
    metadata, outputs = cell.get("metadata"), cell.get("outputs")
    return {
        "cell_type": str(cell.get("cell_type")),
        "source": source[:MAX_CELL_CHARACTERS].encode("utf-8", "replace").decode("utf-8"),
        "metadata": metadata if isinstance(metadata, dict) else {},
        "outputs": [o for o in outputs if isinstance(o, dict)] if isinstance(outputs, list) else [],
        "id": str(cell.get("id")),
    }


def cell_id(source: str) -> str:
    """Return the id of a cell as it is handed out, in any version of a lesson."""
    return hashlib.sha1(source.encode()).hexdigest()[:8]


def find_entry(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell's role in an exercise, from its metadata; empty if it has none."""
    entry = cell["metadata"].get(METADATA_KEY)
    return entry if isinstance(entry, dict) else {}


def is_given(cell: Cell) -> bool:
    """Return whether a cell is as handed out, in this version of a lesson or in another."""
    return cell_id(cell["source"].replace("\r\n", "\n")) == cell["id"].partition("-")[0]


# -- answers


class Version(NamedTuple):
    """A version of an answer."""

    code: list[str]  #: the cells that run, and set the answer
    cell: str  #: the student's cell that gives it
    lines_shown: int = 0  #: of a solution, by the workbench


def find_code(cell: Cell, lesson: Lesson) -> str | None:
    """Return the source of a code cell, and that of another cell that sets an answer in valid
    Python, perhaps between fences; else None.
    """
    source = cell["source"]
    if cell["cell_type"] == "code":
        return source
    if fenced := FENCED.fullmatch(source.strip()):
        source = fenced[1]
    is_code = bindings.parse_cell(source) is not None
    return source if is_code and _sets_answer(source, lesson) else None


def _sets_answer(source: str, lesson: Lesson) -> bool:
    return any(bindings.is_set_in(source, name) for name in lesson.answers)


def find_versions(cells: Sequence[Cell], lesson: Lesson, exercise: Exercise) -> list[Version]:
    """Return the versions of a student's answer to an exercise, the last first.

    Each cell that sets the answer gives one, which those below it don't change; so does each call
    of its check with something else, and a kernel saved in a workbench.
    """
    name = exercise.answer
    code = [text for cell in cells if (text := find_code(cell, lesson)) is not None]
    read = [bindings.read_cell(cell) for cell in code]
    versions = []
    if saved := find_saved_kernels(cells).get(exercise.step):
        versions.append(Version([*code, f"{name} = {saved.text!r}"], saved.text, saved.lines_shown))
    is_setting = [bindings.is_set_in(cell, name) for cell in read]
    for place in reversed(range(len(code))):
        for passed in _passed(read[place], exercise.checker):
            if passed != name:
                cell = bindings.find_last_setting(code, passed) or code[place]
                versions.append(Version([*code, f"{name} = {passed}"], cell))
        if is_setting[place]:
            below = [cell for n, cell in enumerate(code) if n > place and not is_setting[n]]
            versions.append(Version([*code[: place + 1], *below], code[place]))
    return versions[:MAX_VERSIONS] or [Version(code, "")]


def _passed(cell: str, checker: str) -> Iterator[str]:
    """Yield what the calls of a check in a cell pass to it, as source."""
    tree = bindings.parse_cell(cell) if checker in cell else None
    for node in ast.walk(tree or ast.Module([], [])):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(checker):
            yield from map(ast.unparse, node.args[:1])


def find_unseen(cells: Sequence[Cell], lesson: Lesson, exercise: Exercise) -> str:
    """Return a student's code that may be the answer to an exercise, but that no check sees: it
    isn't the lesson's, and no answer needs it.
    """
    code = [text for cell in cells if (text := find_code(cell, lesson)) is not None]
    read = [bindings.read_cell(cell) for cell in code]
    seen = {code[n] for name in lesson.answers for n in bindings.find_needed_cells(read, name)}
    for each in lesson.exercises:
        seen.update(version.cell for version in find_versions(cells, lesson, each))
    whole = {cell["source"] for cell in lesson.cells}
    handed = [c for c in lesson.cells if find_entry(c).get("part") not in NOT_FOR_STUDENTS]
    given = {line.strip("# ") for cell in handed for line in cell["source"].splitlines()}
    given.difference_update(exercise.template.splitlines()[:1])  # which begins the answer, too
    found = []
    for cell in cells:
        lines = cell["source"].splitlines()
        if (find_code(cell, lesson) or cell["source"]) in seen:
            lines = _lines(cell, lesson)
        text = "\n".join(line for line in lines if line.strip("# ") not in given)
        is_whole = cell["source"] in whole or is_given(cell)
        if re.search(exercise.pattern, text) and not is_whole:
            found.append(text)
    return "\n\n".join(found)


def find_saved_kernels(cells: Iterable[Cell]) -> dict[str, StepText]:
    """Return the kernels that a student's workbenches have saved, by step of the climb."""
    return {step: saved for cell in cells for step, saved in step_texts(cell["outputs"]).items()}


# -- explanations


class Text(NamedTuple):
    """A text of a student that is no exercise's explanation."""

    text: str
    place: int  #: the exercise in which it stands, or below which
    is_owned: bool = False  #: whether its cell is this exercise's for sure, and no other's


def read_explanations(cells: Iterable[Cell], lesson: Lesson) -> tuple[dict[int, str], list[Text]]:
    """Return a student's explanations by the exercise's number, and the other texts.

    An explanation is the text of a call of ``explanation`` that is alone in its cell and in its
    exercise, which the cell's entry or the last check above tells. Further calls are other texts,
    and so are strings, comments and Markdown that the lesson doesn't have.
    """
    checks = lesson.checks
    given = _given_lines(lesson)
    values: dict[str, Any] = {}
    calls: dict[int, list[Text]] = {}
    others: list[Text] = []
    current, place = 0, min(checks.values(), default=0)
    for cell in cells:
        source, entered = cell["source"], find_entry(cell).get("exercise", 0)
        is_entered = entered in checks.values()
        if is_entered:
            current = place = entered
        passed = [number for check, number in checks.items() if check in source]
        lines = _lines(cell, lesson)
        if not is_given(cell):
            named = {number for line in lines for number in given.get(line, ())}.union(passed)
            is_owned = is_entered and named <= {place} and source.count("explanation(") < 2
            own = "\n".join(line for line in lines if line not in given)
            found = [text for text in LISTED.split(own) if PROSE.search(text)]
            others += [Text(_plain(text), place, is_owned) for text in found]
        if cell["cell_type"] != "code":
            current *= "\n## " not in f"\n{source}"
            continue
        texts = [*explanations.find_calls(source, values)]
        is_alone = len(texts) == 1 and not passed
        for text in texts:
            said = Text(UNREAD if text is None else _plain(text), place)
            if said.text:
                is_placed = is_alone and text is not None
                calls.setdefault(current * is_placed, []).append(said)
        if passed:
            current = place = passed[-1]
    placed = {n: calls.pop(n)[0].text for n in checks.values() if len(calls.get(n, ())) == 1}
    further = [said for texts in calls.values() for said in texts]
    called = "\n".join([*placed.values(), *(said.text for said in further)])
    return placed, further + [each for each in others if each.text not in called]


def _given_lines(lesson: Lesson) -> dict[str, set[int]]:
    """Return the lines of a lesson, with the exercise that alone has it, if any."""
    given: dict[str, set[int]] = {}
    for cell in lesson.cells:
        for line in filter(PROSE.search, _lines(cell, lesson)):
            given.setdefault(line, set()).add(find_entry(cell).get("exercise", 0))
    return {line: found if len(found) == 1 else set() for line, found in given.items()}


def _plain(text: str) -> str:
    """Return a text on one line."""
    return elided(" ".join(text.split()), explanations.MAX_CHARACTERS)


def _lines(cell: Cell, lesson: Lesson) -> list[str]:
    """Return the lines of a cell that may be a text: of code its comments, then its strings."""
    text = cell["source"]
    is_answer = _sets_answer(bindings.read_cell(text), lesson)
    if is_answer or cell["cell_type"] == "code":
        if tree := bindings.parse_cell(bindings.read_cell(text)):
            text = _texts(text, tree)
        elif is_answer:
            text = "\n".join(map(_line_texts, text.splitlines()))
    return [line.strip() for line in LINK.sub(r"\1", text).splitlines()]


def _texts(code: str, tree: ast.Module) -> str:
    """Return the comments and commands in code, then its strings."""
    found = [COMMENT.search(line) for line in code.splitlines()]
    comments = [match[1] if match else "" for match in found]
    strings = [v for n in ast.walk(tree) if isinstance(v := getattr(n, "value", 0), str)]
    strings = [IL_CODE.sub("", text) if re.search(KERNEL, text) else text for text in strings]
    return "\n\n".join(["\n".join(comments), *strings])


def _line_texts(line: str) -> str:
    """Return the comments and strings of a line of Python, or a line that is none as it is."""
    code = line.strip()
    tree = bindings.parse_cell(code + " pass" * code.endswith(":"))
    first = tree.body[0] if tree and tree.body else None
    is_word = isinstance(first, ast.Expr | ast.AnnAssign) and not re.match(r"[\w.]+\(", code)
    return line if not tree or is_word else _texts(code, tree)
