"""A kernel of one's own is a kernel: ``kernel`` makes one of a text, a file or a program, and
``resolve`` takes whatever stands for a kernel wherever the package is given one.

A kernel is its text and how it is launched. The catalogue has the second written down; for a text
of one's own it is taken from a kernel that it is launched like, or found out (``inference``).
"""

import sys
import warnings
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from cypresskit.il import Program
from cypresskit.il.errors import nearest
from cypresskit.il.parser import MAX_TEXT
from cypresskit.kernels.catalogue import KERNELS, QUOTED, Kernel
from cypresskit.kernels.inference import (
    LIKENESS,
    ConventionError,
    Trial,
    conventions,
    infer,
    nearest_kernel,
    share_right,
    step_in_words,
    transposes,
)
from cypresskit.kernels.text_kernel import TextKernel, as_launched_like, assembled
from cypresskit.machine import KernelError

LARGEST = 256  # rows or columns of a block, and steps of k in a turn
KINDS = "the name of a kernel in ck.kernels, a Kernel, a file FILE.il, IL text or a Program"
Source = str | Path | Program | Kernel


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


def _bare(source: object, name: str | None) -> TextKernel:
    """A kernel with a text and a name, and no convention yet."""
    given = None
    before = ""
    if isinstance(source, TextKernel):
        text, before, given, called = source.source, source.before, source.given, source.name
    elif isinstance(source, Kernel):
        text, called = source.text, source.name
    elif isinstance(source, Program):
        text = str(source)
        given = source
        called = source.name.removesuffix(".il")
    elif isinstance(source, str) and _is_text(source):
        text = source
        called = "mine"
    elif isinstance(source, Path) or (isinstance(source, str) and source.endswith(".il")):
        path = Path(source)
        text = read_text(path)
        called = path.stem
    elif isinstance(source, str):
        guess = _guess(source)
        raise ValueError(f"source is {KINDS}; found {shortened(source)}.{guess}")
    else:
        raise TypeError(f"source is {KINDS}, not {shortened(source)}")
    called = name or called
    return TextKernel(
        called, "single", "pixel", (1, 1), 1, "", source=text, before=before, given=given
    )


@lru_cache(maxsize=128)
def _with_convention(
    bare: TextKernel,
    like: Kernel | None,
    block: tuple[int, int] | None,
    k_step: int | None,
) -> tuple[TextKernel, str]:
    """The kernel, launched like another one or as is found out, with the sizes that are given, and
    what to warn of each time, or "".
    """
    program = bare.program
    if like is None:
        inferred, warning = _inferred(bare)
        return _resized(inferred, block, k_step), warning
    if like.mode != program.mode:
        other = "pixel" if like.mode == "compute" else "compute"
        raise ValueError(
            f"like is {like.name}, a {like.mode} kernel, but {program.name} is a {other} kernel, as"
            " its first line says: they can't be launched alike"
        )
    alike = as_launched_like(bare, like)
    if block is None or k_step is None:
        alike = _measured(alike, block, k_step)
    return _resized(alike, block, k_step), ""


def forget_kernels() -> None:
    """Forget the kernels that are kept of texts, which a process that sees many has no use for."""
    _with_convention.cache_clear()
    assembled.cache_clear()


def _resized(kernel: TextKernel, block: tuple[int, int] | None, k_step: int | None) -> TextKernel:
    """The kernel with the sizes that are given; a workgroup's part of C grows with the block."""
    rows, columns = block or kernel.block
    group = kernel.group and (
        kernel.group[0] // kernel.block[0] * rows,
        kernel.group[1] // kernel.block[1] * columns,
    )
    return replace(kernel, block=(rows, columns), group=group, k_step=k_step or kernel.k_step)


def _measured(kernel: TextKernel, block: tuple[int, int] | None, k_step: int | None) -> TextKernel:
    """The kernel with the block and the step that the program itself has, where with these, and not
    without them, it multiplies rightly; or where its turns take more steps: with fewer, the last
    turn would read beyond the matrices, and get zeros.
    """
    try:
        candidates = [c for c in conventions(kernel.program) if _differs_in_size(c, kernel)]
    except (KernelError, ValueError):
        return kernel
    sizes = dict.fromkeys((c.block, c.group, c.k_step) for c in candidates)
    measured = [replace(kernel, block=b, group=g, k_step=s) for b, g, s in sizes]
    for candidate in measured:
        longer = candidate.k_step > kernel.k_step and candidate.block == kernel.block
        if longer and share_right(_resized(candidate, block, k_step)) == 1:
            return candidate
    if measured and kernel not in measured and share_right(_resized(kernel, block, k_step)) < 1:
        for candidate in measured:
            if share_right(_resized(candidate, block, k_step)) == 1:
                return candidate
    return kernel


def _differs_in_size(convention: Kernel, kernel: Kernel) -> bool:
    """Whether a convention is a kernel's, apart from block, group and step."""
    names = ("precision", "trans_a", "trans_b", "streams", "buffer", "texel", "parts", "packed")
    return all(getattr(convention, name) == getattr(kernel, name) for name in names)


def _inferred(bare: TextKernel) -> tuple[TextKernel, str]:
    """The kernel with the convention that was found out and "", or with that of the catalogue's
    nearest and a warning.
    """
    program = bare.program
    failure = ""
    trials: list[Trial] = []
    try:
        inferred, trials = infer(bare)
        if inferred is not None:
            return inferred, ""
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
        return as_launched_like(bare, near), warning
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
    count = best.kernel.k_step
    steps = f"{count} {'step' if count == 1 else 'steps'} of k a turn"
    return (
        f"as {', '.join(ways)} with {blocks} and {steps} at best {100 * best.right:.0f} %"
        f" of C is right ({transposes(best.kernel)})"
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
