"""Bad input: one clear error for every argument before anything runs, and all that is refused, with
what is said.
"""

import builtins
import inspect
import random
import re
import tomllib
import warnings
from dataclasses import replace
from functools import partial
from itertools import product
from math import inf, nan
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from forbidden import forbid
from kept import forget
from kernel_texts import TEXTURE, alter_kernel, pixel
from players import record, record_launch
from repository import ROOT
from sampling import by_day, seeded

import cypresskit as ck
from cypresskit import compiler, host
from cypresskit.blas import to_pairs
from cypresskit.compiler.code import Code
from cypresskit.devices import HD5970, XEON
from cypresskit.host import (
    Machine,
    Matrices,
    Span,
    Task,
    Timeline,
    blocked,
    pipeline,
    rates,
    run_tasks,
)
from cypresskit.host.blocked import card_bytes, choose_block
from cypresskit.host.pipeline import balanced_cpu_share
from cypresskit.kernels.generated import block_kernel, generate_kernel
from cypresskit.machine.record import Recorder
from cypresskit.teach.l10_larger.visible.card import Card
from cypresskit.timing.report import Report

MACHINE, BUS = Machine(), {"bus": 6.0}
COPY = run_tasks([Task("copy", "copy", "dma", {"bus": 6.0})], BUS)
A, B, C = np.ones((4, 5)), np.ones((5, 6)), np.ones((4, 6))
TN = ck.kernels["sgemm_tn"]
ADD = ck.assemble("il_cs_2_0\nmov g[vAbsTidFlat.x], vAbsTidFlat\nend\n")

NO_NUMBER = [nan, inf, -1, None, "64", [4], True, 10**400]
WHOLE, POSITIVE = [*NO_NUMBER, 0, 1.5], [*NO_NUMBER, 0]
CHOSEN = [value for value in WHOLE if value is not None]  # by the function, if it is None
NO_FLAG = [0, 1.0, None, "no"]
OBJECT, REAL = [None, 0, nan, "HD5970", [4]], [None, "2", [2.0], 1j]
MATRIX = [None, 0, [[1.0]], *map(A.astype, (int, object, np.float32)), A[0], A[:3], to_pairs(A)]


#: Arguments of the host's functions, by name: a good value, and bad ones.
ARGUMENTS = dict.fromkeys("mnk", (64, WHOLE)) | {
    "a": (A, MATRIX),
    "b": (B, MATRIX),
    "c": (C, MATRIX),
    "alpha": (1.0, REAL),
    "beta": (1.0, REAL),
    "bandwidth": (100, POSITIVE),
    "block": (64, CHOSEN),
    "calls": (2, WHOLE),
    "cpu_share": (0.1, [*NO_NUMBER, -0.1, 1.01]),
    "depth": (64, CHOSEN),
    "device": (HD5970, OBJECT),
    "host": (XEON, OBJECT),
    "kernel": ("dgemm_tn", [None, 0, nan, [4], "dgemm"]),
    "machine": (MACHINE, OBJECT),
    "matrices": (None, [3, nan, "C", (A, B, C)]),
    "overlap": (True, NO_FLAG),
    "pads_rows": (True, NO_FLAG),
    "precision": ("double", OBJECT),
    "rate": (100, POSITIVE),
    "use_chips": (2, [0, -1, 3, 1.5, nan, "2", True]),
}
FUNCTIONS = (
    *(host.four_stage, host.five_stage, host.adapt_cpu_share, host.blocked_timeline),
    *(host.largest_block, host.gemm_out_of_core, host.static_cpu_share, host.transfer_seconds),
    *(host.kernel_seconds, host.rate_with_transfers, host.n_balance, host.round_trip_timeline),
    *(choose_block, card_bytes, Matrices, Machine, rates.kernel_rate),
)
TAKEN = {function: [*inspect.signature(function).parameters] for function in FUNCTIONS}
CASES = [(function, argument) for function in FUNCTIONS for argument in TAKEN[function]]


def at_400_gflops(_, *, m, n, k, device):
    """What stands in for the report of a kernel of 400 Gflop/s."""
    return SimpleNamespace(seconds=2.0 * m * n * k / 4e11, gflops=400.0)


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch):
    """Neither the timing model nor a product may be asked before the input has been found bad."""
    monkeypatch.setattr(rates, "simulate", forbid("simulate"))
    for module in (blocked, pipeline):
        monkeypatch.setattr(module, "gemm", forbid("multiply"))


@pytest.mark.parametrize(("function", "argument"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_bad_values_are_rejected_before_anything_runs(function, argument):
    good = {name: ARGUMENTS[name][0] for name in TAKEN[function]}
    for bad in ARGUMENTS[argument][1]:
        with pytest.raises((ValueError, TypeError, KeyError)) as error:
            function(**good | {argument: bad})
        text = str(error.value)
        assert len(text) > 15 and "object" not in text.replace("dtype object", ""), (
            f"{argument} = {bad!r}: {text}"
        )
        assert "not supported between" not in text and "positional" not in text, (
            f"{argument} = {bad!r}: {text}"
        )


def launch(n):
    memory = np.zeros((64, 4), np.uint32)
    counts = ck.launch(ADD, (n // n) * 64, global_memory=memory)
    return memory.tolist(), counts


def record_at(item):
    recorder = Recorder((item, item))
    out = np.zeros((128, 128), np.float32)
    text = "il_ps_2_0\ndcl_output_generic o0\nmov o0, vWinCoord0.x\nend\n"
    ck.launch(ck.assemble(text), (128, 128), outputs={0: out}, observers=[recorder])
    return recorder.recording.item


#: What takes sizes, besides the host's functions: of two of them, which are 100 and 8.
TAKES = {
    "simulate": lambda n, k: str(ck.simulate(TN, n, m=n, k=k)),
    "simulate_count": lambda n, k: ck.simulate("sgemm_packed", k, k=k, m=k, count=n).flops,
    "shape": lambda n, k: TN.shape(n, n, k).domain,
    "padded": lambda n, k: TN.convention.padded(n, n, k),
    "block_kernel": lambda n, k: block_kernel(k, k, k).text,
    "generate_kernel": lambda n, k: generate_kernel(k, k, k).text,
    "trace_element": lambda n, k: str(ck.trace_element(TN, k, k, size=(n, n, k))),
    "launch": lambda n, k: launch(n),
    "recorder": lambda n, k: record_at(n),
}


def result_of_host(function, hold):
    """What a function of the host makes of good values, whose integers are held so."""
    good = {name: ARGUMENTS[name][0] for name in TAKEN[function]}
    held = {name: hold(value) if type(value) is int else value for name, value in good.items()}
    return repr(function(**held))


OF_HOST = {function.__name__: partial(result_of_host, function) for function in FUNCTIONS}
SIZED = OF_HOST | {
    name: lambda hold, take=take: take(hold(100), hold(8)) for name, take in TAKES.items()
}
KINDS = (np.int8, np.uint64)


@pytest.mark.parametrize(
    ("name", "kind"), [*product(OF_HOST, KINDS), *by_day(product(TAKES, KINDS), 8)]
)
def test_a_size_counts_whatever_integer_holds_it(name, kind, monkeypatch):
    """Those of numpy wrap."""
    monkeypatch.setattr(rates, "simulate", at_400_gflops)
    for module in (blocked, pipeline):
        monkeypatch.setattr(module, "gemm", lambda a, b, c=None, **_: a.T @ b)
    plain = SIZED[name](int)
    forget()  # an equal size finds a report, whatever its type
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SIZED[name](kind) == plain
    assert SIZED[name](int) == plain  # what is cached


GOOD, SQUARE = np.ones((4, 4), np.float32), np.zeros((2, 2), np.float32)
WIDE = GOOD.astype(float)


def launch_changed(**change):
    """A launch that runs, but for a change."""
    program = pixel(
        TEXTURE.format(0),
        """
            dcl_cb cb0[2]
            sample_resource(0)_sampler(0) r0, cb0[1]
            mov o0, r0
            mov g[0], r0
        """,
    )
    arguments = {"domain": (2, 2), "inputs": {0: SQUARE}, "constants": {0: np.zeros(8, np.float32)}}
    arguments |= {
        "outputs": {0: np.zeros((2, 2, 4), np.float32)},
        "global_memory": np.zeros((1, 4), np.float32),
    }
    return ck.launch(program, **(arguments | change))


#: All that rows of refused.toml may name.
NAMES = {
    "ck": ck,
    "compiler": compiler,
    "host": host,
    "np": np,
    "Path": Path,
    "replace": replace,
    "alter_kernel": alter_kernel,
    "launch_changed": launch_changed,
    "pixel": pixel,
    "record": record,
    "record_launch": record_launch,
    "A": A,
    "B": B,
    "C": C,
    "COPY": COPY,
    "Card": Card,
    "MACHINE": MACHINE,
    "GOOD": GOOD,
    "WHOLE_NUMBERS": GOOD.astype(np.int32),
    "ROW": GOOD[0],
    "THREE": GOOD[:3],
    "WIDE": WIDE,
    "DOUBLED": to_pairs(GOOD),
    "SQUARE": SQUARE,
    "SWAPPED": np.dtype(np.float32).newbyteorder(),
    "TN": TN,
    "NN": ck.kernels["sgemm_nn"],
    "SHAPE": TN.shape(64, 64, 64, 1.0, 0.0, 1),
    "DOUBLING": pixel(TEXTURE.format(0), "sample_resource(0) r0, vWinCoord0", "add o0, r0, r0"),
    "STORE": pixel("dcl_output_generic o0", "dcl_literal l0, 0, 0, 0, 0", "mov o0, l0"),
}
SCREEN = 1600  # characters of an error: twenty lines of eighty
REFUSED = tomllib.loads((ROOT / "tests/cases/refused.toml").read_text())["refused"]


@pytest.mark.parametrize("written", REFUSED)
def test_what_makes_no_sense_is_rejected_in_words(written, tmp_path, monkeypatch):
    """In a folder with a kernel, ``mine.il``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.il").write_text(ck.kernels["sgemm_naive"].text)
    error, said = REFUSED[written]
    with pytest.raises(getattr(builtins, error), match=said) as caught:
        eval(written, dict(NAMES))
    assert len(str(caught.value)) < SCREEN


def test_an_empty_timeline_has_no_rate_and_nothing_binds():
    empty = Timeline((), {})
    assert (empty.seconds, empty.gflops, empty.busy, empty.bound) == (0.0, 0.0, {}, "nothing")
    assert balanced_cpu_share(empty, 0.2) == 0.2


def test_a_share_stays_where_the_cpu_gets_no_row(monkeypatch):
    monkeypatch.setattr(rates, "simulate", at_400_gflops)
    shares = [
        share for share, _ in host.adapt_cpu_share(3, 64, 64, MACHINE, calls=3)
    ]  # 0.12 of 3 rows is none
    assert shares == [host.static_cpu_share(MACHINE)] * 3
    assert balanced_cpu_share(Timeline((Span(COPY.spans[0].task, 0, 1),), BUS), 0.2) == 0.2


#: Arguments of the public functions that take a device, by name.
GIVEN = {"m": 64, "n": 64, "k": 64, "a": np.ones((2, 2)), "b": np.ones((2, 2))}
GIVEN |= {"kernel": ck.kernels["sgemm_tn"], "runs": "sgemm_tn", "figure": "sgemm_tn"}
GIVEN |= {"program": ck.kernels["sgemm_tn"].program}


def taking_devices():
    """The public functions that take a device, and the names of what else they need."""
    for module in (ck, ck.host, ck.draw, ck.timing, compiler):
        for name in module.__all__:
            function = getattr(module, name)
            if isinstance(function, type) and issubclass(function, (Report, Code)):
                continue  # these are results
            try:
                parameters = inspect.signature(function).parameters
            except (TypeError, ValueError):  # it can't be called, or has no signature
                continue
            if "device" in parameters:
                needed = [p.name for p in parameters.values() if p.default is p.empty]
                yield function, [name for name in needed if name in GIVEN]


@pytest.mark.parametrize(
    ("function", "needed"), list(taking_devices()), ids=lambda x: getattr(x, "__name__", "")
)
def test_what_is_no_board_is_refused_with_what_to_pass(function, needed):
    words = r"device is a board, such as ck\.HD5870, not System"
    with pytest.raises(TypeError, match=words):
        function(*(GIVEN[name] for name in needed), device=ck.NAKASATO)


@seeded(1)
def test_an_option_that_simulate_lacks_is_told_with_the_one_that_is_meant(seed):
    rng = random.Random(seed)
    for option in ck.simulate.__kwdefaults__:
        if len(option) == 1:
            continue
        at = rng.randrange(len(option))
        slip = option[:at] + rng.choice("qxz") + option[at:]
        with pytest.raises(TypeError, match=f"simulate takes no `{slip}`.* `{option}`"):
            ck.simulate("sgemm_tn", 64, **{slip: 1})


def public_names():
    """Everything that can be called of the package and its public modules, by its name."""
    for module in (ck, host, ck.draw, ck.blas, ck.teach, ck.machine, ck.il):
        own = [n for n in vars(module) if not n.startswith("_")]
        for each in getattr(module, "__all__", own):
            value = getattr(module, each)
            if inspect.isfunction(value) and value.__module__.startswith("cypresskit"):
                yield pytest.param(value, id=f"{module.__name__}.{each}")


@pytest.mark.parametrize("function", [*public_names()])
def test_a_wrong_option_or_one_too_many_is_refused_in_the_functions_own_name(function):
    name = function.__name__
    kinds = [each.kind for each in inspect.signature(function).parameters.values()]
    values = [None] * kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    wrong: list[tuple[list, dict]] = [
        (values, {"zzz": 1}),
        (values, {"blocks": 3, "cpu_shares": 1}),
    ]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        wrong.append(([*values, *[None] * 9], {}))
    for arguments, options in wrong:
        with pytest.raises(TypeError) as refused:
            function(*arguments, **options)
        said = str(refused.value)
        assert re.search(rf"\b{name}\b", said) and "._" not in said, said
        assert not options or any(f"{option}" in said for option in options), said
