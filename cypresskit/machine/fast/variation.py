"""In which bits values differ between lanes, and which control flow is decided by such values.

Several work-items run together as the *lanes* of host vectors: four or, for programs with doubles, eight, a *quad*.
``varying`` of a web (see ``defuse``) holds, for each bit of the lane number, the bits of the value that may differ
between lanes whose numbers differ in that bit. No bit at all means that the value is the same in all lanes: it is
kept as a scalar, its tests are plain branches and its fetches one load. A value that differs only in one bit of the
lane number needs two loads for four lanes. Integer operations by literals are followed bit by bit, since that is how
compute kernels make rows and columns of a work-item's number.
"""

import math
from functools import cached_property

from cypresskit.il import Instruction, Program, Source
from cypresskit.il.dataflow import components, defines
from cypresskit.machine.fast.defuse import Webs
from cypresskit.machine.fast.phases import is_barrier

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


class Variation:
    """Divergence and variation of ``program``: ``group_level`` are the openers of loops and ifs that hold a barrier,
    ``divergent[at]`` is a bit set of the lane bits on which it depends who executes ``at`` (0: all)."""

    def __init__(self, program: Program, webs: Webs):
        self.program, self.body, self.webs = program, program.body, webs
        self.doubles = any(i.op.double for i in self.body)
        self.lanes = 8 if self.doubles else 4
        self.steps = self.lanes.bit_length() - 1
        self.group_level = self._group_level()
        self.varying: dict[int, Bits] = {}
        self.divergent = [0] * len(self.body)
        self.loop_divergent: dict[int, int] = {}
        self.settle()

    # Barriers

    @cached_property
    def barriers(self) -> bool:
        """Whether the program has a barrier (or an LDS fence, which orders a wavefront's quads in the same way)."""
        return any(self.is_barrier(at) for at in range(len(self.body)))

    def is_barrier(self, at: int) -> bool:
        """Whether all quads of a group must have come to ``at`` before one goes on."""
        return is_barrier(self.program, self.body[at])

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
            return [ALL] * self.steps if letter == "x" else [0] * self.steps
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
            for c in components(source, positions):
                bits = [a | b for a, b in zip(bits, self.of_web(self.webs.used[at, n, c]), strict=True)]
        elif kind == "g":
            address = source.register.address
            if address is not None and components(source, positions):
                n = n if n < 0 else -1 - n
                bits = [ALL if b else 0 for b in self.source_bits(at, n, address, (0,))]
        elif kind not in ("l", "cb"):
            for p in positions:
                if source.swizzle[p] in "xyzw":
                    found = self._input_bits(kind, source.swizzle[p])
                    bits = [a | b for a, b in zip(bits, found, strict=True)]
        return [ALL if b else 0 for b in bits] if source.modified else bits

    def merge(self) -> None:
        """Take in what has become of the webs since: where one varying web was merged with others, all vary."""
        varying: dict[int, Bits] = {}
        for web, bits in self.varying.items():
            root = self.webs.find(web)
            varying[root] = [a | b for a, b in zip(varying.get(root, [0] * self.steps), bits, strict=True)]
        self.varying = varying
        self.settle()

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

    def settle(self) -> None:
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
