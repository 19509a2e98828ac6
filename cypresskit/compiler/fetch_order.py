"""What a kernel's own order of fetches costs: the same kernel with its reads gathered, compiled by the same compiler.

AMD's compiler moves no fetch across a break, and reads of global memory only as far as the first use of what one
brings. Whoever writes the kernel can: here every read moves up to the first one between two ends of loops and ifs, with
the arithmetic of its address, into fresh registers that are copied where it stood. These are speculative reads, for
timing only: one that moved over a break may lie past the array. No read passes a fence, one of global memory no store,
and none the read that its address comes from.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from cypresskit.compiler.card import turn_clocks
from cypresskit.compiler.code import Code
from cypresskit.compiler.ir import CompileError
from cypresskit.compiler.search import STYLES
from cypresskit.il import Dest, Instruction, Program, Register, Source
from cypresskit.il.dataflow import address_uses, defines, keys, uses
from cypresskit.tables import counted


class Turn(NamedTuple):
    """Of the main loop: clauses of fetches, those of them that hold one fetch, and clocks."""

    clauses: int
    alone: int
    clocks: float


@dataclass(frozen=True)
class FetchOrder:
    """``turn``: one of the main loop as it is. ``together``: the kernel with its reads gathered, compiled, or None if
    its turn is not the smaller one; ``moves``: the lines of reads that moved, and behind which line."""

    turn: Turn
    together: Code | None
    moves: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        clauses, alone, clocks = self.turn
        now = f"order of fetches: {counted(clauses, 'clause')} in a turn, {alone} of one fetch; "
        if self.together is None:
            return now + "no line is known to move"
        then = _turn(self.together)
        (line, behind), more = self.moves[0], len(self.moves) - 1
        texel = any(i.line == line and i.op.kind == "fetch" for i in self.together.program.body)
        also = f" (and {counted(more, 'more line')} so)" if more else ""
        turn = f"instead of {clocks:.0f}" if then.clocks < clocks else "either way, with all wavefronts that fit"
        return (
            f"{now}fetch line {line}'s {'texel' if texel else 'element'} behind line {behind}, into a register of its "
            f"own, with its address computed there{also}: {counted(then.clauses, 'clause')} instead of "
            f"{clauses}; a turn takes {then.clocks:.0f} clocks {turn}"
        )

    def as_dict(self) -> dict:
        """The numbers for JSON; ``together`` is None where no line is known to move."""
        then = self.together and _turn(self.together)._asdict()
        return self.turn._asdict() | {"together": then, "moves": [list(move) for move in self.moves]}


def fetch_order(code: Code, style: str = "amd") -> FetchOrder:
    """What the order of the fetches costs in ``code``, which was compiled in ``style``."""
    program, moves = gathered(code.program)
    turn = _turn(code)
    with suppress(CompileError):  # it needs more registers than there are
        if moves and _turn(together := STYLES[style](program, code.device)) < turn:
            return FetchOrder(turn, together, moves)
    return FetchOrder(turn, None, ())


def _turn(code: Code) -> Turn:
    sizes = [len(c.fetches) for c in code.main_loop if c.fetches]
    card = code.card()
    clauses = card.alu_clauses, card.tex_clauses
    takes = turn_clocks(code.device, card.loop_bundles, card.fetches, clauses, code.gprs)
    return Turn(len(sizes), sizes.count(1), max(takes.values()))


def gathered(program: Program) -> tuple[Program, tuple[tuple[int, int], ...]]:
    """The program with its reads moved up, and which lines moved behind which."""
    fresh = max(program.registers, default=0) + 1
    body: list[Instruction] = []
    moves: list[tuple[int, int]] = []
    first = end = line = -1  # the read that others move up to, and in the new body where they go and behind which line
    for at, i in enumerate(program.body):
        if i.op.flow not in ("", "break", "continue") or i.op.kind == "fence":
            first = -1
        read = _reads(i)
        if read and (first < 0 or end == len(body)):
            first, end, line = at if first < 0 else first, len(body) + 1, i.line
        elif read and (before := _moved(program, first, at, fresh)) is not None:
            body[end:end] = before
            end += len(before)
            moves.append((i.line, line))
            fresh += len({str(j.dest.register) for j in before if j.dest})
            copied = Source(Register("r", fresh - 1))
            i = replace(i, opcode="mov", controls=Instruction("mov").controls, sources=(copied,))
        body.append(i)
    whole = (*program.declarations, *body)
    return Program(program.mode, whole, (), program.name, program.lines, whole), tuple(moves)


def _reads(i: Instruction) -> bool:
    """Whether it fetches, or copies an element of global memory to a register."""
    copies = i.opcode == "mov" and i.sources[0].register.kind == "g" and i.shift == 1.0 and not i.saturate
    return bool(i.dest and i.dest.register.kind == "r" and (i.op.kind == "fetch" or copies))


def _moved(program: Program, first: int, at: int, fresh: int) -> list[Instruction] | None:
    """The read ``body[at]`` as it stands behind ``body[first]``, with what its address takes, in registers from
    ``fresh`` on; None where it can't."""
    read, between = program.body[at], program.body[first + 1 : at]
    needs, chain = keys(address_uses(program, read)), [read]
    for j in reversed([program.body[first], *between]):
        stores = j.dest is not None and j.dest.register.kind == "g"
        made = {(j.dest.register.index, c) for c in defines(j)} if j.dest else set()
        if stores and read.op.kind != "fetch":
            return None
        if made & needs:
            if j.op.kind != "alu" or any(s.register.kind == "g" for s in j.sources):
                return None
            chain.insert(0, j)
            needs = needs - made | keys(uses(program, j))
    written = sorted({j.dest.register.index for j in chain[:-1] if j.dest})
    names = {number: Register("r", fresh + n) for n, number in enumerate(written)}

    def new(register: Register) -> Register:
        return names.get(register.index, register) if register.kind == "r" else register

    moves = [(Dest(to), (Source(Register("r", old)),)) for old, to in names.items()]
    copies = [Instruction("mov", *move, line=read.line) for move in moves]
    made_anew = [replace(j.renamed(new), line=read.line) for j in chain]
    made_anew[-1] = replace(made_anew[-1], dest=Dest(Register("r", fresh + len(names))))
    return copies + made_anew
