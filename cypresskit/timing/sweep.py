"""``sweep``: a table of simulated performance over kernels, sizes and devices, on as many processes as one likes.

Every point is one task for a ``concurrent.futures`` executor (a process pool, a Dask cluster's
``client.get_executor()``), which sees to it that a lost worker's tasks are done again. Results come as a ``Table``:
rows that save to CSV and JSON.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from io import StringIO
from itertools import product
from pathlib import Path

from tqdm.auto import tqdm

from cypresskit.devices import HD5870, Device
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.saving import save_file
from cypresskit.tables import markdown, table
from cypresskit.timing.simulate import simulate

Point = tuple[str | Kernel, int, Device]


@dataclass(frozen=True)
class Table:
    """Rows of names and values, in the order of the sweep; see ``Report.row`` for the columns.
    ``pandas.DataFrame(table)`` makes a data frame of it."""

    rows: list[dict] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> list:
        """A column's values."""
        return [row[column] for row in self.rows]

    def where(self, **values) -> "Table":
        """The rows with these values, such as ``where(kernel="sgemm_tn")``."""
        return Table([row for row in self.rows if all(row[name] == value for name, value in values.items())])

    def save(self, path: str | Path) -> None:
        """Write as CSV or JSON, by the name's ending."""
        path = Path(path)
        if path.suffix == ".json":
            save_file(path, json.dumps(self.rows, indent=1) + "\n")
        elif path.suffix == ".csv":
            text = StringIO()
            writer = csv.DictWriter(text, list(self.rows[0]) if self.rows else [])
            writer.writeheader()
            writer.writerows(self.rows)
            save_file(path, text.getvalue())
        else:
            raise ValueError(f"{path}: a table is saved as .csv or .json")

    @staticmethod
    def load(path: str | Path) -> "Table":
        """A table that was saved as JSON. ``ValueError`` for a file that holds none."""
        try:
            rows = json.loads(Path(path).read_bytes())
        except (ValueError, RecursionError):
            rows = None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError(f"{path} holds no table that was saved as JSON, or a part of one")
        return Table(rows)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.rows[0] if self.rows else ())}>"

    def _repr_html_(self) -> str:
        return table(list(self.rows[0]) if self.rows else [], [row.values() for row in self.rows], f"{len(self)} rows")

    def markdown(self, columns: Iterable[str] | None = None) -> str:
        """The rows (or some columns of them) as a Markdown table."""
        names = list(columns or (self.rows[0] if self.rows else ()))
        return markdown(names, ([row[name] for name in names] for row in self.rows))


def sweep(
    kernels: str | Kernel | Iterable[str | Kernel],
    ns: int | Iterable[int],
    devices: Device | Iterable[Device] = (HD5870,),
    *,
    executor: Executor | None = None,
    progress: bool = True,
    kept: str | Path | None = None,
    **options,
) -> Table:
    """Simulate every kernel at every N (square matrices) on every device, one or several of each, with a progress bar.

    ``executor`` runs the points side by side (threads do: the engine is native code); ``ranges=True`` adds what the
    calibrations leave open (``low``, ``high``: ``Report.range``); other ``options`` go to ``simulate``. A point that
    fails stops no other: the first error is raised when all are done. ``kept`` names a file that rows are added to, a
    line of JSON; what it holds isn't simulated again, so a sweep that was broken off goes on where it stopped (a new
    version of the model wants a new file).
    """
    axes = (list(of) if isinstance(of, Iterable) and not isinstance(of, str) else [of] for of in (devices, kernels, ns))
    points: list = [(kernel, n, device) for device, kernel, n in product(*axes)]
    return Table(timed(points, executor, progress, kept, **options))


def timed(
    points: Iterable[Point], executor: Executor | None, progress: bool, kept: str | Path | None = None, **options
) -> list[dict]:
    """The rows of points (kernel, N, device), in their order."""
    if executor is not None and not isinstance(executor, Executor):
        raise TypeError(f"executor is a concurrent.futures.Executor, such as ProcessPoolExecutor(), not {executor!r}")
    file = Path(kept) if kept else None
    rows = _read(file) if file else {}
    points = list(points)
    keys = [_key(point, options) for point in points]
    todo = {key: point for key, point in zip(keys, points) if key not in rows}
    options["progress"] = progress and executor is None
    waiting: dict[str, Callable[[], dict]] = {key: partial(_row, point, options) for key, point in todo.items()}
    given = {key: executor.submit(_row, point, options) for key, point in todo.items()} if executor else {}
    waiting |= {key: future.result for key, future in given.items()}
    failed: Exception | None = None
    try:
        for key, wait in tqdm(waiting.items(), "simulating", disable=not progress):
            try:
                rows[key] = wait()
            except Exception as error:
                failed = failed or error
                continue
            if file:
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(f"\n{json.dumps([key, rows[key]])}")  # which ends a line that was cut off
    finally:
        for future in given.values():  # Ctrl-C needn't wait for those that haven't begun
            future.cancel()
    if failed:
        raise failed
    return [rows[key] for key in keys]


def _read(file: Path) -> dict[str, dict]:
    """The rows in a file of lines, but for one that was cut off. ValueError for a file that holds something else."""
    rows = {}
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else ():
        if line and not line.startswith('["'):
            raise ValueError(f"{file} holds {line[:40]!r}, which no sweep wrote: keep the rows in a file of their own")
        with suppress(ValueError):
            key, row = json.loads(line)
            rows[key] = row
    return rows


def _key(point: Point, options: dict) -> str:
    kernel, n, device = point
    known = KERNELS.get(kernel, kernel) if isinstance(kernel, str) else kernel
    text = (known.name, known.text) if isinstance(known, Kernel) else known
    return sha256(
        repr((text, n, asdict(device) if isinstance(device, Device) else device, sorted(options.items()))).encode()
    ).hexdigest()


def _row(point: Point, options: dict) -> dict:
    kernel, n, device = point
    given = {name: value for name, value in options.items() if name != "ranges"}
    report = simulate(kernel, n, device=device, **given)
    row = report.row()
    if options.get("ranges"):
        row["low"], row["high"] = (round(end, 2) for end in report.range)
    return row
