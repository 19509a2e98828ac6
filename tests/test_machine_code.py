"""Kernels as the machine code of chips that are sold: what LLVM makes does what the text says, and
its pairs keep the rule of the banks.
"""

import random
import re

import pytest
from conftest import SIX, pixel

import cypresskit as ck
from cypresskit.today.machine_code import CHIPS, machine_code
from tools.fuzz.in_step import random_exchange
from tools.fuzz.programs import random_program


def turn_of_the_text(program: ck.Program) -> list[int]:
    """The lines of the multiply-adds, one for each component, of the innermost loop that has the
    most.
    """
    most: list[int] = []
    open_loops: list[list[int]] = []
    for instruction in program.body:
        if instruction.opcode == "whileloop":
            open_loops.append([])
        elif instruction.opcode == "endloop":
            most = max(most, open_loops.pop(), key=len)
            if open_loops:
                open_loops[-1] = []
        elif open_loops and instruction.op.flops == 2:
            count = len(instruction.dest.written) // (2 if instruction.op.double else 1)
            open_loops[-1] += [instruction.line] * count
    return most


@pytest.mark.parametrize("name", SIX)
def test_a_turn_has_the_multiply_adds_of_the_text(name):
    lines = turn_of_the_text(ck.kernels[name].program)
    for chip in CHIPS if name in ("sgemm_tn", "sgemm_64x64_lds") else ["RX 9070"]:
        code = machine_code(name, chip)
        assert (code.chip, code.processor) == (chip, CHIPS[chip][0])
        assert code.multiply_adds == len(lines), chip
        alone = (one for one in code.loop if "::" not in one.text)  # a pair has one half's line
        listed = {one.line for one in alone if one.multiply_adds}
        assert listed <= {*lines}, f"{chip}: a multiply-add of a line that has none"
        assert code.loads and code.registers and code.wavefronts


def operands(operation: str) -> tuple[int | None, list[int | None]]:
    """The vector registers that half of a pair writes and reads: its result, its sources in their
    order; None for a scalar register or a number.
    """
    result, *sources = (
        int(word[1:]) if re.fullmatch(r"v\d+", word) else None
        for word in operation.split(" ", 1)[1].split(", ")
    )
    return result, sources


def breaks_a_rule(pair: str) -> str:
    """Which rule of AMD's RDNA ISA documents, "Dual issue VALU", a pair breaks; "" if none: first
    sources in different banks of four, second ones too, and of two results one even and one odd.
    On RDNA 4 two copies may read one bank.
    """
    (result_x, sources_x), (result_y, sources_y) = map(operands, pair.split(" :: "))
    if result_x % 2 == result_y % 2:
        return "both results even, or odd"
    if pair.count("v_dual_mov") == 2:
        return ""
    for x, y in zip(sources_x[:2], sources_y[:2], strict=False):
        if x is not None and y is not None and x != y and x % 4 == y % 4:
            return f"v{x} and v{y} lie in one bank"
    return ""


@pytest.mark.parametrize(
    ("pair", "broken"),
    [
        ("v_dual_fmac_f32 v0, v4, v8 :: v_dual_fmac_f32 v1, v5, v9", ""),
        ("v_dual_fmac_f32 v0, v4, v8 :: v_dual_fmac_f32 v2, v5, v9", "even"),
        ("v_dual_fmac_f32 v0, v4, v8 :: v_dual_fmac_f32 v1, v8, v9", "v4 and v8"),
        ("v_dual_fmac_f32 v0, v4, v8 :: v_dual_fmac_f32 v1, v5, v12", "v8 and v12"),
        ("v_dual_fmac_f32 v0, s4, v8 :: v_dual_fmac_f32 v1, v8, v9", ""),
        ("v_dual_mov_b32 v0, v4 :: v_dual_fmac_f32 v1, v5, v8", ""),
        ("v_dual_mov_b32 v0, v4 :: v_dual_fmac_f32 v1, v8, v9", "v4 and v8"),
        ("v_dual_mov_b32 v0, v4 :: v_dual_mov_b32 v1, v8", ""),
    ],
)
def test_the_checker_of_pairs_finds_what_is_wrong(pair, broken):
    said = breaks_a_rule(pair)
    assert broken in said and bool(said) == bool(broken)


@pytest.mark.parametrize("name", ["sgemm_tn", "sgemm_nn_buffer", "sgemm_64x64_lds", "sgemv_n"])
def test_every_pair_obeys_the_rule_of_the_banks(name):
    code = machine_code(name, "RX 9070")
    pairs = [one.text for one in code.code if "::" in one.text]
    assert len(pairs) >= code.pairs > 0
    assert [breaks_a_rule(pair) for pair in pairs] == [""] * len(pairs)


@pytest.mark.parametrize("chip", CHIPS)
def test_every_kernel_of_the_catalog_becomes_machine_code(chip):
    for name in ck.kernels:
        code = machine_code(name, chip)
        assert any(one.text == "s_endpgm" for one in code.code), name
        assert code.registers > 0 and code.wavefronts > 0, name


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_become_machine_code(seed):
    rng = random.Random(seed)
    text, _ = rng.choice((random_program, random_exchange))(rng)
    assert len(machine_code(text, rng.choice([*CHIPS])).code) > 0


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("read", ["l0", "vWinCoord0.x", "vWinCoord0.yyyx", "vWinCoord0.zw00"])
def test_a_pixel_kernel_may_read_any_coordinates(read, chip):
    stores = ("mov o0, r0", "mov g[0], r0", "mov o1.xz, r0")
    for store in stores:
        program = pixel("dcl_literal l0, 1.0, 2.0, 3.0, 4.0", f"mov r0, {read}", store)
        code = machine_code(program, chip)
        assert any("store" in one.text for one in code.code)
        assert "No loop that multiplies" in str(code)


def test_a_workgroup_of_two_wavefronts_waits_for_both():
    """On a chip with wavefronts of 32, a workgroup of 64 needs its barriers."""
    barriers = {
        chip: sum("barrier" in one.text for one in machine_code("sgemm_64x64_lds", chip).code)
        for chip in CHIPS
    }
    assert barriers["HD 7970"] == barriers["MI300X"] == 0 < barriers["RX 9070"]


def test_a_kernel_by_its_text_and_a_chip_in_any_case():
    text = ck.kernels["sgemm_tn"].text
    code = machine_code(text, "RX 9070")
    assert f"{code.pairs} are pairs" in str(code)
    assert {one.line for one in code.code} <= set(range(len(text.splitlines()) + 1))
    for spelling in ("rx 9070", "Rx 9070"):
        assert machine_code(text, spelling).chip == "RX 9070"
    with pytest.raises(ValueError, match="chip is one of HD 7970, MI300X, RX 9070, not 'H200'"):
        machine_code("sgemm_tn", "H200")


def test_a_loops_pairs_take_their_operands_from_different_banks():
    """Eight fetches, and a first wait until six of them are under way; most multiply-adds in
    pairs.
    """
    code = machine_code("sgemm_tn", "RX 9070")
    waits = [one.text for one in code.loop if one.text.startswith("s_wait_samplecnt")]
    assert (code.loads, waits[0]) == (8, "s_wait_samplecnt 0x6")
    paired = sum(one.multiply_adds for one in code.loop if "::" in one.text)
    assert paired > 0.75 * code.multiply_adds
    pairs = [one.text.split(" :: ") for one in code.loop if "::" in one.text]
    assert len(pairs) > 8
    for pair in pairs:
        registers = (re.findall(r" ([vs])(\d+)", half) for half in pair)
        results, *sources = zip(*registers, strict=False)
        assert {int(number) % 2 for _, number in results} == {0, 1}
        for source in sources:
            banks = [int(number) % 4 for kind, number in source if kind == "v"]
            assert len(banks) == len(set(banks))
