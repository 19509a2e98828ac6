"""Answers that need only the language and the compiler: faults, live registers, bundles.

All results are plain data for JSON.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from cypresskit.compiler import Code, CompileError, Control, compile
from cypresskit.compiler.listing import fetch_text, operation_text, store_text
from cypresskit.il import OPCODES, ILError, Program, assemble, reference
from cypresskit.il.cursor import without_remark
from cypresskit.il.dataflow import Numbering, liveness
from cypresskit.il.program import LETTERS

Answer = dict[str, Any]
#: What identifies a bundle, fetch or store in two compilations: its kind, and for each of its parts
#: the slot, the operation and the text of its line.
Signature = tuple[str, tuple[tuple[int, str, str], ...]]

_WORD = re.compile(r"[^\s,;]+")


def words() -> Answer:
    """Return the meanings of the language's words, for tooltips.

    ``opcodes`` lists name, operands, cost and meaning; ``others`` lists name, pattern (a regular
    expression for all spellings) and meaning.
    """
    tables = (reference.REGISTERS, reference.MODIFIERS, reference.SYNTAX)
    others = [[name, row["pattern"], row["text"]] for part in tables for name, row in part.items()]
    return {"opcodes": [reference.entry(op)[:4] for op in OPCODES.values()], "others": others}


def text_answer(text: str, name: str = "kernel.il") -> tuple[Answer, Program | None]:
    """Return the part "text", and the program if the text has no fault.

    The answer holds ``faults``, each with line and column (from 1), length and message; and without
    faults ``live``: [line, count, names] of the registers that are live before or after each line.
    """
    try:
        program = assemble(text, name)
    except ILError as error:
        faults = [
            {
                "line": fault.line,
                "column": fault.column,
                "length": word_length(fault.text, fault.column),
                "message": fault.message,
            }
            for fault in error.faults
        ]
        return {"faults": faults, "live": []}, None
    return {"faults": [], "live": _live(program)}, program


def word_length(text: str, column: int) -> int:
    """Return the length of the word at a column; at least 1."""
    word = _WORD.match(text, column - 1)
    return len(word[0]) if word else 1


def _live(program: Program) -> list[list]:
    """Return [line, count, names] of the live registers, by line. An instruction of a macro counts
    for the line of the call.
    """
    numbering = Numbering(program)
    before = liveness(program, numbering)
    most: dict[int, int] = {}
    for at, instruction in enumerate(program.body):
        line = instruction.calls[0] if instruction.calls else instruction.line
        both = (before[at], before[at + 1])
        largest = max(both, key=lambda bits: len(_registers(numbering, bits)))
        if line not in most or len(_registers(numbering, largest)) > len(
            _registers(numbering, most[line])
        ):
            most[line] = largest
    rows = []
    for line, bits in sorted(most.items()):
        held = _registers(numbering, bits)
        names = [
            f"r{number}" if len(letters) == 4 else f"r{number}.{letters}"
            for number, letters in held.items()
        ]
        rows.append([line, len(held), program.as_written(" ".join(names))])
    return rows


def _registers(numbering: Numbering, bits: int) -> dict[int, str]:
    """Return the live registers of a bit set, and the letters of their live components."""
    held = {}
    for number, first in numbering.first.items():
        if four := bits >> first & 15:
            held[number] = "".join(LETTERS[c] for c in range(4) if four >> c & 1)
    return held


def code_answer(
    program: Program,
    before: Sequence[Signature] = (),
    *,
    k_per_iteration: int | None = None,
    flops: int | None = None,
) -> tuple[Answer, Code | None, list[Signature]]:
    """Compile a program.

    Parameters
    ----------
    program
        The assembled text.
    before
        The signatures of the code before: rows that it lacks are marked as new. Without signatures,
        no row is marked.
    k_per_iteration, flops
        Values of k, and operations, of an iteration of the main loop, if known.

    Returns
    -------
    tuple
        The part "code", the code or None, and its signatures. The part holds ``refusal``, the line
        and message of a program that the chip can't run; or ``rows``, ``dropped`` (lines that
        compile to nothing), and ``card``, the statistics.

        A row is a bundle, a fetch, a store or a jump: its ``kind`` ("alu", "fetch", "store",
        "flow"), ``clause``, whether it is in the main ``loop``, whether it is ``new``, and its
        ``text`` (for a jump) or ``parts``: [slot, operation, line, operation in full]. Slots 0 to 4
        are x y z w t.
    """
    try:
        code = compile(program)
    except CompileError as error:
        return {"refusal": _refusal(program, error)}, None, []
    rows = list(_rows(code))
    signatures = [_signature(row, program) for row in rows]
    _mark_new(rows, signatures, before)
    card = code.stats(k_per_iteration, flops)
    shown = {name: getattr(card, name) for name in CARD}
    answer = {"rows": rows, "card": shown, "dropped": _absent_lines(program, rows)}
    return answer, code, signatures


def _absent_lines(program: Program, rows: Sequence[Answer]) -> list[int]:
    """Return the lines that set a register, but compile to nothing."""
    left = {part[2] for row in rows for part in row["parts"]}
    setting = {i.line for i in program.body if i.dest and i.dest.register.kind == "r"}
    called = {line for i in program.body for line in i.calls}
    return sorted(setting - left - called)


def accesses(program: Program) -> tuple:
    """Return what a program fetches from and stores to, in the order of its text."""
    fetches = [i.controls.resource for i in program.body if i.op.kind == "fetch"]
    stores = [
        (i.dest.register.index, i.dest.written) if i.dest.register.kind == "o" else -1
        for i in program.body
        if i.dest and i.dest.register.kind in ("g", "o")
    ]
    reads = sum(s.register.kind == "g" for i in program.body for s in i.sources)
    return program.mode, fetches, stores, reads


#: The statistics that the workbench shows.
CARD = (
    "gprs",
    "wavefronts",
    "fetches",
    "lds_operations",
    "multiply_adds",
    "bundles_per_iteration",
    "slots5_pct",
    "nominal_gflops",
)


def _refusal(program: Program, error: Exception) -> Answer:
    """Return the compiler's message, and the line in it; 0 for none."""
    message = str(error)
    named = re.search(rf"{re.escape(program.name)}:(\d+):", message)
    return {"line": int(named[1]) if named else 0, "message": message}


def _rows(code: Code) -> Iterator[Answer]:
    """Yield the rows of compiled code, in its order."""
    inside = {id(control) for control in code.main_loop}
    for clause, control in enumerate(code.controls):
        common = {"clause": clause, "loop": id(control) in inside, "new": False}
        yield from ({**common, **row} for row in _control_rows(control))


def _control_rows(control: Control) -> Iterator[Answer]:
    for bundle in control.bundles:
        parts = [[o.slot, o.name, o.line, operation_text(o)] for o in bundle.operations]
        yield {"kind": "alu", "parts": parts}
    for fetch in control.fetches:
        yield {"kind": "fetch", "parts": [[0, fetch.name, fetch.line, fetch_text(fetch)]]}
    if control.store is not None:
        store = control.store
        yield {"kind": "store", "parts": [[0, store.name, store.line, store_text(store)]]}
    elif not control.bundles and not control.fetches:
        yield {"kind": "flow", "text": control.name, "parts": []}


def _signature(row: Answer, program: Program) -> Signature:
    """Return what identifies a row: not its registers, and not its line number."""
    parts = tuple((slot, name, bare(program, line)) for slot, name, line, _ in row["parts"])
    return str(row.get("text", row["kind"])), parts


def bare(program: Program, line: int) -> str:
    """Return a line of the text without its comment."""
    return without_remark(program.text_of(line)).strip()


def _mark_new(
    rows: Sequence[Answer], signatures: Sequence[Signature], before: Sequence[Signature]
) -> None:
    """Mark the rows that the code before lacks."""
    if not before:
        return
    matcher = SequenceMatcher(None, before, signatures, autojunk=False)
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind != "equal":
            for row in rows[start:end]:
                row["new"] = True


def static_answers(text: str, name: str = "kernel.il") -> Iterator[tuple[str, Answer]]:
    """Yield ("text", answer), and ("code", answer) if the text has no fault."""
    answer, program = text_answer(text, name)
    yield "text", answer
    if program is not None:
        yield "code", code_answer(program)[0]
