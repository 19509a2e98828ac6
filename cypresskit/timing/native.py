"""The provider of the timing model's native functions: a module ``cypresskit_native`` of the host,
which has them compiled for where numba can't be (WebAssembly), or else numba.

``native`` marks a function that Python calls, ``part`` one that only native code calls.
``place_of`` and ``least`` look at ``LANES`` numbers at once; ``compiler()`` is what compiled code
depends on besides its source.
"""

try:
    from cypresskit_native import LANES, compiler, least, native, part, place_of
except ModuleNotFoundError:
    from cypresskit.timing.numba_native import LANES, compiler, least, native, part, place_of

__all__ = ["LANES", "compiler", "least", "native", "part", "place_of"]
