"""The engine that runs compiled code: the same machine state as the hardware's, for all work-items of a launch at once.

Registers, clause temporaries, PV, PS, literals, the LDS queue and the stack of execution masks are modelled one to one,
so that what runs here is the schedule and the allocation themselves; the arithmetic is the explaining engine's. Results
must be the IL's, bit for bit. Registers start as a pattern that no kernel means, not as zero: code that reads what it
never wrote shows. Left out: time, and the order in which wavefronts run.
"""

import math

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
from cypresskit.compiler.ir import LdsAccess
from cypresskit.il.meaning import ONE, SIGN, pair, scaled, split
from cypresskit.machine import places
from cypresskit.machine.launch import Launch
from cypresskit.machine.masks import Masks

POISON = np.uint32(0xFFC0DEAD)


def execute(code: Code, launch: Launch) -> int:
    """Run ``code`` on a prepared launch (``machine.launch.prepare``) of its program: ``launch.global_memory`` and
    ``launch.outputs`` are changed in place. Returns the bundles issued. Raises ``KernelError`` for a store out of range
    or an endless loop."""
    with np.errstate(all="ignore"):
        return _Processor(code, launch).run()


class _Processor:
    def __init__(self, code: Code, launch: Launch):
        self.code, self.launch, self.items = code, launch, launch.items
        self.registers = np.full((128, 4, self.items), POISON, np.uint32)
        ids = launch.ids
        if code.program.mode == "pixel":
            self.registers[0, :2] = ids["vWinCoord0"][:2]
        else:
            for n, name in enumerate(("vTidInGrp", "vThreadGrpId")):
                self.registers[n, :3] = ids[name][:3]
                self.registers[n, 3] = ids[f"{name}Flat"][0]
        self.vector = np.full((4, self.items), POISON, np.uint32)
        self.scalar = np.full(self.items, POISON, np.uint32)
        self.group_of = np.arange(self.items) // launch.group_items
        groups = 0 if launch.pixels else math.prod(launch.groups)
        self.lds = {n: np.zeros((groups, size // 4), np.uint32) for n, (_, size) in code.program.lds.items()}
        self.masks = Masks(self.items)
        self.queue: list[list[np.ndarray]] = []
        self.bundles = 0

    def run(self) -> int:
        at, controls = 0, self.code.controls
        while controls[at].name != "END" and self.items:
            at = self.control(at, controls[at])
        return self.bundles

    # Control flow

    def control(self, at: int, control: Control) -> int:
        """Do one control-flow instruction; the next one's number."""
        name, masks = control.name, self.masks
        if name == "TEX":
            for fetch in control.fetches:
                self.fetch(fetch)
        elif name.startswith("ALU"):
            self.alu(control)
        elif control.store is not None:
            self.store(control.store)
        elif name == "LOOP_START_DX10":
            masks.begin_loop()
        elif name in ("LOOP_BREAK", "LOOP_CONTINUE"):
            masks.leave(masks.active, name == "LOOP_BREAK")
        elif name == "LOOP_END":
            if masks.next_iteration():
                if self.bundles > self.launch.max_instructions:
                    raise self.launch.endless_error(control.at, int(np.argmax(masks.active)))
                return _target(control)
        elif name == "JUMP" and not masks.count:
            return _target(control)
        elif name == "ELSE":
            masks.otherwise()
        elif name == "POP":
            masks.end_if()
        return at + 1

    def alu(self, control: Control) -> None:
        masks = self.masks
        kept = self.clause(control.bundles) if masks.count else masks.active
        if control.name == "ALU_PUSH_BEFORE":
            masks.begin_if(kept)
        elif control.name in ("ALU_BREAK", "ALU_CONTINUE"):
            masks.leave(~kept, control.name == "ALU_BREAK")

    # ALU clauses

    def clause(self, bundles: tuple[Bundle, ...]) -> np.ndarray:
        """Run an ALU clause; the mask of those that its test, if it has one, keeps."""
        kept = self.masks.active
        self.vector[:] = POISON
        self.scalar = np.full(self.items, POISON, np.uint32)
        self.registers[TEMPORARY:] = POISON
        for bundle in bundles:
            test = self.bundle(bundle)
            if test is not None:
                kept = self.masks.active & test
        return kept

    def bundle(self, bundle: Bundle) -> np.ndarray | None:
        self.bundles += 1
        by_number: dict[int, list[Operation]] = {}
        for o in bundle.operations:
            by_number.setdefault(o.number, []).append(o)
        test = None
        results: list[tuple[Operation, np.ndarray]] = []
        for parts in by_number.values():
            first = parts[0]
            if first.row.kind == "lds":
                self.share(first, [self.read(r) for r in first.reads])
            elif first.row.kind == "sync":
                continue
            elif first.row.predicate:
                test = np.broadcast_to(self.compute(parts) != 0, self.items)
            elif first.row.double_result:
                low, high = split(self.compute(parts))
                results += [(o, high if o.slot % 2 else low) for o in parts]
            else:
                results += [(o, self.compute(parts if o.name != "MOV" else [o])) for o in self.writers(parts)]
        vector, scalar = np.full_like(self.vector, POISON), np.full(self.items, POISON, np.uint32)
        for o, bits in results:
            if o.slot == 4:
                scalar = np.broadcast_to(bits, self.items)
            else:
                vector[o.slot] = bits
            if o.dest is not None:
                np.copyto(self.registers[o.dest], bits, where=self.masks.active)
        self.vector, self.scalar = vector, scalar
        if any(r.kind == "queue" for o in bundle.operations for r in o.reads):
            self.queue.pop(0)
        return test

    @staticmethod
    def writers(parts: list[Operation]) -> list[Operation]:
        """The slots that give a one-word result: all of a MOV from the LDS queue, the first of any other."""
        return parts if parts[0].name == "MOV" else parts[:1]

    def compute(self, parts: list[Operation]) -> np.ndarray:
        first, row = parts[0], parts[0].row
        words = [self.read(r) for r in first.reads]
        if row.kind == "double":
            low = [self.read(r) for r in parts[-1].reads]
            words = [pair(a, b) for a, b in zip(low, words, strict=True)]
        assert row.meaning is not None
        bits = row.meaning(*words)
        return scaled(bits, first.omod, first.clamp) if first.omod != 1.0 or first.clamp else bits

    def read(self, read: Read) -> np.ndarray:
        kind = read.kind
        if kind == "gpr":
            bits = self.registers[read.index, read.channel].copy()  # the bundle may write it
        elif kind == "pv":
            bits = self.vector[read.channel]
        elif kind == "ps":
            bits = self.scalar
        elif kind == "constant":
            bits = self.launch.constants[read.index][read.element, read.channel : read.channel + 1]
        elif kind == "queue":
            bits = self.queue[0][read.index]
        else:
            bits = np.array([read.bits], np.uint32)
        if read.abs:
            bits = bits & ~SIGN
        return bits ^ SIGN if read.neg else bits

    # Memory

    def share(self, o: Operation, words: list[np.ndarray]) -> None:
        """An access to the local data share."""
        lds = o.lds
        assert lds is not None
        starts = [np.broadcast_to(places.lds_byte(word), self.items) - lds.base for word in words]
        if o.name.startswith("LDS_WRITE"):
            for n, value in enumerate(words[1:]):
                self.share_write(o, lds, starts[0], lds.offset * n, np.broadcast_to(value, self.items))
            return
        requests = [(starts[0], 0)]
        if o.name == "LDS_READ2_RET":
            requests.append((starts[1], 0))
        elif o.name == "LDS_READ_REL_RET":
            requests.append((starts[0], lds.offset))
        found = []
        for start, offset in requests:
            word, inside = places.lds_inside(start, offset, lds.size)
            row = np.zeros(self.items, np.uint32)
            row[inside] = self.lds[lds.block][self.group_of[inside], word[inside]]
            found.append(row)
        self.queue.append(found)

    def share_write(self, o: Operation, lds: LdsAccess, start: np.ndarray, offset: int, value: np.ndarray) -> None:
        active = self.masks.active
        word, inside = places.lds_inside(start, offset, lds.size)
        outside = np.flatnonzero(active & ~inside)
        if len(outside):
            what = f"to byte {4 * int(word[outside[0]])} of LDS {lds.block}, which has {lds.size}"
            raise self.launch.store_error(o.at, int(outside[0]), what)
        self.lds[lds.block][self.group_of[active], word[active]] = value[active]

    def fetch(self, f: FetchInstruction) -> None:
        if f.name == "MEM_READ":
            texels = self.global_read(f)
        else:
            texels = self.texels(f)
        for channel, component in enumerate(f.select):
            if component != "_":
                np.copyto(self.registers[f.dest, channel], texels["xyzw".index(component)], where=self.masks.active)

    def word(self, register: int, letter: str) -> np.ndarray:
        """A register's component, or one of the constants 0 and 1.0."""
        if letter in "01":
            return np.full(self.items, ONE if letter == "1" else 0, np.uint32)
        return self.registers[register, "xyzw".index(letter)]

    def texels(self, f: FetchInstruction) -> np.ndarray:
        surface = self.launch.textures[f.resource]
        rows = [self.word(f.source or 0, letter) for letter in f.coordinates]
        x, y, inside = places.texel(rows, surface, f.offset, whole=f.name == "LD", unnormalised=f.unnormalised)
        return surface.texels(x, y, inside).T

    def element(self, offset: int, register: int | None, channel: int) -> np.ndarray:
        index = None if register is None else self.registers[register, channel]
        return places.element(offset, index, self.items)

    def global_read(self, f: FetchInstruction) -> np.ndarray:
        channel = "xyzw".index(f.coordinates) if f.coordinates else 0
        return self.launch.elements(self.element(f.offset[0], f.source, channel))[0].T

    def store(self, s: StoreInstruction) -> None:
        values = {c: self.word(s.source, letter) for c, letter in enumerate(s.select) if letter != "_"}
        if s.name == "EXPORT":
            words = self.launch.outputs[s.offset].words.reshape(self.items, -1)
            for c, value in values.items():
                if c < words.shape[1]:
                    np.copyto(words[:, c], value, where=self.masks.active)
            return
        memory, active = self.launch.memory, self.masks.active
        element = self.element(s.offset, s.index, 0)
        outside = np.flatnonzero(active & ~((element >= 0) & (element < len(memory))))
        if len(outside):
            what = f"to g[{int(element[outside[0]])}], which has {len(memory)} elements"
            raise self.launch.store_error(s.at, int(outside[0]), what)
        for c, value in values.items():
            memory[element[active], c] = value[active]


def _target(control: Control) -> int:
    assert control.target is not None
    return control.target
