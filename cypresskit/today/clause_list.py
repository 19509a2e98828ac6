"""The clauses of a warp, for the engine, made from its instructions.

- A warp belongs to one of four schedulers, which takes some clocks for an instruction (``gpus``).
  The control code's stalls hold up that warp alone.
- Loads that a warp starts before its next wait leave together, with the first. It goes on once the
  load unit has served them, and waits for a scoreboard where the code waits.
"""

from cypresskit.chip.units.state import SCOREBOARDS
from cypresskit.chip.work import ALU, TEX, WAIT, Clause, Stream
from cypresskit.today.gpus import SCHEDULERS


class ClauseList:
    """The clauses of an iteration, made from its instructions."""

    def __init__(self) -> None:
        self.clauses: list[Clause] = []
        self.issue = 0.0  # clocks of a scheduler that no clause has yet
        self.alone = 0.0  # clocks of the warp if it had the scheduler to itself
        self.loads: dict[int, list[tuple[int, Stream]]] = {}  # lines and requests, by scoreboard
        self.in_flight: dict[int, set[int]] = {}  # lines of loads, by scoreboard

    def load(self, scoreboard: int, line: int, requests: Stream) -> None:
        """Add a load that sets a scoreboard."""
        if not self.loads:
            self.flush()
        self.loads.setdefault(scoreboard, []).append((line, requests))

    def flush(self) -> None:
        """Add the clauses of the loads, and of what the warp computes after the first of them."""
        for scoreboard, loads in self.loads.items():
            lines, requests = zip(*loads)
            mask = 1 << scoreboard
            self.clauses.append(Clause(TEX, 0, requests, sources=lines, scoreboards=mask))
            self.in_flight.setdefault(scoreboard, set()).update(lines)
        self.loads = {}
        if slots := round(self.issue):
            pause = max(round(SCHEDULERS * (self.alone - slots)), 0)
            self.clauses.append(Clause(ALU, slots, pause=pause))
            self.issue, self.alone = self.issue - slots, 0.0

    def wait(self, mask: int) -> None:
        """Wait for the scoreboards of a mask."""
        self.flush()
        some = [one for one in range(SCOREBOARDS) if mask >> one & 1]
        lines = {line for one in some for line in self.in_flight.pop(one, ())}
        self.clauses.append(Clause(WAIT, scoreboards=mask, sources=tuple(sorted(lines))))
