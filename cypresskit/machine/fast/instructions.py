"""Everything but control flow: what an opcode's row of the table, its modifiers, masks and NaN rules make of
operands."""

from cypresskit.il import Instruction
from cypresskit.machine.fast.access import Loads, Stores
from cypresskit.machine.fast.native_meaning import KIND, NATIVE, canonical
from cypresskit.machine.fast.readwrite import Reading, Writing
from cypresskit.machine.fast.storage import Storage
from cypresskit.machine.fast.variation import literal
from cypresskit.machine.fast.vec import Vec

CONSTANT_SECOND = ("ishl", "ishr", "ushr", "udiv", "umod", "iand", "imul", "umul")  # worth telling LLVM a literal


class Instructions:
    """Translation of straight runs. ``skipped``: the instructions that another pass over the loop executes."""

    def __init__(self, storage: Storage, reading: Reading):
        self.s, self.e, self.a, self.reading, self.f = storage, storage.e, storage.analysis, reading, reading.f
        self.body = storage.program.body
        self.writing = Writing(storage, reading, lambda *what: self.stores.out(*what))
        self.loads = Loads(storage, reading, self.writing)
        self.stores = Stores(storage, self.loads)
        self.skipped: set[int] = set()

    def translate(self, at: int, stop: int) -> int:
        """Translate the instruction at ``at``, or the group of loads that begins there; the index after it."""
        i = self.body[at]
        if i.op.kind == "fetch" or (i.op.kind == "lds" and not i.op.store):
            return self.loads.group(at, stop)
        self.execute(at)
        return at + 1

    def execute(self, at: int) -> None:
        """Translate an instruction other than a load."""
        i = self.body[at]
        if i.op.kind == "fence" or at in self.skipped:
            return
        self.loads.read_global(at)
        if i.op.kind == "lds":
            self.stores.lds(at)
        elif i.op.double:
            self._double(at, i)
        elif i.op.across:
            places = range(i.op.across)
            sides = [[self.reading.component(at, n, p).bits("float") for p in places] for n in (0, 1)]
            value = self._finished(at, i, NATIVE[i.op.name](self.f, *sides))
            self.writing.components(at, dict.fromkeys(self.writing.dest(at).written, value) | self.writing.fixed(at))
        else:
            self._componentwise(at, i)

    def _componentwise(self, at: int, i: Instruction) -> None:
        dest, values = self.writing.dest(at), self.writing.fixed(at)
        to_register = dest.register.kind == "r"
        together = [c for c in dest.written if not to_register or self.a.defined(at, c).wide]
        if self.s.lanes != 4:
            together = []
        whole = self._value(at, i, tuple(together), True) if together else None
        values |= {c: self._value(at, i, (c,), False) for c in dest.written if c not in together}
        if whole is not None and not to_register:
            self.stores.out(at, values, whole)
            return
        if whole is not None:
            self.writing.whole(at, whole, together)
        self.writing.components(at, values)

    def _value(self, at: int, i: Instruction, positions: tuple[int, ...], wide: bool) -> Vec:
        """The result (i32) at these positions: of whole registers, or of one component."""
        operands = []
        for n, source in enumerate(i.sources):
            same = {literal(self.s.program, source, p) for p in positions}
            if n == 1 and i.op.name in CONSTANT_SECOND and len(same) == 1 and None not in same:
                operands.append(self.e.const(same.pop() or 0, "i32"))
            else:
                operands.append(
                    self.reading.wide(at, n, positions) if wide else self.reading.component(at, n, positions[0])
                )
        lanes = max(v.n for v in operands)
        operands = [v.lanes(lanes).bits(KIND[k]) for v, k in zip(operands, i.op.sources, strict=True)]
        return self._finished(at, i, NATIVE[i.op.name](self.f, *operands))

    def _canonical_now(self, at: int) -> bool:
        """Whether a float result must have the canonical NaN when it is written."""
        dest = self.writing.dest(at)
        if dest.register.kind != "r":
            return True
        roots = {self.a.webs.find(self.a.webs.defined[at, c]) for c in dest.written}
        return any(self.a.cell(root).double for root in roots) or bool(roots & self.a.canonical_at_definition)

    def _finished(self, at: int, i: Instruction, value: Vec) -> Vec:
        """The bits (i32) of a computed ``value``: scaled, clamped, its NaN made canonical if it must be now."""
        if i.shift != 1.0 or i.saturate:
            value = self.f.scaled(value.bits("float"), i.shift, i.saturate)
        if value.kind == "float" and not i.saturate and self._canonical_now(at):
            value = canonical(value)
        return value.bits("i32")

    def _double(self, at: int, i: Instruction) -> None:
        """An operation with doubles among operands or results."""
        operands = [
            self.reading.double(at, n) if kind == "d" else self.reading.component(at, n, 0).bits("float")
            for n, kind in enumerate(i.op.sources)
        ]
        lanes = max(v.n for v in operands)
        result = NATIVE[i.op.name](self.f, *(v.lanes(lanes) for v in operands))
        dest, values = self.writing.dest(at), self.writing.fixed(at)
        if i.op.result != "d":
            values |= dict.fromkeys(dest.written, self._finished(at, i, result))
            self.writing.components(at, values)
            return
        for p in (0, 2):
            written = [c for c in (p, p + 1) if c in dest.written]
            cell = self.a.defined(at, p) if len(written) == 2 and dest.register.kind == "r" else None
            if cell and cell.double:
                mixed = self.a.webs.find(self.a.webs.defined[at, p]) in self.a.canonical_at_definition
                self.s.write(at, cell, (canonical(result) if mixed else result).bits("i64"))
            elif written:
                bits = canonical(result).bits("i64")
                values |= {c: (bits >> 32 if c % 2 else bits).cast("trunc", "i32") for c in written}
        self.writing.components(at, values)
