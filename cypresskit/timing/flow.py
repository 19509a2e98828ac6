"""The way of a party of wavefronts through compiled code: clause after clause, with the addresses of each access.

What the slice did is sorted into one queue per instruction: its streams, or which way its branch went, in the order of
time, with how often they repeat. The compiled control flow is then run, and every clause takes what its instructions
have next in their queues. So it doesn't matter where the compiler put a test or a fetch. A turn of a loop in which
everything taken has repeats left becomes a segment with as many.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from cypresskit.compiler import Code, Control
from cypresskit.compiler.code import Clause as Compiled
from cypresskit.timing.addresses import Choice, Scope
from cypresskit.timing.work import ALU, BARRIER, WRITE, Clause, Path, Stream, combined_stores, fetch_clause, shifted


@dataclass(eq=False)
class _Entry:
    """Something in a queue: taken ``used`` times of ``count``."""

    what: list[Stream] | Choice
    count: int
    used: int = 0

    @property
    def left(self) -> int:
        return self.count - self.used


@dataclass(eq=False)
class _Frame:
    """A stretch of clauses: the whole program, or the present turn of a loop that starts at control ``start``."""

    start: int
    ifs: int = 0  # branches that are open around it
    clauses: list[Clause] = field(default_factory=list)
    taken: list[_Entry] = field(default_factory=list)
    simple: bool = True  # no loop in it


def path(code: Code, party: np.ndarray, scope: Scope, group: int = 1) -> Path:
    """The clauses that wavefronts ``party`` run, given what their slice did; ``group`` wavefronts make a workgroup."""
    return Path(party, tuple(_Way(code, scope, group).run()))


class _Way:
    def __init__(self, code: Code, scope: Scope, group: int):
        self.controls, self.body, self.group = code.controls, code.program.body, group
        self.queues: dict[int, deque[_Entry]] = {}
        self._sort(scope, 1)
        self.depth = _loop_depths(code)
        self.first: dict[tuple[str, int], Control] = {}  # where an access is made, if several operations make it
        for control in self.controls:
            for kind, at in _accesses(control.clause):
                self.first.setdefault((kind, at), control)
        self.segments: list[tuple[tuple[Clause, ...], int]] = []
        self.frames = [_Frame(-1)]

    def _sort(self, scope: Scope, times: int) -> None:
        for at, streams in scope.streams.items():
            self.queues.setdefault(at, deque()).append(_Entry(streams, times))
        for at, choice in scope.choices.items():
            self.queues.setdefault(at, deque()).append(_Entry(choice, times))
            for side in choice.sides:
                if side is not None:
                    self._sort(side, times)
        for loop in scope.loops.values():
            for turn, repeats in loop:
                self._sort(turn, times * repeats)

    def _take(self, at: int) -> _Entry:
        """What instruction ``at`` has next."""
        queue = self.queues.get(at)
        if not queue:
            raise RuntimeError(f"the compiled code runs instruction {at} ({self.body[at]}) more often than the program")
        entry = queue[0]
        entry.used += 1
        self.frames[-1].taken.append(entry)
        if not entry.left:
            queue.popleft()
        return entry

    def _choice(self, at: int) -> Choice:
        what = self._take(at).what
        assert isinstance(what, Choice)
        return what

    def run(self) -> list[tuple[tuple[Clause, ...], int]]:
        """Follow the control flow; the segments of the path."""
        pc, tested, at = 0, Choice(True, True), 0
        ifs: list[Choice] = []
        while pc < len(self.controls):
            control = self.controls[pc]
            pc += 1
            if control.clause is not None:
                self._clause(control)
                if control.name in ("ALU_PUSH_BEFORE", "ALU_BREAK", "ALU_CONTINUE"):
                    at = next(o.at for b in control.clause.bundles for o in b.operations if o.row.predicate)
                    tested = self._choice(at)
                    if control.name != "ALU_PUSH_BEFORE" and tested.gone:
                        pc = self._leave(tested.gone, ifs)
            elif control.store is not None:
                self._store(control)
            elif control.name == "JUMP":
                # The test of a loop that is made before the loop lets pass who stays in it.
                guards = self.body[at].op.flow != "if" and control.depth < self.depth[at]
                ifs.append(Choice(True, True) if guards else tested)
                if tested.gone if guards else not tested.then:
                    pc = _target(control)
            elif control.name == "ELSE":
                if not ifs[-1].other:
                    pc = _target(control)
            elif control.name == "POP":
                choice = ifs.pop()
                if choice.gone and len(self.frames) > 1 and len(ifs) >= self.frames[-1].ifs:
                    pc = self._leave(choice.gone, ifs)
            elif control.name in ("LOOP_BREAK", "LOOP_CONTINUE"):
                if ifs and ifs[-1].gone:
                    pc = self._leave(ifs[-1].gone, ifs)
            elif control.name == "LOOP_START_DX10":
                self.frames[-1].simple = False
                self._flush()
                self.frames.append(_Frame(pc - 1, len(ifs)))
            elif control.name == "LOOP_END":
                self._turned()
                pc = _target(control)
        self._flush()
        return self.segments

    def _leave(self, how: str, ifs: list[Choice]) -> int:
        """Everyone is gone from the loop's turn: the next control."""
        frame = self.frames[-1]
        del ifs[frame.ifs :]
        after = _target(self.controls[frame.start])
        if how == "continue":
            return after - 1
        self._flush()
        self.frames.pop()
        return after

    def _turned(self) -> None:
        """A turn of a loop has ended and another follows."""
        frame = self.frames[-1]
        more = min((entry.left for entry in frame.taken), default=0) if frame.simple else 0
        for entry in frame.taken if more else ():
            entry.used += more
            for queue in self.queues.values():
                if queue and not queue[0].left:
                    queue.popleft()
        if more:
            self._flush(1 + more)
        elif not frame.simple:
            self._flush()
        frame.taken, frame.simple = [], True

    def _flush(self, times: int = 1) -> None:
        clauses = self.frames[-1].clauses
        if clauses:
            self.segments.append((tuple(combined_stores(clauses)), times))
            self.frames[-1].clauses = []

    # Clauses

    def _streams(self, at: int, stores: bool) -> list[Stream]:
        """The next streams of an instruction's reads, or of its store."""
        is_store = self.body[at].dest is not None and self.body[at].dest.register.kind in "go"  # type: ignore[union-attr]
        entry = self._take(at) if not (is_store and self._reads(at) and not stores) else self.queues[at][0]
        assert isinstance(entry.what, list)
        turn = entry.used - 1 if entry.used else 0
        chosen = entry.what[-1:] if stores else entry.what[:-1] if is_store else entry.what
        return [shifted(stream, turn) for stream in chosen]

    def _reads(self, at: int) -> bool:
        return any(source.register.kind == "g" for source in self.body[at].sources)

    def _clause(self, control: Control) -> None:
        clause = control.clause
        assert clause is not None
        streams = [
            s for kind, at in _accesses(clause) if self.first[kind, at] is control for s in self._streams(at, False)
        ]
        to = self.frames[-1].clauses
        if clause.kind == "TEX":
            to.append(fetch_clause(streams))
            return
        count = 0
        for bundle in clause.bundles:
            if self.group > 1 and any(o.row.kind == "sync" for o in bundle.operations):
                to += [Clause(ALU, count), Clause(BARRIER)]
                count = 0
            else:
                count += 1
        to.append(Clause(ALU, count, tuple(streams)))

    def _store(self, control: Control) -> None:
        to = self.frames[-1].clauses
        assert control.store is not None
        streams = tuple(self._streams(control.store.at, True))
        if to and to[-1].kind == WRITE:
            to[-1] = Clause(WRITE, 0, to[-1].streams + streams)
        else:
            to.append(Clause(WRITE, 0, streams))


def _target(control: Control) -> int:
    assert control.target is not None
    return control.target


def _accesses(clause: Compiled | None) -> list[tuple[str, int]]:
    """Kind and instruction of the accesses in a clause, each once."""
    if clause is None:
        return []
    found = [("fetch", f.at) for f in clause.fetches]
    found += [("lds", o.at) for b in clause.bundles for o in b.operations if o.row.kind == "lds"]
    return list(dict.fromkeys(found))


def _loop_depths(code: Code) -> list[int]:
    """How many loops are around each instruction of the program."""
    depths, depth = [], 0
    for i in code.program.body:
        depth -= i.op.flow == "endloop"
        depths.append(depth)
        depth += i.op.flow == "loop"
    return depths
