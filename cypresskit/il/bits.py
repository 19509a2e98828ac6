"""Bit patterns of a register's 32-bit words, as whole numbers."""

SIGN = 0x80000000
ONE, HALF, TWO = 0x3F800000, 0x3F000000, 0x40000000  # 1.0, 0.5 and 2.0
INFINITY, NAN = 0x7F800000, 0x7FC00000
ALL = 0xFFFFFFFF  # every bit: what is true, and -1
