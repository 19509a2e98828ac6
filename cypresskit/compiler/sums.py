"""What the main loop sums: how many products each of its sums takes in one turn, which for a GEMM are the steps of k.

A sum is a value that the loop carries, and that one turn changes by adding products to it. A product counts if what was
fetched goes into it. If anything else is multiplied (sums of double-doubles), only the catalogue tells.
"""

from cypresskit.compiler.ir import BasicBlock, Function, Op, Word

ADDENDS = {"ADD": (0, 1), "ADD_64": (0, 2), "MULADD_IEEE": (2,), "FMA": (2,), "FMA_64": (4,)}  # places of low words
MOST = 10_000  # parts of a sum that are looked at


def products(function: Function) -> tuple[int, ...]:
    """Products that each sum of the main loop takes in a turn; empty if the loop multiplies for anything else."""
    loaded: set[Word] = set()
    multiplied: set[Op] = set()
    for op in (op for block in function.blocks for op in block.ops):
        if op.fetches or op.popped or any(s.value in loaded for s in op.srcs):
            loaded.update(op.results)
            # skip a multiply-add of which only the addend was fetched
            if (
                op.row.flops
                and op.name not in ("ADD", "ADD_64")
                and any(s.value in loaded for s in op.srcs[: 2 * len(op.results)])
            ):
                multiplied.add(op)
    main = _main_loop(function)
    ends = [(phi, value) for block in main[:1] for phi in block.phis for b, value in phi.args.items() if b in main]
    sums = [count for phi, value in ends if (count := _taken(value, phi, multiplied))]
    return tuple(sums) if sum(sums) == sum(op in multiplied for block in main for op in block.ops) else ()


def _main_loop(function: Function) -> list[BasicBlock]:
    """Blocks of the innermost loop with most operations."""
    depth = max(block.depth for block in function.blocks)
    loops: list[list[BasicBlock]] = [[]]
    for item in function.items if depth else ():
        if item == "loop":
            loops.append([])
        elif isinstance(item, BasicBlock) and item.depth == depth:
            loops[-1].append(item)
    return max(loops, key=lambda loop: sum(len(b.ops) for b in loop))


def _taken(value: Word, phi: Word, multiplied: set[Op]) -> int:
    """Products that ``value`` is more than ``phi``; 0 if it is not that, or the high word of a double."""
    count = carried = seen = 0
    stack = [value]
    while stack and seen < MOST:
        seen += 1
        value = stack.pop()
        op = value.op
        if value is phi:
            carried += 1
        elif op is None or value is not op.results[0] or not op.plain:
            return 0
        elif op in multiplied or op.name in ("ADD", "ADD_64"):
            count += op in multiplied
            stack += [op.srcs[n].value for n in ADDENDS.get(op.name, ())]
        else:
            return 0
    return count if carried == 1 and not stack else 0
