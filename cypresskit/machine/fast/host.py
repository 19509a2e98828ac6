"""The host as a target: a function that runs a launch, a work-item at a time.

    i32 kernel(ptr context, ptr counts, ptr spill, i64 budget, i64 first, i64 last)

runs batches from ``first`` up to ``last`` or until it has issued ``budget`` instructions, and
returns how it ended. Its frame is in ``host.ll``; here is what a work-item does. It runs to its
next stop: a fence, a wait of its wavefront (``in_step``), or its end; there it leaves its registers
in ``spill``, and takes them up when all have come. Work-items that come to different stops make the
kernel give up (DIVERGED). Every access is checked.

``context`` is a table of addresses and sizes; a *slot* is a place in it. ``counts`` has the
accesses outside of memory, then how often each run of instructions was executed.
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
from cypresskit.machine.fast.processor import FLAGGED, HostProcessor, flush_mode
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

FRAME = Template(Path(__file__).with_suffix(".ll").read_text(encoding="utf-8"))


def translate(program: Program, processor: HostProcessor) -> Translation:
    """Translate ``program`` for a host."""
    return HostTarget(program, processor).translation()


class HostTarget(Target):
    """The kernel of a program, as it is written."""

    def __init__(self, program: Program, processor: HostProcessor):
        doubles = any(i.op.double for i in program.body)
        self.mode = "soft" if doubles else processor.mode  # a flush mode would flush doubles, too
        super().__init__(program, Floats, self.mode == "soft")
        self.slots: dict[str, Vec] = {}
        self.literals: dict[int, Vec] = {}
        self.constants: dict[tuple[int, int, int], Vec] = {}
        self.segments: list[Sequence[int]] = []
        self.pixels = program.mode == "pixel"
        self.items = TILE * TILE if self.pixels else math.prod(program.group)
        self.lds: dict[int, int] = {}
        self.lds_bytes = 0
        for n, (_, size) in sorted(program.lds.items()):
            self.lds[n] = self.lds_bytes
            self.lds_bytes += -(-size // TEXEL) * TEXEL + TEXEL  # zeros follow
        self.steps = in_step(program)
        # By instruction, the number of its stop; 0 is the work-item's end
        stops = sorted(self.steps.waits | self.steps.fences)
        self._stops = {at: number for number, at in enumerate(stops, 1)}
        self.numbering = Numbering(program)
        self.live = liveness(program, self.numbering) if stops else []
        self.changed = self._changed() if stops else []
        for name in ("issued", "spent", "outside", "n", "begun", "stored"):
            self.ir.variable(name, "i64")
        self.ir.variable("loaded", "i32", 4)
        for name in ("status", "stopped", "met", "group_met"):
            self.ir.variable(name, "i32")
        self.translator = Translator(program, self)
        self.loops = [f"loop{at}" for at, i in enumerate(program.body) if i.op.flow == "loop"]
        for name in self.loops:
            self.ir.variable(name, "i64")
        # What a work-item leaves in ``spill``: its stop, how much it has issued, ...
        kept = [*self.translator.registers, *self.loops] if stops else []
        self.offsets = {name: TEXEL * k for k, name in enumerate(kept, 1)} | {"issued": 8}
        # ... and of each deferred store the place and the words
        deferred = sorted(self.steps.deferred)
        first = TEXEL * (1 + len(kept))
        self.put_off = {at: first + 2 * TEXEL * k for k, at in enumerate(deferred)}
        self.stored_words: dict[int, Sequence[int]] = {}
        self.state = first + 2 * TEXEL * len(deferred) if stops or deferred else 0
        self.batch = Vec(self.ir, "%batch", "i64")
        for name in ("lds", "report"):
            self._slot(name, "ptr")

    def translation(self) -> Translation:
        """Write the function; what the host must know of it."""
        ir = self.ir
        self._work_item()
        work_item = ir.take()
        for at in sorted(self.put_off):
            self._carry_out(at)
        carry_out = ir.take()
        waits = [f"i32 {self._stops[at]}, label %wavefront" for at in sorted(self.steps.waits)]
        text = FRAME.substitute(
            self._flush_mode(),
            declarations="\n".join(ir.declared.values()),
            variables="\n".join(ir.places()),
            entry="\n".join(ir.entry),
            work_item=work_item,
            carry_out=carry_out,
            waits=" ".join(waits),
            items=self.items,
            wavefront=WAVEFRONT,
            lds_bytes=self.lds_bytes,
            spill_bytes=self.items * self.state,
            next=NEXT,
            diverged=DIVERGED,
        )
        return self._translated(text)

    def _flush_mode(self) -> dict[str, str]:
        """How the function begins and ends, by the mode that flushes subnormals."""
        functions = flush_mode(self.mode)
        if not functions:
            plain = {"functions": "", "attributes": "", "flush": ""}
            return plain | {"restore": "  ret i32 %ended"}
        restore = ["  %underflowed = call i1 @restore(i64 %saved_mode)"]
        status = "%ended"
        if self.mode in FLAGGED:
            status = "%flagged"
            restore.append(f"  {status} = select i1 %underflowed, i32 {UNDERFLOWED}, i32 %ended")
        return {
            "functions": functions,
            "attributes": ' "denormal-fp-math-f32"="preserve-sign,preserve-sign"',
            "flush": "  %saved_mode = call i64 @flush()",
            "restore": "\n".join([*restore, f"  ret i32 {status}"]),
        }

    def _work_item(self) -> None:
        """The work-item ``n``, from where it stopped to its next stop."""
        ir = self.ir
        n = ir.get("n")
        self._identify(n)
        self.own = Vec(ir, "%spill", "ptr").at(n * self.state)
        if self._stops:
            labels = " ".join(f"i32 {k}, label %stop{at}" for at, k in self._stops.items())
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
        """Leave here, and go on when all have come."""
        ir = self.ir
        kept = {*self.loops, "issued"}
        for name in sorted(kept | self._names(self.live[at] & self.changed[at])):
            self.own.at(self.offsets[name]).store(ir.get(name))
        self._leave(self._stops[at])
        ir.lines.append(f"stop{at}:")
        for name in sorted(kept | self._names(self.live[at])):
            variable = ir.variables[name]
            ir.set(name, self.own.at(self.offsets[name]).load(variable.kind, variable.n))

    def _leave(self, stop: int) -> None:
        """End the work-item's turn at a stop, or for 0 at its end."""
        if self._stops:
            self.own.store(self.ir.const(stop, "i32"))
        self.ir.set("stopped", stop)
        self.ir.go("left")

    def _changed(self) -> list[int]:
        """The components that were written since the last stop, before each instruction."""
        every = self.numbering.bits((n, c) for n in self.program.registers for c in range(4))

        def after(at: int, since: int) -> int:
            i = self.program.body[at]
            since = 0 if at in self._stops else since
            if i.dest is None:
                return since
            return since | self.numbering.bits((i.dest.register.index, c) for c in defines(i))

        return forward(self.program, every, after)

    def _names(self, components: int) -> set[str]:
        """The variables of some components."""
        return {self.translator.places[key][0] for key in self.numbering.keys(components)}

    # Work-items

    def _identify(self, n: Vec) -> None:
        """Find out which work-item ``n`` is; pixels outside of the domain are passed over."""
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

    def input(self, name: str, component: int) -> Vec:
        if self.pixels:
            if component > 1:
                return self.literal((0, ONE)[component - 2])
            place = self.y if component else self.x
            return (place.cast("trunc", "i32").cast("sitofp", "float") + 0.5).bits("i32")
        within = self.ir.get("n")
        group = self.batch
        flat = {"vTidInGrpFlat": within, "vThreadGrpIdFlat": group, "vAbsTidFlat": self.item}
        if name in flat:
            return flat[name].cast("trunc", "i32")
        if component == 3:
            return self.ir.const(0, "i32")
        size = self.program.group
        inside = _unflattened(within, size, component)
        groups = [self._slot(f"groups_{axis}") for axis in "xy"]
        outside = _unflattened(group, groups, component)
        places = {"vTidInGrp": inside, "vThreadGrpId": outside}
        place = places.get(name) or outside * size[component] + inside
        return place.cast("trunc", "i32")

    # What never changes

    def _slot(self, name: str, kind: str = "i64") -> Vec:
        """A value of the context."""
        if name not in self.slots:
            context = Vec(self.ir, "%context", "ptr")
            self.slots[name] = self.ir.entered(name, context, 8 * len(self.slots), kind)
        return self.slots[name]

    def literal(self, bits: int) -> Vec:
        # Loaded from memory, so that LLVM can't constant-fold it in its own way
        if bits not in self.literals:
            table = self._slot("literals", "ptr")
            offset = 4 * len(self.literals)
            self.literals[bits] = self.ir.entered(f"l_{bits:08x}", table, offset, "i32")
        return self.literals[bits]

    def constant(self, buffer: int, element: int, component: int) -> Vec:
        # No kernel reads beyond the declared size, and a launch has an array of at least that size
        key = buffer, element, component
        if key not in self.constants:
            base = self._slot(f"cb{buffer}", "ptr")
            name = f"cb{buffer}_{element}_{component}"
            self.constants[key] = self.ir.entered(
                name, base, TEXEL * element + 4 * component, "i32"
            )
        return self.constants[key]

    # Memory

    def texel(self, i: Instruction, place: Sequence[Vec]) -> Vec:
        n = i.controls.resource
        limits = [self._slot(f"t{n}_{axis}") for axis in "wh"]
        inside = self.ir.const(1, "i1")
        index = []
        for value, limit, more in zip(place, limits, i.controls.aoffimmi):
            if i.opcode == "sample":
                floor = self.floats.taken(value.bits("float")).call("floor")
                wide = floor.cast("fpext", "double") + float(more)
                limit = limit.cast("sitofp", "double")
                inside = inside & wide.cmp("oge", 0.0) & wide.cmp("olt", limit)
                index.append(wide.cast("fptosi", "i64"))
            else:
                whole = value.cast("sext", "i64") + more
                inside = inside & whole.cmp("ult", limit)
                index.append(whole)
        number = index[0] if len(index) == 1 else index[1] * limits[0] + index[0]
        return self._load(self._slot(f"t{n}", "ptr").at(number << 4), inside)

    def _load(self, place: Vec, inside: Vec) -> Vec:
        """Four words, or zeros where they aren't inside, which is counted."""
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

    def load_global(self, element: Vec) -> Vec:
        inside = element.cmp("ult", self._slot("global_size"))
        return self._load(self._slot("global", "ptr").at(element << 4), inside)

    def store_global(self, at: int, element: Vec, words: Sequence[int], value: Vec) -> None:
        self._check(at, element.cmp("ult", self._slot("global_size")), element)
        self._store(at, self._slot("global", "ptr").at(element << 4), words, value)

    def load_lds(self, array: int, byte: Vec, words: Sequence[int]) -> Vec:
        size = self.program.lds[array][1]
        inside = (byte + 4 * max(words)).cmp("ult", size)
        self.ir.add("outside", (~inside).cast("zext", "i64"))
        place = self._lds_place(array, byte.call("umin", size))
        if words == (0,):
            return place.load("i32", 0, 4)
        return place.load("i32", 4, 4).pick(words)

    def store_lds(self, at: int, array: int, byte: Vec, words: Sequence[int], value: Vec) -> None:
        inside = (byte + 4 * max(words)).cmp("ult", self.program.lds[array][1])
        self._check(at, inside, byte)
        self._store(at, self._lds_place(array, byte), words, value)

    def _lds_place(self, array: int, byte: Vec) -> Vec:
        return self._slot("lds", "ptr").at(byte + self.lds[array])

    def store_output(self, n: int, words: Sequence[int], value: Vec) -> None:
        size = self._slot(f"o{n}_words")
        place = self._slot(f"o{n}", "ptr").at(self.item * size << 2)
        for k, c in enumerate(words):
            exists, on = self.ir.new("output"), self.ir.new("on")
            self.ir.branch(size.cmp("ugt", c), exists, on)
            self.ir.label(exists)
            place.at(4 * c).store(value[k], 4)
            self.ir.label(on)

    def _store(self, at: int, place: Vec, words: Sequence[int], value: Vec) -> None:
        """Store words from a place on; a deferred store only notes both."""
        if at not in self.put_off:
            return store_words(place, words, value)
        self.stored_words[at] = words
        note = self.own.at(self.put_off[at])
        note.store(place)
        note.at(TEXEL).store(value)

    def _carry_out(self, at: int) -> None:
        """Carry out a deferred store of the wavefront's work-items, up to ``n``."""
        ir = self.ir
        words = self.stored_words[at]
        again, noted, on = ir.new("carry_out"), ir.new("noted"), ir.new("on")
        ir.set("stored", ir.get("begun"))
        ir.label(again)
        note = Vec(ir, "%spill", "ptr").at(ir.get("stored") * self.state + self.put_off[at])
        place = note.load("ptr")
        ir.branch(place.cmp("ne", ir.const("null", "ptr")), noted, on)
        ir.label(noted)
        store_words(place, words, note.at(TEXEL).load("i32", len(words) if words[1:] else 0))
        note.store(ir.const("null", "ptr"))
        ir.label(on)
        ir.add("stored", 1)
        after = ir.new("carried_out")
        ir.branch(ir.get("stored").cmp("slt", ir.get("n")), again, after)
        ir.label(after)

    def _check(self, at: int, inside: Vec, place: Vec) -> None:
        """Give up unless a store is inside its memory."""
        outside, on = self.ir.new("outside"), self.ir.new("on")
        self.ir.branch(inside, on, outside)
        self.ir.label(outside)
        self._report(ELEMENT, place)
        self._give_up(FAILED, at)
        self.ir.label(on)

    # Counts, reports and ends

    def segment(self, instructions: Sequence[int]) -> None:
        self.segments.append(instructions)
        self._count(len(self.segments), self.ir.const(1, "i64"))
        self.ir.add("issued", len(instructions))

    def loop(self, at: int) -> None:
        self.ir.set(f"loop{at}", self.ir.get("issued"))

    def iteration(self, at: int) -> None:
        limit = self._slot("limit", "ptr").load("i64", volatile=True)  # 0 once it is to stop
        inside = self.ir.get("issued") - self.ir.get(f"loop{at}")
        endless, on = self.ir.new("endless"), self.ir.new("on")
        self.ir.branch(inside.cmp("ugt", limit), endless, on)
        self.ir.label(endless)
        self._give_up(ENDLESS, at)
        self.ir.label(on)

    def _count(self, counter: int, count: Vec) -> None:
        """counts[counter] += count"""
        place = Vec(self.ir, "%counts", "ptr").at(8 * counter)
        place.store(place.load("i64") + count)

    def _report(self, what: int, value: Vec) -> None:
        """Leave a value for the caller."""
        self._slot("report", "ptr").at(8 * what).store(value)

    def _give_up(self, status: int, at: int) -> None:
        """Leave the function at instruction ``at`` of the program's body."""
        self.ir.set("status", self.ir.const(status, "i32"))
        self._report(PLACE, self.ir.const(at, "i64"))
        self._report(ITEM, self.item)
        self.ir.go("exit")

    # The result

    def _translated(self, text: str) -> Translation:
        unused = 1 + len(self.segments)  # the counter of instructions that never run
        counters = [unused] * len(self.program.body)
        for number, segment in enumerate(self.segments, 1):
            for at in segment:
                counters[at] = number
        sizes = {
            "context": 8 * len(self.slots),
            "counts": 8 * (1 + unused),
            "spill": self.state * self.items,
            "report": 32,
            "lds": self.lds_bytes,
        }
        loads = any(x.register.kind == "g" for i in self.program.body for x in i.sources)
        return Translation(
            text,
            slots={name: at for at, name in enumerate(self.slots)},
            literals=tuple(self.literals),
            counters=counters,
            sizes=sizes,
            reads_global=loads or bool(self._stops),
        )


def _unflattened(number: Vec, size: Sequence[Vec | int], axis: int) -> Vec:
    """A coordinate of a number that counts along x first, then y, then z."""
    for across in size[:axis]:
        number = number.two("udiv", across)
    return number.two("urem", size[axis]) if axis < 2 else number
