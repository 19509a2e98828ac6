"""Values that nobody set: registers, and LDS words loaded before a store; reported where the value is used (``Marks``).

Only components that matter (``Needs``) are looked at, and only those which some way through the program leaves unset
are tracked: most kernels have none. A load from LDS is no use of the word: its result is marked.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from cypresskit.il.dataflow import Key, defines
from cypresskit.machine.checks.findings import Naming
from cypresskit.machine.checks.marks import Mark, Marks
from cypresskit.machine.observer import MemoryEvent


@dataclass(frozen=True, eq=False)
class _Unset:
    """The source of an unset value: a register's component, or an LDS array and byte addresses."""

    source: Key | None
    copied: int = -1  # by the instruction that copied it first
    array: int = 0
    addresses: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))


class UninitialisedCheck(Marks):
    """Reports the use of registers and LDS words that were never set."""

    def __init__(self, naming: Naming):
        super().__init__(naming)
        items, group_items = self.launch.items, self.launch.group_items
        self.marks = {key: [Mark(np.ones(items, bool), _Unset(key))] for key in self.needs.start}
        self.group, groups = np.arange(items) // group_items, items // group_items
        self.stored = {n: np.zeros((groups, size // 4), bool) for n, (_, size) in self.program.lds.items()}

    def memory(self, event: MemoryEvent) -> None:
        if event.space != "lds":
            return
        stored, i = self.stored[event.array], self.program.body[event.at]
        lost = event.active & ((event.element & 3 != 0) | self.suppressed.get(event.at, False))
        if event.store and lost.any():  # reported as out of bounds already
            stored[self.group[lost]] = True
        there = np.flatnonzero(event.active & event.inside & ~lost)
        for word in event.words:
            looked = self.group[there], (event.element[there] >> 2) + word
            missing = ~stored[looked]
            if event.store:
                stored[looked] = True
            elif missing.any() and i.dest:
                bad = np.zeros(self.launch.items, bool)
                bad[there[missing]] = True
                unset = _Unset(None, event.at, event.array, (event.element & ~3) + 4 * word)
                if i.dest.register.kind != "r":
                    self.report_use(event.at, None, unset, bad)
                for c in (word,) if i.op.words > 1 else self.needs.writes[event.at]:
                    self.carried.setdefault(c, []).append(Mark(bad, unset))

    def copied(self, at: int, fault: _Unset) -> _Unset:
        return replace(fault, copied=at) if fault.copied < 0 else fault

    def same(self, key: Key, fault: _Unset):
        return key[0], fault.source and fault.source[0]

    def report_use(self, at: int, key: Key | None, unset: _Unset, users: np.ndarray) -> None:
        bad = np.flatnonzero(users)
        item, name = int(bad[0]), _named(key) if key else ""
        if unset.source is None:
            element = self.naming.lds(unset.array, int(unset.addresses[item]))
            uses = f"uses {name}, loaded from" if key else "stores what it loads from"
            does = f"{uses} {element}, where nobody stored before"
            advice = "Store to it first, with `fence_threads_lds` between, or load from another place."
        else:
            element = _named(unset.source)
            copied = f", a copy of {element}," if element != name else ""
            does = f"uses {name}{copied} which was never set"
            advice = self._setters(at if unset.copied < 0 else unset.copied, unset.source)
        message, memory = f"{self.naming.item(item)} {does}", element.split(".")[0].split("[")[0]
        word = f",{name[:-2]}" if name else ""
        more: dict = {"count": len(bad), "word": word, "item": item, "element": element}
        self.report("uninitialised", at, message, advice, key=(memory,), **more)

    def _setters(self, at: int, source: Key) -> str:
        name, body = _named(source), self.program.body
        sets = {n: defines(i) for n, i in enumerate(body) if i.dest and i.dest.register.index == source[0]}
        full = [n for n, components in sets.items() if source[1] in components]
        partial = [n for n, components in sets.items() if components and n not in full]
        if not full and partial:
            return f"Line {body[partial[0]].line} sets {name[:-2]} without its {name[-1]}: widen the mask there?"
        if not full:
            return f"No line sets {name}. A wrong number, or a forgotten `mov {name}, l0.x` before?"
        if min(full) >= at:
            later = [body[n].line for n in full if n > at]
            setter = f"Line {later[0]} sets it, which comes later" if later else "Only this line sets it"
            return f"{setter}: give it a first value before the loop."
        return f"Line {body[full[0]].line} sets it, but not every work-item comes there: set it before the branch."


def _named(key: Key) -> str:
    """``r1.x``."""
    return f"r{key[0]}.{'xyzw'[key[1]]}"
