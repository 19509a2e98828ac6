"""A launch: a program, its domain and its arrays, checked once, then given to an engine.

``launch`` is the one way to run IL. It turns every numpy array into 32-bit words, asks an engine to run the program
on copies, and copies results back only when the whole run went well: after an error the caller's arrays are as they
were. What an engine reports (how many work-items executed each instruction) becomes the counts of a ``Run``.

Pixel mode: the domain is (width, height); a wavefront is an 8 x 8 tile, a quad 2 x 2. Compute mode: the domain counts
work-items along x (and y, z), multiples of the declared workgroup; a quad is four, a wavefront 64 consecutive items.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cypresskit.devices import HD5870, Device
from cypresskit.il import Program
from cypresskit.machine.observer import Observer
from cypresskit.machine.run import Run

MAX_ITEMS = 1 << 28  # work-items of one launch: more would not end within a day here
MAX_INSTRUCTIONS = 2_000_000  # per work-item: SGEMM with k = 16384 takes 0.6 million
DTYPES = ("float32", "float64", "int32", "uint32")


class KernelError(RuntimeError):
    """A kernel did what it must not: stored outside its memory, or never ended. ``line`` is the kernel's line,
    ``work_item`` its place in the domain, as (x, y) or a flat number, or None."""

    def __init__(self, message: str, line: int = 0, work_item=None):
        super().__init__(message)
        self.line, self.work_item = line, work_item

    def __reduce__(self):
        return KernelError, (self.args[0], self.line, self.work_item)


@dataclass(frozen=True, eq=False)
class Surface:
    """A texture or output: ``words`` is uint32 of shape (height, width, words per texel), the latter 1, 2 or 4;
    ``single`` tells float32 data, whose missing components read 0, 0, 1.0."""

    words: np.ndarray
    single: bool

    @property
    def height(self) -> int:
        return self.words.shape[0]

    @property
    def width(self) -> int:
        return self.words.shape[1]


@dataclass(frozen=True, eq=False)
class Launch:
    """A checked launch. All arrays are C-contiguous uint32; ``outputs`` and ``global_memory`` are working copies.

    ``constants[n]`` has shape (elements, 4), ``global_memory`` (elements, 4) or None.
    """

    program: Program
    domain: tuple[int, int, int]
    textures: dict[int, Surface]
    constants: dict[int, np.ndarray]
    outputs: dict[int, Surface]
    global_memory: np.ndarray | None
    device: Device = HD5870
    max_instructions: int = MAX_INSTRUCTIONS

    @property
    def items(self) -> int:
        """Work-items in all."""
        return math.prod(self.domain)

    @property
    def groups(self) -> tuple[int, int, int]:
        """Workgroups along x, y, z (compute mode)."""
        x, y, z = (d // g for d, g in zip(self.domain, self.program.group, strict=True))
        return x, y, z

    @property
    def wavefronts(self) -> int:
        """Wavefronts dispatched: 8 x 8 tiles, or 64 consecutive work-items of a group."""
        if self.program.mode == "pixel":
            return -(-self.domain[0] // 8) * -(-self.domain[1] // 8)
        return math.prod(self.groups) * -(-math.prod(self.program.group) // 64)

    def place(self, item: int):
        """Where work-item number ``item`` is: (x, y) in a pixel domain, its flat id in a compute domain."""
        return (item % self.domain[0], item // self.domain[0]) if self.program.mode == "pixel" else item

    def item_name(self, item: int) -> str:
        """``work-item (3, 5)``, or ``work-item 70 (number 6 of group 1)``."""
        if self.program.mode == "pixel":
            return f"work-item {self.place(item)}"
        group, within = divmod(item, math.prod(self.program.group))
        return f"work-item {item} (number {within} of group {group})"

    @cached_property
    def ids(self) -> dict[str, np.ndarray]:
        """Input registers: name to uint32 bits of shape (4, items)."""
        return _pixel_ids(self) if self.program.mode == "pixel" else _compute_ids(self)

    def store_error(self, at: int, item: int, what: str) -> KernelError:
        """The error for a store of ``body[at]`` outside its memory."""
        i = self.program.body[at]
        return KernelError(
            f"{self.program.located(i)}\n    {self.item_name(item)} stores {what}. No array was changed. "
            "Check the address arithmetic, or the size of the domain.",
            i.line,
            self.place(item),
        )

    def endless_error(self, at: int, item: int, count: int | None = None) -> KernelError:
        """The error for a loop, opened at ``body[at]``, that passed ``max_instructions``, or ``count``."""
        i, count = self.program.body[at], count or self.max_instructions
        return KernelError(
            f"{self.program.located(i)}\n    this loop has not ended after {count:,} instructions of "
            f"{self.item_name(item)}. Does its break condition ever become true? (max_instructions raises the limit.)",
            i.line,
            self.place(item),
        )

    def long_error(self, at: int, seconds: float) -> KernelError:
        """The error for a loop, opened at ``body[at]``, that is too long to be stepped through."""
        i = self.program.body[at]
        return KernelError(
            f"{self.program.located(i)}\n    this loop is too long to be stepped through by {self.items:,} work-items: "
            f"compiled code takes more than {seconds} seconds. Take a smaller domain, or fewer turns.",
            i.line,
        )

    def barrier_error(self, at: int, group: int, present: int) -> KernelError:
        """The error for a barrier ``body[at]`` that only part of a workgroup reaches."""
        i = self.program.body[at]
        return KernelError(
            f"{self.program.located(i)}\n    only {present} of {math.prod(self.program.group)} work-items of group "
            f"{group} reach this barrier: the others would be waited for without end. Take it out of the if or loop "
            "that splits the group.",
            i.line,
        )


def launch(
    program: Program,
    domain,
    *,
    inputs: Mapping[int, np.ndarray] | None = None,
    constants: Mapping[int, np.ndarray] | None = None,
    outputs: Mapping[int, np.ndarray] | None = None,
    global_memory: np.ndarray | None = None,
    device: Device = HD5870,
    engine: str = "fast",
    observers: Iterable[Observer] = (),
    max_instructions: int | None = None,
    threads: int = 1,
) -> Run:
    """Run ``program`` over ``domain`` on the simulated ``device``.

    Parameters
    ----------
    program: an assembled kernel.
    domain: (width, height) in pixel mode; work-items along x or (x, y, z) in compute mode.
    inputs: resource number to texture: shape (height, width) or (height, width, components), dtype float32, float64,
        int32 or uint32, at most 128 bits a texel. A 1-D resource takes (width,) or (width, components).
    constants: buffer number to an array whose bytes are its elements of four 32-bit words. Plain Python floats
        become float32.
    outputs: stream number to an array (height, width[, components]) of the domain's size, written by ``oN``.
    global_memory: an array whose bytes are the 128-bit elements of ``g[]``; read and written in place.
    engine: "fast" (compiled) or "explain" (steps with every register known); observers always get the latter.
    max_instructions: a loop in which more have been issued is taken for endless (2 million by default). Work-items
        that run together count as one, so both ways of a divergent branch count: a quad in the fast engine, the whole
        domain in the explaining one. That one asks the fast engine instead as soon as it has stepped for a second.
    threads: host threads of the fast engine.

    Returns a ``Run`` with the counts. Raises ``ValueError``/``TypeError`` for arguments that don't fit the program,
    ``KernelError`` for a store out of range or an endless loop (all arrays are then as they were). A fetch out of range
    gives 0 and is counted.
    """
    observers = _observers(observers)
    if engine not in ("fast", "explain"):
        raise ValueError(f'engine is "fast" or "explain", not {engine!r}')
    if not isinstance(threads, (int, np.integer)) or threads < 1:
        raise ValueError(f"threads is a whole number of at least 1, not {threads!r}")
    checked = prepare(
        program,
        domain,
        inputs=inputs,
        constants=constants,
        outputs=outputs,
        global_memory=global_memory,
        device=device,
        max_instructions=max_instructions,
    )
    if engine == "fast" and not observers:
        from cypresskit.machine.fast import run as run_fast

        result = run_fast(checked, threads=threads)
    else:
        from cypresskit.machine.explain import run as run_explaining

        result = run_explaining(checked, observers)
    for n, surface in checked.outputs.items():
        _write_back((outputs or {})[n], surface.words)
    if checked.global_memory is not None and global_memory is not None:
        _write_back(global_memory, checked.global_memory)
    return result


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
    for name, given in (("inputs", inputs), ("constants", constants), ("outputs", outputs)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{name} maps numbers to arrays, as in {{0: array}}; found {type(given).__name__}")
    inputs, constants, outputs = dict(inputs or {}), dict(constants or {}), dict(outputs or {})
    _needed(program, inputs, constants, outputs, global_memory)
    textures = {n: _texture(a, program, n) for n, a in inputs.items()}
    streams = {n: _output(a, n, shape) for n, a in outputs.items()}
    buffers = {n: _constants(a, n, program.constants.get(n, 0)) for n, a in constants.items()}
    memory = None if global_memory is None else _global(global_memory)
    return Launch(program, shape, textures, buffers, streams, memory, device, int(max_instructions or MAX_INSTRUCTIONS))


def _observers(observers) -> tuple[Observer, ...]:
    found = tuple(observers) if isinstance(observers, Iterable) else (None,)
    if not all(isinstance(o, Observer) for o in found):
        raise TypeError(f"observers are objects of classes that extend ck.Observer, in a list; found {observers!r}")
    return found


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
    if array.dtype.name not in DTYPES or not array.dtype.isnative:
        raise TypeError(f"{name} has dtype {array.dtype}: the device takes {', '.join(DTYPES)}, in native byte order")
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
    return Surface(words, array.dtype == np.float32)


def _texture(array, program: Program, n: int) -> Surface:
    declared = program.textures.get(n)
    return _surface(array, f"inputs[{n}]", (1, 2) if declared and declared.dimensions == 1 else (2, 3))


def _output(array, n: int, domain: tuple[int, int, int]) -> Surface:
    surface = _surface(array, f"outputs[{n}]", (2, 3))
    if (surface.width, surface.height) != domain[:2]:
        raise ValueError(
            f"outputs[{n}] is {surface.height} x {surface.width}, the domain {domain[1]} x {domain[0]} (rows x columns)"
        )
    if not array.flags.writeable:
        raise ValueError(f"outputs[{n}] is read-only")
    return Surface(surface.words.copy(), surface.single)


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


def _global(array) -> np.ndarray:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"global_memory must be a numpy array, not {type(array).__name__}")
    if not array.flags.writeable:
        raise ValueError("global_memory is read-only")
    words = _words(array.reshape(-1), "global_memory", (1,)).reshape(-1)
    if len(words) % 4:
        raise ValueError(
            f"global_memory has {4 * len(words)} bytes: a multiple of 16 is needed, since g[] has 128-bit elements"
        )
    return words.reshape(-1, 4).copy()


def _write_back(array: np.ndarray, words: np.ndarray) -> None:
    array[...] = words.reshape(-1).view(array.dtype).reshape(array.shape)


def _pixel_ids(launch: Launch) -> dict[str, np.ndarray]:
    width, height, _ = launch.domain
    place = np.zeros((4, height, width), np.float32)
    place[0] = np.arange(width, dtype=np.float32) + np.float32(0.5)
    place[1] = np.arange(height, dtype=np.float32)[:, np.newaxis] + np.float32(0.5)
    place[3] = 1.0
    return {"vWinCoord0": place.reshape(4, -1).view(np.uint32)}


def _compute_ids(launch: Launch) -> dict[str, np.ndarray]:
    size, groups = launch.program.group, launch.groups
    flat = np.arange(launch.items, dtype=np.uint32)
    group_flat, within_flat = flat // np.uint32(math.prod(size)), flat % np.uint32(math.prod(size))

    def unflatten(index, shape):
        rows = [index % shape[0], index // shape[0] % shape[1], index // (shape[0] * shape[1])]
        return np.stack([*rows, np.zeros_like(index)]).astype(np.uint32)

    group, within = unflatten(group_flat, groups), unflatten(within_flat, size)
    sizes = np.array([*size, 0], np.uint32)[:, np.newaxis]
    return {
        "vThreadGrpId": group,
        "vTidInGrp": within,
        "vAbsTid": group * sizes + within,
        "vAbsTidFlat": np.stack([flat] * 4),
        "vThreadGrpIdFlat": np.stack([group_flat] * 4),
        "vTidInGrpFlat": np.stack([within_flat] * 4),
    }
