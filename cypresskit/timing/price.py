"""``price``: a launch is simulated, then the same one with a line's work done in no time."""

from cypresskit.compiler import Code
from cypresskit.kernels.own import Source
from cypresskit.timing.prices import Prices
from cypresskit.timing.simulate import simulate


def price(kernel: Source | Code, n: int | None = None, **options) -> Prices:
    """The price of each line of a kernel.

    Takes what ``simulate`` takes, and returns ``Prices``: a table of the kernel's lines, each with
    its work, and with the share of the launch that would be saved if it took no time. It takes some
    seconds. ``Prices.what_if`` has the same launch on chips that lack one limit.

        ck.price("sgemm_nn", 2048).dearest
    """
    prices = simulate(kernel, n, **options).prices
    assert isinstance(prices, Prices)
    return prices
