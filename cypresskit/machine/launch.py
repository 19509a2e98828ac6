"""A launch: a program, its domain and its arrays, checked once, every numpy array as 32-bit words.

Results are computed in copies, unless the caller wants them in place. ``engines.launch`` gives a ``Launch`` to an
engine.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from cypresskit.devices import HD5870, Device
from cypresskit.il import Program
from cypresskit.il.meaning import ONE
from cypresskit.machine.ids import coordinates, input_registers
from cypresskit.machine.shape import Extent, Shape

MAX_ITEMS = 1 << 28  # work-items of one launch: more would not end within a day here
MAX_INSTRUCTIONS = 2_000_000  # per work-item: SGEMM with k = 16384 takes 0.6 million
DTYPES = {np.dtype(name): name for name in ("float32", "float64", "int32", "uint32")}  # a dtype's name takes long


class KernelError(RuntimeError):
    """A kernel did what it must not: stored outside its memory, or never ended. ``line`` is the kernel's line,
    ``work_item`` its place in the domain, as (x, y) or a flat number, or None."""

    def __init__(self, message: str, line: int = 0, work_item=None):
        super().__init__(message)
        self.line, self.work_item = line, work_item

    def __reduce__(self):
        return KernelError, (self.args[0], self.line, self.work_item)


@dataclass(frozen=True, eq=False)
class Surface(Extent):
    """A texture or output: ``words`` is uint32 of shape (height, width, words per texel), the latter 1, 2 or 4;
    ``single`` tells float32 data, whose missing components read 0, 0, 1.0."""

    words: np.ndarray
    single: bool

    @classmethod
    def of(cls, words: np.ndarray, single: bool) -> "Surface":
        """The surface that has these words."""
        return cls(words.shape[1], words.shape[0], 4 * words.shape[2], words, single)

    def texels(self, x: np.ndarray, y: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """The texels at those coordinates that are ``inside``, 0 for the others: uint32 of shape (items, 4)."""
        words = self.words.shape[2]
        if words == 4 and inside.all():
            return self.words.reshape(-1, 4).take(y * self.width + x, axis=0)
        found = np.zeros((len(inside), 4), np.uint32)
        found[inside, :words] = self.words[y[inside], x[inside]]
        if self.single and words < 4:
            found[inside, 3] = ONE
        return found


@dataclass(frozen=True, eq=False)
class Launch(Shape):
    """A checked launch: its shape, and all arrays. These are C-contiguous uint32; ``outputs`` and ``global_memory``,
    of shape (elements, 4) or None, are working copies."""

    textures: Mapping[int, Surface]
    outputs: Mapping[int, Surface]
    global_memory: np.ndarray | None = None
    device: Device = HD5870
    max_instructions: int = MAX_INSTRUCTIONS

    def __post_init__(self) -> None:
        """``prepare`` has checked the arguments."""

    @cached_property
    def memory(self) -> np.ndarray:
        """``global_memory``, or none of its elements."""
        return np.zeros((0, 4), np.uint32) if self.global_memory is None else self.global_memory

    @cached_property
    def ids(self) -> dict[str, np.ndarray]:
        """Input registers: name to uint32 bits of shape (4, items)."""
        return input_registers(self, *coordinates(self, np.arange(self.items)))

    def elements(self, element: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Elements of global memory, uint32 of shape (items, 4), 0 for those that don't exist; and which exist."""
        inside = (element >= 0) & (element < len(self.memory))
        found = np.zeros((len(element), 4), np.uint32)
        found[inside] = self.memory[element[inside]]
        return found, inside

    def _error(self, at: int, what: str, item: int | None = None) -> KernelError:
        i = self.program.body[at]
        return KernelError(f"{self.program.located(i)}\n    {what}", i.line, None if item is None else self.place(item))

    def store_error(self, at: int, item: int, what: str) -> KernelError:
        """The error for a store of ``body[at]`` outside its memory."""
        what = f"{self.item_name(item)} stores {what}. No array was changed. Check the address arithmetic, or the size "
        return self._error(at, f"{what}of the domain.", item)

    def endless_error(self, at: int, item: int, count: int | None = None) -> KernelError:
        """The error for a loop, opened at ``body[at]``, that passed ``max_instructions``, or ``count``."""
        what = f"this loop has not ended after {count or self.max_instructions:,} instructions of "
        why = "Does its break condition ever become true? (max_instructions raises the limit.)"
        return self._error(at, f"{what}{self.item_name(item)}. {why}", item)

    def long_error(self, at: int, seconds: float) -> KernelError:
        """The error for a loop, opened at ``body[at]``, that is too long to be stepped through."""
        what = f"this loop is too long to be stepped through by {self.items:,} work-items: compiled code takes more "
        return self._error(at, f"{what}than {seconds} seconds. Take a smaller domain, or fewer turns.")

    def barrier_error(self, at: int, group: int, present: int) -> KernelError:
        """The error for a barrier ``body[at]`` that only part of a workgroup reaches."""
        what = f"only {present} of {self.group_items} work-items of group {group} reach this barrier: the others would "
        return self._error(at, f"{what}be waited for without end. Take it out of the if or loop that splits the group.")


def prepare(
    program: Program,
    domain,
    *,
    inputs=None,
    constants=None,
    outputs=None,
    global_memory=None,
    device: Device = HD5870,
    max_instructions: int | None = None,
    in_place: bool = False,
) -> Launch:
    """Check the arguments of ``launch`` against the program and pack them, see there."""
    if not isinstance(program, Program):
        raise TypeError(f"launch takes a Program, not {type(program).__name__}: assemble the IL text first")
    if not isinstance(device, Device):
        raise TypeError(f"device is a Device, such as ck.HD5870, not {device!r}")
    if max_instructions is not None and not (
        isinstance(max_instructions, (int, float, np.integer)) and 1 <= max_instructions < math.inf
    ):
        raise ValueError(f"max_instructions is a number of at least 1, not {max_instructions!r}")
    shape = _domain(program, domain)
    inputs, constants, outputs = (
        _numbered("inputs", inputs),
        _numbered("constants", constants),
        _numbered("outputs", outputs),
    )
    _needed(program, inputs, constants, outputs, global_memory)
    textures = {n: _texture(a, program, n) for n, a in inputs.items()}
    streams = {n: _output(a, n, shape, in_place) for n, a in outputs.items()}
    buffers = {n: _constants(a, n, program.constants.get(n, 0)) for n, a in constants.items()}
    memory = None if global_memory is None else _global(global_memory, in_place)
    most = int(max_instructions or MAX_INSTRUCTIONS)
    return Launch(program, shape, textures, buffers, streams, memory, device, most)


def _numbered(name: str, given) -> dict[int, object]:
    """Arrays by number; of those that are written, none may be another's memory."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"{name} maps numbers to arrays, as in {{0: array}}; found {type(given).__name__}")
    arrays = dict(given or {})
    for number in arrays:
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise TypeError(f"{name} maps numbers to arrays, as in {{0: array}}; found the key {number!r}")
    for one, other in combinations(arrays, 2) if name == "outputs" else ():
        if all(isinstance(arrays[n], np.ndarray) for n in (one, other)) and np.shares_memory(
            arrays[one], arrays[other]
        ):
            raise ValueError(f"outputs[{one}] and outputs[{other}] are one array: of two results one would be lost")
    return arrays


def _domain(program: Program, domain) -> tuple[int, int, int]:
    sizes = tuple(domain) if isinstance(domain, Iterable) else (domain,)
    wanted = 2 if program.mode == "pixel" else 3
    if not 0 < len(sizes) <= wanted or not all(isinstance(s, (int, np.integer)) and s >= 0 for s in sizes):
        shape = "(width, height)" if program.mode == "pixel" else "a number of work-items or up to three of them"
        raise ValueError(f"the domain of a {program.mode} kernel is {shape}, whole and not negative; found {domain!r}")
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    if x * y * z > MAX_ITEMS:
        raise ValueError(f"the domain {domain!r} has {x * y * z:,} work-items: at most {MAX_ITEMS:,} are run")
    if program.mode == "compute" and any(d % g for d, g in zip((x, y, z), program.group, strict=True)):
        raise ValueError(f"the domain {domain!r} is no multiple of the kernel's workgroup {program.group}")
    return x, y, z


def _needed(program: Program, inputs, constants, outputs, global_memory) -> None:
    """Everything the program uses must be given."""
    given = {"cb": constants, "o": outputs, "resource": inputs, "g": (0,) if global_memory is not None else ()}
    for kind, number, line in program.needs:
        if number not in given[kind]:
            missing = {
                "cb": f"reads cb{number}: pass constants={{{number}: array}}",
                "o": f"writes o{number}: pass outputs={{{number}: array}}",
                "resource": f"fetches from resource {number}: pass inputs={{{number}: array}}",
                "g": "uses global memory: pass global_memory=array",
            }
            raise ValueError(f"{program.where(line)}\n    {missing[kind]}")


def _words(array, name: str, ndim: tuple[int, ...]) -> np.ndarray:
    """``array`` as uint32 words with a last axis of words per element."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a numpy array, not {type(array).__name__}")
    if array.dtype not in DTYPES:
        known = ", ".join(DTYPES.values())
        raise TypeError(f"{name} has dtype {array.dtype}: the device takes {known}, in native byte order")
    if array.ndim not in ndim:
        raise ValueError(f"{name} has shape {array.shape}: expected {' or '.join(map(str, ndim))} dimensions")
    array = np.ascontiguousarray(array)
    if array.ndim == ndim[0]:
        array = array[..., np.newaxis]
    return array.view(np.uint32)


def _surface(array, name: str, ndim: tuple[int, int]) -> Surface:
    words = _words(array, name, ndim)
    if words.shape[-1] not in (1, 2, 4):
        raise ValueError(f"{name} has {32 * words.shape[-1]} bits a texel: 32, 64 or 128 are possible")
    words = words if words.ndim == 3 else words[np.newaxis]
    return Surface.of(words, array.dtype == np.float32)


def _texture(array, program: Program, n: int) -> Surface:
    declared = program.textures.get(n)
    return _surface(array, f"inputs[{n}]", (1, 2) if declared and declared.dimensions == 1 else (2, 3))


def _output(array, n: int, domain: tuple[int, int, int], in_place: bool) -> Surface:
    surface = _surface(array, f"outputs[{n}]", (2, 3))
    if (surface.width, surface.height) != domain[:2]:
        raise ValueError(
            f"outputs[{n}] is {surface.height} x {surface.width}, the domain {domain[1]} x {domain[0]} (rows x columns)"
        )
    if not array.flags.writeable:
        raise ValueError(f"outputs[{n}] is read-only")
    return surface if in_place else replace(surface, words=surface.words.copy())


def _constants(array, n: int, declared: int) -> np.ndarray:
    array = np.asarray(array) if isinstance(array, np.ndarray) else _numbers(array, n)
    given = _words(array.reshape(-1), f"constants[{n}]", (1,)).reshape(-1)
    words = np.zeros((-(-len(given) // 4), 4), np.uint32)
    words.reshape(-1)[: len(given)] = given
    if len(words) < declared:
        raise ValueError(
            f"constants[{n}] holds {len(words)} elements of four words; the kernel declares cb{n}[{declared}]"
        )
    return words


def _numbers(values, n: int) -> np.ndarray:
    """Plain Python numbers as float32 or 32-bit integers."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    if array.dtype.kind not in "iub" or not all(-(2**31) <= int(value) < 2**32 for value in array.flat):
        raise TypeError(f"constants[{n}] must be an array or numbers that fit in 32 bits, not {values!r}")
    return (array.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)


def _global(array, in_place: bool) -> np.ndarray:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"global_memory must be a numpy array, not {type(array).__name__}")
    if not array.flags.writeable:
        raise ValueError("global_memory is read-only")
    words = _words(array.reshape(-1), "global_memory", (1,)).reshape(-1)
    if len(words) % 4:
        raise ValueError(
            f"global_memory has {4 * len(words)} bytes: a multiple of 16 is needed, since g[] has 128-bit elements"
        )
    return words.reshape(-1, 4) if in_place else words.reshape(-1, 4).copy()
