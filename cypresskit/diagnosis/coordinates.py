"""Why a work-item doesn't fetch an element: what set a coordinate, or what ended the loop.

An iteration takes as many values of k as line 1 states, or else as its code multiplies, or else as
the kernel is launched for, so it is known which ones each should fetch. Of the first iteration that
doesn't fetch its own, the line is blamed that set k last, if k is incorrect (it may only copy it);
else what ended the loop. An offset, or the choice of a register, is the fault of the fetch itself.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from cypresskit.diagnosis.elements import MatrixElement
from cypresskit.diagnosis.notes import NO_NOTE, Lines, Note, note
from cypresskit.diagnosis.operands import TracedRun
from cypresskit.il.dataflow import Key, keys, uses
from cypresskit.kernels.compiled import values_taken
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.statement import find_statement

AXES = 0, 1


class Fetches:
    """The fetches of a matrix in a run.

    Attributes
    ----------
    lines, first
        The lines that read the matrix, and the first such instruction.
    steps
        The fetches that ran.
    k_axes
        The coordinate that depends on k; of C none.
    k_registers, offsets
        The registers of that coordinate, and what the fetches add to it; of C none.
    """

    def __init__(self, run: TracedRun, matrix: str) -> None:
        self.run, self.matrix = run, matrix
        self.steps = dict.fromkeys(step for step in run.readers(matrix) if run.steps[step].texel)
        self.convention = run.traced.kernel.convention
        body = run.program.body
        readers = [at for at, i in enumerate(body) if self.convention.reads(i, matrix)]
        self.lines = Lines(body[at].written_line for at in readers)
        self.first = min(readers, default=0)
        self.fetches = [body[at] for at in readers if body[at].op.kind == "fetch"]
        axis = self.convention.k_axis(matrix)
        self.k_axes = [] if axis is None else [axis]
        self.k_registers = self.registers(*self.k_axes)
        self.offsets = {fetch.controls.aoffimmi[n] for fetch in self.fetches for n in self.k_axes}

    @cached_property
    def other(self) -> "Fetches":
        """Of a factor, the fetches of the other one; of C, those of A."""
        return Fetches(self.run, "B" if self.matrix == "A" else "A")

    def texel(self, element: MatrixElement) -> tuple[int, int]:
        """Return the coordinates of the texel that holds an element."""
        size = BYTES[self.convention.precision]
        return element.column * size // self.convention.texel, element.row

    def registers(self, *axes: int) -> set[Key]:
        """Return the registers of some coordinates."""
        return keys((0, fetch.sources[0], axes) for fetch in self.fetches)

    def explain(self, wanted: MatrixElement, steps: Sequence[int] = ()) -> Note:
        """Return why the fetches, or only some ``steps``, don't read an element, if one coordinate
        is incorrect: what set k, or what ended the loop; or what set the other, unless that is
        where the block begins.

        The note is empty where that isn't known: if the matrix passes through the LDS, so that
        other work-items fetch for this one; and if an offset, or the choice of a register, may be
        wrong.
        """
        run = self.run
        if any(self.matrix == each.matrix for _, stored in run.lds_stores for each in stored):
            return NO_NOTE
        need, first = map(self.texel, (wanted, run.traced.first_beside(wanted)))
        fetches = [step for step in steps or self.steps if run.steps[step].texel]
        texels = [run.steps[step].texel for step in fetches]
        incorrect = [n for n in AXES if texels and need[n] not in {texel[n] for texel in texels}]
        if self.k_axes and incorrect in ([], self.k_axes):
            return self._explain_k(steps)
        if len(incorrect) != 1:
            return NO_NOTE
        (axis,) = incorrect
        # "B is fetched at A's column": that is right for A
        others = self.other.registers(*AXES)
        registers = keys([(0, run.instruction(fetches[0]).sources[0], (axis,))]) - others
        return self._find_setter(registers, fetches[0], {need[axis], first[axis]})

    def _explain_k(self, steps: Sequence[int]) -> Note:
        """Return what set k in the first iteration that doesn't fetch its own values of k, or in
        which one of ``steps`` fetches another; or what ended the loop before it.
        """
        run, traced = self.run, self.run.traced
        (axis,), registers = self.k_axes, self.k_registers
        iterations = self._split_by_iteration()
        is_stated = find_statement(traced.kernel.text)[0]
        k_step = traced.kernel.k_step
        count = k_step if is_stated else values_taken(traced.kernel) or k_step
        own = (e for term in traced.correct_terms for e in term if e.matrix == self.matrix)
        places = [self.texel(element)[axis] for element in own]
        for n in range(len(places) // count):
            needed = {*places[n * count : (n + 1) * count]}
            starts = needed | {place - min(self.offsets, default=0) for place in needed}
            if n == len(iterations):
                return self._explain_end(n, starts)
            fetched = {step: run.steps[step].texel[axis] for step in iterations[n]}
            others = [step for step, place in fetched.items() if place not in needed]
            if needed <= {*fetched.values()} and not {*others} & {*steps}:
                continue
            is_shared = registers & self.other.k_registers
            is_offset = is_shared and self.offsets != self.other.offsets
            if not others or len(registers) > 1 or is_offset:
                return NO_NOTE
            since = iterations[n - 1][-1] if n else -1
            return self._find_setter(registers, others[0], starts, since)
        return NO_NOTE

    def _split_by_iteration(self) -> list[list[int]]:
        """Return the steps by the iteration of the loop in which they ran, from the first with one
        to the last.
        """
        iteration, found, before = 0, defaultdict(list), -1
        for step, record in enumerate(self.run.steps):
            if record.at <= before or self.run.instruction(step).op.flow == "loop":
                iteration += 1
            before = record.at
            if step in self.steps:
                found[iteration].append(step)
        return [found[n] for n in range(min(found), max(found) + 1)] if found else []

    def _explain_end(self, count: int, correct: set[int]) -> Note:
        """Return why no fetch ran after ``count`` iterations: what set k, or what skipped the
        fetches; or that they are in no loop.
        """
        step = self._find_skipping_step()
        if step is None:
            return note("no loop", *self.lines[:1]) if count else NO_NOTE
        why = self._find_setter(self.k_registers, step, correct)
        return why or self._name_skipping(step, self.lines, iteration=count + 1)

    def explain_skipped(self) -> Note:
        """Return what skipped all fetches, of which the first is named."""
        step = self._find_skipping_step()
        return NO_NOTE if step is None else self._name_skipping(step, Lines(self.lines[:1]))

    def _find_skipping_step(self) -> int | None:
        """Return the step of the last branch that may have skipped the fetches, or None."""
        run, pairs = self.run, self.run.program.matching
        for step in reversed(range(len(run.steps))):
            at, flow = run.steps[step].at, run.instruction(step).op.flow
            start = pairs[at] if flow == "break" else at
            if flow in ("if", "break") and start < self.first < pairs[start]:
                return step
        return None

    def _name_skipping(self, step: int, lines: Lines, **where: int) -> Note:
        """Return the note on a branch that skipped some lines, and on what set its condition."""
        run = self.run
        branch = run.instruction(step)
        tested = keys(uses(run.program, branch))
        writers = (run.recorded.last_writer(key, step) for key in tested)
        sets = [run.line(writer) for writer in writers if writer is not None]
        return note("skipped", branch.written_line, *sets[:1], skipped=lines, **where)

    def _find_setter(
        self, registers: set[Key], step: int, correct: set[int], since: int = -1
    ) -> Note:
        """Return the note on what set a coordinate's register last before a step, unless that is
        correct; only ``since`` a step at which it was correct, if there is one.
        """
        run = self.run
        for key in registers:
            writer = run.recorded.last_writer(key, step)
            if writer is not None and writer >= since:
                value = float(np.uint32(run.steps[writer].words[key[1]]).view(np.float32))
                if value // 1 not in correct:
                    return note("set", run.line(writer), register=run.name(key), value=value)
        return NO_NOTE
