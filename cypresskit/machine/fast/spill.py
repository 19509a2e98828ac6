"""Registers of a gang between two regions, in the spill memory of its workgroup.

Barriers cut a program into regions, and each region runs for one gang of the workgroup after
another. What a gang still needs is stored when a region ends and loaded when the next one begins.
"""

from cypresskit.machine.fast.register_file import RegisterFile
from cypresskit.machine.fast.routine import Routine
from cypresskit.machine.fast.texel_layout import LINE
from cypresskit.machine.fast.vec import SIZES, Vec


class SpilledRegisters:
    """Translates how the cells of a region get their values, and are kept for the next one.

    ``offsets`` of the cells' places in the spill memory of a gang, and its ``size``: the first
    bytes keep the number of instructions issued.
    """

    def __init__(self, routine: Routine, registers: RegisterFile):
        self.routine, self.registers = routine, registers
        self.analysis, self.webs = registers.analysis, registers.webs
        self.has_barriers = bool(registers.analysis.uniformity.barriers)
        self.offsets: dict[tuple, int] = {}
        self.size = 8

    @property
    def gang_bytes(self) -> int:
        """The spill memory of a gang, in whole lines."""
        return -(-self.size // LINE) * LINE

    def restore(self, start: int) -> None:
        """Give every cell of the region that begins at ``start`` its value: what was kept, or
        zero.
        """
        webs = self.webs
        between = self.has_barriers and start
        kept = self._live_cells(start - 1, webs.live[start]) if between else set()
        first = {self.analysis.cell(web).name for web in webs.entry} if not start else set()
        for name in self.registers.touched:
            kind, n = self.routine.variables[name]
            if name in kept:
                value: Vec | int = self._place(name).load(kind, n)
            elif name in first:
                # A register that is read before it is written: a zero that LLVM doesn't know.
                zero = self.routine.literal(0)
                value = (zero.cast("zext", "i64") if kind == "i64" else zero).lanes(n)
            else:
                value = 0
            self.routine.store(name, value)
        issued = self.registers.gang.spill.load("i64") if between else 0
        self.routine.store("issued", issued)

    def save(self, last: int) -> None:
        """Keep the cells that are needed after the region, which ends with instruction ``last``."""
        if not self.has_barriers:
            return
        live = self._live_cells(last, self.webs.live_after(last))
        for name in self.registers.touched:
            if name in live and name in self.registers.modified:
                self._place(name).store(self.routine.load(name))
        self.registers.gang.spill.store(self.routine.load("issued"))

    def _live_cells(self, at: int, live: int) -> set[str]:
        return {self.analysis.cell(web).name for web in self.webs.between(at, live)}

    def _place(self, name: str) -> Vec:
        """Where a cell is kept: all cells of the same part of a register in one place, since no two
        of them are live at once, and the whole should fit the host's first cache.
        """
        cell = self.registers.touched[name]
        if cell.part not in self.offsets:
            size = max(cell.n, 1) * SIZES[cell.kind] // 8
            self.offsets[cell.part] = -(-self.size // size) * size
            self.size = self.offsets[cell.part] + size
        return self.registers.gang.spill.at(self.offsets[cell.part])
