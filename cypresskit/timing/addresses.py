"""Which addresses a kernel fetches and stores, and which way it takes: its slice, run for many wavefronts at once.

The slice (``slices``) has no data arithmetic, and no data are there. It is run by the explaining engine's own
arithmetic on all chosen wavefronts together (``_Walk``). Wavefronts that part ways are run again apart.

A loop whose slice only counts on is not run turn by turn. Its state is measured over three turns; if all steps are
equal, every value in it is a straight line in the turn's number, which the kind of its instructions guarantees. One
work-item is then run at all turns at once to find where it leaves the loop, and all others are checked at their last
turn and at the one before. Any other loop is run as it is, which takes longer and gives the same.

Left out: what a kernel reads from memory. If an address or a branch depends on it, ``SliceError`` names both lines.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from cypresskit.devices import Device
from cypresskit.il import Dest, Instruction
from cypresskit.machine.explain import Machine
from cypresskit.machine.launch import KernelError
from cypresskit.machine.numerics import ONE
from cypresskit.timing.dram import GLOBAL
from cypresskit.timing.lds import access_clocks
from cypresskit.timing.shapes import TILE, Shapes, work_items
from cypresskit.timing.slices import Place, address_reads, find_slice, reads
from cypresskit.timing.work import Stream, stream

STEADY = frozenset("mov add sub iadd isub inegate".split())  # a straight line in gives one out
SCALING = frozenset("mul mad imul umul imad umad ishl".split())  # so do these if one factor stays the same
COUNTING = frozenset("flr ftoi ftou itof utof".split())  # and these, if the steps are whole numbers
TESTS = frozenset("lt ge eq ne ilt ige ieq ine ult uge".split())
MOST_TURNS = 1 << 22


@dataclass(eq=False)
class Choice:
    """Which way a branch went: whether anyone took ``then`` (a break: left), whether anyone the ``other`` way, and, if
    nobody was there any more afterwards, whether they are ``gone`` by "break" or for this turn by "continue"."""

    then: bool
    other: bool
    gone: str = ""
    sides: tuple["Scope | None", "Scope | None"] = (None, None)


@dataclass(eq=False)
class Scope:
    """What one pass through straight code did. Keys are indices of ``Program.body``: ``streams`` of its accesses,
    ``loops`` as pairs (scope of a turn, how often), ``choices`` of its branches. ``left``: nobody got to its end."""

    streams: dict[int, list[Stream]] = field(default_factory=dict)
    loops: dict[int, list[tuple["Scope", int]]] = field(default_factory=dict)
    choices: dict[int, Choice] = field(default_factory=dict)
    left: bool = False


class _Apart(Exception):
    """Wavefronts part ways: the numbers (among those that are walked) of each party."""

    def __init__(self, parties: list[np.ndarray]):
        self.parties = parties


class _Crooked(Exception):
    """A loop is not a straight line after all."""


def walk(shapes: Shapes, device: Device, wavefronts: np.ndarray, layout: str) -> list[tuple[np.ndarray, Scope]]:
    """Run the slice for ``wavefronts`` (numbers in dispatch order). Returns parties that take the same way, with it."""
    chosen, alive = find_slice(shapes.program)
    waiting, done = [wavefronts], []
    while waiting:
        party = waiting.pop()
        try:
            with np.errstate(all="ignore"):
                done.append((party, _Walk(shapes, device, party, layout, chosen, alive).run()))
        except _Apart as apart:
            waiting += [party[some] for some in apart.parties]
    return done


class _Walk(Machine):
    """The explaining engine without data: only the slice runs, accesses become streams."""

    def __init__(self, shapes: Shapes, device: Device, party: np.ndarray, layout: str, chosen, alive):
        self.shapes, self.device, self.layout = shapes, device, layout
        self.program, self.body, self.match = shapes.program, shapes.program.body, shapes.program.matching
        self.chosen, self.alive = chosen, alive
        self.items = self.count = 64 * len(party)
        self.observers = ()
        self.registers = {n: np.zeros((4, self.items), np.uint32) for n in {p[0] for places in alive for p in places}}
        self.literals = {n: np.array(words, np.uint32)[:, np.newaxis] for n, words in self.program.literals.items()}
        self.ids, self.active = work_items(shapes, party)
        self.launch = self  # type: ignore[assignment]  # what the engine asks its launch for: constants and ids
        self.constants = shapes.constants
        self.skipping = np.zeros(self.items, bool)
        self.line = device.line_bytes
        self.bases: dict[int, int] = {}
        start, unit = 0, device.channel_bytes * device.memory_channels * device.memory_banks
        for n, (width, height, texel) in sorted(shapes.textures.items()):
            self.bases[n] = start
            start += -(-self._pitch(width, texel) * (height + TILE) // unit) * unit
        self.steps: dict | None = None  # in a measured turn: index to the places of its accesses

    def run(self) -> Scope:  # type: ignore[override]
        return self._block(0, len(self.body))

    # Control flow

    def _agreed(self, items: np.ndarray) -> bool:
        """Whether any work-item of each wavefront is among ``items``: the same for all, or they part ways."""
        some = items.reshape(-1, 64).any(axis=1)
        if some.all() or not some.any():
            return bool(some.any())
        raise _Apart([np.flatnonzero(some), np.flatnonzero(~some)])

    def _block(self, at: int, end: int) -> Scope:
        scope = Scope()
        while at < end:
            i = self.body[at]
            flow = i.op.flow
            if flow == "loop":
                scope.loops[at] = self._run_loop(at)
                at = self.match[at]
            elif flow == "if":
                at = self._run_if(at, i, scope)
            elif flow in ("break", "continue"):
                leaving = self.active & self._condition(i)
                if flow == "continue":
                    self.skipping |= leaving
                self.active = self.active & ~leaving
                scope.left = not self._agreed(self.active)
                scope.choices[at] = Choice(self._agreed(leaving), not scope.left, self._gone(scope.left))
            else:
                self._step(at, i, scope)
            if scope.left:
                return scope
            at += 1
        return scope

    def _run_if(self, at: int, i: Instruction, scope: Scope) -> int:
        condition, came = self._condition(i), self.active
        middle = self.match[at]
        end = self.match[middle] if self.body[middle].op.flow == "else" else middle
        sides, stay = [], np.zeros(self.items, bool)
        for some, first, last in ((came & condition, at + 1, middle), (came & ~condition, middle + 1, end)):
            self.active = some
            there = self._agreed(some) and last > first
            sides.append(self._block(first, last) if there else None)
            stay |= self.active
        self.active = stay
        scope.left = not self._agreed(stay)
        ways = self._agreed(came & condition), self._agreed(came & ~condition)
        scope.choices[at] = Choice(*ways, self._gone(scope.left), (sides[0], sides[1]))
        return end

    def _gone(self, left: bool) -> str:
        return "" if not left else "continue" if self._agreed(self.skipping) else "break"

    def _run_loop(self, at: int) -> list[tuple[Scope, int]]:
        came, skipped = self.active, self.skipping
        self.skipping = np.zeros(self.items, bool)
        turns: list[tuple[Scope, int]] = []
        if self._countable(at):
            kept = {n: rows.copy() for n, rows in self.registers.items()}
            try:
                turns = self._count(at)
            except _Crooked:
                self.registers, self.active, self.steps = kept, came, None
        while self._agreed(self.active):
            scope = self._block(at + 1, self.match[at])
            turns.append((scope, 1))
            self.active = self.active | self.skipping
            self.skipping = np.zeros(self.items, bool)
            if len(turns) > MOST_TURNS:
                line = self.body[at].line
                raise KernelError(
                    f"{self.program.where(line)}\n    this loop has not ended after {MOST_TURNS} turns", line
                )
        self.active, self.skipping = came, skipped
        return turns

    # Loops that only count

    def _countable(self, at: int) -> bool:
        """Whether the loop at ``at`` has only breaks in it, and in its slice only what keeps lines straight."""
        inside = range(at + 1, self.match[at])
        if any(self.body[j].op.flow not in ("", "break") for j in inside):
            return False
        changing = {(self.body[j].dest.register.index, c) for j in inside for c in self.chosen.get(j, ())}  # type: ignore
        tested: set[Place] = set()
        for j in inside:
            i = self.body[j]
            if i.op.flow:
                tested |= address_reads(i, self.program)
        for j in inside:
            i = self.body[j]
            if j not in self.chosen:
                continue
            assert i.dest is not None
            results = {(i.dest.register.index, c) for c in self.chosen[j]}
            if i.op.name in TESTS and results <= tested:
                others = set().union(
                    *(address_reads(self.body[k], self.program) for k in inside if not self.body[k].op.flow)
                )
                if not results & others and not any(
                    reads(self.body[k], self.chosen[k]) & results for k in inside if k in self.chosen
                ):
                    continue
                return False
            if i.shift != 1.0 or i.saturate or any(s.abs or s.sign for s in i.sources):
                return False
            if i.op.name in SCALING:
                lines = [bool(reads(_with_source(i, n), self.chosen[j]) & changing) for n in range(len(i.sources))]
                if lines[1] and (lines[0] or i.op.name == "ishl"):
                    return False
            elif i.op.name not in STEADY | COUNTING:
                return False
        return True

    def _count(self, at: int) -> list[tuple[Scope, int]]:
        """Run a countable loop; raises _Crooked if it is none."""
        places = sorted(self.alive[at + 1])
        kinds: dict[Place, str] = {}
        for j in range(at + 1, self.match[at]):
            for c in self.chosen.get(j, ()):
                copied = reads(self.body[j], {c}) if self.body[j].opcode == "mov" else ()
                kind = next((kinds[p] for p in copied if p in kinds), self.body[j].op.result)
                kinds[self.body[j].dest.register.index, c] = kind  # type: ignore[union-attr]
        everyone = self.active
        states: list[dict] = []
        seen: list[dict] = []
        for turn in range(4):
            states.append({p: self._line(p, kinds) for p in places})
            if turn == 3:
                break
            seen.append({})
            if self._measured(at, seen[-1]):
                raise _Crooked
        step = {p: states[1][p] - states[0][p] for p in places}
        for p in places:
            same = all((states[n + 1][p] - states[n][p] == step[p]).all() for n in (1, 2))
            whole = (np.abs(states[0][p] * 256) % 1 == 0).all() and (step[p] * 256 % 1 == 0).all()
            if not same or not whole:
                raise _Crooked
        turns = self._turns(at, places, kinds, states[0], step)
        last: dict = {}
        for turn, leaves in ((turns - 1, False), (turns, True)):
            self._place(places, kinds, states[0], step, np.float64(turn))
            self.active = everyone
            if self._measured(at, {} if leaves else last) != leaves:
                raise _Crooked
        self._place(places, kinds, states[0], step, np.float64(turns))
        self.active = everyone
        final = self._block(at + 1, self.match[at])
        return [(self._straight(at, seen, last, turns, everyone), turns), (final, 1)]

    def _measured(self, at: int, noted: dict) -> bool:
        """A turn that only notes places in ``noted``; whether all work-items have left the loop (or none)."""
        before, self.steps = self.active, noted
        try:
            self._block(at + 1, self.match[at])
        finally:
            self.steps = None
        if self.active.any() and (self.active != before).any():
            raise _Crooked  # work-items of one wavefront part ways
        return not self.active.any()

    def _line(self, place: Place, kinds: dict) -> np.ndarray:
        """A register's component as numbers."""
        bits = self.registers[place[0]][place[1]]
        kind = kinds.get(place, "i")
        return (bits.view(np.float32) if kind == "f" else bits.view(np.int32)).astype(np.float64)

    def _place(self, places, kinds, start, step, turn) -> None:
        """Set the state to where it is at ``turn`` (one number, or one for each work-item)."""
        for p in places:
            value = start[p] + step[p] * turn
            if kinds.get(p) == "f" and np.ndim(turn) == 0 and np.abs(value).max(initial=0) * 256 >= 2**24:
                raise _Crooked  # single precision would round on the way
            if kinds.get(p, "i") == "b" and step[p].any():
                raise _Crooked  # copied from who knows where
            bits = value.astype(np.float32) if kinds.get(p) == "f" else value.astype(np.int64).astype(np.int32)
            self.registers[p[0]][p[1]] = bits.view(np.uint32)

    def _turns(self, at: int, places, kinds, start, step) -> int:
        """The turn in which the first active work-item leaves, found by running it at many turns at once."""
        one = int(np.argmax(self.active))
        first, many = 0, self.items
        while first < MOST_TURNS:
            at_turns = first + np.arange(many, dtype=np.float64)
            begin, more = ({p: np.full(many, of[p][one]) for p in places} for of in (start, step))
            self._place(places, kinds, begin, more, at_turns)
            kept, keep_ids = self.active, self.ids
            self.active, self.steps = np.ones(many, bool), {}
            self.ids = {name: np.repeat(rows[:, one : one + 1], many, axis=1) for name, rows in keep_ids.items()}
            left = np.zeros(many, bool)
            for j in range(at + 1, self.match[at]):
                i = self.body[j]
                if i.op.flow:
                    left |= self._condition(i)
                elif j in self.chosen:
                    self._step(j, i, Scope())
            self.active, self.steps, self.ids = kept, None, keep_ids
            if left.any():
                return first + int(np.argmax(left))
            first += many
        raise _Crooked

    def _straight(self, at: int, seen: list[dict], last: dict, turns: int, everyone: np.ndarray) -> Scope:
        """One turn's scope whose streams stand for all ``turns`` of them."""
        inside = range(at + 1, self.match[at])
        scope = Scope(choices={j: Choice(False, True) for j in inside if self.body[j].op.flow})
        for j, accesses in seen[0].items():
            for n, (x, y, on) in enumerate(accesses):
                x1, y1, _ = seen[1][j][n]
                xl, yl, _ = last[j][n]
                dx, dy = ((b - a)[everyone] for a, b in ((x, x1), (y, y1)))
                dx, dy = (int(d[0]) if len(d) and (d == d[0]).all() else _crooked() for d in (dx, dy))
                if not ((xl == x + (turns - 1) * dx) | ~on).all() or not ((yl == y + (turns - 1) * dy) | ~on).all():
                    raise _Crooked
                made = self._stream(self.body[j], n, x, y, on & everyone, (dx, dy, turns))
                scope.streams.setdefault(j, []).append(made)
        return scope

    def _write(self, at: int, dest: Dest, rows: np.ndarray) -> None:
        target = self.registers[dest.register.index]
        for row, c in enumerate(dest.written):
            np.copyto(target[c], rows[row if len(rows) > 1 else 0], where=self.active)
        for c in range(4):
            if dest.mask[c] in "01":
                np.copyto(target[c], ONE if dest.mask[c] == "1" else np.uint32(0), where=self.active)

    # Accesses

    def _step(self, at: int, i: Instruction, scope: Scope) -> None:
        if at in self.chosen:
            assert i.dest is not None
            self._write(at, i.dest, self._compute(i, i.dest))
            return
        for n, (x, y, on) in enumerate(self._places(i)):
            if self.steps is not None:
                self.steps.setdefault(at, []).append((x, y, on & self.active))
            else:
                scope.streams.setdefault(at, []).append(self._stream(i, n, x, y, on & self.active, None))

    def _places(self, i: Instruction):
        """(x, y, which exist) of every access of an instruction: texels, 128-bit elements or bytes."""
        zero, on = np.zeros(self.items, np.int64), np.ones(self.items, bool)
        if i.op.kind == "fetch":
            width, height, _ = self.shapes.textures[i.control("resource")]
            declared, offsets, found = (
                self.program.textures[i.control("resource")],
                i.control("aoffimmi", (0, 0, 0)),
                [],
            )
            for axis in range(declared.dimensions):
                row = self._operand(i, 0, (axis,))[0]
                if i.opcode == "load":
                    whole = row.view(np.int32).astype(np.int64)
                else:
                    value = row.view(np.float32) * np.float32(1 if declared.unnormalised else (width, height)[axis])
                    whole = np.floor(np.nan_to_num(value, nan=-1e9)).astype(np.int64)
                found.append(np.broadcast_to(whole + offsets[axis], self.items))
            x, y = (*found, zero)[:2]
            yield x, y, (x >= 0) & (x < width) & (y >= 0) & (y < height)
        elif i.op.kind == "lds":
            stride, vector = self.program.lds[i.control("id")][0], i.opcode.endswith("vec")
            address = self._operand(i, 0, (0,))[0].astype(np.int64)
            if stride:
                address = address * stride + (self._operand(i, 1, (0,)) if vector else self._operand(i, 0, (1,)))[0]
            yield np.broadcast_to(address & ~np.int64(3), self.items), zero, on
        registers = [s.register for s in i.sources] + ([i.dest.register] if i.dest else [])
        for register in registers:
            if register.kind == "g":
                element = np.full(self.items, register.element, np.int64)
                if register.address is not None:
                    element += self._rows(register.address, register.address.swizzle[0])[0].view(np.int32)
                yield element, zero, on
            elif register.kind == "o":
                x, y = (np.floor(row.view(np.float32)).astype(np.int64) for row in self.ids["vWinCoord0"][:2])
                yield x, y, on

    def _stream(self, i: Instruction, n: int, x, y, on, motion) -> Stream:
        if i.op.kind == "lds":
            words = len(i.dest.written) if i.opcode.endswith("vec") and i.dest else 1
            each = (x[:, np.newaxis] + 4 * np.arange(words)).reshape(-1, 64, words).transpose(0, 2, 1)
            clocks = access_clocks(each, self.device, on.reshape(-1, 64))
            return Stream(clocks, np.zeros(len(clocks) + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32))
        phases = 1
        if i.op.kind == "fetch":
            number = i.control("resource")
            width, _, texel = self.shapes.textures[number]
            where, base, uncached = self._texel(width, texel), self.bases[number] // self.line, False
        else:
            outputs = i.dest is not None and i.dest.register.kind == "o"
            texel = self.shapes.outputs[i.dest.register.index] if outputs else 16  # type: ignore[union-attr]
            where, base, uncached = (
                self._texel(self.shapes.domain[0] if outputs else 1 << 40, texel, outputs),
                GLOBAL,
                True,
            )
        if motion:
            dx, dy, turns = motion
            ends = x + (turns - 1) * dx, y + (turns - 1) * dy
            if i.op.kind == "fetch" and not self._inside(i, *ends, on):
                raise _Crooked
            side = TILE if self._tiled(i) else 1
            while where(dx * phases, dy * phases) % self.line or dx * phases % side or dy * phases % side:
                phases += 1
            phases = min(phases, turns)
        else:
            dx = dy = 0
        addresses = np.stack([where(x + p * dx, y + p * dy) for p in range(phases)]).reshape(phases, -1, 64)
        entries = addresses.transpose(1, 0, 2).reshape(-1, 64)
        active = np.repeat(on.reshape(-1, 64), phases, axis=0)
        merge = uncached or self.device.l1_bytes > 0
        made = stream(
            entries,
            active,
            line_bytes=self.line,
            quads_per_clock=self.device.quads_per_clock,
            merge=merge,
            base=base,
            phases=phases,
            step=int(where(dx * phases, dy * phases)) // self.line,
            uncached=uncached,
        )
        stores = n == sum(source.register.kind == "g" for source in i.sources) and i.op.kind != "fetch"
        return replace(made, cost=np.full_like(made.cost, self.device.store_clocks)) if stores else made

    def _inside(self, i: Instruction, x, y, on) -> bool:
        width, height, _ = self.shapes.textures[i.control("resource")]
        return bool((((x >= 0) & (x < width) & (y >= 0) & (y < height)) == on).all())

    def _tiled(self, i: Instruction) -> bool:
        return self.layout == "tiled" and i.op.kind == "fetch"

    def _pitch(self, width: int, texel: int) -> int:
        """Bytes from a row to the next, whole lines."""
        side = TILE if self.layout == "tiled" else max(self.line // texel, 1)
        return -(-width // side) * side * texel

    def _texel(self, width: int, texel: int, image: bool = True):
        """The function from texel coordinates to a byte. Tiles are 8 x 8 texels, row by row within and between them."""
        pitch = self._pitch(width, texel) if image else 0
        if self.layout == "linear" or not image:
            return lambda x, y: y * pitch + x * texel
        return lambda x, y: (
            (y // TILE) * pitch * TILE + (x // TILE) * TILE * TILE * texel + (y % TILE * TILE + x % TILE) * texel
        )


def _crooked():
    raise _Crooked


def _with_source(i: Instruction, n: int) -> Instruction:
    return replace(i, sources=i.sources[n : n + 1])
