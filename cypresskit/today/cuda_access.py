"""What warps request from the load unit and the memory, given the places of their threads."""

import numpy as np

from cypresskit.timing.work import Stream, cost_amounts
from cypresskit.today.cuda_events import WARP, Action
from cypresskit.today.gpus import SCHEDULERS, CudaGpu

BANKS = 32
WORD = 4  # bytes of a bank
LINE = 128  # bytes
LINES_PER_CLOCK = 4
WARP_SHIFT = 40  # bits of a sector's number
SECTOR_MASK = (1 << WARP_SHIFT) - 1
MAX_PHASES = 8  # iterations after which places of numbers have moved by whole sectors

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
    return np.maximum(clocks, board.access_clocks), sectors[is_new], bounds


def _load_clocks(places: np.ndarray, on: np.ndarray, size: int) -> np.ndarray:
    """Return the clocks of the load unit: a clock for each different word of the busiest bank, or
    for four lines.
    """
    each = max(size // WORD, 1)
    words = (places[:, :, np.newaxis] // WORD + np.arange(each)).reshape(len(places), -1)
    words = np.where(np.repeat(on, each, axis=1), words, -1)
    is_new = _sort(words)
    warp = np.broadcast_to(np.arange(len(words))[:, np.newaxis], words.shape)
    counts = np.bincount((warp * BANKS + words % BANKS)[is_new], minlength=len(words) * BANKS)
    lines = is_new & (np.diff(words // BANKS, axis=1, prepend=-1) != 0)
    return np.maximum(
        counts.reshape(-1, BANKS).max(axis=1), -(-lines.sum(axis=1) // LINES_PER_CLOCK)
    )


def _sort(numbers: np.ndarray) -> np.ndarray:
    """Sort each row in place. Return a mask of the numbers that differ from the one before."""
    numbers.sort(axis=1)
    return np.diff(numbers, axis=1, prepend=-1) != 0


def warps_of(values: np.ndarray, group: int) -> np.ndarray:
    """Arrange threads of workgroups of ``group`` as (warps, lanes). A workgroup's last warp may
    lack some.
    """
    values = values.reshape(-1, group)
    return np.pad(values, ((0, 0), (0, -group % WARP))).reshape(-1, WARP)


def requested(access: Access, iteration: int, group: int, board: CudaGpu) -> Requests:
    """Return what warps request with an access of the machine code in an iteration."""
    places = [
        warps_of(np.broadcast_to(a.place + a.step * (own + iteration), a.on.shape), group)
        for a, own in access
    ]
    on = [warps_of(action.on, group) for action, _ in access]
    size = access[0][0].size
    return requests_of(np.concatenate(places, axis=1), np.concatenate(on, axis=1), size, board)


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
    is_shared = accesses[0][0][0].kind.startswith("shared")
    moves = [unroll * action.step for access in accesses for action, _ in access]
    phases = 1
    while phases < MAX_PHASES and not is_shared:
        if all(move * phases % board.line_bytes == 0 for move in moves):
            break
        phases *= 2
    found: list[list[Requests]] = [[] for _ in accesses]
    for iteration in range(0, phases * unroll, unroll):
        known = np.array([-1])
        before = {id(action): action for access in accesses for action, _ in access}
        for action in before.values() if is_loop and not is_shared else ():
            _, sectors, bounds = requested([(action, -1)], iteration, group, board)
            known = _union(known, _keys(sectors, bounds))
        for access, results in zip(accesses, found):
            clocks, sectors, bounds = requested(access, iteration, group, board)
            if not is_shared:
                keys = _keys(sectors, bounds)
                at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
                missed = keys[known[at] != keys]
                clocks = np.maximum(clocks, _missed_clocks(missed, len(clocks), board))
                known = _union(known, keys)
            results.append((clocks, sectors, bounds))
    return [
        _stream(access, results, unroll, group, board) for access, results in zip(accesses, found)
    ]


def _union(known: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return the numbers of two sorted arrays, sorted, each once: faster than numpy's."""
    both = np.sort(np.concatenate([known, keys]), kind="stable")
    return _distinct(both)


def _distinct(numbers: np.ndarray) -> np.ndarray:
    """Return each of sorted numbers once."""
    return numbers[np.diff(numbers, prepend=-2) != 0]


def _keys(sectors: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return one number for each warp and sector, sorted."""
    warps = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return warps << WARP_SHIFT | sectors & SECTOR_MASK


def _missed_clocks(keys: np.ndarray, warps: int, board: CudaGpu) -> np.ndarray:
    """Return for each warp the clocks of the load unit for the lines of sectors."""
    per_line = LINE // board.line_bytes
    lines = _distinct(keys // per_line)
    counts: np.ndarray = np.bincount(lines * per_line >> WARP_SHIFT, minlength=warps)
    return board.missed_line_clocks * counts


def _stream(
    access: Access, phases: list[Requests], unroll: int, group: int, board: CudaGpu
) -> Stream:
    """Return the stream of an access, given what it requests in each phase."""
    action = access[0][0]
    costs = np.stack([clocks for clocks, _, _ in phases], axis=1).ravel()
    amounts = cost_amounts(np.ceil(SCHEDULERS * costs).astype(np.int32))
    none = np.zeros(0, np.int64)
    if action.kind.startswith("shared"):
        return Stream(amounts, np.zeros(len(costs) + 1, np.int64), none, none)
    counts = np.stack([np.diff(bounds) for _, _, bounds in phases], axis=1).ravel()
    ptr = np.concatenate(([0], np.cumsum(counts)))
    by_phase = np.arange(len(counts)).reshape(-1, len(phases)).T.ravel()
    entries = np.repeat(by_phase, counts[by_phase])
    line = np.concatenate([sectors for _, sectors, _ in phases])[np.argsort(entries, kind="stable")]
    amounts["requests"] = counts
    threads = sum(warps_of(one.on, group).sum(axis=1) for one, _ in access)
    amounts["delivered"] = action.size * np.repeat(threads, len(phases))
    within = np.arange(len(line)) - np.repeat(ptr[:-1], counts)
    offset = within * np.repeat(amounts["cost"], counts) // np.repeat(counts, counts)
    step = action.step * unroll * len(phases) // board.line_bytes
    return Stream(amounts, ptr, line, offset, len(phases), step)


def sectors_per_warp(action: Action, group: int, board: CudaGpu) -> float:
    """Return how many sectors a warp requests, on average over those that request any."""
    _, sectors, bounds = requested([(action, 0)], 0, group, board)
    return len(sectors) / max(int(np.count_nonzero(np.diff(bounds))), 1)
