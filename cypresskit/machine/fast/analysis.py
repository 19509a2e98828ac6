"""All that is known about a program before it is translated; this file adds who can see which NaN it is.

A NaN that arithmetic makes is the canonical one, but hosts make others. To repair every result would halve the speed of
a multiply-add, so it is done only where somebody can tell: bits that are stored, or computed with as integers.
"""

from cypresskit.il import Instruction, Program
from cypresskit.machine.fast.cells import Cells
from cypresskit.machine.fast.flow import defines, letters
from cypresskit.machine.fast.variation import literal


class Analysis(Cells):
    """Variation, cells and NaN of a program. ``kinds`` of a cell: "f" single and "d" double results whose NaN may be
    any, "b" bits that must be kept; ``canonical_at_definition`` are the cells whose results are repaired at once."""

    def __init__(self, program: Program):
        super().__init__(program)
        self.canonical_at_definition: set[int] = set()
        self.kinds: dict[int, set[str]] = {}
        self._nans()

    def _nans(self) -> None:
        """Which cells hold arithmetic results only, and which results must be canonical at once.

        ``kinds`` of a cell: "f" single and "d" double results whose NaN may be any, "b" bits that must be kept. A cell
        of one arithmetic kind is made canonical where its bits are seen; in a mixed one that isn't possible any more,
        so there the results are made canonical when they are written.
        """
        moves: list[tuple[int, int]] = []  # (source cell, destination cell) of plain copies
        seen: set[int] = set()
        webs = self.webs
        for at, i in enumerate(self.body):
            self._definition_kinds(at, i, moves)
        changed = True
        while changed:
            changed = False
            for source, target in moves:
                new = self.kinds.setdefault(source, set()) - self.kinds.setdefault(target, set())
                if new:
                    self.kinds[target] |= new
                    changed = True
        mixed = {root for root, kinds in self.kinds.items() if len(kinds) > 1}
        for at in range(len(self.body)):
            for n, operand, positions in webs.uses[at]:
                if operand.register.kind == "r":
                    for c in letters(operand, positions):
                        root = webs.find(webs.used[at, n, c])
                        if root in mixed and self.observes(at, n, root):
                            seen.add(root)
        # a copy into a mixed cell passes on what it holds: then the cell it comes from is seen, too
        while True:
            more = {s for s, t in moves if t in seen and s in mixed} - seen
            if not more:
                break
            seen |= more
        self.canonical_at_definition = seen

    def _definition_kinds(self, at: int, i: Instruction, moves: list[tuple[int, int]]) -> None:
        webs = self.webs
        for c in defines(i):
            root = webs.find(webs.defined[at, c])
            kinds = self.kinds.setdefault(root, set())
            if i.dest and i.dest.mask[c] in "01":
                continue
            if i.op.result == "d":
                kinds.add("d" if self.cell_of[root].form.endswith("64") else "b")
            elif self.arithmetic(i):
                kinds.add("b" if self.cell_of[root].form.endswith("64") else "f")
            elif self.copies(i):
                for n, source in enumerate(i.sources):
                    if n == 0 and i.opcode != "mov":
                        continue
                    value = literal(self.program, source, c)
                    if value is not None:
                        if value & 0x7F800000 == 0x7F800000 or value >> 20 & 0x7FF == 0x7FF:
                            kinds.add("b")
                    elif source.register.kind == "r" and not source.modified:
                        origin = webs.find(webs.used[at, n, "xyzw".index(source.swizzle[c])])
                        if self._keeps_kind(at, n, c):
                            moves.append((origin, root))
                        else:
                            kinds.add("b")
                    else:
                        kinds.add("b")
            else:
                kinds.add("b")

    @staticmethod
    def copies(i: Instruction) -> bool:
        """Whether ``i`` passes bits on unchanged."""
        return i.opcode in ("mov", "cmov_logical") and i.shift == 1.0 and not i.saturate

    def _copied(self, at: int, n: int) -> set[tuple[int, int, int]]:
        """(at, n, c) for the components c of a copy's result that come from a register."""
        source = self.body[at].sources[n]
        written = self.body[at].dest.written  # type: ignore[union-attr]
        return {(at, n, c) for c in written if source.register.kind == "r" and source.swizzle[c] in "xyzw"}

    def _keeps_kind(self, at: int, n: int, c: int) -> bool:
        """Whether component ``c`` of a copy goes from single words to single words, or with its whole double."""
        origin = self.cell(self.webs.used[at, n, "xyzw".index(self.body[at].sources[n].swizzle[c])])
        target = self.cell(self.webs.defined[at, c])
        doubles = origin.form.endswith("64"), target.form.endswith("64")
        first, i = c & 2, self.body[at]
        whole = i.dest and i.dest.mask[first : first + 2] in ("xy", "zw")
        whole = whole and i.sources[n].swizzle[first : first + 2] in ("xy", "zw")
        return doubles == (False, False) or (doubles == (True, True) and bool(whole))

    @staticmethod
    def arithmetic(i: Instruction) -> bool:
        """Whether ``i`` gives single-precision results that may be an uncanonical NaN."""
        return i.op.kind == "alu" and not i.saturate and (i.op.result == "f" or i.shift != 1.0)

    def observes(self, at: int, n: int, root: int) -> bool:
        """Whether the use of source ``n`` tells NaNs of the cell ``root`` apart."""
        i, kinds = self.body[at], self.kinds.get(root, set())
        if n < 0 or i.op.kind in ("lds", "fence") or i.opcode == "load":
            return True
        if i.op.kind == "fetch" or i.op.flow:
            return "d" in kinds
        expected = i.op.sources[n]
        if expected == "f":
            return "d" in kinds
        if expected == "d":  # words of two doubles, or of one the wrong way round, are bits
            return "f" in kinds or i.sources[n].swizzle[:2] not in ("xy", "zw")
        if i.opcode == "cmov_logical" and n == 0:
            return False
        if self.copies(i) and not i.sources[n].modified and i.dest and i.dest.register.kind == "r":
            # where the copy is of the same kind, its own cell answers for it
            return not all(self._keeps_kind(at, n, c) for c in defines(i) if (at, n, c) in self._copied(at, n))
        return not (i.opcode == "mov" and not self.copies(i)) or "d" in kinds
