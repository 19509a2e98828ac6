"""What a kernel's text became: the half of the workbench's answers that is pure.

Text goes in, plain data (for JSON) comes out: faults, live registers, bundles, the card. Nothing
here runs a kernel or knows a clock, and nothing but the language and the compiler is imported, so
that a page without a server can do the same.
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
#: A bundle, fetch or store, as far as an edit can change it: its kind, and the slot, the operation
#: and the line's text of each of its parts.
Signature = tuple[str, tuple[tuple[int, str, str], ...]]

_WORD = re.compile(r"[^\s,;]+")


def words() -> Answer:
    """What the language's words mean, for hover.

    Returns ``opcodes``, a list of name, operands, cost and meaning; and ``others``, a list
    of name, pattern (a regular expression for all that it is written as) and text.
    """
    tables = (reference.REGISTERS, reference.MODIFIERS, reference.SYNTAX)
    others = [[name, row["pattern"], row["text"]] for part in tables for name, row in part.items()]
    return {"opcodes": [reference.entry(op)[:4] for op in OPCODES.values()], "others": others}


def text_answer(text: str, name: str = "kernel.il") -> tuple[Answer, Program | None]:
    """The part "text", and the program if there is one.

    The answer holds ``faults``, each with line and column (from 1), length and message; and, of a
    text without faults, ``live``: [line, registers, names] for each line that does something. A
    line's registers are those with a component in use before or after it.
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
    """How many letters the word at a column has; at least one."""
    word = _WORD.match(text, column - 1)
    return len(word[0]) if word else 1


def _live(program: Program) -> list[list]:
    """[line, how many registers are live, their names], in the order of the lines. An instruction
    of a macro counts for the line that calls the macro.
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
    """The live registers of a set, and the letters of their live components."""
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
    """The part "code", the compiled code if there is any, and its signatures.

    program : what was assembled.
    before : the signatures of the code of the edit before this one. Rows that it hadn't are marked
        as new; without any, none is.
    k_per_iteration, flops : of a turn of the main loop, where the kernel's launch tells them.

    The answer holds either ``refusal``, the line and the message of a program that the chip can't
    run; or ``rows``, ``dropped`` (the lines of which no operation is left: nothing uses the result,
    or what does reads it where it was) and ``card``.
    A row is a bundle, a fetch, a store or a jump: its ``kind`` ("alu", "fetch", "store", "flow"),
    ``clause``, whether it is in the main ``loop``, whether it is ``new``, its ``text`` (of a jump)
    or ``parts``: [slot, operation, line, the operation in full]. Slots 0 to 4 are x y z w t.
    """
    try:
        code = compile(program)
    except CompileError as error:
        return {"refusal": _refusal(program, error)}, None, []
    rows = list(_rows(code))
    signatures = [_signature(row, program) for row in rows]
    _mark_new(rows, signatures, before)
    card = code.card(k_per_iteration, flops)
    shown = {name: getattr(card, name) for name in CARD}
    answer = {"rows": rows, "card": shown, "dropped": _absent_lines(program, rows)}
    return answer, code, signatures


def _absent_lines(program: Program, rows: Sequence[Answer]) -> list[int]:
    """The lines that set a register and of which no operation is left."""
    left = {part[2] for row in rows for part in row["parts"]}
    setting = {i.line for i in program.body if i.dest and i.dest.register.kind == "r"}
    called = {line for i in program.body for line in i.calls}
    return sorted(setting - left - called)


def accesses(program: Program) -> tuple:
    """How often a program fetches, from what, and what it stores to, in the order of its text."""
    fetches = [i.controls.resource for i in program.body if i.op.kind == "fetch"]
    stores = [
        (i.dest.register.index, i.dest.written) if i.dest.register.kind == "o" else -1
        for i in program.body
        if i.dest and i.dest.register.kind in ("g", "o")
    ]
    reads = sum(s.register.kind == "g" for i in program.body for s in i.sources)
    return program.mode, fetches, stores, reads


#: The rows of the kernel's card that the workbench shows.
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
    """What the compiler said, and the line that it named; 0 if it named none."""
    message = str(error)
    named = re.search(rf"{re.escape(program.name)}:(\d+):", message)
    return {"line": int(named[1]) if named else 0, "message": message}


def _rows(code: Code) -> Iterator[Answer]:
    """The rows of compiled code, in its order."""
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
    """A row as far as an edit can change it: renamed registers and moved lines don't count."""
    parts = tuple((slot, name, bare(program, line)) for slot, name, line, _ in row["parts"])
    return str(row.get("text", row["kind"])), parts


def bare(program: Program, line: int) -> str:
    """A line of the text without its comment."""
    return without_remark(program.text_of(line)).strip()


def _mark_new(
    rows: Sequence[Answer], signatures: Sequence[Signature], before: Sequence[Signature]
) -> None:
    """Mark the rows that the code before hadn't."""
    if not before:
        return
    matcher = SequenceMatcher(None, before, signatures, autojunk=False)
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind != "equal":
            for row in rows[start:end]:
                row["new"] = True


def pure_answers(text: str, name: str = "kernel.il") -> Iterator[tuple[str, Answer]]:
    """The parts of an answer that need neither data nor a clock: ("text", ...), then ("code", ...)
    if the text has no fault.
    """
    answer, program = text_answer(text, name)
    yield "text", answer
    if program is not None:
        yield "code", code_answer(program)[0]
