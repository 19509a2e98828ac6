"""Recognize text in C, CUDA, OpenCL or PTX, and suggest what to write in IL.

``suggest_statement`` takes a whole statement, ``suggest_operand`` an operand, and
``suggest_operator`` the text after one. They are called only for text that isn't IL.
"""

import re
from contextlib import suppress
from itertools import count

from cypresskit.il.bits import Literals, number_bits
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
    r"#": "there is no preprocessor: use `dcl_literal` for a number, `mdef` for a macro",
    r"(else\s*if|elif|elsif)\b": ("put an if of its own after `else`, and close both by `endif`"),
    r"if(?!c|_log)": (
        "an if is `ifc_relop(lt) r0.x, r1.x` for floats, or `if_logicalnz r2.x` after `ilt`, `ieq`,"
        " ..."
    ),
    r"(for|while|do|repeat|rep)\b": LOOP,
    r"end[_ ]?(while|for|do|rep)\b|end[_ ]loop\b": "a loop ends by `endloop`",
    r"(end[_ ]if|fi)\b": "an if ends by `endif`",
    r"[{}]": BRACE,
    r"(__sync\w*|\w*barrier\w*|bar\.sync|syncthreads|sync|__threadfence\w*)\b": (
        "work-items wait for each other at `fence_threads_lds`, or `fence_threads_memory` for g[]"
    ),
    r"(__shared__|__local|groupshared|shared|local)\b": (
        "LDS is declared by `dcl_lds_id(0) BYTES` and reached by `lds_load_id(0)`,"
        " `lds_store_id(0)`"
    ),
    r"(const|var|let|u?int\d*|float\d*|double\d*|unsigned|bool|half)\s+[A-Za-z_]": (
        "registers r0, r1, ... need no declaration, and a number is `dcl_literal l0, 1.0, 2.0, 0,"
        " 0`"
    ),
    r"(atomic\w*|atom|red)\b": (
        "there are no atomics: let each work-item store to a place of its own, and add those up"
    ),
    r"(tex\dD\w*|texture\w*|read_image\w*|imageLoad)\b": (
        "a texture is read by `sample_resource(0)_sampler(0) r0, r1.xy00`"
    ),
    r"return\b": "a kernel ends by `end`; what it gives back it stores to `o0` or `g[r0.x]`",
    r"(printf?|cout|echo)\b": (
        "a kernel can't print: store the value to `o0` or `g[r0.x]`, and look at the array"
    ),
    r"(goto|jmp|bra|jump)\b|[A-Za-z_]\w*\s*:(?!:)": f"there are no labels and no jumps; {LOOP}",
    r"[a-z]\w*\.(f|u|s|b|global|shared|local|param|const|rn)\d*\b.*\s": (
        "an opcode has no type after a point: use `add` for floats, `iadd` for integers, `dadd`"
    ),
}

_CHANGED = re.compile(r"([A-Za-z_]\w*(?:\[[^\]]*\])?(?:\.\w+)?)\s*(\+\+|--|[-+*/%&|^]?=(?!=))(.*)")
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_NUMBER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|\.?[0-9][0-9.]*([eE][-+]?[0-9]+)?[fF]?)")
_SIGNED = re.compile(r"[-+]\s*([A-Za-z]\w*(?:\[[^\]]*\])?(?:\.\w+)?)")
_OPERATOR = re.compile(r"[-+*/%<>=&|^?~!]+")
#: Names for a work-item's position in other languages (patterns), and the register that holds it.
PLACES = {
    r"threadIdx|get_local_id|gl_LocalInvocationID|SV_GroupThreadID": "vTidInGrpFlat",
    r"blockIdx|get_group_id|gl_WorkGroupID|SV_GroupID": "vThreadGrpIdFlat",
    r"get_global_id|gl_GlobalInvocationID|SV_DispatchThreadID|gridIdx": "vAbsTidFlat",
    r"laneid|lane_id|lane": "vTidInGrpFlat",
    r"gl_FragCoord|SV_Position": "vWinCoord0",
}
SIZES = re.compile(r"blockDim|gridDim|warpSize|get_local_size|get_global_size|get_num_groups")


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
    if lettered := re.match(r"\d+((?:r|l|o)\d+(?:\.[xyzw]+)?)\b", text):
        return f"a register begins with its letter: `{lettered[1]}`"
    if swapped := re.match(r"(\d+)([rlo])(\.[xyzw]+)?(?!\w)", text):
        index, letter, components = swapped.groups("")
        return f"a register begins with its letter: `{letter}{index}{components}`"
    if number := _NUMBER.match(text):
        return _suggest_literal(number[0], literals or {})
    if signed := _SIGNED.match(text):
        if text[0] == "+":
            return f"leave out the sign: `{signed[1]}`"
        return f"a sign comes after the register: `{signed[1]}_neg(xyzw)`"
    if text.startswith("/*"):
        return COMMENT
    if re.match(r"\||f?abs\s*\(", text):
        return "an absolute value is `max r0, r1, r1_neg(xyzw)`"
    if re.match(r"[~!]", text):
        return "use `inot` for the bits' complement"
    for names, register in PLACES.items():
        if re.match(rf"(?:{names})\b", text, re.IGNORECASE):
            return f"use `{register}`, which holds a work-item's number here"
    if SIZES.match(text):
        return "a size is passed as a constant: `dcl_cb cb0[1]`, then `cb0[0].x`"
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
