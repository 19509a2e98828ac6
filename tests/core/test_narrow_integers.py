"""In a browser, numpy's own integers have 32 bits, and those of others 64: what is traced is the
same there.
"""

import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import by_day, seeds
from test_timing_tracing import counting, paths, shapes

from cypresskit.chip import engine, work
from cypresskit.chip.units import lds_banks
from cypresskit.devices import HD5870
from cypresskit.kernels import KERNELS
from tools.bench_page.cypresskit_native import kinds
from tools.fuzz import law

#: What gives places, which numpy counts in its own integers whatever it is given.
PLACES = {"argmax", "argmin", "argsort", "count_nonzero", "flatnonzero", "nonzero", "searchsorted"}
WIDE = (np.int64, np.uint64)
NATIVE = [(work, "_find_lines"), (work, "_drop_known"), (lds_banks, "_add_clocks")]


def is_wide(given: Any) -> bool:
    """Whether something among arguments has 64 bits, or names a type."""
    if isinstance(given, (list, tuple)):
        return any(map(is_wide, given))
    return isinstance(given, (type, np.dtype)) or getattr(given, "dtype", None) in WIDE


def narrowed(result: Any) -> Any:
    """A result of which numpy chose the type, where its integers have 32 bits."""
    if isinstance(result, tuple):
        return tuple(map(narrowed, result))
    if getattr(result, "dtype", None) != np.int64 or np.any(result != np.asarray(result, "i4")):
        return result
    return result.astype(np.int32)


class Numpy32:
    """numpy's functions as where its own integers have 32 bits. (Methods of arrays aren't.)"""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, (type, np.ufunc)) or not callable(found):
            return found

        def call(*given, **named):
            result = found(*given, **named)
            if name == "unique" and isinstance(result, tuple):
                return result[0], *narrowed(result[1:])
            if name in PLACES or not (is_wide(given) or is_wide([*named.values()])):
                return narrowed(result)
            return result

        return call


def content(made: Any) -> Iterator[Any]:
    """Numbers and arrays, with their types, of what is traced, in its order."""
    if isinstance(made, np.ndarray):
        yield made.dtype, made.tolist()
    elif isinstance(made, (list, tuple)):
        for part in made:
            yield from content(part)
    elif hasattr(made, "__dataclass_fields__"):
        yield from content([getattr(made, name) for name in made.__dataclass_fields__])
    else:
        yield made


def check(of, monkeypatch) -> None:
    """Check that a launch has the same clauses and lines, and calls native code with the same
    types, which a browser has compiled ahead.
    """
    called: list[list[str]] = []

    def recorded(function):
        return lambda *given: called.append([*kinds(given)]) or function(*given)

    def found():
        called.clear()
        traced = paths(of)
        packed = work.pack(traced, of.group_wavefronts)
        chip = engine.make_chip(packed, HD5870, 8)
        return [*content(traced)], [*content(packed)], packed.executions, [*kinds(chip)], [*called]

    for module, name in NATIVE:
        monkeypatch.setattr(module, name, recorded(getattr(module, name)))
    wide = found()
    for name, module in [*sys.modules.items()]:
        if name.startswith("cypresskit.") and vars(module).get("np") is np:
            monkeypatch.setattr(module, "np", Numpy32())
    assert found() == wide


@pytest.mark.parametrize("name", by_day(KERNELS, 6))
def test_a_kernel_is_traced_alike_where_numpy_counts_in_32_bits(name, monkeypatch):
    kernel = KERNELS[name]
    check(kernel.shape(128, 1 if kernel.is_vector else 64, 48, 1.0, 1.0, 1), monkeypatch)


@pytest.mark.parametrize("seed", seeds(5))
@pytest.mark.parametrize("write", [law.accesses, law.groups])
def test_a_launch_is_traced_alike_where_numpy_counts_in_32_bits(write, seed, monkeypatch):
    check(write(random.Random(seed)), monkeypatch)


@pytest.mark.parametrize("seed", seeds(5))
def test_a_loop_is_traced_alike_where_numpy_counts_in_32_bits(seed, monkeypatch):
    check(shapes(counting(seed), (16, 8), width=512), monkeypatch)


def test_a_place_far_on_is_traced_alike_where_numpy_counts_in_32_bits(monkeypatch):
    """From the first elements of global memory to the last ones, whose bytes have 30 bits."""
    text = f"""
        dcl_literal l2, {(1 << 26) - 9}, 1, 9, 0
        mov r0, l2.w
        whileloop
            ige r1.x, r0.x, l2.z
            break_logicalnz r1.x
            mov r2, g[r0.x]
            iadd r3.x, r0.x, l2.x
            mov g[r3.x], r2
            iadd r0.x, r0.x, l2.y
        endloop
    """
    check(shapes(text), monkeypatch)
