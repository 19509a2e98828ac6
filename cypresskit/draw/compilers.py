"""A kernel's loop by two compilers: the lines of IL, our bundles of them, and LLVM's.

A row is a bundle, a cell one of its slots, with the number and the color of its line.
"""

from typing import Any, NamedTuple

from cypresskit.compiler import compile
from cypresskit.draw.bundles import short_fetch
from cypresskit.draw.chart import NARROW, WIDE, Canvas, Chart, element, text_element
from cypresskit.il.cursor import strip_comment
from cypresskit.kernels import Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.tables import elided, listed, quantity
from cypresskit.timing import Report, simulate

COLORS = "a 0.4", "b 0.4", "c 0.4", "alu 0.4", "wrote 0.4", "read 0.4", "purple 0.4"  # of lines
ROW, HEAD, GAP = 14, 64, 20  # pixels: of a row, above the rows, between two parts
LISTED, LETTERS = 236, 30  # pixels of the lines of IL, and the letters of one
LABEL = 22  # pixels of a bundle's number


class FilledSlot(NamedTuple):
    """A filled slot of a bundle: its line, and its row in a table."""

    line: int
    row: int
    slot: int


class BundleRows:
    """A compiler's code of a loop, in rows.

    Attributes
    ----------
    name, speed
        The compiler, and the speed of its code.
    facts
        Its statistics.
    rows
        What begins each row: the number of its bundle, or what a clause fetches.
    cells, fetches
        Its filled slots; and the lines of its fetches, with their rows.
    """

    def __init__(self, name: str, report: Report, kernel: Kernel) -> None:
        code = report.launch.code
        stats = code.stats(*kernel.convention.per_iteration)
        self.name, self.speed = name, f"{report.gflops:,.0f} Gflop/s"
        self.facts = [
            f"{quantity(stats.bundles_per_iteration, 'bundle')},"
            f" {stats.slots5_pct:.0f} % with five",
            f"{quantity(stats.gprs, 'register')}, {quantity(stats.tex_clauses, 'wait')}",
        ]
        self.rows: list[Any] = []
        self.cells: list[FilledSlot] = []
        self.fetches: list[tuple[int, int]] = []
        count = 0
        for control in code.main_loop:
            self.fetches += [(fetch.line, len(self.rows)) for fetch in control.fetches]
            if control.fetches:
                self.rows.append(f"TEX, {len(control.fetches)} fetched: a wait")
            for bundle in control.bundles:
                count += 1
                self.cells += [
                    FilledSlot(o.line, len(self.rows), o.slot) for o in bundle.operations
                ]
                self.rows.append(count)


def compilers(kernel: Source = "sgemm_tn", n: int = 2048) -> Chart:
    """Draw a kernel's main loop as two compilers make it: ours and LLVM.

    Parameters
    ----------
    kernel
        A GEMM kernel in single precision.
    n
        The size at which both codes are timed.

    Raises
    ------
    CompileError
        If LLVM can't compile it, or isn't installed and the kernel is none of the catalog's.

    Examples
    --------
    >>> ck.draw.compilers("sgemm_tn")
    """
    known = resolve(kernel)
    theirs = compile(known.program, by="llvm")
    ours = BundleRows("cypresskit", simulate(known, n), known)
    other = BundleRows(theirs.by, simulate(theirs, n), known)
    tables = ours, other
    return Chart(
        f"LLVM's {known.name} has {other.facts[1]}: {other.speed} in place of"
        f" {ours.speed.removesuffix(' Gflop/s')}",
        lambda width: _paint(tables, known, width),
        about="The loop's bundles by two compilers, counted: a cell is a slot, with the number of"
        " its line of IL; dashed: left empty.",
        lines=[
            *(f"{table.name}: {'; '.join([*table.facts, table.speed])}" for table in tables),
            *_paint(tables, known, WIDE).told,
        ],
        note=f"{theirs.by} compiled our translation of the kernel. Speeds are modeled, at N ="
        f" {n:,}. At a wait for fetches, a wavefront makes room for others.",
    )


def _paint(tables: tuple[BundleRows, BundleRows], kernel: Kernel, width: float) -> Canvas:
    """Draw both tables, and before them the lines; on a phone only pointing tells these."""
    used = sorted({line for table in tables for line, *_ in (*table.cells, *table.fetches)})
    high = HEAD + ROW * max(len(used), *(len(table.rows) for table in tables))
    is_narrow = width == NARROW
    left = 0 if is_narrow else LISTED + GAP
    canvas = Canvas(width, high + ROW)
    if not is_narrow:
        canvas.write(0, HEAD - ROW / 2, "lines of IL", "soft")
    wide = (width - left - GAP) / 2
    slot = (wide - LABEL) / 5
    begins = left + LABEL, left + LABEL + wide + GAP
    for table, begin in zip(tables, begins):
        _frame(canvas, table, begin, slot)
    marks = []
    for number, line in enumerate(used):
        y = HEAD + ROW * number
        code = short_fetch(strip_comment(kernel.program.text_of(line)).strip())
        cells, waits, found = [CellBox(0, y, LABEL)] * (not is_narrow), [], []
        for table, begin in zip(tables, begins):
            mine = [cell for cell in table.cells if cell.line == line]
            cells += [CellBox(begin + slot * at, HEAD + ROW * row, slot) for _, row, at in mine]
            rows = [row for other, row in table.fetches if other == line]
            waits += [CellBox(begin, HEAD + ROW * row, 5 * slot) for row in rows]
            bundles = sorted({table.rows[row] for _, row, _ in mine})
            found.append(
                f"bundle{'s' * (len(bundles) > 1)} {listed(bundles)}" if bundles else "no bundle"
            )
        words = f"line {line}, {code}: counted in {found[0]} here, in {found[1]} by LLVM"
        filled = "".join(cell.path for cell in cells)
        outline = filled + "".join(wait.path for wait in waits)
        shape = element("path", "", COLORS[number % len(COLORS)], d=filled)
        shape += element("path", "ink", d=outline, class_="spot", stroke_width=2)
        shape += "".join(cell.text(str(line)) for cell in cells)
        if not is_narrow:
            code = elided(code, LETTERS)
            shape += text_element(LABEL + 6, y + ROW / 2, code, "ink", font_family="monospace")
        marks.append((words, shape))
    canvas.group("lines", marks, "counted")
    return canvas


class CellBox(NamedTuple):
    """Where a cell is: its left and upper edge, and its width."""

    x: float
    y: float
    wide: float

    @property
    def path(self) -> str:
        """Its outline."""
        return (
            f"M{self.x + 1:.1f} {self.y + 1:.1f}h{self.wide - 2:.1f}v{ROW - 2}h{2 - self.wide:.1f}z"
        )

    def text(self, label: str) -> str:
        """Return a label in its middle."""
        x = self.x + self.wide / 2
        return text_element(x, self.y + ROW / 2, label, "ink", "middle", class_="on")


def _frame(canvas: Canvas, table: BundleRows, left: float, slot: float) -> None:
    """Draw what is around a table's filled slots: heads, the numbers of bundles, empty slots."""
    for number, fact in enumerate([f"{table.name}: {table.speed}", *table.facts]):
        canvas.write(left - LABEL, 8 + 16 * number, fact, class_="bold" * (not number))
    for number, letter in enumerate("xyzwt"):
        canvas.write(left + slot * (number + 0.5), HEAD - ROW / 2, letter, "soft", "middle")
    filled = {(cell.row, cell.slot) for cell in table.cells}
    more = sorted({row for _, row in table.fetches})[1:]
    empty = []
    for row, label in enumerate(table.rows):
        y = HEAD + ROW * (row + 0.5)
        if isinstance(label, str):
            canvas.write(left, y, label, "wait" if row in more else "soft")
            continue
        canvas.write(left - 4, y, str(label), "soft", "end")
        boxes = [CellBox(left + slot * at, y - ROW / 2, slot) for at in range(5)]
        empty += [box.path for at, box in enumerate(boxes) if (row, at) not in filled]
    canvas.add("path", "line", d="".join(empty), stroke_dasharray="2 3", opacity=0.7)
