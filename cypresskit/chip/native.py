"""The provider of the timing model's native functions.

numba compiles them at first use, unless there is a module ``cypresskit_native``, which has them
compiled for where numba can't run (WebAssembly). ``native`` marks a function that Python calls,
``part`` one that only native code calls. ``place_of`` and ``least`` compare ``LANES`` numbers at
once.
"""

try:
    from cypresskit_native import LANES, least, native, part, place_of
except ModuleNotFoundError:
    from cypresskit.chip.compiled_later import LANES, least, native, part, place_of

__all__ = ["LANES", "least", "native", "part", "place_of"]
