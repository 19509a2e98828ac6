"""Code that breaks the hardware's rules is reported: that of a kernel of each kind, changed in one
way at a time. That the rules forbid nothing else shows in these kernels and in random programs,
which break none.
"""

from dataclasses import replace
from functools import cache

import pytest
from sampling import SIX

import cypresskit as ck
from cypresskit.compiler.assembly import Read
from tools.legality import check


@cache
def codes():
    return [ck.compile(name) for name in SIX]


def on_board(code, **limits):
    return replace(code, device=replace(code.device, **limits))


def with_bundles(code, change):
    clauses = [replace(c, bundles=tuple(map(change, c.bundles))) for c in code.controls]
    return replace(code, controls=tuple(clauses))


def with_fetches(code, **fields):
    fetches = [tuple(replace(each, **fields) for each in c.fetches) for c in code.controls]
    controls = [replace(c, fetches=made) for c, made in zip(code.controls, fetches)]
    return replace(code, controls=tuple(controls))


def with_stores(code, **fields):
    stores = [c.store and replace(c.store, **fields) for c in code.controls]
    controls = [replace(c, store=made) for c, made in zip(code.controls, stores)]
    return replace(code, controls=tuple(controls))


def with_operations(code, fields_of=lambda _: {}, **fields):
    """Each operation has other fields: these, and its ``fields_of``."""

    def change(bundle):
        made = [replace(o, **fields | fields_of(o)) for o in bundle.operations]
        return replace(bundle, operations=made)

    return with_bundles(code, change)


#: The report's words, and what is changed.
CHANGES = {
    "of 1 registers": lambda code: replace(code, gprs=1),
    "125 registers, 124 exist": lambda code: replace(code, gprs=125),
    "5 temporaries": lambda code: replace(code, temporaries=5),
    " slots": lambda code: on_board(code, alu_clause_slots=1),
    " fetches": lambda code: on_board(code, tex_clause_fetches=1),
    "offset (0, -9)": lambda code: with_fetches(code, offset=(0, -9)),
    "select xyzq": lambda code: with_fetches(code, select="xyzq"),
    "coordinates xyz": lambda code: with_fetches(code, coordinates="xyz"),
    ": slots [": lambda code: with_bundles(
        code, lambda b: replace(b, operations=b.operations[::-1])
    ),
    "is not where it is read": lambda code: with_bundles(code, lambda b: replace(b, literals=())),
    "has bank swizzle none": lambda code: with_operations(code, swizzle=""),
    "R96 of": lambda code: with_stores(code, source=96),
    "R97 of": lambda code: with_fetches(code, dest=97),
    "R98 of": lambda code: with_operations(code, dest=(98, 0)),
    "R99 of": lambda code: with_operations(code, dest=None, reads=[Read("gpr", 99)]),
    "has to give": lambda code: with_operations(
        code, lambda o: {"reads": [Read("gpr", o.slot), Read("gpr", o.slot + 5)]}
    ),
    "at once": lambda code: with_operations(code, swizzle="VEC_012"),
    "slot x writes channel": lambda code: with_operations(code, channel=1),
    "two slots write the same word": lambda code: with_operations(code, dest=(0, 0)),
    "two tests in a bundle": lambda code: with_operations(code, name="PRED_SETE_INT"),
    "two LDS instructions": lambda code: with_operations(code, name="LDS_WRITE"),
    "FLT_TO_INT in slots": lambda code: with_operations(code, name="FLT_TO_INT"),
    "a barrier is not alone": lambda code: with_operations(code, name="GROUP_BARRIER"),
    "a memory write can't swizzle": lambda code: with_stores(code, name="MEM_WRITE", select="yx__"),
    "an earlier fetch": lambda code: with_fetches(code, dest=1, source=1),
    "constant windows": lambda code: with_operations(
        code, lambda o: {"reads": [Read("constant", element=32 * o.slot)]}
    ),
    "pairs of constants": lambda code: with_operations(
        code, lambda o: {"reads": [Read("constant", element=o.slot)]}
    ),
    "5 literals": lambda code: with_bundles(code, lambda b: replace(b, literals=(0,) * 5)),
    "t reads 3 constants": lambda code: with_operations(code, reads=[Read("constant")] * 3),
    "t loads operand 2 in cycle 0": lambda code: with_operations(
        code, reads=[Read("constant"), Read("gpr"), Read("gpr")], swizzle="SCL_210"
    ),
    "MOV writes channel y from": lambda code: with_operations(code, name="MOV", dest=(0, 1)),
    "only MOV reads": lambda code: with_operations(code, name="FLOOR", reads=[Read("queue")]),
    "MUL_64 splits its result": lambda code: with_operations(
        code, lambda o: {"dest": (0, o.slot)}, name="MUL_64", number=0
    ),
    "ADD_INT can't negate": lambda code: with_operations(
        code, name="ADD_INT", reads=[Read("gpr", neg=True)]
    ),
    "GROUP_BARRIER writes nothing": lambda code: with_operations(
        code, name="GROUP_BARRIER", dest=(0, 0)
    ),
}


def test_code_of_a_kernel_of_each_kind_is_legal():
    assert not any(map(check, codes()))


@pytest.mark.parametrize("words", CHANGES)
def test_a_change_of_legal_code_is_reported(words):
    assert [fault for code in codes() for fault in check(CHANGES[words](code)) if words in fault]
