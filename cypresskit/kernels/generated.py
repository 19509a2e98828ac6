"""Generate kernels: SGEMM TN with any block size, and contest entries."""

from cypresskit.devices import is_whole
from cypresskit.il.parser import OFFSETS
from cypresskit.il.program import LETTERS
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.convention import Convention
from cypresskit.kernels.statement import state
from cypresskit.tables import quantity

MAX_STEPS = OFFSETS.stop  # each value of k has its own fetch offset
MAX_SIDE = 4 * OFFSETS.stop  # four numbers per texel, and each texel has its own fetch offset
# The blocks that can be generated
SIDES = f"rows and columns are multiples of 4 (one texel), up to {MAX_SIDE}"
STEPS = f"steps are 1 to {MAX_STEPS}, the range of a fetch's offset"


def block_kernel(rows: int, columns: int, steps: int = 1, *, scaled: bool = False) -> Kernel:
    """Return an SGEMM TN kernel like ``sgemm_tn.il`` with another block.

    A texel holds as many numbers as the block is wide, up to four. Blocks of 1 x 1 and 2 x 2 store
    to output streams, larger ones to ``g[]``. Registers from r2 on hold what an iteration fetches,
    then the block.

    Parameters
    ----------
    rows, columns
        The block: 1 x 1, 2 x 2, or multiples of 4 up to 32.
    steps
        Values of k per iteration, 1 to 8.
    scaled
        Whether it has alpha and beta.

    Raises
    ------
    ValueError
        For other sizes.
    """
    small = (rows, columns) in ((1, 1), (2, 2))
    if not (small or _in_texels(rows, columns)) or not is_whole(steps, MAX_STEPS):
        raise ValueError(
            f"block {rows!r} x {columns!r}, steps {steps!r}: a block is 1 x 1, 2 x 2, or its"
            f" {SIDES}; {STEPS}"
        )
    rows, columns, steps = int(rows), int(columns), int(steps)
    width = min(columns, 4)
    down, across = max(rows // 4, 1), max(columns // 4, 1)
    first = 2 + steps * (down + across)
    streams = rows if width < 4 else 0
    block = [(i, t, first + i * across + t) for i in range(rows) for t in range(across)]
    # Neighboring multiply-adds share a register of B: fewer read ports
    by_columns = sorted(block, key=lambda place: place[1])
    mask = "" if width == 4 else "." + LETTERS[:width].ljust(4, "_")
    fetches, products = [], []
    for step in range(steps):
        a = 2 + step * (down + across)
        for texture, start, count, letter in ((0, a, down, "x"), (1, a + down, across, "y")):
            fetch = f"sample_resource({texture})_sampler({texture})_aoffimmi"
            fetches += [f"{fetch}({t},{step},0) r{start + t}, r0.{letter}z00" for t in range(count)]
        products += [
            f"mad r{r}{mask}, r{a + i // 4}.{LETTERS[i % 4]}, r{a + down + t}, r{r}"
            for i, t, r in by_columns
        ]
    stores = [f"mov o{i}{mask}, r{r}" for i, _, r in block if streams]
    if not streams:
        stores = ["mad r1.x, vWinCoord0.y, l0.z, l0.w", "ftoi r1.x, r1.x", "ftoi r1.y, r0.y"]
        stores.append("imad r1.x, r1.x, cb0[0].w, r1.y")
    for i, t, r in block if not streams else ():
        stores += ["iadd r1.x, r1.x, cb0[0].w"] * (i > 0 and t == 0)
        if scaled:
            stores += [
                f"mul r{r}, r{r}, cb0[0].x",
                "if_logicalnz cb0[4].x",
                f"    mov r2, g[r1.x+{t}]",
            ]
            stores += [f"    mad r{r}, r2, cb0[0].y, r{r}", "endif"]
        stores.append(f"mov g[r1.x+{t}], r{r}")
    formats = "_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"
    lines = ["il_ps_2_0", "dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__"]
    lines += [f"dcl_resource_id({n}){formats}" for n in (0, 1)] + [
        f"dcl_output_generic o{i}" for i in range(streams)
    ]
    lines += ["dcl_cb cb0[5]", f"dcl_literal l0, 0.0, {steps}.0, {rows}.0, {-rows / 2}"]
    lines += [f"dcl_literal l1, {down}.0, {across}.0, {-down / 2}, {-across / 2}"]
    lines += [
        "mad r0.xy, vWinCoord0.yx, l1.xy, l1.zw",
        "mov r0.z, l0.x",
        *(f"mov r{r}, l0.x" for *_, r in block),
    ]
    lines += ["whileloop", "ge r1.x, r0.z, cb0[0].z", "break_logicalnz r1.x", *fetches, *products]
    lines += ["add r0.z, r0.z, l0.y", "endloop", *stores, "endmain", "end"]
    name = f"{rows} x {columns}, {quantity(steps, 'step')}"
    convention = Convention(
        block=(rows, columns), k_step=steps, trans_a=True, streams=streams, texel=4 * width
    )
    lines[0] += f"  {state(convention)}"
    return Kernel(name, "\n".join(lines), convention)


def _in_texels(rows: int, columns: int) -> bool:
    """Return whether a block has whole texels, no more than a fetch's offset reaches."""
    return all(is_whole(side, MAX_SIDE) and side % 4 == 0 for side in (rows, columns))


def generate_kernel(rows: int, columns: int, steps: int) -> Kernel:
    """Return a generated entry: ``block_kernel`` with alpha and beta.

    Parameters
    ----------
    rows, columns
        The block: multiples of 4 up to 32, 1 x 1 or 2 x 2.
    steps
        Values of k per iteration, 1 to 8.

    Raises
    ------
    ValueError
        For other sizes.
    """
    return block_kernel(rows, columns, steps, scaled=True)
