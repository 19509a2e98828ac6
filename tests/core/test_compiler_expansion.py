"""What the compiler makes of single IL instructions."""

import pytest

from cypresskit.compiler.expansion import scalar
from cypresskit.compiler.ir import Src, Word
from cypresskit.compiler.isa import OPS
from cypresskit.compiler.ssa import OpBuilder
from cypresskit.il import OPCODES

#: How the column of ``opcodes.txt`` calls the slots of ``isa.OPS``.
COLUMN = {"any": "xyzwt", "vector": "xyzw"}
ARITHMETIC = [
    op
    for op in OPCODES.values()
    if op.kind == "alu" and not op.across and "mov" not in (op.slots, op.name)
]


def slots_of(opcode):
    """The slots of the operations that an opcode becomes, on operands that nothing is known of."""
    builder = OpBuilder()
    if opcode.double:
        count = sum(2 if kind == "d" else 1 for kind in opcode.sources)
        builder.append(opcode.hardware, *[Src(Word("input")) for _ in range(count)])
    else:
        scalar(builder, opcode, [Src(Word("input")) for _ in opcode.sources])
    made = builder.block.ops
    if len(made) == 2 and made[0].name == "AND_INT":  # the low bits of a shift's count
        del made[0]
    return {op.row.slots for op in made} if len(made) == 1 else {"-"}


@pytest.mark.parametrize("opcode", ARITHMETIC, ids=lambda opcode: opcode.name)
def test_documented_slots_are_those_of_the_operations_it_becomes(opcode):
    assert {COLUMN.get(slots, slots) for slots in slots_of(opcode)} == {opcode.slots}


@pytest.mark.parametrize("opcode", [op for op in OPCODES.values() if op.kind == "lds"])
def test_documented_slots_of_lds_accesses_are_those_of_the_chips(opcode):
    wanted = "LDS_WRITE" if opcode.store else "LDS_READ"
    rows = [row for name, row in OPS.items() if name.startswith(wanted)]
    assert {row.slots for row in rows} == {opcode.slots}
