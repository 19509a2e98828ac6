"""The clock of a CUDA kernel on a GPU of today: ``cypresskit.timing``'s chip with other units.

``simulate`` traces the kernel (``cuda_trace``), takes the order of its instructions from its
machine code (``cuda_code``), and runs the warps that the chip holds at once for some turns of their
loop, twice as many for the second time: the rest of the launch goes on like the difference. The
last round of workgroups, which fills the chip in part, has a run of its own.

- A scheduler needs so many clocks for an instruction of each kind (``gpus``), and a warp stalls for
  its own results, as its code says (the dots of ``cuda_code``).
- An access takes the load unit a clock for each word that the busiest of 32 banks has to give, or
  four lines of 128 bytes, and ``access_clocks`` at least; half a warp's at once if the source
  asks for 8 bytes, a quarter's if for 16. Shared memory is the same unit.
- Sectors of 32 bytes that L1 hasn't got come from slices of L2, in which they queue.
- What is stored takes the load unit ``stored_sector_clocks``, behind all else.

Left out: tensor cores, copies that run by themselves, turns that a loop leaves over, and L2 kept
from launch to launch but where all arrays fit in.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from linecache import getline
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from cypresskit.il.errors import shortened
from cypresskit.timing.engine import Outcome, run
from cypresskit.timing.launch_time import use_of
from cypresskit.timing.report import Report, bound, read_only
from cypresskit.timing.simulate import busy_shares, bytes_moved
from cypresskit.timing.work import ALU, BARRIER, TEX, Clause, Path, Stream, of_cost, pack
from cypresskit.today.cuda_code import MULTIPLY_ADDS, Loop, nearest, places_of, read_listing
from cypresskit.today.cuda_trace import (
    PRODUCT,
    SUM,
    WARP,
    Action,
    Section,
    Untraceable,
    function_of,
    traced,
)
from cypresskit.today.gpus import H200, SCHEDULERS, CudaGpu

BANKS = 32
PERIOD = 8  # turns after which places of numbers have moved by whole sectors
EFFORT = 1_000_000  # sectors and clauses of a run
LEAST = 12  # turns of it
MOST_THREADS = 1024  # of a workgroup
FLOPS = {"multiply-add": 2, PRODUCT: 1, SUM: 1}
TAKEN = 1024  # bytes of shared memory that each workgroup costs beside its own
NOTHING = 0, ""
WAITS = {ALU: "its turn", BARRIER: "other warps"}
LETTERS = {"L": "load", "S": "shared load", "T": "shared store"}
ROUNDS = 8  # of workgroups, one behind the other, in a run of straight code
#: Instructions of an action with its index, where no machine code is known.
STRAIGHT = {"load": "paL", "shared load": "aS", "store": "pao", "shared store": "aT"}
STRAIGHT_REGISTERS = 32


class NothingToTime(ValueError):
    """A kernel that neither computes nor loads nor stores."""


def straight(actions: list[Action]) -> str:
    """Machine code that is assumed, as ``Loop`` has it: between stores and barriers loads come
    first, and a wait for all of them before arithmetic.
    """
    text = loads = arithmetic = ""
    for action in actions:
        letters = STRAIGHT.get(action.kind, "B")
        if action.kind in FLOPS:
            arithmetic += "d" if action.size == 8 else "f"
        elif action.kind.endswith("load"):
            loads += letters
        else:
            text += f"{loads}w{arithmetic}{letters}"
            loads = arithmetic = ""
    return f"{text}{loads}w{arithmetic}"


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


def accesses(
    places: np.ndarray, on: np.ndarray, size: int, board: CudaGpu
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of accesses of ``size`` bytes at ``places`` (warps, lanes), int64: the clocks of the load
    unit, the sectors that each warp asks for, each once, and their bounds.
    """
    parts = max(size // 4, 1)  # of a warp: what the load unit serves at once
    at_once = zip(np.split(places, parts, axis=1), np.split(on, parts, axis=1))
    clocks = sum(_wavefronts(some, asking, size) for some, asking in at_once)
    sectors = np.where(on, places // board.line_bytes, -1)
    sectors.sort(axis=1)
    new = np.diff(sectors, axis=1, prepend=-1) != 0
    bounds = np.concatenate(([0], np.cumsum(new.sum(axis=1))))
    return np.maximum(clocks, board.access_clocks), sectors[new], bounds


def _wavefronts(places: np.ndarray, on: np.ndarray, size: int) -> np.ndarray:
    """Clocks of the load unit for what it serves at once of each warp."""
    each = max(size // 4, 1)
    words = (places[:, :, np.newaxis] // 4 + np.arange(each)).reshape(len(places), -1)
    words = np.where(np.repeat(on, each, axis=1), words, -1)
    words.sort(axis=1)
    new = np.diff(words, axis=1, prepend=-1) != 0
    warp = np.broadcast_to(np.arange(len(words))[:, np.newaxis], words.shape)
    banks = np.bincount((warp * BANKS + words % BANKS)[new], minlength=len(words) * BANKS)
    lines = new & (np.diff(words // BANKS, axis=1, prepend=-1) != 0)
    return np.maximum(banks.reshape(-1, BANKS).max(axis=1), -(-lines.sum(axis=1) // 4))


@dataclass(frozen=True, eq=False)
class WarpAccess:
    """A load, or an access to shared memory, of the machine code: the ``events`` that it stands
    for, and for each the bytes by which its place has ``moved`` in turns 0, 1, ... of the loop.
    """

    events: list[Action]
    moved: list[Callable[[int], int]]

    def stream(self, unroll: int, group: int, board: CudaGpu) -> Stream:
        """What warps of workgroups of ``group`` threads ask for, in quarters of clocks."""
        size = self.events[0].size
        on = np.concatenate([_warps(event.on, group) for event in self.events], axis=1)
        shared = self.events[0].kind.startswith("shared")
        phases = 1
        steps = [moved(unroll) - moved(0) for moved in self.moved]
        while not shared and phases < PERIOD and any(step % board.line_bytes for step in steps):
            phases *= 2
            steps = [moved(phases * unroll) - moved(0) for moved in self.moved]
        found = []
        for phase in range(phases):
            places = [
                _warps(event.place, group) + moved(phase * unroll)
                for event, moved in zip(self.events, self.moved)
            ]
            found.append(accesses(np.concatenate(places, axis=1), on, size, board))
        costs = np.stack([cost for cost, _, _ in found], axis=1).ravel()
        amounts = of_cost(np.ceil(SCHEDULERS * costs).astype(np.int32))
        none = np.zeros(0, np.int64)
        if shared:
            return Stream(amounts, np.zeros(len(costs) + 1, np.int64), none, none)
        counts = np.stack([np.diff(bounds) for _, _, bounds in found], axis=1).ravel()
        ptr = np.concatenate(([0], np.cumsum(counts)))
        line = np.zeros(ptr[-1], np.int64)
        for phase, (_, sectors, bounds) in enumerate(found):
            begin = np.repeat(ptr[phase:-1:phases] - bounds[:-1], np.diff(bounds))
            line[begin + np.arange(len(sectors))] = sectors
        amounts["asked"] = counts
        amounts["delivered"] = size * np.repeat(on.sum(axis=1), phases)
        within = np.arange(len(line)) - np.repeat(ptr[:-1], counts)
        offset = within * np.repeat(amounts["cost"], counts) // np.repeat(counts, counts)
        return Stream(amounts, ptr, line, offset, phases, steps[0] // board.line_bytes)


def _warps(values: np.ndarray, group: int) -> np.ndarray:
    """(warps, lanes) of workgroups of ``group`` threads; the last warp of each may lack some."""
    values = values.reshape(-1, group)
    return np.pad(values, ((0, 0), (0, -group % WARP))).reshape(-1, WARP)


def _sectors(action: Action, group: int, board: CudaGpu) -> tuple[np.ndarray, np.ndarray]:
    """The sectors that warps ask for with an action, and their bounds, as ``accesses`` has them."""
    return accesses(_warps(action.place, group), _warps(action.on, group), action.size, board)[1:]


def _moved(part: Section, n: int, from_turn: int) -> Callable[[int], int]:
    """By how many bytes event ``n`` has moved so many turns behind ``from_turn``, for all threads
    alike.
    """
    event = part.turns[0][n]
    moves = [turn[n].place - event.place for turn in part.turns]
    if any(np.ptp(move) for move in moves):
        raise Untraceable(f"line {event.line}: a place moves with the turn, other for each thread")
    places = [int(move[0]) for move in moves]
    if len(places) <= PERIOD:
        return lambda turn: places[min(from_turn + turn, len(places) - 1)]

    def moved(turn: int) -> int:
        whole, rest = divmod(from_turn + turn, PERIOD)
        return places[rest] + whole * places[PERIOD]

    return moved


@dataclass(frozen=True, eq=False)
class _CudaLaunch:
    """A kernel's loop on a board: its turns, machine code, and how many workgroups there are."""

    part: Section
    loop: Loop
    board: CudaGpu
    group: int  # threads of a workgroup
    together: int  # workgroups on a multiprocessor
    total: int
    events: Callable[[int], list[Action]]  # of a turn, by so many workgroups

    def clauses(
        self, blocks: int, free: tuple[int, str] = NOTHING
    ) -> tuple[tuple[Clause, ...], int]:
        """A turn of the machine code, without what is ``free``, and how many of the source's."""
        events = self.events(blocks)
        computing = [event.what for event in events if event.kind in FLOPS]
        head, _, rest = self.loop.text.partition("[")
        inner, _, tail = rest.partition("]")
        own = self.loop.fmas or len(computing)
        trips = round((own - _count(head + tail)) / _count(inner)) if inner else 0
        text = head + inner * trips + tail
        unroll = 1 if inner else max(round(_count(text) / own), 1)
        share = 1 - computing.count(free) / max(len(computing), 1)
        weight = share * len(computing) * unroll / max(_count(text), 1)
        issue_clocks = self.board.issue_clocks
        queues = {letter: iter(self._slots(events, text, unroll, letter)) for letter in LETTERS}
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
                    waiting.append(access.stream(unroll, self.group, self.board))
                    lines.append(access.events[0].line)
        return tuple(clauses), unroll

    def _slots(
        self, events: list[Action], text: str, unroll: int, letter: str
    ) -> list[list[WarpAccess]]:
        """What each letter of the code stands for: loads leave as multiply-adds need them, the
        first of each array first.
        """
        seen: Counter = Counter()
        ranks = []
        for event in events:
            ranks.append(seen[event.array])
            seen[event.array] += 1
        own = [n for n, event in enumerate(events) if event.kind == LETTERS[letter]]
        own.sort(key=lambda n: ranks[n])
        asked = [(turn, n) for turn in range(unroll) for n in own]
        count = max(text.count(letter), 1)
        bounds = [round(len(asked) * n / count) for n in range(count + 1)]
        slots = []
        for first, end in pairwise(bounds):
            some = [events[n] for _, n in asked[first:end]]
            moves = [_moved(self.part, n, turn) for turn, n in asked[first:end]]
            slots.append([WarpAccess(some, moves)] if some else [])
        return slots

    def round(self, blocks: int, free: tuple[int, str] = NOTHING) -> tuple[float, Outcome]:
        """Clocks of ``blocks`` workgroups that run at once, and a run of some turns of theirs."""
        clauses, unroll = self.clauses(blocks, free)
        turns = -(-self.part.count // unroll)
        streams = [stream for clause in clauses for stream in clause.streams]
        each = len(clauses) * blocks + sum(len(s.line) / s.phases for s in streams)
        phases = max((stream.phases for stream in streams), default=1)
        some = -(-max(int(EFFORT // each), LEAST) // phases) * phases
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

    @property
    def rounds(self) -> list[tuple[float, int]]:
        """How often how many workgroups run at once, or of straight code one behind the other."""
        full = self.together * self.board.simd_engines
        if not self.part.kind:
            blocks = min(self.total, ROUNDS * full)
            return [(self.total / blocks, blocks)]
        whole, rest = divmod(self.total, full)
        return [(times, blocks) for times, blocks in ((whole, full), (1, rest)) if times * blocks]


def _count(text: str) -> int:
    return sum(text.count(letter) for letter in MULTIPLY_ADDS)


@dataclass(frozen=True, eq=False, kw_only=True)
class CudaReport(Report):
    """A timed launch of a CUDA kernel, as ``Report``; wavefronts are warps, "texture" is the load
    unit. ``loop`` is the machine code that was taken, and ``assumed`` says what it is if it isn't
    the kernel's own; ``source`` the file of the kernel. ``launched_as`` and ``round_clocks``, those
    of a full round, and ``stored``, the clocks of each line's stores, are for ``prices``.
    """

    loop: Loop
    assumed: str
    source: str
    stored: dict[tuple[int, str], float]
    waited: tuple[float, ...]
    round_clocks: float
    launched_as: Any

    @cached_property
    def sectors(self) -> dict[tuple[int, str], float]:
        """Sectors of 32 bytes that a warp asks for with a load, on average over those of each
        (line, array) in words.
        """
        found: dict[tuple[int, str], list[float]] = {}
        for action in self.launched_as.part.turns[0]:
            if action.kind == "load":
                launch = self.launched_as
                sectors, bounds = _sectors(action, launch.group, launch.board)
                found.setdefault(action.what, []).append(len(sectors) / (len(bounds) - 1))
        return {what: sum(all_) / len(all_) for what, all_ in found.items()}

    @cached_property
    def waits(self) -> dict[str, float]:
        """The shares of a warp's life for which it waits: for loads of a line, for others of its
        workgroup, and for its turn on a scheduler.
        """
        found: dict[str, float] = defaultdict(float)
        clauses, _ = self.launched_as.clauses(1)
        for clause, waited in zip(clauses, self.waited):
            lines = sorted(set(clause.sources))
            of = " and ".join(map(str, lines))
            found[f"loads of line {of}" if of else WAITS[clause.kind]] += waited
        return dict(sorted(found.items(), key=lambda each: -each[1]))

    @cached_property
    def prices(self) -> dict[tuple[int, str], float]:
        """The share of the launch that would be saved if the loop's loads of an array, or its
        arithmetic, or stores took no time, by (line, what). Below zero: the others would get in
        each other's way.
        """
        blocks = self.launched_as.rounds[0][1]
        actions = self.launched_as.part.turns[0]
        parts = sorted({a.what for a in actions if a.kind not in ("barrier", "store")})
        looped = 1 - sum(self.stored.values()) / self.clocks
        found = {
            what: looped * (1 - self.launched_as.round(blocks, what)[0] / self.round_clocks)
            for what in parts
        }
        return found | {what: clocks / self.clocks for what, clocks in self.stored.items()}

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
        code = f"{self.assumed}{self.loop.name}"
        said = f"{super().__repr__()}\n  a warp waits for {waits}\n  code: {code}"
        return self.device.says(re.sub(r", (LDS|DRAM rows|written) 0.0( %)?", "", said))


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
    GPU. ``arguments`` are its own: arrays, of which only shape and dtype count, and numbers.

    ``listing`` is its machine code, as ``nvdisasm -hex -c`` prints it, with the
    ``registers`` of a thread; without it, that of the most similar kernel known is assumed,
    and for what computes in no loop over a size, loads before arithmetic before stores.
    ``shared`` bytes of shared memory are asked for at the launch.

    Raises ``Untraceable``, a ``ValueError`` with the line, for a kernel whose ways or places depend
    on data, and ``ValueError`` for a workgroup without room.

        simulate(kernel, (64, 64), (8, 8), a, b, c)
    """
    grid = _sizes("grid", grid)
    threads = _sizes("threads", threads)
    group = prod(threads)
    if group > MOST_THREADS:
        raise ValueError(f"a workgroup has {MOST_THREADS:,} threads at most, not {group:,}")
    parts, static = traced(kernel, grid, threads, arguments, 1, PERIOD + 1, shared)

    main = max(range(len(parts)), key=lambda n: parts[n].count * len(parts[n].turns[0]))
    part = parts[main]
    actions = part.turns[0]
    if not actions:
        raise NothingToTime(f"{_name(kernel)} neither computes nor loads nor stores")
    kinds = Counter(event.kind for event in actions)
    fmas = sum(kinds[kind] for kind in FLOPS)
    item = max((event.size for event in actions if event.kind in FLOPS), default=4)
    if isinstance(listing, str):
        if not registers:
            raise ValueError("a listing needs the registers of a thread: registers=...")
        listing = read_listing(listing, registers=registers)
    assumed = ""
    if listing:
        loop = listing
    elif part.kind and fmas and kinds["load"] + kinds["shared load"]:
        counts = fmas, *places_of(part.turns)
        loop = nearest(counts, item, part.kind, bool(kinds["shared load"]))
        assumed = "that of the most similar kernel known, "
    else:
        text = straight(actions)
        loop = Loop("loads, arithmetic, stores", STRAIGHT_REGISTERS, text, max(fmas, 1))
        assumed = "assumed: "
    arrays = [array for array in arguments if getattr(array, "shape", ())]
    if sum(prod(array.shape) * array.dtype.itemsize for array in arrays) <= board.l2_bytes:
        timed_on = replace(board, dram_clocks=board.l2_clocks, memory_gb_s=1e6)
    else:
        timed_on = board
    together = occupancy(board, loop.registers, group, static + shared)

    def events(blocks: int) -> list[Action]:
        seen = traced(kernel, grid, threads, arguments, blocks, 1, shared)[0][main].turns[0]
        if len(seen) != len(part.turns[0]):
            raise Untraceable(f"{_name(kernel)}: its workgroups differ in what they do")
        working = np.any([a.on for a in seen if a.kind != "barrier"], axis=0)
        idle = blocks - int(np.any(working.reshape(blocks, -1), axis=1).sum())
        if idle:
            raise Untraceable(
                f"{_name(kernel)}: {idle:,} of the first {blocks:,} workgroups have no thread that"
                " does anything: launch fewer"
            )
        return seen

    launch = _CudaLaunch(part, loop, timed_on, group, together, prod(grid), events)
    rounds = [(times, launch.round(blocks)) for times, blocks in launch.rounds]
    clocks = sum(times * clocks for times, (clocks, _) in rounds)
    sectors: Counter = Counter()
    written = 0
    for action, count in ((a, p.count * prod(grid)) for p in parts for a in p.turns[0]):
        if action.kind == "store":
            sectors[action.what] += count * len(_sectors(action, group, board)[0])
            written += count * action.size * int(action.on.sum())
    round_clocks, out = rounds[0][1]
    quarters = timed_on.in_quarters
    warps = -(-group // WARP)
    busy = busy_shares(out.counts, out.end_clock, quarters)
    bytes_clock = timed_on.memory_gb_s * timed_on.dram_efficiency / board.clock_ghz
    storing = {
        "texture": board.stored_sector_clocks / board.simd_engines * sectors.total(),
        "DRAM": written / bytes_clock,  # L2 gathers what goes to one sector
    }
    if part.kind:  # stores come behind the loop, in straight code between other warps' loads
        total = clocks + max(storing.values())
    else:
        total = max(clocks, *(busy[unit] * clocks + storing[unit] for unit in storing))
    busy = {unit: (share * clocks + storing.get(unit, 0)) / total for unit, share in busy.items()}
    stored = {what: (total - clocks) * count / sectors.total() for what, count in sectors.items()}
    lived = out.lived / (out.end_clock * board.simd_engines * together * warps)
    full = sum(times * blocks for times, blocks in launch.rounds) / launch.rounds[0][1]
    flops = sum(FLOPS.get(a.kind, 0) * p.count * a.on.sum() for p in parts for a in p.turns[0])
    turns = clocks * SCHEDULERS / out.end_clock  # the run's counts, times so many, are the launch's
    hits = {
        name.upper(): 1 - out.counts[f"{name}_missed"] / max(out.counts[f"{name}_asked"], 1)
        for name in ("l1", "l2")
    }
    use = use_of(out, quarters)
    moved = bytes_moved(out.counts, quarters)
    events_shown = out.timeline.copy()
    events_shown[:, 3:] /= SCHEDULERS
    shown = use.wavefronts / (1, SCHEDULERS, SCHEDULERS)
    return CudaReport(
        kernel=_name(kernel),
        device=board,
        size=None,
        clocks=total,
        seconds=total / (1e9 * board.clock_ghz) + 1e-6 * board.launch_us,
        flops=float(flops) * prod(grid),
        peak_gflops=board.peak_gflops("double" if item == 8 else "single"),
        bound=bound(busy, lived, full),
        registers=loop.registers,
        active=together * warps,
        wavefronts=prod(grid) * warps,
        simulated=min(1.0, 1 / turns),
        busy=read_only(busy),
        hits=read_only(hits),
        bytes=read_only(
            {name: amount * turns for name, amount in moved.items()} | {"written": written}
        ),
        error=0.0,
        lived=out.lived * turns / SCHEDULERS,
        events=events_shown,
        use=replace(use, clocks=use.clocks / SCHEDULERS, wavefronts=shown),
        question=SimpleNamespace(kernel=kernel, count=1),  # type: ignore[arg-type]
        launch=None,  # type: ignore[arg-type]
        seen=None,  # type: ignore[arg-type]
        loop=loop,
        assumed=assumed,
        stored=stored,
        waited=tuple((out.ledger.waited / out.lived).tolist()),
        round_clocks=round_clocks,
        source=function_of(kernel).__code__.co_filename,
        launched_as=launch,
    )


def _name(kernel: Any) -> str:
    return str(function_of(kernel).__name__)


def _sizes(name: str, given: Any) -> tuple[int, int]:
    """``grid`` or ``threads``, across and down. Raises ``ValueError``."""
    sizes = list(given) if isinstance(given, tuple | list) else [given]
    whole = all(isinstance(size, int | np.integer) and size > 0 for size in sizes)
    if not whole or not 1 <= len(sizes) <= 2:
        raise ValueError(f"{name} has one or two whole numbers from 1 on, not {shortened(given)}")
    across, down = (*map(int, sizes), 1)[:2]
    return across, down
