"""Launching IL: one suite, run on both engines."""

import re
import tomllib
from functools import partial

import numpy as np
import pytest
from forbidden import forbid
from kernel_texts import TEXTURE, compute, pixel
from repository import ROOT
from sampling import drawn_by_day, from_rows, seeded

import cypresskit as ck
from cypresskit.machine.launch import MAX_INSTRUCTIONS

pytestmark = pytest.mark.usefixtures("guard_pages")
ENGINES = pytest.mark.parametrize("engine", ["interpreter", "compiled"])
ONE = 0x3F800000


def output(program, domain, engine, dtype=np.float32, **arguments):
    """What o0 holds after the run, shape (height, width, 4)."""
    out = np.full((domain[1], domain[0], 4), 77, dtype)
    ck.launch(program, domain, outputs={0: out}, engine=engine, **arguments)
    return out


@ENGINES
@from_rows
def test_odd_domains_run_every_work_item_once(engine, domain):
    out = np.full((domain[1], domain[0], 4), 77, np.float32)
    run = ck.launch(pixel("mov o0.x_zw, vWinCoord0.xxyw"), domain, outputs={0: out}, engine=engine)
    y, x = np.mgrid[: domain[1], : domain[0]]
    assert np.array_equal(out, np.stack([x + 0.5, 77 + 0 * x, y + 0.5, 1 + 0 * x], axis=2)), (
        "y is kept"
    )
    assert run.executed.tolist() == [domain[0] * domain[1]]


@ENGINES
def test_flat_compute_ids_fill_every_component(engine):
    program = compute(
        """
            mov r0.x, vThreadGrpIdFlat.y
            mov r0.y, vTidInGrpFlat.w
            mov r0.zw, vaTid.z
            mov g[vaTid.x], r0
        """
    )
    memory = np.zeros((128, 4), np.uint32)
    ck.launch(program, 128, global_memory=memory, engine=engine)
    flat = np.arange(128)
    assert np.array_equal(memory, np.stack([flat // 64, flat % 64, flat, flat], 1))


TEXELS = [
    (n, kind) for kind in (np.float32, np.uint32) for n in (1, 2, 4) if n * kind().itemsize <= 16
]


@ENGINES
@pytest.mark.parametrize(("components", "dtype"), TEXELS)
def test_textures_of_every_size_fill_what_they_lack_with_0_0_1(engine, components, dtype):
    rng = np.random.default_rng(1)
    texture = rng.integers(1, 99, (3, 5, components)).astype(dtype)
    program = pixel(
        TEXTURE.format(0), "sample_resource(0)_sampler(0) r0, vWinCoord0.xy", "mov o0, r0"
    )
    got = output(program, (5, 3), engine, np.uint32, inputs={0: texture})
    words = texture.view(np.uint32).reshape(3, 5, -1)
    want = np.zeros((3, 5, 4), np.uint32)
    want[..., : words.shape[2]] = words
    if dtype == np.float32 and components < 4:
        want[..., 3] = ONE
    assert np.array_equal(got, want)


@ENGINES
def test_fetches_outside_give_zero_and_are_counted(engine):
    texture = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    program = pixel(
        TEXTURE.format(0),
        "sample_resource(0)_sampler(0)_aoffimmi(-1,-2,0) r1, vWinCoord0.xy",
        "mov o0, r1",
    )
    out = np.zeros((4, 6, 4), np.float32)
    run = ck.launch(program, (6, 4), inputs={0: texture}, outputs={0: out}, engine=engine)
    want = np.zeros((4, 6), np.float32)
    want[2:, 1:5] = texture
    assert np.array_equal(out[..., 0], want)
    assert (run.fetch_bytes, run.out_of_range) == (24 * 4, 16)


@ENGINES
def test_instructions_are_counted_for_active_work_items_only(engine):
    program = pixel(
        """
            dcl_literal l0, 2.0, 0, 0, 0
            lt r0.x, vWinCoord0.x, l0.x
            if_logicalnz r0.x
            mad r1, r1, r1, r1
            else
            add r1.xy, r1, r1
            endif
            mov o0, r1
        """
    )
    run = ck.launch(program, (6, 4), outputs={0: np.zeros((4, 6, 4), np.float32)}, engine=engine)
    assert run.executed.tolist() == [24, 24, 8, 0, 16, 0, 24]


@ENGINES
def test_lds_loads_outside_give_zero_and_are_counted(engine):
    loads = [
        "lds_load_id(0) r0, l0.x",
        "lds_load_id(0) r1, l0.y",
        "ior r0, r0, r1",
        "mov g[vaTid.x], r0",
    ]
    load = compute("dcl_lds_id(0) 64", "dcl_literal l0, 64, -4, 0, 0", *loads)
    memory = np.ones((64, 4), np.uint32)
    run = ck.launch(load, 64, global_memory=memory, engine=engine)
    assert not memory.any()
    assert run.out_of_range == 128


@ENGINES
def test_global_reads_outside_give_zero_and_are_counted(engine):
    program = compute(
        """
            dcl_literal l0, -2, 0, 0, 0
            iadd r0.x, vaTid.x, l0.x
            mov r1, g[r0.x]
            mov g[vaTid.x+64], r1
        """
    )
    memory = np.arange(128 * 4, dtype=np.uint32).reshape(128, 4)
    before = memory.copy()
    run = ck.launch(program, 64, global_memory=memory, engine=engine)
    assert not memory[64:66].any()
    assert np.array_equal(memory[66:], before[:62])
    assert run.out_of_range == 2


INNER = "\n".join(
    ["whileloop", "break_logicalnz r2.x", "mov r2.x, l0.x", *["iadd r1, r1, l0.x"] * 20, "endloop"]
)
FAILING = tomllib.loads((ROOT / "tests/cases/failing_launches.toml").read_text())["failing"]


@ENGINES
@pytest.mark.parametrize("case", FAILING, ids=lambda case: case["says"])
def test_reports_line_and_work_item_of_a_failing_launch(engine, case):
    before = case["kernel"].splitlines()[: case["line"]]
    lines = case["kernel"].replace("INNER", INNER).splitlines()
    number = 3 + len("\n".join(before).replace("INNER", INNER).splitlines())
    program = compute("dcl_lds_id(0) 64", "dcl_literal l0, 1, 0, 3, 1000", *lines)
    written = re.escape(before[-1].strip())
    memory = np.full((11, 4), 9, np.int32)
    with pytest.raises(
        ck.KernelError, match=f"(?s)^test.il:{number}: {written}.*{case['says']}"
    ) as caught:
        ck.launch(program, 128, global_memory=memory, engine=engine, max_instructions=10_000)
    assert caught.value.line == number
    assert caught.value.work_item == case.get("work_item")
    assert (memory == 9).all()


@ENGINES
@seeded(2)
def test_an_error_leaves_arrays_unchanged_and_says_so(engine, seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        size, items = int(rng.integers(1, 64)), int(rng.integers(65, 300))
        memory = np.full((size, 4), 9, np.int32)
        out = np.full((1, items), 7.0, np.float32)
        stores = ["mov o0, vWinCoord0.x", "ftoi r0.x, vWinCoord0.x", "mov g[r0.x], r0"]
        with pytest.raises(ck.KernelError) as caught:
            ck.launch(
                pixel(*stores), (items, 1), outputs={0: out}, global_memory=memory, engine=engine
            )
        assert (memory == 9).all() and (out == 7).all()
        assert "No array was changed." in str(caught.value)


COUNTS = (
    "mov r0, l0.z",
    "whileloop",
    "ige r0.y, r0.x, l0.y",
    "break_logicalnz r0.y",
    "iadd r0.x, r0.x, l0.x",
    "endloop",
    "mov o0, r0.x",
)


@ENGINES
@pytest.mark.parametrize("most", [1, 130, 1_999_999, None])
@drawn_by_day(("width", "height"), [(1, 1), (8, 8), (11, 9)], 1)
def test_one_limit_ends_a_loop_in_both_engines(engine, width, height, most):
    for iterations in (20, 32, 33, 60, 60_000 if most is None else 61):
        program = pixel(f"dcl_literal l0, 1, {iterations}, 0, 0", *COUNTS)
        out = np.zeros((height, width), np.int32)
        run = partial(ck.launch, program, (width, height), outputs={0: out}, max_instructions=most)
        # 4 instructions per iteration; the last ends at the break
        if 1 + 4 * iterations > (most or MAX_INSTRUCTIONS):
            with pytest.raises(ck.KernelError, match="has not ended after"):
                run(engine=engine)
        else:
            run(engine=engine)
            assert (out == iterations).all()


@ENGINES
@from_rows
def test_a_kernel_without_instructions_changes_nothing(engine, text):
    program = ck.assemble(text)
    out = np.full((8, 8, 4), 7, np.float32)
    domain = (8, 8) if program.mode == "pixel" else 64
    given = {"outputs": {0: out}} if "o0" in text else {}
    counts = ck.launch(program, domain, **given, engine=engine)
    assert not counts.executed.any()
    assert (out == 7).all()
    assert not ck.check(program, domain, **given)


@ENGINES
def test_strided_arrays_are_read_and_written_in_place(engine):
    texture = np.arange(24, dtype=np.float32).reshape(4, 6)[::-1, ::2]
    memory = np.zeros((4, 8), np.float32)[:, ::2]
    program = pixel(
        TEXTURE.format(0),
        "sample_resource(0)_sampler(0) r0, vWinCoord0.xy",
        "ftoi r1, vWinCoord0",
        "mov g[r1.y], r0",
    )
    ck.launch(program, (1, 4), inputs={0: texture}, global_memory=memory, engine=engine)
    assert np.array_equal(memory[:, 0], texture[:, 0])


@ENGINES
@pytest.mark.parametrize("offset", [1, 4, 8, 16])
def test_memory_may_begin_at_any_address(engine, offset):
    memory = np.zeros(1040, np.uint8)[offset : offset + 1024].view(np.float32)
    memory[:] = range(256)
    lines = ["mov r0, g[vaTid0.x]", "add r0, r0, r0", "mov g[vaTid0.x], r0"]
    program = compute("dcl_num_thread_per_group 64", *lines)
    ck.launch(program, 64, global_memory=memory, engine=engine)
    assert memory.tolist() == [2.0 * n for n in range(256)]


@pytest.mark.parametrize(
    "memory", [np.broadcast_to(np.ones(4, np.float32), (4, 4)), np.ones(16, np.float32)]
)
def test_memory_that_cannot_be_written_is_refused_before_the_run(memory, monkeypatch):
    memory.flags.writeable = False
    monkeypatch.setattr("cypresskit.machine.compiled.run", forbid("run"))
    with pytest.raises(ValueError, match="global_memory is read-only"):
        ck.launch(pixel("mov g[0], vWinCoord0"), (1, 1), global_memory=memory)


@ENGINES
def test_an_empty_domain_does_nothing(engine):
    program = pixel("mov g[0], vWinCoord0", "mov o0, vWinCoord0")
    memory, out = np.zeros(4, np.float32), np.zeros((4, 0, 4), np.float32)
    arguments = {"global_memory": memory, "outputs": {0: out}}
    run = ck.launch(program, (0, 4), engine=engine, **arguments)
    assert not run.executed.any() and not memory.any()


@ENGINES
@seeded(2)
def test_rejects_shared_arrays_or_reads_them_as_they_were(engine, seed):
    """Textures, output and global memory at random places of one buffer, of any strides."""
    draw = np.random.default_rng(seed)
    program = pixel(
        TEXTURE.format(0),
        """
            dcl_literal l0, 4, 1, 0, 0
            ftoi r0.xy, vWinCoord0
            imad r0.x, r0.y, l0.x, r0.x
            sample_resource(0)_sampler(0) r1, vWinCoord0.yx
            sample_resource(0)_sampler(0)_aoffimmi(1,0,0) r2, vWinCoord0.xy
            add r3, r1, r2
            mov o0, r3
            mov g[r0.x], r1
        """,
    )

    def view(buffer, place, step):
        return buffer[place : place + 64 * step : step].reshape(4, 4, 4)

    shared = refused = 0
    for _ in range(30):
        buffer = draw.standard_normal(512).astype(np.float32)
        places = [(int(4 * draw.integers(0, 64)), int(draw.choice([1, 1, 1, 2, 3]))) for _ in "abc"]
        texture, out, memory = (view(buffer, *place) for place in places)
        before = texture.copy()
        arguments = {"inputs": {0: texture}, "outputs": {0: out}, "global_memory": memory}
        launch = partial(ck.launch, program, (4, 4), engine=engine)
        if np.shares_memory(out, memory):
            refused += 1
            with pytest.raises(ValueError, match="one of two results would be lost"):
                launch(**arguments)
            continue
        shared += np.shares_memory(texture, out) or np.shares_memory(texture, memory)
        launch(**arguments)
        across = before.transpose(1, 0, 2)
        beside = np.concatenate([before[:, 1:], np.zeros((4, 1, 4), np.float32)], axis=1)
        assert np.array_equal(out, across + beside) and np.array_equal(memory, across)
    assert shared and refused
