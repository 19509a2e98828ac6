"""Answers that need only the language and the compiler: faults, live registers, bundles.

All results are plain data for JSON.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

from cypresskit.compiler import CompileError, Control, compile
from cypresskit.compiler.listing import fetch_text, operation_text, store_text
from cypresskit.editing.legend import STATISTICS
from cypresskit.editing.protocol import AnswerPart
from cypresskit.il import ILError, Program, assemble, reference
from cypresskit.il.cursor import strip_comment
from cypresskit.il.dataflow import defines, liveness
from cypresskit.il.errors import last_line
from cypresskit.il.opcodes import Opcode
from cypresskit.kernels.convention import ELEMENTS

#: A token of a line: a word with its controls or its index. The page has the same pattern.
TOKEN = re.compile(r"[A-Za-z_]\w*(?:\([\w.,+-]*\)\w*)*(?:\[[^\]]*\](?:\.\w+)?)?", re.ASCII)
REGISTER = re.compile(r"r\d+")
CB0_ELEMENT = re.compile(r"cb0\[(\d+)\](?:\.\w+)?")


def token_meanings(text: str) -> dict[str, tuple[str, str]]:
    """Return the name and the meaning of each word of a text that has one, by the word."""
    lines = map(strip_comment, text.splitlines())
    found = {word: _meaning(word) for line in lines for word in TOKEN.findall(line)}
    return {word: meaning for word, meaning in found.items() if meaning is not None}


@lru_cache(maxsize=4096)
def _meaning(word: str) -> tuple[str, str] | None:
    """Return the name and the meaning of a word: of an element of cb0, what the launch of a product
    passes; of others, what the reference has. The page itself says of a register where it is set.
    """
    if REGISTER.fullmatch(word):
        return None
    if (passed := CB0_ELEMENT.fullmatch(word)) and int(passed[1]) < len(ELEMENTS):
        return f"cb0[{passed[1]}] of this launch", ELEMENTS[int(passed[1])]
    found = reference.find(word)
    if not isinstance(found, Opcode):
        return found
    name, operands, cost, meaning = reference.entry(found)
    return name, " · ".join(part for part in (operands, meaning, cost) if part != "-")


def text_answer(text: str, name: str) -> AnswerPart:
    """Return the part "text".

    It holds ``faults``, each with line, column (from 1), message, and the line's text;
    ``meanings``, see ``token_meanings``; and without faults ``registers``: each ``line`` that has
    instructions, the names of those ``live`` before or after it, and of those that it ``sets``.
    """
    answer = {"faults": [], "registers": [], "meanings": token_meanings(text)}
    try:
        return answer | {"registers": _registers(assemble(text, name))}
    except ILError as error:
        return answer | {"faults": [vars(fault) for fault in error.faults], "is_last": True}


def _registers(program: Program) -> list[AnswerPart]:
    """Return the line, the live registers and those set, of each line that has instructions. Of the
    instructions that a macro makes of a line, the one with the most live registers counts.
    """
    before = liveness(program)
    found: dict[int, list] = defaultdict(lambda: [frozenset()] * 2)
    for index, instruction in enumerate(program.body):
        keys = [*before[index : index + 2], defines(instruction)]
        *sides, written = (frozenset(number for number, _ in each) for each in keys)
        live, sets = found[instruction.written_line]
        found[instruction.written_line] = [max(live, *sides, key=len), sets | written]

    def names(numbers: frozenset[int]) -> list[str]:
        return [program.as_written(f"r{number}") for number in sorted(numbers)]

    rows = sorted(found.items())
    return [{"line": n, "live": names(live), "sets": names(sets)} for n, (live, sets) in rows]


def code_answer(program: Program, by: str = "cypresskit") -> AnswerPart:
    """Return the part "code" of an assembled text, as a compiler makes it.

    It holds ``refusal``, the line and message of a program that the chip can't run; or ``rows``
    and ``card``, the statistics.

    A row is a bundle, a fetch, a store or a jump: its ``kind`` ("alu", "fetch", "store", "flow"),
    ``clause``, whether it is in the main ``loop``, and its ``text`` (for a jump) or ``operations``:
    [slot, operation, line, operation in full]. Slots 0 to 4 are x y z w t.
    """
    try:
        code = compile(program, by=by)
    except CompileError as error:
        return {"refusal": {"line": error.line, "message": last_line(error)}}
    inside = {id(control) for control in code.main_loop}
    rows = [
        {"clause": clause, "loop": id(control) in inside, **row}
        for clause, control in enumerate(code.controls)
        for row in _control_rows(control)
    ]
    stats = code.stats()
    card = {field: getattr(stats, field) for _, field, _ in STATISTICS}
    return {"rows": rows, "card": card}


def _control_rows(control: Control) -> Iterator[AnswerPart]:
    for bundle in control.bundles:
        operations = [[o.slot, o.name, o.line, operation_text(o)] for o in bundle.operations]
        yield {"kind": "alu", "operations": operations}
    for fetch in control.fetches:
        yield {"kind": "fetch", "operations": [[0, fetch.name, fetch.line, fetch_text(fetch)]]}
    if store := control.store:
        yield {"kind": "store", "operations": [[0, store.name, store.line, store_text(store)]]}
    elif not control.bundles and not control.fetches:
        yield {"kind": "flow", "text": control.name, "operations": []}
