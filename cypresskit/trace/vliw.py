"""The processor that runs compiled code, for many work-items at once, with the machine state of the
hardware.

Registers, clause temporaries, PV, PS, literals, the LDS queue and the stack of execution masks are
modeled one to one, so this runs the schedule and the allocation themselves. A register that was
never written holds ``words.poison``. Left out: time, and the order in which wavefronts run.

A ``Processor`` steps from one control-flow instruction to the next. Its arithmetic (``words``) and
its ``memory`` are parameters: the trace passes ``SymbolicWords``, which track what came from
memory, and a ``RequestRecorder``; ``tools/run_code.py`` passes 32-bit patterns and the memories of
a launch, and the results must be the IL's, bit for bit. Its poison isn't 0, as IL's registers are
at first, so that code that reads an unwritten register gives a visible result.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cypresskit.compiler.assembly import (
    Bundle,
    Control,
    FetchInstruction,
    Operation,
    Read,
    StoreInstruction,
)
from cypresskit.compiler.code import Code
from cypresskit.devices import FIRST_TEMPORARY
from cypresskit.il.meaning import ONE
from cypresskit.il.program import LETTERS
from cypresskit.machine.masks import Masks

Word = Any  # 32 bits of each work-item
Test = tuple[Operation, Word] | None  # the predicate operation of a clause and its value


class Processor:
    """The state of the work-items that run ``code``.

    Attributes
    ----------
    registers
        Words by number and channel; ``ids`` are in the input registers.
    forwards
        PV and PS, by slot.
    queue
        The LDS queue.
    masks
        The active mask; at first the work-items that ``exist`` (bool).
    bundles
        The number of bundles issued.
    """

    def __init__(
        self,
        code: Code,
        ids: Mapping[str, np.ndarray],
        constants: Mapping[int, np.ndarray],
        words: Any,
        memory: Any,
        exist: np.ndarray,
    ):
        self.code, self.constants, self.words, self.memory = code, constants, words, memory
        self.registers: dict[tuple[int, int], Word] = {}
        if "vWinCoord0" in ids:
            inputs = {(0, c): ids["vWinCoord0"][c] for c in (0, 1)}
        else:
            names = enumerate(("vTidInGrpFlat", "vThreadGrpIdFlat"))
            inputs = {(n, 3): ids[name][0] for n, name in names}
        self.registers |= {place: words.constant(row) for place, row in inputs.items()}
        self.items = len(next(iter(inputs.values())))
        self.forwards: dict[int, Word] = {}
        self.queue: list[list[Word]] = []
        self.masks = Masks(self.items)
        self.masks.set(exist)
        self.existing = self.masks.count
        self.bundles = 0

    # Control flow

    def step(self, at: int) -> int:
        """Execute control-flow instruction ``at``. Return the number of the next one."""
        control = self.code.controls[at]
        masks = self.masks
        name = control.name
        if control.bundles or control.fetches:
            test = self.clause(control) if masks.count else None
            passed = masks.active if test is None else self.words.passed(*test, masks.active)
            if name == "ALU_PUSH_BEFORE":
                masks.begin_if(passed)
            elif name == "ALU_BREAK":
                masks.leave_loop(~passed)
        elif control.store is not None:
            if masks.count:
                self.store(control.store)
        elif name == "LOOP_START_DX10":
            masks.begin_loop(at, self.bundles)
        elif name == "LOOP_BREAK":
            masks.leave_loop(masks.active)
        elif name == "LOOP_END":
            start = masks.loops[-1].at
            return start + 1 if masks.next_iteration() else at + 1
        elif name in ("JUMP", "ELSE"):
            if name == "ELSE":
                masks.begin_else()
            return at + 1 if masks.count else control.target
        elif name == "POP":
            masks.close()
        return at + 1

    # Clauses

    def clause(self, control: Control) -> Test:
        """Run a clause. Return its predicate operation and the value, or None."""
        self.forwards = {}
        test = None
        self.registers = {
            place: word for place, word in self.registers.items() if place[0] < FIRST_TEMPORARY
        }
        for fetch in control.fetches:
            self.fetch(fetch)
        for bundle in control.bundles:
            test = self.bundle(bundle) or test
        return test

    def bundle(self, bundle: Bundle) -> Test:
        """Issue a bundle. Return its predicate operation and the value, or None."""
        self.bundles += 1
        test = None
        results: list[tuple[Operation, Word]] = []
        for slots in bundle.parts:
            first = slots[0]
            row = first.row
            words = [self.read(r) for r in first.reads]
            if row.kind == "lds":
                queued = self.memory.lds(first, words, self.masks.active)
                if queued:
                    self.queue.append(queued)
            elif first.name == "MOV":  # its slots may read different words of the LDS queue
                moved = [self.words.compute((o,), [*map(self.read, o.reads)], []) for o in slots]
                results += zip(slots, moved)
            elif row.kind != "sync":
                low = [self.read(r) for r in slots[-1].reads] if row.kind == "double" else []
                value = self.words.compute(slots, words, low)
                if row.is_test:
                    test = first, value
                elif row.words == 2:
                    halves = self.words.halves(value)
                    results += [(o, halves[o.slot % 2]) for o in slots]
                else:
                    results.append((first, value))
        self.forwards = {o.slot: word for o, word in results}
        for o, word in results:
            if o.dest is not None:
                self.write(o.dest, word)
        if bundle.reads_queue:
            self.queue.pop(0)
        return test

    # Registers

    def read(self, read: Read) -> Word:
        """Return an operand."""
        kind = read.kind
        if kind == "gpr":
            word = self.registers.get((read.index, read.channel), self.words.poison)
        elif kind in ("pv", "ps"):
            slot = 4 if kind == "ps" else read.channel
            word = self.forwards.get(slot, self.words.poison)
        elif kind == "queue":
            word = self.queue[0][read.index]
        elif kind == "constant":
            row = self.constants[read.index][read.element]
            word = self.words.constant(row[read.channel : read.channel + 1])
        else:
            word = self.words.constant(np.array([read.bits], np.uint32))
        return self.words.negated(word) if read.neg else word

    def write(self, place: tuple[int, int], word: Word) -> None:
        """Set a register in the active work-items; in all, if it is a clause temporary, which ends
        with its clause.
        """
        if self.masks.count < self.existing and place[0] < FIRST_TEMPORARY:
            old = self.registers.get(place, self.words.poison)
            word = self.words.merge(word, old, self.masks.active)
        self.registers[place] = word

    def component(self, register: int | None, letter: str) -> Word:
        """Return a register's component, or one of the constants 0 and 1.0."""
        if letter in "01" or register is None:
            return self.words.constant(np.array([ONE if letter == "1" else 0], np.uint32))
        return self.registers.get((register, LETTERS.index(letter)), self.words.poison)

    # Memory

    def fetch(self, f: FetchInstruction) -> None:
        """Fetch into a register."""
        coordinates = [self.component(f.source, letter) for letter in f.coordinates]
        texel = self.memory.fetch(f, coordinates, self.masks.active)
        for channel, component in enumerate(f.select):
            if component != "_":
                self.write((f.dest, channel), texel[LETTERS.index(component)])

    def store(self, s: StoreInstruction) -> None:
        """Store a register to global memory or an output."""
        index = None if s.index is None else self.component(s.index, "x")
        values = {
            c: self.component(s.source, letter)
            for c, letter in enumerate(s.select)
            if letter != "_"
        }
        self.memory.store(s, index, values, self.masks.active)
