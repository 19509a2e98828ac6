"""What warps request from the load unit and the memory, given the addresses of their threads."""

import math
from dataclasses import dataclass, replace

import numpy as np

from cypresskit.chip.work import Stream, cost_amounts, sort_distinct, unit_stream
from cypresskit.today.gpus import SCHEDULERS, CudaGpu
from cypresskit.today.sass import SassInstruction

WARP = 32
BANKS = 32
WORD = 4  # bytes of a bank
LINE = 128  # bytes
LINES_PER_CLOCK = 4
ROW_SHIFT = 40  # bits of a sector's number
SECTOR_MASK = (1 << ROW_SHIFT) - 1
MAX_PHASES = 8  # iterations after which addresses have moved by whole sectors


@dataclass(frozen=True, eq=False)
class WarpAccess:
    """An access by some warps.

    Attributes
    ----------
    one
        The instruction.
    address, on
        The first byte, and the mask of the threads that access it: (warps, 32).
    step
        Bytes by which addresses move with each iteration.
    """

    one: SassInstruction
    address: np.ndarray
    on: np.ndarray
    step: int = 0


@dataclass(frozen=True, eq=False)
class Requests:
    """What warps request.

    Attributes
    ----------
    clocks
        Of the load unit, for each warp.
    sectors, bounds
        The sectors that each warp requests, each once.
    """

    clocks: np.ndarray
    sectors: np.ndarray
    bounds: np.ndarray

    @property
    def warps(self) -> np.ndarray:
        """The number of the warp, for each sector."""
        return np.repeat(np.arange(len(self.clocks)), np.diff(self.bounds))


def requests_of(access: WarpAccess, board: CudaGpu) -> Requests:
    """Return what an access requests. Half a warp is served at once if a thread's access has 8
    bytes, a quarter if 16.
    """
    size = access.one.size
    parts = max(size // 8 * 2, 1)
    count = len(access.address) * parts
    address, on = (values.reshape(count, -1) for values in (access.address, access.on))
    clocks = _load_clocks(address, on, size).reshape(-1, parts).sum(axis=1)
    sectors = np.where(access.on, access.address // board.line_bytes, -1)
    is_new = _sort(sectors)
    bounds = np.concatenate(([0], np.cumsum(is_new.sum(axis=1))))
    return Requests(clocks, sectors[is_new], bounds)


def _load_clocks(address: np.ndarray, on: np.ndarray, size: int) -> np.ndarray:
    """Return the clocks of the load unit: a clock for each different word of the busiest bank, or
    for four lines.
    """
    each = max(size // WORD, 1)
    words = (address[:, :, np.newaxis] // WORD + np.arange(each)).reshape(len(address), -1)
    words = np.where(np.repeat(on, each, axis=1), words, -1)
    is_new = _sort(words)
    banks = np.nonzero(is_new)[0] * BANKS + words[is_new] % BANKS
    busiest = np.bincount(banks, minlength=len(words) * BANKS).reshape(-1, BANKS).max(axis=1)
    lines = np.count_nonzero(np.diff(words // BANKS, axis=1, prepend=-1), axis=1)
    return np.maximum(busiest, -(-lines // LINES_PER_CLOCK))


def _sort(numbers: np.ndarray) -> np.ndarray:
    """Sort each row in place. Return a mask of the numbers that differ from the one before."""
    numbers.sort(axis=1)
    return np.diff(numbers, axis=1, prepend=-1) != 0


def warps_of(values: np.ndarray, group: int) -> np.ndarray:
    """Arrange threads of blocks of ``group`` as (warps, lanes). The last warp may lack some."""
    values = values.reshape(-1, group)
    return np.pad(values, ((0, 0), (0, -group % WARP))).reshape(-1, WARP)


def shared_stream(access: WarpAccess, block_warps: int, board: CudaGpu) -> Stream:
    """Return what warps request from shared memory, in quarters of clocks. Blocks mostly do the
    same as the first one.
    """
    first = replace(access, address=access.address[:block_warps], on=access.on[:block_warps])
    blocks, rest = divmod(len(access.on), block_warps)
    if not rest and _repeats(access.on, first.on) and _repeats(access.address, first.address):
        return unit_stream(np.tile(_quarters(requests_of(first, board).clocks), blocks))
    return unit_stream(_quarters(requests_of(access, board).clocks))


def _repeats(values: np.ndarray, first: np.ndarray) -> bool:
    return bool(np.all(values.reshape(-1, *first.shape) == first))


def memory_streams(accesses: list[WarpAccess], is_loop: bool, board: CudaGpu) -> list[Stream]:
    """Return what warps request from memory in an iteration, in quarters of clocks.

    A line with sectors that neither an access before it nor the last iteration has requested takes
    the load unit ``missed_line_clocks``.
    """
    if not accesses:
        return []
    apart = math.gcd(board.line_bytes, *(access.step for access in accesses))
    phases = min(board.line_bytes // apart, MAX_PHASES)
    per_line = LINE // board.line_bytes
    before = [replace(access, address=access.address - access.step) for access in accesses]
    known = np.array([-1])  # warps and sectors, sorted
    streams = []
    for access in (*(before if is_loop else ()), *accesses):
        found = requests_of(_in_phases(access, phases), board)
        counts = np.diff(found.bounds)
        keys = found.warps << ROW_SHIFT | found.sectors & SECTOR_MASK
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        missed = keys[known[at] != keys]
        known = np.sort(np.concatenate([known, missed]), kind="stable")
        missed_lines = sort_distinct(missed // per_line)
        warps = (missed_lines * per_line) >> ROW_SHIFT
        line_clocks = board.missed_line_clocks * np.bincount(warps, minlength=len(counts))
        amounts = cost_amounts(_quarters(np.maximum(found.clocks, line_clocks)))
        amounts["requests"] = counts
        # A warp's sectors are requested one after the other in its clocks.
        within = np.arange(len(found.sectors)) - np.repeat(found.bounds[:-1], counts)
        offset = within * np.repeat(amounts["cost"], counts) // np.repeat(counts, counts)
        step = access.step * phases // board.line_bytes
        streams.append(Stream(amounts, found.bounds, found.sectors, offset, phases, step))
    return streams[-len(accesses) :]


def _in_phases(access: WarpAccess, phases: int) -> WarpAccess:
    """Return the access with a row for each warp and iteration."""
    moved = access.step * np.arange(phases)
    address = (access.address[:, np.newaxis] + moved[:, np.newaxis]).reshape(-1, WARP)
    return replace(access, address=address, on=np.repeat(access.on, phases, axis=0))


def _quarters(clocks: np.ndarray) -> np.ndarray:
    return np.ceil(SCHEDULERS * clocks).astype(np.int32)
