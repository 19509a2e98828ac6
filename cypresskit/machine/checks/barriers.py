"""Find barriers that not all work-items of a group reach: the chip would wait forever.

This includes a barrier in a loop that work-items leave after different numbers of iterations.
"""

import numpy as np

from cypresskit.machine.checks.findings import BARRIER, Check
from cypresskit.machine.observer import BarrierEvent


class BarrierCheck(Check):
    """Reports a fence with ``_threads`` in divergent control flow. Names a work-item that reaches
    it and one that doesn't.
    """

    def barrier(self, event: BarrierEvent) -> None:
        split = self.launch.shape.split_groups(event.active)
        if not self.program.body[event.at].controls.threads or not len(split):
            return
        group = int(split[0])
        members = np.flatnonzero(self.group == group)
        active = event.active[members]
        present, absent = int(members[np.argmax(active)]), int(members[np.argmin(active)])
        # The group diverges at the innermost branch that all of it reached.
        came = [entry.at for entry in event.stack if entry.entry_mask[members].all()]
        opener = came[-1] if came else event.at
        line = self.program.body[opener].line
        advice = f"The branch of line {line} splits the group: take the fence out of it."
        if self.program.body[opener].op.flow == "loop":
            advice = (
                "The work-items of a group run different numbers of iterations of the loop of line"
                f" {line}: make its condition the same for all of them."
            )
        message = (
            f"{active.sum()} of {len(members)} work-items of group {group} reach this barrier, such"
            f" as {self.naming.item(present)}; the others never do"
        )
        other = f"{self.naming.item(absent)} does not reach it"
        self.report(
            BARRIER,
            event.at,
            message,
            advice,
            count=len(split),
            item=present,
            other_side=other,
            other_item=absent,
            other_line=line,
        )
