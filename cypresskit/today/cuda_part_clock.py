"""The clocks of a part of a launch: its machine code becomes clauses, which the engine runs.

The warps that the chip holds at once run for some iterations, and for twice as many: the rest goes
on like the difference.

- A scheduler needs some clocks for an instruction of each kind (``gpus``), and a warp stalls for
  its own results, as its code says (the dots of ``cuda_code``).
- Loads of the source leave where the code has loads, and are waited for where it waits.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from cypresskit.timing.engine import Outcome, run
from cypresskit.timing.launch_time import busy_shares
from cypresskit.timing.work import ALU, BARRIER, TEX, Clause, Stream, WavefrontPath, pack
from cypresskit.today.cuda_access import Asked, WarpAccess
from cypresskit.today.cuda_code import MULTIPLY_ADDS, Loop
from cypresskit.today.cuda_count import FLOPS
from cypresskit.today.cuda_parts import CodePart
from cypresskit.today.cuda_trace import WARP
from cypresskit.today.gpus import SCHEDULERS, CudaGpu

EFFORT = 1_000_000  # sectors and clauses of a run
LEAST = 12  # iterations of it
NOTHING = 0, ""
LETTERS = {"L": "load", "S": "shared load", "T": "shared store"}


@dataclass(frozen=True, eq=False)
class TimedPart:
    """A part on a board: its machine code and the workgroups that run it."""

    part: CodePart
    loop: Loop
    board: CudaGpu
    group: int  # threads of a workgroup
    together: int  # workgroups on a multiprocessor

    def clauses(
        self, part: CodePart, free: tuple[int, str] = NOTHING
    ) -> tuple[tuple[Clause, ...], int]:
        """An iteration of the machine code, without what is ``free``, and how many of the
        source's.
        """
        text, unroll, weight = self._text(part, free)
        issue_clocks = self.board.issue_clocks
        queues = {letter: iter(self._slots(part, text, unroll, letter)) for letter in LETTERS}
        asked = Asked(self.group, self.board)
        clauses: list[Clause] = []
        clocks = alone = 0.0  # of a scheduler, and of a warp that has one for itself
        waiting: list[Stream] = []
        lines: list[int] = []
        for letter in text + "w":
            if letter in "wB":
                slots = round(clocks)
                if slots:
                    pause = max(round(SCHEDULERS * (alone - slots)), 0)
                    clauses.append(Clause(ALU, slots, pause=pause))
                    clocks, alone = clocks - slots, 0.0
                if waiting:
                    clauses.append(Clause(TEX, 0, tuple(waiting), sources=tuple(lines)))
                clauses += [Clause(BARRIER)] * (letter == "B")
                waiting = []
                lines = []
                continue
            each = weight if letter in MULTIPLY_ADDS else 1.0
            alone += each
            clocks += each * issue_clocks.get(letter, 0.0)
            for access in next(queues[letter], ()) if letter in LETTERS else ():
                if access.events[0].what != free:
                    waiting.append(access.stream(unroll, asked))
                    lines.append(access.events[0].line)
        return tuple(clauses), unroll

    def _text(self, part: CodePart, free: tuple[int, str]) -> tuple[str, int, float]:
        """Letters of an iteration of the code, iterations of the source in it, and what each
        multiply-add of the code stands for.
        """
        computing = [action.what for action in part.actions if action.kind in FLOPS]
        share = 1 - computing.count(free) / max(len(computing), 1)
        if self.loop.unroll:
            return self.loop.text, self.loop.unroll, share
        head, _, rest = self.loop.text.partition("[")
        inner, _, tail = rest.partition("]")
        own = self.loop.fmas or len(computing)
        trips = round((own - _count(head + tail)) / _count(inner)) if inner else 0
        text = head + inner * trips + tail
        unroll = 1 if inner else max(round(_count(text) / own), 1)
        return text, unroll, share * len(computing) * unroll / max(_count(text), 1)

    def _slots(self, part: CodePart, text: str, unroll: int, letter: str) -> list[list[WarpAccess]]:
        """What each letter of the code stands for: loads leave as multiply-adds need them, the
        first of each array first; in assumed code, as the source has them.
        """
        events = part.actions
        seen: Counter = Counter()
        ranks = []
        for event in events:
            ranks.append(seen[event.array])
            seen[event.array] += 1
        own = [n for n, event in enumerate(events) if event.kind == LETTERS[letter]]
        if not self.loop.unroll:
            own.sort(key=lambda n: ranks[n])
        asked = [(turn, n) for turn in range(unroll) for n in own]
        earlier = [(-1, n) for n in own] if part.kind else []
        count = max(text.count(letter), 1)
        bounds = [round(len(asked) * n / count) for n in range(count + 1)]
        slots = []
        for first, end in pairwise(bounds):
            some = [events[n] for _, n in asked[first:end]]
            turns = [turn for turn, _ in asked[first:end]]
            arrays = {event.array for event in some}
            before = [
                (events[n], turn)
                for turn, n in earlier + asked[:first]
                if events[n].array in arrays and turn >= min(turns) - 1
            ]
            slots.append([WarpAccess(some, turns, before)] if some else [])
        return slots

    def round(self, blocks: int, free: tuple[int, str] = NOTHING) -> tuple[float, Outcome]:
        """Clocks of the first ``blocks`` workgroups at once, and a run of some iterations of
        theirs.
        """
        clauses, unroll = self.clauses(self.part.of_blocks(blocks, self.group), free)
        turns = -(-self.part.count // unroll)
        streams = [stream for clause in clauses for stream in clause.streams]
        each = len(clauses) * blocks + sum(len(s.line) / s.phases for s in streams)
        phases = max((stream.phases for stream in streams), default=1)
        some = -(-max(int(EFFORT // max(each, 1)), LEAST) // phases) * phases
        if turns <= 2 * some:
            out = self._run(clauses, turns, blocks)
            return out.end_clock / SCHEDULERS, out
        short, long = (self._run(clauses, n, blocks) for n in (some, 2 * some))
        slope = (long.end_clock - short.end_clock) / some
        return (short.end_clock + slope * (turns - some)) / SCHEDULERS, long

    def _run(self, clauses: tuple[Clause, ...], turns: int, blocks: int) -> Outcome:
        warps = -(-self.group // WARP)
        path = WavefrontPath(np.arange(blocks * warps), ((clauses, turns),))
        return run(pack([path], warps), self.board.in_quarters, self.together * warps)


def _count(text: str) -> int:
    return sum(text.count(letter) for letter in MULTIPLY_ADDS)


@dataclass(frozen=True, eq=False)
class Ran:
    """A part that has run: its clocks in the whole launch, those of a full round of workgroups, and
    that run. ``stored``: the sectors that each line's stores ask for; ``storing``: the clocks for
    which they keep each unit.
    """

    timed: TimedPart
    clocks: float
    round_clocks: float
    out: Outcome
    stored: Mapping[tuple[int, str], float]
    storing: Mapping[str, float]

    @property
    def runs(self) -> float:
        """The run's counts, times this, are the launch's."""
        return self.clocks * SCHEDULERS / self.out.end_clock

    @cached_property
    def busy(self) -> dict[str, float]:
        """Clocks for which each unit is busy, stores among them."""
        board = self.timed.board.in_quarters
        shares = busy_shares(self.out.counts, self.out.end_clock, board)
        units = {"issue": "ALU", "L1": "texture", "L2": "L2", "DRAM": "DRAM"}
        return {
            name: shares[unit] * self.clocks + self.storing.get(name, 0.0)
            for name, unit in units.items()
        }

    @cached_property
    def all_clocks(self) -> float:
        """Its clocks with stores, which are sent after all else."""
        return max(self.clocks, *(self.busy[unit] for unit in self.storing))
