"""Values that nobody set: registers, and LDS words loaded before a store; reported where the value is used (``Marks``).

Only components that matter (``Needs``) are looked at, and only those which some way through the program leaves unset
are tracked: most kernels have none. A load from LDS is no use of the word: its result is marked.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from cypresskit.il.dataflow import Key, defines
from cypresskit.machine.checks.findings import Places
from cypresskit.machine.checks.marks import Mark, Marks, Suppressed
from cypresskit.machine.checks.needs import Needs
from cypresskit.machine.observer import MemoryEvent


@dataclass(frozen=True, eq=False)
class _Unset:
    """Where a value should have come from: a register's component, or an LDS block and byte addresses."""

    source: Key | None
    copied: int = -1  # by the instruction that copied it first
    block: int = 0
    bytes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))


class UninitialisedCheck(Marks):
    """Reports the use of registers and LDS words that were never set."""

    def __init__(self, places: Places, needs: Needs, suppressed: Suppressed):
        super().__init__(places, needs, suppressed)
        items = self.launch.items
        self.marks = {key: [Mark(np.ones(items, bool), _Unset(key))] for key in needs.start}
        self.group = np.arange(items) // self.launch.group_items
        groups = items // self.launch.group_items
        self.stored = {n: np.zeros((groups, size // 4), bool) for n, (_, size) in self.program.lds.items()}

    def memory(self, event: MemoryEvent) -> None:
        if event.space != "lds":
            return
        stored, i = self.stored[event.block], self.program.body[event.at]
        lost = event.active & ((event.element & 3 != 0) | self.suppressed.get(event.at, False))
        if event.store and lost.any():  # reported as out of bounds already
            stored[self.group[lost]] = True
        who = np.flatnonzero(event.active & event.inside & ~lost)
        for word in event.words:
            place = (event.element[who] >> 2) + word
            if event.store:
                stored[self.group[who], place] = True
                continue
            missing = ~stored[self.group[who], place]
            if missing.any() and i.dest:
                bad = np.zeros(self.launch.items, bool)
                bad[who[missing]] = True
                unset = _Unset(None, event.at, event.block, (event.element & ~3) + 4 * word)
                if i.dest.register.kind != "r":
                    self.report_use(event.at, None, unset, bad)
                for c in (word,) if i.op.words > 1 else self.needs.writes[event.at]:
                    self.carried.setdefault(c, []).append(Mark(bad, unset))

    def copied(self, at: int, fault: _Unset) -> _Unset:
        return replace(fault, copied=at) if fault.copied < 0 else fault

    def same(self, key: Key, fault: _Unset):
        return key[0], fault.source and fault.source[0]

    def report_use(self, at: int, key: Key | None, unset: _Unset, who: np.ndarray) -> None:
        bad = np.flatnonzero(who)
        item, name = int(bad[0]), f"r{key[0]}.{'xyzw'[key[1]]}" if key else ""
        if unset.source is None:
            element = self.places.lds(unset.block, int(unset.bytes[item]))
            uses = f"uses {name}, loaded from" if key else "stores what it loads from"
            message = f"{self.places.item(item)} {uses} {element}, where nobody stored before"
            advice = "Store to it first, with `fence_threads_lds` between, or load from another place."
        else:
            element = f"r{unset.source[0]}.{'xyzw'[unset.source[1]]}"
            via = "" if element == name else f", a copy of {element},"
            message = f"{self.places.item(item)} uses {name}{via} which was never set"
            advice = self._setters(at if unset.copied < 0 else unset.copied, unset.source)
        self.report("uninitialised", at, message, advice, key=(element.split(".")[0].split("[")[0],), count=len(bad),
                    word=name and f",{name[:-2]}", item=item, element=element)  # fmt: skip

    def _setters(self, at: int, source: Key) -> str:
        number, component = source
        name = f"r{number}.{'xyzw'[component]}"
        body = self.program.body
        sets = {n: defines(i) for n, i in enumerate(body) if i.dest and i.dest.register.index == number}
        full = [n for n, components in sets.items() if component in components]
        partial = [n for n, components in sets.items() if components and n not in full]
        if not full and partial:
            return f"Line {body[partial[0]].line} sets r{number} without its {'xyzw'[component]}: widen the mask there?"
        if not full:
            return f"No line sets {name}. A wrong number, or a forgotten `mov {name}, l0.x` before?"
        if min(full) >= at:
            later = [body[n].line for n in full if n > at]
            who = f"Line {later[0]} sets it, which comes later" if later else "Only this line sets it"
            return f"{who}: give it a first value before the loop."
        first = body[full[0]].line
        return f"Line {first} sets it, but not every work-item comes there: set it before the branch."
