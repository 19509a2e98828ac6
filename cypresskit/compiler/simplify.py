"""Fewer operations, the same bits: copies looked through, constants folded, repeats shared, dead code dropped.

One pass goes over the program in order and rewrites each op with what is known of its operands; what a loop's end
tells its beginning needs a second pass. Equal operations are shared within a block and the ifs it contains, but not
across a loop's edge, where sharing would hold a register through the loop to save an instruction outside it.

After that, fetches take over additions to their coordinates (``offsets``), and reads of the local data share pair
(``lds_pairs``). Nothing here may change a bit: no float is reassociated.
"""

import numpy as np

from cypresskit.compiler.ir import Block, Function, Op, Src, Value
from cypresskit.compiler.lds_pairs import pair_lds_reads
from cypresskit.compiler.offsets import offset_fetches
from cypresskit.machine.numerics import pair, scaled

SIGN, ALL = 0x80000000, 0xFFFFFFFF
COMMUTATIVE = {"ADD", "MUL_IEEE", "ADD_INT", "AND_INT", "OR_INT", "XOR_INT", "SETE_INT", "SETNE_INT", "MULLO_INT"}
NEUTRAL = {("ADD_INT", 0), ("SUB_INT", 0), ("OR_INT", 0), ("XOR_INT", 0), ("AND_INT", ALL), ("LSHL_INT", 0)}
NEUTRAL |= {("LSHR_INT", 0), ("ASHR_INT", 0)}
PREDICATES = {  # a comparison that a test against 0 reads: the test that compares itself, and its opposite
    "SETGT_DX10": ("PRED_SETGT", None),
    "SETGE_DX10": ("PRED_SETGE", None),
    "SETE_DX10": ("PRED_SETE", "PRED_SETNE"),
    "SETNE_DX10": ("PRED_SETNE", "PRED_SETE"),
    "SETE_INT": ("PRED_SETE_INT", "PRED_SETNE_INT"),
    "SETNE_INT": ("PRED_SETNE_INT", "PRED_SETE_INT"),
    "SETGT_INT": ("PRED_SETGT_INT", "PRED_SETGE_INT swapped"),
    "SETGE_INT": ("PRED_SETGE_INT", "PRED_SETGT_INT swapped"),
    "SETGT_UINT": ("PRED_SETGT_UINT", "PRED_SETGE_UINT swapped"),
    "SETGE_UINT": ("PRED_SETGE_UINT", "PRED_SETGT_UINT swapped"),
}


def simplify(function: Function) -> None:
    """Rewrite ``function`` in place."""
    pass_ = _Simplifier(function)
    for _ in range(3):
        _drop_trivial_phis(function)
        if not pass_.run():
            break
    _drop_dead(function)
    offset_fetches(function)
    pair_lds_reads(function)
    _drop_dead(function)


class _Simplifier:
    def __init__(self, function: Function):
        self.function = function
        self.constants: dict[int, Value] = {}

    def const(self, bits: int) -> Value:
        return self.constants.setdefault(bits, Value("const", bits=bits))

    def run(self) -> bool:
        """One pass; whether anything changed."""
        self.changed = False
        scopes: list[dict] = [{}]
        for item in self.function.items:
            if isinstance(item, Block):
                item.ops = [op for op in item.ops if self.visit(op, scopes)]
            elif item == "if":
                scopes.append(dict(scopes[-1]))
            elif item == "else":
                scopes[-1] = dict(scopes[-2])
            elif item == "endif":
                scopes.pop()
            elif item == "loop":
                scopes.append({})
            elif item == "endloop":
                scopes.pop()
                scopes[-1] = {}
        return self.changed

    def visit(self, op: Op, scopes: list[dict]) -> bool:
        """Rewrite one op; False if it is to be dropped."""
        op.srcs = [self.look_through(op, n, Src(s.value.resolve(), s.neg, s.abs)) for n, s in enumerate(op.srcs)]
        if op.row is not None and op.row.meaning is not None:
            if op.row.predicate:
                self.test(op)
                return True
            self.algebra(op)
            if op.name == "MOV" and self.is_copy(op):
                return self.replace(op, op.srcs[0].value)
            if all(s.value.kind == "const" for s in op.srcs) and not (op.name == "MOV" and _plain(op)):
                self.fold(op)
        if op.pure and not (op.name == "MOV" and op.srcs[0].value.kind == "const"):
            key = self.key(op)
            same = scopes[-1].get(key)
            if same is not None:
                for mine, other in zip(op.results, same.results, strict=True):
                    mine.forward = other
                self.changed = True
                return False
            scopes[-1][key] = op
        return True

    @staticmethod
    def key(op: Op) -> tuple:
        srcs = [(id(s.value), s.neg, s.abs) for s in op.srcs]
        if op.name in COMMUTATIVE:
            srcs.sort()
        elif op.name in ("ADD_64", "MUL_64"):
            srcs = [src for operand in sorted([srcs[:2], srcs[2:]]) for src in operand]
        return op.name, tuple(srcs), op.omod, op.clamp, tuple(sorted(op.info.items()))

    def replace(self, op: Op, value: Value) -> bool:
        op.results[0].forward = value
        self.changed = True
        return False

    @staticmethod
    def is_copy(op: Op) -> bool:
        return _plain(op) and op.srcs[0].value.kind not in ("const", "constant")

    def look_through(self, op: Op, n: int, src: Src) -> Src:
        """An operand read past the MOV that made it, where the reader can do what the MOV did."""
        row = op.row
        alu = row is not None and row.meaning is not None
        floats = alu and (row.kind == "float" or (row.kind == "double" and n % 2 == 1))
        made = src.value.op
        if made is not None and made.name == "MOV" and made.omod == 1.0 and not made.clamp and made.srcs:
            inner = made.srcs[0]
            inner = Src(inner.value.resolve(), inner.neg, inner.abs)
            if inner.value.kind in ("const", "constant") and not (alu or op.name.startswith("LDS_")):
                return src
            if not inner.neg and not inner.abs:
                src = Src(inner.value, src.neg, src.abs)
            elif floats and not (row.reads == 3 and inner.abs):
                src = Src(inner.value, src.neg, True) if src.abs else Src(inner.value, src.neg != inner.neg, inner.abs)
        if src.value.kind == "const" and (src.neg or src.abs):
            bits = src.value.bits & ~SIGN if src.abs else src.value.bits
            src = Src(self.const(bits ^ SIGN if src.neg else bits))
        return src

    def fold(self, op: Op) -> None:
        """Carry out an op whose operands are all constants: it becomes a MOV."""
        if len(op.results) == 2:
            return  # doubles of constants are rare: leave them to the chip
        words = [np.array([s.value.bits], np.uint32) for s in op.srcs]
        with np.errstate(all="ignore"):
            if op.row.kind == "double":
                words = [pair(low, high) for low, high in zip(words[::2], words[1::2], strict=True)]
            bits = op.row.meaning(*words)
            if op.omod != 1.0 or op.clamp:
                bits = scaled(bits, op.omod, op.clamp)
        op.name, op.srcs, op.omod, op.clamp = "MOV", [Src(self.const(int(bits[0])))], 1.0, False
        self.changed = True

    def algebra(self, op: Op) -> None:
        if len(op.srcs) != 2 or op.omod != 1.0 or op.clamp:
            return
        (a, *_), (b, *_) = op.srcs
        if op.name in COMMUTATIVE and a.kind == "const" and b.kind != "const" and op.row.kind == "int":
            op.srcs.reverse()
            a, b = b, a
        if b.kind != "const":
            return
        if (op.name, b.bits) in NEUTRAL:
            op.name, op.srcs = "MOV", op.srcs[:1]
        elif op.name == "SUB_INT":
            op.name, op.srcs = "ADD_INT", [op.srcs[0], Src(self.const(-b.bits & ALL))]
        elif op.name == "ADD_INT" and a.op is not None and a.op.name == "ADD_INT":
            inner = a.op.srcs[1].value.resolve()
            if inner.kind == "const":
                total = self.const(inner.bits + b.bits & ALL)
                op.srcs = [Src(a.op.srcs[0].value.resolve()), Src(total)]

    def test(self, op: Op) -> None:
        """A test of a comparison's result compares itself."""
        made, zero = op.srcs[0].value.op, op.srcs[1].value
        if made is None or made.name not in PREDICATES or zero.kind != "const" or zero.bits:
            return
        if op.name not in ("PRED_SETNE_INT", "PRED_SETE_INT"):
            return
        name = PREDICATES[made.name][op.name == "PRED_SETE_INT"]
        if name is None:
            return
        srcs = [Src(s.value.resolve(), s.neg, s.abs) for s in made.srcs]
        if name.endswith(" swapped"):
            name, srcs = name.split()[0], srcs[::-1]
        op.name, op.srcs = name, srcs
        self.changed = True


def _plain(op: Op) -> bool:
    return not (op.srcs[0].neg or op.srcs[0].abs or op.clamp) and op.omod == 1.0


def _drop_trivial_phis(function: Function) -> None:
    """A phi whose arguments are one value, or itself, is that value."""
    changed = True
    while changed:
        changed = False
        for block in function.blocks:
            kept = []
            for phi in block.phis:
                phi.args = {b: v.resolve() for b, v in phi.args.items()}
                others = set(phi.args.values()) - {phi}
                if len(others) == 1:
                    phi.forward = others.pop()
                    changed = True
                else:
                    kept.append(phi)
            block.phis = kept


def _drop_dead(function: Function) -> None:
    """Keep what an effect needs."""
    blocks = list(function.blocks)
    for block in blocks:
        for phi in block.phis:
            phi.args = {b: v.resolve() for b, v in phi.args.items()}
        for op in block.ops:
            op.srcs = [Src(s.value.resolve(), s.neg, s.abs) for s in op.srcs]
    work = [op for block in blocks for op in block.ops if op.effect]
    alive = set(map(id, work))
    values: set[Value] = set()
    stack = [s.value for op in work for s in op.srcs]
    while stack:
        value = stack.pop()
        if value in values:
            continue
        values.add(value)
        stack += value.args.values()
        maker = value.op
        while maker is not None and id(maker) not in alive:
            alive.add(id(maker))
            stack += [s.value for s in maker.srcs]
            maker = maker.info.get("read")  # a pop needs the LDS read that it empties
    for block in blocks:
        block.ops = [op for op in block.ops if id(op) in alive]
        block.phis = [phi for phi in block.phis if phi in values]
    function.inputs = [v for v in function.inputs if v in values]
