"""Marks added up, and what is written of them: ``marks.csv``, ``questions.csv``, and a page of
feedback for each student.

Tables are written before pages, and a page that can't be written stops nothing else. What was
written is listed in ``written.sha256``, as ``sha256sum`` does: only a file that is as it was listed
is written over or deleted. Sentences are read by the teacher: equal ones stand in one row of
``questions.csv``, whose points count for all who wrote it, and whose other columns are kept.
"""

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import NamedTuple

from cypresskit.files.atomic import try_to_save
from cypresskit.grading import course
from cypresskit.grading.course import Exercise, Lesson
from cypresskit.grading.submissions import Student
from cypresskit.number_parsing import number
from cypresskit.tables import as_csv, read_csv
from cypresskit.teach import bindings
from cypresskit.teach.check import Verdict
from cypresskit.teach.notebook import html

#: Per cent of a lesson's points; what a lesson lacks doesn't count.
SHARES = {"exercises": 60, "explanations": 40}
FULL = 2  # points for a sentence
RUBRIC = "points: 0 says what the code does, 1 names the cause, 2 says how it leads to the result"
KEY = "key"
NOTHING = "nothing was handed in"
UNLISTED = "not on the roster"
UNWRITTEN = "Nothing written."
UNSAFE = "judged without a sandbox"
MARKS, QUESTIONS, LIST = "marks.csv", "questions.csv", "written.sha256"
Listed = set[tuple[str, str]]  # digests and names of files, from the folder of marks
PAGE, LESSON, EXERCISE = re.split(
    "<!-- .* -->\n", Path(__file__).with_name("feedback.html").read_text(encoding="utf-8")
)


class GradedAnswer(NamedTuple):
    """A student's answer to an exercise: the verdict, the cell that it is about, and the sentence
    below.
    """

    verdict: Verdict
    code: str = ""
    sentence: str = ""


class Submission(NamedTuple):
    """What a student handed in of a lesson."""

    student: Student
    lesson: Lesson
    answers: dict[Exercise, GradedAnswer]


Works = dict[str, dict[Exercise, GradedAnswer]]  # a student's answers, by lesson


@dataclass
class CourseRecords:
    """The work of all students, by lesson, and the points given by hand, by sentence.

    sandboxed : whether answers were judged in a sandbox; if not, everything written says so.
    due : the lessons that count; if there are none, all that anybody handed in.
    """

    asked: dict[str, Lesson]
    works: list[tuple[Student, dict[str, dict[Exercise, GradedAnswer]]]] = field(
        default_factory=list
    )
    points: dict[str, float] = field(default_factory=dict)
    sandboxed: bool = True
    due: tuple[str, ...] = ()

    @property
    def counted(self) -> list[str]:
        """The lessons that count, the same for everybody."""
        return sorted(self.due or {stem for _, works in self.works for stem in works})

    @property
    def maximum(self) -> int:
        """The points that everybody could have."""
        return 100 * len(self.counted)

    def parts(self, student: Student | None = None) -> Iterator[Submission]:
        """All that was handed in, or one student's, by lesson."""
        for owner, works in self.works:
            if student is None or owner is student:
                for stem in sorted(works):
                    yield Submission(owner, self.asked[stem], works[stem])

    def given(self, exercise: Exercise, answer: GradedAnswer) -> float | None:
        """The points for a sentence, or None if it has none yet."""
        if not answer.sentence:
            return 0.0
        return self.points.get(sentence_key(exercise, answer.sentence))

    def mark(self, part: Submission) -> tuple[float, str]:
        """The points for a lesson, of 100, and in words where they come from."""
        answers = part.answers.items()
        right = sum(answer.verdict.right for _, answer in answers)
        given = sum(self.given(*pair) or 0 for pair in answers)
        counts = {
            "exercises": (right, len(answers)),
            "explanations": (given, FULL * len(answers)),
        }
        asked = {name: count for name, count in counts.items() if count[1]}
        points = sum(SHARES[name] * earned / most for name, (earned, most) in asked.items())
        words = "; ".join(
            f"{name}: {earned:g} of {most} ({SHARES[name]} %)"
            for name, (earned, most) in asked.items()
        )
        whole = sum(SHARES[name] for name in asked) or 1
        return round(100 * points / whole, 1), words

    def account(self, student: Student) -> str:
        """What became of all that a student handed in, in words."""
        judged = [part.lesson.name for part in self.parts(student)]
        if not judged:
            return describe_outcome(student, [])
        words = [f"judged: {', '.join(judged)}"]
        names = [self.asked[stem].name for stem in self.counted]
        if missing := [name for name in names if name not in judged]:
            words.append(f"not handed in: {', '.join(missing)}")
        return describe_outcome(student, words)


def describe_outcome(student: Student, judged: list[str]) -> str:
    """What was ``judged`` of a student's, in words, with all that wasn't."""
    words = [*judged, *student.notes] or [NOTHING]
    return "; ".join([*words, *[UNLISTED] * (not student.listed)])


def sentence_key(exercise: Exercise, sentence: str) -> str:
    """The same for sentences that differ in spaces, capitals and marks alone."""
    plain = " ".join(re.sub(r"[\W_]+", " ", sentence.casefold()).split())
    whole = f"{exercise.name}\n{plain or sentence}"
    return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:12]


# -- tables


def marks(records: CourseRecords) -> Iterator[dict]:
    """The rows of ``marks.csv``, one for everybody; cells of lessons not handed in are empty."""
    for student, _ in records.works:
        parts = list(records.parts(student))
        row: dict = {"id": student.id, "student": student.name}
        row["total"] = round(sum(records.mark(part)[0] for part in parts), 1)
        row["maximum"] = records.maximum
        row["account"] = records.account(student)
        if not records.sandboxed:
            row["how"] = UNSAFE
        for part in parts:
            for exercise, answer in part.answers.items():
                row[exercise.name] = int(answer.verdict.right)
                row[f"{exercise.name}, explanation"] = records.given(exercise, answer)
            row[f"{part.lesson.name}, of 100"] = records.mark(part)[0]
        yield row


def explanations(records: CourseRecords) -> list[dict]:
    """The rows of ``questions.csv`` on sentences: all answers to a question, then all to the next.
    Equal sentences share a row.
    """
    groups: dict[str, list[tuple[Exercise, Student, str]]] = {}
    for part in records.parts():
        for exercise, answer in part.answers.items():
            if answer.sentence:
                key = sentence_key(exercise, answer.sentence)
                groups.setdefault(key, []).append((exercise, part.student, answer.sentence))
    rows = []
    for key, group in groups.items():
        exercise, _, sentence = group[0]
        row = {
            "of": exercise.name,
            "question": exercise.why,
            "a good answer": exercise.good,
            "said": sentence,
            "students": len(group),
            "who": ", ".join(student.name for _, student, _ in group),
            KEY: key,
            RUBRIC: records.points.get(key),
        }
        rows.append(row)
    return sorted(rows, key=lambda row: row["of"])


def table(rows: Iterable[dict]) -> bytes:
    """Rows as a CSV file, the columns of a lesson side by side."""
    text = as_csv(rows, order=lambda name: name[:2] * name[:2].isdigit())
    return text.encode("utf-8-sig", "replace")  # without this mark, Excel guesses the encoding


def stored_rows(sheet: Path) -> list[dict]:
    """The rows of a ``questions.csv``, however a spreadsheet saved it. Raises ``ValueError``, which
    says where and why, for one that can't be read.
    """
    reader = read_csv(sheet.read_bytes() if sheet.exists() else b"")
    try:
        named = set(reader.fieldnames or ())
        if named and not {KEY, "of", RUBRIC} <= named:
            raise ValueError(f"{sheet} has lost a column: `{KEY}`, `of` or `{RUBRIC}`")
        found = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        line = reader.reader.line_num
        raise ValueError(f"{sheet}, line {line}: {error}. Is a quote not closed?") from None
    rows = []
    for line, row in found:
        entered = (row[RUBRIC] or "").strip()
        value = number(entered)
        if entered and (value is None or not 0 <= value <= FULL):
            where = f"{sheet}, row {line} ({row['of']})"
            complaint = f"`{entered}` isn't a number of points from 0 to {FULL}"
            raise ValueError(f"{where}: {complaint}")
        rows.append({name: cell for name, cell in row.items() if name} | {RUBRIC: value})
    return rows


# -- pages


def feedback(records: CourseRecords, student: Student) -> str:
    """A student's page: for each lesson the total, and a verdict on each exercise."""
    texts = []
    total = 0.0
    for part in records.parts(student):
        points, words = records.mark(part)
        texts.append(
            LESSON.format(
                name=escape(part.lesson.name),
                points=points,
                words=words,
            )
        )
        for exercise, answer in part.answers.items():
            texts.append(_exercise(records, exercise, answer))
        total = total + points
    account = records.account(student)
    if not records.sandboxed:
        account += f"; {UNSAFE}"
    return PAGE.format(
        name=escape(student.name),
        account=escape(account),
        total=total,
        most=records.maximum,
        lessons="".join(texts),
    )


def _exercise(records: CourseRecords, exercise: Exercise, answer: GradedAnswer) -> str:
    given = records.given(exercise, answer)
    points = "not read yet."
    if given is not None:
        points = f"<b>{given:g} of {FULL} points.</b> A good answer: {escape(exercise.good)}"
    return EXERCISE.format(
        name=escape(exercise.name),
        verdict=html(answer.verdict),
        why=escape(exercise.why),
        sentence=f"<q>{escape(answer.sentence)}</q>" if answer.sentence else UNWRITTEN,
        points=points,
        code=escape(answer.code),
    )


def earlier(folder: Path) -> Listed:
    """What earlier runs listed in ``folder``."""
    try:
        lines = (folder / LIST).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {(digest, name) for digest, _, name in (line.partition("  ") for line in lines)}


def in_the_way(folder: Path, students: Iterable[Student]) -> list[str]:
    """The files in ``folder`` that would be written over though no earlier run left them so."""
    listed = earlier(folder)
    names = [MARKS, *(page_of(student) for student in students)]
    return [name for name in names if (folder / name).is_file() and not _is(folder, name, listed)]


def page_of(student: Student) -> str:
    """The name of a student's page, from the folder of marks."""
    return f"feedback/{student.page}"


def _is(folder: Path, name: str, listed: Listed) -> bool:
    """Whether a file is as it was listed."""
    try:
        return (digest_of((folder / name).read_bytes()), name) in listed
    except OSError:
        return False


def digest_of(data: bytes) -> str:
    """The SHA-256 of a file, as a list has it."""
    return hashlib.sha256(data).hexdigest()


def _save_list(folder: Path, listed: Listed) -> list[str]:
    lines = sorted(f"{digest}  {name}\n" for digest, name in listed)
    return try_to_save(folder / LIST, "".join(lines))


def write_all(records: CourseRecords, folder: Path, stored: list[dict]) -> list[str]:
    """Write tables, then pages, into ``folder``, and delete the pages of students who have left.
    Returns what could not be written, and why.

    stored : the rows of ``questions.csv`` as it was. Columns that aren't ours are kept; and, at its
        end, points for sentences that nobody has handed in any more.
    """
    by_key = {row[KEY]: row for row in stored if row[KEY]}
    questions = [by_key.pop(row[KEY], {}) | row for row in explanations(records)]
    questions += [row for row in by_key.values() if row[RUBRIC] is not None]
    files = {MARKS: table(marks(records))}
    for student, _ in records.works:
        page = feedback(records, student)
        files[page_of(student)] = page.encode("utf-8", "replace")
    before = earlier(folder)
    now = {(digest_of(data), name) for name, data in files.items()}
    faults = _save_list(folder, before | now)  # of either, should this be stopped halfway
    faults += try_to_save(folder / QUESTIONS, table(questions))
    for name, data in files.items():
        faults += try_to_save(folder / name, data)
    for _, name in before:
        if (
            name not in files
            and name == f"feedback/{Path(name).name}"
            and _is(folder, name, before)
        ):
            (folder / name).unlink(missing_ok=True)
    return faults + _save_list(folder, now)


# -- from a student's cells to the work on a lesson


def combined(
    lesson: Lesson, handed: list[tuple[list[course.Cell], list[Verdict]]]
) -> dict[Exercise, GradedAnswer]:
    """A student's answers to a lesson, from all notebooks of it that were handed in: the better
    ones count, and every sentence.
    """
    answers: dict[Exercise, GradedAnswer] = {}
    for cells, verdicts in handed:
        code = course.answers(cells, lesson)
        steps = course.kept_steps(cells)
        wrote = course.wrote(cells, lesson)
        for exercise, verdict in zip(lesson.exercises, verdicts):
            cell = steps.get(exercise.step) or bindings.last_setting(code, exercise.answer)
            new = GradedAnswer(verdict, cell, wrote.get(exercise.number, ""))
            old = answers.get(exercise)
            if old:
                best = max(
                    old,
                    new,
                    key=lambda submission: (submission.verdict.right, bool(submission.code)),
                )
                new = best._replace(sentence=new.sentence or old.sentence)
            answers[exercise] = new
    return answers
