"""Lesson 13."""


def warps(registers, threads, shared):
    groups = min(65536 // (registers * threads), 233472 // (shared + 1024), 2048 // threads)
    return groups * threads / 32
