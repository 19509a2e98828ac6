"""Uniformity analysis: which values differ between lanes, in which bits, and whether lanes take
different ways.

Several work-items run together as the *lanes* of host vectors: four or, for programs with doubles,
eight, a *gang*. ``varying`` of a web (see ``webs``) holds the bits in which its value may differ
between lanes. No bit at all means that the value is the same in all lanes: it is kept as a scalar,
and its fetches are one load. Integer operations by literals are followed bit by bit, since that is
how compute kernels make rows and columns of a work-item's number.
"""

import math
from functools import cached_property, reduce
from operator import or_

from cypresskit.il import Instruction, Program, Source
from cypresskit.il.bits import ALL, ONE
from cypresskit.il.dataflow import address_number, components, defines
from cypresskit.il.program import LETTERS
from cypresskit.machine.fast.webs import Webs


def literal(program: Program, source: Source, position: int = 0) -> int | None:
    """The bits of a literal operand at a position, else None."""
    letter = source.swizzle[position]
    if source.modified:
        return None
    if letter in "01":
        return ONE if letter == "1" else 0
    if source.register.kind == "l":
        return program.literals[source.register.index][LETTERS.index(letter)]
    return None


def _upwards(bits: int) -> int:
    """All bits from the lowest one up: what a carry can reach."""
    return ALL & -(bits & -bits)


class Uniformity:
    """Uniformity of ``program`` in ``lanes``: ``group_level`` are the openers of loops and ifs that
    hold a barrier.
    """

    def __init__(self, program: Program, webs: Webs, lanes: int):
        self.program = program
        self.body = program.body
        self.webs = webs
        self.lanes = lanes
        self.group_level = self._group_level()
        self.varying: dict[int, int] = {}
        self.settle()

    # Barriers

    @cached_property
    def barriers(self) -> bool:
        """Whether the program has a barrier (or an LDS fence, which orders a wavefront's gangs in
        the same way).
        """
        return any(self.is_barrier(at) for at in range(len(self.body)))

    def is_barrier(self, at: int) -> bool:
        """Whether all gangs of a group must have come to ``at`` before one goes on."""
        i = self.body[at]
        return (
            i.op.kind == "fence"
            and self.program.mode == "compute"
            and (i.controls.threads or i.controls.lds)
        )

    def _group_level(self) -> set[int]:
        match = self.program.matching
        flow = [i.op.flow for i in self.body]
        ends = {at: match[at] for at, what in enumerate(flow) if what in ("if", "loop")}
        ends |= {at: match[end] for at, end in ends.items() if flow[end] == "else"}

        def around(places: list[int]) -> set[int]:
            return {
                opener for opener, end in ends.items() if any(opener < at < end for at in places)
            }

        barriers = [at for at in range(len(flow)) if self.is_barrier(at)]
        level = around(barriers)
        leaving = [
            at
            for at, what in enumerate(flow)
            if what in ("break", "continue") and match[at] in level
        ]
        return around(barriers + leaving)

    # Uniformity

    def _input_bits(self, kind: str, letter: str) -> int:
        if self.lanes == 1 or kind.startswith("vThreadGrpId"):
            return 0
        if kind == "vWinCoord0":
            return ALL if letter == "x" else 0
        size = self.program.group
        low = self.lanes - 1
        if kind in ("vTidInGrpFlat", "vAbsTidFlat"):
            return low if kind == "vTidInGrpFlat" or math.prod(size) % self.lanes == 0 else ALL
        if letter == "w":
            return 0
        if size[0] % self.lanes:
            return ALL
        return low if letter == "x" else 0

    def source_bits(self, at: int, n: int, source: Source, positions: tuple[int, ...]) -> int:
        """In which bits an operand may differ between lanes, over the given positions."""
        bits = 0
        kind = source.register.kind
        if kind == "r":
            for c in components(source, positions):
                bits |= self.of_web(self.webs.used[at, n, c])
        elif kind == "g":
            address = source.register.address
            if address is not None and components(source, positions):
                number = n if n < 0 else address_number(n)
                bits = self.source_bits(at, number, address, (0,))
                bits = ALL if bits else 0
        elif kind not in ("l", "cb"):
            for p in positions:
                bits |= (
                    self._input_bits(kind, source.swizzle[p]) if source.swizzle[p] in LETTERS else 0
                )
        return ALL if bits and source.modified else bits

    def merge(self) -> None:
        """Follow webs that have been joined since: if one of them varied, the joined web does."""
        before = self.varying
        self.varying = {}
        for web, bits in before.items():
            self.varying[self.webs.find(web)] = self.of_web(web) | bits
        self.settle()

    def of_web(self, web: int) -> int:
        """The varying bits of a web."""
        return self.varying.get(self.webs.find(web), 0)

    def _result_bits(self, at: int, i: Instruction, c: int) -> int:
        """The bits in which component ``c`` of ``i``'s result may differ between lanes."""
        if i.dest and i.dest.mask[c] in "01":
            return 0
        if i.op.kind != "alu" or i.op.vector:
            return (
                ALL if any(self.source_bits(at, n, s, p) for n, s, p in self.webs.uses[at]) else 0
            )
        bits = [self.source_bits(at, n, s, (c,)) for n, s in enumerate(i.sources)]
        if not any(bits):
            return 0
        if i.shift != 1.0 or i.saturate:
            return ALL
        return self._rule(i.op.name, bits, [literal(self.program, s, c) for s in i.sources])

    @staticmethod
    def _rule(name: str, bits: list[int], known: list[int | None]) -> int:
        constant = known[-1] if len(known) > 1 else None
        if name in ("mov", "inot"):
            return bits[0]
        if name in ("iand", "ior", "ixor"):
            for value, other in ((known[1], bits[0]), (known[0], bits[1])):
                if value is not None and name != "ixor":
                    return other & (value if name == "iand" else ~value)
            return bits[0] | bits[1]
        if name in ("ishl", "ushr", "ishr") and constant is not None:
            if name == "ishl":
                return bits[0] << (constant & 31) & ALL
            return ALL if name == "ishr" and bits[0] >> 31 else bits[0] >> (constant & 31)
        if constant is not None and constant.bit_count() == 1:
            if name == "udiv":
                return bits[0] >> (constant.bit_length() - 1)
            if name == "umod":
                return bits[0] & (constant - 1)
            if name in ("imul", "umul"):
                return bits[0] << (constant.bit_length() - 1) & ALL
        if name in ("iadd", "isub", "inegate", "imul", "umul", "imad", "umad"):
            return _upwards(reduce(or_, bits))
        return bits[1] | bits[2] if name == "cmov_logical" and not bits[0] else ALL

    def settle(self) -> None:
        """Find the varying bits: repeat until nothing changes."""
        changed = True
        while changed:
            changed = False
            for at, i in enumerate(self.body):
                for c in defines(i):
                    web = self.webs.find(self.webs.defined[at, c])
                    bits = self._result_bits(at, i, c)
                    if bits & ~self.of_web(web):
                        self.varying[web] = self.of_web(web) | bits
                        changed = True

    def varies(self, at: int, n: int, source: Source, positions: tuple[int, ...] = (0,)) -> bool:
        """Whether an operand may differ between lanes."""
        return self.source_bits(at, n, source, positions) != 0

    @property
    def diverges(self) -> bool:
        """Whether lanes may take different ways, but for flow that holds barriers."""
        match = self.program.matching
        level = self.group_level
        flow = (at for at, i in enumerate(self.body) if i.op.flow in ("if", "break", "continue"))
        return any(
            self.varies(at, n, source)
            for at in flow
            if (at if self.body[at].op.flow == "if" else match[at]) not in level
            for n, source in enumerate(self.body[at].sources)
        )
