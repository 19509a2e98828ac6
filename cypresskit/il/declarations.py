"""Read declarations: literals, textures, constant buffers, workgroup and LDS sizes."""

import re

from cypresskit.il.bits import NUMBER, number_bits
from cypresskit.il.cursor import Line, count, end_of_line
from cypresskit.il.errors import did_you_mean
from cypresskit.il.opcodes import Opcode
from cypresskit.il.program import LETTERS, Controls, Dest, Instruction
from cypresskit.il.registers import read_mask, read_register

MAX_CONSTANTS = 4096  # most elements of a constant buffer (Evergreen instruction set, 4.6)
MAX_LDS = 32_768  # most bytes of LDS per workgroup (IL specification, "Declare a Typeless LDS")

#: The controls of those declarations that have some.
CONTROLS = {
    "dcl_resource": ("id", "type", *(f"fmt{axis}" for axis in LETTERS)),
    "dcl_lds": ("id",),
    "dcl_input_position_interp": ("k",),
}
POSITIONS = "linear_noperspective", "linear"  # in brackets: how a pixel's place is computed

_BUFFER = re.compile(r"\s*cb([0-9]+)\s*\[\s*([0-9]+)\s*\]", re.IGNORECASE)
_NUMBER = re.compile(NUMBER)


def read_declaration(op: Opcode, control: dict[str, str], line: Line, at: int) -> Instruction:
    """Read the operands of a declaration.

    Parameters
    ----------
    op
        The declaration.
    control
        Its controls: name to text in parentheses.
    line
        The line, at the operands.
    at
        Index of the statement's first character, for faults.
    """
    dest: Dest | None = None
    numbers: tuple[int, ...] = ()
    controls = Controls()
    for name, value in control.items():
        if name not in CONTROLS.get(op.name, ()):
            shown = f"({value})" if name == "k" else f"_{name}"
            line.fail(f"`{op.name}` has no control `{shown}`", at)
    if op.name == "dcl_literal":
        dest = Dest(read_register(line))
        if dest.register.kind != "l":
            line.fail(
                "`dcl_literal` declares an l register, as in `dcl_literal l0, 0, 1.0,"
                " 0x3f000000, 2`",
                at,
            )
        numbers = _literal_numbers(line)
    elif op.name == "dcl_resource":
        controls = _resource(control, line, at)
    elif op.name == "dcl_cb":
        match = line.take(_BUFFER)
        if not match:
            line.fail("`dcl_cb`: expected a constant buffer and its size, as in `dcl_cb cb0[4]`")
        numbers = int(match[1][:9]), int(match[2][:9])
        if numbers[0] > 15 or numbers[1] > MAX_CONSTANTS:
            line.fail(
                f"the constant buffers are cb0 to cb15, with at most {MAX_CONSTANTS} elements each",
                at,
            )
    elif op.name == "dcl_input_position_interp":
        if (found := control.get("k", "")).lower() not in POSITIONS:
            line.fail(f"expected `{op.name}({POSITIONS[0]})`, found `({found})`", at)
        register = read_register(line)
        if register.kind != "vWinCoord0":
            line.fail("the one input of a pixel kernel is vWinCoord0")
        dest = Dest(register, read_mask(line))
    elif op.name == "dcl_output_generic":
        dest = Dest(read_register(line))
        if dest.register.kind != "o":
            line.fail("an output stream is one of o0 to o7", at)
        read_mask(line)
    else:
        if op.name == "dcl_lds":
            controls = Controls(id=count(control.get("id", ""), line, at))
        numbers = (line.integer("a size"),)
        while line.accept(","):
            numbers += (line.integer("a size"),)
        _check_sizes(op, numbers, line, at)
    end_of_line(line)
    return Instruction(op.name, dest, (), controls, numbers=numbers, line=line.number)


def _check_sizes(op: Opcode, numbers: tuple[int, ...], line: Line, at: int) -> None:
    """Check the sizes of a workgroup or an LDS array."""
    if op.name.endswith("_thread_per_group"):
        size, *others = numbers
        shown = " x ".join(map(str, numbers))
        if others.count(1) < len(others) or not 0 < size <= 1024:
            line.fail(f"a workgroup has 1 to 1024 work-items in one dimension, found {shown}", at)
        return
    size, *others = numbers
    if others:
        line.fail("expected `dcl_lds_id(0) BYTES`", at)
    if size % 4:
        what = "the size of an LDS array is a multiple of 4 bytes"
        line.fail(f"`{op.name}`: {what}, found {size}", at)
    if size > MAX_LDS:
        line.fail(
            f"`{op.name}`: {size} bytes of LDS requested: a workgroup has {MAX_LDS} at most", at
        )


def _resource(control: dict, line: Line, at: int) -> Controls:
    """Read a texture's declaration. Return its id."""
    kinds = [part.strip().lower() for part in control.get("type", "").split(",")]
    if kinds != ["2d", "unnorm"]:
        why = "textures have rows and columns, and coordinates that count texels"
        line.fail(
            "`dcl_resource`: expected `_type(2d,unnorm)`, found"
            f" `({control.get('type', '')})`: in cypresskit's subset of AMD's IL {why}",
            at,
        )
    formats = {control.get(f"fmt{axis}", "unknown").lower() for axis in LETTERS}
    for kind in formats - {"float", "unknown", "sint", "uint", "unorm", "snorm"}:
        line.fail(
            "`dcl_resource`: a format is one of float, unknown, sint and uint, found"
            f" `{kind}`.{did_you_mean(kind, ['float', 'unknown'])}",
            at,
        )
    return Controls(id=count(control.get("id", ""), line, at))


def _literal_numbers(line: Line) -> tuple[int, ...]:
    """Read the four numbers of a literal. Return their 32-bit patterns."""
    numbers = []
    for n in range(4):
        line.expect(",", "before each of the four numbers of a literal")
        line.skip()
        start = line.at
        match = line.take(_NUMBER)
        if not match:
            line.fail(
                f"number {n + 1} of a literal: expected hexadecimal, float or integer text, found"
                f" {line.rest()}"
            )
        numbers.append(_bits(match.group(), line, start))
    return tuple(numbers)


def _bits(text: str, line: Line, at: int) -> int:
    """Return the 32-bit pattern of a number."""
    bare = text.lstrip("+-")
    is_whole = bare[:2].lower() == "0x" or bare.isdigit()
    try:
        return number_bits(text)
    except OverflowError:
        room = "32 bits" if is_whole else "a single-precision float"
        return line.fail(f"`{text[:32]}` does not fit in {room}", at)
