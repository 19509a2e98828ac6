"""Run the fastest matrix multiplication of AMD's Cypress GPU on a simulated Radeon HD 5870.

Where to begin:

- ``ck.kernels``: the kernels by name; ``ck.kernels["sgemm_tn"].text`` is the IL of one.
- ``ck.workbench("mine.il", like="sgemm_naive")``: edit a kernel, and see its compiled code, whether
  it is correct, how fast it is, and why.
- ``ck.gemm(a, b)``: multiply on the simulated chip. ``ck.simulate("sgemm_tn", 2048)``: how long
  that takes, and what it is bound by. ``ck.line_costs(report)``: what each line costs.
- ``ck.assemble``, ``ck.launch``, ``ck.check``: run your own programs, and find their errors.
- ``ck.load_kernel``, ``ck.verify``: launch your own kernels, and verify that they are correct.
  ``ck.compare``: compare any product with numpy's.
- ``ck.draw``: pictures that play.
"""

from importlib import import_module
from typing import TYPE_CHECKING

# First: it reads the model's files, and what is imported later must not be newer than its key.
from cypresskit.files import result_cache as result_cache  # isort: skip
from cypresskit import session
from cypresskit.blas import gemm, gemv
from cypresskit.devices import ASHRAF, HD5850, HD5870, HD5970, NAKASATO, Device, System
from cypresskit.il import ILError, Program, assemble
from cypresskit.kernels import KERNELS as kernels
from cypresskit.kernels import Kernel
from cypresskit.lazy import import_later
from cypresskit.machine import KernelError, LaunchCounters, Observer, launch
from cypresskit.machine.record import Recorder, Recording
from cypresskit.machine.shape import LaunchShape

__version__ = "0.1.0"

# Not in a star import: `compile`, which would hide Python's own, and modules that need optional
# packages.
__all__ = [
    "ASHRAF",
    "HD5850",
    "HD5870",
    "HD5970",
    "NAKASATO",
    "CompileError",
    "Device",
    "ILError",
    "Kernel",
    "KernelError",
    "LaunchConventionError",
    "LaunchCounters",
    "LaunchShape",
    "Observer",
    "Program",
    "Recorder",
    "Recording",
    "System",
    "Table",
    "assemble",
    "check",
    "compare",
    "gemm",
    "gemm_out_of_core",
    "gemv",
    "kernel_stats",
    "kernels",
    "launch",
    "line_costs",
    "load_kernel",
    "simulate",
    "simulate_published",
    "table",
    "trace_element",
    "verify",
    "what_if",
    "workbench",
]

#: Names that are imported at first use, with their modules: the compiler and the timing model are
#: slow to import, and drawing needs bokeh.
_LATER = {
    "CompileError": "compiler",
    "LaunchConventionError": "kernels.statement",
    "Table": "lesson_table",
    "kernel_stats": "kernels.compiled",
    "check": "machine.checks",
    "compare": "kernels.comparison",
    "compile": "kernels.compiled",
    "draw": ".draw",
    "gemm_out_of_core": "host",
    "host": ".host",
    "load_kernel": "kernels.own",
    "line_costs": "timing.costs",
    "simulate": "timing.simulate",
    "simulate_published": "timing.as_published",
    "table": "lesson_table",
    "teach": ".teach",
    "trace_element": "diagnosis.element_trace",
    "verify": "diagnosis.verification",
    "what_if": "timing.limits",
    "workbench": "editing.workbench",
}

# The same names for type checkers and editors.
if TYPE_CHECKING:
    from cypresskit import draw as draw
    from cypresskit import host as host
    from cypresskit import teach as teach
    from cypresskit.compiler import CompileError
    from cypresskit.diagnosis.element_trace import trace_element
    from cypresskit.diagnosis.verification import verify
    from cypresskit.editing.workbench import workbench
    from cypresskit.host import gemm_out_of_core
    from cypresskit.kernels.comparison import compare
    from cypresskit.kernels.compiled import compile as compile
    from cypresskit.kernels.compiled import kernel_stats
    from cypresskit.kernels.own import load_kernel
    from cypresskit.kernels.statement import LaunchConventionError
    from cypresskit.lesson_table import Table, table
    from cypresskit.machine.checks import check
    from cypresskit.timing.as_published import simulate_published
    from cypresskit.timing.costs import line_costs
    from cypresskit.timing.limits import what_if
    from cypresskit.timing.simulate import simulate

import_later(__name__, _LATER)


def load_ipython_extension(shell: object) -> None:
    """Set up IPython, for ``%load_ext cypresskit``; ``ck.draw.load()`` does the same.

    It then shows verdicts on exercises, names the cell of an answer that failed, and treats
    ``exit`` as an error.
    """
    import_module("cypresskit.teach")
    session.set_up(shell)
