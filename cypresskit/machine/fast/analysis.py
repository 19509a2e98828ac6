"""What can be known about a program's values before it runs, and how the engine stores them.

Several work-items run together as the *lanes* of host vectors: a quad (4) or, for programs with doubles, two quads (8).
For every web (``flow.Webs``) this module finds out

- in which bits the value can differ between lanes whose numbers differ in one bit (``varying``): no bit means that the
  value is the same in all lanes, so that it is kept as a scalar, its tests are plain branches and its fetches one load;
  a value that differs only between the rows of a quad needs two loads for four lanes;
- which control flow is divergent, that is, decided by a value that differs between lanes;
- whether arithmetic NaNs must be made canonical where they arise, where they are used, or nowhere;
- the cell that holds it: a scalar, a vector of one component, of one double, or a whole register (four lanes of four
  components), by how the program uses it.
"""

import math
from dataclasses import dataclass

from cypresskit.il import Instruction, Program, Source
from cypresskit.machine.fast.flow import Webs, defines, letters

ALL = 0xFFFFFFFF
Bits = list[int]  # per bit of the lane number, the bits of a value that may differ with it


def literal(program: Program, source: Source, position: int = 0) -> int | None:
    """The bits of a literal operand at a position, else None."""
    letter = source.swizzle[position]
    if source.modified:
        return None
    if letter in "01":
        return 0x3F800000 if letter == "1" else 0
    if source.register.kind == "l":
        return program.literals[source.register.index]["xyzw".index(letter)]
    return None


def _upwards(bits: int) -> int:
    """All bits from the lowest one up: what a carry can reach."""
    return (ALL << ((bits & -bits).bit_length() - 1)) & ALL if bits else 0


@dataclass
class Cell:
    """Storage of one or more components of a register: ``form`` is "scalar" (i32), "lanes" (one component, a vector),
    "scalar64" and "lanes64" (xy or zw as 64 bits), or "wide" (four components of four lanes)."""

    form: str
    components: tuple[int, ...]
    name: str


class Analysis:
    """The facts about ``program``; see the module. ``lanes`` is 4 or 8, ``group_level`` the openers of loops and ifs
    that hold a barrier, ``divergent[at]`` a bit set of lane bits on which it depends who executes ``at`` (0: all)."""

    def __init__(self, program: Program):
        self.program, self.body = program, program.body
        self.webs = Webs(program)
        self.doubles = any(i.op.double for i in self.body)
        self.lanes = 8 if self.doubles else 4
        self.steps = self.lanes.bit_length() - 1
        self.group_level = self._group_level()
        self.varying: dict[int, Bits] = {}
        self.divergent = [0] * len(self.body)
        self.loop_divergent: dict[int, int] = {}
        self._variation()
        self.cell_of: dict[int, Cell] = {}
        self._cells()
        self.canonical_at_definition: set[int] = set()
        self.kinds: dict[int, set[str]] = {}
        self._nans()

    # Barriers

    @property
    def barriers(self) -> bool:
        """Whether the program has a barrier (or an LDS fence, which orders the lanes here in the same way)."""
        return self.program.mode == "compute" and any(self.is_barrier(at) for at in range(len(self.body)))

    def is_barrier(self, at: int) -> bool:
        """Whether all quads of a group must have come to ``at`` before one goes on."""
        i = self.body[at]
        return i.op.kind == "fence" and self.program.mode == "compute" and bool(i.control("threads"))

    def _group_level(self) -> set[int]:
        match, level = self.program.matching, set()
        stack: list[int] = []
        nesting: list[tuple[int, ...]] = []
        for at, i in enumerate(self.body):
            if i.op.flow in ("endloop", "endif"):
                stack.pop()
            nesting.append(tuple(stack))
            if i.op.flow in ("loop", "if"):
                stack.append(at)
            if self.is_barrier(at):
                level.update(stack)
        size = -1
        while size != len(level):
            size = len(level)
            for at, i in enumerate(self.body):
                if i.op.flow in ("break", "continue") and match[at] in level:
                    level.update(o for o in nesting[at] if o >= match[at])
        return level

    # Variation and divergence

    def _input_bits(self, kind: str, letter: str) -> Bits:
        zero, full = [0] * self.steps, [ALL] * self.steps
        if kind == "vWinCoord0":
            return {"x": [ALL, 0, ALL], "y": [0, ALL, 0]}.get(letter, [0, 0, 0])[: self.steps]
        size = self.program.group
        aligned = math.prod(size) % self.lanes == 0
        low = [1 << k for k in range(self.steps)]
        if kind.startswith("vThreadGrpId"):
            return zero
        if kind in ("vTidInGrpFlat", "vAbsTidFlat"):
            return low if aligned or kind == "vTidInGrpFlat" else full
        if letter == "w":
            return zero
        if size[0] % self.lanes:
            return full
        if letter != "x":
            return zero
        return low

    def source_bits(self, at: int, n: int, source: Source, positions: tuple[int, ...]) -> Bits:
        """In which bits an operand may differ between lanes, over the given positions."""
        bits = [0] * self.steps
        kind = source.register.kind
        if kind == "r":
            for c in letters(source, positions):
                bits = [a | b for a, b in zip(bits, self.of_web(self.webs.used[at, n, c]), strict=True)]
        elif kind == "g":
            address = source.register.address
            if address is not None and letters(source, positions):
                n = n if n < 0 else -1 - n
                bits = [ALL if b else 0 for b in self.source_bits(at, n, address, (0,))]
        elif kind not in ("l", "cb"):
            for p in positions:
                if source.swizzle[p] in "xyzw":
                    found = self._input_bits(kind, source.swizzle[p])
                    bits = [a | b for a, b in zip(bits, found, strict=True)]
        return [ALL if b else 0 for b in bits] if source.modified else bits

    def of_web(self, web: int) -> Bits:
        """The varying bits of a web."""
        return self.varying.get(self.webs.find(web), [0] * self.steps)

    def lane_bits(self, at: int, n: int, source: Source, positions: tuple[int, ...]) -> int:
        """The bits of the lane number on which an operand depends, as a bit set; 0 means uniform."""
        return sum(1 << k for k, b in enumerate(self.source_bits(at, n, source, positions)) if b)

    def _result_bits(self, at: int, i: Instruction, c: int) -> Bits:
        """How the value of component ``c`` of ``i``'s result may differ."""
        if i.dest and i.dest.mask[c] in "01":
            return [0] * self.steps
        name, program = i.op.name, self.program
        if i.op.kind != "alu" or i.op.vector:
            found = [self.source_bits(at, n, s, p) for n, s, p in self.webs.uses[at]]
            return [ALL if any(b) else 0 for b in zip(*found, strict=True)] or [0] * self.steps
        sources = [self.source_bits(at, n, s, (c,)) for n, s in enumerate(i.sources)]
        known = [literal(program, s, c) for s in i.sources]
        if i.shift != 1.0 or i.saturate:
            return [ALL if any(b) else 0 for b in zip(*sources, strict=True)]
        return [self._rule(name, bits, known) for bits in zip(*sources, strict=True)]

    @staticmethod
    def _rule(name: str, bits: tuple[int, ...], known: list[int | None]) -> int:
        if not any(bits):
            return 0
        constant = known[-1] if len(known) > 1 else None
        if name in ("mov", "inot"):
            return bits[0]
        if name in ("iand", "ior", "ixor"):
            for value, other in ((known[1], bits[0]), (known[0], bits[1])):
                if value is not None and name == "iand":
                    return other & value
                if value is not None and name == "ior":
                    return other & ~value
            return bits[0] | bits[1]
        if name in ("ishl", "ushr", "ishr") and constant is not None:
            if name == "ishl":
                return bits[0] << (constant & 31) & ALL
            return ALL if name == "ishr" and bits[0] >> 31 else bits[0] >> (constant & 31)
        power = constant is not None and constant.bit_count() == 1
        if name == "udiv" and power:
            return bits[0] >> (constant.bit_length() - 1)  # type: ignore[union-attr]
        if name == "umod" and power:
            return bits[0] & (constant - 1)  # type: ignore[operator]
        if name in ("imul", "umul") and power:
            return bits[0] << (constant.bit_length() - 1) & ALL  # type: ignore[union-attr]
        if name in ("iadd", "isub", "inegate", "imul", "umul", "imad", "umad"):
            return _upwards(bits[0] | (bits[1] if len(bits) > 1 else 0) | (bits[2] if len(bits) > 2 else 0))
        if name == "cmov_logical" and not bits[0]:
            return bits[1] | bits[2]
        return ALL

    def _variation(self) -> None:
        """Values and control flow decide about each other: repeat until nothing changes."""
        changed = True
        while changed:
            changed = self._divergence()
            for at, i in enumerate(self.body):
                for c in defines(i):
                    bits = self._result_bits(at, i, c)
                    bits = [ALL if self.divergent[at] >> k & 1 else b for k, b in enumerate(bits)]
                    web = self.webs.find(self.webs.defined[at, c])
                    old = self.varying.get(web, [0] * self.steps)
                    new = [a | b for a, b in zip(old, bits, strict=True)]
                    if new != old:
                        self.varying[web], changed = new, True

    def condition_bits(self, at: int) -> int:
        """The lane bits on which the condition of a flow instruction depends."""
        bits = 0
        for n, source in enumerate(self.body[at].sources):
            bits |= self.lane_bits(at, n, source, (0,))
        return bits

    def _divergence(self) -> bool:
        changed = False
        stack: list[tuple[int, int]] = []  # (opener, divergence outside)
        now = 0
        match = self.program.matching
        for at, i in enumerate(self.body):
            flow = i.op.flow
            if flow in ("endif", "endloop"):
                self.divergent[at] = now
                now = stack.pop()[1]
                continue
            if flow == "else":
                self.divergent[at] = now
                continue
            if self.divergent[at] != now:
                self.divergent[at], changed = now, True
            if flow == "if":
                stack.append((at, now))
                if at not in self.group_level:
                    now |= self.condition_bits(at)
            elif flow == "loop":
                stack.append((at, now))
                now |= self.loop_divergent.get(at, 0)
            elif flow in ("break", "continue") and match[at] not in self.group_level:
                bits = now | self.condition_bits(at)
                if bits & ~self.loop_divergent.get(match[at], 0):
                    self.loop_divergent[match[at]] = self.loop_divergent.get(match[at], 0) | bits
                    changed = True
        return changed

    # Cells

    def _cells(self) -> None:
        """Join webs of a register's components into cells, and name them."""
        webs = self.webs
        narrow = self._narrow()
        for at, i in enumerate(self.body):
            if self.doubles:
                for n, source, positions in webs.uses[at]:
                    if source.register.kind == "r" and i.op.double and n >= 0 and i.op.sources[n] == "d":
                        self._join_pair(
                            [webs.used[at, n, c] for c in letters(source, positions)], letters(source, positions)
                        )
                if i.op.result == "d":
                    for p in (0, 2):
                        if {p, p + 1} <= set(defines(i)):
                            self._join_pair([webs.defined[at, p], webs.defined[at, p + 1]], [p, p + 1])
            elif len(defines(i)) >= 3:
                wide = [webs.defined[at, c] for c in defines(i) if webs.find(webs.defined[at, c]) not in narrow]
                if len(wide) >= 3:
                    for web in wide[1:]:
                        webs.union(wide[0], web)
        self._pair_copies()
        parts: dict[int, set[int]] = {}
        named = [(web, c) for (_, c), web in webs.defined.items()] + [(w, c) for (_, _, c), w in webs.used.items()]
        for web, c in named:
            parts.setdefault(webs.find(web), set()).add(c)
        varying: dict[int, Bits] = {}
        for web, bits in self.varying.items():
            root = webs.find(web)
            varying[root] = [a | b for a, b in zip(varying.get(root, [0] * self.steps), bits, strict=True)]
        self.varying = varying
        self._variation()  # what joins a varying component varies, too
        for root, found in parts.items():
            components = tuple(sorted(found))
            uniform = not any(self.of_web(root))
            if len(components) == 1:
                form = "scalar" if uniform else "lanes"
            elif self.doubles:
                form = "scalar64" if uniform else "lanes64"
            else:
                form = "wide"
            self.cell_of[root] = Cell(form, components, f"r{webs.register[root]}_{root}")

    def _pair_copies(self) -> None:
        """A copy between halves of registers hands on whether they are kept as doubles."""
        webs = self.webs
        copies = []
        for at, i in enumerate(self.body if self.doubles else ()):
            if i.opcode == "mov" and i.sources[0].register.kind == "r":
                for c in (0, 2):
                    if {c, c + 1} <= set(defines(i)) and i.sources[0].swizzle[c : c + 2] in ("xy", "zw"):
                        first = "xyzw".index(i.sources[0].swizzle[c])
                        if i.dest and i.dest.mask[c : c + 2] in ("xy", "zw"):
                            origin = webs.used[at, 0, first], webs.used[at, 0, first + 1]
                            copies.append((origin, (webs.defined[at, c], webs.defined[at, c + 1])))
        changed = True
        while changed:
            changed = False
            for origin, target in copies:
                joined = [webs.find(pair[0]) == webs.find(pair[1]) for pair in (origin, target)]
                if any(joined) and not all(joined):
                    webs.union(*(target if joined[0] else origin))
                    changed = True

    def _join_pair(self, pair: list[int], components: list[int]) -> None:
        if components in ([0, 1], [2, 3]):
            self.webs.union(pair[0], pair[1])

    def _narrow(self) -> set[int]:
        """Webs that are better kept component by component: uniform ones, addresses, tests, results of small masks."""
        found = {self.webs.find(w) for w in self.webs.defined.values() if not any(self.of_web(w))}
        for at, i in enumerate(self.body):
            address = i.op.kind == "fetch" or i.op.flow != "" or i.op.kind == "lds"
            for n, source, positions in self.webs.uses[at]:
                data = i.op.kind == "lds" and n == len(i.sources) - 1 and "store" in i.op.name
                if source.register.kind == "r" and (n < 0 or (address and not data)):
                    found.update(self.webs.find(self.webs.used[at, n, c]) for c in letters(source, positions))
            if len(defines(i)) in (1, 2) and i.op.kind == "alu":
                found.update(self.webs.find(self.webs.defined[at, c]) for c in defines(i))
        return found

    def cell(self, web: int) -> Cell:
        """The cell of a web."""
        return self.cell_of[self.webs.find(web)]

    def cells_written(self, at: int) -> set[str]:
        """The names of the cells that ``at`` writes."""
        return {self.cell(self.webs.defined[at, c]).name for c in defines(self.body[at])}

    # NaN

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
        if expected == "d":
            return "f" in kinds
        if i.opcode == "cmov_logical" and n == 0:
            return False
        if self.copies(i) and not i.sources[n].modified and i.dest and i.dest.register.kind == "r":
            # where the copy is of the same kind, its own cell answers for it
            return not all(self._keeps_kind(at, n, c) for c in defines(i) if (at, n, c) in self._copied(at, n))
        return not (i.opcode == "mov" and not self.copies(i)) or "d" in kinds
