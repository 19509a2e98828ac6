"""Time what readers wait for: ``make bench``, or ``make bench ARGS="clock lesson"`` for the rows
whose names begin so.

``python -m timeit`` runs each row's statement three times in a new process, and prints the fastest
run's seconds. Compare times of one machine only: the first two rows tell how fast it is.
"""

import os
import subprocess
import sys
from pathlib import Path

from tools import book

ROOT = Path(__file__).parents[1]
MATRICES = """
import numpy as np, cypresskit as ck
a, b = np.random.default_rng(1).random((2, {n}, {n}))
a, b = (x.astype(ck.kernels["{kernel}"].dtype) for x in (a, b))
"""
PRODUCT = """
kernel = ck.kernels["{kernel}"]
ck.launch(kernel.program, **kernel.arguments(a, b, None, 1, 0), engine="{engine}")
"""
CLOCK = """
import cypresskit as ck
from cypresskit.timing.simulate import forget_reports
"""
COSTS = """
import cypresskit as ck
from inspect import unwrap
from cypresskit.timing.costs import line_costs
report = ck.simulate("sgemm_tn", 2048)
"""
EDIT = """
import cypresskit as ck
from cypresskit.editing.answering import AnswerHere
from cypresskit.timing.simulate import forget_reports
text = ck.kernels["sgemm_tn"].text.replace("r2.x", "r2.y", 1)
job = {"edit": "1", "text": text, "name": "my.il", "like": "sgemm_tn", "n": 2048}
job["parts"] = ["code", "verdict", "clocks"]
"""
PAGE = """
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from tools import bench_page
from tools.bench_page import browser
stack = ExitStack()
folder = Path(stack.enter_context(TemporaryDirectory()))
bench_page.write_page(folder)
address = stack.enter_context(browser.served(folder))
chromium = stack.enter_context(browser.chromium())
page = chromium.new_page()
"""
#: By name: what is prepared, and what is timed.
ROWS = {
    "loop of ten million iterations": ("", "for i in range(10**7): pass"),
    "numpy's product 1024": (MATRICES.format(n=1024, kernel="sgemm_tn"), "a.T @ b"),
    **{
        f"product {kernel} {n}, {engine}": (
            MATRICES.format(n=n, kernel=kernel),
            PRODUCT.format(kernel=kernel, engine=engine),
        )
        for kernel, n, engine in (
            ("sgemm_tn", 1024, "compiled"),
            ("dgemm_tn", 512, "compiled"),
            ("sgemm_tn", 64, "interpreter"),
        )
    },
    **{
        f"clock {kernel} {n}": (
            CLOCK,
            f'forget_reports(); ck.simulate("{kernel}", {n})',
        )
        for kernel in ("sgemm_tn", "dgemm_tn", "sgemm_64x64_lds")
        for n in (256, 1024, 4096)
    },
    "costs of lines sgemm_tn 2048": (COSTS, "unwrap(line_costs)(report)"),
    "edit, until its clocks": (EDIT, "forget_reports(); AnswerHere(lambda message: 0).ask(job)"),
    "start": (
        "import subprocess, sys",
        'subprocess.run([sys.executable, "-c", "import cypresskit"])',
    ),
    "page, from the link to the verdict": (
        PAGE,
        "browser.open_bench(chromium.new_context().new_page(), address)",
    ),
    **{
        f"lesson {path.stem[:2]}, solved": (
            f"from pathlib import Path; from tools import book; path = Path({str(path)!r})",
            "book.execute(book.solved(book.read(path)))",
        )
        for path in book.sources(ROOT / "notebooks")
    },
}


def main(beginnings: list[str]) -> int:
    """Time the rows whose names begin so, by default all. Return the command's exit status."""
    chosen = [name for name in ROWS if not beginnings or name.startswith(tuple(beginnings))]
    if not chosen:
        print(f"No row begins with {' or '.join(beginnings)}. There are:", *ROWS, sep="\n")
        return 1
    settings = os.environ | {"OPENBLAS_NUM_THREADS": "1", "CYPRESSKIT_KEEP": "0"}
    for name in chosen:
        print(f"{name:36}", end=" ", flush=True)
        command = [sys.executable, "-m", "timeit", "-n", "1", "-r", "3", "-u", "sec", "-s"]
        done = subprocess.run([*command, *ROWS[name]], cwd=ROOT, env=settings)
        if done.returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
