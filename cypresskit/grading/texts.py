"""Find what a student may have written as a text, in cells of any kind."""

import ast
import re
from collections.abc import Iterable, Sequence

from cypresskit.editing.steps import STEPS
from cypresskit.grading.course import Cell, Lesson, find_entry
from cypresskit.teach import bindings

REGISTER = re.compile(r"\br\d+[.\w]*,")  # is in any text of a kernel, with what it gets
IL_CODE = re.compile(
    r"^[ \t]*((dcl|il|sample)_.*?|else|whileloop|end\w*"
    r"|[a-z]\S*+([ \t]+-?(?=\w+[.\[]\w|[a-z]+\d)\S++)+)[ \t]*(;|$)",
    re.M,
)
LINK = re.compile(r"\[([^]]{0,200})\]\([^)]{0,200}\)")  # handouts lack those to other lessons
LISTED = re.compile(r"\n(?=\n|[-*]|\W?\d+[.):])")  # before a paragraph, or a line of a list
COMMENT = re.compile(r"(?:#|^\s*!(?!\s*(?:pip|conda|git|ls|cd)\b)|^\s*%(?=\s))(.*)")  # or a command
FILE = re.compile(r"[\w./\\-]+\.\w{1,6}")  # a file's name
PROSE = re.compile(r"[^\W\d_]{2}[^\w\n].*[^\W\d_]{2}|[^\0-\u02ff]{4}")  # two words


def find_given_lines(
    lesson: Lesson, answers: Sequence[str], cells: Sequence[Cell]
) -> dict[str, int | None]:
    """Return the lines of a lesson, with the exercise that alone has it: 0 if it is in none, None
    if it is in several. Headings of a notebook that are translations of the lesson's are in
    several, too.
    """
    given: dict[str, int | None] = {}
    for cell in lesson.cells:
        number = find_entry(cell).get("exercise", 0)
        for line in find_lines(cell, answers):
            given[line] = number if given.get(line, number) == number else None
    for starter in [STEPS[each.step].starter for each in lesson.exercises if each.step]:
        for line in f"{starter}\n{IL_CODE.sub('', starter)}".splitlines():
            given.setdefault(line.strip(), 0)
    return given | dict.fromkeys(_translated_headings(cells, lesson.cells))


def _translated_headings(cells: Iterable[Cell], lesson: Iterable[Cell]) -> list[str]:
    """Return the headings that stand in place of the lesson's, and aren't longer than those."""
    own, theirs = (
        [
            line.split()
            for cell in each
            if cell["cell_type"] == "markdown"
            for line in cell["source"].splitlines()
            if re.match("#+ ", line)
        ]
        for each in (cells, lesson)
    )
    if [line[0] for line in own] != [line[0] for line in theirs]:
        return []
    return [" ".join(o) for o, t in zip(own, theirs) if o != t and len(o) <= len(t)]


def sets_answer(code: str, answers: Iterable[str]) -> bool:
    """Return whether code sets one of these names."""
    return any(bindings.is_set_in(code, name) for name in answers)


def find_lines(cell: Cell, answers: Iterable[str]) -> list[str]:
    """Return the lines of a cell that may be a text: of code its comments, then its strings."""
    text = cell["source"]
    code = bindings.read_cell(text)
    is_answer = sets_answer(code, answers)
    if is_answer or cell["cell_type"] == "code":
        if tree := bindings.parse_cell(code):
            text = _find_texts(text, tree)
        elif is_answer:
            text = "\n".join(map(_find_texts_of_line, text.splitlines()))
    if REGISTER.search(text):
        text = IL_CODE.sub("", text)
    return [line.strip() for line in LINK.sub(r"\1", text).splitlines()]


def _find_texts(code: str, tree: ast.Module) -> str:
    """Return the comments and commands in code, then its strings."""
    found = [COMMENT.search(line) for line in code.splitlines()]
    comments = [match[1] if match else "" for match in found]
    values = [getattr(node, "value", None) for node in ast.walk(tree)]
    strings = [each for each in values if isinstance(each, str) and not FILE.fullmatch(each)]
    return "\n\n".join(["\n".join(comments), *strings])


def _find_texts_of_line(line: str) -> str:
    """Return the comments and strings of a line of Python, or a line that is none as it is."""
    code = line.strip()
    tree = bindings.parse_cell(code + " pass" * code.endswith(":"))
    first = tree.body[0] if tree and tree.body else None
    is_word = isinstance(first, ast.Expr | ast.AnnAssign) and not re.match(r"[\w.]+\(", code)
    return line if not tree or is_word else _find_texts(code, tree)


def find_paragraphs(lines: Iterable[str], given: Iterable[str]) -> list[str]:
    """Return the paragraphs that have two words outside of given lines."""
    found = []
    for text in LISTED.split("\n".join(lines)):
        own = [line for line in text.splitlines() if line not in given]
        if PROSE.search(" ".join(own)):
            found.append(text)
    return found
