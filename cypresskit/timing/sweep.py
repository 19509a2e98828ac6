"""``sweep``: a table of simulated performance over kernels, sizes and devices, on all cores.

Each point is a task for a ``concurrent.futures`` executor: threads of its own, since the engine is
native code, or what it is given: processes, or those of other machines. Results come as a
``Table``: rows that save to CSV.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from cypresskit.devices import HD5870, Device
from cypresskit.kernels.own import Source
from cypresskit.saving import save_file
from cypresskit.tables import as_csv, table
from cypresskit.threads import processors
from cypresskit.timing.simulate import check_options, simulate

Point = tuple[Source, int, Device]


@dataclass(frozen=True)
class Table:
    """Rows of names and values, in the order of the sweep; see ``Report.row`` for the columns.
    ``pandas.DataFrame(table)`` makes a data frame of it.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        """A column's values."""
        return [row[column] for row in self.rows]

    def save(self, path: str | Path) -> None:
        """Write as CSV."""
        save_file(path, as_csv(self.rows))

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.rows[0] if self.rows else ())}>"

    def _repr_html_(self) -> str:
        return table(
            list(self.rows[0]) if self.rows else [],
            [row.values() for row in self.rows],
            f"{len(self)} rows",
        )


def sweep(
    kernels: Source | Iterable[Source],
    ns: int | Iterable[int],
    devices: Device | Iterable[Device] = (HD5870,),
    *,
    executor: Executor | None = None,
    progress: bool = True,
    **options: Any,
) -> Table:
    """Simulate every kernel at every N on every device.

    Parameters
    ----------
    kernels
        names or kernels, one or several.
    ns
        N, one or several: the matrices are square.
    devices
        boards, one or several.
    executor
        a ``concurrent.futures`` executor that runs the points, in place of as many threads
        as there are cores.
    progress
        show a bar.
    options
        go to ``simulate``.

    Returns a ``Table``. A point that fails stops no other: the first error is raised when all are
    done.

        ck.sweep(["sgemm_tn", "dgemm_tn"], [1024, 2048])["gflops"]
    """
    for name, instead in (("device", "devices"), ("n", "ns")):
        if name in options:
            raise TypeError(f"sweep has no {name}=: pass {instead}=, one or several")
    check_options("sweep", options)
    given = (devices, kernels, ns)
    axes = (
        list(axis) if isinstance(axis, Iterable) and not isinstance(axis, str) else [axis]
        for axis in given
    )
    points: list[Any] = [(kernel, n, device) for device, kernel, n in product(*axes)]
    return Table(timed(points, executor, progress, **options))


def timed(
    points: Iterable[Point], executor: Executor | None, progress: bool, **options: Any
) -> list[dict[str, Any]]:
    """The rows of points (kernel, N, device), in their order."""
    if executor is not None and not isinstance(executor, Executor):
        raise TypeError(
            "executor is a concurrent.futures.Executor, such as ProcessPoolExecutor(), not"
            f" {executor!r}"
        )
    row = partial(_row, options=options | {"progress": False})
    rows: list[dict[str, Any]] = []
    failed: Exception | None = None
    with nullcontext(executor) if executor else ThreadPoolExecutor(processors()) as pool:
        futures = [pool.submit(row, point) for point in points]
        try:
            for future in tqdm(futures, "simulating", disable=not progress):
                try:
                    rows.append(future.result())
                except Exception as error:
                    failed = failed or error
        finally:
            for future in futures:  # Ctrl-C needn't wait for those that haven't begun
                future.cancel()
    if failed:
        raise failed
    return rows


def _row(point: Point, options: dict[str, Any]) -> dict[str, Any]:
    kernel, n, device = point
    return simulate(kernel, n, device=device, **options).row()
