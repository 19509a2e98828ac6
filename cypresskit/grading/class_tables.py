"""Tables about a whole class: statistics and equal code."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator

from cypresskit.grading.course import Exercise
from cypresskit.grading.gradebook import CourseRecords, GradedAnswer
from cypresskit.grading.submissions import Student

MIN_NODES = 40  # of a syntax tree: shorter code is equal by chance
MIN_LINES = 12  # of a kernel


def _answers(records: CourseRecords) -> dict[Exercise, list[tuple[Student, GradedAnswer]]]:
    """Return all students' answers to each exercise."""
    answers: dict[Exercise, list] = defaultdict(list)
    for submission in records.submissions():
        for exercise, answer in submission.answers.items():
            answers[exercise].append((submission.student, answer))
    return dict(sorted(answers.items(), key=lambda item: item[0].name))


def statistics_rows(records: CourseRecords) -> Iterator[dict]:
    """Yield the rows of ``statistics.csv``: for each exercise the share that is right, the
    commonest wrong answer by its verdict, and the mean points of explanations.
    """
    for exercise, answers in _answers(records).items():
        right = sum(answer.verdict.right for _, answer in answers)
        wrong = Counter(answer.verdict.message for _, answer in answers if not answer.verdict.right)
        ((message, count),) = wrong.most_common(1) or [("", 0)]
        points = [records.explanation_points(exercise, answer) for _, answer in answers]
        graded = [value for value in points if value is not None]
        yield {
            "exercise": exercise.name,
            "answers": len(answers),
            "right": right,
            "right, percent": round(100 * right / len(answers)),
            "commonest wrong answer": message,
            "how often": count,
            "explanations, mean points": round(sum(graded) / len(graded), 2) if graded else None,
        }


def copies_rows(records: CourseRecords) -> Iterator[dict]:
    """Yield the rows of ``copies.csv``: students whose code for an exercise is equal but for
    comments, spaces and docstrings. It may have the same source by right: the teacher decides.
    """
    for exercise, answers in _answers(records).items():
        groups: dict[str, list[str]] = defaultdict(list)
        for student, answer in answers:
            if plain := plain_code(answer.code):
                groups[plain].append(student.name)
        for plain, names in groups.items():
            if len(names) > 1:
                yield {
                    "exercise": exercise.name,
                    "count": len(names),
                    "students": ", ".join(names),
                    "code": plain,
                }


def plain_code(code: str) -> str:
    """Return code without comments, spaces and docstrings; "" if it is too short to compare."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        lines = [" ".join(line.partition(";")[0].split()) for line in code.splitlines()]
        lines = [line for line in lines if line]
        return "\n".join(lines) if len(lines) >= MIN_LINES else ""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree) if sum(1 for _ in ast.walk(tree)) >= MIN_NODES else ""
