"""Execute compiled VLIW code on a launch's memories. Tests compare its results with its IL's.

``trace.vliw`` provides the processor; the arithmetic is the interpreter's.
"""

from collections.abc import Mapping

import numpy as np

from cypresskit.compiler.assembly import FetchInstruction, Operation, StoreInstruction
from cypresskit.compiler.code import Code
from cypresskit.il.meaning import SIGN, pair, split
from cypresskit.machine import addressing
from cypresskit.machine.launch import Launch, endless_error
from cypresskit.trace.vliw import Processor


class Bits:
    """Arithmetic on 32-bit patterns: uint32, one per work-item, or one for all."""

    poison = np.array([0xFFC0DEAD], np.uint32)

    def constant(self, bits: np.ndarray) -> np.ndarray:
        return bits

    def negated(self, word: np.ndarray) -> np.ndarray:
        return word ^ SIGN

    def compute(
        self, slots: tuple[Operation, ...], words: list[np.ndarray], low: list[np.ndarray]
    ) -> np.ndarray:
        first = slots[0]
        if low:
            words = [pair(a, b) for a, b in zip(low, words, strict=True)]
        assert first.row.meaning is not None
        return first.row.meaning(*words)

    def halves(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return split(value)

    def merge(self, new: np.ndarray, old: np.ndarray, active: np.ndarray) -> np.ndarray:
        return np.where(active, new, old)

    def passed(self, predicate: Operation, value: np.ndarray, active: np.ndarray) -> np.ndarray:
        return np.broadcast_to(value != 0, active.shape)


def execute(code: Code, launch: Launch) -> int:
    """Execute code on a launch of its program, and return the number of issued bundles.

    Parameters
    ----------
    code
        The compiled program.
    launch
        The launch, by ``machine.launch.prepare``. Its ``global_memory`` and ``outputs`` are
        changed.

    Raises
    ------
    KernelError
        For a store out of range or an infinite loop.
    """
    memory, every = _LaunchMemory(launch), np.ones(launch.shape.items, bool)
    processor = Processor(code, launch.ids, launch.shape.constants, Bits(), memory, every)
    at = 0
    with np.errstate(all="ignore"):
        while code.controls[at].name != "END":
            following = processor.step(at)
            if following <= at:
                masks = processor.masks
                loop = masks.loop_past_limit(processor.bundles, launch.max_instructions)
                if loop is not None:
                    item = int(np.argmax(masks.active))
                    at, limit = code.controls[loop.at].at, launch.max_instructions
                    raise endless_error(launch.shape, at, limit, item)
            at = following
    return processor.bundles


class _LaunchMemory:
    """The memories of a launch."""

    def __init__(self, launch: Launch):
        self.launch = launch
        self.items = launch.shape.items
        self.memories = addressing.Memories(launch)

    def lds(self, o: Operation, words: list[np.ndarray], active: np.ndarray) -> list[np.ndarray]:
        lds = o.lds
        assert lds is not None
        words = [np.broadcast_to(word, self.items) for word in words]
        first = words[0].astype(np.int64) - lds.base
        if o.name.startswith("LDS_WRITE"):
            for n, value in enumerate(words[1:]):
                word, inside = addressing.lds_inside(first, lds.offset * n, lds.size)
                place = (first + 4 * lds.offset * n) & ~3
                self.memories.check_store(o.at, place, inside, active)
                self.memories.store(lds.array, word, value, active)
            return []
        requests = [(first, 0)]
        if o.name == "LDS_READ_REL_RET":
            requests.append((first, lds.offset))
        requested = [addressing.lds_inside(byte, offset, lds.size) for byte, offset in requests]
        return [self.memories.load(lds.array, *place) for place in requested]

    def fetch(
        self, f: FetchInstruction, coordinates: list[np.ndarray], active: np.ndarray
    ) -> np.ndarray:
        rows = [np.broadcast_to(word, self.items) for word in coordinates]
        if f.name == "MEM_READ":
            element = addressing.element(f.offset[0], rows[0] if rows else None, self.items)
            return self.launch.elements(element)[0].T
        surface = self.launch.textures[f.resource]
        x, y, inside = addressing.texel(rows, surface, f.offset)
        return surface.texels(x, y, inside).T

    def store(
        self,
        s: StoreInstruction,
        index: np.ndarray | None,
        values: Mapping[int, np.ndarray],
        active: np.ndarray,
    ) -> None:
        rows = {c: np.broadcast_to(word, self.items) for c, word in values.items()}
        if s.name == "EXPORT":
            words = self.launch.outputs[s.offset].words.reshape(self.items, -1)
            for c, row in rows.items():
                if c < words.shape[1]:
                    np.copyto(words[:, c], row, where=active)
            return
        element = addressing.element(s.offset, index, self.items)
        self.memories.check_store(s.at, element, self.launch.exist(element), active)
        self.memories.store_global(element, rows, active)
