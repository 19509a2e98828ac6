"""Bad input to the host's models and to blas: one clear error for every argument before anything runs."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from conftest import compute

import cypresskit as ck
from cypresskit import host
from cypresskit.compiler import compile
from cypresskit.devices import HD5870, HD5970, XEON, device
from cypresskit.host import Machine, Matrices, Resource, Span, Task, Timeline, blocked, pipeline, rates, run
from cypresskit.host.blocked import card_bytes, choose_block
from cypresskit.teach.l01_register_block import block_gemm

MACHINE, BUS = Machine(), {"bus": Resource("bus", 6.0, "bytes")}
COPY = run([Task("copy", "copy", "dma", {"bus": 6.0})], BUS)
A, B, C = np.ones((4, 5)), np.ones((5, 6)), np.ones((4, 6))

NO_NUMBER = [nan, inf, -1, None, "64", [4], True, 10**400]
WHOLE, POSITIVE, AMOUNT, SHARE = [*NO_NUMBER, 0, 1.5], [*NO_NUMBER, 0], NO_NUMBER, [*NO_NUMBER, -0.1, 1.01]
DEPTH = [*(depth for depth in WHOLE if depth is not None), 1 << 30]
OBJECT = [None, 0, nan, "HD5970", [4]]
KERNEL = [0, nan, [4], "dgemm", "dgemm_nn", "dgemm_tt", "sgemm_packed", "sgemv_t", "ddgemm_tn_fma"]
MATRIX = [None, 0, [[1.0]], A.astype(int), A.astype(object), A.astype(np.float32), A[0], A[:3], ck.DD(A)]
WHETHER = [None, "T", 0.5, True]  # as it is, A doesn't fit
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
    choose_block: SIZES | {"depth": (64, DEPTH), "itemsize": (8, WHOLE)},
    card_bytes: {"block": (64, WHOLE), "depth": (64, WHOLE), "itemsize": (8, WHOLE)},
    host.largest_block: {"device": (HD5870, OBJECT), "depth": (64, DEPTH), "itemsize": (8, WHOLE)},
    host.gemm_out_of_core: {
        "a": (A, MATRIX), "b": (B, MATRIX), "c": (C, MATRIX), "alpha": (1.0, REAL), "beta": (1.0, REAL),
        "kernel": (None, [*KERNEL, "sgemm_tn"]), "device": (HD5870, OBJECT), "depth": (64, DEPTH),
        "block": (64, [b for b in WHOLE if b is not None] + [1 << 20]), "trans_a": (False, WHETHER),
        "trans_b": (False, WHETHER),
    },
    Matrices: {"a": (A, MATRIX), "b": (B, MATRIX), "c": (C, MATRIX), "alpha": (1.0, REAL), "beta": (1.0, REAL)},
    Machine: {"device": (HD5970, OBJECT), "host": (XEON, OBJECT), "use_chips": (2, [0, -1, 3, 1.5, nan, "2", True])},
    lambda **more: replace(XEON, **more): HOST | {"cores": (12, [*HOST["cores"][1], 1.5])},
    rates.kernel_rate: {
        "kernel": ("dgemm_tn", [None, 0, nan, "dgemm"]), "m": (64, WHOLE), "n": (64, WHOLE), "k": (64, WHOLE),
        "device": (HD5970, OBJECT),
    },
    host.static_share: {"machine": (MACHINE, OBJECT)},
    host.balanced_share: {"timeline": (COPY, OBJECT), "share": (0.5, SHARE)},
    host.transfer_seconds: {name: TRANSFER[name] for name in ("n", "bandwidth", "precision")},
    host.kernel_seconds: {name: TRANSFER[name] for name in ("n", "rate")},
    host.effective_rate: TRANSFER,
    host.balance: {name: TRANSFER[name] for name in ("bandwidth", "rate", "precision")},
    host.round_trip: TRANSFER,
    lambda capacity: Resource("bus", capacity, "bytes"): {"capacity": (1.0, POSITIVE)},
    lambda uses: run([Task("a", "a", "a", {"bus": uses})], BUS): {"uses": (1.0, [*AMOUNT, 0])},
    lambda name: run([Task("a", "a", "a", {name: 1})], BUS): {"name": ("bus", ["bux", None, 0])},
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

    monkeypatch.setattr(rates, "_seconds", ran)
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
    monkeypatch.setattr(rates, "_seconds", lambda _, m, n, k, device: 2.0 * m * n * k / 4e11)
    for module in (blocked, pipeline):
        monkeypatch.setattr(module, "gemm", lambda a, b, c=None, **_: a.T @ b)
    function(**{name: value for name, (value, _) in TABLE[function].items()})


ERRORS = (ValueError, TypeError)
GOOD, CUBE = np.ones((4, 4), np.float32), np.ones((2, 3, 3), np.float32)
WIDE, ROW, THREE, TALL = GOOD.astype(float), GOOD[0], GOOD[:3], np.broadcast_to(GOOD[0], (16385, 4))
DOUBLED, TN, NN = ck.DD(GOOD), ck.kernels["sgemm_tn"], ck.kernels["sgemm_nn"]
STORE = ck.assemble("il_ps_2_0\ndcl_output_generic o0\ndcl_literal l0, 0, 0, 0, 0\nmov o0, l0\nend\n")


def on_card(use):
    """What ``use`` does with an open card."""
    with ck.open() as gpu:
        return use(gpu)


five, blocks, ABC = host.five_stage, host.gemm_out_of_core, Matrices(A, B, C)
WORDS = [
    # blas
    (TypeError, "a must be a numpy array or a DD, not list", lambda: ck.gemm([[1.0]], GOOD)),
    (TypeError, "b has dtype int64: gemm takes float32 or float64", lambda: ck.gemm(GOOD, GOOD.astype(int))),
    (TypeError, "b is float64 but a is float32", lambda: ck.gemm(GOOD, WIDE)),
    (TypeError, "c is float64 but a is float32", lambda: ck.gemm(GOOD, GOOD, WIDE)),
    (TypeError, "b is DD but a is float64", lambda: ck.gemm(WIDE, DOUBLED)),
    (TypeError, r"b is a masked array, .* b\.filled\(0\)", lambda: ck.gemm(GOOD, np.ma.masked_equal(GOOD, 1))),
    (ValueError, "a matrix has two dimensions", lambda: ck.gemm(ROW, GOOD)),
    (ValueError, "the inner sizes, 4 and 3, must be equal", lambda: ck.gemm(GOOD, THREE)),
    (ValueError, r"c has shape \(3, 4\), the product has \(4, 4\)", lambda: ck.gemm(GOOD, GOOD, THREE)),
    (ValueError, "there is no c to multiply", lambda: ck.gemm(GOOD, GOOD, beta=1.0)),
    (TypeError, "alpha must be a real number, not complex", lambda: ck.gemm(GOOD, GOOD, alpha=1j)),
    (TypeError, "trans_a is True or False, not 'N'", lambda: ck.gemm(GOOD, GOOD, trans_a="N")),
    (TypeError, r"kernel is the name of one in ck\.kernels, or a Kernel, not 3", lambda: ck.gemm(GOOD, GOOD, kernel=3)),
    (TypeError, r"such as ck\.HD5870, not 'HD5850'", lambda: ck.gemm(GOOD, GOOD, device="HD5850")),
    (KeyError, "no kernel 'sgem'. Did you mean .*The catalogue", lambda: ck.gemm(GOOD, GOOD, kernel="sgem")),
    (KeyError, "Did you mean `sgemm_tn`", lambda: ck.gemm(GOOD, GOOD, kernel="sgem_tn")),
    (TypeError, "in single precision, the mat", lambda: ck.gemm(DOUBLED, DOUBLED, kernel="sgemm_tn")),
    (ValueError, "x has shape .*: a vector has one dimension", lambda: ck.gemv(GOOD, GOOD)),
    (ValueError, "a has shape .*: a matrix has two dimensions", lambda: ck.gemv(ROW, ROW)),
    (TypeError, "x must be a numpy array or a DD, not NoneType", lambda: ck.gemv(GOOD, None)),
    (TypeError, "x is float64 but a is float32", lambda: ck.gemv(GOOD, WIDE[0])),
    (TypeError, "y is float64 but a is float32", lambda: ck.gemv(GOOD, ROW, WIDE[0])),
    (ValueError, r"op\(a\) is 3 x 4, so x has to have 4 elements, not 3", lambda: ck.gemv(THREE, ROW[:3])),
    (ValueError, r"op\(a\) is 4 x 3, so x has to have 3 elements, not 4", lambda: ck.gemv(THREE, ROW, trans=True)),
    (ValueError, r"op\(a\) is 3 x 4, so y has to have 3 elements, not 4", lambda: ck.gemv(THREE, ROW, ROW)),
    (ValueError, "beta is 1, but there is no y to multiply with it", lambda: ck.gemv(GOOD, ROW, beta=1)),
    (TypeError, "beta must be a real number, not str", lambda: ck.gemv(GOOD, ROW, beta="1")),
    (TypeError, "trans is True or False, not 'T'", lambda: ck.gemv(GOOD, ROW, trans="T")),
    (TypeError, "unexpected keyword argument 'trans_b'", lambda: ck.gemv(GOOD, ROW, trans_b=True)),
    (ValueError, "shapes are", lambda: ck.gemm_packed(CUBE, CUBE[:1])),
    (TypeError, "packed matrices are float32", lambda: ck.gemm_packed(CUBE.astype(float), CUBE.astype(float))),
    (ValueError, "not negative", lambda: ck.choose(-1, 1, 1)),
    (ValueError, "sgemv_n multiplies .* there are 2 columns", lambda: ck.gemm(GOOD, GOOD[:, :2], kernel="sgemv_n")),
    (ValueError, "A as m x k and B as k x n; found 4 x 4 and 3 x 4", lambda: NN.arguments(GOOD, THREE, None, 1, 0)),
    (TypeError, "B has dtype float64: sgemm_tn takes float32", lambda: TN.arguments(GOOD, WIDE, None, 1, 0)),
    (ValueError, "sizes are whole numbers", lambda: ck.choose(64, 64, 1.5)),
    (ValueError, "is not one of", lambda: ck.choose(1, 1, 1, "half")),
    (TypeError, r"a board such as ck.HD5870, not str", lambda: ck.open("HD5870")),
    (TypeError, "a matrix on the card, not ndarray: upload it first", lambda: on_card(lambda gpu: gpu.download(GOOD))),
    (TypeError, "list", lambda: on_card(lambda gpu: gpu.upload([[1.0]]))),
    (ValueError, "at most 16384 rows of 65536 single", lambda: on_card(lambda gpu: gpu.upload(TALL))),
    # assemble, check, compile, simulate
    (TypeError, "takes IL text as a str, not bytes", lambda: ck.assemble(b"il_ps_2_0")),
    (TypeError, "takes IL text as a str, not int", lambda: ck.assemble("il_ps_2_0", before=3)),
    (ValueError, "no budget 'clocks'", lambda: ck.check(STORE, (4, 4), outputs={0: GOOD}, budgets={"clocks": 1})),
    (ValueError, "style 'nvidia' is not one of 'amd', 'best'", lambda: compile(STORE, style="nvidia")),
    (ValueError, "'half' is not one of single, double, double-double", lambda: HD5870.peak_gflops("half")),
    (
        ValueError,
        r"the HD 5870 \(256 registers, at most 25",
        lambda: HD5870.active_wavefronts(128, group_wavefronts=4),
    ),
    (ValueError, "'half' is not one of single, double, double-double", lambda: host.balance(3e9, 450e9, "half")),
    (ValueError, "sizes here are 1, 2, 4", lambda: block_gemm(GOOD, GOOD, 3)),
    (ValueError, "multiples of 8", lambda: block_gemm(GOOD, GOOD, 8)),
    (TypeError, "such as ck.HD5870, not 'best'", lambda: ck.compile(STORE, "best")),  # type: ignore[arg-type]
    (ValueError, "have to be whole numbers", lambda: ck.sweep("sgemm_tn", 1.5)),  # type: ignore[arg-type]
    (TypeError, "device is one of", lambda: ck.sweep("sgemm_tn", 64, "hd5870")),  # type: ignore[arg-type]
    # launch
    (ValueError, "no multiple of the kernel's workgroup", lambda: ck.launch(compute("mov r0, vaTid"), 65)),
    (TypeError, "begins with its program: ck.Shape\\(program", lambda: ck.Shape((64, 64), {0: (64, 64)})),
    # host
    (ERRORS, "m = 0 has to be a whole number of at least 1", lambda: five(0, 4, 4, MACHINE)),
    (ERRORS, "cpu_share = 1.5 has to lie in 0 to 1", lambda: five(4, 4, 4, MACHINE, cpu_share=1.5)),
    (ERRORS, "buffers on the card take .* try a smaller block", lambda: five(4, 4, 4, MACHINE, block=8192 * 8)),
    (ERRORS, "268,435,456 units .* try a larger block", lambda: five(1 << 20, 1 << 20, 64, MACHINE, block=64)),
    (TypeError, "in a pipeline, .* not double-double", lambda: Matrices(DOUBLED, DOUBLED, DOUBLED)),
    (TypeError, "out of core, .* not double-double", lambda: host.gemm_out_of_core(DOUBLED, DOUBLED)),
    (ERRORS, "131,072 units .* try a larger block", lambda: host.blocked_time(64, 64, 1 << 31, MACHINE, block=64)),
    (ERRORS, r"shapes of an \(4, 5\) by \(5, 5\)", lambda: five(4, 5, 5, MACHINE, matrices=ABC)),
    (
        ERRORS,
        "are float64, and sgemm_tn takes float32",
        lambda: five(4, 6, 5, MACHINE, matrices=ABC, kernel="sgemm_tn"),
    ),
    (ERRORS, "needs a TN kernel .* dgemm_nn is not one", lambda: five(4, 4, 4, MACHINE, kernel="dgemm_nn")),
    (ERRORS, "take 1095 MB .*three blocks of C 88 MB.*, and HD 5870 has 1074", lambda: blocks(A, B, block=1920)),
    (ERRORS, "beta is 1, but there is no c", lambda: blocks(A, B, beta=1.0)),
    (ERRORS, "the inner sizes, 5 and 4, must be equal", lambda: blocks(A, C)),
    (ERRORS, "are double, and the kernel sgemm_tn computes in sin", lambda: blocks(A, B, kernel="sgemm_tn")),
    (ERRORS, "float32 or float64, not double-double", lambda: ck.gemm_out_of_core(ck.DD(A), ck.DD(B))),
    (ERRORS, "trans_b is True or False, not 'no'", lambda: ck.gemm_out_of_core(A, B, trans_b="no")),
    (ERRORS, "use_chips = 3: the board has 2", lambda: Machine(use_chips=3)),
    (ERRORS, "device has to be a cypresskit.devices.Device, not 'HD5970'", lambda: Machine(device="HD5970")),
    (ERRORS, "has 2 cores: each of 2 chips takes one", lambda: Machine(host=replace(XEON, cores=2))),
    (ERRORS, "naive_gb_s = 7 has to be below", lambda: replace(XEON, naive_gb_s=7)),
    (ERRORS, "cpu_efficiency = 1.5 has to be at most 1", lambda: replace(XEON, cpu_efficiency=1.5)),
    (ERRORS, "a uses 'bux', which is not one of bus", lambda: run([Task("a", "a", "a", {"bux": 1})], BUS)),
    (ERRORS, "a: bytes of bus = -1 has to be 0 or more", lambda: run([Task("a", "a", "a", {"bus": -1})], BUS)),
    (ERRORS, "a takes no time", lambda: run([Task("a", "a", "a", {})], BUS)),
    (ERRORS, "bus: capacity = 0 has to be above 0", lambda: Resource("bus", 0, "bytes")),
    (ERRORS, "2 moments for 1 tasks", lambda: COPY.execute([0.5, 0.5])),
    (ERRORS, "device 'HD9' is not one of hd5870", lambda: device("HD9")),
]


@pytest.mark.parametrize(("error", "words", "call"), WORDS, ids=[words for _, words, _ in WORDS])
def test_the_error_says_what_is_wrong_and_what_to_try(error, words, call):
    with pytest.raises(error, match=words):
        call()


def test_an_empty_timeline_has_no_rate_and_nothing_binds():
    empty = Timeline((), {})
    assert (empty.seconds, empty.gflops, empty.busy, empty.bound) == (0.0, 0.0, {}, "nothing")
    assert host.balanced_share(empty, 0.2) == 0.2


def test_a_share_stays_where_the_cpu_gets_no_row(monkeypatch):
    monkeypatch.setattr(rates, "_seconds", lambda _, m, n, k, device: 2.0 * m * n * k / 4e11)
    shares = [share for share, _ in host.adaptive(3, 64, 64, MACHINE, calls=3)]  # 0.12 of 3 rows is none
    assert shares == [host.static_share(MACHINE)] * 3
    assert host.balanced_share(Timeline((Span(COPY.spans[0].task, 0, 1),), BUS), 0.2) == 0.2
