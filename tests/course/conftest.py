"""What tests of checks share."""

import answer_sources
import pytest


@pytest.fixture(autouse=True, scope="module")
def answers_of_tests():
    with answer_sources.answers_of_tests():
        yield
