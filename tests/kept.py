"""What the package keeps in memory, and a model that would keep what is untrue."""

from contextlib import contextmanager
from unittest.mock import patch

from cypresskit import compiler
from cypresskit.timing import sampling
from cypresskit.timing.simulate import forget_reports


def forget():
    """Forget what is in memory."""
    forget_reports()
    compiler.forget()


@contextmanager
def sampled(effort):
    """However small a launch is, a sample of so much effort is enough; no report outlives this."""
    limits = {"MAX_WHOLE_EFFORT": 0, "MAX_ERROR": 1, "MAX_SHARE": 1}
    forget()
    try:
        with patch.multiple(sampling, SAMPLE_EFFORT=effort, **limits):
            yield
    finally:
        forget()
