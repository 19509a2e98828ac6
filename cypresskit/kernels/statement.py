"""Read how a kernel is launched from the comment that states it.

A kernel says so itself, by convention in its first line::

    il_ps_2_0  ; product: TN, 8 x 8, k 2

These are the letters of BLAS (T: stored transposed) for A and B, the rows and columns of C that a
work-item computes, and the values of k that an iteration of its loop takes. More terms may follow,
in any order (``TERMS``). Mode, output streams and buffers are read from the program.
"""

import re
from dataclasses import replace
from typing import Any

from cypresskit.il.cursor import strip_comment
from cypresskit.il.errors import did_you_mean
from cypresskit.kernels.convention import BYTES, Convention
from cypresskit.tables import quantity

MAX_SIZE = 256  # most rows or columns of a block, values of k per iteration, and so on
EXAMPLE = "; product: TN, 8 x 8, k 2"
#: The terms of a statement: a pattern, an example, and what it says.
TERMS = {
    "transposes": ("[nt][nt]", "TN", "whether A and B are stored transposed, T or N"),
    "block": (r"(\d+) ?x ?(\d+)", "8 x 8", "rows and columns of C per work-item"),
    "k_step": (r"k (\d+)", "k 2", "values of k per iteration"),
    "group": (r"group (\d+) ?x ?(\d+)", "group 64 x 64", "rows and columns of C per workgroup"),
    "parts": (r"parts (\d+)", "parts 4", "work-items that share a block and add up parts of k"),
    "precision": ("double-double|double|single", "double", "the precision, if it isn't single"),
    "packed": ("packed", "packed", "a launch computes several products"),
}
_STATEMENT = re.compile(r"[^;/]*(?:;|//)\s*product\s*:(.*)", re.IGNORECASE)


class LaunchConventionError(ValueError):
    """How a kernel is launched isn't stated, or it is stated incorrectly."""


def find_statement(text: str) -> tuple[int, str]:
    """Return the line of a kernel's statement, from 1, and its terms; 0 and "" if it has none."""
    for number, line in enumerate(text.splitlines(), 1):
        if stated := _STATEMENT.match(line):
            return number, stated[1].strip()
    return 0, ""


def read_statement(text: str, name: str) -> Convention | None:
    """Return the convention that a kernel's text states; None if it states none.

    Raises
    ------
    LaunchConventionError
        For a term that isn't known, is there twice or is missing, and for terms that don't fit the
        program. The message has the line, and what to write.
    """
    line, words = find_statement(text)
    if not line:
        return None
    where = f"{name}:{line}: `; product: {words}`"
    found: dict[str, re.Match[str]] = {}
    for word in filter(None, (word.strip() for word in words.lower().split(","))):
        kind, match = _read_term(word)
        if match is None:
            known = ", ".join(f"`{example}`" for _, example, _ in TERMS.values())
            guess = did_you_mean(word, [example for _, example, _ in TERMS.values()])
            raise LaunchConventionError(
                f"{where}: `{word}` is no term of it.{guess} It takes {known}"
            )
        if kind in found:
            raise LaunchConventionError(f"{where} has two terms for {TERMS[kind][2]}")
        found[kind] = match
    for kind in ("transposes", "block", "k_step"):
        if kind not in found:
            _, example, what = TERMS[kind]
            raise LaunchConventionError(f"{where} lacks {what}, such as `{example}`: `{EXAMPLE}`")
    sizes = [int(n) for match in found.values() for n in match.groups()]
    if not all(1 <= size <= MAX_SIZE for size in sizes):
        raise LaunchConventionError(f"{where}: its numbers are from 1 to {MAX_SIZE}")
    return _fitted(text, where, {kind: _value(match) for kind, match in found.items()})


def _read_term(word: str) -> tuple[str, re.Match[str] | None]:
    for kind, (pattern, _, _) in TERMS.items():
        if match := re.fullmatch(pattern, word):
            return kind, match
    return "", None


def _value(match: re.Match[str]) -> Any:
    numbers = tuple(map(int, match.groups()))
    return numbers if len(numbers) > 1 else numbers[0] if numbers else match[0]


def _fitted(text: str, where: str, stated: dict[str, Any]) -> Convention:
    """Return the convention of stated terms, with what the program's text says itself."""
    code = "\n".join(strip_comment(line).lower() for line in text.splitlines())
    compute = "il_cs" in code
    streams = len(set(re.findall(r"\bo(\d+)\b", code)))
    rows, columns = stated["block"]
    letters = stated.pop("transposes")
    convention = Convention(
        mode="compute" if compute else "pixel",
        trans_a=letters[0] == "t",
        trans_b=letters[1] == "t",
        buffer=not (streams or re.search(r"^\s*(sample|load|dcl_resource)_", code, re.MULTILINE)),
        **stated | {"packed": "packed" in stated},
    )
    if compute != bool(convention.group):
        wants = "needs `group`, the rows and columns of C per workgroup, such as `group 64 x 64`"
        wants = wants if compute else "has no workgroups: leave out `group`"
        raise LaunchConventionError(f"{where}: a {convention.mode} kernel {wants}")
    if convention.group and any(convention.group[n] % stated["block"][n] for n in (0, 1)):
        raise LaunchConventionError(f"{where}: a workgroup has whole blocks")
    if convention.k_step % convention.parts:
        raise LaunchConventionError(f"{where}: each part of k takes as many values of an iteration")
    is_pair = convention.precision == "double-double"
    if convention.packed and (not compute or convention.buffer or is_pair):
        raise LaunchConventionError(
            f"{where}: several products take a compute kernel with A and B in textures, in single"
            " or double precision"
        )
    if not streams:
        return _with_whole_texels(convention, where)
    size = BYTES[convention.precision]
    texel, rest = divmod(rows * columns * size, streams)
    if streams % rows or rest or texel < size or texel not in (4, 8, 16):
        raise LaunchConventionError(
            f"{where}: the program writes {quantity(streams, 'output')}, which don't hold a block"
            f" of {rows} x {columns}: an output holds one to four neighbors of a row"
        )
    return _with_whole_texels(replace(convention, streams=streams, texel=texel), where)


def _with_whole_texels(convention: Convention, where: str) -> Convention:
    """Return a convention if its texels hold whole parts of the matrices' rows."""
    rows, columns = convention.tile
    held = convention.texel // BYTES[convention.precision]
    along = {"A": (convention.trans_a, rows), "B": (not convention.trans_b, columns)}
    for matrix, (is_block, wide) in along.items():
        if not is_block and convention.k_step % held:
            raise LaunchConventionError(
                f"{where}: a texel of {matrix} holds {held} values of k, so an iteration takes a"
                f" multiple of {held}: `k {held}`"
            )
        if is_block and wide % held:
            raise LaunchConventionError(
                f"{where}: a texel of {matrix} holds {held} neighbors, so a"
                f" {'workgroup' if convention.group else 'block'} has a multiple of {held}"
                f" {'rows' if matrix == 'A' else 'columns'}"
            )
    return convention


def state(convention: Convention) -> str:
    """Return the comment that states a convention."""
    rows, columns = convention.block
    terms = [convention.transposes, f"{rows} x {columns}", f"k {convention.k_step}"]
    if convention.group:
        terms.append(f"group {convention.group[0]} x {convention.group[1]}")
    if convention.parts > 1:
        terms.append(f"parts {convention.parts}")
    terms += ["packed"] * convention.packed
    terms += [convention.precision] * (convention.precision != "single")
    return f"; product: {', '.join(terms)}"
