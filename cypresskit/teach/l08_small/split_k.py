"""A product with reduction: the work-items of a block of C, their parts of k, and how one adds up
the sums of the others. In a product with a vector, B is x, and C is y.

From the recorded fetches and LDS accesses of a workgroup's first wavefront, for as few values of k
as the kernel takes. Left out: the multiply-adds, and the stores of C.
"""

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Grid, Sheet
from cypresskit.kernels import Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.samples import run
from cypresskit.machine.traffic import Access, Traffic
from cypresskit.tables import quantity

TOP, LEFT = 30, 40  # pixels
VALUE, VALUE_BY_VECTOR = 9, 18  # pixels of a value of k
ROW, ROW_BY_VECTOR = 9, 5  # pixels of a row of A
COLUMN = 11  # pixels of a column of B
ITEM, APART = 14, 18  # pixels of a work-item, and from one to the next
GAP = 26  # pixels between A or B and C
SUMS, SLOT, SLOTS = 9, 18, 8  # pixels of a work-item's sums, and of a slot in the LDS; in a row
TINTS = [*theme.SERIES, "rgba(128,128,128,0.16)"]  # by part; the last: not fetched, or idle
NOTHING = len(theme.SERIES)
KINDS = "fetch", "store", "load"


class _Places:
    """Where the texels of A and B and the blocks of C are, by row and column. B is above C, or if
    it is a vector, above A's columns. The LDS is above A, or then beside C.
    """

    def __init__(self, spec: Kernel) -> None:
        depth, self.parts = spec.k_step, spec.convention.parts
        value = VALUE_BY_VECTOR if spec.is_vector else VALUE
        c_left, b_left, b_high = LEFT + depth * value + GAP, LEFT, VALUE
        row, block, texel = ROW_BY_VECTOR, self.parts * APART + 6, 4 * value
        if not spec.is_vector:
            b_left, b_high = c_left, depth * VALUE
            row, block, texel = ROW, spec.block[1] * COLUMN, 4 * COLUMN
        c_top = TOP + b_high + GAP
        self.a = Grid(LEFT, c_top, 4 * value, row)
        self.b = Grid(b_left, TOP, texel, VALUE)
        self.c = Grid(c_left, c_top, block, spec.block[0] * row)
        columns = 1 if spec.is_vector else spec.convention.multiple[1] // spec.block[1]
        self.end = c_left + columns * block
        self.lds = Grid(LEFT, TOP, SLOT, SLOT)
        if spec.is_vector:
            self.lds = Grid(self.end + GAP, c_top, SLOT, SLOT)

    def item(self, row: np.ndarray, column: np.ndarray, part: np.ndarray) -> tuple:
        """Return the centers of work-items, by block and part of k: side by side in their block."""
        x, y = self.c.center(row, column)
        return x + (part - (self.parts - 1) / 2) * APART, y


def split_k(kernel: Source = "sgemm_nn_reduce4") -> Player:
    """Return a player of one workgroup of a product with reduction: of matrices, or of a matrix
    and a vector.

    Raises ``ValueError`` for a kernel that gives each block of C to one work-item, or takes A
    transposed.
    """
    spec = resolve(kernel)
    parts = spec.convention.parts
    if parts == 1 or spec.trans_a:
        raise ValueError(
            f"{spec.name} has no block of C that work-items share: sgemm_nn_reduce4 does, and"
            " sgemv_n_reduce4"
        )
    rows, columns = spec.convention.multiple[:2]
    depth = spec.k_step
    traffic = Traffic()
    run(spec, rows, columns, depth, traffic)
    accesses = {kind: [a for a in traffic.accesses if a.kind == kind] for kind in KINDS}
    of_a, of_b = ([a for a in accesses["fetch"] if a.resource == n] for n in (0, 1))
    assert of_a[0].x is not None and of_a[0].y is not None and of_b[0].x is not None
    part = of_a[0].x  # each begins at its own four values of k
    block_row = of_a[0].y // spec.block[0]
    block_column = of_b[0].x * 4 // spec.block[1]
    if spec.is_vector:
        block_column = np.zeros_like(part)
    right = "xy" if spec.is_vector else "BC"
    blocks = sorted(set(zip(block_row.tolist(), block_column.tolist())))
    down, across = np.transpose(blocks)

    layout = _Places(spec)
    a, b, c = layout.a, layout.b, layout.c
    sheet = Sheet(f"A product with reduction: {spec.name}, {parts} work-items for each block")
    slots, leader = _passed_on(accesses["store"], accesses["load"], len(part))
    used = -(-(1 + max(slots)) // SLOTS)
    foot = max(a.top + rows * a.height, layout.lds.top + used * SLOT) + 16
    sheet.stage(sheet.title, max(layout.end, layout.lds.left + SLOTS * SLOT) + 16, foot)
    _draw_texels(sheet, "A", of_a, part, a)
    _draw_texels(sheet, right[0], of_b, part, b)
    x, y = c.center(down, across)
    done = np.repeat([[0], [0], [0], [1]], len(x), axis=1)
    fill = ["c 0", "c 0.35"], done
    sheet.boxes("blocks", x, y, c.width - 3, c.height - 3, line="soft", fill=fill)
    row, column = np.divmod(np.arange(used * SLOTS), SLOTS)
    slot = layout.lds.center(row, column)
    sheet.boxes("LDS", *slot, SLOT - 2, SLOT - 2, color="faint")
    is_leader = leader == np.arange(len(part))
    idle, last = np.full(len(part), NOTHING), np.where(is_leader, part, NOTHING)
    shade = np.array([idle, part, part, last])
    words = [f"work-item {n}: part {part[n] + 1} of k" for n in range(len(part))]
    x, y = layout.item(block_row, block_column, part)
    sheet.boxes("items", x, y, ITEM, ITEM, words=words, fill=(TINTS, shade), round=7)
    row, column = np.divmod(np.maximum(slots, 0), SLOTS)
    in_lds = np.where(is_leader, (x, y), layout.lds.center(row, column))
    places = np.array([(x, y), (x, y), in_lds, (x[leader], y[leader])])
    side = np.outer([0.001, SUMS, SUMS, SUMS], np.ones(len(part)))
    sheet.boxes(
        "sums",
        places[:, 0],
        places[:, 1],
        side,
        side,
        words=[f"the sums of work-item {n}" for n in range(len(part))],
        fill=(TINTS, np.array([part, part, part, part[leader]])),
        line="page",
        moves=("x", "y"),
    )
    for title, corner in {
        f"A: {rows} rows": (a.left, a.top - 12),
        "x" if spec.is_vector else f"B: {columns} columns": (b.left, b.top - 12),
        right[1]: (c.left, c.top - 12),
        "LDS": (layout.lds.left, layout.lds.top - 12),
    }.items():
        sheet.text(*corner, title, bold=True, size=14)
    names = ["leaders", *["helpers"] * (parts - 1)]
    legend = sheet.legend(
        *(
            (f"values {4 * n} to {4 * n + 3} of k: {name}", theme.SERIES[n])
            for n, name in enumerate(names)
        ),
        ("idle", TINTS[-1]),
    )
    leaders = int(is_leader.sum())
    helpers = len(part) - leaders
    counts = {kind: quantity(len(accesses[kind]), kind) for kind in ("store", "load")}
    size = f"{rows}" if spec.is_vector else f"{rows} x {columns}"
    captions = [
        f"A workgroup computes {size} elements of {right[1]}: {len(blocks)} blocks, and"
        f" {parts} work-items for each. Nothing is fetched yet.",
        f"First pass: each work-item fetches only its part of k, {len(of_a)} texels of A and"
        f" {len(of_b)} of {right[0]} in an iteration, and sums it for the whole block.",
        f"The {helpers} helpers store their sums (squares) into the LDS, in {counts['store']}, and"
        " wait at barriers.",
        f"Second pass: the {leaders} leaders load them, in {counts['load']} each, add them to"
        f" their own, and store {right[1]}. The helpers are idle.",
    ]
    return sheet.player(captions, step="Step", below=[legend], opens=2)


def _passed_on(
    stores: list[Access], loads: list[Access], items: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the LDS's slot of each work-item's first sums, -1 if they stay in registers, and the
    work-item that loads them, or else itself.
    """
    slots, leader = np.full(items, -1), np.arange(items)
    for access in stores:
        assert access.addresses is not None
        first = access.active & (slots < 0)
        slots[first] = access.addresses[0, first] // (4 * len(access.addresses))
    owner = {slot: item for item, slot in enumerate(slots.tolist()) if slot >= 0}
    for access in loads:
        assert access.addresses is not None
        read = access.addresses[0] // (4 * len(access.addresses))
        for item in np.flatnonzero(access.active).tolist():
            leader[owner.get(int(read[item]), item)] = item
    return slots, leader


def _draw_texels(
    sheet: Sheet,
    name: str,
    fetches: list[Access],
    part: np.ndarray,
    grid: Grid,
) -> None:
    """Draw the texels of a matrix, in the color of the part that fetches them."""
    owner: dict[tuple[int, int], int] = {}
    for access in fetches:
        assert access.x is not None and access.y is not None
        texels = zip(access.x.tolist(), access.y.tolist(), part.tolist())
        owner |= {(x, y): number for x, y, number in texels}
    x, y = np.transpose(list(owner))
    shade = np.tile([*owner.values()], (4, 1))
    shade[0] = NOTHING
    words = [
        f"{name}: row {row}, columns {4 * column} to {4 * column + 3}" for column, row in owner
    ]
    sheet.boxes(
        f"texels {name}",
        *grid.center(y, x),
        grid.width - 2,
        grid.height - 1,
        fill=(TINTS, shade),
        words=words,
    )
