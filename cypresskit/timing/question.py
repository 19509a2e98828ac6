"""``Question``: all that decides how long a launch takes, and how its report is worded. The same
question on another board is ``dataclasses.replace(question, device=board)``.
"""

from dataclasses import dataclass, field

from cypresskit.compiler import Code, compile
from cypresskit.devices import HD5870, Device
from cypresskit.il import Program
from cypresskit.kernels import Kernel
from cypresskit.machine.shape import LaunchShape
from cypresskit.timing.timed_launch import TimedLaunch


@dataclass(frozen=True)
class Policy:
    """How much is simulated: up to ``whole`` lines and clauses (an eighth of a second) everything,
    and about as many of a longer launch; up to ``patience`` (some five seconds) everything where
    the pace isn't steady; of many rounds the first ``rounds`` or more, four at least.
    """

    whole: float = 4e6
    patience: float = 1.5e8
    rounds: int = 6


POLICY = Policy()


@dataclass(frozen=True)
class Question:
    """How long does ``kernel`` take on ``device``? ``timing.simulate.ask`` knows.

    A GEMM kernel has its ``size`` (m, n, k), its ``beta`` and the ``count`` of products in one
    launch; any other program, assembled or compiled, has its launch as a ``shape``. ``layout``,
    ``flops``, ``precision``, ``exact`` and ``progress`` as for ``simulate``; ``policy`` says how
    much of a long launch is simulated.
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
    policy: Policy = POLICY

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.program.name if isinstance(self.kernel, Code) else self.kernel.name

    def launch(self) -> TimedLaunch:
        """The compiled kernel with its launch."""
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
