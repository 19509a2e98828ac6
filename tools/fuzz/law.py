"""Check the law of the timing model: units are busy for exactly the clocks that the code requires.

And no launch is faster than its slowest unit. The requirements are counted independently of the
model: the machine's VLIW engine runs the code for all wavefronts, without data (no address depends
on data), and each access is counted with sets of words. The model's trace must find the same for
each wavefront, and so must the report on a launch that is simulated whole, in total. A sampled
report is compared with the whole simulation. Launches that take too long to count raise
``Uncounted``.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import cypresskit as ck
from cypresskit.chip.units.dram import line_clocks
from cypresskit.chip.work import ALU, TEX, WavefrontPath
from cypresskit.compiler import Code, CompileError, compile
from cypresskit.compiler.assembly import FetchInstruction, Operation, StoreInstruction
from cypresskit.devices import DEVICES, HD5870, Device
from cypresskit.kernels.generated import generate_kernel
from cypresskit.machine import addressing
from cypresskit.machine.shape import Extent, LaunchShape, input_registers, lanes
from cypresskit.timing import DataDependentError, Report, simulate
from cypresskit.trace.memory_layout import MemoryLayout
from cypresskit.trace.tracing import trace_wavefronts
from cypresskit.trace.vliw import Processor
from tools.run_code import Bits

EXACT = 1e-9  # share by which sums of floats may be off
PATIENCE = 200_000  # clocks of texture unit and LDS that are counted, access by access
CHANGES: list[dict[str, Any]] = [
    {"texture_banks": 2},
    {"texture_banks": 8},
    {"quads_per_clock": 4},
    {"line_bytes": 128},
    {"l1_bytes": 0},
    {"l2_bytes": 0},
    {"l2_bytes": 0, "l1_bytes": 0},
    {"simd_engines": 3},
    {"lds_banks": 16},
    {"lds_items_clock": 8},
    {"texture_bank": lambda x, y: (x + y // 4) % 4},
    {"texture_bank": lambda x, y: (x * y + y // 8) % 3, "lds_bank": lambda w: w * w % 29},
    {"lds_bank": lambda w: (w ^ w // 32) % 32},
    {"memory_channels": 2},
    {"register_pool": 300},
    {"bundle_clocks": 8, "thread_processors": 8, "double_fmas": 0},
    {"clause_overhead_clocks": 0, "clause_switch_clocks": 0},
    {"l1_bytes": 1024},
]
BOARDS = [*DEVICES.values(), *(replace(HD5870, **change) for change in CHANGES)]


class Counting:
    """Counts what code requires, by running it for all wavefronts without data.

    ``clocks`` has a row of ALU, texture unit and LDS per wavefront. The cache lines of textures, of
    global memory (``uncached``) and of stores are counted, too. It is the memory of a processor,
    without data.
    """

    def __init__(self, code: Code, memory_layout: MemoryLayout, device: Device):
        self.memory_layout, self.device = memory_layout, device
        wavefronts = np.arange(memory_layout.shape.wavefronts)
        self.x, self.y, there = lanes(memory_layout.shape, wavefronts)
        ids = input_registers(memory_layout.shape, self.x, self.y)
        processor = Processor(code, ids, memory_layout.shape.constants, Bits(), self, there)
        self.items = processor.items
        self.clocks = np.zeros((len(wavefronts), 3), int)
        self.quads = self.stored = 0  # lines, once for each quad or store that asks
        self.delivered = 0  # bytes of texels
        self.uncached = np.zeros(len(wavefronts), int)  # lines, once for each fetch
        self.cached, self.written = set[int](), set[int]()  # different lines
        at = 0
        with np.errstate(all="ignore"):
            while code.controls[at].name != "END":
                ran = processor.masks.active.reshape(-1, 64).any(axis=1)
                bundles = len(code.controls[at].bundles)
                self.clocks[:, 0] += ran * bundles * device.bundle_clocks
                at = processor.step(at)

    def lds(self, o: Operation, words: list[np.ndarray], on: np.ndarray) -> list[np.ndarray]:
        assert o.lds is not None
        words = [np.broadcast_to(word, self.items).astype(np.int64) // 4 for word in words]
        requested = words[:1]
        requested += [words[0] + o.lds.offset] * ("_REL" in o.name)
        for active, wavefront in self._active(on, self.device.lds_items_clock):
            asked = {int(w[lane]) for w in requested for lane in active}
            self.clocks[wavefront, 2] += fullest(self._lds_bank(word) for word in asked)
        reads = o.name.startswith("LDS_READ")
        return [np.zeros(self.items, np.uint32)] * len(requested) if reads else []

    def _lds_bank(self, word: int) -> int:
        rule = self.device.lds_bank
        return rule[word % len(rule)] if rule else word % self.device.lds_banks

    def _bank(self, byte: int, x: int, y: int, texel: int) -> int:
        """Return the bank of the texture cache that has a byte, of texel x in row y."""
        if rule := self.device.texture_bank:
            row = rule[y % len(rule)]
            return row[x * texel // 16 % len(row)]
        return byte // 16 % self.device.texture_banks

    def _active(self, on: np.ndarray, together: int):
        """Return the active lanes of each group that is served at once, and its wavefront."""
        for first in range(0, self.items, together):
            active = first + np.flatnonzero(on[first : first + together])
            if len(active):
                yield active, first // 64

    def fetch(
        self, f: FetchInstruction, coordinates: list[np.ndarray], on: np.ndarray
    ) -> list[np.ndarray]:
        uncached = f.name == "MEM_READ"
        rows = [np.broadcast_to(row, self.items) for row in coordinates]
        if uncached:
            element = addressing.element(f.offset[0], rows[0] if rows else None, self.items)
            byte, inside = 16 * element, np.ones(self.items, bool)
            x, y, texel = element, 0 * element, 16
        else:
            texture = self.memory_layout.shape.textures[f.resource]
            x, y, inside = addressing.texel(rows, texture, f.offset)
            byte, texel = self.memory_layout.address(f.resource, x, y), texture.texel
            self.delivered += int(np.count_nonzero(on)) * texel
        clocks = np.zeros(len(self.clocks), int)
        lines: list[set[int]] = [set() for _ in self.clocks]
        for active, wavefront in self._active(on, 4):
            bytes_ = [int(byte[lane]) for lane in active if inside[lane]]
            where = [(int(x[lane]), int(y[lane])) for lane in active if inside[lane]]
            asked = {(b // 16, self._bank(b, *at, texel)) for b, at in zip(bytes_, where)}
            clocks[wavefront] += fullest(bank for _, bank in asked)
            quad = {b // self.device.line_bytes for b in bytes_}
            self.quads += 0 if uncached else len(quad)
            lines[wavefront] |= quad
        self.clocks[:, 1] += -(-clocks // self.device.quads_per_clock)
        if uncached:
            self.uncached += [len(different) for different in lines]
        else:
            self.cached.update(*lines)
        return [np.zeros(1, np.uint32)] * 4

    def store(
        self,
        s: StoreInstruction,
        index: np.ndarray | None,
        values: Mapping[int, np.ndarray],
        on: np.ndarray,
    ) -> None:
        if s.name == "EXPORT":
            output = self.memory_layout.shape.outputs[s.offset]
            side = max(self.device.line_bytes // output.texel, 1)
            across = -(-self.memory_layout.shape.domain[0] // side)
            byte = output.texel * (self.y * across * side + self.x)
        else:
            byte = 16 * addressing.element(s.offset, index, self.items)
        for active, _ in self._active(on, 64):
            lines = {int(byte[lane]) // self.device.line_bytes for lane in active}
            self.stored += len(lines)
            self.written |= lines


def fullest(banks: Iterable[int]) -> int:
    """Return how many words the busiest bank has, of different words in these banks."""
    return max(Counter(banks).values(), default=0)


def charged(report: Report) -> np.ndarray:
    """Return the busy clocks of ALU, texture unit and LDS in a report, on all engines together."""
    busy = np.array([report.busy[unit] for unit in ("ALU", "texture", "LDS")])
    return busy * report.clocks * report.device.simd_engines


def traced(paths: list[WavefrontPath], bundle_clocks: int) -> np.ndarray:
    """Return the clocks of ALU, texture unit and LDS for each wavefront in the model's trace."""
    found = np.zeros((sum(len(path.wavefronts) for path in paths), 3), int)
    for path in paths:
        for clause, iterations in (
            (clause, iterations) for body, iterations in path.segments for clause in body
        ):
            found[path.wavefronts, 0] += iterations * clause.bundles * bundle_clocks
            for stream in clause.streams if clause.kind in (ALU, TEX) else ():
                # The phases may differ by one iteration
                times = np.bincount(np.arange(iterations) % stream.phases, minlength=stream.phases)
                found[path.wavefronts, 1 + (clause.kind == ALU)] += (
                    stream.cost.reshape(-1, stream.phases) @ times
                )
    return found


class Uncounted(Exception):
    """A launch that was simulated whole would take too long to count."""


def check(
    code: Code,
    shape: LaunchShape,
    report: Report,
    whole: Report | None = None,
) -> list[str]:
    """Return how a report breaks the law, as texts; empty if it doesn't.

    A sampled one is compared with the ``whole`` simulation of the launch. Another is counted, or
    raises ``Uncounted``.
    """
    if whole is not None:
        # Where rounds are left out, their work is taken to be that of the others.
        near = EXACT if len(report.use.wavefronts) == report.wavefronts else 0.01
        few, all_ = report.bytes["L1"], whole.bytes["L1"]
        faults = _report_faults(report, charged(whole), near)
        if not math.isclose(few, all_, rel_tol=near):
            faults.append(f"work-items get {all_:.0f} bytes of texels, not {few:.0f}")
        return faults
    if report.simulated < 1 or charged(report)[1:].sum() > PATIENCE:
        raise Uncounted
    memory_layout = MemoryLayout(shape, report.device)
    counted = Counting(code, memory_layout, report.device)
    paths = trace_wavefronts(code, memory_layout, np.arange(shape.wavefronts))
    found = traced(paths, report.device.bundle_clocks)
    wrong = np.flatnonzero((counted.clocks != found).any(axis=1))[:1]
    faults = [
        f"wavefront {n}: ALU, texture, LDS {counted.clocks[n]}, traced {found[n]}" for n in wrong
    ]
    return (
        faults + _report_faults(report, counted.clocks.sum(axis=0)) + _line_faults(report, counted)
    )


def _report_faults(report: Report, total: np.ndarray, near: float = EXACT) -> list[str]:
    """Return faults in a report on wavefronts that require ``total`` clocks, within a share of
    ``near``.
    """
    faults, device = [], report.device
    lines = {level: count / device.line_bytes for level, count in report.bytes.items()}
    sent = (lines["DRAM"] + lines["written"]) * line_clocks(device)
    # A slice works for the lines that it holds and for all that it fetches or, of g[], passes on.
    held = report.bytes["L2"] * report.hits["L2"]
    served = (held + report.bytes["DRAM"]) / device.l2_slice_bytes_clock
    expected = [
        (unit, clocks, device.simd_engines, near)
        for unit, clocks in zip(("ALU", "texture", "LDS"), total.tolist())
    ]
    expected += [
        ("DRAM", sent, device.memory_channels, 1e-9),
        ("L2", served, device.memory_channels, 1e-9),
    ]
    for unit, clocks, parts, nearly in expected:
        busy = report.busy[unit] * report.clocks * parts
        if not math.isclose(busy, clocks, rel_tol=nearly, abs_tol=1e-6):
            faults.append(f"{unit} is busy for {busy:.1f} clocks; the code asks for {clocks:.1f}")
    channels = report.busy["DRAM"] + report.busy["DRAM rows"]
    shares = [*report.busy.items(), ("DRAM, with the wait for rows,", channels)]
    faults += [
        f"{unit} is busy for {share:.4f} of the time" for unit, share in shares if share > 1 + EXACT
    ]
    faults += [
        f"{level} hits are {share}" for level, share in report.hits.items() if not 0 <= share <= 1
    ]
    for name, over_time in report.use.shares.items():
        if (over_time < -1e-9).any() or (over_time > 1 + 1e-9).any():
            faults.append(f"{name} over time goes from {over_time.min()} to {over_time.max()}")
    return faults


def _line_faults(report: Report, counted: Counting) -> list[str]:
    """Return faults in the line counts of a launch that was simulated whole."""
    device = report.device
    lines = {level: count / device.line_bytes for level, count in report.bytes.items()}
    different, quads = len(counted.cached), counted.quads
    passed = int(counted.uncached.sum())
    missed = lines["L2"]
    hits = 1 - missed / quads if quads and device.l1_bytes else report.hits["L1"]
    least = counted.clocks[:, 1].sum() / device.simd_engines
    some = different + np.count_nonzero(counted.uncached)
    l2_hits = 1 - (lines["DRAM"] - passed) / lines["L2"] if lines["L2"] else report.hits["L2"]
    rules = [
        (
            report.bytes["L1"] == counted.delivered,
            f"work-items get {counted.delivered} bytes of texels, not {report.bytes['L1']}",
        ),
        (
            math.isclose(report.hits["L2"], l2_hits, abs_tol=1e-9),
            f"L2 hits are {report.hits['L2']}, of {lines['L2']} lines, {l2_hits} of them there",
        ),
        (
            math.isclose(report.hits["L1"], hits, abs_tol=1e-9),
            f"L1 hits are {report.hits['L1']}, of {quads} lines",
        ),
        (
            different <= missed <= quads,
            f"L1 missed {missed} lines: {different} different ones, {quads} requested by quads",
        ),
        (
            some <= lines["DRAM"] <= lines["L2"] + passed,
            f"DRAM gave {lines['DRAM']} lines of {some}, L2 {lines['L2']}, g[] {passed}",
        ),
        (
            len(counted.written) <= lines["written"] <= counted.stored,
            (
                f"{lines['written']} lines written; {counted.stored} in all stores,"
                f" {len(counted.written)} different ones"
            ),
        ),
        (report.clocks >= least, f"{report.clocks} clocks, and a texture unit has {least} to work"),
    ]
    return [fault for kept, fault in rules if not kept]


def any_launch(rng: random.Random) -> tuple:
    """Return arguments of ``simulate``, and the shape, of a launch of any kernel, size and board.

    Raises ``CompileError`` or ``ValueError`` if the board can't run it.
    """
    board = rng.choice(BOARDS)
    kind = rng.randrange(3)
    if kind < 2:
        kernel = (
            rng.choice(list(ck.kernels.values())) if kind else generate_kernel(*rng.choice(ENTRIES))
        )
        most = rng.choice((48, 100, 200) * 8 + (1 << 11,))  # the largest are sampled
        m, n, k = (
            rng.randint(most // 4, most),
            rng.randint(most // 4, most),
            rng.randint(1, min(most, 600)),
        )
        n, beta = 1 if kernel.is_vector else n, rng.choice((0.0, 0.0, 1.0))
        options = {"kernel": kernel, "n": n, "m": m, "k": k, "beta": beta}
        shape = kernel.shape(m, n, k, 1.0, beta)
    else:
        shape = accesses(rng)
        compile(shape.program, board)
        options = {"kernel": shape}
    return options | {"device": board}, shape


ENTRIES = [(4, 4, 2), (4, 8, 4), (8, 8, 1), (8, 8, 3), (12, 8, 2), (8, 16, 1), (16, 4, 2)]
COORDINATES = """umul r9.x, r1.x, l{a}.x
umad r9.x, r1.y, l{a}.y, r9.x
umad r9.x, r1.z, l{a}.z, r9.x
iadd r9.x, r9.x, l{a}.w
"""


def accesses(rng: random.Random) -> LaunchShape:
    """Return a launch whose addresses are linear in work-item, workgroup and loop iteration."""
    group, groups, iterations = (
        rng.choice((16, 64, 64, 128, 65)),
        rng.randint(1, 24),
        rng.choice((0, 1, 5, 40)),
    )
    lines = ["mov r1, l0.xxxx", "mov r1.x, vTidInGrpFlat.x", "mov r1.y, vThreadGrpIdFlat.x"]
    literals: list[tuple[int, ...]] = [(0, 1, iterations, 0x7FC)]
    inside: list[str] = ["ige r2.x, r1.z, l0.z", "break_logicalnz r2.x"]
    for _ in range(rng.randint(1, 7)):
        into = rng.choice((lines, inside, inside, inside))
        for letter in "xy":
            a = len(literals)
            literals.append(
                tuple(rng.choice((0, 0, 1, 1, 2, 3, 4, 5, 8, 33, 64)) for _ in range(4))
            )
            into.append(COORDINATES.replace("r9.x", f"r9.{letter}").format(a=a))
        into += rng.choice(ACCESSES).splitlines()
    body = "\n".join(
        [*lines, "whileloop", *inside, "iadd r1.z, r1.z, l0.y", "endloop", "mov g[r1.x], r5"]
    )
    head = f"il_cs_2_0\ndcl_num_thread_per_group {group}\n{TEXTURE}\ndcl_lds_id(0) 2048\n"
    head += "".join(
        f"dcl_literal l{n}, {', '.join(map(str, row))}\n" for n, row in enumerate(literals)
    )
    texture = Extent(rng.choice((64, 100)), rng.randint(1, 99), 16)
    return LaunchShape(ck.assemble(f"{head}{body}\nend"), (group * groups, 1, 1), {0: texture})


TEXTURE = "dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"
FETCH = "itof r4, r9\nsample_resource(0)_sampler(0){} r5, r4.xy00"
ACCESSES = [
    FETCH.format(""),
    FETCH.format("_aoffimmi(1,0,0)"),
    FETCH.format("") + "\n" + FETCH.format("_aoffimmi(0,1,0)"),
    "mov r5, g[r9.x]",
    "mov g[r9.x], r1",
    "mov g[r9.x], r1\nmov g[r9.y], r1",
    (
        "ishl r9, r9, l0.y\nishl r9, r9, l0.y\niand r9, r9, l0.w\nlds_load_id(0) r5.x,"
        " r9.x\nlds_load_id(0) r5.y, r9.y"
    ),
    (
        "ishl r9, r9, l0.y\nishl r9, r9, l0.y\niand r9, r9, l0.w\nlds_store_id(0) r9.x,"
        " r1.x\nfence_threads_lds"
    ),
    "umul r9, r9, l0.y\niand r9, r9, l0.w\nlds_load_vec_id(0) r5, r9.x, r9.y",
    "iand r9, r9, l0.y\nif_logicalnz r9.x\n" + FETCH.format("") + "\nmov g[r1.x], r5\nendif",
]


GROUP = """il_cs_2_0
dcl_num_thread_per_group {group}
dcl_lds_id(0) 4096
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_literal l0, 0, 1, 2, {iterations}
dcl_literal l1, {stride}, {step}, 0xFFC, 63
ishl r9.x, vTidInGrpFlat.x, l0.z
mov r8.x, vAbsTidFlat.x
umul r6.x, vAbsTidFlat.x, l1.x
mov r1, l0.xxxx
mov r5, l0.xxxx
whileloop
  ige r2.x, r1.x, l0.w
  break_logicalnz r2.x
{body}
  iadd r6.x, r6.x, l1.y
  iadd r1.x, r1.x, l0.y
endloop
mov g[r8.x], r5
end"""
STEPS = [
    "mov r4, g[r6.x]\nadd r5, r5, r4",
    "mov g[r6.x], r5",
    "iand r7.x, r6.x, l1.w\nitof r4, r7.xxxx\n"
    "sample_resource(0)_sampler(0) r3, r4.xy00\nadd r5, r5, r3",
    "lds_store_id(0) r9.x, r5.x\nfence_threads_lds",
    "ixor r7.x, r9.x, l0.z\niand r7.x, r7.x, l1.z\nlds_load_id(0) r5.y, r7.x\nfence_threads_lds",
    "\n".join(["mad r5, r5, r5, r5"] * 3),
    "\n".join(["mad r5, r5, r5, r5"] * 40),
    "\n".join(["mad r5, r5, r5, r5"] * 80),
    "fence_threads_lds",
]


def groups(
    rng: random.Random,
    iterations: Sequence[int] = (1, 2, 8, 30, 100, 300),
    counts: Sequence[int] = (3, 20, 60, 150),
) -> LaunchShape:
    """Return a launch of workgroups of one to four wavefronts, with fences in a loop."""
    group = 64 * rng.randint(1, 4)
    body = "\n".join(rng.choice(STEPS) for _ in range(rng.randint(2, 7)))
    text = GROUP.format(
        group=group,
        iterations=rng.choice(iterations),
        stride=rng.choice((0, 1, 2, 16)),
        step=rng.choice((0, 1, 64, 128)),
        body=body,
    )
    return LaunchShape(
        ck.assemble(text), (group * rng.choice(counts), 1, 1), {0: Extent(64, 64, 16)}
    )


SMALL = replace(HD5870, name="small", simd_engines=2, memory_channels=2)


def timed(rng: random.Random) -> None:
    """Check that a launch is refused with a reason, or that its report obeys the law. One that
    takes too long to count is passed over.
    """
    while True:
        try:
            options, shape = any_launch(rng)
            report = simulate(**options)
            whole = simulate(**options, exact=True) if report.simulated < 1 else None
        except (CompileError, DataDependentError, ValueError) as error:
            assert str(error), "an error without words"
            return
        try:
            faults = check(report.launch.code, shape, report, whole)
        except Uncounted:
            continue
        assert not faults, "\n".join([*faults, str(options), str(shape.program)])
        return
