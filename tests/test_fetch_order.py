"""What a kernel's own order of fetches costs: told by the same compiler, of the same kernel with its reads gathered."""

import numpy as np
import pytest
from conftest import TEXTURE, pixel

import cypresskit as ck
from cypresskit.compiler.fetch_order import fetch_order, gathered

HEAD = [TEXTURE.format(0, "2d,unnorm"), TEXTURE.format(1, "2d,unnorm"), "dcl_cb cb0[1]", "dcl_literal l0, 0, 0, 0, 0",
        "dcl_literal l1, 1.0, 1.0, 1.0, 1.0", "mov r9, l0", "mov r0, l0", "mov r0.xy, vWinCoord0.xy"]  # fmt: skip
STEP = ["ge r1.x, r0.z, cb0[0].x", "break_logicalnz r1.x", "sample_resource(0)_sampler(0) r2, r0.xz",
        "sample_resource(1)_sampler(1) r3, r0.yz", "mad r9, r2, r3, r9", "add r0.z, r0.z, l1.x"]  # fmt: skip


def kernel(*steps: list[str]) -> ck.Program:
    """Sums products of texels; as many steps a turn, each with its own break."""
    return pixel(*HEAD, "whileloop", *(line for step in steps for line in step), "endloop", "mov o0, r9")


def sums(program: ck.Program, engine: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    a, b = (rng.random((12, 8, 4), np.float32) for _ in range(2))
    found = np.zeros((8, 8, 4), np.float32)
    ck.launch(program, (8, 8), inputs={0: a, 1: b}, constants={0: [11.0]}, outputs={0: found}, engine=engine)
    return found


@pytest.mark.parametrize("engine", ["fast", "explain"])
def test_the_gathered_kernel_computes_the_same_of_textures(engine):
    program = kernel(STEP, STEP, STEP)
    together, moves = gathered(program)
    assert len(moves) == 4 and {behind for _, behind in moves} == {moves[0][1]}
    assert np.array_equal(sums(together, engine), sums(program, engine))


@pytest.mark.parametrize("name", ["dgemm_tn_buffer", "sgemm_64x64_lds", "sgemm_nn_reduce2", "ddgemm_tn_fma"])
def test_kernels_of_the_catalogue_do_so_too(name):
    of, rng = ck.kernels[name], np.random.default_rng(2)
    shapes = of.stored(*of.padded(*of.multiple, 2 * of.k_step))
    pair = (2,) if of.precision == "double-double" else ()
    a, b = (rng.integers(-3, 4, (*shape, *pair)).astype(of.dtype) for shape in shapes)
    results = []
    for program in (of.program, gathered(of.program)[0]):
        arguments = of.arguments(a, b, None, 1, 0)
        ck.launch(program, **arguments)
        results.append(of.result(arguments, *of.multiple))
    assert np.array_equal(*results) and results[0].any()


def test_breaks_between_fetches_cost_clauses_which_the_line_to_move_joins():
    program = kernel(STEP, STEP)
    order = fetch_order(ck.compile(program))
    assert order.turn[:2] == (2, 0) and order.together is not None
    lines = [program.lines[line - 1] for move in order.moves for line in move]
    assert lines == [STEP[2], STEP[3], STEP[3], STEP[3]]
    line, behind = order.moves[0]
    told = (
        f"fetch line {line}'s texel behind line {behind}, into a register of its own, with its address computed there"
    )
    assert f"{told} (and 1 more line so): 1 clause instead of 2; a turn takes" in str(order)
    assert order.as_dict()["together"]["clauses"] == 1 and order.as_dict()["moves"][0] == [line, behind]
    shape = ck.Shape(program, (8, 8), {0: (64, 256), 1: (64, 256)}, {0: [200.0]})
    own = ck.simulate(program, launch=shape).clocks
    launch = ck.Shape(order.together.program, (8, 8), shape.textures, shape.constants)
    assert ck.simulate(order.together, launch=launch).clocks < 0.75 * own


def test_one_clause_costs_nothing():
    order = fetch_order(ck.compile(kernel(STEP)))
    assert order.together is None and "1 clause in a turn, 0 of one fetch; no line is known to move" in str(order)


@pytest.mark.parametrize("between", ["mov r0.xy, r2.xy", "fence_memory", "if_logicalnz r2.x\nmov r5, r2\nendif"])
def test_what_may_not_be_passed_is_not(between):  # in the first case the address comes from the first read
    fetch = "sample_resource(0)_sampler(0) {}, r0.xy"
    program = pixel(*HEAD, fetch.format("r2"), "add r4, r2, r2", between, fetch.format("r3"), "add o0, r3, r4")
    assert gathered(program)[1] == ()


def test_reads_of_global_memory_pass_no_store():
    lines = ["mov r2, g[0]", "add r4, r2, r2", "mov g[1], r4", "mov r3, g[1]", "add r5, r3, r3", "mov g[2], r5"]
    assert gathered(pixel(*lines))[1] == ()
    assert len(gathered(pixel(*lines[:2], *lines[3:]))[1]) == 1


def test_a_read_of_global_memory_that_moved_over_a_break_is_speculative():
    step = ["ige r1.x, r0.x, l2.x", "break_logicalnz r1.x"]
    step += ["mov r2, g[r0.x]", "add r9, r9, r2", "iadd r0.x, r0.x, l2.y"]
    head = ["dcl_literal l2, 5, 1, 0, 0", "mov r0, l2.zzzz", "mov r9, l2.zzzz"]
    program = pixel(*head, "whileloop", *step, *step, "endloop", "mov o0, r9")
    arrays = {"outputs": {0: np.zeros((1, 1, 4), np.float32)}, "global_memory": np.ones((5, 4), np.float32)}
    assert "'s element behind line" in str(fetch_order(ck.compile(program)))
    assert str(ck.check(program, (1, 1), **arrays)) == "Nothing found."
    assert "loads g[5] (element 5, but" in str(ck.check(gathered(program)[0], (1, 1), **arrays))
