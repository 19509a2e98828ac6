"""The rules of the hardware, checked on finished code: written apart from the scheduler, from the ISA text.

``check(code)`` returns one sentence per violation, an empty list for legal code. Rules: the control-flow instructions
nest and their clauses have the right kind and length (ISA 2.4); a slot writes its own channel and takes only the
operations it can do (4.4, 4.8); read ports by the mapping algorithm of 4.7.9; constants, literals (4.7.5, 4.7.6); PV
and PS hold only the previous bundle of the clause (4.6.2); operand and result modifiers (4.7.2, 4.9.1); doubles in
their slots (4.12); the LDS queue is first in first out and empty at a clause's end (8.3.4); clause temporaries do not
outlive their clause (2.6.1). Left out: whether the code computes what the IL says; running it shows that.
"""

from cypresskit.compiler.assembly import Bundle, Control, Operation
from cypresskit.compiler.code import Code
from cypresskit.compiler.isa import SCALAR_SWIZZLES, SLOTS, VECTOR_SWIZZLES

FIRST_TEMPORARY = 124
CONSTANTS = ("constant", "literal", "inline")
SLOT_SETS = {"any": {0, 1, 2, 3, 4}, "vector": {0, 1, 2, 3}, "t": {4}, "x": {0}}


def check(code: Code) -> list[str]:
    """Every violation in ``code``, each with the place where it is."""
    return _Checker(code).run()


class _Checker:
    def __init__(self, code: Code):
        self.code, self.device = code, code.device
        self.found: list[str] = []
        self.where = ""

    def report(self, condition: bool, text: str) -> None:
        """Note a violation if ``condition`` does not hold."""
        if not condition:
            self.found.append(f"{self.where}: {text}")

    def run(self) -> list[str]:
        limit = self.device.gpr_limit - (self.device.clause_temporaries if self.code.temporaries else 0)
        self.report(self.code.gprs <= limit, f"{self.code.gprs} registers, {limit} exist")
        self.flow()
        for n, control in enumerate(self.code.controls):
            name = control.name
            self.where = f"{n:02d} {name}"
            if control.store is not None:
                store = control.store
                self.register(store.source)
                if store.name == "MEM_WRITE":
                    fine = all(s in (letter, "_") for s, letter in zip(store.select, "xyzw"))
                    self.report(fine, f"a memory write can't swizzle: {store.select}")
                    if store.index is not None:
                        self.register(store.index)
            elif name == "TEX":
                self.tex(control)
            elif name.startswith("ALU"):
                self.alu(control)
        return self.found

    def register(self, number: int) -> None:
        self.report(0 <= number < self.code.gprs, f"R{number} of {self.code.gprs} registers")

    # Control flow

    def flow(self) -> None:
        stack: list[str] = []
        controls = self.code.controls
        for n, control in enumerate(controls):
            self.where = f"{n:02d} {control.name}"
            name = control.name
            if control.target is not None:
                self.report(0 <= control.target < len(controls), "jumps out of the program")
            tests = [o for o in control.operations if o.row.predicate]
            wanted = name in ("ALU_PUSH_BEFORE", "ALU_BREAK", "ALU_CONTINUE")
            self.report(len(tests) == wanted, f"{len(tests)} tests in the clause")
            if name == "ALU_PUSH_BEFORE":
                stack.append("if")
            elif name == "LOOP_START_DX10":
                stack.append("loop")
                self.report(
                    control.target is not None and controls[control.target - 1].name == "LOOP_END", "has no end"
                )
            elif name in ("LOOP_BREAK", "LOOP_CONTINUE", "ALU_BREAK", "ALU_CONTINUE"):
                self.report("loop" in stack, "outside a loop")
            elif name == "ELSE":
                self.report(stack[-1:] == ["if"], "without an if")
                if stack:
                    stack[-1] = "else"
            elif name in ("POP", "LOOP_END"):
                top = stack.pop() if stack else ""
                self.report(top in (("if", "else") if name == "POP" else ("loop",)), f"closes {top or 'nothing'}")
            if name == "JUMP":
                self.report(
                    control.target is not None and controls[control.target].name in ("ELSE", "POP"), "aims wrong"
                )
        self.report(not stack, f"left open: {stack}")
        self.report(bool(controls) and controls[-1].name == "END", "no END")

    # Fetch clauses

    def tex(self, clause: Control) -> None:
        count = len(clause.fetches)
        self.report(0 < count <= self.device.tex_clause_fetches, f"{count} fetches")
        written: set[tuple[int, int]] = set()
        for f in clause.fetches:
            self.register(f.dest)
            if f.source is not None:
                self.register(f.source)
                for letter in f.coordinates:
                    fresh = letter in "01" or (f.source, "xyzw".index(letter)) not in written
                    self.report(fresh, f"reads R{f.source}.{letter}, which an earlier fetch of the clause writes")
            for channel, letter in enumerate(f.select):
                self.report(letter in "xyzw01_", f"select {f.select}")
                if letter != "_":
                    written.add((f.dest, channel))
            if f.name != "MEM_READ":
                self.report(all(-8 <= o < 8 for o in f.offset), f"offset {f.offset}")
                self.report(len(f.coordinates) in (1, 2), f"coordinates {f.coordinates}")

    # ALU clauses

    def alu(self, clause: Control) -> None:
        self.report(0 < clause.slots <= self.device.alu_clause_slots, f"{clause.slots} slots")
        self.report(len(clause.windows) <= 2, f"{len(clause.windows)} constant windows")
        previous: set[int] = set()
        temporaries: set[tuple[int, int]] = set()
        queue: list[int] = []  # words of each LDS read that waits
        head = self.where
        for n, bundle in enumerate(clause.bundles):
            self.where = f"{head} bundle {n}"
            self.shape(bundle)
            self.ports(bundle)
            self.constants(bundle)
            for o in bundle.operations:
                self.operation(o, previous, temporaries)
            self.queue(bundle, queue)
            writes = [o.dest for o in bundle.operations if o.dest is not None]
            self.report(len(set(writes)) == len(writes), "two slots write the same word")
            temporaries |= {d for d in writes if d[0] >= FIRST_TEMPORARY}
            previous = {o.slot for o in bundle.operations if o.row.writes}
        self.where = head
        self.report(not queue, "the LDS queue is not empty at the clause's end")

    def shape(self, bundle: Bundle) -> None:
        """Slots, and which operation sits in them."""
        slots = [o.slot for o in bundle.operations]
        self.report(0 < len(slots) and len(set(slots)) == len(slots) and slots == sorted(slots), f"slots {slots}")
        by_number: dict[int, list[Operation]] = {}
        for o in bundle.operations:
            by_number.setdefault(o.number, []).append(o)
            self.report(o.slot == 4 or o.channel == o.slot, f"slot {SLOTS[o.slot]} writes channel {o.channel}")
            if o.dest is not None:
                self.report(o.dest[1] == o.channel, f"{o.name} writes channel {o.dest[1]} from channel {o.channel}")
        for parts in by_number.values():
            o, taken = parts[0], [p.slot for p in parts]
            if o.row.slots == "quad":
                self.report(taken == [0, 1, 2, 3], f"{o.name} in slots {taken}")
            elif o.row.slots == "pair":
                self.report(taken in ([0, 1], [2, 3]), f"{o.name} in slots {taken}")
            elif any(r.kind == "queue" for r in o.reads):
                self.report(all(p.name == "MOV" for p in parts), "only MOV reads the LDS queue here")
            else:
                self.report(len(parts) == 1 and o.slot in SLOT_SETS[o.row.slots], f"{o.name} in slots {taken}")
            if o.row.double_result:
                dests = [p.dest for p in parts if p.dest is not None]
                self.report(all(d[1] // 2 == dests[0][1] // 2 for d in dests), f"{o.name} splits its result: {dests}")
        names = [o.row for o in bundle.operations]
        self.report(sum(r.predicate for r in names) <= 1, "two tests in a bundle")
        self.report(sum(r.kind == "lds" for r in names) <= 1, "two LDS instructions in a bundle")
        self.report("GROUP_BARRIER" not in [r.name for r in names] or len(names) == 1, "a barrier is not alone")

    def ports(self, bundle: Bundle) -> None:
        """The read-port mapping algorithm of ISA 4.7.9."""
        reserved: dict[tuple[int, int], int] = {}

        def reserve(cycle: int, channel: int, register: int) -> None:
            held = reserved.setdefault((cycle, channel), register)
            self.report(held == register, f"cycle {cycle} bank {'xyzw'[channel]} reads R{held} and R{register} at once")

        for o in bundle.operations:
            if o.slot == 4:
                continue
            for n, r in enumerate(o.reads):
                if r.kind != "gpr":
                    continue
                first = o.reads[0]
                if n == 1 and first.kind == "gpr" and (first.index, first.channel) == (r.index, r.channel):
                    continue
                self.report(o.swizzle in VECTOR_SWIZZLES, f"{o.name} has bank swizzle {o.swizzle or 'none'}")
                reserve(VECTOR_SWIZZLES.get(o.swizzle, (0, 1, 2))[n], r.channel, r.index)
        for o in bundle.operations:
            if o.slot != 4:
                continue
            count = sum(r.kind in CONSTANTS for r in o.reads)
            self.report(count <= 2, f"t reads {count} constants")
            for n, r in enumerate(o.reads):
                if r.kind not in ("gpr", "pv", "ps"):
                    continue
                self.report(o.swizzle in SCALAR_SWIZZLES, f"t has bank swizzle {o.swizzle or 'none'}")
                cycle = SCALAR_SWIZZLES.get(o.swizzle, (2, 1, 0))[n]
                self.report(cycle >= count, f"t loads operand {n} in cycle {cycle} beside {count} constants")
                if r.kind == "gpr":
                    reserve(cycle, r.channel, r.index)

    def constants(self, bundle: Bundle) -> None:
        reads = [r for o in bundle.operations for r in o.reads]
        pairs = {(r.index, r.element, r.channel // 2) for r in reads if r.kind == "constant"}
        self.report(len(pairs) <= 2, f"{len(pairs)} pairs of constants")
        self.report(len(bundle.literals) <= 4, f"{len(bundle.literals)} literals")
        for r in reads:
            if r.kind == "literal":
                fine = r.channel < len(bundle.literals) and bundle.literals[r.channel] == r.bits
                self.report(fine, f"literal {r.bits:#x} is not where it is read")

    def operation(self, o: Operation, previous: set[int], temporaries: set) -> None:
        """Operands and results of one slot."""
        row = o.row
        for r in o.reads:
            if r.kind == "gpr" and r.index >= FIRST_TEMPORARY:
                self.report((r.index, r.channel) in temporaries, f"T{r.index - FIRST_TEMPORARY} read before written")
            elif r.kind == "gpr":
                self.register(r.index)
            elif r.kind == "pv":
                self.report(r.channel in previous, f"PV.{'xyzw'[r.channel]} holds nothing")
            elif r.kind == "ps":
                self.report(4 in previous, "PS holds nothing")
            if r.neg or r.abs:
                self.report(row.kind in ("float", "double"), f"{o.name} can't modify operands")
                self.report(not (r.abs and row.reads == 3), f"{o.name} has three operands and takes no absolute")
        if o.omod != 1.0:
            self.report(row.kind == "float" and row.reads < 3 and o.omod in (2.0, 4.0, 0.5), f"{o.name} output scale")
        if o.clamp:
            self.report(row.kind == "float", f"{o.name} can't clamp")
        if o.dest is not None:
            self.report(row.writes, f"{o.name} writes nothing")
            if o.dest[0] >= FIRST_TEMPORARY:
                self.report(o.dest[0] < FIRST_TEMPORARY + self.device.clause_temporaries, f"register {o.dest[0]}")
            else:
                self.register(o.dest[0])

    def queue(self, bundle: Bundle, queue: list[int]) -> None:
        taken = {r.index for o in bundle.operations for r in o.reads if r.kind == "queue"}
        if taken:
            self.report(bool(queue), "reads the LDS queue while it is empty")
            if queue:
                words = queue.pop(0)
                self.report(max(taken) < words, f"takes word {max(taken)} of an LDS read of {words}")
        reads = [o.name for o in bundle.operations if o.name.startswith("LDS_READ")]
        queue += [1 if name == "LDS_READ_RET" else 2 for name in reads]
