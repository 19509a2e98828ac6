"""What instructions read and write, and the backward analyses over it."""

import pytest
from conftest import compute

from cypresskit.il import OPCODES
from cypresskit.il.dataflow import (
    defines,
    find_successors,
    is_address,
    keys,
    liveness,
    uses,
)
from cypresskit.il.opcodes import RELATIONS


@pytest.mark.parametrize(
    "line, read, address, written",
    [
        ("add r0.x_z, r1, r2.wzyx", "r1.x r1.z r2.w r2.y", "", "r0.x r0.z"),
        ("dp4 r0.x, r1, r2.x010", "r1.x r1.y r1.z r1.w r2.x", "", "r0.x"),
        ("dadd r0.xy, r1.zwzw, r2", "r1.z r1.w r2.x r2.y", "", "r0.x r0.y"),
        ("f2d r0.xy, r1.z", "r1.z", "", "r0.x r0.y"),
        ("mov g[r1.y+2].x, r2.x", "r2.x r1.y", "r1.y", ""),
        ("iadd r0.x, g[r1.z].w, r2.x", "r1.z r2.x", "r1.z", "r0.x"),
        ("lds_load_id(0) r0, r1.yxxx", "r1.y", "r1.y", "r0.x r0.y r0.z r0.w"),
        ("lds_load_vec_id(0) r0.xy, r1.x, r2.x", "r1.x", "r1.x", "r0.x r0.y"),
        ("lds_store_id(0) r1.x, r2.y", "r1.x r2.y", "r1.x", ""),
        ("lds_store_vec_id(0) mem.x_z, r1.x, r2.x, r3", "r1.x r3.x r3.z", "r1.x", ""),
    ],
)
def test_what_an_instruction_reads_and_writes(line, read, address, written):
    program = compute("dcl_num_thread_per_group 64", "dcl_lds_id(0) 64", line)
    i = program.body[0]

    def names(found):
        return {f"r{number}.{'xyzw'[c]}" for number, c in found}

    assert names(keys(uses(program, i))) == set(read.split())
    assert names(keys(use for use in uses(program, i) if is_address(i, use[0]))) == set(
        address.split()
    )
    assert names(defines(i)) == set(written.split())


LOOP = compute(
    "dcl_num_thread_per_group 64",
    "whileloop",
    "break_logicalnz r0.x",
    "if_logicalz r1.x",
    "break",
    "else",
    "add r2.x, r3.x, r3.y",
    "endif",
    "break_logicalnz r1.x",
    "mov r3.xy, r2.x",
    "endloop",
    "mov g[0].x, r2.y",
)


def test_control_goes_where_it_says():
    ways = [find_successors(LOOP, at) for at in range(len(LOOP.body))]
    assert ways == [(1,), (2, 10), (3, 5), (10,), (6,), (6,), (7,), (8, 10), (9,), (1,), (11,)]


def test_what_is_live_is_read_on_some_later_path():
    live = liveness(LOOP)
    always = {(0, 0), (1, 0), (2, 1)}  # tests, and what is stored at the end
    assert live[0] == always | {(3, 0), (3, 1)}
    assert live[7] == live[8] == always | {(2, 0)}
    assert live[10] == {(2, 1)} and live[11] == set()


def test_relations_flip_back():
    sets = {"lt": {-1}, "le": {-1, 0}, "eq": {0}, "ne": {-1, 1}, "ge": {0, 1}, "gt": {1}}
    for name, flipped in RELATIONS.items():
        assert sets[flipped] == {-sign for sign in sets[name]}


def test_comparisons_and_tests_have_their_relation():
    tests = {name: op.relation for name, op in OPCODES.items() if op.relation and not op.flow}
    assert all(name.endswith(relation) for name, relation in tests.items()) and len(tests) == 10
    assert {op.relation for op in OPCODES.values() if op.flow} == {"", "eq", "ne"}
