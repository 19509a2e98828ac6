"""Access LLVM for the host processor."""

from functools import cache
from importlib.util import find_spec

HAS_LLVM = find_spec("llvmlite") is not None  # not available in WebAssembly


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


def host_machine(name: str, features: str, opt: int):
    """Create a ``TargetMachine``.

    Parameters
    ----------
    name, features
        LLVM's CPU name and feature string.
    opt
        Optimization level, 0 to 3.
    """
    return _target().create_target_machine(cpu=name, features=features, opt=opt)
