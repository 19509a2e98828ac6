"""The boards' numbers against the papers' tables, and the errors of impossible boards."""

import random
from dataclasses import fields, replace

import numpy as np
import pytest
from repository import marked_lines
from sampling import from_rows, seeded

from cypresskit import published
from cypresskit.compiler import compile
from cypresskit.devices import ASHRAF, DEVICES, HD5850, HD5870, NAKASATO, XEON, calibrations
from cypresskit.il import assemble
from cypresskit.kernels import KERNELS
from cypresskit.timing import simulate

SOURCES = DEVICES | {
    "without_doubles": replace(HD5870, double_fmas=0),
    "nakasato": published.conditions("dgemm_tn"),
}


@from_rows
def test_a_figure_is_that_of_its_source(figure, value):
    assert eval(figure, dict(SOURCES)) == pytest.approx(value, rel=1e-3)


def test_a_board_takes_the_numbers_of_numpy_and_keeps_pythons():
    boards = [
        replace(HD5870, register_pool=pool, clock_ghz=np.float32(0.5))
        for pool in np.arange(280, 301, 20)
    ]
    assert boards[1] == replace(HD5870, register_pool=300, clock_ghz=0.5)
    assert {type(boards[0].register_pool), type(boards[0].clock_ghz)} == {int, float}
    assert replace(XEON, cores=np.int64(6)).cores == 6


BOARDS = [*DEVICES.values(), XEON]
NUMBERS = [
    pytest.param(board, each, id=f"{board.name} {each.name}")
    for board in BOARDS
    for each in fields(board)[1:]
    if each.metadata
]


def wrong_values(each, rng):
    """Values that no number of a board may have; of a whole number also fractions and floats."""
    yield from (True, False, None, "3", [3], 3j, np.nan, np.inf, -np.inf, np.array(3), 10**400)
    yield from (-1, -rng.random(), -(2 ** rng.randint(1, 40)), np.float32(-0.5), np.int64(-3))
    if each.type is int:
        fraction = rng.randint(0, 99) + rng.uniform(0.01, 0.99)
        yield from (fraction, np.float32(2.5), float(each.default), np.float64(each.default), 0.0)


@pytest.mark.parametrize("board, each", NUMBERS)
@seeded(1)
def test_a_number_of_another_kind_is_refused_with_its_name_and_unit(board, each, seed):
    for value in wrong_values(each, random.Random(seed)):
        with pytest.raises(ValueError) as refused:
            replace(board, **{each.name: value})
        said = str(refused.value)
        assert said.startswith(f"{board.name}: {each.name} = "), value
        assert f"({each.metadata['unit']})" in said and len(said) < 300, value


#: What a board may lack, or what may take no time.
MAY_BE_0 = """
    double_fmas lds_bytes l1_bytes l2_bytes clause_temporaries l1_clocks clause_switch_clocks
    clause_overhead_clocks dram_row_clocks store_clocks
""".split()


@pytest.mark.parametrize(
    "name", sorted({each.name for each in fields(HD5870) if each.metadata} - {*MAY_BE_0})
)
def test_what_every_board_has_is_not_0(name):
    with pytest.raises(ValueError, match=name):
        replace(HD5870, **{name: 0})


@pytest.mark.parametrize("name", MAY_BE_0)
def test_a_board_that_lacks_something_can_be_timed_or_says_so(name):
    board = replace(HD5870, **{name: 0})
    try:
        report = simulate("sgemm_64x64_lds", 64, k=16, device=board)
    except ValueError as refused:  # such as a kernel that needs the LDS, of a chip without
        assert board.name in str(refused)
    else:
        assert 0 < report.seconds < 1


def test_every_number_has_unit_and_source_or_calibration():
    for f in [each for each in fields(HD5870) if each.metadata]:
        assert f.metadata["unit"], f.name
        assert (f.metadata["source"] != "none") or f.metadata["calibrated"], f.name
    assert {c.name for c in calibrations(HD5870)} > {"l1_clocks", "line_bytes"}
    assert "<td>clock_ghz</td><td>0.725</td><td>GHz</td><td>Table 1</td>" in HD5850._repr_html_()


def test_the_document_has_every_calibration():
    rows = [f"| `{c.name}` | {c.value} | {c.unit} | {c.on} |" for c in calibrations(HD5870)]
    for system in (NAKASATO, ASHRAF):
        unit = f"microseconds per launch on {system.name}"
        value = system.launch_overhead_us
        rows.append(f"| `launch_overhead_us` | {value} | {unit} | {system.fitted_to} |")
    assert marked_lines("calibrations") == rows


@pytest.mark.parametrize("pool", [256, 248, 300])
@pytest.mark.parametrize(
    "name", ["sgemm_naive", "sgemv_t", "sgemm_tn", "sgemm_64x64_lds_worst", "ddgemm_tn_fma"]
)
def test_card_code_and_timing_agree_on_the_number_of_wavefronts(name, pool):
    board = replace(HD5870, register_pool=pool)
    code = compile(KERNELS[name].program, board)
    lds = code.program.lds_bytes
    active = board.active_wavefronts(code.gprs, lds)
    assert code.wavefronts == code.stats().wavefronts == active
    assert f"{active} wavefronts on a SIMD engine" in code.listing()
    assert (
        simulate(name, 1 if "sgemv" in name else 64, m=64, k=32, device=board).active_wavefronts
        == active
    )


def test_of_a_workgroup_that_does_not_fit_no_wavefront_does():
    head = "il_cs_2_0\ndcl_num_thread_per_group {}\ndcl_lds_id(0) {}\nmov g[vaTid.x], vaTid\nend"
    kernels = [assemble(head.format(*sizes)) for sizes in ((64, 4096), (256, 16384), (512, 0x100))]
    assert [compile(kernel).wavefronts for kernel in kernels] == [8, 8, 24]
    assert compile(kernels[2], replace(HD5870, register_pool=7)).wavefronts == 0
