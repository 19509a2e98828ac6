"""Bit patterns of 32-bit words, as integers: those of common ones, and of numbers in a text."""

import struct
from collections.abc import Mapping
from math import isinf

SIGN = 0x80000000
ONE, HALF, TWO = 0x3F800000, 0x3F000000, 0x40000000  # 1.0, 0.5 and 2.0
INFINITY, NAN = 0x7F800000, 0x7FC00000
ALL = 0xFFFFFFFF  # all bits set: true as a comparison result, -1 as an integer

Literals = Mapping[int, tuple[int, ...]]  # four words, by the number of the l register

#: A number of a text: hexadecimal, or decimal, as C writes it.
NUMBER = r"[-+]?(0[xX][0-9a-fA-F]+|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?[fF]?)"


def number_bits(text: str) -> int:
    """Return the pattern of a number. Text with a point or an exponent is a float, other text an
    integer. Raises ``OverflowError`` or ``ValueError`` if there is none.
    """
    bare = text.lstrip("+-")
    if bare[:2].lower() == "0x" or bare.isdigit():
        value = int(bare, 16 if bare[:2].lower() == "0x" else 10)
        value = -value if text.startswith("-") else value
        if not -SIGN <= value <= ALL:
            raise OverflowError
        return value & ALL
    number = float(text.rstrip("fF"))
    if isinf(number):
        raise OverflowError
    return struct.unpack("<I", struct.pack("<f", number))[0]
