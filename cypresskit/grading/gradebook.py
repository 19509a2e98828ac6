"""Add up grades, and write the tables and a page of feedback per student.

Tables are written before pages; a page that can't be written doesn't stop the others. The folder of
grades is this command's, except for ``explanations.csv``, which the teacher may change at any time:
it is read again right before it is written.

The teacher grades explanations in ``explanations.csv``. Equal explanations share a row, whose
points count for all students of the row. Columns that the teacher has added to it stay.
"""

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import NamedTuple

from cypresskit.files.atomic import try_to_save
from cypresskit.grading import course
from cypresskit.grading.course import Exercise, Lesson
from cypresskit.grading.hand_in import HandIn, Text, Version
from cypresskit.grading.submissions import CANVAS, MOODLE, Student
from cypresskit.tables import as_csv, elided, listed, quantity, read_csv
from cypresskit.teach.check import Verdict
from cypresskit.teach.notebook import html

#: Percent of a lesson's points
SHARES = {"exercises": 60, "explanations": 40}
FULL = 2  # points for an explanation
RUBRIC = "points: 0 says what the code does, 1 names the cause, 2 says how it leads to the result"
SAMPLES = "2 points, for example", "1 point, for example", "0 points, for example"
KEY = "key"
ELSEWHERE = "(not in a single call below its exercise)"  # precedes other texts
BETWEEN = " / "  # texts
NOT_SUBMITTED = "nothing was submitted"
UNWRITTEN = "No explanation was found."
UNDECIDED = "What was judged may not be your answer. Your teacher decides."
UNJUDGED = "something else may be the answer"
SAME = "as in exercise {}: {}"  # its number, the beginning of the texts
BESIDE = "also written, outside of explanations"
UNSEEN = "what no check has seen"
LISTED = "{}: texts outside of the explanations (see {})"  # a lesson, the table
UNTRIED = (
    "{} may be answered by {} (see {}). If so, set the exercise's name to it in a code cell, and"
    " grade again"
)
MAX_CELL = 30_000  # characters; Excel takes 32,767
UNSAFE = "judged without a sandbox"
GRADES, EXPLANATIONS, WRONG = "grades.csv", "explanations.csv", "wrong_answers.csv"
PAGE, LESSON, EXERCISE = re.split(
    "<!-- .* -->\n", Path(__file__).with_name("feedback.html").read_text(encoding="utf-8")
)


class GradedAnswer(NamedTuple):
    """A student's answer to an exercise."""

    verdict: Verdict
    code: str = ""  #: the cell that was judged
    said: str = ""  #: its explanation
    lines_shown: int = 0  #: of a solution, by the workbench
    texts: tuple[str, ...] = ()  #: others, which stand in the exercise or may be its explanation
    unseen: str = ""  #: code that may be the answer, but that no check has seen

    @property
    def explanation(self) -> str:
        """What the teacher grades: the explanation, or else the texts that may be it."""
        return join_texts(self.texts) if self.texts and not self.said else self.said

    @property
    def points(self) -> int | None:
        """1 or 0; None if the teacher has to look."""
        return None if self.unseen else int(self.verdict.right)

    @property
    def help(self) -> str:
        """What the workbench showed of a solution, as a sentence; "" if nothing."""
        lines = quantity(self.lines_shown, "line")
        return f"The workbench showed {lines} of a solution." if self.lines_shown else ""


def join_texts(texts: Iterable[str]) -> str:
    """Return texts in place of an explanation."""
    return elided(f"{ELSEWHERE} {BETWEEN.join(texts)}", MAX_CELL)


class Submission(NamedTuple):
    """A student's work on one lesson."""

    student: Student
    lesson: Lesson
    answers: dict[Exercise, GradedAnswer]


Works = dict[str, dict[Exercise, GradedAnswer]]  # a student's answers, by lesson


@dataclass
class CourseRecords:
    """The work of all students.

    Attributes
    ----------
    lessons
        The lessons, by stem.
    works
        Each student's answers, by lesson.
    points
        The teacher's points for explanations, by ``explanation_key``.
    sandboxed
        Whether answers were judged in a sandbox. If not, grades and pages say so.
    due
        The lessons that count; if empty, all that any student submitted.
    """

    lessons: dict[str, Lesson]
    works: list[tuple[Student, Works]] = field(default_factory=list)
    points: dict[str, float] = field(default_factory=dict)
    sandboxed: bool = True
    due: tuple[str, ...] = ()

    def total(self, student: Student) -> float | None:
        """Return a student's points for all lessons; None if no lesson of theirs was judged."""
        grades = [self.grade(each)[0] for each in self.submissions(student)]
        return round(sum(grades), 1) if grades else None

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
                    yield Submission(owner, self.lessons[stem], works[stem])

    def explanation_points(self, exercise: Exercise, answer: GradedAnswer) -> float | None:
        """Return the points for an explanation, or None if the teacher hasn't graded it yet."""
        if not answer.explanation:
            return 0.0
        return self.points.get(explanation_key(exercise, answer.explanation))

    def is_graded(self, exercise: Exercise) -> bool:
        """Return whether the teacher has graded all explanations of an exercise.

        Until then, nobody is shown the good one.
        """
        points = [
            self.explanation_points(exercise, answer)
            for submission in self.submissions()
            if (answer := submission.answers.get(exercise)) and answer.explanation
        ]
        return bool(points) and None not in points

    def grade(self, submission: Submission) -> tuple[float, str]:
        """Return the points for a lesson, out of 100, and a sentence on how they add up."""
        answers = submission.answers
        right = sum(answer.verdict.right for answer in answers.values())
        given = sum(self.explanation_points(*pair) or 0 for pair in answers.items())
        total, words = 0.0, []
        for (name, share), earned, each in zip(SHARES.items(), (right, given), (1, FULL)):
            most = each * len(answers)
            points = share * earned / most
            total += points
            words.append(f"{name}: {earned:g} of {most} ({points:.3g} of {share} points)")
        return round(total, 1), "; ".join(words)

    def status(self, student: Student) -> str:
        """Return which of a student's files and lessons were judged, and why others weren't."""
        judged = [submission.lesson.name for submission in self.submissions(student)]
        names = [self.lessons[stem].name for stem in self.counted]
        missing = [name for name in names if judged and name not in judged]
        parts = {"judged": judged, "nothing was read of": missing}
        words = [f"{what}: {', '.join(found)}" for what, found in parts.items() if found]
        return describe_outcome(student, words)

    def questions(self, student: Student) -> list[str]:
        """Return what the teacher has to look at in a student's work, and where."""
        found = []
        for _, lesson, answers in self.submissions(student):
            if any(each.texts for each in answers.values()):
                found.append(LISTED.format(lesson.name, EXPLANATIONS))
            if unseen := [exercise.key for exercise, each in answers.items() if each.unseen]:
                found.append(UNTRIED.format(listed(unseen), UNSEEN, WRONG))
        return found


def describe_outcome(student: Student, judged: list[str]) -> str:
    """Return what was judged of a student's work, and the notes on the rest, in one sentence."""
    return "; ".join([*judged, *student.notes] or [NOT_SUBMITTED])


def explanation_key(exercise: Exercise, text: str) -> str:
    """Return a key that is equal for texts that differ only in spaces, case and punctuation."""
    plain = " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split())
    whole = f"{exercise.name}\n{plain or text}"
    return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:12]


# -- tables


def grade_rows(records: CourseRecords) -> Iterator[dict]:
    """Yield the rows of ``grades.csv``, one per student.

    Cells of lessons that the student didn't submit are empty.
    """
    for student, _ in records.works:
        submissions = list(records.submissions(student))
        row: dict = {"id": student.id, "student": student.name}
        row["total"] = records.total(student)
        row["maximum"] = records.maximum
        row["status"] = "; ".join([records.status(student), *records.questions(student)])
        if not records.sandboxed:
            row["judging"] = UNSAFE
        for submission in submissions:
            for exercise, answer in submission.answers.items():
                row[exercise.name] = answer.points
                points = records.explanation_points(exercise, answer)
                row[f"{exercise.name}, explanation"] = points
                if answer.help:
                    row[f"{exercise.name}, help"] = answer.help
            row[f"{submission.lesson.name}, of 100"] = records.grade(submission)[0]
        yield row


def explanation_rows(records: CourseRecords) -> list[dict]:
    """Return the rows of ``explanations.csv``, sorted by exercise.

    Equal explanations share a row.
    """
    groups: dict[str, list[tuple[Exercise, Student, GradedAnswer]]] = {}
    for student, _, answers in records.submissions():
        for exercise, answer in answers.items():
            if text := answer.explanation:
                group = groups.setdefault(explanation_key(exercise, text), [])
                group.append((exercise, student, answer))
    rows = []
    shown: dict[tuple[str, str], int] = {}  # by lesson and text, the exercise that shows it
    for key, group in groups.items():
        exercise, _, first = group[0]
        texts = []
        for text in () if first.said else first.texts:
            number = shown.setdefault((exercise.key[:2], text), exercise.number)
            is_shown = number != exercise.number
            texts.append(SAME.format(number, elided(text, 100)) if is_shown else text)
        beside = [
            f"{student.name}: {BETWEEN.join(answer.texts)}"
            for _, student, answer in group
            if answer.said and answer.texts
        ]
        samples = exercise.good, *course.read_samples().get(exercise.key, ())
        row = {
            "exercise": exercise.name,
            "question": exercise.why,
            **dict(zip(SAMPLES, samples)),
            "explanation": first.said or join_texts(texts),
            BESIDE: elided(BETWEEN.join(beside), MAX_CELL),
            "count": len(group),
            "students": ", ".join(student.name for _, student, _ in group),
            KEY: key,
            RUBRIC: records.points.get(key),
        }
        rows.append(row)
    return sorted(rows, key=lambda row: row["exercise"])


def wrong_rows(records: CourseRecords) -> list[dict]:
    """Return the rows of ``wrong_answers.csv``, the most frequent of each exercise first."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for student, _, answers in records.submissions():
        for exercise, answer in answers.items():
            if not answer.verdict.right:
                verdict = UNJUDGED if answer.unseen else str(answer.verdict)
                group = groups.setdefault((exercise.name, verdict), [])
                group.append((student.name, answer.unseen))
    rows = [
        {
            "exercise": name,
            "count": len(group),
            "verdict": verdict,
            "students": ", ".join(student for student, _ in group),
            UNSEEN: elided("\n\n".join(f"{who}:\n{code}" for who, code in group if code), MAX_CELL),
        }
        for (name, verdict), group in groups.items()
    ]
    return sorted(rows, key=lambda row: (row["exercise"], -row["count"]))


def system_tables(records: CourseRecords) -> dict[str, list[dict]]:
    """Return tables that Moodle and Canvas import, by file, with the students that are theirs.

    Moodle's is the grading worksheet of its assignment.
    """
    title = ", ".join(records.lessons[stem].name for stem in records.counted)
    tables: dict[str, list[dict]] = {"moodle.csv": [], "canvas.csv": []}
    for student, _ in records.works:
        id, grade = student.id, records.total(student)
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


def parse_rows(sheet: Path) -> list[dict]:
    """Read the rows of ``explanations.csv``, as any spreadsheet program may have saved it.

    Raises
    ------
    ValueError
        If it can't be read; the message names the reason.
    """
    reader = read_csv(sheet.read_bytes() if sheet.exists() else b"")
    try:
        named = set(reader.fieldnames or ())
        if named and not {KEY, "exercise", RUBRIC} <= named:
            raise ValueError(f"{sheet} lacks a column: `{KEY}`, `exercise` or `{RUBRIC}`")
        found = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        line = reader.reader.line_num
        raise ValueError(f"{sheet}, line {line}: {error}. Is a quote not closed?") from None
    rows = []
    for line, row in found:
        entered = (row[RUBRIC] or "").strip()
        value = None
        if entered:
            with suppress(ValueError):
                value = float(entered.replace(",", "."))
            if value is None or not 0 <= value <= FULL:
                where = f"{sheet}, row {line} ({row['exercise']})"
                raise ValueError(f"{where}: `{entered}` isn't a number of points from 0 to {FULL}")
        rows.append({name: cell for name, cell in row.items() if name} | {RUBRIC: value})
    return rows


# -- pages


def render_page(records: CourseRecords, student: Student) -> str:
    """Return a student's page: points for each lesson, and a verdict on each exercise."""
    texts = []
    for submission in records.submissions(student):
        points, words = records.grade(submission)
        name = escape(submission.lesson.name)
        texts.append(LESSON.format(name=name, points=points, words=words))
        for exercise, answer in submission.answers.items():
            texts.append(_exercise(records, exercise, answer))
    status = records.status(student) + f"; {UNSAFE}" * (not records.sandboxed)
    total = records.total(student)
    return PAGE.format(
        name=escape(student.name),
        status=escape(status),
        total="no grade" if total is None else f"{total:g} of {records.maximum} points",
        lessons="".join(texts),
    )


def _exercise(records: CourseRecords, exercise: Exercise, answer: GradedAnswer) -> str:
    given = records.explanation_points(exercise, answer)
    written = answer.said or BETWEEN.join(answer.texts)
    points = "not graded yet."
    if given is not None:
        points = f"<b>{given:g} of {FULL} points.</b>"
        if records.is_graded(exercise):
            points += f" A good explanation: {escape(exercise.good)}"
    return EXERCISE.format(
        name=escape(exercise.name),
        verdict=f"<p>{UNDECIDED}</p>" if answer.unseen else html(answer.verdict),
        help=f"<p>{answer.help}</p>" * bool(answer.help),
        why=escape(exercise.why),
        explanation=f"<q>{escape(written)}</q>" if written else UNWRITTEN,
        points=points,
        code=escape(answer.unseen or answer.code),
    )


def is_foreign(folder: Path) -> bool:
    """Return whether a folder has files, and this command didn't make them: explanations.csv, which
    it writes first, is missing.
    """
    has_files = any(path.is_file() for path in folder.rglob("*"))
    return has_files and not (folder / EXPLANATIONS).is_file()


def page_path(student: Student) -> str:
    """Return the path of a student's page, relative to the folder of grades."""
    return f"feedback/{student.page}"


def known_points(stored: Iterable[dict]) -> dict[str, float]:
    """Return the teacher's points in rows of ``explanations.csv``, by ``explanation_key``."""
    return {row[KEY]: row[RUBRIC] for row in stored if row[KEY] and row[RUBRIC] is not None}


def write_all(records: CourseRecords, folder: Path) -> tuple[list[str], int]:
    """Write tables and pages. Pages of students who have left the course stay.

    Points, and additional columns, that the teacher has entered into ``explanations.csv`` by now
    count and stay. Rows with points whose explanations are no longer submitted stay at the end.

    Returns
    -------
    faults : list of str
        For each file that could not be written, its name and the reason.
    waiting : int
        How many explanations have no points yet.
    """
    faults = []
    stored = []
    try:
        stored = parse_rows(folder / EXPLANATIONS)
        records.points = known_points(stored)
    except ValueError as error:
        faults = [f"{error}. It was left as it is"]
    by_key = {row[KEY]: row for row in stored if row[KEY]}
    rows = [by_key.pop(row[KEY], {}) | row for row in explanation_rows(records)]
    waiting = sum(row[RUBRIC] is None for row in rows)
    rows += [row for row in by_key.values() if row[RUBRIC] is not None]
    files = {} if faults else {EXPLANATIONS: format_csv(rows)}
    files[GRADES] = format_csv(grade_rows(records))
    for name, table in {WRONG: wrong_rows(records), **system_tables(records)}.items():
        if table:
            files[name] = format_csv(table, "utf-8-sig" if name == WRONG else "utf-8")
        else:
            (folder / name).unlink(missing_ok=True)  # of an earlier run
    for student, _ in records.works:
        page = render_page(records, student)
        files[page_path(student)] = page.encode("utf-8", "replace")
    for name, data in files.items():
        faults += try_to_save(folder / name, data)
    return faults, waiting


# -- from a student's cells to the work on a lesson


def combine_answers(
    lesson: Lesson, hand_ins: list[HandIn], judged: list[tuple[Exercise, Version, Verdict]]
) -> dict[Exercise, GradedAnswer]:
    """Return a student's answers to a lesson, from all submitted notebooks of it.

    Of several versions of an answer, the first right one counts, or else the first. The last
    explanation counts. An exercise without one gets the texts that stand outside of explanations,
    but for those that are surely another exercise's.
    """
    answers: dict[Exercise, GradedAnswer] = {}
    for exercise, version, verdict in judged:
        answer = GradedAnswer(verdict, version.cell, lines_shown=version.lines_shown)
        known = answers.get(exercise, answer)
        better = max(known, answer, key=lambda each: (each.verdict.right, bool(each.code)))
        lines_shown = max(known.lines_shown, answer.lines_shown)
        answers[exercise] = better._replace(lines_shown=lines_shown)
    said: dict[int, str] = {}
    others: list[Text] = []
    for hand_in in hand_ins:
        new, more = hand_in.read_explanations()
        for number, old in said.items():
            if new.get(number, old) != old:
                others.append(Text(old, number, is_sure=True))
        others += more
        said |= new
    counted = [exercise.number for exercise in lesson.exercises]
    texts: dict[int, dict[str, None]] = {number: {} for number in counted}  # each text once
    missing = texts.keys() - said.keys()
    for text, place, is_sure in others:
        nearest = max((number for number in counted if number <= place), default=counted[0])
        if place in counted or not is_sure:
            for number in [nearest] if is_sure or not missing else missing:
                texts[number][text] = None
    for exercise, answer in answers.items():
        unseen = [] if answer.verdict.right else [each.find_unseen(exercise) for each in hand_ins]
        answers[exercise] = answer._replace(
            said=said.get(exercise.number, ""),
            texts=(*texts[exercise.number],),
            unseen="\n\n".join(filter(None, unseen)),
        )
    return answers
