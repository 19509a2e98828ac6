"""Bad input to the host's models: every argument of every public function, one clear error before anything runs."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

import cypresskit as ck
from cypresskit import host
from cypresskit.devices import HD5870, HD5970, XEON, device
from cypresskit.host import Machine, Matrices, Resource, Span, Task, Timeline, blocked, pipeline, rates, run
from cypresskit.host.blocked import card_bytes, choose_block

MACHINE, BUS = Machine(), {"bus": Resource("bus", 6.0, "bytes")}
COPY = run([Task("copy", "copy", "dma", {"bus": 6.0})], BUS)
A, B, C = np.ones((4, 5)), np.ones((5, 6)), np.ones((4, 6))

NO_NUMBER = [nan, inf, -1, None, "64", [4], True, 10**400]
WHOLE, POSITIVE, AMOUNT, SHARE = [*NO_NUMBER, 0, 1.5], [*NO_NUMBER, 0], NO_NUMBER, [*NO_NUMBER, -0.1, 1.01]
OBJECT = [None, 0, nan, "HD5970", [4]]
KERNEL = [0, nan, [4], "dgemm", "dgemm_nn", "dgemm_tt", "sgemm_packed", "sgemv_t", "ddgemm_tn_fma"]
MATRIX = [None, 0, [[1.0]], A.astype(int), A.astype(object), A.astype(np.float32), A[0], A[:3], ck.DD(A)]
REAL = [None, "2", [2.0], 1j]

SIZES = {"m": (64, WHOLE), "n": (64, WHOLE), "k": (64, WHOLE), "machine": (MACHINE, OBJECT)}
PIPELINE = SIZES | {
    "kernel": ("dgemm_tn", [*KERNEL, None]), "block": (64, [*WHOLE, 1 << 20]), "cpu_share": (0.1, SHARE),
    "matrices": (None, [0, nan, "C", (A, B, C), Matrices(A, B, C)]),
}  # fmt: skip
TRANSFER = {"n": (64, WHOLE), "bandwidth": (1e9, POSITIVE), "rate": (1e9, POSITIVE), "precision": ("double", OBJECT)}
HOST = {name: (getattr(XEON, name), POSITIVE[:-2]) for name in vars(XEON) if name != "name"}
TABLE = {  # function: argument: (a good value, bad ones)
    host.four_stage: PIPELINE,
    host.five_stage: PIPELINE,
    host.adaptive: SIZES | {"calls": (2, WHOLE), "pipeline": (host.five_stage, [None, 0, "five", len])},
    host.blocked_time: SIZES | {
        "kernel": ("dgemm_tn", [*KERNEL, None]), "block": (64, [b for b in WHOLE if b is not None] + [1920]),
        "overlap": (True, [0, 1.0, None, "no"]),
    },
    choose_block: SIZES | {"depth": (64, WHOLE), "itemsize": (8, WHOLE)},
    card_bytes: {"block": (64, WHOLE), "depth": (64, WHOLE), "itemsize": (8, WHOLE)},
    host.largest_block: {"device": (HD5870, OBJECT), "depth": (64, [*WHOLE, 1 << 30]), "itemsize": (8, WHOLE)},
    host.gemm_out_of_core: {
        "a": (A, MATRIX), "b": (B, MATRIX), "c": (C, MATRIX), "alpha": (1.0, REAL), "beta": (1.0, REAL),
        "kernel": (None, [*KERNEL, "sgemm_tn"]), "device": (HD5870, OBJECT), "depth": (64, WHOLE),
        "block": (64, [b for b in WHOLE if b is not None] + [1 << 20]),
    },
    Matrices: {"a": (A, MATRIX), "b": (B, MATRIX), "c": (C, MATRIX), "alpha": (1.0, REAL), "beta": (1.0, REAL)},
    Machine: {"device": (HD5970, OBJECT), "host": (XEON, OBJECT), "use_chips": (2, [0, -1, 3, 1.5, nan, "2", True])},
    lambda **more: replace(XEON, **more): HOST | {"cores": (12, [*HOST["cores"][1], 1.5])},
    rates.kernel_rate: {
        "kernel": ("dgemm_tn", [None, 0, nan, "dgemm"]), "m": (64, WHOLE), "n": (64, WHOLE), "k": (64, WHOLE),
        "device": (HD5970, OBJECT),
    },
    host.static_share: {"machine": (MACHINE, OBJECT)},
    host.measured_share: {"timeline": (COPY, OBJECT), "share": (0.5, SHARE)},
    host.transfer_seconds: {name: TRANSFER[name] for name in ("n", "bandwidth", "precision")},
    host.kernel_seconds: {name: TRANSFER[name] for name in ("n", "rate")},
    host.effective_rate: TRANSFER,
    host.balance: {name: TRANSFER[name] for name in ("bandwidth", "rate", "precision")},
    host.measured: TRANSFER,
    lambda capacity: Resource("bus", capacity, "bytes"): {"capacity": (1.0, POSITIVE)},
    lambda uses: run([Task("a", "a", "a", {"bus": uses})], BUS): {"uses": (1.0, [*AMOUNT, 0])},
    lambda name: run([Task("a", "a", "a", {name: 1})], BUS): {"name": ("bus", ["bux", None, 0])},
    lambda seconds: run([Task("a", "a", "a", {}, seconds=seconds)], BUS): {"seconds": (1.0, [*AMOUNT, 0])},
    lambda task: run([task], BUS): {"task": (Task("a", "a", "a", {"bus": 1}), OBJECT)},
    lambda flops: run([], BUS, flops): {"flops": (0.0, AMOUNT)},
    lambda moments: COPY.execute(moments): {"moments": (0.5, [[], [0.5, 0.5], -0.1, 1.1, [nan], ["0"]])},
    lambda device_: device(device_): {"device_": ("HD 5970", [None, 0, "HD9", [4]])},
}  # fmt: skip
CASES = [(function, argument) for function, arguments in TABLE.items() for argument in arguments]


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch):
    """Neither the timing model nor a product may be asked before the input has been found bad."""

    def ran(*_, **__):
        raise AssertionError("something ran")

    monkeypatch.setattr(rates, "_simulated", ran)
    for module in (blocked, pipeline):
        monkeypatch.setattr(module, "gemm", ran)


@pytest.mark.parametrize(("function", "argument"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_bad_values_are_told_before_anything_runs(function, argument):
    good = {name: value for name, (value, _) in TABLE[function].items()}
    for bad in TABLE[function][argument][1]:
        with pytest.raises((ValueError, TypeError, KeyError)) as error:
            function(**good | {argument: bad})
        text = str(error.value)
        assert len(text) > 15 and "object" not in text.replace("dtype object", ""), f"{argument} = {bad!r}: {text}"
        assert "not supported between" not in text and "positional" not in text, f"{argument} = {bad!r}: {text}"


@pytest.mark.parametrize("function", TABLE, ids=lambda x: x.__name__)
def test_good_values_are_let_through(function, monkeypatch):
    monkeypatch.setattr(rates, "_simulated", lambda *_: 4e11)
    for module in (blocked, pipeline):
        monkeypatch.setattr(module, "gemm", lambda a, b, c=None, **_: a.T @ b)
    function(**{name: value for name, (value, _) in TABLE[function].items()})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: host.five_stage(0, 4, 4, MACHINE), "m = 0 has to be a whole number of at least 1"),
        (lambda: host.five_stage(4, 4, 4, MACHINE, cpu_share=1.5), "cpu_share = 1.5 has to lie in 0 to 1"),
        (lambda: host.five_stage(4, 4, 4, MACHINE, block=8192 * 8), "buffers on the card take .* try a smaller block"),
        (lambda: host.five_stage(1 << 20, 1 << 20, 64, MACHINE, block=64), "268,435,456 units .* try a larger block"),
        (lambda: host.blocked_time(64, 64, 1 << 31, MACHINE, block=64), "131,072 units .* try a larger block"),
        (lambda: host.five_stage(4, 5, 5, MACHINE, matrices=Matrices(A, B, C)), r"shapes of an \(4, 5\) by \(5, 5\)"),
        (
            lambda: host.five_stage(4, 6, 5, MACHINE, matrices=Matrices(A, B, C), kernel="sgemm_tn"),
            "the matrices are float64, and sgemm_tn takes float32",
        ),
        (lambda: host.five_stage(4, 4, 4, MACHINE, kernel="dgemm_nn"), "needs a TN kernel .* dgemm_nn is not one"),
        (
            lambda: host.gemm_out_of_core(A, B, block=1920),
            "take 1095 MB .*three blocks of C 88 MB.*, and HD 5870 has 1074 MB: try a smaller block",
        ),
        (lambda: host.gemm_out_of_core(A, B, beta=1.0), "beta is 1, but there is no c"),
        (lambda: host.gemm_out_of_core(A, C), "the inner sizes, 5 and 4, must be equal"),
        (lambda: host.gemm_out_of_core(A, B, kernel="sgemm_tn"), "are double, and the kernel sgemm_tn computes in sin"),
        (lambda: ck.gemm(ck.DD(A), ck.DD(B), out_of_core=True), "float32 or float64, not double-double"),
        (lambda: ck.gemm(A, B, out_of_core="no"), "out_of_core is True or False, not 'no'"),
        (lambda: Machine(use_chips=3), "use_chips = 3: the board has 2"),
        (lambda: Machine(device="HD5970"), "device has to be a cypresskit.devices.Device, not 'HD5970'"),
        (lambda: Machine(host=replace(XEON, cores=2)), "has 2 cores: each of 2 chips takes one"),
        (lambda: replace(XEON, naive_gb_s=7), "naive_gb_s 7 has to be below"),
        (lambda: replace(XEON, cpu_efficiency=1.5), "cpu_efficiency = 1.5 at most 1"),
        (lambda: run([Task("a", "a", "a", {"bux": 1})], BUS), "a uses 'bux', which is not one of bus"),
        (lambda: run([Task("a", "a", "a", {"bus": -1})], BUS), "a: bytes of bus = -1 has to be 0 or more"),
        (lambda: run([Task("a", "a", "a", {})], BUS), "a takes no time"),
        (lambda: Resource("bus", 0, "bytes"), "bus: capacity = 0 has to be above 0"),
        (lambda: COPY.execute([0.5, 0.5]), "2 moments for 1 tasks"),
        (lambda: device("HD9"), "device 'HD9' is not one of hd5870"),
    ],
)
def test_the_error_says_what_is_wrong_and_what_to_try(call, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call()


def test_an_empty_timeline_has_no_rate_and_nothing_binds():
    empty = Timeline((), {})
    assert (empty.seconds, empty.gflops, empty.busy, empty.bound) == (0.0, 0.0, {}, "nothing")
    assert host.measured_share(empty, 0.2) == 0.2


def test_a_share_stays_where_the_cpu_gets_no_row(monkeypatch):
    monkeypatch.setattr(rates, "_simulated", lambda *_: 4e11)
    shares = [share for share, _ in host.adaptive(3, 64, 64, MACHINE, calls=3)]  # 0.12 of 3 rows is none
    assert shares == [host.static_share(MACHINE)] * 3
    assert host.measured_share(Timeline((Span(COPY.spans[0].task, 0, 1),), BUS), 0.2) == 0.2
