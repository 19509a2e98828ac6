"""The expressions of a CUDA kernel, in numba's intermediate code, for many threads at once."""

import inspect
import operator
from collections import defaultdict
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np
from numba.core import ir

from cypresskit.today.cuda_events import function_of
from cypresskit.today.cuda_names import CudaOfThreads
from cypresskit.today.cuda_threads import Threads
from cypresskit.today.cuda_values import (
    CONVERSIONS,
    FMA,
    PRODUCT,
    SLOW,
    SUM,
    Array,
    Number,
    NumberRange,
    call_function,
    function_of_threads,
    growth,
    is_known,
    name_of,
)

COMPARISONS = operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne
FREE = (*COMPARISONS, operator.and_, operator.or_)  # of data: part of a selection
DIVISIONS = operator.truediv, operator.floordiv, operator.mod, operator.pow
PERIODIC = operator.mod, operator.floordiv, operator.and_, divmod
EVEN = (*COMPARISONS, operator.add, operator.sub, operator.mul, operator.truediv, operator.pow)
QUICK = "min", "max", "abs", "fabs"  # functions that are one instruction
SIMPLE = "add", "sub"  # operators that are
FEW_THREADS = 1024  # whose numbers are compared
LOADS_OF_FOUR = "four", "_four", "_simulated"  # `cuda_kernels.four`: a load of 16 bytes


class Expressions(Threads):
    """Threads that evaluate expressions.

    Attributes
    ----------
    results
        By expression, the numbers of a few threads in this iteration.
    uneven
        Expressions whose numbers change unevenly from iteration to iteration, as in a random number
        generator. They are taken as data: computing them is work.
    """

    def __init__(self, *where: Any):
        super().__init__(*where)
        self.results: dict[int, list] = defaultdict(list)
        self.uneven: set[int] = set()

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
            result = self.operation(value)
            if isinstance(result, np.ndarray) and result.dtype.kind in "iuf":
                few = result[:: self.total // FEW_THREADS + 1].copy()
                self.results[id(value)].append(few)
            return result
        if not isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            raise self.refused(f"`{value}` isn't timed here: leave it out")
        constant = value.value
        if constant is ir.UNDEFINED:
            raise NameError(f"name '{value.name}' is not defined")
        if isinstance(constant, np.ndarray):
            raise self.refused("a global array isn't timed here: pass it as an argument")
        if isinstance(constant, complex):
            raise self.foreign("complex")
        return constant.item() if isinstance(constant, np.generic) else constant

    def operation(self, expression: Any) -> Any:
        """Return the value of an operation."""

        def of(name: str) -> Any:
            return self.value(getattr(expression, name))

        match expression.op:
            case "binop" | "inplace_binop":
                is_plain = expression.op == "binop"
                function = expression.fn if is_plain else expression.immutable_fn
                return self.operate(function, self.own(expression, of("lhs")), of("rhs"))
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
            case "getitem" | "static_getitem":
                index = expression.index
                is_variable = isinstance(index, ir.Var)
                return self.element(of("value"), self.value(index) if is_variable else index)
            case "call":
                named = [self.value(one) for _, one in expression.kws]
                given = [*map(self.value, expression.args), *named]
                if function_of_threads(of("func")):
                    given[0] = self.own(expression, given[0])
                return self.call_of(of("func"), given)
            case "exhaust_iter" | "getiter":
                raise self.foreign("iteration")
        raise self.refused(f"a {expression.op.split('_')[-1]} isn't timed here: leave it out")

    def own(self, expression: Any, value: Any) -> Any:
        """Return an operand: data, if the result is taken as data."""
        is_data = id(expression) in self.uneven and not isinstance(value, Number)
        return Number() if is_data else value

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
        self.compared.append(1 * value)
        return np.logical_not(value)

    def note_bends(self, function: Any, given: list) -> None:
        """Note numbers that change their sign where the result of an operation doesn't grow by the
        same amount. If these aren't known, a square shows whether an operand changes at all.
        """
        if function in (min, max, abs):
            self.compared += [given[0] - other for other in given[1:] or [0]]
        elif function in PERIODIC and isinstance(given[1], int | np.integer) and given[1] > 0:
            period = given[1] & -given[1] if function is operator.and_ else given[1]
            rest = given[0] % period
            self.compared += [rest - period, rest + 1]
        elif function not in EVEN:
            numbers = [growth(one, 0) for one in given]
            self.compared += numbers + [one * one for one in numbers]

    def operate(self, function: Any, one: Any, other: Any) -> Any:
        """Return the value of an operation on two numbers."""
        if isinstance(one, Array) or isinstance(other, Array):
            raise self.foreign("slice")
        if not (isinstance(one, Number) or isinstance(other, Number)):
            if function in COMPARISONS and not isinstance(one, tuple | str):
                self.compared.append(1 * one - other)
            self.note_bends(function, [one, other])
            return self.computed(function, function(one, other))
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

    def computed(self, function: Any, result: Any) -> Any:
        """Return a result that is known. If it is a real number of each thread's own, computing it
        is work, as with data.
        """
        if isinstance(result, np.ndarray) and result.dtype.kind == "f":
            kind = SUM if name_of(function) in (*QUICK, *SIMPLE) else SLOW
            self.note(PRODUCT if function is operator.mul else kind, size=self.item)
        return result

    def call_of(self, function: Any, given: list) -> Any:
        """Return what a function returns."""
        name = name_of(function)
        if isinstance(getattr(function, "__self__", None), CudaOfThreads):
            return function(*given)
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
        is_exception = isinstance(function, type) and issubclass(function, Exception)
        if is_exception or name == "mark_try_block":
            raise self.foreign("raise")
        if name.startswith("complex") or getattr(function, "__module__", "") == "cmath":
            raise self.foreign("complex")
        if any(isinstance(one, Number) for one in given):
            if name in CONVERSIONS:
                return given[0]
            if function_of_threads(function) or function.__module__ == "math":
                self.note(SUM if name in QUICK else SLOW, size=self.item)
                return Number()
        else:
            if name == "bool":
                self.compared.append(1 * given[0])
            if name not in CONVERSIONS or np.asarray(given[0]).dtype.kind == "f":
                self.note_bends(function, given)
            with suppress(KeyError):
                result = call_function(function, given)
                return result if name in CONVERSIONS else self.computed(function, result)
        raise self.refused(f"`{name}` isn't timed here: leave it out")

    def range(self, *limits: Any) -> NumberRange:
        if any(isinstance(limit, Number) for limit in limits):
            raise self.foreign("data branch")
        return NumberRange(*((0, *limits, 1) if len(limits) == 1 else (*limits, 1)[:3]))

    def attribute(self, value: Any, name: str) -> Any:
        """Return an attribute."""
        if isinstance(value, ModuleType) and value.__name__.startswith("numba.cuda"):
            return getattr(CudaOfThreads(self), name)
        if isinstance(value, Number):
            raise AttributeError(f"a number has no attribute '{name}' here")
        if isinstance(value, Array) and name not in ("shape", "size", "ndim"):
            raise self.refused(f"`.{name}` of an array isn't timed here")
        return getattr(value, name)
