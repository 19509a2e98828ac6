"""Recognize what a reader writes who is used to C, and suggest what to write in IL.

``suggest_text`` takes a whole text, ``suggest_statement`` a statement, ``suggest_operand`` an
operand, and ``suggest_operator`` the text after one. Only the first is called for IL, too.
"""

import re
from collections.abc import Sequence
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
    r"(f?mac|dot|vfm\w*)\b": "a product is added to a sum by `mad r10, r2, r3, r10`",
    r"(inc|dec)\b": (
        "a counter is changed by `add r0.z, r0.z, l9.x`, with `dcl_literal l9, 1.0, 0, 0, 0`"
    ),
    r"(gt|le)\b": "`gt r1, r2, r3` is `lt r1, r3, r2`, and `le r1, r2, r3` is `ge r1, r3, r2`",
    r"(import|void|class|print)\b": "a kernel is a list of instructions, such as `add r0, r1, r2`",
    r"return\b": "a kernel ends by `end`; what it gives back it stores to `o0` or `g[r0.x]`",
}

#: The same for operands.
OPERANDS = {
    r"[AB]\s*[\[(]": FETCH,
    r"(thread|block)(Idx|Dim)|get_\w+_id": (
        "a work-item's place is `vWinCoord0`, its number in a group `vTidInGrpFlat.x`"
    ),
}

_NAME = r"[A-Za-z_]\w*(?:\[[^\]]*\])?(?:\.\w+)?"
_CHANGED = re.compile(rf"({_NAME})\s*(\+\+|--|[-+*/%&|^:]?=(?!=)|<-)(.*)")
_OPERAND = re.compile(rf"{_NAME}|{NUMBER}")
_VALUE = rf"(?:{_NAME}|{NUMBER})"
_CALLED = re.compile(r"(?P<op>\w+)\s*\((?P<operands>[^()]*)\)")
_OPERATION = re.compile(rf"(?P<a>{_VALUE})\s*(?P<op>[-+*/])\s*(?P<b>{_VALUE})")
_SUM = re.compile(
    rf"(?:(?P<c>{_VALUE})\s*\+\s*)?(?P<a>{_VALUE})\s*\*\s*(?P<b>{_VALUE})(?:\s*\+\s*(?P<d>{_VALUE}))?"
)
_REGISTER = re.compile(r"(r|l|o)\d+(\.\w+)?$|(cb\d|g)\[|vWinCoord0")
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_NUMBER = re.compile(rf"{NUMBER}(?![\w.])")  # what follows would belong to the number
#: What is nearly a register: its kind, its number, its components.
_MISSPELLED = re.compile(
    r"[%$&(]?([rlo])\s*[\[(]?([0-9OlI]+)\s*[\])]?(?:\.?([xyzw]{1,4}))?\)?(?=\s*(?:[,;]|$))"
)
_SIGNED = re.compile(r"-\s*([A-Za-z]\w*(?:\[[^\]]*\])?(?:\.\w+)?)")
_OPERATOR = re.compile(r"[-+*/%<>=&|^?~!]+")
_CLAUSE = re.compile(r"\d+ +(ALU|TEX|VTX|LOOP|JUMP|MEM|EXP)")  # of a listing of compiled code


def suggest_text(code: Sequence[str]) -> str:
    """Return what to do with a text that isn't IL, but holds it, or is made of it, or names a file
    of it; "" for others. ``code`` is its lines without blanks and comments.

    >>> suggest_text(['"il_ps_2_0\\n"', '"end\\n"'])
    'IL stands here in strings of another language: take off the quotes, and the `\\n` of each line'
    """
    header = next((line for line in code if re.search(r"\bil_[pc]s", line, re.IGNORECASE)), "")
    if re.search(r"[\"'\\]", header) or "".join(code).startswith(("'", '"')):
        return (
            "IL stands here in strings of another language: take off the quotes, and the `\\n` of"
            " each line"
        )
    if not header and any(map(_CLAUSE.match, code)):
        return "this is compiled code: give the IL that it was made from"
    is_word = len(code) == 1 and not header and " " not in code[0]
    if is_word and code[0].lower() not in OPCODES:
        return (
            f"`{code[0][:60]}` is a name, not IL: read a file with `Path(name).read_text()`, and a"
            " kernel of the catalog with `ck.kernels[name].text`"
        )
    return ""


def suggest_statement(text: str) -> str:
    """Return what to write in place of a statement of another language; "" if unknown.

    >>> suggest_statement("return;")
    'a kernel ends by `end`; what it gives back it stores to `o0` or `g[r0.x]`'
    """
    for pattern, cure in STATEMENTS.items():
        if re.match(pattern, text + "\n", re.IGNORECASE):
            return cure
    if (changed := _CHANGED.match(text)) and not find_opcode(text):
        said = "an instruction is `operation destination, sources`"
        one = _assigned(*changed.groups())
        return f"{said}: {one}" if one else f"{said}, and does one operation"
    return ""


def _assigned(target: str, operator: str, expression: str) -> str:
    """Return the instruction that assigns an expression, with registers in place of other names;
    "" if it takes several instructions, or none is known.
    """
    text = expression.strip().rstrip(";").strip()
    sign = operator[0] if operator[0] in "-+*/" else ""
    if operator in ("++", "--"):
        text = "1.0"
    elif operator not in ("=", ":=", "<-", f"{sign}="):
        return ""
    called = _CALLED.fullmatch(text)
    if called and not sign and called["op"] in OPCODES:
        op, operands = called["op"], re.split(r"\s*,\s*", called["operands"].strip())
    elif (
        found := _SUM.fullmatch(f"{target} + {text}" if sign == "+" and "*" in text else text)
    ) and (found["c"] or found["d"]):
        op, operands = "mad", [found["a"], found["b"], found["c"] or found["d"]]
    elif sign and _OPERAND.fullmatch(text):
        op, operands = _ARITHMETIC[sign], [target, text]
    elif (found := _OPERATION.fullmatch(text)) and not sign:
        op, operands = _ARITHMETIC[found["op"]], [found["a"], found["b"]]
    elif _OPERAND.fullmatch(text) and not sign:
        op, operands = "mov", [text]
    else:
        return ""
    if len(OPCODES[op].sources) != len(operands) or not all(map(_OPERAND.fullmatch, operands)):
        return ""
    words: dict[str, str] = {}
    numbers: list[str] = []
    free = (f"r{n}" for n in count(1) if not re.search(rf"\br{n}\b", f"{target} {expression}"))
    for name in (target, *operands):
        if _NUMBER.fullmatch(name):
            words[name] = f"l9.{'xyzw'[len(numbers)]}"
            is_whole = name.lstrip("+-").isdigit() and not op.startswith(("i", "u"))
            numbers.append(name + ".0" * is_whole)
        elif name not in words:
            words[name] = name if _REGISTER.match(name) else next(free)
    said = f"`{op} {', '.join(words[name] for name in (target, *operands))}`"
    if numbers:
        values = ", ".join([*numbers, *["0"] * (4 - len(numbers))])
        return f"{said}, with `dcl_literal l9, {values}`"
    return said + (": registers are r0, r1, ..." if {*words} != {*words.values()} else "")


def suggest_operand(text: str, literals: Literals | None = None, is_float: bool = False) -> str:
    """Return what to write in place of an operand that is no register; "" if unknown. A number may
    be in one of the ``literals``; ``is_float``: whether the instruction takes floats.

    >>> suggest_operand("-l0.x")
    'a sign comes after the register: `l0.x_neg(xyzw)`'
    """
    for pattern, cure in OPERANDS.items():
        if re.match(pattern, text, re.IGNORECASE):
            return cure
    if number := _NUMBER.match(text.lstrip("#$=({")):
        is_whole = number[0].lstrip("+-").isdigit()
        return _suggest_literal(number[0] + ".0" * (is_float and is_whole), literals or {})
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
