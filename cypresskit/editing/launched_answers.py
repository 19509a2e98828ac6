"""Whether a program that is no product is right, how fast it is, and what its lines cost: what
``measured_answers`` is for kernels, for a launch that is given.
"""

import base64
import math

import numpy as np

from cypresskit.editing import measured_answers
from cypresskit.editing.given_launch import GivenLaunch
from cypresskit.editing.pure_answers import Answer
from cypresskit.il import Program
from cypresskit.machine import KernelError
from cypresskit.machine.checks import Findings, check
from cypresskit.machine.checks.answers import allowed_error, is_same, shown
from cypresskit.machine.engines import launch
from cypresskit.machine.launch import prepare
from cypresskit.timing.prices import price
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import simulate

CHECKED = 1 << 14  # work-items that are stepped through with every check on
ZERO = "fetch outside"  # gives 0: where the result is right all the same, it is no fault
LARGEST_MAP = 1 << 16  # elements of a result that are drawn


def verdict_answer(program: Program, given: GivenLaunch) -> Answer:
    """The part "verdict", as of ``measured_answers``; its product has the result's ``name``."""
    try:
        result = _result(program, given)
        findings = _findings(program, given, result)
    except (ValueError, TypeError) as error:  # the program needs what isn't given
        message = str(error).splitlines()[-1].strip()
        row = measured_answers.finding_row("launch", 0, 1, 1, message, "")
        return {"right": False, "message": "It can't be launched.", "findings": [row]}
    bad = None if result is None else ~_right(result, given)
    faults = [finding for finding in findings if finding.kind != ZERO]
    right = bad is not None and not bad.any() and not faults
    rows = [measured_answers.row_of(finding) for finding in findings[: measured_answers.FINDINGS]]
    answer: Answer = {
        "right": right,
        "message": "",
        "launched": f"Launched so: {given.at}; {given.name} is compared with what is expected.",
        "findings": rows,
    }
    if bad is not None and bad.any():
        answer["message"] = f"The result is wrong: {_first_wrong(result, bad, given)}."
        if not any(finding.kind == "answer" for finding in findings):
            sentence = answer["message"]
            rows.append(measured_answers.finding_row("answer", 0, 1, 1, sentence, ""))
        if product := _map(result, bad, given):
            answer["product"] = product
    elif faults:
        answer["message"] = measured_answers.finding_sentence(faults[0])
    else:
        unchecked = "" if math.prod(given.domain) <= CHECKED else _UNCHECKED
        answer["message"] = f"The result is right, all {bad.size:,} elements{unchecked}."  # type: ignore[union-attr]
    return answer


_UNCHECKED = f" (races and bounds are checked up to {CHECKED:,} work-items)"


def _result(program: Program, given: GivenLaunch) -> np.ndarray | None:
    """What comes out, or None if the run ends early."""
    arguments = given.arguments()
    engine = "explain" if math.prod(given.domain) <= CHECKED else "fast"  # as the checks do
    try:
        launch(program, **arguments, engine=engine)
    except KernelError:
        return None
    memory = arguments["global_memory"]
    return memory if memory is not None else arguments["outputs"][min(given.outputs)]


def _findings(program: Program, given: GivenLaunch, result: np.ndarray | None) -> Findings:
    """What the checks find, where the launch is small enough for them, or ended early."""
    if result is not None and math.prod(given.domain) > CHECKED:
        return Findings()
    return check(program, **given.arguments(), expected=given.expected, tolerance=given.tolerance)


def _right(result: np.ndarray, given: GivenLaunch) -> np.ndarray:
    """Which elements are right."""
    return is_same(result, given.expected, allowed_error(given.expected, given.tolerance))


def _first_wrong(result, bad: np.ndarray, given: GivenLaunch) -> str:
    place = tuple(int(n) for n in np.argwhere(bad)[0])
    element = f"{given.name}[{', '.join(map(str, place))}]"
    return f"{element} is {shown(result[place], given.expected[place])}"


def _map(result, bad: np.ndarray, given: GivenLaunch) -> Answer | None:
    """Which elements of a result in rows and columns are wrong; None for another one."""
    if bad.ndim < 2 or bad.size > LARGEST_MAP:
        return None
    first = tuple(int(n) for n in np.argwhere(bad)[0])
    places = bad.reshape(*bad.shape[:2], -1).any(axis=2)
    return {
        "name": given.name,
        "size": [*places.shape, 0],
        "count": int(places.sum()),
        "row": first[0],
        "column": first[1],
        "got": measured_answers.json_number(float(result[first])),
        "wanted": measured_answers.json_number(float(given.expected[first])),
        "wrong": base64.b64encode(np.packbits(places).tobytes()).decode(),
    }


def timed(program: Program, given: GivenLaunch) -> Report:
    """The report on the launch. Raises what ``ck.simulate`` does."""
    return simulate(
        program,
        launch=given.shape(program),
        flops=given.flops,
        precision=given.precision,
        progress=False,
    )


def clocks_answer(program: Program, given: GivenLaunch) -> Answer:
    """The part "clocks", as of ``measured_answers``, of the launch that is given."""
    try:
        prepare(program, **given.arguments())
        report = timed(program, given)
    except measured_answers.UNTIMED as error:
        return measured_answers.untimed(error)
    speed = float(f"{report.gflops:.4g}")  # a small launch has little of it
    return measured_answers.report_answer(report) | {"gflops": speed, "at": given.at}


def prices_answer(program: Program, given: GivenLaunch) -> Answer:
    """The part "prices", as of ``measured_answers``."""
    return measured_answers.priced_answer(price(timed(program, given)))
