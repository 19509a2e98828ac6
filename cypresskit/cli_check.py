"""`cypresskit check` and `cypresskit fuzz`: the checks of `ck.check` on a file, and random programs for everything.

Both exit with status 0 if nothing was found and 1 otherwise.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

CHECK_HELP = (
    "Takes what `cypresskit run` takes, steps through the program, and looks for accesses out of range, races, values "
    "that nobody set, barriers that not all reach, NaN and infinities, and what it costs. Prints one report per fault; "
    "no file is written, so --output and --global only say what is there."
)
CHECK_EXAMPLE = "cypresskit check scale.il --domain 64x64 --input 0=a.npy --output 0=c.npy --name 0=A"
FUZZ_HELP = (
    "Makes programs that are valid, nearly valid and random for so many seconds, and holds both engines, the checks "
    "and the compiler to it that none crashes or hangs and all compute the same bits. Needs the repository's tests/."
)


def add_check(sub: argparse.ArgumentParser) -> None:
    """The options of `check` beyond those of `run`."""
    sub.add_argument("--name", action="append", default=[], metavar="I=NAME", help="what reports call texture I, or g")
    for budget in ("fetches", "bundles", "registers"):
        sub.add_argument(f"--max-{budget}", type=float, metavar="N", help=f"report more {budget} than this")


def check_file(args: argparse.Namespace, launch: dict) -> int:
    """Check a program: `launch` holds the arguments of `ck.launch`. Returns the exit status."""
    from cypresskit.machine.checks import check

    pairs = [pair.partition("=") for pair in args.name]
    names = {int(place) if place.isdigit() else place: name for place, _, name in pairs}
    budgets = {name: getattr(args, f"max_{name}") for name in ("fetches", "bundles", "registers")}
    findings = check(**launch, names=names, budgets={n: most for n, most in budgets.items() if most is not None})
    print(findings)
    return 1 if findings else 0


def add_fuzz(sub: argparse.ArgumentParser) -> None:
    """The options of `fuzz`."""
    sub.add_argument("--seconds", type=float, default=60, metavar="S", help="how long (default: 60)")
    sub.add_argument("--seed", type=int, default=0, metavar="N", help="the first program's seed (default: 0)")


def fuzz(args: argparse.Namespace) -> int:
    """Run the fuzzer of tests/fuzz.py."""
    tests = Path(__file__).resolve().parent.parent / "tests"
    if not (tests / "fuzz.py").exists():
        print(f"cypresskit fuzz: {tests} is missing; run this from a checkout of the repository", file=sys.stderr)
        return 1
    sys.path.insert(0, str(tests))
    from fuzz import run  # type: ignore[import-not-found]

    return 1 if run(args.seconds, args.seed) else 0
