"""`cypresskit time` and `cypresskit score`: what the timing model says, and how that compares with the published."""

import argparse
from pathlib import Path

from cypresskit.cli.command import CommandError, command, json_option, option, show
from cypresskit.cli.files import check_targets, write_files


@command(
    "time",
    "simulate how long a kernel takes",
    "KERNEL is a name of the catalogue (`cypresskit kernels`). Prints Gflop/s, clocks, what bound the kernel, how busy "
    "each unit was, and hit rates, all modelled.",
    option("kernel", metavar="KERNEL", help="a kernel's name"),
    option("--n", type=int, required=True, metavar="N", help="columns of C; also its rows and k by default"),
    option("--m", type=int, metavar="M", help="rows of C"),
    option("--k", type=int, metavar="K", help="length of the sums"),
    option("--device", default="HD5870", metavar="NAME", help="HD5870 (default), HD5970 (one chip), HD5850"),
    option("--layout", choices=("linear", "tiled"), default="linear", help="of textures (default: linear)"),
    option("--style", choices=("amd", "best"), default="amd", help="of compiling (default: amd)"),
    option("--exact", action="store_true", help="simulate every wavefront, not a sample of them"),
    option("--trace", type=Path, metavar="FILE", help="write one engine's timeline as JSON for ui.perfetto.dev"),
    json_option("one object: gflops, clocks, bound, ..."),
    example="cypresskit time dgemm_tn --n 1664 --device HD5850",
)
def time(args: argparse.Namespace) -> None:
    """Simulate one launch of a kernel and print the report."""
    import cypresskit as ck
    from cypresskit import devices

    traces = [args.trace] if args.trace else []
    check_targets(*traces)
    try:
        kernel = ck.kernels[args.kernel]
        device = devices.device(args.device)
        report = ck.simulate(
            kernel, args.n, m=args.m, k=args.k, device=device, layout=args.layout, exact=args.exact, style=args.style
        )
        write_files(dict.fromkeys(traces, report.save_trace))
    except (KeyError, ValueError) as error:
        raise CommandError(str(error.args[0] if isinstance(error, KeyError) else error)) from None
    show(args, report.row(), report)


@command(
    "score",
    "hold the model against what was published",
    "Compiles and simulates every kernel of which figures were published, and times the pipelines: about a minute. "
    "The ratio is simulated over published; what a paper shows in a picture only has neither.",
    json_option("a list of the table's rows"),
    option("--markdown", action="store_true", help="print a Markdown table (the default)"),
    option("--sensitivity", action="store_true", help="instead: each calibration halved and doubled"),
    option("--leave-one-out", action="store_true", help="instead: each peak predicted from the others"),
)
def score(args: argparse.Namespace) -> None:
    """Print published against simulated."""
    from cypresskit.host import host_rows
    from cypresskit.timing.scoring import judged, leave_one_out, sensitivity, verdict
    from cypresskit.timing.scoring import score as kernel_rows

    end = []
    if args.sensitivity or args.leave_one_out:
        rows = list(sensitivity() if args.sensitivity else leave_one_out())
    else:
        rows = judged([*kernel_rows(), *host_rows()])
        end = ["", verdict(rows)]
    lines = [list(rows[0]), *([_shown(value) for value in row.values()] for row in rows)]
    table = [f"| {' | '.join(line)} |" for line in lines]
    table.insert(1, "|" + "---|" * len(rows[0]))
    show(args, rows, "\n".join(table + end))


def _shown(value) -> str:
    if isinstance(value, list):
        return " to ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)
