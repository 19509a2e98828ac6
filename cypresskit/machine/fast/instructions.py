"""Arithmetic: what an opcode's row of the table, its modifiers, masks and NaN rules make of operands."""

from cypresskit.il import Instruction
from cypresskit.machine.fast.access import Value, splat
from cypresskit.machine.fast.arithmetic import LETTER, of
from cypresskit.machine.fast.memory import MemoryAccess
from cypresskit.machine.fast.variation import literal

CONSTANT_SECOND = ("ishl", "ishr", "ushr", "udiv", "umod", "iand", "imul", "umul")  # worth telling LLVM a literal


class Instructions(MemoryAccess):
    """Translation of everything but control flow."""

    def instruction(self, at: int, stop: int) -> int:
        """Translate the instruction at ``at``, or the group of accesses that begins there; the index after it."""
        i = self.body[at]
        if i.op.kind == "fence":
            return at + 1
        if i.op.kind in ("fetch", "lds"):
            return self.accesses(at, stop)
        self.global_reads(at)
        assert i.dest is not None
        written = i.dest.written
        fixed = self.fixed(at)
        if i.op.double:
            self._double_result(at, i, fixed)
            return at + 1
        if i.op.name == "dp4":
            value = self._dot(at, i)
            self.write(at, dict.fromkeys(written, value) | fixed)
            return at + 1
        whole = ""
        vector: list[int] = []
        if self.lanes == 4:
            vector = [
                c
                for c in written
                if i.dest.register.kind != "r" or self.a.cell(self.a.webs.defined[at, c]).form == "wide"
            ]
        result: dict[int, Value] = {}
        if vector:
            whole = self._wide_result(at, i, tuple(vector))
        for c in written:
            if c not in vector:
                result[c] = self._component_result(at, i, c)
        if whole:
            self.write_whole(at, whole, vector)
        self.write(at, result | fixed)
        return at + 1

    def _canonical_now(self, at: int) -> bool:
        """Whether a float result must have the canonical NaN when it is written."""
        i = self.body[at]
        assert i.dest is not None
        if i.dest.register.kind != "r":
            return True
        roots = {self.a.webs.find(self.a.webs.defined[at, c]) for c in i.dest.written}
        words_of_doubles = any(self.a.cell(root).form.endswith("64") for root in roots)
        return words_of_doubles or bool(roots & self.a.canonical_at_definition)

    def _value(self, at: int, i: Instruction, operands: list[str], n: int) -> str:
        """The result (i32 bits) of a componentwise operation on i32 operands of n lanes."""
        b, op = self.b, i.op
        if op.name == "mov":
            return self._finished(at, i, operands[0], n)
        typed = [b.cast(v, LETTER[k], "i32", n) for v, k in zip(operands, op.sources, strict=True)]
        return self._finished(at, i, b.compute(op.name, n, *typed), n)

    def _finished(self, at: int, i: Instruction, value: str, n: int) -> str:
        """The bits (i32) of a computed ``value``: scaled, clamped, its NaN made canonical if it must be now."""
        b, kind = self.b, LETTER[i.op.result]
        if i.shift != 1.0 or i.saturate:
            value, kind = b.scaled(b.cast(value, "float", kind, n), i.shift, i.saturate, n), "float"
        if kind == "float" and not i.saturate and self._canonical_now(at):
            value = b.canonical(value, "float", n)
        return b.cast(value, "i32", kind, n)

    def _wide_result(self, at: int, i: Instruction, positions: tuple[int, ...]) -> str:
        operands = []
        for k in range(len(i.sources)):
            value = literal(self.program, i.sources[k], positions[0])
            same = {literal(self.program, i.sources[k], p) for p in positions}
            if k == 1 and i.op.name in CONSTANT_SECOND and value is not None and len(same) == 1:
                operands.append(self.b.constant(value, 4 * self.lanes, "i32"))
            else:
                operands.append(self.wide(at, k, positions))
        return self._value(at, i, operands, 4 * self.lanes)

    def _component_result(self, at: int, i: Instruction, c: int) -> Value:
        values: list[Value | int] = []
        for k in range(len(i.sources)):
            value = literal(self.program, i.sources[k], c)
            values.append(
                value if k == 1 and i.op.name in CONSTANT_SECOND and value is not None else self.component(at, k, c)
            )
        n = max((v.n for v in values if isinstance(v, Value)), default=0)
        operands = [self._as(v, n) if isinstance(v, Value) else self.b.constant(v, n, "i32") for v in values]
        return Value(self._value(at, i, operands, n), n)

    def _dot(self, at: int, i: Instruction) -> Value:
        b = self.b
        products = []
        for p in range(4):
            pair = [self.component(at, k, p) for k in (0, 1)]
            n = max(v.n for v in pair)
            x, y = (b.cast(self._as(v, n), "float", "i32", n) for v in pair)
            products.append((b.multiply("fmul", x, y, n), n))
        n = max(lanes for _, lanes in products)
        names = [splat(b, name, n, "float") if n and not lanes else name for name, lanes in products]
        total = names[0]
        for name in names[1:]:
            total = b.add("fadd", total, name, n)
        return Value(self._finished(at, i, total, n), n)

    def _double_result(self, at: int, i: Instruction, fixed: dict[int, Value]) -> None:
        b, op = self.b, i.op
        assert i.dest is not None
        values = [self.double(at, k) if kind == "d" else self.component(at, k, 0) for k, kind in enumerate(op.sources)]
        n = max(v.n for v in values)
        typed = []
        for value, kind in zip(values, op.sources, strict=True):
            if kind == "d":
                bits = splat(b, value.name, n, "i64") if n and not value.n else value.name
                typed.append(b.cast(bits, "double", "i64", n))
            else:
                typed.append(b.cast(self._as(value, n), "float", "i32", n))
        result = b.compute(op.name, n, *typed)
        if op.result != "d":
            bits = self._finished(at, i, result, n)
            self.write(at, {c: Value(bits, n) for c in i.dest.written} | fixed)
            return
        plain = b.cast(result, "i64", "double", n)
        canonical = ""
        words: dict[int, Value] = {}
        for p in (0, 2):
            both = [c for c in (p, p + 1) if c in i.dest.written]
            cell = (
                self.a.cell(self.a.webs.defined[at, p]) if both and i.dest.register.kind == "r" and p in both else None
            )
            whole = len(both) == 2 and cell is not None and cell.form.endswith("64")
            root = self.a.webs.find(self.a.webs.defined[at, p]) if cell else None
            if both and (not whole or root in self.a.canonical_at_definition) and not canonical:
                canonical = b.cast(b.canonical(result, "double", n), "i64", "double", n)
            if whole and cell:
                self.write_cell(at, cell, Value(canonical if root in self.a.canonical_at_definition else plain, n))
                continue
            for c in both:
                bits = b.op(f"lshr {of('i64', n)} {canonical}, {b.constant(32, n, 'i64')}") if c % 2 else canonical
                words[c] = Value(b.op(f"trunc {of('i64', n)} {bits} to {of('i32', n)}"), n)
        self.write(at, words | fixed)
