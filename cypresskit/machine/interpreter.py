"""The interpreter: execute one instruction at a time for all work-items, and report events to
observers.

All work-items step through the program together. A register is an array of shape (4, items), and an
active mask selects the work-items that an instruction affects. The interpreter is slow and simple
enough to be checked by eye; the compiled engine must agree with it bit for bit.

Left out: the order in which wavefronts really run. Work-items that race for the same memory get the
result of lockstep.
"""

import numpy as np

from cypresskit.il import Dest, Instruction, Register, Source
from cypresskit.il.dataflow import components, lds_words, read_positions
from cypresskit.il.errors import ArgumentError
from cypresskit.il.meaning import MEANING, ONE, RELATION, SIGN, flushed, pair, split
from cypresskit.il.program import LETTERS
from cypresskit.machine import addressing
from cypresskit.machine.counters import LaunchCounters, tally
from cypresskit.machine.launch import Launch, endless_error, kernel_error
from cypresskit.machine.masks import Masks
from cypresskit.machine.observer import EVENTS, Observer

MAX_BYTES = 2 << 30  # for a whole domain
# bytes of a work-item without its registers: ids, coordinates and intermediate results, measured
EXTRA_BYTES = 190


def run(launch: Launch, observers: tuple[Observer, ...] = ()) -> LaunchCounters:
    """Run a checked launch and report events to ``observers``.

    Raises ``KernelError``, also for a loop that has not ended after ``launch.max_instructions``.
    """
    check_memory(launch)
    with np.errstate(all="ignore"):
        return Interpreter(launch, observers).run()


def check_memory(launch: Launch) -> None:
    """Raise ``ValueError`` for a launch that would need more than ``MAX_BYTES``."""
    items = launch.shape.items
    needed = items * (EXTRA_BYTES + 16 * len(launch.program.registers))
    if needed > MAX_BYTES:
        would = f"the interpreter would need {needed >> 20:,} MB for {items:,} work-items"
        advice = (
            'take a smaller domain, or engine="compiled" without observers. If that engine gave up,'
            " the work-items of a wavefront diverge between loads and stores of one memory: load"
            " before they diverge, and store after"
        )
        raise ArgumentError(f"{would}: {advice}")


class Interpreter:
    """The state of a run."""

    def __init__(self, launch: Launch, observers: tuple[Observer, ...]):
        self.launch = launch
        self.observers = observers
        self.program = launch.program
        # An event without listeners isn't made
        self.listeners = {
            name: [
                getattr(o, name)
                for o in observers
                if getattr(type(o), name) is not getattr(Observer, name)
            ]
            for name in EVENTS
        }
        self.body = self.program.body
        self.items = launch.shape.items
        self.masks = Masks(self.items)
        self.memories = addressing.Memories(launch)
        self.registers = {n: np.zeros((4, self.items), np.uint32) for n in self.program.registers}
        self.literals = {
            n: np.array(words, np.uint32)[:, np.newaxis]
            for n, words in self.program.literals.items()
        }
        self.executed = np.zeros(len(self.body), np.int64)
        self.out_of_range = self.issued = self.at = 0
        # Global elements that this instruction's operands read, by operand
        self.read: dict[int, np.ndarray] = {}

    def run(self) -> LaunchCounters:
        for listener in self.observers:
            listener.start(self.launch)
        at = 0 if self.items else len(self.body)
        while at < len(self.body):
            i = self.body[at]
            self.at = at
            self.read.clear()
            if self.masks.count and i.op.flow not in ("else", "endif"):
                self.executed[at] += self.masks.count
                self.issued += 1
                if self.issued > self.launch.max_instructions:
                    self._check_end()
                if i.op.flow != "endloop":
                    self._notify("step", i, self.registers, self._rows)
            if self.masks.count and i.dest and i.op.kind in ("alu", "fetch"):
                self._write(
                    i.dest, (self._compute if i.op.kind == "alu" else self._fetch)(i, i.dest)
                )
            elif self.masks.count and i.op.kind in ("lds", "fence"):
                (self._lds if i.op.kind == "lds" else self._fence)(i)
            at = self._flow(at, i) if i.op.flow else at + 1
        return tally(self.launch, self.executed, self.out_of_range)

    def _check_end(self) -> None:
        """Raise the error for a loop that is taken for endless."""
        limit = self.launch.max_instructions
        loop = self.masks.loop_past_limit(self.issued, limit)
        if loop is not None:
            item = int(np.argmax(self.masks.active))
            raise endless_error(self.launch.shape, loop.at, limit, item)

    # Control flow

    def _flow(self, at: int, i: Instruction) -> int:
        """Execute a control-flow instruction. Return the index of the next one."""
        flow = i.op.flow
        masks = self.masks
        match = self.program.matching
        if flow == "loop":
            masks.begin_loop(at, self.issued)
        elif flow == "if":
            masks.begin_if(self._condition(i) if masks.count else masks.active, at)
        elif flow == "else":
            masks.begin_else()
        elif flow == "endif":
            masks.close()
            return at + 1
        elif flow == "endloop":
            return match[at] + 1 if masks.next_iteration() else at + 1
        else:
            masks.leave_loop(self._condition(i) if masks.count else masks.active)
            loop_is_empty = not masks.count and masks.stack[-1] is masks.loops[-1]
            return match[match[at]] if loop_is_empty else at + 1
        return at + 1 if masks.count else match[at]

    def _condition(self, i: Instruction) -> np.ndarray:
        if not i.sources:
            return np.ones(self.items, bool)
        words = [self._operand(i, n, (0,))[0] for n in range(len(i.sources))]
        left, right = map(flushed, words) if i.controls.relop else (words[0], 0)
        return np.broadcast_to(RELATION[i.relation](left, right), self.items)

    # Operands

    def _base(self, source: Source) -> np.ndarray:
        """Return all four components of a register, shape (4, items) or (4, 1)."""
        register = source.register
        if register.kind == "r":
            return self.registers[register.index]
        if register.kind == "l":
            return self.literals[register.index]
        if register.kind == "cb":
            return self.launch.shape.constants[register.index][register.element][:, np.newaxis]
        if register.kind == "g":
            if id(source) not in self.read:
                self.read[id(source)] = self._read_global(source)
            return self.read[id(source)]
        return self.launch.ids[register.kind]

    def _rows(self, source: Source, letters: str) -> np.ndarray:
        """Return components of a source without its modifiers: one row each, or one for all."""
        base = self._base(source)
        if letters == LETTERS:
            return base
        if letters == letters[0] * len(letters):
            letters = letters[0]
            if letters in LETTERS:
                return base[LETTERS.index(letters)][np.newaxis]
        rows = base[[LETTERS.find(letter) for letter in letters]]
        for row, letter in zip(rows, letters):
            if letter in "01":
                row[:] = ONE * int(letter)
        return rows

    def _operand(self, i: Instruction, n: int, positions: tuple[int, ...]) -> np.ndarray:
        """Return source ``n`` at some positions, with its sign: a row for each, or one for
        all.
        """
        source = i.sources[n]
        rows = self._rows(source, "".join(source.swizzle[p] for p in positions))
        if not source.negated:
            return rows
        return rows ^ SIGN if i.op.float_modifiers(n) else np.uint32(0) - rows

    def _double(self, i: Instruction, n: int) -> np.ndarray:
        source = i.sources[n]
        low, high = self._rows(source, source.swizzle[0]), self._rows(source, source.swizzle[1])
        return pair(low, high ^ SIGN if source.negated else high)

    # Instructions

    def _compute(self, i: Instruction, dest: Dest) -> np.ndarray:
        """Return a row for each written component, or one for all."""
        op, positions = i.op, dest.written
        read = (0,) if op.double else tuple(range(op.across)) or positions or (0,)
        sources = enumerate(op.sources)
        result = MEANING[op.name](
            *[self._double(i, n) if t == "d" else self._operand(i, n, read) for n, t in sources]
        )
        if op.result == "d":
            low, high = split(result)
            return np.concatenate([high if p % 2 else low for p in positions])
        return result

    def _write(self, dest: Dest, rows: np.ndarray) -> None:
        """Write to a register, an output or global memory."""
        register, written = dest.register, dest.written
        if register.kind == "g":
            return self._write_global(register, written, rows)
        if register.kind == "o":
            target = self.launch.outputs[register.index].words.reshape(self.items, -1).T
            written = tuple(c for c in written if c < len(target))
        else:
            target = self.registers[register.index]
        rows = rows[: max(1, len(written))]
        self._notify("wrote", register, written, rows)
        where = self.masks.count == self.items or self.masks.active
        if len(written) == 4:
            np.copyto(target, rows, where=where)
            return
        for n, c in enumerate(written):
            np.copyto(target[c], rows[n if len(rows) > 1 else 0], where=where)

    def _notify(self, name: str, *facts) -> None:
        """Report an event. It is made only if an observer listens."""
        if self.listeners[name]:
            event = EVENTS[name](self.at, self.masks.active, *facts)
            for listener in self.listeners[name]:
                listener(event)

    def _fetch(self, i: Instruction, dest: Dest) -> np.ndarray:
        """Return a row for each written component."""
        resource, offset = i.controls.resource, i.controls.aoffimmi
        surface = self.launch.textures[resource]
        rows = [self._one(i, 0, p) for p in read_positions(self.program, i, 0)]
        x, y, inside = addressing.texel(rows, surface, offset)
        texels = surface.texels(x, y, inside)
        self._count_outside(inside)
        self._notify("fetch", resource, x, y, inside)
        return texels.T if len(dest.written) == 4 else texels.T[list(dest.written)]

    def _one(self, i: Instruction, n: int, position: int) -> np.ndarray:
        """Return a word of source ``n`` for each work-item."""
        row = self._operand(i, n, (position,))[0]
        return row if len(row) == self.items else np.broadcast_to(row, self.items)

    def _count_outside(self, inside: np.ndarray) -> None:
        if not inside.all():
            self.out_of_range += self.masks.count - int(
                np.count_nonzero(inside & self.masks.active)
            )

    def _element(self, register: Register) -> np.ndarray:
        """Return the element of ``g[...]`` for each work-item."""
        address = register.address
        index = self._rows(address, address.swizzle[0])[0] if address else None
        return addressing.element(register.element, index, self.items)

    def _read_global(self, source: Source) -> np.ndarray:
        element = self._element(source.register)
        i = self.body[self.at]
        texels, inside = self.launch.elements(element)
        self._count_outside(inside)
        n = next(n for n, s in enumerate(i.sources) if s is source)
        words = tuple(sorted(set(components(source, read_positions(self.program, i, n)))))
        self._notify("memory", "global", False, element, words, inside)
        return texels.T

    def _write_global(self, register: Register, written: tuple[int, ...], rows: np.ndarray) -> None:
        element = self._element(register)
        active = self.masks.active
        inside = self.launch.exist(element)
        self._notify("memory", "global", True, element, written, inside)
        self.memories.check_store(self.at, element, inside, active)
        self._notify("wrote", register, written, rows, element)
        values = np.broadcast_to(rows, (len(written), self.items))
        self.memories.store_global(element, dict(zip(written, values)), active)

    def _lds(self, i: Instruction) -> None:
        array = i.controls.id
        active = self.masks.active
        words = lds_words(i)
        size = self.program.lds[array]
        byte = self._one(i, 0, 0).astype(np.int64)
        accesses = [addressing.lds_inside(byte, c, size) for c in words]
        inside = np.logical_and.reduce([word_inside for _, word_inside in accesses])
        self._notify("memory", "lds", i.op.store, byte, words, inside, array)
        if i.op.store:
            self.memories.check_store(self.at, byte & ~3, inside, active)
            for c, (word, _) in zip(words, accesses):
                self.memories.store(array, word, self._one(i, i.op.passed[0], c), active)
            return
        self._count_outside(inside)
        if i.dest:
            self._write(i.dest, np.stack([self.memories.load(array, *place) for place in accesses]))

    def _fence(self, i: Instruction) -> None:
        self._notify("barrier", tuple(self.masks.stack))
        shape, active = self.launch.shape, self.masks.active
        split = shape.split_groups(active)
        if i.controls.threads and len(split):
            reaching = active[self.launch.group == split[0]].sum()
            what = (
                f"only {reaching} of {shape.group_items} work-items of group {split[0]} reach this"
                " barrier: the chip would wait forever for the others. Take it out of the if or"
                " loop that splits the group."
            )
            raise kernel_error(shape, "barrier", self.at, what)
