"""Where the first NaN and the first infinity come from: which operation made them, and of which operands.

Looks at every single and double result that matters later (``Needs``), not at bits that integer operations or fetches
produce. Arithmetic on a NaN that came in from outside is reported with the place it came from.
"""

import numpy as np

from cypresskit.il import Instruction, Source
from cypresskit.machine.checks.needs import Needs
from cypresskit.machine.checks.report import Check, Places
from cypresskit.machine.fast.flow import letters
from cypresskit.machine.observer import Fetch, Step, Wrote

EXPONENT = {"f": np.uint32(0x7F800000), "d": np.uint32(0x7FF00000)}
LEAST = {kind: np.uint32((int(bits) << 1) & 0xFFFFFFFF) for kind, bits in EXPONENT.items()}  # of words shifted left
LOW_MASK = {"f": np.uint32(0x007FFFFF), "d": np.uint32(0x000FFFFF)}
MADE = {"mul": "0 * infinity", "add": "infinity - infinity", "sub": "infinity - infinity", "sqrt": "a negative number"}


class NumbersCheck(Check):
    """Reports the first NaN and the first infinity."""

    def __init__(self, places: Places, needs: Needs):
        super().__init__(places)
        self.looked: list[list[int]] = []
        self.keeps: list[int] = []
        for at, i in enumerate(self.program.body):
            result = i.op.result if i.op.kind == "alu" else "-"
            looked = list(needs.writes[at]) if result in ("f", "d") and i.dest and i.dest.register.kind == "r" else []
            self.looked.append([c for c in looked if result == "f" or c % 2])
            own = [s for s in i.sources if i.dest and s.register == i.dest.register]
            self.keeps.append(i.dest.register.index if looked and own and i.dest else -1)
        self.wanted = {"NaN", "infinity"}
        self.origin: dict[int, int | Fetch] = {}  # register: the instruction or fetch that wrote it last
        self.before: np.ndarray | None = None
        self.fetched: Fetch | None = None

    def step(self, event: Step) -> None:
        self.fetched = None
        if not self.wanted:
            return
        self.registers = event.registers
        keep = self.keeps[event.at]
        if keep >= 0:
            self.before = event.registers[keep].copy()

    def fetch(self, event: Fetch) -> None:
        self.fetched = event

    def wrote(self, event: Wrote) -> None:
        if self.wanted and self.looked[event.at]:
            looked = self.looked[event.at]
            rows = event.values.T if len(looked) == 4 else event.values.T[looked]
            kind = self.program.body[event.at].op.result
            if (rows << np.uint32(1)).max() >= LEAST[kind]:
                self._look(event, rows, kind)
        self.origin[event.register.index] = self.fetched or event.at

    def _look(self, event: Wrote, rows: np.ndarray, kind: str) -> None:
        special = (rows & EXPONENT[kind] == EXPONENT[kind]) & event.active
        if not special.any():
            return
        rest = rows & LOW_MASK[kind]
        if kind == "d":
            rest = rest | event.values.T[[c - 1 for c in self.looked[event.at]]]
        for name, bad in (("NaN", special & (rest != 0)), ("infinity", special & (rest == 0))):
            if name in self.wanted and bad.any():
                self.wanted.discard(name)
                self._tell(name, event, bad)

    def _tell(self, name: str, event: Wrote, bad: np.ndarray) -> None:
        i = self.program.body[event.at]
        assert i.dest is not None
        item = int(np.flatnonzero(bad.any(axis=0))[0])
        component = self.looked[event.at][int(np.argmax(bad[:, item]))]
        position = component if not i.op.vector else 0
        operands = [self._operand(i, n, position, item, event) for n in range(len(i.sources))]
        told = ", ".join(f"{text} = {value:g}" for text, value in operands)
        letter = "xyzw"[component - 1 : component + 1] if i.op.result == "d" else "xyzw"[component]
        element = f"r{i.dest.register.index}.{letter}"
        values = [value for _, value in operands]
        self.report(
            "number",
            event.at,
            f"the first {name}: {self.places.item(item)} gets {element} = {name} from `{i.op.name}` of {told}",
            self._advice(name, i, values, item),
            key=(name,),
            count=int(bad.any(axis=0).sum()),
            word=i.op.name,
            item=item,
            element=element,
        )

    def _operand(self, i: Instruction, n: int, position: int, item: int, event: Wrote) -> tuple[str, float]:
        """A source as it stands in the kernel (without modifiers) and the value its register has."""
        source, double = i.sources[n], i.op.sources[n] == "d"
        bits = [self._bits(source, source.swizzle[p], item, i, event) for p in ((0, 1) if double else (position,))]
        text = f"{source.register}.{source.swizzle[:2] if double else source.swizzle[position]}"
        if double:
            return text, float(np.array(bits, np.uint32).view(np.float64)[0])
        whole = i.op.sources[n] in "iu"
        return text, float(np.array(bits, np.uint32).view(np.int32 if whole else np.float32)[0])

    def _bits(self, source: Source, letter: str, item: int, i: Instruction, event: Wrote) -> int:
        register = source.register
        if letter in "01":
            return 0x3F800000 if letter == "1" else 0
        c = "xyzw".index(letter)
        if register.kind == "r":
            own = i.dest and i.dest.register == register and self.before is not None
            rows = self.before if own and self.before is not None else self.registers[register.index]
            return int(rows[c, item])
        if register.kind == "l":
            return self.program.literals[register.index][c]
        if register.kind == "cb":
            return int(self.launch.constants[register.index][register.element][c])
        if register.kind == "g":
            place = register.element
            if register.address is not None:
                address = self._bits(register.address, register.address.swizzle[0], item, i, event)
                place += int(np.uint32(address).view(np.int32))
            memory = self.launch.global_memory
            return int(memory[place, c]) if memory is not None and 0 <= place < len(memory) else 0
        rows = self.launch.ids[register.kind]
        return int(rows[c, item])

    def _advice(self, name: str, i: Instruction, values: list[float], item: int) -> str:
        for source, value in zip(i.sources, values):
            same = np.isnan(value) if name == "NaN" else np.isinf(value)
            if same and letters(source, (0,)):
                return f"It came in through {source.register}: {self._came(source, item)}"
        least = 0.0 if i.op.double else 2.0**-126  # what lies below is flushed to 0
        if i.op.name in ("div", "ddiv", "rcp") and (values[-1] == 0 or abs(values[-1]) < least):
            return "A division by zero: is the divisor set, and for every work-item?"
        if name == "NaN":
            made = MADE.get(i.op.name, "0 * infinity or infinity - infinity")
            return f"This operation made it: {made}." + " Look for the infinity first." * bool(np.isinf(values).any())
        return (
            "The result is larger than the format holds (3.4e38 in single precision): scale the data, or use doubles."
        )

    def _came(self, source: Source, item: int) -> str:
        if source.register.kind != "r":
            return "the caller's data hold it."
        origin = self.origin.get(source.register.index)
        if isinstance(origin, Fetch):
            texel = self.places.texel(origin.resource, int(origin.x[item]), int(origin.y[item]))
            return f"line {self.program.body[origin.at].line} fetched it from {texel}."
        return f"line {self.program.body[origin].line} wrote it." if origin is not None else "nobody set it."
