"""Run a launch on compiled code: lay out its arrays, run it batch by batch, sum the counts.

Compiled code returns every few milliseconds, between two batches, so that Ctrl-C is handled. It
runs on the calling thread alone: a core is fast enough for what is run here.
"""

from collections.abc import Iterable
from ctypes import addressof, c_char
from functools import partial

import numpy as np

from cypresskit.devices import TILE
from cypresskit.il.bits import ONE
from cypresskit.machine.compiled.jit import NativeCode, compiled
from cypresskit.machine.compiled.processor import HostProcessor, this_host
from cypresskit.machine.compiled.translation import (
    DIVERGED,
    DONE,
    ENDLESS,
    FAILED,
    LINE,
    NEXT,
    TEXEL,
)
from cypresskit.machine.counters import LaunchCounters, tally
from cypresskit.machine.launch import Launch, Surface, endless_error
from cypresskit.threads import check_stop

SLICE = 2_000_000  # instructions after which compiled code returns: a millisecond or two
NO_BYTES = c_char * 0


def run(
    launch: Launch, batches: Iterable[int] | None = None, host: HostProcessor | None = None
) -> LaunchCounters | None:
    """Run a checked launch, or some batches of it, on code that is compiled for ``host``, by
    default this computer.

    Returns
    -------
    The counts; or None if work-items that have to wait for each other came to different places (a
    barrier that part of a group doesn't reach, say), so the interpreter has to run the launch. If
    the kernel reads global memory, that is restored first; otherwise, partial stores remain.

    Raises
    ------
    KernelError
        For an endless loop or a store out of range: the first here, which need not be the first if
        all work-items run in step.
    """
    kernel = compiled(launch.program, host or this_host())
    saved = launch.memory.copy() if kernel.translation.reads_global else None
    native = _NativeLaunch(launch, kernel)
    native.run(batches)
    if native.status != DONE and saved is not None:
        launch.memory[...] = saved
    if native.status == DIVERGED:
        return None
    at, item, element = native.report[:NEXT].tolist()
    if native.status == ENDLESS:
        raise endless_error(launch.shape, at, launch.max_instructions, item)
    if native.status == FAILED:
        raise launch.store_error(at, item, element)
    return tally(launch, native.counts[kernel.translation.counters], int(native.counts[0]))


def address(array: np.ndarray) -> int:
    """Return the address of a writable array, faster than numpy does."""
    return addressof(NO_BYTES.from_buffer(array.data))


def aligned(size: int) -> np.ndarray:
    """Return memory (int64) of ``size`` bytes, a multiple of 8, that begins at a cache line."""
    memory = np.empty((size + LINE) // 8, np.int64)
    start = -address(memory) % LINE // 8
    return memory[start : start + size // 8]


def _texels(texture: Surface) -> np.ndarray:
    """Return a texture's words, four per texel; missing ones are 0, 0, 1.0 of single-precision
    data. Other words are copied only to be aligned.
    """
    height, width, words = texture.words.shape
    is_aligned = texture.words.flags.writeable and address(texture.words) % TEXEL == 0
    if words == 4 and is_aligned:
        return texture.words
    texels = aligned(TEXEL * height * width).view(np.uint32).reshape(height, width, 4)
    texels[...] = (0, 0, 0, ONE * texture.single)  # whole ones are written faster
    texels[..., :words] = texture.words
    return texels


class _NativeLaunch:
    """Runs a launch's batches.

    It holds the arrays and sizes of the launch, by the names of the context's entries, and the
    memory of the kernel: context, counters, LDS, spilled registers, report.
    """

    def __init__(self, launch: Launch, kernel: NativeCode):
        self.status = DONE
        shape = launch.shape
        width, height, _ = shape.domain
        self.batches = shape.batches
        literals = np.array(kernel.translation.literals, np.uint32)
        arrays: dict[str, np.ndarray] = {"literals": literals, "global": launch.memory}
        values = {"width": width, "height": height, "groups_x": -(-width // TILE)}
        values["global_bytes"] = launch.memory.nbytes
        values["limit"] = min(launch.max_instructions, 1 << 62)  # in a work-item's loop
        for n, texture in launch.textures.items():
            arrays[f"t{n}"] = _texels(texture)
            values |= {f"t{n}_w": texture.width, f"t{n}_h": texture.height}
        for n, output in launch.outputs.items():
            arrays[f"o{n}"] = output.words
            values[f"o{n}_words"] = output.words.shape[2]
        arrays |= {f"cb{n}": words for n, words in shape.constants.items()}
        self.arrays = arrays  # keeps them alive
        values |= {name: address(array) for name, array in arrays.items()}

        entries, places = kernel.translation.entries, kernel.translation.places
        memory = aligned(places["end"])
        memory.fill(0)
        start = address(memory)
        values |= {name: start + byte for name, byte in places.items()}
        memory[: len(entries)] = [values[name] for name in entries]
        report = places["report"] // 8
        self.counts = memory[places["counts"] // 8 : report]
        self.report = memory[report:]
        self.call = partial(kernel.call, values["context"], values["counts"], values["spill"])

    def run(self, batches: Iterable[int] | None) -> None:
        """Run some batches, or all, until none is left or one failed."""
        ranges = [(0, self.batches)] if batches is None else [(n, n + 1) for n in batches]
        for done, end in ranges:
            while done < end and not self.status:
                check_stop()
                self.status = self.call(SLICE, done, end)
                done = int(self.report[NEXT])
