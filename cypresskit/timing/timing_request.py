"""``TimingRequest``: everything that a launch's time and its report depend on."""

from dataclasses import dataclass, field

from cypresskit.compiler import Code, compile
from cypresskit.devices import HD5870, Device
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
    device, layout, flops, precision, exact, progress
        As in ``simulate``.
    """

    kernel: Kernel | Program | Code
    size: tuple[int, int, int] | None = None
    shape: LaunchShape | None = None
    device: Device = HD5870
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
        return self.kernel.program.name if isinstance(self.kernel, Code) else self.kernel.name

    def launch(self) -> TimedLaunch:
        """Return the compiled kernel with its launch."""
        return TimedLaunch(self._code(), self._shape(), self.device, self.layout)

    def _code(self) -> Code:
        if isinstance(self.kernel, Code):
            return self.kernel
        program = self.kernel.program if isinstance(self.kernel, Kernel) else self.kernel
        return compile(program, self.device)

    def _shape(self) -> LaunchShape:
        if isinstance(self.kernel, Kernel):
            assert self.size is not None
            return self.kernel.shape(*self.size, 1.0, self.beta, self.count)
        assert self.shape is not None
        return self.shape
