"""Translate a program for this computer: a function that runs a launch, one work-item at a time.

    i32 kernel(ptr context, ptr counts, ptr spill, i64 budget, i64 first, i64 last)

runs batches from ``first`` up to ``last``, or until it has issued ``budget`` instructions, and
returns how it ended. ``host.ll`` has the loops over batches, wavefronts and work-items; this module
writes what one work-item does. A work-item runs to its next stop: a fence, a wait of its wavefront
(``in_step``), or its end. There it saves its registers in ``spill``, and it resumes when all have
arrived. If work-items arrive at different stops, the kernel gives up (DIVERGED). Every access is
checked.

``context`` is a table of addresses and sizes, its entries are called slots. ``counts`` holds the
accesses outside of memory, then how often each segment of instructions was executed.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from string import Template

from cypresskit.il import Instruction, Program
from cypresskit.il.bits import ONE
from cypresskit.il.dataflow import Numbering, defines, forward, liveness
from cypresskit.machine.fast.in_step import in_step
from cypresskit.machine.fast.native_meaning import Floats
from cypresskit.machine.fast.processor import FLAGGED, HostProcessor, flush_functions
from cypresskit.machine.fast.target import Target, store_words
from cypresskit.machine.fast.translate import Translator
from cypresskit.machine.fast.translation import (
    DIVERGED,
    ELEMENT,
    ENDLESS,
    FAILED,
    ITEM,
    NEXT,
    PLACE,
    TEXEL,
    UNDERFLOWED,
    Translation,
)
from cypresskit.machine.fast.vec import Vec
from cypresskit.machine.wavefront import TILE, WAVEFRONT

FAR = 2.0**40  # a coordinate outside of every texture
NOTE = 2 * TEXEL  # bytes of a deferred store: its address, its words
FRAME = Template(Path(__file__).with_suffix(".ll").read_text(encoding="utf-8"))


def translate(program: Program, processor: HostProcessor) -> Translation:
    """Translate ``program`` for a host."""
    return HostTarget(program, processor).translation()


class HostTarget(Target):
    """This computer."""

    def __init__(self, program: Program, processor: HostProcessor):
        doubles = any(i.op.double for i in program.body)
        self.mode = "soft" if doubles else processor.mode  # a flush mode would flush doubles, too
        super().__init__(program, Floats, self.mode == "soft")
        self.context_slots: list[str] = []
        self.literals: list[int] = []
        self.segments: list[Sequence[int]] = []
        self.pixels = program.mode == "pixel"
        self.items = TILE * TILE if self.pixels else math.prod(program.group)
        self.batch = Vec(self.ir, "%batch", "i64")
        self.steps = in_step(program)
        # The number of each stop, by instruction; 0 is the end of the work-item
        stops = sorted(self.steps.waits | self.steps.fences)
        self.stops = {at: number for number, at in enumerate(stops, 1)}
        self.numbering = Numbering(program)
        self.live = liveness(program, self.numbering) if stops else []
        self.changed = self._changed() if stops else []
        self.translator = Translator(program, self)
        self.loops = [f"loop{at}" for at, i in enumerate(program.body) if i.op.flow == "loop"]
        for name in ("issued", "spent", "outside", "n", "begun", "stored", "noted", *self.loops):
            self.ir.variable(name, "i64")
        for name in ("status", "stopped", "met", "group_met"):
            self.ir.variable(name, "i32")
        self.ir.variable("loaded", "i32", 4)
        # The layout of a work-item in ``spill``: its stop, its count of instructions, its variables
        saved = sorted({name for at in stops for name in self._names(self.live[at])})
        saved += self.loops if stops else []
        self.offsets = {name: TEXEL * k for k, name in enumerate(saved, 1)} | {"issued": 8}
        # ... and its deferred stores
        first = TEXEL * (1 + len(saved))
        self.notes = {at: first + NOTE * k for k, at in enumerate(sorted(self.steps.deferred))}
        self.stored_words: dict[int, Sequence[int]] = {}
        self.spill_bytes = first + NOTE * len(self.notes) if stops or self.notes else 0
        for name in ("lds", "report"):
            self._slot(name, "ptr")
        self.floats.one = self.literal(ONE)

    def translation(self) -> Translation:
        """Write the function. Return its text and what the host must know of it."""
        ir = self.ir
        self._work_item()
        work_item = ir.take()
        for at in self.notes:
            self._carry_out(at)
        ir.set("noted", 0)
        carry_out = ir.take()
        waits = [f"i32 {self.stops[at]}, label %wavefront" for at in sorted(self.steps.waits)]
        flushes = ' "denormal-fp-math-f32"="preserve-sign,preserve-sign"'
        text = FRAME.substitute(
            functions=flush_functions(self.mode),
            attributes="" if self.mode == "soft" else flushes,
            flagged=str(self.mode in FLAGGED).lower(),
            underflowed=UNDERFLOWED,
            declarations="\n".join(ir.declared.values()),
            variables="\n".join(ir.allocations()),
            entry="\n".join(ir.entry),
            work_item=work_item,
            carry_out=carry_out,
            waits=" ".join(waits),
            items=self.items,
            wavefront=WAVEFRONT,
            lds_bytes=self.lds_bytes,
            next=NEXT,
            diverged=DIVERGED,
        )
        return self._translated(text)

    def _translated(self, text: str) -> Translation:
        unused = 1 + len(self.segments)  # the counter of instructions that never run
        counters = [unused] * len(self.program.body)
        for number, segment in enumerate(self.segments, 1):
            for at in segment:
                counters[at] = number
        loads = any(x.register.kind == "g" for i in self.program.body for x in i.sources)
        return Translation(
            text,
            slots={name: at for at, name in enumerate(self.context_slots)},
            literals=tuple(self.literals),
            counters=counters,
            sizes={
                "context": 8 * len(self.context_slots),
                "counts": 8 * (1 + unused),
                "spill": self.spill_bytes * self.items,
                "report": 32,
                "lds": self.lds_bytes,
            },
            reads_global=loads or bool(self.stops),
        )

    # A work-item, from one stop to the next

    def _work_item(self) -> None:
        ir = self.ir
        n = ir.get("n")
        self._identify(n)
        self.own = Vec(ir, "%spill", "ptr").at(n * self.spill_bytes)
        if self.stops:
            labels = " ".join(f"i32 {k}, label %stop{at}" for at, k in self.stops.items())
            ir.do(f"switch {self.own.load('i32')}, label %begin [ {labels} ]")
        ir.label("begin")
        ir.set("issued", 0)
        self.translator.work_item()
        ir.add("spent", ir.get("issued"))
        self._leave(0)

    def begin(self, at: int) -> None:
        if at in self.steps.waits:
            self._stop(at)

    def fence(self, at: int) -> None:
        if at in self.steps.fences:
            self._stop(at)

    def _stop(self, at: int) -> None:
        """Save the work-item; the code that follows resumes it when all have arrived."""
        ir = self.ir
        always = {*self.loops, "issued"}
        for name in sorted(always | self._names(self.live[at] & self.changed[at])):
            self.own.at(self.offsets[name]).store(ir.get(name))
        self._leave(self.stops[at])
        ir.lines.append(f"stop{at}:")
        for name in sorted(always | self._names(self.live[at])):
            variable = ir.variables[name]
            ir.set(name, self.own.at(self.offsets[name]).load(variable.kind, variable.n))

    def _leave(self, stop: int) -> None:
        """Go on to the next work-item, from a stop or from the end (0)."""
        if self.stops:
            self.own.store(self.ir.const(stop, "i32"))
        self.ir.set("stopped", stop)
        self.ir.go("left")

    def _changed(self) -> list[int]:
        """Return the components written since the last stop, before each instruction."""
        every = self.numbering.bits((n, c) for n in self.program.registers for c in range(4))

        def after(at: int, since: int) -> int:
            i = self.program.body[at]
            since = 0 if at in self.stops else since
            if i.dest is None:
                return since
            return since | self.numbering.bits((i.dest.register.index, c) for c in defines(i))

        return forward(self.program, every, after)

    def _names(self, components: int) -> set[str]:
        """Return the variables of some components."""
        return {self.translator.slots[key][0] for key in self.numbering.keys(components)}

    # Identity

    def _identify(self, n: Vec) -> None:
        """Compute the identity of work-item ``n``; skip pixels outside of the domain."""
        ir = self.ir
        if not self.pixels:
            self.item = self.batch * self.items + n
            return
        width, tiles = self._slot("width"), self._slot("tiles")
        self.x = self.batch.two("urem", tiles) * TILE + n.two("urem", TILE)
        self.y = self.batch.two("udiv", tiles) * TILE + n.two("udiv", TILE)
        self.item = self.y * width + self.x
        inside = self.x.cmp("ult", width) & self.y.cmp("ult", self._slot("height"))
        ir.branch(inside, "inside", "item_done")
        ir.label("inside")

    def identity(self, name: str, component: int) -> Vec:
        if self.pixels:
            place = self.y if component else self.x
            return (place.cast("trunc", "i32").cast("sitofp", "float") + 0.5).bits("i32")
        number = self.ir.get("n")
        size: Sequence[int | Vec] = self.program.group
        if name.startswith("vThreadGrp"):
            number = self.batch
            size = [self._slot(f"groups_{axis}") for axis in "xy"]
        if not name.endswith("Flat"):
            for across in size[:component]:
                number = number.two("udiv", across)
            number = number.two("urem", size[component]) if component < 2 else number
        return number.cast("trunc", "i32")

    # Values that are loaded when the function begins

    def _slot(self, name: str, kind: str = "i64") -> Vec:
        """Return a value of the context."""
        if name not in self.context_slots:
            self.context_slots.append(name)
        offset = 8 * self.context_slots.index(name)
        return self.ir.entered(name, Vec(self.ir, "%context", "ptr"), offset, kind)

    def literal(self, bits: int) -> Vec:
        # From memory, because LLVM folds constants by other rules
        if bits not in self.literals:
            self.literals.append(bits)
        offset = 4 * self.literals.index(bits)
        return self.ir.entered(f"l_{bits:08x}", self._slot("literals", "ptr"), offset, "i32")

    def constant(self, buffer: int, element: int, component: int) -> Vec:
        # No kernel reads beyond the declared size, and a launch has an array of at least that size
        offset = TEXEL * element + 4 * component
        base = self._slot(f"cb{buffer}", "ptr")
        return self.ir.entered(f"cb{buffer}_{element}_{component}", base, offset, "i32")

    # Memory

    def texel(self, i: Instruction, place: Sequence[Vec]) -> Vec:
        n = i.controls.resource
        inside = self.ir.const(1, "i1")
        texel = self._slot(f"t{n}", "ptr")
        pitches = self.ir.const(TEXEL, "i64"), self._slot(f"t{n}_pitch")
        for axis, value, more, pitch in zip("wh", place, i.controls.aoffimmi, pitches):
            if i.opcode == "sample":
                floor = self.floats.taken(value.bits("float")).call("floor")
                above = floor.cmp("ogt", -FAR).select(floor, -FAR)  # also for NaN
                value = above.cmp("olt", FAR).select(above, FAR).cast("fptosi", "i64")
            whole = value.cast("sext", "i64") + more
            inside = inside & whole.cmp("ult", self._slot(f"t{n}_{axis}"))
            texel = texel.at(whole * pitch)
        return self._load(texel, inside)

    def _load(self, place: Vec, inside: Vec) -> Vec:
        """Load four words; outside, use zeros and count the access."""
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

    def global_place(self, element: Vec) -> Vec:
        return self._slot("global", "ptr").at(element << 4)

    def load_global(self, element: Vec) -> Vec:
        inside = element.cmp("ult", self._slot("global_size"))
        return self._load(self.global_place(element), inside)

    def store_global(self, at: int, element: Vec, words: Sequence[int], value: Vec) -> None:
        self._check(at, element.cmp("ult", self._slot("global_size")), element)
        super().store_global(at, element, words, value)

    def lds_place(self, array: int, byte: Vec) -> Vec:
        return self._slot("lds", "ptr").at(byte + self.lds[array])

    def _in_lds(self, array: int, byte: Vec, words: Sequence[int]) -> Vec:
        return (byte + 4 * max(words)).cmp("ult", self.program.lds[array][1])

    def load_lds(self, array: int, byte: Vec, words: Sequence[int]) -> Vec:
        outside = ~self._in_lds(array, byte, words)
        self.ir.add("outside", outside.cast("zext", "i64"))
        return super().load_lds(array, byte.call("umin", self.program.lds[array][1]), words)

    def store_lds(self, at: int, array: int, byte: Vec, words: Sequence[int], value: Vec) -> None:
        self._check(at, self._in_lds(array, byte, words), byte)
        super().store_lds(at, array, byte, words, value)

    def store_output(self, n: int, words: Sequence[int], value: Vec) -> None:
        size = self._slot(f"o{n}_words")
        place = self._slot(f"o{n}", "ptr").at(self.item * size << 2)
        for k, c in enumerate(words):
            after = self.ir.when(size.cmp("ugt", c))
            place.at(4 * c).store(value[k], 4)
            self.ir.label(after)

    def store(self, at: int, place: Vec, words: Sequence[int], value: Vec) -> None:
        # If the store is deferred, only note the place and the words
        if at not in self.notes:
            return store_words(place, words, value)
        self.stored_words[at] = words
        note = self.own.at(self.notes[at])
        note.store(place)
        note.at(TEXEL).store(value)
        self.ir.set("noted", self.ir.get("noted") | self._noted_bit(at))

    def _noted_bit(self, at: int) -> int:
        """Return the bit of ``noted`` that is set if the deferred store ``at`` may have a note."""
        return 1 << self.notes[at] // NOTE % 63

    def _carry_out(self, at: int) -> None:
        """Carry out a deferred store of the wavefront's work-items, from ``begun`` to ``n``."""
        ir = self.ir
        words = self.stored_words[at]
        after = ir.when((ir.get("noted") & self._noted_bit(at)).cmp("ne", 0))
        ir.set("stored", ir.get("begun"))
        again = ir.new("stored")
        ir.label(again)
        note = Vec(ir, "%spill", "ptr").at(ir.get("stored") * self.spill_bytes + self.notes[at])
        place = note.load("ptr")
        nothing = ir.const("null", "ptr")
        carried_out = ir.when(place.cmp("ne", nothing))
        store_words(place, words, note.at(TEXEL).load("i32", len(words) if words[1:] else 0))
        note.store(nothing)
        ir.label(carried_out)
        ir.add("stored", 1)
        ir.branch(ir.get("stored").cmp("slt", ir.get("n")), again, after)
        ir.label(after)

    def _check(self, at: int, inside: Vec, place: Vec) -> None:
        """Give up if a store is outside of its memory."""
        after = self.ir.when(~inside)
        self._report(ELEMENT, place)
        self._give_up(FAILED, at)
        self.ir.label(after)

    # Counts, reports and ends

    def segment(self, instructions: Sequence[int]) -> None:
        self.segments.append(instructions)
        count = Vec(self.ir, "%counts", "ptr").at(8 * len(self.segments))
        count.store(count.load("i64") + 1)
        self.ir.add("issued", len(instructions))

    def loop(self, at: int) -> None:
        self.ir.set(f"loop{at}", self.ir.get("issued"))

    def iteration(self, at: int) -> None:
        limit = self._slot("limit", "ptr").load("i64", volatile=True)  # 0 once it is to stop
        inside = self.ir.get("issued") - self.ir.get(f"loop{at}")
        after = self.ir.when(inside.cmp("ugt", limit))
        self._give_up(ENDLESS, at)
        self.ir.label(after)

    def _report(self, what: int, value: Vec) -> None:
        """Give a value to the caller."""
        self._slot("report", "ptr").at(8 * what).store(value)

    def _give_up(self, status: int, at: int) -> None:
        """Leave the function at instruction ``at`` of the program's body."""
        self.ir.set("status", status)
        self._report(PLACE, self.ir.const(at, "i64"))
        self._report(ITEM, self.item)
        self.ir.go("exit")
