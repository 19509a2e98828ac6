"""Define the simulated boards and hosts: every number, with its unit and source.

A ``Device`` has the numbers of a data sheet and those that the compiler and the timing model need.
Numbers that no document gives are calibrations: their field states the measurement to which they
were fitted, and ``calibrations(device)`` lists them. One set of calibrations is used for all
kernels and sizes. ``dataclasses.replace(HD5870, l1_bytes=16384)`` makes a hypothetical board.

Sources: "Table 1" is the table in Nakasato's GEMM paper on Cypress; "APP" AMD's APP OpenCL
programming guide rev 1.3f; "ISA" AMD's Evergreen instruction set rev 1.1a.

``replace(HD5870, texture_bank=my_bank)`` gives its texture cache a bank rule of one's own.

Not covered: power.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from cypresskit.il.errors import ArgumentError, shorten
from cypresskit.tables import table

MAX_COUNT = 1024  # maximum number of engines, channels, banks, ... of a simulated chip
MAX_NUMBER = 1e30  # numbers of boards are below it
WAVEFRONT = 64  # work-items on every board, in compute mode consecutive ones of a workgroup
TILE = 8  # pixels along a side of the tile of a wavefront
REGISTER_BYTES = 16  # of a work-item's register: four words
#: Double instructions per double-double operation, on average: an addition takes 21, and a
#: multiplication 8, with fused multiply-adds (Nakasato, appendix A).
DOUBLE_DOUBLE = (21 + 8) / 2
PRECISIONS = "single", "double", "double-double"
FIRST_TEMPORARY = 124  # R124 to R127 are T0 to T3, whether a kernel uses them or not (ISA 4.6)


def check_precision(precision: object) -> None:
    """Raise ``ValueError`` unless ``precision`` is one of ``PRECISIONS``."""
    if precision not in PRECISIONS:
        raise ArgumentError(f"precision {precision!r} is not one of {', '.join(PRECISIONS)}")


def check_device(device: object) -> None:
    """Raise ``TypeError`` unless ``device`` is a ``Device``."""
    if not isinstance(device, Device):
        raise ArgumentError(f"device is a board, such as ck.HD5870, not {device!r}")


@dataclass(frozen=True)
class Range:
    """The values that a number of a board may have."""

    above: float = -math.inf  #: an exclusive lower bound
    least: float = 0  #: an inclusive lower bound
    most: float = math.inf  #: an inclusive upper bound
    power: bool = False  #: whether only powers of two are allowed

    def has(self, value: Any, whole: bool) -> bool:
        """Return whether a value is a number of Python or numpy in this range.

        If ``whole``, it must be an integer.
        """
        kinds: Any = (int, np.integer) if whole else (int, float, np.integer, np.floating)
        if not isinstance(value, kinds) or isinstance(value, bool) or not abs(value) < MAX_NUMBER:
            return False
        if self.power and int(value).bit_count() != 1:
            return False
        return bool(self.above < value and self.least <= value <= self.most)

    def words(self, whole: bool) -> str:
        """Return a description of the allowed values, such as "a whole number of at least 1"."""
        kind = "a power of two" if self.power else "a whole number" if whole else "a number"
        lowest = f"of at least {self.least}" if self.above < 0 else f"above {self.above}"
        return kind + " " + lowest + (f", at most {self.most:,}" if self.most < math.inf else "")


def is_whole(value: Any, most: float = math.inf) -> bool:
    """Return whether a value is an integer of Python or numpy from 1 to ``most``; True is not.

    To compute with it, take ``int`` of it first: numpy's integers wrap.
    """
    return Range(least=1, most=most).has(value, whole=True)


def plain(value: Any) -> Any:
    """Return one of numpy's numbers as Python's, which doesn't wrap; other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def _number(unit: str, source: str, default: Any, calibrated: str = "", **allowed: Any) -> Any:
    """Return a dataclass field for a number of a board.

    Parameters
    ----------
    unit, source
        What the number counts, and the document that gives it.
    default
        Its value.
    calibrated
        The measurement to which it was fitted, or the assumption; "" if a document gives it.
    allowed
        The fields of its ``Range``. A field annotated as int takes integers.
    """
    metadata = {"unit": unit, "source": source, "calibrated": calibrated}
    return field(default=default, metadata=metadata | {"allowed": Range(**allowed)})


_count = partial(_number, least=1)
_positive = partial(_number, above=0)
_power = partial(_number, least=1, power=True)
_share = partial(_number, above=0, most=1)


@dataclass(frozen=True)
class BankRule:
    """What a function that assigns banks is asked."""

    banks: str  #: the field with the number of banks, which its answers are below
    sizes: tuple[int, ...]  #: its arguments are below these, and then recur
    asks: str  #: for errors


BANK_RULES = {
    "texture_bank": BankRule("texture_banks", (16, 16), "the bank of texel x in row y"),
    "lds_bank": BankRule("lds_banks", (8192,), "the bank of a word of the LDS"),
}


def _tabulate(board: Any, name: str, rule: Callable[..., int] | tuple[Any, ...]) -> Any:
    """Return the answers of a bank rule as nested tuples, cut to their periods (powers of two): for
    ``texture_bank`` a row for each y. A table is checked as the function that it was made from.
    """
    asked = BANK_RULES[name]
    table = np.array(() if callable(rule) else rule, object)
    is_table = isinstance(rule, tuple) and table.size > 0 and table.ndim == len(asked.sizes)
    _check(board, name, callable(rule) or is_table, f"has to be a function: {asked.asks}")

    def look_up(*at: int) -> Any:
        return table[tuple(i % n for i, n in zip(at[::-1], table.shape))]

    ask = rule if callable(rule) else look_up
    banks = getattr(board, asked.banks)
    answers = np.zeros(asked.sizes[::-1], np.int64)
    for at in np.ndindex(asked.sizes):
        answer: Any = ask(*at)
        if isinstance(answer, np.generic | np.ndarray) and answer.size == 1:
            answer = answer.item()
        if isinstance(answer, float) and answer.is_integer():  # as `numpy.floor` makes
            answer = int(answer)
        if not Range(most=banks - 1).has(answer, whole=True):
            raise ArgumentError(
                f"{board.name}: {name}({', '.join(map(str, at))}) = {shorten(answer)}: {asked.asks}"
                f" has to be a whole number from 0 to {banks - 1} ({asked.banks} = {banks})"
            )
        answers[at[::-1]] = answer
    for axis in range(answers.ndim):
        while answers.shape[axis] > 1:
            half, rest = np.split(answers, 2, axis)
            if not np.array_equal(half, rest):
                break
            answers = half
    return _as_tuples(answers.tolist())


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def check_numbers(board: Any) -> None:
    """Check all numbers of a board, and convert numpy's numbers to Python's.

    Raises
    ------
    ValueError
        For a number of another type or out of range. The message states its name and unit.
    """
    if not isinstance(board.name, str):
        raise ArgumentError(f"name = {shorten(board.name)} has to be a string, the board's name")
    for f in fields(board):
        if "allowed" not in f.metadata:
            continue
        value = getattr(board, f.name)
        allowed, whole = f.metadata["allowed"], f.type is int
        message = f"has to be {allowed.words(whole)} ({f.metadata['unit']})"
        _check(board, f.name, allowed.has(value, whole), message)
        object.__setattr__(board, f.name, plain(value))


@dataclass(frozen=True, kw_only=True)
class Device:
    """A chip with its board's memory, for the compiler and the timing model.

    The defaults are the numbers of an HD 5870.
    """

    wavefront = WAVEFRONT
    #: Single-precision multiply-adds per thread processor and clock, in slots x, y, z, w and t.
    processing_elements = 5

    # From the data sheet
    name: str
    simd_engines: int = _count("per chip", "Table 1, APP table D.4", 20, most=MAX_COUNT)
    thread_processors: int = _count("per SIMD engine", "Table 1", 16)
    double_fmas: int = _number(
        "double multiply-adds per thread processor and clock, 0 on a chip without doubles",
        "ISA 4, Table 1's peak",
        1,
        most=1,
    )
    clock_ghz: float = _positive("GHz", "Table 1", 0.85)
    memory_gb_s: float = _positive("GB/s, peak", "Table 1, APP table D.4", 153.6)
    memory_channels: int = _power("32-bit GDDR5 channels", "APP table D.4", 8, most=MAX_COUNT)
    memory_bytes: int = _count("bytes", "Table 1", 1 << 30)
    chips: int = _count("chips on the board; every other number is of one chip", "APP table D.4", 1)
    lds_bytes: int = _number("bytes per SIMD engine", "Table 1, APP table D.4", 32 << 10)
    l1_bytes: int = _number(
        "bytes of texture cache per SIMD engine; 0 for none",
        "Table 1, APP table D.4",
        8 << 10,
        most=1 << 24,
    )
    l2_bytes: int = _number(
        "bytes per chip; 0 for none", "Table 1, APP table D.4", 512 << 10, most=1 << 30
    )
    # Threads
    max_wavefronts: int = _count("per SIMD engine", "APP 4.11.2.1", 32, most=MAX_COUNT)
    max_wavefronts_chip: int = _count("per chip", "APP table D.4", 496)
    max_workgroups: int = _count("workgroups per SIMD engine", "APP 4.11.2.3", 8)
    register_pool: int = _count(
        "registers of all wavefronts on an engine", "Nakasato, equation 2; AMD: 248", 256
    )
    gpr_limit: int = _count("registers per work-item", "ISA 2.4", 128)
    clause_temporaries: int = _number(
        "registers T0-T3, alive within a clause", "ISA 2.4", 4, most=4
    )
    # Instruction stream
    alu_clause_slots: int = _count(
        "64-bit slots per ALU clause, literal pairs counted", "ISA 4", 128
    )
    tex_clause_fetches: int = _count("fetches per TEX clause", "ISA 2.4", 16)
    bundle_clocks: int = _count("clocks per VLIW bundle of a wavefront", "APP 4.11.1", 4)
    alu_latency_clocks: int = _count("clocks until a bundle's result can be read", "APP 4.11.1", 8)
    # Texture unit and caches
    line_bytes: int = _power(
        "bytes per cache line, L1 and L2", "none", 64, "assumed: four texels of 16 bytes", least=16
    )
    texture_banks: int = _power(
        "banks of L1, each of which gives 16 bytes a clock",
        "APP 4.9: 64 B per clock",
        4,
        "as banks, not lines: kernels whose textures are shifted by a texel in every other row",
    )
    texture_side: int = _count(
        "texels in a row of a texture, and rows", "Direct3D 11, which the chip was made for", 16384
    )
    quads_per_clock: int = _count(
        "quads of a wavefront's 16 that a texture unit begins per clock",
        "APP 4.9: four addresses per clock",
        1,
        most=16,
    )
    l1_ways: int = _count(
        "ways", "none", 8, "assumed; the published rates don't depend on it above 4", most=MAX_COUNT
    )
    l2_ways: int = _count(
        "ways", "none", 16, "assumed; the published rates hardly depend on it", most=MAX_COUNT
    )
    l2_slice_bytes_clock: float = _positive(
        "bytes per clock and slice; each memory channel has one", "APP 4.9", 64.0
    )
    l1_clocks: int = _number(
        "clocks from fetch to data, L1 hit", "none", 120, "a public pointer chase: over a hundred"
    )
    l2_clocks: int = _number(
        "clocks from fetch to data, L2 hit", "none", 160, "assumed: between L1 and DRAM"
    )
    dram_clocks: int = _number(
        "clocks from fetch to data, DRAM",
        "APP 4.11.1: 300 to 600",
        320,
        "the paper's 25 against 37 registers",
    )
    clause_switch_clocks: int = _number(
        "clocks between a wavefront's clauses", "APP 4.14, 4.15.3: about 40", 40
    )
    clause_overhead_clocks: int = _number(
        "clocks that the ALU needs to start a clause",
        "none",
        7,
        "the tops of SGEMM and DGEMM TN, 2014 and 472 Gflop/s, and 94 % of peak (Li)",
    )
    # DRAM
    channel_bytes: int = _power(
        "bytes in a row on one channel (address bits 10:8)", "APP 4.6.2", 256
    )
    memory_banks: int = _power(
        "banks per channel (address bits 14:11)", "APP 4.6.2", 16, most=MAX_COUNT
    )
    dram_row_bytes: int = _power(
        "bytes of a bank's open row", "none", 2048, "usual for GDDR5 chips of 1 Gbit"
    )
    dram_row_clocks: int = _number(
        "clocks a bank needs to change its row", "none", 34, "40 ns, usual for GDDR5"
    )
    dram_efficiency: float = _share(
        "share of the peak that back-to-back bursts reach", "APP table 4.7", 0.84
    )
    store_clocks: int = _number("clocks per store of a wavefront, two per quarter", "APP 4.6.4", 8)
    # LDS
    lds_banks: int = _power("banks of 4 bytes", "APP 4.7, table D.4", 32, most=MAX_COUNT)
    lds_items_clock: int = _count(
        "work-items that may request two words each, per clock", "APP 4.7", 16
    )
    # Bank rules of the reader's own: functions, kept as tables of their answers. Without one, the
    # banks take turns.
    texture_bank: Any = field(default=(), repr=False)  #: of (x, y), a texel of 16 bytes
    lds_bank: Any = field(default=(), repr=False)  #: of w, a word

    def __post_init__(self) -> None:
        check_numbers(self)
        for name in BANK_RULES:
            if (rule := getattr(self, name)) != ():
                object.__setattr__(self, name, _tabulate(self, name, rule))
        line, burst = self.line_bytes, self.channel_bytes
        _check(self, "channel_bytes", burst >= line, "has to hold at least one cache line")
        _check(
            self,
            "dram_row_bytes",
            self.dram_row_bytes >= burst,
            "has to be at least channel_bytes",
        )
        for level in ("l1", "l2"):
            size, ways = getattr(self, f"{level}_bytes"), getattr(self, f"{level}_ways")
            sets, remainder = divmod(size, ways * line)
            good = size == 0 or (remainder == 0 and sets.bit_count() == 1)
            set_bytes = ways * line
            nearest = set_bytes << max(sets.bit_length() - 1, 0)
            message = (
                f"has to be 0, or {set_bytes} ({ways} ways x {line} bytes) times a power of two,"
                f" such as {nearest} or {2 * nearest}"
            )
            _check(self, f"{level}_bytes", good, message)
        _check(
            self,
            "thread_processors",
            self.thread_processors * self.bundle_clocks == self.wavefront,
            f"x bundle_clocks {self.bundle_clocks} has to be {self.wavefront}, a wavefront",
        )
        _check(
            self,
            "l2_clocks",
            self.l1_clocks <= self.l2_clocks <= self.dram_clocks,
            f"has to lie between l1_clocks {self.l1_clocks} and dram_clocks {self.dram_clocks}",
        )
        _check(
            self,
            "alu_latency_clocks",
            self.alu_latency_clocks >= self.bundle_clocks,
            f"can't be below bundle_clocks {self.bundle_clocks}",
        )

    def __repr__(self) -> str:
        what = (
            f"{self.simd_engines} SIMD engines at {self.clock_ghz:g} GHz, {self.single_gflops:,.0f}"
            " Gflop/s"
        )
        return (
            f"<{type(self).__name__} {self.name}: {what} in single precision,"
            f" {self.double_gflops:.0f} in double>"
        )

    def _repr_html_(self) -> str:
        return table(("", "value", "unit", "source"), _numbers(self), self.name)

    @property
    def dram_bytes_clock(self) -> float:
        """Peak of one memory channel, bytes per core clock."""
        return self.memory_gb_s / self.clock_ghz / self.memory_channels

    @property
    def usable_gprs(self) -> int:
        """Registers that a kernel may have: the numbers from 124 are those of temporaries."""
        return min(self.gpr_limit, FIRST_TEMPORARY)

    @property
    def register_bytes(self) -> int:
        """Bytes of all registers of a SIMD engine: 256 KB in Table 1."""
        return self.register_pool * self.wavefront * REGISTER_BYTES

    @property
    def single_gflops(self) -> float:
        """Peak in single precision, Gflop/s: two flops per processing element and clock."""
        return (
            2
            * self.simd_engines
            * self.thread_processors
            * self.processing_elements
            * self.clock_ghz
        )

    @property
    def double_gflops(self) -> float:
        """Peak in double precision, Gflop/s: one FMA per thread processor and clock on Cypress."""
        return 2 * self.simd_engines * self.thread_processors * self.double_fmas * self.clock_ghz

    def peak_gflops(self, precision: str) -> float:
        """Return the peak in Gflop/s.

        Parameters
        ----------
        precision
            "single", "double", or "double-double", whose operations take ``DOUBLE_DOUBLE``
            instructions (37.5 Gflop/s on the HD 5870).
        """
        check_precision(precision)
        peaks = self.single_gflops, self.double_gflops, self.double_gflops / DOUBLE_DOUBLE
        return peaks[PRECISIONS.index(precision)]

    @property
    def texture_gb_s(self) -> float:
        """Peak of all texture units, GB/s: 16 bytes per bank and clock (1088 on the HD 5870)."""
        return self.simd_engines * self.quads_per_clock * 16 * self.texture_banks * self.clock_ghz

    def active_wavefronts(
        self, registers: int, lds_bytes: int = 0, group_wavefronts: int = 1
    ) -> int:
        """Return how many wavefronts share a SIMD engine.

        That is floor(pool / registers) (Nakasato, equation 2), limited by LDS, the engine and its
        share of the chip's wavefronts, rounded up, in whole workgroups.

        Parameters
        ----------
        registers
            Registers per work-item.
        lds_bytes
            Bytes of LDS per workgroup.
        group_wavefronts
            Wavefronts per workgroup.

        Raises
        ------
        ValueError
            If a work-item or a workgroup needs more than the chip has.
        """
        if not 0 <= registers <= self.gpr_limit:
            raise ArgumentError(
                f"{registers} registers: a work-item of the {self.name} has 0 to {self.gpr_limit}"
            )
        if lds_bytes > self.lds_bytes:
            raise ArgumentError(
                f"{lds_bytes} bytes of LDS: a SIMD engine of the {self.name} has {self.lds_bytes}"
            )
        most = min(self.max_wavefronts, -(-self.max_wavefronts_chip // self.simd_engines))
        limit = min(most, self.register_pool // max(registers, 1))
        if lds_bytes:
            limit = min(limit, self.lds_bytes // lds_bytes * group_wavefronts)
        if group_wavefronts > 1:
            limit = min(limit // group_wavefronts, self.max_workgroups) * group_wavefronts
        if not limit:
            group = f"a workgroup of {group_wavefronts} wavefronts with {registers} registers each"
            engine = (
                f"a SIMD engine of the {self.name} ({self.register_pool} registers, at most {most}"
                " wavefronts)"
            )
            raise ArgumentError(
                f"{group} does not fit {engine}; try smaller workgroups or fewer registers"
            )
        return limit


@dataclass(frozen=True)
class Calibration:
    """A number that no document gives."""

    name: str  #: the field of ``Device``
    value: float
    unit: str
    on: str  #: the measurement to which it was fitted, or the assumption


def calibrations(device: Device) -> tuple[Calibration, ...]:
    """Return the device's calibrated numbers, in the order of its fields."""
    return tuple(
        Calibration(f.name, getattr(device, f.name), f.metadata["unit"], f.metadata["calibrated"])
        for f in fields(device)
        if f.metadata.get("calibrated")
    )


def _numbers(board: Device) -> list[tuple[Any, ...]]:
    """Return the name, value, unit and source of each number."""
    rows = [(f.name, getattr(board, f.name), f.metadata) for f in fields(board) if f.metadata]
    sources = [
        f"calibrated: {row['calibrated']}" if row["calibrated"] else row["source"]
        for *_, row in rows
    ]
    return [(name, value, row["unit"], source) for (name, value, row), source in zip(rows, sources)]


def _check(board: Any, name: str, good: bool, message: str) -> None:
    if not good:
        raise ArgumentError(f"{board.name}: {name} = {shorten(getattr(board, name))} {message}")


HD5870 = Device(name="HD 5870")
HD5970 = Device(name="HD 5970, one chip", clock_ghz=0.725, memory_gb_s=128.0, chips=2)
HD5850 = Device(name="HD 5850", simd_engines=18, clock_ghz=0.725, memory_gb_s=128.0)

DEVICES = {"hd5870": HD5870, "hd5970": HD5970, "hd5850": HD5850}


@dataclass(frozen=True, kw_only=True)
class System:
    """A computer with its driver, on which kernels were measured: what it adds to a launch.

    The launch overhead is no number of the chip: two authors who measured the same chip had
    different ones. ``simulate`` adds it if it is given a ``system``.
    """

    name: str
    launch_overhead_us: float = _number(
        "microseconds from the request of a launch to its first wavefront, and from its last to"
        " the program that waits",
        "none",
        0.0,
    )
    fitted_to: str = ""  #: the measurement to which it was fitted

    def __post_init__(self) -> None:
        check_numbers(self)


CHIP_ALONE = System(name="the chip alone")
NAKASATO = System(
    name="Core i7 920, Linux 2.6.31, Catalyst 10.7",
    launch_overhead_us=6.0,
    fitted_to="DGEMM's lowest speed, 74 % of peak, if its plot begins at N = 512; 0 to 22 fit",
)
ASHRAF = System(
    name="Ashraf's, which his slides don't describe",
    launch_overhead_us=225.0,
    fitted_to="the most that APP gives; Ashraf's packed products need 132 to 326",
)


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host computer and its bus.

    The defaults are the platform of Li et al. ("Li"): two Xeon X5650, and a board of two chips that
    share an x16 slot. "Nakasato" is his GEMM paper on Cypress; "Nakasato, ja" an earlier one.
    """

    name: str
    memory_gb_s: float = _positive(
        "GB/s, host memory, reads and writes together", "Li, platform", 31.2
    )
    cpu_gflops: float = _positive(
        "Gflop/s in double precision, peak of all cores", "Li, platform", 128.0
    )
    cores: int = _count("cores; each chip occupies one of them", "X5650: 2 x 6", 12)
    cpu_efficiency: float = _share(
        "share of the cores' peak that the CPU's GEMM reaches", "none", 0.95, "assumed: a good BLAS"
    )
    cpu_bytes_flop: float = _positive(
        "bytes of memory traffic per flop of it", "none", 0.05, "assumed: C once per 320 of k"
    )
    pcie_gb_s: float = _positive(
        "GB/s per direction, PCIe 2.0 x16, theoretical peak", "Li, platform; Nakasato 4.4", 8.0
    )
    dma_gb_s: float = _positive(
        "GB/s per direction that DMA reaches, all chips together", "Nakasato, ja, 4.2", 6.0
    )
    copy_gb_s: float = _positive(
        "GB/s at which one thread copies between pageable and pinned memory",
        "Nakasato 4.4: 3 GB/s with the DMA behind it",
        6.0,
    )
    remote_store_gb_s: float = _positive(
        "GB/s of a kernel's stores over the bus", "PCIe 2.0: 24 bytes for 16", 3.2
    )

    def __post_init__(self) -> None:
        check_numbers(self)
        _check(
            self,
            "dma_gb_s",
            self.dma_gb_s <= self.pcie_gb_s,
            f"can't be above pcie_gb_s {self.pcie_gb_s}",
        )

    @property
    def pageable_gb_s(self) -> float:
        """GB/s of a blocking copy from pageable memory (3 GB/s on the default host).

        It is a copy to pinned memory followed by a DMA: 1 / pageable = 1 / copy + 1 / dma.
        """
        return 1 / (1 / self.copy_gb_s + 1 / self.dma_gb_s)


XEON = Host(name="2 x Xeon X5650")
