"""Sizes in integers of numpy, which wrap, count like those of Python, wherever sizes are taken."""

import warnings
from itertools import product

import numpy as np
from conftest import drawn_by_day

import cypresskit as ck
from cypresskit.host import transfer
from cypresskit.host.blocked import blocked_timeline, card_bytes, choose_block, largest_block
from cypresskit.host.machine import Machine
from cypresskit.host.pipeline import adapt_cpu_share
from cypresskit.host.rates import kernel_rate
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
    "machine": lambda n, k: repr(Machine(use_chips=k // k)),
    "card_bytes": lambda n, k: card_bytes(n, k),
    "largest_block": lambda n, k: largest_block(depth=n),
    "choose_block": lambda n, k: choose_block(n, n, k, Machine()),
    "blocked": lambda n, k: str(blocked_timeline(n, n, k, Machine(), block=n)),
    "pipeline": lambda n, k: str(adapt_cpu_share(n, n, k, Machine(), calls=k // 4)),
    "rate": lambda n, k: kernel_rate("dgemm_tn", n, n, k, ck.HD5870),
    "transfer": lambda n, k: transfer.transfer_seconds(n, n),
    "kernel_seconds": lambda n, k: transfer.kernel_seconds(n, n),
    "rate_with_transfers": lambda n, k: transfer.rate_with_transfers(n, n, n),
    "n_balance": lambda n, k: transfer.n_balance(n, n),
    "round_trip": lambda n, k: str(transfer.round_trip_timeline(n, n, n)),
}


@drawn_by_day(("name", "kind"), product(TAKES, KINDS), 15)
def test_a_size_counts_whatever_integer_holds_it(name, kind):
    call = TAKES[name]
    plain = call(100, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call(kind(100), kind(8)) == plain
    assert call(100, 8) == plain  # what is cached
