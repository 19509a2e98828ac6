"""The page on which a teacher reads and decides: by keys, in two tabs, and nothing is lost."""

import pytest
from browsing import close_at_script_errors
from playwright.sync_api import expect
from readable import unreadable

from cypresskit.grading import course, gradebook, review
from cypresskit.grading.decisions import Decision, read_decisions
from cypresskit.grading.gradebook import CourseRecords, GradedAnswer
from cypresskit.grading.hand_in import HandIn
from cypresskit.grading.submissions import Student
from cypresskit.teach.check import Verdict

LESSONS = course.read_lessons()
BUS = LESSONS["09_bus"]
FIRST = BUS.exercises[0]
OTHERS = {
    ("gone", "09.1 answer"): Decision(1, "=late", "", "2026"),
    ("b", "09.1 why"): Decision(2, "", "another", "2026"),
}
NAMES = "=1+1", "b", "c", "d"


def make_student(student, text, said="told"):
    """A student who has written a sentence below the first exercise."""
    sentence = course.parse_cell({"cell_type": "raw", "source": text})
    cells = [*BUS.cells]
    cells.insert(1 + next(n for n, c in enumerate(cells) if FIRST.check in c["source"]), sentence)
    judged = [(exercise, Verdict(False, said)) for exercise in BUS.exercises]
    return Student(student, f"S {student}"), {
        "09_bus": gradebook.combine_answers(BUS, [HandIn(cells, BUS)], judged)
    }


def write(folder, *works, decisions=OTHERS):
    records = CourseRecords(LESSONS, [*works], dict(decisions))
    (folder / "review.html").write_text(review.render_review(records))
    return records


def class_of_four():
    """Two of them wrote the same."""
    return [make_student(name, f"because {min(number, 2)}") for number, name in enumerate(NAMES)]


@pytest.fixture
def tab(browser, tmp_path):
    """Opens the page in another tab of a browser of its own."""
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    errors = []

    def opened(hash=""):
        page = context.new_page()
        errors.append(close_at_script_errors(page))
        page.goto((tmp_path / "review.html").as_uri() + hash)
        page.wait_for_selector("article:focus")
        page.evaluate("new Promise((go) => setTimeout(go))")  # it shows its card anew once loaded
        return page

    yield opened
    context.close()
    assert not any(errors)


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def expect_kept(page, said):
    """What another tab has kept arrives a moment after this one has opened."""
    expect(page.locator("#kept")).to_contain_text(said)


def read_decided(folder):
    """What the tables hold, but for the times, which are those of the decisions."""
    found = read_decisions(folder)
    assert all(decision.when for decision in found.values())
    return {key: decision._replace(when="") for key, decision in found.items()}


def save_decisions(page, folder):
    """What the table holds that the page saves."""
    with page.expect_download() as download:
        page.click("#save")
    download.value.save_as(folder / "decisions.csv")
    return read_decided(folder)


def key_of(work):
    return work[1]["09_bus"].answers[FIRST].seen


def test_what_keys_decide_is_in_the_table(tab, tmp_path):
    """After a reload, in a closed tab's successor, and beside what the page has no place for."""
    works = class_of_four()
    write(tmp_path, *works)
    page = tab("#09.1")
    press(page, "2", "+", "1", "ArrowUp", "Enter", "=", "x", "Enter", "ArrowDown", "0")
    page.close()
    others = {key: decision._replace(when="") for key, decision in OTHERS.items()}
    page = tab()
    expect_kept(page, "3 decisions")
    assert save_decisions(page, tmp_path) == others | {
        ("=1+1", "09.1 why"): Decision(2, "", key_of(works[0])),
        ("b", "09.1 answer"): Decision(1, "", key_of(works[1])),
        ("b", "09.1 why"): Decision(1, "=x", key_of(works[1])),
        ("c", "09.1 why"): Decision(0, "", key_of(works[2])),
        ("d", "09.1 why"): Decision(0, "", key_of(works[3])),
    }


def test_tabs_show_what_another_decides(tab, tmp_path):
    write(tmp_path, *class_of_four())
    first, second = tab(), tab("#09.1")
    press(first, "2")
    second.wait_for_function("document.querySelector('.done')")
    press(second, "ArrowDown", "1")
    first.wait_for_function("document.querySelectorAll('.done').length == 2")
    found = save_decisions(first, tmp_path)
    assert [found[name, "09.1 why"].points for name in NAMES[:2]] == [2, 1]


def test_a_new_page_has_what_no_table_has_yet(tab, tmp_path):
    """Though another student shares the card now. What was on another text lapses, and what the
    table has is no longer the browser's.
    """
    works = class_of_four()
    write(tmp_path, *works)
    page = tab("#09.1")
    press(page, "2", "1", "0")
    decided = save_decisions(page, tmp_path)
    works = [make_student("=1+1", "another"), *works[1:], make_student("new", "because 2")]
    write(tmp_path, *works, decisions={})
    page = tab("#09.1")
    expect_kept(page, "2 decisions")
    read = save_decisions(page, tmp_path)
    assert ("=1+1", "09.1 why") not in read and read["new", "09.1 why"].points == 0
    assert read["b", "09.1 why"] == decided["b", "09.1 why"]
    write(tmp_path, *works, decisions=read)
    page = tab("#09.1")
    expect_kept(page, "in the table")
    left = page.evaluate("Object.keys(localStorage).filter(key => key.endsWith('why'))")
    assert [key.split()[-3:] for key in left] == [["'=1+1", "09.1", "why"]]


def test_of_two_tables_the_newer_decision_counts(tab, tmp_path):
    """Though the older table is the one that was saved last."""
    works, other = class_of_four(), tmp_path / "other"
    other.mkdir()
    before = {
        ("=1+1", "09.1 why"): Decision(1, "", "", "2026"),
        ("b", "09.1 why"): Decision(1, "", "", "2026"),
    }
    write(tmp_path, *works, decisions=before)
    page = tab("#09.1")
    press(page, "ArrowUp", "ArrowUp", "2")
    save_decisions(page, tmp_path)
    page.evaluate("localStorage.clear()")
    page.reload()
    page.wait_for_selector("article:focus")
    press(page, "ArrowUp", "0")
    save_decisions(page, other)
    (other / "decisions.csv").rename(tmp_path / "decisions (1).csv")
    assert [read_decided(tmp_path)[name, "09.1 why"].points for name in NAMES[:2]] == [2, 0]


def test_undo_brings_back_what_a_key_and_the_button_changed(tab, tmp_path):
    write(tmp_path, *class_of_four())
    page = tab("#09.1")
    press(page, "2", "-")
    page.click("section:not([hidden]) .rest")
    assert page.locator("article.done").count() == 3
    assert page.inner_text("#told") == "0 points for 2 cards. 0 left here."
    press(page, "u")  # though the button has the focus
    assert page.inner_text("#told") == "Undone: 2 cards. 2 left here."
    page.mouse.click(1350, 750)  # beside all
    press(page, "u", "u", "u", "u")
    assert page.inner_text("#told") == "Undone: S =1+1. 3 left here."
    assert page.locator("article.done").count() == 0
    assert "All decisions" in page.inner_text("#kept")


#: The card that gets keys, at its first line and its last field, isn't behind anything.
IS_SEEN = """() => {
  const card = document.querySelector("section:not([hidden]) article[aria-current]")
  const {x, y} = card.querySelector("b").getBoundingClientRect()
  return card.contains(document.elementFromPoint(x + 2, y + 2))
}"""


@pytest.mark.parametrize("height", [500, 768])
def test_a_key_decides_on_what_is_seen(height, tab, tmp_path):
    """Though the head unfolds, and the page was scrolled; cards are short, and longer than it."""
    works = [
        make_student(f"{n}", f"{n} because\n" + "it is so\n" * 40 * n, f"told {n}\n" * 9)
        for n in range(4)
    ]
    write(tmp_path, *works)
    page = tab("#09.1")
    page.set_viewport_size({"width": 1366, "height": height})
    assert page.evaluate(IS_SEEN)
    page.click("section:not([hidden]) summary")
    page.wait_for_function(IS_SEEN)
    for key in ("2", "ArrowDown", "ArrowUp", "ArrowUp", "u"):
        press(page, key)
        assert page.evaluate(IS_SEEN), key
    for scrolled in (0, 10**6):
        page.evaluate(f"scrollTo(0, {scrolled})")
    press(page, "1")  # brings the card
    assert page.evaluate(IS_SEEN) and page.locator("article.done").count() == 0
    press(page, "1")
    assert page.locator("article.done").count() == 1


def test_points_that_do_not_exist_are_marked_and_not_saved(tab, tmp_path):
    write(tmp_path, *class_of_four(), decisions={})
    page = tab("#09.1")
    for text, is_wrong in (("3", True), ("x", True), ("1,5", False)):
        page.fill("input[name$=why]", text)
        assert page.locator("[aria-invalid=true]").count() == is_wrong
        assert ("isn't kept" in page.inner_text("#told")) == is_wrong
        assert page.inner_text("#kept").startswith("1 decision") != is_wrong
    page.fill("input[name='09.1 answer']", "2")
    found = save_decisions(page, tmp_path)
    assert [found[key].points for key in found] == [1.5]


def test_a_browser_that_keeps_nothing_says_so(tab, tmp_path):
    write(tmp_path, *class_of_four())
    page = tab("#09.1")
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full') } }")
    press(page, "2")
    assert "in this tab alone" in page.inner_text("#kept")
    assert save_decisions(page, tmp_path)["=1+1", "09.1 why"].points == 2


def test_everybody_can_read_it(tab, tmp_path):
    """Keys go through all exercises, and a checker of accessibility finds nothing in any, nor on
    the page of a student, of whom lines are as handed out, and an answer is right.
    """
    student, works = make_student("g", f"{FIRST.template}\nbecause")
    answers = works["09_bus"].answers
    answers[BUS.exercises[1]] = GradedAnswer(Verdict(True, "told"))
    decisions = {("g", "09.1 why"): Decision(2)}
    records = write(tmp_path, (student, works), *class_of_four(), decisions=decisions)
    (tmp_path / "g.html").write_text(gradebook.render_page(records, student))
    page = tab()
    ids = [section.get_attribute("id") for section in page.locator("section").all()]
    for id in ids:
        expect(page.locator("section:not([hidden])")).to_have_attribute("id", id)
        assert not unreadable(page)
        press(page, "ArrowRight")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    page.goto((tmp_path / "g.html").as_uri())
    page.emulate_media(media="screen")
    assert page.locator("main").count() == 1 and not unreadable(page)
