"""The expressions of a CUDA kernel, in numba's intermediate code, for many threads at once."""

import inspect
import operator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numba.core import ir

from cypresskit.today.cuda_events import WARP, function_of
from cypresskit.today.cuda_threads import Threads
from cypresskit.today.cuda_values import (
    CONVERSIONS,
    FMA,
    PRODUCT,
    SLOW,
    SUM,
    Array,
    Axes,
    Local,
    Number,
    NumberRange,
    bend,
    call_function,
    is_function,
    is_known,
    name_of,
    place_array,
)

COMPARISONS = operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne
FREE = (*COMPARISONS, operator.and_, operator.or_)  # of data: part of a selection
DIVISIONS = operator.truediv, operator.floordiv, operator.mod, operator.pow
BENT = operator.mod, operator.floordiv, operator.and_
QUICK = "min", "max", "abs", "fabs"  # functions that are one instruction
LOADS_OF_FOUR = "four", "_four", "_simulated"  # `cuda_kernels.four`: a load of 16 bytes
FENCES = "syncwarp", "threadfence", "threadfence_block", "threadfence_system"
FUNCTIONS = ("grid", "gridsize", "syncthreads", "fma", "local", "shared", *FENCES)


class CudaName(str):
    """The name of a function of `cuda`, or of `local` or `shared` in it."""


class Expressions(Threads):
    """Threads that evaluate expressions."""

    def call(self, function: Any, given: list) -> Any:
        """Trace a call. Return what the function returns."""
        raise NotImplementedError

    def evaluate(self, value: Any) -> Any:
        """Return the value of an expression."""
        if isinstance(value, ir.Var):
            return self.value(value)
        if isinstance(value, ir.Arg):
            return self.frames[-1].arguments[value.index]
        if isinstance(value, ir.Expr):
            return self.operation(value)
        if not isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            raise self.refused(f"`{value}` isn't known here")
        constant = value.value
        if constant is ir.UNDEFINED:
            raise NameError(f"name '{value.name}' is not defined")
        if isinstance(constant, np.ndarray):
            raise self.refused("an array of the module isn't known here: pass it as an argument")
        if isinstance(constant, complex):
            raise self.foreign("complex")
        return constant.item() if isinstance(constant, np.generic) else constant

    def operation(self, expression: Any) -> Any:
        """Return the value of an operation."""

        def of(name: str) -> Any:
            return self.value(getattr(expression, name))

        match expression.op:
            case "binop":
                return self.operate(expression.fn, of("lhs"), of("rhs"))
            case "inplace_binop":
                return self.operate(expression.immutable_fn, of("lhs"), of("rhs"))
            case "unary":
                return self.negate(expression.fn, of("value"))
            case "cast":
                return of("value")
            case "build_tuple":
                return tuple(map(self.value, expression.items))
            case "exhaust_iter" if isinstance(of("value"), tuple):
                return of("value")
            case "getiter" if isinstance(of("value"), NumberRange):
                self.cells[id(expression)] = of("value").start, self.on
                return id(expression), of("value")
            case "iternext":
                return self.next(*of("value"))
            case "pair_first":
                return of("value")[0]
            case "pair_second":
                return of("value")[1]
            case "getattr":
                return self.attribute(of("value"), expression.attr)
            case "getitem":
                return self.element(of("value"), of("index"))
            case "static_getitem":
                has_variable = expression.index_var is not None
                return self.element(
                    of("value"), of("index_var") if has_variable else expression.index
                )
            case "call":
                named = [self.value(one) for _, one in expression.kws]
                return self.call_of(of("func"), [*map(self.value, expression.args), *named])
            case "exhaust_iter" | "getiter":
                raise self.foreign("iteration")
        raise self.refused(f"{expression.op.replace('_', ' ')} isn't known in a kernel here")

    def next(self, cell: int, numbers: NumberRange) -> tuple[Any, Any]:
        """Return the next number of a range, and whether there is one."""
        number = self.cells[cell][0]
        self.cells[cell] = number + numbers.step, self.on
        is_descending = is_known(numbers.step) and numbers.step < 0
        test = operator.gt if is_descending else operator.lt
        return number, self.operate(test, number, numbers.stop)

    def negate(self, function: Any, value: Any) -> Any:
        """Return the value of an operation on one number."""
        if isinstance(value, Number):
            return value
        if function is not operator.not_:
            return function(value)
        self.note_comparison(value)
        return np.logical_not(value)

    def note_comparison(self, one: Any, other: Any = 0) -> None:
        """Note the numbers whose signs decide a comparison."""
        self.compared.append(1 * one - other)
        for number in (one, other):
            self.compared += getattr(number, "bends", ())

    def operate(self, function: Any, one: Any, other: Any) -> Any:
        """Return the value of an operation on two numbers."""
        if isinstance(one, Array) or isinstance(other, Array):
            raise self.foreign("slice")
        if not (isinstance(one, Number) or isinstance(other, Number)):
            result = function(one, other)
            if function in COMPARISONS and not isinstance(one, tuple | str):
                self.note_comparison(one, other)
            return bend(result, function, [one, other]) if function in BENT else result
        if function in FREE:
            return Number()
        result = Number()
        if function is operator.mul:
            self.products[result] = self.note(PRODUCT, size=self.item)
            return result
        if function in (operator.add, operator.sub):
            for term in (other, one):  # a product that is added becomes a multiply-add
                product = self.products.pop(term, None) if isinstance(term, Number) else None
                if product and product.on is self.on:
                    product.kind = FMA
                    return result
        self.note(SLOW if function in DIVISIONS else SUM, size=self.item)
        return result

    def call_of(self, function: Any, given: list) -> Any:
        """Return what a function returns."""
        name = name_of(function)
        if isinstance(function, CudaName):
            return self.call_cuda(function, given)
        if function is range:
            return self.range(*given)
        if function is len:
            is_tuple = isinstance(given[0], tuple)
            return len(given[0]) if is_tuple else self.attribute(given[0], "shape")[0]
        if name in LOADS_OF_FOUR:
            return (self.load(self.row(given[0], tuple(given[1:])), 16),) * 4
        inside = function_of(function)
        if inspect.isfunction(inside) and "numpy" not in inside.__module__:
            return self.call(inside, given)
        if function is slice or any(isinstance(one, Array) for one in given):
            raise self.foreign("slice")
        if not callable(function):
            raise TypeError(f"'{type(function).__name__}' object is not callable")
        if isinstance(function, type) and issubclass(function, Exception):
            raise self.foreign("raise")
        if name.startswith("complex") or getattr(function, "__module__", "") == "cmath":
            raise self.foreign("complex")
        if any(isinstance(one, Number) for one in given):
            if name in CONVERSIONS:
                return given[0]
            if not is_function(function):
                raise self.refused(f"`{name}` isn't known in a kernel here")
            self.note(SUM if name in QUICK else SLOW, size=self.item)
            return Number()
        if name == "bool":
            self.note_comparison(given[0])
        try:
            result = call_function(function, given)
            return bend(result, function, given) if function in (abs, min, max) else result
        except KeyError:
            raise self.refused(f"`{name}` isn't known in a kernel here") from None

    def range(self, *limits: Any) -> NumberRange:
        if any(isinstance(limit, Number) for limit in limits):
            raise self.foreign("data branch")
        return NumberRange(*((0, *limits, 1) if len(limits) == 1 else (*limits, 1)[:3]))

    def attribute(self, value: Any, name: str) -> Any:
        """Return an attribute."""
        if isinstance(value, ModuleType) and value.__name__.startswith("numba.cuda"):
            return self.attribute_of_cuda(name)
        if isinstance(value, CudaName):
            if name != "array":
                raise self.foreign(name)
            return CudaName(f"{value}.array")
        if isinstance(value, Number):
            raise AttributeError(f"a real number has no attribute '{name}' here")
        if not isinstance(value, Array):
            return getattr(value, name)
        try:
            return value.attribute(name)
        except KeyError:
            raise self.refused(f"`.{name}` of an array isn't known in a kernel here") from None

    def attribute_of_cuda(self, name: str) -> Any:
        """Return `cuda.name`."""
        launch = self.launch
        known = {
            "threadIdx": self.thread,
            "blockIdx": self.block,
            "blockDim": Axes(*map(np.int64, (*launch.threads, 1))),
            "gridDim": Axes(*map(np.int64, (*launch.grid, 1))),
            "warpsize": WARP,
        }
        if name in known:
            return known[name]
        if name not in FUNCTIONS:
            raise self.foreign(name)
        return CudaName(name)

    def call_cuda(self, name: CudaName, given: list) -> Any:
        """Call `cuda.name`."""
        match name:
            case "grid" | "gridsize":
                return self.grid(name, given[0])
            case "syncthreads":
                self.loaded.clear()
                self.note("barrier")
            case "fma":
                self.note(FMA, size=self.item)
                return Number()
            case "local.array":
                self.has_local = True
                return Local()
            case "shared.array":
                return self.shared_array(*given)
            case "local" | "shared":
                raise TypeError("'module' object is not callable")
        return None

    def grid(self, name: str, dimensions: int) -> Any:
        """Return `cuda.grid(dimensions)` or `cuda.gridsize(dimensions)`."""
        if dimensions not in (1, 2):
            raise self.foreign("three")
        launch = self.launch
        axes: tuple = tuple(
            thread + size * block
            for thread, size, block in zip(self.thread, launch.threads, self.block)
        )
        if name == "gridsize":
            axes = tuple(np.int64(a * b) for a, b in zip(launch.grid, launch.threads))
        return axes if dimensions == 2 else axes[0]

    def shared_array(self, shape: Any, dtype: Any) -> Array:
        """Return `cuda.shared.array(shape, dtype)`. One without a size has what the launch has."""
        kind = np.dtype(getattr(dtype, "name", dtype))
        lengths = tuple(map(int, shape if isinstance(shape, tuple) else (shape,)))
        is_sized = all(lengths)
        if not is_sized:
            lengths = (self.launch.shared // kind.itemsize,)
        begin = self.shared_arrays.setdefault(self.frames[-1].line, self.shared_bytes)
        like = SimpleNamespace(shape=lengths, dtype=kind)
        array, end = place_array(f"byte {begin} on", begin, like, shared=True)
        if is_sized:
            self.shared_bytes = max(self.shared_bytes, end)
        return array
