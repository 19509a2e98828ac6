"""Write all tables and pages: first the page on which the teacher reads what students wrote, and
decides. A page that can't be written doesn't stop the others. The folder of grades is this
command's, except for ``decisions*.csv``, which are the teacher's: they are read, and never written.

For each exercise it has what each student's notebook has in its section that wasn't handed out.
Students who wrote the same share a card.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from cypresskit.files.atomic import try_to_save
from cypresskit.grading import course, gradebook
from cypresskit.grading.course import Exercise, Lesson
from cypresskit.grading.decisions import Decision, as_points, safe
from cypresskit.grading.gradebook import CourseRecords, GradedAnswer
from cypresskit.grading.hand_in import OwnCell
from cypresskit.grading.submissions import Student
from cypresskit.tables import listed
from cypresskit.teach.notebook import html

PAGE, SECTION, SAMPLE, VERDICTS, CARD, FIELD, REMARK = re.split(
    "<!-- .* -->\n", Path(__file__).with_name("review.html").read_text(encoding="utf-8")
)
ELSEWHERE = "outside of the exercises"
EMPTY = "<p>All is as handed out.</p>"
ALSO = '<p><a href="#{}">There are cells outside of the exercises.</a></p>'
FOLDED = "<details><summary>the right answer</summary>{}</details>"
RIGHT = "<div><b>\N{CHECK MARK} Right</b></div>"


class Shown(NamedTuple):
    """What is shown of a student's work, in a card that others with the same share."""

    order: tuple  #: sentences first, then answers without any, then what is as handed out
    verdict: str  #: as HTML
    cells: str  #: as HTML
    decisions: tuple[Decision, ...]  #: on each field


class Owner(NamedTuple):
    """A student of a card."""

    student: Student
    seen: str = ""  #: a key of the student's cells
    folded: str = ""  #: a right answer, as HTML, if other cells are shown


def render_review(records: CourseRecords) -> str:
    """Return the page."""
    sections = []
    for stem in records.counted:
        lesson = records.lessons[stem]
        sections += [_exercise(records, lesson, each) for each in lesson.exercises]
        sections.append(_elsewhere(records, lesson))
    return PAGE.replace("SECTIONS", "".join(sections))


def _exercise(records: CourseRecords, lesson: Lesson, exercise: Exercise) -> str:
    whats = exercise.key, exercise.why_key
    cards: dict[Shown, list[Owner]] = {}
    verdicts = Counter[str]()
    for student, _, answers, elsewhere in _of_lesson(records, lesson):
        answer = answers[exercise]
        verdicts[html(answer.verdict)] += 1
        shown, folded = _split(answer)
        text = "".join(cell.text for cell in shown)
        has_sentence = not all(cell.is_answer for cell in shown)
        link = ALSO.format(lesson.number) * (bool(elsewhere) and not has_sentence)
        card = Shown(
            (not shown, not has_sentence, plain_text(text)),
            RIGHT if answer.verdict.right else html(answer.verdict) * bool(shown),
            (_pre(shown, lesson) or EMPTY) + link,
            tuple(records.decided(student, what, answer.seen) for what in whats),
        )
        cards.setdefault(card, []).append(Owner(student, answer.seen, _pre(folded, lesson)))
    samples = exercise.good, *course.read_samples().get(exercise.key, ())
    rows = (f"<tr><td>{count}</td><td>{text}</td></tr>" for text, count in verdicts.most_common())
    return SECTION.format(
        key=exercise.key,
        name=escape(exercise.name),
        why=f"<b>{escape(exercise.why)}</b>",
        samples="".join(
            SAMPLE.format(points=points, text=escape(text))
            for points, text in zip((2, 1, 0), samples)
        ),
        verdicts=VERDICTS.format(rows="".join(rows)),
        cards="".join(
            _card(shown, owners, whats, ("answer", "why"))
            for shown, owners in sorted(cards.items(), key=lambda card: card[0].order)
        ),
    )


def plain_text(text: str) -> str:
    """Return a text's words, so that almost equal ones are next to each other."""
    return " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split())


def _elsewhere(records: CourseRecords, lesson: Lesson) -> str:
    cards = [
        (
            Shown(
                (not cells, student.name),
                "",
                _pre(cells, lesson) or EMPTY,
                (records.decided(student, lesson.number),),
            ),
            [Owner(student)],
        )
        for student, _, _, cells in _of_lesson(records, lesson)
    ]
    return SECTION.format(
        key=lesson.number,
        name=escape(f"{lesson.name}, {ELSEWHERE}"),
        why="Points that you add here (or take off: -10), and a remark, are for the whole lesson.",
        samples="",
        verdicts="",
        cards="".join(
            _card(*card, (lesson.number,), ("added",))
            for card in sorted(cards, key=lambda card: card[0].order)
        ),
    )


def _of_lesson(records: CourseRecords, lesson: Lesson) -> Iterator:
    return (each for each in records.submissions() if each.lesson is lesson)


def _split(answer: GradedAnswer) -> tuple[list[OwnCell], list[OwnCell]]:
    """Return the cells that are shown, and those that are folded: the place of an answer that is
    right, if there are others.
    """
    folded = [cell for cell in answer.cells if cell.is_answer and answer.verdict.right]
    others = [cell for cell in answer.cells if cell not in folded]
    return (others, folded) if others else (folded, [])


def _pre(cells: Iterable[OwnCell], lesson: Lesson) -> str:
    """Return cells as HTML, with the lesson's lines in gray."""
    given = {line.strip() for cell in lesson.cells for line in cell["source"].splitlines()}
    return "".join(
        f'<pre class="{escape(cell.kind)}">'
        + "\n".join(
            f"<i>{escape(line)}</i>" if line.strip() in given else escape(line)
            for line in cell.text.strip("\r\n").splitlines()
        )
        + "</pre>"
        for cell in cells
    )


def _card(shown: Shown, owners: Sequence[Owner], whats: Iterable[str], names: Iterable[str]) -> str:
    fields = [
        FIELD.format(what=what, name=name, points=as_points(decision.points))
        for what, name, decision in zip(whats, names, shown.decisions)
    ]
    remark = " ".join(filter(None, (decision.remark for decision in shown.decisions)))
    people = [[safe(each.student.id), safe(each.student.name), each.seen] for each in owners]
    folded = dict.fromkeys(each.folded for each in owners if each.folded)
    return CARD.format(
        people=escape(json.dumps(people)),
        names=escape(listed([each.student.name for each in owners])),
        count=f" ({len(owners)})" * (len(owners) > 1),
        verdict=shown.verdict,
        cells=shown.cells,
        folded=FOLDED.format("".join(folded)) * bool(folded),
        empty=" data-empty" * (shown.cells.startswith(EMPTY) and shown.verdict != RIGHT),
        fields="".join(fields) + REMARK.format(remark=escape(remark)),
    )


# -- all tables and pages


def write_all(records: CourseRecords, folder: Path) -> list[str]:
    """Write tables and pages. Pages of students who have left the course stay.

    Returns
    -------
    list of str
        For each file that could not be written, its name and the reason.
    """
    files = {gradebook.REVIEW: render_review(records).encode("utf-8", "replace")}
    files[gradebook.GRADES] = gradebook.format_csv(gradebook.grade_rows(records))
    for name, table in gradebook.system_tables(records).items():
        if table:
            files[name] = gradebook.format_csv(table, "utf-8")
        else:
            (folder / name).unlink(missing_ok=True)  # of an earlier run
    for student, _ in records.works:
        page = gradebook.render_page(records, student)
        files[gradebook.page_path(student)] = page.encode("utf-8", "replace")
    return [fault for name, data in files.items() for fault in try_to_save(folder / name, data)]
