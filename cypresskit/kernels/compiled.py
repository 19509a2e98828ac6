"""``compile`` and ``card`` for whatever stands for a kernel: its name, file, text or program."""

from cypresskit import compiler
from cypresskit.compiler import Code, KernelCard
from cypresskit.devices import HD5870, Device
from cypresskit.kernels.own import Source, resolve, resolve_program


def compile(kernel: Source, device: Device = HD5870) -> Code:
    """Compile a kernel for ``device``: its name, a file or text of IL, a program or a ``Kernel``.

    Bundles are packed as by the compiler that came with the chip. Raises ``ILError`` for a text
    that doesn't assemble, ``CompileError``, which names the IL line, if the kernel needs more than
    the chip has (registers, LDS, doubles) or has a loop that nothing leaves; ``TypeError`` for what
    is no kernel.

    >>> ck.compile("sgemm_tn").card().loop_bundles
    31
    """
    return compiler.compile(resolve_program(kernel), device)


def card(kernel: Source, device: Device = HD5870) -> KernelCard:
    """The card of a GEMM kernel: registers, wavefronts, bundles, nominal Gflop/s, what binds.

    Arguments and errors are ``compile``'s; for a kernel whose launch isn't known, also those of
    ``ck.kernel``.

    >>> ck.card("sgemm_tn").gprs
    25
    """
    known = resolve(kernel)
    return compiler.compile(known.program, device).card(*known.convention.turn)
