"""Whether a kernel's text is right, how fast it is, and what each line costs: the half of the
workbench's answers that runs kernels and knows a clock.

Plain data (for JSON) comes out. Nothing here raises for what a kernel does: what can't be checked
or timed says why.
"""

import math
import re
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache

from cypresskit.compiler import CompileError
from cypresskit.editing.next_steps import bottleneck, dropped_components, next_steps
from cypresskit.editing.pure_answers import Answer, accesses, word_length
from cypresskit.editing.small_product import SmallProduct
from cypresskit.editing.steps import book_kernel
from cypresskit.il import Program, assemble
from cypresskit.kernels import Kernel
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.element_trace import ElementTrace, Term, trace_element
from cypresskit.kernels.own import LaunchConventionError, likeliest_launch, load_kernel
from cypresskit.kernels.products import share_right
from cypresskit.kernels.verification import Verification, verify
from cypresskit.machine import KernelError
from cypresskit.machine.checks import Finding
from cypresskit.machine.checks.bounds import TOO_FAR
from cypresskit.tables import quantity
from cypresskit.timing import DataDependentError
from cypresskit.timing.costs import (
    MIN_SHOWN,
    CostEstimate,
    LineCost,
    LineCosts,
    line_costs,
    never,
    percent,
)
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import simulate

FINDINGS = 8  # that are shown
OVERWRITES = "overwrites"  # in a note on a term: the line that throws a sum away is named first
OUTSIDE = re.compile(r"fetches ([AB])\[(\d+), (\d+).*has (\d+) rows? and (\d+) columns?")
TERMS = 40  # of a replayed element, that are shown
WORTH = 0.002  # of a launch: a price that is worth a word
PRICED_WAIT = 0.01  # of the lives of wavefronts: a wait that a line's price tells
UNTIMED = (CompileError, DataDependentError, KernelError, ValueError, RuntimeError, MemoryError)


def judged_kernel(
    text: str,
    name: str,
    like: str | None = None,
    before: Kernel | None = None,
    old_c: bool = False,
) -> tuple[Kernel, Verification]:
    """The kernel that a text is, and whether it is right; with ``old_c``, whether it also is if it
    has to add beta times the old C. Arguments, and what is raised, as of ``_launched_kernel``.
    """
    mine, seen = _launched_kernel(text, name, like, before)
    if old_c and seen.right:
        seen = verify(mine, alpha=2.0, beta=-1.0)
    return mine, seen


@lru_cache(maxsize=8)
def _launched_kernel(
    text: str, name: str, like: str | None, before: Kernel | None
) -> tuple[Kernel, Verification]:
    """The kernel that a text is, launched as it asks for, and whether it is right.

    A text that began as a copy of ``like`` may have come to store C in another way, or to take more
    steps of k in a turn: unless it is right as ``like``, it is launched as it asks for. A wrong
    text is launched as most of C comes out right. ``before`` is what an earlier text was: one that
    fetches and stores as often has its block and its steps of k, and nothing has to be found out;
    one of which nothing can be found out, an endless loop, say, is still launched like it, or like
    ``like``, if it stores to the same registers. What was found of the last few texts is kept.
    Raises what ``ck.load_kernel`` raises.
    """
    program = assemble(text, name)
    bare = name.removesuffix(".il")
    book = None if like is None else book_kernel(like)
    near = before or book
    if near is not None and accesses(near.program) == accesses(program):
        mine = load_kernel(text, like=near, block=near.block, k_step=near.k_step, name=bare)
        return mine, verify(mine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a text that computes a wrong product is nothing strange
        as_like: Verification | None = None
        if book is not None and _stores(book.program) == _stores(program):
            as_like = verify(load_kernel(text, like=book, name=bare))
            if as_like.right:
                return as_like.kernel, as_like
        likeliest, share = likeliest_launch(text, bare)
        if likeliest is not None:
            as_it_asks = verify(likeliest)
            if as_like is None or as_it_asks.right or share > share_right(as_like.kernel):
                return likeliest, as_it_asks
        if as_like is not None:
            return as_like.kernel, as_like
        try:
            mine = load_kernel(text, name=bare)
        except LaunchConventionError:
            if near is None or _registers(near.program) != _registers(program):
                raise
            mine = load_kernel(text, like=near, block=near.block, k_step=near.k_step, name=bare)
    return mine, verify(mine)


def _stores(program: Program) -> tuple[str, frozenset[str]]:
    """The mode of a program, and what it stores to: global memory, or numbers of output streams."""
    destinations = {i.dest for i in program.body if i.dest}
    return program.mode, frozenset(
        "g" if dest.register.kind == "g" else f"{dest.register}.{dest.written}"
        for dest in destinations
        if dest.register.kind in ("g", "o")
    )


def _registers(program: Program) -> tuple[str, set[str]]:
    """The mode of a program, and the registers that it stores to."""
    mode, stores = _stores(program)
    return mode, {name.partition(".")[0] for name in stores}


def verdict_answer(seen: Verification) -> Answer:
    """The part "verdict".

    It holds whether it is ``right``; ``message``, a sentence; ``launched``, in words how the kernel
    is launched; ``findings``, each with kind,
    line, column, length, message and advice (line 0 for what concerns no line); and of a wrong
    product ``product``: its ``size``, how many elements are wrong, the first one's row and column,
    what it is (``got``) and should be (``wanted``).
    """
    findings = [row_of(finding, seen.kernel) for finding in seen.findings[:FINDINGS]]
    if seen.error:
        findings.append(_launch_row(seen))
    if seen.wrong is not None:
        findings.append(finding_row("answer", 0, 1, 1, f"{seen.wrong}.", ""))
    answer: Answer = {
        "right": seen.right,
        "message": _sentence(seen),
        "launched": launch_in_words(seen.kernel),
        "findings": findings,
    }
    if product := _wrong_product(seen):
        answer["product"] = product
    return answer


def _launch_row(seen: Verification) -> Answer:
    """What a kernel needs that its launch doesn't give, at the line that needs it."""
    program = seen.kernel.program
    place = re.match(rf"{re.escape(program.name)}:(\d+): .*\n +(.*): pass .*$", seen.error)
    if place is None:
        return finding_row("launch", 0, 1, 1, seen.error, "")
    line = int(place[1])
    text = program.lines[line - 1]
    column = len(text) - len(text.lstrip()) + 1
    message = f"it {place[2]}, which this launch doesn't give."
    advice = "No launch makes any element of C correct. Check what is stored, and at which address."
    return finding_row("launch", line, column, len(text.strip()), message, advice)


def launch_in_words(mine: Kernel) -> str:
    """How a kernel is launched: what a work-item computes, and what a texel holds."""
    rows, columns = mine.block
    computes = f"{rows} elements of y" if mine.vector else f"{rows} x {columns} elements of C"
    words = f"Launched so that each work-item computes {computes}"
    if mine.convention.parts > 1:
        words += f", {mine.convention.parts} of them share its values of k"
    words += f"; each iteration handles {quantity(mine.k_step, 'value')} of k"
    if not mine.convention.buffer:
        numbers = max(1, mine.convention.texel // BYTES[mine.precision])
        words += f"; each fetch returns {quantity(numbers, 'number')}"
    stored = [("A", mine.trans_a, "A[k, row]"), ("B", mine.trans_b, "B[column, k]")]
    for name, transposed, place in stored:
        words += f"; {name} is stored transposed, as {place}" if transposed else ""
    if dropped := dropped_components(mine):
        words += f". Not stored, since an output of C has no room for them: {', '.join(dropped)}"
    return f"{words}."


def _sentence(seen: Verification) -> str:
    """The verdict in one sentence."""
    result = "y" if seen.kernel.vector else "C"
    if seen.right:
        return f"{result} is correct. Tested: {seen.at}."
    if seen.wrong is not None:
        return f"{result} is incorrect: {seen.wrong}."
    if seen.findings:
        return finding_sentence(seen.findings[0])
    if seen.error and (row := _launch_row(seen))["line"]:
        return f"Line {row['line']}: {row['message']}"
    return seen.error or f"{result} is incorrect."


def finding_sentence(first: Finding) -> str:
    """A finding in one sentence."""
    return f"Line {first.line}, {first.kind}: {first.message.partition('. ')[0].rstrip('.')}."


def row_of(finding: Finding, mine: Kernel) -> Answer:
    """A finding as a row of the list."""
    length = word_length(finding.text, finding.column)
    advice = _growing_advice(finding, mine) or finding.advice
    return finding_row(finding.kind, finding.line, finding.column, length, finding.message, advice)


def _growing_advice(finding: Finding, mine: Kernel) -> str:
    """Advice for a fetch beyond A or B, along k or across the block; "" for other findings."""
    place = OUTSIDE.search(finding.message) if finding.advice.endswith(TOO_FAR) else None
    if place is None:
        return ""
    letter, row, column, rows, columns = place.groups()
    beyond = [int(row) >= int(rows), int(column) >= int(columns)]
    k_first = mine.trans_a if letter == "A" else not mine.trans_b  # the index that counts k
    along_k, across = beyond if k_first else beyond[::-1]
    advice = []
    if across:
        side = "rows" if letter == "A" else "columns"
        down, over = mine.block
        advice.append(
            f"Are there {side} of the block that aren't stored yet? Each work-item stores"
            f" {down} x {over} elements of C, and is launched for these."
        )
    if along_k:
        advice.append(
            "Is k counted by less than an iteration handles? The loop has to add as many to k as it"
            " fetches."
        )
    return " ".join(advice)


def finding_row(
    kind: str, line: int, column: int, length: int, message: str, advice: str
) -> Answer:
    return {
        "kind": kind,
        "line": line,
        "column": column,
        "length": length,
        "message": message,
        "advice": advice,
    }


def _wrong_product(seen: Verification) -> Answer | None:
    """Which element of C is the first wrong one, if it was computed to the end."""
    if seen.wrong is None or seen.result is None or seen.expected is None or seen.size is None:
        return None
    return {
        "size": list(seen.size),
        "count": seen.wrong_count,
        "row": seen.wrong.row,
        "column": seen.wrong.column,
        "got": json_number(seen.wrong.got),
        "wanted": json_number(seen.wrong.expected),
    }


def replay_answer(seen: Verification, small: SmallProduct | None, row: int, column: int) -> Answer:
    """What went into an element of C.

    It is an element of the ``small`` product, which a reader can check by hand, unless that doesn't
    show the fault or doesn't have the element.

    The answer holds ``row``, ``column``; a ``message`` on what the element is; ``notes``, what is
    wrong, in sentences; ``terms``, each with its ``text``, whether it is ``right``, a ``note``, the
    ``line`` to go to, and the ``lines`` that touched it; or a ``problem``, why nothing can be said.
    """
    if small is not None and (not small.has(row, column) or not (seen.right or small.wrong)):
        small = None
    place = {"row": row, "column": column}
    scalars = {"alpha": seen.alpha, "beta": seen.beta}
    try:
        if small is not None:
            trace = small.trace(row, column)
        else:
            trace = trace_element(seen.kernel, row, column, size=seen.size, **scalars)
    except (ValueError, KernelError) as error:
        return place | {"problem": str(error).splitlines()[-1].strip()}
    writer = "" if trace.work_item is None else f", stored by work-item {trace.work_item}"
    if small is not None:
        state = f"{small.sums(trace)}."
    else:
        state = f"{trace.got:.9g}" + ("" if trace.right else f"; it should be {trace.expected:.9g}")
        state += f". The test uses alpha = {seen.alpha:g}, beta = {seen.beta:g}."
    return place | {
        "message": f"C[{row}, {column}]{writer}: {state}",
        "notes": sorted(trace.notes, key=lambda note: OVERWRITES not in note),
        "terms": [_term_row(term, trace) for term in trace.terms[:TERMS]],
        "more": max(0, len(trace.terms) - TERMS),
    }


def _term_row(term: Term, trace: ElementTrace) -> Answer:
    names = {trace.beta: " (beta)"} if _is_old(term) else {trace.alpha: " (alpha)"}
    times = "" if term.times == 1 else f"{term.times:g}{names.get(term.times, '')} · "
    return {
        "text": times + " · ".join(map(str, term.factors)),
        "right": term.right,
        "note": term.note,
        "line": term.blame or term.line,
        "lines": list(term.lines),
    }


def _is_old(term: Term) -> bool:
    """Return whether a term is an element of the old C."""
    return [factor.element.matrix for factor in term.factors] == ["C"]


def json_number(value: float) -> float | str:
    """A number as JSON has it; of those that it hasn't, the name."""
    return value if math.isfinite(value) else str(value)


def clocks_answer(mine: Kernel, n: int) -> Answer:
    """The part "clocks".

    The answer holds ``size`` [m, n, k], and in words where it is timed, ``at``; ``gflops``,
    ``percent`` of peak, ``clocks``, what it is ``bound`` by and what would ``help``, ``busy``
    (shares by unit), ``hits`` (shares by cache), the share of the time that the ``launch`` itself
    takes, ``error`` (a share) and ``wavefronts`` per SIMD engine; ``steps``, what one could do
    next, each with its ``text`` and the ``lines`` that it is about; or a ``problem``, why it can't
    be timed.
    """
    try:
        report = report_at(mine, n)
    except UNTIMED as error:
        return untimed(error)
    sides = report.size or (n, n, n)
    square = len({*sides}) == 1
    at = f"N = {n:,}" if square else " x ".join(f"{side:,}" for side in sides)
    return report_answer(report, mine) | {"at": at}


def report_at(mine: Kernel, n: int) -> Report:
    """How fast a kernel is at m = n = k = ``n``; of a product with a vector, at m = k = ``n``."""
    return simulate(mine, 1 if mine.vector else n, m=n, k=n, progress=False)


def untimed(error: Exception) -> Answer:
    """The part "clocks" of a kernel that can't be timed."""
    return {"problem": f"It can't be timed: {str(error).splitlines()[-1].strip()}"}


def report_answer(report: Report, mine: Kernel) -> Answer:
    """The part "clocks" of a report on the kernel ``mine``, but for ``at``."""
    steps = next_steps(report, mine)
    return {
        "size": list(report.size or (0, 0, 0)),
        "gflops": float(f"{report.gflops:.4g}"),
        "percent": float(f"{report.percent:.3g}"),
        "clocks": round(report.clocks),
        "bound": report.bound,
        "help": bottleneck(report.bound).help,
        "busy": {unit: round(share, 4) for unit, share in report.busy.items()},
        "hits": {cache: round(share, 4) for cache, share in report.hits.items()},
        "launch": round(1 - report.chip_time_share, 4),
        "error": round(report.error, 4),
        "wavefronts": report.active_wavefronts,
        "steps": [{"text": step.text, "lines": list(step.lines)} for step in steps],
    }


def prices_answer(mine: Kernel, n: int, unless: Callable[[], bool] = never) -> Answer:
    """The part "prices".

    The answer holds ``lines``: line, ``work`` (the share of the launch in which its busiest unit
    works for it), ``price`` (the share of the launch that it costs), as it is ``shown``, and a
    ``text`` that says both; ``dearest``, the line with the highest price, 0 if no line alone is
    dear; a ``message`` on all that cost as much; and ``why`` the lines of the unit that limits the
    launch cost little, if they do.
    """
    return priced_answer(line_costs(report_at(mine, n), unless=unless))


def priced_answer(prices: LineCosts) -> Answer:
    """The part "prices" of prices."""
    written: dict[int, list[LineCost]] = {}
    for row in prices.lines:
        written.setdefault(_line_of(row), []).append(row)
    costs = {line: _cost(parts) for line, parts in written.items()}
    lived = prices.report.resident_clocks
    rows = [_price_row(line, costs[line], parts, lived) for line, parts in written.items()]
    first = max(costs, key=lambda line: costs[line].cost, default=0)
    if not first or costs[first].cost < WORTH:
        return {"lines": rows, "dearest": 0, "message": "No single line costs much."}
    dear = [line for line, cost in costs.items() if cost.is_close_to(costs[first])]
    message = f"Line {first} costs the most: {costs[first]} of the time."
    if len(dear) > 1:
        message = f"{len(dear)} lines cost the most, such as line {first}: {costs[first]} each."
    answer = {"lines": rows, "dearest": first, "message": message}
    return answer | ({"why": why} if (why := _why_cheap(prices, costs)) else {})


def _why_cheap(prices: LineCosts, costs: dict[int, CostEstimate]) -> str:
    """Why the lines of the unit that limits the launch cost little, if they do; or ""."""
    report = prices.report
    unit = next((unit for unit in report.busy if report.bound.startswith(unit)), "")
    lines = {_line_of(row) for row in prices.lines if row.unit == unit}
    if not lines or math.fsum(costs[line].cost for line in lines) > report.busy[unit] / 2:
        return ""
    return (
        f"{unit} limits this kernel, but each of its lines costs little: a line's cost depends on"
        " what is left to wait for, and without one of them the others still keep the unit busy."
    )


def _line_of(row: LineCost) -> int:
    """The line of the source that is priced: of a macro's instruction, the line of its call."""
    return row.work.calls[0] if row.work.calls else row.line


def _cost(parts: Sequence[LineCost]) -> CostEstimate:
    """What a line costs: all its instructions together, of which a macro's call has many."""
    names = "cost", "low", "high"
    return CostEstimate(*(math.fsum(getattr(part, name) for part in parts) for name in names))


def _price_row(line: int, cost: CostEstimate, parts: Sequence[LineCost], lived: float) -> Answer:
    """What a line costs; what works for it, and for which share of their lives, ``lived`` clocks in
    all, wavefronts wait at it.
    """
    works = dict.fromkeys((part.unit for part in parts), 0.0)
    for part in parts:
        works[part.unit] += part.share
    unit = max(works, key=works.__getitem__)
    text = (
        f"cost {cost}: the kernel would finish that much sooner if this line took no time."
        f" {unit} works on it {percent(works[unit])} of the time"
    )
    runs = max(part.work.runs for part in parts)
    if unit != "ALU" and runs:
        clocks = math.fsum(part.work.clocks[unit] for part in parts) / runs
        text += f", {clocks:.3g} clocks each time"
    waited = math.fsum(part.work.waiting_clocks for part in parts)
    if lived and waited / lived >= PRICED_WAIT:
        text += f"; wavefronts spend {percent(waited / lived)} of their lifetime waiting here"
    shown = percent(cost.cost).removesuffix(" %") if cost.cost >= MIN_SHOWN else ""
    shares = {"work": round(works[unit], 5), "price": round(cost.cost, 5)}
    return {"line": line, **shares, "shown": shown, "text": text}
