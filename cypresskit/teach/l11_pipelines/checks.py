"""Lesson 11: a pipeline small enough to work out by hand, and the checks of the three exercises."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from cypresskit.host import (
    Machine,
    Matrices,
    Task,
    Timeline,
    adapt_cpu_share,
    five_stage,
    four_stage,
    run_tasks,
)
from cypresskit.host.checks import check_positive
from cypresskit.host.rates import kernel_rate
from cypresskit.kernels.comparison import compare
from cypresskit.lesson_table import Table
from cypresskit.published import host as published
from cypresskit.tables import quantity
from cypresskit.teach.check import Verdict, call_answer, check_rng, function_exercise, require
from cypresskit.teach.formula import formula_exercise
from cypresskit.threads import map_in_threads

STAGES = ("load", "mult", "store")
# Exercise 3: seconds of its two stages, and how many units go through them
LOAD = 2.0
MULT = 3.0
UNITS = 6


def by_hand(seconds: Sequence[float], units: int) -> Timeline:
    """Return the timeline of ``units`` work units in stages of these ``seconds``, each with its own
    queue and buffers.
    """
    names = [*STAGES, *(f"stage {n}" for n in range(len(STAGES), len(seconds)))][: len(seconds)]
    check_positive(**dict(zip(names, seconds)))
    tasks = []
    for unit in range(units):
        for n, (name, time) in enumerate(zip(names, seconds)):
            reads = {f"{names[n - 1]} of {unit}": "done"} if n else {}
            tasks.append(
                Task(
                    f"{name} {unit}",
                    name,
                    name,
                    {name: time},
                    reads,
                    {f"{name} of {unit}": "done"},
                    label=str(unit),
                )
            )
    return run_tasks(tasks, dict.fromkeys(names, 1.0))


def with_buffers(buffer: Callable[[int], str]) -> Timeline:
    """Return the timeline of six units, loaded (2 s) into ``buffer(unit)`` and multiplied from
    there (3 s).
    """
    tasks = []
    for unit in range(UNITS):
        place = str(buffer(unit))
        strip = f"strip {unit}"
        load = Task(f"load {unit}", "load2", "bus", {"bus": LOAD}, {}, {place: strip})
        mult = Task(f"mult {unit}", "mult", "chip 0", {"chip 0": MULT}, {place: strip})
        tasks += [replace(task, label=str(unit)) for task in (load, mult)]
    return run_tasks(tasks, {"bus": 1.0, "chip 0": 1.0})


def real_run(machine: Machine) -> str:
    """Send matrices of whole numbers through both pipelines, a tenth of the rows through the CPU.
    Report the number of tasks, and how the results compare with numpy's.
    """
    rng = np.random.default_rng(11)
    m, n, k = 640, 768, 512
    rows = []
    for stages in (four_stage, five_stage):
        shapes = (m, k), (k, n), (m, n)
        a, b, c = (rng.integers(-9, 10, shape).astype(float) for shape in shapes)
        work = Matrices(a, b, c, alpha=2.0, beta=-1.0)
        timeline = stages(m, n, k, machine, block=256, cpu_share=0.1, matrices=work)
        timeline.check()
        timeline.execute()
        found = compare(work.result, a, b, c, alpha=2.0, beta=-1.0)
        rows.append(f"{stages.__name__}, {len(timeline.spans)} tasks: {found}")
    return "\n".join(rows)


def measured_table(machine: Machine) -> Table:
    """Tabulate what Li and colleagues measured, and the model's figures. One rests on an
    assumption, which the last row leaves out.
    """
    row = published("hybrid")
    size = max(row["m_n"])
    depths = row["k"]
    unpadded_rows = replace(machine, pads_rows=False)
    by_depth: list[Callable[[int], float]] = [
        lambda k: kernel_rate("dgemm_tn", 2048, 2048, k, machine.device) / 1e9,
        lambda k: five_stage(size, size, k, machine).gflops,
        lambda k: four_stage(size, size, k, machine).gflops,
        lambda k: four_stage(size, size, k, unpadded_rows).gflops,
    ]
    alone, five, four, unpadded = map_in_threads(lambda speed: max(map(speed, depths)), by_depth)
    with_cpu = max(
        t.gflops for k in depths for _, t in adapt_cpu_share(size, size, k, machine, calls=3)
    )
    times = 100 * row["speedup_over_four_stage"]
    figures = {
        "kernel alone, % of a chip's peak": (
            row["kernel_pct_max"],
            100 * alone / machine.device.double_gflops,
        ),
        "five stages, two chips, Gflop/s": (row["gpu_only_gflops"], five),
        "with the CPU, Gflop/s": (row["hybrid_gflops"], with_cpu),
        "five stages, % of four (assumed: padded rows)": (times, 100 * five / four),
        "the same, rows not padded": (times, 100 * five / unpadded),
    }
    rows = [
        [what, paper, round(model), round(100 * model / paper)]
        for what, (paper, model) in figures.items()
    ]
    return Table(["", "measured", "modeled", "% of measured"], rows)


@formula_exercise(
    [
        ([2.0, 3.0, 1.0], 4),
        ([4.0, 1.0, 2.0], 3),
        ([1.0, 1.0], 10),
        ([5.0], 3),
        ([0.5, 0.25, 4.0, 1.0], 7),
        ([2.0, 3.0, 1.0], 1),
    ],
    lambda s, u: {
        "this is one unit after the other, without overlap.": sum(s) * u,
        "the first unit has to go through all stages before it comes out.": max(s) * u,
        "only the units after the first come out at the slowest stage's pace.": sum(s) + u * max(s),
        "not the mean: the slowest stage sets the pace.": sum(s) + (u - 1) * sum(s) / len(s),
        "the slowest stage sets the pace, not the fastest.": sum(s) + (u - 1) * min(s),
        "the slowest stage sets the pace, not the one before it in speed.": (
            sum(s) + (u - 1) * sorted(s)[-2:][0]
        ),
        "the slowest stage sets the pace, not the last.": sum(s) + (u - 1) * s[-1],
        "the slowest stage sets the pace, not the first.": sum(s) + (u - 1) * s[0],
        "the slowest stage sets the pace, not the one in the middle.": (
            sum(s) + (u - 1) * s[len(s) // 2]
        ),
        "exchanged: the first unit takes the sum of all stages, each further one the slowest.": (
            max(s) + (u - 1) * sum(s)
        ),
        "exchanged: only the first unit takes the sum of all stages.": sum(s) * (u - 1) + max(s),
        "a unit stays in a stage only for that stage's own time, not for the slowest one's.": (
            max(s) * (u + len(s) - 1)
        ),
        "the first unit has to go through all stages; then come u - 1 others.": max(s) * (u - 1),
        "one unit too many: u - 1 come out after the first.": sum(s) + (u + 1) * max(s),
        "one unit too few: u - 1 come out after the first.": sum(s) + (u - 2) * max(s),
        "the slowest stage has the first unit, too: it is in the sum.": (
            sum(s) - max(s) + (u - 1) * max(s)
        ),
        "the first unit goes through all stages, not only the fastest, and then u - 1 others come"
        " out.": u * max(s) + min(s),
        "the first unit goes through all stages, not only the first, and then u - 1 others come"
        " out.": u * max(s) + s[0],
        "stages aren't equally long: the slowest sets the pace, and the first unit goes through"
        " all.": sum(s) * u / len(s),
        "this is the slowest stage for each unit in each stage: stages work at once.": (
            len(s) * max(s) * u
        ),
        "both count: the sum for the first unit, and the slowest stage for each further one.": (
            max(sum(s), u * max(s))
        ),
        "all stages but the slowest work beside it: only the slowest one's time is left of a"
        " further unit.": sum(s) * u - (u - 1) * min(s),
    },
    "when does the first unit come out, and how long after it each further one? Draw the three rows"
    " of the lesson.",
    " s",
    draw=lambda: (
        [check_rng.randint(1, 40) / 4 for _ in range(check_rng.randint(2, 6))],
        check_rng.randint(2, 20),
    ),
)
def check_pipeline(s, u):
    """Exercise 1: ``pipeline(seconds, units)``, how long units take through stages of these seconds
    that overlap.
    """
    return by_hand(s, u).seconds


@formula_exercise(
    [(0.12, 3.0, 2.0), (0.12, 2.0, 2.0), (0.5, 4.0, 1.0), (0.1, 0.5, 1.0)],
    lambda s, c, g: {
        "inverted: the slower side should get less.": s * c / (s * c + (1 - s) * g),
        "the CPU did the share that was tried, the chips the rest. How much did each do in a"
        " second?": g / (c + g),
        "this is the CPU's rate over the chips'. Return its part of both.": s / c / ((1 - s) / g),
        "shares have to add up to 1: divide by the sum of both rates.": s * g / c,
    },
    "how much of the whole did each do in a second? Which part of what both did was the CPU's?",
    name="next_share",
)
def check_share(s, c, g):
    """Exercise 2: ``next_share(share, cpu_seconds, chip_seconds)``, the CPU's share that would end
    both at once.
    """
    return s / c / (s / c + (1 - s) / g)


@function_exercise
def check_buffer(buffer: Callable) -> Verdict:
    """Exercise 3: ``buffer(unit)`` names the buffer for a unit; everything should overlap, with as
    few as can be.
    """
    hint = "it is called with 0, 1, 2, ..."
    names = [call_answer(f"buffer({unit})", buffer, unit, hint=hint) for unit in range(UNITS)]
    for name in names:
        require(
            isinstance(name, str) and name,
            f"buffer returns {name!r:.60}.",
            'return a name, such as "A0".',
        )
    timeline = with_buffers(dict(enumerate(names)).__getitem__)
    best = LOAD + UNITS * MULT
    used = ", ".join(dict.fromkeys(names))
    message = f"With {quantity(len(set(names)), 'buffer')} ({used}) it takes {timeline.seconds:g} s"
    if timeline.seconds > best * 1.001:
        loads = [span for span in timeline.spans if span.task.stage == "load2"]
        # The first load that waits though the bus is free
        late = next(b for a, b in pairwise(loads) if b.start > a.end + 1e-9)
        hint = (
            f"{late.task.name} starts at {late.start:g} s, but the bus is free before: which task"
            " reads its buffer?"
        )
        return Verdict(False, f"{message}; {best:g} s are possible.", hint)
    require(
        len(set(names)) <= 2,
        f"{message}, the least there is.",
        "but fewer are enough: when is the first one free again?",
    )
    return Verdict(True, f"{message}: the chip waits for the first strip alone.")
