"""Lesson 13: figures of then and now side by side, the reader's own GPU and their own kernel on
it, and the checks of the exercises.
"""

import re
import secrets
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from itertools import islice
from math import ceil
from pathlib import Path
from shutil import which
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from cypresskit.isolated import Answer
from cypresskit.tables import markdown
from cypresskit.teach.check import Halted, Verdict, exercise, tried, unless
from cypresskit.teach.formula import formula_exercise
from cypresskit.teach.l07_lds.checks import busiest
from cypresskit.today import clock_errors, clock_ghz, figures, record
from cypresskit.today.machine_code import TodaysCode
from cypresskit.today.second_run import compiled


def has_gpu() -> bool:
    """Whether kernels in CUDA can run on this computer."""
    return bool(which("nvidia-smi") and find_spec("numba_cuda"))


def own() -> dict | None:
    """The record of the reader's GPU, measured now, in a minute or a few; None without a GPU or
    numba-cuda.
    """
    if not has_gpu():
        return None
    from cypresskit.today.experiments import Bench

    with _small_launches_allowed():
        return Bench().record()


#: What numba says of every small launch, such as those that only check a kernel.
SMALL_LAUNCH = r".*(Grid size \d+ will likely|Host array used in CUDA kernel)"


@contextmanager
def _small_launches_allowed() -> Iterator[None]:
    """Without numba's warnings that a launch is too small to be fast."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=SMALL_LAUNCH)
        yield


def gain(experiment: str, before: str, after: str) -> float:
    """The factor by which the record's figure is better ``after`` than ``before``; for banks, less
    is better.
    """
    then, now = (figures(experiment)[case] for case in (before, after))
    return then / now if experiment.startswith("bank") else now / then


def step_clocks(gflops: float, side: int = 8) -> float:
    """For how many clocks a multiprocessor of the record's GPU is busy with a warp's step of k:
    the warp adds ``side`` x ``side`` products in each of 32 threads.
    """
    return 2 * 32 * side**2 * record()["multiprocessors"] * clock_ghz() / gflops


def load_clocks(words: list[int]) -> int:
    """Clocks of a warp's load in L1, by lesson 07's rule: different words of the busiest bank, four
    lines of 32 words at most.
    """
    return max(busiest(words), ceil(len({word // 32 for word in words}) / 4))


def step_needs() -> dict[str, int]:
    """Clocks that a warp of 8 x 4 threads, each with 8 x 8 of C, needs of the arithmetic for a step
    of k, and of L1 for its loads with A transposed (TN) or not (NN).
    """
    row = record()["n"]
    of_b = load_clocks([8 * (lane % 8) for lane in range(32)])
    of_a = {
        kind: load_clocks([apart * (lane // 8) for lane in range(32)])
        for kind, apart in (("TN", 8), ("NN", 8 * row))
    }
    needs = {"multiply-adds": 8 * 8 * 32 // 128}
    return needs | {kind: 8 * (clocks + of_b) for kind, clocks in of_a.items()}


def pairs(code: TodaysCode, most: int = 8) -> str:
    """A table of the first pairs of a loop, and of the banks that their registers lie in."""
    both = (line.text.split(" :: ") for line in code.loop if "::" in line.text)
    lines = [f"{'':62} results  1st sources  2nd sources"]
    for pair in islice(both, most):
        places = zip(*(re.findall(r" ([vs]\d+)", half) for half in pair), strict=False)
        banks = [
            " and ".join(f"{int(name[1:]) % 4}" if name[0] == "v" else "-" for name in names)
            for names in places
        ]
        lines.append(f"{' :: '.join(pair):62} {''.join(f'{bank:>9}' for bank in banks)}")
    return "\n".join(lines)


def beside(experiment: str, cypress: Mapping[str, float], mine: dict | None = None) -> str:
    """A table of Cypress's figures, the record's and the reader's, each also as a multiple of the
    first case's.
    """
    parts = {"Cypress": cypress, record()["device"]: figures(experiment)}
    parts |= {mine["device"]: figures(experiment, mine)} if mine else {}
    lines = [" " * 14 + "".join(f"{name:>22}" for name in parts)]
    for case in figures(experiment):
        pairs = [(values.get(case), next(iter(values.values()))) for values in parts.values()]
        cells = [f"{value:,.0f} {value / first:8.2f} x" if value else "-" for value, first in pairs]
        lines.append(f"{case:14}" + "".join(f"{cell:>22}" for cell in cells))
    return "\n".join(lines)


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
    {
        "workgroups come whole: `//` rounds down.": (
            lambda r, t, s: min(65536 / (r * t), 233472 / (s + 1024), 2048 / t) * t / 32
        ),
        "workgroups come whole.": lambda r, t, s: min(
            65536 // (32 * r), 233472 // (s + 1024) * t // 32, 64
        ),
        "each takes 1,024 bytes more.": lambda r, t, s: (
            min(65536 // (r * t), 233472 // max(s, 1), 2048 // t) * t // 32
        ),
        "these are workgroups, not warps.": lambda r, t, s: min(
            65536 // (r * t), 233472 // (s + 1024), 2048 // t
        ),
        "right for hardware that rounds a thread's registers up to multiples of 8: here leave that"
        " out.": lambda r, t, s: (
            min(65536 // (-(-r // 8) * 8 * t), 233472 // (s + 1024), 2048 // t) * t // 32
        ),
        "these are threads: how many make a warp?": lambda r, t, s: (
            min(65536 // (r * t), 233472 // (s + 1024), 2048 // t) * t
        ),
        "there are three limits, and the registers are only one.": lambda r, t, s: (
            65536 // (r * t) * t // 32
        ),
        "shared memory is limited, too.": lambda r, t, s: (
            min(65536 // (r * t), 2048 // t) * t // 32
        ),
        "only 2,048 threads fit.": lambda r, t, s: (
            min(65536 // (r * t), 233472 // (s + 1024)) * t // 32
        ),
    },
    "how many whole workgroups do the registers allow, how many the shared memory, how many the"
    " threads?",
    " warps",
)
def check_warps(r, t, s):
    """Exercise 1: ``warps(registers, threads, shared)``, how many warps share a multiprocessor of
    the H200.
    """
    return min(65536 // (r * t), 233472 // (s + 1024), 2048 // t) * t // 32


@formula_exercise(
    [(256, 128, 4), (160, 64, 4), (128, 48, 8), (4096, 128, 2)],
    {
        "the clock moves bytes, not numbers: how many has a number?": lambda f, w, s: f / w,
        "inverted: more arithmetic needs a larger block.": lambda f, w, s: w / (f * s),
        "a step of k fetches a column *and* a row.": lambda f, w, s: f * s / w / 2,
        "each product is a multiplication and an addition: two operations.": lambda f, w, s: (
            2 * f * s / w
        ),
    },
    "in a step of k, how many clocks do 2b numbers take to arrive, and how many do the operations"
    " take?",
)
def check_smallest(f, w, s):
    """Exercise 2: ``smallest(flops, width, size)``, the side of a block that ``width`` bytes a
    clock can feed.
    """
    return f * s / w


@exercise
def check_product(product: Answer) -> Verdict:
    """Exercise 3: ``product(a, b)``, transpose(a) b by a CUDA kernel with 8 x 8 of C for each
    thread; run in numba's simulator at three shapes.
    """
    rng = np.random.default_rng(200)
    for k, m, n in ((3, 64, 64), (5, 32, 64), (8, 64, 128)):
        a, b = (rng.integers(1, 8, (k, size)).astype(np.float32) for size in (m, n))
        shapes = f"a of {k} x {m} and b of {k} x {n} numbers"
        run = partial(product.through, "cypresskit.today.second_run", "run_twice")
        hint = f"it was called with {shapes}."
        seed = int(secrets.token_hex(7), 16)  # an answer can't know the second run's numbers
        c, launches = tried("product(a, b)", run, a, b, seed, hint=hint)
        _compare_product(c, a, b, shapes)
        _check_launches(launches)
    speed = figures("exercise")["8 x 4"]
    return Verdict(
        True,
        "C is right at three shapes, in numba's simulator. On an"
        f" {record()['device']} the frame's kernel was measured at {speed:,.0f} Gflop/s.",
    )


def _compare_product(c: Any, a: np.ndarray, b: np.ndarray, shapes: str) -> None:
    """Raise ``Halted`` with the slip, if ``c`` isn't transpose(a) b."""
    want = a.T @ b
    unless(
        isinstance(c, np.ndarray), "product returns no array.", "keep the last line, `return c`."
    )
    shape = c.shape
    finding = f"For {shapes}, product returns an array of shape {shape}, not {want.shape}."
    unless(shape == want.shape, finding, "keep the last line, `return c`.")
    if np.array_equal(c, want):
        return
    case = f"For {shapes}, C"
    hint = "each thread has to put its block into c: which rows and columns are its own?"
    unless(np.any(c), f"{case} is all zero.", hint)
    last = np.outer(a[-1], b[-1])
    hint = "every k adds its products to what the block holds."
    unless(not np.array_equal(c, last), f"{case} has the products of the last k alone.", hint)
    exchanged = shape[0] == shape[1] and np.array_equal(c, want.T)
    hint = "row i of the block belongs to a, and to y; column j to b, and to x."
    unless(not exchanged, f"{case} has rows and columns exchanged.", hint)
    i, j = np.argwhere(c != want)[0]
    wrong = f"{case}[{i}, {j}] is {c[i, j]:g}, and should be {want[i, j]:g}."
    raise Halted(wrong, "thread (x, y) begins at row 8 * y and column 8 * x of C.")


def _check_launches(launches: list) -> None:
    """Raise ``Halted`` unless a kernel made C: in a second run of it, on other numbers."""
    unless(
        bool(launches),
        "C is right, but no kernel was launched: the host computed it.",
        "the kernel of the frame has to make C, and product to launch it.",
    )
    right = [
        most
        for a, b, c, most in launches
        if np.shape(c) == (a.shape[1], b.shape[1]) and np.array_equal(c, a.T @ b)
    ]
    unless(
        bool(right),
        "C is right, but the kernel didn't make it: run once more, on other numbers, it doesn't"
        " give their product.",
        "the sums have to be made in the kernel, and its block put into c.",
    )
    unless(
        min(right) <= 64,
        f"C is right, but a thread writes {min(right)} numbers of it.",
        "8 x 8 of C are a thread's own, and other threads write the others.",
    )


NO_DRIVER = "numba.cuda finds no GPU that it can use (`python -m numba -s` says why)"


ARRAYS_ON_THE_CARD = "to_device", "device_array", "device_array_like", "pinned_array"


class _OnHost(np.ndarray):
    """An array that stands for one of the card's, where nothing is launched."""

    def copy_to_host(self, *_: Any, **__: Any) -> "_OnHost":
        return self

    copy_to_device = copy_to_host


def _on_host(like: Any, dtype: Any = None, **_: Any) -> _OnHost:
    """An array as another one, or of a shape."""
    array = like if isinstance(like, np.ndarray) else np.empty(like, dtype)
    return array.view(_OnHost)


class _Noted:
    """A kernel whose launches are noted in ``into``, and don't happen."""

    def __init__(self, kernel: Any, into: list) -> None:
        self.kernel = kernel
        self.into = into

    def __getitem__(self, launched: tuple) -> Callable[..., None]:
        grid, threads, _, shared = (*launched, 0, 0)[:4]
        return lambda *given: self.into.append((self.kernel, grid, threads, shared, *given))


def launched(product: Callable, n: int = 64) -> tuple:
    """The last launch of ``product(a, b)`` for n x n numbers, which doesn't happen: the kernel that
    it compiled with ``@cuda.jit``, or ``@cuda.jit(...)``, grid, threads, bytes of shared memory
    that it asks for, and the arguments. Raises ``ValueError`` if there is none.
    """
    from cypresskit.today.cuda_kernels import cuda  # it mends numba for a new numpy

    launches: list[tuple] = []
    stand_ins: dict[str, Any] = dict.fromkeys(ARRAYS_ON_THE_CARD, _on_host)
    stand_ins |= dict.fromkeys(("stream", "synchronize"), lambda: 0)
    patched = patch.multiple(cuda, **stand_ins)
    with compiled(lambda made: _Noted(made, launches)), patched, _small_launches_allowed():
        product(np.empty((n, n), np.float32), np.empty((n, n), np.float32))
    if not launches:
        raise ValueError(
            "product launched no kernel: it should have one inside, below @cuda.jit, and launch it"
        )
    return launches[-1]


def clocked(product: Callable, n: int = 4096) -> Any:
    """The report of ``ck.today.simulate`` on ``product``'s kernel as it is launched for N = ``n``,
    on an H200; as long as it computes nothing, on the reference kernel, and that is printed.
    """
    from cypresskit.today import cuda_kernels, cuda_clock  # isort: skip

    own, grid, threads, shared, *arguments = launched(product, n)
    with suppress(cuda_clock.NothingToTime):
        report = cuda_clock.simulate(own, grid, threads, *arguments, shared=shared)
        if report.flops:
            return report
    print("Your kernel computes nothing yet. This is the reference kernel:")
    matrices = [np.empty((n, n), np.float32)] * 3
    return cuda_clock.simulate(cuda_kernels.as_written, (n // 64, n // 32), (8, 4), *matrices)


def clock_table(*experiments: str) -> str:
    """Modelled and measured Gflop/s of the record's products, or those of some experiments, from
    the worst miss to the smallest.
    """
    rows = [
        (name, f"{speed:,.0f}", f"{found:,.0f}", f"{100 * (speed / found - 1):+.0f} %")
        for name, speed, found in clock_errors()
        if not experiments or name.split(",")[0] in experiments
    ]
    return markdown(("product", "modelled", "measured", "off by"), rows)


def timed(product: Callable, n: int = 4096) -> str:
    """How fast the kernel of exercise 3 is at N = ``n`` on this computer's GPU; the record's figure
    without one.

    Raises ``ArithmeticError`` if its result isn't numpy's, ``RuntimeError`` where a GPU is there
    and can't be used, or numba's simulator stands in its place, and ``ValueError`` for a
    ``product`` that compiles no kernel.
    """
    speed = figures("exercise")["8 x 8"]
    known = f"{record()['device']}, from the record: {speed:,.0f} Gflop/s at N = {record()['n']}"
    if not has_gpu():
        return f"No CUDA GPU and numba-cuda here. {known}"
    from cypresskit.today.experiments import Bench  # first: it mends numba for a new numpy

    from numba import config, cuda  # isort: skip

    if config.ENABLE_CUDASIM or not cuda.is_available():
        why = "numba's simulator is on, which has no speed" if config.ENABLE_CUDASIM else NO_DRIVER
        raise RuntimeError(f"this kernel can't be timed here: {why}. {known}")
    kernel = launched(product)[0]
    bench = Bench(n=n)
    with _small_launches_allowed():
        bench.product("block", "mine", kernel, n, 8)
    return f"Here: {bench.rows[-1]['value']:,.0f} Gflop/s at N = {n}. {known}"


def nvidia_code(product: Callable) -> str:
    """The machine code of the loop in ``product``'s kernel for an H200, by NVIDIA's own compiler,
    which needs no GPU; or what is missing here.
    """
    if not find_spec("numba_cuda"):
        return "numba-cuda isn't installed here, which compiles without a GPU: cypresskit[gpu]"
    kernel = launched(product)[0]
    from numba import cuda, float32

    matrix = float32[:, ::1]
    ptx, _ = cuda.compile_ptx(kernel.py_func, (matrix, matrix, matrix), cc=(9, 0))
    tools = []
    for name in ("ptxas", "nvdisasm"):
        wheels = (Path(place).glob(f"nvidia/*/bin/{name}*") for place in sys.path)
        tools.append(next((str(tool) for here in wheels for tool in here), which(name)))
    if not all(tools):
        return (
            f"{ptx}\nFor machine code: nvidia-cuda-nvcc and nvidia-cuda-nvdisasm are missing here."
        )
    with TemporaryDirectory() as folder:
        source, made = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        about = _said(tools[0], "-v", "-arch=sm_90", source, "-o", made)
        code = _said(tools[1], "-c", made)
    loops = re.findall(r"(?ms)^(\.L_x_\d+):\n((?:(?!^\.L_x).)*BRA `\(\1\))", code)
    loop = max((body for _, body in loops), key=lambda body: body.count("FFMA"))
    lines = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?) ;", loop)
    names = Counter(re.sub(r"^@\S+\s+", "", line).split()[0].split(".")[0] for line in lines)
    counted = ", ".join(f"{count} {name}" for name, count in names.most_common())
    registers = re.findall(r"Used (\d+) registers", about)[0]
    head = f"{registers} registers; a turn: {len(lines)} instructions, {counted}"
    return "\n".join([head, "", *lines])


def _said(*command: Any) -> str:
    done = run(list(map(str, command)), check=True, capture_output=True, text=True)
    return done.stdout + done.stderr
