"""`cypresskit time`: how long a kernel takes on the chip, and what each of its lines costs."""

import argparse

import cypresskit as ck
from cypresskit import devices
from cypresskit.cli.cmd_kernels import STYLE
from cypresskit.cli.command import command, option, user_errors, whole

SIZE = whole(1, 10**9)


@command(
    "time",
    "simulate how long a kernel takes",
    "KERNEL is a name of the catalogue (`cypresskit kernels`) or an IL file with a kernel that"
    " multiplies matrices; any other program is timed in Python, by `ck.simulate`. Prints Gflop/s,"
    " clocks, what bound the kernel, how busy each unit was, and hit rates, all modelled.",
    option("kernel", metavar="KERNEL", help="a kernel's name, or FILE.il"),
    option("--m", type=SIZE, metavar="SIZE", help="rows of A and C (default: N)"),
    option("--n", type=SIZE, metavar="SIZE", required=True, help="columns of B and C"),
    option("--k", type=SIZE, metavar="SIZE", help="columns of A, rows of B (default: N)"),
    option(
        "--device",
        default="HD5870",
        metavar="NAME",
        help="HD5870 (default), HD5970 (one chip), HD5850",
    ),
    option(
        "--layout",
        choices=("linear", "tiled"),
        default="linear",
        help="of textures (default: linear)",
    ),
    STYLE,
    option("--exact", action="store_true", help="simulate every wavefront, not a sample of them"),
    option(
        "--lines",
        action="store_true",
        help="print what each line costs, and what if the chip lacked one limit",
    ),
    example="cypresskit time sgemm_tn --n 2048 --lines",
)
def time(args: argparse.Namespace) -> None:
    """Simulate one launch and print the report, and the prices of its lines if asked for."""
    how = {"style": args.style, "layout": args.layout, "exact": args.exact}
    usual = (KeyError, OSError, TypeError, ValueError)
    with user_errors(*usual, ck.ILError, ck.CompileError, ck.KernelError):
        device = devices.device(args.device)
        report = ck.simulate(args.kernel, args.n, m=args.m, k=args.k, device=device, **how)
        if args.lines:
            print(ck.price(report), ck.what_if(report), ck.why(report), sep="\n\n", end="\n\n")
    print(report)
