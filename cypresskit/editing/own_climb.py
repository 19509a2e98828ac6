"""The reader's climb: of each step the fastest kernel that it saves, and a line that is new in it.

A step is shown if its kernel is faster than all before. One that only reorders lines may be as
fast: the lines of the step before may have been in order. Of the contest, any correct kernel
counts. Side steps are left out.
"""

from collections.abc import Iterator, Mapping

from cypresskit.draw.climb_picture import MODELED, Bar, Climb
from cypresskit.editing.edit_history import Edit, Edits, describe_change
from cypresskit.editing.step_files import fastest_edit, saved_edit
from cypresskit.editing.steps import CLOSE_RATIO, FIRST_STEP, STEPS, Step
from cypresskit.tables import quantity

NO_STEPS = (
    f"No step of the climb is saved yet: the climb begins with step {FIRST_STEP}. A correct kernel"
    " is saved when it reaches the first target."
)


def make_own_climb(histories: Mapping[str, Edits]) -> Climb:
    """Return the climb. ``histories`` maps the name of a step to its edits."""
    bars: list[Bar] = []
    text, gflops = "", 0.0  # of the step before
    for step, saved in _steps(histories):
        continues = step.previous_step and bars and not step.is_reordered
        change = describe_change(text if continues else step.starter, saved.text)
        bars.append(Bar(step.title, change, saved.gflops, gflops))
        text, gflops = saved.text, saved.gflops
    if not bars:
        return Climb(NO_STEPS, ())
    speeds = " to ".join(f"{bar.gflops:,.0f}" for bar in dict.fromkeys((bars[0], bars[-1])))
    share = f"{100 * gflops / MODELED:.3g} % of the record's {MODELED:,.0f}, modeled"
    return Climb(f"{quantity(len(bars), 'step')}: {speeds} Gflop/s, {share}", bars)


def _steps(histories: Mapping[str, Edits]) -> Iterator[tuple[Step, Edit]]:
    """Yield the steps of the climb that are faster than all before, or as fast if they only reorder
    lines. It begins with the first step, also if that is unchanged.
    """
    fastest = 0.0
    for step in STEPS.values():
        if not (edits := histories.get(step.name)):
            continue
        if step.name == FIRST_STEP:
            edit = edits.find_fastest(step.n)
        else:
            edit = fastest_edit(edits, step) if step.can_miss_minimum else saved_edit(edits, step)
        needed = fastest / CLOSE_RATIO if step.is_reordered else fastest * CLOSE_RATIO
        if step.is_on_climb and edit and edit.gflops > needed:
            yield step, edit
            fastest = max(fastest, edit.gflops)
