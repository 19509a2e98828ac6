"""Recognize what a reader writes who is used to C, and suggest what to write in IL.

``suggest_statement`` takes a whole statement, ``suggest_operand`` an operand, and
``suggest_operator`` the text after one. They are called only for text that isn't IL.
"""

import re
from contextlib import suppress
from itertools import count

from cypresskit.il.bits import NUMBER, Literals, number_bits
from cypresskit.il.opcodes import find_opcode

LOOP = (
    "a loop is `whileloop` to `endloop`, and is left by `break_logicalnz r1.x` or"
    " `breakc_relop(ge) r0.x, r1.x`"
)
BRACE = "there are no braces: a loop ends by `endloop`, an if by `endif`"

COMMENT = "a comment begins with `;` and ends with its line: there are no `/* */`"

#: By a regular expression for a statement's beginning, in any case: what to write in its place.
#: Tried in this order.
STATEMENTS = {
    r"/\*|\*/": COMMENT,
    r"(else\s*if|elif)\b": "put an if of its own after `else`, and close both by `endif`",
    r"if(?!c|_log)": (
        "an if is `ifc_relop(lt) r0.x, r1.x` for floats, or `if_logicalnz r2.x` after `ilt`, `ieq`,"
        " ..."
    ),
    r"(for|while|do)\b": LOOP,
    r"end[_ ]?(while|for)\b|end[_ ]loop\b": "a loop ends by `endloop`",
    r"end[_ ]if\b": "an if ends by `endif`",
    r"[{}]": BRACE,
    r"(__syncthreads|barrier)\b": (
        "work-items wait for each other at `fence_threads_lds`, or `fence_threads_memory` for g[]"
    ),
    r"(const|u?int\d*|float\d*|double\d*)\s+[A-Za-z_]": (
        "registers r0, r1, ... need no declaration, and a number is `dcl_literal l0, 1.0, 2.0, 0,"
        " 0`"
    ),
    r"return\b": "a kernel ends by `end`; what it gives back it stores to `o0` or `g[r0.x]`",
}

_CHANGED = re.compile(r"([A-Za-z_]\w*(?:\[[^\]]*\])?(?:\.\w+)?)\s*(\+\+|--|[-+*/%&|^]?=(?!=))(.*)")
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_NUMBER = re.compile(rf"{NUMBER}(?![\w.])")  # what follows would belong to the number
_SIGNED = re.compile(r"-\s*([A-Za-z]\w*(?:\[[^\]]*\])?(?:\.\w+)?)")
_OPERATOR = re.compile(r"[-+*/%<>=&|^?~!]+")


def suggest_statement(text: str) -> str:
    """Return what to write in place of a statement of another language; "" if unknown.

    >>> suggest_statement("return;")
    'a kernel ends by `end`; what it gives back it stores to `o0` or `g[r0.x]`'
    """
    for pattern, cure in STATEMENTS.items():
        if re.match(pattern, text + "\n", re.IGNORECASE):
            return cure
    if (changed := _CHANGED.match(text)) and not find_opcode(text):
        operator = next((c for c in changed[2] + changed[3] if c in _ARITHMETIC), "")
        target = changed[1]
        if not operator:
            return f"an instruction is `operation destination, source`: `mov {target}, r1`"
        line = f"{_ARITHMETIC[operator]} {target}, r1, r2"
        if {"+", "*"} <= set(changed[2] + changed[3]):
            line = f"mad {target}, r1, r2, r3"
        return f"an instruction is `operation destination, sources`: `{line}`"
    return ""


def suggest_operand(text: str, literals: Literals | None = None) -> str:
    """Return what to write in place of an operand that is no register; "" if unknown. A number may
    be in one of the ``literals``.

    >>> suggest_operand("-l0.x")
    'a sign comes after the register: `l0.x_neg(xyzw)`'
    """
    if number := _NUMBER.match(text):
        return _suggest_literal(number[0], literals or {})
    if signed := _SIGNED.match(text):
        return f"a sign comes after the register: `{signed[1]}_neg(xyzw)`"
    return ""


def _suggest_literal(number: str, literals: Literals) -> str:
    """Return the component of a literal that holds a number, or how to declare one that is free."""
    with suppress(ValueError, OverflowError):
        bits = number_bits(number)
        for index, words in literals.items():
            if bits in words:
                return f"write `l{index}.{'xyzw'[words.index(bits)]}`, which holds {number}"
    free = next(index for index in count() if index not in literals)
    return f"declare `dcl_literal l{free}, {number}, 0, 0, 0`, and write `l{free}.x`"


def suggest_operator(text: str) -> str:
    """Return what to write in place of an operator after an operand; "" if there is none."""
    if text.startswith(("/*", "*/")):
        return COMMENT
    if operator := _OPERATOR.match(text):
        use = _ARITHMETIC.get(operator[0], "")
        line = f"use `{use} r0, r1, r2` before" if use else "use an instruction before"
        return f"an operand is one register; for `{operator[0]}` {line} this one"
    if text.startswith(("{", "}")):
        return BRACE
    return ""
