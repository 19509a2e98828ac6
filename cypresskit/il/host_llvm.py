"""LLVM for the processor that this runs on, and its locks where a process forks."""

import os
import sys
from functools import cache
from importlib.util import find_spec

HAS_LLVM = find_spec("llvmlite") is not None  # WebAssembly has none


def _compiler_locks() -> list:
    """The locks of numba and of llvmlite, in the order in which a compilation takes them; only of
    what has been imported.
    """
    numba = sys.modules.get("numba.core.compiler_lock")
    llvmlite = sys.modules.get("llvmlite.binding.ffi")
    locks = [
        getattr(numba, "global_compiler_lock", None),
        getattr(getattr(llvmlite, "lib", None), "_lock", None),
    ]
    return [lock for lock in locks if lock is not None]


_held: list = []  # locks, while a process forks


def _hold_compilers() -> None:
    """Wait until no thread compiles: its lock would never be free in the child, which has no such
    thread.
    """
    for lock in _compiler_locks():
        lock.__enter__()
        _held.append(lock)


def _release_compilers() -> None:
    while _held:
        _held.pop().__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_compilers,
        after_in_parent=_release_compilers,
        after_in_child=_release_compilers,
    )


@cache
def host_processor() -> tuple[str, str]:
    """LLVM's name of this processor, and its features."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _target():
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


def host_machine(name: str = "", features: str = "", opt: int = 2):
    """A new ``TargetMachine`` for this processor, or for LLVM's CPU ``name``, that optimises at
    level ``opt``, 0 to 3.
    """
    name, features = (name, features) if name else host_processor()
    return _target().create_target_machine(cpu=name, features=features, opt=opt)
