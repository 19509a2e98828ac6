"""Sizes in integers of numpy, which wrap, count like those of Python, wherever sizes are taken; for
the host's functions see test_bad_input.
"""

import warnings
from itertools import product

import numpy as np
from sampling import drawn_by_day

import cypresskit as ck
from cypresskit.kernels.generated import block_kernel, generate_kernel
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


#: What takes sizes: a function of two of them, which are 100 and 8.
TAKES = {
    "simulate": lambda n, k: str(ck.simulate(TN, n, m=n, k=k)),
    "simulate_count": lambda n, k: ck.simulate("sgemm_packed", k, k=k, m=k, count=n).flops,
    "shape": lambda n, k: TN.shape(n, n, k).domain,
    "padded": lambda n, k: TN.convention.padded(n, n, k),
    "block_kernel": lambda n, k: block_kernel(k, k, k).text,
    "generate_kernel": lambda n, k: generate_kernel(k, k, k).text,
    "trace_element": lambda n, k: str(ck.trace_element(TN, k, k, size=(n, n, k))),
    "launch": lambda n, k: launch(n),
    "recorder": lambda n, k: record(n),
}


@drawn_by_day(("name", "kind"), product(TAKES, KINDS), 8)
def test_a_size_counts_whatever_integer_holds_it(name, kind):
    call = TAKES[name]
    plain = call(100, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call(kind(100), kind(8)) == plain
    assert call(100, 8) == plain  # what is cached
