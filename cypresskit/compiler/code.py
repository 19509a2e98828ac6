"""Represent compiled code, and compute its statistics.

The statistics are those of AMD's kernel analyzer, and those that published figures are computed
from. They describe one iteration of the main loop of the compiled code:

- A bundle of a wavefront takes 4 clocks. A fetch of 16 bytes per work-item takes at least 16 clocks
  of the texture unit (AMD's OpenCL guide, 4.9, 4.11.1).
- Nominal Gflop/s are flops over bundles, times thread processors, times clock.
- Bytes per clock requested from L1 are the bytes that a work-item fetches from textures, over the
  same bundles (Ashraf).
"""

from collections import Counter
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from cypresskit.compiler.assembly import Control
from cypresskit.compiler.listing import listing
from cypresskit.devices import Device
from cypresskit.il import Program
from cypresskit.tables import folded, table


def _row(means: str) -> Any:
    """Return a field with the explanation that is printed after its value."""
    return field(metadata={"means": means})


@dataclass(frozen=True)
class KernelStats:
    """Statistics of compiled code, one row per field. Counts are of one work-item."""

    name: str = _row("")
    gprs: int = _row("registers per work-item, of four words each")
    floats: int = _row("words in these registers")
    temporaries: int = _row("additional registers, used within one clause only")
    wavefronts: int = _row("wavefronts per SIMD engine: its registers, LDS and slots limit them")
    k_per_iteration: int | None = _row("values of k per iteration of the main loop")
    alu_clauses: int = _row("ALU clauses per iteration")
    tex_clauses: int = _row(
        "clauses of fetches and reads of g[] per iteration: a wavefront waits once for each"
    )
    fetches: int = _row("texels fetched per iteration")
    fetch_bytes: int = _row("bytes of these")
    global_reads: int = _row("elements of g[] read per iteration, also by the texture unit")
    lds_operations: int = _row("reads and writes of the LDS per iteration")
    multiply_adds: int = _row("multiply-adds per iteration")
    flops: int = _row("floating-point operations per iteration")
    bundles_per_iteration: int = _row("bundles of the main loop")
    clocks_per_iteration: int = _row("clocks of a wavefront for these, 4 each on the HD 5870")
    slots4_pct: float = _row("% of the bundles have four slots filled")
    slots5_pct: float = _row("% have all five")
    alu_fetch_ratio: float | None = _row(
        "clocks of the bundles over those of fetches and reads of g[], 16 each on the HD 5870"
    )
    l1_bytes_per_clock: float = _row(
        "bytes that a thread processor requests from L1 per clock while bundles run"
    )
    nominal_gflops: float = _row("Gflop/s of the chip if only bundles took time")
    bound_by: str = _row("what an iteration keeps busy longer: the ALU or the texture unit")

    def _repr_html_(self) -> str:
        rows = [
            (row.name.replace("_", " "), getattr(self, row.name), row.metadata["means"])
            for row in fields(self)
        ]
        return table(("", "", ""), rows)

    def __str__(self) -> str:
        """Return a line for each row: its name, its value, what it means."""
        lines = []
        for row in fields(self):
            value = getattr(self, row.name)
            shown = f"{'-' if value is None else value!s:<14}"
            lines.append(
                f"{row.name.replace('_', ' '):<22} {shown}{row.metadata['means']}".rstrip()
            )
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Code:
    """A compiled kernel.

    Attributes
    ----------
    controls
        Its control-flow instructions.
    gprs, temporaries
        Registers and clause temporaries per work-item.
    program, device
        The kernel, and the board that it was compiled for.
    by
        The compiler, with its version, if it isn't ours.
    """

    controls: tuple[Control, ...]
    gprs: int
    temporaries: int
    program: Program
    device: Device
    by: str = ""

    def __repr__(self) -> str:
        clauses = [c for c in self.controls if c.bundles or c.fetches]
        size = (
            f"{self.gprs} registers, {len(clauses)} clauses, {sum(len(c.bundles) for c in clauses)}"
            " bundles"
        )
        name = self.named(self.program.name)
        return f"<Code of {name} for the {self.device.name}: {size}>"

    def _repr_html_(self) -> str:
        return folded(repr(self), str(self))

    def __str__(self) -> str:
        return self.listing()

    def named(self, name: str) -> str:
        """Return a kernel's name, with its compiler if that isn't ours."""
        return f"{name} by {self.by}" if self.by else name

    @property
    def wavefronts(self) -> int:
        """Wavefronts per SIMD engine; 0 if not even one workgroup fits."""
        program = self.program
        group = 1
        if program.mode != "pixel":
            group = -(-program.group // self.device.wavefront)
        try:
            return self.device.active_wavefronts(self.gprs, program.lds_bytes, group)
        except ValueError:
            return 0

    @cached_property
    def opcodes(self) -> dict[int, str]:
        """The IL opcode of each line that is compiled, in capitals: ``MAD``."""
        return {i.line: i.opcode.upper() for i in self.program.body}

    @cached_property
    def main_loop(self) -> tuple[Control, ...]:
        """The controls of the innermost loop with the most bundles and fetches; all controls if
        there is no loop.
        """
        controls = self.controls
        depth = max((c.depth for c in controls), default=0)
        ends = [n for n, c in enumerate(controls) if c.name == "LOOP_END" and c.depth == depth]
        loops = [controls[controls[n].target - 1 : n + 1] for n in ends]

        def length(loop: tuple[Control, ...]) -> int:
            return sum(len(c.bundles) + len(c.fetches) for c in loop)

        return max(loops, key=length, default=controls)

    def listing(self) -> str:
        """Return the code in the style of AMD's disassembly."""
        head = (
            f"; {self.named(self.program.name)}: {self.gprs} registers,"
            f" {self.wavefronts} wavefronts on a SIMD engine\n"
        )
        return head + listing(self.controls)

    def stats(self, k_per_iteration: int | None = None, flops: int | None = None) -> KernelStats:
        """Return the statistics.

        Parameters
        ----------
        k_per_iteration
            Values of k per iteration, if known.
        flops
            Flops per iteration; by default all additions and multiplications of the kernel's
            precision.
        """
        device = self.device
        bundles = [b for c in self.main_loop for b in c.bundles]
        operations = [o for b in bundles for o in b.operations]
        whole = [o for o in operations if o.place == 0 or o.name == "MOV"]
        doubles = [o for o in whole if o.row.kind == "double" and o.row.flops]
        if flops is None:
            flops = sum(o.row.flops for o in doubles or whole)
        all_fetches = [f for c in self.main_loop for f in c.fetches]
        global_reads = sum(f.name == "MEM_READ" for f in all_fetches)
        count = len(bundles)
        fetches = len(all_fetches) - global_reads
        filled = Counter(b.filled for b in bundles)
        read = 16 * fetches
        alu = count * device.bundle_clocks
        tex = -(-len(all_fetches) * device.wavefront // (4 * device.quads_per_clock))
        processors = device.simd_engines * device.thread_processors
        return KernelStats(
            name=self.program.name.removesuffix(".il"),
            gprs=self.gprs,
            floats=4 * self.gprs,
            temporaries=self.temporaries,
            wavefronts=self.wavefronts,
            k_per_iteration=k_per_iteration,
            alu_clauses=sum(bool(c.bundles) for c in self.main_loop),
            tex_clauses=sum(bool(c.fetches) for c in self.main_loop),
            fetches=fetches,
            fetch_bytes=read,
            global_reads=global_reads,
            lds_operations=sum(o.row.kind == "lds" for o in whole),
            multiply_adds=sum(o.row.flops == 2 for o in whole),
            flops=flops,
            bundles_per_iteration=count,
            clocks_per_iteration=alu,
            slots4_pct=round(100 * filled[4] / max(count, 1), 1),
            slots5_pct=round(100 * filled[5] / max(count, 1), 1),
            alu_fetch_ratio=round(alu / tex, 2) if tex else None,
            l1_bytes_per_clock=round(read / count, 2) if count else 0.0,
            nominal_gflops=(
                round(flops / count * processors * device.clock_ghz, 1) if count else 0.0
            ),
            bound_by="texture unit" if tex > alu else "ALU",
        )
