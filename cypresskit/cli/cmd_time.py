"""What the timing model says: `cypresskit time` of a kernel, `cypresskit pipeline` of pipelines over chips and CPU (in
time alone), and `cypresskit score` how that compares with the published.
"""

import argparse
import os
from pathlib import Path

import cypresskit as ck
from cypresskit import devices
from cypresskit.cli.command import CommandError, Option, command, json_option, option, show, style_option, user_errors
from cypresskit.cli.files import check_targets, write_file
from cypresskit.tables import markdown

MOST_DIGITS = 9  # of a size
SIZES = {"m": "rows of A and C", "n": "columns of B and C", "k": "columns of A, rows of B"}


def size_options(required: bool = False, **more: str) -> list[Option]:
    """`--m`, `--n` and `--k`, with ``more`` words on some."""
    return [
        option(f"--{size}", required=required, type=int, metavar="SIZE", help=what + more.get(size, ""))
        for size, what in SIZES.items()
    ]


def trace_option(what: str) -> Option:
    """`--trace`, for ``what`` happens in time."""
    return option("--trace", type=Path, metavar="FILE", help=f"write {what} as JSON for ui.perfetto.dev")


@command(
    "time",
    "simulate how long a kernel takes",
    "KERNEL is a name of the catalogue (`cypresskit kernels`). Prints Gflop/s, clocks, what bound the kernel, how busy "
    "each unit was, and hit rates, all modelled. A program of your own is timed in Python: ck.simulate.",
    option("kernel", metavar="KERNEL", help="a kernel's name"),
    *size_options(n="; m and k too by default"),
    option("--device", default="HD5870", metavar="NAME", help="HD5870 (default), HD5970 (one chip), HD5850"),
    option("--layout", choices=("linear", "tiled"), default="linear", help="of textures (default: linear)"),
    style_option(),
    option("--exact", action="store_true", help="simulate every wavefront, not a sample of them"),
    trace_option("one engine's timeline"),
    json_option("one object: gflops, clocks, bound, ..."),
    example="cypresskit time sgemm_tn --n 2048",
)
def time(args: argparse.Namespace) -> None:
    """Simulate one launch of a kernel and print the report."""
    check_targets(args.trace)
    for name in "nmk":
        size = getattr(args, name)
        if size is not None and not 0 < size < 10**MOST_DIGITS:
            raise CommandError(f"--{name} {size}: sizes are whole numbers from 1 to {10**MOST_DIGITS - 1:,}")
    with user_errors(KeyError, TypeError, ValueError, ck.CompileError):
        kernel, how = ck.kernels[args.kernel], {"style": args.style, "layout": args.layout, "exact": args.exact}
        if args.n is None:
            raise CommandError(f"{kernel.name}: say --n, the matrices' size (and --m and --k if they differ)")
        report = ck.simulate(kernel, args.n, m=args.m, k=args.k, device=devices.device(args.device), **how)
        write_file(args.trace, report.save_trace)
    show(args, report.row(), report)


@command(
    "score",
    "hold the model against what was published",
    "Compiles and simulates every kernel of which figures were published, and times the pipelines, on all cores. "
    "The ratio is simulated over published; what a paper shows in a picture only has neither.",
    json_option("a list of the table's rows"),
    option("--markdown", action="store_true", help="print a Markdown table (the default)"),
)
def score(args: argparse.Namespace) -> None:
    """Print published against simulated."""
    from concurrent.futures import ThreadPoolExecutor

    from cypresskit.host import host_rows
    from cypresskit.timing.scoring import judged, verdict
    from cypresskit.timing.scoring import score as kernel_rows

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            hosts = pool.submit(host_rows)
            rows = judged([*kernel_rows(executor=pool), *hosts.result()])
        except KeyboardInterrupt:
            os._exit(130)  # Python would wait for what the pool simulates now: ten seconds
    table = markdown(list(rows[0]), ([_shown(value) for value in row.values()] for row in rows))
    show(args, rows, "\n".join([table, "", verdict(rows)]))


def _shown(value) -> str:
    if isinstance(value, list):
        return " to ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)


@command(
    "pipeline",
    "time a product in the host's memory",
    "Strips of A and B go over the bus to the chips, blocks of C come back, and everything that can overlap does. Time "
    "only: no matrix is computed. Kernels run at the rate that the timing model gives them; bus and host memory are "
    "shared.",
    option("stages", choices=("four-stage", "five-stage"), help="Yang et al. (2010), or Li et al. (2012)"),
    *size_options(required=True),
    option("--board", default="HD5970", help="default: HD5970, which has two chips"),
    option("--chips", type=int, help="how many chips of the board work (default: all)"),
    option("--cpu", default="0", metavar="SHARE", help="the part of C's rows that the CPU computes, 0 to 1 (default: "
           "0); static: by peak rates; adaptive: by measured rates, after a few calls"),
    trace_option("the timeline"),
    json_option("one object: gflops, seconds, busy, bound, cpu_share"),
    example="cypresskit pipeline five-stage --m 16384 --n 16384 --k 1536 --board HD5970 --cpu adaptive",
)  # fmt: skip
def pipeline(args: argparse.Namespace) -> None:
    """Time one product and print what it took."""
    from cypresskit.host import Machine, adaptive, five_stage, four_stage, static_share

    check_targets(args.trace)
    stages = {"four-stage": four_stage, "five-stage": five_stage}[args.stages]
    sizes = args.m, args.n, args.k
    with user_errors(ValueError):
        machine = Machine(devices.device(args.board), use_chips=args.chips)
        if args.cpu == "adaptive":
            share, timeline = adaptive(*sizes, machine, pipeline=stages)[-1]
        else:
            share = static_share(machine) if args.cpu == "static" else _share(args.cpu)
            timeline = stages(*sizes, machine, cpu_share=share)
        write_file(args.trace, timeline.save)
    numbers = {"gflops": timeline.gflops, "seconds": timeline.seconds, "busy": timeline.busy, "bound": timeline.bound}
    show(args, numbers | {"cpu_share": share}, timeline)


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--cpu {text}: expected a number from 0 to 1, static or adaptive") from None
