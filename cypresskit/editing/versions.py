"""Two versions of a kernel side by side: their figures, and the lines in which they differ."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from cypresskit.editing.edit_history import Edit

AROUND = 2  # equal lines that are shown before and after changed ones
UNKNOWN = "–"
NO_COSTS = {"message": "not known: load this version, and wait for its costs", "lines": []}

Costs = Mapping[str, Any]  # the part "costs" of a text's answer


def compare_edits(pair: Sequence[Edit], costs: Sequence[Costs]) -> dict[str, Any]:
    """Compare two edits, with the costs of their lines.

    The result holds ``figures``, each a name and two values; and ``hunks``, each a list of rows:
    whether the row is ``changed``, and its ``sides``, each [number, cost, text] of a line, or None.
    """
    before, after = (edit.text.splitlines() for edit in pair)
    old, new = map(_lines, pair, costs)
    hunks = [
        [
            {"changed": kind != "equal", "sides": sides}
            for kind, i1, i2, j1, j2 in hunk
            for sides in zip_longest(old[i1:i2], new[j1:j2])
        ]
        for hunk in SequenceMatcher(None, before, after, False).get_grouped_opcodes(AROUND)
    ]
    first, second = map(_figures, pair, costs)
    return {"figures": [[name, first[name], second[name]] for name in first], "hunks": hunks}


def _lines(edit: Edit, costs: Costs) -> list[list]:
    """Return [number, cost, text] of each line of an edit."""
    shown = {row["line"]: row["shown"] for row in costs["lines"]}
    lines = enumerate(edit.text.splitlines(), 1)
    return [[number, shown.get(number, ""), line] for number, line in lines]


def _figures(edit: Edit, costs: Costs) -> dict[str, object]:
    """Return what is known about an edit, by name."""
    speed = f"{edit.gflops:,.0f} at N = {edit.n:,}" if edit.right and edit.gflops else UNKNOWN
    return {
        "C": {True: "correct", False: "incorrect", None: "not checked"}[edit.right],
        "Gflop/s": speed,
        "limited by": edit.bound or UNKNOWN,
        "bundles per iteration": edit.bundles or UNKNOWN,
        "registers": edit.registers or UNKNOWN,
        "wavefronts": edit.wavefronts or UNKNOWN,
        "costs": UNKNOWN if edit.right is False else costs["message"],
    }
