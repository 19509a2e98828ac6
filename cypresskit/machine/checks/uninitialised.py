"""Values that nobody set: registers, and LDS words loaded before a store; reported where the value is used.

A copy (``mov`` to a register) and a load from LDS are no use: they carry the mark along, so that a macro's arguments
and a half-set register that is copied whole raise no alarm. Only components that matter (``Needs``) are looked at, and
only those which some way through the program leaves unset are tracked: most kernels have none.
"""

from dataclasses import dataclass, replace

import numpy as np

from cypresskit.machine.checks.needs import Key, Needs
from cypresskit.machine.checks.report import Check, Places
from cypresskit.machine.fast.flow import defines
from cypresskit.machine.observer import Memory, Step, Wrote


@dataclass(eq=False)
class _Unset:
    """Who lacks a value (bool, one per work-item) and where it should have come from: a register's component, or an
    LDS block and byte addresses."""

    who: np.ndarray
    source: Key | None
    copied: int = -1  # by the instruction that copied it first
    block: int = 0
    bytes: np.ndarray | None = None


class UninitialisedCheck(Check):
    """Reports the use of registers and LDS words that were never set."""

    def __init__(self, places: Places, needs: Needs):
        super().__init__(places)
        self.needs = needs
        items = self.launch.items
        self.unset = {key: _Unset(np.ones(items, bool), key) for key in needs.start}
        size = int(np.prod(self.program.group))
        self.group = np.arange(items) // size
        groups = items // size if self.program.mode == "compute" else 0
        self.stored = {n: np.zeros((groups, size // 4), bool) for n, (_, size) in self.program.lds.items()}
        self.carried: dict[int, _Unset] = {}  # what the running copy or load brings: component of its result

    def step(self, event: Step) -> None:
        self.carried = {}
        if not self.unset:
            return
        i = event.instruction
        used: dict[tuple, list] = {}
        copy = i.opcode == "mov" and i.dest is not None and i.dest.register.kind == "r"
        for key in sorted(self.needs.reads[event.at]):
            if key not in self.unset:
                continue
            unset = self.unset[key]
            bad = event.active & unset.who
            if not bad.any():
                continue
            source = i.sources[0] if i.sources else None
            if copy and source and source.register.kind == "r":
                for p in self.needs.writes[event.at]:
                    if (source.register.index, "xyzw".find(source.swizzle[p])) == key:
                        copied = event.at if unset.copied < 0 else unset.copied
                        self.carried[p] = _Unset(bad, unset.source, copied, unset.block, unset.bytes)
            else:
                unset.who = unset.who & ~bad
                place = unset.source[0] if unset.source else None
                first = used.setdefault((key[0], place), [key, unset, bad])
                first[2] = first[2] | bad
        for key, unset, bad in used.values():
            self._used(event.at, key, unset, np.flatnonzero(bad))

    def memory(self, event: Memory) -> None:
        if event.space != "lds":
            return
        stored, i = self.stored[event.block], self.program.body[event.at]
        who = np.flatnonzero(event.active & event.inside)
        for word in event.words:
            place = (event.element[who] >> 2) + word
            if event.store:
                stored[self.group[who], place] = True
                continue
            missing = ~stored[self.group[who], place]
            if missing.any() and i.dest:
                bad = np.zeros(self.launch.items, bool)
                bad[who[missing]] = True
                unset = _Unset(bad, None, event.at, event.block, (event.element & ~3) + 4 * word)
                for c in (word,) if i.opcode.endswith("vec") else self.needs.writes[event.at]:
                    self.carried[c] = unset

    def wrote(self, event: Wrote) -> None:
        if not self.unset and not self.carried:
            return
        for c in event.components:
            key = (event.register.index, c)
            old, new = self.unset.get(key), self.carried.get(c)
            if new:
                who = new.who | (old.who & ~event.active if old else False)
                self.unset[key] = replace(new, who=who)
            elif old:
                old.who = old.who & ~event.active
                if not old.who.any():
                    del self.unset[key]

    def _used(self, at: int, key: Key, unset: _Unset, bad: np.ndarray) -> None:
        item, name = int(bad[0]), f"r{key[0]}.{'xyzw'[key[1]]}"
        if unset.source is None:
            assert unset.bytes is not None
            element = self.places.lds(unset.block, int(unset.bytes[item]))
            message = f"{self.places.item(item)} uses {name}, loaded from {element}, where nobody stored before"
            advice = "Store to it first, with `fence_threads_lds` between, or load from another place."
        else:
            element = f"r{unset.source[0]}.{'xyzw'[unset.source[1]]}"
            via = "" if element == name else f", a copy of {element},"
            message = f"{self.places.item(item)} uses {name}{via} which was never set"
            advice = self._setters(at if unset.copied < 0 else unset.copied, unset.source)
        self.report("uninitialised", at, message, advice, key=(element.split(".")[0].split("[")[0],), count=len(bad),
                    word=f"r{key[0]}", item=item, element=element)  # fmt: skip

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
        first = body[full[0]].line
        if full == [at]:
            return "Only this line sets it: give it a first value before the loop."
        if min(full) >= at:
            return f"Line {first} sets it, which comes later: give it a first value before the loop."
        return f"Line {first} sets it, but not every work-item comes there: set it before the branch."
