"""The passes in their order, and what the two styles try with them.

AMD's style (``in_order``) tries one thing: if registers run out, fewer fetches are gathered.

The best style (``look_ahead``) compiles the program once in each of the scheduler's orders and
keeps the code with the fewest bundles in its main loop, then the fewest registers, then the fewest
bundles in all. Within an attempt, it searches for

1. the channels of doubles (``schedule``): if no bundle can hold a double operation, as all its
   words ended up in one bank, it gets copies to read, and the schedule begins anew;
2. the registers of a loop (``lean_or_gathering``): what the order of the IL needs, or enough for
   all fetches that can go together, if that saves time. Code outside loops gets the registers its
   loops need; without loops, the first block's search decides;
3. the order of allocation (``allocated``): the one that needs the fewest registers stays.
"""

from collections.abc import Callable, Sequence
from functools import partial

from cypresskit.compiler.allocate import (
    ALLOCATION_ORDERS,
    Allocation,
    Lifetimes,
    UnitOrder,
    allocate,
    earliest,
)
from cypresskit.compiler.block_problem import Problem, source_need
from cypresskit.compiler.blocks import BlockScheduler, NoBundle
from cypresskit.compiler.code import MachineCode, main_loop, turn_clocks
from cypresskit.compiler.constraints import copy_operands
from cypresskit.compiler.emit import emit
from cypresskit.compiler.inorder import InOrderScheduler
from cypresskit.compiler.ir import CompileError, Function, Op, refuse
from cypresskit.compiler.liveness import Alive
from cypresskit.compiler.lower import lower
from cypresskit.compiler.ports import Plans
from cypresskit.compiler.schedule import ORDERS, ListScheduler, Order
from cypresskit.compiler.simplify import simplify
from cypresskit.compiler.vregs import assign_vregs
from cypresskit.devices import CodeLimits, Device
from cypresskit.il import Program

#: How many fetches of a block AMD's style gathers, until registers suffice.
GATHER = (128, 16, 8, 4, 2, 1)

#: Schedules one block, given the registers that are in use anyway.
ScheduleBlock = Callable[[Problem, int], BlockScheduler]

#: Is shown the function after each pass, by the pass's name.
Watch = Callable[[str, Function], None]


def unwatched(_name: str, _function: Function) -> None:
    """Nobody looks at the function between passes."""


def in_order(program: Program, limits: CodeLimits, watch: Watch = unwatched) -> MachineCode:
    """The code that AMD's compiler would have made: see ``inorder``."""
    refused: list[CompileError] = []
    for gather in GATHER:

        def block(problem: Problem, floor: int, gather: int = gather) -> BlockScheduler:
            return InOrderScheduler(problem, gather).run()

        function = lower(program, limits, rotate=False)
        watch("lower", function)
        simplify(function, plainly=True)
        try:
            return finished(
                function,
                limits,
                block,
                allocation_orders=(earliest,),
                temporaries_first=True,
                watch=watch,
            )
        except CompileError as error:  # too many registers
            refused.append(error)
    raise refused[0]


def look_ahead(program: Program, device: Device, watch: Watch = unwatched) -> MachineCode:
    """The fastest code that the search finds."""
    made: list[MachineCode] = []
    refused: list[CompileError] = []
    for order in ORDERS:
        try:
            made.append(_attempt(program, device, order, unwatched))
        except CompileError as error:
            refused.append(error)
    if not made:
        raise refused[0]

    best = min(made, key=_quality)
    if watch is not unwatched:  # show the passes of the attempt that is kept
        for order in ORDERS:
            if _attempt(program, device, order, watch) == best:
                break
    return best


def _attempt(program: Program, device: Device, order: Order, watch: Watch) -> MachineCode:
    """The code that one of the scheduler's orders leads to."""
    limits = device.limits
    function = lower(program, limits)
    watch("lower", function)
    simplify(function)
    block = partial(lean_or_gathering, device=device, order=order)
    return finished(function, limits, block, allocation_orders=ALLOCATION_ORDERS, watch=watch)


def _quality(code: MachineCode) -> tuple[int, int, int]:
    """Bundles of the main loop, registers, all bundles."""
    loop = sum(len(control.bundles) for control in main_loop(code.controls))
    return loop, code.gprs, sum(len(control.bundles) for control in code.controls)


def finished(
    function: Function,
    limits: CodeLimits,
    schedule_block: ScheduleBlock,
    *,
    allocation_orders: Sequence[UnitOrder],
    temporaries_first: bool = False,
    watch: Watch = unwatched,
) -> MachineCode:
    """The code of a simplified function. Raises ``CompileError`` for too few registers."""
    watch("simplify", function)
    assign_vregs(function)
    watch("vregs", function)
    plans, source_gprs = schedule(function, limits, schedule_block)
    watch("schedule", function)

    lives = Lifetimes(function, plans)
    allocation = allocated(function, lives, limits, allocation_orders, temporaries_first)
    controls = emit(function, plans, allocation)
    return MachineCode(controls, allocation.registers, allocation.temporaries, source_gprs)


def allocated(
    function: Function,
    lives: Lifetimes,
    limits: CodeLimits,
    orders: Sequence[UnitOrder],
    temporaries_first: bool,
) -> Allocation:
    """The allocation that needs the fewest registers."""
    tried = [allocate(lives, limits, order, temporaries_first) for order in orders]
    best = min(tried, key=lambda allocation: allocation.registers)
    if best.registers > limits.registers:
        what = (
            f"the kernel needs {best.registers} registers, most of them alive here; the chip has"
            f" {limits.registers} for a work-item. Keep fewer values alive at once: a smaller"
            " block, or fewer fetches before they are used."
        )
        raise refuse(function.program, lives.crowded_at(), what)
    return best


def lean_or_gathering(
    problem: Problem, floor: int, *, device: Device, order: Order
) -> BlockScheduler:
    """The schedule on the registers that the order of the IL needs. If that splits fetches that
    could go together: the one with registers for all of them, where a turn takes less time then.
    """
    lean = ListScheduler(problem, max(floor, source_need(problem)), order).run()
    fetches = sum(op.fetches for op in problem.ops)
    fewest_clauses = -(-fetches // device.tex_clause_fetches)
    beside_loops = problem.block.depth == 0 and floor > 1
    if beside_loops or lean.count("TEX") <= fewest_clauses:
        return lean
    gathering = ListScheduler(problem, lean.pressure.budget + fetches, order).run()

    def slowest_unit(attempt: BlockScheduler) -> tuple[float, int]:
        clauses = attempt.count("ALU"), attempt.count("TEX")
        registers = min(attempt.pressure.budget, device.gpr_limit, device.register_pool)
        wavefronts = device.active_wavefronts(registers)
        clocks = turn_clocks(device, attempt.bundles, fetches, clauses, wavefronts)
        return max(clocks.values()), attempt.count("TEX")

    return min(lean, gathering, key=slowest_unit)


def schedule(
    function: Function, limits: CodeLimits, schedule_block: ScheduleBlock
) -> tuple[Plans, int]:
    """Clauses and bundles for every block, the innermost loops first, and the registers that the
    innermost loop needs in the order of the IL. Decides the virtual registers' channels. Raises
    ``CompileError`` for a double operation that fits no bundle even with copies to read.
    """
    results = [r.vreg for block in function.blocks for op in block.ops for r in op.results]
    results += [phi.vreg for block in function.blocks for phi in block.phis]
    channels = {vreg: vreg.channel for vreg in results}
    copied: set[Op] = set()  # doubles that were given copies to read
    while True:
        try:
            return _schedule_blocks(function, limits, schedule_block)
        except NoBundle as stuck:
            block, op = stuck.args
            if op in copied or op.row.kind != "double":
                what = f"no bundle of this chip can hold {op.name} here"
                raise refuse(function.program, op.at, what) from None
            copied.add(op)
            for vreg, channel in channels.items():
                vreg.channel = channel
            copy_operands(block, op)


def _schedule_blocks(
    function: Function, limits: CodeLimits, schedule_block: ScheduleBlock
) -> tuple[Plans, int]:
    blocks = sorted(function.blocks, key=lambda b: -b.depth)
    alive = Alive(function.blocks)
    plans: Plans = {}
    floor, source_gprs = 1, 0
    for block in blocks:
        entering = alive.into[block] | {phi.vreg for phi in block.phis}
        problem = Problem(block, entering, alive.out[block], limits)
        run = schedule_block(problem, floor)
        plans[block] = run.plans
        run.pressure.commit()
        floor = max(floor, run.pressure.budget)
        if block.depth == blocks[0].depth:
            source_gprs = max(source_gprs, source_need(problem))
    return plans, source_gprs
