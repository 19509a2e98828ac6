"""``simulate``: how many clocks a kernel takes on a device, and why.

The kernel is compiled, its slice gives every wavefront's way and addresses, the engine runs them. All engines are full
most of the time, and every round of wavefronts takes about as long as another: unless ``exact`` is asked for, a launch
of many rounds is cut to a few and its ragged last one, and the time of what was left out is added at the pace at which
the simulated rounds went. Where that pace is uneven (wavefronts drift apart and share less and less of L2, or a stride
meets DRAM banks in turns), more is simulated. ``Report.simulated`` says how much was.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cypresskit.compiler import Code, compile
from cypresskit.devices import HD5870, Device
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.machine.launch import Launch
from cypresskit.timing.addresses import walk
from cypresskit.timing.engine import Outcome, parts, run
from cypresskit.timing.flow import path
from cypresskit.timing.report import Event, Report, Use, bound
from cypresskit.timing.shapes import Shapes
from cypresskit.timing.work import KINDS, Packed, pack

ROUNDS = 3  # simulated at least, beside the ragged one
BUDGET = 25_000_000  # lines and clauses that are simulated at first: less than a second
SMALL = 37_000_000  # of the whole launch, up to which it is simulated at once
LONG = 30_000_000  # of those rounds, from which on one has to do
EASY = 100_000_000  # up to which everything, or else twice as much, is simulated where the pace is uneven: 3 seconds
MOST = 250_000_000  # the same where it is wild: 6 seconds
UNEVEN = 0.004  # the pace may change by this from the first half of what is simulated to the second, times the share of
# the launch that is not simulated; else there is more
WILD = 0.02  # from this change of pace on it is wild
DRIFT = 1.05  # or where L2 misses so much more in the second half: sharing is being lost, and the pace will follow
LARGEST = 1 << 16  # rows or columns of a matrix: the widest texture has 16384 texels, of four numbers at most
LONGEST = 1 << 20  # of a vector
INTERVALS, SHORTEST = 64, 500  # how many a report tells the use of, and how many clocks one has at least


def simulate(
    kernel: str | Kernel | Code,
    n: int | None = None,
    *,
    m: int | None = None,
    k: int | None = None,
    device: Device = HD5870,
    launch: Launch | Shapes | None = None,
    layout: str = "linear",
    beta: float = 0.0,
    count: int = 1,
    flops: float | None = None,
    precision: str = "single",
    exact: bool = False,
) -> Report:
    """Time a kernel on ``device``.

    Parameters
    ----------
    kernel: a catalogue kernel or its name, with ``n`` (and ``m``, ``k``, otherwise equal to n): C is m x n; or compiled
        ``Code`` with its ``launch`` (from ``machine.prepare``, or ``Shapes`` where there are no arrays).
    layout: how textures lie in memory, "linear" (rows) or "tiled" (8 x 8 texels).
    beta: other than 0, C is read too.
    count: products in one launch, for a packed kernel.
    flops: floating-point operations of the launch; 2 m n k for a catalogue kernel. With ``precision`` ("single",
        "double", "double-double") it gives Gflop/s and per cent of peak of other kernels.
    exact: simulate every wavefront; otherwise some rounds of them, if there are many (within 1 %).

    Raises ``ValueError`` for sizes or boards that make no sense, and ``SliceError`` for a kernel whose addresses or
    branches depend on data.
    """
    _checked(kernel, n, device, launch, layout, beta, flops, precision)
    size = None
    if isinstance(kernel, Code):
        code, name = kernel, kernel.program.name
        shapes = launch if isinstance(launch, Shapes) else Shapes.of(launch)  # type: ignore[arg-type]
    else:
        kernel = KERNELS[kernel] if isinstance(kernel, str) else kernel
        size = _size(kernel, m, n, k)
        code, name, precision = compiled(kernel, device), kernel.name, kernel.precision
        shapes = gemm_shapes(kernel, *size, beta, count)
        flops = 2.0 * count * size[0] * size[1] * size[2] if flops is None else flops
    group = shapes.group_wavefronts
    lds = sum(size for _, size in shapes.program.lds.values())
    active = device.active_wavefronts(code.gprs, lds, group)
    if not shapes.wavefronts:
        raise ValueError(f"{name}: the domain {shapes.domain} is empty")
    result = _Sampled(shapes, device, layout, code, active, exact)
    return _report(name, device, size, flops or 0.0, precision, code.gprs, active, result)


def _checked(kernel, n, device, launch, layout: str, beta, flops, precision: str) -> None:
    """Arguments of other types and values that make no sense."""
    if not isinstance(kernel, (str, Kernel, Code)):
        raise TypeError(f"{type(kernel).__name__} can't be timed: pass a kernel's name, a Kernel, or compile(program)")
    if not isinstance(device, Device):
        raise TypeError(f"device is one of cypresskit.devices.DEVICES or made from one by replace, not {device!r}")
    if layout not in ("linear", "tiled"):
        raise ValueError(f'layout is "linear" or "tiled", not {layout!r}')
    if not math.isfinite(beta) or (flops is not None and not 0 <= flops < math.inf):
        raise ValueError(f"beta {beta} and flops {flops} have to be finite, flops not below 0")
    if not isinstance(kernel, Code):
        if launch is not None:
            raise ValueError("a catalogue kernel has its own launch: pass n, or compile the program")
        return
    if not isinstance(launch, (Launch, Shapes)):
        raise ValueError("compiled code needs its launch: pass launch=prepare(...) or launch=Shapes(...)")
    if launch.program.body != kernel.program.body:
        raise ValueError(f"the launch is for {launch.program.name}, the code for {kernel.program.name}: two programs")
    if n is not None:
        raise ValueError("compiled code has its sizes from its launch: leave out n, m and k")
    device.peak_gflops(precision)


def _size(kernel: Kernel, m: int | None, n: int | None, k: int | None) -> tuple[int, int, int]:
    if n is None:
        raise ValueError(f"{kernel.name}: pass n, the matrices' size (and m and k if they differ)")
    size = tuple(n if s is None else s for s in (m, 1 if kernel.vector else n, k))
    most = LONGEST if kernel.vector else LARGEST
    if not all(type(s) is not bool and isinstance(s, (int, np.integer)) and 0 < s <= most for s in size):
        raise ValueError(f"{kernel.name}: m, n, k = {size} have to be whole numbers from 1 to {most:,}")
    return int(size[0]), int(size[1]), int(size[2])


@lru_cache(maxsize=64)
def compiled(kernel: Kernel, device: Device) -> Code:
    """The kernel's code for a device, kept for the next size."""
    return compile(kernel.program, device)


def gemm_shapes(kernel: Kernel, m: int, n: int, k: int, beta: float = 0.0, count: int = 1) -> Shapes:
    """The launch of a catalogue kernel for m x n x k, ``count`` times if it is a packed one."""
    if count != 1 and not kernel.packed:
        raise ValueError(f"{kernel.name} computes one product in a launch, not {count}: take a packed kernel")
    of = kernel.layout(m, n, k, 1.0, beta, count)
    x, y, z = (*of.domain, 1, 1)[:3]
    return Shapes(kernel.program, (x, y, z), of.textures, of.constants, of.outputs)


@dataclass(eq=False)
class _Sampled:
    """The engine's outcome for a launch, extended to all wavefronts where only some were simulated."""

    shapes: Shapes
    device: Device
    layout: str
    code: Code
    active: int
    exact: bool

    def __post_init__(self) -> None:
        total, round_ = self.shapes.wavefronts, self.active * self.device.simd_engines
        rest, whole = total % round_, total // round_
        work = self._work(total if self.exact else min(total, rest + ROUNDS * round_))
        cost = work.effort() / work.wavefronts * round_
        rounds = max(int(BUDGET // cost) - 1, ROUNDS if ROUNDS * cost < LONG else 1)
        if cost * total / round_ <= SMALL:
            rounds = whole
        while True:
            some = total if self.exact or rounds >= whole else rest + rounds * round_
            if some != work.wavefronts:
                work = self._work(some)
            self.outcome: Outcome = run(work, self.device, self.active)
            self.clocks, self.share = self.outcome.end_clock, some / total
            if some == total:
                return
            pace, wild, steady = self._pace(work, rounds, round_)
            most = MOST if wild else EASY
            if steady or cost * (rest / round_ + rounds * 2) > most:
                break
            rounds = whole if cost * total / round_ <= most else rounds * 2
        self.clocks += (total - some) / round_ * pace

    def _pace(self, work: Packed, rounds: int, round_: int) -> tuple[float, bool, bool]:
        """Clocks a round, once the first one's cold caches are warm; whether that is wild, and whether it is steady."""
        first, last = (1.0, rounds - 0.5) if rounds > 2 else (0.5, 1.5) if rounds > 1 else (0.25, 0.75)
        marks = np.array([first, (first + last) / 2, last]) * work.clauses_of_path[work.path].mean() * round_
        clocks, counts = self.outcome.when(marks), self.outcome.counts
        early, late = np.diff(clocks)
        uneven = abs(early - late) / late * (1 - self.share)
        sooner, later = np.diff(self.outcome.missed(marks, self.device))
        waited_for = counts["tex"] > counts["alu"]  # otherwise misses are hidden behind the ALU's work
        drifting = rounds > 2 and later > DRIFT * sooner and waited_for
        return (clocks[2] - clocks[0]) / (last - first), drifting or uneven > WILD, uneven <= UNEVEN and not drifting

    def _work(self, some: int) -> Packed:
        parties = walk(self.shapes, self.device, np.arange(some), self.layout)
        group = self.shapes.group_wavefronts
        return pack([path(self.code, party, scope, group) for party, scope in parties], group)


def _report(name, device: Device, size, flops: float, precision: str, gprs: int, active: int, of: _Sampled) -> Report:
    counts = {what: count / of.share for what, count in of.outcome.counts.items()}
    engines = of.clocks * device.simd_engines
    units = {"ALU": ("alu", engines), "texture": ("tex", engines), "LDS": ("lds", engines)}
    units |= {"L2": ("slice", of.clocks * device.l2_slices), "DRAM": ("dram", of.clocks * device.memory_channels)}
    busy = {unit: counts[what] / all_ for unit, (what, all_) in units.items()}
    out = of.outcome
    occupied = float((out.end - out.start).sum() / (out.end_clock * device.simd_engines * active))
    lines, line = counts["tex"], device.line_bytes
    hits = {
        "L1": 1 - counts["l1_missed"] / lines if lines and counts["l1_asked"] else 0.0,
        "L2": 1 - counts["l2_missed"] / counts["l2_asked"] if counts["l2_asked"] else 0.0,
    }
    moved = {"L1": lines * line, "L2": counts["l2_asked"] * line, "DRAM": counts["l2_missed"] * line}
    moved["written"] = counts["written"] * line
    return Report(
        kernel=name,
        device=device,
        size=size,
        clocks=of.clocks,
        seconds=of.clocks / (device.clock_ghz * 1e9) + device.launch_us * 1e-6,
        flops=flops,
        peak_gflops=device.peak_gflops(precision),
        bound=bound(busy, occupied),
        registers=gprs,
        active=active,
        wavefronts=of.shapes.wavefronts,
        simulated=of.share,
        busy=busy,
        hits=hits,
        bytes=moved,
        use=_use(out, device),
        timeline=tuple(Event(int(r[0]), int(r[1]), KINDS[int(r[2])], float(r[3]), float(r[4])) for r in out.timeline),
    )


def _use(out: Outcome, device: Device) -> Use:
    """What each part did, interval by interval."""
    noted = np.append(True, out.progress[1:] > 0)
    clock = np.maximum.accumulate([*out.progress[noted], out.end_clock])  # an engine may be ahead of another
    done = np.concatenate([out.done[:-1][noted], out.done[-1:]])
    count = int(np.clip(out.end_clock / SHORTEST, 1, INTERVALS))
    bounds = np.linspace(0, out.end_clock, count + 1)
    engines, slices, dram = parts(np.diff([np.interp(bounds, clock, part) for part in done.T]).T, device)
    alu, texture, lds, l1_missed = engines.transpose(2, 0, 1)
    asked, l2_missed = slices.transpose(2, 0, 1)
    cached = texture if out.counts["l1_asked"] else 0 * texture
    busy = {"ALU": alu, "texture": texture, "LDS": lds, "L2": asked * device.line_bytes / device.l2_slice_bytes_clock}
    shares = {name: _served(clocks / bounds[1]) for name, clocks in (busy | {"DRAM": dram}).items()}
    return Use(bounds, shares | {"L1 hits": _hits(cached, l1_missed), "L2 hits": _hits(asked, l2_missed)})


def _served(given: np.ndarray) -> np.ndarray:
    """What is done in each interval of the work that begins there: what it cannot hold is left for the next."""
    served, left = np.empty_like(given), np.zeros(given.shape[1])
    for n, new in enumerate(given):
        served[n] = np.minimum(left + new, 1)
        left += new - served[n]
    return served


def _hits(asked: np.ndarray, missed: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(asked > 0, np.clip(1 - missed / asked, 0, 1), np.nan)
