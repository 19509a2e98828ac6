"""The engine that runs compiled code: the same machine state as the hardware's, for many work-items
at once.

Registers, clause temporaries, PV, PS, literals, the LDS queue and the stack of execution masks are
modelled one to one, so that what runs here is the schedule and the allocation themselves; the
arithmetic is the explaining engine's. Results must be the IL's, bit for bit. Registers start as a
pattern that no kernel means, not as zero: code that reads what it never wrote shows. Left out:
time, and the order in which wavefronts run.

A ``Processor`` steps from one control-flow instruction to the next. It is given its arithmetic
(``words``) and its ``memory``: ``execute`` gives it 32-bit patterns and the memories of a launch;
the timing gives it words that know what came from memory, and a memory that notes where accesses
look.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from cypresskit.compiler.assembly import (
    TEMPORARY,
    Bundle,
    Control,
    FetchInstruction,
    Operation,
    Read,
    StoreInstruction,
)
from cypresskit.compiler.code import Code
from cypresskit.il.meaning import ONE, SIGN, pair, scaled, split
from cypresskit.il.program import LETTERS
from cypresskit.machine import places
from cypresskit.machine.launch import Launch
from cypresskit.machine.masks import Masks

Word = Any  # 32 bits of each work-item: with ``Bits`` uint32, a row for each or one for all
Test = tuple[Operation, Word] | None  # the predicate operation of a clause and its value


class Words(Protocol):
    """The arithmetic of a processor."""

    poison: Word  # in registers that were never written

    def constant(self, bits: np.ndarray) -> Word:
        """A word that isn't computed: an input, a constant or a literal."""

    def signed(self, word: Word, negated: bool, absolute: bool) -> Word:
        """The word as an operand's signs make it."""

    def compute(self, slots: tuple[Operation, ...], words: list[Word], low: list[Word]) -> Word:
        """The result of an operation on the words that its first slot reads; ``low``: its last
        slot's, of doubles.
        """

    def halves(self, value: Word) -> tuple[Word, Word]:
        """The low and the high word of a result of two words."""

    def merge(self, new: Word, old: Word, active: np.ndarray) -> Word:
        """``new`` in the active work-items, ``old`` in the others."""

    def passed(self, predicate: Operation, value: Word, active: np.ndarray) -> np.ndarray:
        """Which work-items (bool) pass a test of that value; only the active ones matter."""


class Memory(Protocol):
    """What a processor's fetches, stores and LDS operations do; ``active`` work-items count."""

    def lds(self, o: Operation, words: list[Word], active: np.ndarray) -> list[Word]:
        """An access to the local data share with the operands that it reads. Returns what it puts
        into the LDS queue: one or two words, none for a write.
        """

    def fetch(
        self, f: FetchInstruction, coordinates: list[Word], active: np.ndarray
    ) -> Sequence[Word] | np.ndarray:
        """The four components that a fetch gives: a sequence of words, or an array with a row for
        each.
        """

    def store(
        self,
        s: StoreInstruction,
        index: Word | None,
        values: Mapping[int, Word],
        active: np.ndarray,
    ) -> None:
        """Store components, by their numbers, to global memory or an output."""


class Bits:
    """Words as they are: 32-bit patterns."""

    poison = np.array([0xFFC0DEAD], np.uint32)

    def constant(self, bits: np.ndarray) -> np.ndarray:
        return bits

    def signed(self, word: np.ndarray, negated: bool, absolute: bool) -> np.ndarray:
        word = word & ~SIGN if absolute else word
        return word ^ SIGN if negated else word

    def compute(
        self, slots: tuple[Operation, ...], words: list[np.ndarray], low: list[np.ndarray]
    ) -> np.ndarray:
        first = slots[0]
        if low:
            words = [pair(a, b) for a, b in zip(low, words, strict=True)]
        assert first.row.meaning is not None
        return scaled(first.row.meaning(*words), first.omod, first.clamp)

    def halves(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return split(value)

    def merge(self, new: np.ndarray, old: np.ndarray, active: np.ndarray) -> np.ndarray:
        return np.where(active, new, old)

    def passed(self, predicate: Operation, value: np.ndarray, active: np.ndarray) -> np.ndarray:
        return np.broadcast_to(value != 0, active.shape)


def execute(code: Code, launch: Launch) -> int:
    """Run ``code`` on a prepared launch (``machine.launch.prepare``) of its program:
    ``launch.global_memory`` and ``launch.outputs`` are changed in place. Returns the bundles
    issued. Raises ``KernelError`` for a store out of range or an endless loop.
    """
    processor = Processor(code, launch.ids, launch.shape.constants, Bits(), _LaunchMemory(launch))
    at = 0
    with np.errstate(all="ignore"):
        while code.controls[at].name != "END":
            following = processor.step(at)
            if following <= at:
                masks = processor.masks
                loop = masks.loop_past_limit(processor.bundles, launch.max_instructions)
                if loop is not None:
                    item = int(np.argmax(masks.active))
                    raise launch.endless_error(code.controls[loop.at].at, item)
            at = following
    return processor.bundles


class Processor:
    """The state of the work-items that run ``code``, with ``ids`` in their input registers:
    ``registers`` by number and channel, ``forwards`` (PV and PS by slot), the ``queue`` of the LDS,
    ``masks``, and how many ``bundles`` were issued.

    Of the work-items those that ``exist`` (bool; all, if None) are active at first. While it is not
    ``masked``, results are written for all work-items, active or not.
    """

    def __init__(
        self,
        code: Code,
        ids: Mapping[str, np.ndarray],
        constants: Mapping[int, np.ndarray],
        words: Words,
        memory: Memory,
        exist: np.ndarray | None = None,
    ):
        self.code, self.constants, self.words, self.memory = code, constants, words, memory
        self.registers: dict[tuple[int, int], Word] = {}
        names = ("vWinCoord0",) if "vWinCoord0" in ids else ("vTidInGrp", "vThreadGrpId")
        for n, name in enumerate(names):
            if name == "vWinCoord0":
                rows = list(ids[name][:2])
            else:
                rows = [*ids[name][:3], ids[f"{name}Flat"][0]]
            self.registers |= {(n, c): words.constant(row) for c, row in enumerate(rows)}
        self.items = len(ids[names[0]][0])
        self.forwards: dict[int, Word] = {}
        self.queue: list[list[Word]] = []
        self.masks = Masks(self.items)
        if exist is not None:
            self.masks.set(exist)
        self.existing = self.masks.count
        self.masked = True
        self.bundles = 0

    # Control flow

    def step(self, at: int) -> int:
        """Do control-flow instruction ``at``. Returns the number of the one that follows."""
        control = self.code.controls[at]
        masks = self.masks
        name = control.name
        if control.bundles or control.fetches:
            test = self.clause(control) if masks.count else None
            passed = masks.active if test is None else self.words.passed(*test, masks.active)
            if name == "ALU_PUSH_BEFORE":
                masks.begin_if(passed)
            elif name in ("ALU_BREAK", "ALU_CONTINUE"):
                masks.leave(~passed, name == "ALU_BREAK")
        elif control.store is not None:
            if masks.count:
                self.store(control.store)
        elif name == "LOOP_START_DX10":
            masks.begin_loop(at, self.bundles)
        elif name in ("LOOP_BREAK", "LOOP_CONTINUE"):
            masks.leave(masks.active, name == "LOOP_BREAK")
        elif name == "LOOP_END":
            start = masks.loops[-1].at
            return start + 1 if masks.next_iteration() else at + 1
        elif name in ("JUMP", "ELSE"):
            if name == "ELSE":
                masks.otherwise()
            return at + 1 if masks.count else control.target
        elif name == "POP":
            masks.close()
        return at + 1

    # Clauses

    def clause(self, control: Control) -> Test:
        """Run a clause. Returns its predicate operation and the value, or None."""
        self.forwards = {}
        test = None
        self.registers = {
            place: word for place, word in self.registers.items() if place[0] < TEMPORARY
        }
        for fetch in control.fetches:
            self.fetch(fetch)
        for bundle in control.bundles:
            test = self.bundle(bundle) or test
        return test

    def bundle(self, bundle: Bundle) -> Test:
        """Issue a bundle. Returns its predicate operation and the value, or None."""
        self.bundles += 1
        if not bundle.operations:
            self.forwards = {}
            return None
        test = None
        results: list[tuple[Operation, Word]] = []
        for slots in bundle.parts:
            first = slots[0]
            row = slots[0].row
            words = [self.read(r) for r in first.reads]
            if row.kind == "lds":
                queued = self.memory.lds(first, words, self.masks.active)
                if queued:
                    self.queue.append(queued)
            elif first.name == "MOV":  # of which each slot may read another word of the LDS queue
                moved = [self.words.compute((o,), [*map(self.read, o.reads)], []) for o in slots]
                results += zip(slots, moved)
            elif row.kind != "sync":
                low = [self.read(r) for r in slots[-1].reads] if row.kind == "double" else []
                value = self.words.compute(slots, words, low)
                if row.predicate:
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
        """An operand."""
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
        return self.words.signed(word, read.neg, read.abs) if read.neg or read.abs else word

    def write(self, place: tuple[int, int], word: Word) -> None:
        """Set a register in the active work-items; a clause temporary, which dies with its clause,
        in all.
        """
        if self.masked and self.masks.count < self.existing and place[0] < TEMPORARY:
            old = self.registers.get(place, self.words.poison)
            word = self.words.merge(word, old, self.masks.active)
        self.registers[place] = word

    def component(self, register: int | None, letter: str) -> Word:
        """A register's component, or one of the constants 0 and 1.0."""
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


class _LaunchMemory:
    """The memories of a launch."""

    def __init__(self, launch: Launch):
        self.launch = launch
        self.items = launch.shape.items
        self.memories = places.Memories(launch)

    def lds(self, o: Operation, words: list[np.ndarray], active: np.ndarray) -> list[np.ndarray]:
        lds = o.lds
        assert lds is not None
        words = [np.broadcast_to(word, self.items) for word in words]
        first = places.lds_byte(words[0]) - lds.base
        if o.name.startswith("LDS_WRITE"):
            for n, value in enumerate(words[1:]):
                word, inside = places.lds_inside(first, lds.offset * n, lds.size)
                self.memories.check_lds(o.at, first + 4 * lds.offset * n, inside, active)
                self.memories.store(lds.array, word, value, active)
            return []
        requests = [(first, 0)]
        if o.name == "LDS_READ2_RET":
            requests.append((places.lds_byte(words[1]) - lds.base, 0))
        elif o.name == "LDS_READ_REL_RET":
            requests.append((first, lds.offset))
        requested = [places.lds_inside(byte, offset, lds.size) for byte, offset in requests]
        return [self.memories.load(lds.array, *place) for place in requested]

    def fetch(
        self, f: FetchInstruction, coordinates: list[np.ndarray], active: np.ndarray
    ) -> np.ndarray:
        rows = [np.broadcast_to(word, self.items) for word in coordinates]
        if f.name == "MEM_READ":
            element = places.element(f.offset[0], rows[0] if rows else None, self.items)
            return self.launch.elements(element)[0].T
        surface = self.launch.textures[f.resource]
        x, y, inside = places.texel(rows, surface, f.offset, whole=f.name == "LD")
        return surface.texels(x, y, inside).T

    def store(
        self,
        s: StoreInstruction,
        index: np.ndarray | None,
        values: Mapping[int, np.ndarray],
        active: np.ndarray,
    ) -> None:
        rows = {c: np.broadcast_to(word, self.items) for c, word in values.items()}
        if s.name == "EXPORT":
            words = self.launch.outputs[s.offset].words.reshape(self.items, -1)
            for c, row in rows.items():
                if c < words.shape[1]:
                    np.copyto(words[:, c], row, where=active)
            return
        element = places.element(s.offset, index, self.items)
        self.memories.check_global(s.at, element, active)
        self.memories.store_global(element, rows, active)
