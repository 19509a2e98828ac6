"""Find a student's answers and explanations in a submitted notebook, wherever they are."""

import ast
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from cypresskit.editing.steps import step_texts
from cypresskit.grading import texts
from cypresskit.grading.course import (
    Cell,
    Exercise,
    Lesson,
    find_answer,
    find_entry,
    is_given,
    is_handed_out,
)
from cypresskit.tables import elided
from cypresskit.teach import bindings, explanations

PARTS = "title", "answer", "check"  # parts of an exercise above its explanation
MAX_VERSIONS = 5  # of an answer to an exercise that are judged, the last ones
#: What is in the source of any answer: a function; a kernel, its name, file or workbench; a value
FUNCTION = r"\bdef\s+\w+\s*\(|\blambda\b|\bpartial\(|\breturn\b"
KERNEL = (
    rf"{texts.REGISTER.pattern}|\.kernels\b|workbench\(|\.workbench\b|\bstep *=|\bopen\("
    r"|\bread_text\(|(?m:(=|^) *['\"]\w+['\"])"
)
VALUE = r"\w\s*=\s*\w|\d\d"
WRITES = re.compile(
    r"\bopen\(|(write|save|dump)\w*\(|\.text\b.*=|\bsetattr\("
)  # where no check looks
IMPORTED = re.compile(r"^\s*(?:from|import)\s+([a-zA-Z]\w*)", re.M)  # a module, whose name it is
CLEARED = (
    "it has no outputs, and a workbench saves its kernel in them: if they were cleared, another"
    " copy is needed"
)
FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.S)
EMPTY_CALL = re.compile(r"[\w.]*explanation\(\s*[\"']*\s*[\"']*\s*\)")


class PlacedCell(NamedTuple):
    """A cell of a notebook, and where it is."""

    cell: Cell
    code: str | None  #: its code, perhaps out of fences, if it is code or sets an answer
    lines: list[str]  #: those that may be a text
    above: int  #: the exercise in which it stands, or that comes last before it
    within: int  #: the exercise in which it stands, or 0
    is_below: bool  #: whether it is the check of that exercise, or stands below it
    is_check: bool  #: whether it has a check
    is_sure: bool  #: whether all of it is of the exercise ``above``, for sure
    is_own: bool  #: whether it isn't as handed out


class Version(NamedTuple):
    """A version of an answer."""

    code: list[str]  #: the cells that run, and set the answer
    cell: str  #: the student's cell that gives it
    lines_shown: int = 0  #: of a solution, by the workbench


class Text(NamedTuple):
    """A text of a student that is no exercise's explanation."""

    text: str
    place: int  #: the exercise in which it stands, or below which
    is_sure: bool = False  #: whether it is this exercise's for sure, and no other's


def answer_pattern(exercise: Exercise) -> str:
    """Return what is in the source of any answer to an exercise."""
    if "def " in exercise.template:
        return rf"{FUNCTION}|\b{exercise.answer}\s*="
    return KERNEL if "'''" in exercise.template or exercise.step else VALUE


class HandIn:
    """A student's notebook of a lesson.

    Attributes
    ----------
    is_cleared
        Whether it has no outputs, in which a workbench would have saved a kernel.
    versions
        The versions of the answer to each exercise that counts, the last first. Each cell that
        sets the answer gives one, which those below it don't change; so does each call of its check
        with something else, and a kernel saved in a workbench, or opened in one.
    """

    def __init__(self, cells: Sequence[Cell], lesson: Lesson) -> None:
        self.lesson = lesson
        self._answers = [find_answer(check) for check in lesson.checks]
        handed = "\n".join(cell["source"] for cell in lesson.cells if is_handed_out(cell))
        self._handed = {line.strip("# ") for line in handed.splitlines()}
        self._whole = {cell["source"]: find_entry(cell) for cell in lesson.cells}
        self.is_cleared = any(each.step for each in lesson.exercises) and not any(
            cell["outputs"] for cell in cells
        )
        self._saved = step_texts([output for cell in cells for output in cell["outputs"]])
        self._given = texts.find_given_lines(lesson, self._answers, cells)
        self._parts = [*self._read_parts(cells)]
        self._code = self._join_cells()
        self._read = [bindings.read_cell(cell) for cell in self._code]
        self.versions = {each: self._find_versions(each) for each in lesson.exercises}
        needed = [n for name in self._answers for n in bindings.find_needed_cells(self._read, name)]
        judged = [version.cell for versions in self.versions.values() for version in versions]
        self._judged = {*judged, *(self._code[n] for n in needed)}

    def _read_parts(self, cells: Iterable[Cell]) -> Iterator[PlacedCell]:
        """Yield the cells; where each is, its entry tells, or else titles and checks."""
        checks = self.lesson.checks
        above, within, checked = min(checks.values(), default=0), 0, 0
        for cell in cells:
            source, is_code = cell["source"], cell["cell_type"] == "code"
            known = self._whole.get(source, {})
            entry = find_entry(cell) or (known if known.get("part") == "title" else {})
            passed = [number for check, number in checks.items() if check in source]
            if not is_code and "\n## " in f"\n{source}":
                within = 0
            if is_code and passed:
                checked = passed[-1]
            number = entry.get("exercise") or (checked if passed else 0)
            if number in checks.values():
                above = within = number
            if entry.get("part", "title") not in PARTS:
                checked = number

            lines = texts.find_lines(cell, self._answers)
            named = {self._given.get(line) for line in lines}.union(passed) - {None}
            is_entered = entry.get("exercise") in checks.values()
            is_sure = is_entered and named <= {above} and source.count("explanation(") < 2
            yield PlacedCell(
                cell,
                self._find_code(cell),
                lines,
                above,
                within,
                is_below=bool(within) and checked == within,
                is_check=bool(passed),
                is_sure=is_sure,
                is_own=source not in self._whole and not is_given(cell),
            )

    def _find_code(self, cell: Cell) -> str | None:
        source = cell["source"]
        if fenced := FENCED.fullmatch(source.strip()):
            source = fenced[1]
        is_code = bindings.parse_cell(source) and texts.sets_answer(source, self._answers)
        return source if is_code or cell["cell_type"] == "code" else None

    # -- answers

    def _join_cells(self) -> list[str]:
        """Return all code; a cell that only continues the one above is joined to it, unless that
        is a given function, which returns.
        """
        code: list[str] = []
        for text in [part.code for part in self._parts if part.code is not None]:
            joined = "\n".join([*code[-1:], text])
            is_indented = text.lstrip("\n")[:1] in {" ", "\t"}
            is_piece = is_indented or not bindings.parse_cell(bindings.read_cell(text))
            is_whole = not code or (code[-1] in self._whole and "return" in code[-1])
            if is_piece and not is_whole and bindings.parse_cell(bindings.read_cell(joined)):
                code[-1] = joined
            else:
                code.append(text)
        return code

    def _find_versions(self, exercise: Exercise) -> list[Version]:
        name, code = exercise.answer, self._code
        versions = []
        if saved := self._saved.get(exercise.step):
            cells = [*code, f"{name} = {saved.text!r}"]
            versions.append(Version(cells, saved.text, saved.lines_shown))
        is_setting = [bindings.is_set_in(cell, name) for cell in self._read]
        for place in reversed(range(len(code))):
            for passed in _find_passed(self._read[place], exercise):
                if passed != name and not (is_setting[place] and "workbench(" in passed):
                    cell = bindings.find_last_setting(code, passed) or code[place]
                    versions.append(Version([*code, f"{name} = {passed}"], cell))
            if is_setting[place]:
                below = [cell for n, cell in enumerate(code) if n > place and not is_setting[n]]
                versions.append(Version([*code[: place + 1], *below], code[place]))
        return versions[:MAX_VERSIONS] or [Version(code, "")]

    def find_unseen(self, exercise: Exercise) -> str:
        """Return the student's cells that may have the answer to an exercise, but that no check
        sees: no answer needs them, or what they need is in another file. If no answer is the
        student's, any cell in the exercise may have it.
        """
        own = "\n".join(version.cell for version in self.versions[exercise])
        is_answered = bool(_other_lines(own, self._handed))
        given = self._handed.difference(exercise.template.splitlines()[:1])  # begins the answer
        pattern = answer_pattern(exercise)
        needed = [self._code[n] for n in bindings.find_needed_cells(self._read, exercise.answer)]
        found = []
        for part in self._parts:
            source = part.code or part.cell["source"]
            is_seen = self._is_judged(part) and not WRITES.search(source)
            text = _other_lines("\n".join(part.lines) if is_seen else source, given)
            is_place = part.within == exercise.number and "explanation(" not in source
            more = ("|[=$^\\\\]" if part.is_below else r"|\w") * (is_place and not is_answered)
            modules = IMPORTED.findall(source) if source in needed else ()
            is_missing = None in map(find_spec, modules)  # one of the student's
            if part.is_own and (is_missing or re.search(pattern + more, text)):
                found.append(part.cell["source"])
        if exercise.step and self.is_cleared:
            found.append(CLEARED)
        return "\n\n".join(found)

    def _is_judged(self, part: PlacedCell) -> bool:
        source = f"\n{part.code or part.cell['source']}\n"
        return any(source in f"\n{each}\n" for each in self._judged)

    # -- explanations

    def read_explanations(self) -> tuple[dict[int, str], list[Text]]:
        """Return the explanations by the exercise's number, and the other texts.

        An explanation is the text of a call of ``explanation`` that is alone in its cell and in its
        exercise, which the cell's entry or the last check above tells. Further calls are other
        texts, and so are paragraphs in strings, comments and Markdown that the lesson doesn't have,
        and whatever stands in the place of an explanation.
        """
        values: dict[str, Any] = {}
        calls: dict[int, dict[Text, None]] = {}
        for part in self._parts:
            if part.cell["cell_type"] == "code":
                found = [*explanations.find_calls(part.cell["source"], values)]
                is_placed = len(found) == 1 and found[0].is_read and not part.is_check
                for text in filter(None, (_on_one_line(call.text) for call in found)):
                    calls.setdefault(part.within * is_placed, {})[Text(text, part.above)] = None
        placed = {}
        for number in self.lesson.checks.values():
            if len(calls.get(number, ())) == 1:
                ((placed[number], *_),) = calls.pop(number)
        further = [text for same in calls.values() for text in same]
        called = "\n".join([*placed.values(), *(each.text for each in further)])
        others = [each for each in self._find_texts([*placed]) if each.text not in called]
        return placed, further + others

    def _find_texts(self, explained: Sequence[int]) -> Iterator[Text]:
        """Yield texts outside of calls, and where an explanation is missing, what is in its place:
        a word, a formula, a picture.
        """
        for part in self._parts:
            if not part.is_own:
                continue
            found = texts.find_paragraphs(part.lines, self._given)
            is_sure = part.is_sure or not found
            is_place = part.is_below and part.above not in explained
            if not found and is_place and not self._is_judged(part):
                left = _other_lines(EMPTY_CALL.sub("", part.cell["source"]), self._handed)
                found = [left] * bool(re.search(r"\w", left))
            for text in found:
                yield Text(_on_one_line(text), part.above, is_sure)


def _find_passed(cell: str, exercise: Exercise) -> Iterator[str]:
    """Yield what a cell's calls of a check pass to it, and its workbenches of the step."""
    checker = exercise.check.partition("(")[0].rpartition(".")[2]
    for node in ast.walk(bindings.parse_cell(cell) or ast.Module([], [])):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            keywords = [ast.unparse(each) for each in node.keywords]
            if name.endswith(checker):
                yield from map(ast.unparse, node.args[:1])
            elif name.endswith("workbench") and f"step={exercise.step!r}" in keywords:
                yield ast.unparse(node)


def _other_lines(text: str, given: Container[str]) -> str:
    """Return the lines of a text that aren't given, perhaps as comments."""
    return "\n".join(line for line in text.splitlines() if line.strip("# ") not in given)


def _on_one_line(text: str) -> str:
    return elided(" ".join(text.split()), explanations.MAX_CHARACTERS)
