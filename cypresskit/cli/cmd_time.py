"""`cypresskit time`: how long a kernel takes on the chip, or a program with a launch of its own,
and what each of its lines costs.
"""

import argparse

import cypresskit as ck
from cypresskit import devices
from cypresskit.cli.cmd_kernels import STYLE, named_program
from cypresskit.cli.command import CommandError, command, option, user_errors, whole

SIZE = whole(1, 10**9)
NUMBER = whole(0, 10**6)


def extent(text: str) -> tuple[int, ...]:
    """Whole numbers with an x between them: 1024x1024."""
    sizes = text.split("x")
    if not 1 <= len(sizes) <= 3:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 1024x1024")
    return tuple(map(SIZE, sizes))


def texture(text: str) -> tuple[int, tuple[int, ...]]:
    """The number of a texture and its size in texels: 0=1032x1032."""
    number, equals, size = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} isn't NUMBER=WIDTHxHEIGHT, such as 0=1032x1032")
    return NUMBER(number), extent(size)


def constants(text: str) -> tuple[int, list[int | float]]:
    """The number of a constant buffer and its numbers: 0=1024,512. As in Python, those with a point
    or an exponent are floats.
    """
    number, _, values = text.partition("=")
    try:
        return NUMBER(number), [_number(value) for value in values.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} isn't NUMBER=VALUE,VALUE,..., such as 0=1024,512"
        ) from None


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


@command(
    "time",
    "simulate how long a kernel takes",
    "KERNEL is a name of the catalogue (`cypresskit kernels`) or an IL file. Prints Gflop/s,"
    " clocks, what bound the kernel, how busy each unit was, and hit rates, all modelled. A GEMM"
    " kernel needs --n; any other program its launch: --domain, and the sizes of the textures and"
    " the constants that it reads.",
    option("kernel", metavar="KERNEL", help="a kernel's name, or FILE.il"),
    option("--m", type=SIZE, metavar="SIZE", help="rows of A and C (default: N)"),
    option("--n", type=SIZE, metavar="SIZE", help="columns of B and C"),
    option("--k", type=SIZE, metavar="SIZE", help="columns of A, rows of B (default: N)"),
    option("--domain", type=extent, metavar="WxH", help="a program's work-items, as 1024x1024"),
    option(
        "--texture",
        type=texture,
        action="append",
        default=[],
        metavar="I=WxH",
        help="texels of texture I, such as 0=1032x1032",
    ),
    option(
        "--constant",
        type=constants,
        action="append",
        default=[],
        metavar="I=X,Y",
        help="numbers in constant buffer I: 0=1024,512 are integers, 0=1024.0,512.0 floats",
    ),
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
        if args.domain:
            launch = launch_of(args)
            report = ck.simulate(launch.program, launch=launch, device=device, **how)
        else:
            check_sizes(args)
            report = ck.simulate(args.kernel, args.n, m=args.m, k=args.k, device=device, **how)
        if args.lines:
            print(ck.price(report), ck.what_if(report), ck.why(report), sep="\n\n", end="\n\n")
    print(report)


def launch_of(args: argparse.Namespace) -> ck.Shape:
    """The launch of a program, by the options."""
    if (args.n, args.m, args.k) != (None, None, None):
        raise CommandError(
            "--domain launches a program, which has no --n, --m or --k: leave out these, or that"
        )
    program, _ = named_program(args.kernel)
    try:
        return ck.Shape(program, args.domain, dict(args.texture), dict(args.constant))
    except (TypeError, ValueError) as error:
        raise CommandError(f"{error} (here --texture I=WxH, --constant I=X,Y)") from None


def check_sizes(args: argparse.Namespace) -> None:
    """Raise ``CommandError`` for a GEMM kernel without its size, or with a program's launch."""
    if args.texture or args.constant:
        raise CommandError("--texture and --constant are a program's: give its --domain, too")
    if args.n is None:
        raise CommandError(
            "give --n, the matrices' size, for a GEMM kernel; a program's launch is --domain WxH,"
            " --texture I=WxH and --constant I=X,Y"
        )
