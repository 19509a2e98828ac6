"""`cypresskit time`: simulate how long a kernel takes, and what each line costs."""

import argparse

import cypresskit as ck
from cypresskit.cli.command import command, convert_errors, integer_parser, option

SIZE = integer_parser(1, 10**9)


@command(
    "time",
    "simulate how long a kernel takes",
    "KERNEL is a name in the catalog (`cypresskit kernels`) or an IL file with a kernel that"
    " multiplies matrices. The report has Gflop/s, clocks, what bounds the kernel, how busy each"
    " unit is, and hit rates; all are modeled. In Python, `ck.simulate` also times other programs,"
    " shapes and boards.",
    option("kernel", metavar="KERNEL", help="a kernel's name, or FILE.il"),
    option("--n", type=SIZE, metavar="SIZE", required=True, help="rows and columns of A, B and C"),
    option(
        "--costs",
        action="store_true",
        help="also print each line's cost, and the speed without each of the chip's limits",
    ),
    example="cypresskit time sgemm_tn --n 2048 --costs",
)
def time(args: argparse.Namespace) -> None:
    """Simulate one launch and print the report, with the cost of each line on request."""
    plain = (KeyError, OSError, TypeError, ValueError)
    with convert_errors(*plain, ck.ILError, ck.CompileError, ck.KernelError):
        report = ck.simulate(args.kernel, args.n)
        if args.costs:
            print(ck.line_costs(report), ck.what_if(report), sep="\n\n", end="\n\n")
    print(report)
