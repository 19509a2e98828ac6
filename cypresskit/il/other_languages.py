"""Recognize what a reader writes who is used to C, and suggest what to write in IL.

``suggest_statement`` takes a whole statement, ``suggest_operand`` an operand, and
``suggest_operator`` the text after one. They are called only for text that isn't IL.
"""

import re
from contextlib import suppress
from itertools import count

from cypresskit.il.bits import NUMBER, Literals, number_bits
from cypresskit.il.opcodes import OPCODES, find_opcode

LOOP = (
    "a loop is `whileloop` to `endloop`, and is left by `break_logicalnz r1.x` or"
    " `breakc_relop(ge) r0.x, r1.x`"
)
BRACE = "there are no braces: a loop ends by `endloop`, an if by `endif`"

COMMENT = "a comment begins with `;` and ends with its line: there are no `/* */`, `#` or `--`"
FETCH = "a number of A is fetched by `sample_resource(0)_sampler(0) r2, r0.xy00`; B is texture 1"

#: By a regular expression for a statement's beginning, in any case: what to write in its place.
#: Tried in this order.
STATEMENTS = {
    r"/\*|\*/|#|--": COMMENT,
    r"if\b.*\bbreak|(goto|label|jmp|jn?[gl]?[ez]|b(ne|eq|lt|gt|le|ge))\b": LOOP,
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
    r"(const|let|var|auto|register|dcl|dcl_temps|u?int\d*|float\d*|double\d*)\s": (
        "registers r0, r1, ... need no declaration, and a number is `dcl_literal l0, 1.0, 2.0, 0,"
        " 0`"
    ),
    r"(ld|fetch|tex\w*)\b|.*=\s*([AB]|tex\w*|fetch|load|sample)\s*[\[(]": FETCH,
    r"(store|write|out)\b": "a result is stored by `mov o0, r10` or `mov g[r1.x], r10`",
    r"(f?mac|dot|fmul|vfm\w*)\b": "a product is added to a sum by `mad r10, r2, r3, r10`",
    r"(inc|dec)\b": "a counter is raised by `add r0.z, r0.z, l0.x`, where l0.x holds 1.0",
    r"(import|void|class|print)\b": "a kernel is a list of instructions, such as `add r0, r1, r2`",
    r"return\b": "a kernel ends by `end`; what it gives back it stores to `o0` or `g[r0.x]`",
}

_NAME = r"[A-Za-z_]\w*(?:\[[^\]]*\])?(?:\.\w+)?"
_CHANGED = re.compile(rf"({_NAME})\s*(\+\+|--|[-+*/%&|^:]?=(?!=)|<-)(.*)")
_OPERAND = re.compile(rf"{_NAME}|{NUMBER}")
_PRODUCT = re.compile(rf"(?P<a>{_NAME})\s*\*\s*(?P<b>{_NAME})")
_REGISTER = re.compile(r"(r|l|o)\d+(\.\w+)?$|(cb\d|g)\[|vWinCoord0")
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_NUMBER = re.compile(rf"{NUMBER}(?![\w.])")  # what follows would belong to the number
#: What is nearly a register: its kind, its number, its components.
_MISSPELLED = re.compile(
    r"[%$&*(]?([rlo])\s*[\[(]?([\dOlI]+)\s*[\])]?(?:\.?([xyzw]{1,4}))?(?![\w.])"
)
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
        return f"an instruction is `operation destination, sources`: {_assigned(*changed.groups())}"
    return ""


def _assigned(target: str, operator: str, expression: str) -> str:
    """Return the instruction that assigns an expression, with registers in place of other names."""
    operator = operator.replace("<-", "=")
    operands = [found[0] for found in _OPERAND.finditer(expression)]
    found = {c for c in operator + expression if c in _ARITHMETIC}
    op = next((_ARITHMETIC[c] for c in operator + expression if c in _ARITHMETIC), "mov")
    if operands and operands[0] in OPCODES:  # is called
        op, *operands = operands
    elif operator[0] in _ARITHMETIC:
        operands = [target, *(operands or ["1.0"])]
    if op != "mad" and found >= {"+", "*"}:
        op = "mad"
        if factors := _PRODUCT.search(expression):
            product = [factors["a"], factors["b"]]
            operands = [*product, *(name for name in operands if name not in product)]
    names: dict[str, str] = {}
    for name in (target, *operands):
        if not _REGISTER.match(name):
            number = _NUMBER.fullmatch(name)
            names.setdefault(name, "l0.x" if number else f"r{len(names) + 1}")
    words = [names.get(name, name) for name in (target, *operands[: len(OPCODES[op].sources)])]
    said = f"`{op} {', '.join(words)}`"
    numbers = [name for name, word in names.items() if word == "l0.x"]
    if numbers:
        return f"{said}, where l0.x holds {numbers[0]}"
    return said + (": registers are r0, r1, ..." if names else "")


def suggest_operand(text: str, literals: Literals | None = None, is_float: bool = False) -> str:
    """Return what to write in place of an operand that is no register; "" if unknown. A number may
    be in one of the ``literals``; ``is_float``: whether the instruction takes floats.

    >>> suggest_operand("-l0.x")
    'a sign comes after the register: `l0.x_neg(xyzw)`'
    """
    if number := _NUMBER.match(text.lstrip("#$=")):
        return _suggest_literal(
            number[0] + ".0" * (is_float and number[0].isdigit()), literals or {}
        )
    if (near := _MISSPELLED.match(text)) and near[2].strip("lI"):
        name = near[1] + near[2].translate(str.maketrans("OlI", "011"))
        return f"write `{name}{(near[3] and '.' + near[3]) or ''}`"
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
    if text.startswith(("/*", "*/", "#", "--")):
        return COMMENT
    if operator := _OPERATOR.match(text):
        use = _ARITHMETIC.get(operator[0], "")
        line = f"use `{use} r0, r1, r2` before" if use else "use an instruction before"
        return f"an operand is one register; for `{operator[0]}` {line} this one"
    if text.startswith(("{", "}")):
        return BRACE
    return ""
