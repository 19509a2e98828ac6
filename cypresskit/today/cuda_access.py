"""What warps request from the load unit and the memory, given the addresses of their threads."""

import math

import numpy as np

from cypresskit.chip.work import Stream, cost_amounts
from cypresskit.today.gpus import H200, SCHEDULERS

BANKS = 32
WORD = 4  # bytes of a bank
LINE = 128  # bytes
LINES_PER_CLOCK = 4
SECTOR = H200.line_bytes
MAX_PHASES = 8  # iterations after which addresses have moved by whole sectors


def load_clocks(
    address: np.ndarray, on: np.ndarray, size: int, is_shared: bool = False
) -> np.ndarray:
    """Return the clocks of the load unit for warps: (warps, 32) threads of a mask, ``size`` bytes
    from the first byte of each. Half a warp is served at once if that is 8 bytes, a quarter if 16.
    A part takes a clock for each different word of the busiest bank, or for four lines; shared
    memory has no lines.
    """
    each = size // WORD
    words = address[:, :, np.newaxis] // WORD + np.arange(each)
    words = np.where(on[:, :, np.newaxis], words, -1).reshape(len(address) * each, -1)
    is_new = _sort(words)
    banks = np.nonzero(is_new)[0] * BANKS + words[is_new] % BANKS
    clocks = np.bincount(banks, minlength=len(words) * BANKS).reshape(-1, BANKS).max(axis=1)
    if not is_shared:
        lines = np.count_nonzero(np.diff(words // BANKS, axis=1, prepend=-1), axis=1)
        clocks = np.maximum(clocks, -(-lines // LINES_PER_CLOCK))
    return clocks.reshape(-1, each).sum(axis=1)


def _sort(numbers: np.ndarray) -> np.ndarray:
    """Sort each row in place. Return a mask of the numbers that differ from the one before."""
    numbers.sort(axis=1)
    return np.diff(numbers, axis=1, prepend=-1) != 0


def memory_stream(address: np.ndarray, on: np.ndarray, size: int, move: int) -> Stream:
    """Return what warps request from memory, in quarters of clocks, if addresses move by some bytes
    with each iteration.
    """
    phases = min(SECTOR // math.gcd(SECTOR, move), MAX_PHASES)
    moves = move * np.arange(phases)[:, np.newaxis]
    moved = (address[:, np.newaxis] + moves).reshape(-1, 32)
    on = np.repeat(on, phases, axis=0)
    sectors = np.where(on, moved // SECTOR, -1)
    is_new = _sort(sectors)
    sectors, counts = sectors[is_new], is_new.sum(axis=1)
    bounds = np.concatenate(([0], np.cumsum(counts)))
    amounts = cost_amounts(quarters(load_clocks(moved, on, size)))
    amounts["requests"] = counts
    at_once = np.zeros(len(sectors), np.int32)
    return Stream(amounts, bounds, sectors, at_once, phases, move * phases // SECTOR)


def quarters(clocks: np.ndarray) -> np.ndarray:
    return np.ceil(SCHEDULERS * clocks).astype(np.int32)
