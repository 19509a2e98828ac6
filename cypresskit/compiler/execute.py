"""Running compiled code: the same machine state as the hardware's, for all work-items of a launch at once.

Registers, clause temporaries, PV, PS, literals, the LDS queue and the stack of execution masks are modelled one to one,
so that what runs here is the schedule and the allocation themselves; the arithmetic is the explaining engine's. Results
must be the IL's, bit for bit. Registers start as a pattern that no kernel means, not as zero: code that reads what it
never wrote shows. Left out: time, and the order in which wavefronts run.
"""

import numpy as np

from cypresskit.compiler.code import TEMPORARY, Bundle, Clause, Code, Control, Fetch, Operation, Read, Store
from cypresskit.machine.launch import Launch
from cypresskit.machine.numerics import ONE, SIGN, flushed, pair, scaled, split

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
        size = int(np.prod(code.program.group))
        self.group_of = np.arange(self.items) // size
        groups = int(np.prod(launch.groups)) if code.program.mode == "compute" else 0
        self.lds = {n: np.zeros((groups, size // 4), np.uint32) for n, (_, size) in code.program.lds.items()}
        self.active = np.ones(self.items, bool)
        self.frames: list[dict] = []
        self.queue: list[list[np.ndarray]] = []
        self.bundles = 0

    def run(self) -> int:
        at, controls = 0, self.code.controls
        while controls[at].name != "END" and self.items:
            at = self.control(at, controls[at])
        return self.bundles

    # Control flow

    def loop(self) -> dict | None:
        return next((f for f in reversed(self.frames) if "running" in f), None)

    def present(self, mask: np.ndarray) -> np.ndarray:
        loop = self.loop()
        return mask & ~loop["gone"] if loop else mask

    def leave(self, who: np.ndarray, for_good: bool) -> None:
        loop = self.loop()
        assert loop is not None
        loop["gone"] |= who
        if for_good:
            loop["running"] &= ~who
        self.active = self.active & ~who

    def control(self, at: int, control: Control) -> int:
        """Do one control-flow instruction; the next one's number."""
        name = control.name
        if name == "TEX":
            assert control.clause is not None
            for fetch in control.clause.fetches:
                self.fetch(fetch)
        elif name.startswith("ALU"):
            self.alu(control)
        elif control.store is not None:
            self.store(control.store)
        elif name == "LOOP_START_DX10":
            self.frames.append(
                {"entered": self.active, "running": self.active.copy(), "gone": np.zeros(self.items, bool)}
            )
        elif name in ("LOOP_BREAK", "LOOP_CONTINUE"):
            self.leave(self.active, name == "LOOP_BREAK")
        elif name == "LOOP_END":
            frame = self.frames[-1]
            frame["gone"][:] = False
            self.active = frame["running"].copy()
            if self.active.any():
                assert control.target is not None
                if self.bundles > self.launch.max_instructions:
                    raise self.launch.endless_error(control.at, int(np.argmax(self.active)))
                return control.target
            self.frames.pop()
            self.active = self.present(frame["entered"])
        elif name == "JUMP" and not self.active.any():
            assert control.target is not None
            return control.target
        elif name == "ELSE":
            frame = self.frames[-1]
            self.active = self.present(frame["came"] & ~frame["taken"])
        elif name == "POP":
            self.active = self.present(self.frames.pop()["came"])
        return at + 1

    def alu(self, control: Control) -> None:
        came = self.active
        kept = self.clause(control.clause) if came.any() else came  # type: ignore[arg-type]
        if control.name == "ALU_PUSH_BEFORE":
            self.frames.append({"came": came, "taken": kept})
            self.active = kept
        elif control.name in ("ALU_BREAK", "ALU_CONTINUE"):
            self.leave(came & ~kept, control.name == "ALU_BREAK")

    # ALU clauses

    def clause(self, clause: Clause) -> np.ndarray:
        """Run an ALU clause; the mask of those that its test, if it has one, keeps."""
        kept = self.active
        self.vector[:] = POISON
        self.scalar = np.full(self.items, POISON, np.uint32)
        self.registers[TEMPORARY:] = POISON
        for bundle in clause.bundles:
            test = self.bundle(bundle)
            if test is not None:
                kept = self.active & test
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
                np.copyto(self.registers[o.dest], bits, where=self.active)
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
        block, base, size = o.lds
        start = np.broadcast_to(words[0].astype(np.int64) & ~np.int64(3), self.items) - base
        if o.name.startswith("LDS_WRITE"):
            for n, value in enumerate(words[1:]):
                self.share_write(o, start + 4 * o.offset * n, np.broadcast_to(value, self.items))
            return
        places = [start]
        if o.name == "LDS_READ2_RET":
            places.append(np.broadcast_to(words[1].astype(np.int64) & ~np.int64(3), self.items) - base)
        elif o.name == "LDS_READ_REL_RET":
            places.append(start + 4 * o.offset)
        found = []
        for place in places:
            inside = (place >= 0) & (place < size)
            row = np.zeros(self.items, np.uint32)
            row[inside] = self.lds[block][self.group_of[inside], place[inside] // 4]
            found.append(row)
        self.queue.append(found)

    def share_write(self, o: Operation, place: np.ndarray, value: np.ndarray) -> None:
        block, _, size = o.lds
        outside = np.flatnonzero(self.active & ~((place >= 0) & (place < size)))
        if len(outside):
            what = f"to byte {int(place[outside[0]])} of LDS {block}, which has {size}"
            raise self.launch.store_error(o.at, int(outside[0]), what)
        self.lds[block][self.group_of[self.active], place[self.active] // 4] = value[self.active]

    def fetch(self, f: Fetch) -> None:
        if f.name == "MEM_READ":
            texels = self.global_read(f)
        else:
            texels = self.texels(f)
        for channel, component in enumerate(f.select):
            if component != "_":
                np.copyto(self.registers[f.dest, channel], texels["xyzw".index(component)], where=self.active)

    def coordinate(self, f: Fetch, axis: int) -> np.ndarray:
        letter = f.coordinates[axis]
        if letter in "01":
            return np.full(self.items, ONE if letter == "1" else 0, np.uint32)
        return self.registers[f.source, "xyzw".index(letter)]

    def texels(self, f: Fetch) -> np.ndarray:
        surface = self.launch.textures[f.resource]
        sizes = (surface.width, surface.height)
        inside = np.ones(self.items, bool)
        place = [np.zeros(self.items, np.int64)] * 2
        for axis in range(len(f.coordinates)):
            bits = self.coordinate(f, axis)
            if f.name == "LD":
                whole = bits.view(np.int32).astype(np.float64)
            else:
                value = flushed(bits)
                whole = np.floor(value if f.unnormalised else value * np.float32(sizes[axis])).astype(np.float64)
            whole = whole + f.offset[axis]
            here = (whole >= 0) & (whole < sizes[axis])
            place[axis] = np.where(here, whole, -1).astype(np.int64)
            inside &= here
        words = surface.words.shape[2]
        texels = np.zeros((self.items, 4), np.uint32)
        texels[inside, :words] = surface.words[place[1][inside], place[0][inside]]
        if surface.single and words < 4:
            texels[inside, 3] = ONE
        return texels.T

    def element(self, offset: int, register: int | None, channel: int) -> tuple[np.ndarray, np.ndarray]:
        assert self.launch.global_memory is not None
        element = np.full(self.items, offset, np.int64)
        if register is not None:
            element += self.registers[register, channel].view(np.int32)
        return element, (element >= 0) & (element < len(self.launch.global_memory))

    def global_read(self, f: Fetch) -> np.ndarray:
        element, inside = self.element(f.offset[0], f.source, "xyzw".index(f.coordinates) if f.coordinates else 0)
        found = np.zeros((self.items, 4), np.uint32)
        found[inside] = self.launch.global_memory[element[inside]]  # type: ignore[index]
        return found.T

    def store(self, s: Store) -> None:
        def word(letter: str) -> np.ndarray:
            if letter in "01":
                return np.full(self.items, ONE if letter == "1" else 0, np.uint32)
            return self.registers[s.source, "xyzw".index(letter)]

        values = {c: word(letter) for c, letter in enumerate(s.select) if letter != "_"}
        if s.name == "EXPORT":
            words = self.launch.outputs[s.offset].words.reshape(self.items, -1)
            for c, value in values.items():
                if c < words.shape[1]:
                    np.copyto(words[:, c], value, where=self.active)
            return
        memory = self.launch.global_memory
        assert memory is not None
        element, inside = self.element(s.offset, s.index, 0)
        outside = np.flatnonzero(self.active & ~inside)
        if len(outside):
            what = f"to g[{int(element[outside[0]])}], which has {len(memory)} elements"
            raise self.launch.store_error(s.at, int(outside[0]), what)
        for c, value in values.items():
            memory[element[self.active], c] = value[self.active]
