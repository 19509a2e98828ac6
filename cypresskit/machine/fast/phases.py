"""What is moved so that less is put aside at barriers: phases of a loop, and fetches.

Phases pass different numbers through the same LDS array.

A kernel that sends one column of A after another through the LDS waits twice for each, and so does one that adds up
its parts a few rows at a time; at every wait compiled code has to put all registers of all quads aside. Here each phase
gets an array of its own: what all of them store is stored in the first phase, so that the work-items wait once, or once
a turn. That is done only where it changes nothing: the phases store to the same places, nothing that is stored is
computed after the first phase's stores, and barriers lie on both sides of every phase. Left out: phases that branch,
but for an if around their stores or loads, and loops within loops.

A fetch whose texels are needed behind a barrier only is moved there: no work-item changes a texture.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from re import fullmatch

from cypresskit.il import Instruction, Program
from cypresskit.il.dataflow import address_uses, defines, keys, uses


def merge_phases(program: Program) -> tuple[Program, list[int]]:
    """The program, its phases put together if it has some, and for each instruction where it stood."""
    body, match = program.body, program.matching
    loops = [at for at, i in enumerate(body) if i.op.flow == "loop"]
    outermost = [at for at in loops if not any(k < at < match[k] for k in loops)]
    for start, stop in [*((at, match[at]) for at in outermost), (-1, len(body))]:
        phases = _phases(program, start, stop)
        if len(phases) > 1:
            return _merged(program, phases, stop)
    return program, list(range(len(body)))


def sink_fetches(program: Program) -> tuple[Program, list[int]]:
    """The program, its fetches behind barriers if what they load is needed only there, and for each instruction where
    it stood: so that the texels needn't be put aside at the barrier."""
    body, order = program.body, list(range(len(program.body)))
    barriers = [at for at, i in enumerate(body) if is_barrier(program, i)]
    for at in reversed([at for at, i in enumerate(body) if i.op.kind == "fetch"] if barriers else []):
        loaded = _written([body[at]])
        fixed = loaded | keys(uses(program, body[at]))
        stop = next(k for k in range(at + 1, len(body) + 1) if _needs(program, k, loaded, fixed))
        behind = [k for k in barriers if at < k < stop]
        if behind and stop < len(body) and keys(uses(program, body[stop])) & loaded:
            order.remove(at)
            order.insert(order.index(behind[-1]) + 1, at)
    expanded = (*program.declarations, *(body[at] for at in order))
    return replace(program, expanded=expanded), order


def _needs(program: Program, at: int, read: set[tuple[int, int]], fixed: set[tuple[int, int]]) -> bool:
    """Whether a fetch can't be moved behind ``at``: a branch, the end, or what reads or writes some of these."""
    if at == len(program.body) or program.body[at].op.flow:
        return True
    return bool(keys(uses(program, program.body[at])) & read or _written([program.body[at]]) & fixed)


def is_barrier(program: Program, i: Instruction) -> bool:
    """Whether all quads of a group must have come to ``i`` before one goes on."""
    return i.op.kind == "fence" and program.mode == "compute" and (i.controls.threads or i.controls.lds)


def _phases(program: Program, start: int, stop: int) -> list[list[int]]:
    """The stores of each phase, and the ifs around them, of the loop from ``start`` to ``stop``, or (from -1) outside
    of loops; none if they can't be put together."""
    body, match = program.body, program.matching
    loops = [at for at in range(max(start, 0), stop) if body[at].op.flow == "loop"]
    used = [at for at, i in enumerate(body) if i.op.kind == "lds"]
    stores = [at for at in used if body[at].op.store]
    if not stores or not start < stores[0] <= stores[-1] < stop:
        return []
    blocks = _blocks(program)
    phases = [[*blocks.get(stores[0], stores[:1])]]
    first, end = phases[0][0], stop if start >= 0 else used[-1] + 1
    marks = {at: "" if at in blocks and body[at].op.flow else _mark(program, body[at]) for at in range(start + 1, end)}
    before, inside = ("".join(marks[at] for at in part) for part in (range(start + 1, first), range(first, end)))
    around = "b" in before + inside[-1] if start >= 0 else not any(at < first < match[at] for at in loops)
    if "l" in before or not around or not fullmatch("(s+b([lb]*b)?)+s+(b[lb]*)?", inside):
        return []
    for last, at in pairwise(stores):
        if "b" in "".join(marks[k] for k in range(last, at)):
            phases.append([])
        if at not in blocks or at not in phases[-1]:
            phases[-1] += blocks.get(at, [at])
    written = _written(body[start if start >= 0 else first : end])
    fixed = not any(_entering(program, phase, False) & written for phase in phases)
    early = all(_movable(program, phase, phases) for phase in phases[1:])
    alike = len({tuple(_address(body[at]) for at in phase) for phase in phases}) == 1
    return phases if fixed and early and alike and len({body[at].controls.id for at in used}) == 1 else []


def _blocks(program: Program) -> dict[int, range]:
    """The ifs without an else that hold neither barriers nor branches, by each of their instructions."""
    body, found = program.body, dict[int, range]()
    for at, i in enumerate(body):
        block = range(at, program.matching[at] + 1) if i.op.flow == "if" else range(0)
        if block and body[block[-1]].op.flow == "endif":
            if not any(body[k].op.flow or is_barrier(program, body[k]) for k in block[1:-1]):
                found |= dict.fromkeys(block, block)
    return found


def _movable(program: Program, phase: list[int], phases: list[list[int]]) -> bool:
    """Whether a phase's stores can stand behind those of the first."""
    moved, stay = set().union(*phases), range(phases[0][0], phase[-1])
    skipped = [program.body[at] for at in stay if at not in moved]
    written, own = _written(skipped), _written(program.body[at] for at in phase)
    read = set().union(*(keys(uses(program, i)) for i in skipped))
    return not (_entering(program, phase, True) & written or own & (read | written))


def _entering(program: Program, phase: list[int], stored: bool) -> set[tuple[int, int]]:
    """What a phase's stores, and the ifs around them, read that they don't write themselves; ``stored``: also the
    numbers that are stored."""
    found: set[tuple[int, int]] = set()
    own: set[tuple[int, int]] = set()
    for i in (program.body[at] for at in phase):
        found |= keys(uses(program, i) if stored or not i.op.store else address_uses(program, i)) - own
        own = set() if i.op.flow else own | _written([i])
    return found


def _mark(program: Program, i: Instruction) -> str:
    """A letter for a barrier, a load, a store, and for what is in the way: "x"."""
    if is_barrier(program, i):
        return "b"
    if i.op.kind == "lds":
        return "s" if i.op.store else "l"
    return "x" if i.op.flow or any(register.kind == "g" for register in i.registers) else ""


def _address(i: Instruction) -> Instruction:
    """An instruction without what it stores."""
    return replace(i, sources=tuple(s for n, s in enumerate(i.sources) if n not in i.op.passed)) if i.op.store else i


def _written(part: Iterable[Instruction]) -> set[tuple[int, int]]:
    return {(i.dest.register.index, c) for i in part if i.dest for c in defines(i)}


def _merged(program: Program, phases: list[list[int]], stop: int) -> tuple[Program, list[int]]:
    body = list(program.body)
    array, first = body[phases[0][0]].controls.id, phases[0][-1]
    arrays = [array] + [max(program.lds) + n for n in range(1, len(phases))]
    loads = [at for at in range(first, stop) if body[at].op.kind == "lds" and not body[at].op.store]
    barriers = [at for at in range(first, loads[-1] if loads else first) if is_barrier(program, body[at])]
    for at in barriers[1:]:
        body[at] = replace(body[at], controls=body[at].controls._replace(threads=False, lds=False))
    for at, i in enumerate(body):
        if i.op.kind == "lds":
            phase = sum(at >= phase[0] for phase in phases) or len(phases)
            phase = len(phases) if at > stop else phase
            body[at] = replace(i, controls=i.controls._replace(id=arrays[phase - 1]))
    moved = [at for phase in phases[1:] for at in phase]
    order = [*range(first + 1), *moved, *(at for at in range(first + 1, len(body)) if at not in moved)]
    declared = [i for i in program.declarations if "lds" in i.opcode and i.controls.id == array]
    more = [replace(i, controls=i.controls._replace(id=other)) for other in arrays[1:] for i in declared]
    expanded = (*program.declarations, *more, *(body[at] for at in order))
    return replace(program, expanded=expanded), order
