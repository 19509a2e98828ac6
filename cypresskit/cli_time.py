"""`cypresskit time` and `cypresskit score`: what the timing model says, and how that compares with the published."""

from __future__ import annotations

import argparse
import json

TIME_HELP = (
    "KERNEL is a name of the catalogue (`cypresskit kernels`). Prints Gflop/s, clocks, what bound the kernel, how busy "
    "each unit was, and hit rates, all modelled."
)
TIME_EXAMPLE = "cypresskit time dgemm_tn --n 1664 --device HD5850"
SCORE_HELP = (
    "Compiles and simulates every kernel of which figures were published, and times the pipelines: about a minute. "
    "The ratio is simulated over published; what a paper shows in a picture only has neither."
)


def add_time(sub: argparse.ArgumentParser) -> None:
    """The options of `time`."""
    sub.add_argument("kernel", metavar="KERNEL", help="a kernel's name")
    sub.add_argument("--n", type=int, required=True, metavar="N", help="columns of C; also its rows and k by default")
    sub.add_argument("--m", type=int, metavar="M", help="rows of C")
    sub.add_argument("--k", type=int, metavar="K", help="length of the sums")
    sub.add_argument("--device", default="HD5870", metavar="NAME", help="HD5870 (default), HD5970 (one chip), HD5850")
    sub.add_argument("--layout", choices=("linear", "tiled"), default="linear", help="of textures (default: linear)")
    sub.add_argument("--exact", action="store_true", help="simulate every wavefront, not a sample of them")
    sub.add_argument("--trace", metavar="FILE", help="write one engine's timeline as JSON for ui.perfetto.dev")
    sub.add_argument("--json", action="store_true", help="print one JSON object: gflops, clocks, bound, ...")


def time(args: argparse.Namespace) -> None:
    """Simulate one launch of a kernel and print the report."""
    import cypresskit as ck
    from cypresskit import devices
    from cypresskit.cli import CommandError

    try:
        kernel = ck.kernels[args.kernel]
        device = devices.device(args.device)
        report = ck.simulate(kernel, args.n, m=args.m, k=args.k, device=device, layout=args.layout, exact=args.exact)
        if args.trace:
            report.save_trace(args.trace)
    except (KeyError, ValueError, OSError) as error:
        raise CommandError(str(error.args[0] if isinstance(error, KeyError) else error)) from None
    print(json.dumps(report.row()) if args.json else report)


def add_score(sub: argparse.ArgumentParser) -> None:
    """The options of `score`."""
    sub.add_argument("--json", action="store_true", help="print a JSON list of rows")
    sub.add_argument("--markdown", action="store_true", help="print a Markdown table (the default)")
    sub.add_argument("--sensitivity", action="store_true", help="instead: each calibration halved and doubled")


def score(args: argparse.Namespace) -> None:
    """Print published against simulated."""
    from cypresskit.host.score import host_rows
    from cypresskit.timing.score import score as kernel_rows
    from cypresskit.timing.score import sensitivity

    rows = list(sensitivity()) if args.sensitivity else [*kernel_rows(), *host_rows()]
    if args.json:
        print(json.dumps(rows))
        return
    names = list(rows[0])
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(_shown(row[name]) for name in names) + " |")


def _shown(value) -> str:
    if isinstance(value, list):
        return " to ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)
