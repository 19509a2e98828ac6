"""The VLIW bundles of a kernel's loop: slots x y z w t filled or idle, PV and PS, read ports, the IL line.

Drawn from compiled code, ``ck.compile``. Two compilations (of two kernels, or for two devices) stand side by side. What
the previous bundle hands on without a register is an arrow; the registers read are shown by cycle and bank. Left out:
fetches, and bundles outside the main loop.
"""

import numpy as np
from bokeh.models import Column

from cypresskit.compiler import Bundle, Code, Operation, compile
from cypresskit.compiler.isa import SCALAR_SWIZZLES, VECTOR_SWIZZLES
from cypresskit.draw.player import Listing, Player
from cypresskit.draw.sheet import Kinds, Sheet, beside, held
from cypresskit.kernels import KERNELS

WIDE = 4.2  # a slot's width, in rows
PORTS, HANDED = -11.0, -6.4  # where the read ports begin, and the bundle before with its arrows
CLASSES = {
    "multiply-add": "blue", "float": "green", "double": "purple", "integer": "yellow", "LDS": "orange", "test": "grey",
}  # fmt: skip


def bundles(*codes: Code | str) -> Player:
    """A player of the bundles of a kernel's main loop, a frame for each; several compilations side by side.

    ``codes`` are compiled kernels, or names of the catalogue's; by default "sgemm_tn". Raises ``ValueError`` for code
    without ALU bundles.
    """
    made = [compile(KERNELS[code].program) if isinstance(code, str) else code for code in codes or ("sgemm_tn",)]
    sheet = Sheet("VLIW bundles: " + ", ".join(_name(code) for code in made))
    panels = [_Panel(code) for code in made]
    count = max(len(panel.rows) for panel in panels)
    figures = [panel.draw(sheet, count) for panel in panels]
    captions = ["<br>".join(panel.caption(n) for panel in panels) for n in range(count)]
    text = "\n".join([sheet.title, *(line for panel in panels for line in panel.text())])
    key = sheet.legend([("idle", "none", ""), *((name, tint, "") for name, tint in CLASSES.items())])
    note = sheet.note(
        "An arrow is a result that comes from the bundle before, over PV or PS, and needs no read port. Of each bank"
        " (x y z w) one register can be read in each of three cycles."
    )
    alone = len(made) == 1
    listings = [
        Listing(sheet.note(""), panel.code.program.lines, [panel.lines(n) for n in range(count)], 13 if alone else 5)
        for panel in panels
    ]
    texts = [listing.place for listing in listings]
    picture = figures if alone else [Column(*parts, sizing_mode="stretch_width") for parts in zip(texts, figures)]
    return sheet.player(
        [beside(*picture)], captions, text, side=texts * alone, listings=listings, below=[key, note], step="Bundle"
    )


def _name(code: Code) -> str:
    return code.program.name.removesuffix(".il")


def _class(o: Operation) -> str:
    row = o.row
    if row.kind in ("lds", "sync"):
        return "LDS"
    if row.predicate or o.name.startswith("SET"):
        return "test"
    if o.name.startswith(("MULADD", "FMA")) and row.kind == "float":
        return "multiply-add"
    return {"double": "double", "int": "integer"}.get(row.kind, "float")


class _Panel:
    def __init__(self, code: Code) -> None:
        self.code, self.name = code, _name(code)
        clauses = [c.clause for c in code.main_loop if c.clause is not None and c.clause.kind == "ALU"]
        self.rows: list[tuple[Bundle, bool]] = [(b, n == 0) for c in clauses for n, b in enumerate(c.bundles)]
        if not self.rows:
            raise ValueError(f"{self.name}: its main loop has no ALU bundles to draw")

    def lines(self, n: int) -> list[int]:
        """The IL lines that a bundle's operations come from."""
        return sorted({o.line for o in self.rows[min(n, len(self.rows) - 1)][0].operations})

    def _arrows(self, n: int) -> list[tuple[int, int]]:
        """Slots of the bundle before and of this one, for every result handed on."""
        pairs = {(4 if r.kind == "ps" else r.channel, o.slot) for o in self.rows[n][0].operations for r in o.reads
                 if r.kind in ("pv", "ps")}  # fmt: skip
        return sorted(pairs)

    def _ports(self, n: int) -> dict[tuple[int, int], int]:
        """(cycle, bank) to the register read there."""
        used = {}
        for o in self.rows[n][0].operations:
            cycles = (
                SCALAR_SWIZZLES.get(o.swizzle, (2, 1, 0)) if o.slot == 4 else VECTOR_SWIZZLES.get(o.swizzle, (0, 1, 2))
            )
            used.update({(cycles[k], r.channel): r.index for k, r in enumerate(o.reads) if r.kind == "gpr"})
        return used

    def caption(self, n: int) -> str:
        if n >= len(self.rows):
            return f"<b>{self.name}</b>: the loop has {len(self.rows)} bundles."
        bundle, first = self.rows[n]
        lines = self.lines(n)
        handed = len(self._arrows(n))
        return (
            f"<b>{self.name}</b>, bundle {n + 1} of {len(self.rows)}{', first of its clause' * first}: "
            f"{bundle.filled} of 5 slots, IL line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}; "
            f"{len(self._ports(n))} of 12 read ports{f', {handed} from PV or PS' * (handed > 0)}."
        )

    def draw(self, sheet: Sheet, count: int):
        """Ports on top, bundles below, the current one framed."""
        total = len(self.rows)
        fig = sheet.plot(
            f"{self.name}: {total} bundles of five slots",
            (-5, 5 * WIDE + 0.3),
            (total + 0.6, PORTS - 3.4),
            high=15 * (total + 4 - PORTS),
            name=self.name,
        )
        filled = {(n, o.slot): o for n, (bundle, _) in enumerate(self.rows) for o in bundle.operations}
        names = sorted({o.name for o in filled.values()})
        kinds = [("idle", "none", "")]
        kinds += [(n, CLASSES[_class(next(o for o in filled.values() if o.name == n))], _short(n)) for n in names]
        places = [(n, slot) for n in range(total) for slot in range(5)]
        states = [1 + names.index(filled[p].name) if p in filled else 0 for p in places]
        words = [
            f"bundle {n + 1}, {'xyzwt'[s]}, line {filled[n, s].line}:" if (n, s) in filled else "idle"
            for n, s in places
        ]
        row, slot = np.array(places).T
        always = np.tile(np.array(states, np.uint8), (count, 1))
        place = (slot + 0.5) * WIDE, row + 0.5
        size = 0.97 * WIDE, 0.9
        sheet.cells(fig, f"slots {self.name}", *place, always, kinds, w=size[0], h=size[1], words=words, fit=0.72)
        middle = (np.arange(5) + 0.5) * WIDE
        for y in (HANDED - 0.65, -0.65):
            sheet.words(fig, middle, [y] * 5, list("xyzwt"), "soft", align="center", fit=0.8)
        firsts = np.flatnonzero([first for _, first in self.rows])
        for names, left, down in (([str(n + 1) for n in range(total)], -0.5, np.arange(total)),
                                  ([f"clause {n + 1}" for n in range(len(firsts))], -2, firsts)):  # fmt: skip
            sheet.words(fig, [left] * len(down), down + 0.5, names, "soft", align="right", fit=0.7)
        at = np.minimum(np.arange(count), total - 1)[:, np.newaxis]
        sheet.outline(fig, f"now {self.name}", [2.5 * WIDE], at + 0.5, [5 * WIDE], [1])
        self._draw_arrows(sheet, fig, np.array(states, np.uint8).reshape(-1, 5), kinds, count)
        self._draw_ports(sheet, fig, count, middle)
        sheet.words(
            fig,
            [-4.8],
            [PORTS - 2.6],
            [f"{self.name}: {total} bundles, {self.code.gprs} registers"],
            bold=True,
            size=13,
        )
        return fig

    def _draw_arrows(self, sheet: Sheet, fig, slots: np.ndarray, kinds: Kinds, count: int) -> None:
        """The bundle before, this one, and what goes from one to the other."""
        before = np.concatenate([slots[:1] * 0, slots[:-1]])
        before[[n for n, (_, first) in enumerate(self.rows) if first]] = 0  # nothing is handed on between clauses
        for y, states, name in ((0.5, before, "before"), (3.6, slots, "now")):
            place = (np.arange(5) + 0.5) * WIDE, np.full(5, HANDED + y)
            title = f"{name} in {self.name}"
            sheet.cells(fig, title, *place, held(states, count), kinds, w=0.97 * WIDE, h=0.9, fit=0.72)
            sheet.words(fig, [-0.5], [HANDED + y], [name], "soft", align="right", fit=0.7)
        most = max(1, *(len(self._arrows(n)) for n in range(len(self.rows))))
        ends = np.full((4, len(self.rows), most), np.nan, np.float32)
        for n in range(len(self.rows)):
            for k, (source, target) in enumerate(self._arrows(n)):
                ends[:, n, k] = (source + 0.5) * WIDE, HANDED + 1, (target + 0.5) * WIDE, HANDED + 2.9
        x0, y0, x1, y1 = (held(end, count) for end in ends)
        columns = sheet.source(f"handed on {self.name}", x0=x0, y0=y0, x1=x1, y1=y1)
        sheet.inks(fig.segment("x0", "y0", "x1", "y1", source=columns, line_width=2), line_color="wrote")
        tip = fig.scatter("x1", "y1", source=columns, marker="inverted_triangle", size=7)
        sheet.inks(tip, line_color="wrote", fill_color="wrote")

    def _draw_ports(self, sheet: Sheet, fig, count: int, middle: np.ndarray) -> None:
        places = [(cycle, bank) for cycle in range(3) for bank in range(4)]
        registers = np.array([[self._ports(n).get(p, -1) for p in places] for n in range(len(self.rows))])
        registers = held(registers, count)
        x, y = np.array([middle[bank] for _, bank in places]), np.array([PORTS + cycle + 0.5 for cycle, _ in places])
        kinds = [("free", "none", ""), ("read", "blue", "")]
        words = [f"cycle {cycle}, bank {'xyzw'[bank]}" for cycle, bank in places]
        sheet.cells(fig, f"port {self.name}", x, y, registers >= 0, kinds, w=0.97 * WIDE, h=0.9, words=words)
        sheet.numbers(fig, f"ports {self.name}", x, y, registers, prefix="R", align="center", fit=0.72)
        names = [f"cycle {cycle}" for cycle in range(3)]
        sheet.words(fig, [-0.5] * 3, np.arange(3) + PORTS + 0.5, names, "soft", align="right", fit=0.7)
        sheet.words(fig, [-0.5], [PORTS - 0.7], ["read ports"], "soft", align="right", fit=0.7)
        sheet.words(fig, middle[:4], [PORTS - 0.7] * 4, [f"bank {c}" for c in "xyzw"], "soft", align="center", fit=0.7)

    def text(self) -> list[str]:
        filled = [bundle.filled for bundle, _ in self.rows]
        counts = ", ".join(f"{n} slots: {filled.count(n)}" for n in range(5, 0, -1) if n in filled)
        lines = [f"{self.name}: {len(self.rows)} bundles in the loop, {self.code.gprs} registers; {counts}"]
        for n, (bundle, first) in enumerate(self.rows):
            by = {o.slot: _short(o.name) for o in bundle.operations}
            slots = " ".join(f"{by.get(slot, '-'):7}" for slot in range(5))
            lines.append(f"  {n + 1:3}{'*' if first else ' '} {slots} {len(self._arrows(n))} handed on")
        return lines


def _short(name: str) -> str:
    """An operation's name in seven letters or so."""
    for old, new in (
        ("_IEEE", ""),
        ("_DX10", ""),
        ("PRED_SET", "P_"),
        ("_INT", "_I"),
        ("_UINT", "_U"),
    ):
        name = name.replace(old, new)
    return name[:8]
