"""Compile the timing model's inner loops with numba, and cache the result on disk.

Compiling takes some seconds. A cached result is stale as soon as any file with native code has
changed, since one function's compiled form contains those that it calls. If nothing can be cached
(no home, a full disk), the code is compiled again in each session, with one warning.
"""

import pickle
import sys
import warnings
from functools import cache

import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.caching import NullCache
from numba.core.cgutils import get_or_insert_function
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.extending import intrinsic

from cypresskit.chip.compiled_later import LANES, SOURCES
from cypresskit.files.disk_cache import DiskCache, cache_folder
from cypresskit.il.host_llvm import host_processor
from cypresskit.session import is_watched

OPTIONS: dict = {
    "error_model": "numpy",
    "_nrt": False,
    "nogil": True,
    # Without it, code from disk is three times as slow: each call passes the units' state.
    "forceinline": True,
}
MAX_FILES = 64
WORD = ir.IntType(64)
VECTOR = ir.VectorType(ir.IntType(64), LANES)
LEAST = ir.FunctionType(WORD, [VECTOR]), f"llvm.vector.reduce.smin.v{LANES}i64"
NOTICE = "cypresskit compiles its timing engine for this processor: once, about ten seconds."


def native(function):
    """Compile a function that Python calls. It must make no arrays, since counting
    references halves its speed.
    """
    if numba.config.DISABLE_JIT:
        raise RuntimeError("the timing model runs as native code alone: unset NUMBA_DISABLE_JIT")
    compiled = njit(**OPTIONS)(function)
    compiled._cache = NumbaCache(function)
    return compiled


def part(function):
    """Compile a function that only native code calls. It gets no wrapper for Python, which halves
    compile time. A test that calls it wraps it in ``njit``.
    """
    return njit(**OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def type_of(function) -> types.Type:
    """Return numba's type of a compiled function, or of an intrinsic."""
    return cpu_target.typing_context.resolve_value_type(function)


def compiler() -> tuple:
    """Return the versions of numba and numpy, and the processor that code is compiled for."""
    processor = numba.config.CPU_NAME or host_processor(), numba.config.CPU_FEATURES
    return numba.__version__, np.__version__, *processor


@intrinsic
def place_of(typing, numbers, place, wanted):
    """Return the index of the first ``wanted`` one of the ``LANES`` numbers from ``place`` on;
    if there is none, the index after them.
    """

    def generate(context, builder, signature, args):
        first_lane = builder.insert_element(VECTOR(ir.Undefined), args[2], WORD(0))
        zeros = ir.VectorType(ir.IntType(32), LANES)([0] * LANES)
        every = builder.shuffle_vector(first_lane, first_lane, zeros)
        same = builder.icmp_signed("==", _load(context, builder, signature, args), every)
        first = builder.cttz(builder.bitcast(same, ir.IntType(LANES)), ir.IntType(1)(0))
        return builder.add(args[1], builder.zext(first, WORD))

    return types.int64(numbers, types.int64, types.int64), generate


@intrinsic
def least(typing, numbers, place):
    """Return the least of the ``LANES`` numbers from ``place`` on. They are compared as integers,
    so floats must not be negative.
    """

    def generate(context, builder, signature, args):
        return builder.call(
            get_or_insert_function(builder.module, *LEAST),
            [_load(context, builder, signature, args)],
        )

    return types.int64(numbers, types.int64), generate


def _load(context, builder, signature, args):
    """Load ``LANES`` numbers of 64 bits of the array ``args[0]``, from index ``args[1]`` on."""
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.load(builder.bitcast(builder.gep(data, [args[1]]), VECTOR.as_pointer()), align=8)


class NumbaCache(NullCache):
    """The compiled forms of one function, in the user's cache folder."""

    def __init__(self, function):
        self.code = function.__module__, function.__qualname__, function.__code__.co_code

    def load_overload(self, sig, target_context):
        """Return the compiled form for these types, or None. The first time that there is none,
        print a notice.
        """
        contents = _files().read(self._key(sig))
        if contents is not None:
            return CompileResult._rebuild(target_context, *pickle.loads(contents))
        if is_watched():
            notify_once()
        return None

    def save_overload(self, sig, data):
        """Cache the compiled form for these types."""
        key = self._key(sig)
        files = _files()
        files.write(key, dumps(data._reduce()))
        if files.read(key) is None and SOURCES.is_unchanged():
            warn_once()

    def _key(self, sig) -> str:
        return SOURCES.key(sys.version, compiler(), self.code, sig)


def _files() -> DiskCache:
    return DiskCache(cache_folder(), "native", MAX_FILES, SOURCES)


@cache
def notify_once() -> None:
    """Print that the timing model is being compiled."""
    print(NOTICE, file=sys.stderr, flush=True)


@cache
def warn_once() -> None:
    """Warn that what was compiled can't be saved."""
    warnings.warn(
        "the compiled timing model can't be saved on disk: it is compiled again in each session,"
        " which takes some seconds. NUMBA_CACHE_DIR names another folder.",
        RuntimeWarning,
        stacklevel=3,
    )
