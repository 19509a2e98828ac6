"""A kernel's text, judged: loaded, verified, timed, what comes first, and what would help.

The workbench, the checks of lessons, and the site's pages all judge by these functions. So none of
them contradicts another, though each has sentences of its own.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from cypresskit.compiler import compile
from cypresskit.diagnosis.verification import Verification, verify, verify_at
from cypresskit.editing.steps import kernel_name, reference_kernel
from cypresskit.il.errors import ArgumentError
from cypresskit.kernels import Kernel
from cypresskit.kernels.own import load_kernel
from cypresskit.kernels.products import TEST_ALPHA, TEST_BETA
from cypresskit.kernels.statement import find_statement
from cypresskit.tables import named_lines, quantity
from cypresskit.threads import Unless, never
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import simulate

MAX_SHOWN_LINES = 8
#: What would help, by ``Report.limit``.
HELP = {
    "ALU": "Fewer bundles per iteration would help: fill them better, or do less besides"
    " multiply-adds.",
    "texture": "Fewer fetches per multiply-add would help, and fetches without bank conflicts.",
    "LDS": "Fewer LDS accesses would help, or fewer bank conflicts.",
    "L2": "Fewer L1 misses would help.",
    "DRAM rows": "More accesses to rows of memory that are already open would help.",
    "DRAM channel": "Accesses that are spread over the channels of the memory would help.",
    "DRAM": "Reading and writing fewer bytes of memory would help.",
    "latency": "More wavefronts would help if they fill the last round; so would longer clauses,"
    " with fewer waits between them.",
    "too few wavefronts": "More wavefronts would fill the chip; so would more independent work in"
    " each.",
    "tail": "A larger N would help: the partly filled last round then matters less.",
}


def load_text(text: str, name: str, like: str | None) -> Kernel:
    """Return the kernel of a text, in the file ``name``. It is launched as it states, or else like
    ``like``. Raises what ``ck.load_kernel`` raises.
    """
    launched_like = None if like is None or find_statement(text)[0] else reference_kernel(like)
    return load_kernel(text, like=launched_like, name=kernel_name(name))


def verify_text(
    text: str,
    name: str,
    like: str | None = None,
    n: int | None = None,
    is_scaled: bool = False,
    unless: Callable[[], bool] = never,
) -> Verification:
    """Return whether the kernel of a text (``load_text``) is correct: also at ``n``, where it is
    timed; and with alpha and beta, if it ``is_scaled``. Raises ``Interrupted`` as soon as
    ``unless`` returns True. The last few results are cached.
    """
    return _verify_text(text, name, like, n, is_scaled, Unless(unless))


@lru_cache(maxsize=16)
def _verify_text(
    text: str, name: str, like: str | None, n: int | None, is_scaled: bool, unless: Unless
) -> Verification:
    if n is not None:
        small = _verify_text(text, name, like, None, is_scaled, unless)
        with suppress(ArgumentError):  # the board can't hold its matrices, as timing it reports
            return verify_at(small, n, unless) if small else small
        return small
    kernel = load_text(text, name, like)
    verification = verify(kernel, unless=unless)
    if is_scaled and verification.unread_scalars:
        return verify(kernel, alpha=TEST_ALPHA, beta=TEST_BETA, unless=unless)
    return verification


def begins_with_notes(incorrect: Verification) -> bool:
    """Return whether notes on an incorrect element come before the faults: unless one of these
    makes every element unsure.
    """
    return not incorrect.fault and all(found.is_address for found in incorrect.findings)


def report_at(kernel: Kernel, n: int) -> Report:
    """Simulate a kernel at m = n = k = ``n``; a product with a vector, at m = k = ``n``."""
    return simulate(kernel, 1 if kernel.is_vector else n, m=n, k=n)


def what_helps(limit: str, kernel: Kernel) -> str:
    """Return what an iteration of a kernel does: its products, its fetches, and the bundles without
    a product; and what would make it faster, by its limit.
    """
    loop = compile(kernel.program).main_loop
    bundles = [bundle for control in loop for bundle in control.bundles]
    fetches = sum(len(control.fetches) for control in loop)
    products = sum(bundle.products for bundle in bundles)
    others = [bundle for bundle in bundles if not bundle.products]
    lines = sorted({operation.line for bundle in others for operation in bundle.operations})
    named = f" ({named_lines(lines)})" if 0 < len(lines) <= MAX_SHOWN_LINES else ""
    return (
        f"An iteration makes {quantity(products, 'product')} with {fetches} fetches, in"
        f" {len(bundles)} bundles. Of these, {len(others)} have no product{named}. {HELP[limit]}"
    )
