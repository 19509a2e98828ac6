"""Barriers that not all work-items of a group reach, or reach equally often: the chip would wait without end."""

import numpy as np

from cypresskit.il import Program
from cypresskit.machine.checks.findings import Check, Places
from cypresskit.machine.checks.marks import Suppressed
from cypresskit.machine.observer import StepEvent


class BarrierCheck(Check):
    """Reports a fence with ``_threads`` in divergent flow, with a work-item that came and one that didn't."""

    def __init__(self, places: Places, suppressed: Suppressed):
        super().__init__(places)
        self.suppressed = suppressed
        self.entered: dict[int, np.ndarray] = {}  # who came to an if or loop last

    def step(self, event: StepEvent) -> None:
        if event.instruction.op.flow in ("if", "loop"):
            self.entered[event.at] = event.active.copy()
        if event.instruction.op.kind != "fence" or not event.instruction.controls.threads:
            return
        if event.active.all():
            return
        here = event.active.reshape(-1, self.launch.group_items)
        split = np.flatnonzero(here.any(axis=1) & ~here.all(axis=1))
        if not len(split):
            return
        group, size = int(split[0]), here.shape[1]
        present, absent = (group * size + int(np.argmax(here[group] == here_too)) for here_too in (True, False))
        opener = self._opener(event.at, group)
        if is_suppressed(self.program, opener, self.suppressed):
            return
        line = self.program.body[opener].line
        loop = self.program.body[opener].op.flow == "loop"
        cause = (
            f"The work-items of a group take different numbers of turns through the loop of line {line}: make its "
            "condition the same for all of them."
            if loop
            else f"The branch of line {line} splits the group: take the fence out of it."
        )
        self.report(
            "barrier",
            event.at,
            f"{int(here[group].sum())} of {size} work-items of group {group} reach this barrier, such as "
            f"{self.places.item(present)}; the others never come",
            cause,
            count=len(split),
            item=present,
            other=f"{self.places.item(absent)} does not reach it",
            other_line=line,
        )

    def _opener(self, at: int, group: int) -> int:
        """The loop or if around ``at`` that splits the group: the innermost to which all of it came."""
        stack = []
        for n, i in enumerate(self.program.body[:at]):
            if i.op.flow in ("loop", "if"):
                stack.append(n)
            elif i.op.flow in ("endloop", "endif"):
                stack.pop()
        size = self.launch.group_items
        here = slice(group * size, (group + 1) * size)
        return next((n for n in reversed(stack) if self.entered[n][here].all()), at)


def is_suppressed(program: Program, opener: int, suppressed: Suppressed) -> bool:
    """Whether an if, or a break or continue of a loop, depends on a value that has been reported as wrong."""
    return any(at == opener or program.matching.get(at) == opener for at in suppressed if program.body[at].op.flow)
