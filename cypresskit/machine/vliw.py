"""The engine that runs compiled code: the same machine state as the hardware's, for many work-items
at once.

Registers, clause temporaries, PV, PS, literals, the LDS queue and the stack of execution masks are
modelled one to one, so that what runs here is the schedule and the allocation themselves; the
arithmetic is the explaining engine's. Results must be the IL's, bit for bit. Registers start as a
pattern that no kernel means, not as zero: code that reads what it never wrote shows. Left out:
time, and the order in which wavefronts run.

``Processor`` is all of it but memory, which ``execute`` adds. The timing's ``Lanes`` is one, too,
whose words are functions of a loop's turn.
"""

from collections.abc import Mapping
from typing import Any

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
from cypresskit.machine import places
from cypresskit.machine.launch import Launch
from cypresskit.machine.masks import Masks

Word = Any  # 32 bits of each work-item: here uint32, a row for each or one for all
Test = tuple[Operation, Word] | None  # the predicate operation of a clause and its value


def execute(code: Code, launch: Launch) -> int:
    """Run ``code`` on a prepared launch (``machine.launch.prepare``) of its program:
    ``launch.global_memory`` and ``launch.outputs`` are changed in place. Returns the bundles
    issued. Raises ``KernelError`` for a store out of range or an endless loop.
    """
    execution = _Execution(code, launch)
    with np.errstate(all="ignore"):
        execution.run()
    return execution.bundles


class Processor:
    """The state of the work-items that run ``code``, with ``ids`` in their input registers:
    ``registers`` by number and channel, ``forwards`` (PV and PS by slot), the ``queue`` of the LDS,
    ``masks``, and how many ``bundles`` were issued.
    """

    poison: Word = np.array([0xFFC0DEAD], np.uint32)  # in registers that were never written

    def __init__(
        self, code: Code, ids: Mapping[str, np.ndarray], constants: Mapping[int, np.ndarray]
    ):
        self.code, self.constants = code, constants
        self.registers: dict[tuple[int, int], Word] = {}
        names = ("vWinCoord0",) if "vWinCoord0" in ids else ("vTidInGrp", "vThreadGrpId")
        for n, name in enumerate(names):
            rows = (
                ids[name][:2] if name == "vWinCoord0" else (*ids[name][:3], ids[f"{name}Flat"][0])
            )
            self.registers |= {(n, c): self.known(row) for c, row in enumerate(rows)}
        self.items = len(ids[names[0]][0])
        self.forwards: dict[int, Word] = {}
        self.queue: list[list[Word]] = []
        self.masks = Masks(self.items)
        self.bundles = 0

    def run(self) -> None:
        """Run the code to its end."""
        at, controls = 0, self.code.controls
        while controls[at].name != "END":
            at = self.control(at, controls[at])

    # Control flow

    def control(self, at: int, control: Control) -> int:
        """Do one control-flow instruction. Returns the next one's number."""
        name, masks = control.name, self.masks
        if control.bundles or control.fetches:
            test = self.clause(control) if masks.count else None
            passed = masks.active if test is None else self.passed(*test)
            if name == "ALU_PUSH_BEFORE":
                masks.begin_if(passed)
            elif name in ("ALU_BREAK", "ALU_CONTINUE"):
                masks.leave(~passed, name == "ALU_BREAK")
                return self.after_leaving(at)
        elif control.store is not None:
            if masks.count:
                self.store(control.store)
        elif name == "LOOP_START_DX10":
            self.begin_loop(at)
        elif name in ("LOOP_BREAK", "LOOP_CONTINUE"):
            masks.leave(masks.active, name == "LOOP_BREAK")
            return self.after_leaving(at)
        elif name == "LOOP_END":
            loop = masks.loops[-1]
            more = self.any(loop.running)
            masks.next_iteration()
            self.end_turn(loop.at, more)
            return loop.at + 1 if more else at + 1
        elif name in ("JUMP", "ELSE"):
            if name == "ELSE":
                masks.otherwise()
            return at + 1 if self.any(masks.active) else control.target
        elif name == "POP":
            masks.close()
            return self.after_leaving(at)
        return at + 1

    def any(self, lanes: np.ndarray) -> bool:
        """Whether control goes where these work-items (bool) go."""
        return bool(lanes.any())

    def begin_loop(self, at: int) -> None:
        self.masks.begin_loop(at)

    def end_turn(self, start: int, more: bool) -> None:
        """A turn of the loop that begins at control ``start`` has ended; ``more``: another
        follows.
        """

    def after_leaving(self, at: int) -> int:
        """The control that follows ``at``, where work-items may have left a loop's turn."""
        return at + 1

    # Clauses

    def clause(self, control: Control) -> Test:
        """Run a clause. Returns its predicate operation and the value, or None."""
        self.forwards, test = {}, None
        self.registers = {
            place: word for place, word in self.registers.items() if place[0] < TEMPORARY
        }
        for fetch in control.fetches:
            self.fetch(fetch)
        for bundle in control.bundles:
            test = self.bundle(bundle) or test
        return test

    def bundle(self, bundle: Bundle) -> Test:
        self.bundles += 1
        test = None
        results: list[tuple[Operation, Word]] = []
        for parts in bundle.parts:
            first, row = parts[0], parts[0].row
            words = [self.read(r) for r in first.reads]
            if row.kind == "lds":
                self.share(first, words)
            elif first.name == "MOV":  # of which each slot may read another word of the LDS queue
                results += [
                    (o, self.compute((o,), [self.read(r) for r in o.reads], [])) for o in parts
                ]
            elif row.kind != "sync":
                low = [self.read(r) for r in parts[-1].reads] if row.kind == "double" else []
                value = self.compute(parts, words, low)
                if row.predicate:
                    test = first, value
                elif row.words == 2:
                    halves = self.halves(value)
                    results += [(o, halves[o.slot % 2]) for o in parts]
                else:
                    results.append((first, value))
        self.forwards = {o.slot: word for o, word in results}
        for o, word in results:
            if o.dest is not None:
                self.write(o.dest, word)
        if any(r.kind == "queue" for o in bundle.operations for r in o.reads):
            self.queue.pop(0)
        return test

    def passed(self, predicate: Operation, value: Word) -> np.ndarray:
        """Which work-items (bool) pass a test of that value."""
        return np.broadcast_to(value != 0, self.items)

    # Words

    def known(self, bits: np.ndarray) -> Word:
        """A word that isn't computed: an input, a constant or a literal."""
        return bits

    def read(self, read: Read) -> Word:
        """An operand."""
        kind = read.kind
        if kind == "gpr":
            word = self.registers.get((read.index, read.channel), self.poison)
        elif kind in ("pv", "ps"):
            word = self.forwards.get(4 if kind == "ps" else read.channel, self.poison)
        elif kind == "queue":
            word = self.queue[0][read.index]
        elif kind == "constant":
            word = self.known(
                self.constants[read.index][read.element, read.channel : read.channel + 1]
            )
        else:
            word = self.known(np.array([read.bits], np.uint32))
        return self.modified(word, read.neg, read.abs)

    def modified(self, word: Word, neg: bool, absolute: bool) -> Word:
        """The word as an operand's signs make it."""
        word = word & ~SIGN if absolute else word
        return word ^ SIGN if neg else word

    def compute(self, parts: tuple[Operation, ...], words: list[Word], low: list[Word]) -> Word:
        """The result of an operation on the words that its first slot reads; ``low``: its last
        slot's, of doubles.
        """
        first, row = parts[0], parts[0].row
        if low:
            words = [pair(a, b) for a, b in zip(low, words, strict=True)]
        assert row.meaning is not None
        return scaled(row.meaning(*words), first.omod, first.clamp)

    def halves(self, value: Word) -> tuple[Word, Word]:
        """The low and the high word of a result of two words."""
        return split(value)

    def write(self, place: tuple[int, int], word: Word) -> None:
        """Set a register in the active work-items."""
        self.registers[place] = np.where(
            self.masks.active, word, self.registers.get(place, self.poison)
        )

    def component(self, register: int | None, letter: str) -> Word:
        """A register's component, or one of the constants 0 and 1.0."""
        if letter in "01" or register is None:
            return self.known(np.array([ONE if letter == "1" else 0], np.uint32))
        return self.registers.get((register, "xyzw".index(letter)), self.poison)

    # Memory

    def share(self, o: Operation, words: list[Word]) -> None:
        """An access to the local data share, with the operands that it reads."""
        raise NotImplementedError

    def fetch(self, f: FetchInstruction) -> None:
        """A fetch, which writes a register."""
        raise NotImplementedError

    def store(self, s: StoreInstruction) -> None:
        """A store to global memory or an output."""
        raise NotImplementedError


class _Execution(Processor):
    """A processor with the memories of a launch."""

    def __init__(self, code: Code, launch: Launch):
        super().__init__(code, launch.ids, launch.constants)
        self.launch, self.memories = launch, places.Memories(launch)

    def end_turn(self, start: int, more: bool) -> None:
        if more and self.bundles > self.launch.max_instructions:
            end = self.code.controls[self.code.controls[start].target - 1]
            raise self.launch.endless_error(end.at, int(np.argmax(self.masks.active)))

    def share(self, o: Operation, words: list[np.ndarray]) -> None:
        lds = o.lds
        assert lds is not None
        words = [np.broadcast_to(word, self.items) for word in words]
        first = places.lds_byte(words[0]) - lds.base
        if o.name.startswith("LDS_WRITE"):
            for n, value in enumerate(words[1:]):
                word, inside = places.lds_inside(first, lds.offset * n, lds.size)
                self.memories.check_lds(o.at, first + 4 * lds.offset * n, inside, self.masks.active)
                self.memories.store(lds.array, word, value, self.masks.active)
            return
        requests = [(first, 0)]
        if o.name == "LDS_READ2_RET":
            requests.append((places.lds_byte(words[1]) - lds.base, 0))
        elif o.name == "LDS_READ_REL_RET":
            requests.append((first, lds.offset))
        found = [places.lds_inside(byte, offset, lds.size) for byte, offset in requests]
        self.queue.append([self.memories.load(lds.array, *place) for place in found])

    def fetch(self, f: FetchInstruction) -> None:
        rows = [
            np.broadcast_to(self.component(f.source, letter), self.items)
            for letter in f.coordinates
        ]
        if f.name == "MEM_READ":
            texels = self.launch.elements(
                places.element(f.offset[0], rows[0] if rows else None, self.items)
            )[0].T
        else:
            surface = self.launch.textures[f.resource]
            x, y, inside = places.texel(rows, surface, f.offset, whole=f.name == "LD")
            texels = surface.texels(x, y, inside).T
        for channel, component in enumerate(f.select):
            if component != "_":
                self.write((f.dest, channel), texels["xyzw".index(component)])

    def store(self, s: StoreInstruction) -> None:
        rows = (
            (c, self.component(s.source, letter))
            for c, letter in enumerate(s.select)
            if letter != "_"
        )
        values = {c: np.broadcast_to(row, self.items) for c, row in rows}
        if s.name == "EXPORT":
            words = self.launch.outputs[s.offset].words.reshape(self.items, -1)
            for c, value in values.items():
                if c < words.shape[1]:
                    np.copyto(words[:, c], value, where=self.masks.active)
            return
        element = places.element(
            s.offset, None if s.index is None else self.component(s.index, "x"), self.items
        )
        self.memories.check_global(s.at, element, self.masks.active)
        self.memories.store_global(element, values, self.masks.active)
