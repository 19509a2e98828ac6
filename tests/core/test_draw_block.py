"""The register block, found in a recorded run."""

import numpy as np
import pytest
from players import record
from sampling import SIX

import cypresskit as ck
from cypresskit.draw.block import elements, find_block


@pytest.mark.parametrize(
    "name, item, size, phases, k_axis",
    [("sgemm_tn", [2, 0], 8, 2, [0, 0]), ("sgemm_nn", [1, 1], 8, 4, [1, 0])],
)
def test_the_block_is_found_in_any_kernel(name, item, size, phases, k_axis):
    kernel, a, b, recording = record(name, tuple(item))
    block = find_block(recording)
    x, y = item
    assert block.rows == range(size * y, size * y + size) and block.columns == range(
        size * x, size * x + size
    )
    assert [*block.k_axis] == k_axis
    assert phases % block.phases == 0
    exact = (a.T if kernel.trans_a else a).astype(np.float64) @ b
    last = recording.registers(block.updates[-1].step)
    for (i, j), (register, c) in block.totals.items():
        value = last[register].view(kernel.dtype)[c]
        assert value == pytest.approx(exact[i, j], abs=1e-4)


@pytest.mark.parametrize("name", [name for name in SIX if ck.kernels[name].precision == "single"])
def test_a_register_holds_the_element_that_is_named(name):
    """Through copies and the LDS: the numbers are those of the matrices."""
    kernel = ck.kernels[name]
    rng = np.random.default_rng(list(name.encode()))
    rows, columns = kernel.convention.multiple
    shapes = kernel.convention.stored(rows, columns, 2 * kernel.k_step)
    a, b = (rng.standard_normal(shape).astype(kernel.dtype) for shape in shapes)
    arguments = kernel.arguments(a, b, None, 1, 0)
    recorder = ck.Recorder(0)
    ck.launch(kernel.program, **arguments, observers=[recorder])
    held = elements(recorder.recording)
    values = recorder.recording.bits.view(kernel.dtype)
    assert held.shape[:3] == values.shape
    for resource, texture in arguments["inputs"].items():
        is_there = held[..., 0] == resource
        _, row, column = held[is_there].T
        assert is_there.any() or resource == 2
        assert (values[is_there] == texture.reshape(len(texture), -1)[row, column]).all()
