"""Compile a CUDA kernel for an H200, without a GPU: numba makes PTX, NVIDIA's assembler its code.

`pip install 'cypresskit[cuda]'` brings numba-cuda and NVIDIA's tools. Lesson 14's kernel has stored
code (``stored_code``), and needs none of them.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numba import from_dtype, typeof, types

from cypresskit.today.grid_launch import function_of
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


def code_of(kernel: Any, arguments: Iterable) -> SassCode:
    """Return the machine code of a kernel for arguments."""
    assembler, disassembler = map(find_tool, ("ptxas", "nvdisasm"))
    try:
        from cypresskit.today.cuda_kernels import cuda
    except ImportError as error:
        raise NoTools(f"numba-cuda is missing: {INSTALL}") from error
    function = function_of(kernel)
    options = getattr(kernel, "targetoptions", {})
    is_fast = options.get("fastmath") or False
    limit = [f"-maxrregcount={most}" for most in [options.get("max_registers")] if most]
    signature = tuple(map(_type_of, arguments))
    try:
        ptx, _ = cuda.compile_ptx(
            function, signature, cc=ARCHITECTURE, lineinfo=True, fastmath=is_fast
        )
    except Exception as error:  # numba-cuda has several kinds
        lines = re.sub(r"\x1b\[\d+m", "", str(error)).splitlines()
        why = next((line for line in lines if line.strip() and "Failed in" not in line), "")
        raise ValueError(f"numba can't compile {function.__name__}: {why}") from error
    with TemporaryDirectory() as folder:
        source, made = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        about = _run(assembler, "-v", "-lineinfo", "-arch=sm_90", *limit, source, "-o", made)
        listing = _run(disassembler, "-hex", "-g", "-c", made)
    registers, shared = (
        sum(map(int, re.findall(pattern, about)))
        for pattern in (r"Used (\d+) registers", r"(\d+) bytes smem")
    )
    return SassCode(registers, shared, read_listing(listing))


def _type_of(argument: Any) -> Any:
    """Return numba's type of an argument."""
    if isinstance(argument, np.ndarray):
        return types.Array(from_dtype(argument.dtype), argument.ndim, "C")
    return typeof(argument)


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr
