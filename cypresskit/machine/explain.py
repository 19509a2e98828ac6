"""The explaining engine: one instruction at a time for the whole domain, every register of every work-item at hand.

All work-items step through the program together; a register is an array of shape (4, items), and a mask says who is
active. ``if`` narrows the mask, ``break`` and ``continue`` take work-items out of it until the loop's end or its next
iteration. After each instruction it notifies its observers. It is slow beside the fast engine and simple enough
to be checked by eye; the two must agree bit for bit.

Left out: the order in which wavefronts really run. Work-items that race for the same memory get the result of
lockstep here; ``Run`` and observers don't depend on it.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from cypresskit.il import Dest, Instruction, Register, Source
from cypresskit.il.dataflow import components, lds_address, lds_words, read_positions
from cypresskit.il.meaning import MEANING, ONE, RELATION, flushed, modified, pair, scaled, split
from cypresskit.machine import places
from cypresskit.machine.launch import MAX_INSTRUCTIONS, Launch
from cypresskit.machine.masks import Masks
from cypresskit.machine.observer import (
    BarrierEvent,
    FetchEvent,
    MemoryEvent,
    Observer,
    StepEvent,
    WroteEvent,
    listeners,
)
from cypresskit.machine.run import Run, tally

MAX_BYTES = 2 << 30  # for a whole domain
BESIDES = 120  # bytes of a work-item beside its registers: its ids, addresses and what checks keep of it, measured
PATIENCE, STEPS = 50_000_000, 20_000  # instructions times work-items, and instructions: a few seconds' work
SECONDS = 5  # time limit for the question whether a program ends
LONG = 3_000  # instructions of a program that takes seconds to compile
ZERO_ROW, ONE_ROW = np.zeros((1, 1), np.uint32), np.full((1, 1), ONE, np.uint32)


@cache
def _chosen(letters: str) -> slice | list[int] | None:
    """The rows of those components of a register; None if constants are among them."""
    if not set(letters) <= set("xyzw"):
        return None
    rows = ["xyzw".index(letter) for letter in letters]
    if len(set(rows)) == 1:
        return slice(rows[0], rows[0] + 1)
    return slice(None) if letters == "xyzw" else rows


def run(
    launch: Launch,
    observers: tuple[Observer, ...] = (),
    most: int | None = None,
    ends: Callable[[Launch], float] | None = None,
) -> Run:
    """Run a checked launch, telling ``observers`` what happens. Raises ``KernelError``. ``most``: instructions of all
    work-items after which a loop is taken for endless; by default ``ends``, if given, is asked how many a launch takes
    (it may raise ``KernelError``, or ``TimeoutError``)."""
    fits(launch)
    with np.errstate(all="ignore"):
        return Interpreter(launch, observers, most, ends).run()


def fits(launch: Launch) -> None:
    """Raise ``ValueError`` for a launch that would take more than ``MAX_BYTES``."""
    needed = launch.items * (BESIDES + 16 * len(launch.program.registers))
    if needed > MAX_BYTES:
        raise ValueError(
            f"the explaining engine would need {needed >> 20:,} MB for {launch.items:,} work-items: "
            'take a smaller domain, or engine="fast" without observers'
        )


class Interpreter:
    """The state of a run, and what every kind of instruction does to it."""

    def __init__(
        self,
        launch: Launch,
        observers: tuple[Observer, ...],
        most: int | None,
        ends: Callable[[Launch], float] | None,
    ):
        self.launch, self.observers, self.program = launch, observers, launch.program
        self.listeners = {name: listeners(observers, name) for name in ("step", "wrote", "fetch", "memory", "barrier")}
        self.body = self.program.body
        self.items = launch.items
        self.masks = Masks(self.items)
        self.registers = {n: np.zeros((4, self.items), np.uint32) for n in self.program.registers}
        self.literals = {n: np.array(words, np.uint32)[:, np.newaxis] for n, words in self.program.literals.items()}
        self.group_of = np.arange(self.items) // launch.group_items
        groups = 0 if launch.pixels else math.prod(launch.groups)
        self.lds = {n: np.zeros((groups, size // 4), np.uint32) for n, (_, size) in self.program.lds.items()}
        self.executed = np.zeros(len(self.body), np.int64)
        self.out_of_range = 0
        self.issued = 0
        self.limit = min(launch.max_instructions, max(1, min(STEPS, PATIENCE // max(1, launch.items))))
        raised = launch.max_instructions if launch.max_instructions > MAX_INSTRUCTIONS else 0  # by the caller
        self.longest: float = max(5 * STEPS, raised)
        self.ends = None if most or len(self.body) > LONG else ends
        self.most: float | None = most or (None if self.ends else raised * self.items or 2 * PATIENCE)
        self.before = launch.memory.copy()
        self.at = 0
        self.read: dict[int, np.ndarray] = {}  # global elements that this instruction's operands read, by operand

    def run(self) -> Run:
        for observer in self.observers:
            observer.start(self.launch)
        at = 0 if self.items else len(self.body)
        while at < len(self.body):
            i = self.body[at]
            self.at = at
            self.read.clear()
            if self.masks.count:
                self._issue(at, i)
            if i.op.flow:
                at = self._flow(at, i)
                continue
            if self.masks.count:
                self._execute(at, i)
            at += 1
        result = tally(self.launch, "explain", self.executed, self.out_of_range)
        for observer in self.observers:
            observer.finish(result)
        return result

    def _issue(self, at: int, i: Instruction) -> None:
        if i.op.flow in ("else", "endif"):
            return
        self.executed[at] += self.masks.count
        self.issued += 1
        if self.issued > self.limit:
            self._check_end()
        if i.op.flow != "endloop":
            self._notify("step", StepEvent, at, i, self.masks.active, self.registers)

    def _check_end(self) -> None:
        """After ``limit`` instructions: in a loop, find out how many the program takes, or raise the error for an
        endless one. Compiled code counts them in a fraction of the time, and as many as are executed here, unless
        work-items race."""
        loops = self.masks.loops
        if not loops:
            return
        if self.ends and self.most is None and self.issued <= self.launch.max_instructions:
            outputs = {n: replace(surface, words=surface.words.copy()) for n, surface in self.launch.outputs.items()}
            memory = None if self.launch.global_memory is None else self.before
            try:
                self.most = self.ends(replace(self.launch, outputs=outputs, global_memory=memory))
                self.longest = math.inf
            except TimeoutError:
                raise self.launch.long_error(loops[0].at, SECONDS) from None
        if self.most is not None and self.executed.sum() <= self.most and self.issued <= self.longest:
            self.limit = int(min(2 * self.issued, self.longest))
            return
        # an inner loop that ends every time leads back here, too: the endless one is where most of them ran
        inside = [loop for loop in loops if 2 * (self.issued - loop.issued) > self.issued]
        item = int(np.argmax(self.masks.active))
        raise self.launch.endless_error((inside or loops[:1])[-1].at, item, self.issued - 1)

    # Control flow

    def _flow(self, at: int, i: Instruction) -> int:
        """Do a control-flow instruction; the index of the next one."""
        flow, masks, match = i.op.flow, self.masks, self.program.matching
        if flow == "loop":
            masks.begin_loop(at, self.issued)
        elif flow == "if":
            masks.begin_if(self._condition(i) if masks.count else masks.active)
        elif flow == "else":
            masks.otherwise()
        elif flow == "endif":
            masks.end_if()
            return at + 1
        elif flow == "endloop":
            return match[at] + 1 if masks.next_iteration() else at + 1
        else:
            masks.leave(self._condition(i) if masks.count else masks.active, flow == "break")
            return match[match[at]] if not masks.count and masks.blocks[-1] is masks.loops[-1] else at + 1
        return at + 1 if masks.count else match[at]

    def _condition(self, i: Instruction) -> np.ndarray:
        if not i.sources:
            return np.ones(self.items, bool)
        words = [self._operand(i, n, (0,))[0] for n in range(len(i.sources))]
        left, right = map(flushed, words) if i.controls.relop else (words[0], 0)
        return np.broadcast_to(RELATION[i.relation](left, right), self.items)

    # Operands

    def _base(self, source: Source) -> np.ndarray:
        """All four components of a register, shape (4, items) or (4, 1)."""
        register = source.register
        if register.kind == "r":
            return self.registers[register.index]
        if register.kind == "l":
            return self.literals[register.index]
        if register.kind == "cb":
            return self.launch.constants[register.index][register.element][:, np.newaxis]
        if register.kind == "g":
            if id(source) not in self.read:
                self.read[id(source)] = self._read_global(source)
            return self.read[id(source)]
        return self.launch.ids[register.kind]

    def _rows(self, source: Source, letters: str) -> np.ndarray:
        base = self._base(source)
        chosen = _chosen(letters)
        if chosen is not None:
            return base[chosen]
        constant = {"0": ZERO_ROW, "1": ONE_ROW}
        rows = [constant[c] if c in constant else base["xyzw".index(c)][np.newaxis] for c in letters]
        return np.concatenate(np.broadcast_arrays(*rows))

    def _operand(self, i: Instruction, n: int, positions: tuple[int, ...]) -> np.ndarray:
        """Source ``n`` at the given positions, with its modifiers: one row a position, or one row for all."""
        source = i.sources[n]
        letters = source.swizzle if len(positions) == 4 else "".join(source.swizzle[p] for p in positions)
        rows = self._rows(source, letters)
        if not source.modified:
            return rows
        negated = np.array(["xyzw"[p] in source.negate for p in positions])[:, np.newaxis]
        if i.op.float_modifiers(n):
            return modified(rows, source, negated)
        return np.where(negated, np.uint32(0) - rows, rows) if negated.any() else rows

    def _double(self, i: Instruction, n: int) -> np.ndarray:
        source = i.sources[n]
        low, high = self._rows(source, source.swizzle[0]), self._rows(source, source.swizzle[1])
        return pair(low, modified(high, source, source.negates_double))

    # Instructions

    def _execute(self, at: int, i: Instruction) -> None:
        if i.op.kind == "lds":
            self._lds(at, i)
        elif i.op.kind == "fence":
            self._fence(at, i)
        elif i.dest and i.op.kind == "fetch":
            self._fetch(at, i, i.dest)
        elif i.dest:
            self._write(at, i.dest, self._compute(i, i.dest))

    def _compute(self, i: Instruction, dest: Dest) -> np.ndarray:
        """Rows for the written components of ``dest``, or one row for all of them."""
        op, positions = i.op, dest.written
        read = (0,) if op.double else tuple(range(op.across)) or positions or (0,)
        sources = enumerate(op.sources)
        result = MEANING[op.name](*(self._double(i, n) if t == "d" else self._operand(i, n, read) for n, t in sources))
        if op.result == "d":
            low, high = split(result)
            return np.concatenate([high if p % 2 else low for p in positions])
        return scaled(result, i.shift, i.saturate) if i.shift != 1.0 or i.saturate else result

    def _write(self, at: int, dest: Dest, rows: np.ndarray) -> None:
        """Write rows (one per written component, or one for all) to a register, an output or global memory."""
        register = dest.register
        if register.kind == "r" and dest.mask == "xyzw" and self.masks.count == self.items:
            self.registers[register.index][...] = rows
            self._notify_wrote(at, register, (0, 1, 2, 3))
            return
        rows = np.broadcast_to(rows, (max(1, len(dest.written)), self.items))
        values = dict(zip(dest.written, rows, strict=False))
        for c, character in enumerate(dest.mask):
            if character in "01":
                values[c] = np.full(self.items, ONE if character == "1" else 0, np.uint32)
        if register.kind == "g":
            self._write_global(at, dest, values)
        elif register.kind == "o":
            words = self.launch.outputs[register.index].words.reshape(self.items, -1)
            values = {c: value for c, value in values.items() if c < words.shape[1]}
            self._notify_stored(at, register, values)
            for c, value in values.items():
                np.copyto(words[:, c], value, where=self.masks.active)
        else:
            target = self.registers[register.index]
            for c, value in values.items():
                np.copyto(target[c], value, where=self.masks.active)
            self._notify_wrote(at, register, tuple(sorted(values)))

    def _notify(self, name: str, event: Callable, *facts) -> None:
        """Tell the observers that listen: only then the event is made."""
        if self.listeners[name]:
            made = event(*facts)
            for listener in self.listeners[name]:
                listener(made)

    def _notify_wrote(self, at: int, register: Register, components: tuple[int, ...]) -> None:
        if self.listeners["wrote"]:
            rows = self.registers[register.index].T
            self._notify("wrote", WroteEvent, at, register, components, rows, self.masks.active)

    def _notify_stored(self, at: int, register: Register, values: dict[int, np.ndarray]) -> None:
        """An output or global memory is about to be written."""
        if self.listeners["wrote"]:
            table = np.zeros((self.items, 4), np.uint32)
            for c, value in values.items():
                table[:, c] = value
            self._notify("wrote", WroteEvent, at, register, tuple(sorted(values)), table, self.masks.active)

    def _fetch(self, at: int, i: Instruction, dest: Dest) -> None:
        resource = i.controls.resource
        surface, declared = self.launch.textures[resource], self.program.textures[resource]
        rows = [self._spread(self._operand(i, 0, (n,))[0]) for n in range(declared.dimensions)]
        whole = i.op.sources[0] == "i"
        x, y, inside = places.texel(rows, surface, i.controls.aoffimmi, whole=whole, unnormalised=declared.unnormalised)
        texels = surface.texels(x, y, inside)
        self._count_outside(inside)
        self._notify("fetch", FetchEvent, at, resource, x, y, inside, texels, self.masks.active)
        self._write(at, dest, texels.T if len(dest.written) == 4 else texels.T[list(dest.written)])

    def _spread(self, row: np.ndarray) -> np.ndarray:
        """One value for each work-item."""
        return row if len(row) == self.items else np.broadcast_to(row, self.items)

    def _count_outside(self, inside: np.ndarray) -> None:
        if not inside.all():
            self.out_of_range += self.masks.count - int(np.count_nonzero(inside & self.masks.active))

    def _element(self, register: Register) -> np.ndarray:
        """The element of ``g[...]`` for each work-item."""
        address = register.address
        index = self._rows(address, address.swizzle[0])[0] if address else None
        return places.element(register.element, index, self.items)

    def _read_global(self, source: Source) -> np.ndarray:
        element = self._element(source.register)
        found, inside = self.launch.elements(element)
        self._count_outside(inside)
        if self.listeners["memory"]:
            i = self.body[self.at]
            n = next(n for n, s in enumerate(i.sources) if s is source)
            words = tuple(sorted(set(components(source, read_positions(self.program, i, n)))))
            self._notify("memory", MemoryEvent, self.at, "global", False, element, words, inside, self.masks.active)
        return found.T

    def _write_global(self, at: int, dest: Dest, values: dict[int, np.ndarray]) -> None:
        memory, active = self.launch.memory, self.masks.active
        element = self._element(dest.register)
        inside = (element >= 0) & (element < len(memory))
        words = tuple(sorted(values))
        self._notify("memory", MemoryEvent, at, "global", True, element, words, inside, active)
        outside = np.flatnonzero(active & ~inside)
        if len(outside):
            place = int(element[outside[0]])
            raise self.launch.store_error(at, int(outside[0]), f"to g[{place}], which has {len(memory)} elements")
        self._notify_stored(at, dest.register, values)
        for c, value in values.items():
            memory[element[active], c] = value[active]

    def _lds(self, at: int, i: Instruction) -> None:
        block = i.controls.id
        stride, size = self.program.lds[block]
        memory, active = self.lds[block], self.masks.active
        rows = [self._operand(i, n, (p,))[0] for n, p in lds_address(self.program, i)]
        requested = np.broadcast_to(places.lds_byte(rows[0], stride, *rows[1:]), self.items)
        words = lds_words(i)
        found = {c: places.lds_inside(requested, c, size) for c in words}
        inside = np.logical_and.reduce([there for _, there in found.values()])
        self._notify("memory", MemoryEvent, at, "lds", i.op.store, requested, words, inside, active, block)
        outside = np.flatnonzero(active & ~inside)
        if i.op.store and len(outside):
            place = int(requested[outside[0]]) & ~3
            raise self.launch.store_error(at, int(outside[0]), f"to byte {place} of LDS {block}, which has {size}")
        self._count_outside(inside)
        loaded = []
        for c, (word, there) in found.items():
            if i.op.store:
                value = np.broadcast_to(self._operand(i, i.op.passed[0], (c,))[0], self.items)
                memory[self.group_of[active], word[active]] = value[active]
            else:
                row = np.zeros(self.items, np.uint32)
                row[there] = memory[self.group_of[there], word[there]]
                loaded.append(row)
        if i.dest and not i.op.store:
            self._write(at, i.dest, np.stack(loaded))

    def _fence(self, at: int, i: Instruction) -> None:
        if i.controls.threads and self.masks.count < self.items:
            here = self.masks.active.reshape(-1, self.launch.group_items)
            split_groups = np.flatnonzero(here.any(axis=1) & ~here.all(axis=1))
            if len(split_groups):
                raise self.launch.barrier_error(at, int(split_groups[0]), int(here[split_groups[0]].sum()))
        self._notify("barrier", BarrierEvent, at, self.masks.active)
