"""What tests of compiled code share."""

import pytest
import sampling

from tools.fuzz.guards import FLUSH, guarded


@pytest.fixture
def guard_pages():
    """In this test, every array that compiled code may touch lies against a guard page, at the
    array's end or, the next day, at its beginning: what touches memory there ends the process.
    """
    with guarded(FLUSH[sampling.DAY % len(FLUSH)]):
        yield
