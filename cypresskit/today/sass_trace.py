"""Follow a kernel's machine code for many threads at once: which instructions each warp issues, and
which addresses it accesses.

Threads whose paths differ take turns: those at the lowest instruction go on, until they meet the
others. A loop's first three iterations are followed. If its registers grow evenly, the iterations
up to the first one on another path are skipped (``Tracer._skip``). Data aren't known: a branch or
an address that depends on data is refused.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cypresskit.today.grid_launch import GridLaunch
from cypresskit.today.sass import BYTES, SassCode, SassInstruction
from cypresskit.today.sass_threads import (
    MASK,
    PRODUCTS,
    Loaded,
    NotTimed,
    Partly,
    Registers,
    Results,
    compute,
    following,
)

SHARED_BASE = 1024  # the first byte of a block's shared memory
MAX_RUNS = 40  # of unlike iterations of a loop
MAX_STEPS = 60_000  # instructions that are followed
MAX_SKIPPED = 1 << 20  # iterations
FIRST_TRIED = 16  # iterations that are tried at once
MAX_TRIED = 24  # threads that try them
PRIME = np.uint64(1_000_003)
WARP = 32
AXES = "XYZ"

Masks = dict[int, np.ndarray]  # the threads that go on at each instruction


@dataclass(eq=False)
class TraceStep:
    """An instruction that is executed.

    Attributes
    ----------
    one
        The instruction.
    active, on
        Masks of the threads that are there, and of those that execute it; None is all.
    address
        Of an access: the first byte for each thread.
    array
        The array that it accesses: the number of an argument; -1 is shared memory.
    factors
        Of a multiply-add of two elements: the steps that loaded them.
    is_result
        Of a store: whether it stores sums of products.
    writes
        The registers that it sets.
    is_data
        Whether what it sets are data.
    """

    one: SassInstruction
    active: np.ndarray
    on: np.ndarray
    address: Any = None
    array: int = -1
    factors: tuple = ()
    is_result: bool = False
    writes: tuple[str, ...] = ()
    is_data: bool = False

    @property
    def signature(self) -> tuple:
        """What two iterations that do the same have in common."""
        on = b"" if self.one.name == "BRA" else self.on.tobytes()
        return self.one.index, self.active.tobytes(), on


@dataclass(eq=False)
class Iterations:
    """Iterations of a loop that do the same: the items of the first or second, those of the one
    after it, and how many there are.
    """

    items: list
    later: list
    count: int

    @property
    def signature(self) -> tuple:
        return self.count, *signature(self.items)


def signature(items: list) -> tuple:
    return tuple(item.signature for item in items)


def steps_of(items: list, times: int = 1) -> Iterator[tuple[TraceStep, int]]:
    """Yield each step of a trace, and how often it is repeated."""
    for item in items:
        if isinstance(item, TraceStep):
            yield item, times
        else:
            yield from steps_of(item.items, times * item.count)


def steps_line(items: list) -> int:
    """Return the line of the first step."""
    return next(step for step, _ in steps_of(items)).one.line


@dataclass(eq=False)
class _OpenLoop:
    """A loop that is being followed.

    Attributes
    ----------
    header
        Its first instruction.
    start
        Where its items begin.
    runs
        What has been followed.
    states
        (registers, threads) at the beginning of the last three iterations.
    """

    header: int
    start: int
    runs: list[Iterations] = field(default_factory=list)
    states: list[tuple[dict[str, Any], np.ndarray]] = field(default_factory=list)

    def add(self, items: list) -> None:
        """Add an iteration."""
        last = self.runs[-1] if self.runs else None
        if last is None or signature(last.items) != signature(items):
            self.runs.append(Iterations(items, [], 1))
            if len(self.runs) > MAX_RUNS:
                raise NotTimed(
                    f"line {steps_line(items)}: iterations of its loop differ: let all threads of a"
                    " block do the same number of iterations"
                )
            return
        last.count += 1
        if last.count == 2:
            last.later = items
        elif last.count == 3:  # registers have their usual values from the second one on
            last.items, last.later = last.later, items


class Tracer:
    """Threads that follow a kernel's machine code.

    Parameters
    ----------
    code, launch
        The code, and its launch.
    blocks
        For each block that is followed, its place in the grid: (x, y, z) in rows.
    """

    def __init__(self, code: SassCode, launch: GridLaunch, blocks: np.ndarray):
        self.code, self.launch = code, launch
        group = math.prod(launch.threads)
        thread = np.tile(np.arange(group), len(blocks))
        width, height, _ = launch.threads
        places = {"X": thread % width, "Y": thread // width % height}
        places["Z"] = thread // (width * height)
        special = {f"SR_TID.{axis}": places[axis] for axis in AXES}
        special |= {
            f"SR_CTAID.{axis}": np.repeat(blocks[:, n], group) for n, axis in enumerate(AXES)
        }
        self.total = len(thread)
        self.registers = Registers({}, launch.constants, special)
        self.items: list = []
        self.loops: list[_OpenLoop] = []
        self.pending: Masks = {0: np.ones(self.total, bool)}
        self.effort = 0
        #: (first byte, last byte, argument) of what each instruction stores to shared memory
        self.shared: dict[int, tuple[int, int, int]] = {}

    def run(self) -> list:
        """Return the items of the trace: steps, and iterations of loops. Raises ``NotTimed``."""
        while self.pending:
            at = min(self.pending)
            while self.loops and not self._is_inside(self.loops[-1], at):
                self._close()
            active = self.pending.pop(at)
            if at in self.code.headers and not self._enter(at, active):
                break
            self._follow(self.code.instructions[at], active)
        while self.loops:
            self._close()
        return self.items

    def _is_inside(self, loop: _OpenLoop, at: int) -> bool:
        return loop.header <= at <= self.code.headers[loop.header]

    # -- single instructions

    def _follow(self, one: SassInstruction, active: np.ndarray) -> None:
        """Execute an instruction, and note where its threads go on."""
        self.effort += 1
        if self.effort > MAX_STEPS:
            raise NotTimed("its iterations differ too much to be followed")
        on = active
        self.registers.on = None if active.all() else active
        if one.guard is not None:
            truth = self.registers.read(one.guard)
            if isinstance(truth, Loaded):
                raise NotTimed(f"line {one.line} depends on data: a branch, or an access, does")
            on = active & truth
        step = TraceStep(one, active, on)
        self.items.append(step)
        there = one.index + 1
        if one.name in ("BRA", "CALL"):
            self._go(int(one.operands[-1].value), self._branching(one, on))
            on = self._branching(one, on)
        elif one.name == "RET":
            self._go(self.registers.read(one.operands[0]) // BYTES, on)
        elif one.name != "EXIT":
            self._execute(step)
            self._go(there, active)
            return
        self._go(there, active & ~on)

    def _branching(self, one: SassInstruction, on: np.ndarray) -> np.ndarray:
        """Return the threads that take a branch, which may have a condition besides its guard."""
        for condition in one.operands[:-1]:
            on = on & self.registers.read(condition)
        return on

    def _go(self, at: int, some: np.ndarray) -> None:
        if some.any():
            waiting = self.pending.get(at)
            self.pending[at] = some if waiting is None else waiting | some

    def _execute(self, step: TraceStep) -> None:
        one = step.one
        self.registers.on = None if step.on.all() else step.on
        if one.is_access:
            results = self._access(step)
        elif one.name in ("BSSY", "BSYNC"):
            return
        else:
            results = compute(self.registers, one)
        for _, value in results:
            if isinstance(value, Loaded):
                step.is_data = True
                step.factors = value.factors if one.name in PRODUCTS else ()
        step.writes = tuple(name for name, _ in results)
        for name, value in results:
            self.registers.write(name, value)

    def _access(self, step: TraceStep) -> Results:
        """Note the address of an access. Return what a load sets."""
        one = step.one
        parts = list(one.operands)
        value = parts.pop(0) if one.is_load else parts.pop()
        if one.is_load and value.value in ("PT", "P0"):
            value = parts.pop(0)
        terms = [self.registers.read(part) for part in parts]
        if any(isinstance(term, Loaded) for term in terms):
            raise NotTimed(f"line {one.line}: an index depends on data")
        address = np.broadcast_to(sum(terms) & MASK, step.on.shape)
        step.address = address
        if step.on.any():
            self._check(step, address[step.on])
        if not one.is_load:
            stored = self.registers.read(value)
            if isinstance(stored, Loaded):
                step.is_result = stored.is_product
                self._note_shared(step, stored.load)
            return []
        name = str(value.value)
        data = Loaded(step)
        letters = name.rstrip("0123456789")
        first = int(name[len(letters) :]) if letters != "RZ" else 0
        return [
            (f"{letters}{first + n}", Loaded(step) if n else data) for n in range(-(-one.size // 4))
        ]

    def _note_shared(self, step: TraceStep, load: TraceStep | None) -> None:
        """Note where a store to shared memory puts what a load has loaded."""
        if step.one.is_shared and load is not None and step.on.any():
            some = step.address[step.on]
            first, last, _ = self.shared.get(step.one.index, (MASK, 0, 0))
            bounds = min(first, int(some.min())), max(last, int(some.max()))
            self.shared[step.one.index] = (*bounds, load.array)

    def _check(self, step: TraceStep, addresses: np.ndarray) -> None:
        """Note which array an access belongs to. Raises ``ValueError`` outside one."""
        one = step.one
        if not one.is_shared:
            step.array = self.launch.array_at(one.line, addresses, one.size)
            return
        end = SHARED_BASE + self.code.shared_bytes + self.launch.shared
        if addresses.min() < SHARED_BASE or addresses.max() + one.size > end:
            raise NotTimed(f"line {one.line} accesses an element outside an array in shared memory")

    # -- loops

    def _enter(self, header: int, active: np.ndarray) -> bool:
        """Begin an iteration of a loop, or skip to a later one. Return whether to go on."""
        if not self.loops or self.loops[-1].header != header:
            self.loops.append(_OpenLoop(header, len(self.items)))
        loop = self.loops[-1]
        if len(self.items) > loop.start:
            loop.add(self.items[loop.start :])
            del self.items[loop.start :]
        loop.states = [*loop.states[-2:], (dict(self.registers.values), active)]
        self._skip(loop)
        return True

    def _close(self) -> None:
        """End a loop: its iterations become items."""
        loop = self.loops.pop()
        if len(self.items) > loop.start:
            loop.add(self.items[loop.start :])
            del self.items[loop.start :]
        if len(loop.runs) == 1 and loop.runs[0].count == 1:
            self.items += loop.runs[0].items
        else:
            self.items += loop.runs

    def _count_same(self, loop: _OpenLoop, growth: dict[str, Any]) -> int:
        """Return how many iterations from the next one on take the path of the last one: some
        threads try many of them at once.
        """
        values, active = loop.states[-1]
        lanes = np.flatnonzero(active)
        lanes = lanes[np.linspace(0, len(lanes) - 1, min(len(lanes), MAX_TRIED)).astype(int)]
        wanted = _path(loop.runs[-1].items, lanes, np.zeros(len(lanes), np.uint64))
        tried = FIRST_TRIED
        while tried < MAX_SKIPPED:
            lane = np.repeat(lanes, tried)
            later = np.tile(np.arange(tried), len(lanes))
            moved = _moved(_of_all(values, lane), _of_all(growth, lane), later)
            some = _Trial(self, loop.header, moved, lane)
            items = some.run()
            back = some.pending.get(loop.header, np.zeros(len(lane), bool))
            paths = _path(items, np.arange(len(lane)), np.zeros(len(lane), np.uint64))
            is_same = back & (paths == np.repeat(wanted, tried))
            others = np.flatnonzero(~is_same.reshape(-1, tried).all(axis=0))
            if len(others):
                return int(others[0])
            tried *= 16
        return MAX_SKIPPED

    def _skip(self, loop: _OpenLoop) -> None:
        """Skip iterations of a loop that do what the last two did, if registers grow evenly."""
        if len(loop.states) < 3 or loop.runs[-1].count < 3:
            return
        states = loop.states
        if not np.array_equal(states[0][1], states[2][1]):
            return
        growth = _growth([values for values, _ in states], loop.runs[-1].items)
        if growth is None:
            return
        count = self._count_same(loop, growth)
        if count >= MAX_SKIPPED:
            raise NotTimed("its loop never ends")
        if count:
            self.registers.values = _moved(states[2][0], growth, count)
            loop.runs[-1].count += count
            loop.states = []


class _Trial(Tracer):
    """Threads that try an iteration of a loop, each a later one."""

    def __init__(self, tracer: Tracer, header: int, values: dict[str, Any], lanes: np.ndarray):
        self.code, self.launch = tracer.code, tracer.launch
        self.total = len(lanes)
        special = {name: value[lanes] for name, value in tracer.registers.special.items()}
        self.registers = Registers(values, tracer.registers.constants, special)
        self.items, self.loops = [], []
        self.pending = {header: np.ones(self.total, bool)}
        self.effort = 0
        self.shared = {}
        self.header = header

    def _enter(self, header: int, active: np.ndarray) -> bool:
        if header != self.header:
            return super()._enter(header, active)
        if self.items:
            self.pending[header] = active
        return not self.items

    def _skip(self, loop: _OpenLoop) -> None:
        """Follow all iterations of inner loops."""

    def _check(self, step: TraceStep, addresses: np.ndarray) -> None:
        """Later iterations may go beyond the end of an array."""


def _path(items: list, lanes: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Add a trace to numbers that differ if these threads take other paths."""
    for item in items:
        if isinstance(item, Iterations):
            for _ in range(item.count):
                found = _path(item.items, lanes, found)
            continue
        active, on = item.active[lanes], item.on[lanes]
        if item.one.name == "BRA":
            on = active  # where it leads shows in what follows
        here = np.uint64(4 * item.one.index + 1) + 2 * on.astype(np.uint64)
        found = np.where(active, found * PRIME + here, found)
    return found


def _of(value: Any, lanes: np.ndarray) -> Any:
    """Return a register of some threads."""
    if isinstance(value, Partly):
        return value.of(lanes)
    return value[lanes] if isinstance(value, np.ndarray) else value


def _of_all(values: dict[str, Any], lanes: np.ndarray) -> dict[str, Any]:
    return {name: _of(value, lanes) for name, value in values.items()}


def _growth(states: list[dict[str, Any]], items: list) -> dict[str, Any] | None:
    """Return by how much each register grows from one iteration to the next; None if one that the
    loop reads grows unevenly.
    """
    needed = _read_first(items)
    growth: dict[str, Any] = {}
    before, middle, after = states
    for name, value in after.items():
        others = before.get(name, 0), middle.get(name, 0)
        if any(isinstance(one, Loaded | Partly) for one in (value, *others)):
            continue
        if "P" in name:
            is_even = np.array_equal(value, others[1])
        else:
            difference = (value - others[1]) & MASK
            is_even = np.array_equal((others[1] - others[0]) & MASK, difference)
            if is_even and np.any(difference):
                growth[name] = difference
        if not is_even and name in needed:
            return None
    return growth


def _read_first(items: list) -> set[str]:
    """Return the registers that an iteration reads before it sets them."""
    needed: set[str] = set()
    written: set[str] = set()
    for step, _ in steps_of(items):
        one = step.one
        guard = [one.guard] if one.guard else []
        operands = one.operands[len(step.writes[:1]) :]
        names = {str(operand.value) for operand in (*operands, *guard)}
        needed |= {*names, *map(following, names)} - written
        if step.on.all():
            written |= set(step.writes)
    return needed


def _moved(values: dict[str, Any], growth: dict[str, Any], count: Any) -> dict[str, Any]:
    """Return the registers ``count`` iterations later: a number, or one for each thread."""
    grown = {name: (values[name] + count * change) & MASK for name, change in growth.items()}
    return values | grown
