"""Check a launch's arguments against its program, and view arrays as 32-bit words.

Each function checks one kind of argument; its error names the argument, what was found, and what
is expected. Left out: a board's limits on sizes, which matter to the timing only.
"""

from collections.abc import Iterable, Mapping
from itertools import combinations

import numpy as np

from cypresskit.devices import Range
from cypresskit.il import Program
from cypresskit.il.errors import ArgumentError
from cypresskit.tables import quantity

DTYPES = tuple(map(np.dtype, ("float32", "float64", "int32", "uint32")))


def whole_domain(program: Program, domain) -> tuple[int, int, int]:
    """Return the domain's sizes, of which only pixel kernels have two: (width, height, 1)."""
    sizes = tuple(domain) if isinstance(domain, Iterable) else (domain,)
    shape, wanted = ("(width, height)", 2) if program.mode == "pixel" else ("its work-items", 1)
    known = 0 < len(sizes) <= 3 and all(Range().has(s, whole=True) for s in sizes)
    if not known or any(size != 1 for size in sizes[wanted:]):
        raise ArgumentError(
            f"the domain of a {program.mode} kernel is {shape}, integers of at least 0; found"
            f" {domain!r}"
        )
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    if program.mode == "compute" and x % program.group:
        raise ArgumentError(
            f"the domain {domain!r} is not a multiple of the kernel's workgroup {program.group}"
        )
    return x, y, z


class LackedError(ArgumentError):
    """A program uses an array that isn't given: the ``line``, and what it ``does``."""

    line = 0
    does = ""


def check_needs(program: Program, given: Mapping[str, Mapping | None]) -> None:
    """Raise ``LackedError`` for an array that the program uses and that isn't ``given``: to
    ``launch``, or to a ``LaunchShape``, which takes sizes, as ``textures``.
    """
    textures = "textures" if "textures" in given else "inputs"
    what = "array" if textures == "inputs" else "(width, height)"
    reads = {
        "cb": "reads cb{}",
        "o": "writes o{}",
        "resource": "fetches from resource {}",
        "g": "uses global memory",
    }
    names = {"cb": "constants", "o": "outputs", "resource": textures}
    names |= {"g": "global_memory"} if "global_memory" in given else {}
    for kind, number, line in program.needs:
        if kind in names and number not in (given[names[kind]] or ()):
            value = f"{{{number}: {'array' if kind == 'cb' else what}}}"
            does = reads[kind].format(number)
            cure = f"pass {names[kind]}={what if kind == 'g' else value}"
            error = LackedError(f"{program.where(line)}\n    {does}: {cure}")
            error.line, error.does = line, does
            raise error


def by_number(name: str, given) -> dict:
    """Return arrays by number."""
    mapped = f"{name} maps numbers to arrays, as in {{0: array}}; found"
    if given is not None and not isinstance(given, Mapping):
        raise ArgumentError(f"{mapped} {type(given).__name__}")
    arrays = dict(given or {})
    for number in arrays:
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise ArgumentError(f"{mapped} the key {number!r}")
    return {int(number): array for number, array in arrays.items()}


def check_results(results: Mapping[str, object]) -> None:
    """Raise ``ValueError`` if two arrays for results, by their names, share memory."""
    arrays = {name: array for name, array in results.items() if isinstance(array, np.ndarray)}
    for first, second in combinations(arrays, 2):
        if np.shares_memory(arrays[first], arrays[second]):
            cure = ". Pass a copy of one of them" if second == "global_memory" else ""
            raise ArgumentError(
                f"{first} and {second} share memory: one of two results would be lost{cure}"
            )


def check_unmasked(array: object, name: str) -> None:
    """Raise ``TypeError`` for a masked array."""
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(
            f"{name} is a masked array, and kernels can't see the mask: pass {name}.filled(0), or"
            " fill in other numbers"
        )


def check_array(array, name: str, program: Program, written: bool = False) -> None:
    """Raise ``ArgumentError`` for what is no array that kernels can read, whose
    numbers no instruction of the program takes, or that can't be ``written``.
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{name} must be a numpy array, not {type(array).__name__}")
    check_unmasked(array, name)
    if array.dtype not in DTYPES:
        known = ", ".join(map(str, DTYPES))
        raise ArgumentError(
            f"{name} has dtype {array.dtype}: the device takes {known}, in native byte order"
        )
    numbers = {np.dtype("float64"): "doubles", np.dtype("int32"): "whole numbers"}
    if (lacking := numbers.get(array.dtype)) and not _takes(lacking, program):
        raise ArgumentError(
            f"{name} has dtype {array.dtype}, but the kernel has no instruction for {lacking}: pass"
            " float32, such as np.float32([2.0, 3.0]), or the bits as uint32"
        )
    if written and not array.flags.writeable:
        raise ArgumentError(f"{name} is read-only")


def _takes(numbers: str, program: Program) -> bool:
    """Return whether a program may compute with "doubles", or with "whole numbers": bits and
    addresses count as such, and what only copies takes any.
    """
    if numbers == "doubles":
        return any(i.op.double for i in program.body)
    read = {
        letter
        for i in program.body
        if i.op.kind != "fetch"
        for n, letter in enumerate(i.op.sources)
        if n not in i.op.passed
    }
    return read != {"f"} or any(r.address for i in program.body for r in i.registers)


def texel_words(array, name: str, program: Program, written: bool = False) -> np.ndarray:
    """Return a texture or output as uint32 of shape (height, width, words per texel)."""
    check_array(array, name, program, written)
    if array.ndim not in (2, 3):
        raise ArgumentError(f"{name} has shape {array.shape}: expected 2 or 3 dimensions")
    array = np.ascontiguousarray(array)
    words = (array[..., np.newaxis] if array.ndim == 2 else array).view(np.uint32)
    if words.shape[-1] not in (1, 2, 4):
        raise ArgumentError(
            f"{name} has {32 * words.shape[-1]} bits per texel: 32, 64 or 128 are possible"
        )
    return words


def constant_words(array, program: Program, n: int) -> np.ndarray:
    """Return a constant buffer as uint32 of shape (elements, 4)."""
    check_array(array, f"constants[{n}]", program)
    given = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
    words = np.zeros((-(-len(given) // 4), 4), np.uint32)
    words.reshape(-1)[: len(given)] = given
    declared = program.constants.get(n, 0)
    if len(words) < declared:
        holds = f"{quantity(len(words), 'element')} of four words"
        raise ArgumentError(f"cb{n} is given {holds}; the kernel declares cb{n}[{declared}]")
    return words
