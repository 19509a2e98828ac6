"""A kernel's loop as VLIW bundles: the IL line in each slot, the registers read, and the results
passed through PV and PS.

Drawn from compiled code, a frame per bundle. A line of IL and the operations compiled from it have
the same color. Fetches, and bundles outside the main loop, aren't drawn.
"""

import re
from collections.abc import Sequence

import numpy as np

from cypresskit.compiler import Code, compile
from cypresskit.compiler.isa import SCALAR_SWIZZLES, VECTOR_SWIZZLES
from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import HEADING, Sheet
from cypresskit.il.cursor import strip_comment
from cypresskit.kernels.own import Source, resolve_program
from cypresskit.tables import elided, plural

# The stages, in pixels: the table of bundles, and the current bundle.
WIDTH, HEIGHT, TOP = 896, 420, 34
TABLE_LEFT, TABLE_WIDTH, TABLE_ROWS = 4, 450, 17  # with at most 17 rows per column
TABLE_END, DETAIL_LEFT = 462, 488
SLOT = 76  # width of a slot of the current bundle
PORTS_TOP, PORT = 124, 26  # its read ports, and the height of one
FETCH = re.compile(r"sample_resource\((\d+)\)_sampler\(\d+\)(?:_aoffimmi(\([^)]*\)))?")
IDLE = len(theme.SERIES)
COLORS = [*theme.SERIES, "rgba(128,128,128,0.10)"]  # of lines; the last one of empty slots
NO_KEY = -1
SWIZZLES = VECTOR_SWIZZLES | SCALAR_SWIZZLES  # the cycle of each operand
SHORT = {"_IEEE": "", "LDS_": "", "_VEC4": ""}


def bundles(code: Code | Source = "sgemm_tn") -> Player:
    """Draw the bundles of a kernel's main loop, a frame each.

    Parameters
    ----------
    code
        Compiled code (``ck.compile``); or a program or kernel, which is compiled.

    Raises
    ------
    ValueError
        If the main loop has no ALU bundles.

    Examples
    --------
    >>> ck.draw.bundles("dgemm_tn")
    """
    loop = _Loop(code if isinstance(code, Code) else compile(resolve_program(code)))
    sheet = Sheet(f"How many slots of a loop's bundles are filled? {loop.name}")
    # Each part is on a stage of its own: on a phone one is below the other.
    sheet.stage("Bundles of five slots", TABLE_END, HEIGHT)
    _draw_table(sheet, loop)
    label = "The current bundle, its read ports and slots"
    sheet.stage(label, WIDTH - TABLE_END, HEIGHT, left=TABLE_END)
    _draw_detail(sheet, loop)
    sheet.about |= {line: loop.story(line) for line in loop.used}
    note = theme.html(
        "In each of three cycles, each bank (x y z w) can read one register. Results of the"
        " previous bundle arrive through PV or PS and need no port."
    )
    return sheet.player(
        loop.captions(),
        "counted",
        below=[note],
        step="Bundle",
        listing=([short_fetch(line) for line in loop.lines], loop.current),
        line_colors={line: COLORS[loop.color(line)] for line in loop.used},
        opens=len(loop.bundles) // 2,
    )


class _Loop:
    """The bundles of a main loop.

    Attributes
    ----------
    firsts
        The bundles that start a clause, and so can't read PV or PS.
    opcodes
        The names of its operations; "" of an empty slot.
    used
        The lines of IL that the loop is compiled from.
    current
        Those of each bundle.
    sources
        The registers that a line of IL reads.
    """

    def __init__(self, code: Code) -> None:
        self.code, self.name = code, code.program.name.removesuffix(".il")
        self.bundles = [bundle for clause in code.main_loop for bundle in clause.bundles]
        if not self.bundles:
            raise ValueError(f"{code.program.name}: its main loop has no ALU bundles to draw")
        self.firsts = np.cumsum([0, *(len(clause.bundles) for clause in code.main_loop)]).tolist()
        operations = [o for bundle in self.bundles for o in bundle.operations]
        self.opcodes = ["", *dict.fromkeys(code.opcodes[o.line] for o in operations)]
        self.used = sorted({o.line for o in operations})
        self.current = [sorted({o.line for o in each.operations}) for each in self.bundles]
        self.lines = [strip_comment(text).strip() for text in code.program.lines]
        body = code.program.body
        self.sources = {i.line: [str(source.register) for source in i.sources] for i in body}

    def color(self, line: int) -> int:
        return self.used.index(line) % len(theme.SERIES) if line in self.used else IDLE

    def slots(self) -> np.ndarray:
        """Return the number of the opcode, the color and the key of each slot, of shape
        (3, bundles + 1, 5). The last bundle is empty.
        """
        slots = np.full((3, len(self.bundles) + 1, 5), [[[0]], [[IDLE]], [[NO_KEY]]])
        for n, bundle in enumerate(self.bundles):
            for o in bundle.operations:
                opcode = self.opcodes.index(self.code.opcodes[o.line])
                slots[:, n, o.slot] = opcode, self.color(o.line), o.line
        return slots

    def passed(self, n: int) -> list[tuple[int, int]]:
        """Return the results that bundle ``n`` reads through PV or PS: (slot of origin, reading
        slot) pairs.
        """
        pairs = {
            (4 if r.kind == "ps" else r.channel, o.slot)
            for o in self.bundles[n].operations
            for r in o.reads
            if r.kind in ("pv", "ps")
        }
        return sorted(pairs)

    def ports(self, n: int) -> dict[tuple[int, int], tuple[str, list[int]]]:
        """Return the used read ports: (cycle, bank) to the register, and the slots that read it.
        The register is named as in the IL, or else as on the chip, with a capital R.
        """
        operations = self.bundles[n].operations
        written = {
            (r.index, r.channel): name
            for o in operations
            for r, name in zip(o.reads, self.sources.get(o.line, ()))
            if r.kind == "gpr" and name.startswith("r")
        }
        used: dict[tuple[int, int], tuple[str, list[int]]] = {}
        for o in operations:
            for k, r in enumerate(o.reads):
                if r.kind == "gpr":
                    port = SWIZZLES[o.swizzle][k], r.channel
                    name = written.get((r.index, r.channel), f"R{r.index}")
                    used.setdefault(port, (name, []))[1].append(o.slot)
        return used

    def story(self, line: int) -> str:
        """Return a sentence on where a line of IL runs."""
        places = [
            f"{n + 1} {'xyzwt'[o.slot]}"
            for n, bundle in enumerate(self.bundles)
            for o in bundle.operations
            if o.line == line
        ]
        return (
            f"**Line {line}**, {self.lines[line - 1]}, runs in these bundles and slots:"
            f" {', '.join(places)}."
        )

    def captions(self) -> list[str]:
        """Return the captions. The last one begins with a summary of the loop."""
        *captions, last = (self.say(n) for n in range(len(self.bundles)))
        return [*captions, f"{self.summary()}\n{last}"]

    def say(self, n: int) -> str:
        """Return the caption of bundle ``n``."""
        bundle = self.bundles[n]
        ports = len(self.ports(n))
        lines = self.current[n]
        return (
            f"**{self.name}**, bundle {n + 1} of {len(self.bundles)}:"
            f" {bundle.filled} of 5 slots used,"
            f" for IL {plural('line', len(lines))} {', '.join(map(str, lines))};"
            f" {ports} of 12 read ports used."
        )

    def summary(self) -> str:
        """Return the statistics of an iteration."""
        card = self.code.stats()
        count = card.bundles_per_iteration
        filled = sum(bundle.filled for bundle in self.bundles)
        mads = f"{card.multiply_adds} {plural('multiply-add', card.multiply_adds)}"
        return (
            f"**{filled} of {5 * count} slots are filled**, and {card.slots5_pct:g} % of the"
            f" bundles are full. One iteration of the loop: {count} {plural('bundle', count)},"
            f" {mads}, {card.clocks_per_iteration} clocks of a wavefront."
        )


def _draw_table(sheet: Sheet, loop: _Loop) -> None:
    """Draw all bundles in as many columns as needed, with a frame around the current one. Slots are
    colored from the frame on in which their bundle is current.
    """
    sheet.text(TABLE_LEFT, 16, "The loop's bundles: slots x y z w t", **HEADING)
    count = len(loop.bundles)
    columns = -(-count // TABLE_ROWS)
    rows = -(-count // columns)
    column_width = TABLE_WIDTH / columns
    width = (column_width - 28) / 5
    height = min(22.0, (HEIGHT - TOP - 4) / rows)

    bundle, slot = np.divmod(np.arange(5 * count), 5)
    _, color, key = loop.slots()[:, :-1].reshape(3, -1)
    column, row = np.divmod(bundle, rows)
    left = TABLE_LEFT + column * column_width + 24
    y = TOP + (row + 0.5) * height
    running = np.arange(count)[:, np.newaxis]
    source = sheet.boxes(
        "slots",
        left + (slot + 0.5) * width,
        y,
        width - 2,
        height - 2,
        fill=(COLORS, np.where(bundle <= running, color, IDLE)),
        key=key,
        columns={"now": 2 * (bundle == running)},
    )
    sheet.ring(source, width - 2, height - 2, "now", "ink")
    numbered = np.array([0, *range(4, count, 5)])  # 1, 5, 10 and so on
    sheet.text(left[5 * numbered] - 3, y[5 * numbered], numbered + 1, "soft", align="right")


# Positions of the parts of the current bundle.
SLOTS_X = DETAIL_LEFT + 40 + (np.arange(5) + 0.5) * (SLOT - 4)
PORTS_X = SLOTS_X[:4] - 8
CYCLES_Y = PORTS_TOP + (np.arange(3) + 0.5) * PORT
PORTS_FOOT = CYCLES_Y[2] + PORT / 2
BEFORE_Y, NOW_Y = TOP + 16, HEIGHT - 34
NOW_TOP = NOW_Y - 13


def _wires(loop: _Loop, n: int) -> tuple[list, list]:
    """Return the wires from each used read port into the slots: first past the ports below it, then
    into the slots; each as (x, y, x, y).
    """
    drops, ends = [], []
    for (cycle, bank), (_, takers) in loop.ports(n).items():
        edge, y = PORTS_X[bank] + SLOT / 2 - 8, CYCLES_Y[cycle]
        gutter = edge + 3 + 3 * cycle
        drops.append((edge, y, gutter, y))
        drops.append((gutter, y, gutter, PORTS_FOOT))
        ends += [
            (gutter, PORTS_FOOT, SLOTS_X[slot] + 9 * (cycle - 1), NOW_TOP)
            for slot in dict.fromkeys(takers)
        ]
    return drops, ends


def _draw_detail(sheet: Sheet, loop: _Loop) -> None:
    """Draw the current bundle: the previous one, the read ports, a wire from each into the slots,
    and arrows from the previous slots to those that read their results.
    """
    frames = range(len(loop.bundles))
    sheet.text(DETAIL_LEFT, 16, "The current bundle", **HEADING)
    drops, ends = zip(*(_wires(loop, n) for n in frames))
    _draw_arrows(sheet, "drops", drops, color="soft", width=1.2, size=0.1)
    _draw_arrows(sheet, "wires", ends, color="soft", width=1.2, size=5)
    _draw_ports(sheet, loop)
    passed = [
        [(SLOTS_X[giver], BEFORE_Y + 13, SLOTS_X[taker] + 18, NOW_TOP) for giver, taker in pairs]
        for pairs in map(loop.passed, frames)
    ]
    _draw_arrows(sheet, "passed on", passed, color="wrote", width=2.5, size=8)
    _draw_slots(sheet, loop)


def _draw_arrows(sheet: Sheet, name: str, arrows: Sequence[list], **look) -> None:
    """Draw arrows (x, y, x, y), a list for each frame."""
    ends = np.full((4, len(arrows), max(1, *map(len, arrows))), np.nan, np.float32)
    for frame, of_frame in enumerate(arrows):
        ends[:, frame, : len(of_frame)] = np.reshape(of_frame, (-1, 4)).T
    sheet.arrows(name, ends[:2], ends[2:], **look)


def _draw_ports(sheet: Sheet, loop: _Loop) -> None:
    """Draw the read ports, a row per cycle and a column per bank, with their registers."""
    used = [loop.ports(n) for n in range(len(loop.bundles))]
    names = [*dict.fromkeys(name for ports in used for name, _ in ports.values())]
    register = np.full((len(used), 12), -1)
    for frame, ports in enumerate(used):
        for (cycle, bank), (name, _) in ports.items():
            register[frame, 4 * cycle + bank] = names.index(name)
    left, y = np.tile(PORTS_X, 3), np.repeat(CYCLES_Y, 4)
    x = np.where(register < 0, np.nan, left)  # a free port isn't drawn
    words = [f"cycle {cycle}, bank {bank}" for cycle in range(3) for bank in "xyzw"]
    sheet.boxes("port", x, y, SLOT - 16, PORT - 4, color="faint", line="line", words=words)
    sheet.numbers("ports", left, y, register, names=names, align="center", size=11)
    banks = [f"bank {bank}" for bank in "xyzw"]
    cycles = [f"cycle {n}" for n in range(3)]
    sheet.text(PORTS_X, PORTS_TOP - 9, banks, "soft", align="center", size=11)
    sheet.text(DETAIL_LEFT + 34, CYCLES_Y, cycles, "soft", align="right", size=11)


def _draw_slots(sheet: Sheet, loop: _Loop) -> None:
    """Draw the slots of the previous and of the current bundle, with their operations."""
    slots = loop.slots()
    short = [_abbrev(name) for name in loop.opcodes]
    now = range(len(loop.bundles))
    before = [-1 if n in loop.firsts else n - 1 for n in now]
    for row, y, shown in (("previous", BEFORE_Y, before), ("current", NOW_Y, now)):
        name, color, key = slots[:, shown]
        sheet.boxes(
            f"slots {row}",
            SLOTS_X,
            y,
            SLOT - 8,
            24,
            color="faint",
            words=(loop.opcodes, name),
            key=key,
            round=3,
        )
        sheet.boxes(f"colors {row}", SLOTS_X, y + 9, SLOT - 8, 6, fill=(COLORS, color))
        sheet.numbers(f"names {row}", SLOTS_X, y - 3, name, names=short, align="center", size=11)
        sheet.text(DETAIL_LEFT + 34, y, row, "soft", align="right", size=11)
    sheet.text(SLOTS_X, HEIGHT - 12, list("xyzwt"), "soft", align="center")


def short_fetch(line: str) -> str:
    """Return a line of IL; of a fetch, its texture, offset and registers are kept."""
    return FETCH.sub(
        lambda found: f"sample({found[1]}){'+' * bool(found[2])}{found[2] or ''}", line
    )


def _abbrev(name: str) -> str:
    """Return an operation's name in at most eight letters."""
    for part, letters in SHORT.items():
        name = name.replace(part, letters)
    return elided(name, 8)
