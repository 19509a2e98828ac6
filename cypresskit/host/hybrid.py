"""The CPU's share of a product that chips and CPU compute together.

*Static*: the share that would end both at once if each ran at its peak. *Adaptive* (Yang et al., 2010): the first call
takes the static share; each further one takes the share that the rates measured in the last one ask for. The rates
depend on the share, because CPU and chips compete for the host's memory, so it takes a few calls to settle.
"""

from collections.abc import Callable

from cypresskit.host.checks import check_share, check_type, check_whole
from cypresskit.host.machine import CPU, Machine
from cypresskit.host.pipeline import five_stage, four_stage
from cypresskit.host.tasks import Timeline


def static_share(machine: Machine) -> float:
    """The CPU's part of all peaks in double precision: 0.12 for two chips of an HD 5970 and two Xeon X5650."""
    check_type(Machine, machine=machine)
    cpu = machine.host.cpu_gflops
    return cpu / (cpu + machine.chips * machine.device.double_gflops)


def measured_share(timeline: Timeline, share: float) -> float:
    """The share at which CPU and chips, at the rates they had in ``timeline``, would have ended at once.

    ``share`` is what the CPU had, 0 to 1. If only one of them had something to do, the other's rate is unknown, and the
    share stays as it is."""
    check_type(Timeline, timeline=timeline)
    check_share(share=share)
    ends = {True: 0.0, False: 0.0}
    for span in timeline.spans:
        ends[span.task.lane == CPU] = max(ends[span.task.lane == CPU], span.end)
    if not all(ends.values()):
        return share
    cpu, chips = share / ends[True], (1 - share) / ends[False]
    return cpu / (cpu + chips)


def adaptive(
    m: int,
    n: int,
    k: int,
    machine: Machine,
    *,
    calls: int = 4,
    pipeline: Callable[..., Timeline] = five_stage,
    **options,
) -> list[tuple[float, Timeline]]:
    """The same product ``calls`` times: the CPU's share and the timeline of each call.

    ``pipeline`` is `five_stage` or `four_stage`, ``options`` are theirs. Raises ``ValueError`` if ``calls`` is below 1.
    """
    check_whole(calls=calls)
    if pipeline not in (four_stage, five_stage):
        raise ValueError(f"pipeline is four_stage or five_stage, not {pipeline!r}")
    share, result = static_share(machine), []
    for _ in range(calls):
        timeline = pipeline(m, n, k, machine, cpu_share=share, **options)
        result.append((share, timeline))
        share = measured_share(timeline, share)
    return result
