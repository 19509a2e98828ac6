"""Write the function that runs a launch on this computer, one work-item at a time (``translate``).

    i32 kernel(ptr context, ptr counts, ptr spill, i64 budget, i64 first, i64 last)

runs batches from ``first`` up to ``last``, or until it has issued ``budget`` instructions, and
returns how it ended. ``host.ll`` has the loops over batches, wavefronts and work-items; this module
writes what one work-item does. A work-item runs to its next stop: a fence, a wait of its wavefront
(``in_step``), or its end. There it saves its registers in ``spill``, and it resumes when all have
arrived. If work-items arrive at different stops, the kernel gives up (DIVERGED). Addresses are
checked.

``context`` is a table of addresses and sizes. ``counts`` holds the
accesses outside of memory, then how often each segment of instructions was executed.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from string import Template

from cypresskit.devices import TILE, WAVEFRONT
from cypresskit.il import Instruction, Program
from cypresskit.il.bits import ONE
from cypresskit.il.dataflow import find_writers
from cypresskit.il.program import LETTERS
from cypresskit.machine.compiled.in_step import in_step
from cypresskit.machine.compiled.native_meaning import Floats
from cypresskit.machine.compiled.processor import HostProcessor, flush_functions
from cypresskit.machine.compiled.translation import (
    AT,
    DIVERGED,
    ELEMENT,
    ENDLESS,
    FAILED,
    ITEM,
    LINE,
    NEXT,
    TEXEL,
    Translation,
)
from cypresskit.machine.compiled.vec import Emitter, Vec

FAR = 2.0**40  # a coordinate outside of every texture
UNUSED = 1  # the counter of instructions that aren't executed; counter 0 counts accesses outside
NOTE = 2 * TEXEL  # bytes of a deferred store: its address, a mask of words, and the words
FRAME = Template(Path(__file__).with_suffix(".ll").read_text(encoding="utf-8"))


Lanes = dict[tuple[int, int], tuple[str, int]]  # (register, component): variable, lane


def register_lanes(program: Program) -> Lanes:
    """Return the variable that holds each component of a register, and its lane there."""
    written_by = find_writers(program)
    lanes = {}
    for number in program.registers:
        for c in range(4):
            together = [d for d in range(4) if written_by[number, d] == written_by[number, c]]
            name = f"r{number}{''.join(LETTERS[d] for d in together)}"
            lanes[number, c] = name, together.index(c)
    return lanes


class WorkItemWriter:
    """Writes the code of a work-item. ``ir`` takes the code, ``floats`` writes arithmetic. Values
    are words (i32) of one lane or of several; addresses count bytes (i64).
    """

    def __init__(self, program: Program, processor: HostProcessor):
        self.mode = processor.mode
        if any(i.op.double for i in program.body):
            self.mode = "soft"  # a flush mode would flush doubles, too
        self.program = program
        self.pixels = program.mode == "pixel"
        self.items = WAVEFRONT if self.pixels else program.group  # that start together
        self.ir = Emitter()
        self.floats = Floats(self.ir, self.mode == "soft")
        self.lds: dict[int, int] = {}  # the first byte of each LDS array
        self.lds_bytes = 0
        for n, size in sorted(program.lds.items()):
            self.lds[n] = self.lds_bytes
            self.lds_bytes += -(-size // TEXEL) * TEXEL + TEXEL  # zeros follow
        self.entries: dict[str, int] = {}
        self.fixed: dict[str, str] = {}  # the instructions that load a value, by its name
        self.literals: dict[int, int] = {}  # number in the table, by bits
        # Instructions that run one after another share a counter; ``else`` and ``endif`` don't run
        self.counters: list[int] = []
        number = UNUSED + 1
        for i in program.body:
            self.counters.append(UNUSED if i.op.flow in ("else", "endif") else number)
            number += bool(i.op.flow)
        self.batch = Vec(self.ir, "%batch", "i64")
        self.steps = in_step(program)
        # The number of each stop, by instruction; 0 is the end of the work-item
        stops = sorted(self.steps.waits | self.steps.fences)
        self.stops = {at: number for number, at in enumerate(stops, 1)}
        self.lanes = register_lanes(program)
        widths = Counter(name for name, _ in self.lanes.values())
        for name, count in widths.items():
            self.ir.variable(name, "i32", count if count > 1 else 0)
        self.registers = list(widths)
        self.loops = [f"loop{at}" for at, i in enumerate(program.body) if i.op.flow == "loop"]
        for name in ("issued", "spent", "outside", "n", "noted", *self.loops):
            self.ir.variable(name, "i64")
        self.ir.variable("loaded", "i32", 4)
        for name in ("status", "stopped"):
            self.ir.variable(name, "i32")
        # The layout of a work-item in ``spill``: its stop, its count of instructions, its variables
        saved = self.registers + self.loops
        self.offsets = {name: TEXEL * k for k, name in enumerate(saved, 1)} | {"issued": 8}
        # ... and its deferred stores
        first = self.first_note = TEXEL * (1 + len(saved))
        self.notes = {at: number for number, at in enumerate(sorted(self.steps.deferred))}
        self.spill_bytes = first + NOTE * len(self.notes)
        self.reads_global = bool(stops)
        self.floats.one = self.literal(ONE)
        self._entry("lds", "ptr")
        self._entry("report", "ptr")

    def translation(self) -> Translation:
        """Return the function's text, and what the host must know of it."""
        ir = self.ir
        waits = (f"i32 {self.stops[at]}, label %wavefront" for at in self.steps.waits)
        sizes = {
            "context": 8 * len(self.entries),
            "counts": 8 * (max(self.counters, default=0) + 1),
            "report": 32,
            "lds": self.lds_bytes,
            "spill": self.spill_bytes * self.items,
        }
        ends = accumulate(-(-size // LINE) * LINE for size in sizes.values())
        text = FRAME.substitute(
            functions=flush_functions(self.mode),
            declarations="\n".join(ir.declared.values()),
            variables="\n".join(ir.allocations()),
            entry="\n".join(self.fixed.values()),
            work_item="\n".join(ir.lines),
            first_note=self.first_note,
            note=NOTE,
            notes=len(self.notes),
            spill_bytes=self.spill_bytes,
            waits=" ".join(waits),
            items=self.items,
            wavefront=WAVEFRONT,
            lds_bytes=self.lds_bytes,
            next=NEXT,
            diverged=DIVERGED,
        )
        return Translation(
            text,
            entries=[*self.entries],
            literals=[*self.literals],
            counters=self.counters,
            places=dict(zip([*sizes, "end"], [0, *ends])),
            reads_global=self.reads_global,
        )

    # A work-item, from one stop to the next

    def begin_work_item(self) -> None:
        """Begin the code of a work-item: jump to where it stopped. Registers begin as 0."""
        ir = self.ir
        n = ir.get("n")
        self._identify(n)
        self.own = Vec(ir, "%spill", "ptr").at(n * self.spill_bytes)
        if self.stops:
            labels = " ".join(f"i32 {k}, label %stop{at}" for at, k in self.stops.items())
            ir.do(f"switch {self.own.load('i32')}, label %begin [ {labels} ]")
        ir.label("begin")
        ir.set("issued", 0)
        for name in self.registers:
            ir.set(name, 0)

    def end_work_item(self) -> None:
        """End the code of a work-item."""
        self.ir.add("spent", self.ir.get("issued"))
        self._leave(0)

    def begin(self, at: int) -> None:
        """Begin instruction ``at`` of the program's body; carry it out if it is a fence."""
        number = self.counters[at]
        if number > UNUSED and (at == 0 or self.program.body[at - 1].op.flow):
            counter = Vec(self.ir, "%counts", "ptr").at(8 * number)
            counter.store(counter.load("i64") + 1)
            self.ir.add("issued", self.counters.count(number))
        if at in self.stops:
            self._stop(at)
        if self.program.body[at].op.flow == "loop":
            self.ir.set(f"loop{at}", self.ir.get("issued"))

    def _stop(self, at: int) -> None:
        """Save the work-item; the code that follows resumes it when all have arrived."""
        ir = self.ir
        for name in self.offsets:
            self.own.at(self.offsets[name]).store(ir.get(name))
        self._leave(self.stops[at])
        ir.lines.append(f"stop{at}:")
        for name in self.offsets:
            variable = ir.variables[name]
            ir.set(name, self.own.at(self.offsets[name]).load(variable.kind, variable.n))

    def _leave(self, stop: int) -> None:
        """Continue with the next work-item, from a stop or from the end (0)."""
        if self.stops:
            self.own.store(self.ir.const(stop, "i32"))
        self.ir.set("stopped", stop)
        self.ir.go("left")

    # Identity

    def _identify(self, n: Vec) -> None:
        """Compute the identity of work-item ``n``; skip pixels outside of the domain."""
        ir = self.ir
        self.item = self.batch * self.items + n
        if not self.pixels:
            return
        across = self._entry("groups_x")
        self.pixel = [
            self.batch.two(part, across) * TILE + n.two(part, TILE) for part in ("urem", "udiv")
        ]
        x, y = self.pixel
        width = self._entry("width")
        self.item = y * width + x
        ir.branch(x.cmp("ult", width) & y.cmp("ult", self._entry("height")), "inside", "item_done")
        ir.label("inside")

    def input(self, name: str, component: int) -> Vec:
        """Return a word of an input register."""
        if name == "vWinCoord0" and component > 1:
            return self.literal((0, ONE)[component - 2])
        if name == "vAbsTidFlat":
            group = self.input("vThreadGrpIdFlat", component)
            return group * self.items + self.input("vTidInGrpFlat", component)
        if self.pixels:
            return (self.pixel[component].cast("sitofp", "float") + 0.5).bits("i32")
        number = self.batch if name == "vThreadGrpIdFlat" else self.ir.get("n")
        return number.cast("trunc", "i32")

    # Values that never change

    def _fixed(self, name: str, base: Vec, offset: int, kind: str) -> Vec:
        """Return a value that the entry block loads ``offset`` bytes after ``base``."""
        self.fixed[name] = (
            f"  %p_{name} = getelementptr i8, {base}, i64 {offset}\n"
            f"  %{name} = load {kind}, ptr %p_{name}"
        )
        return Vec(self.ir, f"%{name}", kind)

    def _entry(self, name: str, kind: str = "i64") -> Vec:
        """Return a value of the context."""
        at = self.entries.setdefault(name, len(self.entries))
        return self._fixed(name, Vec(self.ir, "%context", "ptr"), 8 * at, kind)

    def literal(self, bits: int) -> Vec:
        """Return a word that is written in the program."""
        # From memory, because LLVM folds constants by other rules
        number = self.literals.setdefault(bits, len(self.literals))
        return self._fixed(f"l_{bits:08x}", self._entry("literals", "ptr"), 4 * number, "i32")

    def constant(self, buffer: int, element: int, component: int) -> Vec:
        """Return a word of a constant buffer."""
        # No kernel reads beyond the declared size, and a launch has an array of at least that size
        base = self._entry(f"cb{buffer}", "ptr")
        name = f"cb{buffer}_{element}_{component}"
        return self._fixed(name, base, TEXEL * element + 4 * component, "i32")

    # Memory

    def texel(self, i: Instruction, place: Sequence[Vec]) -> Vec:
        """Return the four words that a fetch reads at some coordinates."""
        n = i.controls.resource
        sizes = [self._entry(f"t{n}_{axis}") for axis in "wh"]
        x, y = (self._whole(value) + more for value, more in zip(place, i.controls.aoffimmi))
        texel = self._entry(f"t{n}", "ptr").at((y * sizes[0] + x) * TEXEL)
        return self._load(texel, x.cmp("ult", sizes[0]) & y.cmp("ult", sizes[1]))

    def _whole(self, coordinate: Vec) -> Vec:
        """Return a coordinate, rounded down; one beyond every texture if it is NaN or far."""
        floor = self.floats.taken(coordinate.bits("float")).call("floor")
        # maxnum also replaces a NaN
        return floor.call("maxnum", -FAR).call("minnum", FAR).cast("fptosi", "i64")

    def _load(self, place: Vec, inside: Vec) -> Vec:
        """Load four words; outside, count the access and return zeros."""
        there, outside, on = (self.ir.new(name) for name in ("there", "outside", "on"))
        self.ir.branch(inside, there, outside)
        self.ir.label(outside)
        self.ir.add("outside", 1)
        self.ir.set("loaded", 0)
        self.ir.go(on)
        self.ir.label(there)
        self.ir.set("loaded", place.load("i32", 4, 4))
        self.ir.label(on)
        return self.ir.get("loaded")

    def _place(self, array: int | None, byte: Vec) -> Vec:
        """Return the address of a byte of an LDS array; of ``g[]`` for None."""
        if array is None:
            return self._entry("global", "ptr").at(byte)
        return self._entry("lds", "ptr").at(byte + self.lds[array])

    def _inside(self, array: int | None, byte: Vec, words: Sequence[int]) -> Vec:
        size = self._entry("global_bytes") if array is None else self.program.lds[array]
        return (byte + 4 * max(words)).cmp("ult", size)

    def load(self, array: int | None, byte: Vec, words: Sequence[int]) -> Vec:
        """Return words of an LDS array, of ``g[]`` for None, counted from ``byte``."""
        inside = self._inside(array, byte, words)
        if array is None:
            self.reads_global = True
            return self._load(self._place(array, byte), inside)
        self.ir.add("outside", (~inside).cast("zext", "i64"))
        place = self._place(array, byte.call("umin", self.program.lds[array]))
        if words == (0,):
            return place.load("i32", 0, 4)
        return place.load("i32", 4, 4).pick(words)

    def store(
        self, at: int, array: int | None, byte: Vec, words: Sequence[int], value: Vec
    ) -> None:
        """Store ``value`` for instruction ``at``; ``words`` are as in `load`."""
        ir = self.ir
        inside = ir.when(~self._inside(array, byte, words))
        self._report(ELEMENT, byte.two("ashr", 4) if array is None else byte)
        self._give_up(FAILED, at)
        ir.label(inside)
        place = self._place(array, byte)
        if at not in self.notes:
            return store_words(place, words, value)
        # The store is deferred: only note the place and the words
        number = self.notes[at]
        note = self.own.at(self.first_note + NOTE * number)
        note.store(place)
        note.at(8).store(ir.const(sum(1 << c for c in words), "i8"))
        store_words(note.at(TEXEL), words, value)
        ir.set("noted", ir.get("noted") | 1 << number % 64)

    def store_output(self, n: int, words: Sequence[int], value: Vec) -> None:
        """Store the lanes of ``value`` as some words of the work-item's texel of output ``n``."""
        size = self._entry(f"o{n}_words")
        place = self._entry(f"o{n}", "ptr").at(self.item * size << 2)
        for k, c in enumerate(words):
            after = self.ir.when(size.cmp("ugt", c))
            place.at(4 * c).store(value[k], 4)
            self.ir.label(after)

    # Counts, reports and ends

    def iteration(self, at: int) -> None:
        """Begin an iteration of the loop opened at ``at``."""
        inside = self.ir.get("issued") - self.ir.get(f"loop{at}")
        after = self.ir.when(inside.cmp("ugt", self._entry("limit")))
        self._give_up(ENDLESS, at)
        self.ir.label(after)

    def _report(self, what: int, value: Vec) -> None:
        """Give a value to the caller."""
        self._entry("report", "ptr").at(8 * what).store(value)

    def _give_up(self, status: int, at: int) -> None:
        """Leave the function at instruction ``at`` of the program's body."""
        self.ir.set("status", status)
        self._report(AT, self.ir.const(at, "i64"))
        self._report(ITEM, self.item)
        self.ir.go("exit")


def store_words(place: Vec, words: Sequence[int], value: Vec) -> None:
    """Store the lanes of ``value`` as words after ``place``."""
    if len(words) == 4:
        return place.store(value, 4)
    for k, c in enumerate(words):
        place.at(4 * c).store(value[k], 4)
