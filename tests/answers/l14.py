"""Lesson 14."""

import linecache
from heapq import heappop, heappush

MORE = ["from heapq import heappop, heappush\n"]
TIMED = """def timed(clauses, overhead, pause, memory):
    steps = []
    for unit, amount in clauses:
        busy = away = 0
        if unit == "ALU":
            busy = overhead + 8 * amount
            away = pause
        else:
            busy = amount
            away = memory + pause
        steps.append((unit, busy, away))
    return steps
"""
RUN = """def run(steps, wavefronts, iterations):
    rows = []
    free = {"ALU": [0, 0], "TEX": [0]}
    ready = [(0, w, 0) for w in range(wavefronts)]
    while ready:
        now, w, n = heappop(ready)
        unit, busy, away = steps[n % len(steps)]
        places = free[unit]
        place = places.index(min(places))
        begin = max(now, places[place])
        places[place] = begin + busy
        again = begin + busy + away
        rows.append((w, unit, begin, begin + busy, again))
        if n + 1 < iterations * len(steps):
            heappush(ready, (again, w, n + 1))
    return rows
"""


def launching(run):
    """The text of `launch` with the lines of a `run`."""
    return (
        run.replace(
            "run(steps, wavefronts, iterations)", "launch(steps, wavefronts, iterations, slots)"
        )
        .replace("range(wavefronts)", "range(begun)")
        .replace("    ready = [", "    begun = min(slots, wavefronts)\n    ready = [")
        .replace(
            "    return",
            """        elif begun < wavefronts:
            heappush(ready, (again, begun, 0))
            begun += 1
    return""",
        )
    )


LAUNCH = launching(RUN)
#: Rows in which each wavefront waits, after an iteration, for all others.
TOGETHER = """def run(steps, wavefronts, iterations):
    rows, start = [], 0
    for i in range(iterations):
        free = {"ALU": [0, 0], "TEX": [0]}
        ready = [(start, w, 0) for w in range(wavefronts)]
        while ready:
            now, w, n = heappop(ready)
            unit, busy, away = steps[n]
            place = free[unit].index(min(free[unit]))
            begin = max(now, free[unit][place])
            free[unit][place] = begin + busy
            rows.append((w, unit, begin, begin + busy, begin + busy + away))
            if n + 1 < len(steps):
                heappush(ready, (begin + busy + away, w, n + 1))
        start = max(row[4] for row in rows)
    return rows
"""
#: Rows of a launch in which a round begins when the last one has ended.
ROUNDS = """def launch(steps, wavefronts, iterations, slots):
    rows, start = [], 0
    for first in range(0, wavefronts, slots):
        free = {"ALU": [0, 0], "TEX": [0]}
        ready = [(start, w, 0) for w in range(first, min(first + slots, wavefronts))]
        while ready:
            now, w, n = heappop(ready)
            unit, busy, away = steps[n % len(steps)]
            place = free[unit].index(min(free[unit]))
            begin = max(now, free[unit][place])
            free[unit][place] = begin + busy
            rows.append((w, unit, begin, begin + busy, begin + busy + away))
            if n + 1 < iterations * len(steps):
                heappush(ready, (begin + busy + away, w, n + 1))
        start = max(row[4] for row in rows)
    return rows
"""
#: Rows of a clock that serves, of the wavefronts that wait when a place is free, not the earliest.
BY_NUMBER = RUN.replace(
    "        now, w, n = heappop(ready)\n",
    """        starts = [max(now, min(free[steps[n % len(steps)][0]])) for now, w, n in ready]
        waiting = [entry for entry, start in zip(ready, starts) if start == min(starts)]
        now, w, n = min(waiting, key=lambda entry: entry[1])
        ready.remove((now, w, n))
""",
)
FEWEST_STEPS = "lambda entry: entry[1]", "lambda entry: (entry[2], entry[0])"
LATEST = "lambda entry: entry[1]", "lambda entry: -entry[0]"
#: Rows of a clock that does one wavefront after another.
SERIAL = """def run(steps, wavefronts, iterations):
    rows, now = [], 0
    for w in range(wavefronts):
        for n in range(iterations * len(steps)):
            unit, busy, away = steps[n % len(steps)]
            rows.append((w, unit, now, now + busy, now + busy + away))
            now += busy + away
    return rows
"""


def make_function(text, *changes):
    """The function of a text, of which changes[0] is replaced by changes[1], and so on."""
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    names = {"heappop": heappop, "heappush": heappush}
    file = f"answers/l14.py, {text}"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True) + MORE, file
    exec(compile(text, file, "exec"), names)
    return names[text.split("(")[0].removeprefix("def ")]
