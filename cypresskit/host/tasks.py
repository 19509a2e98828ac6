"""Run a plan of tasks in simulated time, and describe the result as a timeline.

A plan is a list of tasks in program order, the order in which a serial program would do them. Three
rules decide what overlaps, as in an out-of-order processor:

* The tasks of a queue run one after another, in program order. A chip, a DMA engine and a copying
  thread each have a queue.
* A task starts when its inputs have been written, and when no task uses what it overwrites.
* Tasks that run at once share resources max-min fairly (`resources`), so their speeds change at
  each event.

Times follow from bytes and rates alone. `Timeline.execute` then does the same tasks on real arrays.
`Timeline.check` replays a timeline against the reads and writes of each task, independently of
these rules.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from cypresskit.host.resources import fair_shares


@dataclass(frozen=True)
class Task:
    """One piece of work."""

    name: str
    stage: str
    queue: str
    uses: Mapping[str, float]  # amount of each resource in total, in the resource's unit
    reads: Mapping[str, str] = field(default_factory=dict)  # buffer to content: "card 0 A1": "A[3]"
    writes: Mapping[str, str] = field(default_factory=dict)
    bytes: float = 0.0  # that it moves
    action: Callable[[], None] | None = None  # does the task on arrays; None: only time is known
    # The part of a matrix that it is about, if any
    matrix: str = ""  # "A", "B", "C", or "AB": a product that isn't added to C yet
    place: tuple[int, ...] = ()  # position of the part
    chip: int | None = None  # the chip that it is for
    label: str = ""


@dataclass(frozen=True)
class Span:
    """A task and the time when it ran, in seconds."""

    task: Task
    start: float
    end: float


class TimelineError(Exception):
    """A task read what wasn't there, or overwrote what was in use."""


@dataclass(frozen=True, repr=False)
class Timeline:
    """A plan's run."""

    spans: tuple[Span, ...]  # in order of start
    resources: Mapping[str, float]  # the capacity of each, in its unit per second
    flops: float = 0.0  # of the whole run

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
        """The share of each resource's capacity that was used, 0 to 1."""
        total = dict.fromkeys(self.resources, 0.0)
        for span in self.spans:
            for name, amount in span.task.uses.items():
                total[name] += amount
        return {
            name: used / self.resources[name] / (self.seconds or 1.0)
            for name, used in total.items()
        }

    @property
    def bound(self) -> str:
        """The busiest resource, or "nothing" for an empty run."""
        return max(self.busy, key=lambda name: self.busy[name]) if self.spans else "nothing"

    def stages(self) -> dict[str, float]:
        """Return the seconds in each stage, summed over all queues, in order of first start."""
        total: dict[str, float] = defaultdict(float)
        for span in self.spans:
            total[span.task.stage] += span.end - span.start
        return dict(total)

    @cached_property
    def predecessors(self) -> list[list[int]]:
        """For each span, the numbers of the spans whose end started it.

        It waited for more; these ended last.
        """
        ends = [span.end for span in self.spans]
        result = []
        for needs in find_dependencies([span.task for span in self.spans]):
            last = max((ends[number] for number in needs), default=0.0)
            result.append([number for number in sorted(needs) if ends[number] == last])
        return result

    def critical_path(self) -> tuple[int, ...]:
        """Return the numbers of the spans that determine the run's time, in order.

        Each of them waited for the one before it, and started when that ended.
        """
        if not self.spans:
            return ()
        path = [max(range(len(self.spans)), key=lambda number: self.spans[number].end)]
        while waited_for := self.predecessors[path[-1]]:
            path.append(waited_for[0])
        return tuple(reversed(path))

    def faster(self, times: Mapping[str, float]) -> "Timeline":
        """Return the timeline of the same plan with faster resources.

        ``times``: factors of speed by resource name. Raises ``ValueError`` for an unknown resource,
        and for a factor that isn't above 0.
        """
        for name, factor in times.items():
            if name not in self.resources or not factor > 0:
                raise ValueError(
                    f"{name!r}, {factor} times as fast: give one of "
                    f"{', '.join(self.resources)}, and a number above 0"
                )
        resources = {
            name: capacity * times.get(name, 1.0) for name, capacity in self.resources.items()
        }
        # Spans are in order of their start: a program order with the same dependencies.
        return run_tasks([span.task for span in self.spans], resources, self.flops)

    def check(self) -> None:
        """Raise ``TimelineError`` unless each read finds its content and nothing in use is
        overwritten. A buffer that no task writes, such as the program's own matrices, may hold
        anything.
        """
        contents: dict[str, str] = {}
        written = {name for span in self.spans for name in span.task.writes}
        # By buffer: the tasks that use it now, and whether they write
        users: dict[str, dict[int, bool]] = defaultdict(dict)
        spans = list(enumerate(self.spans))
        events = [(span.end, False, n) for n, span in spans]
        events += [(span.start, True, n) for n, span in spans]
        for time, is_start, number in sorted(events):
            task = self.spans[number].task
            names = {**task.reads, **task.writes}
            if not is_start:
                for name in names:
                    users[name].pop(number, None)
                contents |= task.writes
                continue
            for name, expected in task.reads.items():
                if name in written and contents.get(name) != expected:
                    found = contents.get(name, "nothing")
                    raise TimelineError(
                        f"{task.name} at {time:.6g} s reads {expected} in {name}, which holds"
                        f" {found}"
                    )
            for name in names:
                writes = name in task.writes
                conflicts = [n for n, is_written in users[name].items() if writes or is_written]
                if conflicts:
                    verb = "overwrites" if writes else "reads"
                    other = self.spans[min(conflicts)].task.name
                    raise TimelineError(
                        f"{task.name} at {time:.6g} s {verb} {name} while {other} uses it"
                    )
                users[name][number] = writes

    def execute(self) -> None:
        """Do the tasks on real arrays, in order of their ends."""
        for span in sorted(self.spans, key=lambda span: span.end):
            if span.task.action:
                span.task.action()

    def __repr__(self) -> str:
        head = f"{self.seconds:.4f} s, {self.gflops:,.1f} Gflop/s, busiest: {self.bound}"
        return "\n".join(
            [head, *(f"{100 * share:6.1f} %  {name}" for name, share in self.busy.items())]
        )


def find_dependencies(tasks: Sequence[Task]) -> list[set[int]]:
    """Return, for each task, the numbers of the tasks that must end before it starts.

    They are the one before it in its queue, the last writer of each buffer that it reads or writes,
    and all readers since then of the buffers it writes.
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
    tasks: Sequence[Task], resources: Mapping[str, float], flops: float = 0.0
) -> Timeline:
    """Return the timeline of ``tasks``, given in program order, on ``resources``. Each task takes
    some time of one.
    """
    numbers = {name: number for number, name in enumerate(resources)}
    seconds_alone, demands = [], []  # of each task
    for task in tasks:
        alone = {
            numbers[name]: amount / resources[name] for name, amount in task.uses.items() if amount
        }
        slowest = max(alone.values())
        seconds_alone.append(slowest)
        demands.append(tuple((number, time / slowest) for number, time in alone.items()))
    needs = find_dependencies(tasks)
    followers: dict[int, list[int]] = defaultdict(list)
    for number, needed in enumerate(needs):
        for other in needed:
            followers[other].append(number)
    waiting_for = [len(needed) for needed in needs]  # number of tasks
    shares_of = cache(fair_shares)
    left = [1.0] * len(tasks)  # part of each task that remains
    start, end = [0.0] * len(tasks), [0.0] * len(tasks)
    active = [number for number, count in enumerate(waiting_for) if not count]
    now = 0.0
    while active:
        shares = shares_of(tuple(demands[number] for number in active))
        speeds = {number: share / seconds_alone[number] for number, share in zip(active, shares)}
        step = min(left[number] / speed for number, speed in speeds.items())
        now += step
        unfinished, started = [], []
        for number, speed in speeds.items():
            if left[number] / speed > step * (1 + 1e-9):
                left[number] -= speed * step
                unfinished.append(number)
                continue
            end[number] = now
            for other in followers[number]:
                waiting_for[other] -= 1
                if not waiting_for[other]:
                    start[other] = now
                    started.append(other)
        active = unfinished + started
    spans = [Span(task, start[number], end[number]) for number, task in enumerate(tasks)]
    return Timeline(tuple(sorted(spans, key=lambda span: span.start)), dict(resources), flops)
