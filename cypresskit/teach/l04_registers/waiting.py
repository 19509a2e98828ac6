"""A toy engine in letters: it computes for one wavefront while the others wait."""

from string import ascii_uppercase

from cypresskit.devices import is_whole

LONGEST = 100  # clocks of arithmetic or waiting
ROUNDS = 5  # of computing and waiting


def waiting(compute: int = 2, wait: int = 6) -> str:
    """Return a line for each number of wavefronts, from one to enough (at least six): per clock the
    letter of the wavefront that computes, or a dot, and the share of busy clocks.

    Each wavefront computes for ``compute`` clocks and waits for ``wait``. Raises ``ValueError`` for
    clocks that are no whole numbers from 1 to ``LONGEST``, and where over 26 wavefronts are needed.
    """
    most = 0
    if is_whole(compute, LONGEST) and is_whole(wait, LONGEST):
        most = max(6, -(-(compute + wait) // compute))
    if not 0 < most <= len(ascii_uppercase):
        raise ValueError(
            f"compute {compute!r} and wait {wait!r} have to be whole numbers from 1 to {LONGEST},"
            f" for which {len(ascii_uppercase)} wavefronts are enough"
        )
    clocks = ROUNDS * (compute + wait)
    lines = [f"{compute} clocks of arithmetic, then {wait} of waiting", ""]
    for wavefronts in range(1, most + 1):
        # A round lasts until all have computed, or as long as one wavefront needs.
        letters = "".join(letter * compute for letter in ascii_uppercase[:wavefronts])
        a_round = letters.ljust(compute + wait, ".")
        shown = (ROUNDS * a_round)[:clocks]
        share = 1 - shown.count(".") / clocks
        lines.append(f"{wavefronts:2}  {shown}  busy {100 * share:.0f} %")
    return "\n".join(lines)
