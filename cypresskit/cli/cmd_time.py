"""`cypresskit time`: how long a kernel takes on the chip, and what each of its lines costs."""

import argparse

import cypresskit as ck
from cypresskit.cli.command import command, option, user_errors, whole

SIZE = whole(1, 10**9)


@command(
    "time",
    "simulate how long a kernel takes",
    "KERNEL is a name of the catalogue (`cypresskit kernels`) or an IL file with a kernel that"
    " multiplies matrices; other programs, shapes and boards are timed in Python, by"
    " `ck.simulate`. Prints Gflop/s, clocks, what bound the kernel, how busy each unit was, and hit"
    " rates, all modelled.",
    option("kernel", metavar="KERNEL", help="a kernel's name, or FILE.il"),
    option("--n", type=SIZE, metavar="SIZE", required=True, help="rows and columns of A, B and C"),
    option(
        "--costs",
        action="store_true",
        help="print what each line costs, and what if the chip lacked one limit",
    ),
    example="cypresskit time sgemm_tn --n 2048 --costs",
)
def time(args: argparse.Namespace) -> None:
    """Simulate one launch and print the report, with the cost of each line on request."""
    usual = (KeyError, OSError, TypeError, ValueError)
    with user_errors(*usual, ck.ILError, ck.CompileError, ck.KernelError):
        report = ck.simulate(args.kernel, args.n)
        if args.costs:
            print(ck.line_costs(report), ck.what_if(report), sep="\n\n", end="\n\n")
    print(report)
