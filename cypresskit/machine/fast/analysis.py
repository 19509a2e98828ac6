"""All that is known of a program before it is translated: how its registers are stored, and NaN
canonicalisation.

Registers are stored in *cells* of one component, of one double, or of a whole register. Webs of a
register's components are joined by how the program uses them: doubles become pairs of words, and a
register of four components that is computed with as a whole becomes one vector of all lanes'
components. What is uniform, an address, or tested stays a component by itself.

A NaN that arithmetic makes is the canonical one, but hosts make others. To repair every result
would halve the speed of a multiply-add, so it is done only where the difference can be observed:
bits that are stored, or computed with as integers.
"""

import struct
from collections import defaultdict
from dataclasses import dataclass

from cypresskit.il import Instruction, Program
from cypresskit.il.dataflow import components, defines, is_address
from cypresskit.il.program import LETTERS
from cypresskit.machine.fast.uniformity import Uniformity, literal
from cypresskit.machine.fast.webs import Webs


@dataclass(frozen=True)
class Cell:
    """Storage of components of a register: ``n`` lanes (0: one value for all) of ``kind`` "i32", or
    "i64" for xy or zw as a double; ``wide``: four components of every lane, one lane after the
    other.
    """

    kind: str
    n: int
    components: tuple[int, ...]
    name: str
    wide: bool = False

    @property
    def double(self) -> bool:
        """Whether it holds 64 bits."""
        return self.kind == "i64"

    @property
    def part(self) -> tuple:
        """The part of a register that it holds; no two cells of one part are live at once."""
        return self.name.split("_")[0], self.kind, self.n, self.components


def cells(webs: Webs, uniformity: Uniformity, doubles: bool) -> dict[int, Cell]:
    """The cell of each web, by its representative; joins webs that share one."""
    _join_doubles(webs) if doubles else _join_registers(webs, uniformity)
    parts: dict[int, set[int]] = {}
    named = [(web, c) for (_, c), web in webs.defined.items()] + [
        (w, c) for (_, _, c), w in webs.used.items()
    ]
    for web, c in named:
        parts.setdefault(webs.find(web), set()).add(c)
    uniformity.merge()
    by_root = {}
    for root, members in parts.items():
        n = uniformity.lanes if uniformity.of_web(root) else 0
        several = len(members) > 1
        whole_register = several and not doubles
        by_root[root] = Cell(
            "i64" if several and doubles else "i32",
            4 * uniformity.lanes if whole_register else n,
            tuple(sorted(members)),
            f"r{webs.register[root]}_{root}",
            wide=whole_register,
        )
    return by_root


def _join_registers(webs: Webs, uniformity: Uniformity) -> None:
    """Make one web of components that one instruction writes together."""
    narrow = _narrow(webs, uniformity)
    for at, i in enumerate(webs.body):
        if len(defines(i)) >= 3:
            together = [
                webs.defined[at, c]
                for c in defines(i)
                if webs.find(webs.defined[at, c]) not in narrow
            ]
            for web in together[1:] if len(together) >= 3 else ():
                webs.union(together[0], web)


def _narrow(webs: Webs, uniformity: Uniformity) -> set[int]:
    """Webs that are better kept component by component: uniform ones, addresses, tests, results of
    small masks.
    """
    narrow = {webs.find(w) for w in webs.defined.values() if not uniformity.of_web(w)}
    for at, i in enumerate(webs.body):
        for n, source, positions in webs.uses[at]:
            if source.register.kind == "r" and is_address(i, n):
                narrow.update(webs.find(webs.used[at, n, c]) for c in components(source, positions))
        if len(defines(i)) in (1, 2) and i.op.kind == "alu":
            narrow.update(webs.find(webs.defined[at, c]) for c in defines(i))
    return narrow


def _join_doubles(webs: Webs) -> None:

    def join(pair: list[int], letters: list[int]) -> None:
        if letters in ([0, 1], [2, 3]):
            webs.union(pair[0], pair[1])

    for at, i in enumerate(webs.body):
        for n, source, positions in webs.uses[at]:
            if source.register.kind == "r" and i.op.double and n >= 0 and i.op.sources[n] == "d":
                letters = components(source, positions)
                join([webs.used[at, n, c] for c in letters], letters)
        for p in (0, 2) if i.op.result == "d" else ():
            if {p, p + 1} <= set(defines(i)):
                join([webs.defined[at, p], webs.defined[at, p + 1]], [p, p + 1])
    copies = _copied_pairs(webs)
    changed = True
    while changed:  # a copy between halves of registers hands on whether they are kept as doubles
        changed = False
        for origin, target in copies:
            joined = [webs.find(pair[0]) == webs.find(pair[1]) for pair in (origin, target)]
            if any(joined) and not all(joined):
                webs.union(*(target if joined[0] else origin))
                changed = True


def _copied_pairs(webs: Webs) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The webs of halves of registers that a mov copies, as they are, to halves of registers."""
    copies = []
    for at, i in enumerate(webs.body):
        if i.opcode == "mov" and i.sources[0].register.kind == "r" and i.dest:
            for c in (0, 2):
                letters = i.sources[0].swizzle[c : c + 2]
                if (
                    {c, c + 1} <= set(defines(i))
                    and letters in ("xy", "zw")
                    and i.dest.mask[c : c + 2] in ("xy", "zw")
                ):
                    first = LETTERS.index(letters[0])
                    origin = webs.used[at, 0, first], webs.used[at, 0, first + 1]
                    copies.append((origin, (webs.defined[at, c], webs.defined[at, c + 1])))
    return copies


class Analysis:
    """Webs, uniformity, cells and NaN of a program. Work-items run in lockstep, as ``lanes`` of
    vectors; or alone, if some may take another way than its neighbours. ``kinds`` of a web's
    representative: "f" single and "d" double results whose NaN may be any, "b" bits that must be
    kept. A cell of one arithmetic kind is made canonical where its bits are observed; in a mixed
    one that isn't possible any more, so the results in ``canonical_at_definition`` are made
    canonical when they are written. ``written`` and ``read``: the cells that each instruction
    writes and reads.
    """

    def __init__(self, program: Program):
        self.program = program
        self.body = program.body
        self.doubles = any(i.op.double for i in self.body)
        for lanes in (8 if self.doubles else 4, 1):
            self.lanes = lanes
            self.webs = Webs(program)
            self.uniformity = Uniformity(program, self.webs, self.lanes)
            self.cell_of = cells(self.webs, self.uniformity, self.doubles)
            if not self.uniformity.diverges:
                break
        self.written = [{self.defined(at, c) for c in defines(i)} for at, i in enumerate(self.body)]
        self.read = [self._cells_read(at) for at in range(len(self.body))]
        self.kinds: dict[int, set[str]] = defaultdict(set)
        self._find_kinds()
        self.canonical_at_definition = {
            root for root, kinds in self.kinds.items() if len(kinds) > 1
        }

    def cell(self, web: int) -> Cell:
        """The cell of a web."""
        return self.cell_of[self.webs.find(web)]

    def defined(self, at: int, c: int) -> Cell:
        """The cell of component ``c`` of the result of ``at``."""
        return self.cell(self.webs.defined[at, c])

    def mixed(self, at: int, c: int) -> bool:
        """Whether component ``c`` of the result of ``at`` is made canonical when it is written."""
        return self.webs.find(self.webs.defined[at, c]) in self.canonical_at_definition

    def plain(self, at: int, n: int, k: int) -> Cell | None:
        """The cell that source ``n`` of ``at`` reads at position ``k``, if it is a register's
        component and no more.
        """
        source = self.body[at].sources[n]
        if source.register.kind != "r" or source.modified or source.swizzle[k] not in LETTERS:
            return None
        web = self.webs.used.get((at, n, LETTERS.index(source.swizzle[k])))
        return None if web is None else self.cell(web)

    def _cells_read(self, at: int) -> set[Cell]:
        return {
            self.cell(self.webs.used[at, n, c])
            for n, source, positions in self.webs.uses[at]
            for c in components(source, positions)
            if source.register.kind == "r"
        }

    def added(self, at: int, c: int) -> int | None:
        """The whole number that ``at`` adds to component ``c`` of its result, as `add r0.x, r0.x,
        l0.x` does; None if it does anything else.
        """
        i = self.body[at]
        if (
            i.opcode != "add"
            or i.shift != 1.0
            or i.saturate
            or not i.dest
            or i.dest.mask[c] in "01"
        ):
            return None
        bits = literal(self.program, i.sources[1], c)
        if bits is None or self.plain(at, 0, c) != self.defined(at, c):
            return None
        (value,) = struct.unpack("<f", struct.pack("<I", bits))
        return int(value) if value % 1 == 0 else None

    # NaN

    def _find_kinds(self) -> None:
        moves: list[tuple[int, int]] = []  # the plain copies, as (source, destination)
        for at, i in enumerate(self.body):
            self._definition_kinds(at, i, moves)
        changed = True
        while changed:
            changed = False
            for source, target in moves:
                before = len(self.kinds[target])
                self.kinds[target] |= self.kinds[source]
                changed |= len(self.kinds[target]) > before

    def _definition_kinds(self, at: int, i: Instruction, moves: list[tuple[int, int]]) -> None:
        for c in defines(i):
            root = self.webs.find(self.webs.defined[at, c])
            kinds = self.kinds[root]
            if i.dest and i.dest.mask[c] in "01":
                if self.cell_of[root].double:  # beside half of an infinity it looks like a NaN
                    kinds.add("b")
                continue
            if i.op.result == "d":
                kinds.add("d" if self.cell_of[root].double else "b")
            elif self.arithmetic(i):
                kinds.add("b" if self.cell_of[root].double else "f")
            elif self.copies(i):
                for n in i.op.passed:
                    self._copy_kinds(at, n, c, root, moves)
            else:
                kinds.add("b")

    def _copy_kinds(self, at: int, n: int, c: int, root: int, moves: list[tuple[int, int]]) -> None:
        source = self.body[at].sources[n]
        value = literal(self.program, source, c)
        if value is not None:
            if value & 0x7F800000 == 0x7F800000 or value >> 20 & 0x7FF == 0x7FF:
                self.kinds[root].add("b")
        elif source.register.kind == "r" and not source.modified and self._keeps_kind(at, n, c):
            moves.append(
                (self.webs.find(self.webs.used[at, n, LETTERS.index(source.swizzle[c])]), root)
            )
        else:
            self.kinds[root].add("b")

    @staticmethod
    def copies(i: Instruction) -> bool:
        """Whether ``i`` passes bits on unchanged."""
        return i.op.copies and i.shift == 1.0 and not i.saturate

    def passes_on(self, at: int) -> bool:
        """Whether ``at`` copies into a cell whose results are made canonical when they are
        written.
        """
        return self.copies(self.body[at]) and any(self.mixed(at, c) for c in defines(self.body[at]))

    def _keeps_kind(self, at: int, n: int, c: int) -> bool:
        """Whether component ``c`` of a copy goes from single words to single words, or with its
        whole double.
        """
        i = self.body[at]
        origin = self.cell(self.webs.used[at, n, LETTERS.index(i.sources[n].swizzle[c])])
        first = c & 2
        whole = i.dest and i.dest.mask[first : first + 2] in ("xy", "zw")
        whole = whole and i.sources[n].swizzle[first : first + 2] in ("xy", "zw")
        return origin.double == self.defined(at, c).double and (not origin.double or bool(whole))

    @staticmethod
    def arithmetic(i: Instruction) -> bool:
        """Whether ``i`` gives single-precision results that may be an uncanonical NaN."""
        return i.op.kind == "alu" and not i.saturate and (i.op.result == "f" or i.shift != 1.0)

    def observes(self, at: int, n: int, root: int) -> bool:
        """Whether the use of source ``n`` depends on the NaN payloads in the cell ``root``, all of
        one kind.
        """
        i = self.body[at]
        if n < 0:
            return True
        source = i.sources[n]
        expected = i.op.sources[n]
        if expected in (
            "f",
            "d",
        ):  # a misaligned or swapped pair of words is not one double: treat it as raw bits
            return {expected} != self.kinds[root] or (
                expected == "d" and source.swizzle[:2] not in ("xy", "zw")
            )
        if not self.copies(i) or source.modified or not i.dest or i.dest.register.kind != "r":
            return True
        # where the copy is of the same kind, its own cell answers for it
        copied = [
            c
            for c in i.dest.written
            if source.register.kind == "r" and source.swizzle[c] in LETTERS
        ]
        return not all(self._keeps_kind(at, n, c) for c in copied)
