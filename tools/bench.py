"""Measure the package's speed: `make bench`, or `make bench ARGS="clock lessons"` for some groups.

Each time is divided by a yardstick's in the same run: numpy's product of the same matrices, a
loop in plain Python, or an empty process or page. So the ratios are similar on all machines. A row
has the median ratio of its runs, and the range of the middle half. ``--write`` stores the ratios in
bench.json; ``--check`` fails if one is more than three times the stored one.

Times are processor time, which other programs affect least. Each group runs in a new process, with
one thread unless stated otherwise, because numpy's BLAS reads its number of threads only at start.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from inspect import unwrap
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time, sleep
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np

import cypresskit as ck
from cypresskit.editing.answering import AnswerHere
from cypresskit.editing.static_answers import text_answer
from cypresskit.files.disk_cache import cache_folder
from cypresskit.timing.costs import line_costs
from tools import bench_page, book
from tools.random_edits import random_edits

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_name("bench.json")
LIMIT = 3  # `--check` fails if a ratio is more than this factor above the stored one
LEAST = 0.02  # of a yardstick: lower ratios aren't stored
ONE_THREAD = {
    f"{library}_THREADS": "1"
    for library in ("OPENBLAS_NUM", "OMP_NUM", "MKL_NUM", "VECLIB_MAXIMUM")
}
EDITED = 2048  # N at which an edited kernel is timed
LONG = 1.0  # seconds of runs per row
SIZES = (64, 256, 512, 1024, 2048)  # of sgemm_tn
OTHERS = (
    ("dgemm_tn", 512, "compiled"),
    ("ddgemm_tn_fma", 512, "compiled"),
    ("sgemm_64x64_lds", 512, "compiled"),
    ("sgemm_naive", 256, "compiled"),
    ("sgemm_tn", 64, "interpreter"),
    ("sgemm_tn", 256, "interpreter"),
    ("ddgemm_tn_fma", 64, "interpreter"),
)
TIMED = ("sgemm_tn", "dgemm_tn", "dgemm_nn", "sgemm_64x64_lds")
# For double-doubles, the precision of numpy's product, in doubles
EPS = {
    "single": 2.0**-24,
    "double": 2.0**-53,
    "double-double": 2.0**-53,
}

# New devices, for which no times are cached
CHIPS = (replace(ck.HD5870, name=f"HD 5870, number {n}") for n in count())
T = TypeVar("T")
Row = dict[str, Any]
Run = Callable[[], float]  # returns its time


def row(
    name: str,
    ours: Run,
    yardstick: Run,
    unit: str = "s",
    least: int = 3,
    most: int = 100,
    note: str = "",
) -> Row:
    """Return a row of the table, from alternating runs of both functions."""
    runs: list[tuple[float, float]] = []
    start = perf_counter()
    while len(runs) < least or (len(runs) < most and perf_counter() - start < LONG):
        runs.append((ours(), yardstick()))
    ratios = [here / there for here, there in runs]
    low, _, high = quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    here, there = (median(part) for part in zip(*runs))
    return {
        "name": name,
        "here": here,
        "unit": unit,
        "yardstick": there,
        "ratio": median(ratios),
        "span": [low, high],
        "note": note,
    }


def seconds(work: Callable[[], object], clock: Callable[[], float] = process_time) -> float:
    """Return the seconds of ``work``, by default of processor time."""
    start = clock()
    work()
    return clock() - start


def loop(iterations: int = 10**7) -> float:
    """Return the seconds of 10**8 iterations of an empty loop: the yardstick for computations."""
    return seconds(partial(exec, f"for i in range({iterations}): pass", {})) * 10**8 / iterations


# -- the groups: each docstring is the group's title and, after a colon, its yardstick


def product(name: str, n: int, engine: str, threads: int | None) -> Row:
    """Time C = A^T B on an engine, next to numpy's.

    Exit if its error is larger than numpy's bound.
    """
    kernel, random = ck.kernels[name], np.random.default_rng(n)
    a, b = ((random.random((n, n)) - 0.5).astype(kernel.dtype) for _ in range(2))
    given = (ck.DD(a), ck.DD(b)) if kernel.precision == "double-double" else (a, b)
    ours = partial(ck.gemm, *given, trans_a=True, kernel=kernel, engine=engine, threads=threads)
    got = ours()
    error = float(np.max(np.abs(getattr(got, "hi", got) - a.T @ b)))
    # Both sums have n terms, of n ulp/2 each
    bound = 2 * float(n * EPS[kernel.precision] * np.max(np.abs(a).T @ np.abs(b)))
    if not error <= bound:
        sys.exit(f"{name}, N = {n}: off by {error:.3g}, and rounding explains only {bound:.3g}")
    clock = process_time if threads else perf_counter

    def here() -> float:
        if not threads:
            sleep(0.1)  # numpy's threads keep spinning for a while
            ours()  # wakes processors and threads
        return seconds(ours, clock)

    made = row(f"{name} {n}, {engine}", here, lambda: seconds(lambda: a.T @ b, clock))
    return made | {"note": f"{2e-9 * n**3 / made['here']:.2f} Gflop/s"}


def arithmetic() -> Iterator[Row]:
    """Products on one thread: numpy's product"""
    yield from (product("sgemm_tn", n, "compiled", 1) for n in SIZES)
    yield from (product(*other, 1) for other in OTHERS)


def threads() -> Iterator[Row]:
    """Products on all threads, wall-clock time: numpy's product"""
    yield from (
        product(name, n, "compiled", None) for name in ("sgemm_tn", "dgemm_tn") for n in (512, 1024)
    )


def clock() -> Iterator[Row]:
    """The timing model, each time of a chip that it hasn't seen: 10**8 iterations of a loop"""

    def spent(name: str, n: int, **how) -> float:
        return seconds(lambda: ck.simulate(name, n, device=next(CHIPS), progress=False, **how))

    for name in TIMED:
        ck.simulate(name, 64)  # compiled before
        for n in (256, 1024, 2048, 4096):
            note = ""
            if n <= 1024:
                sampled, exact = (
                    ck.simulate(name, n, exact=exact, progress=False).clocks
                    for exact in (False, True)
                )
                note = (
                    f"exact {spent(name, n, exact=True):.2f} s; clocks {sampled / exact:.4f} of its"
                )
            yield row(f"{name} {n}", partial(spent, name, n), loop, most=3, note=note)


def costs() -> Iterator[Row]:
    """What each line of a kernel costs, all threads' time: 10**8 iterations of a loop"""
    for name in (*TIMED, "sgemm_nn", "sgemm_naive"):
        n = 512 if name == "sgemm_naive" else 2048
        report = ck.simulate(name, n, progress=False)
        work = partial(unwrap(line_costs), report)  # without its cache
        note = f"{seconds(work, perf_counter):.2f} s on all processors"
        once = partial(seconds, work)
        yield row(f"{name} {n}", once, loop, least=1, most=2, note=note)


def words() -> Iterator[Row]:
    """Compiling, checking, refusing, planning: 10**8 iterations of a loop"""
    from cypresskit.compiler import compile
    from cypresskit.host import Machine, five_stage
    from cypresskit.machine.checks import check

    def refuse(body: str) -> None:
        try:
            ck.assemble(f"il_ps_2_0\n{body}\nend")
        except ck.ILError:
            return
        sys.exit("a text that isn't a kernel was accepted")

    def compile_all() -> None:
        for kernel in ck.kernels.values():
            compile(kernel.program, next(CHIPS))

    yield row("all kernels compiled", partial(seconds, compile_all), loop)
    kernel, ones = ck.kernels["sgemm_tn"], np.ones((256, 256), np.float32)
    checked = partial(check, kernel.program, **kernel.arguments(ones, ones, None, 1.0, 0.0))
    yield row("sgemm_tn 256 checked", partial(seconds, checked), loop)
    texts = {
        "many lines": "mov r0, r1\n" * 350_000,
        "one line": "mov" + "_x2" * 1_300_000 + " r0, r1",
    }
    for name, text in texts.items():
        refused = partial(refuse, text)
        yield row(f"refused: {name}", partial(seconds, refused), loop)
        yield row(
            f"refused: {name}, memory",
            partial(traced, refused),
            partial(float, len(text) / 1e6),
            "MB",
            most=3,
        )
    planned = partial(five_stage, 32768, 32768, 1536, Machine())
    planned()  # the kernel's rate is simulated once, and cached
    yield row("five_stage 32768 planned", partial(seconds, planned), loop)


def traced(work: Callable[[], object]) -> float:
    """Return the peak memory of ``work`` in megabytes."""
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return most


def start() -> Iterator[Row]:
    """New processes: an empty one"""

    def ran(text: str) -> float:
        before = os.times()
        subprocess.run([sys.executable, "-c", text], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        return (
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )

    for text in ("import cypresskit", "import cypresskit; cypresskit.draw.load()"):
        yield row(text, partial(ran, text), partial(ran, "pass"))


LESSON = """import json, os, resource, sys  # in a new process, before any import of the package
sys.modules["coverage"] = None  # numba would use it, and readers don't have it
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell, spent = InteractiveShell.instance(), []
for source in json.load(sys.stdin):
    before = os.times()
    with capture_output():
        shell.run_cell(source).raise_error()
    spent.append(sum(os.times()[:4]) - sum(before[:4]))
# On Linux, a process's own `ru_maxrss` begins with what its parent had.
most = [resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]
if os.path.exists("/proc/self/status"):
    most += [int(row.split()[1]) for row in open("/proc/self/status") if row.startswith("VmHWM")]
else:
    most += [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]
print("\\n" + json.dumps([spent, max(most) / 1e3]))
"""
USUAL = 3.0  # seconds of `loop` on a typical machine


def lessons() -> Iterator[Row]:
    """Cells of the solved lessons, with their child processes: 10**8 iterations of a loop. Each
    lesson runs with only machine code cached, and then again
    """
    _, empty = read_lesson([], os.environ)
    for path in book.sources(ROOT / "notebooks"):
        solved = book.solved(book.read(path)).cells
        cells = [cell.source for cell in solved if cell.cell_type == "code"]
        begins = [source.strip().splitlines()[0][:50] for source in cells]
        with tempfile.TemporaryDirectory() as cache:
            keep_machine_code(Path(cache, "cypresskit"))
            folder = {"XDG_CACHE_HOME": cache, "NUMBA_CACHE_DIR": ""}
            variables = os.environ | folder | {"CYPRESSKIT_KEEP": ""}  # as readers have it
            for when in ("first", "again"):
                yardstick = loop()
                spent, memory = read_lesson(cells, variables)
                slowest = max(range(len(cells)), key=spent.__getitem__)
                parts = (
                    ("all", sum(spent), ""),
                    ("its slowest cell", spent[slowest], f"cell {slowest + 1}: {begins[slowest]}"),
                )
                for name, time, note in parts:
                    usual = f"{time / yardstick * USUAL:.1f} s on a typical machine"
                    title = f"{path.stem[:2]}, {when}: {name}"
                    yield one_run(title, time, yardstick, "s", usual, note)
                yield one_run(f"{path.stem[:2]}, {when}: memory", memory, empty, "MB")


def read_lesson(cells: list[str], variables: Mapping[str, str]) -> tuple[list[float], float]:
    """Return the seconds of each cell, and the peak memory of the largest process in megabytes."""
    with tempfile.TemporaryDirectory() as folder:  # for what lessons save
        ran = subprocess.run(
            [sys.executable, "-c", LESSON],
            input=json.dumps(cells),
            capture_output=True,
            text=True,
            cwd=folder,
            env={**variables},
        )
    if ran.returncode:
        sys.exit(f"{cells[0] if cells else 'no cell'}: {ran.stdout[-1000:]}{ran.stderr[-2000:]}")
    spent, memory = json.loads(ran.stdout.splitlines()[-1])
    return spent, memory


def keep_machine_code(folder: Path) -> None:
    """Copy the user's cache, without simulated launches."""
    cache = cache_folder()
    if cache is not None and cache.is_dir():
        shutil.copytree(cache, folder, ignore=shutil.ignore_patterns("launch-*"))


def one_run(name: str, ours: float, yardstick: float, unit: str, *notes: str) -> Row:
    """Return the row of a single measurement."""
    note = ", ".join(filter(None, notes))
    once = partial(float, ours), partial(float, yardstick)
    return row(name, *once, unit, least=1, most=1, note=note)


EDITS = 300  # edits of catalog kernels
#: Seconds until each part of an answer, on a machine where `loop` takes 3.
PART_LIMITS = {"text": 0.2, "code": 0.6, "verdict": 1.0, "clocks": 2.0}


def edits(count: int = EDITS, seed: int = 1, limit: float = float("inf")) -> Iterator[Row]:
    """Random edits on the workbench, from the edit to each part of its answer, that within which 95
    % of them have it: 10**8 iterations of a loop. The note says how many are within their time
    """
    yardstick = loop()
    taken = edit_times(count, seed, limit)
    if len(taken) < count:
        print(f"{len(taken)} of {count} edits in {limit:g} s of computing", flush=True)
    for part, most in PART_LIMITS.items():
        times = sorted(times[part] for times in taken if part in times)
        if not times:
            continue
        within = sum(time <= most / USUAL * yardstick for time in times) / len(times)
        note = f"{100 * within:.1f} % of {len(times)} within {most:g} s on a typical machine"
        once = partial(float, times[int(0.95 * len(times))]), partial(float, yardstick)
        yield row(f"an edit: {part}", *once, least=1, most=1, note=note)


class PartClock:
    """Records the processor time until each part of an answer."""

    def __init__(self, edit: str) -> None:
        self.edit = edit
        self.begun = process_time()
        self.times: dict[str, float] = {}

    def note(self, message: dict) -> None:
        if message["type"] == "trouble":
            sys.exit(message["message"])
        if message["type"] == "answer" and message.get("edit", self.edit) != self.edit:
            sys.exit(f"edit {self.edit} received the answer to edit {message['edit']}")
        if message["type"] == "answer":
            self.times[message["part"]] = process_time() - self.begun


def edit_times(count: int, seed: int, most: float = float("inf")) -> list[dict[str, float]]:
    """Return the seconds until each part of the answer to each random edit.

    Edits that would begin after ``most`` seconds of computing are skipped.
    """
    begun = process_time()
    taken: list[dict[str, float]] = []
    for number, (name, text) in enumerate(random_edits(seed, count)):
        if process_time() - begun > most:
            break
        job: dict[str, Any] = {
            "edit": str(number),
            "text": text,
            "name": f"{name}.il",
            "like": name,
        }
        job |= {"n": EDITED, "parts": ["code", "verdict", "clocks"]}
        clock = PartClock(str(number))
        text_answer(text, name)
        clock.note({"type": "answer", "part": "text"})
        AnswerHere(clock.note).ask(job)
        taken.append(clock.times)
    return taken


COUNT = "() => { let s = 0; for (let i = 0; i < 1e7; i++) s += i % 7; return s }"
DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def worker(page) -> Callable[[Callable[[], object]], float]:
    """Return a function that measures an action, in milliseconds of the page's main thread."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(
            metric["value"] for metric in metrics if metric["name"] == "TaskDuration"
        )

    return lambda act: seconds(act, spent)


def pages() -> Iterator[Row]:
    """The browser's work to show each view, and for a step of it: ten million iterations of a loop
    on an empty page
    """
    from tools.bench_page.browser import chromium
    from tools.gallery import VIEWS

    with chromium("--disable-gpu") as browser, tempfile.TemporaryDirectory() as folder:
        page, empty = browser.new_page(), browser.new_page()
        work, yardstick = worker(page), partial(worker(empty), partial(empty.evaluate, COUNT))

        def show() -> None:
            page.set_content(html)  # in the same document, so that its clock continues
            page.wait_for_selector("[data-ready]")
            page.evaluate(DRAWN)

        def step() -> None:
            page.keyboard.press("ArrowRight")
            page.evaluate(DRAWN)

        for name, (_, make) in VIEWS.items():
            player = make()
            html = player.save(Path(folder) / "page.html").read_text(encoding="utf-8")
            yield row(f"{name}: shown", partial(work, show), yardstick, "ms", most=3)
            if len(getattr(player, "captions", ())) > 1:
                yield row(f"{name}: a step", partial(work, step), yardstick, "ms", least=9, most=9)


def linked() -> Iterator[Row]:
    """The site's workbench, in wall-clock time: 10**8 iterations of a loop. A phone's processor is
    assumed to be four times as slow
    """
    from tools.bench_page import browser

    with tempfile.TemporaryDirectory() as folder:
        bench_page.write_page(Path(folder))
        files = [file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()]
        allowed = partial(float, bench_page.MAX_BYTES / 1e6)
        yield row("its size", partial(float, sum(files) / 1e6), allowed, "MB", least=1, most=1)

        for slower, name in ((1, ""), (PHONE, ", on a phone")):
            with browser.chromium() as chromium, browser.served(Path(folder)) as address:
                yield from visits(chromium, address, slower, name)


PHONE = 4  # times as slow as this processor


def visits(chromium, address: str, slower: float, name: str) -> Iterator[Row]:
    """Measure two visits to the site's workbench, and edits in it."""
    from tools.bench_page import browser

    page = chromium.new_page()

    def edit(part: str) -> None:
        browser.wait_for_part(page, "costs")
        page.evaluate("parts.length = 0")
        browser.type_at_end(page, "\n; another remark")
        browser.wait_for_part(page, part)

    with browser.slowed(chromium, slower):
        yardstick = partial(float, loop())
        for visit in ("first", "second"):
            opened = partial(seconds, partial(browser.open_bench, page, address), perf_counter)
            named = f"the {visit} visit, until the verdict{name}"
            yield row(named, opened, yardstick, least=1, most=1)
            page.wait_for_function(HAS_MEMORY)
        for part in ("verdict", "clocks", "costs"):
            edited = partial(seconds, partial(edit, part), perf_counter)
            yield row(f"an edit, until its {part}{name}", edited, yardstick, most=3)


#: Whether the browser keeps Python's memory for the next visit.
HAS_MEMORY = "async () => Boolean(await caches.match('memory'))"


def site() -> Iterator[Row]:
    """The site that `make docs` builds, its size: the maximum size"""
    from tools import site as documentation

    with tempfile.TemporaryDirectory() as folder:
        documentation.build(Path(folder))
        for inside, size in documentation.sizes(Path(folder)).items():
            name = "the workbench" if inside else "all other pages"
            allowed = partial(float, documentation.MAX_BYTES[inside] / 1e6)
            yield row(name, partial(float, size / 1e6), allowed, "MB", least=1, most=1)


RUN_ALL = (arithmetic, threads, clock, costs, words, start, edits, lessons, pages, linked, site)
GROUPS = {group.__name__: group for group in RUN_ALL}


# -- the table


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "groups", nargs="*", metavar="GROUP", help=f"from {', '.join(GROUPS)}; all by default"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"fail if a ratio is more than {LIMIT} times the stored one",
    )
    parser.add_argument("--write", action="store_true", help=f"store the ratios in {KEPT.name}")
    some = parser.add_argument_group("for the group edits, to run it in parts")
    some.add_argument("--edits", type=int, default=EDITS, metavar="N", help=f"{EDITS} by default")
    some.add_argument("--seed", type=int, default=1, help="selects the edits; 1 by default")
    some.add_argument(
        "--seconds", type=float, default=float("inf"), help="skip edits after this computing time"
    )
    args = parser.parse_args(arguments)
    if unknown := [name for name in args.groups if name not in GROUPS]:
        parser.error(f"no group {unknown[0]}: choose from {', '.join(GROUPS)}")
    stored, slow = json.loads(KEPT.read_text()) if KEPT.exists() else {}, []
    for group in args.groups or GROUPS:
        with patch.dict(os.environ, ONE_THREAD if group != "threads" else {}):
            some_edits = (args.edits, args.seed, args.seconds) if group == "edits" else ()
            lines = in_new_process(measured, group, *some_edits)
        slow += [
            line
            for line in lines
            if line["ratio"] > LIMIT * stored.get(group, {}).get(line["name"], float("inf"))
        ]
        if args.write:
            stored[group] = {
                line["name"]: float(f"{line['ratio']:.3g}")
                for line in lines
                if line["ratio"] > LEAST
            }
            KEPT.write_text(json.dumps(stored, indent=1) + "\n")
    for line in slow:
        print(
            f"{line['name']}: {line['ratio']:.3g} times its yardstick, more than {LIMIT} times the"
            " stored ratio"
        )
    return int(args.check and bool(slow))


def in_new_process(function: Callable[..., T], *arguments) -> T:
    """Return the result of a function that is called in a new process, in an empty folder."""
    quiet, spawn = patch.dict(os.environ, TQDM_DISABLE="1"), get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, quiet:
        with ProcessPoolExecutor(1, spawn, initializer=os.chdir, initargs=(folder,)) as new:
            return new.submit(function, *arguments).result()


def measured(group: str, *arguments) -> list[Row]:
    """Measure a group. Print each row at once, and return all."""
    title, _, yardstick = str(GROUPS[group].__doc__).partition(": ")
    print(
        f"\n{title}. Yardstick: {yardstick}\n{'':38}      here     yardstick     ratio  middle half"
        " of the runs"
    )
    rows = []
    for row in GROUPS[group](*arguments):
        low, high = row["span"]
        numbers = f"{row['here']:9.4g} {row['unit']:2} {row['yardstick']:10.4g} {row['ratio']:9.3g}"
        print(
            f"{row['name'][:38]:38} {numbers}  {low:.3g} to {high:<9.3g} {row['note']}".rstrip(),
            flush=True,
        )
        rows.append(row)
    return rows


if __name__ == "__main__":
    sys.exit(main())
