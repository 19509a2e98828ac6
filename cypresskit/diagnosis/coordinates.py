"""Why a work-item doesn't fetch an element: what set a coordinate, or what ended the loop.

An iteration fetches as many values of k as line 1 states, or else as the first one, so it is known
which ones each should fetch. A line is blamed only if what it was given is right: of the first
iteration that doesn't fetch its own values, the line that set k, if k is wrong; else what ended the
loop. An offset, or the choice of a register, is the fault of the fetch itself.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from cypresskit.diagnosis.elements import MatrixElement
from cypresskit.diagnosis.notes import Lines, Note, Values, note
from cypresskit.diagnosis.operands import TracedRun
from cypresskit.il.dataflow import Key, keys, uses
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.statement import find_statement

AXES = 0, 1


class Fetches:
    """The fetches of a matrix.

    Attributes
    ----------
    steps
        Those that ran.
    places
        The coordinates x, and y, of the matrix's elements in the correct sum.
    k_axis
        The coordinate that depends on k, or -1.
    """

    def __init__(self, run: TracedRun, matrix: str) -> None:
        self.run, self.matrix = run, matrix
        self.steps = [step for step in run.readers(matrix) if run.steps[step].texel]
        correct = (element for terms in run.traced.correct for element in terms)
        texels = [self.texel(element) for element in correct if element.matrix == matrix]
        self.places = [*zip(*texels)] or [(), ()]
        self.k_axis = next((axis for axis in AXES if len({*self.places[axis]}) > 1), -1)

    def texel(self, element: MatrixElement) -> tuple[int, int]:
        """Return the coordinates of the texel that holds an element."""
        how = self.run.traced.kernel.convention
        return element.column * BYTES[how.precision] // how.texel, element.row

    def registers(self, *axes: int) -> set[Key]:
        """Return the registers of some coordinates."""
        fetches = map(self.run.instruction, self.steps)
        return keys((0, i.sources[0], axes) for i in fetches)

    def explain(self, wanted: MatrixElement, steps: Sequence[int] = ()) -> Note:
        """Return why the fetches, or only some ``steps``, don't read an element. The note is empty
        where that isn't known: if they fetch for other work-items, too; and if an offset, or the
        choice of a register, may be wrong.
        """
        run, need = self.run, self.texel(wanted)
        others = Fetches(run, "B" if self.matrix == "A" else "A")
        found = self._explain_k(steps) if self.k_axis >= 0 else Note()
        fetches = [step for step in steps or self.steps if run.steps[step].texel]
        read = [{run.steps[step].texel[axis] for step in fetches} for axis in AXES]
        wrong = [axis for axis in AXES if axis != self.k_axis and need[axis] not in read[axis]]
        if found.kind or len(wrong) != 1 or not fetches:
            return found
        (axis,), first = wrong, self.texel(run.traced.first(wanted))
        own = keys([(0, run.instruction(fetches[0]).sources[0], (axis,))])
        return self._set_by(own - others.registers(*AXES), fetches[0], {need[axis], first[axis]})

    def _explain_k(self, steps: Sequence[int]) -> Note:
        """Return why an iteration doesn't fetch its values of k, or one of ``steps`` another."""
        run, axis, iterations = self.run, self.k_axis, self._iterations()
        own = self.registers(axis)
        places = [*dict.fromkeys(self.places[axis])]
        begin = [run.steps[step].texel for step in iterations[0]] if iterations else []
        part = len({texel[axis] for texel in begin}) or 1
        kernel = run.traced.kernel
        if find_statement(kernel.text)[0]:
            part = len({*self.places[axis][: kernel.k_step]})
        elif len({*map(tuple, begin)}) < len(begin):  # which offset is wrong isn't known
            return Note()
        for n in range(len(places) // part):
            needed = {*places[n * part : (n + 1) * part]}
            if n == len(iterations):
                return self._explain_end(iterations, needed)
            read = {step: run.steps[step].texel[axis] for step in iterations[n]}
            wrong = [step for step, place in read.items() if place not in needed]
            if needed <= {*read.values()} and not {*wrong} & {*steps}:
                continue
            if not wrong or len(own) > 1:
                return Note()
            return self._set_by(own, wrong[0], needed, iterations[n - 1][-1] if n else -1)
        return Note()

    def _iterations(self) -> list[list[int]]:
        """Return the steps by the iteration of their loop."""
        turn, found, before = 0, defaultdict(list), -1
        for step, (at, *_) in enumerate(self.run.steps):
            turn += at <= before or self.run.instruction(step).op.flow == "loop"
            before = at
            if step in self.steps:
                found[turn].append(step)
        return [*found.values()]

    def _explain_end(self, iterations: list[list[int]], needed: set[int]) -> Note:
        """Return why no fetch ran after some iterations."""
        run, body, pairs = self.run, self.run.program.body, self.run.program.matching
        fetches = [at for at, i in enumerate(body) if run.reads_from(i, self.matrix)]
        left = []  # the branches that may skip them
        for step, (at, *_) in enumerate(run.steps):
            flow = body[at].op.flow
            begin = pairs[at] if flow == "break" else at
            if flow in ("if", "break") and begin < min(fetches, default=0) < pairs[begin]:
                left.append(step)
        lines = Lines(body[at].written_line for at in fetches)
        if not left:
            return note("no loop", *lines[:1]) if iterations else Note()
        own = keys([(0, body[fetches[0]].sources[0], (self.k_axis,))])
        found = self._set_by(own, left[-1], needed, iterations[-1][-1] if iterations else -1)
        if found.kind:
            return found
        branch = run.instruction(left[-1])
        tested = keys(uses(run.program, branch))
        writers = (run.recorded.last_writer(key, left[-1]) for key in tested)
        sets = [run.line(step) for step in writers if step is not None]
        names: Values = {"iteration": len(iterations) + 1, "skipped": lines}
        return note("skipped", branch.written_line, *sets[:1], **names)

    def _set_by(self, own: set[Key], step: int, right: set[int], since: int = -1) -> Note:
        """Return the note on what set the register of a coordinate last before a step, unless that
        is right; only ``since`` a step at which it was right, if there is one.
        """
        run = self.run
        for key in own:
            writer = run.recorded.last_writer(key, step)
            if writer is not None and writer >= since:
                value = float(np.uint32(run.steps[writer].words[key[1]]).view(np.float32))
                if value // 1 not in right:
                    return note("set", run.line(writer), register=run.name(key), value=value)
        return Note()
