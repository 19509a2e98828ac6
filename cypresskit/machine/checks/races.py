"""Races: two work-items touch one 32-bit word, one of them writes, and nothing says who comes first.

In LDS a fence with ``_threads`` and ``_lds`` orders the work-items of a group; in global memory one with ``_threads``
and ``_memory`` does, and nothing orders different groups, or the work-items of a pixel kernel. Each word remembers who
wrote it last and two who read it since, as a stamp: epoch (fences passed by the group), instruction, work-item. Several
work-items that read one word are no race. Left out: that a wavefront's 64 work-items run in step on this chip; a kernel
that leans on it is reported, since the next chip may have other wavefronts.
"""

from dataclasses import dataclass

import numpy as np

from cypresskit.machine.checks.report import Check, Places
from cypresskit.machine.observer import Barrier, Memory

ITEM_BITS, AT_BITS = 28, 17  # of a stamp; the epoch has the 18 above them, and -1 is "nobody"


@dataclass(eq=False)
class _Shadow:
    """Stamps of the last writer, the first reader since, and another reader, for every word of a memory."""

    writer: np.ndarray
    reader: np.ndarray
    another: np.ndarray


class RaceCheck(Check):
    """Reports races in LDS and in global memory, with both sides."""

    def __init__(self, places: Places):
        super().__init__(places)
        items = self.launch.items
        self.compute = self.program.mode == "compute"
        self.group_size = int(np.prod(self.program.group)) if self.compute else 1
        self.item = np.arange(items)
        self.group = self.item // self.group_size
        groups = items // self.group_size if self.compute else items
        self.epochs = {space: np.zeros(groups, np.int64) for space in ("lds", "global")}
        self.shadows: dict[tuple[str, int], _Shadow] = {}

    def barrier(self, event: Barrier) -> None:
        fence = self.program.body[event.at]
        if not fence.control("threads"):
            return
        passed = event.active[:: self.group_size]
        if fence.control("lds"):
            self.epochs["lds"] += passed
        if fence.control("memory"):
            self.epochs["global"] += passed

    def memory(self, event: Memory) -> None:
        who = np.flatnonzero(event.active & event.inside)
        if not len(who):
            return
        shadow = self._shadow(event)
        words = np.array(event.words)
        if event.space == "lds":
            first = self.group[who] * (self.program.lds[event.block][1] // 4) + (event.element[who] >> 2)
        else:
            first = event.element[who] * 4
        place = (first[:, np.newaxis] + words).ravel()
        who = np.repeat(who, len(words))
        epoch = self.epochs[event.space][self.group[who]]
        stamp = (np.minimum(epoch, (1 << 18) - 1) << AT_BITS | event.at) << ITEM_BITS | who
        self._clash(event, shadow.writer[place], stamp, who, place, "wrote")
        if event.store:
            self._clash(event, shadow.reader[place], stamp, who, place, "read")
            self._clash(event, shadow.another[place], stamp, who, place, "read")
            shadow.writer[place] = stamp
            shadow.reader[place] = shadow.another[place] = -1
            self._clash(event, shadow.writer[place], stamp, who, place, "wrote")
            return
        old = shadow.reader[place]
        fresh = ~self._unordered(event.space, old, stamp, who, same=True)
        shadow.reader[place[fresh]] = stamp[fresh]
        second = shadow.reader[place] & (1 << ITEM_BITS) - 1 != who
        shadow.another[place[second]] = stamp[second]

    def _shadow(self, event: Memory) -> _Shadow:
        key = (event.space, event.block)
        if key not in self.shadows:
            if event.space == "lds":
                size = self.launch.items // self.group_size * self.program.lds[event.block][1] // 4
            else:
                assert self.launch.global_memory is not None
                size = self.launch.global_memory.size
            self.shadows[key] = _Shadow(*(np.full(size, -1, np.int64) for _ in range(3)))
        return self.shadows[key]

    def _unordered(self, space: str, old: np.ndarray, stamp: np.ndarray, who: np.ndarray, same=False) -> np.ndarray:
        """Where nothing lies between access ``old`` and ``stamp``; accesses of one work-item count if ``same``."""
        found = old >> (ITEM_BITS + AT_BITS) == stamp >> (ITEM_BITS + AT_BITS)
        if space == "global" or same:
            other = old & (1 << ITEM_BITS) - 1
        if space == "global":
            found |= (old >= 0) & (other // self.group_size != self.group[who])
        if not same:
            found &= (old ^ stamp) & (1 << ITEM_BITS) - 1 != 0
        return found & (old >= 0)

    def _clash(self, event: Memory, old, stamp, who, place, verb: str) -> None:
        bad = np.flatnonzero(self._unordered(event.space, old, stamp, who))
        if not len(bad):
            return
        for at in np.unique(old[bad] >> ITEM_BITS & (1 << AT_BITS) - 1).tolist():
            these = bad[old[bad] >> ITEM_BITS & (1 << AT_BITS) - 1 == at]
            self._race(event, at, int(old[these[0]]), int(who[these[0]]), int(place[these[0]]), verb, len(these))

    def _race(self, event: Memory, at: int, old: int, item: int, place: int, verb: str, count: int) -> None:
        other, line = old & (1 << ITEM_BITS) - 1, self.program.body[at].line
        if event.space == "lds":
            size = self.program.lds[event.block][1]
            element = self.places.lds(event.block, place * 4 % size)
        else:
            element = self.places.element(place // 4, place % 4)
        does = "writes" if event.store else "reads"
        together = at == event.at and verb == "wrote"
        lines = tuple(sorted((line, self.program.body[event.at].line)))
        self.report(
            "race",
            event.at,
            f"{self.places.item(item)} {does} {element}; another work-item {verb} it with no fence between",
            self._advice(event, at, item, other, together),
            key=(event.space, lines),
            count=count,
            word="g" if event.space == "global" else "",
            item=item,
            element=element,
            other=f"{self.places.item(other)}, {verb} it in {self.program.where(line)}",
            other_line=line,
        )

    def _advice(self, event: Memory, at: int, item: int, other: int, together: bool) -> str:
        if together:
            return "Both store to one place in the same instruction: give each work-item a place of its own."
        if event.space == "global":
            if self.group[item] != self.group[other]:
                return "Nothing orders these two work-items: let each one touch its own elements only."
            return "Put `fence_threads_memory` between the two, where the whole group comes through."
        body = self.program.body
        between = body[at : event.at] if at < event.at else (*body[at:], *body[: event.at])  # around a loop
        weak = next(
            (i for i in between if i.opcode == "fence" and not (i.control("threads") and i.control("lds"))), None
        )
        if weak:
            return f"`{weak}` (line {weak.line}) doesn't make work-items wait for each other: `fence_threads_lds` does."
        tail = ""
        if self.places.wavefront(item) == self.places.wavefront(other):
            tail = " (They share a wavefront, so this chip happens to run them in step; another may not.)"
        return f"Put `fence_threads_lds` between the two, where the whole group comes through.{tail}"
