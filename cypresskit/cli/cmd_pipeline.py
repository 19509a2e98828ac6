"""`cypresskit pipeline`: the four-stage and five-stage pipelines over chips and CPU, in time alone."""

import argparse
from pathlib import Path

from cypresskit.cli.command import CommandError, command, json_option, option, show
from cypresskit.cli.files import check_targets, write_files

SIZES = {"m": "rows of A and C", "n": "columns of B and C", "k": "columns of A, rows of B"}


@command(
    "pipeline",
    "time a product in the host's memory",
    "Strips of A and B go over the bus to the chips, blocks of C come back, and everything that can overlap does. Time "
    "only: no matrix is computed. Kernels run at the rate that the timing model gives them; bus and host memory are "
    "shared.",
    option("stages", choices=("four-stage", "five-stage"), help="Yang et al. (2010), or Li et al. (2012)"),
    *(option(f"--{size}", required=True, type=int, metavar="SIZE", help=what) for size, what in SIZES.items()),
    option("--board", default="HD5970", help="default: HD5970, which has two chips"),
    option("--chips", type=int, help="how many chips of the board work (default: all)"),
    option(
        "--cpu",
        default="0",
        metavar="SHARE",
        help="the part of C's rows that the CPU computes, 0 to 1 (default: 0); static: by peak rates; adaptive: by "
        "measured rates, after a few calls",
    ),
    option("--trace", type=Path, metavar="FILE", help="write the timeline as JSON for ui.perfetto.dev"),
    json_option("one object: gflops, seconds, busy, bound, cpu_share"),
    example="cypresskit pipeline five-stage --m 16384 --n 16384 --k 1536 --board HD5970 --cpu adaptive",
)
def pipeline(args: argparse.Namespace) -> None:
    """Time one product and print what it took."""
    from cypresskit import devices
    from cypresskit.host import Machine, adaptive, five_stage, four_stage, static_share

    traces = [args.trace] if args.trace else []
    check_targets(*traces)
    stages = {"four-stage": four_stage, "five-stage": five_stage}[args.stages]
    sizes = args.m, args.n, args.k
    try:
        machine = Machine(devices.device(args.board), use_chips=args.chips)
        if args.cpu == "adaptive":
            share, timeline = adaptive(*sizes, machine, pipeline=stages)[-1]
        else:
            share = static_share(machine) if args.cpu == "static" else _share(args.cpu)
            timeline = stages(*sizes, machine, cpu_share=share)
        write_files(dict.fromkeys(traces, timeline.save))
    except ValueError as error:
        raise CommandError(str(error)) from None
    numbers = {"gflops": timeline.gflops, "seconds": timeline.seconds, "busy": timeline.busy, "bound": timeline.bound}
    show(args, numbers | {"cpu_share": share}, timeline)


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--cpu {text}: expected a number from 0 to 1, static or adaptive") from None
