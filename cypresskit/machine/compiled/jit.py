"""Compile LLVM IR to machine code, through llvmlite.

The latest kernels stay in memory.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cypresskit.il import Program
from cypresskit.machine.compiled.processor import HostProcessor
from cypresskit.machine.compiled.translate import translate
from cypresskit.machine.compiled.translation import Translation

MAX_KERNELS = 64  # in memory
LONG = 30_000  # lines of IR; longer isn't optimized: the time is quadratic in it
SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)


@dataclass(frozen=True, eq=False)
class NativeCode:
    """A compiled program. ``call(context, counts, spill, budget, first, last)`` runs batches,
    without Python's lock.
    """

    translation: Translation
    call: Callable[..., int]
    engine: object  # owns the machine code


@lru_cache(maxsize=MAX_KERNELS)
def compiled(program: Program, processor: HostProcessor) -> NativeCode:
    """Return ``program`` as machine code, compiled once."""
    translation = translate(program, processor)
    engine = machine_code(translation.text, processor)
    return NativeCode(translation, SIGNATURE(engine.get_function_address("kernel")), engine)


def machine_code(text: str, processor: HostProcessor) -> Any:
    """Return an engine with the optimized machine code of a module."""
    import llvmlite.binding as llvm

    level = 1 if text.count("\n") < LONG else 0  # the second level's passes gain nothing here
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    host = {"cpu": processor.name, "features": processor.features}
    machine = target.create_target_machine(**host, opt=2 * level)
    module = llvm.parse_assembly(text)
    module.verify()
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_unrolling = tuning.loop_vectorization = False
    tuning.slp_vectorization = True  # doubles are scalars in the text
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
