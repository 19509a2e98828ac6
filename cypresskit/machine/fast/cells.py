"""How registers are stored: cells of one component, of one double, or of a whole register.

Webs of a register's components are joined by how the program uses them: doubles become pairs of words, and a register
of four components that is computed with as a whole becomes one vector of all lanes' components. What is uniform, an
address, or tested stays a component by itself.
"""

from dataclasses import dataclass

from cypresskit.il import Program
from cypresskit.machine.fast.flow import defines, letters
from cypresskit.machine.fast.variation import Bits, Variation


@dataclass
class Cell:
    """Storage of one or more components of a register: ``form`` is "scalar" (i32), "lanes" (one component, a vector),
    "scalar64" and "lanes64" (xy or zw as 64 bits), or "wide" (four components of four lanes)."""

    form: str
    components: tuple[int, ...]
    name: str


class Cells(Variation):
    """The cells of a program."""

    def __init__(self, program: Program):
        super().__init__(program)
        self.cell_of: dict[int, Cell] = {}
        self._cells()

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
