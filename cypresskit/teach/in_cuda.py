"""A lesson's idea in CUDA: a kernel in Python runs in numba's simulator, and the record has its
speed on a GPU of today.

The simulator runs each CUDA thread as a thread of Python: good for right or wrong at a small size,
without a GPU, and without any speed of its own. numba decides between GPU and simulator when it is
first imported, so a kernel runs in a bare process (``cypresskit.isolated``).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cypresskit.isolated import Answer, Lost, Raised
from cypresskit.isolated.process import CallLimits
from cypresskit.today import record

LIMITS = CallLimits(seconds=20.0, wall=60.0, megabytes=1500)


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
    """Two lines: whether ``function(*arguments)`` is ``right`` in the simulator, and what the
    record says of ``cases``, each an experiment and a case of it, such as "block: 8 x 8".
    """
    got = simulated(function, *arguments)
    same = np.shape(got) == np.shape(right) and np.array_equal(got, right)
    rows = {f"{row['experiment']}: {row['case']}": row for row in record()["rows"]}
    speeds = []
    for case in cases:
        value, unit = rows[case]["value"], rows[case]["unit"]
        speeds.append(f"{case}, {value:,.0f} {unit}" if value > 100 else f"{case}, {value} {unit}")
    return (
        f"In numba's simulator the result is {'right' if same else 'wrong'}.\n"
        f"Measured on an {record()['device']}: {'; '.join(speeds)}."
    )
