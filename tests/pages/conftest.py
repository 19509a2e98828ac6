"""Parts of a site that tests of pages share: those that run Python, and its first page."""

import shutil

import pytest
from bs4 import BeautifulSoup
from python_sites import make_python_site
from waiting import without_a_loop

from tools import climb_page


def pytest_collection_modifyitems(items):
    """What needs a site stands first: one process makes it, while the others run other tests."""
    items.sort(key=lambda item: "python_site" not in item.fixturenames)


@pytest.fixture(scope="session")
def python_site(tmp_path_factory, once):
    """A site's parts that run Python, made once, and why there are none: see ``require``."""
    folder = tmp_path_factory.mktemp("python")
    return once("python-site", lambda: make_python_site(folder))


@pytest.fixture(scope="module")
def timed_once(tmp_path_factory, once, python_site):
    """The tests of a file, and what they start, time a launch once for all: those that the site's
    workbench opens with were timed for the site.
    """

    def begin():
        folder = tmp_path_factory.mktemp("timed")
        if (timed := python_site[0] / "bench/launches").is_dir():
            shutil.copytree(timed, folder / "cypresskit")
        return folder

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(once("timed", begin)))
        patch.setenv("CYPRESSKIT_KEEP", "1")
        yield


@pytest.fixture(scope="module")
def first_page(tmp_path_factory, once, timed_once):
    """A folder with the page, and images of its pictures if Chromium is here."""

    def build():
        folder = tmp_path_factory.mktemp("page")
        without_a_loop(climb_page.write)(folder, "https://ada.github.io/kit/")
        return folder

    return once("climb-page", build)


@pytest.fixture(scope="module")
def soup(first_page):
    return BeautifulSoup((first_page / "index.html").read_bytes(), "html.parser")
