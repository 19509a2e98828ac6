"""`cypresskit kernels` and `cypresskit bench`: the catalogue with its figures, and the simulator's own speed.

Registers and bundles come from the compiler, Gflop/s from the timing model; see ``blas.figures``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

KERNELS_HELP = (
    "For each: precision, mode, the block of C that a work-item computes, registers and the bundles of a turn of its "
    "loop as compiled for the HD 5870, Gflop/s on it at N = 2048 by the timing model, and what it teaches."
)


def add_kernels(sub: argparse.ArgumentParser) -> None:
    """The options of `kernels`."""
    sub.add_argument("--json", action="store_true", help="print a JSON list in place of the table")
    sub.add_argument(
        "--update", action="store_true", help="compile and time all of them anew first, and keep the figures"
    )


def kernels(args: argparse.Namespace) -> None:
    """List the catalogue."""
    import cypresskit as ck
    from cypresskit.blas.figures import update

    if args.update:
        from tqdm import tqdm

        update(tqdm(ck.kernels.values(), "compiling and timing"))
    rows = [_row(kernel) for kernel in ck.kernels.values()]
    if args.json:
        print(json.dumps(rows))
        return
    print("kernel                 precision      mode     block  registers  bundles  Gflop/s  it teaches")
    for row in rows:
        block, figures = (
            "x".join(map(str, row["block"])),
            f"{row['registers']:9}  {row['bundles']:7}  {row['gflops']:7.1f}",
        )
        print(f"{row['kernel']:22} {row['precision']:14} {row['mode']:8} {block:6} {figures}  {row['teaches']}")


def _row(kernel) -> dict:
    from cypresskit.blas.figures import figures

    of = figures(kernel)
    return {
        "kernel": kernel.name,
        "precision": kernel.precision,
        "mode": kernel.mode,
        "block": list(kernel.block),
        "registers": of.registers,
        "bundles": of.bundles,
        "gflops": of.gflops,
        "teaches": kernel.teaches,
    }


BENCH_HELP = (
    "This is how fast the simulator computes, not how fast the simulated chip would be: C = A^T B through the fast "
    "engine and through numpy on the same arrays, both on one thread, in turn; the median of several runs."
)
ONE_THREAD = {f"{library}_THREADS": "1" for library in ("OPENBLAS_NUM", "OMP_NUM", "MKL_NUM", "VECLIB_MAXIMUM")}
SIZES = (256, 512, 1024)  # of sgemm_tn
OTHERS = (("dgemm_tn", 512), ("ddgemm_tn_fma", 256), ("sgemm_64x64_lds", 512))
EPS = {"single": 2.0**-24, "double": 2.0**-53, "double-double": 2.0**-53}  # numpy's share for the last


def bench(args: argparse.Namespace) -> None:
    """Measure the fast engine against numpy."""
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        # numpy's BLAS reads these once, when numpy is first imported, which has happened by now.
        import subprocess

        again = [sys.executable, "-m", "cypresskit", "bench", *(["--json"] if args.json else [])]
        status = subprocess.run(again, env=os.environ | ONE_THREAD).returncode
        if status:
            raise SystemExit(status)
        return
    rows = [_measure("sgemm_tn", n) for n in SIZES]
    others = [_measure(name, n) for name, n in OTHERS]
    if args.json:
        print(json.dumps({"kernel": "sgemm_tn", "threads": 1, "sizes": rows, "others": others}))
        return
    print("C = A^T B on one thread of this computer, Gflop/s (the simulator's own speed; numpy has no double-double)\n")
    print("kernel                 N   fast engine    numpy    ratio   first call")
    for row in rows + others:
        numpys = f"{row['numpy_gflops']:6.1f}   {row['ratio']:6.2f}" if row["ratio"] else "     -        -"
        ours = f"{row['n']:6}   {row['cypresskit_gflops']:11.2f}"
        print(f"{row['kernel']:18}{ours}   {numpys}   {row['first_call_s']:8.3f} s")


def _measure(name: str, n: int) -> dict:
    import numpy as np

    import cypresskit as ck

    kernel = ck.kernels[name]
    random = np.random.default_rng(n)
    a, b = ((random.random((n, n)) - 0.5).astype(kernel.dtype) for _ in "ab")
    doubled = kernel.precision == "double-double"
    given = (ck.DD(a), ck.DD(b)) if doubled else (a, b)

    def simulated():
        return ck.gemm(*given, trans_a=True, kernel=kernel)

    def reference():
        return a.T @ b

    def seconds(multiply: Callable) -> float:
        start = perf_counter()
        multiply()
        return perf_counter() - start

    first = seconds(simulated)
    error = float(np.max(np.abs(np.asarray(simulated()) - reference())))
    bound = (
        float(n * EPS[kernel.precision] * np.max(np.abs(a).T @ np.abs(b))) * 2
    )  # both sums of n terms, each within n ulp/2
    if not error <= bound:
        from cypresskit.cli import CommandError

        raise CommandError(f"{name}, N = {n}: off by {error:.3g}, and rounding explains only {bound:.3g}")
    runs = [(seconds(simulated), 0 if doubled else seconds(reference)) for _ in range(max(5, 2048 // n))]
    ours, theirs = (2e-9 * n**3 / median(times) if any(times) else 0.0 for times in zip(*runs))
    return {
        "kernel": name,
        "n": n,
        "cypresskit_gflops": round(ours, 2),
        "numpy_gflops": round(theirs, 2) if theirs else None,
        "ratio": round(ours / theirs, 3) if theirs else None,
        "first_call_s": round(first, 4),
        "max_error": error,
    }
