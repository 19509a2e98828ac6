"""What warps ask the load unit and the memory for, from the places of their threads."""

from dataclasses import dataclass

import numpy as np

from cypresskit.timing.work import Stream, cost_amounts
from cypresskit.today.cuda_trace import WARP, Action
from cypresskit.today.gpus import SCHEDULERS, CudaGpu

BANKS = 32
LINE = 128  # bytes
WARP_SHIFT = 40  # bits of a sector's number
SECTOR_MASK = (1 << WARP_SHIFT) - 1
PERIOD = 8  # iterations after which places of numbers have moved by whole sectors


def accesses(
    places: np.ndarray, on: np.ndarray, size: int, board: CudaGpu
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of accesses of ``size`` bytes at ``places`` (warps, lanes), int64: the clocks of the load
    unit, the sectors that each warp asks for, each once, and their bounds.
    """
    parts = max(size // 4, 1)  # of a warp: what the load unit serves at once
    at_once = zip(np.split(places, parts, axis=1), np.split(on, parts, axis=1))
    clocks = sum(_bank_clocks(some, asking, size) for some, asking in at_once)
    sectors = np.where(on, places // board.line_bytes, -1)
    sectors.sort(axis=1)
    new = np.diff(sectors, axis=1, prepend=-1) != 0
    bounds = np.concatenate(([0], np.cumsum(new.sum(axis=1))))
    return np.maximum(clocks, board.access_clocks), sectors[new], bounds


def _bank_clocks(places: np.ndarray, on: np.ndarray, size: int) -> np.ndarray:
    """Clocks of the load unit for what it serves at once of each warp."""
    each = max(size // 4, 1)
    words = (places[:, :, np.newaxis] // 4 + np.arange(each)).reshape(len(places), -1)
    words = np.where(np.repeat(on, each, axis=1), words, -1)
    words.sort(axis=1)
    new = np.diff(words, axis=1, prepend=-1) != 0
    warp = np.broadcast_to(np.arange(len(words))[:, np.newaxis], words.shape)
    banks = np.bincount((warp * BANKS + words % BANKS)[new], minlength=len(words) * BANKS)
    lines = new & (np.diff(words // BANKS, axis=1, prepend=-1) != 0)
    return np.maximum(banks.reshape(-1, BANKS).max(axis=1), -(-lines.sum(axis=1) // 4))


def of_warps(values: np.ndarray, group: int) -> np.ndarray:
    """(warps, lanes) of workgroups of ``group`` threads; the last warp of each may lack some."""
    values = values.reshape(-1, group)
    return np.pad(values, ((0, 0), (0, -group % WARP))).reshape(-1, WARP)


def sectors_of(action: Action, group: int, board: CudaGpu) -> tuple[np.ndarray, np.ndarray]:
    """The sectors that warps ask for with an action, and their bounds, as ``accesses`` has them."""
    places = np.broadcast_to(action.place, action.on.shape)
    return accesses(of_warps(places, group), of_warps(action.on, group), action.size, board)[1:]


class Asked:
    """The sectors that warps of workgroups of ``group`` threads ask for in an iteration."""

    def __init__(self, group: int, board: CudaGpu) -> None:
        self.group = group
        self.board = board
        self._known: dict[tuple[int, int], np.ndarray] = {}

    def keys(self, action: Action, iteration: int) -> np.ndarray:
        """(warp, sector) of each, as one sorted number."""
        place = id(action), iteration * action.step
        if place not in self._known:
            places = np.broadcast_to(action.place + place[1], action.on.shape)
            sectors = of_warps(places // self.board.line_bytes, self.group)
            keys = keys_of(sectors, np.arange(len(sectors))[:, np.newaxis])
            self._known[place] = np.unique(keys[of_warps(action.on, self.group)])
        return self._known[place]


def keys_of(sectors: np.ndarray, warps: np.ndarray) -> np.ndarray:
    """Return one number for each pair of warp and sector."""
    return warps << WARP_SHIFT | sectors & SECTOR_MASK


@dataclass(frozen=True, eq=False)
class WarpAccess:
    """A load, or an access to shared memory, of the machine code: the ``events`` that it stands
    for, each in an iteration of the source: ``turns``, in which it has moved by so many of its
    steps. ``before``: loads of the same arrays and their iterations, since the iteration before. A
    line of which a warp asks for a sector that none of these asked for takes the load unit
    ``missed_line_clocks``.
    """

    events: list[Action]
    turns: list[int]
    before: list[tuple[Action, int]]

    def stream(self, unroll: int, asked: Asked) -> Stream:
        """What warps ask for, in quarters of clocks."""
        board = asked.board
        size = self.events[0].size
        shared = self.events[0].kind.startswith("shared")
        on = np.concatenate([of_warps(event.on, asked.group) for event in self.events], axis=1)
        phases = 1
        steps = [event.step * unroll for event in self.events]
        while not shared and phases < PERIOD and any(step % board.line_bytes for step in steps):
            phases *= 2
            steps = [event.step * unroll * phases for event in self.events]
        found = [self._asked(phase * unroll, on, asked) for phase in range(phases)]
        costs = np.stack([cost for cost, _, _ in found], axis=1).ravel()
        amounts = cost_amounts(np.ceil(SCHEDULERS * costs).astype(np.int32))
        none = np.zeros(0, np.int64)
        if shared:
            return Stream(amounts, np.zeros(len(costs) + 1, np.int64), none, none)
        counts = np.stack([np.diff(bounds) for _, _, bounds in found], axis=1).ravel()
        ptr = np.concatenate(([0], np.cumsum(counts)))
        line = np.zeros(ptr[-1], np.int64)
        for phase, (_, sectors, bounds) in enumerate(found):
            begin = np.repeat(ptr[phase:-1:phases] - bounds[:-1], np.diff(bounds))
            line[begin + np.arange(len(sectors))] = sectors
        amounts["requests"] = counts
        amounts["delivered"] = size * np.repeat(on.sum(axis=1), phases)
        within = np.arange(len(line)) - np.repeat(ptr[:-1], counts)
        offset = within * np.repeat(amounts["cost"], counts) // np.repeat(counts, counts)
        return Stream(amounts, ptr, line, offset, phases, steps[0] // board.line_bytes)

    def _asked(
        self, turn: int, on: np.ndarray, asked: Asked
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``accesses`` in an iteration of the code."""
        places = [
            of_warps(np.broadcast_to(event.place, event.on.shape), asked.group)
            + event.step * (more + turn)
            for event, more in zip(self.events, self.turns)
        ]
        board = asked.board
        clocks, sectors, bounds = accesses(
            np.concatenate(places, axis=1), on, self.events[0].size, board
        )
        if self.events[0].kind.startswith("shared"):
            return clocks, sectors, bounds
        keys = keys_of(sectors, np.repeat(np.arange(len(on)), np.diff(bounds)))
        for action, more in self.before:
            keys = np.setdiff1d(keys, asked.keys(action, more + turn), assume_unique=True)
        sectors_a_line = LINE // board.line_bytes
        lines = np.unique(keys // sectors_a_line)
        new = np.bincount(lines * sectors_a_line >> WARP_SHIFT, minlength=len(on))
        return np.maximum(clocks, board.missed_line_clocks * new), sectors, bounds
