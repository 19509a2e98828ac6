"""Find fetches, loads and stores outside of their texture, global memory or LDS, and unaligned LDS
addresses.

The advice depends on the address: a negative one, the bits of a float, an offset too large.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cypresskit.il.bits import ALL
from cypresskit.il.dataflow import components, defines, read_positions
from cypresskit.machine.addressing import NOWHERE
from cypresskit.machine.checks.findings import (
    FETCH_OUTSIDE,
    LOAD_OUTSIDE,
    STORE_OUTSIDE,
    UNALIGNED,
    WHOLE_COORDINATE,
    Check,
    ElementName,
    Naming,
)
from cypresskit.machine.observer import FetchEvent, MemoryEvent, StepEvent
from cypresskit.tables import named_lines

SUBNORMAL = np.uint32((1 << 24) - 1)  # subnormal words, shifted left and less 1, are below


# What a work-item does, advice, and the element that it accesses
Described = tuple[str, str, ElementName]


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
                kind,
                at,
                message,
                advice,
                count=len(bad),
                word=word,
                item=item,
                element=element,
                is_address=kind in (FETCH_OUTSIDE, LOAD_OUTSIDE, STORE_OUTSIDE),
            )

    def step(self, event: StepEvent) -> None:
        if event.at not in self.sampled:
            return
        register = event.instruction.sources[0].register
        rows = (
            event.registers[register.index][self.sampled[event.at]] << np.uint32(1)
        ) - np.uint32(1)
        if (tiny := rows < SUBNORMAL).any():
            self._report(WHOLE_COORDINATE, event, np.logical_or.reduce(tiny), self._whole)

    def _whole(self, event: StepEvent, _: int) -> Described:
        register = event.instruction.sources[0].register
        read = {(register.index, c) for c in self.sampled[event.at]}
        ends = (end for at, end in self.program.matching.items() if at < event.at < end)
        before = self.program.body[: max(ends, default=event.at)]  # with the rest of its loop
        made = [i.line for i in before if i.op.result in "iu" and read & {*defines(i)}]
        see = f" (see {named_lines(made)})" if made else ""
        does = f"samples at {register}, which holds an integer{see}: read as a float, that is 0"
        advice = "`sample` takes floats: compute with floats, or convert by `itof`."
        return does, advice, ElementName(str(register))

    def fetch(self, event: FetchEvent) -> None:
        if not event.inside.all():
            self._report(FETCH_OUTSIDE, event, ~event.inside, self._fetched)

    def _fetched(self, event: FetchEvent, item: int) -> Described:
        x, y = int(event.x[item]), int(event.y[item])
        element = self.naming.texel(event.resource, x, y)
        does = f"fetches {element}, but {self.naming.extent(event.resource)}; it gets 0"
        return does, self._fetch_advice(event, x, y), element

    def _fetch_advice(self, event: FetchEvent, x: int, y: int) -> str:
        if NOWHERE in (abs(x), abs(y)):
            return (
                "The coordinate is NaN or huge: look where its register was computed (an"
                " uninitialized value, a division by 0?)."
            )
        surface = self.launch.textures[event.resource]
        across, down, _ = self.program.body[event.at].controls.aoffimmi
        numbers = self.naming.numbers(event.resource)
        texels = f" in texels of {numbers} numbers," if numbers > 1 else ""
        name, place, size, offset = f"column, x,{texels}", x, surface.width, across
        if not 0 <= y < surface.height:
            name, place, size, offset = "row, y,", y, surface.height, down
        what = "negative" if place < 0 else "too large"
        if 0 <= place - offset < size:
            return f"With its offset, the {name} is {what}."
        return f"The {name} is {what}."

    def memory(self, event: MemoryEvent) -> None:
        if event.space == "lds" and (odd := event.element & 3 != 0).any():
            self._report(UNALIGNED, event, odd, self._unaligned)
        if not event.inside.all():
            kind = STORE_OUTSIDE if event.store else LOAD_OUTSIDE
            self._report(kind, event, ~event.inside, self._outside)

    def _outside(self, event: MemoryEvent, item: int) -> Described:
        place = int(event.element[item])
        if event.space == "lds":
            size = self.program.lds[event.array]
            if place >= 1 << 31:  # the chip takes the address for positive, a reader doesn't
                place -= 1 << 32
            element = self.naming.lds(event.array, place)
            has = f"byte {place}, but LDS array {event.array} has {size} bytes"
            declared = (i for i in self.program.declarations if i.op.name == "dcl_lds")
            line = next(i.line for i in declared if i.controls.id == event.array)
            advice = (
                f"LDS addresses count bytes (a number is 4, four are 16), and line {line} declares"
                f" {size}."
            )
        else:
            element = self.naming.element(place)
            has = (
                f"element {place}, but global memory has {len(self.launch.memory)} elements of 128"
                " bits"
            )
            advice = "Places in g[] count elements of 128 bits: four numbers, or two doubles."
        if place == -1:
            advice = "A test such as `ge` gives -1 if it is true: is that still in the register?"
        elif place < 0:
            advice = (
                "The address is negative: look at what is subtracted, and for a float that wasn't"
                " converted."
            )
        verb, gets = ("stores to", "nothing is stored") if event.store else ("loads", "it gets 0")
        if is_float := _as_float(place):
            advice = f"{is_float}: is another number meant, or would `ftoi` convert it?"
            if event.space == "lds" and event.store:
                advice = f"The address comes first, then the value. {is_float}."
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


def _as_float(place: int) -> str:
    """Return which float's bits an address is; "" if it is a whole number."""
    value = float(np.array(place & ALL, np.uint32).view(np.float32))
    if -(2**31) <= place < 2**32 and 2.0**-20 < abs(value) < 2.0**40:
        return f"This address is the bits of a float, {value:g}"
    return ""
