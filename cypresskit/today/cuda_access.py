"""What warps request from the load unit and the memory, given the addresses of their threads."""

import math
from dataclasses import dataclass

import numpy as np

from cypresskit.chip.work import Stream, cost_amounts
from cypresskit.today.gpus import SCHEDULERS, CudaGpu

BANKS = 32
WORD = 4  # bytes of a bank
LINE = 128  # bytes
LINES_PER_CLOCK = 4
MAX_PHASES = 8  # iterations after which addresses have moved by whole sectors


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


def requests_of(
    address: np.ndarray, on: np.ndarray, size: int, board: CudaGpu, is_shared: bool = False
) -> Requests:
    """Return what warps request: (warps, 32) threads of a mask, ``size`` bytes from the first byte
    of each. Half a warp is served at once if that is 8 bytes, a quarter if 16. Shared memory has no
    lines.
    """
    parts = max(size // 8 * 2, 1)
    shape = len(address) * parts, -1
    most = BANKS if is_shared else LINES_PER_CLOCK
    clocks = _load_clocks(address.reshape(shape), on.reshape(shape), size, most)
    sectors = np.where(on, address // board.line_bytes, -1)
    is_new = _sort(sectors)
    bounds = np.concatenate(([0], np.cumsum(is_new.sum(axis=1))))
    return Requests(clocks.reshape(-1, parts).sum(axis=1), sectors[is_new], bounds)


def _load_clocks(address: np.ndarray, on: np.ndarray, size: int, most: int) -> np.ndarray:
    """Return the clocks of the load unit: a clock for each different word of the busiest bank, or
    for the ``most`` lines that it serves at once.
    """
    each = max(size // WORD, 1)
    words = (address[:, :, np.newaxis] // WORD + np.arange(each)).reshape(len(address), -1)
    words = np.where(np.repeat(on, each, axis=1), words, -1)
    is_new = _sort(words)
    banks = np.nonzero(is_new)[0] * BANKS + words[is_new] % BANKS
    busiest = np.bincount(banks, minlength=len(words) * BANKS).reshape(-1, BANKS).max(axis=1)
    lines = np.count_nonzero(np.diff(words // BANKS, axis=1, prepend=-1), axis=1)
    return np.maximum(busiest, -(-lines // most))


def _sort(numbers: np.ndarray) -> np.ndarray:
    """Sort each row in place. Return a mask of the numbers that differ from the one before."""
    numbers.sort(axis=1)
    return np.diff(numbers, axis=1, prepend=-1) != 0


def memory_stream(
    address: np.ndarray, on: np.ndarray, size: int, move: int, board: CudaGpu
) -> Stream:
    """Return what warps request from memory, in quarters of clocks, if addresses move by some bytes
    with each iteration.
    """
    phases = min(board.line_bytes // math.gcd(board.line_bytes, move), MAX_PHASES)
    moves = move * np.arange(phases)[:, np.newaxis]
    moved = (address[:, np.newaxis] + moves).reshape(-1, 32)
    found = requests_of(moved, np.repeat(on, phases, axis=0), size, board)
    counts = np.diff(found.bounds)
    amounts = cost_amounts(quarters(found.clocks))
    amounts["requests"] = counts
    # A warp's sectors are requested one after the other in its clocks.
    within = np.arange(len(found.sectors)) - np.repeat(found.bounds[:-1], counts)
    offset = within * np.repeat(amounts["cost"], counts) // np.repeat(counts, counts)
    step = move * phases // board.line_bytes
    return Stream(amounts, found.bounds, found.sectors, offset, phases, step)


def quarters(clocks: np.ndarray) -> np.ndarray:
    return np.ceil(SCHEDULERS * clocks).astype(np.int32)
