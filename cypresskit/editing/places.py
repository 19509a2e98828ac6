"""Say which lines compute the place of an access outside, or of a race.

The kernel runs once more, and the work-item of the finding is recorded: the steps from which the
address comes, or of a fetch, the coordinate that is outside.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cypresskit.diagnosis.slices import StepRecorder
from cypresskit.diagnosis.verification import Verification
from cypresskit.editing.line_repairs import words_of
from cypresskit.il.dataflow import Key, is_address, keys, uses
from cypresskit.machine.checks import Finding
from cypresskit.tables import listed, named_lines


@dataclass(frozen=True)
class AccessPlace:
    """Where the place of an access comes from.

    Attributes
    ----------
    lines
        The lines that compute it.
    offset
        Whether a fetch is outside by its own offset, the first time that it runs.
    tests
        The lines that lead to the loops' tests, if it is outside only later.
    """

    lines: Collection[int]
    offset: bool
    tests: Collection[int]


@dataclass(frozen=True)
class SharedPlace(AccessPlace):
    """A place to which one line stores in two work-items of a group's program.

    Attributes
    ----------
    items
        The two work-items.
    same
        The lines that give both the same number of different ones.
    reads_group
        Whether the number of the workgroup is read for it.
    address, values
        The name of what holds the address, and its values in these work-items.
    """

    items: tuple[int, int]
    same: Sequence[int]
    reads_group: bool
    address: str
    values: Sequence[int]


def _number(seen: Verification, place: tuple[int, int] | int | None) -> int:
    """Return the number of a work-item from its place in the domain."""
    assert seen.size is not None
    if isinstance(place, tuple):
        return place[0] + place[1] * (seen.size[1] // seen.kernel.block[1])
    return place or 0


def recorded_items(seen: Verification, finding: Finding) -> tuple[int, ...]:
    """Return the work-items whose steps show where a place comes from: of a race in one line, both
    of them.
    """
    both = isinstance(finding.other_item, int) and finding.other_line == finding.line
    places = (finding.work_item, *[finding.other_item] * both)
    return tuple(_number(seen, place) for place in places)


def find_place(finding: Finding, runs: Sequence[StepRecorder]) -> AccessPlace:
    """Return where the place of a finding comes from; ``runs`` has the steps of its work-items."""
    first, last = runs[0], runs[-1]
    begun = [n for n in range(len(first.steps)) if first.line(n) == finding.line]
    starts = {step: _outside(first, step) for step in begun}
    offset = any(by_offset for _, by_offset in [*starts.values()][:1])
    if finding.kind == "fetch outside":  # a race and an LDS have no coordinates
        starts = {step: outside for step, outside in starts.items() if outside[0]}
    steps = {n for step, (used, _) in starts.items() for n in first.last_writers(used, step)}
    steps |= first.origins(steps, values=True)
    place = AccessPlace(
        {*map(first.line, steps)},
        offset,
        _tests(first) if starts and begun[0] not in starts else set(),
    )
    if len(runs) == 1:
        return place
    same = {
        first.line(n)
        for n, (one, two) in enumerate(zip(first.steps, last.steps))
        if n in steps and one.words == two.words and one.sources != two.sources
    }
    kinds = {s.register.kind for step in steps for s in first.instruction(step).sources}
    reads_group = not kinds.isdisjoint({"vThreadGrpIdFlat", "vAbsTidFlat"})
    address, values = _address(runs, finding.line)
    return SharedPlace(
        **vars(place),
        items=(first.item, last.item),
        same=sorted(same),
        reads_group=reads_group,
        address=address,
        values=values,
    )


def _tests(run: StepRecorder) -> set[int]:
    """Return the lines that lead to the tests of loops."""
    breaks = [n for n in range(len(run.steps)) if run.instruction(n).op.flow == "break"]
    return {*map(run.line, {*breaks, *run.origins(breaks, values=True)})}


def _address(runs: Sequence[StepRecorder], line: int) -> tuple[str, list[int]]:
    """Return the name of what holds the address of an access, and its value in each run, if lines
    have computed it.
    """
    name, values = "", []
    for run in runs:
        for step in [n for n in range(len(run.steps)) if run.line(n) == line][:1]:
            i = run.instruction(step)
            for use in (use for use in uses(run.program, i) if is_address(i, use[0])):
                name = str(use[1])
                for key in keys([use]):
                    values += [run.steps[n].words[key[1]] for n in run.last_writers([key], step)]
    return name, values


def _outside(run: StepRecorder, step: int) -> tuple[list[Key], bool]:
    """Return the components of registers with the address of an access or, of a fetch, with the
    coordinates that are outside; and whether they are so by its offset alone.
    """
    i = run.instruction(step)
    if i.op.kind != "fetch":
        return [*keys(use for use in uses(run.program, i) if is_address(i, use[0]))], False
    surface = run.textures[i.controls.resource]
    found: list[Key] = []
    by_offset = True
    for n, size in enumerate((surface.width, surface.height)):
        for key in keys([(0, i.sources[0], (n,))]):
            for writer in run.last_writers([key], step):
                word = np.uint32(run.steps[writer].words[key[1]])
                base, by = np.floor(word.view(np.float32)), i.controls.aoffimmi[n]
                if not 0 <= base + by < size:
                    found.append(key)
                    by_offset &= bool(0 <= base < size)
    return found, bool(found) and by_offset


def said_of_place(
    finding: Finding, place: AccessPlace, own: Collection[int], lines: Sequence[str], group: int
) -> Iterator[tuple[str, int]]:
    """Yield the end of a sentence on a finding, and the line to look at first, or 0; ``own``: the
    lines that the reader changed, ``group``: work-items of a workgroup.
    """
    found = sorted({*own} & {*place.lines})
    if isinstance(place, SharedPlace):
        for text in _said_of_two(finding, place, own, lines, group):
            yield text, finding.line if finding.line in own else 0
    elif found and (finding.kind != "race" or finding.line not in own):
        text = f"its address comes from {named_lines(found)}"
        if finding.element.startswith("lds") and "outside" in finding.kind:
            declared = (n for n, each in enumerate(lines, 1) if each.strip().startswith("dcl_lds"))
            text += "".join(f"; line {n} declares the size of the LDS" for n in declared)
        yield text, 0 if found[1:] else found[0]
    elif tests := sorted({*own} & {*place.tests}):
        text = f"its loop goes on too long; its test comes from {named_lines(tests)}"
        yield text, 0 if tests[1:] else tests[0]


def _said_of_two(
    finding: Finding, place: SharedPlace, own: Collection[int], lines: Sequence[str], group: int
) -> Iterator[str]:
    """Yield what makes two work-items store to one place."""
    one, other = place.items
    two = f"work-items {listed(place.items)} store to one place"
    found = sorted({*own} & {*place.lines})
    if finding.line in own:
        stored_by = words_of(lines[finding.line - 1])[0]
        if len({*place.values}) == 1:
            yield f"{two}: both have the same {place.address}"
        elif place.values and np.ptp(place.values) < 16 and "vec" in stored_by:
            values = listed(place.values)
            yield f"{two}: their {place.address} is {values}, but each stores 16 bytes"
    elif one // group != other // group and not place.reads_group:
        yield f"{two}: no line that computes it reads vThreadGrpIdFlat, their group's number"
    elif found:
        why = []
        lost = one ^ other
        if lost.bit_count() == 1:
            why.append(f"bit {lost.bit_length() - 1} of their number is lost")
        if place.same:
            why.append(f"{named_lines(place.same, 'give')} both the same number")
        text = f"{two}, which {named_lines(sorted({*found, *place.same}), 'compute')}"
        yield f"{text}: {'; '.join(why)}" if why else text
