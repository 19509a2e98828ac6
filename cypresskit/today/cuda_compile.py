"""Compile a CUDA kernel for an H200, without a GPU: numba makes PTX, NVIDIA's assembler its code.

`pip install 'cypresskit[cuda]'` brings numba-cuda and NVIDIA's tools. Four kernels have
stored code (``code.json``), and need none of them.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cypresskit.today.grid_launch import is_array, strides_of
from cypresskit.today.sass import SassCode, read_listing

INSTALL = "pip install 'cypresskit[cuda]' brings them, and needs no GPU"
ARCHITECTURE = 9, 0


class NoTools(RuntimeError):
    """NVIDIA's tools, or numba-cuda, are missing here."""


def find_tool(name: str) -> str:
    """Return the path of one of NVIDIA's tools. Raises ``NoTools``."""
    # "cu13" comes before "cuda_nvcc", which the extra `gpu` brings: that one is older.
    wheels = (sorted(Path(place).glob(f"nvidia/*/bin/{name}*")) for place in sys.path)
    found = next((str(tool) for tools in wheels for tool in tools), None) or which(name)
    if found is None:
        raise NoTools(
            f"the kernel's machine code isn't known here, and NVIDIA's tools are missing: {INSTALL}"
        )
    return found


def code_of(function: Any, options: dict[str, Any], arguments: tuple) -> SassCode:
    """Return the machine code of a kernel for arguments.

    Parameters
    ----------
    function
        The Python function.
    options
        Those of ``cuda.jit``.
    """
    wanted = {name: options[name] for name in ("fastmath", "opt") if options.get(name) is not None}
    return _compiled(
        function, tuple(wanted.items()), options.get("max_registers"), types_of(arguments)
    )


def types_of(arguments: tuple) -> tuple[Any, ...]:
    """Return numba's types of the arguments."""
    from numba.core import types
    from numba.np.numpy_support import from_dtype

    found: list[Any] = []
    for one in arguments:
        if is_array(one):
            strides = strides_of(one)
            item = np.dtype(one.dtype).itemsize
            lengths = [item, *np.cumprod(one.shape[:0:-1]) * item]
            layout = "C" if list(strides[::-1]) == lengths else "A"
            found.append(types.Array(from_dtype(np.dtype(one.dtype)), len(one.shape), layout))
        elif isinstance(one, np.generic):
            found.append(from_dtype(one.dtype))
        else:
            found.append(types.int64 if isinstance(one, int) else types.float64)
    return tuple(found)


@cache
def _compiled(function: Any, options: tuple, most_registers: int | None, types: tuple) -> SassCode:
    with TemporaryDirectory() as folder:
        made = Path(folder, "kernel.cubin")
        return _assemble(function, options, most_registers, types, made)[1]


def assemble(function: Any, arguments: tuple, made: Path) -> tuple[str, SassCode]:
    """Write a kernel's machine code to a file. Return the name of its entry, and the code."""
    return _assemble(function, (), None, types_of(arguments), made)


def _assemble(
    function: Any, options: tuple, most_registers: int | None, types: tuple, made: Path
) -> tuple[str, SassCode]:
    for name in ("ptxas", "nvdisasm"):
        find_tool(name)
    try:
        from cypresskit.today.cuda_kernels import cuda
    except ImportError as error:
        raise NoTools(f"numba-cuda is missing: {INSTALL}") from error
    ptx, _ = cuda.compile_ptx(function, types, cc=ARCHITECTURE, lineinfo=True, **dict(options))
    limit = [f"-maxrregcount={most_registers}"] if most_registers else []
    source = made.with_suffix(".ptx")
    source.write_text(ptx, encoding="utf-8")
    about = _run("ptxas", "-v", "-lineinfo", "-arch=sm_90", *limit, source, "-o", made)
    listing = _run("nvdisasm", "-hex", "-g", "-c", made)
    shared = re.search(r"(\d+) bytes smem", about)
    registers = re.search(r"Used (\d+) registers", about)
    code = SassCode(
        function.__name__,
        int(registers[1]) if registers else 0,
        int(shared[1]) if shared else 0,
        read_listing(listing),
    )
    return ptx.split(".entry ")[1].split("(")[0].strip(), code


def _run(tool: str, *arguments: Any) -> str:
    command = [find_tool(tool), *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr
