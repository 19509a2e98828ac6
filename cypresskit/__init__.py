"""cypresskit: the fastest matrix multiplication of AMD's Cypress GPU, running on a simulated Radeon HD 5870."""

from importlib import import_module

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


#: What is imported when first used: the compiler and the timing model take their time, drawing needs bokeh.
_LATER = {
    "CompileError": "compiler",
    "check": "machine.checks",
    "compile": "compiler",
    "draw": "",
    "simulate": "timing",
    "sweep": "timing",
    "teach": "",
}


def __getattr__(name: str):
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"cypresskit.{_LATER[name] or name}")
    return getattr(module, name) if _LATER[name] else module


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])
