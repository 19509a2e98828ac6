"""Name the bit patterns of common 32-bit words, as integers."""

SIGN = 0x80000000
ONE, HALF, TWO = 0x3F800000, 0x3F000000, 0x40000000  # 1.0, 0.5 and 2.0
INFINITY, NAN = 0x7F800000, 0x7FC00000
ALL = 0xFFFFFFFF  # all bits set: true as a comparison result, -1 as an integer
