"""The bundle game: a reader packs the operations of a loop into bundles of five slots.

It runs in the browser, with the mouse or the keyboard. A level comes from compiled code: the
operations, their dependences, and how many bundles the compiler needs. ``bundle_rules.js`` decides
what a bundle may hold, with the tables of ``compiler.isa``. Left out: allocating registers; the
compiler's registers stay.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cypresskit.compiler import Bundle, Operation, Read, compile
from cypresskit.compiler.isa import (
    SCALAR_SWIZZLES,
    SLOT_SETS,
    VECTOR_SWIZZLES,
    lower_bound_bundles,
)
from cypresskit.draw import svg, theme
from cypresskit.draw.interactive_figure import InteractiveFigure
from cypresskit.draw.scripts import read_packaged
from cypresskit.il import Program, assemble
from cypresskit.il.cursor import strip_comment
from cypresskit.kernels.own import Source, resolve_program
from cypresskit.teach.l03_bundles.checks import working

# registers from here on: results that the compiler passes on as PV or PS and never stores
UNSTORED = 1000
TABLES = {
    "unstored": UNSTORED,
    "swizzles": {"vector": VECTOR_SWIZZLES, "t": SCALAR_SWIZZLES},
    "sets": SLOT_SETS,
}


def bundle_game(kernel: Source = "sgemm_tn") -> InteractiveFigure:
    """Return the game in which a reader packs a small dot product, a rank-1 update and a kernel's
    loop into as few bundles as possible. It rejects illegal moves, with the reason.
    """
    small = {"a dot product": "dot_product.il", "a rank-1 update": "rank_1.il"}
    named = {
        name: assemble(read_packaged(f"teach/l03_bundles/{file}"), file)
        for name, file in small.items()
    }
    program = resolve_program(kernel)
    named[program.name.removesuffix(".il")] = program
    levels = [level(*pair) for pair in named.items()]
    title = "The bundle game"
    lines = [f"{title}: pack operations into bundles of five slots"]
    lines += [f"{pair['name']}; fewest bundles {pair['least']}" for pair in levels]
    keys = (
        "arrows choose operation and slot, Enter drops, B closes the bundle, U undoes, H is a hint"
    )
    data = {"levels": levels, "tables": TABLES}
    return InteractiveFigure(
        title=title,
        keys=keys,
        text="\n".join(lines),
        kind="bundle_game",
        modules=("teach/l03_bundles/bundle_rules.js", "teach/l03_bundles/bundle_game.js"),
        begin="beginGame",
        marks=_marks(levels[0]["lines"]),
        size=(860, 300),
        data=data,
    )


def _marks(lines: dict[int, str]) -> list[str]:
    """Return the SVG of the static image: a level's lines of IL, and an empty bundle with its
    ports.
    """
    ports = [svg.box(420 + 84 * n, 36 + 36 * k, 76, 28, "none") for n in range(4) for k in range(3)]
    slots = [svg.box(420 + 84 * n, 206, 76, 52, "none") for n in range(5)]
    return [
        svg.text(4, 20, "Lines of IL"),
        *(svg.text(4, 50 + 24 * k, f"{n}  {line}") for k, (n, line) in enumerate(lines.items())),
        svg.text(420, 20, "Read ports of banks x y z w"),
        *ports,
        svg.text(420, 190, "Slots of the bundle"),
        *slots,
        *(svg.text(456 + 84 * n, 238, slot) for n, slot in enumerate("xyzwt")),
    ]


@dataclass(frozen=True, eq=False)
class Card:
    """An operation to be packed. ``parts``: one for each slot that it takes; they read registers
    and constants, never PV and PS, whose contents depend on the packing. ``waits``: the cards that
    it depends on, by number; True if such a card must be in an earlier bundle, False if it may
    be in the same bundle.
    """

    parts: tuple[Operation, ...]
    waits: dict[int, bool]

    def as_dict(self, color: int) -> dict:
        """Return the card as ``bundle_rules.js`` takes it."""
        o = self.parts[0]
        parts = [
            {
                "channel": p.channel,
                "dest": p.dest and list(p.dest),
                "reads": [_read(r) for r in p.reads],
            }
            for p in self.parts
        ]
        return {
            "name": o.name.removesuffix("_IEEE"),
            "line": o.line,
            "color": color,
            "slots": o.row.slots or "any",
            "parts": parts,
            "test": o.row.is_test,
            "lds": o.row.kind == "lds",
            "alone": o.row.kind == "sync",
            "waits": [[n, later] for n, later in self.waits.items()],
        }


def _read(r: Read) -> dict:
    if r.kind == "gpr":
        return {"kind": "gpr", "bank": r.channel, "register": r.index}
    key = f"{r.index}.{r.element}.{r.channel // 2}" if r.kind == "constant" else r.bits
    return {"kind": r.kind, "key": key}


def cards(bundles: Sequence[Bundle]) -> list[Card]:
    """Return the operations of a loop's ``bundles``, in order, with their dependences."""
    deck: list[Card] = []
    writer: dict[
        tuple[int, int], int
    ] = {}  # the card that wrote a word last, and those that have read it since
    readers: dict[tuple[int, int], list[int]] = {}
    previous: dict[int, tuple[int, int]] = {}  # what PV and PS hold, by slot
    for bundle, following in zip(bundles, [*bundles[1:], Bundle(())]):
        first = len(deck)
        held = {}
        taken = {_slot(r) for o in following.operations for r in o.reads if r.kind in ("pv", "ps")}
        for parts in bundle.parts:
            own: list[Operation] = []
            waits: dict[int, bool] = {}
            for o in parts:
                reads = tuple(
                    Read("gpr", *previous[_slot(r)]) if r.kind in ("pv", "ps") else r
                    for r in o.reads
                )
                unstored = (UNSTORED + len(deck), o.channel) if o.slot in taken else None
                own.append(replace(o, reads=reads, dest=o.dest or unstored, swizzle=""))
                waits |= {writer[word]: True for word in _words(reads) if word in writer}
            deck.append(Card(tuple(own), waits))
        for n in range(first, len(deck)):
            for word in {word for part in deck[n].parts for word in _words(part.reads)}:
                readers.setdefault(word, []).append(n)
        for n in range(first, len(deck)):
            for part in deck[n].parts:
                if part.dest is not None:
                    late = {m: False for m in readers.pop(part.dest, []) if m != n}
                    late |= (
                        {writer[part.dest]: True}
                        if part.dest in writer and writer[part.dest] != n
                        else {}
                    )
                    deck[n].waits.update(
                        {m: later for m, later in late.items() if m not in deck[n].waits}
                    )
                    writer[part.dest] = n
                    held[part.slot] = part.dest
        previous = held
    return deck


def _slot(r: Read) -> int:
    """Return the slot whose result PV or PS passes on."""
    return 4 if r.kind == "ps" else r.channel


def _words(reads: Iterable[Read]) -> Iterable[tuple[int, int]]:
    return ((r.index, r.channel) for r in reads if r.kind == "gpr")


def level(name: str, program: Program) -> dict:
    """Return a level for the script: the operations of the main loop (of all code if there is no
    loop), their lines of IL, the compiler's number of bundles, and a lower bound.
    """
    bundles = working(compile(program).main_loop)
    deck = cards(bundles)
    lines = sorted({card.parts[0].line for card in deck})
    colors = {line: n % len(theme.SERIES) for n, line in enumerate(lines)}
    longest: list[int] = []
    for card in deck:
        longest.append(1 + max((longest[n] for n, later in card.waits.items() if later), default=0))
    slots = Counter(part.row.slots for card in deck for part in card.parts)
    return {
        "name": theme.make_readable(f"{name}: {len(deck)} operations"),
        "cards": [card.as_dict(colors[card.parts[0].line]) for card in deck],
        "lines": {
            n: theme.make_readable(strip_comment(program.lines[n - 1]).strip()) for n in lines
        },
        "compiled": len(bundles),
        "least": max(lower_bound_bundles(slots), *longest),
    }
