"""Add up grades; make the tables, and a page of feedback per student."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import NamedTuple

from cypresskit.grading.course import Exercise, Lesson
from cypresskit.grading.decisions import FILES, Decision, as_points
from cypresskit.grading.hand_in import HandIn, OwnCell
from cypresskit.grading.submissions import CANVAS, MOODLE, Student
from cypresskit.tables import as_csv, quantity
from cypresskit.teach.check import Verdict
from cypresskit.teach.notebook import html

#: Percent of a lesson's points
SHARES = {"exercises": 60, "explanations": 40}
FULL = 2  # points for an explanation
NOT_SUBMITTED = "nothing was submitted"
UNSAFE = "judged without a sandbox"
GRADES, REVIEW = "grades.csv", "review.html"
PAGE, LESSON, EXERCISE = re.split(
    "<!-- .* -->\n", Path(__file__).with_name("feedback.html").read_text(encoding="utf-8")
)


class GradedAnswer(NamedTuple):
    """A student's work on an exercise."""

    verdict: Verdict
    cells: tuple[OwnCell, ...] = ()  #: the student's, in the exercise's section
    elsewhere: tuple[OwnCell, ...] = ()  #: where its sentence may be, if its section has none
    lines_shown: int = 0  #: of a solution, by the workbench
    warnings: tuple[str, ...] = ()  #: why a right answer may not have been judged as right

    @property
    def help(self) -> str:
        """What the workbench showed of a solution, as a sentence; "" if nothing."""
        lines = quantity(self.lines_shown, "line")
        return f"The workbench showed {lines} of a solution." if self.lines_shown else ""

    @property
    def notes(self) -> list[str]:
        """What a teacher should know of the answer, as sentences."""
        return [self.help] * bool(self.help) + [*self.warnings] * (not self.verdict.right)

    @property
    def seen(self) -> str:
        """A key of the cells: a decision on these holds for no others."""
        whole = repr([cell.text.split() for cell in (*self.cells, *self.elsewhere)])
        return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:8]


class Work(NamedTuple):
    """A student's work on a lesson."""

    answers: dict[Exercise, GradedAnswer]
    elsewhere: tuple[OwnCell, ...] = ()  #: the student's cells outside of these exercises


class Submission(NamedTuple):
    """A student's work on one lesson."""

    student: Student
    lesson: Lesson
    answers: dict[Exercise, GradedAnswer]
    elsewhere: tuple[OwnCell, ...]


@dataclass
class CourseRecords:
    """The work of all students.

    Attributes
    ----------
    lessons
        The lessons, by stem.
    works
        Each student's work, by lesson.
    decisions
        The teacher's decisions, by the student's id and what they are about.
    sandboxed
        Whether answers were judged in a sandbox. If not, grades and pages say so.
    due
        The lessons that count; if empty, all that any student submitted.
    """

    lessons: dict[str, Lesson]
    works: list[tuple[Student, dict[str, Work]]] = field(default_factory=list)
    decisions: dict[tuple[str, str], Decision] = field(default_factory=dict)
    sandboxed: bool = True
    due: tuple[str, ...] = ()

    @property
    def counted(self) -> list[str]:
        """The lessons that count, the same for all students."""
        return sorted(self.due or {stem for _, works in self.works for stem in works})

    @property
    def maximum(self) -> int:
        """The maximum total, the same for all students."""
        return 100 * len(self.counted)

    def submissions(self, student: Student | None = None) -> Iterator[Submission]:
        """Yield all submissions, or those of one student, by lesson."""
        for owner, works in self.works:
            if student is None or owner is student:
                for stem in sorted(works):
                    yield Submission(owner, self.lessons[stem], *works[stem])

    def decided(self, student: Student, what: str, seen: str = "") -> Decision:
        """Return the decision on this; an empty one if there is none, or on something else."""
        found = self.decisions.get((student.id, what), Decision())
        return found if not found.seen or not seen or found.seen == seen else Decision()

    def answer_points(self, student: Student, exercise: Exercise, answer: GradedAnswer) -> float:
        """Return the points for an answer: the teacher's, or else the verdict's."""
        points = self.decided(student, exercise.answer_key, answer.seen).points
        return float(answer.verdict.right) if points is None else points

    def explanation_points(
        self, student: Student, exercise: Exercise, answer: GradedAnswer
    ) -> float | None:
        """Return the teacher's points for an explanation. Without, 0 if all of the exercise is as
        handed out, and it isn't answered elsewhere; or None.
        """
        points = self.decided(student, exercise.why_key, answer.seen).points
        is_untouched = not answer.cells and not answer.verdict.right
        return 0.0 if points is None and is_untouched else points

    def waiting(self, student: Student | None = None) -> int:
        """Return how many explanations have no points yet."""
        return sum(
            self.explanation_points(each.student, *pair) is None
            for each in self.submissions(student)
            for pair in each.answers.items()
        )

    def is_graded(self, exercise: Exercise) -> bool:
        """Return whether the teacher has graded all explanations of an exercise.

        Until then, nobody is shown the good one.
        """
        return None not in [
            self.explanation_points(each.student, exercise, each.answers[exercise])
            for each in self.submissions()
            if exercise in each.answers
        ]

    def grade(self, submission: Submission) -> tuple[float, str]:
        """Return the points for a lesson, out of 100, and a sentence on how they add up."""
        student, lesson, answers, _ = submission
        right = sum(self.answer_points(student, *pair) for pair in answers.items())
        given = sum(self.explanation_points(student, *pair) or 0 for pair in answers.items())
        total, words = 0.0, []
        for (name, share), earned, each in zip(SHARES.items(), (right, given), (1, FULL)):
            most = each * len(answers)
            points = share * earned / most
            total += points
            words.append(f"{name}: {earned:g} of {most} ({points:.3g} of {share} points)")
        if added := self.decided(student, lesson.added_key).points:
            total += added
            words.append(f"your teacher: {added:+g} points")
        return round(total, 1), "; ".join(words)

    def total(self, student: Student) -> float | None:
        """Return a student's points for all lessons; None if no lesson of theirs was judged."""
        grades = [self.grade(each)[0] for each in self.submissions(student)]
        return round(sum(grades), 1) if grades else None

    def status(self, student: Student) -> str:
        """Return which of a student's files and lessons were judged, and why others weren't."""
        judged = [submission.lesson.name for submission in self.submissions(student)]
        names = [self.lessons[stem].name for stem in self.counted]
        missing = [name for name in names if judged and name not in judged]
        parts = {"judged": judged, "nothing was read of": missing}
        words = [f"{what}: {', '.join(found)}" for what, found in parts.items() if found]
        return describe_outcome(student, words)


def describe_outcome(student: Student, judged: list[str]) -> str:
    """Return what was judged of a student's work, and the notes on the rest, in one sentence."""
    return "; ".join([*judged, *student.notes] or [NOT_SUBMITTED])


# -- tables


def grade_rows(records: CourseRecords) -> Iterator[dict]:
    """Yield the rows of ``grades.csv``, one per student.

    Cells of lessons that the student didn't submit are empty.
    """
    for student, _ in records.works:
        row: dict = {"id": student.id, "student": student.name}
        row["total"] = records.total(student)
        row["maximum"] = records.maximum
        row["waiting"] = records.waiting(student)
        row["status"] = records.status(student)
        if not records.sandboxed:
            row["judging"] = UNSAFE
        for submission in records.submissions(student):
            for exercise, answer in submission.answers.items():
                points = records.answer_points(student, exercise, answer)
                row[exercise.name] = as_points(points)
                given = records.explanation_points(student, exercise, answer)
                row[f"{exercise.name}, explanation"] = as_points(given)
                if answer.help:
                    row[f"{exercise.name}, help"] = answer.help
            row[f"{submission.lesson.name}, of 100"] = records.grade(submission)[0]
        yield row


def system_tables(records: CourseRecords) -> dict[str, list[dict]]:
    """Return tables that Moodle and Canvas import, by file, with the students that are theirs. A
    grade is empty until nothing waits for the teacher.

    Moodle's is the grading worksheet of its assignment.
    """
    title = ", ".join(records.lessons[stem].name for stem in records.counted)
    tables: dict[str, list[dict]] = {"moodle.csv": [], "canvas.csv": []}
    for student, _ in records.works:
        id, grade = student.id, None if records.waiting(student) else records.total(student)
        if student.system == MOODLE:
            row = {"Identifier": f"Participant {id}", "Grade": grade, "Last modified (grade)": ""}
            tables["moodle.csv"].append(row)
        elif student.system == CANVAS:
            row = {"Student": student.name, "ID": id, "Section": "", title: grade}
            tables["canvas.csv"].append(row)
    return tables


def format_csv(rows: Iterable[dict], encoding: str = "utf-8-sig") -> bytes:
    """Return rows as a CSV file, with the columns of a lesson next to each other."""
    text = as_csv(rows, order=lambda name: name[:2] * name[:2].isdigit())
    return text.encode(encoding, "replace")  # without a byte-order mark, Excel guesses


# -- pages


def render_page(records: CourseRecords, student: Student) -> str:
    """Return a student's page: points for each lesson, and a verdict on each exercise."""
    texts = []
    for submission in records.submissions(student):
        points, words = records.grade(submission)
        lesson = submission.lesson
        name, decision = lesson.name, records.decided(student, lesson.added_key)
        fields = {"words": words, "remark": escape(decision.remark)}
        texts.append(LESSON.format(name=escape(name), points=points, **fields))
        for exercise, answer in submission.answers.items():
            texts.append(_exercise(records, student, exercise, answer))
    status = records.status(student) + f"; {UNSAFE}" * (not records.sandboxed)
    total = records.total(student)
    return PAGE.format(
        name=escape(student.name),
        status=escape(status),
        total="no grade" if total is None else f"{total:g} of {records.maximum} points",
        lessons="".join(texts),
    )


def _exercise(
    records: CourseRecords, student: Student, exercise: Exercise, answer: GradedAnswer
) -> str:
    given = records.explanation_points(student, exercise, answer)
    decision = records.decided(student, exercise.answer_key, answer.seen)
    why = records.decided(student, exercise.why_key, answer.seen)
    remarks = " ".join(filter(None, (decision.remark, why.remark)))
    points = "not graded yet."
    if given is not None:
        points = f"<b>{given:g} of {FULL} points.</b>"
        if records.is_graded(exercise):
            points += f" A good explanation: {escape(exercise.good)}"
    decided = f"<p>Your teacher gives this answer {as_points(decision.points)} of 1 point.</p>"
    return EXERCISE.format(
        name=escape(exercise.name),
        verdict=html(answer.verdict) + decided * (decision.points is not None),
        notes="".join(map("<p>{}</p>".format, answer.notes)),
        why=escape(exercise.why),
        points=points,
        remark=f"<p><b>Your teacher:</b> {escape(remarks)}</p>" * bool(remarks),
        code=escape("\n\n".join(cell.text for cell in answer.cells) or "(nothing)"),
    )


def page_path(student: Student) -> str:
    """Return the path of a student's page, relative to the folder of grades."""
    return f"feedback/{student.page}"


def is_foreign(folder: Path) -> bool:
    """Return whether a folder has files that are neither the teacher's decisions nor made by this
    command: review.html, which it writes first, is missing.
    """
    files = (path for path in folder.rglob("*") if path.is_file())
    has_files = any(path.parent != folder or not path.match(FILES) for path in files)
    return has_files and not (folder / REVIEW).is_file()


# -- from a student's cells to the work on a lesson


def combine_answers(
    lesson: Lesson, hand_ins: list[HandIn], judged: list[tuple[Exercise, Verdict]]
) -> Work:
    """Return a student's work on a lesson, from all submitted notebooks of it: of several verdicts
    on an answer the best one, and all of the student's cells.
    """
    found: dict[OwnCell, OwnCell] = {}
    for hand_in in hand_ins:
        for cell in hand_in.cells:
            named = cell._replace(file=hand_in.file) if len(hand_ins) > 1 else cell
            found.setdefault(cell, named)
    cells = [*found.values()]
    answers = {}
    for exercise in lesson.exercises:
        verdicts = [verdict for each, verdict in judged if each == exercise]
        own = tuple(cell for cell in cells if cell.place == exercise.number)
        rest = tuple(cell for cell in cells if cell not in own and not cell.is_answer)
        answers[exercise] = GradedAnswer(
            max(verdicts, key=lambda verdict: verdict.right),
            own,
            rest * all(cell.is_answer for cell in own),
            max(hand_in.lines_shown(exercise) for hand_in in hand_ins),
            (*dict.fromkeys(said for each in hand_ins for said in each.warnings(exercise)),),
        )
    counted = {exercise.number for exercise in lesson.exercises}
    return Work(answers, tuple(cell for cell in cells if cell.place not in counted))
