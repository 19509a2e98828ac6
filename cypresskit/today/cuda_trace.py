"""What a CUDA kernel asks for, found by running its Python function once for all threads.

Numbers of threads are vectors, as are the places that they index; data are unknown. Each access,
multiply-add and barrier is noted with its line. A loop over a size, or of more than ``UNROLLED``
turns, runs for its first turns; its bytecode tells whether it may be left early. Where threads take
different ways, the function runs once for each way, and what they do in common is put together
again.

Left out: what hangs on data, breaks of loops over a size, and atomics; all are refused with their
line. What a turn behind the first ones does by its number alone isn't seen.
"""

import builtins
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dis import get_instructions
from functools import cache, reduce
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

UNROLLED = 64  # turns of a loop that is straight code
WAYS = 16  # through the kernel
MOST = 200_000  # operations that are followed
WARP = 32
MANY = 1 << 20  # no warp has this number
SHARED = 1 << 18  # bytes of shared memory that are watched
PRODUCT, SUM = "product", "sum"
CONVERSIONS = "float16", "float32", "float64", "int8", "int16", "int32", "int64", "int", "float"
COMPARISONS = np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal
OF_THREADS = {"min": np.minimum, "max": np.maximum}


class Untraceable(ValueError):
    """A kernel that can't be traced, and the line."""


def line_of(code: Any) -> int:
    """The line of the kernel that is running."""
    frame = sys._getframe(1)
    while frame.f_code is not code:
        frame = frame.f_back  # type: ignore[assignment]
    return frame.f_lineno


@cache
def loops_of(code: Any) -> list[list[Any]]:
    """The loops of a function, the shortest first: of each the lines on which it may end."""
    steps = list(get_instructions(code))
    jumps = [step for step in steps if "JUMP" in step.opname or step.opname == "FOR_ITER"]
    last = {jump.argval: jump for jump in jumps if jump.argval <= jump.offset}
    found = []
    for begin, end in last.items():
        inside = range(begin, end.offset + 1)
        lines = [
            step.positions and step.positions.lineno
            for step in steps
            if step.offset in inside
            and (
                "RETURN" in step.opname
                or (step in jumps and step.argval not in inside)
                or (step is end and "IF" in step.opname)
            )
        ]
        found.append((len(inside), lines))
    return [lines for _, lines in sorted(found)]


@dataclass(eq=False)
class Action:
    """``kind`` ("load", "store", "shared load", "shared store", "barrier", PRODUCT or SUM), its
    line, and bytes of a thread at ``place``, an int64 of each thread; those that do it are ``on``.
    """

    kind: str
    line: int
    size: int
    array: str
    place: np.ndarray
    on: np.ndarray

    @property
    def what(self) -> tuple[int, str]:
        """Its line, and what of it this is a part of, in words."""
        return self.line, f"{self.kind}s of {self.array}" if self.array else "arithmetic"


@dataclass(eq=False)
class Section:
    """Straight code, or a loop: events of its first turns, how many there are, and its kind."""

    turns: list[list[Action]]
    count: int = 1
    kind: str = ""
    line: Any = None


class Threads(np.ndarray):
    """An integer, or a truth, of each thread."""

    tracer: "Tracer"

    def __array_finalize__(self, other: Any) -> None:
        self.tracer = getattr(other, "tracer", None)  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return self.tracer.fork(np.asarray(self, bool))

    def __index__(self) -> int:
        raise self.tracer.refused("a thread's own number can't be the length of a loop here")


class Number:
    """A number of data, which nobody knows."""

    def __init__(self, tracer: "Tracer", made: Action | None = None):
        self.tracer, self.made = tracer, made
        self.turn = tracer.parts[-1].turns[-1]

    def __mul__(self, other: Any) -> "Number":
        return Number(self.tracer, self.tracer.note(PRODUCT, size=self.tracer.item))

    def __add__(self, other: Any) -> "Number":
        turn = self.tracer.parts[-1].turns[-1]
        for one in (other, self):  # a product that is added becomes a multiply-add
            made = isinstance(one, Number) and one.turn is turn and one.made
            if made and made.kind == PRODUCT:
                made.kind = "multiply-add"
                return Number(self.tracer)
        return Number(self.tracer, self.tracer.note(SUM, size=self.tracer.item))

    __rmul__ = __truediv__ = __rtruediv__ = __mul__
    __radd__ = __sub__ = __rsub__ = __add__

    def __pow__(self, other: Any) -> "Number":
        """Any other function, too: timed, and counted, as one operation."""
        return Number(self.tracer, self.tracer.note(SUM, size=self.tracer.item))

    __rpow__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __pow__

    def __neg__(self) -> "Number":
        return self

    __pos__ = __neg__

    def __bool__(self, *other: Any) -> Any:
        raise self.tracer.refused("what a kernel does may not hang on its data here")

    def __array_ufunc__(self, function: Any, *given: Any) -> Any:  # of numpy, or beside its numbers
        if function in (np.multiply, np.divide):
            return self * 1
        if function in (np.add, np.subtract):
            return self + 1
        return self.__bool__() if function in COMPARISONS else self**1

    __lt__ = __gt__ = __le__ = __ge__ = __eq__ = __ne__ = __float__ = __index__ = __bool__
    __hash__ = object.__hash__


class Size(int):
    """A size that the compiler doesn't know. Comparing a loop's number with it begins a turn."""

    tracer: "Tracer"

    def of(self, value: int) -> "Size":
        size = Size(value)
        size.tracer = self.tracer
        return size

    def __gt__(self, other: Any) -> Any:
        if isinstance(other, int) and not isinstance(other, Size):
            return self.tracer.begin_turn(int(other), int(self))
        return int(self) > other

    def __ge__(self, other: Any) -> Any:
        return self + 1 > other


for _name in ("add", "sub", "mul", "floordiv"):
    for _side in ("__", "__r"):

        def _keep(self: Size, other: Any, name: str = f"{_side}{_name}__") -> Any:
            value = getattr(int, name)(self, other)
            return value if value is NotImplemented else self.of(value)

        setattr(Size, f"{_side}{_name}__", _keep)


class Array:
    """An array of the card's, or of shared memory, whose bytes begin at ``begin``; ``end`` is where
    they do.
    """

    def __init__(self, tracer: "Tracer", name: str, begin: int, like: Any, shared: str = ""):
        shape, self.item = like.shape, like.dtype.itemsize
        behind = np.cumprod((self.item, *shape[:0:-1]))[::-1]
        self.strides = [int(step) for step in getattr(like, "strides", None) or behind]
        steps = [step * (length - 1) for step, length in zip(self.strides, shape)]
        self.base = begin - sum(step for step in steps if step < 0)
        self.end = begin + sum(map(abs, steps)) + self.item
        self.tracer, self.name, self.shared = tracer, name, shared
        self.ndim = len(shape)
        self.dims = shape
        self.shape = shape if shared else tuple(tracer.size(n) for n in shape)
        count = int(np.prod(shape))
        self.size = count if shared else tracer.size(count)

    def __len__(self) -> int:
        return self.dims[0]

    def place(self, key: Any) -> Any:
        """Bytes from where all begins, of each thread."""
        place: Any = self.base
        numbers = key if isinstance(key, tuple) else (key,)
        if len(numbers) != self.ndim or any(isinstance(number, slice) for number in numbers):
            raise self.tracer.refused("a part of an array isn't known here")
        for number, length, stride in zip(numbers, self.dims, self.strides):
            if isinstance(number, Number):
                raise self.tracer.refused("a place may not hang on data here")
            inside = (np.asarray(number) >= 0) & (np.asarray(number) < length)
            if not np.all(inside | ~self.tracer.on):
                raise self.tracer.refused(f"a thread asks for a place outside of {self.dims}")
            place = place + stride * number
        return place

    def __getitem__(self, key: Any) -> Number:
        return self.tracer.load(self, self.place(key), self.item)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tracer.loaded.clear()
        self.tracer.note(f"{self.shared}store", self.place(key), self.item, self.name)


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    # What is added in place must leave the tracer's own numbers as they are.
    setattr(Threads, f"__i{_name}__", getattr(np.ndarray, f"__{_name}__"))


@dataclass
class DataFunction:
    """A function, or a conversion, of numbers of any kind."""

    function: Callable
    name: str

    def __call__(self, *given: Any) -> Any:
        converts = self.name in CONVERSIONS
        for one in given:
            if isinstance(one, Number):
                return one if converts else one**1
        for one in given:
            if isinstance(one, Threads):
                of_all = OF_THREADS.get(self.name, self.function)
                return one.astype(self.name) if converts else reduce(of_all, given)
        sizes = [one for one in given if isinstance(one, Size)]
        made = self.function(*(int(one) if isinstance(one, Size) else one for one in given))
        return sizes[0].of(made) if sizes and self.name in OF_THREADS else made


class Module:
    """A module as a kernel knows it, whose names are ``replaced``."""

    def __init__(self, module: ModuleType, replaced: Callable):
        self.module, self.replaced = module, replaced

    def __getattr__(self, name: str) -> Any:
        return self.replaced(getattr(self.module, name))


class Names(SimpleNamespace):
    """What a kernel knows as `cuda`."""

    def __getattr__(self, name: str) -> Any:
        raise self.tracer.refused(f"`cuda.{name}` isn't known here")


def function_of(kernel: Any) -> Any:
    """The Python function of a kernel or a device's function; anything else as it is."""
    return getattr(kernel, "py_func", None) or getattr(kernel, "fn", kernel)


class Tracer:
    """One run of a kernel by ``blocks`` workgroups of ``threads``, ``turns`` turns of each loop.
    ``asked`` bytes of shared memory come with the launch.
    """

    def __init__(
        self, function: FunctionType, grid: Any, threads: Any, blocks: int, turns: int, asked: int
    ):
        self.function, self.turns, self.asked = function, turns, asked
        inside = np.arange(blocks * threads[0] * threads[1])
        block, thread = np.divmod(inside, threads[0] * threads[1])
        self.grid, self.threads = grid, threads
        self.total = len(inside)
        self.x, self.y = self.vector(thread % threads[0]), self.vector(thread // threads[0])
        self.block_x, self.block_y = self.vector(block % grid[0]), self.vector(block // grid[0])
        self.item = 4
        self.noted = 0

    def vector(self, values: np.ndarray) -> Threads:
        made = values.view(Threads)
        made.tracer = self
        return made

    def size(self, value: int) -> Size:
        made = Size(value)
        made.tracer = self
        return made

    def refused(self, why: str) -> Untraceable:
        line = line_of(self.function.__code__)
        return Untraceable(f"line {line} of {self.function.__name__}: {why}")

    def run(self, arguments: Any) -> list[Section]:
        """The kernel's parts."""
        self.waiting = [np.ones(self.total, bool)]
        runs: list[list[Section]] = []
        while self.waiting:
            if len(runs) == WAYS:
                raise Untraceable(f"{self.function.__name__}: threads take more than {WAYS} ways")
            self.on = self.way = self.waiting.pop()
            self.parts = [Section([[]])]
            self.loop: Any = None
            self.first = 0
            self.loaded: set = set()
            self.stored = np.full(SHARED, -1)  # the warp that last stored there, since a barrier
            self.fetched = np.full(SHARED, -1)
            self.shared = 0
            given: list[Any] = []
            begin = 0
            for name, one in zip(self.function.__code__.co_varnames, arguments):
                if hasattr(one, "shape") and one.shape:
                    given.append(array := Array(self, name, begin, one))
                    self.item = max(self.item, array.item)
                    begin = -(-array.end // 512) * 512
                else:
                    whole = isinstance(one, int | np.integer)
                    given.append(self.size(int(one)) if whole else Number(self))
            kernel = self.replaced(self.function)
            try:
                kernel(*given)
            except Untraceable:
                raise
            except Exception as error:  # the reader's own
                at: Any = error.__traceback__
                code = self.function.__code__
                line = at.tb_next.tb_lineno if at.tb_next else code.co_firstlineno
                why = f"{error} ({type(error).__name__})"
                raise Untraceable(f"line {line} of {kernel.__name__}: {why}") from error
            for turn in (turn for part in self.parts for turn in part.turns):
                for action in turn:
                    action.on = action.on & self.way
            runs.append(self.parts)
        parts = together(runs)
        if not parts:
            raise Untraceable(f"{self.function.__name__}: its threads go through different loops")
        for part in parts:
            turns = {tuple((action.kind, action.line) for action in turn) for turn in part.turns}
            asking = {tuple(action.on.tobytes() for action in turn) for turn in part.turns[:-1]}
            if len(turns) > 1 or len(asking) > 1:
                where = f"line {part.line[1]} of {self.function.__name__}"
                raise Untraceable(f"{where}: the turns of its loop differ")
        return parts

    def replaced(self, function: Any) -> Callable:
        """A function with this run's `cuda`, `range` and `four`, and so those of the device that it
        calls.
        """

        def instead(value: Any) -> Any:
            name = getattr(value, "__name__", "")
            if name == "numba.cuda":
                return self.cuda()
            if name in ("_four", "_simulated"):
                return lambda array, *key: (self.load(array, array.place(key), 16),) * 4
            if isinstance(value, ModuleType):
                return Module(value, instead)
            name = getattr(value, "name", name)  # of a type of numba's
            if isinstance(value, BuiltinFunctionType) or (name in CONVERSIONS and callable(value)):
                return DataFunction(value, name)
            inside = function_of(value)
            return value if inside in (value, function) else self.replaced(inside)

        code = function.__code__
        given = vars(builtins) | function.__globals__
        names = {name: instead(given[name]) for name in code.co_names if name in given}
        names["range"] = self.range
        cells = tuple(CellType(instead(c.cell_contents)) for c in function.__closure__ or ())
        return FunctionType(code, given | names, function.__name__, function.__defaults__, cells)

    def one_of(self, choices: Any, axes: int) -> Any:
        if axes > len(choices):
            raise self.refused("grids of three dimensions aren't known here")
        return choices[axes - 1]

    def cuda(self) -> SimpleNamespace:
        def shared(shape: Any, dtype: Any) -> Array:
            dtype = np.dtype(getattr(dtype, "name", dtype))
            sizes = shape if isinstance(shape, tuple) else (shape,)
            like = SimpleNamespace(shape=sizes if all(sizes) else (self.asked // dtype.itemsize,))
            like.dtype = dtype
            array = Array(self, f"byte {self.shared} on", self.shared, like, "shared ")
            self.shared = array.end if all(sizes) else self.shared
            return array

        def three(*xyz: Any) -> SimpleNamespace:
            return SimpleNamespace(**dict(zip("xyz", xyz)))

        sizes = tuple(blocks * threads for blocks, threads in zip(self.grid, self.threads))

        x = self.x + self.threads[0] * self.block_x
        y = self.y + self.threads[1] * self.block_y
        return Names(
            tracer=self,
            grid=lambda axes: self.one_of((x, (x, y)), axes),
            gridsize=lambda axes: self.one_of((sizes[0], sizes), axes),
            threadIdx=three(self.x, self.y, 0),
            blockIdx=three(self.block_x, self.block_y, 0),
            blockDim=three(*self.threads, 1),
            gridDim=three(*self.grid, 1),
            local=SimpleNamespace(array=lambda shape, dtype: Counter()),
            shared=SimpleNamespace(array=shared),
            syncthreads=lambda: self.loaded.clear() or self.note("barrier"),  # type: ignore[func-returns-value]
            syncwarp=lambda *mask: None,
            fma=lambda a, b, c: Number(self, self.note("multiply-add", size=self.item)),
        )

    def note(self, kind: str, place: Any = 0, size: int = 0, array: str = "") -> Action:
        places = np.broadcast_to(np.asarray(place, np.int64), self.total)
        event = Action(kind, line_of(self.function.__code__), size, array, places, self.on)
        self.noted += 1
        if self.noted > MOST:
            raise self.refused(f"over {MOST:,} operations in a few turns: does a loop never end?")
        self.parts[-1].turns[-1].append(event)
        if kind == "barrier":
            self.stored[:] = self.fetched[:] = -1
        if kind.startswith("shared") and self.total == self.threads[0] * self.threads[1]:
            self.watch(event)
        return event

    def watch(self, event: Action) -> None:
        """Refuse what one warp loads and another stores with no barrier between the two. What ways
        apart do, and two stores, aren't seen.
        """
        warps = np.arange(self.total)[event.on] // WARP
        places = event.place[event.on] % SHARED
        storing = event.kind == "shared store"
        before = (self.fetched if storing else self.stored)[places]
        if np.any((before >= 0) & (before != warps)):
            raise self.refused("`cuda.syncthreads()` is missing before it: another warp was here")
        if storing:
            self.stored[places] = warps
        else:
            alone = (self.fetched[places] < 0) | (self.fetched[places] == warps)
            self.fetched[places] = np.where(alone, warps, MANY)

    def load(self, array: Array, place: Any, size: int) -> Number:
        """A load; a number that a thread has loaded in this turn stays in its register."""
        name = array.shared, size, np.asarray(place).tobytes(), self.on.tobytes()
        if name not in self.loaded:
            self.loaded.add(name)
            self.note(f"{array.shared}load", place, size, array.name)
        return Number(self)

    def fork(self, truth: np.ndarray) -> bool:
        """Which way this run goes on; the threads that go the other way have a run of their own."""
        here = truth[self.on] if truth.ndim else truth
        if np.all(here) or not np.any(here):
            return bool(np.all(here))
        self.apart(self.on & ~truth)
        self.on = self.on & truth
        return True

    def apart(self, others: np.ndarray) -> None:
        """Threads that have a run of their own."""
        if np.any(others):
            self.waiting.append(others)
            self.way = self.way & ~others

    def begin_turn(self, number: int, size: int, step: int = 0, kind: str = "while") -> bool:
        """Whether the loop whose ``number`` is compared with ``size`` goes on."""
        frame: Any = sys._getframe(1)
        while frame.f_code.co_filename == __file__:
            frame = frame.f_back
        ends = next((lines for lines in loops_of(frame.f_code) if frame.f_lineno in lines), [])
        if not ends:
            return number < size  # no loop's own comparison
        line = frame.f_code, frame.f_lineno
        part = self.parts[-1]
        if self.loop not in (None, line):
            return number < size
        if number >= size and not self.loop:
            return False
        if not self.loop:
            if len(ends) > 1:
                where = max(ends, key=lambda end: abs(end - line[1]))
                raise self.refused(f"a loop over a size may not be left early, as on line {where}")
            self.parts.append(part := Section([], 0, kind, line))
            self.loop = line
            self.first = number
        if len(part.turns) == 1 or step:
            part.count = -(-(size - self.first) // (step or number - self.first or 1))
        self.loaded.clear()
        if number >= size or len(part.turns) == self.turns:
            self.loop = None
            self.parts.append(Section([[]]))
            return False
        part.turns.append([])
        return True

    def range(self, *limits: Any) -> Iterator[Any]:
        """Numba's `range`: a loop over a size or with many turns is cut."""
        start, stop, step = (0, *limits, 1) if len(limits) == 1 else (*limits, 1)[:3]
        if step < 0:
            raise self.refused("a loop that counts down isn't known here")
        if isinstance(start, Threads) or isinstance(stop, Threads):
            done = np.zeros(self.total, bool)
            number = start + np.zeros(self.total, np.int64)
            try:
                while True:
                    more = self.on & np.asarray(number < stop)
                    done = done | self.on & ~more
                    self.on = more
                    if not np.any(more):
                        self.on = done
                        return
                    yield self.vector(np.asarray(number))
                    number = number + step
            except GeneratorExit:  # left early
                self.apart(done)
        elif not isinstance(stop, Size) and len(range(start, stop, step)) <= UNROLLED:
            yield from range(start, stop, step)
        else:
            for number in range(start, stop, step):
                if not self.begin_turn(number, int(stop), step, "range"):
                    return
                yield number
            self.begin_turn(int(stop), int(stop), step, "range")


def together(runs: list[list[Section]]) -> list[Section]:
    """One list of parts of several ways, of which some may end early: an event of the same line, as
    often seen, is the same. Empty if they have different loops.
    """
    runs.sort(key=lambda parts: -len(parts))
    parts = runs[0]
    for others in runs[1:]:
        ways = [[(part.line, part.count) for part in way] for way in (others, parts)]
        if ways[0] != ways[1][: len(others)]:
            return []
        for part, other in zip(parts, others):
            for turn, more in zip(part.turns, other.turns):
                known = named(turn)
                at = 0
                for name, event in named(more).items():
                    if name not in known:
                        turn.insert(at, event)
                        at += 1
                        continue
                    same = known[name]
                    at = turn.index(same) + 1
                    same.place = np.where(event.on, event.place, same.place)
                    same.on = same.on | event.on
    return parts


def named(turn: list[Action]) -> dict[tuple, Action]:
    """Actions by kind, line, and how many alike come before."""
    seen: Counter = Counter()
    names: dict[tuple, Action] = {}
    for event in turn:
        name = event.kind, event.line
        names[*name, seen[name]] = event
        seen[name] += 1
    return names


def traced(
    kernel: Any, grid: Any, threads: Any, arguments: Any, blocks: int, turns: int, asked: int = 0
) -> tuple[list[Section], int]:
    """The parts of a kernel as ``blocks`` workgroups run it, and the bytes of a workgroup's shared
    memory beside those that the launch ``asked`` for. Raises ``Untraceable``.
    """
    tracer = Tracer(function_of(kernel), grid, threads, blocks, turns, asked)
    return tracer.run(arguments), tracer.shared
