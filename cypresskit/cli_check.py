"""`cypresskit check` and `cypresskit fuzz`: the checks of `ck.check` on files, and random programs for everything.

Both exit with status 0 if nothing was found in any program, and 1 if something was, or a file could not be checked.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cypresskit.il import Program
    from cypresskit.machine.checks import Findings

CHECK_HELP = (
    "Takes what `cypresskit run` takes, steps through each program, and looks for accesses out of range, races, values "
    "that nobody set, barriers that not all reach, NaN and infinities, and what it costs. Prints one report per fault; "
    "no file is written, so --output and --global only say what is there. The exit status is 0 if nothing was found, "
    "1 if something was or a file could not be checked."
)
CHECK_EXAMPLE = "cypresskit check scale.il --domain 64x64 --input 0=a.npy --output 0=c.npy --name 0=A"
FUZZ_HELP = (
    "Makes programs that are valid, nearly valid and random for so many seconds, and holds both engines, the checks "
    "and the compiler to it that none crashes or hangs and all compute the same bits."
)


def add_check(sub: argparse.ArgumentParser) -> None:
    """The options of `check` beyond those of `run`."""
    sub.add_argument(
        "--name", action="append", default=[], metavar="PLACE=NAME", help="what reports call texture 0, or g, or o0"
    )
    for budget in ("fetches", "bundles", "registers"):
        sub.add_argument(f"--max-{budget}", type=_most, metavar="N", help=f"report more {budget} than this")


def _most(text: str) -> float:
    try:
        most = float(text)
    except ValueError:
        most = -1
    if not 0 <= most < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 0")
    return most


def findings(args: argparse.Namespace, program: Program, arrays: dict, names: dict) -> Findings:
    """What a program's checks find: `arrays` holds the other arguments of `ck.launch`."""
    from cypresskit.machine.checks import check

    budgets = {name: getattr(args, f"max_{name}") for name in ("fetches", "bundles", "registers")}
    budgets = {name: most for name, most in budgets.items() if most is not None}
    return check(program, **arrays, names=names, budgets=budgets)


def names(pairs: list[str], arrays: dict) -> dict:
    """`["0=A", "g=C"]` as `{0: "A", "g": "C"}`; CommandError for a place that was not given."""
    from cypresskit.cli import CommandError

    places = {str(n): n for n in arrays["inputs"]} | {f"o{n}": f"o{n}" for n in arrays["outputs"]}
    places |= {"g": "g"} if arrays["global_memory"] is not None else {}
    found: dict = {}
    for pair in pairs:
        place, _, name = pair.partition("=")
        if not name or place not in places:
            given = ", ".join(places) or "nothing"
            raise CommandError(
                f"--name {pair}: expected PLACE=NAME, such as 0=A, with a place that was given ({given})"
            )
        if places[place] in found:
            raise CommandError(f"--name {pair}: {place} was named before, {found[places[place]]}")
        found[places[place]] = name
    return found


def add_fuzz(sub: argparse.ArgumentParser) -> None:
    """The options of `fuzz`."""
    sub.add_argument("--seconds", type=float, default=60, metavar="S", help="how long (default: 60)")
    sub.add_argument("--seed", type=int, default=0, metavar="N", help="the first program's seed (default: 0)")


def fuzz(args: argparse.Namespace) -> int:
    """Fuzz for so many seconds."""
    from cypresskit.fuzz import run

    return 1 if run(args.seconds, args.seed) else 0
