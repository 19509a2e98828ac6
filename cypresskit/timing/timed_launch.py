"""A launch that is timed: what it is, and the paths of its wavefronts."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cypresskit.chip.work import WavefrontPath
from cypresskit.compiler import Code, compile
from cypresskit.devices import CHIP_ALONE, HD5870, Device, System
from cypresskit.files import result_cache
from cypresskit.kernels import Kernel
from cypresskit.machine.shape import LaunchShape
from cypresskit.trace.memory_layout import MemoryLayout
from cypresskit.trace.tracing import trace_wavefronts

MAX_SPREAD = 4096  # wavefronts that stand for a larger launch
GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples fall in step with no row of workgroups


@dataclass(frozen=True, eq=False)
class Spread:
    """Wavefronts that represent a launch.

    Attributes
    ----------
    paths
        Their paths.
    times
        How many wavefronts of the launch each of them represents.
    """

    paths: list[WavefrontPath]
    times: float = 1.0


@dataclass(frozen=True)
class TimedLaunch:
    """A launch to be timed, on a board: all that its time and its report depend on.
    ``timing.simulate.report_on`` returns the report.

    For the same launch on another board: ``dataclasses.replace(launch, device=board)``.

    Attributes
    ----------
    kernel
        A GEMM kernel, or the launch of any other program.
    size, beta, count
        Of a GEMM kernel: (m, n, k), the factor of C, and the number of products.
    device, system, exact
        As in ``simulate``.
    compiled
        Its code, if that isn't our compiler's.
    """

    kernel: Kernel | LaunchShape
    size: tuple[int, int, int] | None = None
    device: Device = HD5870
    system: System = CHIP_ALONE
    beta: float = 0.0
    count: int = 1
    exact: bool = False
    compiled: Code | None = None

    @cached_property
    def code(self) -> Code:
        """The compiled kernel."""
        if self.compiled is not None:
            return replace(self.compiled, device=self.device)
        return compile(self.kernel.program, self.device)

    @cached_property
    def shape(self) -> LaunchShape:
        """The launch without its board."""
        if isinstance(self.kernel, LaunchShape):
            return self.kernel
        assert self.size is not None
        return self.kernel.shape(*self.size, 1.0, self.beta, self.count)

    def key(self, what: str) -> str | None:
        """Return a hash of all that a kind of result depends on; None if it isn't cached.

        The numbers of a subclass of ``Device`` may come from its own properties and class
        attributes, which a key can't cover.
        """
        shape = self.shape
        if type(self.device) is not Device:
            return None
        return result_cache.hash_key(
            what,
            shape.program.meaning,
            vars(self.device),
            (shape.domain, sorted(shape.textures.items()), sorted(shape.outputs.items())),
            [(n, words.tobytes()) for n, words in sorted(shape.constants.items())],
            self.exact,
            self.compiled and (self.compiled.controls, self.compiled.gprs),
        )

    @property
    def name(self) -> str:
        """The kernel's name, and its compiler if that isn't ours."""
        kernel = self.kernel
        name = kernel.name if isinstance(kernel, Kernel) else kernel.program.name
        return self.compiled.named(name) if self.compiled else name

    @property
    def precision(self) -> str:
        """The precision whose peak is meant; single, for another program than a GEMM kernel."""
        return self.kernel.precision if isinstance(self.kernel, Kernel) else "single"

    @property
    def flops(self) -> float:
        """Floating-point operations of a GEMM kernel; 0 for another program."""
        return 2.0 * self.count * math.prod(self.size) if self.size else 0.0

    @property
    def active_wavefronts(self) -> int:
        """Wavefronts that share a SIMD engine."""
        shape = self.shape
        return self.device.active_wavefronts(
            self.code.gprs, shape.program.lds_bytes, shape.group_wavefronts
        )

    @property
    def round_size(self) -> int:
        """Wavefronts that the chip holds at once."""
        return self.active_wavefronts * self.device.simd_engines

    @property
    def wavefronts(self) -> int:
        """Wavefronts of the whole launch."""
        return self.shape.wavefronts

    @cached_property
    def memory_layout(self) -> MemoryLayout:
        """Its memory."""
        return MemoryLayout(self.shape, self.device)

    def trace(self, count: int) -> list[WavefrontPath]:
        """Return the paths of the first ``count`` wavefronts."""
        return self.trace_some(np.arange(count))

    def trace_some(self, numbers: np.ndarray) -> list[WavefrontPath]:
        """Return the paths of the wavefronts with these numbers, in ascending order."""
        return trace_wavefronts(self.code, self.memory_layout, numbers)

    def trace_spread(self) -> Spread:
        """Return the paths of all wavefronts; of a large launch, of ``MAX_SPREAD`` from all over
        it.
        """
        total = self.wavefronts
        if total <= MAX_SPREAD:
            return Spread(self.trace(total))
        parts = np.arange(MAX_SPREAD)
        positions = (parts + parts * GOLDEN % 1) * total / MAX_SPREAD
        numbers = np.unique(positions.astype(np.int64))
        return Spread(self.trace_some(numbers), total / len(numbers))
