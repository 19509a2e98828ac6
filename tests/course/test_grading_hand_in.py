"""A hand-in is its difference to the handout: all of it is on the teacher's page, in its place, and
the teacher's decisions overrule everything.
"""

import json
import os
import random
import re
from collections.abc import Callable
from html import escape
from itertools import permutations

import pytest
from bs4 import BeautifulSoup
from hand_ins import (
    BUS,
    GIVEN,
    HANDED_OUT,
    LESSONS,
    SOLVED,
    answer_exercise,
    class_of,
    judge_by,
    pages_of,
    save,
    work_of,
)
from hypothesis import given
from hypothesis import strategies as st
from sampling import from_rows, seeded

from cypresskit import cli
from cypresskit.cli import cmd_grade
from cypresskit.grading import course, gradebook, review
from cypresskit.grading.course import Cell
from cypresskit.grading.decisions import Decision, read_decisions, safe, unescaped
from cypresskit.grading.hand_in import HandIn
from cypresskit.grading.submissions import Student
from cypresskit.teach.answer_source import AnswerSource


def from_colab(cells):
    """As Colab saves them: without ids and metadata."""
    return [cell | {"id": "None", "metadata": {}} for cell in cells]


def from_windows(cells):
    sources = [cell["source"].replace("\n", " \r\n") for cell in cells]
    return [cell | {"source": source} for cell, source in zip(cells, sources)]


FORMS: list[Callable[[list[Cell]], list[Cell]]] = [list, from_colab, from_windows]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stem", HANDED_OUT)
def test_what_is_as_handed_out_is_no_difference(stem, form):
    assert not HandIn(form(HANDED_OUT[stem]), LESSONS[stem]).cells


def test_the_solutions_are_a_difference():
    """Though the ids of their cells are as in a version that was handed out."""
    assert {cell.place for cell in HandIn(SOLVED, BUS).cells} == {1, 2, 3}


def test_a_cell_of_an_older_version_is_no_difference():
    old = {"id": course.cell_id("Once"), "source": "Once", "cell_type": "markdown"}
    work = HandIn([*GIVEN, course.parse_cell(old)], BUS)
    assert not work.cells


CONTENTS = "0", "=1+1", "<b>", "$\\beta \\times$", "def f(", "![](attachment:a.png)", "#", "\ud83d"


@pytest.mark.parametrize("form", FORMS[:2])
@seeded(20)
def test_whatever_differs_is_shown_in_its_place(seed, form):
    """A cell that is changed, or a new one of any kind, in any place or in every one."""
    chance = random.Random(seed)
    stem, often = chance.choice([*HANDED_OUT]), chance.choice([0.2, 1])
    lesson = LESSONS[stem]
    place, expected = 0, []
    cells = []
    for cell in HANDED_OUT[stem]:
        if cell["cell_type"] == "markdown" and cell["source"].startswith("## "):
            place = course.find_entry(cell).get("exercise", 0)
        cells.append(cell)
        if chance.random() < often:
            text = f"{chance.choice(CONTENTS)} {len(cells)}"
            kind = chance.choice(["code", "raw", "markdown"])
            own = course.parse_cell({"source": text, "cell_type": kind})
            cells.append(own)
            expected.append((place, own["source"]))
    assert [(own.place, own.text) for own in HandIn(form(cells), lesson).cells] == expected
    for exercise in lesson.exercises:  # and answers, which stand in their cells
        answer = f"{exercise.template}\n# mine {exercise.number}"
        cells = answer_exercise(cells, exercise.number, answer=answer)
        expected.append((exercise.number, answer))
    records = class_of({stem: work_of(lesson, HandIn(cells, lesson))})
    (page,) = pages_of(records)
    review_page = BeautifulSoup(review.render_review(records), "html.parser")
    for section in review_page.select("section"):
        number = int(section["id"].partition(".")[2] or 0)
        wanted = [text for where, text in expected if where == number]
        for label in section.select("pre small, article > div"):  # and what is elsewhere
            label.decompose()
        assert [cell.text for cell in section.select("pre")] == wanted
        assert number == 0 or bool(section.select("[data-empty]")) == (not wanted)
        assert number == 0 or all(escape(text) in page for text in wanted)


RIGHT = answer_exercise(GIVEN, answer="seconds = 'RIGHT'")
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
        [answer_exercise(GIVEN, 3, answer="seconds = 'RIGHT'")],  # in another's place
        [answer_exercise(GIVEN, answer="mine = 'RIGHT'", check="ck.teach.bus.check_seconds(mine)")],
    ],
)
def test_what_the_name_means_in_its_exercise_is_judged(notebooks, form, tmp_path, monkeypatch):
    def judge(attempt):
        source = AnswerSource(attempt.cells, attempt.check[:-1].rpartition("(")[2])
        return "RIGHT" in f"{source.needed_cells()}"

    judge_by(monkeypatch, judge)
    for number, cells in enumerate(notebooks):
        save(tmp_path / f"{number}.ipynb", form(cells))
    student = Student("ada", "ada", sorted(tmp_path.iterdir()))
    (work,) = cmd_grade.student_work(LESSONS, None, student, None).values()
    assert [answer.verdict.right for answer in work.answers.values()] == [True, False, False]


# -- cards


def records_of(*hand_ins, right=False):
    """The records of students who each handed in some notebooks of lesson 09."""
    return class_of(*({"09_bus": work_of(BUS, *own, right=right)} for own in hand_ins))


def cards_of(*hand_ins, right=False, decisions=(), number=1):
    """The cards of an exercise, of students who each handed in some notebooks."""
    records = records_of(*hand_ins, right=right)
    records.decisions = dict(decisions)
    page = BeautifulSoup(review.render_review(records), "html.parser")
    return page.find(id=BUS.exercises[number - 1].key).select("article")


def test_sentences_come_first_then_answers_and_last_what_is_as_handed_out():
    parts = {}, {"answer": "a = 1"}, {"answer": "a = 1", "sentence": "bus"}
    works = [[HandIn(answer_exercise(GIVEN, **own), BUS)] for own in parts]
    for order in permutations(range(3)):
        cards = cards_of(*[works[n] for n in order])
        people = [json.loads(card["data-people"]) for card in cards]
        assert [order[int(number)] for ((number, *_),) in people] == [2, 1, 0]


@pytest.mark.parametrize("sentence", ["", "the bus"])
@pytest.mark.parametrize("right", [True, False])
def test_students_who_wrote_the_same_share_a_card(right, sentence):
    """But for spaces, and for the code of right answers beside a sentence, which is folded."""

    parts = {"sentence": sentence} if sentence else {}
    answers = "a = 1", "a  =  1\n", "b"
    works = [[HandIn(answer_exercise(GIVEN, answer=text, **parts), BUS)] for text in answers]
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
def test_equal_work_with_equal_points_and_remarks_shares_a_card(decisions, is_untouched):
    """Whenever these were decided, and if only some have any."""
    work = HandIn(GIVEN if is_untouched else answer_exercise(GIVEN, sentence="the bus"), BUS)
    named = {(f"{n}", "09.1 why"): each for n, each in enumerate(decisions) if each}
    cards = cards_of(*[[work]] * len(decisions), decisions=named)
    assert len(cards) == len({(each or Decision())[:2] for each in decisions})


@pytest.mark.parametrize("where", ["check", "sentence", "answer", "end"])
def test_a_sentence_that_may_be_elsewhere_is_seen(where):
    """Students who have none in the section, and other words elsewhere, share no card and no key.
    Answers are no such words; and with a sentence in the section, nothing else is.
    """
    for own in ("", "mine"):
        works = []
        for text in ("one", "two"):
            sentence = {"sentence": own} if own else {}
            cells = answer_exercise(GIVEN, 2, answer="b = 1", **sentence)
            if where == "end":
                cells.append(course.parse_cell({"cell_type": "raw", "source": text}))
            works.append([HandIn(answer_exercise(cells, **{where: text}), BUS)])
        cards = cards_of(*works, number=2)
        is_seen = not own and where != "answer"
        keys = {key for card in cards for *_, key in json.loads(card["data-people"])}
        assert len(cards) == len(keys) == 1 + is_seen
        texts = [
            "".join(cell.find_all(string=True, recursive=False))
            for card in cards
            for cell in card.select("div pre")
        ]
        assert texts == ["one", "two"] * is_seen


def test_a_cell_names_its_file_if_there_are_several():
    first, second = (
        HandIn(answer_exercise(GIVEN, answer=text), BUS, file)
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
    (card,) = cards_of([HandIn(answer_exercise(GIVEN, answer=own), BUS)])
    gray = [line.text for line in card.select("pre i")]
    assert other not in gray and gray == [*filter(str, own.splitlines())][:-1]


def table(folder, text, name="decisions.csv"):
    (folder / name).write_text(f"id,exercise,points,remark\n{text}")


@pytest.mark.parametrize(
    ("text", "is_readable"),
    [("ada,09.1 answer,1,\ngone,09.1 why,1,\n", True), ("ada,09.1,1,\n", False)],
)
def test_what_is_decided_while_answers_are_judged_counts(
    text, is_readable, tmp_path, monkeypatch, capsys
):
    """A table that can't be read then is named, and takes nothing back."""
    save(tmp_path / "in/ada.ipynb", RIGHT)

    def judge(_):
        table(tmp_path / "out", text)
        return False

    judge_by(monkeypatch, judge)
    assert cli.main(["grade", str(tmp_path / "in"), str(tmp_path / "out")]) == (not is_readable)
    assert ("wasn't handed in: gone 09.1 why" in capsys.readouterr().out) == is_readable
    page = (tmp_path / "out/feedback/ada.html").read_text()
    assert ("gives this answer 1 of 1" in page) == is_readable


# -- decisions


def make_explained(count):
    """The records of students who have changed the first exercise alone."""
    sentences = [f"because {number}" for number in range(count)]
    return records_of(*([HandIn(answer_exercise(RIGHT, sentence=text), BUS)] for text in sentences))


def test_decisions_overrule_and_reach_the_page(tmp_path):
    records = make_explained(3)
    records.works[0][0].id = "=1+1"
    assert records.waiting() == 3 and not records.is_graded(BUS.exercises[0])
    table(
        tmp_path,
        '\'=1+1,09.1 answer,1,not <b>\n1,09.1 why,2,\n2,09.1 why,"1,5",\n1,09 added,-10,late\n',
    )
    records.decisions = read_decisions(tmp_path)
    rows = [*gradebook.grade_rows(records)]
    assert [row["total"] for row in rows] == [20.0, 3.3, 10.0]
    assert [row["waiting"] for row in rows] == [1, 0, 0]
    pages = pages_of(records)
    assert "not &lt;b&gt;" in pages[0] and "a message" in pages[0] and "late" in pages[1]
    assert [page.count("Your teacher:") for page in pages] == [1, 0, 0], "with a remark alone"
    assert [page.count("Your teacher gives") for page in pages] == [1, 0, 0]
    good = escape(BUS.exercises[0].good)
    assert not any(good in page for page in pages)
    table(tmp_path, "=1+1,09.1 why,0,\n1,09.1 why,0,\n", "decisions (1).csv")
    os.utime(tmp_path / "decisions.csv", (1, 1))  # the older one
    records.decisions = read_decisions(tmp_path)
    assert records.decisions["1", "09.1 why"].points == 0
    assert all(good in page for page in pages_of(records))


def test_an_exercise_that_is_answered_elsewhere_waits():
    for right, empty in (False, 4), (True, 1):  # outside of the exercises: one
        records = records_of([HandIn(GIVEN, BUS)], right=right)
        assert records.waiting() == 3 * right
        assert review.render_review(records).count("data-empty>") == empty


def test_a_decision_holds_for_what_was_seen_alone():
    records = make_explained(1)
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
    cells = answer_exercise(GIVEN, check=f"{exercise.check}\n{line.format(check)}")
    (attempt,) = HandIn(cells, BUS).attempts(exercise)
    assert attempt.check == f"{check}({exercise.answer})"


@pytest.mark.parametrize("coding, ends", [("cp1252", ";"), ("utf-8-sig", ","), ("utf-16", "\t")])
def test_a_table_that_a_spreadsheet_saved_is_read(coding, ends, tmp_path):
    rows = ["id", "exercise", "points", "remark"], ["Jörg", "09.1 why", "1.5", "so"]
    (tmp_path / "decisions.csv").write_bytes("\n".join(map(ends.join, rows)).encode(coding))
    assert read_decisions(tmp_path)["Jörg", "09.1 why"][:2] == (1.5, "so")


def test_a_table_without_a_column_is_named(tmp_path):
    (tmp_path / "decisions.csv").write_text("nonsense\n1\n")
    with pytest.raises(ValueError, match="lacks a column"):
        read_decisions(tmp_path)
