"""Caches, DRAM and LDS by themselves, against what one works out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from sampling import seeded

from cypresskit.chip.units.cache import fold
from cypresskit.chip.units.dram import GLOBAL, address_bits, dram_location, line_clocks, read_dram
from cypresskit.chip.units.lds_banks import access_clocks
from cypresskit.chip.units.state import make_chip
from cypresskit.chip.work import WavefrontPath, pack
from cypresskit.devices import HD5870
from cypresskit.draw.texture_fetch import Cache
from cypresskit.timing import simulate

LANES = np.arange(64)
WORDS = 4 * np.arange(4)[:, np.newaxis]  # of a vector


def clocks_of(addresses, device=HD5870):
    return int(access_clocks(np.asarray(addresses).reshape(1, -1, 64), device)[0])


def trace(cache, addresses):
    return "".join("mh"[cache.read(address // 64)] for address in addresses)


def test_sets_are_the_line_number_folded():
    assert fold(0b1010_0110, 4) == 0b1010 ^ 0b0110
    assert fold(0x3_0005, 16) == 3 ^ 5 and fold(5, 32) == 5
    # 16 lines a power of two apart fall into 16 different sets: all stay. Without folding they
    # would share one.
    assert trace(Cache(1024, 1, 64), [1024 * n for n in range(16)] * 2) == "m" * 16 + "h" * 16


def least_recently_used(sets, ways, lines):
    """Hits and misses of a cache with this number of sets, one list per set."""
    bits = (sets - 1).bit_length()
    held = [[] for _ in range(sets)]
    result = ""
    for line in lines:
        kept = held[fold(line, bits)]
        result += "h" if line in kept else "m"
        kept[:] = [line, *(other for other in kept if other != line)][:ways]
    return result


@pytest.mark.parametrize("sets", [1, 2, 4, 32])
@seeded(1)
def test_a_cache_of_any_size_keeps_what_was_used_last(sets, seed):
    rng = np.random.default_rng((sets, seed))
    for ways in (1, 2, 8, 11):
        lines = rng.integers(0, 2 * sets * ways, 300).tolist()
        cache = Cache(sets * ways * 64, ways, 64)
        addresses = [64 * line + int(rng.integers(64)) for line in lines]
        assert trace(cache, addresses) == least_recently_used(sets, ways, lines)


def line_place(device, address, image=False):
    """(channel, bank, row) of a byte address, in an image or in global memory."""
    return dram_location((address >> 6) + (0 if image else GLOBAL), address_bits(device))


def test_address_bits_choose_channel_and_bank():
    assert line_place(HD5870, 0x300) == (3, 0, 0)  # bits 10:8
    assert line_place(HD5870, 0x2800) == (0, 5, 0)  # bits 14:11
    assert line_place(HD5870, 1 << 18) == (0, 0, 1)  # a row of 2 KB on each of 128 banks: 256 KB


class Dram:
    """A device's DRAM, which nothing else reads."""

    begin = staticmethod(
        njit(lambda *state: read_dram(*state))
    )  # the unit's own is for native code alone

    def __init__(self, device):
        self.device = device
        self.memory = make_chip(pack([WavefrontPath(np.arange(1), ())]), device, 1).memory

    def read(self, address, clock=0.0, image=False):
        """The clock at which the line's last byte has left its channel."""
        at = line_place(self.device, address, image)
        return line_clocks(self.device) + self.begin(self.memory, clock, *at)


def read_clocks(stride, **more):
    dram = Dram(replace(HD5870, dram_row_clocks=0))
    return max(dram.read(n * stride, **more) for n in range(8))


def test_a_stride_of_2_kb_keeps_to_one_channel():
    line = line_clocks(HD5870)
    assert line == pytest.approx(3.3730, abs=1e-4)  # 64 bytes; a channel has 18.97 a clock
    assert read_clocks(256) == pytest.approx(line)  # eight channels at once
    assert read_clocks(2048) == pytest.approx(8 * line)  # one after another
    assert read_clocks(1024) == pytest.approx(4 * line)  # two channels


def test_images_are_spread_over_the_channels():
    assert {line_place(HD5870, 2048 * n, image=True)[0] for n in range(8)} == set(range(8))
    assert read_clocks(2048, image=True) == pytest.approx(line_clocks(HD5870))


def test_another_row_of_a_bank_costs_its_opening():
    dram, line = Dram(HD5870), line_clocks(HD5870)
    assert dram.read(0) == pytest.approx(34 + line)  # opens row 0
    assert dram.read(64) == pytest.approx(34 + 2 * line)  # the same row
    assert dram.read(1 << 18) == pytest.approx(
        2 * 34 + 3 * line
    )  # row 1 of the same bank, after the transfer
    assert dram.read(1 << 11) == pytest.approx(
        2 * 34 + 4 * line
    )  # another bank opened its row meanwhile
    assert dram.memory.row_waits[0] == 2 * 34, "in which the channel has sent nothing"


@pytest.mark.parametrize(
    "addresses, clocks",
    [
        (4 * LANES, 4),  # consecutive words: 16 a clock
        (0 * LANES, 4),  # all the same word: broadcast
        (128 * LANES, 64),  # all in bank 0, all different: the worst case
        (8 * LANES, 4),  # every second bank: 16 of 32
        (16 * LANES, 8),  # 8 banks for 16 work-items
        (4 * (LANES % 2) * 32, 8),  # two words of one bank
        (8 * LANES + WORDS[:2], 4),  # float2: all 32 banks, conflict-free (APP guide 4.7)
        (16 * LANES + WORDS, 16),  # float4: half the banks at a time, half the rate
    ],
)
def test_lds_clocks(addresses, clocks):
    assert clocks_of(addresses) == clocks


def test_lds_leaves_out_inactive_work_items():
    active = (LANES < 16)[np.newaxis]
    assert access_clocks((128 * LANES).reshape(1, 1, 64), HD5870, active)[0] == 16


def test_another_number_of_banks_changes_the_conflicts():
    assert clocks_of(4 * LANES, replace(HD5870, lds_banks=8)) == 8


@pytest.mark.nightly
def test_a_buffer_sgemm_collapses_at_powers_of_two():
    """Rows of A and B 16 KB apart meet one channel and two of its banks (APP 4.6.2); 65 bursts
    apart, all in turn.
    """
    kept, spread = (simulate("sgemm_nn_buffer", n, m=512, k=n).gflops for n in (4096, 4160))
    assert 3 < spread / kept < 8
    cached = [simulate("sgemm_nn", n, m=512, k=n).gflops for n in (4096, 4160)]
    assert cached[0] > 0.8 * cached[1]  # textures are spread, and cached


@seeded(5)
def test_accesses_that_request_the_same_take_the_same_clocks(seed):
    """Each access of many, in any order and with any mask, takes the clocks that it takes alone."""
    rng = np.random.default_rng(seed)
    patterns = 4 * rng.integers(0, 2048, (4, 2, 64))
    masks = rng.random((3, 64)) < [[0.5], [1.0], [0.0]]
    addresses = patterns[rng.integers(0, 4, 60)]
    active = masks[rng.integers(0, 3, 60)]

    together = access_clocks(addresses, HD5870, active)

    alone = [access_clocks(a[None], HD5870, on[None])[0] for a, on in zip(addresses, active)]
    assert together.tolist() == alone
