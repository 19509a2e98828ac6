"""The engine of the site's workbench, in WebAssembly, does what numba's does, byte for byte."""

import ctypes
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import wasmtime
from conftest import SIX, by_day, seeds
from numba import njit
from numba.core.dispatcher import Dispatcher
from test_il_fused import differences as fused_differences

import cypresskit as ck
from cypresskit.il.fused import multiply_add
from cypresskit.timing import simulate
from cypresskit.timing.simulate import forget_reports
from tools.bench_page import cypresskit_native as provider
from tools.bench_page import engine_file, missing_math

PAGE = 1 << 16  # bytes, of WebAssembly's memory
SIZES = 64, 200  # of the launches: one whole number of blocks, and one that leaves some over


class Engine:
    """The module with a memory of its own, into which the arrays of each call are copied."""

    def __init__(self) -> None:
        engine = wasmtime.Engine()
        self.store = wasmtime.Store(engine)
        limits = wasmtime.MemoryType(wasmtime.Limits(1, None))
        self.memory = wasmtime.Memory(self.store, limits)
        module = wasmtime.Module(engine, engine_file())
        exports = wasmtime.Instance(self.store, module, [self.memory]).exports(self.store)
        self.entries = {export.name: exports[export.name] for export in module.exports}
        self.called: set[str] = set()

    def run(self, name: str, arguments: tuple) -> list[bytes]:
        """Call an entry on copies of arguments; the bytes of all arrays after it.

        Arrays that are views into others are copied with them: what lies together stays together.
        """
        entry = f"{name}({','.join(provider.kinds(arguments))})"
        self.called.add(entry)
        pieces = sorted((provider.address(a), a.nbytes) for a in arrays(arguments) if a.nbytes)
        moved, place = {}, 8 * len([*provider.words(arguments)])
        end = shift = 0
        for start, size in pieces:
            if start >= end:
                place += -(place - start) % 64
                shift = place - start
            moved[start, size] = shift
            end = max(end, start + size)
            place = max(place, start + size + shift)
        self._grow(place)

        base = ctypes.addressof(self.memory.data_ptr(self.store).contents)
        for (start, size), by in moved.items():
            ctypes.memmove(base + start + by, start, size)
        block = np.array([*provider.words(self._moved(arguments, moved))], np.int64)
        ctypes.memmove(base, provider.address(block), block.nbytes)
        self.entries[entry](self.store, 0)
        return [
            ctypes.string_at(base + start + moved[start, size], size)
            for start, size in ((provider.address(a), a.nbytes) for a in arrays(arguments))
            if size
        ]

    def _grow(self, size: int) -> None:
        missing = size - self.memory.data_len(self.store)
        if missing > 0:
            self.memory.grow(self.store, -(-missing // PAGE))

    def _moved(self, arguments: tuple, moved: dict) -> tuple:
        """Arguments whose arrays are described as they lie in the memory of the module."""
        values = []
        for value in arguments:
            if isinstance(value, tuple):
                value = self._moved(value, moved)
            elif isinstance(value, np.ndarray):
                start = provider.address(value)
                by = moved.get((start, value.nbytes), -start)
                value = (start + by, *value.shape, *value.strides)
            values.append(value)
        return tuple(values)


def arrays(arguments: tuple) -> list[np.ndarray]:
    """All arrays among arguments."""
    found = []
    for value in arguments:
        if isinstance(value, tuple):
            found += arrays(value)
        elif isinstance(value, np.ndarray):
            found.append(value)
    return found


@cache
def the_engine() -> Engine:
    return Engine()


@pytest.fixture
def both(monkeypatch):
    """Have each native call of a simulation made by both; the names of those that differ."""
    differ: list[str] = []
    engine = the_engine()

    def twice(name: str, function: Dispatcher):
        def call(*arguments) -> None:
            theirs = engine.run(name, arguments)
            function(*arguments)
            ours = [array.tobytes() for array in arrays(arguments) if array.nbytes]
            if theirs != ours:
                differ.append(name)

        return call

    for entry in engine.entries:
        name = entry.partition("(")[0]
        module, _, function = name.rpartition(".")
        monkeypatch.setattr(
            sys.modules[module], function, twice(name, getattr(sys.modules[module], function))
        )
    forget_reports()
    yield differ
    forget_reports()


@pytest.mark.parametrize("kernel", by_day(SIX, 3))
def test_all_bytes_are_the_same(kernel, both):
    for n in SIZES:
        simulate(kernel, n)
    assert both == []
    assert {name.rpartition(".")[2] for name in the_engine().called}


def test_kernels_call_all_entries(both):
    for kernel in ("sgemm_tn_compute", "sgemm_64x64_lds", "ddgemm_naive"):
        simulate(kernel, 64)
    assert the_engine().called >= set(the_engine().entries)


class Narrow:
    """numpy, whose own integers have 32 bits, as in WebAssembly."""

    def __getattr__(self, name: str):
        function = getattr(np, name)
        if name not in ("array", "arange", "full", "cumsum"):
            return function

        def call(first, *others, **options):
            made = function(first, *others, **options)
            is_own = made.dtype == np.int64 and not isinstance(first, np.ndarray | np.int64)
            return made.astype(np.int32) if is_own and not (options or others) else made

        return call


@pytest.mark.parametrize("kernel", ["sgemm_tn_compute", "sgemm_64x64_lds"])
def test_where_integers_have_32_bits_entries_get_those_of_64(kernel, both, monkeypatch):
    """Also for a reader's own rules of banks."""
    own = {"texture_bank": lambda x, y: (x + y) % 4, "lds_bank": lambda w: w * w % 31}
    board = replace(ck.HD5870, **own)
    expected = simulate(kernel, 64, device=board).clocks
    forget_reports()
    for name in [name for name in sys.modules if name.startswith("cypresskit.")]:
        if vars(sys.modules[name]).get("np") is np and name.split(".")[1] in ("chip", "trace"):
            monkeypatch.setattr(sys.modules[name], "np", Narrow())
    assert simulate(kernel, 64, device=board).clocks == expected
    assert both == []


@pytest.mark.parametrize("seed", seeds(1))
def test_fused_multiply_adds_are_rounded_once(seed):
    """Of any bits, and where the sum nearly cancels the product, also near the limits of the
    exponent.
    """

    @njit(error_model="numpy")
    def loop(a, b, c, result):
        for n in range(len(a)):
            result[n] = missing_math.fma(a[n], b[n], c[n])

    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(0, 2**64, 60_000, np.uint64).view(np.float64) for _ in range(3))
    with np.errstate(all="ignore"):
        a[:20_000] = np.ldexp(a[:20_000] % 1, rng.integers(-40, 40, 20_000))
        scale = rng.integers(-1022 - 60, 1024, 40_000)
        b[:40_000] = np.ldexp(1 + rng.random(40_000), scale - np.frexp(a[:40_000])[1])
        near = -(a * b) * np.ldexp(1, rng.integers(-3, 60, 60_000))
        c[:40_000] = np.where(rng.random(60_000) < 0.5, near, np.nextafter(near, 0))[:40_000]
    result = np.empty_like(a)
    loop(a, b, c, result)
    expected = multiply_add(a[None], b[None], c[None])
    assert fused_differences((a, b, c), expected[0], result) == []
