"""Tasks, a plan of tasks run in time, and the resulting timeline.

A plan is a list of tasks in program order, as a straight-line program would do them one by one.
Three rules decide what overlaps, as in an out-of-order processor:

* the tasks of a queue (that of a chip, a DMA engine, a copying thread) run one at a time and in
  program order;
* a task starts when what it reads has been written, and when whatever it overwrites is no longer
  read or written;
* tasks that run at once share the resources max-min fairly (`resources`), so their speed changes at
  every event.

Time is computed first, from bytes and rates alone; `Timeline.execute` then does the same tasks on
real arrays. `Timeline.check` replays the result against what each task says it reads and writes,
knowing nothing of the rules.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from cypresskit.host.checks import check_amount, check_type
from cypresskit.host.resources import Proportions, Resource, fair_shares


@dataclass(frozen=True)
class Task:
    """One piece of work.

    ``uses``: resource name to the amount it takes in all, in the resource's unit. ``bytes``: how
    much it moves. ``reads`` and ``writes``: buffer name to content, such as "card 0 A1" to "A[3]".
    ``action`` does the task on real arrays; it is None where only time is wanted.

    What it is about, if that is a part of a matrix: the ``matrix`` ("A", "B", "C", or "AB" for a
    product that isn't added yet), the part's ``place`` in it, and a short ``label``. ``chip`` is
    the number of the chip for which it works.
    """

    name: str
    stage: str
    queue: str
    uses: Mapping[str, float]
    reads: Mapping[str, str] = field(default_factory=dict)
    writes: Mapping[str, str] = field(default_factory=dict)
    bytes: float = 0.0
    action: Callable[[], None] | None = None
    matrix: str = ""
    place: tuple[int, ...] = ()
    chip: int | None = None
    label: str = ""


@dataclass(frozen=True)
class Span:
    """A task, and when it ran, in seconds."""

    task: Task
    start: float
    end: float


class TimelineError(Exception):
    """A task read something that wasn't there, or overwrote something in use."""


@dataclass(frozen=True, repr=False)
class Timeline:
    """A plan's run. ``spans`` are in order of their start; ``flops`` is what the whole run
    computes.
    """

    spans: tuple[Span, ...]
    resources: Mapping[str, Resource]
    flops: float = 0.0

    @cached_property
    def seconds(self) -> float:
        """Seconds from the start of the first task to the end of the last."""
        return max((span.end for span in self.spans), default=0.0)

    @property
    def gflops(self) -> float:
        """Gflop/s of the whole run."""
        return self.flops / self.seconds / 1e9 if self.seconds else 0.0

    @cached_property
    def busy(self) -> dict[str, float]:
        """The used share of each resource's capacity, 0 to 1."""
        total = dict.fromkeys(self.resources, 0.0)
        for span in self.spans:
            for name, amount in span.task.uses.items():
                total[name] += amount
        return {
            name: used / self.resources[name].capacity / (self.seconds or 1.0)
            for name, used in total.items()
        }

    @property
    def bound(self) -> str:
        """The busiest resource: making it faster helps first. "nothing" if nothing was done."""
        return max(self.busy, key=lambda name: self.busy[name]) if self.spans else "nothing"

    def stages(self) -> dict[str, float]:
        """Seconds spent in each stage, over all queues, in order of first appearance."""
        total: dict[str, float] = defaultdict(float)
        for span in self.spans:
            total[span.task.stage] += span.end - span.start
        return dict(total)

    @cached_property
    def predecessors(self) -> list[list[int]]:
        """For each span the numbers of those that it waited for to the end: it began at the moment
        when they were done.
        """
        ends = [span.end for span in self.spans]
        result = []
        for needs in dependencies([span.task for span in self.spans]):
            last = max((ends[number] for number in needs), default=0.0)
            result.append([number for number in sorted(needs) if ends[number] == last])
        return result

    def critical_path(self) -> tuple[int, ...]:
        """The numbers of the spans that the run's time is made of, in their order: each began at
        the moment when the one before it ended, which it had to wait for. Only a change of these
        changes the whole.
        """
        if not self.spans:
            return ()
        path = [max(range(len(self.spans)), key=lambda number: self.spans[number].end)]
        while before := self.predecessors[path[-1]]:
            path.append(before[0])
        return tuple(reversed(path))

    def faster(self, times: Mapping[str, float]) -> "Timeline":
        """The same plan, run where resources are so many ``times`` as fast; those that aren't named
        stay as they are.

        Raises ``ValueError`` for a resource that isn't there, and for a factor that isn't above 0.
        """
        for name, factor in times.items():
            if name not in self.resources or not factor > 0:
                raise ValueError(
                    f"{name!r}, {factor} times as fast: name resources ("
                    f"{', '.join(self.resources)}), and numbers above 0"
                )
        resources = {
            name: replace(resource, capacity=resource.capacity * times.get(name, 1.0))
            for name, resource in self.resources.items()
        }
        # Spans are in order of their start: a program order with the same dependencies.
        return run_tasks([span.task for span in self.spans], resources, self.flops)

    def check(self) -> None:
        """Raise ``TimelineError`` unless every read finds its content and nothing in use is
        overwritten. A buffer that no task writes, such as the program's own matrices, holds
        whatever is read from it from the start.
        """
        holds: dict[str, str] = {}
        written = {name for span in self.spans for name in span.task.writes}
        # By buffer: the tasks that use it now, and whether they write
        using: dict[str, dict[int, bool]] = defaultdict(dict)
        spans = list(enumerate(self.spans))
        moments = [(span.end, False, n) for n, span in spans] + [
            (span.start, True, n) for n, span in spans
        ]
        for time, starts, number in sorted(moments):
            task = self.spans[number].task
            names = {**task.reads, **task.writes}
            if not starts:
                for name in names:
                    using[name].pop(number, None)
                holds |= task.writes
                continue
            for name, content in task.reads.items():
                if name in written and holds.get(name) != content:
                    held = holds.get(name, "nothing")
                    raise TimelineError(
                        f"{task.name} at {time:.6g} s reads {content} in {name}, which holds {held}"
                    )
            for name in names:
                writes = name in task.writes
                if others := [
                    other for other, written_to in using[name].items() if writes or written_to
                ]:
                    verb = "overwrites" if writes else "reads"
                    other = self.spans[min(others)].task.name
                    raise TimelineError(
                        f"{task.name} at {time:.6g} s {verb} {name} while {other} uses it"
                    )
                using[name][number] = writes

    def execute(self) -> None:
        """Do the tasks on real arrays, each at its end. Any moment since its start would do."""
        for span in sorted(self.spans, key=lambda span: span.end):
            if span.task.action:
                span.task.action()

    def __repr__(self) -> str:
        head = f"{self.seconds:.4f} s, {self.gflops:.1f} Gflop/s, busiest: {self.bound}"
        return "\n".join(
            [head, *(f"{100 * share:6.1f} %  {name}" for name, share in self.busy.items())]
        )


def dependencies(tasks: Sequence[Task]) -> list[set[int]]:
    """For each task the numbers of those that must end before it: the one before it in its queue,
    the last writer of what it reads, and the last writer and all later readers of what it
    overwrites.
    """
    last_in_queue: dict[str, int] = {}
    writer: dict[str, int] = {}
    readers: dict[str, list[int]] = defaultdict(list)
    result = []
    for number, task in enumerate(tasks):
        needs = {last_in_queue[task.queue]} if task.queue in last_in_queue else set()
        last_in_queue[task.queue] = number
        needs |= {writer[name] for name in {**task.reads, **task.writes} if name in writer}
        for name in task.writes:
            needs.update(readers.pop(name, ()))
            writer[name] = number
        for name in task.reads:
            if name not in task.writes:
                readers[name].append(number)
        result.append(needs)
    return result


def run_tasks(
    tasks: Sequence[Task], resources: Mapping[str, Resource], flops: float = 0.0
) -> Timeline:
    """The timeline of ``tasks``, given in program order, on ``resources``; it is deterministic.

    Raises ``ValueError`` for a task that uses an unknown resource, a negative amount, or nothing at
    all.
    """
    check_amount(flops=flops)
    numbers = {name: number for number, name in enumerate(resources)}
    least, demands = [], []  # of each task alone: its seconds, and its shares meanwhile
    # By uses, since most strips are alike
    known: dict[tuple[tuple[str, float], ...], tuple[float, Proportions]] = {}
    for task in tasks:
        check_type(Task, task=task)
        uses = tuple(task.uses.items())
        if uses not in known:
            known[uses] = _demand(task, resources, numbers)
        least.append(known[uses][0])
        demands.append(known[uses][1])
    needs = dependencies(tasks)
    followers: dict[int, list[int]] = defaultdict(list)
    for number, before in enumerate(needs):
        for other in before:
            followers[other].append(number)
    waiting = [len(before) for before in needs]
    shares_of = cache(fair_shares)
    left = [1.0] * len(tasks)  # part of each task that is still to be done
    start, end = [0.0] * len(tasks), [0.0] * len(tasks)
    active = [number for number, count in enumerate(waiting) if not count]
    now = 0.0
    while active:
        shares = shares_of(tuple(demands[number] for number in active))
        speeds = {number: share / least[number] for number, share in zip(active, shares)}
        step = min(left[number] / speed for number, speed in speeds.items())
        now += step
        going, freed = [], []
        for number, speed in speeds.items():
            if left[number] / speed > step * (1 + 1e-9):
                left[number] -= speed * step
                going.append(number)
                continue
            end[number] = now
            for other in followers[number]:
                waiting[other] -= 1
                if not waiting[other]:
                    start[other] = now
                    freed.append(other)
        active = going + freed
    spans = [Span(task, start[number], end[number]) for number, task in enumerate(tasks)]
    return Timeline(tuple(sorted(spans, key=lambda span: span.start)), dict(resources), flops)


def _demand(
    task: Task, resources: Mapping[str, Resource], numbers: Mapping[str, int]
) -> tuple[float, Proportions]:
    """(seconds that a task takes alone, its share of each resource meanwhile)."""
    for name, amount in task.uses.items():
        if name not in resources:
            raise ValueError(
                f"{task.name} uses {name!r}, which is not one of {', '.join(resources)}"
            )
        check_amount(**{f"{task.name}: {resources[name].unit} of {name}": amount})
    alone = {
        name: amount / resources[name].capacity for name, amount in task.uses.items() if amount
    }
    slowest = max(alone.values(), default=0.0)
    if not slowest:
        raise ValueError(f"{task.name} takes no time: it needs an amount of some resource")
    return slowest, tuple((numbers[name], time / slowest) for name, time in alone.items())
