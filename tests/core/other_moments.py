"""Plans of the host by numpy, whose tasks take effect at other moments than the simulated ones."""

from dataclasses import replace

import numpy as np

from cypresskit.host.tasks import Span


def at_other_moments(timeline, seed):
    """The timeline with each task at a single moment between its start and its end."""
    parts = np.random.default_rng(seed).random(len(timeline.spans))
    moments = [s.start + (s.end - s.start) * part for s, part in zip(timeline.spans, parts)]
    spans = [Span(s.task, moment, moment) for s, moment in zip(timeline.spans, moments)]
    return replace(timeline, spans=tuple(spans))


def numpy_gemm(a, b, c=None, *, alpha=1.0, beta=0.0, trans_a=False, **_):
    """Stand in for ``gemm``."""
    return alpha * (a.T if trans_a else a) @ b + (beta * c if beta else 0)
