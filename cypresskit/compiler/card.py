"""The kernel card: what AMD's kernel analyser told about a kernel, and what the figures in papers are made of.

Everything is counted in the compiled code's main loop, per turn. Formulas: a wavefront's bundle takes 4 clocks; a fetch
of 16 bytes a work-item 16 clocks of the texture unit at best (AMD's OpenCL guide, 4.9, 4.11.1); nominal Gflop/s are
flops over bundles times thread processors times clock, what the loop would give if only ALU bundles took time; the same
bundle count gives the bytes per clock that a thread processor asks of L1 (Ashraf). Lower bounds: no schedule has fewer
bundles than its slots fill, five to a bundle, doubles and vector-only operations four, t-only ones one; no allocation
in the order of the IL has fewer registers than a quarter of the words alive at once.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from importlib.resources import files

from cypresskit.compiler.code import Code, Operation

FLOPS = {"ADD": 1, "MUL_IEEE": 1, "MULADD_IEEE": 2, "FMA": 2}
DOUBLE_FLOPS = {"ADD_64": 1, "MUL_64": 1, "FMA_64": 2}
MADS = ("MULADD_IEEE", "FMA", "FMA_64")


def _row(means: str):
    """A field of the card with what its row says beside the value."""
    return field(metadata={"means": means})


@dataclass(frozen=True)
class Card:
    """A row for each field. From ``fetches`` on they count what one work-item does in a turn of the main loop."""

    name: str = _row("")
    gprs: int = _row("registers of a work-item, four words each")
    floats: int = _row("the same in words")
    temporaries: int = _row("registers more that last for a clause only")
    wavefronts: int = _row("that a SIMD engine has registers for at a time")
    k_per_iteration: int | None = _row("steps of k in a turn of the main loop")
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
    bound_by: str = _row("what takes longer, bundles or fetches")
    bundles_bound: int = _row("no fewer bundles could hold these operations")
    gprs_bound: int = _row("no fewer registers would do in this order of the IL")

    def as_dict(self) -> dict:
        """All fields by name, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return self.text()

    def text(self, other: dict | None = None) -> str:
        """A line for each row: its name, its value, the value in ``other`` (another compiler's) if given, what it
        means."""
        lines = []
        for row in fields(self):
            values = [getattr(self, row.name), *([other.get(row.name)] if other else [])]
            shown = "".join(f"{'-' if value is None else value!s:<14}" for value in values)
            lines.append(f"{row.name.replace('_', ' '):<20} {shown}{row.metadata['means']}".rstrip())
        return "\n".join(lines)


def card(code: Code, k_per_iteration: int | None = None, flops: int | None = None) -> Card:
    """The card of compiled code. ``k_per_iteration`` and ``flops`` per turn are given for a kernel that is known.
    Otherwise, if the loop multiplies for nothing but sums (``sums``), they are the products that each of these takes,
    and two for every product; or else None, and all additions and multiplications of the precision computed in."""
    device = code.device
    clauses = [c.clause for c in code.main_loop if c.clause is not None]
    bundles = [b for clause in clauses for b in clause.bundles]
    fetches = [f for clause in clauses for f in clause.fetches]
    first = [o for b in bundles for o in b.operations if o.place == 0 or o.name == "MOV"]
    names = Counter(o.name for o in first)
    mads = sum(names[name] for name in MADS)
    of = DOUBLE_FLOPS if names.keys() & DOUBLE_FLOPS.keys() else FLOPS
    sums = code.bounds.get("products", [])
    if flops is None:
        flops = 2 * sum(sums) or sum(names[name] * each for name, each in of.items())
    if k_per_iteration is None and len(set(sums)) == 1:
        k_per_iteration = sums[0]
    count = len(bundles)
    filled = Counter(b.filled for b in bundles)
    read = 16 * len(fetches)
    alu, tex = count * device.bundle_clocks, len(fetches) * 16
    processors = device.simd_engines * device.thread_processors
    return Card(
        name=code.program.name.removesuffix(".il"),
        gprs=code.gprs,
        floats=4 * code.gprs,
        temporaries=code.temporaries,
        wavefronts=code.wavefronts,
        k_per_iteration=k_per_iteration,
        fetches=len(fetches),
        fetch_bytes=read,
        lds_operations=sum(o.row.kind == "lds" for o in first),
        mads=mads,
        flops=flops,
        loop_bundles=count,
        loop_clocks=alu,
        slots4_pct=round(100 * filled[4] / count, 1) if count else 0.0,
        slots5_pct=round(100 * filled[5] / count, 1) if count else 0.0,
        alu_to_tex=round(alu / tex, 2) if tex else None,
        l1_bytes_per_clock=round(read / count, 2) if count else 0.0,
        nominal_gflops=round(flops / count * processors * device.clock_ghz, 1) if count else 0.0,
        bound_by="texture unit" if tex > alu else "ALU",
        bundles_bound=_bundles_bound([o for b in bundles for o in b.operations]),
        gprs_bound=code.bounds.get("registers", 0),
    )


def kernel_card(kernel, code: Code) -> Card:
    """The card of a catalogue kernel: a work-item's k per turn; flops are those of its precision, that is two for each
    product of double-doubles however many operations that takes."""
    rows, columns = kernel.block
    steps = kernel.k_step // kernel.parts
    return card(code, steps, 2 * rows * columns * steps)


def _bundles_bound(operations: list[Operation]) -> int:
    kinds = Counter(o.row.slots for o in operations)
    vector = kinds["vector"] + kinds["pair"] + kinds["quad"] + kinds["x"]
    return max(-(-len(operations) // 5), -(-vector // 4), kinds["t"], kinds["x"])


def card_table(kernels: Iterable) -> str:
    """Published against compiled, as a Markdown table. ``kernels``: catalogue kernels, those that were published."""
    from cypresskit.compiler import compile

    published = {
        row["id"]: row for row in json.loads(files("cypresskit.data").joinpath("published.json").read_text())["kernels"]
    }
    head = ["registers, published", "compiled", "bundles per turn, published", "compiled", "bound"]
    head += ["4 and 5 slots, published", "compiled"]
    lines = [f"| kernel | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    for kernel in kernels:
        row, new = published.get(kernel.name, {}), kernel_card(kernel, compile(kernel.program))
        gprs = row.get("gprs", row.get("floats", 0) // 4) or "-"
        shares = f"{row['slots4_pct'] + row['slots5_pct']:.1f} %" if "slots4_pct" in row else "-"
        turn = f"{new.loop_bundles} ({new.k_per_iteration} k)"
        cells = (gprs, new.gprs, row.get("bundles", "-"), turn, new.bundles_bound, shares)
        lines.append(f"| `{kernel.name}` | {' | '.join(map(str, cells))} | {new.slots4_pct + new.slots5_pct:.1f} % |")
    return "\n".join(lines) + "\n"
