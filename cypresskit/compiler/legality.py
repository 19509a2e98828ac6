"""The rules of the hardware, checked on finished code: written apart from the scheduler, from the
ISA text.

Rules: the control-flow instructions nest and their clauses have the right kind and length (ISA
2.4); a slot writes its own channel and takes only the operations it can do (4.4, 4.8); read ports
by the mapping algorithm of 4.7.9; constants, literals (4.7.5, 4.7.6); PV and PS hold only the
previous bundle of the clause (4.6.2); operand and result modifiers (4.7.2, 4.9.1); doubles in their
slots (4.12); the LDS queue is first in first out and empty at a clause's end (8.3.4); clause
temporaries do not outlive their clause (2.6.1). Left out: whether the code computes what the IL
says.
"""

from cypresskit.compiler.assembly import TEMPORARY, Bundle, Control, Operation, StoreInstruction
from cypresskit.compiler.code import Code
from cypresskit.compiler.isa import SCALAR_SWIZZLES, SLOTS, VECTOR_SWIZZLES

CONSTANTS = ("constant", "literal", "inline")
SLOT_SETS = {  # where the parts of an operation may stand
    "any": [[0], [1], [2], [3], [4]],
    "vector": [[0], [1], [2], [3]],
    "t": [[4]],
    "x": [[0]],
    "pair": [[0, 1], [2, 3]],
    "quad": [[0, 1, 2, 3]],
}
TESTING = ("ALU_PUSH_BEFORE", "ALU_BREAK", "ALU_CONTINUE")
OPENING = {"ALU_PUSH_BEFORE": "if", "LOOP_START_DX10": "loop"}
CLOSING = {"POP": ("if", "else"), "LOOP_END": ("loop",)}


def check(code: Code) -> list[str]:
    """Every violation in ``code``, each with the place where it is."""
    return _Checker(code).run()


class _Checker:
    """``where``: the place that is being looked at."""

    def __init__(self, code: Code):
        self.code, self.device = code, code.device
        self.found: list[str] = []
        self.where = ""

    def report(self, condition: object, text: str) -> None:
        if not condition:
            self.found.append(f"{self.where}: {text}")

    def run(self) -> list[str]:
        limit = self.device.gpr_limit - (
            self.device.clause_temporaries if self.code.temporaries else 0
        )
        self.report(self.code.gprs <= limit, f"{self.code.gprs} registers, {limit} exist")
        self.flow()
        for n, control in enumerate(self.code.controls):
            self.where = f"{n:02d} {control.name}"
            if control.store is not None:
                self.store(control.store)
            elif control.name == "TEX":
                self.tex(control)
            elif control.name.startswith("ALU"):
                self.alu(control)
        return self.found

    def register(self, number: int | None) -> None:
        self.report(
            number is None or 0 <= number < self.code.gprs,
            f"R{number} of {self.code.gprs} registers",
        )

    def flow(self) -> None:
        open_: list[str] = []
        names = {n: control.name for n, control in enumerate(self.code.controls)}
        for n, control in enumerate(self.code.controls):
            name, target = control.name, control.target
            self.where = f"{n:02d} {name}"
            self.report(target == -1 or target in names, "jumps out of the program")
            tests = sum(o.row.predicate for o in control.operations)
            self.report(tests == (name in TESTING), f"{tests} tests in the clause")
            if name == "JUMP":
                self.report(names.get(target) in ("ELSE", "POP"), "aims wrong")
            elif name.endswith(("BREAK", "CONTINUE")):
                self.report("loop" in open_, "outside a loop")
            elif name == "ELSE":
                self.report(open_[-1:] == ["if"], "without an if")
                open_[-1:] = ["else"]
            elif name in OPENING:
                open_.append(OPENING[name])
                self.report(open_[-1] == "if" or names.get(target - 1) == "LOOP_END", "has no end")
            elif name in CLOSING:
                top = open_.pop() if open_ else "nothing"
                self.report(top in CLOSING[name], f"closes {top}")
        self.report(not open_, f"left open: {open_}")
        self.report(list(names.values())[-1:] == ["END"], "no END")

    def store(self, store: StoreInstruction) -> None:
        self.register(store.source)
        self.register(store.index)
        fine = store.name != "MEM_WRITE" or all(
            s in (letter, "_") for s, letter in zip(store.select, "xyzw")
        )
        self.report(fine, f"a memory write can't swizzle: {store.select}")

    def tex(self, clause: Control) -> None:
        count = len(clause.fetches)
        self.report(0 < count <= self.device.tex_clause_fetches, f"{count} fetches")
        written: set[tuple[int, str]] = set()
        for f in clause.fetches:
            self.register(f.dest)
            self.register(f.source)
            for letter in f.coordinates:
                fresh = (f.source, letter) not in written
                self.report(
                    fresh,
                    f"reads R{f.source}.{letter}, which an earlier fetch of the clause writes",
                )
            self.report(set(f.select) <= set("xyzw01_"), f"select {f.select}")
            written |= {
                (f.dest, channel) for channel, letter in zip("xyzw", f.select) if letter != "_"
            }
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
            self.bundle(bundle, previous, temporaries)
            self.queue(bundle, queue)
            writes = [o.dest for o in bundle.operations if o.dest is not None]
            self.report(len(set(writes)) == len(writes), "two slots write the same word")
            temporaries |= {d for d in writes if d[0] >= TEMPORARY}
            previous = {o.slot for o in bundle.operations if o.row.words}
        self.where = head
        self.report(not queue, "the LDS queue is not empty at the clause's end")

    def bundle(self, bundle: Bundle, previous: set[int], temporaries: set) -> None:
        """A bundle whose ``previous`` one filled these slots, in a clause that has written these
        temporaries so far.
        """
        self.shape(bundle)
        self.ports(bundle)
        self.constants(bundle)
        for o in bundle.operations:
            self.operation(o, previous, temporaries)

    def shape(self, bundle: Bundle) -> None:
        """Slots, and which operation sits in them."""
        slots = [o.slot for o in bundle.operations]
        self.report(slots and slots == sorted(set(slots)), f"slots {slots}")
        for o in bundle.operations:
            self.report(
                o.slot == 4 or o.channel == o.slot,
                f"slot {SLOTS[o.slot]} writes channel {SLOTS[o.channel]}",
            )
            to = o.channel if o.dest is None else o.dest[1]
            self.report(
                to == o.channel,
                f"{o.name} writes channel {SLOTS[to]} from channel {SLOTS[o.channel]}",
            )
        for parts in bundle.parts:
            o, taken = parts[0], [p.slot for p in parts]
            if any(r.kind == "queue" for r in o.reads):
                self.report(
                    all(p.name == "MOV" for p in parts), "only MOV reads the LDS queue here"
                )
            else:
                self.report(taken in SLOT_SETS[o.row.slots], f"{o.name} in slots {taken}")
            halves = {p.dest[1] // 2 for p in parts if p.dest is not None and o.row.words == 2}
            self.report(len(halves) < 2, f"{o.name} splits its result")
        rows = [o.row for o in bundle.operations]
        self.report(sum(row.predicate for row in rows) <= 1, "two tests in a bundle")
        self.report(sum(row.kind == "lds" for row in rows) <= 1, "two LDS instructions in a bundle")
        self.report(
            len(rows) == 1 or all(row.kind != "sync" for row in rows), "a barrier is not alone"
        )

    def ports(self, bundle: Bundle) -> None:
        """The read-port mapping algorithm of ISA 4.7.9. Clashes in a cycle, which another bank
        swizzle may avoid, are reported only where no bank has to give more registers than there are
        cycles.
        """
        reserved: dict[tuple[int, int], int] = {}
        banks: dict[int, dict[int, None]] = {}
        clashes = []
        for o in bundle.operations:
            scalar = o.slot == 4
            name, swizzles = ("t", SCALAR_SWIZZLES) if scalar else (o.name, VECTOR_SWIZZLES)
            constants = sum(r.kind in CONSTANTS for r in o.reads) if scalar else 0
            self.report(constants <= 2, f"t reads {constants} constants")
            places = [(r.kind, r.index, r.channel) for r in o.reads]
            for n, r in enumerate(o.reads):
                square = n == 1 and places[0] == places[1] and not scalar
                if square or r.kind not in (("gpr", "pv", "ps") if scalar else ("gpr",)):
                    continue
                self.report(o.swizzle in swizzles, f"{name} has bank swizzle {o.swizzle or 'none'}")
                cycle = swizzles.get(o.swizzle, (0, 1, 2))[n]
                self.report(
                    cycle >= constants,
                    f"t loads operand {n} in cycle {cycle} beside {constants} constants",
                )
                if r.kind == "gpr":
                    held = reserved.setdefault((cycle, r.channel), r.index)
                    banks.setdefault(r.channel, {})[r.index] = None
                    if held != r.index:
                        bank = f"cycle {cycle} bank {SLOTS[r.channel]}"
                        clashes.append(f"{bank} reads R{held} and R{r.index} at once")
        crowded = {
            channel: [f"R{n}" for n in bank] for channel, bank in banks.items() if len(bank) > 3
        }
        for channel, (*names, last) in crowded.items():
            gives = f"bank {SLOTS[channel]} has to give {', '.join(names)} and {last}"
            self.report(False, f"{gives}: {len(names) + 1} registers in three cycles")
        for clash in clashes if not crowded else ():
            self.report(False, clash)

    def constants(self, bundle: Bundle) -> None:
        reads = [r for o in bundle.operations for r in o.reads]
        pairs = {(r.index, r.element, r.channel // 2) for r in reads if r.kind == "constant"}
        self.report(len(pairs) <= 2, f"{len(pairs)} pairs of constants")
        self.report(len(bundle.literals) <= 4, f"{len(bundle.literals)} literals")
        for r in reads:
            fine = r.kind != "literal" or bundle.literals[r.channel : r.channel + 1] == (r.bits,)
            self.report(fine, f"literal {r.bits:#x} is not where it is read")

    def operation(self, o: Operation, previous: set[int], temporaries: set) -> None:
        row = o.row
        for r in o.reads:
            if r.kind == "gpr" and r.index >= TEMPORARY:
                self.report(
                    (r.index, r.channel) in temporaries,
                    f"T{r.index - TEMPORARY} read before written",
                )
            elif r.kind == "gpr":
                self.register(r.index)
            elif r.kind in ("pv", "ps"):
                slot = r.channel if r.kind == "pv" else 4
                self.report(
                    slot in previous, f"{r.kind.upper()} holds nothing of slot {SLOTS[slot]}"
                )
            self.report(
                not (r.neg or r.abs) or row.kind in ("float", "double"),
                f"{o.name} can't modify operands",
            )
            self.report(
                not (r.abs and row.reads == 3), f"{o.name} has three operands and takes no absolute"
            )
        scales = row.kind == "float" and row.reads < 3 and o.omod in (2.0, 4.0, 0.5)
        self.report(scales or o.omod == 1.0, f"{o.name} output scale")
        self.report(row.kind == "float" or not o.clamp, f"{o.name} can't clamp")
        if o.dest is not None:
            self.report(row.words, f"{o.name} writes nothing")
            if not TEMPORARY <= o.dest[0] < TEMPORARY + self.device.clause_temporaries:
                self.register(o.dest[0])

    def queue(self, bundle: Bundle, queue: list[int]) -> None:
        taken = {r.index for o in bundle.operations for r in o.reads if r.kind == "queue"}
        if taken:
            words = queue.pop(0) if queue else 0
            self.report(max(taken) < words, f"takes word {max(taken)} of an LDS read of {words}")
        queue += [
            1 if o.name == "LDS_READ_RET" else 2
            for o in bundle.operations
            if o.name.startswith("LDS_READ")
        ]
