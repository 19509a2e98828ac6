"""Access LLVM for the host processor."""

from functools import cache
from importlib.util import find_spec

HAS_LLVM = find_spec("llvmlite") is not None  # not available in WebAssembly


@cache
def host_processor() -> tuple[str, str]:
    """Return LLVM's name of the host processor and its feature string."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
