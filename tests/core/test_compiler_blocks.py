"""Scheduling by the habits of AMD's compiler, one by one, and what the catalog's counts are by
them alone.
"""

from dataclasses import replace

import pytest
from kernel_texts import TEXTURE, pixel

import cypresskit as ck
from cypresskit.compiler import compile

HEAD = (TEXTURE.format(0), "dcl_cb cb0[5]", "dcl_literal l0, 1.0, 2.0, 0.0, 4.0")


def code(body):
    return compile(pixel(*HEAD, body, "endmain"))


def clauses(controls):
    """Bundles of ALU clauses and fetches of TEX clauses, in order."""
    return [
        f"{len(c.bundles)}" if c.bundles else f"T{len(c.fetches)}"
        for c in controls
        if c.bundles or c.fetches
    ]


def test_a_test_is_alone_in_the_bundle_after_its_compare():
    for name in ("sgemm_tn", "sgemm_64x64_lds"):
        test = next(c for c in ck.compile(name).main_loop if c.name == "ALU_BREAK")
        compare, last = test.bundles
        assert [o.name for o in compare.operations] == ["SETGE_DX10"]
        assert [o.name for o in last.operations] == ["PRED_SETE_INT"] and last.operations[0].reads[
            0
        ].kind == "pv"


def test_fetches_of_a_block_are_gathered_from_anywhere_in_it():
    step = (
        "add r0.x, r0.x, l0.x\nsample_resource(0)_sampler(0) r{0}, r0.xy00\nmad r10, r{0}.x, l0.x,"
        " r10\n"
    )
    body = "mov r10, l0.z\nmov r0, vWinCoord0.xyxy\n" + "".join(step.format(n) for n in range(1, 7))
    assert "T6" in clauses(code(body + "mov o0, r10").controls)


def test_fetches_that_wait_for_fetches_come_later():
    body = (
        "sample_resource(0)_sampler(0) r1, vWinCoord0.xy00\nsample_resource(0)_sampler(0) r2,"
        " r1.xy00\nmov o0, r2"
    )
    assert clauses(code(body).controls) == ["T1", "T1"]


def test_bundles_keep_the_order_of_the_program():
    # a chain between independent operations: without looking ahead, each link closes a bundle
    body = (
        "mov r0, vWinCoord0.xyxy\nadd r1.x, r0.x, l0.y\nadd r1.y, r1.x, l0.y\nadd r2.z, r0.y, l0.y"
    )
    body += "\nadd r1.w, r1.y, r2.z\nmov r1.z, r2.z\nmov o0, r1"
    bundles = [b for c in code(body).controls for b in c.bundles]
    assert [[o.channel for o in b.operations] for b in bundles] == [[0], [1, 2], [3]]


def test_a_clause_is_filled_to_its_last_slot():
    loop = ck.compile("dgemm_tn").main_loop
    assert clauses(loop) == ["2", "T16", "32", "32", "1"]
    assert [sum(b.size for b in c.bundles) for c in loop if len(c.bundles) == 32] == [128, 128]


def test_a_word_lies_in_its_component():
    for control in ck.compile("sgemm_64x64").main_loop:
        for operation in (
            o for b in control.bundles for o in b.operations if o.name == "MULADD_IEEE"
        ):
            assert operation.dest is not None and operation.dest[1] == operation.channel


def test_a_board_s_clauses_are_as_long_as_it_allows():
    narrow = replace(ck.HD5870, tex_clause_fetches=4)
    program = ck.kernels["sgemm_tn"].program
    assert clauses(compile(program, narrow).main_loop)[1:3] == ["T4", "T4"]


@pytest.mark.parametrize("distance", range(1, 12))
def test_words_read_together_come_from_two_banks(distance):
    """Two fetched words, read by operations so far apart: those of two vectors of four may share a
    bundle.
    """
    fillers = ["add r3.x, r3.x, cb0[0].x"] * (distance - 1)
    body = [
        "sample_resource(0)_sampler(0) r1, vWinCoord0.xy00",
        "sample_resource(0)_sampler(0)_aoffimmi(1,0,0) r2, vWinCoord0.xy00",
        "add r3.x, r1.x, cb0[0].x",
        *fillers,
        "add r4.x, r2.x, cb0[0].x",
        "add r3.x, r3.x, r4.x",
        "mov o0, r3.xxxx",
    ]
    controls = code("\n".join(body)).controls
    fetches = [fetch for control in controls for fetch in control.fetches]
    first, second = (fetch.select.index("x") for fetch in fetches)
    assert (first != second) == (distance < 8)
