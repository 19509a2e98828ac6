"""The threads of traced blocks: their variables, their memory, and what they have done."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cypresskit.today.cuda_events import Action, GridLaunch, Untraceable
from cypresskit.today.cuda_foreign import refusal
from cypresskit.today.cuda_values import UNNAMED, Array, Axes, Local, Number, merge

MAX_PLACES = 16_000_000  # numbers of places that a trace holds

Values = dict[Any, tuple[Any, np.ndarray]]  # a value, and the mask of the threads that set it


@dataclass(eq=False)
class Frame:
    """A call that is traced.

    Attributes
    ----------
    function
        The function, a ``CudaFunction``.
    arguments
        The values of its arguments.
    variables
        The values of its variables, and under "return" of what it returns.
    line
        The line that is traced.
    """

    function: Any
    arguments: list
    variables: Values = field(default_factory=dict)
    line: int = 0


class Threads:
    """The threads of blocks at places (``across``, ``down``) of a launch's grid."""

    def __init__(self, launch: GridLaunch, across: np.ndarray, down: np.ndarray):
        group = math.prod(launch.threads)
        thread = np.tile(np.arange(group), len(across))
        width = launch.threads[0]
        self.launch = launch
        self.thread = Axes(thread % width, thread // width)
        self.block = Axes(np.repeat(across, group), np.repeat(down, group))
        self.total = len(thread)
        self.on = np.ones(self.total, bool)  # mask of the threads that are traced
        self.items: list = []  # what they have done
        self.place_count = 0  # numbers of places in it
        self.frames: list[Frame] = []
        self.cells: Values = {}  # elements of local arrays, positions in ranges
        self.loaded: dict[Any, Number] = {}  # data in registers
        self.products: dict[Number, Action] = {}  # data that are products
        self.compared: list[Any] = []  # differences of compared numbers, in this iteration
        self.item = 4  # bytes of the widest floats among the arguments
        self.shared_arrays: dict[Any, int] = {}  # where those of shared memory begin
        self.shared_bytes = 0
        self.has_local = False
        self.is_selecting = False  # between the branches of data

    def refused(self, why: str) -> Untraceable:
        """Return an error with the kernel's line."""
        frame = self.frames[0]
        return Untraceable(f"line {frame.line} of {frame.function.name}: {why}")

    def foreign(self, name: str) -> Untraceable:
        """Return an error for an entry of the table of refusals."""
        return self.refused(refusal(name))

    def value(self, variable: Any) -> Any:
        """Return the value of a variable."""
        return self.frames[-1].variables[variable.name][0]

    def assign(self, values: Values, name: Any, value: Any) -> None:
        """Set a variable of the threads in the mask. Others keep their value."""
        mask = self.on
        if isinstance(value, Array) and value.name == UNNAMED and not is_temporary(name):
            value = replace(value, name=name)
        if name in values and not is_temporary(name):
            old, others = values[name]
            if others is not mask and not np.all(mask | ~others):
                value = merge(mask, value, old)
                mask = mask | others
        values[name] = value, mask

    def note(self, kind: str, place: Any = 0, size: int = 0, array: str = "") -> Action:
        """Note an action of the threads in the mask."""
        if self.is_selecting and (array or kind == "barrier"):
            raise self.foreign("data branch")
        action = Action(kind, self.frames[0].line, size, array, place, self.on)
        self.items.append(action)
        self.place_count += np.size(place)
        if self.place_count > 3 * MAX_PLACES:  # iterations that are compared, too
            raise self.refused(
                "too much code, or iterations that differ too much, to be followed: write loops"
                " over sizes, whose limits all threads share"
            )
        return action

    def element(self, array: Any, index: Any) -> Any:
        """Return an element, or a row, of an array or a tuple."""
        if isinstance(array, tuple):
            return array[index]
        if isinstance(array, Local):
            return self.cells.get((array, _index_key(index)), (Number(),))[0]
        if not isinstance(array, Array):
            raise TypeError(f"'{type(array).__name__}' object is not subscriptable")
        row = self.row(array, index)
        return row if row.shape else self.load(row, array.item)

    def store(self, array: Any, index: Any, value: Any) -> None:
        """Store a value in an element of an array."""
        if isinstance(array, Local):
            self.assign(self.cells, (array, _index_key(index)), value)
            return
        if not isinstance(array, Array):
            raise TypeError(f"'{type(array).__name__}' object does not support item assignment")
        row = self.row(array, index)
        if row.shape or isinstance(value, Array):
            raise self.foreign("slice")
        self.loaded.clear()
        self.note(f"{'shared ' * array.shared}store", row.base, array.item, array.name)

    def row(self, array: Array, indices: Any) -> Array:
        """Return what the first indices of an array leave."""
        for index in indices if isinstance(indices, tuple) else (indices,):
            if not array.shape:
                raise self.refused(f"{array.name} has fewer dimensions than its index")
            if isinstance(index, Number):
                raise self.foreign("data index")
            if not isinstance(index, int | np.integer | np.ndarray):
                raise self.foreign("slice")
            length = array.shape[0]
            index = np.where(np.less(index, 0), index + length, index)  # numba wraps them, too
            if index.dtype.kind == "f":
                raise self.refused("an index must be a whole number: write `int(...)`")
            if np.any(((index < 0) | (index >= length)) & self.on):
                raise self.refused(
                    f"a thread accesses an element outside {array.name}, which has {length:,} in"
                    " this dimension: guard it with an `if`"
                )
            array = array.row(index)
        return array

    def load(self, element: Array, size: int) -> Number:
        """Load data. What the threads have loaded in this iteration is in a register."""
        key = element.shared, size, np.asarray(element.base).tobytes(), self.on.tobytes()
        if key not in self.loaded:
            kind = f"{'shared ' * element.shared}load"
            self.note(kind, element.base, size, element.name)
            self.loaded[key] = Number()
        return self.loaded[key]


def is_temporary(name: Any) -> bool:
    """Return whether a variable is one that numba makes, set and read in one place."""
    return isinstance(name, str) and name[0] == "$" and not name.startswith("$phi")


def _index_key(index: Any) -> Any:
    """Return the indices of an element of a local array: "any" for one that differs by thread."""
    indices = index if isinstance(index, tuple) else (index,)
    return tuple("any" if isinstance(one, np.ndarray | Number) else int(one) for one in indices)
