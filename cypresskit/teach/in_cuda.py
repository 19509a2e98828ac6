"""A lesson's idea in CUDA: a kernel in Python runs in numba's simulator, and the record has its
speed on a GPU of today.

The simulator runs each CUDA thread as a thread of Python: good for right or wrong at a small size,
without a GPU, and without any speed of its own. numba decides between GPU and simulator when it is
first imported, so a kernel runs in a bare process (``cypresskit.isolated``).
"""

from collections.abc import Callable
from itertools import groupby
from typing import Any

import numpy as np

from cypresskit.isolated import Answer, Lost, Raised
from cypresskit.isolated.process import CallLimits
from cypresskit.today import record

LIMITS = CallLimits(seconds=20.0, wall=60.0, megabytes=1500)


#: What was measured in an experiment of the record, before the name of its case.
MEASURED = {
    "block": "products with a block of",
    "double": "products of doubles with a block of",
    "layout": "products with the layout",
    "size": "products of N =",
    "shared memory": "products with tiles in shared memory of",
    "warps": "products, warps on a multiprocessor:",
    "double-double": "products of double-doubles with a block of",
    "bank, one warp": "a store and a load by one warp, at a pitch of words of",
    "bank, 32 warps": "a store and a load by each of 32 warps, at a pitch of words of",
    "bus": "copies of memory that is",
    "library": "a library's products in precision",
}


def matrices(k: int = 8, n: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Two float32 matrices of k x n, of small whole numbers: their product is exact."""
    rng = np.random.default_rng(13)
    a, b = rng.integers(-3, 4, (2, k, n)).astype(np.float32)
    return a, b


def simulated(function: Callable, *arguments: Any) -> Any:
    """What ``function(*arguments)`` returns in a bare process, where ``numba.cuda`` is numba's
    simulator. Raises ``ValueError`` with the reason if it gives no result.

        c = simulated(product, a, b)
    """
    with Answer(function, limits=LIMITS) as answer:
        try:
            return answer(*arguments)
        except Raised as error:
            line = f", line {error.line}: {error.source.strip()}" if error.line else ""
            raise ValueError(f"{error.type}: {error}{line}") from None
        except Lost as lost:
            raise ValueError(f"the kernel gave no result ({lost.reason})") from None


def compared(function: Callable, arguments: tuple, right: Any, *cases: str) -> str:
    """Whether ``function(*arguments)`` is ``right`` in the simulator, and what the record has
    measured for ``cases``, each an experiment and a case of it, such as "block: 8 x 8".
    """
    got = simulated(function, *arguments)
    same = np.shape(got) == np.shape(right) and np.array_equal(got, right)
    rows = {f"{row['experiment']}: {row['case']}": row for row in record()["rows"]}
    lines = [f"In numba's simulator the result is {'right' if same else 'wrong'}."]
    for experiment, chosen in groupby(cases, lambda case: case.partition(": ")[0]):
        figures = []
        for case in chosen:
            value, unit = rows[case]["value"], rows[case]["unit"]
            shown = f"{value:,.0f}" if value > 100 else f"{value:.2g}"
            figures.append(f"{rows[case]['case']}, {shown} {unit}")
        lines.append(
            f"Measured on an {record()['device']}, {MEASURED[experiment]} {'; '.join(figures)}."
        )
    return "\n".join(lines)
