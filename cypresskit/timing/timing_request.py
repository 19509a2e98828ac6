"""``TimingRequest``: everything that a launch's time and its report depend on."""

from dataclasses import dataclass, field

from cypresskit.compiler import Code, compile
from cypresskit.devices import CHIP_ALONE, HD5870, Device, System
from cypresskit.il import Program
from cypresskit.kernels import Kernel
from cypresskit.machine.shape import LaunchShape
from cypresskit.timing.timed_launch import TimedLaunch


@dataclass(frozen=True)
class TimingRequest:
    """A launch to be timed. ``timing.simulate.run_request`` returns its report.

    For the same launch on another board: ``dataclasses.replace(request, device=board)``.

    Attributes
    ----------
    kernel
        A GEMM kernel, or any other program, assembled or compiled.
    size, beta, count
        Of a GEMM kernel: (m, n, k), the factor of C, and the number of products.
    shape
        The launch of any other program.
    device, system, layout, flops, precision, exact, progress
        As in ``simulate``.
    """

    kernel: Kernel | Program | Code
    size: tuple[int, int, int] | None = None
    shape: LaunchShape | None = None
    device: Device = HD5870
    system: System = CHIP_ALONE
    layout: str = "linear"
    beta: float = 0.0
    count: int = 1
    flops: float = 0.0
    precision: str = "single"
    exact: bool = False
    progress: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name if isinstance(self.kernel, Kernel) else self.program.name

    @property
    def program(self) -> Program:
        """The kernel's program."""
        return self.kernel if isinstance(self.kernel, Program) else self.kernel.program

    def launch(self) -> TimedLaunch:
        """Return the compiled kernel with its launch."""
        kernel, shape = self.kernel, self.shape
        code = kernel if isinstance(kernel, Code) else compile(self.program, self.device)
        if isinstance(kernel, Kernel):
            assert self.size is not None
            shape = kernel.shape(*self.size, 1.0, self.beta, self.count)
        assert shape is not None
        return TimedLaunch(code, shape, self.device, self.layout)
