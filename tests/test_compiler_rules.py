"""The hardware's rules, one by one: the port search on the ISA's examples, and a checker that must
find each fault.
"""

from dataclasses import replace
from functools import partial

import pytest

import cypresskit as ck
from cypresskit.compiler import compile as compile_
from cypresskit.compiler.legality import check
from cypresskit.compiler.ports import Ports, slot_reads

compile = partial(compile_, style="best")  # AMD's is tested in test_compiler_amd

X, Y, Z, W = range(4)


def fits(*units) -> bool:
    ports = Ports()
    return all(ports.fit([u]) for u in units)


A, B, C, D = ((X, name) for name in "abcd")
VECTOR = [([A, B], False), ([C, (Y, "a")], False)]
FITS = {  # operands of slots, and whether the slot is t; whether a bundle can read them
    "three words of a bank": ([([A, B, C], False)], True),
    "and a fourth": ([([A, B, C], False), ([D], False)], False),
    "swizzles work around a conflict (ISA 4.7.7)": ([*VECTOR, ([B, (Y, "a")], False)], True),
    "a square needs one port": ([([A, A], False), ([B, C], False)], True),
    "other repeats need two": ([([A, B, A], False), ([C, D], False)], False),
    "t finds free ports (ISA 4.7.8)": ([*VECTOR, ([(Z, "c"), (W, "c")], True)], True),
    "t shares one with a vector slot": ([*VECTOR, ([A, (Y, "a")], True)], True),
}


@pytest.mark.parametrize("what", FITS)
def test_a_bundle_reads_what_its_ports_allow(what):
    slots, wanted = FITS[what]
    assert fits(*(slot_reads(reads, scalar) for reads, scalar in slots)) == wanted


def test_t_loses_cycles_to_constants():
    a, b, c = (X, "a"), (Y, "b"), (X, "c")
    assert (
        slot_reads([None, b], True, constants=1).options
        and not slot_reads([a, b, c], True, constants=3).options
    )
    assert all(
        cycles[1] == 2 for _, cycles in slot_reads([None, b, None], True, constants=2).options
    )


@pytest.fixture(scope="module")
def code():
    return compile(ck.kernels["sgemm_tn"].program)


def is_mad(o) -> bool:
    return o.name == "MULADD_IEEE" and o.slot < 4 and all(r.kind == "gpr" for r in o.reads)


def in_x(o) -> bool:
    return o.slot == 0


def reading(o, **what) -> dict:
    return {"reads": (replace(o.reads[0], **what), *o.reads[1:])}


# words of the report: which operation of the loop's first ALU clause is changed, and how
FAULTS = {
    "reads R": (is_mad, lambda o: {"swizzle": "VEC_012" if o.swizzle != "VEC_012" else "VEC_210"}),
    "writes channel": (is_mad, lambda o: {"channel": (o.channel + 1) % 4}),
    "of 25 registers": (is_mad, lambda o: {"dest": (25, o.channel)}),
    "takes no absolute": (is_mad, lambda o: reading(o, abs=True)),
    "output scale": (is_mad, lambda o: {"omod": 2.0}),
    "read before written": (is_mad, lambda o: reading(o, index=124)),
    "holds nothing": (lambda o: True, lambda o: reading(o, kind="pv")),
    "queue is not empty": (
        in_x,
        lambda o: {"name": "LDS_READ_RET", "reads": o.reads[:1], "dest": None},
    ),
    "in slots": (in_x, lambda o: {"name": "RECIP_IEEE", "reads": o.reads[:1]}),
}


def with_control(code, at: int, **what):
    """The code with one of its controls changed."""
    controls = list(code.controls)
    controls[at] = replace(controls[at], **what)
    return replace(code, controls=tuple(controls))


def loop_clause(code) -> int:
    """The first ALU clause of the loop."""
    loop = next(n for n, c in enumerate(code.controls) if c.name == "LOOP_START_DX10")
    return next(n for n, c in enumerate(code.controls) if n > loop and c.bundles)


def test_the_unchanged_code_is_legal(code):
    assert check(code) == []


@pytest.mark.parametrize("text", FAULTS)
def test_every_fault_in_an_alu_clause_is_found(code, text):
    (wanted, change), at = FAULTS[text], loop_clause(code)
    bundles = list(code.controls[at].bundles)
    n, m = next(
        (n, m) for n, b in enumerate(bundles) for m, o in enumerate(b.operations) if wanted(o)
    )
    operations = list(bundles[n].operations)
    operations[m] = replace(operations[m], **change(operations[m]))
    bundles[n] = replace(bundles[n], operations=tuple(operations))
    found = check(with_control(code, at, bundles=tuple(bundles)))
    assert any(text in fault for fault in found), found


def test_a_clause_too_long_is_found(code):
    at = loop_clause(code)
    assert any(
        "slots" in fault
        for fault in check(with_control(code, at, bundles=code.controls[at].bundles * 2))
    )


def test_faults_of_fetch_clauses_and_control_flow_are_found(code):
    at = next(n for n, c in enumerate(code.controls) if c.name == "TEX")
    one, two, *_ = fetches = code.controls[at].fetches
    wrong = {  # words of the report: fetches of a clause
        "24 fetches": fetches * 3,
        "offset (8, 0)": (replace(one, offset=(8, 0)),),
        "which an earlier fetch of the clause writes": (one, replace(two, source=one.dest)),
    }
    for text, those in wrong.items():
        assert any(text in fault for fault in check(with_control(code, at, fetches=those))), text
    open_ = replace(code, controls=tuple(c for c in code.controls if c.name != "POP"))
    assert any("closes if" in fault or "left open" in fault for fault in check(open_))
    renamed = [replace(c, name="ALU_BREAK") if c.name == "ALU" else c for c in code.controls]
    assert any(
        "0 tests in the clause" in fault for fault in check(replace(code, controls=tuple(renamed)))
    )
