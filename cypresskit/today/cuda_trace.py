"""What a CUDA kernel does, found by following numba's own intermediate code for many threads.

A variable holds the numbers of all threads (``cuda_values``); data aren't known. An ``if`` masks
the threads that go the other way until the ways meet, as a warp does. Each access, arithmetic
operation and barrier is an ``Action``. A loop whose end the compiler doesn't know is a
``SizeLoop``: its iterations are followed one by one until two change all variables alike; then
iterations are skipped as long as those behind them do the same, and halved steps find where they
don't.

Refused, with the line: what depends on data, and what ``cuda_foreign`` has in its table.
"""

import inspect
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler import run_frontend

from cypresskit.today.cuda_foreign import refusal
from cypresskit.today.cuda_values import (
    COMPARISONS,
    CONVERSIONS,
    FMA,
    PRODUCT,
    SLOW,
    SUM,
    Array,
    Axes,
    Local,
    Number,
    Places,
    Size,
    applied,
    called,
    grown,
    merged,
    moved,
    named,
    of_array,
)

UNROLLED = 64  # iterations of a loop with a constant end that the compiler unrolls
MOST = 60_000  # actions that are followed
ENDLESS = 1 << 40  # iterations
EFFORT = 1_200_000  # statements that are followed; one of 16,000 threads counts twice
ALIKE = 2  # iterations that must change variables alike before some are skipped
WARP = 32
QUICK = "min", "max", "abs", "fabs"  # one instruction
ENTRY = "four"  # of a load of 16 bytes


class Untraceable(ValueError):
    """A kernel that can't be traced, and the line."""


@dataclass(eq=False)
class Action:
    """What threads do: its ``kind`` ("load", "store", "shared load", "shared store", "barrier",
    PRODUCT, SUM, FMA, or SLOW for a division or a function) and line, and bytes of a thread at
    ``place``, an int64 of each thread; those that do it are ``on``.
    """

    kind: str
    line: int
    size: int
    array: str
    place: Any
    on: np.ndarray
    step: int = 0  # bytes by which the place moves with each iteration

    @property
    def what(self) -> tuple[int, str]:
        """Its line, and what of it this is a part of, in words."""
        return self.line, f"{self.kind}s of {self.array}" if self.array else "arithmetic"


@dataclass(eq=False)
class SizeLoop:
    """A loop over a size: for each run of iterations that do the same, the items of the first,
    those of the second if there is one, and how many there are.
    """

    line: int
    kind: str
    runs: list[tuple[list, list, int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(count for _, _, count in self.runs)


@dataclass(eq=False)
class CudaFunction:
    """A Python function as numba reads it: its blocks, their order, loops and where ways meet."""

    name: str
    code: Any
    blocks: dict[int, Any]
    order: dict[int, int]
    loops: dict[int, Any]
    after: dict[int, set[int]]


@cache
def frontend(function: Any) -> CudaFunction:
    """Raises ``Untraceable`` for what numba doesn't read."""
    try:
        code = run_frontend(function)
    except Exception as error:  # numba's, of many kinds
        why = str(error).strip().splitlines()[0]
        raise Untraceable(f"{named(function)}: numba can't read it: {why}") from error
    flow = compute_cfg_from_blocks(code.blocks)
    order = {label: n for n, label in enumerate(flow.topo_order())}
    blocks = {label: code.blocks[label] for label in order}
    return CudaFunction(
        named(function), function.__code__, blocks, order, flow.loops(), flow.post_dominators()
    )


def function_of(kernel: Any) -> Any:
    """The Python function of a kernel or a device's function; anything else as it is."""
    return getattr(kernel, "py_func", None) or getattr(kernel, "fn", kernel)


@dataclass(eq=False)
class Frame:
    """A call that is followed: its variables, under which mask each was first set, and what it
    returns.
    """

    function: CudaFunction
    arguments: list
    variables: dict[str, Any] = field(default_factory=dict)
    masks: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    returned: bool = False
    line: int = 0


class Tracer:
    """One run of a kernel by workgroups at ``across``, ``down`` of the grid, each of ``threads``.

    ``counts`` has how often each loop goes on, by function and block, if that is known: then of
    each loop two iterations are followed. ``asked`` bytes of shared memory come with the launch.
    """

    def __init__(
        self,
        launch: "GridLaunch",
        across: np.ndarray,
        down: np.ndarray,
        counts: dict | None = None,
    ):
        self.launch, self.counts = launch, counts
        self.group = math.prod(launch.threads)
        thread = np.tile(np.arange(self.group), len(across))
        self.total = len(thread)
        self.thread = Axes(thread % launch.threads[0], thread // launch.threads[0])
        self.block = Axes(np.repeat(across, self.group), np.repeat(down, self.group))
        self.items: list = []
        self.frames: list[Frame] = []
        self.cells: dict[Any, Any] = {}  # of local arrays, and positions in loops
        self.loaded: dict[Any, Number] = {}
        self.turn = self.noted = self.selecting = self.shared = 0
        self.on = np.ones(self.total, bool)
        self.item = 4
        self.has_local = False
        self.effort = 0.0
        self.compared: list[tuple[bool, Any]] = []  # in this iteration
        self.rolled: set[int] = set()
        self.found: dict[Any, list[int]] = {}  # iterations of each loop

    def refused(self, why: str) -> Untraceable:
        """An error with the kernel's line."""
        name = self.frames[0].function.name if self.frames else "the kernel"
        return Untraceable(f"line {self.line} of {name}: {why}")

    def foreign(self, name: str) -> Untraceable:
        return self.refused(refusal(name))

    @property
    def line(self) -> int:
        return self.frames[0].line if self.frames else 0

    # -- the kernel

    def run(self) -> list:
        """The kernel's items: actions, and loops over a size."""
        given: list[Any] = []
        begin = 0
        function = frontend(function_of(self.launch.kernel))
        names = function.code.co_varnames
        for name, one in zip(names, self.launch.arguments):
            if getattr(one, "shape", ()):
                array = of_array(name, begin, one)
                kind = np.dtype(one.dtype)
                if kind.kind == "c":
                    raise Untraceable(f"{function.name}: {name}: {refusal('complex')}")
                if kind.kind == "f":
                    self.item = max(self.item, array.item)
                given.append(array)
                begin = -(-array.end // 512) * 512
            elif isinstance(one, bool | int | np.integer):
                given.append(Size(one))
            elif isinstance(one, float | np.floating):
                given.append(Number())
            else:
                raise Untraceable(f"{function.name}: {name}: {refusal('string')}")
        if len(given) != function.code.co_argcount:
            wanted = function.code.co_argcount
            raise Untraceable(f"{function.name} takes {wanted} arguments, not {len(given)}")
        self.call(function, given, self.on)
        return self.items

    def call(self, function: CudaFunction, given: list, on: np.ndarray) -> Any:
        """Follow a call by the threads that are ``on``. Returns what the function returns."""
        if len(self.frames) > 20:
            raise self.refused("functions call each other too deeply: write a loop")
        frame = Frame(function, given)
        self.frames.append(frame)
        first = next(iter(function.blocks))
        try:
            self.region(first, on, set(function.blocks))
        except Untraceable:
            raise
        except Exception as error:  # the reader's own, as Python says it
            why = f"{error} ({type(error).__name__})"
            raise self.refused(why) from error
        self.frames.pop()
        self.on = on
        return frame.result

    # -- the ways of threads

    def region(
        self, entry: int, on: np.ndarray, inside: Iterable[int], header: int | None = None
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """Follow the blocks ``inside`` from ``entry``. Returns the threads that come back to
        ``header``, and those that leave, by where they go.
        """
        function = self.frames[-1].function
        pending = {entry: on}
        leaving: dict[int, np.ndarray] = {}
        back = np.zeros(self.total, bool)
        while pending:
            label = min(pending, key=function.order.__getitem__)
            mask = pending.pop(label)
            again = label in function.loops and label != header
            for target, some in self.repeat(label, mask) if again else self.block_(label, mask):
                if not some.any():
                    continue
                if target == header:
                    back = back | some
                    continue
                into = pending if target in inside else leaving
                into[target] = into[target] | some if target in into else some
        return back, leaving

    def block_(self, label: int, on: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Follow a block. Returns where which threads go on."""
        self.on = on
        frame = self.frames[-1]
        body = frame.function.blocks[label].body
        self.effort += len(body) * (1 + self.total / 16000)
        if self.effort > EFFORT:
            raise Untraceable(
                f"{frame.function.name}: iterations of its loops differ too much to be followed:"
                " let guards and limits depend on sizes alone"
            )
        for statement in body:
            frame.line = statement.loc.line
            if isinstance(statement, ir.Jump):
                return [(statement.target, self.on)]
            if isinstance(statement, ir.Branch):
                return self.branch(label, statement)
            if isinstance(statement, ir.Return):
                value = frame.variables.get(statement.value.name)
                old = frame.result
                frame.result = merged(self.on, value, old) if frame.returned else value
                frame.returned = True
                return []
            self.follow(statement)
        return []

    def branch(self, label: int, statement: Any) -> list[tuple[int, np.ndarray]]:
        truth = self.value(statement.cond)
        ways = statement.truebr, statement.falsebr
        if isinstance(truth, Number):
            return self.select(label, ways)
        self.note_ends(label, ways, truth)
        if not isinstance(truth, np.ndarray):
            return [(ways[0] if truth else ways[1], self.on)]
        truth = truth.astype(bool)
        return [(ways[0], self.on & truth), (ways[1], self.on & ~truth)]

    def note_ends(self, label: int, ways: tuple[int, int], truth: Any) -> None:
        """A loop whose end follows from a size, or from a thread's number, isn't unrolled."""
        if not isinstance(truth, Size | np.ndarray):
            return
        for header, loop in self.frames[-1].function.loops.items():
            if label in loop.body and any(way not in loop.body for way in ways):
                self.rolled.add(header)

    def select(self, label: int, ways: tuple[int, int]) -> list[tuple[int, np.ndarray]]:
        """Both ways of a branch by data, if they only compute: what differs isn't known."""
        frame = self.frames[-1]
        function = frame.function
        after = function.after[label] - {label}
        later = [one for one in after if one in function.order]
        ends = [one for one in later if set(later) <= function.after[one]]
        loops = [loop for loop in function.loops.values() if label in loop.body]
        if any(way not in loop.body for loop in loops for way in ways):
            raise self.foreign("data loop")
        if not ends or any(ends[0] not in loop.body for loop in loops):
            raise self.foreign("data branch")
        begin = dict(frame.variables)
        on = self.on
        self.selecting += 1
        found = []
        for way in ways:
            frame.variables = dict(begin)
            if way != ends[0]:
                between = set(function.blocks) - {ends[0], label}
                _, leaving = self.region(way, on, between)
                if set(leaving) - {ends[0]}:
                    raise self.foreign("data branch")
            found.append(frame.variables)
        self.selecting -= 1
        one, other = found
        for name in one.keys() & other.keys():
            if one[name] is not other[name]:
                one[name] = Number()
        frame.variables = {**other, **one}
        return [(ends[0], on)]

    # -- loops

    def repeat(self, header: int, on: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Follow a loop. Returns the threads that leave it, by where they go."""
        frame = self.frames[-1]
        body = frame.function.loops[header].body
        outside, self.items = self.items, []
        loop = SizeLoop(frame.line, self.kind_of(header))
        self.rolled.discard(header)
        key = frame.function.code, header
        leaving: dict[int, np.ndarray] = {}
        turns: list[_LoopIteration] = []
        total = 0
        while on.any():
            before = self.state()
            on, items, left = self.iteration(header, on, body, leaving)
            rolled = header in self.rolled or len(turns) > UNROLLED
            turn = _LoopIteration(items, on, left, before, self.compared)
            if items or on.any():
                turns.append(turn)
                total += 1
            if not rolled:
                continue
            if not loop.line or not loop.runs:
                loop.line = frame.line if self.frames[0] is not frame else self.line_of(header)
                for one in turns[:-1]:
                    _add(loop, one)
            if items or on.any():
                _add(loop, turn)
            if self.counts is not None:
                if len(turns) >= ALIKE:
                    total = self.counts.get(key, total)
                    on = self.leave(header, on, body, leaving, turns, total - len(turns))
                    _last_run(loop, total)
                    break
                continue
            on, skipped = self.skip(header, on, body, leaving, turns, loop)
            total += skipped
        self.items = outside
        if loop.runs:
            self.found.setdefault(key, []).append(total)
            if any(items for items, _, _ in loop.runs):
                self.items.append(loop)
        else:
            self.items += [item for turn in turns for item in turn.items]
        return list(leaving.items())

    def line_of(self, header: int) -> int:
        return int(self.frames[-1].function.blocks[header].body[0].loc.line)

    def kind_of(self, header: int) -> str:
        body = self.frames[-1].function.blocks[header].body
        steps = (getattr(getattr(one, "value", None), "op", "") for one in body)
        return "range" if "iternext" in steps else "while"

    def iteration(
        self, header: int, on: np.ndarray, body: Any, leaving: dict[int, np.ndarray]
    ) -> tuple[np.ndarray, list, np.ndarray]:
        """One iteration: the threads that go on, its items, and those that left."""
        self.items = []
        self.compared = []
        self.turn += 1
        if header in self.rolled:
            self.loaded.clear()
        back, left = self.region(header, on, body, header)
        for target, some in left.items():
            leaving[target] = leaving[target] | some if target in leaving else some
        return back, self.items, on & ~back

    def skip(self, header: int, on: Any, body: Any, leaving: dict, turns: list, loop: Any) -> Any:
        """Skip iterations that do what the last ones did, by steps that double as long as the one
        behind them does the same, and halve from then on. Returns the threads that go on behind
        them, and how many there were.
        """
        by = self.growth(turns) if on.any() and len(turns) > ALIKE else None
        skipped, step, doubling = 0, 1, True
        while by is not None and step and on.any():
            before = self.state()
            self.grow(by, step)
            left = dict(leaving)
            rest, alike = self.tried(header, on, body, left, turns[-1])
            doubling = doubling and alike
            if alike:
                leaving.update(left)
                first, second, count = loop.runs[-1]
                loop.runs[-1] = first, second, count + step + 1
                skipped += step + 1
                on = rest
                if skipped > ENDLESS:
                    raise self.refused("this loop never ends: give it a size as its limit")
            else:
                self.restore(before)
            step = 2 * step if doubling else step // 2
        return on, skipped

    def tried(
        self, header: int, on: np.ndarray, body: Any, leaving: dict, like: "_LoopIteration"
    ) -> tuple[np.ndarray, bool]:
        """The threads that go on behind an iteration, and whether it does what one before did."""
        frames = len(self.frames)
        noted = self.noted
        try:
            rest, items, left = self.iteration(header, on, body, leaving)
        except Untraceable:  # as that behind the last one may be
            del self.frames[frames:]
            return on, False
        self.noted = noted
        return rest, _LoopIteration(items, rest, left, ()).alike(like)

    def leave(
        self, header: int, on: Any, body: Any, leaving: dict, turns: list, left: int
    ) -> np.ndarray:
        """Leave a loop of which so many iterations are ``left``: variables are what they then are,
        as far as they grow alike, and all threads go where the last ones go.
        """
        by = self.growth(turns)
        if by is not None and left > 0:
            self.grow(by, left)
        function = self.frames[-1].function
        exits = [way for way in leaving if leaving[way].any()] or function.loops[header].exits
        target = min(exits, key=function.order.__getitem__)
        leaving[target] = leaving[target] | on if target in leaving else on
        return np.zeros_like(on)

    def state(self) -> tuple:
        frame = self.frames[-1]
        return (
            dict(frame.variables), dict(frame.masks), dict(self.cells), self.loaded.copy(),
            frame.result, frame.returned,
        )  # fmt: skip

    def restore(self, state: tuple) -> None:
        frame = self.frames[-1]
        variables, masks, cells, loaded, frame.result, frame.returned = state
        frame.variables, frame.masks = dict(variables), dict(masks)
        self.cells, self.loaded = dict(cells), dict(loaded)

    def growth(self, turns: list["_LoopIteration"]) -> Any:
        """By what each variable grows in an iteration, if the last ones did it alike."""
        last, before = turns[-1], turns[-2]
        if not last.alike(before) or not _monotone([turn.compared for turn in turns[-3:]]):
            return None
        now = self.state()
        try:
            steps = [_growth(now, last.before), _growth(last.before, before.before)]
        except ValueError:
            return None
        return steps[0] if _same(*steps) else None

    def grow(self, by: Any, times: int) -> None:
        variables, cells = by
        frame = self.frames[-1]
        for name, step in variables.items():
            frame.variables[name] = grown(frame.variables[name], step, times)
        for name, step in cells.items():
            self.cells[name] = grown(self.cells[name], step, times)

    # -- statements

    def follow(self, statement: Any) -> None:
        """Follow an assignment, or a store."""
        if isinstance(statement, ir.Assign):
            self.assign(statement.target.name, self.expression(statement.value))
        elif isinstance(statement, ir.SetItem | ir.StaticSetItem):
            index = getattr(statement, "index_var", None) or statement.index
            self.store(self.value(statement.target), self.value(index), self.value(statement.value))
        elif isinstance(statement, ir.StaticRaise | ir.Raise):
            raise self.foreign("raise")
        elif not isinstance(statement, ir.Del):
            raise self.refused(f"{type(statement).__name__.lower()} isn't known here: leave it out")

    def value(self, variable: Any) -> Any:
        return self.frames[-1].variables[variable.name]

    def assign(self, name: str, value: Any) -> None:
        """Give a variable of the threads that are on a number. Others keep theirs."""
        frame = self.frames[-1]
        known = frame.variables.get(name)
        mask = frame.masks.get(name)
        if known is None or (name[0] == "$" and not name.startswith("$phi")):
            frame.masks[name] = self.on
        elif mask is not self.on and not (mask is not None and np.array_equal(mask, self.on)):
            if mask is None or not np.all(self.on | ~mask):
                value = merged(self.on, value, known)
                frame.masks[name] = self.on | mask if mask is not None else None
            else:
                frame.masks[name] = self.on
        frame.variables[name] = value

    def expression(self, value: Any) -> Any:
        frame = self.frames[-1]
        if isinstance(value, ir.Var):
            return self.value(value)
        if isinstance(value, ir.Arg):
            return frame.arguments[value.index]
        if isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            if value.value is ir.UNDEFINED:
                raise NameError(f"name '{value.name}' is not defined")
            if isinstance(value.value, np.ndarray):
                raise self.refused(
                    "an array of the module isn't known here: pass it as an argument"
                )
            return value.value
        if not isinstance(value, ir.Expr):
            raise self.refused(f"{value} isn't known here")
        known = getattr(self, f"do_{value.op}", None)
        if known is None:
            raise self.refused(f"{value.op.replace('_', ' ')} isn't known in a kernel here")
        return known(value)

    def do_binop(self, value: Any) -> Any:
        return self.operate(value.fn, self.value(value.lhs), self.value(value.rhs))

    def do_inplace_binop(self, value: Any) -> Any:
        return self.operate(value.immutable_fn, self.value(value.lhs), self.value(value.rhs))

    def do_unary(self, value: Any) -> Any:
        one = self.value(value.value)
        if isinstance(one, Number):
            return one
        if value.fn is operator.not_ and isinstance(one, np.ndarray):
            return ~one.astype(bool)
        return applied(value.fn, one)

    def do_cast(self, value: Any) -> Any:
        return self.value(value.value)

    def do_build_tuple(self, value: Any) -> Any:
        return tuple(self.value(one) for one in value.items)

    def do_exhaust_iter(self, value: Any) -> Any:
        one = self.value(value.value)
        if not isinstance(one, tuple):
            raise self.foreign("slice")
        return one

    def do_getiter(self, value: Any) -> Any:
        one = self.value(value.value)
        if not isinstance(one, tuple):
            raise self.foreign("slice")
        if not isinstance(one, Places):
            one = Places(one)
        key = id(value), len(self.frames)
        self.cells[key] = 0
        return key, one

    def do_iternext(self, value: Any) -> Any:
        key, places = self.value(value.value)
        n = self.cells[key]
        self.cells[key] = n + 1
        return places.at(n)

    def do_pair_first(self, value: Any) -> Any:
        return self.value(value.value)[0]

    def do_pair_second(self, value: Any) -> Any:
        return self.value(value.value)[1]

    def do_getattr(self, value: Any) -> Any:
        return self.attribute(self.value(value.value), value.attr)

    def do_getitem(self, value: Any) -> Any:
        return self.element(self.value(value.value), self.value(value.index))

    def do_static_getitem(self, value: Any) -> Any:
        index = value.index
        if value.index_var is not None:
            index = self.value(value.index_var)
        return self.element(self.value(value.value), index)

    def do_call(self, value: Any) -> Any:
        function = self.value(value.func)
        given = [self.value(one) for one in value.args]
        named_ones = {name: self.value(one) for name, one in value.kws}
        if isinstance(function, Bound):
            return function.call(self, *given, **named_ones)
        if function is range:
            return self.range(*given)
        if function is len:
            return (
                self.attribute(given[0], "shape")[0]
                if isinstance(given[0], Array)
                else len(given[0])
            )
        name = named(function)
        if name in ("_four", "_simulated", ENTRY):
            return (self.load(given[0], self.place(given[0], tuple(given[1:])), 16),) * 4
        inside = function_of(function)
        if inspect.isfunction(inside) and "numpy" not in inside.__module__:
            return self.call(frontend(inside), given, self.on)
        return self.function(function, name, given)

    def function(self, function: Any, name: str, given: list) -> Any:
        """A function, or a conversion, of numbers of any kind."""
        if any(isinstance(one, Number) for one in given):
            converts = name in CONVERSIONS
            number = next(one for one in given if isinstance(one, Number))
            if not converts:
                self.note(SUM if name in QUICK else SLOW, size=self.item)
            return number if converts else Number()
        try:
            return called(function, given)
        except KeyError:
            raise self.refused(f"`{name}` of a thread's number isn't known here") from None

    def range(self, *limits: Any) -> Places:
        if any(isinstance(limit, Number) for limit in limits):
            raise self.foreign("data loop")
        start, stop, step = (0, *limits, 1) if len(limits) == 1 else (*limits, 1)[:3]
        return Places(None, start, stop, step)

    def operate(self, function: Any, one: Any, other: Any) -> Any:
        """An operation of two numbers."""
        if isinstance(one, Array) or isinstance(other, Array):
            raise self.foreign("slice")
        if not (isinstance(one, Number) or isinstance(other, Number)):
            if function in COMPARISONS and not isinstance(one, tuple | str):
                equal = function in (operator.eq, operator.ne)
                self.compared.append((equal, applied(operator.sub, one, other)))
            return applied(function, one, other)
        if function in COMPARISONS or function in (operator.and_, operator.or_):
            return Number()
        if function in (operator.truediv, operator.floordiv, operator.mod, operator.pow):
            self.note(SLOW, size=self.item)
            return Number()
        if function is operator.mul:
            return Number(self.note(PRODUCT, size=self.item), self.turn)
        if function in (operator.add, operator.sub):
            for term in (other, one):  # a product that is added becomes a multiply-add
                made = isinstance(term, Number) and term.turn == self.turn and term.made
                if made and made.kind == PRODUCT and made.on is self.on:
                    made.kind = FMA
                    return Number()
        self.note(SUM, size=self.item)
        return Number()

    def attribute(self, one: Any, name: str) -> Any:
        if isinstance(one, ModuleType) and one.__name__.startswith("numba.cuda"):
            return self.of_cuda(name)
        if isinstance(one, Array):
            try:
                return one.attribute(name)
            except KeyError:
                raise self.refused(f"`.{name}` of an array isn't known in a kernel here") from None
        if isinstance(one, Number):
            raise AttributeError(f"a number has no attribute '{name}'")
        if isinstance(one, Axes) and name == "z":
            return one.z
        if isinstance(one, Bound):
            return one.attribute(self, name)
        return getattr(one, name)

    def element(self, one: Any, index: Any) -> Any:
        if isinstance(one, tuple):
            return one[index]
        if isinstance(one, Local):
            return self.cells.get((one, _key(index)), Number())
        if not isinstance(one, Array):
            raise TypeError(f"'{type(one).__name__}' object is not subscriptable")
        place = self.place(one, index)
        return place if isinstance(place, Array) else self.load(one, place, one.item)

    def store(self, one: Any, index: Any, value: Any) -> None:
        if isinstance(one, Local):
            key = one, _key(index)
            known = self.cells.get(key)
            everyone = known is None or self.on.all() or isinstance(value, Number)
            self.cells[key] = value if everyone else merged(self.on, value, known)
            return
        if not isinstance(one, Array):
            raise TypeError(f"'{type(one).__name__}' object does not support item assignment")
        place = self.place(one, index)
        if isinstance(place, Array) or isinstance(value, Array):
            raise self.foreign("slice")
        self.loaded.clear()
        self.note(f"{'shared ' * one.shared}store", place, one.item, one.name)

    def place(self, array: Array, index: Any) -> Any:
        """Bytes from where all begins, of each thread; an ``Array`` if indices are missing."""
        given = array.given + (index if isinstance(index, tuple) else (index,))
        place: Any = array.base
        for number, length, stride in zip(given, array.lengths, array.strides):
            if isinstance(number, Number):
                raise self.foreign("data index")
            if isinstance(number, slice) or number is None or number is Ellipsis:
                raise self.foreign("slice")
            number = np.asarray(number)
            if number.dtype.kind == "f":
                raise self.refused("an index is no whole number: write `int(...)`")
            number = np.where(number < 0, number + length, number)  # numba wraps, too
            inside = (number >= 0) & (number < length)
            if not np.all(inside | ~self.on):
                raise self.refused(
                    f"a thread asks for a place outside of {array.lengths}: guard it by an `if`"
                )
            place = place + stride * number
        if len(given) < len(array.lengths):
            return Array(
                array.name, array.begin, array.lengths, array.item, array.strides, array.shared,
                given,
            )  # fmt: skip
        if len(given) > len(array.lengths):
            raise self.refused(f"{array.name} has {len(array.lengths)} dimensions")
        return place

    def load(self, array: Array, place: Any, size: int) -> Number:
        """A load; a number that a thread has loaded in this iteration stays in its register."""
        key = array.shared, size, np.asarray(place).tobytes(), self.on.tobytes()
        if key not in self.loaded:
            self.note(f"{'shared ' * array.shared}load", place, size, array.name)
            self.loaded[key] = Number()
        return self.loaded[key]

    def note(self, kind: str, place: Any = 0, size: int = 0, array: str = "") -> Action:
        if self.selecting and (array or kind == "barrier"):
            raise self.foreign("data branch")
        action = Action(kind, self.line, size, array, place, self.on)
        self.noted += 1
        if self.noted > MOST:
            raise self.refused(
                f"over {MOST:,} operations are straight code: does a loop never end?"
            )
        self.items.append(action)
        return action

    # -- `cuda`

    def of_cuda(self, name: str) -> Any:
        """What a kernel knows as `cuda.name`."""
        threads = tuple(map(Size, self.launch.threads))
        grid = tuple(map(Size, self.launch.grid))
        known = {
            "threadIdx": self.thread,
            "blockIdx": self.block,
            "blockDim": Axes(threads[0], threads[1], Size(1)),
            "gridDim": Axes(grid[0], grid[1], Size(1)),
            "warpsize": WARP,
        }
        if name in known:
            return known[name]
        if name in ("grid", "gridsize", "syncthreads", "syncwarp", "fma", "local", "shared"):
            return Bound(name)
        if name in ("threadfence", "threadfence_block", "threadfence_system"):
            return Bound("syncwarp")
        raise self.foreign(name)


@dataclass(frozen=True)
class Bound:
    """A function of `cuda`'s, or a module of such."""

    name: str

    def attribute(self, tracer: Tracer, name: str) -> Any:
        if self.name in ("local", "shared") and name == "array":
            return Bound(f"{self.name} array")
        raise tracer.foreign(name)

    def call(self, tracer: Tracer, *given: Any, **more: Any) -> Any:
        if self.name in ("grid", "gridsize"):
            return self._of_grid(tracer, *given)
        if self.name == "syncthreads":
            tracer.loaded.clear()
            tracer.note("barrier")
            return None
        if self.name == "fma":
            return Number(tracer.note(FMA, size=tracer.item) and None)
        if self.name == "local array":
            tracer.has_local = True
            return Local()
        if self.name == "shared array":
            return self._shared(tracer, *given, *more.values())
        return None

    def _of_grid(self, tracer: Tracer, axes: int) -> Any:
        if axes not in (1, 2):
            raise tracer.foreign("three")
        launch = tracer.launch
        sizes = tuple(Size(a * b) for a, b in zip(launch.grid, launch.threads))
        x = tracer.thread.x + launch.threads[0] * tracer.block.x
        y = tracer.thread.y + launch.threads[1] * tracer.block.y
        both = sizes if self.name == "gridsize" else (x, y)
        return both if axes == 2 else both[0]

    def _shared(self, tracer: Tracer, shape: Any, dtype: Any) -> Array:
        kind = np.dtype(getattr(dtype, "name", dtype))
        sizes = tuple(map(int, shape)) if isinstance(shape, tuple) else (int(shape),)
        asked = not all(sizes)
        if asked:
            sizes = (tracer.launch.shared // kind.itemsize,)
        key = tracer.frames[-1].line
        begin = tracer.cells.get(("shared", key), tracer.shared)
        like = Array(f"byte {begin} on", begin, sizes, kind.itemsize, (), True)
        array = of_array(like.name, begin, _Like(sizes, kind), shared=True)
        if not asked and ("shared", key) not in tracer.cells:
            tracer.cells["shared", key] = begin
            tracer.shared = array.end
        return array


@dataclass(frozen=True)
class _Like:
    shape: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True, eq=False)
class GridLaunch:
    """What is to be traced: a kernel, its grid and workgroups (across, down), its arguments, and
    bytes of shared memory that come with the launch.
    """

    kernel: Any
    grid: tuple[int, int]
    threads: tuple[int, int]
    arguments: Sequence[Any]
    shared: int = 0

    @property
    def name(self) -> str:
        return named(function_of(self.kernel))


@dataclass(eq=False)
class _LoopIteration:
    """An iteration: its items, which threads go on behind it, which left, and what was before."""

    items: list
    on: np.ndarray
    left: np.ndarray
    before: tuple
    compared: list[tuple[bool, Any]] = field(default_factory=list)

    def alike(self, other: "_LoopIteration") -> bool:
        return np.array_equal(self.on, other.on) and same_items(self.items, other.items)


def same_items(items: list, others: list) -> bool:
    """Whether two iterations do the same, by the same threads."""
    if len(items) != len(others):
        return False
    for one, other in zip(items, others):
        if type(one) is not type(other):
            return False
        if isinstance(one, SizeLoop):
            runs = zip(one.runs, other.runs)
            if len(one.runs) != len(other.runs) or not all(
                mine[2] == its[2] and same_items(mine[0], its[0]) for mine, its in runs
            ):
                return False
        elif (one.kind, one.line, one.array) != (other.kind, other.line, other.array):
            return False
        elif one.on is not other.on and not np.array_equal(one.on, other.on):
            return False
    return True


def _add(loop: SizeLoop, turn: _LoopIteration) -> None:
    """Add an iteration to the last run of a loop, or begin one."""
    if loop.runs and same_items(loop.runs[-1][0], turn.items):
        items, second, count = loop.runs[-1]
        loop.runs[-1] = items, second or turn.items, count + 1
    else:
        loop.runs.append((turn.items, [], 1))


def _last_run(loop: SizeLoop, total: int) -> None:
    """Let the last run of a loop be so long that all have ``total`` iterations."""
    items, second, count = loop.runs[-1]
    loop.runs[-1] = items, second, count + max(total - loop.count, 0)


def _monotone(compared: list[list]) -> bool:
    """Whether what some iterations compare stays as it is, or grows alike where the greater counts:
    then truths can't change and change back in iterations that are skipped.
    """
    if len({len(one) for one in compared}) > 1:
        return False
    for each in zip(*compared):
        differences = [np.asarray(difference) for _, difference in each]
        steps = [after - before for before, after in pairwise(differences)]
        if any(equal for equal, _ in each) and any(np.any(step) for step in steps):
            return False
        if any(not np.array_equal(step, steps[0]) for step in steps):
            return False
    return True


def _key(index: Any) -> Any:
    """Where a number of a local array is."""
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(int(one) if not isinstance(one, np.ndarray | Number) else "any" for one in parts)


def _growth(after: tuple, before: tuple) -> tuple[dict, dict]:
    """By what variables and cells have grown from one state to another."""
    found: list[dict] = [{}, {}]
    for part, which in enumerate((0, 2)):
        for name, value in after[which].items():
            temporary = isinstance(name, str) and name[0] == "$" and not name.startswith("$phi")
            if name in before[which] and not temporary:
                step = moved(value, before[which][name])
                if not isinstance(step, int) or step:
                    found[part][name] = step
    return found[0], found[1]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(np.array_equal(one, other))
