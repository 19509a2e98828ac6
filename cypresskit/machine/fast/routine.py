"""The compiled function as it is written: its context, literals and constants, variables, counters,
and how it ends.

``context`` is the function's first argument, a table of addresses and sizes; a *slot* is a place in
it. Variables are on the stack in the text, and LLVM makes registers of them.
"""

from cypresskit.il import Program
from cypresskit.machine.fast.vec import Emitter, Vec

DONE, FAILED, ENDLESS, DIVERGED, UNDERFLOWED, STOPPED = range(6)  # how a call of it ends
# What it reports: where in the body, whose, of which element of memory; the next batch.
PLACE, ITEM, ELEMENT, NEXT = range(4)
# batches of pixels that are run one below the other before the next column: they share columns of a
# texture
BAND = 16


class Routine:
    """A function in the making: ``ir`` collects its instructions, ``entry`` those of the block that
    it begins with, which loads what never changes.

    ``slots`` are the names of the context's values and ``literals`` the bits in the table of
    literals, each in the order of their places; ``variables`` have a kind and a number of lanes.
    """

    def __init__(self, program: Program):
        self.program = program
        self.ir = Emitter()
        self.entry: list[str] = []
        self.slots: dict[str, Vec] = {}
        self.literals: dict[int, Vec] = {}
        self.constants: dict[tuple[int, int, int], Vec] = {}
        self.variables: dict[str, tuple[str, int]] = {}

    # What never changes

    def _entered(self, name: str, base: str, offset: int, kind: str) -> Vec:
        self.entry.append(f"  %p_{name} = getelementptr i8, ptr {base}, i64 {offset}")
        self.entry.append(f"  %{name} = load {kind}, ptr %p_{name}")
        return Vec(self.ir, f"%{name}", kind)

    def slot(self, name: str, kind: str = "i64") -> Vec:
        """A value of the context."""
        if name not in self.slots:
            self.slots[name] = self._entered(name, "%context", 8 * len(self.slots), kind)
        return self.slots[name]

    def literal(self, bits: int) -> Vec:
        """A literal as i32, loaded from memory, so that LLVM can't constant-fold it in its own
        way.
        """
        if bits not in self.literals:
            table = self.slot("literals", "ptr").name
            self.literals[bits] = self._entered(
                f"l_{bits:08x}", table, 4 * len(self.literals), "i32"
            )
        return self.literals[bits]

    def constant(self, buffer: int, element: int, component: int) -> Vec:
        """A component of a constant buffer as i32. A kernel reads none beyond the declared size,
        and a launch has an array of at least that size.
        """
        key = buffer, element, component
        if key not in self.constants:
            base = self.slot(f"cb{buffer}", "ptr").name
            name = f"cb{buffer}_{element}_{component}"
            self.constants[key] = self._entered(name, base, 16 * element + 4 * component, "i32")
        return self.constants[key]

    # Variables

    def variable(self, name: str, kind: str, n: int = 0) -> str:
        """Declare a variable; its name."""
        self.variables[name] = kind, n
        return name

    def load(self, name: str) -> Vec:
        """The value of a variable."""
        kind, n = self.variables[name]
        return self._address_of(name).load(kind, n)

    def store(self, name: str, value: Vec | int) -> None:
        """Set a variable; a number sets every lane."""
        kind, n = self.variables[name]
        if not isinstance(value, Vec):
            value = self.ir.const(value, kind, n)
        self._address_of(name).store(value)

    def add(self, name: str, value: Vec | int) -> None:
        """Add to a variable."""
        self.store(name, self.load(name) + value)

    def _address_of(self, name: str) -> Vec:
        return Vec(self.ir, f"%{name}", "ptr")

    # Counts, reports and ends

    def add_count(self, counter: int, count: Vec) -> None:
        """counts[counter] += count; counter 0 is that of accesses out of range."""
        place = Vec(self.ir, "%counts", "ptr").at(8 * counter)
        place.store(place.load("i64") + count)

    def report(self, what: int, value: Vec) -> None:
        """Leave a value for the caller."""
        self.slot("report", "ptr").at(8 * what).store(value)

    def bound(self) -> Vec:
        """i64: the number of instructions that a loop may issue; 0 once the function is to stop."""
        return self.slot("limit", "ptr").load("i64", volatile=True)

    def give_up(self, status: int, at: int) -> None:
        """Leave the function at instruction ``at`` of the program's body."""
        self.store("status", status)
        self.report(PLACE, self.ir.const(at, "i64"))
        self.ir.go("exit")
