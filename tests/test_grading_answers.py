"""Each answer that is in a hand-in is judged, or listed. No exercise gets a 0 for an answer that is
somewhere in the file.
"""

import random
import re
from collections.abc import Callable
from copy import deepcopy

import hand_ins
import pytest

from cypresskit.cli import cmd_grade
from cypresskit.editing import steps
from cypresskit.grading import course, gradebook, hand_in, judging
from cypresskit.grading.gradebook import CourseRecords, GradedAnswer
from cypresskit.grading.hand_in import HandIn, answer_pattern
from cypresskit.teach.answer_source import AnswerSource
from cypresskit.teach.check import Verdict

LESSONS = course.read_lessons()
BUS = LESSONS["09_bus"]

Cells = list[course.Cell]


@pytest.fixture
def graded(tmp_path, monkeypatch) -> Callable[..., tuple[dict[int, GradedAnswer], dict]]:
    """Grades notebooks: an answer is right if what it needs says so. Returns the answers by
    exercise, and the row of grades.csv.
    """

    def judge_student(attempts, *_) -> list[Verdict]:
        verdicts = []
        for cells, check in attempts:
            source = AnswerSource(cells, check.rpartition("(")[2].rstrip(")"))
            verdicts.append(Verdict("RIGHT" in str(source.needed_cells()), "as it says"))
        return verdicts

    monkeypatch.setattr(judging, "judge_student", judge_student)

    def grade(*notebooks: Cells) -> tuple[dict[int, GradedAnswer], dict]:
        student = hand_ins.student_of(tmp_path, notebooks)
        works = cmd_grade.student_work(LESSONS, None, student, None)
        (answers,) = works.values()
        records = CourseRecords(LESSONS, [(student, works)])
        (row,), page = gradebook.grade_rows(records), gradebook.render_page(records, student)
        undecided = sum(each.points is None for each in answers.values())
        assert page.count(gradebook.UNDECIDED) == undecided and ".csv" not in page
        assert page.count("Not yet.") + page.count("Right.") + undecided == len(answers)
        return {exercise.number: answer for exercise, answer in answers.items()}, row

    return grade


def answer(exercise: course.Exercise, name: str = "", said: str = "RIGHT") -> str:
    """The source of an answer: of a function with the given parameters, a kernel, or a value."""
    name = name or exercise.answer
    if match := re.match(r"def \w+(\(.*\):)", exercise.template):
        return f"def {name}{match[1]}\n    return {said}{exercise.number}"
    if answer_pattern(exercise) == hand_in.KERNEL:
        return f"{name} = '''\nmov r1.x, r0.y ; {said}{exercise.number}\nend\n'''"
    return f"{name} = {said}{exercise.number}"


def commented(source: str) -> str:
    return re.sub("(?m)^", "# ", source)


#: What becomes of the cell of the answer, its check and the end of the notebook
JUDGED = "place", "end", "above", "scratch", "renamed", "markdown", "raw", "in its check"
JUDGED += "fenced", "fenced code"
LISTED = "another name", "commented", "string", "in words"


def answered(cells: Cells, exercise: course.Exercise, way: str) -> None:
    """Put the right answer to an exercise into a notebook."""
    number, right = exercise.number, answer(exercise)
    (check,) = (cell for cell in cells if cell["source"] == exercise.check)
    place = next(
        cell
        for cell in cells
        if course.find_entry(cell).get("exercise") == number
        and course.find_entry(cell)["part"] == "answer"
    )
    renamed = answer(exercise, f"my_{exercise.answer}")
    in_place = {
        "end": place["source"],
        "above": place["source"],
        "in its check": place["source"],
        "renamed": renamed,
        "another name": renamed,
        "fenced": f"```python\n{right}\n```",
        "fenced code": f"```python\n{right}\n```",
        "commented": f"{place['source']}\n{commented(right)}",
        "string": f"{place['source']}\nmy_notes = {right!r}",
        "in words": f"{place['source']}\n{right}\nthis is my answer",
    }
    place_index = cells.index(place)
    place["source"] = in_place.get(way, right)
    if way in ("markdown", "raw", "fenced", "in words"):
        place["cell_type"] = "raw" if way == "raw" else "markdown"
    if way == "in its check":
        check["source"] = f"{right}\n{exercise.check}"
    if way == "renamed":
        check["source"] = exercise.check.replace(f"({exercise.answer}", f"(my_{exercise.answer}")
    new = {"cell_type": "code", "source": right, "metadata": {}, "outputs": [], "id": "new"}
    if way == "end":
        cells.append(new)
    if way == "above":
        cells.insert(place_index, new)
    if way == "scratch":
        cells.append(new | {"source": answer(exercise, said="wrong")})


@pytest.mark.parametrize("seed", range(20))
def test_each_answer_is_judged_or_listed_and_none_that_is_listed_has_a_zero(seed, graded):
    """Wherever it stands, and under whatever name."""
    chance = random.Random(seed)
    lesson = LESSONS[chance.choice([*LESSONS])]
    cells = deepcopy(lesson.cells)
    ways = {exercise.number: chance.choice([*JUDGED, *LISTED]) for exercise in lesson.exercises}
    for exercise in lesson.exercises:
        answered(cells, exercise, ways[exercise.number])
    if chance.random() < 0.4:
        cells = [cell | {"metadata": {}} for cell in cells]
    answers, row = graded(cells)
    for exercise in lesson.exercises:
        found, way = answers[exercise.number], ways[exercise.number]
        if way in JUDGED:
            assert found.points == row[exercise.name] == 1, (way, found)
            assert f"RIGHT{exercise.number}" in found.code
        elif not found.verdict.right:
            assert found.points is None and row[exercise.name] is None, (way, found)
            assert f"RIGHT{exercise.number}" in found.unseen
            told = re.search(r"([\d., and]+) may be answered by", row["status"])
            assert told and exercise.key in told[1]


def unnamed(exercise: course.Exercise) -> list[str]:
    """Right answers to an exercise under another name, or under none."""
    if "def " in exercise.template:
        return ["lambda *_: RIGHT", "other = lambda *_: RIGHT", "other = partial(RIGHT, 1)"]
    if answer_pattern(exercise) == hand_in.VALUE:
        return ["other = RIGHT", "other = replace(ck.HD5870, size=RIGHT)", "print(1024)  # RIGHT"]
    kernel = "'''\nmov r1.x, r0.y ; RIGHT\nend\n'''"
    forms = [
        kernel,
        f"other = {kernel}",
        'other = "RIGHT"',
        '"RIGHT"',
        'other = ck.kernels["RIGHT"]',
    ]
    forms += ['other = open("RIGHT.il").read()', 'ck.workbench(text="RIGHT")']
    call = f'ck.workbench(step="{exercise.step}", text="RIGHT")'
    calls = [call, f"other = {call}", f"a, b = {call}, 1", f"print({call}.text)", f"[{call}]"]
    calls += [call.replace("ck.", "from cypresskit import workbench\n")]
    calls += [call.replace("ck.workbench", "other = ck.workbench\nother")]
    return forms + calls * bool(exercise.step)


def placed(lesson: course.Lesson, exercise: course.Exercise, *sources: str) -> Cells:
    """The lesson's cells, with sources in place of the answer's cell."""
    cells = deepcopy(lesson.cells)
    (place,) = (n for n, cell in enumerate(cells) if cell["source"] == exercise.template)
    cells[place : place + 1] = [cells[place] | {"source": source} for source in sources]
    return cells


EXERCISES = [(stem, n) for stem, lesson in LESSONS.items() for n in range(len(lesson.exercises))]


@pytest.mark.parametrize(("stem", "number"), EXERCISES)
def test_an_answer_without_its_name_is_judged_or_listed(stem, number, graded):
    """In any lesson: beside the given cell, or in its place."""
    lesson = LESSONS[stem]
    exercise = lesson.exercises[number]
    for form in unnamed(exercise):
        for sources in ([form], [exercise.template, form], [form, exercise.template]):
            answers, row = graded(placed(lesson, exercise, *sources))
            found = answers[exercise.number]
            assert found.points == row[exercise.name] != 0, form
            assert form in found.unseen or "RIGHT" in found.code
            assert found.points or form in found.unseen
            is_counted = f'step="{exercise.step}"' in form and "other(" not in form
            assert found.points == (1 if is_counted and exercise.step else None), form


@pytest.mark.parametrize(("stem", "number"), EXERCISES)
def test_an_answer_that_was_split_is_one_answer(stem, number, graded):
    """At any line, as by Jupyter's Split Cell; the second cell may begin with a magic command."""
    lesson = LESSONS[stem]
    exercise = lesson.exercises[number]
    if exercise.step:
        right = f'{exercise.answer} = ck.workbench(\n    step="x",\n    text="RIGHT",\n)'
    else:
        right = exercise.template.replace("return ", "return RIGHT, ").replace("end\n", "RIGHT\n")
        lost = "\n    return RIGHT" if "def " in right else f"\n{exercise.answer} = RIGHT"
        right += lost * ("RIGHT" not in right)
    first, *rest = lines = right.splitlines()
    halves = [(lines[:at], lines[at:]) for at in range(1, len(lines))]
    if "def " in first:
        halves.append(([first], ["    %time 1", *rest]))
    for parts in halves:
        answers, _ = graded(placed(lesson, exercise, *map("\n".join, parts)))
        assert answers[exercise.number].points == 1, parts


@pytest.mark.parametrize(("stem", "number"), EXERCISES)
def test_lines_below_the_given_answer_are_listed(stem, number, graded):
    """Or judged as its end, if it has no return."""
    lesson = LESSONS[stem]
    exercise = lesson.exercises[number]
    lines = "    part_b = 2 * part_a\n    part_a += part_b"
    answers, _ = graded(placed(lesson, exercise, exercise.template, lines))
    found = answers[exercise.number]
    assert lines in (found.unseen or found.code) and (found.unseen or "return" not in found.code)


@pytest.mark.parametrize(("stem", "number"), EXERCISES)
def test_a_cell_that_begins_with_an_empty_line_is_a_cell(stem, number, graded):
    """A right answer counts, though a wrong one follows."""
    lesson = LESSONS[stem]
    exercise = lesson.exercises[number]
    wrong = "\n" + answer(exercise, said="WRONG")
    answers, _ = graded(placed(lesson, exercise, answer(exercise), wrong))
    assert answers[exercise.number].points == 1


IN_A_FILE = 'text = "a kernel"\nopen("k.il", "w").write(text)\n{} = ck.workbench("k.il")'
PUT_IN = '{0} = ck.workbench("k.il")\n{0}.text = "a kernel"'
SAVED = 'w = ck.workbench("k.il")\nw.save("a kernel")\n{0} = ck.workbench("k.il")'
SET = '{0} = ck.workbench("k.il")\nsetattr({0}, "text", "a kernel")'


@pytest.mark.parametrize("source", [IN_A_FILE, PUT_IN, SAVED, SET])
@pytest.mark.parametrize(("stem", "number"), EXERCISES)
def test_a_kernel_that_no_check_sees_is_listed(stem, number, source, graded):
    """It is in a file, or was put into a workbench."""
    lesson = LESSONS[stem]
    exercise = lesson.exercises[number]
    if exercise.step:
        answers, _ = graded(placed(lesson, exercise, source.format(exercise.answer)))
        assert answers[exercise.number].points is None


@pytest.mark.parametrize(
    "source", ["from my_answers import {}", "import my_answers\n{0} = my_answers.{0}"]
)
@pytest.mark.parametrize(("stem", "number"), EXERCISES)
def test_an_answer_that_is_in_a_module_is_listed(stem, number, source, graded):
    """It was handed in beside the notebook, or not at all."""
    lesson = LESSONS[stem]
    exercise = lesson.exercises[number]
    source = source.format(exercise.answer)
    answers, _ = graded(placed(lesson, exercise, source))
    assert answers[exercise.number].points is None and source in answers[exercise.number].unseen
    others = [each.points for number, each in answers.items() if number != exercise.number]
    assert not any(others) and None not in others


@pytest.mark.parametrize(("stem", "number"), EXERCISES)
def test_a_line_that_is_commented_out_is_listed(stem, number, graded):
    """Within a function that is judged, and is wrong."""
    lesson = LESSONS[stem]
    exercise = lesson.exercises[number]
    if "def " in exercise.template:
        head, *lines = answer(exercise, said="WRONG").splitlines()
        source = "\n".join([head, "    # return x + y", *lines])
        answers, _ = graded(placed(lesson, exercise, source))
        assert answers[exercise.number].points is None


def test_a_cell_is_not_seen_for_being_a_part_of_a_line_that_is_judged():
    """Of `limit = 160`, which is judged, `t = 16` is a part."""
    lesson, exercise = next(
        (lesson, exercise)
        for lesson in LESSONS.values()
        for exercise in lesson.exercises
        if answer_pattern(exercise) == hand_in.VALUE and len(exercise.answer) > 1
    )
    other = f"{exercise.answer[-1]} = 16"
    cells = placed(lesson, exercise, other, f"{exercise.answer} = 160")
    assert other in HandIn(cells, lesson).find_unseen(exercise).split("\n\n")


def test_what_is_not_answered_has_no_points(graded):
    """In a lesson as handed out, and where a student solved another exercise with a helper."""
    for lesson in LESSONS.values():
        answers, _ = graded(deepcopy(lesson.cells))
        assert {found.points for found in answers.values()} == {0}
    cells = deepcopy(BUS.cells)
    helper = "def helper(n):\n    return RIGHT"
    cells.insert(3, course.parse_cell({"cell_type": "code", "source": helper}))
    for cell in cells:
        if cell["source"] == BUS.exercises[0].template:
            cell["source"] += "\n    return helper(n)"
    answers, _ = graded(cells)
    assert [found.points for found in answers.values()] == [1, 0, 0]


def test_what_a_workbench_showed_is_told_whichever_version_counts(graded):
    lesson = LESSONS["02_why_blocks"]
    exercise = lesson.exercises[2]
    cells = deepcopy(lesson.cells)
    answered(cells, exercise, "end")
    held = {"step": exercise.step, "text": "wrong", "lines_shown": 2}
    for cell in cells:
        if cell["source"] == exercise.template:
            cell["outputs"] = [{"output_type": "display_data", "data": {steps.MIME: held}}]
    answers, _ = graded(cells)
    assert (answers[3].points, answers[3].lines_shown) == (1, 2)


def test_of_several_files_the_right_answer_counts(graded):
    first, second = deepcopy(BUS.cells), deepcopy(BUS.cells)
    answered(first, BUS.exercises[0], "another name")
    answered(second, BUS.exercises[0], "place")
    answers, _ = graded(first, second)
    assert [found.points for found in answers.values()] == [1, None, None]


def test_the_solutions_own_words_under_another_name_are_noticed():
    noticed = 0
    for lesson in LESSONS.values():
        parts = [(course.find_entry(cell), cell) for cell in lesson.cells]
        handed = [cell for cell in lesson.cells if course.is_handed_out(cell)]
        for exercise in lesson.exercises:
            for at, cell in parts:
                if (at.get("exercise"), at.get("part")) == (exercise.number, "solution"):
                    source = re.sub(rf"\b{exercise.answer}\b", "other", cell["source"])
                    own = {**cell, "source": source, "metadata": {}, "id": "own"}
                    if source != cell["source"] and re.search(answer_pattern(exercise), source):
                        assert HandIn([*handed, own], lesson).find_unseen(exercise)
                        noticed += 1
    assert noticed


IN_PLACE = {
    "LaTeX": ("markdown", r"$T = 3 \cdot 8 n^2 / B + 2 n^3 / F$"),
    "words": ("markdown", "Quelle: Nachbar"),
    "a picture": ("markdown", "![](attachment:photo.png)"),
    "a string": ("code", "'''\n3 * 8 * n**2 / B\n'''"),
    "a raw cell": ("raw", "3 n n / B"),
    "a number": ("code", "7"),
}


@pytest.mark.parametrize("form", IN_PLACE)
@pytest.mark.parametrize("is_stripped", [False, True])
def test_no_answer_has_a_zero_for_what_stands_in_its_place(is_stripped, form, graded):
    """Unless an answer was judged: in place of the given cell, above it, or below it."""
    chance = random.Random(form)
    kind, source = IN_PLACE[form]
    for lesson in LESSONS.values():
        exercise = chance.choice(lesson.exercises)
        given = exercise.template
        cells = placed(
            lesson, exercise, *chance.choice([[source], [source, given], [given, source]])
        )
        for cell in cells:
            if cell["source"] == source:
                cell |= {"cell_type": kind, "id": "own"}
        if is_stripped:
            cells = [cell | {"metadata": {}} for cell in cells]
        answers, row = graded(cells)
        assert answers[exercise.number].points is None, exercise.name
        assert source in answers[exercise.number].unseen and row[exercise.name] is None
        for other in lesson.exercises:
            is_any_value = (
                answer_pattern(other) == hand_in.VALUE
            )  # is in any formula, wherever it stands
            assert is_any_value or other is exercise or answers[other.number].points == 0
