"""LLVM IR to machine code, through llvmlite. Compiled kernels are kept for the life of the process."""

import ctypes
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

from cypresskit.il import Program
from cypresskit.machine.fast.translate import Translation, translate

KEPT = 64  # compiled kernels
SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A compiled program: ``call(context, counts, spill, first, last)`` runs units, without Python's lock."""

    translation: Translation
    call: Callable[..., int]
    engine: object  # owns the machine code


@cache
def _target():
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


def _machine(size: int):
    import llvmlite.binding as llvm

    return _target().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2 if size < 30_000 else 1
    )


def optimised(text: str):
    """The verified, optimised module and the machine it is meant for."""
    import llvmlite.binding as llvm

    machine = _machine(text.count("\n"))
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_unrolling = tuning.loop_vectorization = tuning.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module, machine


_by_identity: dict[int, tuple[Program, Kernel]] = {}  # since hashing a whole program takes as long as a small launch


def compiled(program: Program) -> Kernel:
    """``program`` as machine code for this host, from memory if an equal program has been compiled before."""
    known = _by_identity.get(id(program))
    if known is None:
        if len(_by_identity) >= KEPT:
            _by_identity.clear()
        known = _by_identity[id(program)] = program, _compiled(program)
    return known[1]


@lru_cache(maxsize=KEPT)
def _compiled(program: Program) -> Kernel:
    import llvmlite.binding as llvm

    soft = platform.machine().lower() not in ("x86_64", "amd64")
    translation = translate(program, soft)
    module, machine = optimised(translation.text)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return Kernel(translation, SIGNATURE(engine.get_function_address("kernel")), engine)
