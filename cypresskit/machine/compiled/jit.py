"""Compile LLVM IR to machine code, through llvmlite.

Compiled kernels stay in memory until the process ends, and their object code in the user's cache on
disk. It will be executed, so a folder that belongs to another user is not used.
"""

import ctypes
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from cypresskit import devices, il
from cypresskit.files.disk_cache import DiskCache, SourceFiles, cache_folder
from cypresskit.il import Program
from cypresskit.il.host_llvm import host_machine
from cypresskit.machine.compiled.processor import HostProcessor
from cypresskit.machine.compiled.translation import Translation

MAX_KERNELS = 64  # in memory
MAX_FILES = 256  # on disk
LONG = 30_000  # lines of IR; longer isn't optimized: the time is quadratic in it
SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)
FOLDER = cache_folder()


@dataclass(frozen=True, eq=False)
class NativeCode:
    """A compiled program. ``call(context, counts, spill, budget, first, last)`` runs batches,
    without Python's lock.
    """

    translation: Translation
    call: Callable[..., int]
    engine: object  # owns the machine code
    literals: np.ndarray
    counters: np.ndarray


@lru_cache(maxsize=MAX_KERNELS)
def compiled(program: Program, processor: HostProcessor) -> NativeCode:
    """Return ``program`` as machine code, compiled once."""
    import llvmlite.binding as llvm

    files = DiskCache(FOLDER, "kernel", MAX_FILES)
    key = _key(program, processor)
    contents = files.read(key)
    if contents is None:
        # Imported only if needed: it is large
        from cypresskit.machine.compiled.translate import translate

        translation = translate(program, processor)
        code = object_code(translation.text, processor)
        if SOURCES.is_unchanged():
            head = asdict(replace(translation, text=""))
            files.write(key, json.dumps(head).encode() + b"\n" + code)
    else:
        first_line, code = contents.split(b"\n", 1)
        translation = Translation(**json.loads(first_line))
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), host_machine(processor.name, processor.features)
    )
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return NativeCode(
        translation,
        SIGNATURE(engine.get_function_address("kernel")),
        engine,
        np.array(translation.literals, np.uint32),
        np.array(translation.counters, np.int64),
    )


def object_code(text: str, processor: HostProcessor) -> bytes:
    """Return the optimized machine code of a module."""
    import llvmlite.binding as llvm

    level = 1 if text.count("\n") < LONG else 0  # the second level's passes gain nothing here
    machine = host_machine(processor.name, processor.features, 2 * level)
    module = llvm.parse_assembly(text)
    module.verify()
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_unrolling = tuning.loop_vectorization = False
    tuning.slp_vectorization = True  # doubles are scalars in the text
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


# On disk


def _sources() -> list[Path]:
    """Return the files of translation."""
    folders = Path(__file__).parent, Path(il.__file__).parent
    return [Path(devices.__file__), *(file for folder in folders for file in folder.glob("*.*"))]


SOURCES = SourceFiles(_sources)


def _key(program: Program, processor: HostProcessor) -> str:
    """Return a hash of all that object code depends on: program, processor, LLVM and translator."""
    import llvmlite.binding as llvm

    return SOURCES.key(program.mode, program.expanded, processor, llvm.llvm_version_info)
