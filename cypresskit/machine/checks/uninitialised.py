"""Find uses of uninitialised values: registers, and LDS words loaded before a store.

This is taint tracking: a mark on a register's component holds the work-items whose value is unset.
Only components that matter (``Needs``) are examined, and only those that some path through the
program leaves unset are tracked: most kernels have none. A load from LDS doesn't use the word: its
result is marked.

Copying a value does not use it: the mark follows the copy, by ``mov`` to a register or as the
operand that ``cmov_logical`` chooses. So a macro's arguments, a register that is copied whole and
an unused result raise no alarm. Any other use is reported once. What is computed from the value is
tainted, and if a tainted value is an address or a branch's condition, further reports of that
instruction are ``suppressed`` for those work-items: one fault, one report.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from cypresskit.il import Program
from cypresskit.il.dataflow import (
    ADDRESS,
    Key,
    Numbering,
    Use,
    backward,
    defines,
    is_address,
    keys,
    uses,
)
from cypresskit.il.program import LETTERS
from cypresskit.machine.checks.findings import Check, Naming
from cypresskit.machine.launch import Launch
from cypresskit.machine.observer import MemoryEvent, StepEvent, WroteEvent


class Needs:
    """The components that matter, found backward from stores, branches and addresses. ``add r0, r1,
    r2`` reads four of each operand; if only r0.x is read later, only their x matter.

    Attributes
    ----------
    uses
        For each instruction: its register operands, with the positions that matter.
    writes
        The components of its result that matter later; all that exist, if it goes to memory.
    start
        The components that may be read before they are set.
    """

    def __init__(self, launch: Launch):
        self.program = program = launch.program
        self.outputs = launch.outputs
        body = program.body
        self.numbering = Numbering(program)
        self.uses: list[list[Use]] = [[]] * len(body)
        self.writes: list[tuple[int, ...]] = [()] * len(body)
        self.start = self.numbering.keys(backward(program, self._step)[0])

    def _step(self, at: int, after: int) -> int:
        i = self.program.body[at]
        written = defines(i)
        if i.dest:
            index = i.dest.register.index
            words = self.outputs[index].texel // 4 if i.dest.register.kind == "o" else 4
            matter = after >> self.numbering.first[index] if written else (1 << words) - 1
            self.writes[at] = tuple(c for c in i.dest.written if matter >> c & 1)
        needed: list[Use] = []
        matters = self.writes[at] or not written
        # The result is 0 for any operands, an idiom that clears a register
        clears = i.op.name in ("ixor", "isub") and i.sources[0] == i.sources[1]
        clears = clears and i.sources[0].register.kind == "r"
        for n, source, positions in uses(self.program, i) if matters and not clears else ():
            if n != ADDRESS and i.op.kind == "alu" and not i.op.vector and i.dest:
                positions = tuple(p for p in positions if p in self.writes[at])
            if source.register.kind == "r":
                needed.append((n, source, positions))
        self.uses[at] = needed
        return after & ~self.numbering.bits(written) | self.numbering.bits(keys(needed))


@dataclass(frozen=True, eq=False)
class _Unset:
    """The origin of an unset value: a register's component, or an LDS array and byte addresses."""

    source: Key | None
    copied: int = -1  # by the instruction that copied it first
    array: int = 0
    addresses: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(eq=False)
class Mark:
    """The work-items (bool) that hold an unset value, its origin, and whether that has been
    reported.
    """

    holders: np.ndarray
    unset: _Unset
    reported: bool = False


class UninitialisedCheck(Check):
    """Reports the use of registers and LDS words that were never set."""

    def __init__(self, naming: Naming):
        super().__init__(naming)
        self.needs = Needs(self.launch)
        items = self.launch.shape.items
        self.marks = {key: [Mark(np.ones(items, bool), _Unset(key))] for key in self.needs.start}
        self.carried: dict[int, list[Mark]] = {}  # by component of the running instruction's result
        #: What it uses, by fault: the first component, its origin, and the work-items.
        self.used: dict[tuple, tuple[Key, _Unset, np.ndarray]] = {}
        self.stored = {
            n: np.zeros((self.launch.shape.group_count, size // 4), bool)
            for n, size in self.program.lds.items()
        }

    def memory(self, event: MemoryEvent) -> None:
        if event.space != "lds":
            return
        stored = self.stored[event.array]
        i = self.program.body[event.at]
        lost = event.active & ((event.element & 3 != 0) | self.suppressed.get(event.at, False))
        if event.store and lost.any():  # reported as out of bounds already
            stored[self.group[lost]] = True
        items = np.flatnonzero(event.active & event.inside & ~lost)
        for word in event.words:
            looked = self.group[items], (event.element[items] >> 2) + word
            missing = ~stored[looked]
            if event.store:
                stored[looked] = True
            elif missing.any() and i.dest:
                bad = np.zeros(self.launch.shape.items, bool)
                bad[items[missing]] = True
                unset = _Unset(None, event.at, event.array, (event.element & ~3) + 4 * word)
                if i.dest.register.kind != "r":
                    self.report_use(event.at, None, unset, bad)
                for c in (word,) if i.op.words > 1 else self.needs.writes[event.at]:
                    _carry(self.carried, c, Mark(bad, unset))

    def step(self, event: StepEvent) -> None:
        self.carried = {}
        if not self.marks:
            return
        i = event.instruction
        self.used = {}
        for n, source, positions in self.needs.uses[event.at]:
            passed = i.op.is_copy and n in i.op.passed
            for p in positions:
                key = source.register.index, LETTERS.find(source.swizzle[p])
                for mark in tuple(self.marks.get(key, ())):
                    users = mark.holders & event.active
                    if passed and len(i.op.sources) > 1:
                        users &= (event.rows(i.sources[0], i.sources[0].swizzle[p])[0] != 0) == (
                            n == 1
                        )
                    if not users.any():
                        continue
                    if passed and i.dest is not None and i.dest.register.kind == "r":
                        unset = mark.unset
                        if unset.copied < 0:
                            unset = replace(unset, copied=event.at)
                        _carry(self.carried, p, Mark(users, unset, mark.reported))
                    else:
                        self._use(event, n, p, key, mark, users)
        for used in self.used.values():
            self.report_use(event.at, *used)

    def _use(
        self, event: StepEvent, n: int, p: int, key: Key, mark: Mark, users: np.ndarray
    ) -> None:
        """Note the use of a mark by some work-items, and taint the result; what was reported before
        only taints.
        """
        at = event.at
        i = event.instruction
        if not mark.reported:
            fault = key[0], mark.unset.source and mark.unset.source[0]
            first, unset, others = self.used.get(fault, (key, mark.unset, users))
            self.used[fault] = first, unset, others | users
            mark.holders = mark.holders & ~users  # they hold a reported mark from here on
            mark = Mark(users, mark.unset, reported=True)
            _carry(self.marks, key, mark)
        for c in self.needs.writes[at] if i.op.vector else (p,):
            _carry(self.carried, c, mark)
        if is_address(i, n):
            self.suppressed[at] = self.suppressed.get(at, False) | users

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

    def report_use(self, at: int, key: Key | None, unset: _Unset, users: np.ndarray) -> None:
        """Report that instruction ``at`` uses an unset value: of component ``key``, or one it loads
        from LDS.
        """
        bad = np.flatnonzero(users)
        item = int(bad[0])
        name = _named(key) if key else ""
        if unset.source is None:
            element = self.naming.lds(unset.array, int(unset.addresses[item]))
            uses = f"uses {name}, loaded from" if key else "stores what it loads from"
            does = f"{uses} {element}, which no store has written"
            advice = (
                "Store to it first, with `fence_threads_lds` between, or load from another place."
            )
        else:
            element = _named(unset.source)
            copied = f"a copy of {element}, " if element != name else ""
            does = f"uses {name}, {copied}which was never set"
            advice = self._setters(at if unset.copied < 0 else unset.copied, unset.source)
        message = f"{self.naming.item(item)} {does}"
        memory = element.split(".")[0].split("[")[0]
        word = f",{name[:-2]}" if name else ""
        more: dict = {"count": len(bad), "word": word, "item": item, "element": element}
        self.report("uninitialised", at, message, advice, key=(memory,), **more)

    def _setters(self, at: int, source: Key) -> str:
        name = _named(source)
        body = self.program.body
        sets = {
            n: defines(i)
            for n, i in enumerate(body)
            if any(number == source[0] for number, _ in defines(i))
        }
        full = [n for n, written in sets.items() if source in written]
        partial = [n for n in sets if n not in full]
        if not full and partial:
            return (
                f"No line sets {name}. Line {body[partial[0]].line} sets other components of"
                f" {name[:-2]}: should its mask have {name[-1]}, too?"
            )
        loads = any(i.op.name.startswith("lds_load") for i in body)
        if not full and self.program.lds and not loads:
            return f"No line sets {name}, and none loads from the LDS. Is that load missing?"
        if not full:
            zero = _zero_literal(self.program)
            return (
                f"No line sets {name}. If it is the register that you mean, set it first: by a"
                f" fetch, or by `mov {name}, {zero}`."
            )
        if min(full) >= at:
            later = [n for n in full if n > at]
            if later and source not in keys(uses(self.program, body[later[0]])):
                return (
                    f"Line {body[later[0]].line} sets it, but comes later. Does it have to come"
                    " first, or is another register meant?"
                )
            setter = (
                f"Line {body[later[0]].line} sets it, but comes later"
                if later
                else "Only this line sets it"
            )
            return f"{setter}. Set it to a first value before the loop."
        return (
            f"Line {body[full[0]].line} sets it, but not every work-item runs it: set it before"
            " the branch."
        )


def _zero_literal(program: Program) -> str:
    """Return the first component of a literal that is 0, such as ``l0.z``, or "..."."""
    zeros = (
        f"l{number}.{letter}"
        for number, words in sorted(program.literals.items())
        for letter, word in zip(LETTERS, words)
        if word == 0
    )
    return next(zeros, "...")


def _carry(marks: dict, key: object, mark: Mark) -> None:
    """Add a mark; tainted ones are merged."""
    for old in marks.setdefault(key, []):
        if old.reported == mark.reported and (mark.reported or old.unset is mark.unset):
            old.holders = old.holders | mark.holders
            return
    marks[key].append(Mark(mark.holders, mark.unset, mark.reported))


def _named(key: Key) -> str:
    """Return ``r1.x``."""
    return f"r{key[0]}.{LETTERS[key[1]]}"
