"""How registers are stored: cells of one component, of one double, or of a whole register.

Webs of a register's components are joined by how the program uses them: doubles become pairs of words, and a register
of four components that is computed with as a whole becomes one vector of all lanes' components. What is uniform, an
address, or tested stays a component by itself.
"""

from dataclasses import dataclass

from cypresskit.il.dataflow import components, defines, is_address
from cypresskit.machine.fast.defuse import Webs
from cypresskit.machine.fast.variation import Variation


@dataclass(frozen=True)
class Cell:
    """Storage of components of a register: ``n`` lanes (0: one value for all) of ``kind`` "i32", or "i64" for xy or zw
    as a double; ``wide``: four components of every lane, one lane after the other."""

    kind: str
    n: int
    components: tuple[int, ...]
    name: str
    wide: bool = False

    @property
    def double(self) -> bool:
        """Whether it holds 64 bits."""
        return self.kind == "i64"


def cells(webs: Webs, variation: Variation) -> dict[int, Cell]:
    """The cell of each web, by its representative; joins webs that share one."""
    _join_doubles(webs) if variation.doubles else _join_registers(webs, variation)
    parts: dict[int, set[int]] = {}
    named = [(web, c) for (_, c), web in webs.defined.items()] + [(w, c) for (_, _, c), w in webs.used.items()]
    for web, c in named:
        parts.setdefault(webs.find(web), set()).add(c)
    variation.merge()
    found = {}
    for root, members in parts.items():
        n = variation.lanes if variation.of_web(root) else 0
        several = len(members) > 1
        wide = several and not variation.doubles
        found[root] = Cell(
            "i64" if several and variation.doubles else "i32",
            4 * variation.lanes if wide else n,
            tuple(sorted(members)),
            f"r{webs.register[root]}_{root}",
            wide,
        )
    return found


def _join_registers(webs: Webs, variation: Variation) -> None:
    """Make one web of components that one instruction writes together."""
    narrow = _narrow(webs, variation)
    for at, i in enumerate(webs.body):
        if len(defines(i)) >= 3:
            wide = [webs.defined[at, c] for c in defines(i) if webs.find(webs.defined[at, c]) not in narrow]
            for web in wide[1:] if len(wide) >= 3 else ():
                webs.union(wide[0], web)


def _narrow(webs: Webs, variation: Variation) -> set[int]:
    """Webs that are better kept component by component: uniform ones, addresses, tests, results of small masks."""
    found = {webs.find(w) for w in webs.defined.values() if not variation.of_web(w)}
    for at, i in enumerate(webs.body):
        for n, source, positions in webs.uses[at]:
            if source.register.kind == "r" and is_address(i, n):
                found.update(webs.find(webs.used[at, n, c]) for c in components(source, positions))
        if len(defines(i)) in (1, 2) and i.op.kind == "alu":
            found.update(webs.find(webs.defined[at, c]) for c in defines(i))
    return found


def _join_doubles(webs: Webs) -> None:
    """Make one web of the two words of each double."""

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
                if {c, c + 1} <= set(defines(i)) and letters in ("xy", "zw") and i.dest.mask[c : c + 2] in ("xy", "zw"):
                    first = "xyzw".index(letters[0])
                    origin = webs.used[at, 0, first], webs.used[at, 0, first + 1]
                    copies.append((origin, (webs.defined[at, c], webs.defined[at, c + 1])))
    return copies
