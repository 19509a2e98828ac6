"""What the pictures show that only this page has: the lessons' pictures show more than a step's
heading says. ``drawn.html`` draws them. All is from recordings of simulated runs.
"""

from typing import Any, NamedTuple

import numpy as np

from cypresskit.compiler import compile
from cypresskit.draw.block import find_block
from cypresskit.draw.chip_scene import Scene
from cypresskit.kernels import Kernel
from cypresskit.kernels.samples import record_work_item
from cypresskit.tables import quantity
from tools.climb_page.kernels import LAST, kernel, report

WORDS = 8  # fetched numbers that are shown of each kernel
MAP_N = 2048  # the largest product in whose map of C each wavefront has its own tile


class Panel(NamedTuple):
    """A part of a picture."""

    title: str
    said: str  #: beside it, or below
    shown: Any  #: what ``drawn.html`` draws


def reuse() -> list[Panel]:
    """Step 1: a kernel without reuse, and the one with blocks of 4 x 4. Each shows its first
    fetched numbers, and the two of each product: matrix, row and column.
    """
    panels = []
    for name, title in (("00", "1 x 1"), ("01b", "4 x 4")):
        made = products(name)
        numbers = list(dict.fromkeys(word for words in made for word in words))
        numbers.sort(key=lambda word: word[0])  # A above B
        said = f"{quantity(len(numbers), 'number')} fetched, {quantity(len(made), 'product')}"
        panels.append(Panel(title, said, (numbers, made)))
    return panels


def products(name: str) -> list[tuple[tuple, tuple]]:
    """Return the first products of a work-item: those of its first fetched numbers."""
    seen: set[tuple] = set()
    found = []
    block = find_block(record_work_item(kernel(name)))
    for update in block.updates:
        i, k = update.from_a if block.k_axis[0] else reversed(update.from_a)  # of A, as in C = A B
        words = ("a", i, k), ("b", *update.from_b)
        seen.update(words)
        if len(seen) > WORDS:
            break
        found.append(words)
    return found


def units() -> list[Panel]:
    """Step 4: for each block, the clocks that a wavefront needs of each unit per value of k, and
    their share of the most.
    """
    needed = {name: clocks(name) for name in ("00", "01a", "01b", "02")}
    most = max(max(of.values()) for of in needed.values())
    panels = []
    for name, of in needed.items():
        rows, columns = kernel(name).block
        bars = {unit: (number, number / most) for unit, number in of.items()}
        said = f"{max(of.values()) / (rows * columns):.2g} clocks a product"
        panels.append(Panel(f"{rows} x {columns}", said, bars))
    return panels


def clocks(name: str) -> dict[str, float]:
    """Return the clocks that a wavefront of a kernel needs of each unit, per value of k."""
    held = report(name)
    assert held.size
    share = held.clocks * held.device.simd_engines / held.wavefronts / held.size[2]
    return {unit: held.busy[unit] * share for unit in ("texture", "ALU")}


def bundles(held: Kernel, holds: dict[str, str]) -> list[dict[int, tuple[str, str]]]:
    """Return the bundles of a kernel's loop: by its slot, of each operation the register that holds
    its texel of B, or "" if it is no product; and what a product adds to, or the operation's name.
    ``holds`` has the matrix that each register holds.
    """
    code = compile(held.program)
    rows = []
    for bundle in (each for clause in code.main_loop for each in clause.bundles):
        row = {}
        for operation in bundle.operations:
            words = code.program.lines[operation.line - 1].split(";")[0].replace(",", "").split()
            texel, target = "", words[0].partition("_")[0]
            if target == "mad":
                (texel,) = (word for word in words if holds.get(word) == "b")
                target = f"{words[1]}.{'xyzw'[operation.channel]}"
            row[operation.slot] = texel, target
        rows.append(row)
    return rows


def three() -> list[Panel]:
    """Step 10: the maps of C of three kernels at ``MAP_N`` until the fastest is done. Each is its
    size, and its tiles by the percent of that time, as an SVG path.
    """
    titles = {"nn": "A as it is", "lds": "A through the LDS", LAST: "A transposed"}
    scenes = {title: Scene(report(name, MAP_N), 0, False) for name, title in titles.items()}
    last = min(scene.clocks[-1] for scene in scenes.values())
    panels = []
    for title, scene in scenes.items():
        times = np.ceil(100 * scene.wavefronts[:, 2] / last).astype(int)
        paths = {
            time: tiles(np.flatnonzero(times == time), scene.across)
            for time in np.unique(times[times <= 100])
        }
        said = f"{scene.report.gflops:,.0f} Gflop/s"
        panels.append(Panel(title, said, (scene.across, scene.down, paths)))
    return panels


def tiles(numbers: np.ndarray, across: int) -> str:
    """Return tiles of a map as an SVG path."""
    return "".join(f"M{n % across} {n // across + 0.5}h1" for n in numbers)


DRAWN = {made.__name__: made for made in (reuse, units, three)}
