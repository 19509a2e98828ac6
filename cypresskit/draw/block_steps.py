"""What the picture of a register block shows in each step: numbers, accesses, and captions."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cypresskit.draw.block import Block, elements
from cypresskit.draw.player import format_short
from cypresskit.il import Instruction
from cypresskit.il.cursor import strip_comment
from cypresskit.kernels.convention import MATRICES
from cypresskit.machine.record import Recording
from cypresskit.tables import plural

MAX_TERMS = 6  # of a sum that are written
FLOW = {
    "loop": "enters the loop",
    "endloop": "ends an iteration of the loop",
    ("break", True): "stays in the loop",
    ("break", False): "leaves the loop",
    ("if", True): "is true: runs the following lines",
    ("if", False): "is false: skips the following lines",
}


class Cells(NamedTuple):
    """A group of register components; arrays of shape (steps, cells)."""

    values: np.ndarray
    wrote: np.ndarray  #: width of a frame around written components, or 0
    read: np.ndarray  #: width of a frame around read components, or 0


class BlockSteps:
    """All numbers and texts of the picture, from one pass over a recording.

    Attributes
    ----------
    k
        The k of A's columns, then of B's rows, after each step; -1 where none is complete.
    marks
        What a step fetches of A and B, reads of A and B, and writes of C: first row, first column,
        rows, columns; NaN for none. Shape (steps, 5, 4).
    groups
        The cells of the block, of B's rows and of A's columns.
    captions
        The text of each step.
    """

    def __init__(self, recording: Recording, block: Block) -> None:
        self.recording, self.block = recording, block
        self.steps = len(recording)
        self.updates = block.updates_at
        self.fetched = {step: fetch for step, *fetch in recording.fetches.tolist()}
        self.stored = dict(recording.stores.tolist())
        self.bits = recording.bits
        self.held = elements(recording)
        self.k = self._k()
        wrote = np.zeros(self.bits.shape, bool)
        step, register, component, _ = recording.writes.T
        wrote[step, register, component] = True
        read = np.zeros_like(wrote)
        for update in block.updates:
            read[update.step, *update.a] = read[update.step, *update.b] = True
        self.marks = self._marks()
        self.groups = [
            self._cells(list(group.values()), wrote, read)
            for group in (block.totals, block.b, block.a)
        ]
        self.captions = [self._caption(step) for step in range(self.steps)]
        if recording.is_complete:
            self.captions[-1] += f"\n{self._summary()}"

    def _k(self) -> np.ndarray:
        """Return the k of A's columns, then of B's rows, after each step."""
        block = self.block
        k = np.full((self.steps, 2, block.phases), -1)
        for matrix, (group, axis) in enumerate(zip((block.a, block.b), block.k_axis)):
            for phase in {key[1 - matrix] for key in group}:
                cells = [cell for key, cell in group.items() if key[1 - matrix] == phase]
                register, component = np.array(cells).T
                operand = self.held[:, register, component]
                places = operand[:, :, 1 + axis]
                # While some elements are still of the previous k, none is shown.
                is_whole = (operand[:, :, 0] == matrix) & (places == places[:, :1])
                k[:, matrix, phase] = np.where(is_whole.all(axis=1), places[:, 0], -1)
        return k.reshape(self.steps, -1)

    def _marks(self) -> np.ndarray:
        """Return each step's accesses to the matrices."""
        marks = np.full((self.steps, 5, 4), np.nan, np.float32)
        for step, (resource, x, y, _) in self.fetched.items():
            if resource in MATRICES:
                wide = self.recording.textures[resource][2]
                marks[step, resource] = y, x * wide, 1, wide
        for step, updates in self.updates.items():
            parts: list[list] = [
                [update.from_a for update in updates],
                [update.from_b for update in updates],
                [self.block.place(update) for update in updates],
            ]
            for mark, places in zip(marks[step, 2:], parts):
                rows, columns = ([place[axis] for place in places] for axis in (0, 1))
                first = min(rows), min(columns)
                mark[:] = *first, max(rows) + 1 - first[0], max(columns) + 1 - first[1]
        return marks

    def _cells(self, cells: list[tuple[int, int]], wrote: np.ndarray, read: np.ndarray) -> Cells:
        """Return a group of register components."""
        register, component = np.array(cells).T
        return Cells(
            self.bits[:, register, component].view(np.float32),
            3 * wrote[:, register, component],
            2 * read[:, register, component],
        )

    # -- words

    @property
    def where(self) -> str:
        """The work-item's block of C, as text."""
        rows, columns = self.block.rows, self.block.columns
        return f"C[{rows[0]}:{rows[-1] + 1}, {columns[0]}:{columns[-1] + 1}]"

    def _number(self, step: int, cell: tuple[int, int]) -> str:
        """Return a register component's value after a step, as text."""
        return format_short(float(self.bits[step, *cell].view(np.float32)))

    def _caption(self, step: int) -> str:
        """Return the caption of a step."""
        recording = self.recording
        line = recording.line(step)
        text = strip_comment(recording.program.lines[line - 1]).strip()
        head = f"Step {step + 1} of {recording.steps_text}, line {line}: `{text}` "
        return head + self._meaning(step)

    def _summary(self) -> str:
        """Return the totals of the run."""
        matrices = self.recording.textures
        fetched = [
            matrices[resource][2] for resource, *_ in self.fetched.values() if resource in MATRICES
        ]
        products = sum(map(len, self.updates.values()))
        stores = len(self.stored)
        uses = 2 * products / sum(fetched)
        parts = [
            f"{len(fetched)} fetches returned {sum(fetched)} numbers of A and B",
            f"each is used in {uses:.3g} of the {products} multiply-adds",
        ]
        if stores:
            parts.append(f"{stores} {plural('store', stores)}")
        return f"**{self.where} is complete**: {'; '.join(parts)}."

    def _meaning(self, step: int) -> str:
        """Return what the instruction of a step does."""
        recording = self.recording
        instruction = recording.program.body[recording.at[step]]
        if step in self.updates:
            return self._growth(step)
        if step in self.fetched:
            got = self._register(instruction, step)
            return f"fetches {self._texel(step)} into {instruction.dest.register}: {got}"
        if step in self.stored:
            source = instruction.sources[0].register
            return f"stores {source} to element {self.stored[step]} of global memory"
        if instruction.op.kind == "flow":
            return self._flow(instruction, step)
        if instruction.dest is not None and instruction.dest.register.kind == "r":
            written = str(instruction.dest).replace("_", "")
            return f"sets {written} to {self._register(instruction, step)}"
        return instruction.op.meaning

    def _growth(self, step: int) -> str:
        """Return by how much a step's multiply-adds increase the block."""
        updates = self.updates[step]
        c = _span([self.block.place(update) for update in updates], "C")
        a = _span([update.from_a for update in updates], "A")
        b = _span([update.from_b for update in updates], "B")
        total = _listed([self._number(step, update.total) for update in updates])
        return f"{c} grows by {a} times {b}, to {total}"

    def _texel(self, step: int) -> str:
        """Return what a step fetches."""
        resource, x, y, is_inside = self.fetched[step]
        name = MATRICES.get(resource, f"resource {resource}")
        if not is_inside:
            return f"a texel outside {name}, which reads 0,"
        width = self.recording.textures[resource][2]
        return f"{name}[{y}, {x * width}:{(x + 1) * width}]"

    def _flow(self, instruction: Instruction, step: int) -> str:
        """Return where execution continues."""
        at = self.recording.at
        is_next = step + 1 == len(at) or at[step + 1] == at[step] + 1
        flow = instruction.op.flow
        return FLOW.get((flow, is_next), FLOW.get(flow, "goes on"))

    def _register(self, instruction: Instruction, step: int) -> str:
        """Return the result of an instruction as text.

        It is read in the instruction's type; after a copy or a fetch, as floats.
        """
        dest, result = instruction.dest, instruction.op.result
        assert dest is not None and dest.register.index is not None
        bits = self.bits[step, dest.register.index]
        written = list(dest.written)
        is_copy = instruction.op.kind == "fetch" or instruction.opcode in ("mov", "cmov_logical")
        if result == "b" and not is_copy:
            return ", ".join("true" if bit else "false" for bit in bits[written])
        kinds: dict[str, type] = {"i": np.int32, "u": np.uint32}
        values = bits.view(kinds.get(result, np.float32))[written]
        texts = [format_short(float(value)) for value in values]
        return _listed(texts[:1] if len(set(texts)) == 1 else texts)

    def sums(self, first: int) -> Iterator[tuple[int, tuple[int, str]]]:
        """Yield (number, (frame, text)) for each element of the block: its sum from that frame on.

        ``first`` is the frame of the recording's first step.
        """
        cells = list(self.block.totals.values())
        names = {
            cell: f"**C[{i}, {j}]**, in r{cell[0]}.{'xyzw'[cell[1]]}"
            for (i, j), cell in self.block.totals.items()
        }
        for n, cell in enumerate(cells):
            yield n, (first, f"{names[cell]}: nothing added yet.")
        terms: dict[tuple[int, int], list[str]] = {cell: [] for cell in cells}
        for step, updates in self.updates.items():
            for update in updates:
                a, b = self._number(step, update.a), self._number(step, update.b)
                total = self._number(step, update.total)
                so_far = terms[update.total]
                so_far.append(f"{a} \N{MULTIPLICATION SIGN} {b}")
                written = " + ".join(so_far[-MAX_TERMS:])
                if len(so_far) > MAX_TERMS:
                    written = f"... + {written}"
                last = f"{_span([update.from_a], 'A')} times {_span([update.from_b], 'B')}"
                count = f"{len(so_far)} {plural('term', len(so_far))}"
                name = names[update.total]
                sentence = f"{name} = {written} = {total}, after {count}; the last is {last}."
                yield cells.index(update.total), (first + step, sentence)


def _listed(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


def _span(places: Iterable, name: str) -> str:
    """Return elements as text: ``A[3, 8:12]``."""
    rows, columns = zip(*((place[0], place[1]) for place in places))
    return f"{name}[{_range(rows)}, {_range(columns)}]"


def _range(numbers: Sequence[int]) -> str:
    """Return consecutive numbers as a slice."""
    first, last = min(numbers), max(numbers)
    return str(first) if first == last else f"{first}:{last + 1}"
