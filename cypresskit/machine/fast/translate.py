"""From IL to LLVM IR: one function that runs a range of *batches* (gangs of pixels, or workgroups)
of a launch.

    i32 kernel(ptr context, ptr counts, ptr spill, i64 budget, i64 first, i64 last)

``context`` holds addresses and sizes (``Translation.slots`` says where), ``counts`` how many
work-items passed each straight run of instructions, ``spill`` the registers of a workgroup between
barriers. Within a batch, *regions* without barriers run for one gang after another; where a program
has no barrier, the whole of it is one region. Control flow that holds barriers lies outside the
regions and must go one way for the whole group: where it doesn't, the kernel gives up (status
DIVERGED) and the explaining engine decides. A launch may be left between two batches, too, once
``budget`` instructions have been issued; the next batch is then reported.

Within a region all lanes take the same way: a branch is a branch of the host. A program in which
they may not is run one work-item at a time (see ``analysis``). Each straight run of instructions is
a *segment* with a counter of how many work-items passed it.
"""

import math
from dataclasses import dataclass

from cypresskit.il import Program
from cypresskit.machine.fast.access import lds_offsets
from cypresskit.machine.fast.batches import corner, gang, workgroup
from cypresskit.machine.fast.blocking import Blocking, countable
from cypresskit.machine.fast.context import DIVERGED, DONE, ENDLESS, ITEM, NEXT, UNDERFLOWED
from cypresskit.machine.fast.target import FLAGGED, Target
from cypresskit.machine.fast.vec import SIZES, Vec

LINE = 64  # bytes at whose multiples spilled registers lie


@dataclass(frozen=True)
class Translation:
    """IR text and how to talk to it: the context's slots by name, the literals in the order of
    their table, which of the counters counts each instruction of the program's body; and ``sizes``,
    the bytes of what a host thread owns. ``reads_global``: what global memory held before matters,
    also to the explaining engine, which decides where flow that holds barriers diverges.
    ``layouts``: the fields of textures' layouts, by their numbers.
    """

    text: str
    slots: dict[str, int]
    literals: tuple[int, ...]
    counters: list[int]
    sizes: dict[str, int]
    lanes: int
    reads_global: bool
    layouts: dict[str, tuple[int, int]]


def translate(program: Program, target: Target) -> Translation:
    """Translate ``program`` for a target."""
    return Translator(program, target).run()


class Translator(Blocking):
    """The whole function: batches, regions, control flow."""

    def run(self) -> Translation:
        """Translate the program."""
        for name, kind in (("issued", "i64"), ("spent", "i64"), ("status", "i32")):
            self.variable(name, kind)
        self.ir.label("batch_loop")
        self.ir.do("%batch = phi i64 [%first, %entry], [%next_batch, %batch_next]")
        self.ir.branch(self.batch.cmp("slt", Vec(self.ir, "%last", "i64")), "batch_body", "exit")
        self.ir.label("batch_body")
        self.where = (corner if self.program.mode == "pixel" else workgroup)(self, self.batch)
        if self.uniformity.barriers:
            self._group(0, len(self.body))
        else:
            self._region(0, len(self.body), None)
        self.ir.label("batch_next")
        self.ir.do("%next_batch = add i64 %batch, 1")
        self.report(NEXT, Vec(self.ir, "%next_batch", "i64"))
        self.add("spent", self.load("issued") * self.gangs)
        self.ir.branch(
            self.load("spent").cmp("ugt", Vec(self.ir, "%budget", "i64")), "exit", "batch_loop"
        )
        self.ir.label("exit")
        status = self.load("status")
        if self.flushes:
            underflowed = self.ir.op("call i1 @restore(i64 %saved_mode)", "i1")
            if self.mode in FLAGGED:
                status = underflowed.select(self.ir.const(UNDERFLOWED, "i32"), status)
        self.ir.do(f"ret {status}")
        return self._translation()

    def _translation(self) -> Translation:
        size = -(-self.size // LINE) * LINE
        self.ir.declared["spill_size"] = f"@spill_size = private constant i64 {size}"
        head = [
            f"  %{name} = alloca {kind if not n else f'<{n} x {kind}>'}, align 64"
            for name, (kind, n) in self.variables.items()
        ]
        flush = ' "denormal-fp-math-f32"="preserve-sign,preserve-sign"' if self.flushes else ""
        text = "\n".join(
            [
                self.flushes,
                *sorted(self.ir.declared.values()),
                (
                    "define i32 @kernel(ptr noalias %context, ptr noalias %counts, ptr noalias"
                    f" %spill, i64 %budget, i64 %first, i64 %last){flush} {{"
                ),
                "entry:",
                *head,
                "  %saved_mode = call i64 @flush()" if self.flushes else "",
                *self.entry,
                (
                    f"  store i32 {DONE}, ptr %status\n  store i64 0, ptr %spent\n  br label"
                    " %batch_loop"
                ),
                *self.ir.lines,
                "}",
            ]
        )
        counted = {at: 1 + n for n, segment in enumerate(self.segments) for at in segment}
        never = 1 + len(self.segments)
        sizes = {
            "context": 8 * len(self.slots),
            "counts": 8 * (1 + never),
            "spill": size * self.gangs,
            "report": 32,
        }
        return Translation(
            text,
            {name: at for at, name in enumerate(self.slots)},
            tuple(self.literals),
            [counted.get(at, never) for at in range(len(self.body))],
            sizes | {"lds": lds_offsets(self.program.lds)[-1]},
            self.lanes,
            bool(self.uniformity.group_level)
            or any(x.register.kind == "g" for i in self.body for x in i.sources),
            {str(n): (layout.step, layout.lanes) for n, layout in self.layouts.items()},
        )

    # Regions

    def _region(self, start: int, stop: int, condition: int | None) -> None:
        """Instructions start .. stop - 1 for every gang of the batch. With ``condition``, the flow
        instruction there is evaluated at the end: variables any_true and any_false then tell what
        the work-items found.
        """
        if start == stop and condition is None and start:
            return
        self.touched = {}
        head, body, done = (self.ir.new(name) for name in ("gangs", "gang", "gangs_done"))
        for name in ("any_true", "any_false") if condition is not None else ():
            self.store(self.variable(name, "i1"), 0)
        number, spill = self.ir.const(0, "i64"), self.spill
        if (
            self.gangs > 1
        ):  # no loop for a single gang: LLVM would hoist everything out of it and spill it
            counter = self.variable(f"gang_at{self.ir.names}", "i64")
            self.store(counter, 0)
            self.ir.label(head)
            number = self.load(counter)
            self.ir.branch(number.cmp("ult", self.gangs), body, done)
            self.ir.label(body)
            spill = spill.at(number * Vec(self.ir, "@spill_size", "ptr").load("i64"))
        self.gang = gang(self, self.batch, self.where, number, spill)
        opening = len(self.ir.lines)
        self.modified = set()
        if (
            self.uniformity.barriers and not start
        ):  # registers that start at zero, wherever they are read first
            self.modified = {self.cell_variable(self.analysis.cell(web)) for web in self.webs.entry}
        self.straight(start, stop)
        if condition is not None:
            self._test(condition)
        self._save(condition if condition is not None else stop - 1)
        if self.gangs > 1:
            self.add(counter, 1)
            self.ir.go(head)
            self.ir.label(done)
        closing, self.ir.lines = self.ir.lines[opening:], self.ir.lines[:opening]
        self._restore(start)
        self.ir.lines += closing

    def _test(self, condition: int) -> None:
        """Add the gang's votes on a branch of the whole group to any_true and any_false."""
        self.count_segment((condition,))
        value = self.condition(condition)
        for name, found in (("any_true", value), ("any_false", ~value)):
            self.store(name, self.load(name) | found.any())

    def _live_cells(self, at: int, live: int) -> set[str]:
        return {self.analysis.cell(web).name for web in self.webs.between(at, live)}

    def _kept_at(self, name: str) -> Vec:
        """Where a cell is kept between regions: all cells of the same part of a register in one
        place, since no two of them are live at once, and the whole should fit the host's first
        cache.
        """
        cell = self.touched[name]
        if cell.part not in self.offsets:
            bytes = max(cell.n, 1) * SIZES[cell.kind] // 8
            self.offsets[cell.part] = -(-self.size // bytes) * bytes
            self.size = self.offsets[cell.part] + bytes
        return self.gang.spill.at(self.offsets[cell.part])

    def _restore(self, start: int) -> None:
        """Give every cell of the region its value at the start: what was kept, or zero."""
        webs = self.webs
        between = self.uniformity.barriers and start
        kept = self._live_cells(start - 1, webs.live[start]) if between else set()
        first = {self.analysis.cell(web).name for web in webs.entry} if not start else set()
        for name in self.touched:
            kind, n = self.variables[name]
            if name in kept:
                self.store(name, self._kept_at(name).load(kind, n))
            elif (
                name in first
            ):  # a register that is read before it is written: a zero that LLVM doesn't know
                zero = self.literal(0)
                self.store(name, (zero.cast("zext", "i64") if kind == "i64" else zero).lanes(n))
            else:
                self.store(name, 0)
        if between:
            self.store("issued", self.gang.spill.load("i64"))
        else:
            self.store("issued", 0)

    def _save(self, last: int) -> None:
        if not self.uniformity.barriers:
            return
        live = self._live_cells(last, self.webs.live_after(last))
        for name in self.touched:
            if name in live and name in self.modified:
                self._kept_at(name).store(self.load(name))
        self.gang.spill.store(self.load("issued"))

    # Control flow that holds barriers

    def _group(self, start: int, stop: int) -> None:
        """Regions and the flow between them, for the whole group."""
        begun = start
        for at in range(start, stop):
            flow = self.body[at].op.flow
            barrier = self.uniformity.is_barrier(at)
            if not barrier and not (flow and at in self.group_flow):
                continue
            tested = flow in ("if", "break", "continue")
            through = barrier or flow in ("loop", "endloop")  # part of the region before it
            self._region(begun, at + through, at if tested else None)
            begun = at + 1
            if tested:
                self._decide(at)
            if flow:
                self.follow(at)
        self._region(begun, stop, None)

    def _decide(self, at: int) -> None:
        apart, together = self.ir.new("apart"), self.ir.new("together")
        self.ir.branch(self.load("any_true") & self.load("any_false"), apart, together)
        self.ir.label(apart)
        self.give_up(DIVERGED, self.ir.const(at, "i64"))
        self.ir.label(together)

    # Control flow within a region

    def straight(self, start: int, stop: int, fresh: bool = True) -> None:
        """Translate instructions start .. stop - 1; flow at group level is left to the caller.
        ``fresh``: a segment begins at the first.
        """
        at = start
        while at < stop:
            i = self.body[at]
            if fresh:
                self.count_segment(self._segment(at, stop))
            fresh = bool(i.op.flow)
            if not fresh:
                at = self.translate(at, stop)
                continue
            if i.op.flow == "loop" and at != start and countable(self.analysis, at):
                self._counted_loop(at, self.program.matching[at] + 1)
                at = self.program.matching[at]
            elif at not in self.group_flow:
                self.follow(at)
            at += 1

    def _counted_loop(self, at: int, end: int) -> None:
        """Translate a countable loop that ends before ``end``: strips, then as it stands."""
        begun, first = f"before{at}", len(self.segments)
        self.store(self.variable(begun, "i64"), self.load("issued"))

        def general() -> list[tuple[int, int]]:
            self.straight(at, end, False)
            return [(1 + n, len(self.segments[n])) for n in range(first, len(self.segments))]

        self.run_blocked(at, general)

    def _segment(self, at: int, stop: int) -> tuple[int, ...]:
        """The instructions from ``at`` that run together, the flow instruction at their end
        included.
        """
        end = next((k + 1 for k in range(at, stop) if self.body[k].op.flow), stop)
        return tuple(k for k in range(at, end) if self.body[k].op.flow not in ("else", "endif"))

    def count_segment(self, segment: tuple[int, ...]) -> None:
        """Count that a segment is passed."""
        if not segment:
            return
        self.add_count(1 + len(self.segments), self.gang.count)
        self.segments.append(segment)
        self.add("issued", len(segment))

    def follow(self, at: int) -> None:
        """Translate a flow instruction."""
        getattr(self, f"visit_{self.body[at].op.flow}")(at)

    # Branches

    def _decision(self, at: int) -> Vec:
        """i1: whether the branch is taken, by all lanes or, where it holds a barrier, by the whole
        group.
        """
        return self.load("any_true") if at in self.group_flow else self.condition(at).lanes(0)

    def condition(self, at: int) -> Vec:
        """i1 of a flow instruction: a scalar, or one per lane; set where it has none."""
        i = self.body[at]
        if not i.sources:
            return self.ir.const(1, "i1")
        self.read_global(at)
        values = [self.component(at, n, 0) for n in range(len(i.sources))]
        if i.controls.relop:
            a, b = values[0].both(values[1])
            return self.floats.compare(i.controls.relop, a.bits("float"), b.bits("float"))
        return values[0].cmp(i.op.relation, 0)

    # A label at7 begins what stands at instruction 7, behind7 what follows it.

    def visit_if(self, at: int) -> None:
        yes = self.ir.new("then")
        self.ir.branch(self._decision(at), yes, f"at{self.program.matching[at]}")
        self.ir.label(yes)

    def visit_else(self, at: int) -> None:
        self.ir.go(f"at{self.program.matching[at]}")
        self.ir.label(f"at{at}")

    def visit_endif(self, at: int) -> None:
        self.ir.label(f"at{at}")

    def visit_loop(self, at: int) -> None:
        if f"before{at}" not in self.variables:  # else it began with strips
            self.store(self.variable(f"before{at}", "i64"), self._issued(at))
        self.ir.label(f"at{at}")
        self._poll(at)

    def visit_break(self, at: int) -> None:
        end, stay = self.program.matching[self.program.matching[at]], self.ir.new("stay")
        self.ir.branch(
            self._decision(at),
            f"behind{end}" if self.body[at].op.flow == "break" else f"at{end}",
            stay,
        )
        self.ir.label(stay)

    visit_continue = visit_break

    def visit_endloop(self, at: int) -> None:
        self.ir.label(f"at{at}")
        self.ir.go(f"at{self.program.matching[at]}")
        self.ir.label(f"behind{at}")

    # Programs that don't end

    def _issued(self, at: int) -> Vec:
        """The count of instructions that ends runaway programs. A loop with barriers reads the
        first gang's.
        """
        return self.spill.load("i64") if at in self.group_flow else self.load("issued")

    def _poll(self, at: int) -> None:
        """At the head of a loop: stop if told, or if it has run for too long, by the first
        work-item here.
        """
        e = self.ir
        stop, on = e.new("endless"), e.new("go")
        e.branch((self._issued(at) - self.load(f"before{at}")).cmp("ugt", self.bound()), stop, on)
        e.label(stop)
        if at in self.group_flow:
            item = self.batch * math.prod(self.program.group)
        else:
            item = self.gang.item[0].cast("zext", "i64")
        self.report(ITEM, item)
        self.give_up(ENDLESS, e.const(at, "i64"))
        e.label(on)
