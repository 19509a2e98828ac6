"""The kernel card: what AMD's kernel analyser told about a kernel, and what the figures in papers are made of.

Everything is counted in the compiled code's main loop, per turn: a wavefront's bundle takes 4 clocks, a fetch of 16
bytes per work-item takes 16 of the texture unit at best (AMD's OpenCL guide, 4.9, 4.11.1); nominal Gflop/s are flops
over bundles times thread processors times clock; the bytes per clock asked of L1 are a work-item's bytes fetched from
textures over the same bundles (Ashraf). Lower bounds: no schedule has fewer bundles than its slots fill, five to a
bundle, doubles and vector-only operations four, t-only ones one; no allocation in the order of the IL has fewer
registers than a quarter of the words alive at once.
"""

from dataclasses import dataclass, field, fields

from cypresskit.devices import Device
from cypresskit.tables import table


def _row(means: str):
    """A field of the card, with the explanation printed behind its value."""
    return field(metadata={"means": means})


@dataclass(frozen=True)
class KernelCard:
    """A row for each field. ``fetches`` to ``flops``: one work-item's, in a turn of the main loop; others say whose."""

    name: str = _row("")
    gprs: int = _row("registers of a work-item, four words each")
    floats: int = _row("the same in words")
    temporaries: int = _row("more registers, kept for one clause only")
    wavefronts: int = _row("that share a SIMD engine: its registers, LDS and places")
    k_per_iteration: int | None = _row("steps of k in a turn of the main loop")
    alu_clauses: int = _row("clauses of bundles in a turn of the main loop")
    tex_clauses: int = _row("clauses of fetches in it: what is gathered in one is waited for once")
    fetches: int = _row("texels fetched in a turn")
    fetch_bytes: int = _row("their bytes")
    lds_operations: int = _row("reads and writes of the LDS")
    mads: int = _row("multiply-adds")
    flops: int = _row("floating-point operations")
    loop_bundles: int = _row("bundles in a turn")
    loop_clocks: int = _row("that a wavefront takes for them, 4 for each")
    slots4_pct: float = _row("% of the bundles have four slots filled")
    slots5_pct: float = _row("% have all five")
    alu_to_tex: float | None = _row("clocks of the bundles over those of the fetches, 16 for each")
    l1_bytes_per_clock: float = _row("that a thread processor asks of the L1 cache while bundles run")
    nominal_gflops: float = _row("of the chip, if nothing but bundles took time")
    bound_by: str = _row("what takes longest: bundles, fetches or, shared by the wavefronts, latency")
    bundles_bound: int = _row("no fewer bundles could hold these operations")
    gprs_bound: int = _row("no fewer registers would do in this order of the IL")

    def _repr_html_(self) -> str:
        rows = [(row.name.replace("_", " "), getattr(self, row.name), row.metadata["means"]) for row in fields(self)]
        return table(("", "", ""), rows)

    def __str__(self) -> str:
        """A line for each row: its name, its value, what it means."""
        lines = []
        for row in fields(self):
            value = getattr(self, row.name)
            shown = f"{'-' if value is None else value!s:<14}"
            lines.append(f"{row.name.replace('_', ' '):<20} {shown}{row.metadata['means']}".rstrip())
        return "\n".join(lines)


def turn_clocks(
    device: Device, bundles: int, fetches: int, clauses: tuple[int, int], wavefronts: int
) -> dict[str, float]:
    """Clocks of a wavefront's turn of a loop on a SIMD engine, by what may bind: the ALU, the texture unit, or, where
    too few wavefronts are there to hide it, the time that each of them takes for its own ``clauses`` (ALU and TEX):
    results before they can be read, a switch for every clause, and memory for every TEX clause."""
    alu, tex = clauses
    waits = bundles * device.result_clocks + (alu + tex) * device.switch_clocks + tex * device.dram_clocks
    units = {"ALU": bundles * device.bundle_clocks, "texture unit": fetches * device.wavefront // 4}
    return units | {"latency": waits / max(wavefronts, 1)}
