"""What a line costs: the laws of its price, on kernels of the catalogue."""

from statistics import mean

import pytest

import cypresskit as ck

NEVER = """il_ps_2_0
dcl_cb cb0[1]
dcl_output_generic o0
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
dcl_literal l0, 0, 1.0, 2.0, 0
mov r0, l0.x
mov r1, l0.x
whileloop
    ge r1.x, r0.x, cb0[0].x
    break_logicalnz r1.x
    sample_resource(0)_sampler(0) r2, vWinCoord0.xy
    mad r3, r2, r2, r3
    ge r1.y, r0.x, cb0[0].y
    if_logicalnz r1.y
        sample_resource(0)_sampler(0) r4, vWinCoord0.yx
        mad r3, r4, r4, r3
    endif
    add r0.x, r0.x, l0.y
endloop
mov o0, r3
end
"""


@pytest.fixture(scope="module")
def nn():
    return ck.price("sgemm_nn", 1024, progress=False)


def starting(prices, text):
    return [line for line in prices.lines if line.text.startswith(text)]


def test_a_fetch_of_a_costs_twice_one_of_b_in_nn(nn):
    a, b = (starting(nn, f"sample_resource({n})") for n in (0, 1))
    assert mean(line.price for line in a) == pytest.approx(
        2 * mean(line.price for line in b), rel=0.15
    )
    assert nn.dearest in a
    assert nn.dearest.together == tuple(line.line for line in a)


def test_a_bundle_costs_its_share_of_an_alu_bound_loop():
    prices = ck.price("dgemm_tn", 1024, progress=False)
    assert prices.report.bound == "ALU"
    busy = prices.report.busy["ALU"]
    sums = [line for line in starting(prices, "dmad") if line.runs > prices.report.wavefronts]
    assert len(sums) > 16
    for line in sums:
        assert line.price == pytest.approx(line.share / busy, abs=0.003)


def test_a_line_that_never_runs_costs_nothing():
    program = ck.assemble(NEVER)
    shape = ck.Shape(program, (128, 128), {0: (128, 128)}, {0: [64.0, 1000.0]})
    prices = ck.price(program, launch=shape)
    (fetch,) = [line for line in prices.lines if line.text.endswith("vWinCoord0.yx")]
    assert fetch.runs == 0
    assert (fetch.price, fetch.low, fetch.high, fetch.share) == (0, 0, 0, 0)
    assert max(line.price for line in prices.lines) > 0


def test_no_price_is_above_the_launch(nn):
    assert all(line.low <= line.price <= line.high <= 1 for line in nn.lines)


def test_prices_are_a_table(nn):
    first, names, *rows = str(nn).splitlines()
    assert first.startswith("sgemm_nn 1024 x 1024 x 1024 on HD 5870: line 47 is the dearest")
    assert names.split() == ["lines", "work", "price"]
    assert any("sample_resource(0)" in row for row in rows)
    assert "<table>" in nn._repr_html_()
