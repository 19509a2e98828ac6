"""What must not happen in a test."""

import pytest


def forbid(what):
    """Return a function in whose place something would happen: a test that calls it fails."""
    return lambda *_, **__: pytest.fail(f"it must not {what}")
