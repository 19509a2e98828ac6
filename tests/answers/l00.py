"""Lesson 00."""

import cypresskit as ck


def in_place(c, a, b):
    c -= ck.gemm(a, b)
    return c


class Unseen(int):
    def __repr__(self):
        raise AttributeError("no picture")
