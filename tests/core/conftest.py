"""What tests of compiled code share."""

import pytest

from tools.fuzz.guards import FLUSH, guarded


@pytest.fixture
def guard_pages(request):
    """In this test, every array that compiled code may touch lies between guard pages: what
    touches memory beside one ends the process.
    """
    with guarded(FLUSH[len(request.node.name) % len(FLUSH)]):
        yield
