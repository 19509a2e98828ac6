"""Time what readers wait for: ``make bench``, or ``make bench ARGS="clock lesson"`` for the rows
whose names begin so.

``python -m timeit`` runs each row's statement three times in a new process, and prints the fastest
run's seconds. Compare times of one machine only: the first two rows tell how fast it is.

The rows of lessons are what a reader waits for, in the whole solved lesson and in its longest cell
but the first, which imports the package; and in parentheses both in seconds of processor time,
which other work on the machine changes little. They are measured with empty caches, as a new reader
has them, and with the results of launches at hand. The timing model's machine code is there in
both; that of kernels, and what they compile to on the chip, only in the second.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from cypresskit.files import result_cache
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
from cypresskit.editing.answering import LocalAnswerer
from cypresskit.timing.simulate import forget_reports
text = ck.kernels["sgemm_tn"].text.replace("r2.x", "r2.y", 1)
job = {"edit": "1", "text": text, "name": "my.il", "like": "sgemm_tn", "n": 2048}
job["parts"] = ["code", "verdict", "clocks"]
"""
PAGE = """
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
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
    "edit, until its clocks": (EDIT, "forget_reports(); LocalAnswerer(lambda message: 0).ask(job)"),
    "start": (
        "import subprocess, sys",
        'subprocess.run([sys.executable, "-c", "import cypresskit"])',
    ),
    "page, from the link to the verdict": (
        PAGE,
        "browser.open_bench(chromium.new_context().new_page(), address)",
    ),
}
LESSONS = {f"lesson {path.stem[:2]}": path for path in book.sources(ROOT / "notebooks")}
COMPILED = "import cypresskit as ck; ck.simulate('sgemm_64x64_lds', 64); ck.verify('sgemm_tn')"


@contextmanager
def code_alone() -> Iterator[Path]:
    """A folder for caches with the timing model's machine code and no results."""
    with TemporaryDirectory() as folder:
        settings = os.environ | {"XDG_CACHE_HOME": folder, "CYPRESSKIT_KEEP": "1"}
        subprocess.run([sys.executable, "-c", COMPILED], env=settings, check=True)
        forget_results(Path(folder))
        yield Path(folder)


def forget_results(folder: Path) -> None:
    """Delete the results, and the machine code of kernels."""
    for file in [*result_cache.saved_files(folder), *folder.rglob("kernel-*")]:
        file.unlink()


def seconds(lesson: Path, caches: Path) -> list[tuple[float, float]]:
    """Run a solved lesson. Return the seconds, and those of processor time: of all cells, and of
    the longest but the first.
    """
    from nbclient import NotebookClient

    notebook = book.solved(book.read(lesson))
    settings = os.environ | {"XDG_CACHE_HOME": str(caches), "CYPRESSKIT_KEEP": "1"}
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, timeout=None, kernel_name="python3", resources=resources)
        each = []
        with client.setup_kernel(env=settings, stderr=subprocess.DEVNULL):
            provisioner: Any = client.km and client.km.provisioner
            process = provisioner.process.pid
            clocks = perf_counter(), processor_seconds(process)
            for number, cell in enumerate(notebook.cells):
                if cell.cell_type == "code":
                    client.execute_cell(cell, number)
                    before, clocks = clocks, (perf_counter(), processor_seconds(process))
                    each.append([now - then for then, now in zip(before, clocks)])
    return [(sum(column), max(column[1:])) for column in zip(*each)]


def processor_seconds(number: int) -> float:
    """Return the seconds of processor time of a process and its children, past and present."""
    from psutil import NoSuchProcess, Process

    process = Process(number)
    total = sum(process.cpu_times()[:4])
    for child in process.children(recursive=True):
        with suppress(NoSuchProcess):
            total += sum(child.cpu_times()[:2])
    return float(total)


def time_lessons(names: list[str]) -> None:
    """Print the row of each of these lessons."""
    with code_alone() as caches:
        for name in names:
            print(f"{name:36}", end=" ", flush=True)
            forget_results(caches)
            for state in ("caches empty", "results at hand"):
                (whole, cell), used = seconds(LESSONS[name], caches)
                processor = "{:.1f}, {:.1f}".format(*used)
                words = f"{state}: {whole:.1f} s, a cell {cell:.1f} s (processor: {processor})"
                print(words, end="; ", flush=True)
            print()


def main(beginnings: list[str]) -> int:
    """Time the rows whose names begin so, by default all. Return the command's exit status."""
    names = [*ROWS, *LESSONS]
    chosen = [name for name in names if not beginnings or name.startswith(tuple(beginnings))]
    if not chosen:
        print(f"No row begins with {' or '.join(beginnings)}. There are:", *names, sep="\n")
        return 1
    settings = os.environ | {"OPENBLAS_NUM_THREADS": "1", "CYPRESSKIT_KEEP": "0"}
    for name in filter(ROWS.get, chosen):
        print(f"{name:36}", end=" ", flush=True)
        command = [sys.executable, "-m", "timeit", "-n", "1", "-r", "3", "-u", "sec", "-s"]
        done = subprocess.run([*command, *ROWS[name]], cwd=ROOT, env=settings)
        if done.returncode:
            return 1
    if lessons := [name for name in chosen if name in LESSONS]:
        time_lessons(lessons)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
