"""`cypresskit pipeline`: the four-stage and five-stage pipelines over chips and CPU, in time alone."""

from __future__ import annotations

import argparse
import json

HELP = (
    "Strips of A and B go over the bus to the chips, blocks of C come back, and everything that can overlap does. Time "
    "only: no matrix is computed. Kernels run at the rate that the timing model gives them; bus and host memory are "
    "shared."
)
EXAMPLE = "cypresskit pipeline five-stage --m 16384 --n 16384 --k 1536 --board HD5970 --cpu adaptive"


def add_pipeline(sub: argparse.ArgumentParser) -> None:
    """The options of `pipeline`."""
    sub.add_argument("stages", choices=("four-stage", "five-stage"), help="Yang et al. (2010), or Li et al. (2012)")
    for size, what in (("m", "rows of A and C"), ("n", "columns of B and C"), ("k", "columns of A, rows of B")):
        sub.add_argument(f"--{size}", required=True, type=int, metavar="SIZE", help=what)
    sub.add_argument("--board", default="HD5970", help="default: HD5970, which has two chips")
    sub.add_argument("--chips", type=int, help="how many chips of the board work (default: all)")
    cpu = (
        "the part of C's rows that the CPU computes, 0 to 1 (default: 0); static: by peak rates; adaptive: by measured"
    )
    sub.add_argument("--cpu", default="0", metavar="SHARE", help=f"{cpu} rates, after a few calls")
    sub.add_argument("--trace", metavar="FILE", help="write the timeline as JSON for ui.perfetto.dev")
    sub.add_argument("--json", action="store_true", help="print one JSON object: gflops, seconds, busy, bound")


def pipeline(args: argparse.Namespace) -> None:
    """Time one product and print what it took."""
    from cypresskit import devices
    from cypresskit.cli import CommandError
    from cypresskit.host import Machine, adaptive, five_stage, four_stage, static_share

    stages = {"four-stage": four_stage, "five-stage": five_stage}[args.stages]
    sizes = args.m, args.n, args.k
    try:
        machine = Machine(devices.device(args.board), use_chips=args.chips)
        if args.cpu == "adaptive":
            share, timeline = adaptive(*sizes, machine, pipeline=stages)[-1]
        else:
            share = static_share(machine) if args.cpu == "static" else _share(args.cpu)
            timeline = stages(*sizes, machine, cpu_share=share)
        if args.trace:
            timeline.save(args.trace)
    except ValueError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"can't write {args.trace}: {error}") from None
    if args.json:
        numbers = {"gflops": timeline.gflops, "seconds": timeline.seconds, "busy": timeline.busy}
        print(json.dumps(numbers | {"bound": timeline.bound, "cpu_share": share}))
    else:
        print(timeline)


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--cpu {text}: expected a number from 0 to 1, static or adaptive") from None
