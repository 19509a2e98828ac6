"""Lesson 14: the reader's own kernel in CUDA, how fast it is, what its lines cost, and the checks
of the exercises.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cypresskit.isolated import Answer
from cypresskit.isolated.noted_launches import compiled
from cypresskit.tables import markdown
from cypresskit.teach.check import (
    CheckStopped,
    Verdict,
    call_answer,
    check_rng,
    exercise,
    require,
)
from cypresskit.teach.formula import formula_exercise
from cypresskit.today import clock_errors, cuda_compile, figures, record, stored_code
from cypresskit.today.sass_threads import NotTimed

SIZE = 4096
NOTED_LAUNCHES = "cypresskit.isolated.noted_launches"


@exercise
def check_product(product: Answer) -> Verdict:
    """Exercise 1: ``product(a, b)``, transpose(a) b by a CUDA kernel with 8 x 8 of C for each
    thread; run in a simulator at three shapes.
    """
    rng = np.random.default_rng(200)
    for k, m, n in ((3, 64, 64), (5, 32, 64), (8, 64, 128)):
        a, b = (rng.integers(1, 8, (k, size)).astype(np.float32) for size in (m, n))
        shapes = f"a of {k} x {m} and b of {k} x {n} numbers"
        run = partial(product.through, NOTED_LAUNCHES, "run_noted")
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


@formula_exercise(
    [(400, 300, 50), (300, 400, 50), (500, 20, 200), (90, 90, 300)],
    lambda first, second, work: {
        "the second load is still awaited: they were in flight together.": first,
        "that is what an iteration still takes. How much shorter is it?": second + work,
        "a wait can't become shorter than nothing: what if the second load is the longer one?": (
            first - second
        ),
        "the work is done in both cases: it cancels.": max(first - second - work, 0),
    },
    "the work begins when both loads have arrived. How long does an iteration take with both, and"
    " how long with the second one alone?",
    " clocks",
)
def check_saves(first, second, work):
    """Exercise 2: ``saves(first, second, work)``, the clocks that an iteration loses if the first
    of two loads takes no time: they are in flight together, and ``work`` needs both.
    """
    return max(first, second) - second


@formula_exercise(
    [(8,), (32,), (16,), (1,), (2,), (4,)],
    lambda across: {
        "a thread needs eight numbers of each, not one.": across + 32 / across,
        "the warp's 32 threads stand in 32 / across rows.": 8 * (across + 32),
        "these are the numbers of b. Add the numbers of a.": 8 * across,
        "these are the numbers of a. Add the numbers of b.": 8 * 32 / across,
        "threads share numbers: threads in a row share a's, threads in a column b's.": 16 * 32,
        "these are the numbers of C.": 8 * across * 8 * 32 / across,
    },
    "how many columns of C has a warp, and how many rows?",
    " numbers",
    draw=lambda: (2 ** check_rng.randrange(6),),
)
def check_numbers(across):
    """Exercise 3: ``numbers(across)``, how many different numbers of a and b a warp needs for an
    iteration, with ``across`` threads side by side and 8 x 8 of C for each.
    """
    return 8 * across + 8 * 32 / across


def launched(product: Callable) -> tuple:
    """Return the last launch by ``product(a, b)`` for N = 4096, without running it: the kernel
    (compiled with ``@cuda.jit`` or ``@cuda.jit(...)``), grid, threads, bytes of shared memory, and
    arguments. Raises ``ValueError`` if there is none.
    """
    from cypresskit.today.cuda_kernels import cuda as cuda  # patches numba for a new numpy

    launches: list[tuple] = []

    def note(kernel: Any, configuration: tuple, *given: Any) -> None:
        grid, threads, _, shared = (*configuration, 0, 0)[:4]
        launches.append((kernel, grid, threads, shared, *given))

    with compiled(note):
        product(*_matrices(2))
    if not launches:
        raise ValueError(
            "product launched no kernel: it should have one inside, below @cuda.jit, and launch it"
        )
    return launches[-1]


def _matrices(count: int) -> list[np.ndarray]:
    return [np.empty((SIZE, SIZE), np.float32)] * count


def simulate_cuda(product: Callable) -> Any:
    """Simulate ``product``'s kernel, as it is launched for N = 4096, on an H200
    (``ck.today.simulate``). If it is no product yet, or NVIDIA's tools are missing for a kernel of
    one's own, simulate the reference kernel instead, and print so.
    """
    from cypresskit.today import cuda_clock, cuda_kernels  # isort: skip

    own, grid, threads, shared, *arguments = launched(product)
    try:
        return cuda_clock.simulate(own, grid, threads, *arguments, shared=shared)
    except (NotTimed, cuda_compile.NoTools) as error:
        print(f"Your kernel wasn't timed: {error}.\nThis is the reference kernel:")
    grid = SIZE // 64, SIZE // 32
    return cuda_clock.simulate(cuda_kernels.as_written, grid, (8, 4), *_matrices(3))


def clock_table(*experiments: str) -> str:
    """Tabulate modeled and measured Gflop/s of the record's products, or of some experiments, from
    the largest error to the smallest.
    """
    rows = []
    for name, speed, found in clock_errors():
        if not experiments or name.split(",")[0] in experiments:
            off = round(100 * (speed / found - 1))
            rows.append((name, f"{speed:,.0f}", f"{found:,.0f}", f"{off:+d} %" if off else "0 %"))
    return markdown(("product", "modeled", "measured", "off by"), rows)


def nvidia_code(product: Callable) -> str:
    """Return the loop of ``product``'s kernel as machine code of an H200, or which tool is missing.
    It is compiled by NVIDIA's compiler, which needs no GPU.
    """
    own, _, _, _, *arguments = launched(product)
    try:
        code = stored_code.machine_code(own, tuple(arguments))
    except cuda_compile.NoTools as error:
        return str(error)
    loops = [code.instructions[first : last + 1] for first, last in code.loops.items()]
    most = max(loops, key=lambda loop: sum(one.name == "FFMA" for one in loop), default=[])
    counted = Counter(one.name for one in most)
    names = ", ".join(f"{count} {name}" for name, count in counted.most_common())
    head = f"{code.registers} registers; an iteration: {len(most)} instructions, {names}"
    return "\n".join([head, "", *(one.text for one in most)])
