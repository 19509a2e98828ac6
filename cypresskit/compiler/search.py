"""The search for good code: what the compiler tries, and what it keeps.

1. Channels of doubles (``schedule``): if no bundle can hold a double operation, as all its words
   ended up in one bank, it gets copies to read, and the schedule begins anew.
2. Registers of a loop (``lean_or_gathering``): what the order of the IL needs, or enough for all
   fetches that can go together, if that saves time. Code outside loops lives on what its loops
   need; where there are none, the first block is searched for as they are.
3. Orders of allocation (``finished``): the one that needs the fewest registers stays.

AMD's compiler (``in_order``) tried nothing of that: only if registers run out are fewer fetches
gathered.
"""

from collections.abc import Callable

from cypresskit.compiler.allocate import ORDERS, Lifetimes, allocate, earliest
from cypresskit.compiler.block_problem import Peaks, Problem, source_need
from cypresskit.compiler.blocks import BlockScheduler, NoBundle
from cypresskit.compiler.code import MachineCode, turn_clocks
from cypresskit.compiler.emit import emit
from cypresskit.compiler.inorder import InOrderScheduler
from cypresskit.compiler.ir import CompileError, Function, Op, VirtualRegister, refuse
from cypresskit.compiler.legality import require_legal
from cypresskit.compiler.lower import lower
from cypresskit.compiler.ports import Plans
from cypresskit.compiler.schedule import ListScheduler
from cypresskit.compiler.simplify import simplify
from cypresskit.compiler.vregs import Alive, assign_vregs, copy_operands
from cypresskit.devices import Device, Limits
from cypresskit.il import Program

# outside loops one register in so many is left free, so that whole registers are found for fetches
MARGIN = 10
GATHER = (
    128,
    16,
    8,
    4,
    2,
    1,
)  # fetches of a block that wait for their readers together, in AMD's style


#: What schedules one block, given the registers that are in use anyway.
BlockStyle = Callable[[Problem, int], BlockScheduler]


def in_order(program: Program, limits: Limits) -> MachineCode:
    """The code that AMD's compiler would have made: see ``inorder``."""
    refused: list[CompileError] = []
    for gather in GATHER:

        def block(problem: Problem, floor: int, gather: int = gather) -> BlockScheduler:
            return InOrderScheduler(problem, gather).run()

        function = simplify(lower(program, limits, rotate=False), plainly=True)
        try:
            return finished(function, limits, block, (earliest,), True)
        except CompileError as error:  # too many registers
            refused.append(error)
    raise refused[0]


def look_ahead(program: Program, device: Device) -> MachineCode:
    """The fastest code that the search finds."""
    limits = device.limits

    def block(problem: Problem, floor: int) -> BlockScheduler:
        return lean_or_gathering(problem, floor, device)

    return finished(simplify(lower(program, limits)), limits, block, ORDERS)


def finished(
    function: Function,
    limits: Limits,
    style: BlockStyle,
    orders: tuple,
    temporaries_first: bool = False,
) -> MachineCode:
    """The code of a simplified function, with the allocation that needs the fewest registers.
    Raises ``CompileError`` if the chip has too few.
    """
    assign_vregs(function)
    plans, source_gprs = schedule(function, limits, style)
    lives = Lifetimes(function, plans)
    tried = [allocate(lives, limits, order, temporaries_first) for order in orders]
    best = min(tried, key=lambda allocation: allocation.registers)
    if best.registers > limits.registers:
        what = (
            f"the kernel needs {best.registers} registers, most of them alive here; the chip has"
            f" {limits.registers} for a "
        )
        what += (
            "work-item. Keep fewer values alive at once: a smaller block, or fewer fetches before"
            " they are used."
        )
        raise refuse(function.program, lives.crowded_at(), what)
    controls = emit(function, plans, best)
    code = MachineCode(controls, best.registers, best.temporaries, source_gprs)
    return require_legal(code, limits, function.program.name)


def lean_or_gathering(problem: Problem, floor: int, device: Device) -> BlockScheduler:
    """The schedule on the registers that the order of the IL needs. If that splits fetches that
    could go together: the one with registers for all of them, where a turn takes less time then.
    """
    need = source_need(problem)
    if problem.block.depth == 0 and floor > 1:  # beside loops, which need more
        return ListScheduler(problem, max(floor - floor // MARGIN, need)).run()
    lean = ListScheduler(problem, max(floor, need)).run()
    fetches = sum(op.fetches for op in problem.ops)
    if lean.count("TEX") <= -(-fetches // device.tex_clause_fetches):
        return lean
    gathering = ListScheduler(problem, lean.pressure.budget + fetches).run()

    def turn(run: BlockScheduler) -> tuple[float, int]:
        clauses = run.count("ALU"), run.count("TEX")
        wavefronts = device.active_wavefronts(
            min(run.pressure.budget, device.gpr_limit, device.register_pool)
        )
        return (
            max(turn_clocks(device, run.bundles, fetches, clauses, wavefronts).values()),
            clauses[1],
        )

    return min(lean, gathering, key=turn)


def schedule(function: Function, limits: Limits, style: BlockStyle) -> tuple[Plans, int]:
    """Clauses and bundles for every block, the innermost loops first, and the registers that the
    innermost loop needs in the order of the IL. Decides the virtual registers' channels. Raises
    ``CompileError`` for a double operation that fits no bundle even with copies to read.
    """
    results = [r.vreg for block in function.blocks for op in block.ops for r in op.results]
    results += [phi.vreg for block in function.blocks for phi in block.phis]
    channels = {vreg: vreg.channel for vreg in results}
    parted: set[Op] = set()
    while True:
        try:
            return _schedule(function, limits, style)
        except NoBundle as stuck:
            block, op = stuck.args
            if op in parted or op.row.kind != "double":
                raise refuse(
                    function.program, op.at, f"no bundle of this chip can hold {op.name} here"
                ) from None
            parted.add(op)
            for vreg, channel in channels.items():
                vreg.channel = channel
            copy_operands(block, op)


def _schedule(function: Function, limits: Limits, style: BlockStyle) -> tuple[Plans, int]:
    blocks = sorted(function.blocks, key=lambda b: -b.depth)
    alive = Alive(function.blocks)
    plans: Plans = {}
    scheduled: dict[VirtualRegister, list[Peaks]] = {}
    floor, source_gprs = 1, 0
    for block in blocks:
        entering = alive.into[block] | {phi.vreg for phi in block.phis}
        problem = Problem(block, entering, alive.out[block], limits, scheduled)
        run = style(problem, floor)
        plans[block] = run.plans
        run.pressure.commit()
        floor = max(floor, run.pressure.budget)
        if block.depth == blocks[0].depth:
            source_gprs = max(source_gprs, source_need(problem))
        peaks = list(run.pressure.peak)
        for vreg in entering & alive.out[block]:
            if vreg.channel is None:
                scheduled.setdefault(vreg, []).append(peaks)
    return plans, source_gprs
