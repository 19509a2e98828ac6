"""A kernel's loop as VLIW bundles: the IL line in each slot, the registers read, the results passed
through PV and PS.

Drawn from compiled code, a frame for each bundle. A line of IL and the operations made from it
share a colour. Left out: fetches, and bundles outside the main loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from bokeh.core.properties import value

from cypresskit.compiler import Bundle, Code, compile
from cypresskit.compiler.isa import SCALAR_SWIZZLES, VECTOR_SWIZZLES
from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty, together
from cypresskit.kernels.own import Source, resolve_program

WIDE, HIGH = 1250, 420
LISTING, TABLE, DETAIL = (2, 318), (356, 470), 860  # left edges, and widths, of the parts
SHOWN, LINE, TOP = 17, 22, 34  # lines of IL in sight, the height of one, where the parts begin
SLOT, PORT = (
    72,
    (124, 26),
)  # of the detail: a slot's width, where the ports begin and how high one is
IDLE = len(theme.SERIES)
COLOURS = [*theme.SERIES, "rgba(128,128,128,0.10)"]  # of lines, and of an empty slot


def bundles(*codes: Code | Source) -> Player:
    """A player of the bundles of a kernel's main loop, a frame for each; several compilations are
    scenes.

    ``codes`` are compiled kernels, or what is to be compiled: programs, kernels by name, text or
    file; by default "sgemm_tn". Raises ``ValueError`` for code without ALU bundles.
    """
    made = nonempty(
        map(_compiled, codes or ("sgemm_tn",)), "pass compiled code, a program, or a kernel", Code
    )
    loops = [_loop(code, 10_000 * n) for n, code in enumerate(made)]
    sheet = Sheet("VLIW bundles: " + ", ".join(loop.name for loop in loops))
    sheet.stage(
        "Lines of IL; bundles of five slots; the bundle that runs, its read ports and slots",
        WIDE,
        HIGH,
    )
    _draw_listing(sheet, loops)
    sheet.words(TABLE[0], 16, "The loop's bundles: slots x y z w t", bold=True, size=14)
    _draw_table(sheet, [_table(loop, *TABLE) for loop in loops])
    _draw_detail(sheet, loops)
    for loop in loops:
        sheet.about |= {loop.base + line: loop.story(line) for line in loop.used}
    captions = [loop.say(n) for loop in loops for n in range(len(loop.bundles))]
    lines = (line for loop in loops for line in loop.text())
    note = sheet.note(
        "Of each bank (x y z w) one register can be read in each of three cycles. What comes from"
        " the bundle before, over PV or PS, needs no port."
    )
    scenes = [(loop.name, len(loop.bundles)) for loop in loops]
    return sheet.player(captions, lines, below=[note], step="Bundle", scenes=scenes)


def _compiled(given: Code | Source) -> Code:
    return given if isinstance(given, Code) else compile(resolve_program(given))


@dataclass(frozen=True, eq=False)
class _Loop:
    """The bundles of a main loop. ``firsts``: the bundles that begin a clause, which can read
    nothing from PV or PS. ``used``: the lines of IL that the loop comes from; the keys of these
    lines begin at ``base``.
    """

    code: Code
    bundles: Sequence[Bundle]
    firsts: set[int]
    used: Sequence[int]
    base: int

    @property
    def name(self) -> str:
        return self.code.program.name.removesuffix(".il")

    @property
    def lines(self) -> list[str]:
        return [text.split(";")[0].strip() for text in self.code.program.lines]

    def colour(self, line: int) -> int:
        return self.used.index(line) % len(theme.SERIES) if line in self.used else IDLE

    def handed(self, n: int) -> list[tuple[int, int]]:
        """(slot of the bundle before, slot of bundle ``n``) for every result passed through PV or
        PS.
        """
        pairs = {
            (4 if r.kind == "ps" else r.channel, o.slot)
            for o in self.bundles[n].operations
            for r in o.reads
            if r.kind in ("pv", "ps")
        }
        return sorted(pairs)

    def ports(self, n: int) -> dict[tuple[int, int], tuple[int, list[int]]]:
        """The read ports in use: (cycle, bank) to the register read there and the slots that take
        it.
        """
        used: dict[tuple[int, int], tuple[int, list[int]]] = {}
        for o in self.bundles[n].operations:
            swizzles = SCALAR_SWIZZLES if o.slot == 4 else VECTOR_SWIZZLES
            cycles = swizzles.get(o.swizzle, (2, 1, 0) if o.slot == 4 else (0, 1, 2))
            for k, r in enumerate(o.reads):
                if r.kind == "gpr":
                    used.setdefault((cycles[k], r.channel), (r.index, []))[1].append(o.slot)
        return used

    def story(self, line: int) -> str:
        places = [
            f"{n + 1} {'xyzwt'[o.slot]}"
            for n, b in enumerate(self.bundles)
            for o in b.operations
            if o.line == line
        ]
        return (
            f"**Line {line}**, {self.lines[line - 1]}, is done in these bundles and slots:"
            f" {', '.join(places)}."
        )

    def say(self, n: int) -> str:
        bundle, ports, handed = self.bundles[n], len(self.ports(n)), len(self.handed(n))
        lines = sorted({o.line for o in bundle.operations})
        return (
            f"**{self.name}**, bundle {n + 1} of"
            f" {len(self.bundles)}{', first of its clause' * (n in self.firsts)}: {bundle.filled}"
            f" of 5 slots, IL line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}; {ports} of"
            f" 12 read ports{f', {handed} from PV or PS' * (handed > 0)}."
        )

    def text(self) -> list[str]:
        lines = [
            f"{self.name}: {len(self.bundles)} bundles in the loop (*: a clause begins),"
            f" {self.code.gprs} registers"
        ]
        for n, bundle in enumerate(self.bundles):
            by = {o.slot: _abbrev(o.name) for o in bundle.operations}
            slots = " ".join(f"{by.get(slot, '-'):7}" for slot in range(5))
            lines.append(
                f"  {n + 1:3}{'*' if n in self.firsts else ' '} {slots} {len(self.handed(n))}"
                " handed on"
            )
        return lines


def _loop(code: Code, base: int = 0) -> _Loop:
    bundles = [bundle for clause in code.main_loop for bundle in clause.bundles]
    firsts = np.cumsum([0, *(len(clause.bundles) for clause in code.main_loop)])[:-1]
    used = sorted({o.line for bundle in bundles for o in bundle.operations})
    if not bundles:
        raise ValueError(f"{code.program.name}: its main loop has no ALU bundles to draw")
    return _Loop(code, bundles, set(firsts.tolist()), used, base)


def _draw_listing(sheet: Sheet, loops: list[_Loop]) -> None:
    """The lines of IL around those of the current bundle, in their colours."""
    names, whole, rows = [""], [""], []
    for loop in loops:
        listed = [n for n in range(loop.used[0], loop.used[-1] + 1) if loop.lines[n - 1]]
        which = {0: 0} | {n: len(names) + at for at, n in enumerate(listed)}
        whole += [loop.lines[n - 1] for n in listed]
        names += [f"{n:4}  {_elided(loop.lines[n - 1], 33)}" for n in listed]
        for bundle in loop.bundles:
            lines = {o.line for o in bundle.operations}
            first = max(0, min(listed.index(min(lines)) - 5, len(listed) - SHOWN))
            seen = [*listed, *[0] * SHOWN][first : first + SHOWN]
            keys = [loop.base + n if n in loop.used else -1 for n in seen]
            rows.append(
                [(which[n], loop.colour(n), key, 2 * (n in lines)) for n, key in zip(seen, keys)]
            )
    line, colour, key, now = np.moveaxis(np.array(rows), -1, 0)
    y = TOP + (np.arange(SHOWN) + 0.5) * LINE
    left, wide = LISTING
    sheet.words(left, 16, "Lines of IL", bold=True, size=14)
    source = sheet.boxes(
        "lines",
        left + wide / 2,
        y,
        wide,
        LINE - 2,
        fill="rgba(128,128,128,0.05)",
        words=(whole, line),
        key=key,
        columns={"now": now},
    )
    sheet.ring(source, wide, LINE - 2, "now", "soft")
    sheet.boxes("line colours", left + 6, y, 9, LINE - 6, fill=(COLOURS, colour))
    sheet.numbers("texts", left + 14, y, line, names=names, size=12, font=value("monospace"))


def _table(loop: _Loop, left: float, wide: float) -> list:
    """The layout of all slots, in as many columns as they need, with the current bundle framed.
    Returns x, y, width, height, colour and key, then for each frame (frames, slots) the frame's
    line widths.
    """
    count = len(loop.bundles)
    columns = -(-count // 17)
    rows = -(-count // columns)
    w, h = (wide / columns - 28) / 5, min(22.0, (HIGH - TOP - 4) / rows)
    row, slot = np.divmod(np.arange(5 * count), 5)
    colour, key = np.full((2, 5 * count), [[IDLE], [-1]])
    for n, bundle in enumerate(loop.bundles):
        for o in bundle.operations:
            colour[5 * n + o.slot], key[5 * n + o.slot] = loop.colour(o.line), loop.base + o.line
    x, y = (
        left + row // rows * (wide / columns) + 24 + (slot + 0.5) * w,
        TOP + (row % rows + 0.5) * h,
    )
    now = 2 * (row == np.arange(count)[:, np.newaxis])
    return [np.broadcast_to(part, now.shape) for part in (x, y, w - 2, h - 2, colour, key, now)]


def _draw_table(sheet: Sheet, tables: Sequence[list]) -> None:
    x, y, w, h, colour, key, now = map(together, zip(*tables), (*[np.nan] * 4, IDLE, -1, 0))
    source = sheet.boxes("slots", x, y, w, h, fill=(COLOURS, colour), key=key, columns={"now": now})
    sheet.ring(source, "w", "h", "now", "ink")


def _draw_detail(sheet: Sheet, loops: Sequence[_Loop]) -> None:
    """The current bundle in detail: the bundle before it, the read ports, and a wire from each into
    the slots.
    """
    left = DETAIL
    full = [
        "",
        *dict.fromkeys(o.name for loop in loops for b in loop.bundles for o in b.operations),
    ]
    middle = left + 40 + (np.arange(5) + 0.5) * (SLOT - 4)
    rows = {"before": TOP + 16, "now": HIGH - 34}
    bank, port = middle[:4], PORT[0] + (np.arange(3) + 0.5) * PORT[1]
    count = sum(len(loop.bundles) for loop in loops)
    register = np.full((count, 12), -1)
    wires, drops, handed = (np.full((4, count, most), np.nan, np.float32) for most in (15, 24, 5))
    foot = port[2] + PORT[1] / 2
    slots = {
        row: np.full((3, count, 5), [[[0]], [[IDLE]], [[-1]]]) for row in rows
    }  # name, colour, key
    frames = ((loop, n) for loop in loops for n in range(len(loop.bundles)))
    for frame, (loop, n) in enumerate(frames):
        for row, number in (("before", n - 1), ("now", n)):
            for o in (
                loop.bundles[number].operations if row == "now" or n not in loop.firsts else ()
            ):
                slots[row][:, frame, o.slot] = (
                    full.index(o.name),
                    loop.colour(o.line),
                    loop.base + o.line,
                )
        ends, ways = [], []
        for (cycle, channel), (index, takers) in loop.ports(n).items():
            register[frame, 4 * cycle + channel] = index
            gutter = (
                bank[channel] + SLOT / 2 - 10 + 4 * cycle
            )  # a wire passes beside the ports below its own
            ways += [
                (bank[channel] + SLOT / 2 - 16, port[cycle], gutter, port[cycle]),
                (gutter, port[cycle], gutter, foot),
            ]
            ends += [
                (gutter, foot, middle[slot] + 9 * (cycle - 1), rows["now"] - 13)
                for slot in dict.fromkeys(takers)
            ]
        wires[:, frame, : len(ends)] = np.reshape(ends, (-1, 4)).T
        drops[:, frame, : len(ways)] = np.reshape(ways, (-1, 4)).T
        for k, (source, target) in enumerate(loop.handed(n)[:5]):
            handed[:, frame, k] = middle[source], TOP + 29, middle[target] + 18, rows["now"] - 13
    sheet.words(left, 16, "This bundle", bold=True, size=14)
    sheet.arrows("drops", drops[:2], drops[2:], ink="soft", width=1.2, size=0.1)
    sheet.arrows("wires", wires[:2], wires[2:], ink="soft", width=1.2, size=5)
    x, y = np.tile(bank, 3), np.repeat(port, 4)
    words = [f"cycle {cycle}, bank {c}" for cycle in range(3) for c in "xyzw"]
    sheet.boxes("port", x - 6, y, SLOT - 20, PORT[1] - 4, ink="faint", line="line", words=words)
    sheet.numbers("ports", x - 6, y, register, prefix="R", align="center", size=12)
    sheet.words(
        bank - 6, PORT[0] - 9, [f"bank {c}" for c in "xyzw"], "soft", align="center", size=11
    )
    sheet.words(left + 34, port, [f"cycle {n}" for n in range(3)], "soft", align="right", size=11)
    sheet.arrows("handed on", handed[:2], handed[2:], ink="wrote", width=2.5, size=8)
    short = [_abbrev(full_name) for full_name in full]
    for row, level in rows.items():
        name, colour, key = slots[row]
        sheet.boxes(
            f"slots {row}",
            middle,
            level,
            SLOT - 8,
            24,
            ink="faint",
            words=(full, name),
            key=key,
            round=3,
        )
        sheet.boxes(f"colours {row}", middle, level + 9, SLOT - 8, 6, fill=(COLOURS, colour))
        sheet.numbers(f"names {row}", middle, level - 3, name, names=short, align="center", size=11)
        sheet.words(left + 34, level, row, "soft", align="right", size=11)
    sheet.words(middle, HIGH - 12, list("xyzwt"), "soft", align="center", size=12)


def _abbrev(name: str) -> str:
    """An operation's name in about eight letters."""
    for old, new in (
        ("_IEEE", ""),
        ("_DX10", ""),
        ("PRED_SET", "P_"),
        ("_INT", "_I"),
        ("_UINT", "_U"),
        ("LDS_", ""),
    ):
        name = name.replace(old, new)
    return _elided(name, 8)


def _elided(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
