"""Lesson 14: what the reader's clock gets, what it is compared with, and its checks.

A *step* is (unit, busy, away): the unit is occupied for ``busy`` clocks, and the wavefront is ready
for its next step ``away`` clocks later. A clock returns *rows* (wavefront, unit, begin, free,
ready), one for each step that a wavefront has done.

The checks are laws, on random steps that no solution has seen. In some launches, wavefronts queue
at the texture unit, in others at the ALU: only those that become ready at the same time may be
served in any order. A broken law is explained by a common mistake, if a clock that makes it ends at
the same clocks, and the right one doesn't.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from heapq import heappop, heappush
from math import isclose
from typing import Any

import numpy as np

from cypresskit.chip.work import ALU
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.kernels.own import Source, resolve
from cypresskit.published import kernel as published
from cypresskit.teach.check import (
    Verdict,
    call_answer,
    check_rng,
    exercise,
    require,
)
from cypresskit.timing.timed_launch import TimedLaunch

SHORT, LONG = 128, 512  # iterations of launches
USUAL = 7, 40, 320  # overhead, pause, memory
PLACES = {"ALU": 2, "TEX": 1}  # wavefronts that a unit serves at once
ROUNDING = 1e-6  # clocks

Clause = tuple[str, int]
Step = tuple[str, float, float]
Row = tuple[int, str, float, float, float]


@cache
def clauses(kernel: Source) -> list[Clause]:
    """Return the clauses of an iteration of a kernel's main loop: ("ALU", bundles) as compiled, and
    ("TEX", clocks of the texture unit for a wavefront) as its addresses and the rule of banks give
    them. What an ALU clause does in the LDS is left out.
    """
    (path,) = TimedLaunch(resolve(kernel), size_of_launch(kernel, 8, 8, SHORT)).trace(1)
    loop, _ = max(path.segments, key=lambda segment: segment[1])
    return [
        ("ALU", clause.bundles)
        if clause.kind == ALU
        else ("TEX", round(sum(stream.cost.mean() for stream in clause.streams)))
        for clause in loop
    ]


def size_of_launch(
    kernel: Source, rows: int, columns: int, iterations: int
) -> tuple[int, int, int]:
    """Return (m, n, k) of so many rows and columns of squares of 64 work-items."""
    block_rows, block_columns = resolve(kernel).block
    k_per_iteration = kernel_stats(kernel).k_per_iteration
    assert k_per_iteration
    return 8 * rows * block_rows, 8 * columns * block_columns, iterations * k_per_iteration


def last_clock(rows: Iterable[Row]) -> float:
    """Return when the last wavefront is ready again; 0 without rows."""
    return max((row[4] for row in rows), default=0.0)


def printed(kernel: str) -> float:
    """Return the published Gflop/s of a kernel; of 37 registers, as a share of 25 registers'."""
    row = published(kernel)
    slower = row.get("slower_than_sgemm_tn_by")
    return printed("sgemm_tn") / slower if slower else float(row["gflops_max"])


# -- references

TERMS = "amount", "overhead", "pause", "memory", "overhead for each bundle", "number"
#: Busy and away of a clause, as multiples of the terms.
RIGHT = {
    "ALU": ((8, 1, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0)),
    "TEX": ((1, 0, 0, 0, 0, 0), (0, 0, 1, 1, 0, 0)),
}
#: Hints by part, term, and whether the term shouldn't be there.
HINTS = {
    ("busy", "amount", False): "a bundle takes 8 clocks, and the amount of TEX is clocks already.",
    ("busy", "overhead", False): "an ALU clause has the overhead once, in clocks.",
    ("busy", "overhead", True): "only an ALU clause has an overhead.",
    ("busy", "pause", True): "the pause occupies nothing: it belongs to `away`.",
    ("busy", "memory", True): (
        "while data are in flight, the texture unit serves others: memory belongs to `away`."
    ),
    ("busy", "overhead for each bundle", True): (
        "the overhead comes once for each clause, not for each bundle."
    ),
    ("away", "amount", True): "what occupies the unit is `busy`, and isn't counted again.",
    ("away", "overhead", True): "the overhead occupies the ALU: it belongs to `busy`.",
    ("away", "pause", False): "a wavefront pauses once after any clause, this one too.",
    ("away", "memory", False): "its data arrive `memory` clocks later.",
    ("away", "memory", True): "only a TEX clause waits for memory.",
}
AS_ARGUMENT = "overhead, pause and memory are arguments: use their names, not numbers."
NO_OTHER = "the four rules name no other clocks: which number of yours is in none of them?"
ALIKE = "the same rule holds for each clause of a unit, whatever its amount and its place."
OTHER_UNIT = 'these are the numbers of the other unit: is `unit` compared with "ALU"?'
EXCHANGED = "`busy` and `away` are exchanged."


def _terms(amount: float, overhead: float, pause: float, memory: float) -> list[float]:
    return [amount, overhead, pause, memory, overhead * amount, 1]


def right_steps(given: Iterable[Clause], *numbers: float) -> list[Step]:
    """Return the steps of clauses, for an overhead, a pause and a memory."""
    steps = []
    for unit, amount in given:
        busy, away = np.dot(RIGHT[unit], _terms(amount, *numbers)).tolist()
        steps.append((unit, busy, away))
    return steps


def right_rows(steps, wavefronts, iterations, slots=0, *, places=PLACES, hold=0, own=0):
    """Return the rows of a launch. The other arguments make mistakes: ``places`` of each unit; 1 to
    ``hold`` them while a wavefront is away; 1 if each wavefront has its ``own``.
    """
    free = {unit: [0.0] * count for unit, count in places.items()}
    begun = min(slots or wavefronts, wavefronts)
    ready = [(0.0, w, 0) for w in range(begun)]
    rows = []
    while ready:
        now, w, n = heappop(ready)
        unit, busy, away = steps[n % len(steps)]
        at = free.get(unit, free["ALU"])
        place = w % len(at) if own else at.index(min(at))
        begin = max(now, at[place])
        at[place] = begin + busy + hold * away
        rows.append((w, unit, begin, begin + busy, begin + busy + away))
        if n + 1 < iterations * len(steps):
            heappush(ready, (rows[-1][4], w, n + 1))
        elif begun < wavefronts:
            heappush(ready, (rows[-1][4], begun, 0))
            begun += 1
    return rows


def _end(*given, **mistake) -> float:
    return last_clock(right_rows(*given, **mistake))


def _rounds(steps, wavefronts, iterations, slots):
    """Return when a launch ends in which each round waits for the last one."""
    full, rest = divmod(wavefronts, slots or wavefronts)
    return full * _end(steps, slots or wavefronts, iterations) + _end(steps, rest, iterations)


#: When a clock with a common mistake ends, by the mistake's hint.
MISTAKES: dict[str, Callable[..., float]] = {
    "": _end,  # none
    "while a wavefront is away, its place is free: occupy it for `busy` clocks only.": (
        partial(_end, hold=1)
    ),
    "the ALU has two places: take the one that is free first.": (
        partial(_end, places={"ALU": 1, "TEX": 1})
    ),
    "no place belongs to a wavefront: take the one that is free first.": partial(_end, own=1),
    "ALU and texture unit work at the same time: each has places of its own.": (
        partial(_end, places={"ALU": 1})
    ),
    "wavefronts don't wait for each other: each begins its next iteration when it is ready.": (
        lambda steps, w, n, s: n * _end(steps, w, 1, s)
    ),
    "wavefronts overlap: while one is away, others use the units.": (
        lambda steps, w, n, s: w * n * sum(busy + away for _, busy, away in steps)
    ),
    "a new wavefront begins when *one* has ended, not when all of a round have.": _rounds,
}


# -- laws

PLACES_OF = {"ALU": "the ALU has two places of its own", "TEX": "TEX has one place of its own"}
FORM = "a row is (wavefront, unit, begin, free, ready)."
LATER = (
    "it begins at the later of the two clocks. Which one is served next? (Only heappush keeps"
    " `ready` in order.)"
)
EARLIEST = (
    "the one that is ready earliest comes first, whatever its number, and however much it has done."
    " heappop gives it, if the clock is first in each entry, and only heappush puts entries in."
)
AT_FIRST = "as many wavefronts as fit are ready at clock 0, and begin as soon as a place is free."
NEW = "a new wavefront is ready when one ends: push it with that clock."
WHICH_STEP = (
    "the n-th step of a wavefront is steps[n % len(steps)], and its unit is the row's second."
)
ENDLESS = (
    "the loop ends when `ready` is empty: push a wavefront only while it has steps left, with n + 1"
    " (and count those that have begun)."
)
AGAIN = "it begins with step 0: push (again, w, n + 1) while n + 1 < iterations * len(steps)."
Launch = tuple[Sequence[Step], int, int, int]


def _count_rows(call: str, rows: Sequence[Row], launch: Launch) -> None:
    """Stop the check unless each wavefront has a row for each of its steps."""
    steps, wavefronts, iterations, slots = launch
    require(rows, f"{call} returns no rows.", "append one for each step; is `rows` returned?")
    each = iterations * len(steps)
    counts = Counter(row[0] for row in rows)
    for w in sorted({*counts, *range(wavefronts)}):
        hint = AGAIN
        if w not in range(wavefronts):
            hint = "no more wavefronts begin than there are, even if there are more slots."
        elif not counts[w]:
            hint = (
                "each wavefront begins: when one ends, the next does, until none is left."
                if slots
                else "all wavefronts are in `ready` at first: is each that is taken out served?"
            )
        elif counts[w] > each:
            hint = f"it does {each} steps, and each wavefront has a number of its own."
        require(
            counts[w] == each * (w in range(wavefronts)),
            f"{call} has {counts[w]} rows of wavefront {w}. There are {wavefronts} wavefronts,"
            f" from 0 on, and each does {iterations} x {len(steps)} steps.",
            hint,
        )


def _arrivals(rows: Sequence[Row], launch: Launch) -> dict[int, float]:
    """Return from when on each wavefront may begin: later ones when one ends."""
    _, wavefronts, _, slots = launch
    first, last = {}, {}
    for w in range(wavefronts):
        own = [row for row in rows if row[0] == w]
        first[w], last[w] = min(row[2] for row in own), max(row[4] for row in own)
    begun = sorted(first, key=lambda w: first[w])
    return dict(zip(begun, [0.0] * (slots or wavefronts) + sorted(last.values())))


def _judge(call: str, rows: Sequence[Row], launch: Launch, mistake: str | None) -> None:
    """Stop the check at the first broken law. Without a ``mistake``, only those are judged that a
    single step can break; else also that each begins as soon as it can, and in order.
    """
    steps, _, _, slots = launch
    arrival = _arrivals(rows, launch)
    ready = dict(arrival)
    done: Counter[int] = Counter()
    taken = {unit: [0.0] * count for unit, count in PLACES.items()}
    served = dict.fromkeys(PLACES, (0.0, 0))  # when the last one that began was ready, and which
    for w, unit, begin, free, again in sorted(rows, key=lambda row: (row[2], ready[row[0]])):
        step_unit, busy, away = steps[done[w] % len(steps)]
        which = f"{call}: step {done[w]} of wavefront {w}"
        require(
            unit == step_unit, f"{which} is in {unit}; it should be in {step_unit}.", WHICH_STEP
        )
        least = min(taken[unit])
        late = begin - max(ready[w], least)
        waits = f"{which} begins at clock {begin:g}, but "
        laws = [
            (
                isclose(free, begin + busy),
                f"{which} occupies its unit for {free - begin:g} clocks; its `busy` is {busy:g}",
                "the place is free again at begin + busy.",
            ),
            (
                isclose(again, free + away),
                f"{which} is ready {again - free:g} clocks after its unit is free; its `away` is"
                f" {away:g}",
                "the wavefront is ready again at begin + busy + away.",
            ),
            (
                done[w] or begin >= arrival[w] - ROUNDING,
                f"{waits}all {slots} slots are taken until {arrival[w]:g}",
                NEW,
            ),
            (
                begin >= ready[w] - ROUNDING,
                f"{waits}the wavefront is ready at {ready[w]:g}",
                "it begins when the wavefront *and* a place are ready: at the later of the two.",
            ),
            (
                begin >= least - ROUNDING,
                f"{waits}the {unit} is occupied until {least:g}",
                f"{PLACES_OF[unit]}: is begin + busy stored in that which is taken?",
            ),
            (
                mistake is None or late < ROUNDING,
                f"{waits}the wavefront is ready at {ready[w]:g}, and a place of the {unit} is free"
                f" at {least:g}",
                mistake or (LATER if done[w] else NEW if arrival[w] else AT_FIRST),
            ),
            (
                mistake is None or ready[w] >= served[unit][0] - ROUNDING,
                f"{waits}it is ready at {ready[w]:g}. Wavefront {served[unit][1]} was ready later,"
                f" at {served[unit][0]:g}, and was served first",
                mistake or EARLIEST,
            ),
        ]
        for fine, words, hint in laws:
            require(fine, f"{words}.", hint)
        taken[unit][taken[unit].index(least)] = free
        served[unit] = ready[w], w
        done[w] += 1
        ready[w] = again


def _check_clock(answer: Callable, name: str, cases: Sequence[tuple]) -> Verdict:
    """Judge a clock on cases (steps, wavefronts, iterations) or (..., slots)."""

    def as_rows(given: Any) -> list[Row]:
        return [
            (int(w), str(unit), float(begin), float(free), float(ready))
            for w, unit, begin, free, ready in given
        ]

    seen: list[tuple[str, list[Row], Launch]] = []
    for case in cases:
        steps = "random steps" if seen else case[0]
        call = f"{name}({', '.join(map(str, (steps, *case[1:])))})"
        given = call_answer(
            call, answer, *case, hint="which value of that line is another one?", endless=ENDLESS
        )
        hint = f"{FORM} Is `rows` returned?"
        rows = call_answer(call, as_rows, given, hint=hint, unusable="other rows")
        launch = (*case, 0)[:4]
        _count_rows(call, rows, launch)
        _judge(call, rows, launch, None)
        seen.append((call, rows, launch))
    ends = [last_clock(rows) for _, rows, _ in seen]
    mistake = ""
    for words, makes in MISTAKES.items():
        if np.allclose([makes(*launch) for *_, launch in seen], ends, rtol=1e-9):
            mistake = words
            break
    for call, rows, launch in seen:
        _judge(call, rows, launch, mistake)
    message = f"No law is broken in {len(cases)} launches: the first ends at clock {ends[0]:g}."
    return Verdict(True, message)


# -- exercises

BY_HAND = [("TEX", 4, 6), ("ALU", 8, 2)]


def _random_steps() -> list[Step]:
    """Return steps that no solution has seen."""
    units = "TEX", *["ALU"] * check_rng.randint(1, 3)
    return [(unit, check_rng.uniform(20, 90), check_rng.uniform(1, 400)) for unit in units]


def _queue_at_tex() -> list[Step]:
    """Return steps of which a wavefront does several in a row, while another is in the TEX."""
    draw = check_rng.uniform
    alu = [("ALU", draw(1, 3), draw(0.2, 1)) for _ in range(4)]
    return [("TEX", draw(20, 25), draw(3, 5)), *alu]


def _queue_at_alu() -> list[Step]:
    """Return steps for whose ALU many wavefronts wait, of which some have done more."""
    draw = check_rng.uniform
    soon, late = ("ALU", draw(20, 40), draw(1, 10)), ("ALU", draw(20, 40), draw(50, 100))
    return [soon, late, ("TEX", draw(10, 20), draw(1, 100))]


@exercise
def check_timed(timed: Callable) -> Verdict:
    """Exercise 1: ``timed(clauses, overhead, pause, memory)``, the steps of clauses."""
    draw = check_rng.randint

    def steps(*given) -> list[Step]:
        return [(str(unit), float(busy), float(away)) for unit, busy, away in timed(*given)]

    cases: list[tuple] = [([("TEX", 128), ("ALU", 10)], *numbers) for numbers in (USUAL, (0, 0, 0))]
    for bundles in range(1, 9):
        given = [("ALU", bundles), ("TEX", draw(1, 400)), ("ALU", draw(9, 32))]
        cases.append((given, draw(1, 30), draw(31, 60), draw(100, 700)))
    form = "it returns a list with (unit, busy, away) for each clause."
    made, faults = [], []
    for case in cases:
        call = f"timed({', '.join(map(str, case))})"
        found = call_answer(call, steps, *case, hint=form, unusable="something else")
        want = right_steps(*case)
        count = f"{call} returns {len(found)} steps for {len(want)} clauses."
        require(len(found) == len(want), count, form)
        for (unit, amount), step, right in zip(case[0], found, want):
            made.append((unit, _terms(amount, *case[1:]), step[1:]))
            if step != right:
                shown = (f"({unit}, {busy:g}, {away:g})" for unit, busy, away in (step, right))
                faults.append(f"{call}: {' should be '.join(shown)}.")
    require(not faults, (*faults, "")[0], _explain(made))
    return Verdict(True, "Ten lists are right, eight of them random.")


def _explain(made: Iterable[tuple[str, list[float], Sequence[float]]]) -> str:
    """Return the hint for wrong steps, (unit, terms, (busy, away)): which term of ``busy`` or
    ``away`` is wrong, if they are sums of multiples of the terms.
    """
    wrong = []
    for unit, other in ("TEX", "ALU"), ("ALU", "TEX"):
        rows, parts = map(np.array, zip(*(row[1:] for row in made if row[0] == unit)))
        for words, meant in (OTHER_UNIT, RIGHT[other]), (EXCHANGED, RIGHT[unit][::-1]):
            if np.allclose(parts, rows @ np.transpose(meant)):
                return words
        for part, column, right in zip(("busy", "away"), parts.T, RIGHT[unit]):
            factors = np.linalg.lstsq(rows, column)[0].round(6)
            if np.allclose(rows @ factors, column):
                terms = zip(TERMS, factors, right)
                wrong += [(part, term, want == 0) for term, is_, want in terms if is_ != want]
    if any(term == "number" for _, term, _ in wrong):
        is_lacking = any(term in TERMS[1:4] and not extra for _, term, extra in wrong)
        return AS_ARGUMENT if is_lacking else NO_OTHER
    wrong.sort(key=lambda each: not each[2])  # what shouldn't be there comes first
    known = [HINTS[each] for each in wrong if each in HINTS]
    return (*known, ALIKE)[0]


@exercise
def check_run(run: Callable) -> Verdict:
    """Exercise 2: ``run(steps, wavefronts, iterations)``, the rows of wavefronts that all fit."""
    cases: list[tuple] = [(_random_steps(), w, n) for w, n in ((1, 3), (3, 9), (10, 20))]
    cases += (_queue_at_tex(), 7, 3), (_queue_at_alu(), 9, 9)
    return _check_clock(run, "run", [(BY_HAND, 2, 2), *cases])


@exercise
def check_launch(launch: Callable) -> Verdict:
    """Exercise 3: ``launch(steps, wavefronts, iterations, slots)``, more wavefronts than fit."""
    sizes = (5, 2), (13, 6), (4, 4), (3, 8), (11, 3)
    cases: list[tuple] = [(_random_steps(), w, 4, slots) for w, slots in sizes]
    cases += (_queue_at_tex(), 7, 3, 3), (_queue_at_alu(), 12, 4, 9)
    return _check_clock(launch, "launch", [(BY_HAND, 3, 1, 2), *cases])
