"""Access LLVM for the host processor, and make its locks safe to fork.

A thread that compiles holds a lock of numba or llvmlite. If the process forked at that moment, the
child would get a held lock, and no thread to release it. So all compiler locks are taken before a
fork, and released in both processes.
"""

import os
import sys
from functools import cache
from importlib.util import find_spec

HAS_LLVM = find_spec("llvmlite") is not None  # not available in WebAssembly


def _compiler_locks() -> list:
    """Return the existing locks of numba and llvmlite, in the order of a compilation."""
    numba = sys.modules.get("numba.core.compiler_lock")
    llvmlite = sys.modules.get("llvmlite.binding.ffi")
    locks = [
        getattr(numba, "global_compiler_lock", None),
        getattr(getattr(llvmlite, "lib", None), "_lock", None),
    ]
    return [lock for lock in locks if lock is not None]


_held: list = []  # the locks taken before a fork


def _hold_compilers() -> None:
    """Take all compiler locks: wait until no thread compiles."""
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
    """Return LLVM's name of the host processor and its feature string."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _target():
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


def host_machine(name: str = "", features: str = "", opt: int = 2):
    """Create a ``TargetMachine``.

    Parameters
    ----------
    name, features
        LLVM's CPU name and feature string; by default the host processor's.
    opt
        Optimization level, 0 to 3.
    """
    name, features = (name, features) if name else host_processor()
    return _target().create_target_machine(cpu=name, features=features, opt=opt)
