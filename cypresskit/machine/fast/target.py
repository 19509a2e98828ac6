"""What a translated program runs on: the interface between ``translate`` and a machine.

``host`` is this computer's processor; ``cypresskit.today.machine_code`` has AMD's GPUs.
"""

from abc import abstractmethod
from collections.abc import Sequence

from cypresskit.il import Instruction, Program
from cypresskit.machine.fast.native_meaning import Floats
from cypresskit.machine.fast.vec import Emitter, Vec


class Target:
    """A machine that ``program`` is translated for, in ``ir``: how its work-items reach memory.

    ``floats`` does its arithmetic. Values are words (i32), of one lane or of several; addresses are
    i64. ``vectors`` tells whether it has vectors.
    """

    vectors = True

    def __init__(self, program: Program, floats: type[Floats], soft: bool = False):
        self.program = program
        self.ir = Emitter()
        self.floats = floats(self.ir, soft)

    def function(self, head: str) -> str:
        """The text of the function that ``head`` begins."""
        lines = [head, "entry:", *self.ir.places(), *self.ir.entry, self.ir.take(), "}"]
        return "\n".join(lines)

    def begin(self, at: int) -> None:
        """Begin instruction ``at`` of the program's body."""

    def segment(self, instructions: Sequence[int]) -> None:
        """Begin instructions that run one after another."""

    def loop(self, at: int) -> None:
        """Come to the loop opened at ``at``."""

    def iteration(self, at: int) -> None:
        """Begin an iteration of it."""

    def fence(self, at: int) -> None:
        """Carry out a fence."""

    @abstractmethod
    def literal(self, bits: int) -> Vec:
        """A word that the program's text holds."""

    @abstractmethod
    def constant(self, buffer: int, element: int, component: int) -> Vec:
        """A word of a constant buffer."""

    @abstractmethod
    def input(self, name: str, component: int) -> Vec:
        """A word of an input register, which tells which work-item this is."""

    @abstractmethod
    def texel(self, i: Instruction, place: Sequence[Vec]) -> Vec:
        """The four words that a fetch gives, by its coordinates."""

    @abstractmethod
    def load_global(self, element: Vec) -> Vec:
        """The four words of an element of ``g[]``."""

    @abstractmethod
    def store_global(self, at: int, element: Vec, words: Sequence[int], value: Vec) -> None:
        """Store the lanes of ``value`` as those words of an element, for instruction ``at``."""

    @abstractmethod
    def load_lds(self, array: int, byte: Vec, words: Sequence[int]) -> Vec:
        """Words of an LDS array, by their places after that of a byte."""

    @abstractmethod
    def store_lds(self, at: int, array: int, byte: Vec, words: Sequence[int], value: Vec) -> None:
        """Store the lanes of ``value`` to them, for instruction ``at``."""

    @abstractmethod
    def store_output(self, n: int, words: Sequence[int], value: Vec) -> None:
        """Store the lanes of ``value`` as those words of the work-item's texel of output ``n``."""


def store_words(place: Vec, words: Sequence[int], value: Vec) -> None:
    """Store the lanes of ``value`` as words after ``place``."""
    if len(words) == 4:
        return place.store(value, 4)
    for k, c in enumerate(words):
        place.at(4 * c).store(value[k], 4)
