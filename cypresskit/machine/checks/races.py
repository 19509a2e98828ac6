"""Find races: two work-items access a 32-bit word, one of them writes, and nothing orders the two.

In LDS a fence with ``_threads`` and ``_lds`` orders the work-items of a group; in global memory one
with ``_threads`` and ``_memory`` does. Nothing orders different groups, or the work-items of a
pixel kernel, each of which is a group here. Several readers of a word are no race.

Each word remembers accesses as stamps: epoch (fences passed by the group), instruction, work-item.
Four are enough to find a race in every word that has one:

- the last writer. If it is unordered with an earlier writer, that race was found when it wrote;
  else all writers are of one group, and what is unordered with an earlier one is unordered with the
  last;
- of the reads since: the first group's reader in its newest epoch, another work-item of the same
  group and epoch, and a reader of any other group, which no fence makes harmless. Reads before the
  last write need no stamp: whatever is unordered with them is unordered with that write.

A wavefront's 64 work-items run in lockstep on this chip. A kernel that depends on that is still
reported, because the next chip may have other wavefronts.
"""

import numpy as np

from cypresskit.il import Instruction
from cypresskit.machine.checks.findings import RACE, Check, Naming, named_bits
from cypresskit.machine.observer import BarrierEvent, MemoryEvent
from cypresskit.machine.shape import wavefront

# Of a stamp, from the right; epochs are counted modulo 2^19
ITEM_BITS, AT_BITS, EPOCH_BITS = 28, 15, 19
# Set in every stamp; 0 means "no access", so that unused memory takes no space
SEEN = 1 << 62
ITEM, AT, EPOCH = (1 << ITEM_BITS) - 1, (1 << AT_BITS) - 1, (1 << EPOCH_BITS) - 1


class RaceCheck(Check):
    """Reports races in LDS and in global memory, with both sides."""

    def __init__(self, naming: Naming):
        super().__init__(naming)
        self.group_size = self.launch.shape.group_items
        self.groups = self.launch.shape.group_count
        self.epochs = {space: np.zeros(self.groups, np.int64) for space in ("lds", "global")}
        # By memory: four stamps for each of its words, shape (4, words); see the module.
        self.stamps: dict[tuple[str, int], np.ndarray] = {}

    def barrier(self, event: BarrierEvent) -> None:
        fence = self.program.body[event.at]
        if not fence.controls.threads:
            return
        passed = event.active[:: self.group_size]
        if fence.controls.lds:
            self.epochs["lds"] += passed
        if fence.controls.memory:
            self.epochs["global"] += passed

    def memory(self, event: MemoryEvent) -> None:
        right = event.active & event.inside
        first = event.element * 4
        in_memory = self.launch.memory.size
        if event.space == "lds":
            right &= event.element & 3 == 0
            size = self.program.lds[event.array] // 4
            first = self.group * size + (event.element >> 2)
            in_memory = self.groups * size
        items = np.flatnonzero(right)
        if not len(items):
            return
        place = (first[items, np.newaxis] + np.array(event.words, np.int64)).ravel()
        items = np.repeat(items, len(event.words))
        epoch = self.epochs[event.space][self.group[items]] & EPOCH
        stamp = SEEN | (epoch << AT_BITS | event.at) << ITEM_BITS | items
        key = event.space, event.array
        if key not in self.stamps:
            self.stamps[key] = np.zeros((4, in_memory), np.int64)
        writer, reader, another, foreign = self.stamps[key]
        wrote = writer[place]
        if event.store:
            writer[place] = stamp
            lost = writer[place] != stamp
            if lost.any():  # this store races with itself: one report is enough
                self._clash(event, writer[place], stamp, place, "wrote", together=True)
                alone = ~np.isin(place, place[lost])
                self.stamps[key][1:, place[~alone]] = 0
                place, stamp, wrote = place[alone], stamp[alone], wrote[alone]
            for readers in (reader, another, foreign):
                self._clash(event, readers[place], stamp, place, "read")
                readers[place] = 0
        self._clash(event, wrote, stamp, place, "wrote")
        if event.store:
            return
        old = reader[place]
        fresh = (old == 0) | self._same_group(old, stamp) & ~self._same_epoch(old, stamp)
        reader[place[fresh]] = stamp[fresh]
        old = reader[place]
        together = self._same_group(old, stamp)
        second = together & self._same_epoch(old, stamp) & (old & ITEM != items)
        another[place[second]] = stamp[second]
        foreign[place[~together]] = stamp[~together]

    def _same_group(self, old: np.ndarray, stamp: np.ndarray) -> np.ndarray:
        return (old & ITEM) // self.group_size == (stamp & ITEM) // self.group_size

    def _same_epoch(self, old: np.ndarray, stamp: np.ndarray) -> np.ndarray:
        return (old ^ stamp) >> ITEM_BITS + AT_BITS == 0

    def _clash(
        self,
        event: MemoryEvent,
        old: np.ndarray,
        stamp: np.ndarray,
        place: np.ndarray,
        verb: str,
        *,
        together: bool = False,
    ) -> None:
        """Report where ``old`` and ``stamp`` are unordered accesses of two work-items.
        ``together``: both are in one execution of one instruction.
        """
        by_another = (old != 0) & ((old ^ stamp) & ITEM != 0)
        if not by_another.any():
            return
        ordered = self._same_group(old, stamp) & ~self._same_epoch(old, stamp)
        bad = np.flatnonzero(by_another & ~ordered)
        for at in np.unique(old[bad] >> ITEM_BITS & AT).tolist():
            races = bad[old[bad] >> ITEM_BITS & AT == at]
            first = races[0]
            more = races[place[races] == place[first]][1:]
            other = stamp[more[0]] if together and len(more) else old[first]
            items = int(stamp[first] & ITEM), int(other & ITEM)
            self._report_race(event, at, verb, items, int(place[first]), len(races), together)

    def _report_race(
        self,
        event: MemoryEvent,
        at: int,
        verb: str,
        items: tuple[int, int],
        place: int,
        count: int,
        together: bool,
    ) -> None:
        """Report two unordered accesses to a word.

        Parameters
        ----------
        event
            The second access.
        at, verb
            The first one: its instruction, and "read" or "wrote".
        items
            The work-items of the second and of the first.
        place
            The word's number in its memory.
        count
            The number of such races.
        together
            Whether both are in one execution of one instruction.
        """
        item, other = items
        line = self.program.body[at].line
        if event.space == "lds":
            size = self.program.lds[event.array]
            element = self.naming.lds(event.array, place * 4 % size)
        else:
            element = self.naming.element(place // 4, place % 4)
        in_one_group = bool(self.group[item] == self.group[other])
        between = "with no fence between" if in_one_group else "and nothing orders the two"
        in_iterations = at == event.at and verb == "wrote" and not together
        if in_iterations:
            between = f"in another iteration, {between}"
        elif at != event.at:
            turn = ", in the iteration before," * (at > event.at)
            between = f"in line {line}{turn} {between}"
        tail = ""
        if wavefront(self.launch.shape, item) == wavefront(self.launch.shape, other):
            tail = (
                " (They share a wavefront, so this chip happens to run them in lockstep; another"
                " may not.)"
            )
        advice = self._advice(event, at, in_one_group, in_iterations, tail)
        if together:
            advice = (
                "Both store to one place in the same instruction: give each work-item a place of"
                " its own."
            )
            if lost := lost_bits(event, self.group_size):
                bits = named_bits(lost)
                advice += f" The address doesn't depend on {bits} of the work-item's number."
        name = self.launch.shape.item_name(other)
        does = f"{'writes' if event.store else 'reads'} {element}; {name} {verb} it"
        side = f"{self.naming.item(other)}, {verb} it in {self.program.where(line)}"
        self.report(
            RACE,
            event.at,
            f"{self.naming.item(item)} {does} {between}",
            advice,
            key=(event.space, tuple(sorted((line, self.program.body[event.at].line)))),
            count=count,
            word="g" if event.space == "global" else "",
            item=item,
            element=element,
            other_side=side,
            other_item=other,
            other_line=line,
            is_address=event.space == "global",
        )

    def _advice(
        self, event: MemoryEvent, at: int, in_one_group: bool, in_iterations: bool, tail: str
    ) -> str:
        """Return how to mend a race."""
        if event.space == "global":
            cure = "Put `fence_threads_memory` between the two, where the whole group passes."
            if not in_one_group:
                cure = "Nothing orders these two work-items: let each access its own elements only."
            elif at == event.at and not in_iterations:
                cure = "Load into a register, then put `fence_threads_memory`, and only then store."
            return cure + tail
        weak = self._weak_fence(at, event.at)
        if weak:
            waits = "make work-items wait for each other"
            if weak.controls.threads:
                waits = "wait for accesses to LDS"
            return f"The fence of line {weak.line} doesn't {waits}: `fence_threads_lds` does."
        if in_iterations:
            return (
                "Put `fence_threads_lds` into the loop, where the whole group passes, or"
                " give each work-item a place of its own."
            )
        line = self.program.body[event.at].line
        place = f"before line {line}" if at > event.at else "between the two"
        return f"Put `fence_threads_lds` {place}, where the whole group passes.{tail}"

    def _weak_fence(self, first: int, last: int) -> Instruction | None:
        """Return the first fence from one instruction to another, around a loop if need be, that
        doesn't order accesses to LDS.
        """
        body = self.program.body
        between = body[first:last] if first < last else (*body[first:], *body[:last])
        for i in between:
            if i.opcode == "fence" and not (i.controls.threads and i.controls.lds):
                return i
        return None


def lost_bits(event: MemoryEvent, group_size: int) -> tuple[int, ...]:
    """Return the bits of a work-item's number in its group on which no address depends."""
    items = np.flatnonzero(event.active)
    number = items % group_size
    lost = []
    for bit in range((group_size - 1).bit_length()):
        twin = number ^ 1 << bit
        other = np.where(twin < group_size, items - number + twin, items)
        pairs = (other != items) & event.active[other]
        if pairs.any() and (event.element[items] == event.element[other])[pairs].all():
            lost.append(bit)
    return tuple(lost)
