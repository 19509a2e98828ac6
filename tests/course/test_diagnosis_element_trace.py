"""``trace_element``: the terms of a right element, and the line of a planted fault."""

import random
import re
import tomllib
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from case_files import compare_with_case, edit_text
from changed_texts import plant
from kernel_texts import alter_kernel
from repository import ROOT
from sampling import SIX, drawn_by_day, seeded

import cypresskit as ck
from cypresskit.diagnosis.elements import MatrixElement, number_elements
from cypresskit.diagnosis.notes import Note
from cypresskit.editing.steps import reference_kernel
from cypresskit.kernels.products import make_product

SINGLE = "sgemm_tn"
#: The kinds of faults of an element whose terms aren't known.
UNKNOWN = {"varies", "loads a sum", "late read", "no sum", "no store", "block", "nowhere"}


def incorrect(like, change, rng):
    """Change a kernel until its C is incorrect. Return what ``change`` returns for its lines, and
    the trace of the first incorrect element.
    """
    while True:
        lines = like.text.split("\n")
        told = change(lines, rng)
        with suppress(ck.ILError, ValueError):
            checked = ck.verify(ck.load_kernel("\n".join(lines), like=like))
            if checked.incorrect_element:
                place = checked.incorrect_element[:2]
                return told, ck.trace_element(checked.kernel, *place, size=checked.size)


@drawn_by_day("name", [name for name in SIX if "reduce" not in name], 3)
@seeded(1)
def test_a_right_element_has_each_product_once_and_the_old_c(name, seed):
    kernel = ck.kernels[name]
    rng = random.Random(f"{name} {seed}")
    trace = ck.trace_element(kernel, 0, 0)
    m, n, k = trace.product.size
    row, column = rng.randrange(m), rng.randrange(n)
    trace = ck.trace_element(kernel, row, column)
    assert trace.is_correct
    assert trace.value == trace.correct_value
    assert [term.kind for term in trace.terms] == ["correct"] * (k + 1)
    _, *shown, more = str(replace(trace, terms=99 * trace.terms)).splitlines()
    assert more == f"... and {99 * (k + 1) - len(shown)} more terms"
    products = {tuple(f.element for f in term.factors) for term in trace.terms}
    wanted = {(MatrixElement("C", row, column),)}
    for p in range(k):
        a = (p, row) if kernel.trans_a else (row, p)
        b = (column, p) if kernel.trans_b else (p, column)
        wanted.add((MatrixElement("A", *a), MatrixElement("B", *b)))
    assert products == wanted
    times = Counter(term.times for term in trace.terms)
    assert times == {trace.product.alpha: k, trace.product.beta: 1}


def sum_of_terms(trace):
    """What the terms of a trace add up to, in the numbers of its product."""
    given = trace.product
    stored = {"A": given.a, "B": given.b, "C": given.c}
    total = 0.0
    for term in trace.terms:
        if term.kind != "missing":
            factors = [stored[f.element.matrix][f.element[1:]] for f in term.factors]
            total += term.times * np.prod(factors)
    return total


def another_register(lines, rng):
    """Have a line multiply what another one multiplies. Return that line."""
    products = [n for n, line in enumerate(lines) if re.match(r" *d?(mad|mul|fma)\b.*, r", line)]
    read = sorted({source for n in products for source in re.findall(r", (r\d+[.\w]*)", lines[n])})
    at = rng.choice(products)
    old = rng.choice(re.findall(r", (r\d+[.\w]*)", lines[at]))
    lines[at] = lines[at].replace(f", {old}", f", {rng.choice(read)}", 1)
    return lines[at]


@drawn_by_day("name", ["sgemm_naive", "sgemm_tn", "dgemm_tn"], 1)
@seeded(4)
def test_a_wrong_register_in_a_product_has_terms_that_add_up_to_what_came_out(name, seed):
    """Whatever a line multiplies in place of what it should: squares, and two of one matrix."""
    rng = random.Random(f"{name} {seed}")
    line, trace = incorrect(ck.kernels[name], another_register, rng)
    assert adds_up(trace) and trace.notes, (line, str(trace))


def adds_up(trace):
    """Whether the terms add up to what was stored, with the number that is said to be added; or why
    they aren't known is said.
    """
    if not trace.terms:
        return {fault.kind for fault in trace.faults} <= UNKNOWN
    added = sum(fault.values["number"] for fault in trace.faults if fault.kind == "number")
    return sum_of_terms(trace) + added == pytest.approx(trace.value, rel=1e-6)


@drawn_by_day("name", ["sgemm_tn_37", "sgemm_nn"], 1)
@seeded(1)
def test_the_terms_of_any_element_add_up_to_what_was_stored_unless_the_run_ends(name, seed):
    """Whatever the addresses are. A store out of range ends it."""
    rng = random.Random(f"{name} {seed}")
    lines = ck.kernels[name].text.split("\n")
    places = [n for n, line in enumerate(lines) if re.match(r" *iadd r\d+\.x, r", line)]
    traced = 0
    for _ in range(8):
        at = rng.choice(places)
        line = re.sub(r", r\d+\.x", f", r{rng.randrange(40)}.x", lines[at], count=1)
        try:
            kernel = ck.load_kernel("\n".join([*lines[:at], line, *lines[at + 1 :]]))
            size = ck.verify(kernel).size
            if size is None:
                continue
            place = rng.randrange(size[0]), rng.randrange(size[1])
            trace = ck.trace_element(kernel, *place, size=size)
        except (ck.ILError, ck.KernelError, ValueError):
            continue
        traced += 1
        assert adds_up(trace), (line, str(trace))
        assert not trace.is_correct or trace.value == trace.correct_value, (line, str(trace))
    assert traced


def test_the_products_of_a_trace_agree_in_no_element():
    """At the largest size: what is the same in both is a number."""
    given = make_product(ck.kernels[SINGLE], (416, 416, 416))
    one, other = (number_elements(given, is_turned)[0] for is_turned in (False, True))
    for matrix in "abc":
        assert (getattr(one, matrix) != getattr(other, matrix)).all()


TRACED = ROOT / "tests/cases/traced_faults.toml"
CASES = tomllib.loads(TRACED.read_text())


@pytest.mark.parametrize("name", CASES)
def test_of_a_planted_fault_the_notes_are_the_expected_ones(name, request):
    """Of an element that is right, there is none."""
    case = CASES[name]
    like = reference_kernel(case["of"])
    kernel = ck.load_kernel(edit_text(like.text, case["edits"]), like=like)
    more = dict(case.get("more", {}))
    if "size" in more:
        more["size"] = tuple(more["size"])
    trace = ck.trace_element(kernel, *case["element"], **more)
    compare_with_case(request, TRACED, name, " / ".join(trace.notes))


def wrong_product(lines, rng):
    """Plant a fault of a product: another component, or a line that is there twice or not at all.
    Return it.
    """
    fault = plant("\n".join(lines), rng, ("component", "repeated", "missing"))
    lines[:] = fault.text.split("\n")
    return fault


def factors(terms):
    return {tuple(factor.element for factor in term.factors) for term in terms}


#: Kernels whose sums are followed: through no memory, and of single or double numbers.
FOLLOWED = [
    name
    for name, kernel in ck.kernels.items()
    if kernel.convention.parts == 1 and kernel.precision != "double-double"
]


@drawn_by_day("name", FOLLOWED, 2)
@seeded(2)
def test_the_line_to_mend_is_the_planted_one(name, seed):
    """Of a line that was taken out, the terms are missing that it added."""
    rng = random.Random(f"{name} {seed}")
    fault, trace = incorrect(ck.kernels[name], wrong_product, rng)
    if fault.kind == "missing":
        before = ck.trace_element(name, trace.row, trace.column, size=trace.product.size)
        gone = factors(term for term in before.terms if term.line == fault.line)
        named = gone & factors(term for term in trace.terms if term.kind == "missing")
    else:
        named = {term.note.line for term in trace.terms if not term.is_correct} & {fault.line}
    assert named, (fault.kind, fault.line, str(trace))


def wrong_in_the_lds(lines, rng):
    """Plant a fault of a product, or take out a line that loads what it multiplies."""
    loads = [at for at, line in enumerate(lines) if "lds_load" in line]
    if rng.random() < 0.5:
        wrong_product(lines, rng)
    else:
        lines[rng.choice(loads)] = ""


@seeded(6)
def test_nothing_that_sets_a_coordinate_is_named_where_a_matrix_passes_through_the_lds(seed):
    """In any work-item: others fetch what it multiplies."""
    rng = random.Random(seed)
    _, first = incorrect(ck.kernels["sgemm_64x64_lds"], wrong_in_the_lds, rng)
    place = first.row + 8 * rng.randrange(8), first.column + 8 * rng.randrange(1, 8)
    trace = ck.trace_element(first.product.kernel, *place, size=first.product.size)
    assert trace.faults and not causes(trace), str(trace)


def moved_in_k(lines, rng):
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


def moved_before_the_loop(lines, rng):
    """Fetch A or B at r0.w, which a new line above the loop sets to a wrong coordinate. Return that
    line.
    """
    at = next(n for n, line in enumerate(lines) if LOOP[0] in line)
    own = rng.choice("xy")
    lines[at:] = [line.replace(f"r0.{own}z00", "r0.wz00") for line in lines[at:]]
    lines.insert(at, f"add r0.w, r0.{own}, l0.{rng.choice('yzw')}")
    return {at + 1}


def causes(trace):
    """The lines that are said to set a coordinate, or what ends the loop."""
    whys = (fault.values.get("why", Note()) for fault in trace.faults)
    return {line for why in whys for line in why.lines[-1:]}


@pytest.mark.parametrize("change", [moved_in_k, moved_before_the_loop])
@seeded(10)
def test_the_line_that_sets_a_wrong_coordinate_is_named(seed, change):
    """Also where a fetch of another iteration reads outside. Of wrong offsets no other line is."""
    rng = random.Random(seed)
    touched, trace = incorrect(reference_kernel(f"block_{rng.choice(BLOCKS)}"), change, rng)
    assert causes(trace) == touched


def test_an_element_from_the_lds_is_read_by_the_line_that_loads_it():
    kernel = ck.kernels["sgemm_64x64_lds"]
    trace = ck.trace_element(kernel, 5, 7)
    readings = [f for term in trace.terms for f in term.factors if f.element.matrix == "A"]
    loads = {i.line for i in kernel.program.body if i.op.kind == "lds" and not i.op.store}
    assert readings and {reading.line for reading in readings} <= loads


def test_of_a_sum_that_passes_through_the_lds_no_line_is_blamed():
    trace = ck.trace_element("sgemv_n_reduce4", 0, 0)
    assert trace.is_correct and not trace.terms
    wrong = alter_kernel("sgemm_nn_reduce4", "mad r30, r20.x,", "mad r30, r20.y,")
    (fault,) = ck.trace_element(wrong, 0, 0).faults
    assert (fault.kind, fault.line) == ("loads a sum", 0)


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
        assert ck.trace_element(kernel, 0, 0, size=size).is_correct


def test_an_element_is_traced_with_the_scalars_at_which_it_is_incorrect():
    """Such as a beta of 0, of a kernel that uses C then, too."""
    text = edit_text(reference_kernel("sgemm_naive").text, "40 - if_logicalnz cb0[4].x\n43 - endif")
    trace = ck.trace_element(ck.load_kernel(text, like="sgemm_naive"))
    assert not trace.is_correct and trace.product.beta == 0
