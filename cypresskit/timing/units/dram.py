"""Where a byte lies in DRAM, and when its line comes.

Address bits choose channel, bank and row (APP guide 4.6.2): on the HD 5870 the channel is bits
10:8, the bank bits 14:11. Images are spread: channel and bank are folded from all higher bits, as
tiled surfaces are; global memory is not, so that a stride of 2 KB keeps to one channel. A channel
sends one line after another; a bank has one row open and needs ``dram_row_clocks`` to open another.
Left out: refresh, and the cost of turning from reads to writes (it is in ``dram_efficiency``).
"""

from typing import NamedTuple

from cypresskit.timing.board import Board
from cypresskit.timing.native import native, part
from cypresskit.timing.units.cache import fold

GLOBAL = 1 << 34  # first line number of global memory: lines from here on are not folded


class Geometry(NamedTuple):
    """Logarithms, to base 2, of bytes (a line, a burst to one channel, a row) and counts (channels,
    banks).
    """

    line_bits: int
    burst_bits: int
    channel_bits: int
    bank_bits: int
    row_bits: int


@native
def place(line, geometry):
    """(channel, bank, row) of a line."""
    channel_bits, bank_bits = geometry.channel_bits, geometry.bank_bits
    number = line if line < GLOBAL else line - GLOBAL
    burst = number >> (geometry.burst_bits - geometry.line_bits)
    if line >= GLOBAL:
        channel = burst & ((1 << channel_bits) - 1)
        bank = (burst >> channel_bits) & ((1 << bank_bits) - 1)
    else:
        channel = fold(burst, channel_bits)
        bank = fold(burst >> channel_bits, bank_bits)
    row = burst >> (channel_bits + bank_bits + geometry.row_bits - geometry.burst_bits)
    return channel, bank, row


@part
def read_dram(chip, clock, channel, bank, row):
    """The clock at which the transfer of a line that is asked for at ``clock`` begins. Keeps
    channel and bank.
    """
    clocks, memory, tally = chip.clocks, chip.memory, chip.tally
    send_pending(chip, clock, channel)
    start = max(clock, memory.channel_free[channel])
    if memory.bank_row[channel, bank] != row:
        memory.bank_row[channel, bank] = row
        opened = max(clock, memory.bank_free[channel, bank]) + clocks.dram_row
        tally.dram_rows[channel] += max(opened - start, 0.0)
        start = max(start, opened)
    tally.dram[channel] += clocks.dram_line
    memory.channel_free[channel] = start + clocks.dram_line
    memory.bank_free[channel, bank] = start + clocks.dram_line
    return start


@part
def send_pending(chip, clock, channel):
    """Let the channel send pending stores in the time in which nobody wanted to read, up to
    ``clock``.
    """
    memory = chip.memory
    free = memory.channel_free[channel]
    if free < clock:
        sent = min(memory.pending[channel], clock - free)
        memory.pending[channel] -= sent
        memory.channel_free[channel] = clock if memory.pending[channel] == 0 else free + sent


def geometry(device: Board) -> Geometry:
    """The geometry of a device's memory."""
    sizes = (device.line_bytes, device.channel_bytes, device.memory_channels, device.memory_banks)
    return Geometry(*(size.bit_length() - 1 for size in (*sizes, device.dram_row_bytes)))


def line_clocks(device: Board) -> float:
    """Clocks for which what is sent at a time keeps its channel."""
    return (
        device.dram_lines * device.line_bytes / (device.dram_bytes_clock * device.dram_efficiency)
    )
