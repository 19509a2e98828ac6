"""Compile LLVM IR to machine code, through llvmlite.

The latest kernels stay in memory, and more of them in the user's cache.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from cypresskit.files.disk_cache import DiskCache, SourceFiles, cache_folder, is_off
from cypresskit.il import Program
from cypresskit.machine.compiled.processor import HostProcessor
from cypresskit.machine.compiled.translate import translate
from cypresskit.machine.compiled.translation import Translation

MAX_KERNELS = 64  # in memory
MAX_FILES = 256  # on disk
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
    """Return an engine with the optimized machine code of a module, from disk if it is there."""
    import llvmlite
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    files = DiskCache(None if is_off() else cache_folder(), "kernel", MAX_FILES, SOURCES)
    triple = llvm.get_default_triple()
    key = SOURCES.key(text, processor, triple, llvmlite.__version__, llvm.llvm_version_info)
    level = 1 if text.count("\n") < LONG else 0  # the second level's passes gain nothing here
    host = {"cpu": processor.name, "features": processor.features}
    machine = llvm.Target.from_triple(triple).create_target_machine(**host, opt=2 * level)
    code = files.read(key)
    if code is None:
        code = machine.emit_object(optimized(text, machine, level))
        files.write(key, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def optimized(text: str, machine: Any, level: int) -> Any:
    """Return the module of this text, optimized for a machine."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    module.verify()
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_unrolling = tuning.loop_vectorization = False
    tuning.slp_vectorization = True  # doubles are scalars in the text
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module


SOURCES = SourceFiles(lambda: [Path(__file__)])  # what the text is compiled with
