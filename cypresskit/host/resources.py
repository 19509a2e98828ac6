"""Resources with a rate, and how tasks that run at once share them.

A task takes from several resources in a fixed proportion (a DMA of 1 GB takes 1 GB of the bus and 1
GB of host memory). Its *dominant share* is the largest share that it takes of any of them. Shares
are max-min fair: all dominant shares grow together; a task stops growing when one of its resources
is full, and the others go on. On a single resource all get equal parts; on several this is dominant
resource fairness (Ghodsi et al., NSDI 2011). Contention is therefore computed, never declared.

Left out: priorities, and losses from switching between tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cypresskit.host.checks import check_positive


@dataclass(frozen=True)
class Resource:
    """A shared resource. ``capacity``: how many ``unit`` it gives per second, above 0, or
    ``ValueError``.
    """

    name: str
    capacity: float
    unit: str

    def __post_init__(self) -> None:
        check_positive(**{f"{self.name}: capacity": self.capacity})


#: What one task asks for: (resource number, part of it) at a dominant share of 1; the largest part
#: is 1.
Proportions = tuple[tuple[int, float], ...]


def fair_shares(demands: Sequence[Proportions]) -> list[float]:
    """The dominant share of every demand if all run at once.

    Progressive filling: no share can grow without shrinking one that is as small or smaller, and no
    resource gives more than 1. Each round fills a resource, so there are at most as many rounds as
    resources.
    """
    shares = [0.0] * len(demands)
    growing = set(range(len(demands)))
    left: dict[int, float] = {number: 1.0 for demand in demands for number, _ in demand}
    level = 0.0
    while growing:
        pressure = dict.fromkeys(left, 0.0)
        for task in growing:
            for number, part in demands[task]:
                pressure[number] += part
        step = min(left[number] / sum_ for number, sum_ in pressure.items() if sum_ > 0)
        level += step
        for number, sum_ in pressure.items():
            left[number] -= step * sum_
        full = {number for number, sum_ in pressure.items() if sum_ > 0 and left[number] <= 1e-12}
        done = {task for task in growing if any(number in full for number, _ in demands[task])}
        for task in done:
            shares[task] = level
        growing -= done
    return shares
