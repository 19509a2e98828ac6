"""Run the fuzzer (`make fuzz`). The exit status is 1 if a program failed."""

import argparse
import sys
from pathlib import Path

from tools.fuzz import KINDS, run
from tools.fuzz.samples import survey

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
        "--launches", type=int, metavar="N", help="of kind sampled: N, on all cores, with a summary"
    )
    parser.add_argument("--rows", type=Path, metavar="FILE", help="write a row for each of these")
    arguments = vars(parser.parse_args())
    launches, rows = arguments.pop("launches"), arguments.pop("rows")
    if launches:
        sys.exit(survey(arguments["seed"], launches, rows) > 0)
    sys.exit(run(**arguments) > 0)
