"""The engine that runs compiled code: the same machine state as the hardware's, for all work-items of a launch at once.

Registers, clause temporaries, PV, PS, literals, the LDS queue and the stack of execution masks are modelled one to one,
so that what runs here is the schedule and the allocation themselves; the arithmetic is the explaining engine's. Results
must be the IL's, bit for bit. Registers start as a pattern that no kernel means, not as zero: code that reads what it
never wrote shows. Left out: time, and the order in which wavefronts run.
"""

import numpy as np

from cypresskit.compiler.assembly import TEMPORARY, Bundle, Control, FetchInstruction, Operation, Read, StoreInstruction
from cypresskit.compiler.code import Code
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
        if launch.pixels:
            self.registers[0, :2] = ids["vWinCoord0"][:2]
        else:
            for n, name in enumerate(("vTidInGrp", "vThreadGrpId")):
                self.registers[n, :3], self.registers[n, 3] = ids[name][:3], ids[f"{name}Flat"][0]
        self.forwards = np.full((5, self.items), POISON, np.uint32)  # PV, and PS
        self.masks, self.memories = Masks(self.items), places.Memories(launch)
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
        name, masks, target = control.name, self.masks, control.target
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
                return target
        elif name == "JUMP" and not masks.count:
            return target
        elif name == "ELSE":
            masks.otherwise()
        elif name == "POP":
            masks.close()
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
        self.forwards[:] = self.registers[TEMPORARY:] = POISON
        for bundle in bundles:
            if (test := self.bundle(bundle)) is not None:
                kept = self.masks.active & test
        return kept

    def bundle(self, bundle: Bundle) -> np.ndarray | None:
        self.bundles += 1
        test = None
        results: list[tuple[Operation, np.ndarray]] = []
        for parts in bundle.parts:
            first = parts[0]
            if first.row.kind == "lds":
                self.share(first, [self.read(r) for r in first.reads])
            elif first.row.kind == "sync":
                continue
            elif first.row.predicate:
                test = np.broadcast_to(self.compute(parts) != 0, self.items)
            elif first.row.words == 2:
                low, high = split(self.compute(parts))
                results += [(o, high if o.slot % 2 else low) for o in parts]
            elif first.name == "MOV":  # of which each slot may read another word of the LDS queue
                results += [(o, self.compute((o,))) for o in parts]
            else:
                results.append((first, self.compute(parts)))
        self.forwards = np.full_like(self.forwards, POISON)
        for o, bits in results:
            self.forwards[o.slot] = bits
            if o.dest is not None:
                np.copyto(self.registers[o.dest], bits, where=self.masks.active)
        if any(r.kind == "queue" for o in bundle.operations for r in o.reads):
            self.queue.pop(0)
        return test

    def compute(self, parts: tuple[Operation, ...]) -> np.ndarray:
        first, row = parts[0], parts[0].row
        words = [self.read(r) for r in first.reads]
        if row.kind == "double":
            low = [self.read(r) for r in parts[-1].reads]
            words = [pair(a, b) for a, b in zip(low, words, strict=True)]
        assert row.meaning is not None
        return scaled(row.meaning(*words), first.omod, first.clamp)

    def read(self, read: Read) -> np.ndarray:
        kind = read.kind
        if kind == "gpr":
            bits = self.registers[read.index, read.channel].copy()  # the bundle may write it
        elif kind in ("pv", "ps"):
            bits = self.forwards[4 if kind == "ps" else read.channel]
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
        words = [np.broadcast_to(word, self.items) for word in words]
        first = places.lds_byte(words[0]) - lds.base
        if o.name.startswith("LDS_WRITE"):
            for n, value in enumerate(words[1:]):
                word, inside = places.lds_inside(first, lds.offset * n, lds.size)
                self.memories.check_lds(o.at, lds.array, first + 4 * lds.offset * n, inside, self.masks.active)
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
        if f.name == "MEM_READ":
            texels = self.launch.elements(self.element(f.offset[0], f.source, "xyzw".find(f.coordinates[:1])))[0].T
        else:
            surface = self.launch.textures[f.resource]
            rows = [self.word(f.source or 0, letter) for letter in f.coordinates]
            x, y, inside = places.texel(rows, surface, f.offset, whole=f.name == "LD", unnormalised=f.unnormalised)
            texels = surface.texels(x, y, inside).T
        for channel, component in enumerate(f.select):
            if component != "_":
                np.copyto(self.registers[f.dest, channel], texels["xyzw".index(component)], where=self.masks.active)

    def word(self, register: int, letter: str) -> np.ndarray:
        """A register's component, or one of the constants 0 and 1.0."""
        if letter in "01":
            return np.full(self.items, ONE if letter == "1" else 0, np.uint32)
        return self.registers[register, "xyzw".index(letter)]

    def element(self, offset: int, register: int | None, channel: int) -> np.ndarray:
        index = None if register is None else self.registers[register, channel]
        return places.element(offset, index, self.items)

    def store(self, s: StoreInstruction) -> None:
        values = {c: self.word(s.source, letter) for c, letter in enumerate(s.select) if letter != "_"}
        if s.name == "EXPORT":
            words = self.launch.outputs[s.offset].words.reshape(self.items, -1)
            for c, value in values.items():
                if c < words.shape[1]:
                    np.copyto(words[:, c], value, where=self.masks.active)
            return
        element = self.element(s.offset, s.index, 0)
        self.memories.check_global(s.at, element, self.masks.active)
        self.memories.store_global(element, values, self.masks.active)
