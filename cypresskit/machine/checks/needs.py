"""Which components matter, found backward from stores, branches and addresses.

``add r0, r1, r2`` reads four components of each operand, but where only r0.x is looked at later, only their x matters.
Checks of values keep to what matters, as a compiler would.
"""

from cypresskit.il import Instruction, Program
from cypresskit.il.dataflow import Key, Numbering, Use, backward, defines, keys, uses


class Needs:
    """``uses[at]``: the register operands of instruction ``at`` of ``program.body``, with the positions that matter;
    ``reads[at]``: the components these name; ``writes[at]``: the components of its result that matter later (all of
    those that are there if it goes to memory); ``start``: components that may be read before they are set.
    ``widths``: outputs, such as "o1", and the words of their texels."""

    def __init__(self, program: Program, widths: tuple[tuple[str, int], ...]):
        self.program, self.widths, body = program, dict(widths), program.body
        self.numbering = Numbering(program)
        self.uses: list[tuple[Use, ...]] = [()] * len(body)
        self.reads: list[frozenset[Key]] = [frozenset()] * len(body)
        self.writes: list[tuple[int, ...]] = [()] * len(body)
        self.start = self.numbering.keys(backward(program, self._step)[0])

    def _step(self, at: int, after: int) -> int:
        i, kept, written = self.program.body[at], after, defines(self.program.body[at])
        if i.dest and not written:  # to memory
            width = self.widths.get(str(i.dest.register), 4)
            self.writes[at] = tuple(c for c in i.dest.written if c < width)
        elif i.dest:
            bit = self.numbering.first[i.dest.register.index]
            self.writes[at] = tuple(c for c in i.dest.written if after >> bit + c & 1)
            kept = after & ~sum(1 << bit + c for c in written)
        found: list[Use] = []
        matters = (self.writes[at] or not written) and not _is_zero(i)
        for n, source, positions in uses(self.program, i) if matters else ():
            if n >= 0 and i.op.kind == "alu" and not i.op.vector and i.dest:
                positions = tuple(p for p in positions if p in self.writes[at])
            if source.register.kind == "r":
                found.append((n, source, positions))
        self.uses[at], self.reads[at] = tuple(found), frozenset(keys(found))
        return kept | self.numbering.bits(self.reads[at])


def _is_zero(i: Instruction) -> bool:
    """Whether the result is 0 whatever the operands hold: a common way to clear a register."""
    return i.op.name in ("ixor", "isub") and i.sources[0] == i.sources[1] and i.sources[0].register.kind == "r"
