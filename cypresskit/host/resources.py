"""Share resources with a rate among tasks that run at once.

A task takes from several resources in a fixed proportion: a DMA of 1 GB takes 1 GB from the bus and
1 GB from host memory. Its *dominant share* is the largest share that it takes of any of them.
Shares are max-min fair: all dominant shares grow together, and each stops when one of its resources
is full. On a single resource all tasks get equal parts; on several, this is dominant resource
fairness (Ghodsi et al., NSDI 2011). So contention is computed, never declared.

Not covered: priorities, and losses from switching between tasks.
"""

from collections.abc import Sequence

#: What one task requests: (resource number, share of it) at a dominant share of 1.
Proportions = tuple[tuple[int, float], ...]


def fair_shares(demands: Sequence[Proportions]) -> list[float]:
    """Return the dominant share of each demand if all run at once, by progressive filling.

    Each round fills a resource. In the result no share can grow without shrinking one that is as
    small or smaller.
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
