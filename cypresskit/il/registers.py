"""Read operands: registers with swizzles, masks and signs.

A short swizzle is filled to four letters by repeating it: ``x`` gives ``xxxx``, ``zw`` gives
``zwzw``, ``xyz`` gives ``xyzz``. A short mask is read from the left, and a letter moves to its own
position: ``y_w`` is ``_y_w``.
"""

import re

from cypresskit.il.cursor import BRACKETS, COLORS, Line, parse_integer
from cypresskit.il.errors import did_you_mean
from cypresskit.il.opcodes import OPCODES, Opcode, find_opcode
from cypresskit.il.other_languages import suggest_operand
from cypresskit.il.program import LETTERS, Dest, Register, Source
from cypresskit.il.unsupported import REGISTERS

MAX_REGISTER = 65_535  # register numbers have 16 bits (IL specification 2.2.4)
# Names of inputs in earlier versions of IL, in lower case
ALIASES = {
    "vatid": "vAbsTidFlat",
    "vtid": "vTidInGrpFlat",
    "vtgroupid": "vThreadGrpIdFlat",
}
INPUTS = "vWinCoord0", "vAbsTidFlat", "vTidInGrpFlat", "vThreadGrpIdFlat"
INPUT_NAMES = {name.lower(): name for name in INPUTS} | ALIASES | {"vwincoord": "vWinCoord0"}
INPUT_NAMES |= {f"{name}0": register for name, register in INPUT_NAMES.items() if name[-1] != "0"}
#: Inputs of workgroups with several dimensions, which are left out.
DIMENSIONS = re.compile(r"(vAbsTid|vTidInGrp|vThreadGrpId)0?", re.IGNORECASE)

_SWIZZLE = re.compile(r"[xyzwrgba01]{1,4}", re.IGNORECASE)
#: The letters of a swizzle or, with a blank, of a mask
_MASKED = re.compile(r"[._]([xyzw_]+)(?!\w)", re.IGNORECASE)
_OFFSET = re.compile(r"\s*([-+])\s*(0[xX][0-9a-fA-F]+|[0-9]+)")
_NESTED = re.compile(r"g\s*\[", re.IGNORECASE)
NO_REGISTER = "no register of cypresskit's subset of AMD's IL"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_REGISTER = re.compile(r"(in|out|cb|[rlo])([0-9]+)(?![A-Za-z0-9])", re.IGNORECASE)


def read_register(line: Line) -> Register:
    """Read a register's name, with the element of ``cb0[3]`` or the address of ``g[r1.x+2]``."""
    line.skip()
    start = line.at
    match = line.take(_REGISTER)
    if match:
        kind = match.group(1).lower()
        index = parse_integer(match.group(2), line, start)
        if index > MAX_REGISTER:
            line.fail(f"`{match.group()}`: register numbers end at {MAX_REGISTER}", start)
        if kind == "o" and index > 7:
            line.fail(f"`{match.group()}`: the output streams are o0 to o7", start)
        if kind == "cb":
            line.expect("[", "after a constant buffer's name, as in `cb0[3]`")
            if line.text[line.at :].lstrip()[:1].isalpha():
                line.fail(
                    f"`{match.group()}[{line.text[line.at :].split(']')[0].strip()}]`: an element"
                    " of a constant buffer is chosen by a whole number, as in `cb0[3]`; a table"
                    " to look things up in is a texture or g[]"
                )
            element = line.integer("the number of an element")
            line.expect("]", "to close the element's number")
            return Register("cb", index, element)
        if line.text.startswith("[", line.at):
            line.fail(f"`{match[0]}[`: a component is a letter after a point, as in `r2.y`", start)
        return Register(kind, index)
    word = line.take(_NAME)
    name = word.group().lower() if word else ""
    if name == "g":
        return _global(line)
    if name == "mem":
        return Register("mem")
    if name in INPUT_NAMES:
        return Register(INPUT_NAMES[name])
    written = f"`{word.group()[:32]}`" if word else line.rest()
    if word and (several := DIMENSIONS.fullmatch(word.group())):
        line.fail(
            f"{written}: workgroups have one dimension in cypresskit's subset of AMD's IL: use"
            f" `{INPUT_NAMES[several[1].lower() + 'flat']}`",
            start,
        )
    op = find_opcode(line.text[line.start :])
    is_float = bool(op) and "f" in OPCODES[op].sources
    if cure := suggest_operand(line.text[start:], line.literals, is_float):
        line.at = start
        line.fail(f"expected a register, found {line.rest()}: {cure}", start)
    guess = did_you_mean(name, [*INPUTS, "mem"]) if word else ""
    for pattern, use in REGISTERS.items():
        if word and not guess and re.fullmatch(pattern, word.group()):
            line.fail(f"{written} is {NO_REGISTER}: {use}", start)
    return line.fail(
        "expected a register (r0, l0, cb0[0], g[r0.x], o0, vWinCoord0, ...), found"
        f" {written}.{guess}",
        start,
    )


def _global(line: Line) -> Register:
    """Read the brackets of ``g``."""
    line.expect("[", "after `g`, as in `g[r1.x+1]`")
    line.skip()
    address = None
    element = 0
    if line.text[line.at : line.at + 1].isdigit():
        element = line.integer("an element")
    else:
        start = line.at
        address = None if _NESTED.match(line.text, start) else read_source(line)
        if (
            address is None
            or address.register.kind not in ("r", "in", "l", *INPUTS)
            or address.negated
            or len(set(address.swizzle)) > 1
        ):
            written = line.text[start : line.at] or line.rest().strip("`")
            line.fail(
                f"`g[{written}`: an address is one component of a register, as in `g[r1.x+1]`",
                start,
            )
        if offset := line.take(_OFFSET):
            element = int(offset[1] + "1") * parse_integer(offset[2], line, offset.start(2))
    form = "a component and a whole number as in `g[r1.x+1]`; compute more before, by `imad`"
    line.expect("]", f"to close the address ({form})")
    return Register("g", 0, element, address)


def read_dest(line: Line, op: Opcode) -> Dest:
    """Read the operand that ``op`` writes, with its mask."""
    line.skip()
    start = line.at
    register = read_register(line)
    if register.kind not in (("mem",) if op.store else ("r", "o", "g", "out")):
        wanted = "`mem` with a mask, as in `mem.xy__`" if op.store else "r, o or g"
        line.fail(
            f"`{register}` can't be written by `{op.name}`: the destination is {wanted}", start
        )
    mask = read_mask(line)
    if (
        op.double
        and op.result == "d"
        and not any(mask[p : p + 2] == LETTERS[p : p + 2] for p in (0, 2))
    ):
        line.fail(f"`{op.name}` writes a double: its mask must hold xy or zw", start)
    return Dest(register, mask)


def read_mask(line: Line) -> str:
    """Read the mask that comes next, if any. Return the four characters of ``Dest.mask``."""
    if not line.accept("."):
        return LETTERS
    at = line.at
    match = line.take(re.compile(r"[xyzwrgba01_]+", re.IGNORECASE))
    written = match.group() if match else ""
    text = written.lower().translate(COLORS)
    if set(text) & set("01"):
        line.fail(
            f"mask `.{written}`: cypresskit's subset of AMD's IL has no constants in masks: use a"
            " `mov` of its own, from a literal",
            at,
        )
    mask = ""
    for c in text:
        if c in LETTERS:
            if LETTERS.index(c) < len(mask):
                own = "".join(letter if letter in text else "_" for letter in LETTERS)
                line.fail(
                    f"mask `.{written}`: a mask says which components are written, each letter in"
                    f" its own place, as in `.{own}`; a source's letters may have any order",
                    at,
                )
            mask = mask.ljust(LETTERS.index(c), "_")
        mask += c
    if not 0 < len(mask) <= 4:
        letters_read = f"`.{written}`" if written else line.rest()
        line.fail(f"a mask has one to four of the letters x y z w _, found {letters_read}", at)
    return mask.ljust(4, "_")


def read_source(line: Line, double: bool = False) -> Source:
    """Read an operand that is read, with its swizzle and sign. A ``double`` is negated by either of
    its words.
    """
    register = read_register(line)
    if register.kind in ("o", "out", "mem"):
        cure = "compute in a register, and `mov` that to it at the end"
        line.fail(f"`{register}` can't be read: {cure}", line.at - len(str(register)))
    swizzle = LETTERS
    masked = _MASKED.match(line.text, line.at)
    if masked and "_" in masked[0]:
        write = f"write `{register}` or `{register}.{masked[1].replace('_', '')}`"
        line.fail(f"a source has no mask, since `_` is no component: {write}")
    if line.text.startswith(".", line.at):
        line.at += 1
        swizzle_match = _SWIZZLE.match(line.text, line.at)
        ends = range(line.at + 1, swizzle_match.end() + 1) if swizzle_match else ()
        end = next(
            (n for n in ends if not line.text[n : n + 1].isalnum() or find_opcode(line.text[n:])),
            line.at,
        )
        taken = line.text[line.at : end].lower().translate(COLORS)
        line.at = end
        if not taken:
            line.fail(f"a swizzle has one to four of the letters x y z w 0 1, found {line.rest()}")
        swizzle = (taken * 4 if len(taken) < 3 else taken + taken[-1])[:4]
    negated = False
    while line.text.startswith("_", line.at):
        start = line.at
        line.at += 1
        match = line.take(re.compile(r"[A-Za-z0-9]+"))
        name = match.group().lower() if match else ""
        if name != "neg":
            line.fail(
                f"`_{name}` is no modifier of a source: use `_neg(xyzw)`, the only one", start
            )
        brackets = line.take(BRACKETS)
        letters = LETTERS
        if brackets:
            letters = brackets.group(1).replace(" ", "").lower().translate(COLORS)
        if not (set(letters) & {"x", "y"} if double else set(letters) == set(LETTERS)):
            line.fail(
                f"`_neg({letters})`: cypresskit's subset of AMD's IL negates all of an operand, by"
                " `_neg(xyzw)`",
                start,
            )
        negated = True
    return Source(register, swizzle, negated)
