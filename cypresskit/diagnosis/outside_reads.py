"""Whether a loop that leaves C correct fetches for too long outside of an array, which gives 0."""

from collections import Counter

from cypresskit.diagnosis.notes import NO_NOTE, Note, note
from cypresskit.kernels.products import Product
from cypresskit.machine.observer import FetchEvent, Observer


def find_overlong(given: Product) -> Note:
    """Return the note on a line that fetches outside in more than a third of its runs: of several,
    that with the most fetches above it. To time such a loop would take long.
    """
    fetches = _FetchCounter()
    given.run(engine="interpreter", observers=[fetches])
    for at, excess in fetches.excess.most_common(1):
        if excess > 2:  # one may be ahead of the loop
            return note("overlong", given.kernel.program.body[at].written_line)
    return NO_NOTE


class _FetchCounter(Observer):
    """A counter of each instruction's fetches: 2 for one outside, -1 for one inside."""

    def __init__(self) -> None:
        self.excess: Counter[int] = Counter()

    def fetch(self, event: FetchEvent) -> None:
        self.excess[event.at] += -1 if (event.inside & event.active).any() else 2
