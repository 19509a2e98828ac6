"""The VLIW bundles of a kernel's loop: which lines of IL are in which slots, what they read, what is handed on.

Drawn from compiled code, ``ck.compile``, a frame for each bundle; several compilations are scenes of one picture. A
line of IL and all that became of it have one colour. Left out: fetches, and bundles outside the main loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from bokeh.core.properties import value

from cypresskit.compiler import Bundle, Code, compile
from cypresskit.compiler.isa import SCALAR_SWIZZLES, VECTOR_SWIZZLES
from cypresskit.compiler.legality import check_bundle
from cypresskit.compiler.ports import SCALAR_NAMES, VECTOR_NAMES, Ports, unit
from cypresskit.draw import theme
from cypresskit.draw.controls import controls
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, together
from cypresskit.kernels import KERNELS

WIDE, HIGH = 1250, 420
LISTING, TABLE, DETAIL = (0, 320), (356, 470), 870  # left edges, and widths, of the parts
SHOWN, LINE, TOP = 17, 22, 34  # lines of IL in sight, the height of one, where the parts begin
SLOT, PORT = 72, (124, 26)  # of the detail: a slot's width, where the ports begin and how high one is
IDLE = len(theme.SERIES)
COLOURS = [*theme.SERIES, "rgba(128,128,128,0.10)"]


def bundles(*codes: Code | str) -> Player:
    """A player of the bundles of a kernel's main loop, a frame for each; several compilations are scenes.

    ``codes`` are compiled kernels, or names of the catalogue's; by default "sgemm_tn". Raises ``ValueError`` for code
    without ALU bundles.
    """
    loops = [
        _Loop(compile(KERNELS[code].program) if isinstance(code, str) else code) for code in codes or ("sgemm_tn",)
    ]
    sheet = Sheet("VLIW bundles: " + ", ".join(loop.name for loop in loops))
    fig = sheet.stage("Lines of IL; bundles of five slots; the bundle that runs, its read ports and slots", WIDE, HIGH)
    _draw_listing(sheet, fig, loops)
    _draw_table(sheet, fig, loops)
    _draw_detail(sheet, fig, loops)
    for number, loop in enumerate(loops):
        sheet.about |= {10_000 * number + line: loop.story(line) for line in loop.used}
    captions = [loop.say(n) for loop in loops for n in range(len(loop.bundles))]
    text = "\n".join([sheet.title, *(line for loop in loops for line in loop.text())])
    note = sheet.note(
        "Of each bank (x y z w) one register can be read in each of three cycles. What comes from the bundle before,"
        " over PV or PS, needs no port."
    )
    scenes = [(loop.name, len(loop.bundles)) for loop in loops]
    return sheet.player([fig], captions, text, below=[note], step="Bundle", scenes=scenes)


@dataclass(frozen=True, eq=False)
class _Loop:
    """The bundles of a main loop."""

    code: Code

    def __post_init__(self) -> None:
        if not self.bundles:
            raise ValueError(f"{self.name}: its main loop has no ALU bundles to draw")

    @property
    def name(self) -> str:
        return self.code.program.name.removesuffix(".il")

    @property
    def bundles(self) -> list[Bundle]:
        return [bundle for clause in self.code.main_loop for bundle in clause.bundles]

    @property
    def firsts(self) -> set[int]:
        """The bundles that begin a clause: nothing is handed on to them."""
        return set(np.cumsum([0, *(len(clause.bundles) for clause in self.code.main_loop)])[:-1].tolist())

    @property
    def used(self) -> list[int]:
        """The IL lines that the loop comes from."""
        return sorted({o.line for bundle in self.bundles for o in bundle.operations})

    def colour(self, line: int) -> int:
        return self.used.index(line) % IDLE

    def handed(self, n: int) -> list[tuple[int, int]]:
        """Slots of the bundle before and of this one, for every result handed on."""
        pairs = {(4 if r.kind == "ps" else r.channel, o.slot) for o in self.bundles[n].operations for r in o.reads
                 if r.kind in ("pv", "ps")}  # fmt: skip
        return sorted(pairs)

    def ports(self, n: int) -> dict[tuple[int, int], tuple[int, list[int]]]:
        """(cycle, bank) to the register that is read there, and the slots that take it."""
        used: dict[tuple[int, int], tuple[int, list[int]]] = {}
        for o in self.bundles[n].operations:
            swizzles = SCALAR_SWIZZLES if o.slot == 4 else VECTOR_SWIZZLES
            cycles = swizzles.get(o.swizzle, (2, 1, 0) if o.slot == 4 else (0, 1, 2))
            for k, r in enumerate(o.reads):
                if r.kind == "gpr":
                    used.setdefault((cycles[k], r.channel), (r.index, []))[1].append(o.slot)
        return used

    def story(self, line: int) -> str:
        text = self.code.program.lines[line - 1].split(";")[0].strip()
        places = [
            f"{n + 1} {'xyzwt'[o.slot]}" for n, b in enumerate(self.bundles) for o in b.operations if o.line == line
        ]
        return f"**Line {line}**, {text}, is done in these bundles and slots: {', '.join(places)}."

    def say(self, n: int) -> str:
        bundle, ports, handed = self.bundles[n], len(self.ports(n)), len(self.handed(n))
        lines = sorted({o.line for o in bundle.operations})
        return (
            f"**{self.name}**, bundle {n + 1} of {len(self.bundles)}{', first of its clause' * (n in self.firsts)}: "
            f"{bundle.filled} of 5 slots, IL line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}; "
            f"{ports} of 12 read ports{f', {handed} from PV or PS' * (handed > 0)}."
        )

    def text(self) -> list[str]:
        lines = [f"{self.name}: {len(self.bundles)} bundles in the loop, {self.code.gprs} registers"]
        for n, bundle in enumerate(self.bundles):
            by = {o.slot: _short(o.name) for o in bundle.operations}
            slots = " ".join(f"{by.get(slot, '-'):7}" for slot in range(5))
            lines.append(f"  {n + 1:3}{'*' if n in self.firsts else ' '} {slots} {len(self.handed(n))} handed on")
        return lines


@dataclass(frozen=True, eq=False)
class _Alone(_Loop):
    """A bundle that somebody packed, of operations of the loop."""

    made: Bundle

    @property
    def firsts(self) -> set[int]:
        return {0}

    @property
    def bundles(self) -> list[Bundle]:
        return [self.made]

    @property
    def used(self) -> list[int]:
        return _Loop(self.code).used


def pack(kernel: str = "sgemm_tn", bundle: int = 2):
    """Pack a bundle yourself, in a notebook: a menu for each slot, with the operations of bundle ``bundle`` of the
    kernel's loop and of the one after it. The read ports fill, and what is illegal comes back with the rule, as the
    compiler's legality check says it."""
    code = compile(KERNELS[kernel].program)
    those = _Loop(code).bundles[bundle : bundle + 2]
    operations = {f"line {o.line}, {'xyzw'[o.channel]}": o for one in those for o in one.operations}

    def view(**slots: str) -> Player:
        chosen = [replace(operations[what], slot="xyzwt".index(slot), number=n, swizzle="VEC_012")
                  for n, (slot, what) in enumerate(slots.items()) if what in operations]  # fmt: skip
        if not chosen:
            raise ValueError("a bundle has one operation at least: choose one for a slot")
        ports = Ports()
        units = [unit([(r.channel, r.index) if r.kind == "gpr" else None for r in o.reads], o.slot == 4)
                 for o in chosen]  # fmt: skip
        ports.fit(units)
        names = [(SCALAR_NAMES if o.slot == 4 else VECTOR_NAMES)[k] for o, k in zip(chosen, ports.swizzles or [0] * 5)]
        made = Bundle(tuple(replace(o, swizzle=name) for o, name in zip(chosen, names)))
        twice = len({o.at * 4 + o.channel for o in chosen}) < len(chosen)
        faults = check_bundle(made, code) + ["this bundle: an operation stands in two slots"] * twice
        sheet = Sheet(f"A bundle of your own, from {kernel}")
        fig = sheet.stage("The bundle, its read ports and slots", WIDE - DETAIL + 8, HIGH)
        _draw_detail(sheet, fig, [_Alone(code, made)], 4)
        verdict = "**Legal**" if not faults else "**Illegal**, " + "; ".join(dict.fromkeys(faults))
        said = f"{verdict}. {len(chosen)} of 5 slots."
        return sheet.player([fig], [said], f"{sheet.title}: {said}")

    return controls(view, **{slot: ["empty", *operations] for slot in "xyzwt"}, start={"x": next(iter(operations))})


def _draw_listing(sheet: Sheet, fig, loops: list[_Loop]) -> None:
    """The lines of IL round those that the bundle comes from, in their colours."""
    names, line, colour, key, now = [""], [], [], [], []
    for number, loop in enumerate(loops):
        texts = [text.split(";")[0].strip() for text in loop.code.program.lines]
        listed = [n for n in range(loop.used[0], loop.used[-1] + 1) if texts[n - 1]]
        base = len(names)
        names += [f"{n:4}  {texts[n - 1][:38]}" for n in listed]
        for bundle in loop.bundles:
            lines = {o.line for o in bundle.operations}
            first = max(0, min(listed.index(min(lines)) - 5, len(listed) - SHOWN))
            rows = [n if n < len(listed) else -1 for n in range(first, first + SHOWN)]
            line.append([base + n if n >= 0 else 0 for n in rows])
            shown = [listed[n] if n >= 0 and listed[n] in loop.used else 0 for n in rows]
            colour.append([loop.colour(n) if n else IDLE for n in shown])
            key.append([10_000 * number + n if n else -1 for n in shown])
            now.append([2 if n in lines else 0 for n in shown])
    y = TOP + (np.arange(SHOWN) + 0.5) * LINE
    left, wide = LISTING
    sheet.words(fig, [left], [16], ["Lines of IL"], bold=True, size=14)
    source = sheet.boxes(fig, "lines", [left + wide / 2] * SHOWN, y, wide, LINE - 2, fill="rgba(128,128,128,0.05)",
                         key=np.array(key), now=np.array(now, np.uint8))  # fmt: skip
    sheet.ring(fig, source, wide, LINE - 2, "now", "soft")
    sheet.boxes(fig, "line colours", [left + 6] * SHOWN, y, 9, LINE - 6, fill=("colour", COLOURS),
                colour=np.array(colour, np.uint8))  # fmt: skip
    sheet.numbers(fig, "texts", [left + 14] * SHOWN, y, np.array(line), names=names, size=12,
                  text_font=value("monospace"))  # fmt: skip


def _draw_table(sheet: Sheet, fig, loops: list[_Loop]) -> None:
    """All bundles of the loop, in as many columns as they need; the one that runs is framed."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("x", "y", "w", "h", "colour", "key", "now")}
    left, wide = TABLE
    for number, loop in enumerate(loops):
        count = len(loop.bundles)
        columns = -(-count // 17)
        rows = -(-count // columns)
        w, h = (wide / columns - 28) / 5, min(22.0, (HIGH - TOP - 4) / rows)
        colour, key = np.full((2, count * 5), IDLE)
        key[:] = -1
        for n, bundle in enumerate(loop.bundles):
            for o in bundle.operations:
                at = 5 * n + o.slot
                colour[at], key[at] = loop.colour(o.line), 10_000 * number + o.line
        row, slot = np.divmod(np.arange(count * 5), 5)
        x = left + row // rows * (wide / columns) + 24 + (slot + 0.5) * w
        y = TOP + (row % rows + 0.5) * h
        size = np.full((2, len(x)), [[w - 2], [h - 2]])
        for what, values in zip(parts, (x, y, *size, colour, key)):
            parts[what].append(np.tile(values, (count, 1)))
        parts["now"].append(2 * (row == np.arange(count)[:, np.newaxis]))
    places = [together(parts[what]).astype(np.float32) for what in "xywh"]
    colour, key = together(parts["colour"], IDLE).astype(np.uint8), together(parts["key"], -1)
    sheet.words(fig, [left], [16], ["The loop's bundles: slots x y z w t"], bold=True, size=14)
    now = together(parts["now"], 0).astype(np.uint8)
    source = sheet.boxes(fig, "slots", *places, fill=("colour", COLOURS), colour=colour, key=key, now=now)
    sheet.ring(fig, source, "w", "h", "now", "ink")


def _draw_detail(sheet: Sheet, fig, loops: Sequence[_Loop], left: float = DETAIL) -> None:
    """The bundle that runs: the bundle before, the read ports, wires into the slots."""
    names = ["", *dict.fromkeys(_short(o.name) for loop in loops for b in loop.bundles for o in b.operations)]
    middle = left + 40 + (np.arange(5) + 0.5) * (SLOT - 4)
    rows = {"before": TOP + 16, "now": HIGH - 34}
    bank, port = left + 40 + (np.arange(4) + 0.5) * (SLOT - 4), PORT[0] + (np.arange(3) + 0.5) * PORT[1]
    count = sum(len(loop.bundles) for loop in loops)
    register = np.full((count, 12), -1)
    wires, handed = np.full((4, count, 15), np.nan, np.float32), np.full((4, count, 5), np.nan, np.float32)
    slots = {row: (np.zeros((count, 5), int), np.full((count, 5), IDLE), np.full((count, 5), -1)) for row in rows}
    frame = 0
    for number, loop in enumerate(loops):
        for n in range(len(loop.bundles)):
            for row, at in (("before", n - 1), ("now", n)):
                for o in loop.bundles[at].operations if row == "now" or n not in loop.firsts else ():
                    name, colour, key = (part[frame] for part in slots[row])
                    name[o.slot], colour[o.slot] = names.index(_short(o.name)), loop.colour(o.line)
                    key[o.slot] = 10_000 * number + o.line
            wire = 0
            for (cycle, channel), (index, takers) in loop.ports(n).items():
                register[frame, 4 * cycle + channel] = index
                for slot in dict.fromkeys(takers):
                    foot = bank[channel], port[cycle] + PORT[1] / 2 - 3
                    wires[:, frame, wire] = *foot, middle[slot] + 9 * (cycle - 1), rows["now"] - 13
                    wire += 1
            for k, (source, target) in enumerate(loop.handed(n)[:5]):
                handed[:, frame, k] = middle[source], rows["before"] + 13, middle[target] + 18, rows["now"] - 13
            frame += 1
    sheet.words(fig, [left], [16], ["This bundle"], bold=True, size=14)
    x0, y0, x1, y1 = wires
    sheet.arrows(fig, "wires", x0, y0, x1, y1, "soft", width=1.2, size=5)
    x, y = np.tile(bank, 3), np.repeat(port, 4)
    words = [f"cycle {cycle}, bank {c}" for cycle in range(3) for c in "xyzw"]
    sheet.boxes(fig, "port", x, y, SLOT - 8, PORT[1] - 4, ink="faint", line="line", words=words)
    sheet.numbers(fig, "ports", x, y, register, prefix="R", align="center", size=12)
    sheet.words(fig, bank, [PORT[0] - 9] * 4, [f"bank {c}" for c in "xyzw"], "soft", align="center", size=11)
    sheet.words(fig, [left + 34] * 3, port, [f"cycle {n}" for n in range(3)], "soft", align="right", size=11)
    x0, y0, x1, y1 = handed
    sheet.arrows(fig, "handed on", x0, y0, x1, y1, "wrote", width=2.5, size=8)
    for row, height in rows.items():
        name, colour, key = slots[row]
        place = f"slots {row}", middle, [height] * 5, SLOT - 8, 24
        sheet.boxes(fig, *place, fill=("colour", COLOURS), colour=colour.astype(np.uint8), key=key, round=3)
        sheet.numbers(fig, f"names {row}", middle, [height] * 5, name, names=names, align="center", size=11)
        sheet.words(fig, [left + 34], [height], [row], "soft", align="right", size=11)
    sheet.words(fig, middle, [HIGH - 12] * 5, list("xyzwt"), "soft", align="center", size=12)


def _short(name: str) -> str:
    """An operation's name in seven letters or so."""
    for old, new in (("_IEEE", ""), ("_DX10", ""), ("PRED_SET", "P_"), ("_INT", "_I"), ("_UINT", "_U"), ("LDS_", "")):
        name = name.replace(old, new)
    return name[:8]
