"""The tables of a class: which lessons and exercises count, what Moodle and Canvas import, and the
commonest wrong answers.
"""

import csv
import random
import re
from html import unescape

import pytest
from hand_ins import LESSONS, PYTHON, answer_exercise, judge_by, rows, save
from sampling import from_rows

from cypresskit import cli
from cypresskit.grading import course, gradebook, submissions

NAMES = ["Ada L", "Jörg Ø", "=cmd()", "O'Neil, Pat", "İpek"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """An answer is right if it says so."""
    judge_by(monkeypatch, lambda attempt: "right" in "".join(attempt.cells))


def put(path, stem="09_bus", **parts):
    """Save a lesson with other sources of these parts of each exercise."""
    cells = LESSONS[stem].cells
    for number in 1, 2, 3:
        cells = answer_exercise(cells, number, **parts)
    save(path, cells)


def grade(*arguments):
    return cli.main(["grade", *map(str, arguments)])


# -- which exercises count


@from_rows
def test_only_the_exercises_that_are_asked_for_count(options, counted, tmp_path, capsys):
    own = {"answer": "right = 1", "sentence": 'ck.teach.explanation("my own words, here")'}
    put(tmp_path / "in/ada/a.ipynb", **own)
    put(tmp_path / "in/ada/b.ipynb", "10_larger", **own)
    assert grade(tmp_path / "in", tmp_path / "out", *options) == 0
    (row,) = rows(tmp_path / "out/grades.csv")
    columns = [re.match(r"(\d\d) .*, exercise (\d+):(?!.*, explanation)", name) for name in row]
    assert [f"{match[1]}.{match[2]}" for match in columns if match] == counted
    lessons = {name[:2] for name in counted}
    assert float(row["total"]) == 60 * len(lessons)
    assert float(row["maximum"]) == 100 * len(lessons)
    assert f"The maximum is {100 * len(lessons)}, 100 for each" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["09.9", "9.1", "09", "x", "09.01", "99.1", "²", "10.1"])
def test_an_exercise_that_does_not_exist_or_count_is_named(name, tmp_path, capsys):
    put(tmp_path / "in/a.ipynb")
    options = ["--exercises", f"09.1,{name}", *["--lessons", "09"] * (name == "10.1")]
    assert grade(tmp_path / "in", tmp_path / "out", *options) == 1
    assert name.split(".")[0] in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_the_maximum_is_explained_by_who_handed_in_what(tmp_path, capsys):
    for name in "abc":
        put(tmp_path / f"in/{name}/09.ipynb")
    put(tmp_path / "in/c/10.ipynb", "10_larger")
    assert grade(tmp_path / "in", tmp_path / "out") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "maximum" in line]
    assert "200" in line
    assert "09 The bus (3 students)" in line and "10 Larger than the card (1 student)" in line


def test_a_single_notebook_is_graded(tmp_path, capsys):
    """Alone, whatever lies beside it; of a file that is none it is said to unpack it."""
    put(tmp_path / "Ada's bus.ipynb", answer="right = 1")
    put(tmp_path / "other.ipynb")
    assert grade(tmp_path / "Ada's bus.ipynb", tmp_path / "out") == 0
    (row,) = rows(tmp_path / "out/grades.csv")
    assert (row["id"], row["total"]) == ("Ada's bus", "60.0")
    (tmp_path / "all.zip").write_bytes(b"PK")
    assert grade(tmp_path / "all.zip", tmp_path / "new") == 1
    assert "unpack it" in capsys.readouterr().err


@pytest.mark.parametrize("stem", ["01_register_block", "09_bus"])
@pytest.mark.parametrize("is_cleared", [False, True])
@pytest.mark.parametrize("version", ["3.99.1", "3.11.0", "x", None])
def test_what_may_cost_a_right_answer_its_point_is_reported(version, is_cleared, stem, tmp_path):
    """Outputs were cleared, in which workbenches save kernels; or a newer Python ran it."""
    cleared = {"outputs": []} if is_cleared else {}
    cells = [cell | cleared for cell in LESSONS[stem].cells]
    metadata = {"language_info": {"version": version}}
    save(tmp_path / "in/ada/a.ipynb", cells, metadata=metadata)
    assert grade(tmp_path / "in", tmp_path / "out") == 0
    (row,) = rows(tmp_path / "out/grades.csv")
    exercises = LESSONS[stem].exercises
    steps = sum(bool(exercise.step) for exercise in exercises) * is_cleared
    assert "outputs" not in row["status"], "the file was read"
    for page in (tmp_path / "out/review.html", tmp_path / "out/feedback/ada.html"):
        text = page.read_text()
        assert text.count("The notebook has no outputs") == steps
        newer = len(exercises) * (version == "3.99.1")
        assert text.count(f"Python 3.99 ran the notebook, and Python {PYTHON} judged it") == newer
    assert [row[exercise.name] for exercise in exercises] == ["0"] * len(exercises)


def test_a_lesson_that_does_not_count_is_named(tmp_path):
    """And lessons of one file, of which the first alone is judged."""
    put(tmp_path / "in/ada/a.ipynb", "10_larger")
    stems = "09_bus", "10_larger", "05_texture_cache"
    merged = [cell for stem in stems for cell in LESSONS[stem].cells]
    save(tmp_path / "in/bob/c.ipynb", merged)
    (tmp_path / "in/ada/b.ipynb").write_bytes(b"PK\x03\x04")
    assert grade(tmp_path / "in", tmp_path / "out", "--lessons", "09") == 0
    row, other = rows(tmp_path / "out/grades.csv")
    shown = unescape((tmp_path / "out/review.html").read_text())
    for words, status in (
        ("c.ipynb was read as lesson 09 alone, but has parts of 05 and 10", other["status"]),
        ("a.ipynb wasn't read: it is lesson 10, which doesn't count", row["status"]),
        (course.PACKED, row["status"]),
    ):
        assert words in status and words in shown
    assert row["total"] == ""


# -- tables to import


def deliver(chance, folder, system):
    """What Moodle or Canvas delivered, or others: each student's name by number."""
    expected = {}
    for work, number in enumerate(chance.sample(range(1, 99_999), 8)):
        name, late = f"{chance.choice(NAMES)} {work}", chance.choice(["", "LATE_"])
        plain = re.sub(r"\W", "", name.lower())
        path = {
            "Moodle": f"{name}_{number}_assignsubmission_file"
            + chance.choice(["/09_bus.ipynb", "_my_09_bus.ipynb"]),
            "Canvas": f"{plain}_{late}{number}_{88 + work}_09_bus-2.ipynb",
            "essays": f"essay_2_1_{work}.ipynb",
            "": f"student {number}/x.ipynb",
        }[system]
        put(folder / path, answer=chance.choice(["right = 1", "x = 1"]))
        if system == "Canvas" and chance.random() < 0.5:  # they typed a text there, or gave a link
            kind = chance.choice(["text", "link"])
            (folder / f"{plain}_{late}{number}_{kind}.html").write_text("my notebook")
        expected[str(number)] = plain if system == "Canvas" else name
    return expected


IMPORTED = {  # a student's row
    submissions.MOODLE: lambda id, name, grade: {
        "Identifier": f"Participant {id}",
        "Grade": grade,
        "Last modified (grade)": "",
    },
    submissions.CANVAS: lambda id, name, grade: {
        "Student": name,
        "ID": id,
        "Section": "",
        "09 The bus": grade,
    },
}


@pytest.mark.parametrize("system", [submissions.MOODLE, submissions.CANVAS, "essays", ""])
def test_moodle_and_canvas_get_the_tables_that_they_import(system, tmp_path):
    """With each of their students, by number, and the total. Others get none, and each file has
    its student.
    """
    expected = deliver(random.Random(system), tmp_path / "in", system)
    out = tmp_path / "out"
    out.mkdir()
    for name in ("moodle.csv", "canvas.csv", gradebook.REVIEW):
        (out / name).touch()  # of an earlier run
    assert grade(tmp_path / "in", out) == 0
    grades = {row["id"]: row["total"] * (row["waiting"] == "0") for row in rows(out / "grades.csv")}
    assert len(grades) == 8
    for kind, row_of in IMPORTED.items():
        path = out / f"{kind.lower()}.csv"
        assert path.exists() == (kind == system)
        lines = path.read_text().splitlines() if kind == system else []  # no mark before them
        wanted = [row_of(id, expected[id], grade) for id, grade in grades.items() if lines]
        assert [*csv.DictReader(lines)] == wanted


def test_who_is_not_in_a_system_s_table_is_named(tmp_path, capsys):
    put(tmp_path / "in/Ada_7_assignsubmission_file/x.ipynb")
    put(tmp_path / "in/Bob.ipynb")
    assert grade(tmp_path / "in", tmp_path / "out") == 0
    assert "Not in the table for Moodle, by their names: Bob" in capsys.readouterr().out
    put(tmp_path / "in2/ada_7_81_x.ipynb")
    put(tmp_path / "in2/Bob.ipynb")
    assert grade(tmp_path / "in2", tmp_path / "out2") == 0
    assert "No table for Canvas, which gives no names such as Bob" in capsys.readouterr().out
    assert not (tmp_path / "out2/canvas.csv").exists()


def test_who_handed_in_nothing_that_can_be_judged_gets_no_grade_to_import(tmp_path):
    (tmp_path / "in/Ada_7_assignsubmission_file").mkdir(parents=True)
    put(tmp_path / "in/Bob_8_assignsubmission_file/x.ipynb", answer="right = 1")
    assert grade(tmp_path / "in", tmp_path / "out") == 0
    assert [row["Grade"] for row in rows(tmp_path / "out/moodle.csv")] == ["", ""]
    grades = rows(tmp_path / "out/grades.csv")
    assert [row["total"] for row in grades] == ["", "60.0"]
    pages = {path.name[0]: path.read_text() for path in tmp_path.glob("out/feedback/*")}
    assert "<h1>Ada: no grade</h1>" in pages["A"] and "60 of 100" in pages["B"]


def test_a_file_of_moodle_has_the_same_student_as_its_folders(tmp_path):
    for name in ("file_09.ipynb", "onlinetext_onlinetext.html", "file"):
        path = tmp_path / f"Ada L_4711_assignsubmission_{name}"
        put(path / "10.ipynb" if name == "file" else path)
    (student,), _ = submissions.find_students(tmp_path)
    assert (student.id, student.name, len(student.notebooks)) == ("4711", "Ada L", 2)
