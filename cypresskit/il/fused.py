"""Fused multiply-add on numpy arrays, which numpy lacks, by the loops in ``fused.ll``, which LLVM compiles; LLVM's
target for this processor."""

import ctypes
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np


@cache
def host_processor() -> tuple[str, str]:
    """LLVM's name of this processor, and its features."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _target():
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


def host_machine(name: str = "", features: str = "", opt: int = 2):
    """A new ``TargetMachine`` for this processor, or for LLVM's CPU ``name``, that optimises at level ``opt``, 0 to
    3."""
    name, features = (name, features) if name else host_processor()
    return _target().create_target_machine(cpu=name, features=features, opt=opt)


@cache
def _loops() -> dict:
    """Compiled loops r[y, x] = fma(a[y, x], b[y, x], c[y, x]), by type."""
    import llvmlite.binding as llvm

    text = Path(__file__).with_name("fused.ll").read_text(encoding="utf-8")
    module, machine = llvm.parse_assembly(text), host_machine()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)  # makes vectors of it
    engine = llvm.create_mcjit_compiler(module, machine)
    signature = ctypes.CFUNCTYPE(
        ctypes.c_int32, *[ctypes.c_void_p, ctypes.c_int64] * 3, ctypes.c_void_p, *[ctypes.c_int64] * 2
    )
    kinds = {"float": np.float32, "double": np.float64}
    functions: dict = {np.dtype(kind): signature(engine.get_function_address(f"fma_{t}")) for t, kind in kinds.items()}
    functions["engine"] = engine  # keeps the code alive
    return functions


def prepared(a: np.ndarray, b: np.ndarray, c: np.ndarray, result: np.ndarray) -> Callable[[], tuple[np.ndarray, bool]]:
    """A function that computes a * b + c with one rounding into ``result``, from what the arrays hold when it is
    called. Shapes are (rows or 1, items or 1); of an array of one item the value is taken now. The function returns the
    result and whether it needs a second look: a number is infinite or NaN, or in single precision may concern the flush
    of subnormals."""
    rows, items = result.shape
    arguments, kept = [], [result]
    for x in (a, b, c):
        if x.shape[1] != items or x.strides[1] != x.itemsize:
            x = np.ascontiguousarray(np.broadcast_to(x, (len(x), items)))
        kept.append(x)
        arguments += [x.__array_interface__["data"][0], x.strides[0] // x.itemsize if len(x) > 1 else 0]
    loop = partial(_loops()[a.dtype], *arguments, result.__array_interface__["data"][0], rows, items)
    return lambda: (kept[0], bool(loop()))


def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, bool]:
    """a * b + c with one rounding, and whether it needs a second look (see ``prepared``)."""
    if not a.ndim == b.ndim == c.ndim == 2:
        shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
        result, odd = multiply_add(*(np.broadcast_to(x, shape).reshape(1, -1) for x in (a, b, c)))
        return result.reshape(shape), odd
    result = np.empty(tuple(map(max, a.shape, b.shape, c.shape)), a.dtype)
    return prepared(a, b, c, result)() if result.size else (result, False)
