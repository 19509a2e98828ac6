"""``trace_element``: the terms of a right element, and the line of a planted fault."""

import random
import re
from collections import Counter

import numpy as np
import pytest
from conftest import SIX
from faults import Fault, plant

import cypresskit as ck
from cypresskit.diagnosis.element_trace import ElementTrace, MatrixElement
from cypresskit.diagnosis.notes import note
from cypresskit.editing.steps import reference_kernel
from cypresskit.kernels.generated import block_kernel
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


@pytest.mark.few(3)
@pytest.mark.parametrize("name", [name for name in SIX if "reduce" not in name])
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


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["sgemm_naive", "sgemm_tn", "dgemm_tn"])
@pytest.mark.parametrize("seed", range(2))
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
        adds_up = sum_of_terms(trace) == pytest.approx(trace.got, rel=1e-6)
        assert adds_up or not trace.terms, (line, str(trace))
        assert trace.notes, (line, str(trace))


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("r2.x, r3.x", "r2.x, r2.x", "A[0, 0] · A[0, 0] in place of A[0, 0] · B[0, 0]"),
        ("r2.x, r3.x", "r3.x, r3.x", "B[0, 0] · B[0, 0] in place of A[0, 0] · B[0, 0]"),
    ],
)
def test_a_square_is_no_single_factor(old, new, says):
    trace = ck.trace_element(changed("sgemm_naive", (old, new)), 0, 0)
    assert says in trace.notes[0]


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


@pytest.mark.slow
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


def test_a_component_that_is_another_is_named_with_both_elements():
    trace = ck.trace_element(changed(SINGLE, ("mad r10, r2.x,", "mad r10, r2.y,")), 0, 3)
    assert trace.notes[0].startswith("Line 54 multiplies A[0, 1] in place of A[0, 0].")
    assert {term.note.line for term in trace.terms if not term.right} == {54}
    assert not trace.right


def test_a_fetch_at_another_place_is_named():
    kernel = changed(SINGLE, ("_aoffimmi(0,1,0) r6, r0.xz00", "_aoffimmi(0,2,0) r6, r0.xz00"))
    trace = ck.trace_element(kernel, 0, 0)
    assert trace.notes[0].startswith("Line 49 reads A[2, 0] in place of A[1, 0].")


def test_a_term_that_was_added_twice_is_named():
    line = "    mad r10, r6.x, r8, r10\n"
    assert line in ck.kernels[SINGLE].text
    trace = ck.trace_element(changed(SINGLE, (line, line + line)), 0, 0)
    assert trace.notes[0].startswith("Term k = 1 is added twice: at lines 71 and 72.")


def test_a_texel_that_two_lines_fetch_is_named():
    """Not only the product that is added again: that line is right."""
    a = "    sample_resource(0)_sampler(0) r2, r0.zx00\n"
    both, step = f"{a}    sample_resource(1)_sampler(1) r3, r0.yz00\n", "    add r0.z, r0.z, l0.x\n"
    ahead = (both, ""), ("whileloop\n", f"{both}whileloop\n")
    size = 4, 5, 6
    right = changed("sgemm_naive", *ahead, (step, step + both))
    assert ck.trace_element(right, 1, 1, size=size).right
    late = changed("sgemm_naive", *ahead, (step, both + step))
    _, again = (n for n, line in enumerate(late.text.splitlines(), 1) if line == a[:-1])
    first = ck.trace_element(late, 1, 1, size=size).notes[0]
    said = f"Line {again} reads A[1, 0] again: term k = 0 is added twice."
    assert first.startswith(said)


def test_a_sum_that_belongs_elsewhere_has_the_fetch_that_makes_it_so():
    """Where it is stored is the hardware's choice. Its columns are too low by a texel."""
    literal = ("l1, 0.0, 4.0, 0.0", "l1, 0.0, 4.0, -2.0")
    kernel = changed("sgemm_tn_stream", literal, ("l0.z, l0.w", "l0.z, l1.z"))
    first = ck.trace_element(kernel, 1, 9, size=(8, 24, 6)).notes[0]
    assert "stores C[1, 5] as C[1, 9]: check the coordinates of the fetches." in first


def test_a_single_product_of_another_sum_isn_t_blamed_for_a_missing_one():
    old = "dmad r32.xy, r2.zw, r4.xy, r32.xy"
    kernel = changed("dgemm_tn", (old, ""), ("dmad r36.xy, r3.zw", "mad r36.xy, r3.zw"))
    note = ck.trace_element(kernel, 1, 0).notes[0]
    assert "no line multiplies them" in note and "single" not in note, note


def test_a_missing_term_is_named_with_what_was_read_for_it():
    trace = ck.trace_element(changed(SINGLE, ("    mad r10, r6.x, r8, r10\n", "\n")), 0, 0)
    assert trace.notes[0].startswith(
        "Term k = 1, A[1, 0] · B[1, 0], is missing: lines 49 and 51 read its factors, but no line"
        " multiplies them in that iteration."
    )


def test_a_store_at_another_place_is_named():
    kernel = changed(SINGLE, ("mov g[r1.x+1], r11", "mov g[r1.x], r11"))
    (line,) = lines_of(kernel, "mov g[r1.x], r11")
    trace = ck.trace_element(kernel, 0, 0)
    assert trace.notes[0].endswith(f"adds up C[0, 4], which line {line} stores as C[0, 0].")
    trace = ck.trace_element(kernel, 0, 4)
    assert trace.work_item is None and "No work-item stores" in trace.notes[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_row_that_takes_another_ones_number_is_named_by_its_own_line(seed):
    chance = random.Random(seed)
    side = chance.choice([2, 4, 8])
    lines = block_kernel(side, side).text.splitlines()
    products = [n for n, line in enumerate(lines) if re.match(r"mad \S+, r\d+\.[xyzw], r\d", line)]
    factor = lines[chance.choice(products)].split(", ")[1]
    others = "xyzw"[: min(side, 4)].replace(factor[-1], "")
    slips = [n for n in products if lines[n].split(", ")[1] == factor]  # the whole row
    slip = factor[:-1] + chance.choice(others)
    for n in slips:
        lines[n] = lines[n].replace(factor, slip, 1)
    wrong_row = ck.load_kernel("\n".join(lines), like=block_kernel(side, side))
    wrong = ck.verify(wrong_row).wrong
    trace = ck.trace_element(wrong_row, wrong.row, wrong.column)
    match = re.match(r"Line (\d+) multiplies A", trace.notes[0])
    assert match and int(match[1]) - 1 in slips, trace.notes


def of_outputs(name: str, *changes: tuple[str, str]) -> ck.Kernel:
    """A changed kernel whose rows are output streams."""
    like = reference_kernel(name)
    text = like.text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return ck.load_kernel(text, like=like, name="mine")


def lines_of(kernel: ck.Kernel, *words: str) -> list[int]:
    lines = enumerate(kernel.text.splitlines(), 1)
    return [number for number, line in lines if any(word in line for word in words)]


@pytest.mark.parametrize("seed", range(4))
def test_a_block_whose_rows_are_columns_is_named_by_a_product_and_its_store(seed):
    """Neither is at fault alone: the factors may be exchanged, or the fetches."""
    rng = random.Random(f"columns {seed}")
    side = rng.choice([2, 4])
    text = block_kernel(side, side).text
    turned = re.sub(r"(mad \w+\S*), (r\d)\.(\w), (r\d)", r"\1, \2, \4.\3", text)
    kernel = ck.load_kernel(turned, like=block_kernel(side, side))
    row, column = rng.sample(range(side), 2)
    trace = ck.trace_element(kernel, row, column)
    named = re.fullmatch(
        rf"Line (\d+) adds up C\[{column}, {row}\], which line (\d+) stores as C.*", trace.notes[0]
    )
    lines = kernel.text.splitlines()
    assert named and "mad" in lines[int(named[1]) - 1] and "mov" in lines[int(named[2]) - 1]


@pytest.mark.parametrize("rows", [12, 16])
def test_an_element_that_no_work_item_stores_is_told_with_what_one_stores(rows):
    like = reference_kernel(f"block_{rows}x8")
    stated = like.text.replace(f"{rows} x 8", f"{rows + 4} x 8", 1)
    (note,) = ck.trace_element(ck.load_kernel(stated), rows, 0).notes
    stores = f"a work-item stores {rows * 8} elements, but is launched for {rows + 4} x 8"
    assert note == f"No work-item stores C[{rows}, 0]: {stores}.", note


@pytest.mark.parametrize("count", [1, 2, 4])
def test_of_a_loop_that_counts_another_number_of_k_than_it_adds_the_counting_line_is_named(count):
    like = reference_kernel("block_4x4x2")
    old = next(line for line in like.text.splitlines() if line.startswith("add r0.z"))
    text = like.text.replace(old, f"{old[:15]}l9.x").replace(
        "il_ps_2_0", f"il_ps_2_0\ndcl_literal l9, {float(count)}, 0, 0, 0", 1
    )
    kernel = ck.load_kernel(text, like=like)
    (line,) = lines_of(kernel, "l9.x")
    notes = ck.trace_element(kernel, 0, 0, size=(4, 8, 8)).notes
    said = f"An iteration adds 2 terms, but k grows by {count}: see line {line}."
    assert (notes[0] == said) if count != 2 else not notes, notes


@pytest.mark.parametrize("relation", ["le", "lt"])
def test_a_loop_that_is_left_before_its_products_is_named(relation):
    like = reference_kernel("block_4x4")
    (test,) = [line for line in like.text.splitlines() if line.startswith("ge ")]
    text = like.text.replace(test, test.replace("ge", "lt"))
    if relation == "le":
        left = "breakc_relop(le) r0.z, cb0[0].z"
        text = like.text.replace(f"{test}\nbreak_logicalnz r1.x", left)
    kernel = ck.load_kernel(text, like=like)
    (line,) = lines_of(kernel, "break")
    see = f": see its test in line {line - 1}" * (relation == "lt")
    said = f"Line {line} leaves its loop in the first iteration{see}."
    assert ck.trace_element(kernel, 0, 0).notes[0] == said


def test_a_product_with_a_component_that_a_texture_lacks_is_named():
    two = reference_kernel("block_2x2")
    (line,) = [line for line in two.text.splitlines() if line.startswith("mad r5")]
    text = two.text.replace(line, line.replace(" r3,", " r3.z,"))
    notes = ck.trace_element(ck.load_kernel(text, like=two), 1, 0).notes
    assert "multiplies A[0, 1] by 0." in notes[0], notes


@pytest.mark.parametrize("row", range(1, 4))
def test_a_sum_that_is_stored_twice_is_named_by_the_second_store(row):
    """Not by the products: they are right for the other row."""
    kernel = of_outputs("four_outputs_tn", (f"mov o{row}, r1{row}", f"mov o{row}, r10"))
    uncounted = of_outputs(
        "four_outputs_tn", (f"o{row}, r1{row}", f"o{row}, r10"), (f"mad r1{row}", "mad r14")
    )
    for kept in kernel, uncounted:
        notes = ck.trace_element(kept, row, 1).notes
        (line,) = lines_of(kept, f"mov o{row}")
        assert re.fullmatch(
            rf"Line \d+ adds up C\[0, 1\], which line {line} stores as .*", notes[0]
        )


@pytest.mark.parametrize(("matrix", "old", "row", "column"), [(1, "yz00", 0, 5), (0, "xz00", 5, 2)])
def test_an_output_stream_has_no_address_but_its_fetches_have_coordinates(matrix, old, row, column):
    fetch = f"sample_resource({matrix})_sampler({matrix}) r{2 + matrix}, r0."
    kernel = of_outputs(
        "four_outputs_tn", (f"{fetch}{old}", f"{fetch}wz00"), ("r0.z, l0.y", "r0.zw, l0.y")
    )
    notes = ck.trace_element(kernel, row, column, size=(8, 8, 2)).notes
    (line,) = lines_of(kernel, fetch)
    assert notes[0].startswith(f"Line {line} reads {'AB'[matrix]}[0, "), notes


@pytest.mark.parametrize("row", range(1, 4))
def test_a_row_that_another_ones_texel_is_multiplied_for_is_named_by_its_own_line(row):
    """The fetch is right for the other row."""
    factors = [(f"r{2 + row}.{letter}", f"r{1 + row}.{letter}") for letter in "xyzw"]
    kernel = of_outputs(
        "four_outputs_nn",
        (f"aoffimmi(0,{row},0) r{2 + row}, r0.z", "aoffimmi(0,0,0) r15, r0.z"),
        *factors,
    )
    notes = ck.trace_element(kernel, row, 0).notes
    first, *_ = lines_of(kernel, f"mad r1{row}")
    fetch, *_ = lines_of(kernel, f"r{1 + row}, r0.z")
    assert notes[0].startswith(
        f"Line {first} multiplies A[{row - 1}, 0] of line {fetch}; no line reads A[{row}, 0]"
    )


def test_a_product_behind_the_loop_is_named():
    product = "mad r13, r2.w, r3, r13\n"
    behind = "endloop\n", f"endloop\n{product}"
    kernel = of_outputs("four_outputs_tn", (f"    {product}", ""), behind)
    assert "no line multiplies them in that iteration" in ck.trace_element(kernel, 3, 0).notes[0]


def test_a_wrong_alpha_is_named():
    trace = ck.trace_element(changed(SINGLE, ("mul r10, r10, cb0[0].x", "")), 0, 0)
    assert trace.notes == (
        "Term k = 0 is multiplied by 1, not by alpha = 2. The same fault affects 3 more terms.",
    )


@pytest.mark.parametrize("row, column", [(0, 1), (0, 2), (0, 3)])
def test_of_a_c_that_is_read_outside_of_it_the_line_is_named(row, column):
    """With row and column exchanged. Of a kernel that doesn't read it, none is."""
    fetch = "sample_resource(2)_sampler(2) r2, r0.yx00"
    turned = changed("sgemm_naive", (fetch, fetch.replace("yx", "xy")))
    (line,) = lines_of(turned, fetch.replace("yx", "xy"))
    (said,) = ck.trace_element(turned, row, column, size=(1, 4, 2)).notes
    assert said == (
        f"The old value of C[{row}, {column}] is missing: line {line} reads outside of C: check the"
        " coordinates."
    )
    unread = changed("sgemm_naive", (fetch, "mov r2, r3"))
    assert lines_of(unread, "mov r2, r3")
    said = ck.trace_element(unread, row, column, size=(1, 4, 2), beta=-1.0).notes
    assert any("add it, times beta = -1" in each for each in said), said


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
    assert not trace.terms and trace.faults == (note("unknown"),)


def test_a_product_in_another_register_is_named_with_it():
    kernel = changed(SINGLE, ("mad r10, r2.x, r4, r10", "mad r12, r2.x, r4, r12"))
    trace = ck.trace_element(kernel, 0, 0)
    stored = "line 54 puts it into r12.x, but line 155 stores r10.x, of line 117."
    assert stored in trace.notes[0]
    kernel = changed(SINGLE, ("mad r10, r2.x, r4, r10", "mul r10, r2.x, r4"))
    trace = ck.trace_element(kernel, 0, 0)
    overwrites = "line 54 only multiplies, and the next iteration overwrites its product."
    assert overwrites in trace.notes[0]


@pytest.mark.parametrize("name", ["sgemm_naive", "sgemm_tn", "sgemm_64x64"])
@pytest.mark.parametrize("letter", "yzw")
def test_a_sum_that_adds_to_another_component_is_overwritten(name, letter):
    """It reads the register that it writes, but not the component: nothing is kept."""
    text = ck.kernels[name].text
    line = re.search(r"^ *mad (r\d0)(\.x)?, \S+, \S+, \1\b(\.x)?", text, re.MULTILINE)[0]
    kernel = changed(name, (line, re.sub(r"(r\d0)(\.x)?$", rf"\1.{letter}", line)))
    said = " ".join(ck.trace_element(kernel, 0, 0).notes)
    assert "overwrites" in said and "cancels" not in said


@pytest.mark.parametrize(("row", "column"), [(8, 0), (0, 16), (-1, 0)])
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
