"""Each sentence that is in a hand-in is read as its exercise's explanation, or listed. No exercise
gets a 0 for a sentence that is somewhere in the file.
"""

import json
import random
import re
from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import hand_ins
import pytest

from cypresskit.cli import cmd_grade
from cypresskit.editing import steps
from cypresskit.grading import course, gradebook, handout, judging
from cypresskit.grading.gradebook import CourseRecords
from cypresskit.teach import explanations
from cypresskit.teach.check import Verdict
from cypresskit.teach.explanations import MAX_CHARACTERS

LESSONS = course.read_lessons()
BUS = LESSONS["09_bus"]

Cells = list[course.Cell]


class Graded(NamedTuple):
    """What a teacher is shown of one student's work on a lesson."""

    texts: dict[int, str]  #: explanations, by exercise
    points: dict[int, float | None]  #: None: an empty cell, for the teacher to judge
    status: str
    page: str
    table: str  #: explanations.csv

    @property
    def has_others(self) -> bool:
        """Whether the status says that there are texts outside of the explanations."""
        return gradebook.LISTED.split("{}")[1] in self.status


@pytest.fixture
def graded(tmp_path, monkeypatch) -> Callable[..., Graded]:
    """Grades notebooks of a lesson, whose answers are all right."""

    def judge_student(attempts, *_) -> list[Verdict]:
        return [Verdict(True, "fine")] * len(attempts)

    monkeypatch.setattr(judging, "judge_student", judge_student)

    def grade(*notebooks: Cells) -> Graded:
        student = hand_ins.student_of(tmp_path, notebooks)
        works = cmd_grade.student_work(LESSONS, None, student, None)
        records = CourseRecords(LESSONS, [(student, works)])
        (answers,) = works.values()
        points = {e.number: records.explanation_points(e, a) for e, a in answers.items()}
        texts = {e.number: a.explanation for e, a in answers.items()}
        (row,), page = gradebook.grade_rows(records), gradebook.render_page(records, student)
        rows = gradebook.explanation_rows(records)
        table = "\n".join(f"{row['explanation']}\n{row[gradebook.BESIDE]}" for row in rows)
        return Graded(texts, points, row["status"], page, table)

    return grade


def sentence_cell(source: str, kind: str = "code", **more) -> course.Cell:
    return course.parse_cell({"cell_type": kind, "source": source, **more})


def with_sentences(*sources: str, lesson: course.Lesson = BUS) -> Cells:
    """The lesson's cells, with these in the places of the explanations."""
    cells = deepcopy(lesson.cells)
    places = [cell for cell in cells if course.find_entry(cell).get("part") == "sentence"]
    for place, source in zip(places, sources):
        place["source"] = source
    return cells


# -- the plain cases


CALLS = {
    "as handed out": 'ck.teach.explanation("""\n{}\n""")',
    "single quotes": "ck.teach.explanation('''{}''')",
    "one line": 'ck.teach.explanation("{}")  # done',
    "by name": 'from cypresskit.teach import explanation\nexplanation("{}")',
    "timed": '%%time\nck.teach.explanation("{}")\n!ls',
    "a variable": 'text = "{}"\nck.teach.explanation(text)',
    "a sum": 'end = "{}"\nck.teach.explanation("" + end)',
    "joined": 'ck.teach.explanation(""\n    "{}")',
    "a format": 'text, n = 1, 2\ntext = "{}"\nck.teach.explanation(f"""{{text}}""")',
}


@pytest.mark.parametrize("form", CALLS)
@pytest.mark.parametrize("is_stripped", [False, True])
def test_a_call_in_its_exercise_is_the_explanation(form, is_stripped, graded):
    """With the cells' metadata and the headings, or by the checks alone."""
    said = {number: f"my own words, number {number} (so)" for number in (1, 2, 3)}
    cells = with_sentences(*(CALLS[form].format(text) for text in said.values()))
    if is_stripped:
        cells = [cell | {"metadata": {}} for cell in cells if not cell["source"].startswith("## ")]
    seen = graded(cells)
    assert seen.texts == said and not seen.has_others
    assert set(seen.points.values()) == {None}


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        (['a = "slow "', 'ck.teach.explanation(a + "bus")'], "slow bus"),
        (['a = "slow "', 'a = "fast "', 'ck.teach.explanation(a + "bus")'], "fast bus"),
        (["n = 9", 'ck.teach.explanation(f"{n} times {0.5}")'], "9 times 0.5"),
        (['ck.teach.explanation(text="slow")'], "slow"),
        (['a = "slow"', 'ck.teach.explanation("%s bus, %d" % (a, 9))'], "slow bus, 9"),
        (["ck.teach.explanation('{} {b}'.format('slow', b='bus'))"], "slow bus"),
        (['a = b = "so"', 'b = f"{a} {b}"', "ck.teach.explanation(b)"], "so so"),
        (["n = 9", 'ck.teach.explanation(f"{len(ck.kernels)} texels, {n}")'],)
        + ("{len(ck.kernels)} texels, 9",),
        (['a = f"{n:>9} words" + "so"', "ck.teach.explanation(a)"], "{n:>9} wordsso"),
        (['ck.teach.explanation("waits " + str(n))'], "waits {str(n)}"),
        (["ck.teach.explanation({'why': 'it waits'})"], "{'why': 'it waits'}"),
        (['ck.teach.explanation(("it", 2))'], "('it', 2)"),
    ],
)
def test_the_text_has_the_value_that_python_gives_it(cells, value, graded):
    kept = with_sentences("\n".join(cells))
    assert graded(kept).texts[1] == value
    place = next(n for n, cell in enumerate(kept) if cell["source"].endswith(cells[-1]))
    kept[place]["source"] = cells[-1]
    earlier = [sentence_cell(source) for source in cells[:-1]]
    assert graded([*kept[:place], *earlier, *kept[place:]]).texts[1] == value


@pytest.mark.parametrize(
    "cell",
    [
        'a = "so"\nfor a in ["is it slow"]:\n    ck.teach.explanation(a)',
        'a = "so"\na += " is it slow"\nck.teach.explanation(a)',
        'a = "so"\nif a:\n    a = "is it slow"\nck.teach.explanation(a)',
        'a, b = "so", "is it slow"\nck.teach.explanation(b)',
        'ck.teach.explanation("{:>99999999999}".format("is it slow"))',
        'ck.teach.explanation("%99999999999s" % "is it slow")',
        'd = {}\nd["so"] = "is it slow"\nck.teach.explanation(d)',
        'd = ["so"]\nd.append("is it slow")\nck.teach.explanation(d)',
        'd = "so"\ndef f(d):\n    ck.teach.explanation(d)\nf("is it slow")',
        'ck.teach.explanation("is it slow", "so")',
        'ck.teach.explanation("", "is it slow")',
        'ck.teach.explanation("%d is it slow" % len("so"))',
        "ck.teach.explanation(" + '"is it slow" + ' * 3000 + '"")',
    ],
)
def test_a_value_that_only_a_run_would_give_is_listed_with_its_texts(cell, graded):
    seen = graded(with_sentences(cell))
    assert seen.texts[1].startswith(gradebook.ELSEWHERE) and "is it slow" in seen.texts[1]
    assert seen.has_others and seen.points[1] is None


def formula(chance: random.Random, depth: int = 3) -> str:
    """An expression of texts, as a student may put one together."""
    if not depth or chance.random() < 0.3:
        return chance.choice(
            ["'slow bus'", "a", "b", "9", "0.5", "'{}'", "'%s, so'", "'50 %'", "''"]
        )
    left, right = (formula(chance, depth - 1) for _ in range(2))
    forms = (
        *("{} + {}", "{} % {}", "{}.format({})", "f'{{{}}} {{{}}}'", "{} % ({}, 1)", "({} {})"),
        *("'{{0}} {{x}}'.format({}, x={})", "{} * {}", "{}.strip({})", "f'{{{}!r:>9}}' + {}"),
    )
    return f"({chance.choice(forms).format(left, right)})"


@pytest.mark.parametrize("seed", range(10))
def test_a_text_is_what_python_makes_of_it_or_has_the_source_of_the_rest(seed, monkeypatch):
    """A source stands where its value would stand."""
    monkeypatch.setattr(explanations.ast, "unparse", lambda _: "source")
    chance = random.Random(seed)
    names = {"a": "it waits", "b": "for {}"}
    read = 0
    for _ in range(300):
        source = formula(chance)
        cell = f"a, c = 1, 2\na = 'it waits'\nb = 'for {{}}'\nexplanation({source})"
        try:
            expected = str(eval(source, dict(names)))
        except Exception:
            continue
        ((found, is_read),) = explanations.find_calls(cell, {})
        pieces = found.split("{source}")
        assert re.fullmatch(".*".join(map(re.escape, pieces)), expected, re.S), source
        assert is_read == bool("".join(pieces).strip())
        read += "{source}" not in found
    assert read > 50


def test_a_cell_that_was_handed_out_is_no_student_s_in_any_version(graded):
    """Its id tells: an older lesson has other lines."""
    cells = deepcopy(BUS.cells)
    for source in ("An older sentence of this lesson.", 'print("an older question")  # and so on'):
        cells.insert(4, sentence_cell(source, "markdown", id=f"{course.cell_id(source)}-2"))
        cells.insert(4, sentence_cell(source, id=course.cell_id(source)))
    assert not graded(cells).has_others
    cells[4]["source"] += "\n# my own words"
    assert "my own words" in graded(cells).table


def test_the_code_of_an_answer_is_no_text(graded):
    """Even if it isn't Python, or was put into Markdown; its comments are."""
    code = "def seconds(n, bandwidth, rate):\n    total = 3 * n  # as often as it takes\n"
    code += "    for each in (1, 2):\n        total += 24 * n**2\n    return total"
    kernel = "mine = '''\nil_ps_2_0\nmad r1.x, r2.y, l8.z ; the slow one\n'''"
    for kind, source in [("code", f"{code}\n)"), ("markdown", code), ("code", f"{code}\n{kernel}")]:
        table = graded([*deepcopy(BUS.cells), sentence_cell(source, kind)]).table
        assert "as often as it takes" in table and "total" not in table and "r2" not in table
        assert ("the slow one" in table) == (kernel in source)


def test_a_text_that_doubles_itself_is_cut(graded):
    cell = 'a = "is it slow"\n' + "a = a + a\n" * 60 + "ck.teach.explanation(a)"
    text = graded(with_sentences(cell)).texts[1]
    assert text.startswith("is it slowis it slow") and len(text) == MAX_CHARACTERS


# -- all others are listed


def everything(text: str) -> str:
    """A text without what quotes, wraps and marks change."""
    return re.sub(r"(\\n|[\W_])+", "", text.casefold())


OTHERS = {
    "in Markdown": ("markdown", "{}"),
    "in a list": ("markdown", "- {}"),
    "in raw text": ("raw", "{}"),
    "a turned cell": ("markdown", 'ck.teach.explanation("""\n{}\n""")'),
    "a comment below": ("code", 'ck.teach.explanation("""\n\n""")\n# {}'),
    "a comment beside": ("code", 'ck.teach.explanation("")  # {}'),
    "a second string": ("code", 'ck.teach.explanation("""\n\n""")\n"""{}"""'),
    "a string's name": ("code", 'why = "{}"'),
    "printed": ("code", 'print("{}")'),
    "prose": ("code", "{}"),
    "no quotes": ("code", "ck.teach.explanation({})"),
    "open quotes": ("code", 'ck.teach.explanation("""\n{}'),
    "a lost call": ("code", '{}\n""")'),
    "odd quotes": ("code", 'ck.teach.explanation(""{}"")'),
    "a cell's magic": ("code", "%%markdown\n{}"),
    "a command": ("code", "x = 1\n!echo {}"),
    "a heading": ("markdown", "### {}"),
}


@pytest.mark.parametrize("form", OTHERS)
def test_a_text_without_its_call_is_listed_and_left_to_the_teacher(form, graded):
    kind, source = OTHERS[form]
    cells = with_sentences('ck.teach.explanation("for the first")')
    (place,) = [
        cell for cell in cells if course.find_entry(cell) == {"exercise": 2, "part": "sentence"}
    ]
    place |= {"cell_type": kind, "source": source.format("the bus is only half as busy")}
    seen = graded(cells)
    assert seen.has_others
    assert seen.texts[1] == "for the first" and seen.points[2] is None
    assert "the bus is only half as busy" in seen.texts[2]
    assert (seen.texts[3], seen.points[3]) == ("", 0.0), "its cell is surely of exercise 2"
    assert seen.page.count(gradebook.UNWRITTEN) == seen.page.count("0 of 2 points") == 1


def test_a_text_that_may_be_of_any_exercise_leaves_no_zero(graded):
    """In a new cell, in one that was merged, or in a second call."""
    said = "the bus is only half as busy"
    for source in (f"# {said}", f'ck.teach.explanation("{said}")', f'"""{said}"""'):
        seen = graded([*deepcopy(BUS.cells), sentence_cell(source)])
        assert all(said in text for text in seen.texts.values()) and 0.0 not in seen.points.values()


@pytest.mark.parametrize("stem", LESSONS)
def test_a_text_of_no_exercise_is_shown_whole_once(stem, graded):
    """In the first exercise that lacks an explanation; the others name that one."""
    said = "the bus is only half as busy, " * 5 + "so it waits"
    for explained in ([], ["ck.teach.explanation('my own words')"]):
        cells = with_sentences(*explained, lesson=LESSONS[stem])
        seen = graded([*cells, sentence_cell(said, "markdown")])
        assert seen.table.count(said) == 1 and seen.table.count(said[:60]) > 1
        assert seen.table.count("as in exercise") == len(seen.texts) - len(explained) - 1
        assert set(seen.points.values()) == {None}


def test_each_text_of_no_exercise_is_shown_whole_once(graded):
    """Also if it stands beside another text, which only one exercise may have."""
    said, own = "the bus is only half as busy, " * 5 + "so it waits", "# my own words, for two"
    cells = with_sentences("# for the first one", own)
    table = graded([*cells, sentence_cell(said, "markdown")]).table
    assert table.count(said) == table.count("my own words") == 1


@pytest.mark.parametrize("stem", LESSONS)
def test_what_is_no_text_of_the_student_s_is_not_listed(stem, graded):
    """Lines of the given kernel, a file's name, and installing a package."""
    lesson = LESSONS[stem]
    lines = ["!pip install numpy scipy", "%pip install numpy scipy", 'open("my_squares.il")']
    for step in filter(None, (exercise.step for exercise in lesson.exercises)):
        given = steps.STEPS[step].starter
        assert "'''" not in given
        lines += [f"other = '''\n{given}'''"]
        assert not graded([*deepcopy(lesson.cells), sentence_cell(given, "markdown")]).has_others
    for line in lines:
        assert not graded([*deepcopy(lesson.cells), sentence_cell(line)]).has_others, line


@pytest.mark.parametrize("stem", LESSONS)
def test_translated_headings_are_no_texts(stem, graded):
    """But one with more words may be."""
    cells = [cell | {"metadata": {}} for cell in deepcopy(LESSONS[stem].cells)]
    headed = [cell for cell in cells if cell["source"].startswith("## ")]
    for cell in headed:
        first, *rest = cell["source"].split("\n")
        turned = re.sub("[a-zA-Z]{3,}", lambda word: word[0][::-1], first)
        cell["source"] = "\n".join([turned, *rest])
    assert not graded(deepcopy(cells)).has_others
    headed[-1]["source"] = headed[-1]["source"].replace("\n", " because it waits\n", 1)
    assert "because it waits" in graded(cells).table


def test_an_exercise_with_two_calls_has_both(graded):
    """Unless they have the same text. No word of the table is on the student's page."""
    cells = with_sentences('ck.teach.explanation("it is slow")')
    place = next(n for n, cell in enumerate(cells) if "it is slow" in cell["source"])
    seen = graded([*cells[:place], deepcopy(cells[place]), *cells[place:]])
    assert seen.texts[1] == "it is slow" and not seen.has_others
    cells.insert(place, sentence_cell('ck.teach.explanation("it waits")'))
    seen = graded(cells)
    assert seen.texts[1] == f"{gradebook.ELSEWHERE} it waits / it is slow"
    assert "<q>it waits / it is slow</q>" in seen.page


SHORT = {
    "a word": ("markdown", "Bandbreitenverhältnis!"),
    "printed": ("code", "print('Bus', 'slow')"),
    "a word in quotes": ("code", 'answer = "Wartezeit"'),
    "a comment": ("code", "ck.teach.explanation('''\n\n''')  # Latenz"),
    "a formula": ("code", "N_balance / N = 1/9"),
    "LaTeX": ("markdown", r"$N = 9 N_b \Rightarrow 9 / (9 + 1)$"),
    "a picture": ("markdown", "![](attachment:photo.png)"),
}


@pytest.mark.parametrize("form", SHORT)
@pytest.mark.parametrize("is_stripped", [False, True])
def test_no_explanation_has_a_zero_for_what_stands_in_its_place(form, is_stripped, graded):
    kind, source = SHORT[form]
    for lesson in LESSONS.values():
        for n, exercise in enumerate(lesson.exercises):
            cells = with_sentences(*(["ck.teach.explanation('')"] * n), source, lesson=lesson)
            for cell in cells:
                if cell["source"] == source:
                    cell |= {"cell_type": kind}
                if is_stripped:
                    cell["metadata"] = {}
            seen = graded(cells)
            others = {key: points for key, points in seen.points.items() if key != exercise.number}
            assert seen.points[exercise.number] is None, exercise.name
            assert set(others.values()) <= {0.0}


def test_a_lesson_as_handed_out_has_nothing_to_list(graded):
    """And an explanation that is missing has no points."""
    handouts = handout.make_handouts(course.select_notebooks([stem[:2] for stem in LESSONS][::2]))
    handouts |= handout.make_handouts(course.select_notebooks(["09", "13"]))
    del handouts[handout.GLOSSARY]
    books = [lesson.cells for lesson in LESSONS.values()]
    for cells in [*books, *(json.loads(text)["cells"] for text in handouts.values())]:
        seen = graded(deepcopy(cells))
        assert not seen.has_others and set(seen.points.values()) == {0.0}
        assert not any(seen.texts.values())


@pytest.mark.parametrize(
    "form", ["{}. {}", "{}) {}", "- ({}) {}", "({}) {}", "{}: {}", "* {}", "{}\n"]
)
def test_of_a_list_each_line_is_listed(form, graded):
    said = [f"the bus is slow for the {n} time, so it waits" for n in ("first", "next", "last")]
    lines = [form.format(*(n, text)[-form.count("{}") :]) for n, text in enumerate(said, 1)]
    cells = [*deepcopy(BUS.cells), sentence_cell("## My answers\n" + "\n".join(lines), "markdown")]
    assert [text for text in said if text not in graded(cells).table] == []


def test_what_stands_in_an_exercise_that_does_not_count_is_not_listed(graded, monkeypatch):
    """But what may be another's is, wherever it stands."""
    counts = course.select_exercises(LESSONS, ["09.1", "09.3"])
    monkeypatch.setitem(globals(), "LESSONS", counts)
    cells = deepcopy(BUS.cells)
    (place,) = (cell for cell in cells if cell["source"] == BUS.exercises[1].template)
    place["source"] += "  # this is slow"
    seen = graded(cells)
    assert not seen.has_others and set(seen.points.values()) == {0.0}
    cells.insert(cells.index(place), sentence_cell("# the bus is slow"))
    seen = graded(cells)
    assert seen.has_others and all("the bus is slow" in text for text in seen.texts.values())


def test_code_alone_is_no_text(graded):
    cells = deepcopy(BUS.cells)
    cells.append(
        sentence_cell('x = {"float64": 1}  # 24\nck.simulate("sgemm_tn", 64)  # n\nx != 3')
    )
    assert set(graded(cells).points.values()) == {0.0}


def test_of_two_files_the_last_explanation_counts_and_the_other_is_listed(graded):
    first, last = (with_sentences(f'ck.teach.explanation("the {n} one")') for n in "ab")
    seen = graded(first, last)
    assert seen.texts[1] == "the b one" and "the a one" in seen.table
    assert not graded(first, deepcopy(BUS.cells)).has_others
    assert graded(first, deepcopy(BUS.cells)).texts[1] == "the a one"


HUGE = (
    *("x", "\n", " ", "%", "'", "#", "ab ", "1 ", "(", "a.", "a+", "# a\n", "explanation("),
    *("('ab cd')\n", "[", "[]("),
)


@pytest.mark.parametrize("part", HUGE)
@pytest.mark.parametrize("kind", ["code", "markdown"])
def test_a_cell_of_any_text_is_read(part, kind, graded):
    """It may be long, and made of what is hard to read."""
    cell = sentence_cell(part * (course.MAX_CELL_CHARACTERS // len(part)), kind)
    seen = graded([*deepcopy(BUS.cells), cell, cell])
    assert len(seen.status) < 1_000


# -- whatever was done to the notebook


WORDS = (
    "because the bus is slow, (so) each block reads: l'été größer 因为 x2 a_b 9th % it's".split()
)
CALL_FORMS = {
    "bare": lambda text: f"from x import explanation\nexplanation({text!r})",
    "printed": lambda text: f"print(ck.teach.explanation(text={text!r}))",
    "unknown": lambda text: f"ck.teach.explanation({' '.join(text.split())!r}.title())",
    "called": lambda text: f"explanation(f'{{len(text)}} {' '.join(text.split())}, {{n}}')",
    "two": lambda text: f'explanation("", {text!r})',
    "by another word": lambda text: f"explanation(sentence={text!r})",
    "in a loop": lambda text: f"for one in ({text!r},):\n    explanation(one)",
    "parts": lambda text: f"explanation('%d: ' % f(9) + {text!r})",
    "sum": lambda text: f"b = {text[7:]!r}\nexplanation({text[:7]!r} + f'{{b}}')",
    "twice": lambda text: f'ck.teach.explanation("")\nck.teach.explanation({text!r})',
    "unquoted": lambda text: f"ck.teach.explanation({text})",
}
PLACES = "place", "place", "answer", "check", "end", "one cell"


def sentence(chance: random.Random, number: int) -> str:
    """A sentence of random words on some lines, which no other exercise has."""
    words = [f"number no{number} so", *chance.choices(WORDS, k=chance.randrange(3, 20))]
    return "".join(word + chance.choice("      \n") for word in words).strip()


def written(chance: random.Random, text: str) -> tuple[str, str]:
    """A cell's kind and source, with a text in some form."""
    form = chance.choice([*CALLS, *OTHERS, *CALL_FORMS])
    if form in CALL_FORMS:
        return "code", CALL_FORMS[form](text)
    kind, source = OTHERS.get(form, ("code", CALLS.get(form, "")))
    if "#" in source and '"{}"' not in source:
        text = text.replace("\n", "\n# ")
    if source.startswith("##"):
        text = " ".join(text.split())
    if source.startswith("x = 1"):
        text = " ".join(text.split())  # a command ends with its line
    return kind, source.format(text)


def translated(cell: course.Cell) -> course.Cell:
    """A Markdown cell whose words were translated."""
    swapped = re.sub(r"[a-zA-Z]{3,}", lambda word: word[0][::-1], cell["source"])
    return cell | {"source": swapped} if cell["cell_type"] == "markdown" else cell


def handed_in(chance: random.Random, lesson: course.Lesson) -> tuple[Cells, dict[int, str]]:
    """A notebook of a lesson with a sentence on each exercise, somewhere; and these sentences."""
    said = {exercise.number: sentence(chance, exercise.number) for exercise in lesson.exercises}
    where = {number: chance.choice(PLACES) for number in said}
    cells: Cells = []
    at_end: Cells = []
    is_translated = chance.random() < 0.3
    for cell in deepcopy(lesson.cells):
        cell = translated(cell) if is_translated else cell
        entry = course.find_entry(cell)
        part, number = entry.get("part"), entry.get("exercise", 0)
        kind, source = written(chance, said.get(number, ""))
        if part == "sentence" and where[number] == "place":
            cell |= {"cell_type": kind, "source": source}
        elif part == where.get(number) and kind == "code":
            cell["source"] = chance.choice(
                [f"{cell['source']}\n{source}", f"{source}\n{cell['source']}"]
            )
        elif part == "answer" and where.get(number, "place") != "place":
            if where[number] == "one cell" and at_end:
                at_end[-1]["source"] += f"\n\n{source}"
            else:
                at_end.append(sentence_cell(source, kind))
        cells.append(cell)
        if part == where.get(number) == "check" and kind != "code":
            cells.append(sentence_cell(source, kind))
    chance.shuffle(at_end)
    return cells + at_end, said


def mistreated(chance: random.Random, cells: Cells) -> Cells:
    """A notebook that was stripped, merged or rearranged, or not."""
    if chance.random() < 0.4:
        cells = [cell | {"metadata": {}} for cell in cells]
    if chance.random() < 0.2:
        cells = [cell for cell in cells if not cell["source"].startswith("## ")]
    while chance.random() < 0.4:
        first = chance.randrange(1, len(cells) - 3)
        *same, _ = chosen = cells[first : first + chance.randrange(2, 6)]
        merged = same[0] | {"source": "\n\n".join(cell["source"] for cell in chosen)}
        cells = [*cells[:first], merged, *cells[first + len(chosen) :]]
    if chance.random() < 0.1:
        first, *rest = cells
        cells = [first, *chance.sample(rest, len(rest))]
    return cells


@pytest.mark.parametrize("seed", [*range(40), 1157])
def test_each_sentence_is_its_exercise_s_or_listed_and_no_listed_one_has_no_points(seed, graded):
    """Wherever it stands, and whatever was done to the notebook."""
    chance = random.Random(seed)
    lesson = LESSONS[chance.choice([*LESSONS])]
    cells, said = handed_in(chance, lesson)
    cells = mistreated(chance, cells)
    seen = graded(cells)
    shown = everything(seen.table)
    assert not re.search(r"\.csv|again|command", re.sub("<(q|pre).*?</", "", seen.page, flags=re.S))
    for text in said.values():
        assert everything(text[7:]) in shown, (text, seen)
    if any(text.startswith(gradebook.ELSEWHERE) for text in seen.texts.values()):
        assert seen.has_others
