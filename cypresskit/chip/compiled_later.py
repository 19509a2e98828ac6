"""Native functions that numba compiles when Python first calls one.

Importing numba takes 0.2 s, half as long as all else that a lesson imports. Where results are
saved, none is called.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import Any

from cypresskit.files.disk_cache import SourceFiles

NUMBA = "cypresskit.chip.numba_native"
LANES = 8  # numbers that are compared at once: a vector register of AVX-512, or two of AVX2


LOCK = RLock()  # of what is made: threads may call a function for the first time together


class CompiledLater:
    """A native function: what ``numba_native`` has under a ``name``, or makes of ``py_func`` by it.

    Other native functions call it as they call numba's own.
    """

    def __init__(self, name: str, py_func: Callable | None = None) -> None:
        self.name = name
        self.py_func: Any = py_func
        self._made: Any = None

    @property
    def compiled(self) -> Any:
        """numba's function."""
        with LOCK:
            if self._made is None:
                # In a thread, which Ctrl-C doesn't reach: numba whose import was interrupted can't
                # be imported again.
                with ThreadPoolExecutor(1) as pool:
                    made = getattr(pool.submit(import_module, NUMBA).result(), self.name)
                self._made = made(self.py_func) if self.py_func else made
            return self._made

    @property
    def _numba_type_(self) -> Any:
        return import_module(NUMBA).type_of(self.compiled)

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)


def native(function: Callable) -> CompiledLater:
    """Compile ``function`` when Python first calls it."""
    return CompiledLater("native", function)


def part(function: Callable) -> CompiledLater:
    """Compile ``function`` when native code that calls it is compiled."""
    return CompiledLater("part", function)


def native_sources(folder: Path = Path(__file__).parent) -> list[Path]:
    """Return this file, that with ``numba_native``, and the files in ``folder`` that import from
    ``native``.
    """
    native_ones = (
        path for path in folder.rglob("*.py") if b"from cypresskit.chip.native" in path.read_bytes()
    )
    return [Path(__file__), Path(__file__).with_name("numba_native.py"), *native_ones]


#: They are read now: functions that Python has by now aren't saved as those of a later file.
SOURCES = SourceFiles(native_sources)

place_of = CompiledLater("place_of")
least = CompiledLater("least")
