"""Run the fuzzer (`make fuzz`). The exit status is 1 if a program failed."""

import argparse
import sys

from tools.fuzz import KINDS, run
from tools.fuzz.samples import calibrate

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=60, metavar="S", help="how long (default: 60)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="the first program's seed (default: 0)"
    )
    parser.add_argument("--kind", choices=list(KINDS), help="this kind only (default: all in turn)")
    parser.add_argument(
        "--calibrate", type=int, metavar="N", help="show by how much N sampled launches are off"
    )
    arguments = vars(parser.parse_args())
    launches = arguments.pop("calibrate")
    if launches:
        calibrate(arguments["seed"], launches)
    else:
        sys.exit(run(**arguments) > 0)
