"""Make slides of the questions in docs/questions.md: a question, and its answer after a key.

``python -m tools.questions_page slides.html`` writes one page, which works from disk; the site for
teachers has it, too (``python -m tools.site FOLDER --solutions``).
"""

import re
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt

HERE = Path(__file__).parent
QUESTIONS = HERE.parents[1] / "docs/questions.md"
LESSON = re.compile(r"^## (?=\d\d )", re.M)
QUESTION = re.compile(r"^\*\*(\d)\. (.+?)\*\*\n((?:- |  ).+?)(?=\n\n|\Z)", re.M | re.S)
ANSWER = re.compile(r"^- ", re.M)
RIGHT = re.compile(r"\*\*(.+?)\*\*(.*)", re.S)
KEY = re.compile(r"\b\d\d\.\d\b")  # as the page's introduction names questions


class Answer(NamedTuple):
    """An answer to vote for, as HTML."""

    text: str  #: without the point that only some end with
    why: str  #: the misconception that it reveals, or what else is said of it
    is_right: bool


class Question(NamedTuple):
    """A question."""

    key: str  #: as in "05.1"
    lesson: str  #: as in "05 The texture cache"
    text: str  #: as HTML
    answers: list[Answer]


def read_questions(text: str) -> list[Question]:
    """Return the questions of the page."""
    found = []
    for part in LESSON.split(text)[1:]:
        lesson = part.partition("\n")[0]
        for number, asked, listed in QUESTION.findall(part):
            answers = [_answer(each) for each in ANSWER.split(listed)[1:]]
            found.append(Question(f"{lesson[:2]}.{number}", lesson, _html(asked), answers))
    return found


def _answer(text: str) -> Answer:
    if right := RIGHT.match(text):
        return Answer(_html(right[1].rstrip(".")), _html(right[2].lstrip(":.")), True)
    said, _, why = text.partition(": ")
    return Answer(_html(said), _html(why), False)


def _html(text: str) -> str:
    return str(MarkdownIt().renderInline(" ".join(text.split())))


def write(page: Path) -> None:
    """Write the page."""
    text = QUESTIONS.read_text(encoding="utf-8")
    questions = read_questions(text)
    named = KEY.findall(LESSON.split(text)[0])
    parts = {name: (HERE / f"page.{name}").read_text(encoding="utf-8") for name in ("css", "js")}
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((HERE / "page.html").read_text(encoding="utf-8"))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(template.render(questions=questions, named=named, **parts), encoding="utf-8")
