"""The explaining engine: one instruction at a time for the whole domain, every register of every work-item at hand.

All work-items step through the program together; a register is an array of shape (4, items), and a mask says who is
active. ``if`` narrows the mask, ``break`` and ``continue`` take work-items out of it until the loop's end or its next
turn. After each instruction the observers are told what it did. It is slow beside the fast engine and simple enough
to be checked by eye; the two must agree bit for bit.

Left out: the order in which wavefronts really run. Work-items that race for the same memory get the result of
lockstep here; ``Run`` and observers don't depend on it.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from cypresskit.il import Dest, Instruction, Register, Source
from cypresskit.machine.fast.flow import letters, read_positions
from cypresskit.machine.launch import MAX_INSTRUCTIONS, KernelError, Launch
from cypresskit.machine.numerics import MEANING, ONE, RELATION, flushed, modified, pair, scaled, split
from cypresskit.machine.observer import INFINITE, NOWHERE, Barrier, Fetch, Memory, Observer, Step, Wrote, listeners
from cypresskit.machine.run import Run, tally

MAX_BYTES = 2 << 30  # for a whole domain
BESIDES = 120  # bytes of a work-item beside its registers: its ids, addresses and what checks keep of it, measured
PATIENCE, STEPS = 50_000_000, 20_000  # instructions times work-items, and instructions: a few seconds' work
SECONDS = 5  # of compiled code, which stepping would take an hour for
LONG = 3_000  # instructions of a program that takes seconds to compile
ZERO_ROW, ONE_ROW = np.zeros((1, 1), np.uint32), np.full((1, 1), ONE, np.uint32)


def run(launch: Launch, observers: tuple[Observer, ...] = (), most: int | None = None) -> Run:
    """Run a checked launch, telling ``observers`` what happens. Raises ``KernelError``. ``most``: instructions of all
    work-items after which a loop is taken for endless; by default the fast engine is asked if the program ends."""
    fits(launch)
    with np.errstate(all="ignore"):
        return Machine(launch, observers, most).run()


def fits(launch: Launch) -> None:
    """Raise ``ValueError`` for a launch that would take more than ``MAX_BYTES``."""
    needed = launch.items * (BESIDES + 16 * len(launch.program.registers))
    if needed > MAX_BYTES:
        raise ValueError(
            f"the explaining engine would need {needed >> 20:,} MB for {launch.items:,} work-items: "
            'take a smaller domain, or engine="fast" without observers'
        )


@dataclass
class _Loop:
    """A loop being run: how many instructions came before it, who entered, who still takes turns, who sits out the
    rest of this turn."""

    at: int
    before: int
    entered: np.ndarray
    running: np.ndarray
    gone: np.ndarray


@dataclass
class _If:
    """An if being run: who came to it, and who takes the else."""

    came: np.ndarray
    otherwise: np.ndarray


class Machine:
    """The state of a run, and what every kind of instruction does to it.

    It may be extended: a subclass that sets up ``program``, ``body``, ``items``, ``count``, ``active``, ``registers``,
    ``literals``, ``launch`` (asked for ``constants`` and ``ids``) and no ``observers`` has all arithmetic at hand.
    ``_operand(i, n, components)`` gives an instruction's operand as it reads it, ``_condition(i)`` who takes a branch,
    ``_compute(i, dest)`` the rows of a result, ``_write(at, dest, rows)`` stores them; ``run`` and ``_flow`` go through
    the program and may be replaced. ``timing.addresses`` runs the address arithmetic in this way, without data.
    """

    def __init__(self, launch: Launch, observers: tuple[Observer, ...], most: int | None):
        self.launch, self.observers, self.program = launch, observers, launch.program
        self.hear = {name: listeners(observers, name) for name in ("step", "wrote", "fetch", "memory", "barrier")}
        self.body = self.program.body
        self.items = launch.items
        self.active = np.ones(self.items, bool)
        self.count = self.items
        self.registers = {n: np.zeros((4, self.items), np.uint32) for n in self.program.registers}
        self.literals = {n: np.array(words, np.uint32)[:, np.newaxis] for n, words in self.program.literals.items()}
        self.group_of = np.arange(self.items) // math.prod(self.program.group)
        groups = math.prod(launch.groups) if self.program.mode == "compute" else 0
        self.lds = {n: np.zeros((groups, size // 4), np.uint32) for n, (_, size) in self.program.lds.items()}
        self.blocks: list[_Loop | _If] = []
        self.executed = np.zeros(len(self.body), np.int64)
        self.out_of_range = 0
        self.issued = 0
        self.limit = min(launch.max_instructions, max(1, min(STEPS, PATIENCE // max(1, launch.items))))
        raised = launch.max_instructions if launch.max_instructions > MAX_INSTRUCTIONS else 0  # by the caller
        self.longest: float = max(5 * STEPS, raised)
        self.most: float | None = most or (None if len(self.body) <= LONG else raised * self.items or 2 * PATIENCE)
        memory = launch.global_memory
        self.memory = None if memory is None else memory.copy()
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
            if self.count:
                self._issue(at, i)
            if i.op.flow:
                at = self._flow(at, i)
                continue
            if self.count:
                self._execute(at, i)
            at += 1
        result = tally(self.launch, "explain", self.executed, self.out_of_range)
        for observer in self.observers:
            observer.finish(result)
        return result

    def _issue(self, at: int, i: Instruction) -> None:
        if i.op.flow in ("else", "endif"):
            return
        self.executed[at] += self.count
        self.issued += 1
        if self.issued > self.limit:
            self._doubt()
        if i.op.flow != "endloop":
            for step in self.hear["step"]:
                step(Step(at, i, self.active, self.registers))

    def _doubt(self) -> None:
        """The program has run for long: if it is in a loop, raise the error for an endless one unless it ends.

        Compiled code finds that out in a fraction of the time. What it counts, the work-items' instructions in all,
        is as many as are executed here, unless they race."""
        loops = [block for block in self.blocks if isinstance(block, _Loop)]
        if not loops:
            return
        if self.most is None and self.issued <= self.launch.max_instructions:
            try:
                self.most, self.longest = self._asked(), math.inf
            except TimeoutError:
                raise self.launch.long_error(loops[0].at, SECONDS) from None
        if self.most is not None and self.executed.sum() <= self.most and self.issued <= self.longest:
            self.limit = int(min(2 * self.issued, self.longest))
            return
        # an inner loop that ends every time leads back here, too: the endless one is where most of them ran
        inside = [loop for loop in loops if 2 * (self.issued - loop.before) > self.issued]
        raise self.launch.endless_error((inside or loops[:1])[-1].at, int(np.argmax(self.active)), self.issued - 1)

    def _asked(self) -> float:
        """How many instructions the work-items execute in all, by the fast engine; it may raise ``KernelError``, or
        ``TimeoutError``."""
        from cypresskit.machine.fast import run as run_fast

        outputs = {n: replace(surface, words=surface.words.copy()) for n, surface in self.launch.outputs.items()}
        try:
            launch = replace(self.launch, outputs=outputs, global_memory=self.memory)
            return run_fast(launch, seconds=SECONDS).instructions
        except KernelError as error:
            if any(i.line == error.line and i.op.flow == "loop" for i in self.body):
                raise
            return math.inf  # this engine, too, will come to that end

    # Control flow

    def _set(self, active: np.ndarray) -> None:
        self.active = active
        self.count = int(np.count_nonzero(active))

    def _loop(self) -> _Loop | None:
        return next((block for block in reversed(self.blocks) if isinstance(block, _Loop)), None)

    def _present(self, mask: np.ndarray) -> np.ndarray:
        """``mask`` without those who left the innermost loop's turn."""
        loop = self._loop()
        return mask & ~loop.gone if loop else mask

    def _flow(self, at: int, i: Instruction) -> int:
        """Do a control-flow instruction; the index of the next one."""
        flow, match = i.op.flow, self.program.matching
        if flow == "loop":
            self.blocks.append(_Loop(at, self.issued, self.active, self.active.copy(), np.zeros(self.items, bool)))
            return at + 1 if self.count else match[at]
        if flow == "if":
            condition = self._condition(i) if self.count else self.active
            self.blocks.append(_If(self.active, self.active & ~condition))
            self._set(self.active & condition)
            return at + 1 if self.count else match[at]
        block = self.blocks[-1]
        if flow == "else":
            assert isinstance(block, _If)
            self._set(self._present(block.otherwise))
            block.otherwise = np.zeros(self.items, bool)
            return at + 1 if self.count else match[at]
        if flow == "endif":
            assert isinstance(block, _If)
            self.blocks.pop()
            self._set(self._present(block.came))
            return at + 1
        loop = self._loop()
        assert loop is not None
        if flow == "endloop":
            loop.gone[:] = False
            self._set(loop.running)
            if self.count:
                self.active = loop.running.copy()
                return loop.at + 1
            self.blocks.pop()
            self._set(self._present(loop.entered))
            return at + 1
        leaving = self.active & self._condition(i) if self.count else self.active
        loop.gone |= leaving
        if flow == "break":
            loop.running &= ~leaving
        self._set(self.active & ~leaving)
        return match[loop.at] if not self.count and block is loop else at + 1

    def _condition(self, i: Instruction) -> np.ndarray:
        if not i.sources:
            return np.ones(self.items, bool)
        if i.op.name in ("breakc", "ifc"):
            left, right = (flushed(self._operand(i, n, (0,))) for n in (0, 1))
            condition = RELATION[str(i.control("relop"))](left[0], right[0])
        else:
            word = self._operand(i, 0, (0,))[0]
            condition = word == 0 if i.opcode.endswith("_logicalz") else word != 0
        return np.broadcast_to(condition, self.items)

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
        if letters == "xyzw":
            return base
        if len(set(letters)) == 1 and letters[0] in "xyzw":
            component = "xyzw".index(letters[0])
            return base[component : component + 1]
        if set(letters) <= set("xyzw"):
            return base[["xyzw".index(letter) for letter in letters]]
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
        kind = i.op.kind
        if kind == "fetch":
            self._fetch(at, i)
        elif kind == "lds":
            self._lds(at, i)
        elif kind == "fence":
            self._fence(at, i)
        else:
            assert i.dest is not None
            self._write(at, i.dest, self._compute(i, i.dest))

    def _compute(self, i: Instruction, dest: Dest) -> np.ndarray:
        """Rows for the written components of ``dest``, or one row for all of them."""
        op, positions = i.op, dest.written
        if op.double:
            sources = [
                self._double(i, n) if kind == "d" else self._operand(i, n, (0,)) for n, kind in enumerate(op.sources)
            ]
            result = MEANING[op.name](*sources)
            if op.result == "d":
                low, high = split(result)
                return np.concatenate([high if p % 2 else low for p in positions])
        elif op.name == "dp4":
            result = MEANING["dp4"](
                *(np.broadcast_to(self._operand(i, n, (0, 1, 2, 3)), (4, self.items)) for n in (0, 1))
            )
        else:
            result = MEANING[op.name](*(self._operand(i, n, positions or (0,)) for n in range(len(op.sources))))
        return scaled(result, i.shift, i.saturate) if i.shift != 1.0 or i.saturate else result

    def _write(self, at: int, dest: Dest, rows: np.ndarray) -> None:
        """Write rows (one per written component, or one for all) to a register, an output or global memory."""
        register = dest.register
        if register.kind == "r" and dest.mask == "xyzw" and self.count == self.items:
            self.registers[register.index][...] = rows
            self._tell_wrote(at, register, (0, 1, 2, 3))
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
            self._tell_stored(at, register, values)
            for c, value in values.items():
                np.copyto(words[:, c], value, where=self.active)
        else:
            target = self.registers[register.index]
            for c, value in values.items():
                np.copyto(target[c], value, where=self.active)
            self._tell_wrote(at, register, tuple(sorted(values)))

    def _tell_wrote(self, at: int, register: Register, components: tuple[int, ...]) -> None:
        for wrote in self.hear["wrote"]:
            wrote(Wrote(at, register, components, self.registers[register.index].T, self.active))

    def _tell_stored(self, at: int, register, values: dict[int, np.ndarray]) -> None:
        if self.hear["wrote"]:
            table = np.zeros((self.items, 4), np.uint32)
            for c, value in values.items():
                table[:, c] = value
            for wrote in self.hear["wrote"]:
                wrote(Wrote(at, register, tuple(sorted(values)), table, self.active))

    def _fetch(self, at: int, i: Instruction) -> None:
        resource = int(i.control("resource"))
        surface, declared = self.launch.textures[resource], self.program.textures[resource]
        sizes, offsets = (surface.width, surface.height), i.control("aoffimmi", (0, 0, 0))
        place = []
        for axis in range(declared.dimensions):
            row = self._operand(i, 0, (axis,))
            if i.opcode == "load":
                whole = row[0].view(np.int32).astype(np.float64)
            else:
                value = flushed(row)[0]
                whole = np.floor(value if declared.unnormalised else value * np.float32(sizes[axis])).astype(np.float64)
            place.append(np.broadcast_to(whole + offsets[axis], self.items))
        inside = np.ones(self.items, bool)
        for axis, whole in enumerate(place):
            inside &= (whole >= 0) & (whole < sizes[axis])  # false for NaN
        x, y = (_integers(p) for p in (*place, np.zeros(self.items))[:2])
        words = surface.words.shape[2]
        if words == 4 and inside.all():
            texels = surface.words[y, x]
        else:
            texels = np.zeros((self.items, 4), np.uint32)
            texels[inside, :words] = surface.words[y[inside], x[inside]]
            if surface.single and words < 4:
                texels[inside, 3] = ONE
        self._count_outside(inside)
        for fetch in self.hear["fetch"]:
            fetch(Fetch(at, resource, x, y, inside, texels, self.active))
        assert i.dest is not None
        self._write(at, i.dest, texels.T[list(i.dest.written)])

    def _count_outside(self, inside: np.ndarray) -> None:
        self.out_of_range += self.count - int(np.count_nonzero(inside & self.active))

    def _element(self, register) -> tuple[np.ndarray, np.ndarray]:
        """The element of ``g[...]`` for each work-item, and whether it exists."""
        assert self.launch.global_memory is not None
        element = np.full(self.items, register.element, np.int64)
        if register.address is not None:
            element += self._rows(register.address, register.address.swizzle[0])[0].view(np.int32)
        return element, (element >= 0) & (element < len(self.launch.global_memory))

    def _tell_memory(self, at: int, space: str, store: bool, element, words, inside, block: int = 0) -> None:
        for memory in self.hear["memory"]:
            memory(Memory(at, space, store, element, words, inside, self.active, block))

    def _read_global(self, source: Source) -> np.ndarray:
        element, inside = self._element(source.register)
        self._count_outside(inside)
        if self.hear["memory"]:
            i = self.body[self.at]
            n = next(n for n, s in enumerate(i.sources) if s is source)
            words = tuple(sorted(set(letters(source, read_positions(self.program, i, n)))))
            self._tell_memory(self.at, "global", False, element, words, inside)
        assert self.launch.global_memory is not None
        found = np.zeros((self.items, 4), np.uint32)
        found[inside] = self.launch.global_memory[element[inside]]
        return found.T

    def _write_global(self, at: int, dest: Dest, values: dict[int, np.ndarray]) -> None:
        element, inside = self._element(dest.register)
        self._tell_memory(at, "global", True, element, tuple(sorted(values)), inside)
        memory = self.launch.global_memory
        assert memory is not None
        outside = np.flatnonzero(self.active & ~inside)
        if len(outside):
            place = int(element[outside[0]])
            raise self.launch.store_error(at, int(outside[0]), f"to g[{place}], which has {len(memory)} elements")
        self._tell_stored(at, dest.register, values)
        for c, value in values.items():
            memory[element[self.active], c] = value[self.active]

    def _lds(self, at: int, i: Instruction) -> None:
        store, vector = "store" in i.opcode, i.opcode.endswith("vec")
        block = int(i.control("id"))
        stride, size = self.program.lds[block]
        words = self.lds[block]
        address = self._operand(i, 0, (0,))[0].astype(np.int64)
        if stride:
            offset = self._operand(i, 1, (0,)) if vector else self._operand(i, 0, (1,))
            address = address * stride + offset[0]
        asked = np.broadcast_to(address, self.items)
        address = asked & ~np.int64(3)  # the two low bits don't count
        components = i.dest.written if vector and i.dest else (0,)
        found = []
        inside_all = np.ones(self.items, bool)
        for c in components:
            inside_all &= (address + 4 * c >= 0) & (address + 4 * c < size)
        self._tell_memory(at, "lds", store, asked, components, inside_all, block)
        outside = np.flatnonzero(self.active & ~inside_all)
        if store and len(outside):
            place = int(address[outside[0]])
            raise self.launch.store_error(at, int(outside[0]), f"to byte {place} of LDS {block}, which has {size}")
        self._count_outside(inside_all)
        for c in components:
            inside = (address + 4 * c >= 0) & (address + 4 * c < size)
            if store:
                value = np.broadcast_to(self._operand(i, 2 if vector else 1, (c,))[0], self.items)
                words[self.group_of[self.active], (address + 4 * c)[self.active] // 4] = value[self.active]
            else:
                row = np.zeros(self.items, np.uint32)
                row[inside] = words[self.group_of[inside], (address + 4 * c)[inside] // 4]
                found.append(row)
        if not store:
            assert i.dest is not None
            self._write(at, i.dest, np.stack(found))

    def _fence(self, at: int, i: Instruction) -> None:
        if i.control("threads") and self.count < self.items:
            here = self.active.reshape(-1, math.prod(self.program.group))
            split_groups = np.flatnonzero(here.any(axis=1) & ~here.all(axis=1))
            if len(split_groups):
                raise self.launch.barrier_error(at, int(split_groups[0]), int(here[split_groups[0]].sum()))
        for barrier in self.hear["barrier"]:
            barrier(Barrier(at, self.active))


def _integers(place: np.ndarray) -> np.ndarray:
    """Coordinates as int64; those that no int64 holds become +-2^62, infinities +-``INFINITE``, NaN ``NOWHERE``."""
    if np.abs(place).max() < 2.0**31:  # false for NaN
        return place.astype(np.int64)
    whole = np.clip(place, -(2.0**62), 2.0**62).astype(np.int64)
    return np.where(np.isnan(place), NOWHERE, np.where(np.isinf(place), np.sign(whole) * INFINITE, whole))
