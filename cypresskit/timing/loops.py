"""Loops as affine functions of their turn: a counting loop is run once for all turns in which
nobody leaves.

A loop without branches of its own is tried. Its carried registers become start + step * turn: the
steps are found by running one turn, and proven by running it again with them. The tests of its
breaks then say how many turns there are. What can't be settled so is left to be run turn by turn:
``NotAffine``.
"""

import re

import numpy as np

from cypresskit.compiler import Code
from cypresskit.compiler.assembly import Control
from cypresskit.machine.launch import KernelError
from cypresskit.timing.affine import IRREGULAR, NOBODY, ZERO, Affine, Exactness, first_turn, merge
from cypresskit.timing.lanes import Lanes, Register
from cypresskit.timing.surfaces import NotAffine

MOST_TURNS = 1 << 22
PASSES = 16  # over a loop, until what its registers hold is settled
#: Clauses, stores and breaks: also breaks under a condition, where these aren't an ALU_BREAK.
COUNTABLE = re.compile(
    r"(ALU |TEX |ALU_BREAK |ALU_PUSH_BEFORE JUMP LOOP_BREAK POP |EXPORT |MEM_\w+ )*"
)


def loop_body(code: Code, start: int) -> tuple[Control, ...]:
    """The controls between a loop's start and its end."""
    return code.controls[start + 1 : loop_end(code, start)]


def loop_end(code: Code, start: int) -> int:
    """The LOOP_END of the loop that starts at control ``start``."""
    return code.controls[start].target - 1


def can_count(code: Code, start: int) -> bool:
    """Whether a loop has nothing in it but clauses, stores and breaks."""
    return (
        COUNTABLE.fullmatch("".join(f"{control.name} " for control in loop_body(code, start)))
        is not None
    )


def run_counted(lanes: Lanes, start: int) -> int:
    """Run at once all turns in which no lane leaves the loop, and return how many:
    ``lanes.clauses`` stand for all of them, registers are as after the last one. 0 if the loop
    isn't affine; then nothing has changed.
    """
    before, lanes.masked = dict(lanes.registers), False
    try:
        carried = _carried(lanes, start)
        turns = _count(lanes, start)
        if turns:
            lanes.turns = turns
            _run_turn(lanes, start, carried)
    except NotAffine:
        turns = 0
    finally:
        lanes.turns, lanes.masked = 1, True
    if not turns:
        lanes.registers, lanes.clauses = before, []
    for place, word in lanes.registers.items():
        if word is not before.get(place):
            now, old = word.later(turns - 1), before.get(place, ZERO)
            lanes.registers[place] = now if lanes.whole else merge(now, old, lanes.masks.active)
    return turns


def _carried(lanes: Lanes, start: int) -> dict[Register, Affine]:
    """The registers at the beginning of turn 0, with a step where they have one."""
    before = dict(lanes.registers)
    _run_turn(lanes, start, before, dry=True)
    changed = {place: new for place, new in lanes.registers.items() if new is not before.get(place)}
    carried = before | {
        place: _advancing(before.get(place, ZERO), new) for place, new in changed.items()
    }
    for _ in range(PASSES):
        _run_turn(lanes, start, carried, dry=True)
        found = {place: lanes.registers[place] for place in changed}
        wrong = {
            at: new
            for at, new in found.items()
            if not _proven(carried[at], new, lanes.masks.active)
        }
        if not wrong:
            return carried
        carried |= {
            place: new if new.loaded is not NOBODY else IRREGULAR for place, new in wrong.items()
        }
    raise NotAffine


def _advancing(old: Affine, new: Affine) -> Affine:
    """The word that is ``old`` in turn 0 and ``new`` in turn 1."""
    if new.loaded is not NOBODY:
        return new
    if IRREGULAR in (old, new) or old.loaded is not NOBODY:
        return IRREGULAR
    if new is old or (new.bits == old.bits).all():
        return old
    start = Affine(old.bits, new.kind).number()
    return Exactness().word(start, new.number() - start, new.kind)


def _proven(start: Affine, end: Affine, active: np.ndarray) -> bool:
    """Whether a turn that begins with ``start`` ends with ``start`` one step on."""
    if start is IRREGULAR or start.loaded is not NOBODY or end is start:
        return True
    if end is IRREGULAR or end.test or end.loaded is not NOBODY:
        return False
    if start.step is None:
        return end.step is None and bool(((end.bits == start.bits) | ~active).all())
    if end.step is None or end.kind != start.kind:
        return False
    return bool(
        (((end.number() == start.number() + start.step) & (end.step == start.step)) | ~active).all()
    )


def _run_turn(
    lanes: Lanes, start: int, registers: dict[Register, Affine], dry: bool = False
) -> None:
    """Run a loop's clauses once, from ``registers`` on; no lane leaves it."""
    lanes.registers, lanes.exact, lanes.dry = dict(registers), Exactness(), dry
    lanes.breaks = []
    try:
        for control in loop_body(lanes.code, start):
            if control.bundles or control.fetches:
                test = lanes.clause(control)
                if test is not None:
                    lanes.check(test[1], test[0].at)
                    lanes.breaks.append((test[1], control.name == "ALU_PUSH_BEFORE"))
            elif control.store is not None and not dry:
                lanes.store(control.store)
    finally:
        lanes.dry = False


def _count(lanes: Lanes, start: int) -> int:
    """The number of turns in which no lane leaves the loop."""
    turns = lanes.exact.turns
    for word, wanted in lanes.breaks:
        if word is IRREGULAR:
            raise NotAffine
        leaves = np.broadcast_to(first_turn(word, wanted), lanes.items)
        turns = min(turns, float(leaves[lanes.masks.active].min()))
    if turns > MOST_TURNS:
        raise endless_loop(lanes.code, start)
    return int(turns)


def endless_loop(code: Code, start: int) -> KernelError:
    """The error for a loop that is run for longer than anyone means it to."""
    program, inside = code.program, code.controls[loop_end(code, start)].at
    around = [
        at
        for at, i in enumerate(program.body)
        if i.op.flow == "loop" and at <= inside <= program.matching[at]
    ]
    line = program.body[max(around, default=inside)].line
    what = f"this loop has not ended after {MOST_TURNS} turns"
    return KernelError(f"{program.where(line)}\n    {what}", line, kind="endless")
