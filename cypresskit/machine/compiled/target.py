"""The interface between the translator and a machine: how work-items reach memory, and their
numbers.

``host`` is this computer's processor. Values are words (i32) of one lane or of several; addresses
count bytes (i64).
"""

from abc import abstractmethod
from collections.abc import Sequence

from cypresskit.devices import WAVEFRONT
from cypresskit.il import Instruction, Program
from cypresskit.il.bits import ONE
from cypresskit.machine.compiled.native_meaning import Floats
from cypresskit.machine.compiled.translation import TEXEL
from cypresskit.machine.compiled.vec import Emitter, Vec


class Target:
    """A machine that ``program`` is translated for. ``ir`` takes the code, ``floats`` writes
    arithmetic.
    """

    def __init__(self, program: Program, floats: type[Floats], soft: bool = False):
        self.program = program
        self.pixels = program.mode == "pixel"
        self.items = WAVEFRONT if self.pixels else program.group  # that start together
        self.ir = Emitter()
        self.floats = floats(self.ir, soft)
        self.lds: dict[int, int] = {}  # the first byte of each LDS array
        self.lds_bytes = 0
        for n, size in sorted(program.lds.items()):
            self.lds[n] = self.lds_bytes
            self.lds_bytes += -(-size // TEXEL) * TEXEL + TEXEL  # zeros follow

    def function(self, head: str) -> str:
        """Return the text of the function that ``head`` begins."""
        return "\n".join([head, "entry:", *self.ir.allocations(), self.ir.text(), "}"])

    def begin(self, at: int) -> None:
        """Begin instruction ``at`` of the program's body; carry it out if it is a fence."""

    def iteration(self, at: int) -> None:
        """Begin an iteration of the loop opened at ``at``."""

    def literal(self, bits: int) -> Vec:
        """Return a word that is written in the program."""
        return self.ir.const(bits, "i32")

    @abstractmethod
    def constant(self, buffer: int, element: int, component: int) -> Vec:
        """Return a word of a constant buffer."""

    def input(self, name: str, component: int) -> Vec:
        """Return a word of an input register."""
        if name == "vWinCoord0" and component > 1:
            return self.literal((0, ONE)[component - 2])
        if name == "vAbsTidFlat":
            group = self.input("vThreadGrpIdFlat", component)
            return group * self.items + self.input("vTidInGrpFlat", component)
        return self.identity(name, component)

    @abstractmethod
    def identity(self, name: str, component: int) -> Vec:
        """Return a number of this work-item: of vWinCoord0.xy (float), vTidInGrpFlat or
        vThreadGrpIdFlat.
        """

    @abstractmethod
    def texel(self, i: Instruction, place: Sequence[Vec]) -> Vec:
        """Return the four words that a fetch reads at some coordinates."""

    @abstractmethod
    def place(self, array: int | None, byte: Vec) -> Vec:
        """Return the address of a byte of an LDS array; of ``g[]`` for None."""

    def load(self, array: int | None, byte: Vec, words: Sequence[int]) -> Vec:
        """Return words of an array (see `place`), counted from ``byte``."""
        place = self.place(array, byte)
        if words == (0,):
            return place.load("i32", 0, 4)
        return place.load("i32", 4, 4).pick(words)

    def store(
        self, at: int, array: int | None, byte: Vec, words: Sequence[int], value: Vec
    ) -> None:
        """Store ``value`` for instruction ``at``; ``words`` are as in `load`."""
        store_words(self.place(array, byte), words, value)

    @abstractmethod
    def store_output(self, n: int, words: Sequence[int], value: Vec) -> None:
        """Store the lanes of ``value`` as some words of the work-item's texel of output ``n``."""


def store_words(place: Vec, words: Sequence[int], value: Vec) -> None:
    """Store the lanes of ``value`` as words after ``place``."""
    if len(words) == 4:
        return place.store(value, 4)
    for k, c in enumerate(words):
        place.at(4 * c).store(value[k], 4)
