"""Lesson 14: what the reader's clock gets, what it is compared with, and its checks.

A *step* is (unit, busy, away): the unit is occupied for ``busy`` clocks, and the wavefront is ready
for its next step ``away`` clocks later. A clock returns *rows* (wavefront, unit, begin, free,
ready), one for each step that a wavefront has done.

A clock is judged on random steps that no solution has seen: each row by the rules, and by the rows
before it. So wavefronts that become ready at the same clock may be served in any order. The first
row that breaks a rule is shown. If it begins too late, its hint says what it has waited for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from heapq import heappop, heappush

from cypresskit.chip.work import ALU
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.kernels.own import Source, resolve
from cypresskit.published import kernel as published
from cypresskit.tables import quantity
from cypresskit.teach.check import (
    Verdict,
    call_answer,
    check_rng,
    function_exercise,
    require,
)
from cypresskit.timing.timed_launch import TimedLaunch

USUAL = 7, 40, 320  # overhead, pause, memory
PLACES = {"ALU": 2, "TEX": 1}  # wavefronts that a unit serves at once

Clause = tuple[str, int]
Step = tuple[str, float, float]
Row = tuple[int, str, float, float, float]


def clauses(kernel: Source) -> list[Clause]:
    """Return the clauses of an iteration of a kernel's main loop: ("ALU", bundles) as compiled, and
    ("TEX", clocks of the texture unit for a wavefront) as its addresses and the rule of banks give
    them. What an ALU clause does in the LDS is left out.
    """
    return list(_clauses(resolve(kernel)))


@cache
def _clauses(kernel: Kernel) -> list[Clause]:
    (path,) = TimedLaunch(kernel, size_of_launch(kernel, 8, 8, 128)).trace(1)
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


# -- the right clock


def right_steps(
    given: Iterable[Clause], overhead: float, pause: float, memory: float
) -> list[Step]:
    """Return the steps of clauses."""
    return [
        (unit, overhead + 8 * amount, pause) if unit == "ALU" else (unit, amount, memory + pause)
        for unit, amount in given
    ]


def right_rows(
    steps: Sequence[Step], wavefronts: int, iterations: int, slots: int = 0
) -> list[Row]:
    """Return the rows of wavefronts, of which all fit or as many as there are slots."""
    rows = []
    free = {unit: [0.0] * count for unit, count in PLACES.items()}
    begun = min(slots or wavefronts, wavefronts)
    ready = [(0.0, w, 0) for w in range(begun)]
    while ready:
        now, w, n = heappop(ready)
        unit, busy, away = steps[n % len(steps)]
        begin = max(now, heappop(free[unit]))
        heappush(free[unit], begin + busy)
        again = begin + busy + away
        rows.append((w, unit, begin, begin + busy, again))
        if n + 1 < iterations * len(steps):
            heappush(ready, (again, w, n + 1))
        elif begun < wavefronts:
            heappush(ready, (again, begun, 0))
            begun += 1
    return rows


# -- exercise 1

#: What a rule adds to a step, and (overhead, pause, memory) that show this rule alone.
RULES = [
    (
        (0, 0, 0),
        "a bundle of the ALU takes 8 clocks; an amount of TEX is clocks. All other clocks are 0"
        ' here: use the names of the arguments. (Is `unit` compared with "ALU"?)',
    ),
    ((9, 0, 0), "an ALU clause, and no other, occupies its place for `overhead` clocks, once."),
    ((0, 0, 700), "only TEX waits for memory. It occupies nothing meanwhile: memory is `away`."),
    ((0, 50, 0), "the pause comes once, after any clause. It occupies nothing: it is `away`."),
]
AFTER = "`away` begins when `busy` ends: don't add or subtract what the step is busy for."
LIST = "it returns a list with (unit, busy, away) for each clause."
ORDER = "the steps come in the order of the clauses."
TOGETHER = "each rule adds its clocks to busy or away, whatever the others add."


@function_exercise
def check_timed(timed: Callable) -> Verdict:
    """Exercise 1: ``timed(clauses, overhead, pause, memory)``, the steps of clauses."""
    draw = check_rng.randint

    def steps(*given) -> list[Step]:
        return [(str(unit), busy + 0.0, away + 0.0) for unit, busy, away in timed(*given)]

    random = (draw(1, 30), draw(31, 60), draw(100, 700)), TOGETHER
    for numbers, hint in [*RULES, *[random] * 5]:
        given = [("ALU", 1), ("TEX", draw(1, 400)), ("ALU", draw(2, 32))]
        call = f"timed({given}, {', '.join(map(str, numbers))})"
        found = call_answer(call, steps, given, *numbers, hint=LIST, unusable="something else")
        count = quantity(len(found), "step")
        require(len(found) == 3, f"{call} returns {count} for 3 clauses.", LIST)
        wanted = right_steps(given, *numbers)
        where = ORDER if sorted(found) == sorted(wanted) else hint
        for pair in zip(found, wanted):
            shown = " should be ".join("({}, {:g}, {:g})".format(*step) for step in pair)
            (*begun, away), (*rest, right) = pair
            where = AFTER if begun == rest and abs(away - right) == rest[1] else where
            require(pair[0] == pair[1], f"{call}: {shown}.", where)
    return Verdict(True, "All nine lists are right.")


# -- exercises 2 and 3

LAUNCHES = 90  # of random steps; a new wavefront that is out of order shows in every ninth
BY_HAND = [("TEX", 4, 6), ("ALU", 8, 2)]
FORM = "a row is (wavefront, unit, begin, free, ready)."
ENDLESS = (
    "the loop ends when `ready` is empty: push a wavefront only while it has steps left, with n + 1"
    " (and count those that have begun)."
)
AGAIN = (
    "at first, `ready` has all wavefronts that fit. Push (again, w, n + 1) as long as"
    " n + 1 < iterations * len(steps), and only then."
)
NEXT = " Then push the next wavefront, with its own number and step 0, as long as one is left."
ONE = "does `return` stand inside the loop? And `while` goes on as long as `ready` has entries."
KEPT = "make all lists that change inside the function: an earlier call left something in one."
SORTED = "append a row when its step is served, and leave the rows in that order."
STEP = "a wavefront's n-th step is steps[n % len(steps)]. Its unit is the row's second value."
NEW = (
    "At first only `slots` wavefronts are ready. When *one* ends, another is ready, at that clock."
)
LATER = (
    "it begins when the wavefront *and* a place are ready: at the later of the two. A place is free"
    " again at begin + busy."
)
TAKEN = (
    "does it wait for a place, and is begin + busy stored in that one? TEX has one of its own, the"
    " ALU two."
)
AWAY = (
    "A place is occupied for `busy` clocks only. While a wavefront is away, others begin, and none"
    " waits for it."
)
PLACE = "ALU and TEX have places of their own: take the one of the unit that is free first."
EARLIEST = (
    "The one that is ready earliest comes first, whatever its number. heappop gives it, if the"
    " right clock is first in each entry, and if only heappush puts entries in."
)
SUMS = "its place is free at begin + busy, and it is ready again at begin + busy + away."
Launch = tuple[Sequence[Step], int, int, int]


def _check_clock(answer: Callable, name: str, cases: Sequence[tuple]) -> Verdict:
    """Judge a clock on launches of random steps, each (wavefronts, iterations) or (..., slots), and
    before them twice on steps by hand.
    """

    def as_rows(*case) -> list[Row]:
        return [
            (w + 0, str(unit), begin + 0.0, free + 0.0, ready + 0.0)  # a text isn't a number
            for w, unit, begin, free, ready in answer(*case)
        ]

    before: list[Row] = []
    for number, case in enumerate([cases[0], *cases]):
        steps = _random_steps() if number > 1 else BY_HAND
        call = f"{name}({', '.join(map(str, (steps, *case)))})"
        rows = call_answer(
            call, as_rows, steps, *case, hint=FORM, unusable="rows of another form", endless=ENDLESS
        )
        require(rows, f"{call} returns no rows.", "append one for each step. Is `rows` returned?")
        again = number != 1 or rows == before
        require(again, f"{call}, called again, returns other rows than at first.", KEPT)
        before = rows
        judge_rows(call, rows, (steps, *case, 0)[:4])
    return Verdict(True, f"All rows are right in {len(cases)} launches.")


def _random_steps() -> list[Step]:
    """Return steps that no solution has seen, of whole clocks, long and very short ones."""
    draw = check_rng.randint

    def clocks() -> int:
        return draw(1, 2 ** draw(6, 18))

    units = [check_rng.choice(["ALU", "TEX"]) for _ in range(draw(2, 4))]
    return [(unit, clocks(), clocks()) for unit in units]


def judge_rows(call: str, rows: Sequence[Row], launch: Launch) -> None:
    """Stop the check at the first row that breaks a rule, judged by the rows before it."""
    steps, wavefronts, iterations, slots = launch
    counts = Counter(row[0] for row in rows)
    for w in dict.fromkeys([*range(wavefronts), *counts]):
        each = iterations * len(steps) * (w in range(wavefronts))
        require(
            counts[w] == each,
            f"{call}: wavefront {w} has {quantity(counts[w], 'row')}, and should have {each}. There"
            f" are {wavefronts} wavefronts, from 0 on, of {iterations} x {len(steps)} steps each.",
            AGAIN + NEXT * bool(slots) if rows[1:] else ONE,
        )

    free = {unit: [0.0] * count for unit, count in PLACES.items()}
    waiting = list(counts)  # in the order in which they begin
    ready = {waiting.pop(0): 0.0 for _ in waiting[: slots or wavefronts]}
    done: Counter[int] = Counter()
    for row in rows:
        w, n = row[0], done[row[0]]
        is_new = bool(slots and not n)
        where = f"{call}: the row of step {n} of wavefront {w} is {_shown(row)}"
        require(w in ready, f"{where}, though all {slots} slots are taken.", NEW)
        now = ready.pop(w)
        unit, busy, away = steps[n % len(steps)]
        place = heappop(free[unit])
        begin = max(now, place)
        right = w, unit, begin, begin + busy, begin + busy + away
        require(
            row == right,
            f"{where}, and should be {_shown(right)}. This is ready at {now:.8g}, and a place of"
            f" the {unit} is free at {place:.8g}.",
            _explain(row, right, now, is_new, rows),
        )
        for v, earlier in ready.items():
            require(
                now <= earlier,
                f"{where}. It is ready at {now:.8g}, and wavefront {v} at {earlier:.8g}.",
                f"yours serves wavefront {w} before wavefront {v}. "
                + f"{NEW} " * bool(slots and not done[v])
                + EARLIEST,
            )
        heappush(free[unit], begin + busy)
        done[w] += 1
        if done[w] < counts[w]:
            ready[w] = right[4]
        elif waiting:
            ready[waiting.pop(0)] = right[4]


def _shown(row: Row) -> str:
    return "({}, {}, {:.8g}, {:.8g}, {:.8g})".format(*row)


def _explain(row: Row, right: Row, now: float, is_new: bool, rows: Sequence[Row]) -> str:
    """Return where to look for a wrong row of a wavefront that is ready at ``now``."""
    w, unit, begin, *_ = row
    if unit != right[1]:
        begins = [row[2] for row in rows if row[0] == w]
        return STEP if begins == sorted(begins) else SORTED
    if begin < right[2]:
        return TAKEN if begin >= now else NEW if is_new else LATER
    if begin == right[2]:
        return SUMS
    for v, where, _, free, again in rows:
        if v != w and begin == free:
            return f"yours waits until wavefront {v} leaves the {where}. {PLACE}"
        if v != w and begin == again:
            return f"yours waits until wavefront {v} is ready again. {NEW if is_new else AWAY}"
    return LATER


@function_exercise
def check_run(run: Callable) -> Verdict:
    """Exercise 2: ``run(steps, wavefronts, iterations)``, the rows of wavefronts that all fit."""
    return _check_clock(run, "run", [(2, 2), *[(5, 4)] * LAUNCHES])


@function_exercise
def check_launch(launch: Callable) -> Verdict:
    """Exercise 3: ``launch(steps, wavefronts, iterations, slots)``, more wavefronts than fit."""
    return _check_clock(
        launch, "launch", [(3, 1, 2), (4, 2, 4), (3, 2, 8), (7, 3, 2), *[(9, 1, 3)] * LAUNCHES]
    )
