"""Trace a CUDA kernel: follow numba's intermediate code for many threads at once.

Values of data aren't known (``cuda_values``). A branch masks the threads that take the other path
until the paths join, as a warp does. Each access, arithmetic operation and barrier is an
``Action``. A loop whose end the compiler doesn't know is a ``SizeLoop``:

1. Its first three iterations are followed. What grows by the same amount in the last two is
   extrapolated, and so are the differences of the numbers that it compares.
2. Up to the first change of a difference's sign, iterations are skipped: they do what the third
   one did. Operations whose results don't grow evenly note where they change (``note_bends``).
3. If none could be skipped for long, numbers that change unevenly become data (``find_uneven``).

What depends on data is refused, as is what ``cuda_foreign`` lists.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler import run_frontend

from cypresskit.today.cuda_events import SizeLoop, Untraceable, function_of, same_items
from cypresskit.today.cuda_expressions import FEW_THREADS, Expressions
from cypresskit.today.cuda_foreign import refusal
from cypresskit.today.cuda_threads import Frame, Values, is_temporary
from cypresskit.today.cuda_values import Number, growth, is_known, name_of, place_array

MAX_UNROLLED = 64  # iterations of a loop with a constant end that the compiler unrolls
MAX_EFFORT = 250_000  # statements that are followed; one of 16,000 threads counts twice
MAX_UNEVEN = 8  # iterations in a row that differ, before numbers that change unevenly are data
MAX_CALLS = 20  # in one another
ENDLESS = 1 << 40  # iterations
ALIGNMENT = 512  # bytes to which arrays in memory are aligned

Masks = dict[int, np.ndarray]  # of the threads that go on at each block


@dataclass(frozen=True, eq=False)
class CudaFunction:
    """A Python function as numba reads it.

    Attributes
    ----------
    name, code
        Its name and Python's code.
    blocks
        Its blocks by label, in topological order.
    loops
        Its loops by the label of their header.
    post_dominators
        For each label the blocks through which all paths from there lead.
    """

    name: str
    code: Any
    blocks: dict[int, Any]
    loops: dict[int, Any]
    post_dominators: dict[int, set[int]]


@cache
def frontend(function: Any) -> CudaFunction:
    """Read a Python function. Raises ``Untraceable`` for what numba doesn't read."""
    name = name_of(function)
    try:
        code = run_frontend(function)
    except Exception as error:  # numba's, of many kinds
        why = str(error).strip().splitlines()[0]
        raise Untraceable(f"{name}: numba can't read it: {why}") from error
    flow = compute_cfg_from_blocks(code.blocks)
    blocks = {label: code.blocks[label] for label in flow.topo_order()}
    return CudaFunction(name, function.__code__, blocks, flow.loops(), flow.post_dominators())


@dataclass(frozen=True, eq=False)
class TracedIteration:
    """An iteration that was followed: its items, the threads that go on, what it compared and
    computed, and the values before it.
    """

    items: list
    on: np.ndarray
    compared: list[Any]
    results: dict[int, list]
    before: Values


class Tracer(Expressions):
    """A kernel that is run by blocks of a launch, without data."""

    effort = 0.0
    rolled: frozenset[int] = frozenset()  # headers of loops that the compiler doesn't unroll

    # -- calls

    def run(self) -> list:
        """Return the kernel's items: actions, and loops over a size."""
        kernel = function_of(self.launch.kernel)
        function = frontend(kernel)
        given: list[Any] = []
        begin = 0
        for name, argument in zip(function.code.co_varnames, self.launch.arguments):
            if getattr(argument, "shape", ()):
                array, end = place_array(name, begin, argument)
                begin = -(-end // ALIGNMENT) * ALIGNMENT
                given.append(array)
                kind = np.dtype(argument.dtype).kind
                if kind == "c":
                    raise Untraceable(f"{function.name}: {name}: {refusal('complex')}")
                self.item = max(self.item, array.item if kind == "f" else 0)
            elif isinstance(argument, int | np.integer):
                given.append(np.int64(argument))
            elif isinstance(argument, float | np.floating):
                given.append(Number())
            else:
                raise Untraceable(f"{function.name}: {name} is neither an array nor a number")
        count = function.code.co_argcount
        if count != len(self.launch.arguments):
            found = len(self.launch.arguments)
            raise Untraceable(f"{function.name} takes {count} arguments, not {found}")
        with np.errstate(all="ignore"):
            self.call(kernel, given)
        return self.items

    def call(self, function: Any, given: list) -> Any:
        """Follow a call. Return what the function returns."""
        if len(self.frames) > MAX_CALLS:
            raise self.refused("functions call each other too deeply: write a loop")
        frame = Frame(frontend(function), given)
        self.frames.append(frame)
        on = self.on
        blocks = frame.function.blocks
        try:
            self.follow_region(next(iter(blocks)), on, blocks)
        except Untraceable:
            raise
        except Exception as error:  # the kernel's own, as Python words it
            raise self.refused(f"{error} ({type(error).__name__})") from error
        finally:
            self.frames.pop()
        self.on = on
        return frame.variables.get("return", (None,))[0]

    # -- paths

    def follow_region(
        self, entry: int, on: np.ndarray, inside: Iterable[int], header: int | None = None
    ) -> Masks:
        """Follow the blocks ``inside`` from ``entry``. Return the threads that leave them, or come
        back to ``header``.
        """
        function = self.frames[-1].function
        order = list(function.blocks)
        pending = {entry: on}
        leaving: Masks = {}
        while pending:
            label = min(pending, key=order.index)
            mask = pending.pop(label)
            is_loop = label in function.loops and label != header
            for target, some in (self.follow_loop if is_loop else self.follow_block)(
                label, mask
            ).items():
                if some.any():
                    into = pending if target in inside and target != header else leaving
                    _join(into, target, some)
        return leaving

    def follow_block(self, label: int, on: np.ndarray) -> Masks:
        """Follow a block. Return the threads that go on, by where."""
        self.on = on
        frame = self.frames[-1]
        body = frame.function.blocks[label].body
        self.effort += len(body) * (1 + self.total / 16000)
        if self.effort > MAX_EFFORT:
            raise self.refused(
                "this loop's iterations differ too much to be traced: let its guards and limits"
                " depend on sizes alone"
            )
        for statement in body:
            frame.line = statement.loc.line
            match statement:
                case ir.Jump():
                    return {statement.target: self.on}
                case ir.Branch():
                    return self.branch(label, statement)
                case ir.Return():
                    self.assign(frame.variables, "return", self.value(statement.value))
                    return {}
                case ir.Assign():
                    value = self.evaluate(statement.value)
                    self.assign(frame.variables, statement.target.name, value)
                case ir.SetItem() | ir.StaticSetItem():
                    index = getattr(statement, "index_var", None) or statement.index
                    value = self.value(statement.value)
                    self.store(self.value(statement.target), self.value(index), value)
                case ir.StaticRaise() | ir.Raise():
                    raise self.foreign("raise")
                case ir.Del():
                    pass
                case _:
                    name = type(statement).__name__.lower()
                    raise self.refused(f"`{name}` isn't timed here: leave it out")
        return {}

    def branch(self, label: int, statement: Any) -> Masks:
        """Return the threads that take each path of a branch."""
        paths = statement.truebr, statement.falsebr
        truth = self.value(statement.cond)
        if isinstance(truth, Number):
            return self.select(label, paths)
        if not is_known(truth):
            self.rolled |= {header for header, _ in self.loops_left(label, paths)}
        if not np.ndim(truth):
            return {paths[0] if truth else paths[1]: self.on}
        truth = truth.astype(bool)
        return {paths[0]: self.on & truth, paths[1]: self.on & ~truth}

    def loops_left(self, label: int, paths: tuple[int, ...]) -> list:
        """Return the loops that a branch may leave."""
        loops = self.frames[-1].function.loops.items()
        return [
            (header, loop)
            for header, loop in loops
            if label in loop.body and not loop.body.issuperset(paths)
        ]

    def select(self, label: int, paths: tuple[int, int]) -> Masks:
        """Follow both paths of a branch that depends on data, if they only compute. Variables in
        which they differ are data then.
        """
        frame = self.frames[-1]
        function = frame.function
        on = self.on
        after = function.post_dominators[label] - {label}
        join = next((one for one in function.blocks if one in after), None)
        if join is None or self.loops_left(label, (*paths, join)):
            raise self.foreign("data branch")
        before = frame.variables
        joined: Values = {}
        outer, self.is_selecting = self.is_selecting, True
        for path in paths:
            frame.variables = dict(before)
            if path != join:
                inside = function.blocks.keys() - {join, label}
                if self.follow_region(path, on, inside).keys() != {join}:
                    raise self.foreign("data branch")
            for name, (value, mask) in frame.variables.items():
                other, its = joined.setdefault(name, (value, mask))
                if value is not other:
                    joined[name] = Number(), mask | its
        self.is_selecting = outer
        frame.variables = joined
        return {join: on}

    # -- loops

    def follow_loop(self, header: int, on: np.ndarray) -> Masks:
        """Follow a loop. Return the threads that leave it, by where they go on."""
        outside, outer_compared, outer_results = self.items, self.compared, self.results
        self.rolled -= {header}
        blocks = self.frames[-1].function.blocks
        steps = (getattr(one, "value", None) for one in blocks[header].body)
        is_range = any(getattr(step, "op", "") == "iternext" for step in steps)
        loop = SizeLoop("range" if is_range else "while")
        leaving: Masks = {}
        past: list[TracedIteration] = []
        is_rolled = is_ragged = False
        differing = 0  # iterations since the last that was skipped
        while on.any():
            count = self.place_count
            iteration = self.iteration(header, on, leaving)
            is_ragged |= bool(iteration.on.any() and (iteration.on != on).any())
            on = iteration.on
            if not iteration.items and not on.any():
                break  # the test that ends it
            past.append(iteration)
            is_rolled = is_rolled or header in self.rolled or len(past) > MAX_UNROLLED
            if not loop.add(iteration.items) and is_rolled:
                self.place_count = count
            if is_rolled:
                past = past[-3:]
                skipped = self.skip(past)
                loop.repeat_last(skipped)
                differing = 0 if skipped else differing + 1
            elif is_ragged:
                differing = len(past)
            if differing == MAX_UNEVEN and on.any():
                self.find_uneven(header, on, past[-3:], is_ragged)
        self.items = outside
        is_rolled = is_rolled or header in self.rolled
        for iteration in past if not is_rolled else ():
            self.items += iteration.items
        if is_rolled and any(items for items, _, _ in loop.runs):
            self.items.append(loop)
        self.compared, self.results = outer_compared, outer_results
        for iteration in past[:1] + past[-1:]:
            self.compared += iteration.compared
            for expression, numbers in iteration.results.items():
                self.results[expression] += numbers
        return leaving

    def iteration(self, header: int, on: np.ndarray, leaving: Masks) -> TracedIteration:
        """Follow an iteration. Threads that leave the loop are added to ``leaving``."""
        before = self.values()
        self.items = []
        self.compared = []
        self.results = defaultdict(list)
        if header in self.rolled:
            self.loaded.clear()
        self.products.clear()
        body = self.frames[-1].function.loops[header].body
        paths = self.follow_region(header, on, body, header)
        back = paths.pop(header, np.zeros(self.total, bool))
        for target, some in paths.items():
            _join(leaving, target, some)
        return TracedIteration(self.items, back, self.compared, self.results, before)

    def skip(self, past: list[TracedIteration]) -> int:
        """Skip iterations that do what the last two of ``past`` did. Return how many."""
        if len(past) < 3:
            return 0
        before, last = past[-2:]
        is_same = np.array_equal(before.on, last.on) and same_items(before.items, last.items)
        if not is_same or not last.on.any():
            return 0
        count = _steady_iterations([one.compared for one in past], last.on)
        grown = _grown(self.values(), last.before, before.before, count)
        if grown is None:
            return 0
        if count >= ENDLESS:
            raise self.refused("this loop never ends: give it a size as its limit")
        for name, value in grown.items():
            (self.cells if name in self.cells else self.frames[-1].variables)[name] = value
        return count

    def find_uneven(
        self, header: int, on: np.ndarray, past: list[TracedIteration], is_ragged: bool
    ) -> None:
        """Take as data what has changed unevenly in the last iterations, unless control flow or
        places depend on it: which is refused in a loop that does nothing else and that threads
        leave one after the other.
        """
        frame = self.frames[-1]
        before = frame.variables, self.cells, self.uneven, self.place_count
        frame.variables, self.cells = dict(frame.variables), dict(self.cells)
        few = on[:: self.total // FEW_THREADS + 1]
        self.uneven = self.uneven | _uneven([one.results for one in past], few)
        try:
            for _ in range(2):  # the second computes with what the first makes data
                on = self.iteration(header, on, {}).on
        except Untraceable:
            works = any(one.items for one in past)
            if is_ragged and not works and self.uneven != before[2]:
                raise self.foreign("end") from None
            self.uneven = before[2]
            self.is_selecting = False
        frame.variables, self.cells, _, self.place_count = before

    def values(self) -> Values:
        """Return the values of the frame's variables, and of cells."""
        return self.frames[-1].variables | self.cells


def _join(masks: Masks, target: int, some: np.ndarray) -> None:
    masks[target] = masks[target] | some if target in masks else some


def _grown(now: Values, last: Values, earlier: Values, times: int) -> Values | None:
    """Return the values that change in some more iterations, given those before the last two. All
    have grown by as much in both, or None is returned.
    """
    grown: Values = {}
    for name in now.keys() & last.keys() & earlier.keys():
        if is_temporary(name):
            continue
        value, mask = now[name]
        step = growth(value, last[name][0])
        if not np.array_equal(step, growth(last[name][0], earlier[name][0])):
            return None
        if np.any(step):
            grown[name] = value + times * step, mask
    return grown


def _uneven(results: list[dict], on: np.ndarray) -> set[int]:
    """Return the expressions whose numbers haven't grown by as much from the first of three
    iterations to the second as from there to the third, for the threads that go on.
    """
    before, middle, now = results
    found = set()
    for name in before.keys() & middle.keys() & now.keys():
        steps = [
            [
                np.broadcast_to(growth(new, old), on.shape)[on]
                for new, old in zip(later[name], earlier[name])
            ]
            for earlier, later in ((before, middle), (middle, now))
        ]
        if not all(map(np.array_equal, *steps)):
            found.add(name)
    return found


def _steady_iterations(compared: list[list], on: np.ndarray) -> int:
    """Return after how many more iterations a comparison may turn out otherwise, given the
    differences that the last three compared.
    """
    if len({len(one) for one in compared}) > 1:
        return 0
    least = ENDLESS
    for before, middle, now in zip(*compared):
        step = now - middle
        if not np.array_equal(step, middle - before):
            return 0
        stays = (step == 0) | (np.sign(step) == np.sign(now))
        left = np.where(stays, ENDLESS, (np.abs(now) - 1) // np.maximum(np.abs(step), 1))
        least = min(least, int(np.broadcast_to(left, on.shape)[on].min()))
    return max(least, 0)
