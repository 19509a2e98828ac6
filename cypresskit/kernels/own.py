"""A kernel of one's own is a kernel: ``kernel`` makes one of a text, a file or a program, and
``resolve`` takes whatever stands for a kernel wherever the package is given one.

A kernel is its text and its convention. The catalogue has the second written down; for a text of
one's own it is taken from a kernel that it is launched like, or found by running it, and proved by
a product. What the text says outright is read from it: mode, precision, output streams, workgroup.
A survey runs one work-item, or one workgroup, over zeros: where it stores is its block of C, and
how many more turns its loop does for a longer k gives its step. What is left, above all the
transposes, is tried: the convention whose launch multiplies two random matrices rightly is the
program's.

Left out: programs that store no rectangle of C, and conventions that no catalogue kernel follows.
"""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path

import numpy as np

from cypresskit.il import Program
from cypresskit.il.dataflow import uses
from cypresskit.il.errors import nearest
from cypresskit.il.parser import MAX_TEXT
from cypresskit.kernels.catalogue import KERNELS, QUOTED, Kernel, assembled
from cypresskit.kernels.convention import BYTES, Convention, constants, scalars
from cypresskit.machine import KernelError
from cypresskit.machine.engines import launch
from cypresskit.machine.observer import MemoryEvent, Observer
from cypresskit.tables import quantity

LARGEST = 256  # rows or columns of a block, and steps of k in a turn
KINDS = "the name of a kernel in ck.kernels, a Kernel, a file FILE.il, IL text or a Program"
STRIDE = 1031  # of C in the survey, in elements of g[]: a prime, so that rows and columns part
ROWS = 320  # of C in the survey
LONGEST = 20_000  # instructions of a work-item in a trial
LIKENESS = 0.8  # share of instructions in common from which a wrong kernel is taken for another's
TRANSPOSES = ((True, False), (False, False), (False, True), (True, True))
Source = str | Path | Program | Kernel


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
        return self.kernel.convention.transposes


class ConventionError(ValueError):
    """No launch convention was found for a kernel: pass ``like=``."""


def kernel(
    source: Source,
    *,
    like: Source | None = None,
    block: tuple[int, int] | None = None,
    k_step: int | None = None,
    name: str | None = None,
) -> Kernel:
    """A kernel of your own, which may be used wherever one of the catalogue may.

    Parameters
    ----------
    source
        IL text, a path of a file that ends in ``.il``, an assembled ``Program``, or a ``Kernel`` or
        its name, to launch it in another way.
    like
        The kernel whose launch convention it follows: its precision, what is transposed, how
        results leave. Without it the convention is found out, by running the program over small
        matrices, and proved by a product.
    block
        Rows and columns of C that a work-item computes; found out if not given.
    k_step
        What k must be a multiple of: the steps of k in a turn of the loop; found out if not given.
    name
        What to call it; by default the file's, or the program's.

    Returns
    -------
    A ``Kernel``.

    Raises
    ------
    ILError
        For a text that doesn't assemble.
    ConventionError
        A ``ValueError``, where no convention fits and none is given: the message says what was
        tried. A program that is nearly a kernel of the catalogue but computes a wrong product is
        taken to be launched like that one, with a warning.
    ValueError
        For a ``like`` of the other mode, and for sizes that no kernel has.
    OSError
        For a file that can't be read.
    TypeError
        For other types, and a name that is no string.

    Examples
    --------
    >>> text = ck.kernels["sgemm_tn"].text.replace("sgemm_tn", "mine")
    >>> mine = ck.kernel(text, name="mine")
    >>> mine.block, mine.k_step, mine.trans_a
    ((8, 8), 2, True)
    >>> ck.simulate(mine, 512).bound
    'too few wavefronts'
    """
    check_sizes(block, k_step)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is what to call the kernel, a string, not {shortened(name)}")
    if isinstance(source, str) and not _is_text(source) and source in KERNELS:
        source = KERNELS[source]
    convention = None if like is None else resolve(like, "like")
    if isinstance(source, Kernel) and convention is None:
        convention = source
        if (block, k_step, name) == (None, None, None):
            return source
    bare = _bare(source, name)
    sizes = block and (int(block[0]), int(block[1]))
    with_convention, warning = _with_convention(bare, convention, sizes, k_step)
    if warning:
        warnings.warn(warning, stacklevel=_caller_level())
    return with_convention


def likeliest_launch(source: Source, name: str | None = None) -> tuple[Kernel | None, float]:
    """The kernel with the convention under which most of a small product is right, and that share;
    None where nothing of it is, whatever is tried.

    Raises ``ILError`` for a text that doesn't assemble.
    """
    bare = _bare(source, name)
    try:
        inferred, trials = infer(bare)
    except (KernelError, ValueError):
        return None, 0.0
    if inferred is not None:
        return inferred, 1.0
    best = max(trials, key=lambda trial: trial.right, default=None)
    return (None, 0.0) if best is None or best.right == 0 else (best.kernel, best.right)


def resolve(given: object, argument: str = "kernel") -> Kernel:
    """The kernel that is meant: by name, by file, by text, as a program, or the ``Kernel`` itself.

    ``argument`` is what errors call it. Raises ``KeyError`` for a name that the catalogue doesn't
    have, ``TypeError`` for other types, and what ``kernel`` raises.
    """
    if isinstance(given, Kernel):
        return given
    if isinstance(given, (Program, Path)):
        return kernel(given)
    if not isinstance(given, str):
        raise TypeError(f"{argument} is {KINDS}, not {shortened(given)}")
    if _is_text(given) or given.endswith(".il"):
        return kernel(given)
    if given not in KERNELS:
        guess = _guess(given)
        raise KeyError(
            f"{argument} is {KINDS}: there is no kernel {shortened(given)}.{guess}"
            f" The catalogue has {', '.join(KERNELS)}."
        )
    return KERNELS[given]


def _is_text(given: str) -> bool:
    """Whether a string is IL, not the name of a kernel or of a file."""
    return "\n" in given or given.lstrip().startswith(("il_ps", "il_cs", ";"))


def _guess(given: str) -> str:
    """What an unknown name may stand for: a file in this folder, or a kernel."""
    file = f"{given}.il"
    if len(file) <= QUOTED and "\0" not in file and Path(file).is_file():
        return f" Did you mean the file `{file}`?"
    return nearest(given, KERNELS)


def shortened(given: object) -> str:
    text = repr(given)
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}..."


def check_sizes(block: object, k_step: object) -> None:
    """Raise ``ValueError`` for a block or a step of k that no kernel has; None is none given."""
    if block is not None:
        numbers = block if isinstance(block, (tuple, list)) else ()
        if len(numbers) != 2 or not all(map(_is_size, numbers)):
            raise ValueError(
                f"block is (rows, columns) of C for a work-item, such as (8, 8), each from 1 to"
                f" {LARGEST}; found {shortened(block)}"
            )
    if k_step is not None and not _is_size(k_step):
        raise ValueError(
            f"k_step is a whole number from 1 to {LARGEST}, the steps of k in a turn of the loop;"
            f" found {shortened(k_step)}"
        )


def _is_size(number: object) -> bool:
    return type(number) is int and 1 <= number <= LARGEST


def read_text(path: Path) -> str:
    """The text of an IL file. Raises ``OSError`` if there is none or it can't be read, and
    ``ValueError`` for a file that is too long or isn't text.
    """
    if not path.is_file():  # a pipe or a device might make us wait, or never end
        if path.exists():
            raise OSError(f"can't read {path}: it is a folder, a pipe or a device")
        beside = [file.name for file in path.parent.glob("*.il")] if path.parent.is_dir() else []
        guess = nearest(path.name, beside)
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


def _bare(source: object, name: str | None) -> Kernel:
    """A kernel with a text and a name, and no convention of its own yet."""
    if isinstance(source, Kernel):
        return Kernel(name or source.name, source.text, before=source.before, given=source.given)
    if isinstance(source, Program):
        return Kernel(name or source.name.removesuffix(".il"), str(source), given=source)
    if isinstance(source, str) and _is_text(source):
        return Kernel(name or "mine", source)
    if isinstance(source, Path) or (isinstance(source, str) and source.endswith(".il")):
        path = Path(source)
        return Kernel(name or path.stem, read_text(path))
    if isinstance(source, str):
        guess = _guess(source)
        raise ValueError(f"source is {KINDS}; found {shortened(source)}.{guess}")
    raise TypeError(f"source is {KINDS}, not {shortened(source)}")


@lru_cache(maxsize=128)
def _with_convention(
    bare: Kernel,
    like: Kernel | None,
    block: tuple[int, int] | None,
    k_step: int | None,
) -> tuple[Kernel, str]:
    """The kernel, launched like another one or as is found out, with the sizes that are given, and
    what to warn of each time, or "".
    """
    program = bare.program
    if like is None:
        convention, warning = _inferred(bare)
    elif like.mode != program.mode:
        other = "pixel" if like.mode == "compute" else "compute"
        raise ValueError(
            f"like is {like.name}, a {like.mode} kernel, but {program.name} is a {other} kernel, as"
            " its first line says: they can't be launched alike"
        )
    else:
        convention, warning = like.convention, ""
        if block is None or k_step is None:
            convention = _measured(bare, convention, block, k_step)
    return replace(bare, convention=_resized(convention, block, k_step)), warning


def forget_kernels() -> None:
    """Forget the kernels that are kept of texts, which a process that sees many has no use for."""
    _with_convention.cache_clear()
    assembled.cache_clear()


def _resized(
    convention: Convention, block: tuple[int, int] | None, k_step: int | None
) -> Convention:
    """The convention with the sizes that are given; a workgroup grows with its block."""
    rows, columns = block or convention.block
    group = convention.group and (
        convention.group[0] // convention.block[0] * rows,
        convention.group[1] // convention.block[1] * columns,
    )
    return replace(
        convention, block=(rows, columns), group=group, k_step=k_step or convention.k_step
    )


def _measured(
    bare: Kernel, convention: Convention, block: tuple[int, int] | None, k_step: int | None
) -> Convention:
    """The convention with the block and the step that the program itself has, where with these, and
    not without them, it multiplies rightly; or where its turns take more steps: with fewer, the
    last turn would read beyond the matrices, and get zeros.
    """

    def is_right(candidate: Convention) -> bool:
        resized = _resized(candidate, block, k_step)
        return share_right(replace(bare, convention=resized)) == 1

    try:
        measured = [
            found
            for found in conventions(bare.program)
            if found
            == replace(convention, block=found.block, group=found.group, k_step=found.k_step)
        ]
    except (KernelError, ValueError):
        return convention
    for candidate in measured:
        longer = candidate.k_step > convention.k_step and candidate.block == convention.block
        if longer and is_right(candidate):
            return candidate
    if measured and convention not in measured and not is_right(convention):
        for candidate in measured:
            if is_right(candidate):
                return candidate
    return convention


def _inferred(bare: Kernel) -> tuple[Convention, str]:
    """The convention that was found out and "", or that of the catalogue's nearest kernel and a
    warning.
    """
    program = bare.program
    failure = ""
    trials: list[Trial] = []
    try:
        inferred, trials = infer(bare)
        if inferred is not None:
            return inferred.convention, ""
    except (KernelError, ValueError) as error:
        text = error.message if isinstance(error, KernelError) else str(error)
        failure = text.splitlines()[-1].strip().rstrip(".")
    near, share = nearest_kernel(program)
    what = failure or _tried(trials)
    ended = what if what.endswith(("?", "!")) else f"{what}."
    if near is not None and share >= LIKENESS:
        warning = (
            f"{program.name} doesn't multiply: {ended} It is taken to be launched like"
            f" {near.name}, with which it has {share:.0%} of its instructions in common; say"
            f' like="{near.name}", or another, to choose.'
        )
        return near.convention, warning
    hint = f', such as "{near.name}", the nearest' if near is not None else ""
    guess = step_in_words(program) if trials else ""
    raise ConventionError(
        f"how to launch {program.name} can't be found out: {ended}{guess}"
        f" Say which kernel of the catalogue it is launched like{hint}: ck.kernel(..., like=),"
        " with block=(rows, columns) of C for a work-item and k_step= if they differ."
    )


def _caller_level() -> int:
    """The ``stacklevel`` of a warning at the call of this package from outside."""
    frame = sys._getframe(1)
    level = 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("cypresskit."):
        frame = frame.f_back
        level += 1
    return level


def _tried(trials: list[Trial]) -> str:
    """What was tried, as the middle of a sentence."""
    if not trials:
        return "no work-item stores a rectangle of C to g[] or to output streams"
    best = max(trials, key=lambda trial: trial.right)
    shapes = dict.fromkeys(f"{t.kernel.block[0]} x {t.kernel.block[1]}" for t in trials)
    ways = dict.fromkeys(map(str, trials))
    blocks = f"a block of {' or '.join(shapes)}"
    steps = f"{quantity(best.kernel.k_step, 'step')} of k a turn"
    return (
        f"as {', '.join(ways)} with {blocks} and {steps} at best {100 * best.right:.0f} %"
        f" of C is right ({best})"
    )


def resolve_program(given: object, argument: str = "kernel") -> Program:
    """The program that is meant, where no launch convention is needed: what stands for a kernel is
    the same as for ``resolve``, and errors are.
    """
    if isinstance(given, Program):
        return given
    if isinstance(given, (str, Path)) and (_is_source(given)):
        return _bare(given, None).program
    return resolve(given, argument).program


def _is_source(given: str | Path) -> bool:
    """Whether it is a text or the path of a file, not a name."""
    return isinstance(given, Path) or _is_text(given) or given.endswith(".il")


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
        f" The loop runs one more turn for every {more} of k, so a turn was taken to do {step}."
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


def conventions(program: Program) -> Iterator[Convention]:
    """The conventions that the program may follow, by what it says and what a survey shows.

    Raises ``KernelError`` and ``ValueError`` as ``survey``.
    """
    step = k_step(program) or 1
    surveyed = survey(program, step)
    doubles = any(i.op.double for i in program.body)
    precisions = ("double", "double-double") if doubles else ("single",)
    outputs = streams(program)
    buffer = not any(i.op.kind == "fetch" for i in program.body)
    base = Convention(mode=program.mode, k_step=step, buffer=buffer)
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


def _pixel(plain: Convention, surveyed: Survey) -> Iterator[Convention]:
    rows, elements = surveyed.area
    if rows and surveyed.block == surveyed.area:
        yield replace(plain, block=(rows, elements * 16 // BYTES[plain.precision]))


def _grouped(plain: Convention, program: Program, surveyed: Survey) -> Iterator[Convention]:
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


def share_right(kernel: Kernel) -> float:
    """The share of C's elements that are right in a small product of random whole numbers; 0 where
    the launch fails.
    """
    how = kernel.convention
    height, width = how.multiple
    if how.vector:
        m = 2 * height
        n = 1
    elif how.mode == "pixel":
        m, n = 2 * height, 3 * width
    else:
        m, n = 2 * height, 2 * width
    k = 3 * how.k_step
    count = 2 if how.packed else 1
    words = (2,) if how.precision == "double-double" else ()
    rng = np.random.default_rng(41)
    matrices = []
    for shape in how.stored(*how.padded(m, n, k)):
        matrix = np.zeros((count, *shape, *words), kernel.dtype)
        matrix[(..., 0) if words else ...] = rng.integers(-9, 10, (count, *shape))
        matrices.append(matrix if how.packed else matrix[0])
    try:
        arguments = kernel.arguments(matrices[0], matrices[1], None, 1.0, 0.0)
        launch(
            kernel.program, **arguments, engine="explain", max_instructions=LONGEST, in_place=True
        )
    except (KernelError, ValueError, TypeError):
        return 0.0
    m, n, k = how.padded(m, n, k)
    result = kernel.result(arguments, m, n)
    plain = [matrix[..., 0] if words else matrix for matrix in matrices]
    left, right = how.operands(plain[0], plain[1])
    wanted = left.astype(np.float64) @ right.astype(np.float64)
    got = (result[..., 0] if words else result).astype(np.float64)
    return float(np.isclose(got, wanted, rtol=1e-5, atol=1e-4).mean())


def infer(kernel: Kernel) -> tuple[Kernel | None, list[Trial]]:
    """The kernel with the convention under which it multiplies rightly, or None; and what was
    tried.

    Raises ``KernelError`` and ``ValueError`` as ``survey``.
    """
    trials: list[Trial] = []
    for convention in conventions(kernel.program):
        tried = replace(kernel, convention=convention)
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
        if kernel.convention.streams != len(streams(program)):
            continue
        matcher = SequenceMatcher(None, kernel.program.body, program.body, autojunk=False)
        if matcher.real_quick_ratio() <= most or matcher.quick_ratio() <= most:
            continue
        if (share := matcher.ratio()) > most:
            best, most = kernel, share
    return best, most
