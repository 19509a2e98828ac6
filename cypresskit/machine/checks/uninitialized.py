"""Find uses of uninitialized values: registers, and LDS words loaded before a store.

For each register component the check knows the work-items in which it is unset. Only components
that matter (``Needs``) are examined, and only those that some path through the program leaves unset
are tracked: most kernels have none. So an unused macro argument, an unused component of a register
that is copied whole, and an unused result raise no alarm. Any other use is reported once, a copy
included; of ``cmov_logical`` only the operand that it chooses is used. What is computed from an
unset value counts as set: one fault, one report. After an unset register, words of the LDS are no
longer checked: their addresses may follow from it.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from cypresskit.il.dataflow import (
    ADDRESS,
    Key,
    Use,
    backward,
    defines,
    keys,
    uses,
)
from cypresskit.il.program import LETTERS, Instruction, Program
from cypresskit.machine.checks.findings import UNINITIALIZED, Check, ElementName, Finding, Naming
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
    texels
        By output, the bytes of a texel.
    """

    def __init__(self, program: Program, *texels: tuple[int, int]):
        self.program = program
        self.texels = dict(texels)
        body = program.body
        self.uses: list[list[Use]] = [[]] * len(body)
        self.writes: list[tuple[int, ...]] = [()] * len(body)
        self.start: frozenset[Key] = backward(program, self._step)[0]

    def _step(self, at: int, after: frozenset[Key]) -> frozenset[Key]:
        i = self.program.body[at]
        written = defines(i)
        if i.dest:
            index = i.dest.register.index
            words = self.texels[index] // 4 if i.dest.register.kind == "o" else 4
            self.writes[at] = tuple(
                c for c in i.dest.written if ((index, c) in after if written else c < words)
            )
        needed: list[Use] = []
        matters = self.writes[at] or not written
        operands = uses(self.program, i) if matters else ()
        for n, source, positions in operands:
            if n != ADDRESS and i.op.kind == "alu" and not i.op.vector and i.dest:
                positions = tuple(p for p in positions if p in self.writes[at])
            if source.register.kind == "r":
                needed.append((n, source, positions))
        self.uses[at] = needed
        return after - {*written} | keys(needed)


#: A program is checked in several launches, so what it needs is found once. The cache takes only
#: what can be hashed: hence pairs.
needs_of = lru_cache(maxsize=16)(Needs)


class UninitializedCheck(Check):
    """Reports the use of registers and LDS words that were never set.

    Attributes
    ----------
    unset
        By component of a register, the work-items (bool) in which it is unset.
    stored
        By LDS array, the words of each group that were stored (bool).
    has_reported
        Whether the use of an unset register was reported.
    earlier
        What ``others`` had found when the first unset value was used.
    """

    def __init__(self, naming: Naming, others: Sequence[Check]):
        super().__init__(naming)
        self.others = others
        self.earlier: list[Finding] = []
        outputs = self.launch.outputs.items()
        self.needs = needs_of(self.program, *((n, output.texel) for n, output in outputs))
        items = self.launch.shape.items
        self.unset = {key: np.ones(items, bool) for key in self.needs.start}
        self.has_reported = False
        self.stored = {
            n: np.zeros((self.launch.shape.group_count, size // 4), bool)
            for n, size in self.program.lds.items()
        }

    def memory(self, event: MemoryEvent) -> None:
        if event.space != "lds" or self.has_reported:
            return
        stored = self.stored[event.array]
        i = self.program.body[event.at]
        unaligned = event.active & (event.element & 3 != 0)  # ``MemoryCheck`` reports these
        if event.store:
            stored[self.group[unaligned]] = True
        items = np.flatnonzero(event.active & event.inside & ~unaligned)
        for word in event.words:
            places = self.group[items], (event.element[items] >> 2) + word
            missing = items[~stored[places]]
            if event.store:
                stored[places] = True
            elif len(missing) and self._matters(event.at, i, word):
                byte = (int(event.element[missing[0]]) & ~3) + 4 * word
                element = self.naming.lds(event.array, byte)
                advice = (
                    "Store to it first, with `fence_threads_lds` between, or load from another"
                    " place."
                )
                does = f"loads {element}, which no store has written"
                self._report_use(event.at, does, advice, element, missing)

    def _matters(self, at: int, i: Instruction, word: int) -> bool:
        """Return whether a word that an instruction loads from the LDS matters later."""
        written = self.needs.writes[at]
        return word in written if i.op.words > 1 else bool(written)

    def step(self, event: StepEvent) -> None:
        if not self.unset:
            return
        i = event.instruction
        used: dict[int, tuple[Key, np.ndarray]] = {}  # by register: its first component
        for n, source, positions in self.needs.uses[event.at]:
            for p in positions:
                key = source.register.index, LETTERS.find(source.swizzle[p])
                users = self.unset.get(key, np.False_) & event.active
                if i.op.name == "cmov_logical" and n:
                    condition = event.rows(i.sources[0], i.sources[0].swizzle[p])[0]
                    users = users & ((condition != 0) == (n == 1))
                if users.any():
                    first, others = used.get(key[0], (key, users))
                    used[key[0]] = first, others | users
                    self.unset[key] = self.unset[key] & ~users
        for key, users in used.values():
            self.has_reported = True
            name = _named(key)
            does = f"uses {name}, which was never set"
            advice = self._setters(event.at, key)
            word = f",{name.memory}"
            self._report_use(event.at, does, advice, name, np.flatnonzero(users), word)

    def wrote(self, event: WroteEvent) -> None:
        if event.register.kind != "r":
            return
        for c in event.components:
            key = (event.register.index, c)
            if key in self.unset:
                self.unset[key] = self.unset[key] & ~event.active

    def _report_use(
        self,
        at: int,
        does: str,
        advice: str,
        element: ElementName,
        items: np.ndarray,
        word: str = "",
    ) -> None:
        """Report that instruction ``at`` uses an unset ``element`` in some work-items."""
        if not self.found:
            self.earlier = [finding for check in self.others for finding in check.found.values()]
        item = int(items[0])
        message = f"{self.naming.item(item)} {does}"
        more: dict = {"count": len(items), "word": word, "item": item, "element": element}
        self.report(UNINITIALIZED, at, message, advice, key=(element.memory,), **more)

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
                f" {name.memory}: should its mask have {LETTERS[source[1]]}, too?"
            )
        loads = any(i.op.name.startswith("lds_load") for i in body)
        if not full and self.program.lds and not loads:
            return f"No line sets {name}, and none loads from the LDS. Is that load missing?"
        if not full:
            return f"No line sets {name}. If it is the register that you mean, set it first."
        if min(full) >= at:
            later = [n for n in full if n > at]
            if later and source not in keys(uses(self.program, body[later[0]])):
                return (
                    f"Line {body[later[0]].line} sets it, but comes later. Does it have to come"
                    " first, or is another register meant?"
                )
            setter = "This line uses what was in it"
            if at not in full:
                setter = f"Line {body[later[0]].line} sets it, but comes later"
            loops = sum({"loop": 1, "endloop": -1}.get(i.op.flow, 0) for i in body[:at])
            where = "the loop" if loops else "this line"
            return f"{setter}. Set it to a first value before {where}."
        return (
            f"Line {body[full[0]].line} sets it, but this work-item has not run that line: set it"
            " before the branch or loop."
        )


def _named(key: Key) -> ElementName:
    """Return ``r1.x``."""
    return ElementName(f"r{key[0]}", f".{LETTERS[key[1]]}")
