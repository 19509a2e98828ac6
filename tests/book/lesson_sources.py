"""The sources of all lessons."""

import pytest
from repository import ROOT

from tools import book

SOURCES = book.sources(ROOT / "notebooks")
each_lesson = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
