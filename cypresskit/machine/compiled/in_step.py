"""Keep a wavefront in step, although its work-items run one after another: find its waits and
deferred stores.

From one wait to the next, all loads of a wavefront come before all its stores. So a store is
*deferred* until all work-items wait if another access to its memory is possible in that time; then
deferred stores are carried out instruction by instruction. A wavefront *waits* before a load that
may follow a store, and before a store that may follow itself or a later one, as around a loop. A
kernel that loads, computes, and stores at its end never waits.
"""

from dataclasses import dataclass

from cypresskit.il import Instruction, Program
from cypresskit.il.dataflow import find_successors

Memory = int | None  # the number of an LDS array, or None for g[]
Accesses = frozenset[tuple[int, Memory, bool]]  # instruction, memory, whether it stores


@dataclass(frozen=True)
class InStep:
    """Indices in ``Program.body``.

    Attributes
    ----------
    waits
        Instructions before which a wavefront waits.
    fences
        Instructions at which a workgroup waits.
    deferred
        Stores that are deferred.
    """

    waits: frozenset[int]
    fences: frozenset[int]
    deferred: frozenset[int]


def in_step(program: Program) -> InStep:
    """Find a program's waits and deferred stores."""
    accesses = [_accesses(i) for i in program.body]
    compute = program.mode == "compute"
    fences = {at for at, i in enumerate(program.body) if i.controls.threads and compute}
    waits: set[int] = set()
    deferred: set[int] = set()

    def after(at: int, since: Accesses) -> Accesses:
        """Return the accesses since the last wait."""
        for memory, stores in accesses[at]:
            before = [number for number, other, stored in since if stored and other == memory]
            if before and (not stores or max(before) >= at):
                waits.add(at)
        if at in waits or at in fences:
            since = frozenset()
        for memory, stores in accesses[at]:
            others = [(number, stored) for number, other, stored in since if other == memory]
            if stores and others:
                deferred.update([at, *(number for number, stored in others if stored)])
            since |= {(at, memory, stores)}
        return since

    before: list[Accesses] = [frozenset()] * (len(program.body) + 1)
    earlier: list[Accesses] = []
    while earlier != before:
        earlier = [*before]
        for at in range(len(program.body)):
            since = after(at, before[at])
            for following in find_successors(program, at):
                before[following] |= since
    return InStep(frozenset(waits), frozenset(fences), frozenset(deferred))


def _accesses(i: Instruction) -> list[tuple[Memory, bool]]:
    """Return the memories that an instruction accesses, and whether it stores; loads first."""
    found: list[tuple[Memory, bool]] = []
    found += [(None, False) for source in i.sources if source.register.kind == "g"]
    if i.op.kind == "lds":
        found.append((i.controls.id, i.op.store))
    if i.dest and i.dest.register.kind == "g":
        found.append((None, True))
    return found
