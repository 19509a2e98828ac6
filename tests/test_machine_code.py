"""Kernels as machine code of AMD's GPUs: what LLVM makes does what the source says, and its pairs
keep the rule of the banks.
"""

import random
import re

import pytest
from conftest import SIX, pixel

import cypresskit as ck
from cypresskit.kernels.compiled import machine_code
from cypresskit.machine.compiled.amd_gpu import CHIPS
from tools.fuzz.programs import random_program


def listed(kernel, chip: str = "RX 9070") -> list[tuple[int, str]]:
    """The listing's instructions and labels: IL line, text."""
    rows = machine_code(kernel, chip).splitlines()[2:]
    return [(int(row[:4] or 0), row[6:]) for row in rows]


def multiply_adds(text: str) -> int:
    found = re.findall(r"v_(pk_)?(?:dual_)?(?:fma|mac|mad)\w*_(?:f32|f64)", text)
    return sum(2 if packed else 1 for packed in found)


def main_loop(code: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The innermost loop that multiplies the most."""
    labels = {text[:-1]: at for at, (_, text) in enumerate(code) if text.endswith(":")}
    loops = [[]]
    for at, (_, text) in enumerate(code):
        jump = re.match(r"s_c?branch\w* (\S+)", text)
        if jump and labels[jump[1]] <= at:
            loops.append(code[labels[jump[1]] : at + 1])
    return max(loops, key=lambda loop: sum(multiply_adds(text) for _, text in loop))


def multiply_adds_of_the_source(program: ck.Program) -> list[int]:
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


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", SIX)
def test_an_iteration_has_the_multiply_adds_of_the_source(name, chip):
    lines = multiply_adds_of_the_source(ck.kernels[name].program)
    loop = main_loop(listed(name, chip))
    assert sum(multiply_adds(text) for _, text in loop) == len(lines)
    alone = (row for row in loop if "::" not in row[1])  # a pair has the line of one half
    assert {line for line, text in alone if multiply_adds(text)} <= {*lines}
    assert any(re.match("image_|global_load|buffer_load|flat_load|ds_", text) for _, text in loop)


@pytest.mark.parametrize("seed", range(3))
def test_each_output_has_its_own_descriptor_beyond_those_of_128_textures(seed):
    numbers = random.Random(seed).sample((0, 2, 5, 7), 3)
    code = listed(pixel("mov r0, vWinCoord0.xyxy", *(f"mov o{n}, r0" for n in numbers)))
    places = [re.fullmatch(r"s_load_b256 .*, 0x(\w+)", text) for _, text in code]
    assert {int(place[1], 16) // 32 for place in places if place} == {128 + n for n in numbers}


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
    pairs = [text for _, text in listed(name) if "::" in text]
    assert pairs and [breaks_a_rule(pair) for pair in pairs] == [""] * len(pairs)


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_become_machine_code(seed):
    rng = random.Random(seed)
    text, _ = random_program(rng)
    assert listed(text, rng.choice([*CHIPS]))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("read", ["l0", "vWinCoord0.x", "vWinCoord0.yyyx", "vWinCoord0.zw00"])
def test_a_pixel_kernel_may_read_any_coordinates(read, chip):
    stores = ("mov o0, r0", "mov g[0], r0", "mov o1.xz, r0")
    for store in stores:
        program = pixel("dcl_literal l0, 1.0, 2.0, 3.0, 4.0", f"mov r0, {read}", store)
        assert any("store" in text for _, text in listed(program, chip))


def test_a_workgroup_of_two_wavefronts_waits_for_both():
    """On a chip with wavefronts of 32, a workgroup of 64 needs its barriers."""
    barriers = {
        chip: sum("barrier" in text for _, text in listed("sgemm_64x64_lds", chip))
        for chip in CHIPS
    }
    assert barriers["HD 7970"] == 0 < barriers["RX 9070"]


def test_a_kernel_by_its_source_and_a_chip_by_its_name():
    source = ck.kernels["sgemm_tn"].text
    code = listed(source)
    assert code == listed("sgemm_tn")
    assert {line for line, _ in code} <= set(range(len(source.splitlines()) + 1))
    assert machine_code("sgemm_naive", "rx 9070") == machine_code("sgemm_naive", "RX 9070")
    with pytest.raises(ValueError, match="chip is one of HD 7970, RX 9070, not 'H200'"):
        machine_code("sgemm_tn", "H200")
