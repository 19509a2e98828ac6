"""``verify``: right kernels are right, wrong ones are wrong with their first wrong element."""

import random
import re
from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from changed_texts import plant
from kernel_texts import alter_kernel, replace_once
from products import size_of
from sampling import drawn_by_day, each_of_six, seeded

import cypresskit as ck
from cypresskit.diagnosis import at_size
from cypresskit.editing.steps import reference_kernel
from cypresskit.kernels import compiled
from cypresskit.kernels.compiled import values_taken
from cypresskit.kernels.products import make_product
from cypresskit.kernels.statement import find_statement
from cypresskit.machine import engines
from cypresskit.machine.launch import prepare

TEXT = ck.kernels["sgemm_tn"].text


@pytest.mark.parametrize(
    ("declared", "used"),
    [
        ("", "mov g[r0.x], r10"),
        ("dcl_cb cb7[1]", "mov r10, cb7[0]"),
        ("", "mov o5, r10"),
    ],
)
def test_what_a_launch_does_not_give_is_said_to_a_kernel_s_author(declared, used):
    """Who calls no function can't pass an argument."""
    text = replace_once(ck.kernels["sgemm_naive"].text, "dcl_cb", f"{declared}\ndcl_cb")
    text = replace_once(text, "mov o0.x, r10.x\n", f"{used}\nmov o0.x, r10.x\n")
    checked = ck.verify(ck.load_kernel(text, like="sgemm_naive"))
    assert "which its launch doesn't give" in checked.fault.text and "pass" not in str(checked)


@each_of_six
def test_a_kernel_of_the_catalog_is_right(name):
    kernel = ck.kernels[name]
    checked = ck.verify(name)
    assert checked.is_correct and checked and not checked.findings
    rows, columns = kernel.convention.multiple
    one, other, *larger = checked.sizes
    assert one[:2] == (rows, 1 if kernel.is_vector else 2 * columns)
    assert other[:2] == (2 * rows, columns)
    assert len({k for _, _, k in larger}) == len(larger) == 2 - kernel.is_vector
    assert all(m > rows and (kernel.is_vector or n > columns) for m, n, _ in larger)


@each_of_six
def test_a_kernel_that_takes_the_old_c_times_something_else_than_beta_is_wrong(name):
    """It doesn't read beta, and C is right where beta is 0."""
    text = ck.kernels[name].text
    for beta, alpha in (("cb0[0].y", "cb0[0].x"), ("cb0[1].zw", "cb0[1].xy"), ("cb0[3]", "cb0[2]")):
        text = text.replace(beta, alpha)
    assert text != ck.kernels[name].text
    assert ck.verify(text, beta=0.0)
    assert not ck.verify(text)


@pytest.mark.parametrize("name", ["sgemm_tn", "dgemm_tn", "sgemm_naive"])
def test_a_first_value_that_is_set_only_where_beta_isnt_0_is_found(name):
    """Where beta is 0, C is right by chance: registers begin with 0."""
    first = re.search(r"^mov r\d+(\.\S+)?, l.*\n", ck.kernels[name].text, re.MULTILINE)[0]
    kernel = alter_kernel(name, first, f"if_logicalnz cb0[4].x\n{first}endif\n")
    assert {finding.kind for finding in ck.verify(kernel).findings} == {"uninitialized"}


@each_of_six
def test_a_kernel_that_stores_nothing_where_beta_is_0_is_wrong(name):
    text = ck.kernels[name].text
    inside, after = text.split("endif", 1)
    stores, end = after.split("endmain", 1)
    text = f"{inside}{stores}endif\nendmain{end}"
    assert ck.verify(text, beta=-1.0)
    found = ck.verify(text)
    assert not found and "beta = 0" in str(found)


@seeded(4)
def test_a_product_is_compared_element_by_element(seed):
    """One bit more is noticed, and one bound more."""
    rng = np.random.default_rng(seed)
    m, n, k = rng.integers(1, 40, 3)
    dtype = rng.choice([np.float32, np.float64])
    a, b, c = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
    alpha, beta = rng.standard_normal(2)
    scalars = {"alpha": float(dtype(alpha)), "beta": float(dtype(beta))}
    result = ck.gemm(a, b, c, **scalars)
    found = ck.compare(result, a, b, c, **scalars)
    assert found and found.elements == m * n and found.largest_error <= found.bound
    exact = scalars["alpha"] * (a.astype(float) @ b) + scalars["beta"] * c
    assert str(found).startswith(f"All {m * n:,} elements equal numpy's within rounding: largest ")
    place = rng.integers(m), rng.integers(n)
    size = abs(scalars["alpha"]) * (np.abs(a).astype(float) @ np.abs(b)) + np.abs(beta * c)
    result[place] = exact[place] + 1.1 * (k + 4) * np.finfo(dtype).eps * size[place]
    wrong = ck.compare(result, a, b, c, **scalars)
    assert not wrong and wrong.beyond == 1 and str(wrong).startswith(f"1 of {m * n:,} elements")
    assert wrong.at == place
    result[place] = np.nan
    assert ck.compare(result, a, b, c, **scalars).beyond == 1
    whole = np.rint(4 * a), np.rint(4 * b)
    product = (whole[0] @ whole[1]).astype(dtype)
    assert str(ck.compare(product, *whole)) == f"{m * n:,} elements equal numpy's, to the last bit"
    product[place] = np.nextafter(product[place], dtype(np.inf))
    assert "last bit" not in str(ck.compare(product, *whole))
    with pytest.raises(ValueError, match="the result has shape"):
        ck.compare(product[:, :, None], *whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_error_is_told_in_units_of_the_last_place(dtype):
    one = np.ones((1, 1), dtype)
    off = one + 3 * np.finfo(dtype).eps
    assert " 3.0 units" in str(ck.compare(off, one, one))


LITERAL = "dcl_literal l9, {}\ndcl_literal l0,"
#: Kernels that are correct at small sizes only: a literal, a line, and what stands in its place.
SMALL_ONLY = {
    "k up to 64": (
        "64.0, 0.0, 0.0, 0.0",
        "ge r1.x, r0.z, cb0[0].z",
        "min r1.y, cb0[0].z, l9.x\nge r1.x, r0.z, r1.y",
    ),
    "rows modulo 64": ("63, 0, 0, 0", "ftoi r1.x, r1.x", "ftoi r1.x, r1.x\niand r1.x, r1.x, l9.x"),
}


@pytest.mark.parametrize("like", ["sgemm_tn", "sgemm_tn_37"])
@pytest.mark.parametrize("fault", ["k up to 64", "rows modulo 64"])
@pytest.mark.parametrize("size", [300, 2048, (520, 300, 1000)])
def test_a_kernel_that_is_correct_at_small_sizes_only_is_incorrect_at_a_given_one(
    like, fault, size
):
    literal, line, cure = SMALL_ONLY[fault]
    text = replace_once(ck.kernels[like].text, "dcl_literal l0,", LITERAL.format(literal))
    text = replace_once(text, line, cure)
    assert ck.verify(text)
    found = ck.verify(text, size=size)
    assert not found and found.at_size.fault.text in str(found)
    assert re.search(r"C\[\d+, \d+\] is \S+; [\d,]+ of [\d,]+ elements differ from", str(found))
    assert ck.verify(like, size=size)


def test_a_kernel_that_stores_too_little_of_a_larger_product_is_incorrect():
    """Also where only a part of the launch runs, so that most of C isn't stored anyway."""
    text = replace_once(TEXT, "dcl_literal l0,", LITERAL.format("64.0, 0.0, 0.0, 0.0"))
    few = "endloop\nlt r90.x, vWinCoord0.y, l9.x\nif_logicalnz r90.x"
    text = replace_once(replace_once(text, "endloop", few), "endmain", "endif\nendmain")
    assert ck.verify(text, size=512)
    found = ck.verify(text, size=2048)
    assert not found and "4 parts of the launch store" in str(found)


@drawn_by_day(("name", "engine"), product(ck.kernels, [True, False]), 6)
@seeded(1)
def test_a_kernel_of_the_catalog_is_right_at_any_size(name, engine, seed, monkeypatch):
    monkeypatch.setattr(engines, "HAS_LLVM", engine)
    kernel = ck.kernels[name]
    rng = random.Random(f"{name} {seed}")
    m, n, k = rng.randint(1, 1000), rng.randint(1, 1000), rng.randint(1, 400)
    monkeypatch.setattr(at_size, "MAX_WHOLE_PRODUCTS", rng.choice([0, 1 << (30 if engine else 22)]))
    size = size_of(kernel, m, n, k)
    found = ck.verify(kernel, size=size).at_size
    assert found.size == kernel.convention.padded(*size) and not found.fault
    if engine and at_size.MAX_WHOLE_PRODUCTS:
        assert found.comparison.elements == found.size[0] * found.size[1]
    else:
        assert 0 < found.comparison.elements <= found.size[0] * found.size[1]


class WholeNumbers(np.random.Generator):
    """A few sums of a few products are 0."""

    def standard_normal(self, size):
        return self.integers(-4, 5, size).astype(float)


@drawn_by_day("name", ck.kernels, 6)
def test_an_element_that_keeps_its_value_may_have_been_stored(name, monkeypatch):
    bits = np.random.PCG64(1)
    monkeypatch.setattr(np.random, "default_rng", lambda seed: WholeNumbers(bits))
    kernel = ck.kernels[name]
    size = kernel.convention.padded(*size_of(kernel, 64, 64, 1))
    found = at_size.compare_at(kernel, size, 1.0, 1.0)
    assert not found.fault and found.comparison.elements == size[0] * size[1]
    assert found.comparison.equal == found.comparison.elements  # all of them are whole numbers


@seeded(4)
@each_of_six
def test_some_batches_of_a_launch_store_what_the_whole_launch_stores_there(name, seed):
    """By both engines, bit for bit; and all batches, all of it."""
    kernel = ck.kernels[name]
    rng = np.random.default_rng(seed)
    rows, columns = kernel.convention.multiple
    size = rows * int(rng.integers(9, 20)), columns * int(rng.integers(9, 20)), kernel.k_step
    size = size[0], 1 if kernel.is_vector else min(size[1], 512), size[2]
    given = make_product(kernel, size)
    whole, before = prepared(given), prepared(given)
    engines.run(whole)
    count = whole.shape.batches
    some = rng.choice(count, min(count, 3), replace=False)
    compiled, interpreted = prepared(given), prepared(given)
    engines.run_batches(compiled, some)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "HAS_LLVM", False)
        engines.run_batches(interpreted, some)
    for one, other, new, old in zip(*map(stored, (compiled, interpreted, whole, before))):
        assert np.array_equal(one, other)
        assert ((one == new) | (one == old)).all()
    engines.run_batches(compiled, np.setdiff1d(np.arange(count), some))
    assert all(map(np.array_equal, stored(compiled), stored(whole)))


def prepared(given):
    return prepare(given.kernel.program, **given.arguments())


def stored(launch):
    """Global memory and all outputs, as words."""
    return [launch.memory, *(output.words for output in launch.outputs.values())]


PREFETCHES = """il_ps_2_0  ; product: TN, 4 x 4, k 1
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_resource_id(1)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_cb cb0[5]
dcl_literal l0, 0.0, 1.0, 4.0, 0.5
sub r0.xy, vWinCoord0.yx, l0.w
mov r0.z, l0.x
mov r10, l0.x
mov r11, l0.x
mov r12, l0.x
mov r13, l0.x
sample_resource(0)_sampler(0) r2, r0.xz00
sample_resource(1)_sampler(1) r3, r0.yz00
whileloop
    breakc_relop(ge) r0.z, cb0[0].z
    sample_resource(0)_sampler(0)_aoffimmi(0,1,0) r4, r0.xz00
    sample_resource(1)_sampler(1)_aoffimmi(0,1,0) r5, r0.yz00
    mad r10, r2.x, r3, r10
    mad r11, r2.y, r3, r11
    mad r12, r2.z, r3, r12
    mad r13, r2.w, r3, r13
    mov r2, r4
    mov r3, r5
    add r0.z, r0.z, l0.y
endloop
mul r1.x, r0.x, l0.z
ftoi r1.x, r1.x
ftoi r1.y, r0.y
imad r1.x, r1.x, cb0[0].w, r1.y
mov g[r1.x], r10
iadd r1.x, r1.x, cb0[0].w
mov g[r1.x], r11
iadd r1.x, r1.x, cb0[0].w
mov g[r1.x], r12
iadd r1.x, r1.x, cb0[0].w
mov g[r1.x], r13
end
"""


def test_a_kernel_that_fetches_ahead_is_correct_with_a_remark():
    found = ck.verify(PREFETCHES)
    assert found and not found.findings
    assert (found.remarks.kind, found.remarks.lines) == ("reads 0", (17, 18))
    late = PREFETCHES.replace("(0,1,0) r4", "(0,2,0) r4")  # wrong, and the fetch tells why
    found = ck.verify(late)
    assert not found and found.incorrect_element
    assert "fetch outside" in {each.kind for each in found.findings}
    line = re.compile(r"( *mad r1., r2..)(.*\n)")
    again = line.sub(r"\1\2\1\2\1_neg(xyzw)\2", PREFETCHES)  # three products, of one k
    assert "values of k" not in str(ck.verify(again)) and values_taken(ck.load_kernel(again)) == 3


def test_what_cannot_be_compiled_takes_no_known_number_of_k(monkeypatch):
    def refuse(program):
        raise compiled.compiler.CompileError(program.name)

    monkeypatch.setattr(compiled.compiler, "compile", refuse)
    assert values_taken(ck.load_kernel(PREFETCHES)) == 0


@pytest.mark.parametrize("block", ["2x2", "4x4", "8x8"])
@pytest.mark.parametrize("stated", [True, False])
def test_a_correct_kernel_that_takes_more_k_than_it_is_launched_for_is_told_so(block, stated):
    """Where k is odd, it reads outside."""
    text, like = (reference_kernel(f"block_{block}{step}") for step in ("x2", ""))
    first, rest = text.text.split("\n", 1)
    words = find_statement(like.text)[1]
    line = re.sub(r" *;.*", f"  ; product: {words}" if stated else "", first)
    found = ck.verify(ck.load_kernel(f"{line}\n{rest}", like=like))
    why = found.remarks.values["why"]
    assert found and why.kind == ("states k" if stated else "launched for k")
    assert why.values["k"] == 2
    assert not ck.verify(text).remarks.kind


@pytest.mark.parametrize("name", ["sgemm_tn", "sgemm_naive", "dgemm_tn", "sgemm_64x64_lds"])
@pytest.mark.parametrize("times", [2, 4, 8])
def test_a_k_that_an_iteration_does_not_take_is_named_and_gives_no_speed(name, times):
    """C is correct, as each launch has whole iterations."""
    kernel = ck.kernels[name]
    k = kernel.k_step
    false = alter_kernel(name, f", k {k}", f", k {times * k}")
    found = ck.verify(false)
    told = found.remarks
    assert found and told.text in str(found)
    assert (told.kind, told.lines) == ("states k", (1,))
    assert (told.values["k"], told.values["stated"]) == (k, times * k)
    assert replace(ck.kernel_stats(false), name=name) == ck.kernel_stats(name)


@drawn_by_day("name", ck.kernels, 8)
def test_no_speed_is_above_the_peak_whatever_is_stated(name):
    kernel = ck.kernels[name]
    peak = ck.HD5870.peak_gflops(kernel.precision)
    for block, k in product([(8, 8), (16, 16), (256, 256)], [1, 3, 64]):
        how = replace(kernel.convention, block=block, k_step=k * kernel.convention.parts)
        speeds = [ck.kernel_stats(replace(kernel, convention=how)).nominal_gflops]
        with suppress(ValueError):
            speeds.append(ck.simulate(replace(kernel, convention=how), 64, k=64).gflops)
        assert max(speeds) <= peak


@pytest.mark.parametrize(
    "old, new",
    [
        ("dmad r112.xy, in0.zw, in2.xy, r112.xy", "dmad r112.xy, in0.xy, in2.zw, r112.xy"),
        ("mov out0.zw, r114.xyxy", "mov out0.zw, r114.zwzw"),
        ("dadd r101.zw, r100.zw, in1.xy_neg(xyzw)", "dadd r101.zw, r100.zw, in1.xy"),
        ("    dadd r101.zw, r102.zw, r101.zw\n", ""),
    ],
)
def test_low_parts_are_verified(old, new):
    """Of double-doubles whose high parts are correct: a product twice for another, a half, and in
    some columns a sign and a line of the sums.
    """
    checked = ck.verify(alter_kernel("ddgemm_tn_fma", old, new))
    assert not checked and checked.fault.kind == "low parts"


def test_a_race_that_leaves_c_as_it_is_does_not_make_c_incorrect():
    text = ck.kernels["sgemm_64x64_lds"].text.replace("fence_threads_lds", "")
    found = ck.verify(text)
    first, *_ = str(found).splitlines()
    assert not found and found.incorrect_element is None
    assert first.startswith("mine is incorrect at ") and first.endswith("equals numpy's:")


@pytest.mark.parametrize("end", (1, 4, 8))
@pytest.mark.parametrize("name", ["sgemm_naive", "sgemm_tn"])
def test_a_loop_that_ends_at_a_constant_is_wrong(name, end):
    """Whatever k it is right at, there is another."""
    text = replace_once(ck.kernels[name].text, "cb0[0].z", "l9.x")
    literal = f"dcl_literal l9, {end}.0, 0.0, 0.0, 0.0"
    assert not ck.verify(replace_once(text, "dcl_literal", f"{literal}\ndcl_literal"))


@seeded(2)
def test_the_verdict_is_numpy_s(seed):
    """On planted faults: the first wrong element, and how many there are."""
    rng = random.Random(f"verdict {seed}")
    names = list(ck.kernels)
    compared = 0
    while compared < 12:
        name = rng.choice(names)
        fault = plant(ck.kernels[name].text, rng)
        if fault is None:
            continue
        try:
            checked = ck.verify(fault.text)
        except ck.ILError:
            continue
        is_compared = not checked.is_correct and checked.size and checked.comparison.elements
        assert is_compared or checked.is_correct or checked.faults
        if not is_compared:
            continue
        compared += 1
        kernel = checked.kernel
        given = make_product(kernel, checked.size)
        left = given.a.swapaxes(-1, -2) if kernel.trans_a else given.a
        right = given.b.swapaxes(-1, -2) if kernel.trans_b else given.b
        wanted = 2 * np.matmul(left, right) - given.c
        assert np.array_equal(wanted, checked.product.expected)
        result = checked.product.run(engine="interpreter")
        wrong = np.argwhere(result != wanted)
        assert checked.comparison.beyond == len(wrong)
        first = [(*at[-2:], result[(*at,)], wanted[(*at,)], sum(at[:-2])) for at in wrong[:1]]
        assert first == ([checked.incorrect_element] if checked.incorrect_element else [])
