"""The compiled engine: the interpreter's bits and counts on any program, however it is compiled
and run.
"""

import _thread
import platform
import random
import threading
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from forbidden import forbid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_files import programs
from kernel_texts import TEXTURE, compute, pixel
from repository import ROOT
from sampling import drawn_by_day, seeded

import cypresskit as ck
from cypresskit.il.meaning import MEANING
from cypresskit.machine import prepare
from cypresskit.machine.compiled import execute, jit
from cypresskit.machine.compiled.native_meaning import NATIVE
from cypresskit.machine.compiled.processor import HostProcessor, this_host
from cypresskit.machine.compiled.translate import translate
from tools.fuzz.engines import agree
from tools.fuzz.programs import random_program

PROGRAMS = ROOT / "tests/programs"
pytestmark = pytest.mark.usefixtures("guard_pages")


def examples(count):
    return settings(max_examples=count, suppress_health_check=list(HealthCheck))


def random_case(seed, statements):
    text, arguments = random_program(random.Random(seed), statements=statements)
    return ck.assemble(text, "random.il"), arguments


#: Those that this computer's processor can be told to be.
HOSTS = ["portable"]
if platform.machine().lower() in ("x86_64", "amd64"):
    HOSTS += ["x86-64", "sandybridge", "haswell", "x86-64-v3"]


@contextmanager
def on_host(name):
    """What is compiled meanwhile is for LLVM's processor ``name``, or this one without a flush mode
    ("portable").
    """
    here = this_host()
    portable = replace(here, mode="soft")
    host = portable if name == "portable" else HostProcessor(name, "", here.mode)
    with patch.object(execute, "this_host", lambda: host):
        yield


@examples(5)
@given(st.integers(0, 10**9), st.sampled_from(HOSTS))
def test_random_programs_on_other_hosts(seed, host):
    """Without the host's flush mode, and on x86 without AVX-512, fused multiply-add, or AVX."""
    with on_host(host):
        agree(*random_case(seed, 25))


@pytest.mark.parametrize("host", HOSTS)
def test_sums_beside_the_middle_of_two_floats_are_rounded_once(host):
    """(2^23 + 1)(2^23 - 1) lies just below 2^46, 8384513 * 8392705 just above: doubles near 2^70
    can't tell. So it is with the last two products and 2^-126: one sum is flushed, the other
    isn't.
    """
    program = pixel(
        *(TEXTURE.format(n) for n in range(3)),
        "dcl_literal l0, 1.0, 3.0, 0.0, 0.0",
        *(f"sample_resource({n})_sampler({n}) r{n + 1}, vWinCoord0.xy" for n in range(3)),
        """
            mad o0, r1, r2, r3
            mad r4.x, r1.y, r2.y, r3.y
            mov o1, r4.x
            whileloop
            ge r0.y, r0.z, l0.y
            break_logicalnz r0.y
            mad r3, r1, r2, r3
            add r0.z, r0.z, l0.x
            endloop
            mov o2, r3
        """,
    )
    draw = np.random.default_rng(3)
    which = draw.integers(0, 6, (4, 9, 4))
    small = (
        2.0**-75 * np.array([1 + 2.0**-15, 1 + 2.0**-12]),
        2.0**-76 * np.array([1 - 2.0**-15, 1 - 2.0**-12 + 2.0**-24]),
    )
    large = [8388609, 8384513, 8388608, 3], [8388607, 8392705, 8388608, 5]
    a, b = (np.concatenate(factors)[which] for factors in zip(large, small))
    c = np.where(which < 4, np.ldexp(2.0**23 + draw.integers(0, 2, which.shape), 47), 2.0**-126)
    c *= draw.choice([-1, 1], which.shape)
    inputs = {
        n: x.astype(np.float32) for n, x in enumerate((a * draw.choice([-1, 1], which.shape), b, c))
    }
    with on_host(host):
        outputs = {n: np.zeros((4, 9, 4), np.float32) for n in range(3)}
        agree(program, {"domain": (9, 4), "inputs": inputs, "outputs": outputs})


@seeded(4)
def test_every_iterations_store_is_carried_out(seed):
    """In loops that only store, to places that other work-items store to in other iterations."""
    draw = random.Random(seed)
    store = ["mov g[r2.x], r3", "lds_store_vec_id(0) mem, r2.y, r2.y, r3"][seed % 2]
    steps = [f"imad r2.x, r1.x, l1.{draw.choice('xyz')}, r0.x" for _ in range(1 + seed // 2 % 2)]
    program = compute(
        """
            dcl_num_thread_per_group 64
            dcl_lds_id(0) 4096
            dcl_literal l0, 0, 1, 5, 4
            dcl_literal l1, 1, 2, 3, 0
            mov r0, l0.x
            mov r1, vTidInGrpFlat
            whileloop
            ige r2.x, r0.x, l0.z
            break_logicalnz r2.x
            imad r3, r1, l0.z, r0.x
        """,
        *(f"{step}\nishl r2.y, r2.x, l0.w\n{store}" for step in steps),
        """
            iadd r0.x, r0.x, l0.y
            endloop
            ishl r2.y, r1.x, l0.w
            lds_load_vec_id(0) r3, r2.y, r2.y
            mov g[r1.x+256], r3
        """,
    )
    agree(program, {"domain": 64, "global_memory": np.zeros((320, 4), np.uint32)})


@pytest.mark.parametrize("doubles", [False, True])
@pytest.mark.parametrize("step", [1, 2, 4])
def test_lanes_that_read_rows_of_texels_side_by_side_or_not(step, doubles):
    """Aligned or not, in the texture or beyond its edges; the same texture is also read by all
    lanes at one place, and by fetches that aren't of neighbors.
    """
    add = "dadd r1.xy, r1.xy, {0}.xy; dadd r1.zw, r1.zw, {0}.zw" if doubles else "add r1, r1, {0}"
    for aside in (0, 1, -2 * step):
        places = [*((n, 0) for n in range(step)), (0, 1), (0, 1), (3, 1), (3, 1), (0, 2), (3, 2)]
        fetches = [
            f"sample_resource(0)_sampler(0)_aoffimmi({x},{y},0) r{n + 2}, r0.xz"
            for n, (x, y) in enumerate(places)
        ]
        program = pixel(
            TEXTURE.format(0),
            f"""
                dcl_literal l0, 1.0, 4.5, {step}.0, {aside - step / 2}
                mov r0, l0.wwww_neg(xyzw)
                mad r0.x, vWinCoord0.x, l0.z, l0.w
                whileloop
                ge r0.y, r0.z, l0.y
                break_logicalnz r0.y
            """,
            *fetches,
            f"sample_resource(0)_sampler(0) r{len(places) + 2}, r0.zz",
            *(line for n in range(len(places) + 1) for line in add.format(f"r{n + 2}").split("; ")),
            "add r0.z, r0.z, l0.x",
            "endloop",
            "mov o0, r1",
        )
        words = np.random.default_rng(step).standard_normal((6, 13 * step, 2)).view(np.float32)
        arguments = {
            "domain": (19, 3),
            "inputs": {0: words},
            "outputs": {0: np.zeros((3, 19, 4), np.float32)},
        }
        agree(program, arguments)


@drawn_by_day("path", sorted(PROGRAMS.iterdir()), 8, ids=lambda path: path.stem)
def test_programs_of_files_match_on_all_engines(path):
    for text, arguments in programs(path):
        agree(ck.assemble(text, path.name), arguments)


def test_work_items_that_part_between_loads_and_stores_need_a_small_domain():
    program = compute(
        """
            dcl_literal l0, 1, 3, 0, 0
            iand r0, vaTid, l0.y
            whileloop
            break_logicalz r0.x
            mov r1, g[r0.x]
            mov g[r0.x], r1
            isub r0.x, r0.x, l0.x
            endloop
        """
    )
    memory = np.ones((4, 4), np.float32)
    assert execute.run(prepare(program, 64, global_memory=memory)) is None, "it declines"
    ck.launch(program, 64, global_memory=memory)
    with pytest.raises(ValueError, match="load before they diverge, and store after"):
        ck.launch(program, 64 << 18, global_memory=memory)


def test_a_store_of_neighbors_of_which_some_lie_outside():
    program = compute(
        """
            dcl_lds_id(0) 1016
            dcl_literal l0, 4, 0, 0, 0
            ishl r0.x, vTidInGrpFlat.x, l0.x
            lds_store_vec_id(0) mem, r0.x, r0.x, r0
            mov g[vaTid.x], r0
        """
    )
    with pytest.raises(ck.KernelError, match="to byte 1008 of LDS 0, which has 1016"):
        ck.launch(program, 64, global_memory=np.zeros((64, 4), np.uint32))


# Errors and interruption


def test_reports_the_first_failing_store_in_any_order_of_units():
    program = pixel(
        """
            ftoi r0.xy, vWinCoord0
            dcl_literal l0, 5, 1, 0, 0
            mul r1, r0, r0
            mov g[r0.x], r0
            imad r0.z, r0.y, l0.x, r0.x
            mov g[r0.z], r0
        """
    )
    arguments = {"domain": (8, 9), "global_memory": np.zeros((7, 4), np.uint32)}
    for engine in ("interpreter", "compiled"):
        with pytest.raises(ck.KernelError) as caught:
            ck.launch(program, **arguments, engine=engine)
        assert caught.value.work_item == (7, 0) and "g[r0.x]" in str(caught.value)


def test_an_interrupt_reaches_the_caller_and_stops_the_kernel():
    many = ["rcp r0.x, r0.x"] * 40  # takes seconds, and has no loop
    program = pixel("mov r0, vWinCoord0", *many, "mov g[0], r0")
    execute.compiled(program, this_host())
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ck.launch(program, (16384, 16384), global_memory=np.zeros((1, 4), np.uint32))
    timer.join()
    agree(*random_case(1, 20))


def test_an_interrupt_stops_the_timing():
    ck.simulate("dgemm_nn", 64)  # compiled before
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ck.simulate("dgemm_nn", 4096, exact=True)
    timer.join()


def test_the_hosts_flush_mode_comes_back():
    ck.launch(pixel("add r0, vWinCoord0, vWinCoord0"), (2, 2))
    assert np.float32(1e-40) * np.float32(1) != 0


# Compiled kernels


def test_an_equal_program_is_compiled_once(monkeypatch):
    text = "il_ps_2_0\nmul r0, vWinCoord0, vWinCoord0\nadd r0, r0, r0\nend\n"
    ck.launch(ck.assemble(text, "one.il"), (2, 2))
    monkeypatch.setattr(jit, "machine_code", forbid("compile again"))
    ck.launch(ck.assemble(text, "another.il"), (3, 2))


@pytest.fixture
def code_files(tmp_path, monkeypatch):
    """A function that returns the files of machine code on disk, which are in use."""
    monkeypatch.setenv("CYPRESSKIT_KEEP", "1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    yield lambda: sorted(tmp_path.rglob("kernel-*.bin"))
    jit.compiled.cache_clear()


def checked_anew(cases):
    """Forget the machine code in memory, and compare all engines."""
    jit.compiled.cache_clear()
    for case in cases:
        agree(*case)


@seeded(1)
def test_machine_code_comes_from_disk(seed, code_files, monkeypatch):
    """The same bits and counts, and nothing is optimized again; unless files are damaged."""
    cases = [random_case(f"{seed} {n}", 25) for n in range(4)]
    checked_anew(cases)
    files = code_files()
    assert len(files) == len(cases)
    with monkeypatch.context() as patch:
        patch.setattr(jit, "optimized", forbid("optimize again"))
        checked_anew(cases)
    whole = {file: file.read_bytes() for file in files}
    for (file, data), other in zip(whole.items(), reversed(whole.values())):
        cut = random.randrange(len(data))
        file.write_bytes(random.choice([data[:cut], other, b"", data[:cut] + data[cut + 1 :]]))
    checked_anew(cases)
    assert {file: file.read_bytes() for file in code_files()} == whole


def test_machine_code_is_of_one_text_processor_and_llvm(code_files, monkeypatch):
    import llvmlite

    def count(text, host):
        jit.machine_code(text, host)
        return len(code_files())

    here = this_host()
    text = translate(random_case(1, 5)[0], here).text
    assert count(text, here) == 1
    assert count(text + "\n", here) == 2
    assert count(text, replace(here, features="")) == 3
    assert count(text, replace(here, name="generic")) == 4
    monkeypatch.setattr(llvmlite, "__version__", "0.1")
    assert count(text, here) == 5
    monkeypatch.setenv("CYPRESSKIT_KEEP", "0")
    assert count(text + "\n\n", here) == 5


def test_every_opcode_has_a_native_meaning_beside_numpys():
    assert NATIVE.keys() == MEANING.keys()
