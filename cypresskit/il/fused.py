"""Compute fused multiply-adds of numpy arrays, which numpy lacks.

LLVM compiles a loop for each type. Without LLVM, numpy's sums and products are used
(``fused_in_numpy``).
"""

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

from cypresskit.il import fused_in_numpy
from cypresskit.il.host_llvm import HAS_LLVM, host_machine

#: Per type: its suffix in LLVM's intrinsics, the integer type of its bits, and four bit patterns:
#: the largest subnormal that is flushed, the least normal number, infinity, and all bits but the
#: sign.
FORMATS = {
    "float": ("f32", "i32", 0x7FFFFF, 0x800000, 0x7F800000, 0x7FFFFFFF),
    "double": ("f64", "i64", 0, 0, 0x7FF << 52, (1 << 63) - 1),
}
FUSED = """
declare {t} @llvm.fma.{s}({t}, {t}, {t})
define i32 @fma_{t}(ptr noalias %a, i64 %sa, ptr noalias %b, i64 %sb, ptr noalias %c, i64 %sc,
                    ptr noalias %r, i64 %rows, i64 %sr) {{
entry:
  br label %row
row:
  %y = phi i64 [0, %entry], [%nexty, %end]
  %odd = phi i32 [0, %entry], [%now, %end]
  {rows}
  br label %item
item:
  %x = phi i64 [0, %row], [%nextx, %item]
  %before = phi i32 [%odd, %row], [%now, %item]
  %pr = getelementptr {t}, ptr %rr, i64 %x
  {operands}
  %vr = call {t} @llvm.fma.{s}({t} %va, {t} %vb, {t} %vc)
  store {t} %vr, ptr %pr
  %br = bitcast {t} %vr to {i}
  %size = and {i} %br, {all}
  %special = icmp uge {i} %size, {infinity}
  %lessr = sub {i} %size, 1
  %oddr = icmp ult {i} %lessr, {normal}
  %o1 = or i1 %odda, %oddb
  %o2 = or i1 %oddc, %oddr
  %o3 = or i1 %o1, %o2
  %o4 = or i1 %o3, %special
  %o5 = zext i1 %o4 to i32
  %now = or i32 %before, %o5
  %nextx = add i64 %x, 1
  %morex = icmp slt i64 %nextx, %sr
  br i1 %morex, label %item, label %end
end:
  %nexty = add i64 %y, 1
  %morey = icmp slt i64 %nexty, %rows
  br i1 %morey, label %row, label %done
done:
  ret i32 %now
}}
"""
ROW = """
  %y{x} = mul i64 %y, %s{x}
  %r{x} = getelementptr {t}, ptr %{x}, i64 %y{x}"""
OPERAND = """
  %p{x} = getelementptr {t}, ptr %r{x}, i64 %x
  %v{x} = load {t}, ptr %p{x}
  %b{x} = bitcast {t} %v{x} to {i}
  %m{x} = and {i} %b{x}, {all}
  %less{x} = sub {i} %m{x}, 1
  %odd{x} = icmp ult {i} %less{x}, {subnormal}"""


@cache
def _loops() -> dict[np.dtype, Callable[..., int]]:
    """Compile loops r[y, x] = fma(a[y, x], b[y, x], c[y, x]). Return them by type."""
    import llvmlite.binding as llvm

    text = ""
    for t, (s, i, subnormal, normal, infinity, all) in FORMATS.items():
        operands = "".join(
            OPERAND.format(x=x, t=t, i=i, all=all, subnormal=subnormal) for x in "abc"
        )
        rows = "".join(ROW.format(x=x, t=t) for x in "abcr")
        text += FUSED.format(
            t=t, s=s, i=i, rows=rows, operands=operands, all=all, infinity=infinity, normal=normal
        )
    module = llvm.parse_assembly(text)
    machine = host_machine()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)  # vectorizes the loop
    engine = llvm.create_mcjit_compiler(module, machine)
    signature = ctypes.CFUNCTYPE(
        ctypes.c_int32,
        *[ctypes.c_void_p, ctypes.c_int64] * 3,
        ctypes.c_void_p,
        *[ctypes.c_int64] * 2,
    )
    functions: dict[np.dtype, Callable[..., int]] = {}
    for t, kind in (("float", np.float32), ("double", np.float64)):
        function = signature(engine.get_function_address(f"fma_{t}"))
        # Keeps the code alive as long as the function: if two threads compile at the same time, the
        # cache drops one engine while its function is still called.
        function.engine = engine  # type: ignore[attr-defined]  # ctypes lets us
        functions[np.dtype(kind)] = function
    return functions


def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, bool]:
    """Compute a * b + c with one rounding.

    Returns
    -------
    result
        The result.
    is_special
        Whether a number is infinite or NaN or, in single precision, may be a flushed subnormal. The
        caller then has to compute such elements by other means.
    """
    if not HAS_LLVM:
        return fused_in_numpy.multiply_add(a, b, c)
    if not a.ndim == b.ndim == c.ndim == 2:
        shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
        result, odd = multiply_add(*(np.broadcast_to(x, shape).reshape(1, -1) for x in (a, b, c)))
        return result.reshape(shape), odd
    result = np.empty(tuple(map(max, a.shape, b.shape, c.shape)), a.dtype)
    if not result.size:
        return result, False
    rows, items = result.shape
    arguments = []
    alive = [result]  # while compiled code uses their memory
    for x in (a, b, c):
        if x.shape[1] != items or x.strides[1] != x.itemsize:
            x = np.ascontiguousarray(np.broadcast_to(x, (len(x), items)))
        alive.append(x)
        stride = x.strides[0] // x.itemsize if len(x) > 1 else 0
        arguments += [x.__array_interface__["data"][0], stride]
    pointer = result.__array_interface__["data"][0]
    return result, bool(_loops()[a.dtype](*arguments, pointer, rows, items))
