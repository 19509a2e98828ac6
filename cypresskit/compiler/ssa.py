"""Build static single assignment form on the fly.

Source: Braun et al., "Simple and efficient construction of static single assignment form", 2013. A
write makes a new word. A read finds the word that reaches it: it looks back through the
predecessors, and inserts a phi where several meet. What is read through a loop's header before the
loop's end is known gets a phi whose arguments are added later.
"""

from cypresskit.compiler.ir import BasicBlock, Detail, Op, Src, Word, const

Variable = tuple[int, int]  # an IL register and its component


class OpBuilder:
    """Appends ops to a function.

    Attributes
    ----------
    block
        The current block.
    items
        The function so far.
    at, depth
        Index of the current instruction, and the number of loops around it.
    """

    def __init__(self) -> None:
        self.places: dict[tuple, Word] = {}
        self.at = self.depth = 0
        self.block = BasicBlock()
        self.items: list[BasicBlock | str] = [self.block]

    def place(self, kind: str, *place: int) -> Word:
        """Return the word of a constant buffer's element ("constant") or of a preloaded register
        ("input").
        """
        return self.places.setdefault((kind, place), Word(kind, place=place))

    def read(self, variable: Variable) -> Word:
        """Return the word that a variable holds at this point."""
        fresh: list[tuple[Word, BasicBlock]] = []
        word = self._reaching(variable, self.block, fresh)
        self._complete(variable, fresh)
        return word

    def _reaching(
        self, variable: Variable, block: BasicBlock, fresh: list[tuple[Word, BasicBlock]]
    ) -> Word:
        """Return the word of a variable at the end of ``block``. A phi that this makes is appended
        to ``fresh``.
        """
        passed = []
        while variable not in block.defs and block.sealed and len(block.preds) == 1:
            passed.append(block)
            block = block.preds[0]
        if variable in block.defs:
            word = block.defs[variable]
        elif block.sealed and not block.preds:
            word = const(0)
        else:
            word = Word("phi", home=variable[1])
            block.phis.append(word)
            if block.sealed:
                fresh.append((word, block))
            else:
                block.incomplete[variable] = word
        for b in (block, *passed):
            b.defs[variable] = word
        return word

    def _complete(self, variable: Variable, fresh: list[tuple[Word, BasicBlock]]) -> None:
        """Add the arguments of phis, and of the phis that this makes."""
        while fresh:
            phi, block = fresh.pop()
            for pred in block.preds:
                phi.args[pred] = self._reaching(variable, pred, fresh)

    def seal(self, block: BasicBlock) -> None:
        """Declare that all predecessors of a block are known, and add the arguments of its
        incomplete phis.
        """
        block.sealed = True
        for variable, phi in block.incomplete.items():
            self._complete(variable, [(phi, block)])
        block.dead = not block.preds

    def emit(self, name: str, *srcs: Word | Src | int) -> Word:
        """Append an op. Return its first result."""
        return self.append(name, *srcs).results[0]

    def multiply(self, a: Word, n: Word) -> Word:
        """Append a * n modulo 2^32; a shift if n is a power of two."""
        if n.kind == "const" and n.bits.bit_count() == 1:
            return self.emit("LSHL_INT", a, n.bits.bit_length() - 1) if n.bits > 1 else a
        return self.emit("MULLO_INT", a, n)

    def plain(self, src: Src) -> Word:
        """Return the operand as a word, with its sign applied."""
        return self.emit("MOV", src) if src.neg else src.value

    def append(
        self,
        name: str,
        *srcs: Word | Src | int,
        detail: Detail | None = None,
        popped: Op | None = None,
    ) -> Op:
        """Append an op and return it; in an unreachable block it is dropped. Operands may be words,
        or the bits of constants.
        """
        words = (const(s) if isinstance(s, int) else s for s in srcs)
        operands = [s if isinstance(s, Src) else Src(s) for s in words]
        op = Op(name, operands, self.at, detail, popped=popped)
        if not self.block.dead:
            self.block.ops.append(op)
        return op

    def add_edge(self, block: BasicBlock) -> None:
        """Add an edge from here to another block."""
        if not self.block.dead:
            self.block.succs.append(block)
            block.preds.append(self.block)

    def begin_block(self, *preds: BasicBlock) -> BasicBlock:
        """Begin a block with these predecessors."""
        self.block = BasicBlock(self.depth, preds=[p for p in preds if not p.dead])
        for p in self.block.preds:
            p.succs.append(self.block)
        self.block.dead = not self.block.preds
        self.items.append(self.block)
        return self.block
