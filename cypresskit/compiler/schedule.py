"""Clauses and bundles for a whole function, block by block (``blocks``), the innermost loops first:
what they decide of the virtual registers' channels, the blocks around them take over.

If no bundle can hold a double operation, as all its words ended up in one bank, it gets copies to
read, and the schedule begins anew.
"""

from cypresskit.compiler.block_problem import Problem, source_need
from cypresskit.compiler.blocks import BlockScheduler, NoBundle
from cypresskit.compiler.constraints import copy_operands
from cypresskit.compiler.ir import Function, Op, refuse
from cypresskit.compiler.liveness import Alive
from cypresskit.compiler.ports import Plans
from cypresskit.devices import CodeLimits


def schedule(function: Function, limits: CodeLimits, gather: int) -> tuple[Plans, int]:
    """Clauses and bundles for every block, with at most ``gather`` fetches of a block together, and
    the registers that the innermost loop needs in the order of the IL. Decides the virtual
    registers' channels. Raises ``CompileError`` for an operation that fits no bundle.
    """
    results = [r.vreg for block in function.blocks for op in block.ops for r in op.results]
    results += [phi.vreg for block in function.blocks for phi in block.phis]
    channels = {vreg: vreg.channel for vreg in results}
    copied: set[Op] = set()  # doubles that were given copies to read
    while True:
        try:
            return _schedule_blocks(function, limits, gather)
        except NoBundle as stuck:
            block, op = stuck.args
            if op in copied or op.row.kind != "double":
                what = f"no bundle of this chip can hold {op.name} here"
                raise refuse(function.program, op.at, what) from None
            copied.add(op)
            for vreg, channel in channels.items():
                vreg.channel = channel
            copy_operands(block, op)


def _schedule_blocks(function: Function, limits: CodeLimits, gather: int) -> tuple[Plans, int]:
    blocks = sorted(function.blocks, key=lambda b: -b.depth)
    alive = Alive(function.blocks)
    plans: Plans = {}
    source_gprs = 0
    for block in blocks:
        entering = alive.into[block] | {phi.vreg for phi in block.phis}
        problem = Problem(block, entering, alive.out[block], limits)
        plans[block] = BlockScheduler(problem, gather).run()
        if block.depth == blocks[0].depth:
            source_gprs = max(source_gprs, source_need(problem))
    return plans, source_gprs
