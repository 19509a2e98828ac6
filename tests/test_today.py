"""The kernels for a GPU of today on numba's simulator of one, the record of a real one, and what
lessons say of it.
"""

import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT

from cypresskit.teach.l13_what_is_left import checks as lesson
from cypresskit.today import figures, record

#: The simulator's `fma` rounds twice, it has no `syncwarp` (`syncthreads`, in a workgroup of a
#: warp), and takes seconds for what is timed again and again: here each kernel runs once, on
#: matrices of 16 x 16.
SIMULATED = """
import numpy
vars(numpy).pop("row_stack", None)  # as numpy 2.5 has it
BEFORE = {*dir(numpy)}
from fractions import Fraction
from numba.cuda.simulator.kernelapi import FakeCUDAModule
from cypresskit.today import cuda_kernels, experiments
FakeCUDAModule.fma = lambda _, a, b, c: float(
    Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
)
FakeCUDAModule.syncwarp = FakeCUDAModule.syncthreads
def add(self, experiment, case, unit, amount, work, **more):
    unit == "Gflop/s" or work()  # whose product has been checked
    self.rows.append({"experiment": experiment, "case": str(case), "unit": unit})
timed, experiments.Bench.add = experiments.Bench.add, add
bench = experiments.Bench(
    n=16, sizes=(16,), side=2, megabytes=1, turns=2, warps=2, warm=1, runs=3, seconds=1e-9
)
"""


def simulated(code: str) -> str:
    """What a script prints after ``SIMULATED``, on a simulated GPU."""
    env = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", SIMULATED + code], env=env, capture_output=True, text=True, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
def test_every_kernel_agrees_with_numpy_on_a_simulated_gpu():
    """``record`` runs all that the record of a real GPU has, but for the library's, and checks
    it.
    """
    said = simulated("print([(row['experiment'], row['unit']) for row in bench.record()['rows']])")
    known = {(row["experiment"], row["unit"]) for row in record()["rows"]}
    assert {*eval(said)} == known - {("library", "Gflop/s")}


@pytest.mark.parametrize(
    ("broken", "experiment", "said"),
    [
        (
            "",
            "product('', '', cuda_kernels.blocked(8, 8), 16, 8, transposed=False)",
            "a product of 16 x 16 in float32",
        ),
        ("experiments.pitched = {(1, 32): lambda *_: None}", "pitches()", "at a pitch of 1 words"),
        ("FakeCUDAModule.fma = lambda _, a, b, c: a * b + c", "double_double()", "has lost digits"),
    ],
)
def test_a_wrong_result_is_found(broken, experiment, said):
    code = (
        f"{broken}\ntry:\n    bench.{experiment}\nexcept ArithmeticError as error:\n   "
        " print(error)"
    )
    assert said in simulated(code)


OWN = """
from numba import cuda
from cypresskit.teach.l13_what_is_left import checks as left

def product(a, b):
    global cuda
    from numba import cuda

    DECORATOR
    def kernel(a, b):
        pass

    kernel[1, 1](a, b)

try:
    print(left.kernel_of(product).fn.__name__, cuda.jit.__name__)
except ValueError as error:
    print(error)
left.has_gpu = lambda: True
try:
    print(left.timed(product))
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("decorator", "said"),
    [
        ("@cuda.jit", "kernel jit"),
        ("@cuda.jit()", "kernel jit"),
        ("@cuda.jit(fastmath=True)", "kernel jit"),
        ("kernel = {(1, 1): lambda *_: None}", "compiled no kernel"),
    ],
)
def test_the_readers_kernel_is_found_and_never_timed_in_the_simulator(decorator, said):
    code = OWN.replace("DECORATOR", decorator)
    if "lambda" in decorator:
        code = code.replace("    def kernel(a, b):\n        pass\n", "")
    said_all = simulated(code)
    assert said in said_all and "simulator is on, which has no speed" in said_all
    assert "Here:" not in said_all


NEW_NUMPY = """
import sys

import numpy as np

vars(np).pop("row_stack", None)


class Asks:  # as numba-cuda 0.30 does while it is imported
    def find_spec(self, name, path=None, target=None):
        assert name != "numba.cuda" or "row_stack" in vars(np), "numpy has no row_stack"


sys.meta_path.insert(0, Asks())
from cypresskit.teach.l13_what_is_left import checks as left

left.has_gpu = lambda: True
try:
    CALL
except (RuntimeError, ValueError) as error:
    print(error)
"""


def test_the_first_to_ask_for_numba_cuda_finds_what_it_needs_in_a_new_numpy():
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    calls = {
        "left.timed(print)": "which has no speed",
        "left.kernel_of(lambda a, b: None)": "compiled no kernel",
    }
    for call, reason in calls.items():
        code = NEW_NUMPY.replace("CALL", call)
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
        assert reason in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("warning", "shown"),
    [
        ("\\x1b[1mGrid size 16 will likely result in GPU under-utilization", False),
        ("Host array used in CUDA kernel will incur copy overhead", False),
        ("The array is not aligned", True),
    ],
)
def test_a_small_launch_needs_no_warning(warning, shown):
    code = f"""
import warnings
from cypresskit.teach.l13_what_is_left import checks as left

def product(a, b):
    warnings.warn("{warning}")

try:
    left.kernel_of(product)
except ValueError:
    pass
"""
    command = [sys.executable, "-W", "always", "-c", code]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert ("UserWarning" in done.stderr) == shown, done.stderr


def test_a_figure_is_the_median_of_runs_after_the_warm_up():
    clock = "experiments.perf_counter = iter([0, 1, 0, 1, 0, 9, 0, 2, 0, 4, 0, 3]).__next__\n"
    said = simulated(
        clock + "bench.seconds = 1\ntimed(bench, 'it', 8, 'ns', 10, lambda: None,"
        " more=1)\nprint(bench.rows[0])"
    )
    assert eval(said) == {
        "experiment": "it",
        "case": "8",
        "value": 30.0,
        "unit": "ns",
        "spread": 0.6667,
        "more": 1,
    }


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("exit 0\n", ""),  # no tool at all, see below
        ("echo 'No devices were found'; exit 6\n", "could not name the GPU GPU-7: No devices"),
        ("echo \"$*\" >&2; echo 'H9, 1.2, 3 MHz, 4 MHz'\n", "{'device': 'H9', 'driver': '1.2'"),
    ],
)
def test_the_driver_is_asked_for_the_gpu_by_its_uuid(tool, said, tmp_path):
    if said:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{tool}")
        (tmp_path / "nvidia-smi").chmod(0o755)
    code = f"""
import os
from types import SimpleNamespace as Space
os.environ["PATH"] = {str(tmp_path)!r}
experiments.config = Space(ENABLE_CUDASIM=False)
experiments.cuda = Space(current_context=lambda: Space(device=Space(uuid="GPU-7")))
try:
    print(experiments.asked_of_the_driver())
except RuntimeError as error:
    print(error)
"""
    assert (said or "nvidia-smi isn't installed here") in simulated(code)


def test_importing_the_kernels_leaves_numpy_as_it_is():
    code = "import numpy; print({*dir(numpy)} - BEFORE, BEFORE - {*dir(numpy)})"
    assert simulated(code).strip() == "set() set()"


def test_the_record_is_of_a_real_gpu_and_steady():
    gpu = record()
    assert re.fullmatch(r"NVIDIA \w+", gpu["device"]) and re.fullmatch(r"[\d.]+", gpu["driver"])
    assert {"cypresskit", "numba-cuda", "numba"} <= gpu["versions"].keys() and re.fullmatch(
        r"\d{4}-\d\d-\d\d", gpu["date"]
    )
    assert all(row["value"] > 0 and row["spread"] < 0.05 for row in gpu["rows"])
    assert len({(row["experiment"], row["case"]) for row in gpu["rows"]}) == len(gpu["rows"])


def test_without_a_gpu_nothing_is_imported():
    code = (
        "import sys; from cypresskit.teach.l13_what_is_left import checks as l;"
        " import cypresskit.today as t; t.record()\n"
    )
    code += (
        "l.which = lambda _: None; assert l.own() is None; print([m for m in sys.modules if 'cuda'"
        " in m])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
        ).stdout
        == "[]\n"
    )


def test_figures_side_by_side():
    mine = {"device": "mine", "rows": [{"experiment": "layout", "case": "NN", "value": 500.0}]}
    lines = lesson.beside("layout", {"NN": 100.0, "TN": 150.0}, mine).splitlines()
    assert lines[0].split() == ["Cypress", *record()["device"].split(), "mine"]
    nn, tn = (figures("layout")[case] for case in ("NN", "TN"))
    assert lines[2].split() == ["TN", "150", "1.50", "x", f"{tn:,.0f}", f"{tn / nn:.2f}", "x", "-"]
    assert (
        lesson.gain("layout", "NN", "TN") == tn / nn
        and lesson.gain("bank, 32 warps", "32", "33") > 1
    )


LIBRARY, PINNED = figures("library"), figures("bus")["pinned"]
#: The number of the record that each of the other lessons names, as it is written there.
NAMED = (
    f"{LIBRARY['single'] / 1e3:.0f} Tflop/s",
    f"{lesson.gain('block', '1 x 1', '8 x 8'):.1f} times as fast",
    f"{figures('shared memory')['128 x 128'] / figures('block')['8 x 8']:.1f} times as fast",
    f"make {next(row['registers'] for row in record()['rows'] if row['case'] == '8 x 8')} on",
    f"{lesson.gain('warps', '5', '16'):.1f} times as fast",
    f"{lesson.gain('layout', 'NN', 'TN'):.2f} times the speed",
    f"{max(figures('double').values()) / figures('double-double')['1 x 1']:.1f} times as fast",
    f"{lesson.gain('bank, 32 warps', '32', '33'):.0f} times slower",
    f"{100 / lesson.gain('size', '256', '4096'):.0f} % of the speed",
    f"{PINNED:.0f} GB/s",
    f"{round(16 * LIBRARY['double'] / PINNED, -2):,.0f}",
    f"{lesson.gain('bus', 'pageable', 'pinned'):.1f} times as fast",
    f"{100 * figures('block')['8 x 8'] / LIBRARY['single']:.0f} %",
)


@pytest.mark.parametrize(("number", "named"), [*enumerate(NAMED)])
def test_each_other_lesson_names_a_number_of_the_record(number, named):
    (source,) = (ROOT / "notebooks/source").glob(f"{number:02}_*.md")
    said = source.read_text(encoding="utf-8").split("\n## On a GPU of today\n")[1].split("\n## ")[0]
    assert named in " ".join(said.split())
    paragraph = said.strip().split("\n\n")[0] + "\n"
    assert len(re.findall(r"\.\s", paragraph.replace("x 8.\n", ""))) == 3, "three sentences"
