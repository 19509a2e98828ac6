"""The search for read ports, on the ISA's own examples."""

import random

import pytest
from conftest import seeds

from cypresskit.compiler.ports import Ports, find_slot_reads

X, Y, Z, W = range(4)


def fits(*units) -> bool:
    ports = Ports()
    return all(ports.fit([u]) for u in units)


A, B, C, D = ((X, name) for name in "abcd")
VECTOR = [([A, B], False), ([C, (Y, "a")], False)]
FITS = {  # operands of slots, and whether the slot is t; whether a bundle can read them
    "three words of a bank": ([([A, B, C], False)], True),
    "and a fourth": ([([A, B, C], False), ([D], False)], False),
    "swizzles work around a conflict (ISA 4.7.7)": ([*VECTOR, ([B, (Y, "a")], False)], True),
    "a square needs one port": ([([A, A], False), ([B, C], False)], True),
    "other repeats need two": ([([A, B, A], False), ([C, D], False)], False),
    "t finds free ports (ISA 4.7.8)": ([*VECTOR, ([(Z, "c"), (W, "c")], True)], True),
    "t shares one with a vector slot": ([*VECTOR, ([A, (Y, "a")], True)], True),
}


@pytest.mark.parametrize("what", FITS)
def test_a_bundle_reads_what_its_ports_allow(what):
    slots, wanted = FITS[what]
    assert fits(*(find_slot_reads(reads, scalar) for reads, scalar in slots)) == wanted


def is_readable(slots, table=()) -> bool:
    """Whether some bank swizzles read all, by trying every one."""
    if not slots:
        return True
    reads, options = slots[0]
    for _, cycles in options:
        now = dict(table)
        cells = [((cycle, r[0]), r[1]) for cycle, r in zip(cycles, reads) if r]
        if all(now.setdefault(*cell) == cell[1] for cell in cells) and is_readable(slots[1:], now):
            return True
    return False


@pytest.mark.parametrize("seed", seeds(4))
def test_a_dense_bundle_fits_if_any_swizzles_read_it(seed):
    """Of two to four words in each bank, at once, and slot by slot as far as they fit."""
    rng = random.Random(seed)
    for _ in range(100):
        words = [(bank, f"{bank}{n}") for bank in range(4) for n in range(rng.choice((2, 3, 3, 4)))]
        reads = [[rng.choice([*words, None]) for _ in range(3)] for _ in range(5)]
        slots = [find_slot_reads(each, n == 4) for n, each in enumerate(reads)]
        assert Ports().fit(slots) == is_readable(slots)
        ports = Ports()
        placed = []
        for slot in slots:
            fits = is_readable([*placed, slot])
            assert ports.fit([slot]) == fits
            placed += [slot] * fits


def test_t_loses_cycles_to_constants():
    a, b, c = (X, "a"), (Y, "b"), (X, "c")
    assert (
        find_slot_reads([None, b], True, constants=1).options
        and not find_slot_reads([a, b, c], True, constants=3).options
    )
    assert all(
        cycles[1] == 2 for _, cycles in find_slot_reads([None, b, None], True, constants=2).options
    )
