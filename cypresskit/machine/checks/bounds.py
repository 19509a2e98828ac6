"""Find fetches, loads and stores outside of their texture, global memory or LDS, and unaligned LDS
addresses.

The advice depends on the address: a negative one, the bits of a float, exchanged coordinates.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cypresskit.il.bits import ALL
from cypresskit.il.dataflow import components, read_positions
from cypresskit.machine.addressing import NOWHERE
from cypresskit.machine.checks.findings import Check, Naming
from cypresskit.machine.observer import FetchEvent, MemoryEvent, StepEvent

SUBNORMAL = np.uint32((1 << 24) - 1)  # subnormal words, shifted left and less 1, are below


# What a work-item does, advice, and the element that it accesses
Described = tuple[str, str, str]


class MemoryCheck(Check):
    """Reports accesses that are out of range, negative or unaligned, and whole numbers as
    coordinates of ``sample``.
    """

    def __init__(self, naming: Naming):
        super().__init__(naming)
        # By instruction: the components of a register that are its coordinates
        self.sampled = {
            at: components(i.sources[0], read_positions(self.program, i, 0))
            for at, i in enumerate(self.program.body)
            if i.op.name == "sample" and i.sources[0].register.kind == "r"
        }

    def _report(
        self,
        kind: str,
        event: Any,
        wrong: np.ndarray,
        describe: Callable[[Any, int], Described],
    ) -> None:
        """Report the active work-items of ``wrong``; ``describe`` describes the first one."""
        at = event.at
        bad = np.flatnonzero(wrong & event.active)
        if len(bad):
            does, advice, element = describe(event, item := int(bad[0]))
            message = f"{self.naming.item(item)} {does}"
            is_global = isinstance(event, MemoryEvent) and event.space == "global"
            word = "g" if is_global else str(self.program.body[at].sources[0].register)
            self.report(
                kind, at, message, advice, count=len(bad), word=word, item=item, element=element
            )

    def step(self, event: StepEvent) -> None:
        if event.at not in self.sampled:
            return
        register = event.instruction.sources[0].register
        rows = (
            event.registers[register.index][self.sampled[event.at]] << np.uint32(1)
        ) - np.uint32(1)
        if (tiny := rows < SUBNORMAL).any():
            does = f"samples at {register}, which holds an integer: read as a float, that is 0"
            advice = "`sample` takes floats: leave out the `ftoi`, or convert it with `itof`."
            name = str(register)
            wrong = np.logical_or.reduce(tiny)
            self._report("whole coordinate", event, wrong, lambda *_: (does, advice, name))

    def fetch(self, event: FetchEvent) -> None:
        if not event.inside.all():
            self._report("fetch outside", event, ~event.inside, self._fetched)

    def _fetched(self, event: FetchEvent, item: int) -> Described:
        x, y = int(event.x[item]), int(event.y[item])
        element = self.naming.texel(event.resource, x, y)
        does = f"fetches {element}, but {self.naming.extent(event.resource)}; it gets 0"
        return does, self._fetch_advice(event, x, y), element

    def _fetch_advice(self, event: FetchEvent, x: int, y: int) -> str:
        surface = self.launch.textures[event.resource]
        width, height = surface.width, surface.height
        across, down = event.x[event.active], event.y[event.active]
        if NOWHERE in (abs(x), abs(y)):
            return (
                "The coordinate is NaN or huge: look where its register was computed (an"
                " uninitialised value, a division by 0?)."
            )
        swapped = (
            down.min() >= 0 and across.min() >= 0 and down.max() < width and across.max() < height
        )
        if swapped and (across.max() >= 1.5 * width or down.max() >= 1.5 * height):
            return (
                "Are x (the column) and y (the row) swapped? The swizzle `.yx00` would"
                " exchange them."
            )
        if across.min() < 0 or down.min() < 0:
            return "A coordinate is negative: look at what is subtracted, and at `_aoffimmi`."
        if surface.texel > 4 and y < height and width < x < 4 * width:
            return "x counts texels, each of up to four numbers: divide the column's number by 4."
        axis = "The row, y," if y >= height else "The column, x,"
        return f"{axis} is too large: which line makes it so, or is the domain larger than C?"

    def memory(self, event: MemoryEvent) -> None:
        if event.space == "lds" and (odd := event.element & 3 != 0).any():
            self._report("unaligned", event, odd, self._unaligned)
        if not event.inside.all():
            kind = "store outside" if event.store else "load outside"
            self._report(kind, event, ~event.inside, self._outside)

    def _outside(self, event: MemoryEvent, item: int) -> Described:
        place = int(event.element[item])
        if event.space == "lds":
            size = self.program.lds[event.array]
            if place >= 1 << 31:  # the chip takes the address for positive, a reader doesn't
                place -= 1 << 32
            element = self.naming.lds(event.array, place)
            has = f"byte {place}, but LDS array {event.array} has {size} bytes"
            advice = (
                "LDS addresses count bytes (a number is 4, four are 16): check the shift, and the"
                " size declared."
            )
        else:
            element = self.naming.element(place)
            has = (
                f"element {place}, but global memory has {len(self.launch.memory)} elements of 128"
                " bits"
            )
            advice = (
                "Check the row stride (in 128-bit elements, not numbers), and that the domain fits"
                " the array."
            )
        if place == -1:
            advice = "A test such as `ge` gives -1 if it is true: is that still in the register?"
        elif place < 0:
            advice = (
                "The address is negative: look at what is subtracted, and for a float that wasn't"
                " converted."
            )
        verb, gets = ("stores to", "nothing is stored") if event.store else ("loads", "it gets 0")
        if float_advice := _float_advice(place):
            advice = float_advice
            if event.space == "lds" and event.store:
                advice = f"The address comes first, then the value. {float_advice}"
        return f"{verb} {element} ({has}); {gets}", advice, element

    def _unaligned(self, event: MemoryEvent, item: int) -> Described:
        does = (
            f"accesses byte {event.element[item]} of LDS {event.array}; the chip drops the two low"
            " bits"
        )
        advice = (
            "An LDS address counts bytes and must be a multiple of 4: shift the word's number left"
            " by 2."
        )
        return does, advice, self.naming.lds(event.array, int(event.element[item]))


def _float_advice(place: int) -> str:
    """Return advice if an address or coordinate is the bits of a float; else ""."""
    value = float(np.array(place & ALL, np.uint32).view(np.float32))
    if -(2**31) <= place < 2**32 and 2.0**-20 < abs(value) < 2.0**40:
        return f"These are the bits of a float, {value:g}: convert it with `ftoi`."
    return ""
