"""Whether a kernel is launched for what it computes: the values of k that an iteration takes, and
the elements of C that a work-item stores.
"""

from collections.abc import Callable
from dataclasses import replace

from cypresskit.diagnosis.notes import NO_NOTE, Note, note
from cypresskit.diagnosis.product_run import run_products
from cypresskit.diagnosis.source_facts import stored_elements
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.compiled import values_taken
from cypresskit.kernels.statement import EXAMPLE, find_statement, state
from cypresskit.machine.checks import Findings
from cypresskit.tables import quantity


def find_remarks(
    kernel: Kernel, alpha: float, beta: float, outside: Findings, unless: Callable[[], bool]
) -> Note:
    """Return the note on a correct kernel's reads ``outside`` of an array; or that an iteration
    takes fewer values of k than the kernel states.
    """
    stated_line, _ = find_statement(kernel.text)
    restated = NO_NOTE
    if outside or (stated_line and values_taken(kernel) < kernel.k_step):
        restated = _restate(kernel, alpha, beta, unless)
    lines = sorted({line for found in outside for line in (found.line, *found.other_lines)})
    return note("reads 0", *lines, why=restated) if lines else restated


def _restate(kernel: Kernel, alpha: float, beta: float, unless: Callable[[], bool]) -> Note:
    """Return the note that an iteration takes another number of values of k than it is launched
    for. Empty if the kernel, launched for that number, is incorrect; or reads outside though that
    is more.
    """
    taken = values_taken(kernel)
    if taken in (0, kernel.k_step):
        return NO_NOTE
    convention = replace(kernel.convention, k_step=taken)
    restated = replace(kernel, convention=convention)
    *_, last = runs = [*run_products(restated, alpha, beta, beta, unless)]
    reads_outside = any(run.findings for run in runs)
    if not last.is_correct or (reads_outside and taken > kernel.k_step):
        return NO_NOTE
    line, _ = find_statement(kernel.text)
    return note(
        "states k" if line else "launched for k",
        line or 1,
        k=taken,
        values=quantity(taken, "value"),
        stated=kernel.k_step,
        state=state(convention),
    )


def explain_block(kernel: Kernel) -> Note:
    """Return the note on a block smaller than what a work-item stores; empty if it isn't."""
    rows, columns = kernel.block
    stored = stored_elements(kernel)
    if stored <= rows * columns:
        return NO_NOTE
    line, _ = find_statement(kernel.text)
    example = "" if line else EXAMPLE
    return note(
        "stores more", line or 1, stored=stored, rows=rows, columns=columns, example=example
    )
