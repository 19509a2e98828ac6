"""Static single assignment on the fly: variables in, values out.

After Braun et al., "Simple and efficient construction of static single assignment form" (2013): a write makes a new
value; a read finds the value that reaches it, looking back through the predecessors and leaving a phi where several
meet. The header of a loop is not sealed until the loop's end is known; what is read through it before that gets a phi
whose arguments come later.
"""

from cypresskit.compiler.ir import Block, Op, Src, Value

MASK = 0xFFFFFFFF


class Builder:
    """Appends ops to ``block``; ``items`` is the function so far. ``at`` and ``depth``: where in the program."""

    def __init__(self) -> None:
        self.constants: dict[int, Value] = {}
        self.places: dict[tuple, Value] = {}
        self.at = self.depth = 0
        self.block = Block()
        self.items: list[Block | str] = [self.block]

    def const(self, bits: int) -> Value:
        """The constant of that pattern."""
        bits &= MASK
        if bits not in self.constants:
            self.constants[bits] = Value("const", bits=bits)
        return self.constants[bits]

    def place(self, kind: str, *place: int) -> Value:
        """A constant buffer's element ("constant") or a preloaded register ("input")."""
        if (kind, place) not in self.places:
            self.places[kind, place] = Value(kind, place=place)
        return self.places[kind, place]

    def read(self, variable, block: Block) -> Value:
        """The value of a variable at the end of ``block``."""
        passed = []
        while variable not in block.defs and block.sealed and len(block.preds) == 1:
            passed.append(block)
            block = block.preds[0]
        if variable in block.defs:
            value = block.defs[variable]
        elif not block.sealed:
            value = Value("phi", block=block)
            block.incomplete[variable] = value
            block.phis.append(value)
        elif not block.preds:
            value = self.const(0)
        else:
            value = Value("phi", block=block)
            block.phis.append(value)
            block.defs[variable] = value
            self.complete(variable, value)
        block.defs[variable] = value
        for b in passed:
            b.defs[variable] = value
        return value

    def complete(self, variable, phi: Value) -> None:
        """Give a phi its arguments."""
        assert phi.block is not None
        for pred in phi.block.preds:
            phi.args[pred] = self.read(variable, pred)

    def seal(self, block: Block) -> None:
        """All predecessors of a block are known."""
        block.sealed = True
        for variable, phi in block.incomplete.items():
            self.complete(variable, phi)
        block.dead = not block.preds

    def emit(self, name: str, *srcs, words: int = 1, **info) -> Value:
        """Append an op; operands may be values. Returns its first result."""
        operands = [s if isinstance(s, Src) else Src(s) for s in srcs]
        op = Op(name, operands, self.at, words=words, info=info)
        self.append(op)
        return op.results[0] if op.results else self.const(0)

    def append(self, op: Op) -> Op:
        """Append an op, unless control never comes here."""
        if not self.block.dead:
            self.block.ops.append(op)
        return op

    def start(self, *preds: Block) -> Block:
        """Begin a block that control reaches from ``preds``."""
        self.block = Block(self.depth, preds=[p for p in preds if not p.dead])
        for p in self.block.preds:
            p.succs.append(self.block)
        self.block.dead = not self.block.preds
        self.items.append(self.block)
        return self.block
