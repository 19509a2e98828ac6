"""Lead the reader of an empty editor to a whole kernel: one sentence on what it doesn't do yet.

The sentences go from the goal backwards: what is stored, what it is made of, for which values of k,
in which work-item. Each follows from the state of the program; none is code.
"""

from collections.abc import Iterator

from cypresskit.diagnosis.notes import Note, note
from cypresskit.diagnosis.verification import Verification
from cypresskit.il import Program
from cypresskit.il.dataflow import defines, keys, liveness, uses
from cypresskit.il.program import LETTERS
from cypresskit.tables import ranged

PRODUCTS = ("mad", "mul", "fma", "dp4")
#: The kinds of findings that an incomplete kernel may have.
ALLOWED = {"fetch outside", "uninitialised"}
MATRICES = ("A", "B")  # of textures 0 and 1


def next_note(seen: Verification) -> Note | None:
    """Return what an incorrect kernel with one output per row doesn't do yet, or None."""
    if seen.right or seen.error or {finding.kind for finding in seen.findings} - ALLOWED:
        return None
    return next(_missing(seen.kernel.program, seen), None)


def _missing(program: Program, seen: Verification) -> Iterator[Note]:
    """Yield all that a kernel doesn't do, what to do next first."""
    somewhere = {key for i in program.body for key in defines(i)}
    unset = liveness(program)[0] - somewhere
    for i in filter(lambda i: i.op.kind == "fetch", program.body):
        for register, c in sorted(unset & keys(uses(program, i))):
            yield note("unset", i.line, place=f"r{register}.{LETTERS[c]}")
    rows = range(seen.kernel.block[0])
    stored = {i.dest.register.index for i in program.body if i.dest and i.dest.register.kind == "o"}
    if not stored:
        yield note("nothing stored")
    names = {i.op.name for i in program.body}
    open_rows = [row for row in rows if row not in stored]
    # A row that is incorrect comes before those that are yet to be written
    if open_rows and not (
        names & {*PRODUCTS} and seen.wrong and seen.wrong.row % len(rows) in stored
    ):
        yield note("rows", stored=_rows(sorted(stored)), left=_rows(open_rows))
    fetched = {i.controls.resource for i in program.body if i.op.kind == "fetch"}
    for texture, matrix in enumerate(MATRICES):
        if texture not in fetched:
            yield note("nothing fetched", matrix=matrix, texture=texture)
    if not names & {*PRODUCTS}:
        yield note("nothing multiplied")
    reads = {source.register.kind for i in program.body for source in i.sources}
    if "vWinCoord" not in {kind.rstrip("0123456789") for kind in reads}:
        yield note("no place")
    if "whileloop" not in names:
        yield note("no loop")


def _rows(rows: list[int]) -> str:
    """Return "row 0 is", "rows 1 to 3 are", or "rows 0 and 2 are"."""
    return f"rows {ranged(rows)} are" if rows[1:] else f"row {rows[0]} is"
