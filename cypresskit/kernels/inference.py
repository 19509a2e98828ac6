"""Which launch convention a program follows: found by running it, and proved by a product.

What the text says outright is read from it: mode, precision, output streams, workgroup. A survey
runs one work-item, or one workgroup, over zeros: where it stores is its block of C, and how many
more turns its loop does for a longer k gives its step. What is left, above all the transposes, is
tried: the convention whose launch multiplies two random matrices rightly is the program's.

Left out: programs that store no rectangle of C, and conventions that no catalogue kernel follows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np

from cypresskit.il import Program
from cypresskit.il.dataflow import uses
from cypresskit.kernels.catalogue import BYTES, KERNELS, Kernel
from cypresskit.kernels.convention import constants, scalars
from cypresskit.kernels.text_kernel import TextKernel, as_launched_like
from cypresskit.machine import KernelError
from cypresskit.machine.engines import launch
from cypresskit.machine.observer import MemoryEvent, Observer

STRIDE = 1031  # of C in the survey, in elements of g[]: a prime, so that rows and columns part
ROWS = 320  # of C in the survey
LONGEST = 20_000  # instructions of a work-item in a trial
LIKENESS = 0.8  # share of instructions in common from which a wrong kernel is taken for another's
TRANSPOSES = ((True, False), (False, False), (False, True), (True, True))


@dataclass(frozen=True)
class Survey:
    """What one work-item or one workgroup did over zeros.

    ``block`` and ``area`` are the rows and columns of C, columns in elements of ``g[]``, that one
    work-item and all of them stored; (0, 0) where that is no rectangle in C's upper left corner.
    ``turns`` has the turns of each loop.
    """

    block: tuple[int, int]
    area: tuple[int, int]
    turns: tuple[int, ...]


@dataclass(frozen=True)
class Trial:
    """A convention that was tried, and the share of C's elements that came out right."""

    kernel: Kernel
    right: float

    def __str__(self) -> str:
        return transposes(self.kernel)


class ConventionError(ValueError):
    """No launch convention was found for a kernel: pass ``like=``."""


def transposes(kernel: Kernel) -> str:
    """``TN`` for a kernel that takes A transposed and B as it is."""
    return "NT"[kernel.trans_a] + "NT"[kernel.trans_b]


class _Stores(Observer):
    """Hears which work-item stores to which element of global memory."""

    def __init__(self) -> None:
        self.items: list[np.ndarray] = []
        self.elements: list[np.ndarray] = []

    def memory(self, event: MemoryEvent) -> None:
        if event.store and event.space == "global":
            active = np.flatnonzero(event.active)
            self.items.append(active)
            self.elements.append(np.broadcast_to(event.element, event.active.shape)[active])


def survey(program: Program, k: int) -> Survey:
    """Run the first work-item, or the first workgroup, over matrices of zeros.

    Raises ``KernelError`` for a store outside of C and for an endless loop, and ``ValueError`` for
    a program that needs what no launch convention gives.
    """
    cb0 = constants(scalars(1.0, 0.0), k, STRIDE, (1, 1), (ROWS * STRIDE, 2 * ROWS * STRIDE, 1, 1))
    textures = {
        n: np.zeros((8, 8, 4) if dimensions == 2 else (8, 4), np.float32)
        for n, dimensions in program.textures.items()
    }
    outputs = {n: np.zeros((1, 1, 4), np.float32) for n in streams(program)}
    stores = _Stores()
    memory = np.zeros((ROWS * STRIDE, 4), np.float32)
    run = launch(
        program,
        (1, 1) if program.mode == "pixel" else program.group,
        inputs=textures,
        constants={0: cb0},
        outputs=outputs,
        global_memory=memory,
        observers=[stores],
        max_instructions=LONGEST,
        in_place=True,
    )
    loops = [at for at, i in enumerate(program.body) if i.op.flow == "loop"]
    turns = tuple(
        int(run.executed[program.matching[at]] // max(run.executed[at], 1)) for at in loops
    )
    if not stores.items:
        return Survey((0, 0), (0, 0), turns)
    items, elements = np.concatenate(stores.items), np.concatenate(stores.elements)
    return Survey(_spread(elements[items == items.min()]), _corner(elements), turns)


def _spread(elements: np.ndarray) -> tuple[int, int]:
    """How many rows and columns the elements lie in; (0, 0) unless they are all of these."""
    rows, columns = np.unique(elements // STRIDE), np.unique(elements % STRIDE)
    full = len(rows) * len(columns) == len(np.unique(elements))
    return (len(rows), len(columns)) if full else (0, 0)


def _corner(elements: np.ndarray) -> tuple[int, int]:
    """The rows and columns of the upper left corner of C that the elements fill, or (0, 0)."""
    rows, columns = _spread(elements)
    last = int(elements.max())
    fills = rows > 0 and (last // STRIDE, last % STRIDE) == (rows - 1, columns - 1)
    return (rows, columns) if fills else (0, 0)


def streams(program: Program) -> list[int]:
    """The output streams that a program writes."""
    return sorted(number for kind, number, _ in program.needs if kind == "o")


def k_step(program: Program) -> int | None:
    """Steps of k in a turn of the main loop: how much longer k has to be for a turn more. None if
    no loop depends on k.
    """
    first = survey(program, 8).turns
    estimate, distance = 0, 16
    for _ in range(4):
        turns = survey(program, 8 + distance).turns
        steps = [
            round(distance / (after - before))
            for before, after in zip(first, turns, strict=True)
            if after > before
        ]
        step = max(steps, default=0)
        if step and step == estimate:
            return step
        estimate = step
        distance = 12 * step or 8 * distance
    return estimate or None


def step_in_words(program: Program) -> str:
    """Why a turn of the loop is taken to do so many steps of k, as a sentence behind another, or
    "" if no loop depends on k.
    """
    step = k_step(program)
    line = _k_line(program)
    if not step or not line:
        return ""
    more = "step" if step == 1 else f"{step} steps"
    return (
        f" Each {more} more of k makes the loop turn once more: so many were taken for a turn's."
        f" Line {line} reads cb0[0].z, which is k in numbers, not in turns or texels."
    )


def _k_line(program: Program) -> int:
    """The first line that reads k, cb0[0].z, or 0 if none does."""
    for i in program.body:
        for _, source, positions in uses(program, i):
            register = source.register
            read = {source.swizzle[p] for p in positions}
            if (register.kind, register.index, register.element) == ("cb", 0, 0) and "z" in read:
                return i.line
    return 0


def conventions(program: Program) -> Iterator[Kernel]:
    """The conventions that the program may follow, by what it says and what a survey shows, with an
    empty name.

    Raises ``KernelError`` and ``ValueError`` as ``survey``.
    """
    step = k_step(program) or 1
    surveyed = survey(program, step)
    doubles = any(i.op.double for i in program.body)
    precisions = ("double", "double-double") if doubles else ("single",)
    outputs = streams(program)
    buffer = not any(i.op.kind == "fetch" for i in program.body)
    base = Kernel("", "single", program.mode, (1, 1), step, "", buffer=buffer)
    for precision in precisions:
        plain = replace(base, precision=precision)
        if outputs:
            shapes = _streamed(plain, program, len(outputs))
        elif program.mode == "pixel":
            shapes = _pixel(plain, surveyed)
        else:
            shapes = _grouped(plain, program, surveyed)
        for shape in shapes:
            for trans_a, trans_b in TRANSPOSES:
                if trans_b or not shape.vector:
                    yield replace(shape, trans_a=trans_a, trans_b=trans_b)


def _pixel(plain: Kernel, surveyed: Survey) -> Iterator[Kernel]:
    rows, elements = surveyed.area
    if rows and surveyed.block == surveyed.area:
        yield replace(plain, block=(rows, elements * 16 // BYTES[plain.precision]))


def _grouped(plain: Kernel, program: Program, surveyed: Survey) -> Iterator[Kernel]:
    across = 16 // BYTES[plain.precision]
    (rows, columns), (height, width) = surveyed.block, surveyed.area
    if not rows or not height:
        return
    parts, remainder = divmod(int(np.prod(program.group)) * rows * columns, height * width)
    if remainder or not parts:
        return
    plain = replace(plain, parts=parts)
    if height == 1:
        yield replace(plain, block=(columns * across, 1), group=(width * across, 1))
    matrix = replace(plain, block=(rows, columns * across), group=(height, width * across))
    yield replace(matrix, packed=_reads_block_rows(program))


def _reads_block_rows(program: Program) -> bool:
    """Whether the program reads cb0[4].z, which only packed kernels need."""
    sources = [s for i in program.body for s in i.sources]
    read = [s for s in sources if (s.register.kind, s.register.element) == ("cb", 4)]
    return any("z" in s.swizzle and set(s.swizzle) != set("xyzw") for s in read)


def _streamed(plain: Kernel, program: Program, count: int) -> Iterator[Kernel]:
    written = max(
        len(i.dest.written) for i in program.body if i.dest and i.dest.register.kind == "o"
    )
    size = BYTES[plain.precision]
    for texel in dict.fromkeys((4 * written, 16)):
        if texel not in (4, 8, 16) or texel < size:
            continue
        heights = sorted((rows for rows in range(1, count + 1) if not count % rows), reverse=True)
        for rows in sorted(heights, key=lambda rows: abs(rows - count // rows * texel // size)):
            block = rows, count // rows * texel // size
            yield replace(plain, block=block, streams=count, texel=texel)


def share_right(kernel: Kernel) -> float:
    """The share of C's elements that are right in a small product of random whole numbers; 0 where
    the launch fails.
    """
    height, width = kernel.multiple
    if kernel.vector:
        m = 2 * height
        n = 1
    elif kernel.mode == "pixel":
        m, n = 2 * height, 3 * width
    else:
        m, n = 2 * height, 2 * width
    k = 3 * kernel.k_step
    count = 2 if kernel.packed else 1
    words = (2,) if kernel.precision == "double-double" else ()
    rng = np.random.default_rng(41)
    matrices = []
    for shape in kernel.stored(*kernel.padded(m, n, k)):
        matrix = np.zeros((count, *shape, *words), kernel.dtype)
        matrix[(..., 0) if words else ...] = rng.integers(-9, 10, (count, *shape))
        matrices.append(matrix if kernel.packed else matrix[0])
    try:
        arguments = kernel.arguments(matrices[0], matrices[1], None, 1.0, 0.0)
        launch(
            kernel.program, **arguments, engine="explain", max_instructions=LONGEST, in_place=True
        )
    except (KernelError, ValueError, TypeError):
        return 0.0
    m, n, k = kernel.padded(m, n, k)
    result = kernel.result(arguments, m, n)
    plain = [matrix[..., 0] if words else matrix for matrix in matrices]
    left, right = (
        matrix.swapaxes(-1, -2) if transposed else matrix
        for matrix, transposed in zip(plain, (kernel.trans_a, kernel.trans_b), strict=True)
    )
    wanted = left.astype(np.float64) @ right.astype(np.float64)
    got = (result[..., 0] if words else result).astype(np.float64)
    return float(np.isclose(got, wanted, rtol=1e-5, atol=1e-4).mean())


def infer(kernel: TextKernel) -> tuple[TextKernel | None, list[Trial]]:
    """The kernel with the convention under which it multiplies rightly, or None; and what was
    tried.

    Raises ``KernelError`` and ``ValueError`` as ``survey``.
    """
    trials: list[Trial] = []
    for convention in conventions(kernel.program):
        tried = as_launched_like(kernel, convention)
        trials.append(Trial(tried, share_right(tried)))
        if trials[-1].right == 1:
            return tried, trials
    return None, trials


def nearest_kernel(program: Program) -> tuple[Kernel | None, float]:
    """The catalogue kernel with the most instructions in common, and their share, among those that
    a program may be launched like.
    """
    best = None
    most = 0.0
    doubles = any(i.op.double for i in program.body)
    for kernel in KERNELS.values():
        if kernel.mode != program.mode or (kernel.precision != "single") != doubles:
            continue
        if kernel.streams != len(streams(program)):
            continue
        matcher = SequenceMatcher(None, kernel.program.body, program.body, autojunk=False)
        if matcher.real_quick_ratio() <= most or matcher.quick_ratio() <= most:
            continue
        if (share := matcher.ratio()) > most:
            best, most = kernel, share
    return best, most
