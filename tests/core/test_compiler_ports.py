"""The search for read ports, on the ISA's own examples."""

import random

from sampling import from_rows, seeded

from cypresskit.compiler.ports import Ports, find_slot_reads

X, Y = range(2)


def fits(*units):
    ports = Ports()
    return all(ports.fit([u]) for u in units)


@from_rows
def test_a_bundle_reads_what_its_ports_allow(what, slots, wanted):
    units = [(slot.removeprefix("t ").split(), slot[0] == "t") for slot in slots]
    read = [([("xyzw".index(r[0]), r[1]) for r in reads], scalar) for reads, scalar in units]
    assert fits(*(find_slot_reads(*each) for each in read)) == wanted


def is_readable(slots, table=()):
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


@seeded(4)
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
