"""``CudaReport``: how long a launch of a CUDA kernel takes, why, and how sure that is."""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from linecache import getline

from cypresskit.timing.report import ChipReport
from cypresskit.timing.work import ALU, BARRIER
from cypresskit.today.cuda_access import sectors_per_warp
from cypresskit.today.cuda_code import Loop
from cypresskit.today.cuda_part_clock import Ran
from cypresskit.today.gpus import CudaGpu

WAITS = {ALU: "its turn", BARRIER: "other warps"}
#: How far modelled times were off those of an H200 or H100, by class (docs/model.md).
SURE = {
    "own code": "blocks in registers, own machine code: all 29 products of the record within 15 %",
    "blocks": "blocks in registers, similar code: 58 of 65 launches drawn at random within 20 %;"
    " modelled in 0.56 to 1.35 times the time measured",
    "tiles": "products from tiles: 6 launches, all modelled 24 to 31 % too slow",
    "loops": "loops over a size: 40 of 43 launches within 30 %; the worst, of few warps in a"
    " `while` loop, 75 % too slow",
    "straight code": "straight code: 34 of 35 launches within 30 %; the worst, a stencil that"
    " clamps its indices, in half the time measured",
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CudaReport(ChipReport):
    """A timed launch of a CUDA kernel: ``ChipReport`` with warps for wavefronts, and the units
    "issue", "L1", "L2" and "DRAM".

    Its other fields:

    loop
        the machine code of the part that takes the longest.
    assumed
        what that code is if it isn't the kernel's own.
    source
        the file of the kernel.
    parts
        what has run: straight code and loops, one after the other.
    blocks
        the workgroups of a full round.
    """

    device: CudaGpu
    loop: Loop
    assumed: str
    source: str
    parts: tuple[Ran, ...] = field(repr=False)
    blocks: int

    @property
    def sure(self) -> str:
        """How far launches of this class were off, as far as they were measured."""
        if not self.assumed:
            return SURE["own code"]
        if any(ran.timed.loop.unroll == 0 for ran in self.parts):
            kinds = {action.kind for ran in self.parts for action in ran.timed.part.actions}
            return SURE["tiles" if "shared load" in kinds else "blocks"]
        looped = any(ran.timed.part.kind for ran in self.parts)
        return SURE["loops" if looped else "straight code"]

    @cached_property
    def sectors(self) -> dict[tuple[int, str], float]:
        """Sectors of 32 bytes that a warp requests with a load, on average over the loads of each
        (line, array) in words.
        """
        found: dict[tuple[int, str], list[float]] = defaultdict(list)
        for ran in self.parts:
            for action in ran.timed.part.actions:
                if action.kind == "load":
                    found[action.what].append(
                        sectors_per_warp(action, ran.timed.group, self.device)
                    )
        return {what: sum(counts) / len(counts) for what, counts in found.items()}

    @cached_property
    def waits(self) -> dict[str, float]:
        """The shares of a warp's lifetime for which it waits: for loads of a line, for other warps
        of its workgroup, and for its turn on a scheduler.
        """
        found: dict[str, float] = defaultdict(float)
        whole = sum(ran.out.resident_clocks * ran.runs for ran in self.parts)
        for ran in self.parts:
            clauses, _ = ran.timed.clauses(ran.timed.part.of_blocks(1, ran.timed.group))
            for clause, waited in zip(clauses, ran.out.ledger.waited.tolist()):
                lines = " and ".join(map(str, sorted(set(clause.sources))))
                name = f"loads of line {lines}" if lines else WAITS[clause.kind]
                found[name] += waited * ran.runs / whole
        return dict(sorted(found.items(), key=lambda each: -each[1]))

    @cached_property
    def prices(self) -> dict[tuple[int, str], float]:
        """The share of the launch that would be saved if the loads of an array, or arithmetic, or
        stores of a line took no time, by (line, what). Below zero: the others would get in each
        other's way.
        """
        found: dict[tuple[int, str], float] = defaultdict(float)
        for ran in self.parts:
            actions = ran.timed.part.actions
            blocks = min(self.blocks, len(actions[0].on) // ran.timed.group)
            for what in sorted({a.what for a in actions if a.kind not in ("barrier", "store")}):
                free, _ = ran.timed.round(blocks, what)
                found[what] += ran.clocks / self.clocks * (1 - free / ran.round_clocks)
        for ran in self.parts:
            sectors = sum(ran.stored.values())
            for what, count in ran.stored.items():
                found[what] += (ran.all_clocks - ran.clocks) * count / sectors / self.clocks
        return dict(found)

    @property
    def listing(self) -> str:
        """What each line costs, with sectors and the lines of the kernel's source."""
        rows = [f"{'price':>7} {'sectors':>8}   (what indices cost isn't priced)"]
        for (line, what), price in self.prices.items():
            requested = self.sectors.get((line, what), 0)
            text = getline(self.source, line).strip()
            percent = round(100 * price)
            rows.append(f"{percent:5} % {requested:8.1f}   line {line}, {what}:  {text}")
        return "\n".join(rows)

    def __repr__(self) -> str:
        waits = ", ".join(
            f"{name} {100 * share:.0f} %" for name, share in self.waits.items() if share > 0.01
        )
        code = f"numba's, {self.assumed}{self.loop.name}"
        return f"{super().__repr__()}\n  a warp waits for {waits}\n  code: {code}\n  {self.sure}"
