"""Trace wavefronts through compiled code without data: their clauses, and the addresses of
accesses.

How it works
------------
1. A ``Processor`` runs the code on values that record whether they come from memory (``symbolic``),
   with a memory that records addresses (``memory_requests``). A branch or an address that depends
   on data is an error.
2. All wavefronts are traced at once, as the lanes of one wavefront are. Where they diverge, both
   paths are run, one after the other, under masks. A ``History`` records each clause with the mask
   of the wavefronts that ran it (``members``), and finally turns this into paths.
3. Iterations of a loop that do the same are joined in a segment with a number of iterations, and
   most of them are skipped (``loop_extrapolation``), as far as one of them proves this
   (``forecast``). What can't be known of the registers is marked. If that is used later,
   ``NotExtrapolable`` is raised, and the trace is repeated one iteration at a time.
4. An infinite loop has to be found before its iterations fill the memory. After
   ``CHECKED_ITERATIONS``, and whenever their number has doubled since, only what decides branches
   is run for the lanes that are left, on the compiled engine (``infinite_loops``).

Between two control-flow instructions,

- ``loops`` has the loops that are run, the innermost last, as many as ``processor.masks.loops``;
- what a wavefront has run since its last ``History.end_segment`` is run once. A segment ends where
  a loop begins, where a wavefront leaves it, and where an iteration of an innermost loop doesn't do
  the same as the one before, for those wavefronts only.

tests/core/test_trace_tracing.py holds the laws: wavefronts that are traced together run what each
runs alone; joined iterations are equal to those that are run one at a time; infinite loops are
found.
"""

from collections.abc import Iterable
from functools import cached_property
from itertools import repeat

import numpy as np

from cypresskit.chip.work import WavefrontPath
from cypresskit.compiler import Code
from cypresskit.devices import WAVEFRONT
from cypresskit.il.errors import ArgumentError
from cypresskit.machine import shape
from cypresskit.machine.launch import KernelError
from cypresskit.trace.clauses import ClauseMaker
from cypresskit.trace.history import History
from cypresskit.trace.infinite_loops import infinite_loop
from cypresskit.trace.loop_extrapolation import Executed, RunningLoop, forget_growths
from cypresskit.trace.memory_layout import MemoryLayout, Motion
from cypresskit.trace.memory_requests import RequestRecorder
from cypresskit.trace.symbolic import NotExtrapolable, SymbolicWords
from cypresskit.trace.vliw import Processor

MAX_WAVEFRONTS = 1 << 18  # of a trace: they take 4 GB
CHECKED_ITERATIONS = 64  # of a loop, before it is checked for being infinite: a power of two


def members_of(lanes: np.ndarray) -> np.ndarray:
    """Return the mask of the wavefronts that have any of these lanes."""
    return np.any(lanes.reshape(-1, WAVEFRONT), axis=1)


def can_join(code: Code, start: int) -> bool:
    """Return whether a loop's iterations are joined: one without other loops."""
    body = code.controls[start + 1 : code.controls[start].target]
    return all(control.name != "LOOP_START_DX10" for control in body)


def trace_wavefronts(
    code: Code, memory_layout: MemoryLayout, wavefronts: np.ndarray
) -> list[WavefrontPath]:
    """Trace wavefronts.

    Parameters
    ----------
    code
        The compiled kernel.
    memory_layout
        The memory of its launch.
    wavefronts
        Numbers in dispatch order.

    Returns
    -------
    One path for each set of wavefronts that run the same clauses.

    Raises
    ------
    ValueError
        For more than ``MAX_WAVEFRONTS``.
    """
    if len(wavefronts) > MAX_WAVEFRONTS:
        raise ArgumentError(
            f"{code.program.name}: to simulate all of its {len(wavefronts):,} wavefronts would take"
            " too much memory: take a smaller launch, or leave out exact=True if it is given"
        )
    try:
        return _Tracer(code, memory_layout, wavefronts, joins=True).run()
    except NotExtrapolable:
        return _Tracer(code, memory_layout, wavefronts, joins=False).run()


class _Tracer:
    """Traces some wavefronts.

    Attributes
    ----------
    joins
        Whether iterations that do the same are joined, and most of them skipped.
    """

    def __init__(
        self,
        code: Code,
        memory_layout: MemoryLayout,
        wavefronts: np.ndarray,
        joins: bool,
    ):
        self.code = code
        self.memory_layout = memory_layout
        self.wavefronts = wavefronts
        self.joins = joins

        x, y, self.exist = shape.lanes(memory_layout.shape, wavefronts)
        words = SymbolicWords(code.program)
        self.memory = RequestRecorder(words)
        self.processor = Processor(
            code,
            shape.input_registers(memory_layout.shape, x, y),
            memory_layout.shape.constants,
            words,
            self.memory,
            self.exist,
        )
        self.history = History(len(wavefronts))
        self.clause_maker = ClauseMaker(code, memory_layout, x, y)
        self.loops: list[RunningLoop] = []

    def run(self) -> list[WavefrontPath]:
        at = 0
        with np.errstate(all="ignore"):
            while at != len(self.code.controls) - 1:
                at = self._step(at)
        return self.history.paths(self.wavefronts)

    def _step(self, at: int) -> int:
        """Run control-flow instruction ``at``. Return the index of the next one."""
        name = self.code.controls[at].name
        if name == "LOOP_START_DX10":
            return self._enter_loop(at)
        if name == "LOOP_END":
            return self._end_iteration(at)

        masks = self.processor.masks
        active = masks.active
        any_active = masks.count > 0
        self.memory.noted = []
        following = self.processor.step(at)
        if any_active:
            executed = Executed(at, active, members_of(active), self.memory.noted)
            if self.loops and self.loops[-1].is_joined:
                self.loops[-1].executed.append(executed)
            else:
                self._record([executed], repeat(Motion()))
        return following

    def _record(self, executed: list[Executed], motions: Iterable[Motion]) -> None:
        """Record what some wavefronts executed, given the motion of each access."""
        of_each = iter(motions)
        for one in executed:
            accesses = [(request, next(of_each)) for request in one.requests]
            clauses = self.clause_maker.clauses(one.at, accesses, one.active, one.members)
            self.history.add(one.members, clauses)

    # Loops

    def _enter_loop(self, at: int) -> int:
        """Begin the loop at ``at``."""
        members = members_of(self.processor.masks.active)
        self.history.end_segment(members)
        joins = self.joins and can_join(self.code, at)
        self.loops.append(RunningLoop(at, members, joins, self.processor.registers))
        return self.processor.step(at)

    def _end_iteration(self, at: int) -> int:
        """End an iteration of the innermost loop, at its LOOP_END. Return the index of the next
        instruction: the loop's first, or the one after the loop once all lanes have left.
        """
        loop = self.loops[-1]
        running = members_of(self.processor.masks.loops[-1].loop_mask)
        departed = loop.members & ~running
        loop.part += 1
        is_whole = loop.is_joined and (loop.part == loop.period or bool(departed.any()))
        if is_whole and not loop.continues():
            self._end_segment(loop)
            loop.restart()
        if departed.any():
            if loop.is_joined:
                self._end_segment(loop)
            else:
                self.history.end_segment(departed)
        loop.members = running

        following = self.processor.step(at)
        if following > at:
            self.loops.pop()
            forget_growths(self.processor)
            return following

        loop.run += 1
        if loop.run >= CHECKED_ITERATIONS and loop.run.bit_count() == 1:
            self._check_that_it_ends()
        if is_whole:
            loop.end_iteration(self.processor)
            loop.executed, loop.part = [], 0
        return following

    def _end_segment(self, loop: RunningLoop) -> None:
        """Record the iterations of a loop that did the same, if any."""
        if loop.count:
            steps = loop.steps if loop.count > 1 else repeat(())
            self._record(loop.first, (Motion(loop.count, *step) for step in steps))
            self.history.end_segment(loop.members, loop.count)
            loop.count = 0

    def _check_that_it_ends(self) -> None:
        """Raise the ``KernelError`` of an infinite loop once it has completed an iteration. Before,
        its branch may still turn out to depend on data.
        """
        if not self._is_infinite:
            return
        begun = {self.code.controls[loop.start].at for loop in self.loops if loop.run}
        error = self._infinite_loop(self.processor.masks.active)
        if error is not None and error.at in begun:
            raise error

    @cached_property
    def _is_infinite(self) -> bool:
        """Whether any lane never ends: mostly none does, and nothing more has to be asked."""
        return self._infinite_loop(self.exist) is not None

    def _infinite_loop(self, active: np.ndarray) -> KernelError | None:
        return infinite_loop(self.memory_layout.shape, self.wavefronts, active)
