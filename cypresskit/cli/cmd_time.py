"""`cypresskit time` simulates a kernel, `cypresskit score` compares the timing model with everything published."""

import argparse
import os

import cypresskit as ck
from cypresskit import devices
from cypresskit.cli.command import command, option, style_option, user_errors, whole
from cypresskit.tables import markdown

SIZE = whole(1, 10**9)


@command(
    "time",
    "simulate how long a kernel takes",
    "KERNEL is a name of the catalogue (`cypresskit kernels`). Prints Gflop/s, clocks, what bound the kernel, how busy "
    "each unit was, and hit rates, all modelled. A program of your own is timed in Python: ck.simulate.",
    option("kernel", metavar="KERNEL", help="a kernel's name"),
    option("--m", type=SIZE, metavar="SIZE", help="rows of A and C (default: N)"),
    option("--n", type=SIZE, metavar="SIZE", required=True, help="columns of B and C"),
    option("--k", type=SIZE, metavar="SIZE", help="columns of A, rows of B (default: N)"),
    option("--device", default="HD5870", metavar="NAME", help="HD5870 (default), HD5970 (one chip), HD5850"),
    option("--layout", choices=("linear", "tiled"), default="linear", help="of textures (default: linear)"),
    style_option(),
    option("--exact", action="store_true", help="simulate every wavefront, not a sample of them"),
    example="cypresskit time sgemm_tn --n 2048",
)
def time(args: argparse.Namespace) -> None:
    """Simulate one launch of a kernel and print the report."""
    with user_errors(KeyError, TypeError, ValueError, ck.CompileError):
        kernel, how = ck.kernels[args.kernel], {"style": args.style, "layout": args.layout, "exact": args.exact}
        report = ck.simulate(kernel, args.n, m=args.m, k=args.k, device=devices.device(args.device), **how)
    print(report)


@command(
    "score",
    "print a Markdown table of the model against what was published",
    "Compiles and simulates every kernel of which figures were published, and times the pipelines, on all cores. "
    "The ratio is simulated over published; what a paper shows in a picture only has neither.",
)
def score(args: argparse.Namespace) -> None:
    """Print published against simulated."""
    from concurrent.futures import ThreadPoolExecutor

    from cypresskit.host import host_rows
    from cypresskit.scoring import judged, verdict
    from cypresskit.scoring import score as kernel_rows

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            hosts = pool.submit(host_rows)
            rows = judged([*kernel_rows(executor=pool), *hosts.result()])
        except KeyboardInterrupt:
            os._exit(130)  # Python would wait for what the pool simulates now: ten seconds
    table = markdown(list(rows[0]), ([_shown(value) for value in row.values()] for row in rows))
    print(table, "", verdict(rows), sep="\n")


def _shown(value) -> str:
    if isinstance(value, list):
        return " to ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)
