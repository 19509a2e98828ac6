"""A toy engine in letters: it computes for one wavefront at a time, while the others wait."""

from string import ascii_uppercase

from cypresskit.devices import is_whole

LONGEST = 100  # clocks of arithmetic or waiting
TURNS = 5  # how often a wavefront that is alone does both


def waiting(compute: int = 2, wait: int = 6) -> str:
    """A letter a clock for the wavefront that computes, a dot where none does, in a line for each
    number of wavefronts that share an engine: at least six, and up to as many as keep it busy; and
    the share of the time in which it is.

    Each wavefront computes for ``compute`` clocks and waits for ``wait``. Raises ``ValueError`` for
    clocks that are no whole numbers from 1 to ``LONGEST``, and where it takes over 26 wavefronts.
    """
    most = 0
    if is_whole(compute, LONGEST) and is_whole(wait, LONGEST):
        most = max(6, -(-(compute + wait) // compute))
    if not 0 < most <= len(ascii_uppercase):
        raise ValueError(
            f"compute {compute!r} and wait {wait!r} have to be whole numbers from 1 to {LONGEST},"
            f" for which {len(ascii_uppercase)} wavefronts are enough"
        )
    clocks = TURNS * (compute + wait)
    lines = [f"{compute} clocks of arithmetic, then {wait} of waiting", ""]
    for wavefronts in range(1, most + 1):
        # Who comes first goes first, in turns: a round takes all of them, or as long as one needs.
        turns = "".join(letter * compute for letter in ascii_uppercase[:wavefronts])
        a_round = turns.ljust(compute + wait, ".")
        shown = (TURNS * a_round)[:clocks]
        share = 1 - shown.count(".") / clocks
        lines.append(f"{wavefronts:2}  {shown}  busy {100 * share:.0f} %")
    return "\n".join(lines)
