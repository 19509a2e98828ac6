"""The documentation's site: built once, its links followed, its pages opened from disk in
Chromium.
"""

import os
import re
import subprocess
import sys

import pytest
from needs import demand
from playwright.sync_api import expect
from readable import play_all, unreadable
from repository import ROOT
from sampling import by_day

from tools.gallery import VIEWS, read_lesson
from tools.site import faults

#: The command of `make docs`, which takes the parts that run Python from a site that has them.
BUILD = """
import shutil, sys
from pathlib import Path
from tools import bench_page, site, workbook

def take(folder, ran=()):
    shutil.copytree(Path(MADE, folder.name), folder)

bench_page.write_page = workbook.write_workbook = take
sys.exit(site.main())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory, once, pytestconfig, python_site, timed_once):
    """The site, built by the command that `make docs` gives."""
    made, problem = python_site

    def build():
        folder = tmp_path_factory.mktemp("docs") / "site"
        given = os.path.relpath(folder, pytestconfig.rootpath)  # as in the Makefile
        run = ["-m", "tools.site"] if problem else ["-c", BUILD.replace("MADE", repr(str(made)))]
        command = [sys.executable, *run, given]
        built = subprocess.run(command, cwd=pytestconfig.rootpath, capture_output=True, text=True)
        return folder, built.stdout + built.stderr if built.returncode else ""

    folder, faults = once("site", build)
    assert not faults  # with its dead links
    return folder


def test_pages_for_readers_have_an_icon_and_no_developers_words(site):
    pages = {file.relative_to(site).as_posix(): file for file in site.rglob("*.html")}
    texts = {name: file.read_text() for name, file in pages.items()}
    ours = {name for name in texts if not re.match("workbook/.*/", name)}  # JupyterLite's
    assert not [name for name in ours if not re.search(r'rel="(shortcut )?icon"', texts[name])]
    for name in ("index.html", "docs/figures.html", "docs/il.html", "docs/views.html"):
        assert not re.findall(r"python -m tools|gflops_max|\w+_(?:pct|gain)\b", texts[name]), name


#: The pages that no file of text is the source of, and those that are made of one, or of a picture.
BUILT = ["index", "bench/index", "workbook/index"]
TEXTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("notebooks/*.ipynb")]
NAMES = {path.relative_to(ROOT).with_suffix("").as_posix() for path in TEXTS}
MADE = sorted(NAMES - {"docs/package", "docs/answers", "docs/questions"})
MADE += [f"pictures/{name}" for name in VIEWS]


@pytest.mark.parametrize("name", [*BUILT, *by_day(MADE, 2)])
def test_everybody_can_read_each_page(name, site, page):
    """On both screens, and with all its pictures."""
    file = site / f"{name}.html"
    if name.startswith(("bench", "workbook")):
        demand(file.exists(), "Python for browsers")

    def show():
        page.goto(file.as_uri())
        if name == "index":
            play_all(page)
            for button in page.locator("fieldset button").all():
                button.click()
        page.wait_for_timeout(100)

    assert unreadable(page, show) == []


def test_a_lesson_leads_to_where_it_runs(site, page):
    """And each step's kernel to the page that edits it."""
    page.goto(f"file://{site}/notebooks/01_register_block.html")
    demand((site / "workbook/index.html").exists(), "Python for browsers")
    link = page.get_by_role("link", name="run this lesson in your browser")
    assert link.get_attribute("href") == "../workbook/index.html?lesson=01"
    links = [one.get_attribute("href") for one in page.locator("a.step").all()]
    assert {link.partition("?step=")[2] for link in links} >= {"01a", "01b"}


@pytest.mark.parametrize("look", ["light", "dark"])
def test_pictures_that_play_are_seen_as_stills(site, page, look):
    """Whole, and in the page's colors."""
    page.emulate_media(color_scheme=look)
    page.goto(f"file://{site}/docs/views.html")
    assert page.locator(".stills a").count() == len(VIEWS)
    seen = [one for one in page.locator(".stills img").all() if one.is_visible()]
    assert len(seen) == len(VIEWS)
    other = {"light": "_dark.", "dark": "_light."}[look]
    assert not [one for one in seen if other in one.get_attribute("src")]
    page.evaluate(
        "document.querySelectorAll('.stills img').forEach((one) => { one.loading = 'eager' })"
    )
    page.wait_for_function(
        "[...document.querySelectorAll('.stills img')].every((one) => one.naturalWidth > 0)"
    )


def test_an_address_says_what_a_picture_shows(site, page):
    """A frame and what is chosen, in a journey on one of its levels; and nothing happens to what
    can't be.
    """
    address = f"file://{site}/pictures/timeline.html"
    page.goto(f"{address}#frame=40&at=2")
    page.wait_for_selector("[data-frame='40'][data-pick='2']")
    page.keyboard.press("ArrowRight")
    page.get_by_role("link", name="Link to this view").click()
    expect(page).to_have_url(f"{address}#frame=41&at=2")
    for (
        hostile
    ) in "frame=-1 frame=1e1 level=7&frame=3 at=3 frame=%3Cimg%20onerror%3D1%3E %".split():
        page.evaluate("hash => { location.hash = hash }", hostile)
        page.wait_for_timeout(50)
        assert page.locator("[data-frame='41'][data-pick='2']").count() == 1, hostile
    page.goto(f"file://{site}/pictures/explore.html#level=2&frame=3")
    page.wait_for_selector("section:nth-of-type(3):not([hidden]) [data-frame='3']")


def test_a_picture_is_shown_in_a_frame_of_another_page(site, page, tmp_path):
    frame = (
        f'<iframe src="file://{site}/pictures/block_race.html#frame=7" width="1000"'
        ' height="700"></iframe>'
    )
    (another := tmp_path / "page.html").write_text(frame)
    page.goto(another.as_uri())
    inner = page.frame_locator("iframe")
    inner.locator("[data-frame='7']").press("ArrowRight")
    inner.locator("[data-frame='8']").wait_for()
    assert inner.get_by_role("link", name="Link to this view").get_attribute("target") == "_blank"


def test_a_prediction_is_a_guess_and_then_a_fold(site, page):
    page.goto(f"file://{site}/notebooks/09_bus.html")
    question = "At N = 1024, which is worth doubling: the bus or the kernel?"
    asked = page.locator(".cypresskit-guess", has_text=question)
    asked.scroll_into_view_if_needed()
    asked.get_by_role("button", name="the kernel").click()
    result = page.get_by_text(f"{question} You said the kernel, and it is the bus.")
    assert not result.is_visible()
    said = asked.get_by_role("status").inner_text()
    assert said.startswith("You said the kernel, and it is the bus"), said
    page.locator("summary", has_text="guess first").last.click()
    assert result.is_visible()
    texts = [file.read_text() for file in site.rglob("notebooks/*.html")]
    assert sum(text.count('data-kind="guess"') for text in texts) > 20
    assert not [
        text for text in texts if "made no guess" in text or "Run this cell to enter" in text
    ]


def test_a_lesson_is_as_wide_as_in_jupyterlab(site, page):
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(f"file://{site}/notebooks/09_bus.html")
    page.locator(".cypresskit-player").first.scroll_into_view_if_needed()  # what is near starts
    page.wait_for_selector(".cypresskit-player [data-ready]", state="attached")
    assert page.evaluate("document.querySelector('.cypresskit-player').clientWidth") > 1000


@pytest.mark.parametrize(
    ("word", "leads_to"),
    [
        ("quads", "The texture cache"),
        ("cmov_logical", "The language"),
        ("line_costs", "The API"),
    ],
)
def test_a_word_is_found_in_lessons_language_and_api(site, page, word, leads_to):
    page.goto(f"file://{site}/search.html?q={word}")
    page.wait_for_selector(f"#search-results li:has-text('{leads_to}')")


def test_solutions_and_teachers_answers_are_left_out(site, pytestconfig):
    """No page of the site tells a solution; the same lesson read for teachers does."""
    pages = [file.read_text() for file in site.rglob("*.html")]
    assert len(pages) > 40 and not [
        page for page in pages if re.search("<summary>(Solution|A good sentence)", page)
    ]
    assert not {file.stem for file in (site / "docs").iterdir()} & {"answers", "questions"}
    assert "Answers, for teachers" not in (site / "searchindex.js").read_text()
    lesson = (pytestconfig.rootpath / "notebooks/09_bus.ipynb").read_text()
    told = [
        str(read_lesson(lesson, solutions=asked)).count("<summary>Solution")
        for asked in (False, True)
    ]
    assert told == [0, 3]


def test_reports_what_is_wrong_with_a_site(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id=x name=z><a href="#x"><a href="#z"><a href="b.html"><a href="a.html#y">'
    )
    (tmp_path / "c.html").write_text(
        '<img src="https://else.where/a.png" srcset="d.png"><a href="https://else.where">'
    )
    assert sorted(faults(tmp_path)) == [
        "a.html links to a.html#y, which isn't there",
        "a.html links to b.html, which isn't there",
        "c.html links to d.png, which isn't there",
        "c.html loads https://else.where/a.png",
    ]
