"""The reader's climb: the fastest kernel of each saved step, and of the contest, each faster than
the one before; and the line that made the difference. Side steps are left out.
"""

import re
from collections.abc import Iterator, Mapping

from cypresskit.draw.climb_picture import PAPER, Bar, Climb
from cypresskit.editing.edit_history import Edit, Edits
from cypresskit.editing.steps import CLOSE, FIRST, STEPS, Step
from cypresskit.il.cursor import bare_line
from cypresskit.tables import quantity

PRODUCT = re.compile(r"d?(mad|mul|fma)\b")
ORDER = "the same lines in another order"


def own_climb(histories: Mapping[str, Edits]) -> Climb:
    """Return the climb. ``histories`` maps the name of a step to its edits."""
    bars: list[Bar] = []
    judged = 0  # edits after the first step
    before = Edit(0, "")  # the saved one of the step before
    for step, kept in _steps(histories):
        if bars:
            judged += sum(
                edit.number <= kept.number
                for edit in histories[step.name]
                if edit.right is not None and edit.text != step.starter
            )
        made = _made(kept.text, before.text if step.previous and bars else step.starter)
        bars.append(Bar(step.title, made, kept.gflops, before.gflops))
        before = kept
    if not bars:
        return Climb(
            "No step is saved yet. A correct kernel is saved when it reaches the first target.",
            (),
        )
    speeds = f"{before.gflops:,.0f} Gflop/s"
    if len(bars) > 1:
        speeds = f"{bars[0].gflops:,.0f} to {speeds} in {quantity(judged, 'edit')}"
    sentence = f"{speeds}: {100 * before.gflops / PAPER:.0f} % of the record of 2010, {PAPER:,}"
    return Climb(sentence, bars)


def _steps(histories: Mapping[str, Edits]) -> Iterator[tuple[Step, Edit]]:
    """Yield the steps of the climb that are faster than all before. It begins with the first step,
    also if that is unchanged, and counts kernels of the contest that don't win.
    """
    fastest = 0.0
    for step in STEPS.values():
        edits = histories.get(step.name, Edits())
        if step.name == FIRST:
            edit = edits.fastest(step.n)
        else:
            least = 0.0 if step.whole else step.targets.minimum
            edit = edits.fastest(step.n, least, given=step.starter)
        if step.climbs and edit is not None and edit.gflops > CLOSE * fastest:
            yield step, edit
            fastest = edit.gflops


def _made(text: str, before: str) -> str:
    """Return the line that differs from ``before``: a new multiply-add, if there is one."""
    known = set(_instructions(before))
    loop = _loop(text)
    lines = [line for line in loop if line not in known]
    products = [line for line in lines if PRODUCT.match(line)]
    if lines:
        return (products or lines)[0]
    if _instructions(text) == _instructions(before):
        return next(line for line in loop if PRODUCT.match(line))
    more = len(loop) - len(_loop(before))
    return f"{more} more lines per iteration" if more > 0 else ORDER


def _loop(text: str) -> list[str]:
    """Return the lines of a text's loop."""
    return _instructions(text.partition("whileloop")[2].partition("endloop")[0])


def _instructions(text: str) -> list[str]:
    """Return the lines of a text without comments and blank lines."""
    return [*filter(None, map(bare_line, text.splitlines()))]
