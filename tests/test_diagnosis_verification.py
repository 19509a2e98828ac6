"""``verify``: right kernels are right, wrong ones are wrong with their first wrong element."""

import random
import re

import numpy as np
import pytest
from conftest import SIX
from faults import plant

import cypresskit as ck
from cypresskit.kernels.products import make_product

TEXT = ck.kernels["sgemm_tn"].text


def mine(name: str, text: str) -> ck.Kernel:
    like = ck.kernels[name]
    return ck.load_kernel(text, like=like, name="mine")


@pytest.mark.parametrize(
    ("declared", "used"),
    [
        ("", "mov g[r0.x], r10"),
        ("dcl_cb cb7[1]", "mov r10, cb7[0]"),
    ],
)
def test_what_a_launch_does_not_give_is_said_to_a_kernel_s_author(declared, used):
    """Who calls no function can't pass an argument."""
    text = ck.kernels["sgemm_naive"].text.replace("dcl_cb", f"{declared}\ndcl_cb", 1)
    text = text.replace("mov o0.x, r10.x\n", f"{used}\nmov o0.x, r10.x\n")
    checked = ck.verify(mine("sgemm_naive", text))
    assert "which its launch doesn't give" in checked.error and "pass" not in checked.error


@pytest.mark.parametrize("name", SIX)
def test_a_kernel_of_the_catalogue_is_right(name):
    kernel = ck.kernels[name]
    checked = ck.verify(name)
    assert checked.right and checked and not checked.findings
    rows, columns = kernel.convention.multiple
    one, other, *larger = checked.sizes
    assert one[:2] == (rows, 1 if kernel.is_vector else 2 * columns)
    assert other[:2] == (2 * rows, columns)
    compared = r": ([\d,]+) elements equal numpy's, to the last bit(?:; .+)?\."
    pattern = rf"{name} is correct at (.+), k from (\d+) to (\d+){compared}"
    said = re.fullmatch(pattern, str(checked))
    assert said, checked
    count = 2 if kernel.convention.packed else 1
    assert int(said[4].replace(",", "")) == count * sum(m * n for m, n, _ in checked.sizes)
    shapes = re.findall(r"(\d+) x (\d+)", said[1])
    assert {(int(m), int(n)) for m, n in shapes} == {(m, n) for m, n, _ in checked.sizes}
    steps = [k for *_, k in checked.sizes]
    assert [int(said[2]), int(said[3])] == [min(steps), max(steps)]
    assert len({k for _, _, k in larger}) == len(larger) == 2
    assert all(m > rows and (kernel.is_vector or n > columns) for m, n, _ in larger)


@pytest.mark.parametrize("name", SIX)
def test_a_kernel_that_takes_the_old_c_times_something_else_than_beta_is_wrong(name):
    """It doesn't read beta, and C is right where beta is 0."""
    text = ck.kernels[name].text
    for beta, alpha in (("cb0[0].y", "cb0[0].x"), ("cb0[1].zw", "cb0[1].xy"), ("cb0[3]", "cb0[2]")):
        text = text.replace(beta, alpha)
    assert text != ck.kernels[name].text
    kernel = mine(name, text)
    assert ck.verify(kernel, beta=0.0)
    assert not ck.verify(kernel)


@pytest.mark.parametrize("name", ["sgemm_tn", "dgemm_tn", "sgemm_naive"])
def test_a_first_value_that_is_set_only_where_beta_isnt_0_is_found(name):
    """Where beta is 0, C is right by chance: registers begin with 0."""
    text = ck.kernels[name].text
    first = re.search(r"^mov r\d+(\.\S+)?, l.*\n", text, re.MULTILINE)[0]
    flag = f"if_logicalnz cb0[4].x\n{first}endif\n"
    kernel = ck.load_kernel(text.replace(first, flag, 1), like=name)
    assert {finding.kind for finding in ck.verify(kernel).findings} == {"uninitialised"}


@pytest.mark.parametrize("name", SIX)
def test_a_kernel_that_stores_nothing_where_beta_is_0_is_wrong(name):
    text = ck.kernels[name].text
    inside, after = text.split("endif", 1)
    stores, end = after.split("endmain", 1)
    kernel = mine(name, f"{inside}{stores}endif\nendmain{end}")
    assert ck.verify(kernel, beta=-1.0)
    found = ck.verify(kernel)
    assert not found and "beta = 0" in str(found)


@pytest.mark.parametrize("seed", range(4))
def test_a_product_is_compared_element_by_element(seed):
    """The kernels' own are within their bounds; one bit more is noticed, and one bound more."""
    rng = np.random.default_rng(seed)
    m, n, k = rng.integers(1, 40, 3)
    dtype = rng.choice([np.float32, np.float64])
    a, b, c = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
    alpha, beta = rng.standard_normal(2)
    scalars = {"alpha": float(dtype(alpha)), "beta": float(dtype(beta))}
    result = ck.gemm(a, b, c, **scalars)
    found = ck.compare(result, a, b, c, **scalars)
    assert found and found.elements == m * n and found.largest_error <= found.bound
    assert re.fullmatch(
        rf"{m * n:,} elements (?:are within|equal numpy's, to the last).*", str(found)
    )
    place = rng.integers(m), rng.integers(n)
    exact = scalars["alpha"] * (a.astype(float) @ b) + scalars["beta"] * c
    size = abs(scalars["alpha"]) * (np.abs(a).astype(float) @ np.abs(b)) + np.abs(beta * c)
    result[place] = exact[place] + 1.1 * (k + 4) * np.finfo(dtype).eps * size[place]
    wrong = ck.compare(result, a, b, c, **scalars)
    assert not wrong and wrong.beyond == 1 and str(wrong).startswith(f"1 of {m * n:,} elements")
    result[place] = np.nan
    assert ck.compare(result, a, b, c, **scalars).beyond == 1
    whole = np.rint(4 * a), np.rint(4 * b)
    product = (whole[0] @ whole[1]).astype(dtype)
    assert str(ck.compare(product, *whole)) == f"{m * n:,} elements equal numpy's, to the last bit"
    product[place] = np.nextafter(product[place], dtype(np.inf))
    assert "last bit" not in str(ck.compare(product, *whole))
    with pytest.raises(ValueError, match="the result has shape"):
        ck.compare(product[:, :, None], *whole)


@pytest.mark.parametrize("end", (1, 4, 8))
@pytest.mark.parametrize("name", ["sgemm_naive", "sgemm_tn"])
def test_a_loop_that_ends_at_a_constant_is_wrong(name, end):
    """Whatever k it is right at, there is another."""
    text = ck.kernels[name].text
    assert "cb0[0].z" in text
    text = text.replace("cb0[0].z", "l9.x").replace(
        "dcl_literal", f"dcl_literal l9, {end}.0, 0.0, 0.0, 0.0\ndcl_literal", 1
    )
    assert not ck.verify(mine(name, text))


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(3))
def test_the_verdict_is_numpy_s(seed):
    """On planted faults: the first wrong element, and how many there are."""
    rng = random.Random(f"verdict {seed}")
    names = list(ck.kernels)
    judged = 0
    while judged < 12:
        name = rng.choice(names)
        fault = plant(ck.kernels[name].text, rng)
        if fault is None:
            continue
        try:
            checked = ck.verify(mine(name, fault.text))
        except ck.ILError:
            continue
        judged += 1
        if checked.right or checked.result is None:
            assert checked.right or checked.findings or checked.error
            continue
        assert checked.size is not None
        kernel = checked.kernel
        given = make_product(kernel, checked.size)
        left = given.a.swapaxes(-1, -2) if kernel.trans_a else given.a
        right = given.b.swapaxes(-1, -2) if kernel.trans_b else given.b
        wanted = 2 * np.matmul(left, right) - given.c
        assert np.array_equal(wanted, checked.expected)
        wrong = np.argwhere(checked.result != wanted)
        assert checked.wrong_count == len(wrong)
        if len(wrong):
            assert checked.wrong is not None
            assert checked.wrong[:2] == tuple(wrong[0][-2:])
            assert checked.wrong.got == checked.result[tuple(wrong[0])]
            assert checked.wrong.expected == wanted[tuple(wrong[0])]


def test_a_wrong_kernel_says_where():
    checked = ck.verify(mine("sgemm_tn", TEXT.replace("mad r10, r2.x,", "mad r10, r2.y,", 1)))
    assert not checked
    assert checked.size == (8, 16, 4) and checked.wrong == (0, 0, -50.0, 24.0)
    said = "mine is incorrect at 8 x 16, k = 4.\nC[0, 0] is -50 in place of 24, with"
    assert str(checked).startswith(said)
