"""Whether a loop that leaves C correct fetches for too long outside of an array, which gives 0."""

from collections import Counter

from cypresskit.diagnosis.notes import Note, note
from cypresskit.kernels.products import Product
from cypresskit.machine.observer import FetchEvent, Observer


def find_overlong(given: Product) -> Note:
    """Return the note on the line that fetches outside most often, if it does in more than a third
    of its runs: to time such a loop would take long.
    """
    fetches = _Fetches()
    given.run(engine="interpreter", observers=[fetches])
    for at, excess in fetches.excess.most_common(1):
        if excess > 2:  # one may be ahead of the loop
            return note("overlong", given.kernel.program.body[at].line)
    return Note()


class _Fetches(Observer):
    """Counts each instruction's fetches: 2 for one outside, -1 for one inside."""

    def __init__(self) -> None:
        self.excess: Counter[int] = Counter()

    def fetch(self, event: FetchEvent) -> None:
        self.excess[event.at] += -1 if (event.inside & event.active).any() else 2
