"""Read kernels in AMD's Intermediate Language (IL): text in, ``Program`` out.

A text that can't be read raises ``ILError``, which lists every fault and how to fix it.
"""

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
