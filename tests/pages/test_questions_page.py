"""The slides of the lecture's questions: the answer comes after a key."""

import re

from browsing import close_at_script_errors
from readable import unreadable
from repository import ROOT

from tools import questions_page

QUESTIONS = questions_page.read_questions(questions_page.QUESTIONS.read_text())
KEYS = [question.key for question in QUESTIONS]


def test_each_question_has_one_right_answer_and_reasons_against_the_others():
    lessons = sorted(path.stem[:2] for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))
    assert KEYS == [f"{lesson}.{number}" for lesson in lessons for number in (1, 2, 3)]
    for question in QUESTIONS:
        assert [answer.is_right for answer in question.answers].count(True) == 1, question.key
        assert all(answer.why or answer.is_right for answer in question.answers), question.key


def test_an_answer_comes_after_a_key(browser, tmp_path):
    questions_page.write(tmp_path / "slides.html")
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    errors = close_at_script_errors(page)
    page.goto((tmp_path / "slides.html").as_uri())
    shown = "document.querySelector('section:not([hidden])').innerText"
    tells = f"() => [{shown}, innerHeight - document.body.scrollHeight]"
    for key in KEYS[:4]:
        page.keyboard.press("PageDown")
        asked, room = page.evaluate(tells)
        page.keyboard.press(" ")
        answered, more = page.evaluate(tells)
        question = QUESTIONS[KEYS.index(key)]
        assert page.evaluate("location.hash") == f"#{key}" and room >= 0 <= more
        assert len(asked.split("\n")) < len(answered.split("\n")) and len(asked) < len(answered)
        assert len(re.split("\n+", asked.strip())) == 2 + len(question.answers)
    assert not unreadable(page)
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(tells)[0] == asked
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("location.hash") == f"#{KEYS[2]}"
    page.close()
    assert not errors
