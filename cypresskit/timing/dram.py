"""Where a byte lies in DRAM, and when its line comes.

Address bits choose channel, bank and row (APP guide 4.6.2): on the HD 5870 the channel is bits 10:8, the bank bits
14:11. Images are spread: channel and bank are folded from all higher bits, as tiled surfaces are; global memory is not,
so that a stride of 2 KB keeps to one channel. A channel sends one line after another; a bank has one row open and needs
``row_clocks`` to open another. Left out: refresh, and the cost of turning from reads to writes (it is
in ``dram_efficiency``).
"""

import numpy as np

from cypresskit.devices import Device
from cypresskit.timing.cache import fold, native

GLOBAL = 1 << 34  # first line number of global memory: lines from here on are not folded


@native()
def place(line, line_bits, burst_bits, channel_bits, bank_bits, row_bits):
    """(channel, bank, row) of a line; all arguments after it are base-2 logarithms of bytes or counts."""
    burst = (line if line < GLOBAL else line - GLOBAL) >> (burst_bits - line_bits)
    if line >= GLOBAL:
        channel, bank = burst & ((1 << channel_bits) - 1), (burst >> channel_bits) & ((1 << bank_bits) - 1)
    else:
        channel, bank = fold(burst, channel_bits), fold(burst >> channel_bits, bank_bits)
    return channel, bank, burst >> (channel_bits + bank_bits + row_bits - burst_bits)


@native()
def transfer(clock, clocks, channel, bank, row, channel_free, bank_free, bank_row, row_clocks):
    """The clock at which a transfer of ``clocks`` that is asked for at ``clock`` begins; keeps channel and bank."""
    start = max(clock, channel_free[channel])
    if bank_row[channel, bank] != row:
        bank_row[channel, bank] = row
        start = max(start, max(clock, bank_free[channel, bank]) + row_clocks)
    channel_free[channel] = start + clocks
    bank_free[channel, bank] = start + clocks
    return start


@native()
def drain(clock, channel, channel_free, owed):
    """Let the channel send stores that it owes in the time in which nobody wanted to read, up to ``clock``."""
    if channel_free[channel] < clock:
        sent = min(owed[channel], clock - channel_free[channel])
        owed[channel] -= sent
        channel_free[channel] = clock if owed[channel] == 0 else channel_free[channel] + sent


def line_place(device: Device, address: int, image: bool = False) -> tuple[int, int, int]:
    """(channel, bank, row) of a byte address of ``device``, in an image or in global memory."""
    line = (address >> device.line_bytes.bit_length() - 1) + (0 if image else GLOBAL)
    return place(line, *geometry(device))


def geometry(device: Device) -> tuple[int, int, int, int, int]:
    """The logarithms that ``place`` takes."""
    sizes = (device.line_bytes, device.channel_bytes, device.memory_channels, device.memory_banks)
    line, burst, channels, banks = (size.bit_length() - 1 for size in sizes)
    return line, burst, channels, banks, device.dram_row_bytes.bit_length() - 1


def line_clocks(device: Device) -> float:
    """Clocks for which a line keeps its channel."""
    return device.line_bytes / (device.dram_bytes_clock * device.dram_efficiency)


class Dram:
    """A device's DRAM by itself: for tests and for anyone who wants to see a stride's cost."""

    def __init__(self, device: Device):
        self.device = device
        self.channel_free = np.zeros(device.memory_channels)
        self.bank_free = np.zeros((device.memory_channels, device.memory_banks))
        self.bank_row = np.full((device.memory_channels, device.memory_banks), -1, np.int64)

    def read(self, address: int, clock: float = 0.0, image: bool = False) -> float:
        """The clock at which the line's last byte has left its channel."""
        at = line_place(self.device, address, image)
        clocks, row_clocks = line_clocks(self.device), self.device.dram_row_clocks
        return clocks + transfer(clock, clocks, *at, self.channel_free, self.bank_free, self.bank_row, row_clocks)
