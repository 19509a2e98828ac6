"""Where values come from and go to: liveness, and the webs of definitions and uses that share one storage cell.

IL registers are reused for unrelated values: one component may be a loop's test here and an address there. A *web* is
a set of definitions and uses of one register component that belong together: definitions which reach a common use are
in one web. Everything else that is known about values (is it the same for the whole quad, who sees its bits) is known
per web, without regard to the place in the program.
"""

from collections.abc import Iterator

from cypresskit.il import Instruction, Program, Source

Use = tuple[int, Source, tuple[int, ...]]  # number of the source (-1: address of the result), source, positions read


def uses(program: Program, i: Instruction) -> Iterator[Use]:
    """The register operands that ``i`` reads, addresses of ``g[]`` included: those have number -1 - n for source n,
    and -9 for the result's."""
    for n, source in enumerate(i.sources):
        positions = read_positions(program, i, n)
        if source.register.kind == "g":
            if source.register.address is not None:
                yield -1 - n, source.register.address, (0,)
        elif positions:
            yield n, source, positions
    if i.dest and i.dest.register.address is not None:
        yield -9, i.dest.register.address, (0,)


def read_positions(program: Program, i: Instruction, n: int) -> tuple[int, ...]:
    """The positions of source ``n`` that matter."""
    op = i.op
    if op.kind == "fetch":
        return (0, 1)[: program.textures[int(i.control("resource"))].dimensions]
    if op.kind == "lds":
        struct, vector = bool(program.lds[int(i.control("id"))][0]), op.name.endswith("vec")
        if n == 0:
            return (0, 1) if struct and not vector else (0,)
        if n == 1 and vector:
            return (0,) if struct else ()
        return i.dest.written if vector and i.dest else (0,)
    if op.kind != "alu":
        return (0,)
    if op.double:
        return (0, 1) if op.sources[n] == "d" else (0,)
    if op.name == "dp4":
        return (0, 1, 2, 3)
    return (i.dest.written if i.dest else ()) or (0,)


def defines(i: Instruction) -> tuple[int, ...]:
    """The components of an ``r`` register that ``i`` writes, constants of the mask included."""
    if not i.dest or i.dest.register.kind != "r":
        return ()
    return tuple(c for c in range(4) if i.dest.mask[c] != "_")


def letters(source: Source, positions: tuple[int, ...]) -> list[int]:
    """The components of the register that the positions name; constants 0 and 1 of a swizzle are left out."""
    return ["xyzw".index(source.swizzle[p]) for p in positions if source.swizzle[p] in "xyzw"]


def successors(program: Program, at: int) -> tuple[int, ...]:
    """Where control may go from ``at``; len(program.body) is the end."""
    i, match = program.body[at], program.matching
    flow = i.op.flow
    if flow == "if":
        return at + 1, match[at] + 1
    if flow == "else":
        return (match[at],)
    if flow == "endloop":
        return (match[at] + 1,)
    if flow in ("break", "continue"):
        target = match[match[at]] + 1 if flow == "break" else match[at] + 1
        return (at + 1, target) if i.sources else (target,)
    return (at + 1,)


class Webs:
    """Liveness and webs of a program.

    ``live[at]`` is a bit set of components (4 * register slot + component) that are live before instruction ``at``;
    ``defined[at, component]`` and ``used[at, n, component]`` name a web; ``entry`` the webs that are live at the start.
    """

    def __init__(self, program: Program):
        self.program, self.body = program, program.body
        self.slot = {number: 4 * k for k, number in enumerate(program.registers)}
        self.count = 4 * len(self.slot)
        self.parent = list(range(self.count))
        self.register = [number for number in program.registers for _ in range(4)]
        self.uses = [list(uses(program, i)) for i in self.body]
        self._reads = [self._read_bits(at) for at in range(len(self.body))]
        self._writes = [
            sum(1 << (self.slot[i.dest.register.index] + c) for c in defines(i)) if i.dest else 0 for i in self.body
        ]
        self.live = self._liveness()
        self.defined: dict[tuple[int, int], int] = {}
        self.used: dict[tuple[int, int, int], int] = {}
        self._walk()
        self.entry = [self.find(c) for c in range(self.count) if self.live[0] >> c & 1]

    def find(self, web: int) -> int:
        """The web's representative."""
        while self.parent[web] != web:
            self.parent[web] = self.parent[self.parent[web]]
            web = self.parent[web]
        return web

    def union(self, a: int, b: int) -> None:
        """Make one web of two."""
        self.parent[self.find(b)] = self.find(a)

    def _read_bits(self, at: int) -> int:
        bits = 0
        for _, source, positions in self.uses[at]:
            if source.register.kind == "r":
                for c in letters(source, positions):
                    bits |= 1 << (self.slot[source.register.index] + c)
        return bits

    def _liveness(self) -> list[int]:
        live = [0] * (len(self.body) + 1)
        following = [successors(self.program, at) for at in range(len(self.body))]
        changed = True
        while changed:
            changed = False
            for at in range(len(self.body) - 1, -1, -1):
                after = 0
                for successor in following[at]:
                    after |= live[successor]
                before = self._reads[at] | (after & ~self._writes[at])
                if before != live[at]:
                    live[at], changed = before, True
        return live

    def live_after(self, at: int) -> int:
        """Components live after ``at`` on any way."""
        after = 0
        for successor in successors(self.program, at):
            after |= self.live[successor]
        return after

    def _merge(self, first: list[int], second: list[int], at: int) -> None:
        live = self.live[at]
        for c in range(self.count):
            if first[c] != second[c] and live >> c & 1:
                self.union(first[c], second[c])

    def _walk(self) -> None:
        environment = list(range(self.count))
        blocks: list[list] = []  # [role, environment at the opener or of the then branch, environments of breaks]
        for at, i in enumerate(self.body):
            for n, source, positions in self.uses[at]:
                if source.register.kind == "r":
                    base = self.slot[source.register.index]
                    for c in letters(source, positions):
                        self.used[at, n, c] = environment[base + c]
            for c in defines(i):
                web = len(self.parent)
                self.parent.append(web)
                self.register.append(i.dest.register.index)  # type: ignore[union-attr]
                environment[self.slot[i.dest.register.index] + c] = self.defined[at, c] = web  # type: ignore[union-attr]
            flow = i.op.flow
            if flow in ("if", "loop"):
                blocks.append([flow, list(environment), []])
            elif flow == "else":
                blocks[-1][1], environment = environment, blocks[-1][1]
            elif flow == "endif":
                self._merge(environment, blocks.pop()[1], at + 1)
            elif flow in ("break", "continue"):
                loop = next(block for block in reversed(blocks) if block[0] == "loop")
                if flow == "break":
                    loop[2].append(list(environment))
                else:
                    self._merge(loop[1], environment, self.program.matching[at] + 1)
            elif flow == "endloop":
                _, start, exits = blocks.pop()
                self._merge(start, environment, self.program.matching[at] + 1)
                if exits:
                    environment = exits[0]
                    for other in exits[1:]:
                        self._merge(environment, other, at + 1)
