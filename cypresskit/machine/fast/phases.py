"""Phases of a loop that pass different numbers through the same block of LDS, put together.

A kernel that sends one column of A after another through the LDS waits twice for each, and at every wait compiled code
has to put all registers of all quads aside. Here each phase gets a block of its own: what all of them store is stored
in the first, so that the work-items wait once a turn. That is done only where it changes nothing: the phases store to
the same places, nothing that is stored is computed after the first phase's stores, and barriers lie on both sides of
every phase. Left out: phases that branch, and loops within loops.
"""

from dataclasses import replace

from cypresskit.il import Instruction, Program
from cypresskit.il.dataflow import components, defines, uses


def merge_phases(program: Program) -> tuple[Program, list[int]]:
    """The program, its phases put together if it has some, and for each instruction where it stood."""
    body = program.body
    for start, stop in program.matching.items():
        outermost = not any(body[k].op.flow == "loop" and program.matching[k] > stop for k in range(start))
        if body[start].op.flow == "loop" and outermost:
            phases = _phases(program, start, stop)
            if len(phases) > 1:
                return _merged(program, phases, stop)
    return program, list(range(len(body)))


def is_barrier(program: Program, i: Instruction) -> bool:
    """Whether all quads of a group must have come to ``i`` before one goes on."""
    return i.op.kind == "fence" and program.mode == "compute" and (i.controls.threads or i.controls.lds)


def _phases(program: Program, start: int, stop: int) -> list[list[int]]:
    """The stores of each phase of the loop from ``start`` to ``stop``; none if they can't be put together."""
    body = program.body
    stores = [at for at, i in enumerate(body) if i.op.kind == "lds" and i.op.store]
    if not stores or not start < stores[0] < stores[-1] < stop:
        return []
    inside, block = range(stores[0], stop), body[stores[0]].controls.id
    phases: list[list[int]] = []
    loaded, waited = False, True  # since the last store; since the last load or, in a phase that loads nothing, store
    for at in inside:
        i = body[at]
        if is_barrier(program, i):
            waited = True
        elif i.op.kind == "lds" and i.op.store:
            if not waited and (loaded or not phases):
                return []
            if waited:
                phases.append([])
            phases[-1].append(at)
            loaded, waited = False, False
        elif i.op.kind == "lds":
            if not waited and not loaded:
                return []
            loaded, waited = True, False
        elif i.op.flow or any(register.kind == "g" for register in i.registers):
            return []
    ends = waited or any(is_barrier(program, body[k]) for k in range(start, stores[0]))
    simple = all(i.op.kind != "lds" for i in body[start : stores[0]])
    simple = simple and all(i.controls.id == block for i in body if i.op.kind == "lds")
    written = {(body[k].dest.register, c) for k in range(start, stop) for c in defines(body[k])}  # type: ignore[union-attr]
    told = {tuple(_address(body[at]) for at in phase) for phase in phases}
    fixed = not any(_reads(program, body[at], address=True) & written for phase in phases for at in phase)
    return phases if ends and simple and fixed and len(told) == 1 and _early(program, phases) else []


def _address(i: Instruction) -> tuple:
    return i.opcode, i.dest, *(s for n, s in enumerate(i.sources) if n not in i.op.passed)


def _reads(program: Program, i: Instruction, address: bool) -> set:
    return {
        (source.register, c)
        for n, source, positions in uses(program, i)
        for c in components(source, positions)
        if not address or n not in i.op.passed
    }


def _early(program: Program, phases: list[list[int]]) -> bool:
    """Whether what later phases store is known when the first one stores."""
    first = phases[0][-1]
    for at in (at for phase in phases[1:] for at in phase):
        made = {(i.dest.register, c) for i in program.body[first:at] for c in defines(i)}  # type: ignore[union-attr]
        if made & _reads(program, program.body[at], address=False):
            return False
    return True


def _merged(program: Program, phases: list[list[int]], stop: int) -> tuple[Program, list[int]]:
    body = list(program.body)
    block, first = body[phases[0][0]].controls.id, phases[0][-1]
    blocks = [block] + [max(program.lds) + n for n in range(1, len(phases))]
    loads = [at for at in range(first, stop) if body[at].op.kind == "lds" and not body[at].op.store]
    barriers = [at for at in range(first, loads[-1] if loads else first) if is_barrier(program, body[at])]
    for at in barriers[1:]:
        body[at] = replace(body[at], controls=body[at].controls._replace(threads=False, lds=False))
    for at, i in enumerate(body):
        if i.op.kind == "lds":
            phase = sum(at >= phase[0] for phase in phases) or len(phases)
            phase = len(phases) if at > stop else phase
            body[at] = replace(i, controls=i.controls._replace(id=blocks[phase - 1]))
    moved = [at for phase in phases[1:] for at in phase]
    order = [*range(first + 1), *moved, *(at for at in range(first + 1, len(body)) if at not in moved)]
    declared = [i for i in program.declarations if "lds" in i.opcode and i.controls.id == block]
    more = [replace(i, controls=i.controls._replace(id=other)) for other in blocks[1:] for i in declared]
    expanded = (*program.declarations, *more, *(body[at] for at in order))
    return replace(program, expanded=expanded), order
