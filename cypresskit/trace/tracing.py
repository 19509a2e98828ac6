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
3. A loop that only counts is extrapolated (``loop_extrapolation``), and becomes one segment with a
   number of iterations. What can't be known of its registers is marked. If that is used later,
   ``NotExtrapolable`` is raised, and the trace is repeated with this loop run one iteration at a
   time.
4. An infinite loop has to be found before its iterations fill the memory. After
   ``CHECKED_ITERATIONS``, only what decides branches is run, on the compiled engine
   (``infinite_loops``).

Between two control-flow instructions,

- ``loops`` has the loops that are run one iteration at a time, the innermost last, as many as
  ``processor.masks.loops``;
- what a wavefront has run since its last ``History.end_segment`` is run once. A segment ends where
  a loop begins and where a wavefront leaves it, for those wavefronts only.

tests/test_timing_tracing.py holds the laws: wavefronts that are traced together run what each runs
alone; extrapolated loops are equal to loops that are run; infinite loops are found.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cypresskit.chip.work import WavefrontPath
from cypresskit.compiler import Code
from cypresskit.machine import shape
from cypresskit.machine.launch import KernelError
from cypresskit.trace.clauses import ClauseMaker
from cypresskit.trace.history import History
from cypresskit.trace.infinite_loops import infinite_loop
from cypresskit.trace.loop_extrapolation import (
    ExtrapolatedLoop,
    any_lane,
    can_extrapolate,
    loop_body,
)
from cypresskit.trace.memory_layout import MemoryLayout, Motion
from cypresskit.trace.memory_requests import RequestRecorder
from cypresskit.trace.symbolic import NotExtrapolable, SymbolicWords
from cypresskit.trace.vliw import Processor

MAX_WAVEFRONTS = 1 << 18  # of a trace: they take 4 GB
CHECKED_ITERATIONS = 64  # of a loop, before it is checked for being infinite


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
        raise ValueError(
            f"{code.program.name}: to simulate all of its {len(wavefronts):,} wavefronts would take"
            " too much memory: take a smaller launch, or leave out exact=True if it is given"
        )
    return _traced(code, memory_layout, wavefronts)


def _traced(code: Code, memory_layout: MemoryLayout, wavefronts: np.ndarray) -> list[WavefrontPath]:
    """Trace with all loops extrapolated that can be; if a value is used that this left unknown,
    trace again with these loops run.
    """
    stepped: frozenset[int] = frozenset()
    while True:
        attempt = _Tracer(code, memory_layout, wavefronts, stepped)
        try:
            with np.errstate(all="ignore"):
                return attempt.run()
        except NotExtrapolable:
            assert attempt.extrapolated - stepped
            stepped |= attempt.extrapolated


@dataclass(eq=False)
class _RunningLoop:
    """A loop that is run one iteration at a time.

    Attributes
    ----------
    start
        Its LOOP_START among the control-flow instructions.
    members
        Mask of the wavefronts that are still in it.
    iterations
        The number of iterations so far.
    """

    start: int
    members: np.ndarray
    iterations: int = 0


class _Tracer:
    """Traces some wavefronts.

    Attributes
    ----------
    stepped, extrapolated
        Loops (indices of LOOP_START) that are run one iteration at a time, and those that were
        extrapolated.
    """

    def __init__(
        self,
        code: Code,
        memory_layout: MemoryLayout,
        wavefronts: np.ndarray,
        stepped: frozenset[int],
    ):
        self.code = code
        self.memory_layout = memory_layout
        self.wavefronts = wavefronts
        self.stepped = stepped
        self.extrapolated = frozenset[int]()

        x, y, exist = shape.lanes(memory_layout.shape, wavefronts)
        words = SymbolicWords(code.program)
        self.memory = RequestRecorder(words)
        self.processor = Processor(
            code,
            shape.input_registers(memory_layout.shape, x, y),
            memory_layout.shape.constants,
            words,
            self.memory,
            exist,
        )
        self.history = History(len(wavefronts))
        self.clause_maker = ClauseMaker(code, memory_layout, x, y)
        self.loops: list[_RunningLoop] = []
        self._members: dict[bytes, np.ndarray] = {}

    def run(self) -> list[WavefrontPath]:
        at = 0
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
            accesses = [(access, Motion()) for access in self.memory.noted]
            members = self.members(active)
            clauses = self.clause_maker.clauses(at, accesses, active, members)
            self.history.add(members, clauses)
        return following

    def members(self, lanes: np.ndarray) -> np.ndarray:
        """Return the mask of wavefronts that have any of these lanes: one array for equal masks, as
        ``History`` compares them.
        """
        members = any_lane(lanes)
        return self._members.setdefault(members.tobytes(), members)

    # Loops

    def _enter_loop(self, at: int) -> int:
        """Begin the loop at ``at``, and extrapolate it if possible."""
        masks = self.processor.masks
        members = self.members(masks.active)
        self.history.end_segment(members)
        following = self.processor.step(at)
        if masks.count and at not in self.stepped and can_extrapolate(self.code, at):
            self._extrapolate(at)
        self.loops.append(_RunningLoop(at, members))
        return following

    def _extrapolate(self, at: int) -> None:
        """Fast-forward the loop at ``at``, and record its iterations."""
        fast_forwarded = ExtrapolatedLoop(self.processor, at).run()
        if fast_forwarded is None:
            return
        trip_count, accesses_of = fast_forwarded
        self.extrapolated |= {at}
        active = self.processor.masks.active
        members = self.members(active)
        for n, accesses in accesses_of.items():
            clauses = self.clause_maker.clauses(n, accesses, active, members)
            self.history.add(members, clauses)
        self.history.end_segment(members, trip_count)

    def _end_iteration(self, at: int) -> int:
        """End an iteration of the innermost loop, at its LOOP_END. Return the index of the next
        instruction: the loop's first, or the one after the loop once all lanes have left.
        """
        loop = self.loops[-1]
        running = self.members(self.processor.masks.loops[-1].loop_mask)
        departed = loop.members & ~running
        if departed.any():
            self.history.end_segment(departed)
        loop.members = running

        following = self.processor.step(at)
        if following > at:
            self.loops.pop()
            return following

        loop.iterations += 1
        if loop.iterations == CHECKED_ITERATIONS:
            self._check_that_it_ends()
        return following

    def _check_that_it_ends(self) -> None:
        """Raise the ``KernelError`` of an infinite loop once it has completed an iteration. Before,
        its branch may still turn out to depend on data.
        """
        error = self._infinite_loop
        if error is None:
            return
        end = self.code.program.matching[error.at]
        for loop in self.loops:
            body = loop_body(self.code, loop.start)
            if all(error.at <= control.at <= end for control in body):
                if loop.iterations:
                    raise error
                return

    @cached_property
    def _infinite_loop(self) -> KernelError | None:
        return infinite_loop(self.memory_layout.shape, self.wavefronts)
