"""Say which of the reader's lines compute the address of an access outside, or of a race.

They are found in the text: an address comes from whatever may write what it reads. For a race, a
run shows which of their numbers two work-items have alike.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from cypresskit.diagnosis.slices import StepRecorder
from cypresskit.il.dataflow import Key, defines, is_address, keys, liveness, uses
from cypresskit.il.program import LETTERS, Instruction, Program
from cypresskit.kernels.products import Product
from cypresskit.machine import KernelError
from cypresskit.machine.checks import Finding
from cypresskit.tables import listed, named_lines


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


def said_of_place(
    finding: Finding, given: Product, own: Collection[int], lines: Sequence[str]
) -> tuple[str, int] | None:
    """Return the end of a sentence on a finding, and the line to look at first, or 0; ``own``: the
    lines that the reader changed. None if none of them may be at fault.
    """
    program = given.kernel.program
    here = [i for i in program.body if i.line == finding.line]
    tests = [i for i in program.body if i.op.flow == "break"]
    ways = (("its address comes from", here), ("its loop's test comes from", tests))
    for how, starts in ways if finding.line not in own or finding.kind != "race" else ():
        if found := sorted(origins(program, starts) & {*own}):
            text = f"{how} {named_lines(found)}{_same_place(finding, given, found)}"
            if finding.element.startswith("lds") and "outside" in finding.kind:
                declared = (
                    n for n, each in enumerate(lines, 1) if each.strip().startswith("dcl_lds")
                )
                text += "".join(f"; line {n} declares the size of the LDS" for n in declared)
            return text, 0 if found[1:] else found[0]
    return None


def _same_place(finding: Finding, given: Product, lines: Collection[int]) -> str:
    """Return which two work-items of a line store to one place, the bit in which alone their
    numbers differ, and what some lines compute alike for both; or "".
    """
    one, other = finding.work_item, finding.other_item
    if finding.line != finding.other_line or not (type(one) is type(other) is int):
        return ""
    text = f": work-items {one} and {other} store to one place"
    bits = one ^ other
    text += f"; bit {bits.bit_length() - 1} of their number is lost" * (bits.bit_count() == 1)
    same = _equal_results(given, (one, other), lines)
    return text + f"; both have the same {listed(same)}" * bool(same)


def _equal_results(given: Product, items: Sequence[int], lines: Collection[int]) -> list[str]:
    """Return the registers, each with its line, that some lines set alike in two work-items."""
    runs = [StepRecorder(item) for item in items]
    with suppress(KernelError):
        given.run(observers=runs)
    program = given.kernel.program
    end = max(at for at, i in enumerate(program.body, 1) if i.line in lines)
    same = []
    for key in sorted(liveness(program)[end]):
        last = [[n for n in run.writers[key] if run.line(n) in lines][-1:] for run in runs]
        words = {run.steps[n].words[key[1]] for run, steps in zip(runs, last) for n in steps}
        if all(last) and len(words) == 1:
            same.append(f"r{key[0]}.{LETTERS[key[1]]} (line {runs[0].line(last[0][0])})")
    return same
