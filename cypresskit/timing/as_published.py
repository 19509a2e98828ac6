"""``simulate_published``: the model's value of a published speed, timed as its author did.

A kernel has two speeds here. ``simulate`` times the chip alone. What was published has launches
within the time, and reads C where its author did (``published.conditions``). Beside a published
speed stands only the second one.
"""

from cypresskit import published
from cypresskit.devices import HD5870, Device
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import simulate


def simulate_published(
    figure: str, n: int | None = None, *, count: int = 1, device: Device = HD5870
) -> Report:
    """Time a published kernel as its author did: the value to set beside a published speed.

    Parameters
    ----------
    figure
        The ``id`` of a kernel in ``published.json``, such as "sgemm_tn".
    n
        The size of its square matrices. By default, the one for which its speed was published, or
        4096 for Ashraf's best speeds, of which none was.
    count
        The number of products in one launch, for packed kernels.
    device
        The board. All published kernels ran on an HD 5870.

    Returns
    -------
    Report
        With the old C read and the launch overhead included, if the author timed them.

    Raises
    ------
    KeyError
        For a kernel that wasn't published.
    ValueError
        If no N is known, and ``n`` is left out.

    Examples
    --------
    >>> ck.simulate_published("sgemm_tn").gflops  # doctest: +SKIP
    """
    kernel = published.kernel(figure).get("kernel", figure)
    options = published.conditions(figure).options
    size = published.size_of(figure) if n is None else n
    return simulate(kernel, size, count=count, device=device, **options)
