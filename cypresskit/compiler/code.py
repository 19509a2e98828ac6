"""Compiled code: the chip's instructions for a kernel, and what can be told of them."""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from cypresskit.compiler.assembly import Control
from cypresskit.compiler.card import KernelCard, turn_clocks
from cypresskit.compiler.isa import fewest_bundles
from cypresskit.compiler.listing import listing
from cypresskit.devices import Device
from cypresskit.il import Program
from cypresskit.tables import folded


@dataclass(frozen=True, eq=False)
class Code:
    """A compiled kernel: ``gprs`` registers per work-item, ``temporaries`` T registers used, and ``source_gprs``, the
    registers that the innermost loop would need in the order of the IL."""

    program: Program
    device: Device
    controls: tuple[Control, ...]
    gprs: int
    temporaries: int
    source_gprs: int

    def __repr__(self) -> str:
        clauses = [c for c in self.controls if c.bundles or c.fetches]
        size = f"{self.gprs} registers, {len(clauses)} clauses, {sum(len(c.bundles) for c in clauses)} bundles"
        return f"<Code of {self.program.name} for the {self.device.name}: {size}>"

    def _repr_html_(self) -> str:
        return folded(repr(self), str(self))

    def __str__(self) -> str:
        return self.listing()

    @property
    def wavefronts(self) -> int:
        """Wavefronts that share a SIMD engine; 0 if not even a workgroup fits, as a launch will say."""
        lds = sum(size for _, size in self.program.lds.values())
        group = 1 if self.program.mode == "pixel" else -(-math.prod(self.program.group) // self.device.wavefront)
        try:
            return self.device.active_wavefronts(self.gprs, lds, group)
        except ValueError:
            return 0

    @cached_property
    def main_loop(self) -> tuple[Control, ...]:
        """The controls of the innermost loop that has the most bundles, or all of them if there is no loop."""
        depth = max((c.depth for c in self.controls), default=0)
        ends = [n for n, c in enumerate(self.controls) if c.name == "LOOP_END" and c.depth == depth]
        loops = [self.controls[self.controls[n].target - 1 : n + 1] for n in ends]
        return max(loops, key=lambda loop: sum(len(c.bundles) + len(c.fetches) for c in loop), default=self.controls)

    def listing(self) -> str:
        """The code in the manner of AMD's disassembly."""
        head = f"; {self.program.name}: {self.gprs} registers, {self.wavefronts} wavefronts on a SIMD engine\n"
        return head + listing(self.controls)

    def card(self, k_per_iteration: int | None = None, flops: int | None = None) -> KernelCard:
        """The kernel card. ``k_per_iteration`` and ``flops`` per turn are given for a kernel that is known. Otherwise
        flops are all additions and multiplications of the precision computed in."""
        device = self.device
        bundles = [b for c in self.main_loop for b in c.bundles]
        operations = [o for b in bundles for o in b.operations]
        whole = [o for o in operations if o.place == 0 or o.name == "MOV"]
        doubles = [o for o in whole if o.row.kind == "double" and o.row.flops]
        if flops is None:
            flops = sum(o.row.flops for o in doubles or whole)
        count, fetches = len(bundles), sum(len(c.fetches) for c in self.main_loop)
        filled, read = Counter(b.filled for b in bundles), 16 * fetches
        clauses = sum(bool(c.bundles) for c in self.main_loop), sum(bool(c.fetches) for c in self.main_loop)
        takes = turn_clocks(device, count, fetches, clauses, self.wavefronts)
        alu, tex = int(takes["ALU"]), int(takes["texture unit"])
        processors = device.simd_engines * device.thread_processors
        return KernelCard(
            name=self.program.name.removesuffix(".il"),
            gprs=self.gprs,
            floats=4 * self.gprs,
            temporaries=self.temporaries,
            wavefronts=self.wavefronts,
            k_per_iteration=k_per_iteration,
            alu_clauses=clauses[0],
            tex_clauses=clauses[1],
            fetches=fetches,
            fetch_bytes=read,
            lds_operations=sum(o.row.kind == "lds" for o in whole),
            mads=sum(o.row.flops == 2 for o in whole),
            flops=flops,
            loop_bundles=count,
            loop_clocks=alu,
            slots4_pct=round(100 * filled[4] / count, 1) if count else 0.0,
            slots5_pct=round(100 * filled[5] / count, 1) if count else 0.0,
            alu_to_tex=round(alu / tex, 2) if tex else None,
            l1_bytes_per_clock=round(read / count, 2) if count else 0.0,
            nominal_gflops=round(flops / count * processors * device.clock_ghz, 1) if count else 0.0,
            bound_by=max(takes, key=lambda what: takes[what]),
            bundles_bound=fewest_bundles(Counter(o.row.slots for o in operations)),
            gprs_bound=self.source_gprs,
        )


def kernel_card(kernel, code: Code) -> KernelCard:
    """The card of a kernel of the catalogue, whose steps of k in a turn are known. Its flops are two for each product,
    also of double-doubles, however many operations that takes."""
    rows, columns = kernel.block
    steps = kernel.k_step // kernel.parts
    return code.card(steps, 2 * rows * columns * steps)
