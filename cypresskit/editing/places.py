"""Say which of the reader's lines compute the address of an access outside, or of a race.

They are found in the text: an address comes from whatever may write the registers that it reads,
but not from what passes through the LDS or memory.
"""

from collections.abc import Collection, Iterable

from cypresskit.diagnosis.notes import Lines, Note, Values
from cypresskit.il.dataflow import Key, defines, is_address, keys, uses
from cypresskit.il.program import Instruction, Program
from cypresskit.machine.checks import Finding


def origins(program: Program, starts: Iterable[Instruction]) -> set[int]:
    """Return the lines that may compute the addresses, or the conditions, of some instructions."""
    wanted: set[Key] = set()
    for i in starts:
        wanted |= keys(use for use in uses(program, i) if is_address(i, use[0]))
    lines: set[int] = set()
    while True:
        found = [i for i in program.body if i.line not in lines and wanted & {*defines(i)}]
        if not found:
            return lines
        lines |= {i.line for i in found}
        wanted |= {key for i in found for key in keys(uses(program, i))}


def note_on_place(finding: Finding, program: Program, own: Collection[int]) -> Note | None:
    """Return which of the reader's ``own`` lines compute the place of a finding; None if none may
    be at fault.
    """
    if finding.kind == "race" and finding.line in own:
        return None  # the reader's own store is named anyway
    here = [i for i in program.body if i.line == finding.line]
    tests = [i for i in program.body if i.op.flow == "break"]
    for how, starts in (("its address comes from", here), ("its loop's test comes from", tests)):
        if found := sorted(origins(program, starts) & {*own}):
            names: Values = {"finding": finding.kind, "how": how, "made": Lines(found)}
            names |= _same_place(finding)
            return Note("origin", 0 if found[1:] else found[0], (finding.line,), names)
    return None


def _same_place(finding: Finding) -> dict[str, int]:
    """Return which two work-items of a line store to one place."""
    one, other = finding.work_item, finding.other_item
    if finding.line != finding.other_line or not (type(one) is type(other) is int):
        return {}
    return {"one": one, "other": other}
