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

from cypresskit.editing.steps import STEPS, StepText, step_texts
from cypresskit.tables import elided
from cypresskit.teach import bindings, explanations

PACKAGE = Path(__file__).parents[1]
CHECKOUT = PACKAGE.parent / "notebooks"
INSTALLED = PACKAGE / "lessons"
METADATA_KEY = "cypresskit"  # the key of a cell's metadata
NOT_FOR_STUDENTS = "solution", "good"  # parts that are left out of a handout
PARTS = "title", "answer", "check"  # parts of an exercise above its explanation
ELSEWHERE = "(not in a single call below its exercise)"  # precedes other texts
BETWEEN = " / "  # texts
MAX_VERSIONS = 5  # of an answer to an exercise that are judged, the last ones
EMPTY = "the file is empty: another copy is needed"
DAMAGED = (
    "the file is no whole notebook. An archive has to be unpacked. If it is damaged, or was saved"
    " only in part, another copy is needed"
)
OLD = "it is a notebook in an old format: it has to be opened in JupyterLab, and saved"
MAX_CELLS = 2_000  # cells of a notebook; a lesson has fewer than two hundred
MAX_CELL_CHARACTERS = 200_000  # characters of a cell that are read
TITLE = re.compile(r"# (\d\d .+)")
LINK = re.compile(r"\[([^]]{0,200})\]\([^)]{0,200}\)")  # handouts lack those to other lessons
LISTED = re.compile(r"\n(?=\n|[-*]|\W?\d+[.):])")  # before a paragraph, or a line of a list
KERNEL = r"\br\d+[.\w]*,"  # is in any text of a kernel: a register, and what it gets
#: What is in the source of any answer: a function; a kernel, its name, file or workbench; a value
FUNCTION = r"\bdef\s+\w+\s*\(|\blambda\b|\bpartial\(|\breturn\b"
ANY_KERNEL = (
    rf"{KERNEL}|\.kernels\b|workbench\(|\.workbench\b|\bstep *=|\bopen\(|\bread_text\("
    r"|(?m:(=|^) *['\"]\w+['\"])"
)
VALUE = r"\w\s*=\s*\w|\d\d"
WRITES = re.compile(r"\bopen\(|\bwrite_text\(|\.text\s*=")  # where no check looks
IL_CODE = re.compile(
    r"^[ \t]*((dcl|il|sample)_.*?|else|whileloop|end\w*"
    r"|[a-z]\S*+([ \t]+-?(?=\w+[.\[]\w|[a-z]+\d)\S++)+)[ \t]*(;|$)",
    re.M,
)
FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.S)
COMMENT = re.compile(r"(?:#|^\s*!(?!\s*(?:pip|conda|git|ls|cd)\b)|^\s*%(?=\s))(.*)")  # or a command
FILE = re.compile(r"[\w./\\-]+\.\w{1,6}")  # a file's name
EMPTY_CALL = re.compile(r"[\w.]*explanation\(\s*[\"']*\s*[\"']*\s*\)")
PROSE = re.compile(r"[^\W\d_]{2}[^\w\n].*[^\W\d_]{2}|[^\0-\u02ff]{4}")  # two words

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
        """What is in the source of any answer."""
        if "def " in self.template:
            return rf"{FUNCTION}|\b{self.answer}\s*="
        return ANY_KERNEL if "'''" in self.template or self.step else VALUE


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
    of its check with something else, and a kernel saved in a workbench, or opened in one.
    """
    name = exercise.answer
    code = _join_cells(cells, lesson)
    read = [bindings.read_cell(cell) for cell in code]
    versions = []
    if saved := find_saved_kernels(cells).get(exercise.step):
        versions.append(Version([*code, f"{name} = {saved.text!r}"], saved.text, saved.lines_shown))
    is_setting = [bindings.is_set_in(cell, name) for cell in read]
    for place in reversed(range(len(code))):
        for passed in _passed(read[place], exercise):
            if passed != name and not (is_setting[place] and "workbench(" in passed):
                cell = bindings.find_last_setting(code, passed) or code[place]
                versions.append(Version([*code, f"{name} = {passed}"], cell))
        if is_setting[place]:
            below = [cell for n, cell in enumerate(code) if n > place and not is_setting[n]]
            versions.append(Version([*code[: place + 1], *below], code[place]))
    return versions[:MAX_VERSIONS] or [Version(code, "")]


def _join_cells(cells: Sequence[Cell], lesson: Lesson) -> list[str]:
    """Return the source of all code; a cell that only continues the one above is joined to it."""
    code: list[str] = []
    for cell in cells:
        if (text := find_code(cell, lesson)) is None:
            continue
        joined = "\n".join([*code[-1:], text])
        is_indented = text.lstrip("\n")[:1] in {" ", "\t"}
        is_part = is_indented or not bindings.parse_cell(bindings.read_cell(text))
        if code and is_part and bindings.parse_cell(bindings.read_cell(joined)):
            code[-1] = joined
        else:
            code.append(text)
    return code


def _passed(cell: str, exercise: Exercise) -> Iterator[str]:
    """Yield what a cell's calls of a check pass to it, and its workbenches of the step."""
    if exercise.checker not in cell and "workbench(" not in cell:
        return
    step = f"step={exercise.step!r}"
    for node in ast.walk(bindings.parse_cell(cell) or ast.Module([], [])):
        if not isinstance(node, ast.Call):
            continue

        name = ast.unparse(node.func)
        keywords = [ast.unparse(each) for each in node.keywords]
        if name.endswith(exercise.checker):
            yield from map(ast.unparse, node.args[:1])
        elif exercise.step and name.endswith("workbench") and step in keywords:
            yield ast.unparse(node)


def _find_seen(cells: Sequence[Cell], lesson: Lesson) -> set[str]:
    """Return the code that answers need."""
    code = _join_cells(cells, lesson)
    read = [bindings.read_cell(cell) for cell in code]
    seen = {code[n] for name in lesson.answers for n in bindings.find_needed_cells(read, name)}
    for each in lesson.exercises:
        seen.update(version.cell for version in find_versions(cells, lesson, each))
    return seen


class Place(NamedTuple):
    """Where a cell stands."""

    above: int  #: the exercise in which it stands, or that comes last before it
    within: int  #: the exercise in which it stands, or 0
    is_below: bool  #: whether it is the check of that exercise, or stands below it


def find_places(cells: Iterable[Cell], lesson: Lesson) -> Iterator[Place]:
    """Yield where each cell stands, by the cells' entries or else by titles and checks."""
    checks = lesson.checks
    entries = [(cell["source"], find_entry(cell)) for cell in lesson.cells]
    known = {source: entry for source, entry in entries if entry.get("part") == "title"}
    above, within, checked = min(checks.values(), default=0), 0, 0
    for cell in cells:
        source = cell["source"]
        entry = find_entry(cell) or known.get(source, {})
        if cell["cell_type"] != "code" and "\n## " in f"\n{source}":
            within = 0
        numbers = [number for check, number in checks.items() if check in source]
        if cell["cell_type"] == "code" and numbers:
            checked = numbers[-1]
        number = entry.get("exercise") or (checked if numbers else 0)
        if number in checks.values():
            above = within = number
        if "part" in entry and entry["part"] not in PARTS:
            checked = number
        yield Place(above, within, bool(within) and checked == within)


def find_unseen(cells: Sequence[Cell], lesson: Lesson, exercise: Exercise) -> str:
    """Return the cells of a student that may have the answer to an exercise, but that no check
    sees: they aren't the lesson's, and no answer needs them. If no answer is the student's, any
    cell in the exercise may have it.
    """
    seen = _find_seen(cells, lesson)
    whole = {cell["source"] for cell in lesson.cells}
    handed = "\n".join(cell["source"] for cell in _handed_out(lesson))
    given = {line.strip("# ") for line in handed.splitlines()}
    versions = find_versions(cells, lesson, exercise)
    own = "\n".join(version.cell for version in versions).splitlines()
    is_answered = any(line.strip("# ") not in given for line in own)
    given.difference_update(exercise.template.splitlines()[:1])  # which begins the answer, too
    found = []
    for cell, place in zip(cells, find_places(cells, lesson)):
        source = find_code(cell, lesson) or cell["source"]
        is_judged = any(f"\n{source}\n" in f"\n{each}\n" for each in seen)
        is_seen = is_judged and not WRITES.search(source)
        lines = _lines(cell, lesson) if is_seen else source.splitlines()
        text = "\n".join(line for line in lines if line.strip("# ") not in given)
        is_whole = cell["source"] in whole or is_given(cell)
        pattern = exercise.pattern
        if not is_answered and place.within == exercise.number and "explanation(" not in source:
            pattern += r"|[=$^\\]" if place.is_below else r"|\w"
        if re.search(pattern, text) and not is_whole:
            found.append(cell["source"])
    return "\n\n".join(found)


def _handed_out(lesson: Lesson) -> list[Cell]:
    return [c for c in lesson.cells if find_entry(c).get("part") not in NOT_FOR_STUDENTS]


def find_saved_kernels(cells: Iterable[Cell]) -> dict[str, StepText]:
    """Return the kernels that a student's workbenches have saved, by step of the climb."""
    return {step: saved for cell in cells for step, saved in step_texts(cell["outputs"]).items()}


# -- explanations


class Text(NamedTuple):
    """A text of a student that is no exercise's explanation."""

    text: str
    place: int  #: the exercise in which it stands, or below which
    is_owned: bool = False  #: whether its cell is this exercise's for sure, and no other's


def read_explanations(cells: Sequence[Cell], lesson: Lesson) -> tuple[dict[int, str], list[Text]]:
    """Return a student's explanations by the exercise's number, and the other texts.

    An explanation is the text of a call of ``explanation`` that is alone in its cell and in its
    exercise, which the cell's entry or the last check above tells. Further calls are other texts,
    and so are paragraphs in strings, comments and Markdown that the lesson doesn't have.
    """
    checks = lesson.checks
    given = _given_lines(lesson) | _translated(cells, lesson)
    whole = {cell["source"] for cell in lesson.cells}
    seen = _find_seen(cells, lesson)
    handed = {line.strip() for cell in _handed_out(lesson) for line in cell["source"].splitlines()}
    values: dict[str, Any] = {}
    calls: dict[int, list[Text]] = {}
    others: list[Text] = []
    rest: list[Text] = []  # what stands below a check, and may be no text
    for cell, (place, current, is_below) in zip(cells, find_places(cells, lesson)):
        source, entered = cell["source"], find_entry(cell).get("exercise", 0)
        is_entered = entered in checks.values()
        passed = [number for check, number in checks.items() if check in source]
        lines = _lines(cell, lesson)
        if not is_given(cell):
            named = {number for line in lines for number in given.get(line, ())}.union(passed)
            is_owned = is_entered and named <= {place} and source.count("explanation(") < 2
            found = [text for text in LISTED.split("\n".join(lines)) if _is_own(text, given)]
            others += [Text(_plain(text), place, is_owned) for text in found]
            if is_below and not found and source not in whole | seen:
                left = EMPTY_CALL.sub("", source).splitlines()
                text = "\n".join(line for line in left if line.strip() not in handed)
                rest += [Text(_plain(text), place, is_owned=True)] * bool(re.search(r"\w", text))
        if cell["cell_type"] != "code":
            continue
        for text, fault in (found := [*explanations.find_calls(source, values)]):
            is_placed = len(found) == 1 and not passed and not fault
            said = Text(": ".join(filter(None, [fault, _plain(text)])), place)
            same = calls.setdefault(current * is_placed, [])
            if text and said not in same:
                same.append(said)
    placed = {n: calls.pop(n)[0].text for n in checks.values() if len(calls.get(n, ())) == 1}
    further = [said for texts in calls.values() for said in texts]
    others += [each for each in rest if each.place not in placed]
    called = "\n".join([*placed.values(), *(said.text for said in further)])
    return placed, further + [each for each in others if each.text not in called]


def _given_lines(lesson: Lesson) -> dict[str, set[int]]:
    """Return the lines of a lesson, with the exercise that alone has it, if any."""
    given: dict[str, set[int]] = {}
    for cell in lesson.cells:
        for line in _lines(cell, lesson):
            given.setdefault(line, set()).add(find_entry(cell).get("exercise", 0))
    starters = [STEPS[e.step].starter for e in lesson.exercises if e.step]
    for line in "\n".join([*starters, *(IL_CODE.sub("", each) for each in starters)]).splitlines():
        given.setdefault(line.strip(), {0})
    return {line: found if len(found) == 1 else set() for line, found in given.items()}


def _is_own(text: str, given: Mapping[str, set[int]]) -> bool:
    """Whether a paragraph is a text that the lesson doesn't have."""
    own = (line for line in text.splitlines() if line not in given)
    return bool(PROSE.search(" ".join(own)))


def _translated(cells: Iterable[Cell], lesson: Lesson) -> dict[str, set[int]]:
    """Return the headings that stand in place of the lesson's, and aren't longer than those."""
    own, theirs = ([line.split() for line in _headings(each)] for each in (cells, lesson.cells))
    is_same = [line[0] for line in own] == [line[0] for line in theirs]
    pairs = zip(own, theirs) if is_same else ()
    return {" ".join(o): set() for o, t in pairs if o != t and len(o) <= len(t)}


def _headings(cells: Iterable[Cell]) -> list[str]:
    texts = (cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    return [line for line in "\n".join(texts).splitlines() if re.match("#+ ", line)]


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
    text = IL_CODE.sub("", text) if re.search(KERNEL, text) else text
    return [line.strip() for line in LINK.sub(r"\1", text).splitlines()]


def _texts(code: str, tree: ast.Module) -> str:
    """Return the comments and commands in code, then its strings."""
    found = [COMMENT.search(line) for line in code.splitlines()]
    comments = [match[1] if match else "" for match in found]
    strings = [v for n in ast.walk(tree) if isinstance(v := getattr(n, "value", 0), str)]
    strings = [text for text in strings if not FILE.fullmatch(text)]
    return "\n\n".join(["\n".join(comments), *strings])


def _line_texts(line: str) -> str:
    """Return the comments and strings of a line of Python, or a line that is none as it is."""
    code = line.strip()
    tree = bindings.parse_cell(code + " pass" * code.endswith(":"))
    first = tree.body[0] if tree and tree.body else None
    is_word = isinstance(first, ast.Expr | ast.AnnAssign) and not re.match(r"[\w.]+\(", code)
    return line if not tree or is_word else _texts(code, tree)
