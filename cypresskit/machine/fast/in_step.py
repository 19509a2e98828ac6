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
from cypresskit.il.dataflow import forward

Memory = tuple[str, int]  # ("g", 0), or ("lds", number of an array)
Accesses = frozenset[tuple[int, Memory, bool]]


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
    body = program.body
    loads = [_loaded(i) for i in body]
    stores = [_stored(i) for i in body]
    fences = {at for at, i in enumerate(body) if i.controls.threads and program.mode == "compute"}
    waits: set[int] = set()
    deferred: set[int] = set()

    def after(at: int, since: Accesses) -> Accesses:
        """Return the accesses since the last wait: instruction, memory, whether it stores."""
        memory = stores[at]
        for number, place, store in since:
            late = place == memory and number >= at
            if store and (late or place in loads[at]):
                waits.add(at)
        if at in waits or at in fences:
            since = frozenset()
        since |= {(at, place, False) for place in loads[at]}
        if memory:
            others = {access for access in since if access[1] == memory}
            deferred.update(number for number, _, store in others if store)
            deferred.update([at] if others else [])
            since |= {(at, memory, True)}
        return since

    forward(program, Accesses(), after)
    return InStep(frozenset(waits), frozenset(fences), frozenset(deferred))


def _loaded(i: Instruction) -> set[Memory]:
    """Return the memories that an instruction loads from."""
    loaded: set[Memory] = {("g", 0) for source in i.sources if source.register.kind == "g"}
    if i.op.kind == "lds" and not i.op.store:
        loaded.add(("lds", i.controls.id))
    return loaded


def _stored(i: Instruction) -> Memory | None:
    """Return the memory that it stores to."""
    if i.op.kind == "lds" and i.op.store:
        return "lds", i.controls.id
    return ("g", 0) if i.dest and i.dest.register.kind == "g" else None
