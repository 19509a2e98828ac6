"""A kernel's clauses as they follow each other, joined with what its slice did: the way of a party of wavefronts.

``Step`` is a clause, or a loop or branch around others; ``path`` walks steps and a ``Scope`` side by side and lists the
clauses that the party runs. A turn of a loop that stands for many becomes a segment that repeats.
"""

from dataclasses import dataclass

import numpy as np

from cypresskit.timing.addresses import Scope
from cypresskit.timing.work import ALU, BARRIER, TEX, WRITE, Clause, Path, Stream, combined_stores, fetch_clause


@dataclass(frozen=True)
class Step:
    """``kind``: "alu", "tex", "write" (clauses), "barrier", "loop", "if" (``inner``, ``otherwise``), "break" (also continue).

    ``at`` is the index in ``Program.body`` of the loop, if or break; ``accesses`` those of a clause's fetches, stores or
    LDS operations; ``bundles`` an ALU clause's.
    """

    kind: str
    at: int = -1
    bundles: int = 0
    accesses: tuple[int, ...] = ()
    inner: tuple["Step", ...] = ()
    otherwise: tuple["Step", ...] = ()


def path(steps: tuple[Step, ...], party: np.ndarray, scope: Scope) -> Path:
    """The clauses that wavefronts ``party`` run, given what their slice did."""
    return Path(party, tuple(_Way().follow(steps, scope)))


class _Way:
    def follow(self, steps: tuple[Step, ...], scope: Scope) -> list[tuple[tuple[Clause, ...], int]]:
        segments: list[tuple[tuple[Clause, ...], int]] = []
        straight: list[Clause] = []
        for step in self._taken(steps, scope):
            if isinstance(step, Step):  # a loop
                for turn, times in scope.loops.get(step.at, ()):
                    inner = self.follow(step.inner, turn)
                    if times == 1 and all(repeats == 1 for _, repeats in inner):
                        straight += [clause for clauses, _ in inner for clause in clauses]
                    else:
                        segments += [(tuple(combined_stores(straight)), 1)] if straight else []
                        straight = []
                        segments += [(clauses, repeats * times) for clauses, repeats in inner]
            else:
                straight.append(step)
        return segments + ([(tuple(combined_stores(straight)), 1)] if straight else [])

    def _taken(self, steps: tuple[Step, ...], scope: Scope):
        """Clauses, and loops as they are, up to where everyone has left; branches are opened."""
        for step in steps:
            if step.kind == "loop":
                yield step
            elif step.kind == "if":
                sides = scope.branches.get(step.at, (None, None))
                for side, inner in zip(sides, (step.inner, step.otherwise)):
                    if side is not None:
                        yield from self._branch(inner, scope, side)
                if scope.left == step.at:
                    return
            elif step.kind == "break":
                if scope.left == step.at:
                    return
            else:
                yield self._clause(step, scope)

    def _branch(self, inner: tuple[Step, ...], scope: Scope, side: Scope):
        for segment, repeats in self.follow(inner, side):
            for _ in range(repeats):
                yield from segment

    @staticmethod
    def _clause(step: Step, scope: Scope) -> Clause:
        streams: list[Stream] = [s for at in step.accesses for s in scope.streams.get(at, ())]
        if step.kind == "tex":
            return fetch_clause(streams)
        kind = {"alu": ALU, "write": WRITE, "barrier": BARRIER, "tex": TEX}[step.kind]
        return Clause(kind, step.bundles, tuple(streams))
