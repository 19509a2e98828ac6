"""``trace_element``: the terms of a right element, and the line of a planted fault."""

import random
import re
import tomllib
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from case_files import agree, edited
from planted_faults import Fault, plant
from repository import ROOT
from sampling import SIX, drawn_by_day, from_rows, seeded

import cypresskit as ck
from cypresskit.diagnosis.element_trace import ElementTrace
from cypresskit.diagnosis.elements import MatrixElement
from cypresskit.diagnosis.notes import Note
from cypresskit.editing.steps import reference_kernel
from cypresskit.kernels.products import make_product

SINGLE = "sgemm_tn"


def mine(name: str, text: str) -> ck.Kernel:
    """A changed text of a kernel of the catalogue, launched like it."""
    like = ck.kernels[name]
    return ck.load_kernel(text, like=like, name="mine")


def changed(name: str, *changes: tuple[str, str]) -> ck.Kernel:
    text = ck.kernels[name].text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return mine(name, text)


@drawn_by_day("name", [name for name in SIX if "reduce" not in name], 3)
def test_a_right_element_has_each_product_once_and_the_old_c(name):
    kernel = ck.kernels[name]
    rng = random.Random(name)
    trace = ck.trace_element(kernel, 0, 0)
    m, n, k = trace.size
    row, column = rng.randrange(m), rng.randrange(n)
    trace = ck.trace_element(kernel, row, column)
    assert trace.right
    assert trace.got == trace.expected
    assert [term.kind for term in trace.terms] == ["right"] * (k + 1)
    products = {tuple(f.element for f in term.factors) for term in trace.terms}
    wanted = {(MatrixElement("C", row, column),)}
    for p in range(k):
        a = (p, row) if kernel.trans_a else (row, p)
        b = (column, p) if kernel.trans_b else (p, column)
        wanted.add((MatrixElement("A", *a), MatrixElement("B", *b)))
    assert products == wanted
    times = Counter(term.times for term in trace.terms)
    assert times == {trace.alpha: k, trace.beta: 1}


def sum_of_terms(trace: ElementTrace) -> float:
    """What the terms of a trace add up to, in the numbers of its product."""
    given = make_product(trace.kernel, trace.size, trace.alpha, trace.beta)
    stored = {"A": given.a, "B": given.b, "C": given.c}
    total = 0.0
    for term in trace.terms:
        if term.kind != "missing":
            factors = [stored[f.element.matrix][f.element[1:]] for f in term.factors]
            total += term.times * np.prod(factors)
    return total


@drawn_by_day("name", ["sgemm_naive", "sgemm_tn", "dgemm_tn"], 1)
@seeded(1)
def test_a_wrong_register_in_a_product_has_terms_that_add_up_to_what_came_out(name, seed):
    """Whatever a line multiplies in place of what it should: squares, and two of one matrix."""
    rng = random.Random(f"{name} {seed}")
    lines = ck.kernels[name].text.split("\n")
    products = [n for n, line in enumerate(lines) if re.match(r" *d?(mad|mul|fma)\b.*, r", line)]
    read = sorted({source for n in products for source in re.findall(r", (r\d+[.\w]*)", lines[n])})
    for _ in range(8):
        at = rng.choice(products)
        old = rng.choice(re.findall(r", (r\d+[.\w]*)", lines[at]))
        line = lines[at].replace(f", {old}", f", {rng.choice(read)}", 1)
        try:
            kernel = mine(name, "\n".join([*lines[:at], line, *lines[at + 1 :]]))
        except (ck.ILError, ValueError):
            continue
        checked = ck.verify(kernel)
        if checked.wrong is None or checked.result is None:
            continue
        place = checked.wrong.row, checked.wrong.column
        trace = ck.trace_element(kernel, *place, size=checked.size)
        assert adds_up(trace), (line, str(trace))
        assert trace.notes, (line, str(trace))


def adds_up(trace: ElementTrace) -> bool:
    """Whether the terms add up to what was stored, with the number that is said to be added."""
    added = sum(fault.values["number"] for fault in trace.faults if fault.kind == "number")
    return not trace.terms or sum_of_terms(trace) + added == pytest.approx(trace.got, rel=1e-6)


@drawn_by_day("name", ["sgemm_tn_37", "sgemm_nn"], 1)
@seeded(1)
def test_the_terms_of_any_element_add_up_to_what_was_stored_before_the_run_ended(name, seed):
    """A store out of range ends the run in all work-items; what came before it stays in C."""
    rng = random.Random(f"{name} {seed}")
    lines = ck.kernels[name].text.split("\n")
    places = [n for n, line in enumerate(lines) if re.match(r" *iadd r\d+\.x, r", line)]
    ends = 0
    for _ in range(8):
        at = rng.choice(places)
        line = re.sub(r", r\d+\.x", f", r{rng.randrange(40)}.x", lines[at], count=1)
        try:
            kernel = mine(name, "\n".join([*lines[:at], line, *lines[at + 1 :]]))
            size = ck.verify(kernel).size
            if size is None:
                continue
            place = rng.randrange(size[0]), rng.randrange(size[1])
            trace = ck.trace_element(kernel, *place, size=size)
        except (ck.ILError, ck.KernelError, ValueError):
            continue
        ends += ck.verify(kernel).findings.ended_early
        assert adds_up(trace), (line, str(trace))
        assert not trace.right or trace.got == trace.expected, (line, str(trace))
    assert ends


TRACED = ROOT / "tests/cases/traced_faults.toml"
CASES = tomllib.loads(TRACED.read_text())


@pytest.mark.parametrize("name", CASES)
def test_of_a_planted_fault_the_first_note_is_the_expected_one(name, request):
    """Of an element that is right, there is none."""
    case = CASES[name]
    like = reference_kernel(case["of"])
    kernel = ck.load_kernel(edited(like.text, case["edits"]), like=like)
    trace = ck.trace_element(kernel, *case["element"], **case.get("more", {}))
    agree(request, TRACED, name, [*trace.notes, ""][0])


def blamed(kernel: ck.Kernel, trace: ElementTrace) -> set[int]:
    """The lines to fix: those of incorrect terms; all stores, if none stored the element."""
    if trace.work_item is None:
        written = (i for i in kernel.program.body if i.dest and i.dest.register.kind in "go")
        return {i.line for i in written}
    return {term.note.line for term in trace.terms if term.note.line and not term.right}


def found(fault: Fault, name: str) -> tuple[bool, ElementTrace] | None:
    """Whether the trace of the first wrong element names the fault; None if it spoils nothing.

    A line that was taken out is named if the terms that it added are those that are missing.
    """
    try:
        kernel = mine(name, fault.text)
    except ck.ILError:
        return None
    checked = ck.verify(kernel)
    if checked.wrong is None or checked.result is None:
        return None
    place = checked.wrong.row, checked.wrong.column
    trace = ck.trace_element(kernel, *place, size=checked.size)
    if fault.kind != "missing":
        return fault.line in blamed(kernel, trace), trace
    before = ck.trace_element(ck.kernels[name], *place, size=checked.size)
    gone = {tuple(f.element for f in t.factors) for t in before.terms if t.line == fault.line}
    missing = {tuple(f.element for f in t.factors) for t in trace.terms if t.kind == "missing"}
    return bool(gone & missing), trace


def test_the_line_to_mend_is_the_planted_one():
    rng = random.Random("planted 1")
    names = [name for name in ck.kernels if "reduce" not in name]
    outcomes: list[bool] = []
    missed: list[str] = []
    while len(outcomes) < 16:
        name = rng.choice(names)
        fault = plant(ck.kernels[name].text, rng)
        outcome = fault and found(fault, name)
        if not outcome:
            continue
        outcomes.append(outcome[0])
        if not outcome[0]:
            missed.append(f"{name}, line {fault.line}, {fault.kind}: {outcome[1]}")
    assert sum(outcomes) >= 0.9 * len(outcomes), "\n".join(missed)


def moved_in_k(lines: list[str], rng: random.Random) -> set[int]:
    """Change what moves the fetches in k: their offsets, the first k, the step to the next, the
    line that takes it, or what ends the loop. Return the changed line; none of offsets.
    """
    begin, end = (next(n for n, line in enumerate(lines) if word in line) for word in LOOP)
    step = next(n for n in range(begin, end) if "add r0.z" in lines[n])
    kind = rng.choice(["offset", "begin", "step", "place", "end"])
    if kind == "offset":
        shift = rng.choice([-2, -1, 1, 2])
        lines[:] = [re.sub(r",(\d+),0\)", lambda y: f",{int(y[1]) + shift},0)", x) for x in lines]
        return set()
    if kind == "place":
        at = rng.randrange(begin + 1, step)
        lines.insert(at, lines.pop(step))
        return {at + 1}
    words = {"begin": "mov r0.z", "step": "add r0.z", "end": "ge "}
    at = next(n for n, line in enumerate(lines) if words[kind] in line)
    lines[at] = re.sub(r"l0\.\w", f"l0.{rng.choice('xyzw')}", lines[at])
    lines[at] = lines[at].replace("cb0[0].z", "l0.y")
    return {at + 1}


LOOP = "whileloop", "endloop"
BLOCKS = "2x2", "4x4", "4x8", "8x4", "8x8x2"


def moved_before_the_loop(lines: list[str], rng: random.Random) -> set[int]:
    """Fetch A or B at r0.w, which a new line above the loop sets to a wrong coordinate. Return that
    line.
    """
    at = next(n for n, line in enumerate(lines) if LOOP[0] in line)
    own = rng.choice("xy")
    lines[at:] = [line.replace(f"r0.{own}z00", "r0.wz00") for line in lines[at:]]
    lines.insert(at, f"add r0.w, r0.{own}, l0.{rng.choice('yzw')}")
    return {at + 1}


def coordinate_setters(seed: int, change: Callable) -> tuple[set[int], set[int]]:
    """The lines of a changed block that are said to set a coordinate, or what ends the loop, at the
    first wrong element, and the lines that the change touched.
    """
    rng = random.Random(seed)
    like = reference_kernel(f"block_{rng.choice(BLOCKS)}")
    lines = like.text.splitlines()
    touched = change(lines, rng)
    kernel = ck.load_kernel("\n".join(lines), like=like)
    checked = ck.verify(kernel)
    if not checked.wrong:
        return touched, touched
    faults = ck.trace_element(kernel, *checked.wrong[:2], size=checked.size).faults
    causes = (fault.values.get("why", Note()) for fault in faults)
    return {line for why in causes for line in why.lines[-1:]}, touched


@pytest.mark.parametrize("change", [moved_in_k, moved_before_the_loop])
@seeded(10)
def test_the_line_that_sets_a_wrong_coordinate_is_named(seed, change):
    """Also where a fetch of another iteration reads outside. Of wrong offsets no other line is."""
    said, touched = coordinate_setters(seed, change)
    assert said == touched


@pytest.mark.parametrize("rows", [12, 16])
def test_an_element_that_no_work_item_stores_is_told_with_what_one_stores(rows):
    like = reference_kernel(f"block_{rows}x8")
    stated = like.text.replace(f"{rows} x 8", f"{rows + 4} x 8", 1)
    (note,) = ck.trace_element(ck.load_kernel(stated), rows, 0).notes
    stores = f"a work-item stores {rows * 8} elements, but is launched for {rows + 4} x 8"
    assert note == f"No work-item stores C[{rows}, 0]: {stores}.", note


def test_an_element_from_the_lds_is_read_by_the_line_that_loads_it():
    kernel = ck.kernels["sgemm_64x64_lds"]
    trace = ck.trace_element(kernel, 5, 7)
    readings = [f for term in trace.terms for f in term.factors if f.element.matrix == "A"]
    loads = {i.line for i in kernel.program.body if i.op.kind == "lds" and not i.op.store}
    assert readings and {reading.line for reading in readings} <= loads


def test_of_a_sum_that_passes_through_the_lds_no_line_is_blamed():
    trace = ck.trace_element("sgemv_n_reduce4", 0, 0)
    assert trace.right and not trace.terms
    wrong = changed("sgemm_nn_reduce4", ("mad r30, r20.x,", "mad r30, r20.y,"))
    trace = ck.trace_element(wrong, 0, 0)
    assert not trace.terms and [fault.line for fault in trace.faults] == [0]


@from_rows
def test_an_element_that_is_not_there_is_rejected(row, column):
    with pytest.raises(ValueError, match="C is 8 x 16: it has no element"):
        ck.trace_element(SINGLE, row, column)


@pytest.mark.parametrize("name", ["sgemm_naive", "sgemm_tn"])
def test_a_correct_sum_of_two_loops_has_no_fault(name):
    """The second takes the values of k that the first one leaves."""
    text = ck.kernels[name].text
    loop = re.search(r"whileloop\n.*?endloop\n", text, re.DOTALL)[0]
    first = loop.replace("cb0[0].z", "l99.x")
    head, _, rest = text.partition(loop)
    head = head.replace("dcl_literal", "dcl_literal l99, 2.0, 0.0, 0.0, 0.0\ndcl_literal", 1)
    kernel = ck.load_kernel(head + first + loop + rest, like=name)
    assert ck.verify(kernel)
    for size in ck.verify(kernel).sizes:
        assert ck.trace_element(kernel, 0, 0, size=size).right
