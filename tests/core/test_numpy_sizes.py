"""Sizes in integers of numpy, which wrap, count like those of Python, wherever sizes are taken."""

import warnings
from itertools import product

import numpy as np
import pytest
from conftest import ROWS, by_day

import cypresskit as ck
from cypresskit import host
from cypresskit.kernels import generated
from cypresskit.machine.record import Recorder

KINDS = (np.int8, np.uint64)
TN = ck.kernels["sgemm_tn"]
ADD = ck.assemble("il_cs_2_0\nmov g[vAbsTidFlat.x], vAbsTidFlat\nend\n")


def launch(n):
    memory = np.zeros((64, 4), np.uint32)
    counts = ck.launch(ADD, (n // n) * 64, global_memory=memory)
    return memory.tolist(), counts


def record(item):
    recorder = Recorder((item, item))
    out = np.zeros((128, 128), np.float32)
    text = "il_ps_2_0\ndcl_output_generic o0\nmov o0, vWinCoord0.x\nend\n"
    ck.launch(ck.assemble(text), (128, 128), outputs={0: out}, observers=[recorder])
    return recorder.recording.item


NAMES = globals() | vars(host) | vars(host.blocked) | vars(generated)


@pytest.mark.parametrize(("takes", "kind"), by_day(product(ROWS["sizes"], KINDS), 15))
def test_a_size_counts_whatever_integer_holds_it(takes, kind):
    call = eval(f"lambda n, k: {takes}", NAMES)
    plain = call(100, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call(kind(100), kind(8)) == plain
    assert call(100, 8) == plain  # what is cached
