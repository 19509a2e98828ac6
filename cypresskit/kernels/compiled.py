"""Compile a kernel, given by name, file, source or program, and return its statistics."""

from collections.abc import Iterable

from cypresskit import compiler
from cypresskit.compiler import Code, KernelStats
from cypresskit.compiler.assembly import Control
from cypresskit.devices import DOUBLE_DOUBLE, HD5870, Device
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.own import Source, resolve, resolve_program


def compile(kernel: Source, device: Device = HD5870, *, by: str = "cypresskit") -> Code:
    """Compile a kernel, packing bundles like the compiler that came with the chip; or with LLVM.

    Parameters
    ----------
    kernel
        A kernel's name, a file or source of IL, a program, or a ``Kernel``.
    device
        The board to compile for.
    by
        The compiler: "cypresskit", or "llvm" for what LLVM makes of our translation. Its code for
        the catalog's kernels in single precision is stored; other kernels need llvmlite.

    Raises
    ------
    ILError
        For a source that doesn't assemble.
    CompileError
        If the kernel needs more registers, LDS or doubles than the chip has, or has a loop without
        an exit. The message names the IL line. By LLVM also for what that can't compile.
    TypeError
        For anything else.
    ValueError
        For another compiler.

    Examples
    --------
    >>> ck.compile("sgemm_tn").stats().bundles_per_iteration
    31
    >>> ck.compile("sgemm_tn", by="llvm").stats().bundles_per_iteration
    40
    """
    return compiler.compile(resolve_program(kernel), device, by)


def kernel_stats(kernel: Source) -> KernelStats:
    """Return the compiler's statistics of a GEMM kernel for the HD 5870.

    These are its registers, wavefronts, bundles, nominal Gflop/s, and what it is bound by. The
    errors are those of ``compile``; a kernel that isn't in the catalog may also
    raise the errors of ``ck.load_kernel``.

    Examples
    --------
    >>> ck.kernel_stats("sgemm_tn").gprs
    25
    """
    known = resolve(kernel)
    code = compiler.compile(known.program)
    values, flops = known.convention.per_iteration
    most = _most_flops(known, code.main_loop)
    if most < flops:  # more are stated than an iteration makes
        values, flops = values * most // flops, most
    return code.stats(values, flops)


def values_taken(kernel: Kernel) -> int:
    """Return how many values of k an iteration takes, by the products that it makes; 0 if a loop is
    inside another, or the kernel can't be compiled.
    """
    try:
        controls = compiler.compile(kernel.program).controls
    except compiler.CompileError:
        return 0
    depth = max(control.depth for control in controls)
    values, flops = kernel.convention.per_iteration
    taken = _most_flops(kernel, [c for c in controls if c.depth == depth]) * values // flops
    return taken * kernel.convention.parts if depth == 1 else 0


def _most_flops(kernel: Kernel, controls: Iterable[Control]) -> int:
    """Return the most flops of products that controls make, by their products; of double-doubles by
    their bundles.
    """
    bundles = [bundle for control in controls for bundle in control.bundles]
    if kernel.precision == "double-double":
        return int(2 * len(bundles) / DOUBLE_DOUBLE)
    return 2 * sum(bundle.multiplications for bundle in bundles)
