"""DRAM: in which channel, bank and row a line is, and when it arrives.

Address bits choose channel, bank and row (APP guide 4.6.2): on the HD 5870, bits 10:8 are the
channel, bits 14:11 the bank. Textures are spread: channel and bank are folded from all higher bits,
as on tiled surfaces. Global memory isn't, so a stride of 2 KB stays in one channel. A channel sends
one line after another. A bank has one open row, and needs ``dram_row_clocks`` to open another. Not
modeled: refresh, and the cost of switching from reads to writes, which ``dram_efficiency``
includes.
"""

from typing import NamedTuple

from cypresskit.chip.native import native, part
from cypresskit.chip.units.cache import fold
from cypresskit.devices import Device

GLOBAL = 1 << 34  # first line number of global memory: lines from here on are not folded


class AddressBits(NamedTuple):
    """Sizes as logarithms to base 2.

    Attributes
    ----------
    line_bits, burst_bits, row_bits
        Bytes of a line, of a burst to one channel, and of a row.
    channel_bits, bank_bits
        Numbers of channels, and of banks per channel.
    """

    line_bits: int
    burst_bits: int
    channel_bits: int
    bank_bits: int
    row_bits: int


@native
def dram_location(line, address_bits):
    """Return channel, bank and row of a line."""
    channel_bits, bank_bits = address_bits.channel_bits, address_bits.bank_bits
    number = line if line < GLOBAL else line - GLOBAL
    burst = number >> (address_bits.burst_bits - address_bits.line_bits)
    if line >= GLOBAL:
        channel = burst & ((1 << channel_bits) - 1)
        bank = (burst >> channel_bits) & ((1 << bank_bits) - 1)
    else:
        channel = fold(burst, channel_bits)
        bank = fold(burst >> channel_bits, bank_bits)
    row = burst >> (channel_bits + bank_bits + address_bits.row_bits - address_bits.burst_bits)
    return channel, bank, row


@part
def read_dram(memory, clock, channel, bank, row):
    """Return when the transfer of a line that is requested at ``clock`` begins."""
    send_pending(memory, clock, channel)
    start = max(clock, memory.channel_free[channel])
    if memory.bank_row[channel, bank] != row:
        memory.bank_row[channel, bank] = row
        opened = max(clock, memory.bank_free[channel, bank]) + memory.row_clocks
        memory.row_waits[channel] += max(opened - start, 0.0)
        start = max(start, opened)
    memory.channel_busy[channel] += memory.line_clocks
    memory.channel_free[channel] = start + memory.line_clocks
    memory.bank_free[channel, bank] = start + memory.line_clocks
    return start


@part
def send_pending(memory, clock, channel):
    """Let a channel send pending stores in the time before ``clock`` in which it was idle."""
    free = memory.channel_free[channel]
    if free < clock:
        sent = min(memory.pending[channel], clock - free)
        memory.pending[channel] -= sent
        memory.channel_free[channel] = clock if memory.pending[channel] == 0 else free + sent


def address_bits(device: Device) -> AddressBits:
    """Return the address bits of a device's memory."""
    sizes = (device.line_bytes, device.channel_bytes, device.memory_channels, device.memory_banks)
    return AddressBits(*(size.bit_length() - 1 for size in (*sizes, device.dram_row_bytes)))


def line_clocks(device: Device) -> float:
    """Return for how many clocks a channel sends a line."""
    return device.line_bytes / (device.dram_bytes_clock * device.dram_efficiency)
