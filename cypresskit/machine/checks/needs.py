"""Which components of registers matter: backward from stores, branches and addresses to the start of a program.

``add r0, r1, r2`` reads four components, but where only r0.x is looked at later, only the x of its operands matters.
Checks of values keep to what matters, as a compiler would. A set of components is an integer with a bit for each: a
kernel of many registers, all needed at once, still takes a few kilobytes for an instruction.
"""

from cypresskit.il import Instruction, Program
from cypresskit.il.dataflow import Key, Numbering, Use, backward, defines, keys, uses


class Needs:
    """``uses[at]``: the register operands of instruction ``at`` of ``program.body``, with the positions that matter;
    ``reads[at]``: the components these name; ``writes[at]``: the components of its result that matter later (all of
    them if it goes to memory); ``start``: what is read somewhere without being set on every way there."""

    def __init__(self, program: Program):
        self.program, body = program, program.body
        self.numbering = Numbering(program)
        self.uses: list[tuple[Use, ...]] = [()] * len(body)
        self.reads: list[frozenset[Key]] = [frozenset()] * len(body)
        self.writes: list[tuple[int, ...]] = [()] * len(body)
        self.start = self.numbering.keys(backward(program, self._step)[0])

    def _step(self, at: int, after: int) -> int:
        i = self.program.body[at]
        written = defines(i)
        kept = after
        if written and i.dest:
            bit = self.numbering.first[i.dest.register.index]
            self.writes[at] = tuple(c for c in i.dest.written if after >> bit + c & 1)
            kept = after & ~sum(1 << bit + c for c in written)
            if not self.writes[at]:
                self.uses[at], self.reads[at] = (), frozenset()
                return kept
        else:
            self.writes[at] = i.dest.written if i.dest else ()
        found: list[Use] = []
        for n, source, positions in () if _is_zero(i) else uses(self.program, i):
            if n >= 0 and i.op.kind == "alu" and not i.op.vector and i.dest:
                positions = tuple(p for p in positions if p in self.writes[at])
            if source.register.kind == "r":
                found.append((n, source, positions))
        self.uses[at] = tuple(found)
        self.reads[at] = frozenset(keys(found))
        return kept | self.numbering.bits(self.reads[at])


def _is_zero(i: Instruction) -> bool:
    """Whether the result is 0 whatever the operands hold: a common way to clear a register."""
    return i.op.name in ("ixor", "isub") and i.sources[0] == i.sources[1] and i.sources[0].register.kind == "r"
