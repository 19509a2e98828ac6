"""Schedule a whole function: clauses and bundles, block by block (``blocks``).

Innermost loops are scheduled first, so they choose the channels of their registers; the blocks
around them keep these channels.
"""

from cypresskit.compiler.block_problem import DependenceGraph
from cypresskit.compiler.blocks import BlockScheduler, NoBundle
from cypresskit.compiler.ir import Function, error_at
from cypresskit.compiler.liveness import Alive
from cypresskit.compiler.ports import Plans
from cypresskit.compiler.target import Target


def schedule(function: Function, target: Target) -> Plans:
    """Schedule every block, and choose the channels of virtual registers.

    Returns
    -------
    The clauses and bundles of every block.

    Raises
    ------
    CompileError
        For an operation that fits no bundle.
    """
    alive = Alive(function.blocks)
    plans: Plans = {}
    for block in sorted(function.blocks, key=lambda b: -b.depth):
        entering = alive.into[block] | {phi.vreg for phi in block.phis}
        graph = DependenceGraph(block, entering, alive.out[block], target)
        try:
            plans[block] = BlockScheduler(graph).run()
        except NoBundle as stuck:
            what = (
                f"no bundle of this chip can hold {stuck.op.name} here: its words are in one bank"
                " of the registers. Write one of its operands to other components."
            )
            raise error_at(function.program, stuck.op.at, what) from None
    return plans
