"""Write the modeled speeds, in Gflop/s, of the products that were measured on a GPU to the record
(``today.record``), and the code of lesson 14's kernel to ``code.json``. It needs the extra `cuda`,
and no GPU:

    python -m tools.cuda.record
"""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from cypresskit import today
from cypresskit.today import record, stored_code
from cypresskit.today.cuda_clock import simulate
from cypresskit.today.cuda_compile import code_of
from cypresskit.today.cuda_kernels import as_written
from cypresskit.today.gpus import H200
from tools.cuda import experiments

FOLDER = Path(today.__file__).parent


class Modeled(experiments.Experiments):
    """The record's products, simulated: their modeled speeds go into its rows."""

    def product(
        self,
        experiment: str,
        case: object,
        kernel: Any,
        n: int,
        block: int,
        *,
        precision: str = "float32",
        threads: int = 8,
        down: int = 0,
        shared: int = 0,
        **_: Any,
    ) -> None:
        matrices = [SimpleNamespace(shape=(n, n), dtype=precision)] * 3
        launch = experiments.launch_shape(n, block, threads, down or threads)
        report = simulate(kernel, *launch, *matrices, shared=shared)
        for row in record()["rows"]:
            if (row["experiment"], row["case"]) == (experiment, str(case)):
                row["modeled"] = round(report.gflops, 1)


def write_code() -> None:
    """Write the code of lesson 14's kernel, with each line's place among its lines."""
    code = code_of(as_written, [np.empty((64, 64), np.float32)] * 3)
    used = sorted({line for line, _ in stored_code.operations_of(as_written.py_func)})
    lines = {line: number for number, line in enumerate(used)} | {used[0] + 1: 0}  # of `def`
    found = asdict(code) | {"text": stored_code.renumbered(code.text, lines)}
    (FOLDER / "code.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Write the code and the record."""
    write_code()
    bench = Modeled(n=record()["n"])
    with patch.object(experiments, "attribute", {experiments.SHARED: H200.lds_bytes}.get):
        bench.products()
        bench.tiles_and_warps()
        bench.exercise()
    text = json.dumps(record(), indent=1) + "\n"
    (FOLDER / "record.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
