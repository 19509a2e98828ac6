"""The hardware's rules, one by one: the port search on the ISA's examples, and a checker that must find each fault."""

from dataclasses import replace
from functools import partial

import pytest

import cypresskit as ck
from cypresskit.compiler import compile as compile_
from cypresskit.compiler.legality import check
from cypresskit.compiler.ports import Ports, unit

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
    assert fits(*(unit(reads, scalar) for reads, scalar in slots)) == wanted


def test_t_loses_cycles_to_constants():
    a, b, c = (X, "a"), (Y, "b"), (X, "c")
    assert unit([None, b], True, constants=1).options and not unit([a, b, c], True, constants=3).options
    assert all(cycles[1] == 2 for _, cycles in unit([None, b, None], True, constants=2).options)


@pytest.fixture(scope="module")
def code():
    return compile(ck.kernels["sgemm_tn"].program)


def changed(code, name: str, change):
    """The code with the first clause of that name changed."""
    at = next(n for n, c in enumerate(code.controls) if c.name == name)
    control = code.controls[at]
    controls = list(code.controls)
    controls[at] = change(control)
    return replace(code, controls=tuple(controls))


def first_bundle(clause, change):
    return replace(clause, bundles=(change(clause.bundles[0]), *clause.bundles[1:]))


def first_operation(clause, wanted, change):
    """The clause with the first operation that ``wanted`` accepts changed."""
    bundles = list(clause.bundles)
    for n, bundle in enumerate(bundles):
        for m, o in enumerate(bundle.operations):
            if wanted(o):
                operations = (*bundle.operations[:m], change(o), *bundle.operations[m + 1 :])
                bundles[n] = replace(bundle, operations=operations)
                return replace(clause, bundles=tuple(bundles))
    raise AssertionError("nothing to change")


def is_mad(o) -> bool:
    return o.name == "MULADD_IEEE" and o.slot < 4 and all(r.kind == "gpr" for r in o.reads)


FAULTS = {
    "reads R": lambda c: first_operation(
        c, is_mad, lambda o: replace(o, swizzle="VEC_012" if o.swizzle != "VEC_012" else "VEC_210")
    ),
    "writes channel": lambda c: first_operation(c, is_mad, lambda o: replace(o, channel=(o.channel + 1) % 4)),
    "of 25 registers": lambda c: first_operation(c, is_mad, lambda o: replace(o, dest=(25, o.channel))),
    "takes no absolute": lambda c: first_operation(
        c, is_mad, lambda o: replace(o, reads=(replace(o.reads[0], abs=True), *o.reads[1:]))
    ),
    "output scale": lambda c: first_operation(c, is_mad, lambda o: replace(o, omod=2.0)),
    "read before written": lambda c: first_operation(
        c, is_mad, lambda o: replace(o, reads=(replace(o.reads[0], index=124), *o.reads[1:]))
    ),
    "holds nothing": lambda c: first_bundle(
        c,
        lambda b: replace(
            b, operations=(replace(b.operations[0], reads=(replace(b.operations[0].reads[0], kind="pv"),)
            + b.operations[0].reads[1:]), *b.operations[1:])
        ),
    ),
    "slots": lambda c: replace(c, bundles=c.bundles * 2),
    "queue is not empty": lambda c: first_operation(
        c, lambda o: o.slot == 0, lambda o: replace(o, name="LDS_READ_RET", reads=o.reads[:1], dest=None)
    ),
    "in slots": lambda c: first_operation(
        c, lambda o: o.slot == 0, lambda o: replace(o, name="RECIP_IEEE", reads=o.reads[:1])
    ),
}  # fmt: skip


def test_the_unchanged_code_is_legal(code):
    assert check(code) == []


@pytest.mark.parametrize("text", FAULTS)
def test_every_fault_in_an_alu_clause_is_found(code, text):
    loop = next(n for n, c in enumerate(code.controls) if c.name == "LOOP_START_DX10")
    at = next(n for n, c in enumerate(code.controls) if n > loop and c.bundles)
    controls = list(code.controls)
    controls[at] = FAULTS[text](controls[at])
    found = check(replace(code, controls=tuple(controls)))
    assert any(text in fault for fault in found), found


def test_faults_of_fetch_clauses_and_control_flow_are_found(code):
    many = changed(code, "TEX", lambda c: replace(c, fetches=c.fetches * 3))
    assert any("24 fetches" in fault for fault in check(many))
    far = changed(code, "TEX", lambda c: replace(c, fetches=(replace(c.fetches[0], offset=(8, 0)),)))
    assert any("offset (8, 0)" in fault for fault in check(far))
    fetch = next(c for c in code.controls if c.name == "TEX").fetches[0]
    chained = changed(
        code, "TEX", lambda c: replace(c, fetches=(c.fetches[0], replace(c.fetches[1], source=fetch.dest)))
    )
    assert any("which an earlier fetch of the clause writes" in fault for fault in check(chained))
    open_ = replace(code, controls=tuple(c for c in code.controls if c.name != "POP"))
    assert any("closes if" in fault or "left open" in fault for fault in check(open_))
    untested = replace(
        code, controls=tuple(replace(c, name="ALU_BREAK") if c.name == "ALU" else c for c in code.controls)
    )
    assert any("0 tests in the clause" in fault for fault in check(untested))
