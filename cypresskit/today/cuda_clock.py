"""The clock of a CUDA kernel on a GPU of today: ``cypresskit.timing``'s chip with other units.

``simulate`` traces the kernel (``cuda_trace``), divides it into parts (``cuda_parts``), takes the
order of their instructions from machine code (``cuda_code``), and runs the warps that the chip
holds at once for some iterations of each part, twice as many for the second time: the rest goes on
like the difference. Parts add up. The last round of workgroups, which fills the chip in part, has a
run of its own. Totals are those of the whole grid (``cuda_count``).

- A scheduler needs so many clocks for an instruction of each kind (``gpus``), and a warp stalls for
  its own results, as its code says (the dots of ``cuda_code``).
- An access takes the load unit a clock for each word that the busiest of 32 banks has to give, or
  four lines of 128 bytes, and ``access_clocks`` at least; half a warp's at once if the source
  asks for 8 bytes, a quarter's if for 16. Shared memory is the same unit.
- Sectors of 32 bytes that L1 hasn't got come from slices of L2, in which they queue.
- What is stored takes the load unit ``stored_sector_clocks``, after all else.
- The chip starts a workgroup each ``workgroup_clocks``.

Left out: tensor cores, copies that run by themselves, iterations that a loop leaves over, and L2
kept from launch to launch but where all arrays fit in.
"""

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import isfunction
from itertools import pairwise
from linecache import getline
from typing import Any, NoReturn

import numpy as np

from cypresskit.il.errors import shortened
from cypresskit.timing.engine import Outcome, run
from cypresskit.timing.launch_time import use_of
from cypresskit.timing.report import Report, bound, read_only
from cypresskit.timing.simulate import busy_shares, bytes_moved
from cypresskit.timing.work import ALU, BARRIER, TEX, Clause, Path, Stream, pack
from cypresskit.today.cuda_access import Asked, WarpAccess, sectors_of
from cypresskit.today.cuda_code import (
    MULTIPLY_ADDS,
    Loop,
    generic,
    nearest,
    places_of,
    read_listing,
)
from cypresskit.today.cuda_count import FLOPS, Totals, totals_of
from cypresskit.today.cuda_foreign import refusal
from cypresskit.today.cuda_parts import CodePart, at_most, count_busy, trace
from cypresskit.today.cuda_trace import WARP, Action, GridLaunch, Untraceable, function_of
from cypresskit.today.cuda_values import SLOW
from cypresskit.today.gpus import H200, SCHEDULERS, CudaGpu

EFFORT = 1_000_000  # sectors and clauses of a run
LEAST = 12  # iterations of it
MOST_THREADS = 1024  # of a workgroup
TAKEN = 1024  # bytes of shared memory that each workgroup costs beside its own
NOTHING = 0, ""
WAITS = {ALU: "its turn", BARRIER: "other warps"}
LETTERS = {"L": "load", "S": "shared load", "T": "shared store"}
ROUNDS = 8  # of workgroups, one after the other, in a run of straight code
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
SCATTERED = WARP / 2  # sectors of a warp's load, from which on threads walk rows of their own
FAR = 3.0  # doublings of a count to the most similar loop, beyond which none is assumed


class NothingToTime(ValueError):
    """A kernel that neither computes nor loads nor stores."""


def occupancy(board: CudaGpu, registers: int, threads: int, shared: int) -> int:
    """Workgroups that share a multiprocessor. Each scheduler has a quarter of the registers, and
    gives a warp eight for each thread at a time.
    """
    warps = -(-threads // WARP)
    of_a_warp = -(-max(registers, 1) // 8) * 8
    room = SCHEDULERS * (board.register_pool // SCHEDULERS // of_a_warp), board.max_wavefronts
    least = min(min(room) // warps, board.max_workgroups, board.lds_bytes // (shared + TAKEN))
    if not least:
        raise ValueError(
            f"a workgroup of {threads} threads with {registers} registers each and {shared:,} bytes"
            f" of shared memory has no room on a multiprocessor of the {board.name}"
        )
    return least


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
        path = Path(np.arange(blocks * warps), ((clauses, turns),))
        return run(pack([path], warps), self.board.in_quarters, self.together * warps)


def _count(text: str) -> int:
    return sum(text.count(letter) for letter in MULTIPLY_ADDS)


@dataclass(frozen=True, eq=False)
class Ran:
    """A part that has run: its clocks in the whole launch, those of a full round, and that run;
    what its stores ask for, by line.
    """

    timed: TimedPart
    clocks: float
    round_clocks: float
    out: Outcome
    stored: dict[tuple[int, str], float]

    @property
    def busy(self) -> dict[str, float]:
        """Clocks for which a unit is busy, by its name."""
        shares = busy_shares(self.out.counts, self.out.end_clock, self.timed.board.in_quarters)
        return {unit: share * self.clocks for unit, share in shares.items()}

    @property
    def turns(self) -> float:
        """The run's counts, times so many, are the launch's."""
        return self.clocks * SCHEDULERS / self.out.end_clock


@dataclass(frozen=True, eq=False, kw_only=True)
class CudaReport(Report):
    """A timed launch of a CUDA kernel, as ``Report``; wavefronts are warps, "texture" is the load
    unit. ``loop`` is the machine code that was taken, and ``assumed`` says what it is if it isn't
    the kernel's own; ``source`` the file of the kernel; ``ran`` its parts, of a full round of
    ``blocks`` workgroups; ``stored``, the clocks of each line's stores.
    """

    loop: Loop
    assumed: str
    source: str
    stored: dict[tuple[int, str], float]
    ran: tuple[Ran, ...]
    blocks: int

    @property
    def sure(self) -> str:
        """How far launches of this class were off, as far as they were measured."""
        if not self.assumed:
            return SURE["own code"]
        if any(ran.timed.loop.unroll == 0 for ran in self.ran):
            tiles = any(
                a.kind.startswith("shared") for ran in self.ran for a in ran.timed.part.actions
            )
            return SURE["tiles" if tiles else "blocks"]
        looped = any(ran.timed.part.kind for ran in self.ran)
        return SURE["loops" if looped else "straight code"]

    @cached_property
    def sectors(self) -> dict[tuple[int, str], float]:
        """Sectors of 32 bytes that a warp asks for with a load, on average over those of each
        (line, array) in words.
        """
        found: dict[tuple[int, str], list[float]] = {}
        for ran in self.ran:
            for action in ran.timed.part.actions:
                if action.kind == "load":
                    sectors = _sectors(action, ran.timed.group, ran.timed.board)
                    found.setdefault(action.what, []).append(sectors)
        return {what: sum(all_) / len(all_) for what, all_ in found.items()}

    @cached_property
    def waits(self) -> dict[str, float]:
        """The shares of a warp's life for which it waits: for loads of a line, for others of its
        workgroup, and for its turn on a scheduler.
        """
        found: dict[str, float] = defaultdict(float)
        whole = sum(ran.out.lived * ran.turns for ran in self.ran)
        for ran in self.ran:
            clauses, _ = ran.timed.clauses(ran.timed.part.of_blocks(1, ran.timed.group))
            for clause, waited in zip(clauses, ran.out.ledger.waited.tolist()):
                lines = sorted(set(clause.sources))
                of = " and ".join(map(str, lines))
                name = f"loads of line {of}" if of else WAITS[clause.kind]
                found[name] += waited * ran.turns / whole
        return dict(sorted(found.items(), key=lambda each: -each[1]))

    @cached_property
    def prices(self) -> dict[tuple[int, str], float]:
        """The share of the launch that would be saved if the loads of an array, or arithmetic, or
        stores of a line took no time, by (line, what). Below zero: the others would get in each
        other's way.
        """
        found: dict[tuple[int, str], float] = defaultdict(float)
        for ran in self.ran:
            actions = ran.timed.part.actions
            for what in sorted({a.what for a in actions if a.kind not in ("barrier", "store")}):
                free = ran.timed.round(min(self.blocks, _blocks(ran.timed)), what)[0]
                found[what] += ran.clocks / self.clocks * (1 - free / ran.round_clocks)
        for what, clocks in self.stored.items():
            found[what] += clocks / self.clocks
        return dict(found)

    @property
    def listing(self) -> str:
        """The loop's prices, with sectors and the lines of the kernel's source."""
        rows = [f"{'price':>7} {'sectors':>8}   (what indices cost isn't priced)"]
        for (line, what), price in self.prices.items():
            asked = self.sectors.get((line, what), 0)
            text = getline(self.source, line).strip()
            percent = round(100 * price)
            rows.append(f"{percent:5} % {asked:8.1f}   line {line}, {what}:  {text}")
        return "\n".join(rows)

    def __repr__(self) -> str:
        waits = ", ".join(
            f"{name} {100 * share:.0f} %" for name, share in self.waits.items() if share > 0.01
        )
        code = f"numba's, {self.assumed}{self.loop.name}"
        said = f"{super().__repr__()}\n  a warp waits for {waits}\n  code: {code}\n  {self.sure}"
        return re.sub(r", (LDS|DRAM rows|written) 0.0( %)?", "", said)

    @property
    def launched(self) -> None:
        """No kernel that multiplies matrices in IL."""

    @property
    def lines(self) -> NoReturn:
        """Not known of a kernel in CUDA. Raises ``TypeError``."""
        raise TypeError(
            "lines are those of a kernel in IL; of one in CUDA `report.listing` has the price of"
            " each line, `report.prices` the same as numbers, and `report.waits` what warps wait"
            " for"
        )


def _blocks(timed: TimedPart) -> int:
    return len(timed.part.actions[0].on) // timed.group


def simulate(
    kernel: Any,
    grid: int | tuple[int, ...],
    threads: int | tuple[int, ...],
    *arguments: Any,
    board: CudaGpu = H200,
    listing: str | Loop | None = None,
    registers: int = 0,
    shared: int = 0,
) -> CudaReport:
    """How long a launch of a ``cuda.jit`` kernel takes on ``board``, and why: modelled, without a
    GPU, as numba compiles it. ``arguments`` are its own: arrays, of which only shape and dtype
    count, and numbers.

    ``listing`` is its machine code, as ``nvdisasm -hex -c`` prints it, with the
    ``registers`` of a thread; without it, that of the most similar product known is assumed, or
    loads before arithmetic before stores. ``shared`` bytes of shared memory are asked for at the
    launch.

    Raises ``Untraceable``, a ``ValueError`` with the line, for a kernel whose ways or places depend
    on data, and ``ValueError`` for a workgroup without room.

        simulate(kernel, (64, 64), (8, 8), a, b, c)
    """
    if not isinstance(board, CudaGpu):
        raise TypeError(f"board is a GPU that runs CUDA, such as ck.today.H200, not {board!r}")
    if not isfunction(function_of(kernel)):
        raise TypeError(
            f"{shortened(kernel)} is no kernel: give the function below @cuda.jit and, separately,"
            " its grid and threads"
        )
    grid = _sizes("grid", grid)
    threads = _sizes("threads", threads)
    if math.prod(threads) > MOST_THREADS:
        found = math.prod(threads)
        raise ValueError(f"a workgroup has {MOST_THREADS:,} threads at most, not {found:,}")
    launch = GridLaunch(kernel, grid, threads, arguments, shared)
    totals = totals_of(launch)
    if not totals.busy.any():
        raise NothingToTime(f"{launch.name} neither computes nor loads nor stores")
    if isinstance(listing, str):
        if not registers:
            raise ValueError("a listing needs the registers of a thread: registers=...")
        listing = read_listing(listing, registers=registers)
    return _report(launch, totals, board, listing)


def _codes(
    parts: list[CodePart], listing: Loop | None, blocked: bool
) -> tuple[list[Loop], int, str]:
    """The machine code of each part, which part is the main one, and what is said of its code."""
    sizes = [part.count * len(part.actions) for part in parts]
    main = max(range(len(parts)), key=sizes.__getitem__)
    codes = [_assumed(part, blocked, part is parts[0]) for part in parts]
    if listing:
        codes[main] = listing
        return codes, main, ""
    known = codes[main].unroll == 0
    return codes, main, "that of the most similar product known, " if known else "assumed: "


def _assumed(part: CodePart, blocked: bool, begins: bool) -> Loop:
    """The code of the most similar product, of which threads keep a block or from shared memory, or
    what numba's compiler makes of such code.
    """
    kinds = Counter(action.kind for action in part.actions)
    fmas = sum(kinds[kind] for kind in FLOPS)
    slow = kinds["store"] + kinds["function"]
    loads = kinds["load"] + kinds["shared load"]
    blocked = blocked or bool(kinds["shared load"])
    if part.kind and kinds["multiply-add"] and loads and blocked and not slow:
        item = max(action.size for action in part.actions if action.kind in FLOPS)
        counts = fmas, *places_of(part.actions)
        loop, far = nearest(counts, item, part.kind, bool(kinds["shared load"]))
        if far < FAR:
            return loop
    return generic(part.actions, part.kind, begins)


def _share_of(board: CudaGpu, together: int, most: int) -> tuple[CudaGpu, int]:
    """A board that is one of so many equal shares of another, so that ``most`` workgroups fill
    it.
    """
    shares = 1
    while together * (board.simd_engines // shares) > most and shares < 16:
        shares *= 2
    return replace(
        board,
        simd_engines=board.simd_engines // shares,
        l2_slices=max(board.l2_slices // shares, 1),
        l2_bytes=board.l2_bytes // shares,
        memory_channels=max(board.memory_channels // shares, 1),
        memory_gb_s=board.memory_gb_s / shares,
    ), shares


def _report(launch: GridLaunch, totals: Totals, board: CudaGpu, listing: Loop | None) -> CudaReport:
    group = math.prod(launch.threads)
    total = count_busy(totals, launch)
    most = at_most(launch, totals)
    parts = trace(launch, totals, 1)
    _refuse_rows(launch, parts, board)
    codes, main, assumed = _codes(parts, listing, totals.has_local)
    registers = max(code.registers for code in codes)
    together = occupancy(board, registers, group, totals.shared + launch.shared)
    arrays = [array for array in launch.arguments if getattr(array, "shape", ())]
    size = sum(math.prod(array.shape) * np.dtype(array.dtype).itemsize for array in arrays)
    part_board, shares = _share_of(board, together, most)
    if size <= board.l2_bytes:
        part_board = replace(part_board, dram_clocks=board.l2_clocks, memory_gb_s=1e6)
    full = together * part_board.simd_engines
    own = -(-total // shares)  # workgroups of this share of the chip
    if len(parts) == 1 and not parts[0].kind:
        blocks = min(own, ROUNDS * full, max(most, 1))
        rounds = [(own / blocks, blocks)]
    else:
        whole, rest = divmod(own, full)
        rounds = [(n, some) for n, some in ((whole, full), (1, rest)) if n * some]
    blocks = rounds[0][1]
    ran = []
    parts = trace(launch, totals, blocks)
    if len(parts) != len(codes):  # others do what the first workgroup doesn't
        _refuse_rows(launch, parts, board)
        codes, main, assumed = _codes(parts, listing, totals.has_local)
    for part, code in zip(parts, codes, strict=True):
        timed = TimedPart(part, code, part_board, group, together)
        runs = [(times, timed.round(some)) for times, some in rounds]
        clocks = sum(times * took for times, (took, _) in runs)
        stored = _stored(part, totals, group, board)
        ran.append(Ran(timed, clocks, *runs[0][1], stored))
    return _told(launch, totals, board, ran, main, assumed, total, together, blocks)


def _refuse_rows(launch: GridLaunch, parts: list[CodePart], board: CudaGpu) -> None:
    """Raise ``Untraceable`` for a loop whose measured launches the model misses by far."""
    group = math.prod(launch.threads)
    for part in parts:
        if not part.kind or not any(action.kind == SLOW for action in part.actions):
            continue
        for action in part.actions:
            if action.kind == "load" and _sectors(action, group, board) > SCATTERED:
                where = f"line {action.line} of {launch.name}"
                raise Untraceable(f"{where}: {refusal('rows')}")


def _sectors(action: Action, group: int, board: CudaGpu) -> float:
    """Sectors that a warp asks for, on average over those that ask for any."""
    sectors, bounds = sectors_of(action, group, board)
    return len(sectors) / max(int(np.count_nonzero(np.diff(bounds))), 1)


def _stored(
    part: CodePart, totals: Totals, group: int, board: CudaGpu
) -> dict[tuple[int, str], float]:
    """The sectors that all stores of a part's lines ask for in the whole launch."""
    found: dict[tuple[int, str], float] = defaultdict(float)
    asked: Counter = Counter()
    for action in part.actions:
        if action.kind == "store":
            asked[action.what] += int(action.on.sum())
            found[action.what] += len(sectors_of(action, group, board)[0])
    done = {
        (line, f"{kind}s of {array}"): n for (kind, line, _, array), n in totals.amounts.items()
    }
    return {what: found[what] * done[what] / max(n, 1) for what, n in asked.items()}


def _told(
    launch: GridLaunch, totals: Totals, board: CudaGpu, ran: list[Ran], main: int, assumed: str,
    total: int, together: int, blocks: int,
) -> CudaReport:  # fmt: skip
    """The report on parts that have run."""
    bytes_clock = board.memory_gb_s * board.dram_efficiency / board.clock_ghz
    fits = ran[0].timed.board.memory_gb_s > board.memory_gb_s
    busy: dict[str, float] = defaultdict(float)
    stored: dict[tuple[int, str], float] = {}
    clocks = 0.0
    written = totals.bytes("store")
    most = -(-total // board.simd_engines)  # workgroups of a multiprocessor
    all_stored = sum(sum(one.stored.values()) for one in ran)
    for one in ran:
        own = one.busy
        sectors = sum(one.stored.values())
        storing = {"texture": board.stored_sector_clocks * sectors * most / total}
        storing["L2"] = board.l2_stored_sector_clocks * sectors
        storing["DRAM"] = 0.0 if fits else written * sectors / max(all_stored, 1) / bytes_clock
        took = max(one.clocks, *(own[unit] + storing[unit] for unit in storing))
        for what, count in one.stored.items():
            stored[what] = stored.get(what, 0) + (took - one.clocks) * count / sectors
        for unit, amount in own.items():
            busy[unit] += amount + storing.get(unit, 0.0)
        clocks += took
    clocks = max(clocks, board.workgroup_clocks * math.prod(launch.grid))
    out = ran[main].out
    quarters = ran[main].timed.board.in_quarters
    warps = -(-math.prod(launch.threads) // WARP)
    engines = ran[main].timed.board.simd_engines
    shares = board.simd_engines / engines
    lived = out.lived / (out.end_clock * engines * together * warps)
    counts: Counter = Counter()
    moved: dict[str, float] = defaultdict(float)
    for one in ran:
        counts.update({name: one.turns * n for name, n in one.out.counts.items()})
        for name, amount in bytes_moved(one.out.counts, quarters).items():
            moved[name] += amount * one.turns * shares
    hits = {
        name.upper(): 1 - counts[f"{name}_missed"] / max(counts[f"{name}_asked"], 1e-9)
        for name in ("l1", "l2")
    }
    use = use_of(out, quarters)
    events_shown = out.timeline.copy()
    events_shown[:, 3:] /= SCHEDULERS
    item = max((size for kind, _, size, _ in totals.amounts if kind in FLOPS), default=4)
    shown = use.wavefronts / (1, SCHEDULERS, SCHEDULERS)
    shares_busy = {unit: min(amount / clocks, 1.0) for unit, amount in busy.items()}
    return CudaReport(
        kernel=launch.name,
        device=board,
        size=None,
        clocks=clocks,
        seconds=clocks / (1e9 * board.clock_ghz) + 1e-6 * board.launch_us,
        flops=float(totals.flops),
        peak_gflops=board.peak_gflops("double" if item == 8 else "single"),
        bound=bound(shares_busy, lived, total / (together * board.simd_engines)),
        registers=max(one.timed.loop.registers for one in ran),
        active=together * warps,
        wavefronts=math.prod(launch.grid) * warps,
        simulated=min(1.0, 1 / max(ran[main].turns, 1e-9)),
        busy=read_only(shares_busy),
        hits=read_only(hits),
        bytes=read_only(dict(moved) | {"written": written}),
        error=0.0,
        lived=sum(one.out.lived * one.turns for one in ran) * shares / SCHEDULERS,
        events=events_shown,
        use=replace(use, clocks=use.clocks / SCHEDULERS, wavefronts=shown),
        question=None,  # type: ignore[arg-type]
        launch=None,  # type: ignore[arg-type]
        seen=None,  # type: ignore[arg-type]
        loop=ran[main].timed.loop,
        assumed=assumed,
        stored=stored,
        source=function_of(launch.kernel).__code__.co_filename,
        ran=tuple(ran),
        blocks=blocks,
    )


def _sizes(name: str, given: Any) -> tuple[int, int]:
    """``grid`` or ``threads``, across and down. Raises ``ValueError``."""
    sizes = list(given) if isinstance(given, tuple | list) else [given]
    whole = all(isinstance(size, int | np.integer) and size > 0 for size in sizes)
    if not whole or not 1 <= len(sizes) <= 2:
        raise ValueError(f"{name} has one or two whole numbers from 1 on, not {shortened(given)}")
    across, down = (*map(int, sizes), 1)[:2]
    return across, down
