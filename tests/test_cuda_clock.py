"""The clock of matrix products in CUDA: laws on stored machine code, which needs no tools."""

import inspect
import operator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cypresskit as ck
from cypresskit.today import cuda_compile, figures, stored_code
from cypresskit.today.cuda_access import load_clocks
from cypresskit.today.cuda_clock import launch_of, occupancy, simulate_code
from cypresskit.today.cuda_kernels import as_written
from cypresskit.today.cuda_report import report_on
from cypresskit.today.sass import SassCode, read_listing
from cypresskit.today.sass_threads import (
    UNKNOWN,
    NotTimed,
    Registers,
    compute,
)
from cypresskit.today.sass_trace import Tracer, steps_of

WORDS = st.integers(0, 2**32 - 1)
CONTROL = "7f0"  # sets and waits for no scoreboard, and stalls for no clock


def matrices(*shapes, dtype="float32"):
    return tuple(SimpleNamespace(shape=shape, dtype=np.dtype(dtype)) for shape in shapes)


def computed(text, **values):
    """Run instructions in a register file; a list of values is one for each thread."""
    code = SassCode(8, 0, "\n".join(f"1 {CONTROL} {line}" for line in text.split(";")))
    registers = Registers({name: np.atleast_1d(value) for name, value in values.items()})
    for one in code.instructions:
        compute(registers, one, np.ones(1, bool))
    return registers


def whole(registers, low, high):
    return int(np.max(registers.word(low))) | int(np.max(registers.word(high))) << 32


@given(WORDS, WORDS, WORDS, WORDS)
def test_sums_and_products_of_64_bits_are_pythons(a, b, c, d):
    for wrap in (int, lambda value: [value]):
        got = computed(
            "IADD3 R4, P0, R0, R2, RZ;IADD3.X R5, R1, R3, RZ, P0, !PT;"
            "IADD3 R6, P1, R0, -R2, RZ;IADD3.X R7, R1, ~R3, RZ, P1, !PT;"
            "IMAD.WIDE.U32 R8, R0, R2, RZ;LEA R10, P2, R0, R2, 0x3;"
            "LEA.HI.X R11, R0, R3, R1, 0x3, P2;SHF.R.U64 R12, R0, 0x5, R1",
            R0=wrap(a), R1=wrap(b), R2=wrap(c), R3=wrap(d),
        )  # fmt: skip
        first, second, size = a | b << 32, c | d << 32, 2**64
        assert whole(got, "R4", "R5") == (first + second) % size
        assert whole(got, "R6", "R7") == (first - second) % size
        assert whole(got, "R8", "R9") == a * c
        assert whole(got, "R10", "R11") == ((first << 3) + second) % size
        assert int(np.max(got.word("R12"))) == (first >> 5) % 2**32


@given(WORDS, WORDS, WORDS, WORDS, st.sampled_from(["LT", "LE", "GT", "GE", "EQ", "NE"]))
def test_comparisons_of_64_bits_are_pythons(a, b, c, d, order):
    got = computed(
        f"ISETP.{order}.U32.AND P0, PT, R0, R2, PT;ISETP.{order}.AND.EX P1, PT, R1, R3, PT, P0",
        R0=a, R1=[b], R2=c, R3=d,
    )  # fmt: skip
    first, second = (np.uint64(lo | hi << 32).view(np.int64) for lo, hi in ((a, b), (c, d)))
    compare = getattr(operator, order.lower())
    assert bool(np.all(got.word("P1"))) == bool(compare(first, second))


def test_an_instruction_that_isnt_known_is_refused_by_its_name():
    with pytest.raises(NotTimed, match=r"`SHFL\.DOWN`, which isn't followed: its threads exchange"):
        computed("SHFL.DOWN PT, R0, R1, 0x1, 0x1f", R1=UNKNOWN)


@pytest.mark.parametrize("text", ["SHF.R.W.U32 R0, R1, 0x3, R2", "IADD3.SAT R0, R1, R2, RZ"])
def test_a_modifier_that_isnt_known_is_refused(text):
    with pytest.raises(NotTimed, match=r"which isn't followed"):
        computed(text, R1=1, R2=2)


@given(st.integers(0, 2047), st.integers(0, 2047))
def test_a_constant_of_two_halves_has_their_bits(low, high):
    got = computed(f"HFMA2.MMA R0, -RZ, RZ, {high}, {low}").word("R0")[0]
    assert np.array([got], np.uint32).view(np.float16).tolist() == [low, high]


@given(st.integers(-(1 << 30), 1 << 30), st.integers(0, 1 << 30), st.integers(0, 1 << 30))
def test_a_number_among_64_bits_has_the_words_of_its_sign(number, a, b):
    written = f"{'-' * (number < 0)}{hex(abs(number))}"
    got = computed(f"IMAD.WIDE R2, R4, R6, {written}", R4=a, R6=b)
    assert whole(got, "R2", "R3") == a * b + number & 0xFFFFFFFFFFFFFFFF


@given(st.lists(st.sampled_from([UNKNOWN, 5]), min_size=3, max_size=3))
def test_what_is_computed_from_data_is_unknown(words):
    first, second, third = words
    got = computed("FFMA R3, R0, R1, R2;IADD3 R4, R0, R1, R2", R0=first, R1=second, R2=third)
    assert (got.word("R4")[0] < 0) == (UNKNOWN in words)
    assert got.word("R3")[0] < 0


def shared_clocks(words):
    """Clocks of the load unit for a warp whose threads access these words of shared memory."""
    address = 4 * np.array([words])
    (clocks,) = load_clocks(address, address >= 0, 4, is_shared=True)
    return clocks


@given(st.lists(st.integers(0, 4000), min_size=32, max_size=32))
def test_shared_memory_takes_the_clocks_of_its_busiest_bank(words):
    banks = [len({word for word in words if word % 32 == bank}) for bank in range(32)]
    assert shared_clocks(words) == max(banks)


@pytest.mark.parametrize("pitch", figures("bank, 32 warps"))
def test_a_store_and_a_load_of_shared_memory_take_the_clocks_that_were_measured(pitch):
    """Also at a pitch of 33 words, which lie in 33 lines. The measuring loop takes 3.35 clocks."""
    modeled = 2 * shared_clocks([int(pitch) * thread for thread in range(32)])
    measured = figures("bank, 32 warps")[pitch] * ck.today.clock_ghz()
    assert max(modeled, 3.35) == pytest.approx(measured, rel=0.02)


def traced(text, shared_bytes=0):
    """Follow code for a warp, and return its segments and its registers."""
    code = SassCode(8, shared_bytes, "\n".join(f"1 {CONTROL} {line}" for line in text.split(";")))
    launch = launch_of(as_written, 1, 32, matrices((8, 8), (8, 8), (8, 8)))
    tracer = Tracer(code, launch, np.zeros((1, 3), int))
    return tracer.run(), tracer.registers


@given(
    st.integers(0, 2**20),
    st.integers(1, 9),
    st.integers(1, 3000),
    st.sampled_from(["LT", "NE", "GT", "backwards"]),
)
def test_a_loop_is_repeated_as_often_as_python_says(first, step, count, order):
    """Iterations are skipped up to the one after which the branch isn't taken."""
    last = first + step * count
    begin, move, end = first, f"{step:#x}", last
    if order == "GT":
        begin, move, end = last, f"-{step:#x}", first
    if order == "backwards":
        begin, end, order = first - last, 0, "NE"
    trace, registers = traced(
        f"MOV R0, {begin:#x};IADD3 R0, R0, {move}, RZ;ISETP.{order}.AND P0, PT, R0, {end:#x}, PT;"
        "@P0 BRA 1;EXIT"
    )
    assert sum(segment.count for segment in trace if segment.is_loop) == count
    assert int(registers.word("R0").max()) == end % 2**32


@given(st.integers(4, 900), st.integers(4, 900))
def test_a_guard_within_a_loop_is_followed_to_the_iteration(length, guarded):
    trace, registers = traced(
        f"MOV R0, RZ;MOV R2, RZ;ISETP.LT.AND P1, PT, R0, {guarded:#x}, PT;"
        f"@P1 IADD3 R2, R2, 0x1, RZ;IADD3 R0, R0, 0x1, RZ;"
        f"ISETP.LT.AND P0, PT, R0, {length:#x}, PT;@P0 BRA 2;EXIT"
    )
    assert int(registers.word("R2").max()) == min(length, guarded)
    assert sum(segment.count for segment in trace if segment.is_loop) == length


def looped(place):
    """Follow 9,000 iterations that load from shared memory: k is in R0, the place in R4."""
    return traced(
        f"MOV R0, RZ;{place};SHF.L.U32 R4, R4, 0x2, RZ;IADD3 R4, R4, 0x400, RZ;LDS R6, [R4];"
        "IADD3 R0, R0, 0x1, RZ;ISETP.LT.AND P0, PT, R0, 0x2328, PT;@P0 BRA 1;EXIT",
        shared_bytes=36_000,
    )[0]


def test_addresses_in_a_loop_move_as_its_segments_say():
    bits = "LOP3.LUT R5, R0, 0xf, RZ, 0xc0, !PT"  # of k, in no address
    (loop,) = (segment for segment in looped(f"{bits};MOV R4, R0") if segment.is_loop)
    assert (loop.count, [move for step, move in loop.moves() if step.one.is_access]) == (9000, [4])
    for bent in "LOP3.LUT R4, R0, 0xf, RZ, 0xc0, !PT", "SHF.R.U32.HI R4, RZ, 0x3, R0":
        with pytest.raises(NotTimed, match="a loop whose addresses don't grow evenly"):
            looped(bent)


def test_blocks_whose_addresses_dont_grow_evenly_are_refused():
    """A block's first row is the square of its number."""
    arrays = matrices((64, 160), (64, 512), (160, 512))
    code = stored_code.find(as_written, arrays)
    changed = code.text.replace("IMAD.WIDE R2, R5, UR4, R2", "IMAD.WIDE R2, R5, R5, R2")
    assert changed != code.text
    launched = launch_of(as_written, (8, 5), (8, 4), arrays)
    with pytest.raises(NotTimed, match=r"line \d+ .*don't grow evenly along the grid"):
        report_on(simulate_code(SassCode(96, 0, changed), launched))


@pytest.mark.parametrize(
    "shapes",
    [
        ((64, 512), (128, 512), (512, 512)),
        ((66, 512), (30, 512), (512, 512)),
    ],
    ids=["another k", "other ks"],
)
def test_arrays_that_have_not_the_sizes_of_a_product_are_refused(shapes):
    """The kernel's loop has the length of A; B and C have other sizes."""
    reasons = "outside its array|in a product of matrices of these|elements of two arrays"
    with pytest.raises(ValueError, match=reasons):
        ck.today.simulate(as_written, (8, 16), (8, 4), *matrices(*shapes))


@pytest.mark.parametrize(
    "strange", ["text", None, np.zeros((8, 8), np.int32), np.zeros((8, 16)).T, np.float32(1)]
)
def test_arguments_of_other_kinds_are_refused(strange):
    with pytest.raises(TypeError, match=r"pass arrays of float32 or float64 in C order, and num"):
        launch_of(as_written, 1, 32, (strange, *matrices((8, 8), (8, 8))))


@pytest.mark.parametrize(("across", "down"), [(8, 4), (16, 2), (5, 3)])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 130])
def test_loads_are_where_the_source_has_them(across, down, length):
    shapes = (length, 8 * down * 3), (length, 8 * across * 2), (8 * down * 3, 8 * across * 2)
    arrays = matrices(*shapes)
    launch = launch_of(as_written, (2, 3), (across, down), arrays)
    code = stored_code.find(as_written, arrays)
    trace = Tracer(code, launch, np.array([(1, 2, 0)])).run()
    rows = 8 * (2 * down + np.repeat(np.arange(down), across))
    columns = 8 * (across + np.tile(np.arange(across), down))
    first = next(step for step, _ in steps_of(trace) if step.one.is_load)
    begin = launch.bounds[first.array][0]
    starts = (rows if first.array == 0 else columns) * 4
    width = shapes[first.array][1] * 4
    offsets = first.value[first.on] - begin - starts
    assert set(offsets % width) <= set(range(0, 32, 4))
    assert sum(n for step, n in steps_of(trace) if step.one.name == "FFMA") == 64 * length
    stores = sum(n for step, n in steps_of(trace) if step.one.name == "STG")
    assert stores == 64


def simulated(grid, threads, m, n, k):
    arrays = matrices((k, m), (k, n), (m, n))
    return ck.today.simulate(as_written, grid, threads, *arrays)


def test_a_report_counts_the_products_and_states_what_the_compiler_does():
    report = simulated((8, 16), (8, 4), 512, 512, 512)
    assert report.flops == 2 * 512**3
    assert report.registers == 96
    assert occupancy(96, 32, 0) == (20, "registers")
    assert "up to 20 at once, limited by registers" in str(report)
    costs = str(ck.line_costs(report))
    assert "block[i, j] += a[k, 8 * y + i] * b[k, 8 * x + j]" in costs
    with pytest.raises(TypeError, match="what_if takes a report"):
        ck.what_if(report)


def test_a_grid_that_doesnt_cover_c_is_refused():
    with pytest.raises(NotTimed, match="stores 50 % of c: its grid or block is too small"):
        simulated((4, 16), (8, 4), 512, 512, 64)


def test_a_thread_outside_an_array_is_refused():
    with pytest.raises(ValueError, match=r"line \d+ of as_written.* outside its array: guard it"):
        simulated((9, 16), (8, 4), 512, 512, 64)


def test_own_code_without_tools_is_refused_with_the_command(monkeypatch):
    monkeypatch.setattr(cuda_compile, "which", lambda name: None)
    monkeypatch.setattr(cuda_compile.sys, "path", [])
    with pytest.raises(cuda_compile.NoTools, match=r"pip install 'cypresskit\[cuda\]'"):
        ck.today.simulate(lambda a, b, c: 0, 4, 32, *matrices((8, 96), (8, 640), (96, 640)))


def test_stored_code_is_found_by_the_source_not_the_name():
    arrays = matrices((8, 8), (8, 8), (8, 8))

    def mine(a, b, c):
        x, y = cuda.grid(2)  # noqa: F821
        block = cuda.local.array((8, 8), np.float32)  # noqa: F821
        for i in range(8):
            for j in range(8):
                block[i, j] = 0  # a comment
        for k in range(a.shape[0]):
            pass  # noqa: PIE790 -- as lesson 14 gives it

            for i in range(8):
                for j in range(8):
                    block[i, j] += a[k, 8 * y + i] * b[k, 8 * x + j]
        # the block to c
        for i in range(8):
            for j in range(8):
                c[8 * y + i, 8 * x + j] = block[i, j]

    found = stored_code.find(mine, arrays)
    assert found is not None and found.registers == 96
    source, first = inspect.getsourcelines(mine)
    written = {(one.name, source[one.line - first].strip()) for one in found.instructions}
    assert {text for name, text in written if name == "FFMA"} == {
        "block[i, j] += a[k, 8 * y + i] * b[k, 8 * x + j]"
    }
    assert {text for name, text in written if name.startswith("STG")} == {
        "c[8 * y + i, 8 * x + j] = block[i, j]"
    }
    assert stored_code.find(mine, matrices(*[(8, 8)] * 3, dtype="float64")) is None


def test_a_listing_is_read():
    listing = """.text.k:
\t//## File "k.py", line 7
        /*0000*/                   S2R R0, SR_TID.X ;   /* 0x0000000000007919 */
                                                        /* 0x000e220000002100 */
.L_x_1:
        /*0010*/              @!P0 BRA `(.L_x_1) ;      /* 0x0000000c00bc8947 */
                                                        /* 0x001fea0003800000 */
"""
    first, second = SassCode(8, 0, read_listing(listing)).instructions
    assert (first.name, first.line, first.sets, first.stall) == ("S2R", 7, 0, 1)
    assert (second.target, second.waits, second.conditions) == (1, 1, ["!P0"])


@pytest.mark.parametrize(
    ("text", "results", "sources"),
    [
        ("LDS.64 R22, [R49+0x100]", "R22 R23", "R49 0x100"),
        ("IMAD.WIDE.U32 R8, P2, R2, 0x66, R6", "R8 R9 P2", "R2 0x66 R6 R7"),
        ("LOP3.LUT P0, RZ, R0, 0x1, RZ, 0xc0, !PT", "RZ P0", "R0 0x1 RZ 0xc0 !PT"),
        ("PLOP3.LUT P0, PT, PT, PT, UP1, 0x80, 0x0", "P0 PT", "PT PT UP1 0x80 0x0"),
        ("ULDC.64 UR4, c[0x0][0x210]", "UR4 UR5", "c132 c133"),
    ],
)
def test_an_instruction_writes_its_results_and_reads_the_rest(text, results, sources):
    (one,) = SassCode(8, 0, f"1 {CONTROL} {text}").instructions
    assert one.results == results.split()
    assert one.sources == sources.split()


def test_the_docs_have_the_errors_of_the_record():
    docs = Path(__file__).parents[1] / "docs/current_gpu.md"
    text = docs.read_text(encoding="utf-8")
    for name, modeled, measured in ck.today.clock_errors():
        off = round(100 * (modeled / measured - 1))
        shown = f"{off:+d} %" if off else "0 %"
        assert f"| {name} | {modeled:,.0f} | {measured:,.0f} | {shown} |" in text
