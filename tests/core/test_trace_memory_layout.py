"""The addresses that are timed are those of the interpreter's events, and everything it does
is timed.
"""

from collections import defaultdict

import numpy as np
from kernel_texts import TEXTURE, pixel
from products import random_matrices
from sampling import each_of_six, from_rows

import cypresskit as ck
from cypresskit.chip.units.dram import GLOBAL
from cypresskit.kernels import KERNELS
from cypresskit.machine import Observer, interpreter, prepare, shape
from cypresskit.timing import simulate
from cypresskit.trace import memory_layout, tracing

LINE = ck.HD5870.line_bytes
ROW = 1 << 32  # bytes from row to row in what is expected: more than any row has


class Touched(Observer):
    """The bytes that the 64 lanes of a wavefront touch in each access (-1: none), by memory: a
    resource, or "g".
    """

    def start(self, launch):
        self.launch, self.found = launch, defaultdict(set)
        first, second, self.there = shape.lanes(launch.shape, np.arange(launch.shape.wavefronts))
        self.first, self.second = first, second
        self.items = np.where(self.there, shape.number(launch.shape, first, second), 0)

    def add(self, memory, byte, active):
        rows = np.where(active & self.there, byte, -1).reshape(-1, 64)
        self.found[memory] |= {tuple(row) for row in rows.tolist() if max(row) >= 0}

    def fetch(self, event):
        texture = self.launch.textures[event.resource]
        byte = event.y.astype(np.int64) * ROW + event.x * texture.texel
        self.add(event.resource, byte[self.items], (event.active & event.inside)[self.items])

    def memory(self, event):
        if event.space == "global":
            self.add("g", 16 * event.element[self.items], event.active[self.items])

    def wrote(self, event):
        if event.register.kind == "o":
            output = self.launch.outputs[event.register.index]
            byte = self.second.astype(np.int64) * ROW + self.first * output.texel
            self.add("g", byte, event.active[self.items])


def collect_timed(program, arguments, monkeypatch):
    """What ``Touched`` finds, as the timing asks for it: loops iteration by iteration, nothing of
    the same line put together.
    """
    calls = defaultdict(set)
    made = memory_layout.address_stream

    def stream(entries, active, geometry, **more):
        rows = np.where(active, entries, -1)
        calls[more["base"]] |= {tuple(row) for row in rows.tolist() if max(row) >= 0}
        return made(entries, active, geometry, **more)

    monkeypatch.setattr(memory_layout, "address_stream", stream)
    monkeypatch.setattr(tracing, "can_join", lambda code, start: False)
    launch = prepare(program, **arguments)
    simulate(launch.shape, exact=True)
    memory_of = dict(zip(sorted(base for base in calls if base != GLOBAL), sorted(launch.textures)))
    return {memory_of.get(base, "g"): rows for base, rows in calls.items() if rows}


def check_bytes(program, arguments, monkeypatch):
    """Check that what is touched is timed: in the same accesses, row behind row, each from the
    first whole line on.
    """
    observer = Touched()
    interpreter.run(prepare(program, **arguments), (observer,))
    timed = collect_timed(program, arguments, monkeypatch)
    assert timed.keys() == {memory for memory, rows in observer.found.items() if rows}
    for memory, rows in timed.items():
        touched = observer.found[memory]
        in_order = [sorted({byte for row in some for byte in row}) for some in (touched, rows)]
        place = dict(zip(*in_order))
        assert {tuple(map(place.get, row)) for row in touched} == rows
        place.pop(-1, None)
        starts = {byte // ROW: at - byte % ROW for byte, at in place.items()}
        ends = {byte // ROW: at for byte, at in place.items()}
        assert all(at == starts[byte // ROW] + byte % ROW for byte, at in place.items())
        assert starts == {y: y and (ends[y - 1] // LINE + 1) * LINE for y in starts}


@each_of_six
def test_a_kernel_of_each_kind_touches_the_bytes_that_are_timed(name, monkeypatch):
    kernel = KERNELS[name]
    matrices = random_matrices(kernel, 37, 21, 11, np.random.default_rng(5))
    arguments = kernel.arguments(*matrices, 2.0, 0.5)
    check_bytes(kernel.program, arguments, monkeypatch)


@from_rows
def test_a_fetch_at_an_odd_coordinate_matches_the_machine(literal, monkeypatch):
    fetch = "sample_resource(0)_sampler(0) r1, l0.xy00"
    program = pixel(TEXTURE.format(0), f"dcl_literal l0, {literal}, 0, 0, 0", fetch, "mov o0, r1")
    arguments = {
        "domain": (8, 8),
        "inputs": {0: np.ones((8, 8, 4), np.float32)},
        "outputs": {0: np.zeros((8, 8, 4), np.float32)},
    }
    check_bytes(program, arguments, monkeypatch)
