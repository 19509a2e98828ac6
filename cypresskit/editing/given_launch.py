"""A launch that is given: for a program that is no matrix product, its arrays and what should come
out.

The process that answers has to have them, too: they are kept in a file of numpy's, named by what it
holds, which ends with the process that made it.
"""

import atexit
import hashlib
import io
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cypresskit.devices import is_whole
from cypresskit.il import Program
from cypresskit.il.errors import nearest
from cypresskit.kernels.own import shortened
from cypresskit.machine import arguments
from cypresskit.machine.checks.answers import allowed_error
from cypresskit.machine.shape import Shape

BY_NUMBER = ("inputs", "constants", "outputs")
NAMES = ("domain", *BY_NUMBER, "global_memory")
EXAMPLE = 'arrays={"domain": (64, 64), "inputs": {0: a}, "outputs": {0: out}}'


@dataclass(frozen=True, eq=False)
class GivenLaunch:
    """The arguments of ``ck.launch``, and what should come out.

    ``expected`` is what global memory, or else the first output, should hold, each element within
    ``tolerance`` (None: 32 roundings of the largest). ``flops`` are the operations that count for
    Gflop/s.
    """

    domain: tuple[int, ...]
    inputs: Mapping[int, np.ndarray]
    constants: Mapping[int, np.ndarray]
    outputs: Mapping[int, np.ndarray]
    global_memory: np.ndarray | None
    expected: np.ndarray
    tolerance: np.ndarray | None
    flops: float

    @property
    def name(self) -> str:
        """What the result is called: "g", or "o0" to "o7"."""
        return "g" if self.global_memory is not None else f"o{min(self.outputs)}"

    @property
    def precision(self) -> str:
        """That of the result, of whose peak the speed is a share."""
        return "double" if self.expected.dtype == np.float64 else "single"

    @property
    def at(self) -> str:
        """The domain in words."""
        sizes = " x ".join(f"{size:,}" for size in self.domain)
        return f"{sizes} work-items"

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of ``launch``, with results of their own."""
        memory = None if self.global_memory is None else self.global_memory.copy()
        outputs = {number: array.copy() for number, array in self.outputs.items()}
        given = {"domain": self.domain, "inputs": self.inputs, "constants": self.constants}
        return given | {"outputs": outputs, "global_memory": memory}

    def shape(self, program: Program) -> Shape:
        """The launch without its arrays. Raises ``ValueError`` if the program needs others."""
        sizes: dict[str, Any] = {"textures": self.inputs, "outputs": self.outputs}
        domain: Any = self.domain
        return Shape(program, domain, constants=self.constants, **sizes)


def given_launch(
    arrays: object, expected: object, tolerance: object = None, flops: object = None
) -> GivenLaunch:
    """The launch that ``ck.workbench`` is given. Raises ``TypeError`` and ``ValueError`` that name
    the argument, and what it can be.
    """
    if not isinstance(arrays, Mapping):
        raise TypeError(
            f"arrays is a dict of the arguments of ck.launch, as {EXAMPLE}, not {shortened(arrays)}"
        )
    for name in arrays:
        if name not in NAMES:
            guess = nearest(str(name), NAMES)
            raise ValueError(
                f"arrays has {shortened(name)}, which is no argument of a launch: it takes"
                f" {', '.join(NAMES)}.{guess}"
            )
    if "domain" not in arrays:
        raise ValueError(f"arrays has no domain, the work-items that are launched, as {EXAMPLE}")
    by_number = {name: _numbered(name, arrays.get(name)) for name in BY_NUMBER}
    memory = arrays.get("global_memory")
    if memory is not None:
        arguments.array_words(np.asarray(memory).reshape(-1), "global_memory", 1)
    given = GivenLaunch(
        _domain(arrays["domain"]),
        **by_number,
        global_memory=memory,
        expected=_expected(expected, memory, by_number["outputs"]),
        tolerance=None if tolerance is None else np.asarray(tolerance),
        flops=_flops(flops, expected),
    )
    allowed_error(given.expected, given.tolerance)
    return given


def _domain(domain: object) -> tuple[int, ...]:
    sizes = tuple(domain) if isinstance(domain, (tuple, list)) else (domain,)
    if not 1 <= len(sizes) <= 3 or not all(is_whole(size) for size in sizes):
        raise ValueError(
            "arrays' domain is (width, height) of a pixel kernel, or up to three numbers of a"
            f" compute kernel's work-items, each at least 1; found {shortened(domain)}"
        )
    return tuple(int(size) for size in sizes)


def _numbered(name: str, arrays: object) -> dict[int, np.ndarray]:
    """Arrays by their number; constants may be plain numbers."""
    given = arguments.by_number(name, {} if arrays is None else arrays)
    if name == "constants":
        return {n: _constants(values, n) for n, values in given.items()}
    for number, array in given.items():
        if not isinstance(array, np.ndarray):
            what = f"arrays' {name}[{number}]"
            raise TypeError(f"{what} is a numpy array, not {shortened(array)}")
    return dict(given)


def _constants(values: Any, number: int) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return values
    return arguments.plain_numbers(values, number)


def _expected(expected: object, memory: np.ndarray | None, outputs: Mapping) -> np.ndarray:
    """What should come out, of the shape and type of what it is compared with."""
    if memory is None and not outputs:
        raise ValueError(
            "arrays has neither global_memory nor outputs: without a result there is nothing that"
            " could be right"
        )
    result = memory if memory is not None else outputs[min(outputs)]
    where = "global_memory" if memory is not None else f"outputs[{min(outputs)}]"
    if expected is None:
        raise ValueError(f"say what should come out: expected=, an array like arrays' {where}")
    if not isinstance(expected, np.ndarray):
        raise TypeError(
            f"expected is a numpy array like arrays' {where}, not {shortened(expected)}"
        )
    if expected.shape != result.shape:
        raise ValueError(
            f"expected has shape {expected.shape}, but arrays' {where}, with which it is compared,"
            f" {result.shape}"
        )
    if expected.dtype != result.dtype:
        raise ValueError(
            f"expected is {expected.dtype}, but arrays' {where}, with which it is compared,"
            f" {result.dtype}: try expected.astype(np.{result.dtype})"
        )
    return expected


def _flops(flops: object, expected: object) -> float:
    if flops is None:
        return float(np.size(expected))  # type: ignore[arg-type]
    if isinstance(flops, bool) or not isinstance(flops, (int, float)) or not 0 < flops < 1e30:
        raise ValueError(
            "flops is the floating-point operations that the task asks for, a number above 0, not"
            f" {shortened(flops)}"
        )
    return float(flops)


# -- the file


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="cypresskit-launch-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def save_launch(given: GivenLaunch) -> Path:
    """Keep a launch in a file; the same launch has the same file."""
    parts: dict[str, Any] = {"domain": given.domain, "flops": given.flops}
    parts["expected"] = given.expected
    for name in BY_NUMBER:
        parts |= {f"{name} {n}": array for n, array in getattr(given, name).items()}
    for name in ("global_memory", "tolerance"):
        if getattr(given, name) is not None:
            parts[name] = getattr(given, name)
    with io.BytesIO() as stream:
        np.savez(stream, **parts)
        data = stream.getvalue()
    digest = hashlib.sha256()
    for name in sorted(parts):
        array = np.asarray(parts[name])
        digest.update(f"{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
    path = _folder() / f"{digest.hexdigest()[:20]}.npz"
    if not path.exists():
        path.write_bytes(data)
    return path


@lru_cache(maxsize=4)
def load_launch(path: str | Path) -> GivenLaunch:
    """The launch that was kept in a file."""
    with np.load(path, allow_pickle=False) as kept:
        parts = {name: kept[name] for name in kept.files}
    by_number: dict[str, dict[int, np.ndarray]] = {name: {} for name in BY_NUMBER}
    for name, array in parts.items():
        kind, _, number = name.partition(" ")
        if number:
            by_number[kind][int(number)] = array
    return GivenLaunch(
        tuple(parts["domain"].tolist()),
        **by_number,
        global_memory=parts.get("global_memory"),
        expected=parts["expected"],
        tolerance=parts.get("tolerance"),
        flops=float(parts["flops"]),
    )
