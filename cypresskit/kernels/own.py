"""Make a kernel from a user's source, file or program.

A kernel is its source and its launch convention. The convention is stated in the source
(``statement``), or taken from the kernel ``like``. ``load_kernel`` makes a ``Kernel``. Other
functions of the package that take a kernel pass their argument to ``resolve``, which also accepts
names, files, sources and programs.
"""

from dataclasses import replace
from functools import cache, lru_cache
from math import prod
from pathlib import Path

from cypresskit.il import Program
from cypresskit.il.errors import MAX_QUOTED, did_you_mean, shorten
from cypresskit.il.parser import MAX_TEXT
from cypresskit.kernels.catalogue import KERNELS, Kernel
from cypresskit.kernels.convention import Convention
from cypresskit.kernels.statement import (
    EXAMPLE,
    LaunchConventionError,
    find_statement,
    read_statement,
)
from cypresskit.tables import quantity

KINDS = "the name of a kernel in ck.kernels, a Kernel, a file FILE.il, IL text or a Program"
Source = str | Path | Program | Kernel


def load_kernel(
    source: Source,
    *,
    like: Source | None = None,
    name: str | None = None,
) -> Kernel:
    """Return your own kernel, for use wherever a catalog kernel can be used.

    Parameters
    ----------
    source
        IL source, a path that ends in ``.il``, an assembled ``Program``, or a ``Kernel`` or its
        name, to give it another name.
    like
        The kernel whose launch convention it follows: precision, transposes, and how results are
        stored. By default the source states its convention, as ``; product: TN, 8 x 8, k 2``.
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
        (a ``ValueError``) If no convention is given, and the source states none, or an incorrect
        one; and for a ``like`` of the other mode. The message says what to write.
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
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is what to call the kernel, a string, not {shorten(name)}")
    known, is_launchable = _find(source, "source")
    convention = known if is_launchable else None
    if like is not None:
        convention = resolve(like, "like")
    elif is_launchable and name is None:
        return known
    bare = Kernel(name or known.name, known.text, given=known.given)
    return _launched(bare, convention)


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
        others = [file.name for file in path.parent.glob("*.il")] if path.parent.is_dir() else []
        guess = did_you_mean(path.name, others)
        raise FileNotFoundError(f"can't read {path}: there is no such file.{guess}")
    if path.stat().st_size > MAX_TEXT:
        raise ValueError(f"can't read {path}: a program has at most {MAX_TEXT:,} bytes")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"can't read {path}: it isn't text, saved as UTF-8") from None


def _launched(bare: Kernel, like: Kernel | None = None) -> Kernel:
    """Return the kernel with its convention: that of ``like``, or else the stated one."""
    program = bare.program
    if like is None:
        convention = _stated(bare)
    elif like.mode != program.mode:
        raise LaunchConventionError(
            f"{program.name} is a {program.mode} kernel, as its first line says, and is launched"
            f" like {like.name}, a {like.mode} kernel: change that line, or state a launch there,"
            f" such as `{EXAMPLE}`"
        )
    else:
        convention = like.convention
    return replace(bare, convention=convention)


def _stated(bare: Kernel) -> Convention:
    """Return the convention that a kernel's text states.

    Raises
    ------
    LaunchConventionError
        If there is no statement, or if the program contradicts it.
    """
    program = bare.program
    convention = read_statement(bare.text, program.name)
    if convention is None:
        group = ", group 64 x 64" if program.mode == "compute" else ""
        raise LaunchConventionError(
            f"{program.name} doesn't say how it is launched: write it into its first line, such as"
            f" `il_{program.mode[0]}s_2_0 {EXAMPLE}{group}` for A transposed and B not, 8 x 8"
            " elements of C per work-item, and 2 values of k per iteration; or give"
            " ck.load_kernel or ck.workbench a catalog kernel that is launched in the same way:"
            ' like="sgemm_tn"'
        )
    items = prod(convention.tile) // prod(convention.block) * convention.parts
    if convention.group and items % program.group:
        line, _ = find_statement(bare.text)
        raise LaunchConventionError(
            f"{program.name}:{line}: the stated workgroup has {quantity(items, 'work-item')}, the"
            f" program's {program.group}: `dcl_num_thread_per_group {items}`, or state more blocks"
        )
    double = next((i for i in program.body if i.op.double), None)
    if (double is None) != (convention.precision == "single"):
        line, _ = find_statement(bare.text)
        does = "computes with doubles: add `double`" if double else "has no instruction for doubles"
        place = f" (line {double.line})" if double else ""
        raise LaunchConventionError(
            f"{program.name}:{line}: the product is stated in {convention.precision} precision, but"
            f" the kernel {does}{place}"
        )
    return convention


@lru_cache(maxsize=256)
def find_given_text(text: str) -> str:
    """Return the name of the catalog's kernel that this is the text of, or "".

    A part of its text counts if it has one of its comments.
    """
    plain = _plain(text)
    return next(
        (
            name
            for name, given in _given_texts().items()
            if plain == given or (";" in plain and plain in given)
        ),
        "",
    )


def _plain(text: str) -> str:
    """Return a text without empty lines and indents, between two ends of lines."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return "\n".join(["", *lines, ""])


@cache
def _given_texts() -> dict[str, str]:
    """Return the texts of the catalog's kernels by name."""
    return {name: _plain(kernel.text) for name, kernel in KERNELS.items()}
