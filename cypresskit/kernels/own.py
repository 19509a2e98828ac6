"""Make a kernel from a user's source, file or program, and find its launch convention.

``load_kernel`` makes a ``Kernel``. Other functions of the package that take a kernel pass their
argument to ``resolve``, which also accepts names, files, sources and programs.

How it works
------------
A kernel is its source and its launch convention. The catalog states the convention. For other
sources it is taken from the kernel ``like``, or found by running the program:

1. Mode, precision, output streams and workgroup are read from the program.
2. A probe runs one work-item, or one workgroup, on zeros. The addresses of its stores give its
   block of C. How the trip count of its loop grows with k gives the values of k per iteration.
3. The rest, mainly the transposes, is found by trial: the first convention is taken under which the
   program multiplies two random matrices correctly.

Limitations
-----------
The program must store a rectangle of C, by a convention of a catalog kernel.
"""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from cypresskit.devices import is_whole
from cypresskit.il import Program
from cypresskit.il.errors import MAX_QUOTED, did_you_mean, shorten
from cypresskit.il.parser import MAX_TEXT
from cypresskit.il.program import LETTERS
from cypresskit.kernels.catalogue import KERNELS, Kernel, assembled
from cypresskit.kernels.convention import BYTES, Convention, pack_constants, to_scalars
from cypresskit.kernels.products import count_correct_share
from cypresskit.machine import KernelError
from cypresskit.machine.engines import launch
from cypresskit.machine.observer import MemoryEvent, Observer
from cypresskit.tables import quantity

MAX_SIZE = 256  # most rows or columns of a block, and values of k per iteration
KINDS = "the name of a kernel in ck.kernels, a Kernel, a file FILE.il, IL text or a Program"
STRIDE = 1031  # row stride of C in a probe, in elements of g[]: a prime, to tell rows from columns
ROWS = 320  # of C in a probe
PROBE_INSTRUCTIONS = 20_000  # most instructions of a work-item in a probe
MOSTLY = 0.5  # share of correct elements from which a convention is taken with a warning
TRANSPOSES = ((True, False), (False, False), (False, True), (True, True))
Source = str | Path | Program | Kernel
GivenSizes = tuple[tuple[int, int] | None, int | None]  # block and k_step, None if not given


@dataclass(frozen=True)
class StoreProbe:
    """The stores and loops of one work-item, or of one workgroup, run on zeros.

    Attributes
    ----------
    block
        Rows and columns of C, in elements of ``g[]``, that one work-item stored; (0, 0) if they
        aren't a rectangle in the upper left corner of C.
    area
        The same for all work-items.
    trip_counts
        The trip count of each loop.
    """

    block: tuple[int, int]
    area: tuple[int, int]
    trip_counts: tuple[int, ...]


class LaunchConventionError(ValueError):
    """The launch convention of a kernel could not be found: pass ``like=``."""


def load_kernel(
    source: Source,
    *,
    like: Source | None = None,
    block: tuple[int, int] | None = None,
    k_step: int | None = None,
    name: str | None = None,
) -> Kernel:
    """Return your own kernel, for use wherever a catalog kernel can be used.

    Parameters
    ----------
    source
        IL source, a path that ends in ``.il``, an assembled ``Program``, or a ``Kernel`` or its
        name, to change its convention.
    like
        The kernel whose launch convention it follows: precision, transposes, and how results are
        stored. By default the convention is found by running the program on small matrices.
    block
        Rows and columns of C per work-item; found if not given.
    k_step
        k must be a multiple of it: the values of k per iteration of the loop; found if not given.
    name
        The kernel's name; by default the file's, or the program's.

    Returns
    -------
    A ``Kernel``.

    Raises
    ------
    ILError
        For a source that doesn't assemble.
    LaunchConventionError
        (a ``ValueError``) If no convention is given, and none is found. The message says which were
        tried. If most of C is correct under one of them, it is taken, with a warning.
    ValueError
        For a ``like`` of the other mode, and for sizes out of range.
    KeyError
        For an unknown name.
    OSError
        For a file that can't be read.
    TypeError
        For other types, and a name that isn't a string.

    Examples
    --------
    >>> text = ck.kernels["sgemm_tn"].text.replace("sgemm_tn", "mine")
    >>> mine = ck.load_kernel(text, name="mine")
    >>> mine.block, mine.k_step, mine.trans_a
    ((8, 8), 2, True)
    >>> ck.simulate(mine, 512).bound
    'too few wavefronts'
    """
    check_sizes(block, k_step)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is what to call the kernel, a string, not {shorten(name)}")
    known, is_launchable = _find(source, "source")
    convention = known if is_launchable else None
    if like is not None:
        convention = resolve(like, "like")
    elif is_launchable and (block, k_step, name) == (None, None, None):
        return known
    bare = Kernel(name or known.name, known.text, given=known.given)
    sizes = block and (int(block[0]), int(block[1])), k_step and int(k_step)
    return _launched(bare, convention, sizes)


def find_likeliest_launch(source: Source, name: str | None = None) -> tuple[Kernel | None, float]:
    """Return a kernel with the convention under which most of a small product is correct.

    Returns
    -------
    kernel
        None if no element is correct under any convention.
    share
        The share of C's elements that are correct.

    Raises
    ------
    ILError
        For a source that doesn't assemble.
    """
    known, _ = _find(source, "source")
    best, share, _ = _find_likeliest(replace(known, name=name or known.name))
    return (best, share) if share else (None, 0.0)


def resolve(given: object, argument: str = "kernel") -> Kernel:
    """Return the ``Kernel`` of a name, file, source, program or ``Kernel``.

    Parameters
    ----------
    given
        Any of these.
    argument
        The name of the caller's argument, for errors.

    Raises
    ------
    KeyError
        For an unknown name.
    TypeError
        For other types. Also the errors of ``load_kernel``.
    """
    known, is_launchable = _find(given, argument)
    return known if is_launchable else _launched(known)


def resolve_program(given: object) -> Program:
    """Return the program of a name, file, source, program or ``Kernel``, without its convention.

    The errors are those of ``resolve``.
    """
    return _find(given, "kernel")[0].program


def _find(given: object, argument: str) -> tuple[Kernel, bool]:
    """Return the kernel, and whether its convention is known.

    The convention of a source, file or program isn't.
    """
    if isinstance(given, Kernel):
        return given, True
    if isinstance(given, Program):
        return Kernel(given.name.removesuffix(".il"), str(given), given=given), False
    if isinstance(given, str) and _is_text(given):
        return Kernel("mine", given), False
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".il")):
        path = Path(given)
        return Kernel(path.stem, read_text(path)), False
    if not isinstance(given, str):
        raise TypeError(f"{argument} is {KINDS}, not {shorten(given)}")
    if given not in KERNELS:
        raise KeyError(
            f"{argument} is {KINDS}: there is no kernel {shorten(given)}.{_suggest_name(given)}"
            f" The catalog has {', '.join(KERNELS)}."
        )
    return KERNELS[given], True


def _is_text(given: str) -> bool:
    """Return whether a string is IL, not the name of a kernel or a file."""
    return "\n" in given or given.lstrip().startswith(("il_ps", "il_cs", ";"))


def _suggest_name(given: str) -> str:
    """Suggest a file in the current folder, or a kernel, for an unknown name."""
    file = f"{given}.il"
    if len(file) <= MAX_QUOTED and "\0" not in file and Path(file).is_file():
        return f" Did you mean the file `{file}`?"
    return did_you_mean(given, KERNELS)


def check_sizes(block: object, k_step: object) -> None:
    """Raise ``ValueError`` for a block or ``k_step`` out of range. None means not given."""
    if block is not None:
        numbers = block if isinstance(block, (tuple, list)) else ()
        if len(numbers) != 2 or not all(map(_is_size, numbers)):
            raise ValueError(
                f"block is (rows, columns) of C per work-item, such as (8, 8), each from 1 to"
                f" {MAX_SIZE}; found {shorten(block)}"
            )
    if k_step is not None and not _is_size(k_step):
        raise ValueError(
            f"k_step is a whole number from 1 to {MAX_SIZE}, the values of k per iteration of the"
            f" loop; found {shorten(k_step)}"
        )


def _is_size(number: object) -> bool:
    return is_whole(number, MAX_SIZE)


def read_text(path: Path) -> str:
    """Return the text of an IL file.

    Raises
    ------
    OSError
        If there is no such file, or it can't be read.
    ValueError
        For a file that is too long or isn't text.
    """
    if not path.is_file():  # reading a pipe or a device could block
        if path.exists():
            raise OSError(f"can't read {path}: it is a folder, a pipe or a device")
        others = [file.name for file in path.parent.glob("*.il")] if path.parent.is_dir() else []
        guess = did_you_mean(path.name, others)
        raise FileNotFoundError(f"can't read {path}: there is no such file.{guess}")
    if path.stat().st_size > MAX_TEXT:
        raise ValueError(f"can't read {path}: a program has at most {MAX_TEXT:,} bytes")
    data = path.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"can't read {path}: line {line} isn't text. Is it a program, saved as UTF-8?"
        ) from None


def _launched(bare: Kernel, like: Kernel | None = None, sizes: GivenSizes = (None, None)) -> Kernel:
    """Return the kernel with a convention; warn if it isn't verified."""
    launched, warning = _with_convention(bare, like, sizes)
    if warning:
        warnings.warn(warning, stacklevel=_caller_level())
    return launched


@lru_cache(maxsize=128)
def _with_convention(bare: Kernel, like: Kernel | None, sizes: GivenSizes) -> tuple[Kernel, str]:
    """Return the kernel with its convention, and a warning or "".

    The convention is taken from ``like``, or found by trial; given sizes replace its own.
    """
    program = bare.program
    if like is None:
        convention, warning = _infer_convention(bare)
    elif like.mode != program.mode:
        other = "pixel" if like.mode == "compute" else "compute"
        raise ValueError(
            f"like is {like.name}, a {like.mode} kernel, but {program.name} is a {other} kernel, as"
            " its first line says: choose another kernel for like="
        )
    else:
        convention, warning = like.convention, ""
        if None in sizes:
            convention = _measure_sizes(bare, convention, sizes)
    return replace(bare, convention=_resize(convention, sizes)), warning


def forget_kernels() -> None:
    """Clear the caches of kernels, for processes that use many."""
    _with_convention.cache_clear()
    assembled.cache_clear()


def _resize(convention: Convention, sizes: GivenSizes) -> Convention:
    """Return the convention with the given sizes. The workgroup is scaled with the block."""
    block, k_step = sizes
    rows, columns = block or convention.block
    group = convention.group and (
        convention.group[0] // convention.block[0] * rows,
        convention.group[1] // convention.block[1] * columns,
    )
    return replace(
        convention, block=(rows, columns), group=group, k_step=k_step or convention.k_step
    )


def _measure_sizes(bare: Kernel, convention: Convention, sizes: GivenSizes) -> Convention:
    """Return the convention with the program's own block and values of k per iteration.

    They replace the convention's if the program multiplies correctly only with them, or if its
    iterations take more values of k: otherwise the last iteration would read beyond the matrices.
    """
    try:
        measured = [
            found
            for found in propose_conventions(bare.program)
            if found
            == replace(convention, block=found.block, group=found.group, k_step=found.k_step)
        ]
    except (KernelError, ValueError):
        return convention
    if convention in measured:
        return convention
    longer = [found for found in measured if found.k_step > convention.k_step]
    for candidate in (*longer, convention, *measured):
        resized = _resize(candidate, sizes)
        if count_correct_share(replace(bare, convention=resized)) == 1:
            return candidate
    return convention


def _infer_convention(bare: Kernel) -> tuple[Convention, str]:
    """Find the convention by trial. Return it, and a warning if C isn't entirely correct, or "".

    Raises
    ------
    LaunchConventionError
        If less than ``MOSTLY`` of C is correct under every convention.
    """
    program = bare.program
    best, share, reason = _find_likeliest(bare)
    if best and share == 1:
        return best.convention, ""
    reason = reason if reason.endswith(("?", "!")) else f"{reason}."
    advice = (
        "Name a catalog kernel with the same launch convention: ck.load_kernel(..., like=). Add"
        " block=(rows, columns) of C per work-item and k_step= if these differ."
    )
    if best and share >= MOSTLY:
        how = best.convention
        warning = f"{program.name} doesn't multiply correctly: {reason}"
        return how, f"{warning} It is launched as {how.transposes}. {advice}"
    raise LaunchConventionError(
        f"the launch convention of {program.name} can't be found: {reason} {advice}"
    )


def _caller_level() -> int:
    """Return the ``stacklevel`` for a warning at the user's call of this package."""
    frame = sys._getframe(1)
    level = 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("cypresskit."):
        frame = frame.f_back
        level += 1
    return level


def _find_likeliest(bare: Kernel) -> tuple[Kernel | None, float, str]:
    """Try conventions up to the first under which the program multiplies correctly.

    Returns
    -------
    The kernel with the best convention, the share of C that is correct under it, and what was
    tried, or why nothing could be, as part of a sentence.
    """
    trials: list[tuple[Kernel, float]] = []
    try:
        for convention in propose_conventions(bare.program):
            launched = replace(bare, convention=convention)
            trials.append((launched, count_correct_share(launched)))
            if trials[-1][1] == 1:
                break
    except (KernelError, ValueError) as error:
        text = error.message if isinstance(error, KernelError) else str(error)
        return None, 0.0, text.splitlines()[-1].strip().rstrip(".")
    if not trials:
        return None, 0.0, "no work-item stores a rectangle of C to g[] or to output streams"
    best, share = max(trials, key=lambda trial: trial[1])
    shapes = dict.fromkeys(f"{k.block[0]} x {k.block[1]}" for k, _ in trials)
    transposes = dict.fromkeys(k.convention.transposes for k, _ in trials)
    tried = (
        f"as {', '.join(transposes)} with a block of {' or '.join(shapes)} and"
        f" {quantity(best.k_step, 'value')} of k per iteration, at best {100 * share:.0f} % of C is"
        f" correct ({best.convention.transposes})"
    )
    return best, share, tried


class _Stores(Observer):
    """Records which work-item stores to which element of global memory."""

    def __init__(self) -> None:
        self.items: list[np.ndarray] = []
        self.elements: list[np.ndarray] = []

    def memory(self, event: MemoryEvent) -> None:
        if event.store and event.space == "global":
            active = np.flatnonzero(event.active)
            self.items.append(active)
            self.elements.append(np.broadcast_to(event.element, event.active.shape)[active])


def probe_stores(program: Program, k: int) -> StoreProbe:
    """Run the first work-item, or the first workgroup, on matrices of zeros.

    Raises
    ------
    KernelError
        For a store outside of C, or an infinite loop.
    ValueError
        For a program that uses an array which no launch convention provides.
    """
    cb0 = pack_constants(
        to_scalars(1.0, 0.0), k, STRIDE, (1, 1), (ROWS * STRIDE, 2 * ROWS * STRIDE, 1, 1)
    )
    textures = {
        n: np.zeros((8, 8, 4) if dimensions == 2 else (8, 4), np.float32)
        for n, dimensions in program.textures.items()
    }
    outputs = {n: np.zeros((1, 1, 4), np.float32) for n in find_streams(program)}
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
        max_instructions=PROBE_INSTRUCTIONS,
        in_place=True,
    )
    loops = [at for at, i in enumerate(program.body) if i.op.flow == "loop"]
    trip_counts = tuple(
        int(run.executed[program.matching[at]] // max(run.executed[at], 1)) for at in loops
    )
    if not stores.items:
        return StoreProbe((0, 0), (0, 0), trip_counts)
    items, elements = np.concatenate(stores.items), np.concatenate(stores.elements)
    return StoreProbe(
        _find_rectangle(elements[items == items.min()]), _find_corner(elements), trip_counts
    )


def _find_rectangle(elements: np.ndarray) -> tuple[int, int]:
    """Return the rows and columns that the elements fill; (0, 0) if they don't fill a rectangle."""
    rows, columns = np.unique(elements // STRIDE), np.unique(elements % STRIDE)
    full = len(rows) * len(columns) == len(np.unique(elements))
    return (len(rows), len(columns)) if full else (0, 0)


def _find_corner(elements: np.ndarray) -> tuple[int, int]:
    """Return the rows and columns that the elements fill in C's upper left corner, or (0, 0)."""
    rows, columns = _find_rectangle(elements)
    fills = divmod(int(elements.max()), STRIDE) == (rows - 1, columns - 1)
    return (rows, columns) if fills else (0, 0)


def find_streams(program: Program) -> list[int]:
    """Return the output streams that a program writes."""
    return sorted(number for kind, number, _ in program.needs if kind == "o")


def find_k_per_iteration(program: Program) -> int | None:
    """Return the values of k per iteration of the main loop, or None if no loop depends on k.

    That is the increase of k that adds one iteration.
    """
    first = probe_stores(program, 8).trip_counts
    estimate, distance = 0, 16
    for _ in range(4):
        trip_counts = probe_stores(program, 8 + distance).trip_counts
        steps = [
            round(distance / (after - before))
            for before, after in zip(first, trip_counts, strict=True)
            if after > before
        ]
        step = max(steps, default=0)
        if step and step == estimate:
            return step
        estimate = step
        distance = 12 * step or 8 * distance
    return estimate or None


def propose_conventions(program: Program) -> Iterator[Convention]:
    """Yield the conventions that agree with a program's declarations and its probe.

    Raises the errors of ``probe_stores``.
    """
    step = find_k_per_iteration(program) or 1
    probe = probe_stores(program, step)
    doubles = any(i.op.double for i in program.body)
    precisions = ("double", "double-double") if doubles else ("single",)
    outputs = find_streams(program)
    buffer = not any(i.op.kind == "fetch" for i in program.body)
    base = Convention(mode=program.mode, k_step=step, buffer=buffer)
    for precision in precisions:
        plain = replace(base, precision=precision)
        if outputs:
            shapes = _streamed(plain, program, len(outputs))
        elif program.mode == "pixel":
            shapes = _pixel(plain, probe)
        else:
            shapes = _grouped(plain, program, probe)
        for shape in shapes:
            for trans_a, trans_b in TRANSPOSES:
                if trans_b or not shape.is_vector:
                    yield replace(shape, trans_a=trans_a, trans_b=trans_b)


def _pixel(plain: Convention, probe: StoreProbe) -> Iterator[Convention]:
    rows, elements = probe.area
    if rows and probe.block == probe.area:
        yield replace(plain, block=(rows, elements * 16 // BYTES[plain.precision]))


def _grouped(plain: Convention, program: Program, probe: StoreProbe) -> Iterator[Convention]:
    across = 16 // BYTES[plain.precision]
    (rows, columns), (height, width) = probe.block, probe.area
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
    """Return whether the program reads cb0[4].z, which only packed kernels need."""
    sources = [s for i in program.body for s in i.sources]
    read = [s for s in sources if (s.register.kind, s.register.element) == ("cb", 4)]
    return any("z" in s.swizzle and set(s.swizzle) != set(LETTERS) for s in read)


def _streamed(plain: Convention, program: Program, count: int) -> Iterator[Convention]:
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
