"""`make fuzz`: random programs for so many seconds; the exit status is 1 if one of them went wrong."""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tools.fuzz import run

ROUND = 400  # programs, after which a fresh process goes on: LLVM keeps some memory of each kernel that it compiled

parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
parser.add_argument("--seconds", type=float, default=60, metavar="S", help="how long (default: 60)")
parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first program's seed (default: 0)")
args = parser.parse_args()

if __name__ == "__main__":
    end, seed, wrong = time.monotonic() + args.seconds, args.seed, 0
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:
        while seed == args.seed or time.monotonic() < end:
            wrong += fresh.submit(run, end - time.monotonic(), seed, most=ROUND).result()
            seed += ROUND
    sys.exit(1 if wrong else 0)
