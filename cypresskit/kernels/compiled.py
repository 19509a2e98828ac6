"""Compile a kernel, given by name, file, source or program, and return its statistics."""

from cypresskit import compiler
from cypresskit.compiler import Code, KernelStats
from cypresskit.devices import HD5870, Device
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
    return compiler.compile(known.program).stats(*known.convention.per_iteration)
