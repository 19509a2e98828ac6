"""What instructions read and write, and the backward analyses over it."""

from kernel_texts import compute
from sampling import from_rows

from cypresskit.il import OPCODES
from cypresskit.il.dataflow import defines, find_successors, is_address, keys, liveness, uses
from cypresskit.il.opcodes import RELATIONS


@from_rows
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
    """
        dcl_num_thread_per_group 64
        whileloop
        break_logicalnz r0.x
        if_logicalz r1.x
        break
        else
        add r2.x, r3.x, r3.y
        endif
        break_logicalnz r1.x
        mov r3.xy, r2.x
        endloop
        mov g[0].x, r2.y
    """
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
