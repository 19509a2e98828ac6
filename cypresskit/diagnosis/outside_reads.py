"""Whether a loop that leaves C correct fetches for too long outside of an array, which gives 0."""

from collections import Counter

from cypresskit.diagnosis.notes import NO_NOTE, Note, note
from cypresskit.il.errors import last_line
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.products import RUN_ERRORS, Size, make_product
from cypresskit.machine.observer import FetchEvent, Observer

K_FACTOR = 8  # times k: what is fetched ahead of a loop is then little


def find_overlong(kernel: Kernel, size: Size, alpha: float, beta: float) -> Note:
    """Return the note on a line that fetches outside in more than a third of its runs, in a product
    of ``K_FACTOR`` times the k of a ``size``: of several, that with the most fetches above it. To
    time such a loop would take long. Or the note that the kernel fails there.
    """
    m, n, k = size
    k *= K_FACTOR
    fetches = _FetchCounter()
    try:
        make_product(kernel, (m, n, k), alpha, beta).run(engine="interpreter", observers=[fetches])
    except RUN_ERRORS as error:
        return note("fails at size", at_size=f"{m} x {n}, k = {k}", error=last_line(error))
    for at, excess in fetches.excess.most_common(1):
        if excess > 2:  # one may be ahead of the loop
            return note("overlong", kernel.program.body[at].written_line)
    return NO_NOTE


class _FetchCounter(Observer):
    """A counter of each instruction's fetches: 2 for one outside, -1 for one inside."""

    def __init__(self) -> None:
        self.excess: Counter[int] = Counter()

    def fetch(self, event: FetchEvent) -> None:
        self.excess[event.at] += -1 if (event.inside & event.active).any() else 2
