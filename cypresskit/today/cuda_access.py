"""What warps request from the load unit and the memory, given the places of their threads."""

import math

import numpy as np

from cypresskit.chip.work import Stream, cost_amounts, sort_distinct, unit_stream
from cypresskit.today.cuda_events import WARP, Action
from cypresskit.today.gpus import SCHEDULERS, CudaGpu

BANKS = 32
WORD = 4  # bytes of a bank
LINE = 128  # bytes
LINES_PER_CLOCK = 4
ROW_SHIFT = 40  # bits of a sector's number
SECTOR_MASK = (1 << ROW_SHIFT) - 1
MAX_PHASES = 8  # iterations after which places of numbers have moved by whole sectors
FIRST = np.zeros(1, np.int64)  # iteration

Access = list[tuple[Action, int]]  # actions, each in an iteration of the source
Requests = tuple[np.ndarray, np.ndarray, np.ndarray]  # clocks, sectors, bounds


def requests_of(places: np.ndarray, on: np.ndarray, size: int, board: CudaGpu) -> Requests:
    """Return what accesses of ``size`` bytes request.

    Parameters
    ----------
    places, on
        Bytes, and the mask of the threads that access them: (warps, lanes).
    size
        Bytes of a thread. Half a warp is served at once if there are 8, a quarter if 16.

    Returns
    -------
    clocks
        Of the load unit, for each warp.
    sectors, bounds
        The sectors that each warp requests, each once.
    """
    parts = max(size // 8 * 2, 1)
    count = len(places) * parts
    clocks = _load_clocks(places.reshape(count, -1), on.reshape(count, -1), size)
    clocks = clocks.reshape(-1, parts).sum(axis=1)
    sectors = np.where(on, places // board.line_bytes, -1)
    is_new = _sort(sectors)
    bounds = np.concatenate(([0], np.cumsum(is_new.sum(axis=1))))
    return clocks, sectors[is_new], bounds


def _load_clocks(places: np.ndarray, on: np.ndarray, size: int) -> np.ndarray:
    """Return the clocks of the load unit: a clock for each different word of the busiest bank, or
    for four lines.
    """
    each = max(size // WORD, 1)
    words = (places[:, :, np.newaxis] // WORD + np.arange(each)).reshape(len(places), -1)
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
    """Arrange threads of blocks of ``group`` as (warps, lanes). A block's last warp may
    lack some.
    """
    values = values.reshape(-1, group)
    return np.pad(values, ((0, 0), (0, -group % WARP))).reshape(-1, WARP)


def requested(
    access: Access, group: int, board: CudaGpu, iterations: np.ndarray = FIRST
) -> Requests:
    """Return what warps request with an access of the machine code: each warp in ``iterations``,
    one after the other.
    """
    places, on = [], []
    for action, own in access:
        lanes = warps_of(np.broadcast_to(action.place, action.on.shape), group)
        moved = action.step * (own + iterations)
        places.append((lanes[:, np.newaxis] + moved[:, np.newaxis]).reshape(-1, WARP))
        on.append(np.repeat(warps_of(action.on, group), len(iterations), axis=0))
    return requests_of(np.hstack(places), np.hstack(on), access[0][0].size, board)


def streams_of(
    accesses: list[Access], unroll: int, is_loop: bool, group: int, board: CudaGpu
) -> list[Stream]:
    """Return what warps request with accesses of one kind in an iteration of the machine code, in
    quarters of clocks.

    A line with sectors that neither an access before it nor the last iteration has requested takes
    the load unit ``missed_line_clocks``.

    Parameters
    ----------
    accesses
        In the order of the code.
    unroll
        Iterations of the source in one of the code.
    """
    actions = {id(action): action for access in accesses for action, _ in access}.values()
    if accesses[0][0][0].kind.startswith("shared"):
        found = [requested(access, group, board) for access in accesses]
        return [unit_stream(_quarters(clocks)) for clocks, _, _ in found]
    apart = math.gcd(board.line_bytes, *(unroll * action.step for action in actions))
    phases = min(board.line_bytes // apart, MAX_PHASES)
    per_line = LINE // board.line_bytes
    before: list[Access] = [[(action, -1)] for action in actions] if is_loop else []
    known = np.array([-1])  # rows and sectors, sorted
    streams = []
    for access in before + accesses:
        clocks, sectors, bounds = requested(access, group, board, unroll * np.arange(phases))
        rows = np.repeat(np.arange(len(clocks)), np.diff(bounds))
        keys = rows << ROW_SHIFT | sectors & SECTOR_MASK
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        missed = keys[known[at] != keys]
        known = np.sort(np.concatenate([known, missed]), kind="stable")
        rows = sort_distinct(missed // per_line) * per_line >> ROW_SHIFT
        line_clocks = board.missed_line_clocks * np.bincount(rows, minlength=len(clocks))
        step = access[0][0].step * unroll * phases // board.line_bytes
        amounts = cost_amounts(_quarters(np.maximum(clocks, line_clocks)))
        counts = np.diff(bounds)
        amounts["requests"] = counts
        # A row's sectors are requested one after the other in its clocks.
        within = np.arange(len(sectors)) - np.repeat(bounds[:-1], counts)
        offset = within * np.repeat(amounts["cost"], counts) // np.repeat(counts, counts)
        streams.append(Stream(amounts, bounds, sectors, offset, phases, step))
    return streams[len(before) :]


def _quarters(clocks: np.ndarray) -> np.ndarray:
    return np.ceil(SCHEDULERS * clocks).astype(np.int32)


def sectors_per_warp(action: Action, group: int, board: CudaGpu) -> float:
    """Return how many sectors a warp requests, on average over those that request any."""
    _, sectors, bounds = requested([(action, 0)], group, board)
    return len(sectors) / max(int(np.count_nonzero(np.diff(bounds))), 1)
