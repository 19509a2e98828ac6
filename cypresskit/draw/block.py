"""Find the register block of a recorded run: which registers hold the block of C, A's column and
B's row.

The origin of every register component is traced. A fetch gives it a place in a matrix, a copy
passes that place on, anything else erases it. A multiply-add that adds to its own destination and
multiplies elements of two different matrices is part of a rank-1 update. Of an operand's two
indices, the one that is the same in all updates of an element of the block is its row (of A) or
column (of B) in C; the other is k. Left out: kernels whose operands pass through LDS, and
double-doubles, of which a sum takes many instructions.
"""

from dataclasses import dataclass
from functools import cached_property

from cypresskit.il import Instruction
from cypresskit.machine.record import Recording

Component = tuple[int, int]  # a register and which of its components
Sum = tuple[Component, Component, Component]  # what grows, and the factors of what is added


@dataclass(frozen=True)
class Origin:
    """An element of a matrix as it is stored: resource number, row, column."""

    resource: int
    row: int
    column: int

    def __getitem__(self, axis: int) -> int:
        return (self.row, self.column)[axis]


@dataclass(frozen=True)
class Update:
    """At ``step``, the register component ``total`` grew by ``a`` times ``b``; each is a (register,
    component).
    """

    step: int
    total: tuple[int, int]
    a: tuple[int, int]
    b: tuple[int, int]
    from_a: Origin
    from_b: Origin


@dataclass(frozen=True, eq=False)
class Block:
    """A register block. ``totals`` maps (row, column) of C to the (register, component) that holds
    it; ``a`` maps (row, phase) and ``b`` (phase, column), where a phase is one of the steps of k
    whose operands are held at the same time. ``k_axis``: for A and for B, whether k is the stored
    row (0) or column (1). ``words``: of a number, 1 or 2.
    """

    totals: dict[tuple[int, int], tuple[int, int]]
    a: dict[tuple[int, int], tuple[int, int]]
    b: dict[tuple[int, int], tuple[int, int]]
    k_axis: tuple[int, int]
    words: int
    updates: tuple[Update, ...]

    @property
    def rows(self) -> range:
        return range(min(i for i, _ in self.totals), max(i for i, _ in self.totals) + 1)

    @property
    def columns(self) -> range:
        return range(min(j for _, j in self.totals), max(j for _, j in self.totals) + 1)

    @property
    def phases(self) -> int:
        return 1 + max(phase for _, phase in self.a)

    @cached_property
    def updates_at(self) -> dict[int, list[Update]]:
        """The updates by step; steps without one are left out."""
        steps: dict[int, list[Update]] = {}
        for update in self.updates:
            steps.setdefault(update.step, []).append(update)
        return steps

    def place(self, update: Update) -> tuple[int, int]:
        """The row and column of C that an update adds to."""
        return update.from_a[1 - self.k_axis[0]], update.from_b[1 - self.k_axis[1]]


class Origins:
    """The matrix element that each register component was fetched from, tracked instruction by
    instruction.
    """

    def __init__(self, recording: Recording, words: int) -> None:
        self.recording, self.words = recording, words
        self.known: dict[tuple[int, int], Origin] = {}
        self._fetched = {int(row[0]): row for row in recording.fetches}
        self._sums = [_sums(i, words) for i in recording.program.body]

    def step(self, step: int) -> list[Update]:
        """Trace one instruction. Returns the updates that it makes to a block."""
        at = self.recording.at[step]
        i = self.recording.program.body[at]
        if i.dest is None or i.dest.register.kind != "r":
            return []
        register, written = i.dest.register.index, i.dest.written
        updates = self._updates(step, self._sums[at])
        new = {}
        if step in self._fetched:
            _, resource, x, y, inside = map(int, self._fetched[step])
            width = self.recording.textures[resource][2]
            for c in written if inside else ():
                new[register, c] = Origin(resource, y, (x * width + c) // self.words)
        elif i.opcode == "mov" and i.sources[0].register.kind == "r" and not i.sources[0].modified:
            source = i.sources[0]
            for c in written:
                if origin := self.known.get(
                    (source.register.index, "xyzw".find(source.swizzle[c]))
                ):
                    new[register, c] = origin
        for c in written:
            self.known.pop((register, c), None)
        self.known.update(new)
        return updates

    def _updates(self, step: int, sums: list[Sum]) -> list[Update]:
        updates = []
        for total, a, b in sums:
            first, second = self.known.get(a), self.known.get(b)
            if first is None or second is None or first.resource == second.resource:
                continue
            if first.resource > second.resource:
                a, b, first, second = b, a, second, first
            updates.append(Update(step, total, a, b, first, second))
        return updates


def _sums(i: Instruction, words: int) -> list[Sum]:
    """The register components that a multiply-add adds to, each with its two factors."""
    if i.dest is None or i.opcode not in (("dmad",) if words == 2 else ("mad", "fma")):
        return []
    plain = all(s.register.kind == "r" and not s.modified for s in i.sources)
    if not plain or i.sources[2].register != i.dest.register:
        return []
    sums = []
    for c in i.dest.written[::words]:
        letters = [s.swizzle[0 if words == 2 else c] for s in i.sources]
        a, b, total = ((s.register.index, "xyzw".find(n)) for s, n in zip(i.sources, letters))
        if total[1] == c:
            sums.append((total, a, b))
    return sums


def find_block(recording: Recording) -> Block:
    """The register block of a recorded run. Raises ``ValueError`` if the run keeps none."""
    opcodes = [i.opcode for i in recording.program.body]
    pairs = opcodes.count("dadd") > opcodes.count("dmad")  # of doubles
    words = 2 if "dmad" in opcodes else 1
    origins = Origins(recording, words)
    updates = [] if pairs else [u for step in range(len(recording)) for u in origins.step(step)]
    k_axis = _k_axis(updates, "from_a"), _k_axis(updates, "from_b")
    totals: dict[tuple[int, int], tuple[int, int]] = {}
    operands: tuple[dict[int, list], dict[int, list]] = ({}, {})
    for u in updates:
        i, j = u.from_a[1 - k_axis[0]], u.from_b[1 - k_axis[1]]
        totals[i, j] = u.total
        for cells, index, cell in ((operands[0], i, u.a), (operands[1], j, u.b)):
            if cell not in cells.setdefault(index, []):
                cells[index].append(cell)
    if not totals:
        raise ValueError(
            f"{recording!r} shows no register block: no multiply-add adds a product of elements"
            " fetched from two matrices to its own destination. Kernels that go through LDS can't"
            " be drawn, nor double-doubles, nor single steps of k."
        )
    a = {(i, phase): cell for i, cells in operands[0].items() for phase, cell in enumerate(cells)}
    b = {(phase, j): cell for j, cells in operands[1].items() for phase, cell in enumerate(cells)}
    return Block(totals, a, b, k_axis, words, tuple(updates))


def _k_axis(updates: list[Update], name: str) -> int:
    """The axis of k in an operand, 0 for rows, 1 for columns: the index that varies for one element
    of C.
    """
    seen: dict[tuple[int, int], list[Origin]] = {}
    for u in updates:
        seen.setdefault(u.total, []).append(getattr(u, name))
    return 0 if any(len({o.row for o in origins}) > 1 for origins in seen.values()) else 1
