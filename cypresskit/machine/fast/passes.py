"""Loops that hold more sums than the host has registers, run in several passes over some of the sums each.

A block of 8 x 8 numbers for each of four work-items fills 16 registers of 512 bits. On hosts with less LLVM would keep
the sums on the stack, and load and store one with every multiply-add. To go through the loop again, with a part of the
sums each time, costs the fetches and little else. Only loops that do nothing but read and compute are split, and only
by sums that nothing in the loop reads but what updates them.
"""

from cypresskit.il import Instruction
from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.vec import SIZES


def passes(analysis: Analysis, at: int, room: int) -> list[set[int]]:
    """Instructions of the loop opened at ``at`` that each pass leaves out, so that what it sums up takes at most
    ``room`` bytes of registers; one empty set if the loop is run once."""
    inside = range(at + 1, analysis.program.matching[at])
    if at in analysis.vary.group_level or not all(_reads_and_computes(analysis.body[k]) for k in inside):
        return [set()]
    groups: list[set[int]] = []
    left = 0
    for size, writers in _sums(analysis, inside):
        left -= size
        if left < 0:
            groups.append(set())
            left = room - size
        groups[-1] |= writers
    every = set().union(*groups)
    return [every - group for group in groups] if len(groups) > 1 else [set()]


def temporary(analysis: Analysis, inside: range) -> set[str]:
    """The names of cells that nobody needs from one turn of a loop to the next, nor after it."""
    outside = [k for k in range(len(analysis.body)) if k not in inside]
    needed = {name for k in outside for name in analysis.cells_read(k)}
    written: set[str] = set()
    for k in inside:
        needed |= analysis.cells_read(k) - written
        written |= {cell.name for cell in analysis.written(k)}
    return written - needed


def _reads_and_computes(i: Instruction) -> bool:
    """Whether ``i`` stores nothing, opens no if or loop, and waits for nobody."""
    return (
        (i.op.kind in ("alu", "fetch", "lds") and not i.op.store and i.dest is not None and i.dest.register.kind == "r")
        or i.op.flow in ("break", "continue")
    )  # fmt: skip


def _sums(analysis: Analysis, inside: range) -> list[tuple[int, set[int]]]:
    """The sums of a loop: bytes that each takes, and the instructions that update it. These write nothing else, and
    nothing else in the loop reads or writes it."""
    sums: dict[str, tuple[int, set[int]]] = {}
    other: set[str] = set()  # cells that more is done with
    for k in inside:
        written, read = analysis.written(k), analysis.cells_read(k)
        for cell in written:
            if analysis.body[k].op.kind == "alu" and len(written) == 1 and cell.n and cell.name in read:
                sums.setdefault(cell.name, (cell.n * SIZES[cell.kind] // 8, set()))[1].add(k)
                read.discard(cell.name)
            else:
                other.add(cell.name)
        other |= read
    return [found for name, found in sums.items() if name not in other]
