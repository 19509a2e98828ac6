"""Lesson 13: figures of then and now side by side, the reader's own kernel in CUDA, and the checks
of the exercises.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from cypresskit.devices import HD5870, XEON
from cypresskit.isolated import Answer
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.lesson_table import Table
from cypresskit.published import kernel as published
from cypresskit.teach.check import CheckStopped, Verdict, call_answer, function_exercise, require
from cypresskit.teach.formula import formula_exercise
from cypresskit.teach.l02_why_blocks.checks import simulate_blocks
from cypresskit.teach.l07_lds.checks import busiest_bank
from cypresskit.teach.l13_what_is_left.visible.noted_launches import compiled, run_noted
from cypresskit.threads import map_in_threads
from cypresskit.timing.simulate import simulate
from cypresskit.today import clock_ghz, figures, record

BOARD_ROWS = (
    "engines or multiprocessors",
    "Gflop/s, single precision",
    "Gflop/s, double precision",
    "GB/s of memory",
    "KB of registers in each",
    "KB of L1 and LDS in each",
    "KB of L2",
)
FERMI = 14, 1030, 515, 144, 128, 12 + 64, 768  # by these rows: Nakasato's table 1
H200 = 4800, 256, 256, 50 * 1024  # from memory on: NVIDIA's data sheet
BLOCKS, TILE = "8 x 8 blocks, through the caches", "a tile of 128 x 128 in shared memory"


def gain(experiment: str, before: str, after: str) -> float:
    """Return the factor by which the record's figure is better ``after`` than ``before``; for
    banks, less is better.
    """
    then, now = (figures(experiment)[case] for case in (before, after))
    return then / now if experiment.startswith("bank") else now / then


def iteration_clocks(gflops: float) -> float:
    """Return the clocks for which a warp's iteration keeps a multiprocessor of the record's GPU
    busy. The warp adds 8 x 8 products in each of 32 threads.
    """
    return 2 * 32 * 8**2 * record()["multiprocessors"] * clock_ghz() / gflops


def loads_note() -> str:
    """Say how long a load takes that has to wait for the one before."""
    waits = [f"{where} {ns * clock_ghz():.0f}" for where, ns in figures("latency").items()]
    return f"Clocks of an iteration. A load takes, from {', '.join(waits)} clocks."


def comparison_table(experiment: str, cypress: Mapping[str, float]) -> Table:
    """Tabulate Cypress's figures and the record's, each also as a multiple of the first case's."""
    parts = cypress, figures(experiment)
    first = [next(iter(values.values())) for values in parts]
    rows = []
    for case in parts[1]:
        pairs = [(values.get(case), one) for values, one in zip(parts, first)]
        rows.append([case, *(x for value, one in pairs for x in (value, value and value / one))])
    heads = [""]
    for chip in ("Cypress", record()["device"]):
        heads += [f"{chip}, Gflop/s", "times the first"]
    return Table(heads, rows)


def peak_gflops() -> float:
    """Return the peak of the record's GPU in single precision."""
    return float(2 * 128 * record()["multiprocessors"] * clock_ghz())


def boards_table() -> Table:
    """Tabulate Cypress, Fermi (Nakasato's table 1), and the record's GPU (NVIDIA's data sheet)."""
    chip, peak, gpu = HD5870, peak_gflops(), record()
    caches = chip.l1_bytes + chip.lds_bytes
    then = [
        chip.simd_engines,
        chip.single_gflops,
        chip.double_gflops,
        chip.memory_gb_s,
        *(size / 1024 for size in (chip.register_bytes, caches, chip.l2_bytes)),
    ]
    now = [gpu["multiprocessors"], peak, peak / 2, *H200]
    rows = [[what, *map(round, row)] for what, *row in zip(BOARD_ROWS, then, FERMI, now)]
    intensity = [round(column[1] / column[3]) for column in (then, FERMI, now)]
    rows.insert(4, ["flops for each byte from memory", *intensity])
    return Table(["", chip.name, "Fermi", gpu["device"]], rows)


def _short_name() -> str:
    """Return the record's GPU without its maker."""
    return str(record()["device"]).split()[-1]


def banks_table() -> Table:
    """Tabulate how long a store and a load take, by the pitch of neighboring threads' words: in the
    LDS by lesson 07's rule, and as measured on the record's GPU.
    """
    measured = figures("bank, 32 warps")
    rows = [
        (int(pitch), _bank_clocks(int(pitch)), ns / measured["1"], ns * clock_ghz())
        for pitch, ns in measured.items()
    ]
    gpu = _short_name()
    heads = ["pitch", "LDS, times pitch 1", f"{gpu}, times pitch 1", f"{gpu}, clocks"]
    return Table(heads, rows)


def _bank_clocks(pitch: int) -> int:
    """Return the clocks of 16 work-items' words in the LDS, by lesson 07's rule."""
    return busiest_bank([pitch * item for item in range(16)])


def others_table() -> Table:
    """Tabulate the bus and double precision, then and now."""
    best, pairs = max(figures("double").values()), figures("double-double")["1 x 1"]
    rows = [
        ("bus, pageable memory, GB/s", XEON.pageable_gb_s, figures("bus")["pageable"]),
        ("bus, pinned memory, GB/s", XEON.dma_gb_s, figures("bus")["pinned"]),
        ("doubles, Gflop/s", published("dgemm_tn")["gflops_max"], best),
        ("double-doubles, Gflop/s", published("ddgemm_tn_fma")["gflops_max"], pairs),
    ]
    return Table(["", "then, published", _short_name()], [[r[0], *map(round, r[1:])] for r in rows])


def gains_table() -> Table:
    """Tabulate how many times as fast ideas make a product: on Cypress (modeled; by lesson 07's
    rule; or published), and on the record's GPU.
    """

    def modeled(before: Any, after: Any) -> float:
        return float(after.gflops / before.gflops)

    blocks = simulate_blocks((1, 8))
    gprs = kernel_stats("sgemm_tn").gprs
    few, many = (replace(HD5870, register_pool=gprs * wavefronts) for wavefronts in (3, 10))
    warps = [simulate("sgemm_tn", 1024, m=3840, k=128, device=chip) for chip in (few, many)]
    at = {n: simulate("sgemm_tn", n) for n in (256, 2048)}
    tiles = map_in_threads(partial(simulate, n=2048), ("sgemm_64x64", "sgemm_64x64_lds"))
    ours, library = _our_products(), figures("library")
    doubles = max(figures("double").values()) / figures("double-double")["1 x 1"]
    rows = [
        ("register block", modeled(blocks[1], blocks[8]), gain("block", "1 x 1", "8 x 8")),
        ("wavefronts 3 to 10, warps 5 to 16", modeled(*warps), gain("warps", "5", "16")),
        ("A transposed", modeled(simulate("sgemm_nn", 2048), at[2048]), gain("layout", "NN", "TN")),
        (
            "a word of padding",
            _bank_clocks(32) / _bank_clocks(33),
            gain("bank, 32 warps", "32", "33"),
        ),
        ("a large N, 256 to 2048", modeled(at[256], at[2048]), gain("size", "256", "2048")),
        ("pinned memory", XEON.dma_gb_s / XEON.pageable_gb_s, gain("bus", "pageable", "pinned")),
        ("doubles over double-doubles", _published_gain_of_doubles(), doubles),
        ("tiles in LDS", modeled(*tiles), ours[TILE] / ours[BLOCKS]),
        ("tensor cores, half precision", None, library["half"] / library["single"]),
    ]
    return Table(["times as fast", f"{HD5870.name}, 2009", f"{record()['device']}, today"], rows)


def _published_gain_of_doubles() -> float:
    """Return how many times as fast as double-doubles doubles are, both as published."""
    doubles, pairs = (published(name)["gflops_max"] for name in ("dgemm_tn", "ddgemm_tn_fma"))
    return float(doubles / pairs)


def new_products_table() -> Table:
    """Tabulate our kernel from the caches, of a tile, and a library."""
    library = {f"the library, {name} precision": x for name, x in figures("library").items()}
    products = _our_products() | library
    rows = [(what, speed, round(100 * speed / peak_gflops())) for what, speed in products.items()]
    return Table(["", "Gflop/s, measured", "% of single precision's peak"], rows)


def _our_products() -> dict[str, float]:
    """Return the measured Gflop/s of our kernels, by what they do."""
    return {BLOCKS: figures("block")["8 x 8"], TILE: figures("shared memory")["128 x 128"]}


def thread_blocks(r: int, t: int, s: int) -> tuple[int, int, int]:
    """Return how many thread blocks of ``t`` threads share a multiprocessor by its registers, its
    shared memory and its threads.
    """
    return 65536 // (r * t), 233472 // (s + 1024), 2048 // t


def share_warps(r: int, t: int, s: int) -> int:
    """Return how many warps share a multiprocessor."""
    return min(thread_blocks(r, t, s)) * t // 32


def mistakes_in_warps(r, t, s):
    """Return what each mistake gives."""
    by_registers, by_memory, by_threads = thread_blocks(r, t, s)
    blocks = min(by_registers, by_memory, by_threads)
    return {
        "thread blocks come whole: `//` rounds down.": (
            min(65536 / (r * t), 233472 / (s + 1024), 2048 / t) * t / 32
        ),
        "thread blocks come whole.": min(65536 // (32 * r), 233472 // (s + 1024) * t // 32, 64),
        "each thread block takes 1,024 bytes more.": share_warps(r, t, max(s, 1) - 1024),
        "these are thread blocks, not warps.": blocks,
        "right for hardware that rounds a thread's registers up to multiples of 8: here leave that"
        " out.": share_warps(-(-r // 8) * 8, t, s),
        "these are threads: how many make a warp?": blocks * t,
        "there are three limits, and the registers are only one.": by_registers * t // 32,
        "shared memory is limited, too.": share_warps(r, t, 0),
        "only 2,048 threads fit.": min(by_registers, by_memory) * t // 32,
    }


@formula_exercise(
    [
        (96, 64, 0),
        (96, 32, 38000),
        (128, 256, 8192),
        (16, 256, 0),
        (166, 64, 0),
        (65, 64, 0),
        (40, 1024, 100000),
    ],
    mistakes_in_warps,
    "how many whole thread blocks do the registers allow, how many the shared memory, how many the"
    " threads?",
    " warps",
)
def check_warps(r, t, s):
    """Exercise 1: ``warps(registers, threads, shared)``, how many warps share a multiprocessor of
    the H200.
    """
    return share_warps(r, t, s)


@formula_exercise(
    [(256, 128, 4), (160, 64, 4), (128, 48, 8), (4096, 128, 2)],
    lambda f, w, s: {
        "the cache delivers bytes, not numbers: how many bytes has a number?": f / w,
        "the more bytes a number has, the longer it takes to arrive.": f / (w * s),
        "inverted: more arithmetic needs a larger block.": w / (f * s),
        "a value of k takes 2b numbers, a column *and* a row, for 2b² operations: each 2 counts"
        " once.": f * s / w / 2,
        "each product is a multiplication and an addition: two operations.": 2 * f * s / w,
        "2b² operations over 2b numbers leave b itself, not its square.": (f * s / w) ** 0.5,
    },
    "for a value of k, how many clocks do 2b numbers take to arrive, and how many do the operations"
    " take?",
)
def check_smallest(f, w, s):
    """Exercise 2: ``smallest(flops, width, size)``, the side of a block that ``width`` bytes a
    clock can feed.
    """
    return f * s / w


@function_exercise
def check_product(product: Answer) -> Verdict:
    """Exercise 3: ``product(a, b)``, transpose(a) b by a CUDA kernel with 8 x 8 of C for each
    thread; run in numba's simulator at three shapes.
    """
    require(
        find_spec("numba") is not None,
        "Your kernel wasn't run: numba's simulator of a GPU isn't in a browser.",
        "install the workbook (the repository's README), and open this lesson there.",
    )
    rng = np.random.default_rng(200)
    for k, m, n in ((3, 64, 64), (5, 32, 64), (8, 64, 128)):
        a, b = (rng.integers(1, 8, (k, size)).astype(np.float32) for size in (m, n))
        shapes = f"a of {k} x {m} and b of {k} x {n} numbers"
        run = partial(product.through, run_noted)
        hint = f"it was called with {shapes}."
        c, launches = call_answer("product(a, b)", run, a, b, hint=hint)
        _compare_product(c, a, b, shapes)
        _check_launches(launches)
    speed = figures("exercise")["8 x 4"]
    return Verdict(
        True,
        "C is correct at three shapes, in a simulator. On an"
        f" {record()['device']} the reference kernel was measured at {speed:,.0f} Gflop/s.",
    )


def _compare_product(c: Any, a: np.ndarray, b: np.ndarray, shapes: str) -> None:
    """Raise ``CheckStopped``, naming the mistake, if ``c`` isn't transpose(a) b."""
    want = a.T @ b
    require(
        isinstance(c, np.ndarray), "product returns no array.", "keep the last line, `return c`."
    )
    shape = c.shape
    message = f"For {shapes}, product returns an array of shape {shape}, not {want.shape}."
    require(shape == want.shape, message, "keep the last line, `return c`.")
    if np.array_equal(c, want):
        return
    case = f"For {shapes}, C"
    hint = "each thread has to put its block into c: which rows and columns are its own?"
    require(np.any(c), f"{case} is all zero.", hint)
    last = np.outer(a[-1], b[-1])
    hint = "every k adds its products to what the block holds."
    require(not np.array_equal(c, last), f"{case} has the products of the last k alone.", hint)
    exchanged = shape[0] == shape[1] and np.array_equal(c, want.T)
    hint = "row i of the block belongs to a, and to y; column j to b, and to x."
    require(not exchanged, f"{case} has rows and columns exchanged.", hint)
    i, j = np.argwhere(c != want)[0]
    wrong = f"{case}[{i}, {j}] is {c[i, j]:g}, and should be {want[i, j]:g}."
    hint = (
        "c[8 * y + i, 8 * x + j] is made of column 8 * y + i of a and column 8 * x + j of b: is"
        " yours?"
    )
    if np.array_equal(c[::8, ::8], want[::8, ::8]):
        hint = "each block's first number is right: in the others, where does i count, and where j?"
    raise CheckStopped(wrong, hint)


def _check_launches(launches: list) -> None:
    """Raise ``CheckStopped`` unless a kernel writes C, and each thread its own block."""
    require(
        bool(launches),
        "C is correct, but no kernel was launched: the host computed it.",
        "complete the given kernel, and launch it in product.",
    )
    written = [launch for launch in launches if launch[0]]
    require(
        bool(written),
        "C is correct, but the kernel didn't make it: it writes nothing.",
        "the sums have to be made in the kernel, and its block put into c.",
    )
    size, threads = min(written)
    require(
        size <= 64 * threads,
        f"C is correct, but {threads} threads alone write {size} numbers of it.",
        "each thread writes only its own 8 x 8 block of C.",
    )


@contextmanager
def _row_stack() -> Iterator[None]:
    """Let numpy have a name that numba-cuda 0.30 needs, and that numpy 2.5 has dropped."""
    is_missing = "row_stack" not in vars(np)
    if is_missing:
        vars(np)["row_stack"] = np.vstack
    try:
        yield
    finally:
        if is_missing:
            del vars(np)["row_stack"]


def speed_here(product: Callable) -> str:
    """Time ``product``'s kernel on this computer's GPU, at the record's N."""
    if find_spec("numba"):  # a browser lacks it
        from numba import cuda
    if not find_spec("numba") or not cuda.is_available():
        return "There is no CUDA GPU here, so your kernel wasn't timed."
    n, seconds = record()["n"], []

    def time(kernel: Any, configuration: tuple, *arguments: Any) -> None:
        arrays = [cuda.to_device(argument) for argument in arguments]
        for _ in range(2):  # the first compiles it
            start = perf_counter()
            kernel[configuration](*arrays)
            cuda.synchronize()
            seconds.append(perf_counter() - start)

    with compiled(time), _row_stack():
        try:
            product(*np.ones((2, n, n), np.float32))
        except Exception as error:  # of numba, the driver, or the kernel
            return f"Your kernel wasn't timed. {type(error).__name__}: {error}"
    name = cuda.get_current_device().name  # bytes in older versions of numba
    name = name.decode() if isinstance(name, bytes) else name
    return f"{2e-9 * n**3 / seconds[-1]:,.0f} Gflop/s on {name}, measured just now"
