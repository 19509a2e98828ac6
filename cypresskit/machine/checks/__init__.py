"""Checks: run a kernel in the interpreter and report what is wrong: which line, where, and why.

Each check is an observer in its own module. Nothing raises for what the kernel does: a store out of
range, a barrier in divergent control flow or an endless loop ends the run and becomes a finding.
Once a value is used that was never set, later faults of accesses and branches are left out, except
the one that ends the run: they may follow from that value.

Left out: the kinds of numbers in a register, which holds bits: where a program computes with floats
and with integers, one instruction may read what is meant for the other.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cypresskit.il import Program
from cypresskit.machine import interpreter
from cypresskit.machine.checks.barriers import BarrierCheck
from cypresskit.machine.checks.bounds import MemoryCheck
from cypresskit.machine.checks.findings import (
    ENDING_KINDS,
    ENDLESS_LOOP,
    Check,
    Finding,
    Findings,
    Naming,
)
from cypresskit.machine.checks.races import RaceCheck
from cypresskit.machine.checks.uninitialized import UninitializedCheck
from cypresskit.machine.launch import Arrays, KernelError, check_program, prepare

__all__ = ["Finding", "Findings", "check"]


def check(
    program: Program,
    domain: int | Sequence[int],
    *,
    inputs: Arrays | None = None,
    constants: Arrays | None = None,
    outputs: Arrays | None = None,
    global_memory: np.ndarray | None = None,
    max_instructions: int | None = None,
    names: Mapping[Any, Any] | None = None,
    in_place: bool = False,
) -> Findings:
    """Run ``program`` with every check on. The arrays are unchanged, unless ``in_place``.

    Parameters
    ----------
    program, domain, inputs, constants, outputs, global_memory, max_instructions
        As for ``launch``.
    names
        What to call the arrays in findings: resource number, "g" or "o0" .. "o7" to a name, as
        {0: "A", "g": "C"}.
    in_place
        Leave the results in the arrays.

    Returns
    -------
    The findings, empty if there is nothing to report. ``ended_early``: whether the run was ended by
    a store out of range, a barrier or a loop.

    Raises
    ------
    ValueError, TypeError
        For arguments that don't fit the program, and for too many work-items.
    """
    check_program("check", program)
    launch = prepare(
        program,
        domain,
        inputs=inputs,
        constants=constants,
        outputs=outputs,
        global_memory=global_memory,
        max_instructions=max_instructions,
    )
    interpreter.check_memory(launch)
    naming = Naming(launch, names or {}, inputs or {}, global_memory)
    barriers = BarrierCheck(naming)
    access_checks = (MemoryCheck(naming), RaceCheck(naming), barriers)
    unset = UninitializedCheck(naming, access_checks)
    ended_early = False
    try:
        interpreter.run(launch, (*access_checks, unset))
    except KernelError as error:
        ended_early = True
        _report_loop(barriers, error)
    if in_place:
        launch.write_back(outputs, global_memory)
    found = [finding for c in access_checks for finding in c.found.values()]
    if unset.found:
        found = [*unset.earlier, *(finding for finding in found if finding.kind in ENDING_KINDS)]
    findings = Findings.of([*found, *unset.found.values()])
    findings.ended_early = ended_early
    return findings


def _report_loop(check: Check, error: KernelError) -> None:
    """Report an endless loop; the checks have reported all other errors."""
    launch, place = check.launch, error.work_item
    if error.kind != "endless":
        return
    item = place[0] + place[1] * launch.shape.domain[0] if isinstance(place, tuple) else place
    text = str(error).replace(launch.shape.item_name(item), check.naming.item(item))
    message, _, advice = text.splitlines()[-1].strip().partition(". ")
    check.report(ENDLESS_LOOP, error.at, message, advice, item=item)
