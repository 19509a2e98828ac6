"""Taint tracking: marks on register components that hold a bad value, reported where it is used.

Copying a value does not count as using it: the mark follows the copy, by ``mov`` to a register or as the operand that
``cmov_logical`` chooses; the operand that it does not choose is ignored. So a macro's arguments, a register that is
copied whole and an unused result raise no alarm. Any other use is reported once. What is computed from the value after
that is tainted, and where a tainted value is an address or a branch's condition, further reports of that instruction
are ``suppressed`` for those work-items: one fault, one report.

``Needs`` tells which components matter, backward from stores, branches and addresses: ``add r0, r1, r2`` reads four,
but where only r0.x is looked at later, only the x of its operands matters. Checks of values keep to what matters, as a
compiler would.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cypresskit.il import Instruction, Program
from cypresskit.il.dataflow import Key, Numbering, Use, backward, defines, is_address, keys, uses
from cypresskit.machine.checks.findings import Check, Naming
from cypresskit.machine.observer import StepEvent, WroteEvent


class Needs:
    """``uses[at]``: the register operands of instruction ``at`` of ``program.body``, with the positions that matter;
    ``reads[at]``: the components these name; ``writes[at]``: the components of its result that matter later (all of
    those that are there if it goes to memory); ``start``: what is read somewhere without being set on every way there.
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


needs_of = lru_cache(maxsize=1)(Needs)  # found once for a launch's several checks


@dataclass(eq=False)
class Mark:
    """A bad value: which work-items (bool) hold it, its fault, and whether that has been reported."""

    holders: np.ndarray
    fault: object
    reported: bool = False


@dataclass(eq=False)
class MarkedUse:
    """Uses of marked values that are reported as one: the first component, its fault, and by which work-items."""

    key: Key
    fault: object
    users: np.ndarray


class Marks(Check):
    """A check that marks values. A subclass puts marks on components (``marks``, or ``carried`` for the result of the
    running instruction); ``report_use`` reports the use of one, and uses that are the ``same`` are reported once."""

    def __init__(self, naming: Naming):
        super().__init__(naming)
        widths = tuple((f"o{n}", output.texel // 4) for n, output in self.launch.outputs.items())
        self.needs = needs_of(self.program, widths)
        self.marks: dict[Key, list[Mark]] = {}
        self.carried: dict[int, list[Mark]] = {}  # what the running instruction brings: component of its result
        self.used: dict[object, MarkedUse] = {}  # what it uses, by ``same``

    def report_use(self, at: int, key: Key, fault, users: np.ndarray) -> None:
        """Report that instruction ``at`` uses a marked component."""
        raise NotImplementedError

    def same(self, key: Key, fault):
        """The key by which two uses in an instruction are one fault."""
        raise NotImplementedError

    def copied(self, at: int, fault):
        """The fault as a copy by instruction ``at`` carries it on."""
        return fault

    def spares(self, i: Instruction) -> bool:
        """Whether an instruction may use a marked value."""
        return False

    def step(self, event: StepEvent) -> None:
        self.carried, self.rows = {}, event.rows
        if not self.marks or self.needs.reads[event.at].isdisjoint(self.marks):
            return
        i, self.used = event.instruction, {}
        for n, source, positions in self.needs.uses[event.at]:
            passed = i.op.copies and n in i.op.passed
            for p in positions:
                key = source.register.index, "xyzw".find(source.swizzle[p])
                for mark in tuple(self.marks.get(key, ())):
                    users = mark.holders & event.active
                    if passed and len(i.op.sources) > 1:
                        users &= (self.rows(i.sources[0], i.sources[0].swizzle[p])[0] != 0) == (n == 1)
                    if not users.any():
                        continue
                    if passed and i.dest is not None and i.dest.register.kind == "r":
                        self._carry(self.carried, p, Mark(users, self.copied(event.at, mark.fault), mark.reported))
                    else:
                        self._use(event.at, i, n, p, key, mark, users)
        for use in self.used.values():
            self.report_use(event.at, use.key, use.fault, use.users)

    def _use(self, at: int, i: Instruction, n: int, p: int, key: Key, mark: Mark, users: np.ndarray) -> None:
        """Note the use of a mark by these work-items, and taint the result; what was reported before only taints."""
        if not mark.reported and not self.spares(i):
            use = self.used.setdefault(self.same(key, mark.fault), MarkedUse(key, mark.fault, users))
            use.users = use.users | users
            mark.holders = mark.holders & ~users  # they hold a reported mark from here on
            mark = Mark(users, mark.fault, reported=True)
            self._carry(self.marks, key, mark)
        if not mark.reported:
            return
        for c in self.needs.writes[at] if i.op.vector else (p,):
            self._carry(self.carried, c, mark)
        if is_address(i, n):
            self.suppressed[at] = self.suppressed.get(at, False) | users

    @staticmethod
    def _carry(marks: dict, key, mark: Mark) -> None:
        """Add a mark; tainted ones become one."""
        for old in marks.setdefault(key, []):
            if old.reported == mark.reported and (mark.reported or old.fault is mark.fault):
                old.holders = old.holders | mark.holders
                return
        marks[key].append(Mark(mark.holders, mark.fault, mark.reported))

    def wrote(self, event: WroteEvent) -> None:
        if event.register.kind != "r" or not (self.marks or self.carried):
            return
        for c in event.components:
            key = (event.register.index, c)
            old = self.marks.pop(key, [])
            for mark in old:
                mark.holders = mark.holders & ~event.active
            if left := [mark for mark in old if mark.holders.any()] + self.carried.get(c, []):
                self.marks[key] = left
