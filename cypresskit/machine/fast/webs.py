"""Def-use webs: definitions and uses of register components that belong together, and liveness.

IL registers are reused for unrelated values: one component may be a loop's test here and an address
there. A *web* is a set of definitions and uses of one register component that belong together:
definitions which reach a common use are in one web. Everything else that is known about values (is
it the same for the whole gang, who sees its bits) is known per web, without regard to the place in
the program.
"""

from cypresskit.il import Program
from cypresskit.il.dataflow import Numbering, components, defines, liveness, successors, uses


class Webs:
    """Liveness and webs of a program.

    ``live[at]`` is a bit set of components (4 * register slot + component) that are live before
    instruction ``at``; ``defined[at, component]`` and ``used[at, n, component]`` name a web;
    ``entry`` the webs that are live at the start; ``after[at]``, of flow, barriers, and the last
    instructions of branches, the web that each component belongs to there.
    """

    def __init__(self, program: Program):
        self.program = program
        self.body = program.body
        numbering = Numbering(program)
        self.slot = numbering.first
        self.count = 4 * len(self.slot)
        self.parent = list(range(self.count))
        self.register = [number for number in program.registers for _ in range(4)]
        self.uses = [list(uses(program, i)) for i in self.body]
        self.live = liveness(program, numbering)
        self.defined: dict[tuple[int, int], int] = {}
        self.used: dict[tuple[int, int, int], int] = {}
        self.after: dict[int, list[int]] = {}
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

    def live_after(self, at: int) -> int:
        """Components live after ``at`` on any way."""
        after = 0
        for successor in successors(self.program, at):
            after |= self.live[successor]
        return after

    def between(self, at: int, live: int) -> set[int]:
        """Representatives of the webs of the components in ``live`` after ``at``."""
        return {self.find(web) for c, web in enumerate(self.after.get(at, ())) if live >> c & 1}

    def _merge(self, first: list[int], second: list[int], at: int) -> None:
        live = self.live[at]
        for c in range(self.count):
            if first[c] != second[c] and live >> c & 1:
                self.union(first[c], second[c])

    def _walk(self) -> None:
        environment = list(range(self.count))
        blocks: list[
            list
        ] = []  # [role, environment at the opener or of the then branch, environments of breaks]
        for at, i in enumerate(self.body):
            for n, source, positions in self.uses[at]:
                if source.register.kind == "r":
                    base = self.slot[source.register.index]
                    for c in components(source, positions):
                        self.used[at, n, c] = environment[base + c]
            for c in defines(i):
                web = len(self.parent)
                self.parent.append(web)
                self.register.append(i.dest.register.index)  # type: ignore[union-attr]
                environment[self.slot[i.dest.register.index] + c] = self.defined[at, c] = web  # type: ignore[union-attr]
            flow = i.op.flow
            following = self.body[at + 1].op.flow if at + 1 < len(self.body) else ""
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
            if flow or i.op.kind == "fence" or following in ("else", "endif"):
                self.after[at] = list(environment)
