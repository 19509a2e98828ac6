"""The search for read ports, on the ISA's own examples."""

import pytest

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


def test_t_loses_cycles_to_constants():
    a, b, c = (X, "a"), (Y, "b"), (X, "c")
    assert (
        find_slot_reads([None, b], True, constants=1).options
        and not find_slot_reads([a, b, c], True, constants=3).options
    )
    assert all(
        cycles[1] == 2 for _, cycles in find_slot_reads([None, b, None], True, constants=2).options
    )
