"""Lead the reader of an empty editor to a whole kernel: one sentence on what it doesn't do yet.

The sentences go from the goal backwards: what is stored, what it is made of, for which values of k,
in which work-item. Each follows from the state of the program; none is code.
"""

from collections.abc import Iterator

from cypresskit.diagnosis.verification import Verification
from cypresskit.il import Program
from cypresskit.il.dataflow import defines, keys, liveness, uses
from cypresskit.il.program import LETTERS
from cypresskit.tables import ranged

PRODUCTS = ("mad", "mul", "fma", "dp4")
#: The kinds of findings that an incomplete kernel may have.
ALLOWED = {"fetch outside", "uninitialised"}
MATRICES = ("A", "B")  # of textures 0 and 1


def next_sentence(seen: Verification) -> str:
    """Return what an incorrect kernel with one output per row doesn't do yet, or ""."""
    if seen.right or seen.error or {finding.kind for finding in seen.findings} - ALLOWED:
        return ""
    return next(_missing(seen.kernel.program, seen), "")


def _missing(program: Program, seen: Verification) -> Iterator[str]:
    """Yield all that a kernel doesn't do, what to do next first."""
    somewhere = {key for i in program.body for key in defines(i)}
    unset = liveness(program)[0] - somewhere
    for i in filter(lambda i: i.op.kind == "fetch", program.body):
        for register, c in sorted(unset & keys(uses(program, i))):
            yield f"Line {i.line} fetches at r{register}.{LETTERS[c]}, which was never set."
    rows = range(seen.kernel.block[0])
    stored = {i.dest.register.index for i in program.body if i.dest and i.dest.register.kind == "o"}
    if not stored:
        yield "No work-item stores C yet."
    names = {i.op.name for i in program.body}
    open_rows = [row for row in rows if row not in stored]
    # A row that is incorrect comes before those that are yet to be written
    if open_rows and not (
        names & {*PRODUCTS} and seen.wrong and seen.wrong.row % len(rows) in stored
    ):
        yield f"{_rows(sorted(stored))} stored, {_rows(open_rows, False)} not."
    fetched = {i.controls.resource for i in program.body if i.op.kind == "fetch"}
    for texture, matrix in enumerate(MATRICES):
        if texture not in fetched:
            yield f"No number of {matrix} is fetched yet: {matrix} is texture {texture}."
    if not names & {*PRODUCTS}:
        yield "Numbers of A and B are fetched, but not multiplied."
    reads = {source.register.kind for i in program.body for source in i.sources}
    if "vWinCoord" not in {kind.rstrip("0123456789") for kind in reads}:
        yield "All work-items fetch the same texels: none reads its place, vWinCoord0."
    if "whileloop" not in names:
        yield "Each sum has one product: no loop goes over the values of k."


def _rows(rows: list[int], begins: bool = True) -> str:
    """Return "Row 0 is", "rows 1 to 3 are", or "rows 0 and 2 are"."""
    word = ("Row" if begins else "row") + "s" * (len(rows) > 1)
    if len(rows) == 1:
        return f"{word} {rows[0]} is"
    return f"{word} {ranged(rows)} are"
