"""cypresskit: the fastest matrix multiplication of AMD's Cypress GPU, running on a simulated Radeon HD 5870."""

from cypresskit.blas import DD, CardMemoryError, choose, gemm, gemm_packed, gemv
from cypresskit.blas import open_card as open
from cypresskit.devices import HD5850, HD5870, HD5970, Device
from cypresskit.il import ILError, Program, assemble
from cypresskit.kernels import KERNELS as kernels
from cypresskit.kernels import Kernel
from cypresskit.machine import KernelError, Observer, Run, launch
from cypresskit.machine.record import Recorder, Recording

__version__ = "0.1.0"

__all__ = [
    "DD",
    "HD5850",
    "HD5870",
    "HD5970",
    "CardMemoryError",
    "Device",
    "ILError",
    "Kernel",
    "KernelError",
    "Observer",
    "Program",
    "Recorder",
    "Recording",
    "Run",
    "assemble",
    "choose",
    "gemm",
    "gemm_packed",
    "gemv",
    "kernels",
    "launch",
    "open",
]


def __getattr__(name: str):
    """``ck.draw`` and ``ck.teach`` are imported when first used: drawing needs bokeh, which takes its time."""
    if name in ("draw", "teach"):
        from importlib import import_module

        return import_module(f"cypresskit.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
