"""Marks on register components whose value is wrong, told where it is used: nobody set it, or it is no number.

A copy is no use: ``mov`` to a register and the operand that ``cmov_logical`` chooses carry the mark along, what it does
not choose is not looked at. So a macro's arguments, a register that is copied whole and a value computed in vain raise
no alarm. Whatever else a marked value is used for is told, once. What is computed of it from there on is tainted, and
where a tainted value is an address or decides a branch, the instruction is ``blamed`` for those work-items: other
checks keep silent about what follows there, since one fault is one report.
"""

from dataclasses import dataclass

import numpy as np

from cypresskit.il import Instruction, Source
from cypresskit.machine.checks.needs import Key, Needs
from cypresskit.machine.checks.report import Check, Places
from cypresskit.machine.observer import Step, Wrote

Blamed = dict[int, np.ndarray]  # instruction to work-items (bool) whose address or condition there is known to be wrong


@dataclass(eq=False)
class Mark:
    """Who (bool, one per work-item) has the wrong value, what there is to say of it, and whether that was said."""

    who: np.ndarray
    fault: object
    told: bool = False


class Marks(Check):
    """A check that marks values. A subclass puts marks on components (``marks``, or ``carried`` for the result of the
    running instruction), and ``tell`` reports the use of one; what is the ``same`` is told in one report."""

    def __init__(self, places: Places, needs: Needs, blamed: Blamed):
        super().__init__(places)
        self.needs, self.blamed = needs, blamed
        self.marks: dict[Key, list[Mark]] = {}
        self.carried: dict[int, list[Mark]] = {}  # what the running instruction brings: component of its result
        self.used: dict = {}  # what it uses: the first component, its fault, and by whom

    def tell(self, at: int, key: Key, fault, who: np.ndarray) -> None:
        """Report that instruction ``at`` uses a marked component."""
        raise NotImplementedError

    def same(self, key: Key, fault):
        """What two uses in an instruction have in common if they are one fault."""
        raise NotImplementedError

    def copied(self, at: int, fault):
        """The fault as a copy by instruction ``at`` carries it on."""
        return fault

    def step(self, event: Step) -> None:
        self.carried, self.registers = {}, event.registers
        if not self.marks or self.needs.reads[event.at].isdisjoint(self.marks):
            return
        i = event.instruction
        self.used = {}
        for n, source, positions in self.needs.uses[event.at]:
            keys = [(source.register.index, "xyzw".find(source.swizzle[p])) for p in positions]
            chooses = i.op.name == "cmov_logical" and n > 0
            copies = (chooses or i.op.name == "mov") and i.dest is not None and i.dest.register.kind == "r"
            for p, key in zip(positions, keys, strict=True):
                for mark in tuple(self.marks.get(key, ())):
                    who = mark.who & event.active
                    if chooses:
                        who &= (self.bits(i.sources[0], i.sources[0].swizzle[p]) != 0) == (n == 1)
                    if not who.any():
                        continue
                    if copies:
                        self._carry(self.carried, p, Mark(who, self.copied(event.at, mark.fault), mark.told))
                    else:
                        self._use(event.at, i, n, p, key, mark, who)
        for key, fault, who in self.used.values():
            self.tell(event.at, key, fault, who)

    def _use(self, at: int, i: Instruction, n: int, p: int, key: Key, mark: Mark, who: np.ndarray) -> None:
        if not mark.told and not self.spares(i):
            first = self.used.setdefault(self.same(key, mark.fault), [key, mark.fault, who])
            first[2] = first[2] | who
            mark.who = mark.who & ~who
            self._carry(self.marks, key, mark := Mark(who, mark.fault, True))
        if not mark.told:
            return
        for c in self.needs.writes[at] if i.op.vector else (p,):
            self._carry(self.carried, c, mark)
        vector = i.op.name.endswith("vec")
        if n < 0 or i.op.flow or i.op.kind == "fetch" or (i.op.kind == "lds" and n < 1 + vector):
            self.blamed[at] = self.blamed.get(at, False) | who

    def spares(self, i: Instruction) -> bool:
        """Whether an instruction may use a marked value."""
        return False

    @staticmethod
    def _carry(marks: dict, key, mark: Mark) -> None:
        """Add a mark; tainted ones become one."""
        for old in marks.setdefault(key, []):
            if old.told == mark.told and (mark.told or old.fault is mark.fault):
                old.who = old.who | mark.who
                return
        marks[key].append(Mark(mark.who, mark.fault, mark.told))

    def wrote(self, event: Wrote) -> None:
        if event.register.kind != "r" or not (self.marks or self.carried):
            return
        for c in event.components:
            key = (event.register.index, c)
            old = self.marks.pop(key, [])
            for mark in old:
                mark.who = mark.who & ~event.active
            if left := [mark for mark in old if mark.who.any()] + self.carried.get(c, []):
                self.marks[key] = left

    def bits(self, source: Source, letter: str) -> np.ndarray:
        """One component of an operand as 32-bit patterns, without modifiers: uint32, one per work-item or one for all.
        Registers are as they were before the running instruction."""
        register = source.register
        if letter in "01":
            return np.array([0x3F800000 if letter == "1" else 0], np.uint32)
        c = "xyzw".index(letter)
        if register.kind == "r":
            return self.registers[register.index][c]
        if register.kind == "l":
            return np.array([self.program.literals[register.index][c]], np.uint32)
        if register.kind == "cb":
            return self.launch.constants[register.index][register.element][c : c + 1]
        if register.kind != "g":
            return self.launch.ids[register.kind][c]
        memory = self.launch.global_memory
        assert memory is not None
        place = np.array([register.element], np.int64)
        if register.address is not None:
            place = place + self.bits(register.address, register.address.swizzle[0]).view(np.int32)
        inside = (place >= 0) & (place < len(memory))
        found = np.zeros(len(place), np.uint32)
        found[inside] = memory[place[inside], c]
        return found
