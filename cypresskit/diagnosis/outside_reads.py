"""Whether a loop that leaves C correct reads for too long outside of an array, which gives 0."""

from collections import Counter

from cypresskit.diagnosis.notes import Note, note
from cypresskit.kernels.products import Product
from cypresskit.machine.observer import FetchEvent, MemoryEvent, Observer


def find_overlong(given: Product) -> Note:
    """Return the note on the line that reads outside most often, if it does in more than a third of
    its runs: to time such a loop would take long.
    """
    reads = _Reads()
    given.run(engine="interpreter", observers=[reads])
    at = max(reads.runs, key=lambda at: reads.runs[at] - reads.inside[at])
    runs, inside = reads.runs[at], reads.inside[at]
    if runs - inside <= max(1, inside // 2):
        return Note()
    return note("overlong", given.kernel.program.body[at].line, inside=inside, runs=runs)


class _Reads(Observer):
    """Counts how often each instruction's reads of an array ran, and how often one was inside."""

    def __init__(self) -> None:
        self.runs: Counter[int] = Counter()
        self.inside: Counter[int] = Counter()

    def fetch(self, event: FetchEvent | MemoryEvent) -> None:
        self.runs[event.at] += 1
        self.inside[event.at] += bool((event.inside & event.active).any())

    def memory(self, event: MemoryEvent) -> None:
        if event.space == "global" and not event.store:
            self.fetch(event)
