"""Schedule a whole function: clauses and bundles, block by block (``blocks``).

Innermost loops are scheduled first, so they choose the channels of their registers; the blocks
around them keep these channels. If no bundle can hold a double operation because all its words are
in one bank, it gets copies to read, and scheduling starts again.
"""

from cypresskit.compiler.block_problem import DependenceGraph, measure_source_pressure
from cypresskit.compiler.blocks import BlockScheduler, NoBundle
from cypresskit.compiler.constraints import copy_operands
from cypresskit.compiler.ir import Function, Op, error_at
from cypresskit.compiler.liveness import Alive
from cypresskit.compiler.ports import Plans
from cypresskit.devices import CodeLimits


def schedule(function: Function, limits: CodeLimits, gather: int) -> tuple[Plans, int]:
    """Schedule every block, and choose the channels of virtual registers.

    Parameters
    ----------
    gather
        The most fetches of a block per clause.

    Returns
    -------
    The clauses and bundles of every block, and the registers that the innermost loop needs in the
    order of the IL.

    Raises
    ------
    CompileError
        For an operation that fits no bundle.
    """
    results = [r.vreg for block in function.blocks for op in block.ops for r in op.results]
    results += [phi.vreg for block in function.blocks for phi in block.phis]
    channels = {vreg: vreg.channel for vreg in results}
    copied: set[Op] = set()  # double operations that read copies
    while True:
        try:
            return _schedule_blocks(function, limits, gather)
        except NoBundle as stuck:
            block, op = stuck.args
            if op in copied or op.row.kind != "double":
                what = f"no bundle of this chip can hold {op.name} here"
                raise error_at(function.program, op.at, what) from None
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
        graph = DependenceGraph(block, entering, alive.out[block], limits)
        plans[block] = BlockScheduler(graph, gather).run()
        if block.depth == blocks[0].depth:
            source_gprs = max(source_gprs, measure_source_pressure(graph))
    return plans, source_gprs
