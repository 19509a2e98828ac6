"""Write all tables and pages: first the page on which the teacher reads what students wrote, and
decides. A page that can't be written doesn't stop the others. The folder of grades is this
command's, except for ``decisions*.csv``, which are the teacher's: they are read, and never written.

For each exercise the page has what each student's notebook has in its section that wasn't handed
out. Students who wrote the same share a card. After a lesson's exercises comes what stands outside
of them, and in the end which files weren't read, or not whole.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from cypresskit.draw.scripts import read_packaged
from cypresskit.files.atomic import try_to_save
from cypresskit.grading import course, gradebook
from cypresskit.grading.course import Exercise, Lesson
from cypresskit.grading.decisions import as_points, limits, safe
from cypresskit.grading.gradebook import CourseRecords, GradedAnswer, Submission
from cypresskit.grading.hand_in import OwnCell, given_lines
from cypresskit.grading.submissions import Student
from cypresskit.tables import listed
from cypresskit.teach.notebook import html

PAGE, LINK, SECTION, EXERCISE, ROW, OUTSIDE, REST, CARD, CELL, FIELD, REMARK = re.split(
    "<!-- .* -->\n", read_packaged("grading/review.html")
)
MAX_LINES = 40  # of a cell; a longer one is scrolled
EMPTY = "<p>Nothing was written here.</p>"
NOTE = "<p>{}</p>"
TABLE = "<table>{rows}</table>"
ELSEWHERE = "<div><p>The sentence may be elsewhere in the lesson:</p>{}</div>"
ALSO = '<p><a href="#{}">There are cells outside of the exercises.</a></p>'
FOLDED = "<details><summary>the right answer</summary>{}</details>"
RIGHT = "<div><b>\N{CHECK MARK} Right</b></div>"


class Shown(NamedTuple):
    """What a card shows of a student's work. Students with equal ones share the card."""

    order: tuple  #: sentences first, then answers without any, then what is as handed out
    verdict: str  #: as HTML
    words: tuple[tuple[str, ...], ...]  #: of the cells that are shown, here and from elsewhere
    notes: tuple[str, ...]
    decisions: tuple[tuple[float | None, str], ...]  #: points and remark on each field


class Owner(NamedTuple):
    """A student of a card."""

    student: Student
    cells: str  #: as HTML
    seen: str = ""  #: a key of the student's cells
    folded: str = ""  #: a right answer, as HTML, if other cells are shown


def render_review(records: CourseRecords) -> str:
    """Return the page."""
    links, sections = [], []

    def add(key: str, more: str, name: str, about: str, cards: str) -> None:
        name = escape(name)
        links.append(LINK.format(key=key, more=more, name=name))
        sections.append(SECTION.format(key=key, name=name, about=about, cards=cards))

    for stem in records.counted:
        lesson = records.lessons[stem]
        works = [each for each in records.submissions() if each.lesson is lesson]
        for exercise in lesson.exercises:
            answers = [(each, each.answers[exercise]) for each in works]
            about = _about(exercise, [answer for _, answer in answers])
            cards = _exercise_cards(records, lesson, exercise, answers)
            add(exercise.key, "", exercise.name, about, cards + REST)
        name = f"{lesson.name}, outside of the exercises"
        add(lesson.number, " outside", name, OUTSIDE, _outside_cards(records, lesson, works))
    if rows := _rows_not_read(records):
        add("files", "", "Files that weren't read, or not whole", TABLE.format(rows=rows), "")
    return PAGE.format(
        style=read_packaged("draw/look.css") + read_packaged("grading/review.css"),
        script=read_packaged("grading/review.js"),
        links="".join(links),
        sections="".join(sections),
        others=_as_json(_decision_rows(records)),
    )


def _about(exercise: Exercise, answers: Iterable[GradedAnswer]) -> str:
    """Return the question of an exercise, graded samples, and the verdicts with their numbers."""
    texts = exercise.good, *course.read_samples().get(exercise.key, ())
    samples = (ROW.format(number=n, text=escape(text)) for n, text in zip((2, 1, 0), texts))
    verdicts = Counter(html(answer.verdict) for answer in answers)
    return EXERCISE.format(
        why=escape(exercise.why),
        samples="".join(samples),
        verdicts="".join(ROW.format(number=n, text=text) for text, n in verdicts.most_common()),
    )


def _exercise_cards(
    records: CourseRecords,
    lesson: Lesson,
    exercise: Exercise,
    answers: Iterable[tuple[Submission, GradedAnswer]],
) -> str:
    """Return the cards of an exercise."""
    given = given_lines(lesson)
    whats = exercise.answer_key, exercise.why_key
    cards: dict[Shown, list[Owner]] = {}
    for submission, answer in answers:
        student = submission.student
        cells, folded = _split(answer)
        has_sentence = not all(cell.is_answer for cell in cells)
        words, others = (" ".join(cell.text for cell in part) for part in (cells, answer.elsewhere))
        is_unseen = submission.elsewhere and not answer.elsewhere and not answer.verdict.right
        also = ALSO.format(lesson.number) * bool(is_unseen)
        shown = Shown(
            (not cells, not has_sentence, plain_text(words)),
            RIGHT if answer.verdict.right else html(answer.verdict) * bool(cells),
            (tuple(words.split()), tuple(others.split())),
            (*map(NOTE.format, map(escape, answer.notes)), also),
            tuple(records.decided(student, what, answer.seen)[:2] for what in whats),
        )
        rest = ELSEWHERE.format(_pre(answer.elsewhere, given, lesson)) * bool(answer.elsewhere)
        texts = (_pre(cells, given) or EMPTY) + rest
        owner = Owner(student, texts, answer.seen, _pre(folded, given))
        cards.setdefault(shown, []).append(owner)
    return "".join(
        _card(shown, cards[shown], whats) for shown in sorted(cards, key=lambda each: each.order)
    )


def _outside_cards(records: CourseRecords, lesson: Lesson, works: Iterable[Submission]) -> str:
    """Return the cards of what stands outside of a lesson's exercises, one for each student."""
    given = given_lines(lesson)
    cards = {}
    for submission in works:
        student, cells = submission.student, submission.elsewhere
        decision = records.decided(student, lesson.added_key)[:2]
        shown = Shown((not cells, student.name, student.id), "", (), (), (decision,))
        cards[shown] = Owner(student, _pre(cells, given) or EMPTY)
    return "".join(_card(shown, [cards[shown]], [lesson.added_key]) for shown in sorted(cards))


def plain_text(text: str) -> str:
    """Return a text's words, so that almost equal ones are next to each other."""
    return " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split())


def _split(answer: GradedAnswer) -> tuple[list[OwnCell], list[OwnCell]]:
    """Return the cells that are shown, and those that are folded: the place of an answer that is
    right, if there are others.
    """
    folded = [cell for cell in answer.cells if cell.is_answer and answer.verdict.right]
    others = [cell for cell in answer.cells if cell not in folded]
    return (others, folded) if others else (folded, [])


def _pre(
    cells: Iterable[OwnCell], given: Mapping[int, set[str]], lesson: Lesson | None = None
) -> str:
    """Return cells as HTML, with the lines that were handed out in their section in gray; of a
    ``lesson``, labeled with their places.
    """
    texts = []
    for cell in cells:
        lines = cell.text.strip("\r\n").splitlines()
        shown = [
            f"<i>{escape(line)}</i>" if line.strip() in given[cell.place] else escape(line)
            for line in lines
        ]
        place = f"{lesson.number}.{cell.place}" if lesson and cell.place else ""
        kind = cell.kind if cell.kind != "code" else ""
        label = ", ".join(filter(None, (place, kind, cell.file)))
        texts.append(
            CELL.format(
                kind=escape(cell.kind),
                long=' tabindex="0"' * (len(lines) > MAX_LINES),
                label=f"<small>{escape(label)}</small>" * bool(label),
                text="\n".join(shown),
            )
        )
    return "".join(texts)


def _card(shown: Shown, owners: Sequence[Owner], whats: Sequence[str]) -> str:
    fields = []
    for what, (decided, _) in zip(whats, shown.decisions):
        name, (least, most) = what.partition(" ")[2], limits(what)
        points = as_points(decided)
        fields.append(FIELD.format(what=what, name=name, points=points, least=least, most=most))
    remark = " ".join(remark for _, remark in shown.decisions if remark)
    people = [[safe(each.student.id), safe(each.student.name), each.seen] for each in owners]
    folded = dict.fromkeys(each.folded for each in owners if each.folded)
    return CARD.format(
        people=escape(json.dumps(people)),
        names=escape(listed([each.student.name for each in owners])),
        count=f" ({len(owners)})" * (len(owners) > 1),
        verdict=shown.verdict,
        cells="".join(shown.notes) + owners[0].cells,
        folded=FOLDED.format("".join(folded)) * bool(folded),
        empty=" data-empty" * (shown.order[0] and shown.verdict != RIGHT),
        fields="".join(fields) + REMARK.format(remark=escape(remark)),
    )


def _rows_not_read(records: CourseRecords) -> str:
    """Return the rows of the students of whom a file wasn't read, or not whole."""
    return "".join(
        ROW.format(number=escape(student.name), text=escape(notes))
        for student, works in records.works
        if (notes := gradebook.describe_outcome(student, [])) and (student.notes or not works)
    )


def _decision_rows(records: CourseRecords) -> list[list[str]]:
    """Return the rows of the teacher's table, so that a new one loses none that isn't shown."""
    names = {student.id: student.name for student, _ in records.works}
    return [
        [safe(id), safe(names.get(id, "")), what, as_points(points), safe(remark), *rest]
        for (id, what), (points, remark, *rest) in records.decisions.items()
    ]


def _as_json(data: object) -> str:
    """Return data as JSON that ends no script."""
    return json.dumps(data).replace("<", "\\u003c")


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
