"""A hand-in is its difference to the handout: all of it is on the teacher's page, in its place, and
the teacher's decisions overrule everything.
"""

import json
import os
import random
import re
from collections.abc import Callable
from copy import deepcopy
from html import escape
from itertools import permutations

import hand_ins
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from sampling import from_rows, seeded

from cypresskit import cli
from cypresskit.cli import cmd_grade
from cypresskit.grading import course, gradebook, handout, review
from cypresskit.grading.course import Cell
from cypresskit.grading.decisions import Decision, read_decisions, safe, unescaped
from cypresskit.grading.gradebook import CourseRecords, GradedAnswer, Work
from cypresskit.grading.hand_in import HandIn
from cypresskit.grading.submissions import Student
from cypresskit.teach.answer_source import AnswerSource
from cypresskit.teach.check import Verdict

LESSONS = course.read_lessons()
CHOSEN = course.select_notebooks(["00", "01", "05", "09"])
HANDED = {
    name.partition(".")[0]: course.parse_cells(text.encode())
    for name, text in handout.make_handouts(CHOSEN).items()
    if name[:2].isdigit()
}
BUS = LESSONS["09_bus"]


def bare(cells):
    """As Colab saves them: without ids and metadata."""
    return [cell | {"id": "None", "metadata": {}} for cell in cells]


def from_windows(cells):
    sources = [cell["source"].replace("\n", " \r\n") for cell in cells]
    return [cell | {"source": source} for cell, source in zip(cells, sources)]


FORMS: list[Callable[[list[Cell]], list[Cell]]] = [list, bare, from_windows]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stem", HANDED)
def test_what_is_as_handed_out_is_no_difference(stem, form):
    assert not HandIn(form(deepcopy(HANDED[stem])), LESSONS[stem]).cells


def test_the_solutions_are_a_difference():
    """Though the ids of their cells are as in a version that was handed out."""
    solved = course.parse_cells((course.CHECKOUT / "solutions/09_bus.ipynb").read_bytes())
    assert {cell.place for cell in HandIn(solved, BUS).cells} == {1, 2, 3}


def test_a_cell_of_an_older_version_is_no_difference():
    old = {"id": course.cell_id("Once"), "source": "Once", "cell_type": "markdown"}
    work = HandIn([*HANDED["09_bus"], course.parse_cell(old)], BUS)
    assert not work.cells


CONTENTS = "0", "=1+1", "<b>", "$\\beta \\times$", "def f(", "![](attachment:a.png)", "#", "\ud83d"


@pytest.mark.parametrize("form", FORMS[:2])
@seeded(20)
def test_whatever_differs_is_shown_in_its_place(seed, form):
    """A cell that is changed, or a new one of any kind, in any place or in every one."""
    chance = random.Random(seed)
    stem, often = chance.choice([*HANDED]), chance.choice([0.2, 1])
    cells, lesson = deepcopy(HANDED[stem]), LESSONS[stem]
    place, expected = 0, []
    made = []
    for cell in cells:
        if cell["cell_type"] == "markdown" and cell["source"].startswith("## "):
            place = course.find_entry(cell).get("exercise", 0)
        made.append(cell)
        if chance.random() < often:
            text = f"{chance.choice(CONTENTS)} {len(made)}"
            source = {"source": text, "cell_type": chance.choice(["code", "raw", "markdown"])}
            made.append(course.parse_cell(source))
            expected.append((place, course.parse_cell(source)["source"]))
    work = HandIn(form(made), lesson)
    assert [(cell.place, cell.text) for cell in work.cells] == expected
    student = Student("ada", "ada")
    for exercise in lesson.exercises:  # and answers, which stand in their cells
        for cell in made:
            entry = course.find_entry(cell)
            if (entry.get("exercise"), entry.get("part")) == (exercise.number, "answer"):
                cell["source"] += f"\n# mine {exercise.number}"
                expected.append((exercise.number, cell["source"]))
    work = HandIn(made, lesson)
    judged = [(exercise, Verdict(True, "x")) for exercise in lesson.exercises]
    records = CourseRecords(LESSONS)
    records.works.append((student, {stem: gradebook.combine_answers(lesson, [work], judged)}))
    shown = BeautifulSoup(review.render_review(records), "html.parser")
    page = gradebook.render_page(records, student)
    for section in shown.select("section"):
        number = int(section["id"].partition(".")[2] or 0)
        wanted = [text for where, text in expected if where == number]
        for label in section.select("pre small, article > div"):  # and what is elsewhere
            label.decompose()
        assert [cell.text for cell in section.select("pre")] == wanted
        assert number == 0 or bool(section.select("[data-empty]")) == (not wanted)
        assert number == 0 or all(escape(text) in page for text in wanted)


def answered(cells, part, source, number=1):
    """A lesson with another source in a part of an exercise."""
    cells = deepcopy(cells)
    for cell in cells:
        entry = course.find_entry(cell)
        if (entry.get("exercise"), entry.get("part")) == (number, part):
            cell["source"] = source
    return cells


GIVEN = HANDED["09_bus"]
RIGHT = answered(GIVEN, "answer", "seconds = 'RIGHT'")
LAST = course.parse_cell({"cell_type": "code", "source": "seconds = 'wrong'"})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "notebooks",
    [
        [RIGHT],
        [[*RIGHT, LAST]],  # below, outside of the exercise
        [[*RIGHT, *GIVEN]],
        [[*GIVEN, *RIGHT]],
        [RIGHT, GIVEN],
        [GIVEN, RIGHT],
        [[cell for cell in RIGHT if ".check_" not in cell["source"]]],
        [answered(GIVEN, "answer", "seconds = 'RIGHT'", number=3)],  # in another's place
        [
            answered(
                answered(GIVEN, "answer", "mine = 'RIGHT'"),
                "check",
                "ck.teach.bus.check_seconds(mine)",
            )
        ],
    ],
)
def test_what_the_name_means_in_its_exercise_is_judged(notebooks, form, tmp_path, monkeypatch):
    def judge(attempt):
        source = AnswerSource(attempt.cells, attempt.check[:-1].rpartition("(")[2])
        return "RIGHT" in f"{source.needed_cells()}"

    hand_ins.judge_by(monkeypatch, judge)
    student = hand_ins.student_of(tmp_path, map(form, notebooks))
    (work,) = cmd_grade.student_work(LESSONS, None, student, None).values()
    assert [answer.verdict.right for answer in work.answers.values()] == [True, False, False]


# -- cards


def cards_of(*hand_ins_, right=True, decisions=(), number=1):
    """The cards of an exercise, of students who each handed in some notebooks."""
    judged = [(exercise, Verdict(right, "told")) for exercise in BUS.exercises]
    works = [gradebook.combine_answers(BUS, notebooks, judged) for notebooks in hand_ins_]
    students = [Student(f"{n}", f"S{n}") for n, _ in enumerate(works)]
    records = CourseRecords(LESSONS, [(s, {"09_bus": w}) for s, w in zip(students, works)])
    records.decisions = dict(decisions)
    page = BeautifulSoup(review.render_review(records), "html.parser")
    return page.find(id=BUS.exercises[number - 1].key).select("article")


def test_sentences_come_first_then_answers_and_last_what_is_as_handed_out():
    answer = answered(GIVEN, "answer", "a = 1")
    works = [[HandIn(made, BUS)] for made in (GIVEN, answer, answered(answer, "sentence", "bus"))]
    for order in permutations(range(3)):
        cards = cards_of(*[works[n] for n in order], right=False)
        people = [json.loads(card["data-people"]) for card in cards]
        assert [order[int(number)] for ((number, *_),) in people] == [2, 1, 0]


@pytest.mark.parametrize("sentence", ["", "the bus"])
@pytest.mark.parametrize("right", [True, False])
def test_students_who_wrote_the_same_share_a_card(right, sentence):
    """But for spaces, and for the code of right answers beside a sentence, which is folded."""

    def wrote(answer, why):
        cells = answered(GIVEN, "answer", answer)
        return [HandIn(answered(cells, "sentence", why) if why else cells, BUS)]

    works = [wrote("a = 1", sentence), wrote("a  =  1\n", sentence), wrote("b", sentence)]
    cards = cards_of(*works, right=right)
    folded = right and bool(sentence)
    counts = [len(json.loads(card["data-people"])) for card in cards]
    assert sorted(counts) == ([3] if folded else [1, 2])
    assert [re.findall(r"\((\d+)\)", card.header.text) for card in cards] == [
        [f"{count}"] * (count > 1) for count in counts
    ]
    assert all(bool(card.details) == folded for card in cards)
    codes = {cell.text for card in cards for cell in card.select("pre")}
    assert codes - {sentence} == {"a = 1", "b"} | ({"a  =  1"} if folded else set())


@given(
    st.lists(
        st.none()
        | st.builds(
            Decision,
            st.none() | st.sampled_from([0.0, 2.0]),
            st.sampled_from(["", "x"]),
            st.just(""),
            st.sampled_from(["1", "2"]),
        ),
        min_size=2,
        max_size=4,
    ),
    st.booleans(),
)
def test_of_equal_work_those_share_a_card_who_have_equal_points_and_remarks(found, is_untouched):
    """Whenever these were decided, and if only some have any."""
    work = HandIn(GIVEN if is_untouched else answered(GIVEN, "sentence", "the bus"), BUS)
    decisions = {(f"{n}", "09.1 why"): each for n, each in enumerate(found) if each}
    cards = cards_of(*[[work]] * len(found), right=False, decisions=decisions)
    assert len(cards) == len({(each or Decision())[:2] for each in found})


@pytest.mark.parametrize("where", ["check", "sentence", "answer", "end"])
def test_a_sentence_that_may_be_elsewhere_is_seen(where):
    """Students who have none in the section, and other words elsewhere, share no card and no key.
    Answers are no such words; and with a sentence in the section, nothing else is.
    """
    for own in ("", "mine"):
        works = []
        for text in ("one", "two"):
            cells = [*answered(GIVEN, "answer", "b = 1", number=2)]
            cells = answered(cells, "sentence", own, number=2) if own else cells
            if where == "end":
                cells.append(course.parse_cell({"cell_type": "raw", "source": text}))
            works.append([HandIn(answered(cells, where, text), BUS)])
        cards = cards_of(*works, number=2, right=False)
        is_seen = not own and where != "answer"
        seen = {key for card in cards for *_, key in json.loads(card["data-people"])}
        assert len(cards) == len(seen) == 1 + is_seen
        texts = [
            "".join(cell.find_all(string=True, recursive=False))
            for card in cards
            for cell in card.select("div pre")
        ]
        assert texts == ["one", "two"] * is_seen


def test_a_cell_names_its_file_if_there_are_several():
    first, second = (
        HandIn(answered(GIVEN, "answer", text), BUS, file)
        for text, file in (("a", "one.ipynb"), ("b", "two.ipynb"))
    )
    texts = [
        [cell.text for cell in card.select("pre")] for card in cards_of([first], [second, first])
    ]
    assert sorted(texts) == [["a"], ["two.ipynbb", "one.ipynba"]]


def test_a_line_is_gray_only_where_it_was_handed_out():
    """One that is known from another place is the student's own."""
    other = next(line for line in BUS.exercises[1].template.splitlines() if line.startswith("def"))
    own = BUS.exercises[0].template + "\n" + other
    (card,) = cards_of([HandIn(answered(GIVEN, "answer", own), BUS)], right=False)
    gray = [line.text for line in card.select("pre i")]
    assert other not in gray and gray == [*filter(str, own.splitlines())][:-1]


@pytest.mark.parametrize("made", [False, True])
def test_what_is_decided_while_answers_are_judged_counts(made, tmp_path, monkeypatch, capsys):
    """A table that can't be read then is named, and takes nothing back."""
    hand_ins.save(tmp_path / "in/ada.ipynb", RIGHT)

    def judge(_):
        table(
            tmp_path / "out", "ada,09.1 answer,1,\ngone,09.1 why,1,\n" if made else "ada,09.1,1,\n"
        )
        return False

    hand_ins.judge_by(monkeypatch, judge)
    assert cli.main(["grade", str(tmp_path / "in"), str(tmp_path / "out")]) == (not made)
    assert ("wasn't handed in: gone 09.1 why" in capsys.readouterr().out) == made
    page = (tmp_path / "out/feedback/ada.html").read_text()
    assert ("gives this answer 1 of 1" in page) == made


# -- decisions


def records_of(count=3, **options):
    """A class of which each has changed the first exercise alone."""
    records = CourseRecords(LESSONS, **options)
    for number in range(count):
        student = Student("=1+1" if number == 0 else f"{number}", f"S{number}")
        work = HandIn(answered(RIGHT, "sentence", f"because {number}"), BUS)
        judged = [(exercise, Verdict(False, "told")) for exercise in BUS.exercises]
        records.works.append((student, {"09_bus": gradebook.combine_answers(BUS, [work], judged)}))
    return records


def table(folder, text, name="decisions.csv"):
    (folder / name).write_text(f"id,exercise,points,remark\n{text}")


def test_decisions_overrule_and_reach_the_page(tmp_path):
    records = records_of()
    assert records.waiting() == 3 and not records.is_graded(BUS.exercises[0])
    table(
        tmp_path,
        '\'=1+1,09.1 answer,1,not <b>\n1,09.1 why,2,\n2,09.1 why,"1,5",\n1,09 added,-10,late\n',
    )
    records.decisions = read_decisions(tmp_path)
    rows = [*gradebook.grade_rows(records)]
    assert [row["total"] for row in rows] == [20.0, 3.3, 10.0]
    assert [row["waiting"] for row in rows] == [1, 0, 0]
    pages = [gradebook.render_page(records, student) for student, _ in records.works]
    assert "not &lt;b&gt;" in pages[0] and "told" in pages[0] and "late" in pages[1]
    assert [page.count("Your teacher:") for page in pages] == [1, 0, 0], "with a remark alone"
    good = escape(BUS.exercises[0].good)
    assert not any(good in page for page in pages)
    table(tmp_path, "=1+1,09.1 why,0,\n1,09.1 why,0,\n", "decisions (1).csv")
    os.utime(tmp_path / "decisions.csv", (1, 1))  # the older one
    records.decisions = read_decisions(tmp_path)
    assert records.decisions["1", "09.1 why"].points == 0
    assert all(good in gradebook.render_page(records, student) for student, _ in records.works)


def test_an_exercise_that_is_answered_elsewhere_waits():
    student = Student("ada", "ada")
    for right in (False, True):
        answers = dict.fromkeys(BUS.exercises, GradedAnswer(Verdict(right, "told")))
        records = CourseRecords(LESSONS, [(student, {"09_bus": Work(answers)})])
        assert records.waiting() == 3 * right
        shown = review.render_review(records)
        assert shown.count("data-empty>") == (1 if right else 4)  # outside of the exercises: one


def test_a_decision_holds_for_what_was_seen_alone():
    records = records_of(1)
    ((student, works),) = records.works
    exercise, answer = next(iter(works["09_bus"].answers.items()))
    for seen, points in (("", 2.0), (answer.seen, 2.0), ("another", None)):
        records.decisions = {(student.id, exercise.why_key): Decision(2.0, "", seen)}
        assert records.explanation_points(student, exercise, answer) == points


@from_rows
def test_a_table_that_cannot_be_read_is_named(text, said, tmp_path):
    table(tmp_path, text)
    with pytest.raises(ValueError, match=re.escape(said)):
        read_decisions(tmp_path)


@given(st.text("=+-@'; \n0.5ab", max_size=8))
def test_a_cell_of_a_table_is_read_as_it_was_written(text):
    """And a spreadsheet runs nothing of it."""
    assert unescaped(safe(text)) == text
    assert safe(text).lstrip()[:1] not in {*"=+-@"}


@pytest.mark.parametrize(
    "line", ["# {}(old)", "'{}(old)'", 'print("""\n{}(old)\n""")', "{}(nothing_sets_it)"]
)
def test_only_a_call_of_a_name_that_is_set_says_which_is_judged(line):
    (exercise, *_) = BUS.exercises
    check, _, _ = exercise.check.partition("(")
    cells = deepcopy(HANDED["09_bus"])
    cell = next(cell for cell in cells if cell["source"].strip() == exercise.check)
    cell["source"] += "\n" + line.format(check)
    (attempt,) = HandIn(cells, BUS).attempts(exercise)
    assert attempt.check == f"{check}({exercise.answer})"


@from_rows
def test_a_table_that_a_spreadsheet_saved_is_read(coding, ends, tmp_path):
    rows = ["id", "exercise", "points", "remark"], ["Jörg", "09.1 why", "1.5", "so"]
    (tmp_path / "decisions.csv").write_bytes("\n".join(map(ends.join, rows)).encode(coding))
    assert read_decisions(tmp_path)["Jörg", "09.1 why"][:2] == (1.5, "so")


def test_a_table_without_a_column_is_named(tmp_path):
    (tmp_path / "decisions.csv").write_text("nonsense\n1\n")
    with pytest.raises(ValueError, match="lacks a column"):
        read_decisions(tmp_path)
