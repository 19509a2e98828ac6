"""A kernel of one's own: it states how it is launched, or ``like`` names a kernel that does, and it
does what one of the catalog does.
"""

import random
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from changed_texts import count_correct_share
from forbidden import forbid
from kernel_texts import TEXTURE
from plain_kernels import plain_kernel, random_statement
from products import random_matrices, size_of
from sampling import drawn_by_day, from_rows, seeded

import cypresskit as ck
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.kernels.generated import block_kernel
from cypresskit.kernels.statement import state
from cypresskit.machine import compiled, interpreter
from cypresskit.machine.launch import prepare
from cypresskit.timing.simulate import report_on

TEXT = ck.kernels["sgemm_tn"].text
ONES = np.ones((9, 9), np.float32)


@drawn_by_day("name", ck.kernels, 12)
def test_what_is_stated_is_what_is_read(name):
    """Of every kernel of the catalog, without its name, wherever the statement stands."""
    kernel = ck.kernels[name]
    first, rest = kernel.text.split("\n", 1)
    code, stated = first.split("  ")
    assert stated == state(kernel.convention)
    slashes = kernel.text.replace(";", "//")
    others = f"{code}\n{stated.upper()}\n{rest}", f"{code}\n{rest}{stated}", slashes
    for text in (kernel.text, *others):
        assert ck.load_kernel(text, name="mine").convention == kernel.convention


@from_rows
def test_a_generated_kernel_states_its_convention(rows, columns, steps):
    given = block_kernel(rows, columns, steps)
    assert ck.load_kernel(given.text).convention == given.convention


@seeded(4)
def test_a_correct_kernel_is_correct_whatever_part_of_an_element_its_block_ends_in(seed):
    rng = random.Random(f"statement {seed}")
    kernel = ck.load_kernel(plain_kernel(**random_statement(rng)))
    assert (checked := ck.verify(kernel)), str(checked)


def random_text(rng):
    """A program that does nothing of use, with a random statement."""
    rows, columns = rng.randint(1, 9), rng.randint(1, 9)
    is_compute = rng.random() < 0.5
    precision = rng.choice(["single", "double", "double-double"])
    terms = [rng.choice(["NN", "NT", "TN", "TT"]), f"{rows} x {columns}", f"k {rng.randint(1, 8)}"]
    lines = ["il_cs_2_0" if is_compute else "il_ps_2_0", "dcl_literal l0, 0, 0, 0, 0"]
    if is_compute:
        down, across = rng.choice([1, 2, 4, 8]), rng.choice([1, 1, 2, 4, 8])
        parts = rng.choice([1, 1, 2, 4])
        terms += [f"group {rows * down} x {columns * across}", f"parts {parts}"]
        group = down * across * parts if rng.random() < 0.9 else 64
        lines += [f"dcl_num_thread_per_group {group}"]
    streams = 0 if is_compute else rng.choice([0, 0, 1, 2, 4, 8])
    if streams or rng.random() < 0.8:
        lines += [TEXTURE.format(n) for n in range(2)]
    if precision != "single":
        lines += ["dadd r0.xy, l0.xy, l0.xy"]
    lines += [f"mov o{n}, l0" for n in range(streams)] or ["mov r1, l0", "mov g[r1.x], r1"]
    terms += [precision] + ["packed"] * (rng.random() < 0.2)
    lines[0] += f" ; product: {', '.join(terms)}"
    return "\n".join([*lines, "end", ""])


@seeded(10)
def test_every_statement_is_refused_or_its_launch_has_whole_texels_and_elements(seed):
    rng = random.Random(f"launch {seed}")
    launched = refused = 0
    while launched < 10 or not refused:
        assert launched + refused < 500, "nearly all have one outcome"
        try:
            kernel = ck.load_kernel(random_text(rng))
        except ck.LaunchConventionError:
            refused += 1
            continue
        launched += 1
        how = kernel.convention
        m, n, k = size_of(kernel, *(rng.randint(1, 30) for _ in "mnk"))
        a, b, c = random_matrices(kernel, m, n, k, np.random.default_rng(seed))
        arguments = kernel.arguments(a, b, c, 1.0, 1.0)
        launch = prepare(kernel.program, **arguments)
        assert kernel.result(arguments, m, n).shape == c.shape
        assert all(texture.width for texture in launch.textures.values())
        rows, columns, _ = how.padded(m, n, k)
        number = c.itemsize * (2 if kernel.precision == "double-double" else 1)
        length = rows if kernel.is_vector else columns
        assert how.streams or length * number % 16 == 0


@pytest.mark.parametrize("take", [ck.load_kernel, ck.verify, ck.kernel_stats, ck.trace_element])
@pytest.mark.parametrize("mode", ["pixel", "compute"])
def test_a_kernel_that_states_nothing_is_told_what_to_write(take, mode):
    kernel = ck.kernels["sgemm_tn" if mode == "pixel" else "sgemm_64x64"]
    text = kernel.text.split("\n", 1)[1]
    header = {"pixel": "il_ps_2_0", "compute": "il_cs_2_0"}[mode]
    with pytest.raises(ck.LaunchConventionError) as caught:
        take(f"{header}\n{text}")
    written = re.search(r"`(il_.s_2_0 ; product: .*?)`", str(caught.value))
    assert written and written[1].startswith(header)
    take(f"{written[1]}\n{text}")
    assert ck.load_kernel(f"{header}\n{text}", like=kernel).convention == kernel.convention


@pytest.mark.parametrize("name", ["sgemm_tn", "sgemm_64x64", "dgemm_tn_stream", "sgemv_n"])
def test_a_kernel_that_is_timed_isnt_run(name, monkeypatch):
    """Its text alone says how it is launched."""
    monkeypatch.setattr(interpreter, "run", forbid("run"))
    monkeypatch.setattr(compiled, "run", forbid("run"))
    text = ck.kernels[name].text.replace("il_", " il_", 1)
    assert ck.simulate(text, 64).gflops > 0
    assert ck.kernel_stats(text).gprs > 0


@pytest.mark.parametrize("stated", ["4 x 8", "8 x 4", "4 x 4"])
def test_a_block_larger_than_stated_is_named(stated):
    text = TEXT.replace("8 x 8", stated, 1)
    found = ck.verify(text)
    assert found.fault.text in str(found)
    assert (found.fault.kind, found.fault.lines) == ("block", (1,))
    assert not ck.verify("sgemm_tn").fault


@pytest.mark.parametrize("name", ["01a", "own", "free"])
def test_a_row_that_is_stored_twice_counts_once(name):
    kernel = reference_kernel(STEPS[name].like)
    wrong = re.sub(r"^mov (o\d\S*, )r\d+", r"\g<0>\nmov \1r0", kernel.text, flags=re.MULTILINE)
    seen = ck.verify(replace(kernel, text=wrong))
    assert not seen.is_correct
    assert not seen.fault


MADE = [*product((4, 8), repeat=2), (2, 2)]


@pytest.mark.parametrize(("rows", "columns"), MADE)
def test_a_block_multiplies(rows, columns):
    assert {count_correct_share(block_kernel(rows, columns, steps)) for steps in (1, 8)} == {1}


#: What takes a kernel, and gives something that is equal for equal ones.
TAKES = {
    "gemm": lambda kernel: ck.gemm(ONES, ONES, kernel=kernel).tolist(),
    "simulate": lambda kernel: ck.simulate(kernel, 64).clocks,
    "kernel_stats": lambda kernel: ck.kernel_stats(kernel).nominal_gflops,
    "verify": lambda kernel: ck.verify(kernel).sizes,
}


@pytest.mark.parametrize("take", TAKES)
def test_functions_take_a_text_a_file_a_program_or_a_kernel(take, tmp_path):
    path = tmp_path / "mine.il"
    path.write_text(TEXT)
    sources = (TEXT, path, str(path), ck.assemble(TEXT, "mine.il"), ck.load_kernel(TEXT))
    assert [TAKES[take](source) for source in sources] == [TAKES[take]("sgemm_tn")] * 5


def test_a_file_is_read_anew_and_a_report_keeps_what_it_timed(tmp_path):
    path = tmp_path / "sgemm_tn.il"  # a name of the catalog's, and another kernel
    path.write_text(ck.kernels["sgemm_naive"].text)
    report = ck.simulate(path, 128)
    assert report.gemm_kernel is not None and report.gemm_kernel.block == (1, 1)
    assert report.clocks == ck.simulate("sgemm_naive", 128).clocks
    path.write_text(TEXT)
    assert ck.simulate(path, 128).clocks == ck.simulate("sgemm_tn", 128).clocks
    assert report_on(replace(report.launch, device=ck.HD5850)).gemm_kernel.block == (1, 1)


def test_a_catalog_kernel_may_have_another_name():
    assert ck.load_kernel("sgemm_tn") is ck.kernels["sgemm_tn"]
    renamed = ck.load_kernel("sgemm_tn", name="mine")
    assert renamed.name == "mine" and renamed.convention == ck.kernels["sgemm_tn"].convention
