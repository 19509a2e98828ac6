"""`cypresskit bench`: the simulator's own speed, next to numpy's.

Numpy's BLAS reads once how many threads it may use, when numpy is first imported. So each number of threads is measured
in a process of its own, by processor time where it is one thread, since other programs disturb that least.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from statistics import quantiles
from time import perf_counter, process_time, sleep

from cypresskit.cli.command import CommandError, command, json_option, option, show

ONE_THREAD = {f"{library}_THREADS": "1" for library in ("OPENBLAS_NUM", "OMP_NUM", "MKL_NUM", "VECLIB_MAXIMUM")}
SIZES = (64, 128, 256, 512, 1024, 2048)  # of sgemm_tn
OTHERS = (
    ("dgemm_tn", 256, "fast"),
    ("dgemm_tn", 512, "fast"),
    ("dgemm_tn", 1024, "fast"),
    ("ddgemm_tn_fma", 256, "fast"),
    ("ddgemm_tn_fma", 512, "fast"),
    ("sgemm_64x64_lds", 512, "fast"),
    ("sgemm_tn", 64, "explain"),
    ("sgemm_tn", 256, "explain"),
    ("dgemm_tn", 256, "explain"),
    ("ddgemm_tn_fma", 64, "explain"),
)
ALL_THREADS = (*(("sgemm_tn", n) for n in SIZES), ("dgemm_tn", 1024), ("ddgemm_tn_fma", 512), ("sgemm_64x64_lds", 1024))
EPS = {"single": 2.0**-24, "double": 2.0**-53, "double-double": 2.0**-53}  # numpy's share for the last
LONG = 1.0  # seconds of runs that are enough
PAUSE = 0.1  # seconds after numpy's turn on all threads: OpenBLAS's go on spinning, on the processors we need
DISTURBED = 1.1  # seconds on the clock for a second of processor time, from which on others use the machine


@command(
    "bench",
    "measure the simulator's speed on GEMM against numpy's",
    "This is how fast the simulator computes, not how fast the simulated chip would be: C = A^T B through the engines "
    "and through numpy on the same arrays, in turn; the median of several runs, and the span that half of them lie in.",
    option("--cpu", metavar="NAME", default="", help="compile as if for that processor (a name of LLVM's); "
           "portable: this one without a mode that flushes subnormals"),
    option("--part", help=argparse.SUPPRESS),
    json_option("one object with the rows of the table"),
)  # fmt: skip
def bench(args: argparse.Namespace) -> None:
    """Measure the engines against numpy."""
    if args.part:  # in a process of its own
        print(json.dumps(_rows(args.cpu, args.part == "one")))
        return
    core = _openblas_core(args.cpu) or os.environ.get("OPENBLAS_CORETYPE", "")
    found: dict = {"kernel": "sgemm_tn", "threads": 1, "cpu": args.cpu, "openblas_core": core}
    held = {"OPENBLAS_CORETYPE": core} if core else {}
    for part, threads in (("one", ONE_THREAD), ("all", {})):
        again = [sys.executable, "-m", "cypresskit", "bench", "--part", part, "--cpu", args.cpu]
        child = subprocess.run(again, env=os.environ | held | threads, stdout=subprocess.PIPE, text=True)
        if child.returncode:
            raise SystemExit(child.returncode)
        found |= json.loads(child.stdout)
    rows = found["sizes"] + found["others"] + found["all_threads"]
    head = "C = A^T B on this computer, Gflop/s (numpy has no double-double)\n"
    head += f"numpy's OpenBLAS is held to the instructions of {core}\n" * bool(core)
    show(args, found, "\n".join([head, HEAD, *map(_line, rows)]))
    if any(row["clock"] > DISTURBED for row in rows if row["threads"] == 1):
        print("\nOthers are using this machine: the figures would be better without them.", file=sys.stderr)


def _openblas_core(cpu: str) -> str:
    """The name by which OpenBLAS is told to use no more instructions than another processor of x86 has."""
    from cypresskit.machine.fast.target import NEON, target

    wanted = target(cpu)
    if cpu in ("", "portable", "flags") or wanted.mode != "x86" or wanted.vectors > NEON:
        return ""
    if wanted.vectors < NEON:
        return "Nehalem"
    return "Sandybridge" if cpu in ("sandybridge", "ivybridge") else "Haswell"


HEAD = "kernel           engine   threads     N        here  half of the runs     numpy   ratio   first call"


def _line(row: dict) -> str:
    numpys = f"{row['numpy_gflops']:9.1f}  {row['ratio']:6.2f}" if row["ratio"] else "        -       -"
    names = f"{row['kernel']:16} {row['engine']:8} {row['threads'] or 'all':>7}  {row['n']:4}"
    span = " to ".join(f"{x:.1f}" for x in row["spread"])
    return f"{names}  {row['cypresskit_gflops']:10.2f}  {span:>16} {numpys}   {row['first_call_s']:8.3f} s"


def _rows(cpu: str, one: bool) -> dict:
    """The rows on one thread, or on all."""
    from cypresskit.machine.fast.target import compile_for

    compile_for(cpu)
    if not one:
        return {"all_threads": [_measure(name, n, "fast", None) for name, n in ALL_THREADS]}
    others = [_measure(name, n, engine, 1) for name, n, engine in OTHERS]
    return {"sizes": [_measure("sgemm_tn", n, "fast", 1) for n in SIZES], "others": others}


def _measure(name: str, n: int, engine: str, threads: int | None) -> dict:
    import numpy as np

    import cypresskit as ck

    kernel = ck.kernels[name]
    random = np.random.default_rng(n)
    a, b = ((random.random((n, n)) - 0.5).astype(kernel.dtype) for _ in range(2))
    doubled = kernel.precision == "double-double"
    given = (ck.DD(a), ck.DD(b)) if doubled else (a, b)

    def simulated():
        return ck.gemm(*given, trans_a=True, kernel=kernel, engine=engine, threads=threads)

    def reference():
        return a.T @ b

    first = _seconds(simulated)[1]
    error = float(np.max(np.abs(np.asarray(simulated()) - reference())))
    # both sums of n terms, each within n ulp/2
    bound = 2 * float(n * EPS[kernel.precision] * np.max(np.abs(a).T @ np.abs(b)))
    if not error <= bound:
        raise CommandError(f"{name}, N = {n}: off by {error:.3g}, and rounding explains only {bound:.3g}")
    runs: list[tuple[float, ...]] = []
    while len(runs) < 3 or (len(runs) < (100 if threads else 10) and sum(times[1] for times in runs) < LONG):
        if not threads:
            sleep(PAUSE)
            simulated()  # wakes processors and threads
        runs.append((*_seconds(simulated), *_seconds(reference)))
    clock = 0 if threads else 1  # by processor time or by the clock
    ours = [2e-9 * n**3 / times[clock] for times in runs]
    theirs = [2e-9 * n**3 / times[2 + clock] for times in runs]
    low, middle, high = quantiles(ours, n=4)
    numpys = None if doubled else quantiles(theirs, n=4)[1]
    return {
        "kernel": name,
        "engine": engine,
        "threads": threads,
        "n": n,
        "cypresskit_gflops": _digits(middle),
        "spread": [_digits(low), _digits(high)],
        "numpy_gflops": numpys and _digits(numpys),
        "ratio": numpys and _digits(middle / numpys),
        "first_call_s": _digits(first),
        "max_error": error,
        "clock": round(sum(times[1] for times in runs) / sum(times[0] for times in runs), 3),
    }


def _digits(value: float) -> float:
    """Four significant digits: small products' speeds keep theirs."""
    return float(f"{value:.4g}")


def _seconds(multiply: Callable) -> tuple[float, float]:
    """Processor time of one product, and how long it took."""
    processor, start = process_time(), perf_counter()
    multiply()
    return process_time() - processor, perf_counter() - start
