"""Whether a kernel is launched for what it computes: the values of k that an iteration takes, and
the elements of C that a work-item stores.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from cypresskit.diagnosis.elements import MatrixElement, TracedElement
from cypresskit.diagnosis.notes import NO_NOTE, Note, Values, note
from cypresskit.diagnosis.product_run import run_products
from cypresskit.diagnosis.recorded import StepRecorder
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.compiled import values_taken
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.products import RUN_ERRORS, Product
from cypresskit.kernels.statement import EXAMPLE, find_statement, state
from cypresskit.machine import launch
from cypresskit.machine.checks import Findings
from cypresskit.tables import quantity


def find_remarks(
    kernel: Kernel, alpha: float, beta: float, outside: Findings, unless: Callable[[], bool]
) -> Note:
    """Return the note on a correct kernel's reads ``outside`` of an array; or that an iteration
    takes fewer values of k than the kernel states.
    """
    restated = NO_NOTE
    if outside or (find_statement(kernel.text)[0] and values_taken(kernel) < kernel.k_step):
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


def explain_block(product: Product, unstored: MatrixElement | None = None) -> Note:
    """Return the note on a block that is smaller than what the first work-item stores; if an
    element is ``unstored``, also on a larger one. Empty if neither is so, or if the kernel fails.
    """
    kernel, stored = product.kernel, 0
    arguments, steps = product.arguments(), StepRecorder(0, TracedElement(product, 0, 0).place)
    if "global_memory" in arguments:  # has room for the stores of a larger block
        arguments["global_memory"] = np.tile(arguments["global_memory"], (64, 1))
    with suppress(*RUN_ERRORS):
        launch(kernel.program, **arguments, engine="interpreter", observers=[steps])
        stored = len(steps.first_stores) * 4 // BYTES[kernel.precision]

    rows, columns = kernel.block
    values = Values(stored=stored, rows=rows, columns=columns, element=unstored or "")
    if stored > rows * columns:
        line, _ = find_statement(kernel.text)
        return note("block", line or 1, example="" if line else EXAMPLE, **values)
    return note("block", **values) if unstored and 0 < stored < rows * columns else NO_NOTE
