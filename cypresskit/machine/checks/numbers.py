"""Where the first NaN and the first infinity come from: which operation made them, and of which operands.

Every single and double result that matters later (``Needs``) is checked; one that isn't finite is marked, and reported
once it is used (``Marks``): a quotient that ``cmov_logical`` doesn't choose is no fault, nor is a value compared with
itself. Arithmetic on a NaN that came in from outside is reported with its origin. Bits that other instructions produce
are checked where they are stored to an output or global memory that holds floats or doubles; there a copy of what the
caller's data hold, or expect, is right.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from cypresskit.il import Instruction, Source
from cypresskit.il.dataflow import Key, components
from cypresskit.machine.checks.findings import Naming
from cypresskit.machine.checks.marks import Mark, Marks
from cypresskit.machine.observer import FetchEvent, StepEvent, WroteEvent

LEAST = {"f": np.uint32(0xFF000000), "d": np.uint32(0xFFE00000)}  # an infinity's (high) word shifted left by 1
KINDS = {"float32": "f", "float64": "d"}
VIEWS = {"d": np.float64, "i": np.int32, "u": np.int32}  # how operands are shown; others as single precision
MADE = {"mul": "0 * infinity", "add": "infinity - infinity", "sub": "infinity - infinity", "sqrt": "a negative number"}


@dataclass(frozen=True, eq=False)
class _Made:
    """Where values of one name ("NaN", "infinity") were made: the instruction, the component of its result, by which
    work-items (numbers), every operand's text and values, and what had written registers last that are operands."""

    name: str
    at: int
    component: int
    items: np.ndarray
    operands: list[tuple[str, np.ndarray]]
    came: dict[int, "int | FetchEvent | None"]


class NumbersCheck(Marks):
    """Reports the first NaN and the first infinity."""

    def __init__(self, naming: Naming, expected: np.ndarray | None):
        super().__init__(naming)
        self.expected = expected
        self.kinds = [self._kind(i) for i in self.program.body]
        matter = zip(self.kinds, self.needs.writes, strict=True)
        self.looked = [[c for c in some if kind == "f" or (kind == "d" and c % 2)] for kind, some in matter]
        self.wanted = {"NaN", "infinity"}
        self.given = cache(self._given)
        self.origin: dict[int, int | FetchEvent] = {}  # register: the instruction or fetch that wrote it last
        self.fetched: FetchEvent | None = None
        self.element: np.ndarray | None = None  # of global memory, that is being written

    def _kind(self, i: Instruction) -> str:
        """Whether an instruction gives single or double numbers, "f" or "d", or stores its bits as such."""
        kind = i.op.result if i.op.kind == "alu" else ""
        if kind not in LEAST and i.dest and i.dest.register.kind in "og":
            array = "g" if i.dest.register.kind == "g" else str(i.dest.register)
            kind = KINDS.get(str(self.naming.dtypes.get(array)), "")
        return kind

    def step(self, event: StepEvent) -> None:
        self.fetched = None
        super().step(event)

    def fetch(self, event: FetchEvent) -> None:
        self.fetched = event

    def spares(self, i: Instruction) -> bool:
        return i.op.relation in ("eq", "ne") and i.op.sources[0] in "fd" and i.sources[0] == i.sources[1]

    def same(self, key: Key, fault: _Made):
        return fault.name

    def wrote(self, event: WroteEvent) -> None:
        if self.wanted and self.looked[event.at] and not event.finite:
            if (event.rows << np.uint32(1)).max(initial=0) >= LEAST[self.kinds[event.at]]:
                self._look(event, [c for c in self.looked[event.at] if c in event.components])
        super().wrote(event)
        if event.register.kind == "r":
            i, origin = self.program.body[event.at], self.fetched or event.at
            if i.op.name == "mov" and i.sources[0].register.kind == "r":
                origin = self.origin.get(i.sources[0].register.index, origin)
            self.origin[event.register.index] = origin

    def _look(self, event: WroteEvent, looked: list[int]) -> None:
        """Look for special values in those components of a result."""
        self.element, kind = event.element, self.kinds[event.at]
        table = np.zeros((4, self.launch.items), np.uint32)
        table[list(event.components)] = event.rows
        for name, bad in _special(kind, table[looked], table[[c - 1 for c in looked]]).items():
            copied = self.program.body[event.at].op.result != kind and self.given(name, kind)
            if name in self.wanted and not copied and (bad & event.active).any():
                self._made(name, kind, event, dict(zip(looked, bad & event.active)))

    def _made(self, name: str, kind: str, event: WroteEvent, bad: dict[int, np.ndarray]) -> None:
        """Components of a result aren't finite in ``bad`` work-items: reported at once if stored, else marked."""
        i = self.program.body[event.at]
        for c, row in bad.items():
            if not row.any():
                continue
            items, position = np.flatnonzero(row), 0 if i.op.vector else c
            operands = [self._operand(i, n, position, items) for n in range(len(i.sources))]
            came = {s.register.index: self.origin.get(s.register.index) for s in i.sources if s.register.kind == "r"}
            made = _Made(name, event.at, c, items, operands, came)
            if event.register.kind == "r":
                for part in (c, c - 1) if kind == "d" else (c,):
                    self._carry(self.carried, part, Mark(row, made))
            elif name in self.wanted:
                self.report_use(event.at, (0, c), made, np.any([*bad.values()], axis=0))

    def _given(self, name: str, kind: str) -> bool:
        """Whether the caller's data hold such a value, or should in the end."""
        arrays = [*(t.words for t in self.launch.textures.values()), *self.launch.constants.values()]
        if any(s.register.kind == "g" for i in self.program.body for s in i.sources):
            arrays.append(self.launch.memory)
        if self.expected is not None:
            arrays.append(np.ascontiguousarray(self.expected).reshape(-1).view(np.uint32))
        lows, highs = (slice(0, None, 2), slice(1, None, 2)) if kind == "d" else (slice(None), slice(None))
        return any(_special(kind, a.reshape(-1)[highs], a.reshape(-1)[lows])[name].any() for a in arrays)

    def report_use(self, at: int, key: Key, fault: _Made, users: np.ndarray) -> None:
        if fault.name not in self.wanted:
            return
        self.wanted.discard(fault.name)
        i = self.program.body[fault.at]
        assert i.dest is not None
        n = int(np.argmax(users[fault.items]))
        item, operands = int(fault.items[n]), [(text, values[n]) for text, values in fault.operands]
        letters = "xyzw"[fault.component - (self.kinds[fault.at] == "d") : fault.component + 1]
        element = f"{i.dest.register}.{letters}"
        if i.dest.register.kind == "g" and self.element is not None:
            element = self.naming.element(int(self.element[item]), fault.component)
        values = ", ".join(f"{text} = {value:g}" for text, value in operands)
        gets = f"{self.naming.item(item)} gets {element} = {fault.name} from `{i.op.name}` of {values}"
        advice = self._advice(fault, i, [value for _, value in operands], item)
        more: dict = {"count": int(users.sum()), "word": i.op.name, "item": item, "element": element}
        self.report("number", fault.at, f"the first {fault.name}: {gets}", advice, key=(fault.name,), **more)

    def _operand(self, i: Instruction, n: int, position: int, items: np.ndarray) -> tuple[str, np.ndarray]:
        """A source as it stands in the kernel (without modifiers) and the values its register has."""
        source, kind = i.sources[n], VIEWS.get(i.op.sources[n], np.float32)
        letters = source.swizzle[:2] if kind is np.float64 else source.swizzle[position]
        rows = [np.broadcast_to(self.rows(source, letter)[0], self.launch.items)[items] for letter in letters]
        return f"{source.register}.{letters}", np.stack(rows, axis=1).view(kind)[:, 0]

    def _advice(self, fault: _Made, i: Instruction, values: list, item: int) -> str:
        if i.op.result != self.kinds[fault.at]:
            return self._bits_advice(fault, i)
        for source, value in zip(i.sources, values, strict=True):
            same = np.isnan(value) if fault.name == "NaN" else np.isinf(value)
            if same and components(source, (0,)):
                return f"It came in through {source.register}: {self._came(fault, source, item)}"
        least = 0.0 if i.op.double else 2.0**-126  # what lies below is flushed to 0
        if i.op.name in ("div", "ddiv", "rcp") and (values[-1] == 0 or abs(values[-1]) < least):
            return "A division by zero: is the divisor set, and for every work-item?"
        if fault.name == "NaN":
            made = f"This operation made it: {MADE.get(i.op.name, '0 * infinity or infinity - infinity')}."
            return f"{made} Look for the infinity first." if np.isinf(values).any() else made
        if i.op.double:
            return "The result is larger than a double holds (1.8e308, or 3.4e38 as a float): scale the data."
        return "The result is larger than single precision holds (3.4e38): scale the data, or use doubles."

    def _bits_advice(self, fault: _Made, i: Instruction) -> str:
        at: int | FetchEvent | None = fault.at
        if i.op.name == "mov" and i.sources[0].register.kind == "r":
            at = fault.came[i.sources[0].register.index]
        maker = self.program.body[at] if isinstance(at, int) else i
        if maker.op.kind != "alu" or maker.op.copies:
            bits = "These bits are no finite number in the array they are stored to"
            return f"{bits}: a float literal has a point, as in -1.0, and a whole number needs `itof`."
        line = "This line" if at == fault.at else f"Line {maker.line} (`{maker.op.name}`)"
        makes = f"{line} makes a whole number or a mask, and its bits are stored as a float"
        return f"{makes}: convert it with `itof`, or let `cmov_logical` choose between two floats."

    def _came(self, fault: _Made, source: Source, item: int) -> str:
        if source.register.kind != "r":
            return "the caller's data hold it."
        origin = fault.came[source.register.index]
        if isinstance(origin, FetchEvent):
            texel = self.naming.texel(origin.resource, int(origin.x[item]), int(origin.y[item]))
            return f"line {self.program.body[origin.at].line} fetched it from {texel}."
        return f"line {self.program.body[origin].line} wrote it." if origin is not None else "nobody set it."


def _special(kind: str, highs: np.ndarray, lows: np.ndarray) -> dict[str, np.ndarray]:
    """Where words are a NaN, and where an infinity; of doubles both words are given."""
    size, rest = highs << np.uint32(1), (lows != 0) & (kind == "d")
    equal = size == LEAST[kind]
    return {"NaN": (size > LEAST[kind]) | (equal & rest), "infinity": equal & ~rest}
