"""The language: IL text in, ``Program`` out, or an ``ILError`` that says what to mend."""

from cypresskit.il.errors import Fault, ILError
from cypresskit.il.opcodes import OPCODES, Opcode
from cypresskit.il.parser import assemble
from cypresskit.il.program import Dest, Instruction, Program, Register, Source

__all__ = [
    "OPCODES",
    "Dest",
    "Fault",
    "ILError",
    "Instruction",
    "Opcode",
    "Program",
    "Register",
    "Source",
    "assemble",
]
