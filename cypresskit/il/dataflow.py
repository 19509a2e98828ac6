"""Analyze data flow: what an instruction reads and writes, its successors, liveness.

A component of an ``r`` register is a pair (number, component). A *position* is a place in a
swizzle: source ``r1.zx``, read at positions 0 and 1, reads components z and x.

Not covered: values, and SSA form (``compiler.ssa``).
"""

from collections.abc import Callable, Iterable, Iterator

from cypresskit.il.program import LETTERS, Instruction, Program, Source

Key = tuple[int, int]  # number of an r register, component
# (number of the source, or ADDRESS; the source; the positions that are read)
Use = tuple[int, Source, tuple[int, ...]]
ADDRESS = -1  # the number of an address of g[], in place of a source's


def uses(program: Program, i: Instruction) -> Iterator[Use]:
    """Yield the operands that an instruction reads, addresses of ``g[]`` included."""
    for n, source in enumerate(i.sources):
        positions = read_positions(program, i, n)
        if source.register.kind == "g":
            if source.register.address is not None:
                yield ADDRESS, source.register.address, (0,)
        elif positions:
            yield n, source, positions
    if i.dest and i.dest.register.address is not None:
        yield ADDRESS, i.dest.register.address, (0,)


def read_positions(program: Program, i: Instruction, n: int) -> tuple[int, ...]:
    """Return the positions of source ``n`` that are read."""
    op = i.op
    if op.kind == "fetch":
        return (0, 1)
    if op.kind == "lds":
        if n in op.passed:
            return lds_words(i)
        return (0,) if n == 0 else ()  # the address; a vector's second source is of records of LDS
    if op.across:
        return tuple(range(op.across))
    if op.double and op.sources[n] == "d":
        return (0, 1)
    return (i.dest.written if i.dest and op.kind == "alu" and not op.double else ()) or (0,)


def lds_words(i: Instruction) -> tuple[int, ...]:
    """Return the 32-bit words that an LDS access touches, counted from its address."""
    return i.dest.written if i.op.words > 1 and i.dest else (0,)


def is_address(i: Instruction, n: int) -> bool:
    """Return whether operand ``n`` of ``uses`` is part of an address, or decides a branch."""
    return (
        n == ADDRESS
        or bool(i.op.flow)
        or i.op.kind == "fetch"
        or (i.op.kind == "lds" and n not in i.op.passed)
    )


def defines(i: Instruction) -> tuple[Key, ...]:
    """Return the components of an ``r`` register that an instruction writes."""
    if not i.dest or i.dest.register.kind != "r":
        return ()
    return tuple((i.dest.register.index, c) for c in i.dest.written)


def find_writers(program: Program) -> dict[Key, list[int]]:
    """Return the instructions that write each component of an ``r`` register."""
    found: dict[Key, list[int]] = {(n, c): [] for n in program.registers for c in range(4)}
    for at, i in enumerate(program.body):
        for key in defines(i):
            found[key].append(at)
    return found


def components(source: Source, positions: Iterable[int]) -> list[int]:
    """Return the components that the positions read. Constants 0 and 1 of a swizzle are skipped."""
    return [LETTERS.index(source.swizzle[p]) for p in positions if source.swizzle[p] in LETTERS]


def keys(operands: Iterable[Use]) -> set[Key]:
    """Return the components of ``r`` registers that the operands read."""
    return {
        (source.register.index, c)
        for _, source, positions in operands
        if source.register.kind == "r"
        for c in components(source, positions)
    }


def find_successors(program: Program, at: int) -> tuple[int, ...]:
    """Return the instructions that may follow ``at``; ``len(program.body)`` is the end."""
    i = program.body[at]
    match = program.matching.get(at, at)
    flow = i.op.flow
    if flow == "else":
        return (match,)
    target = (program.matching[match] if flow == "break" else match) + 1
    if flow in ("break", "endloop") and not i.sources:
        return (target,)
    return (at + 1, target) if flow in ("if", "break") else (at + 1,)


def backward(program: Program, step: Callable[[int, frozenset], frozenset]) -> list[frozenset]:
    """Return the least fixed point of a backward analysis.

    Parameters
    ----------
    step
        Computes the set before an instruction from (its index, the set after it).

    Returns
    -------
    The set before each instruction and, last, at the end.
    """
    body = program.body
    before: list[frozenset] = [frozenset()] * (len(body) + 1)
    following = [find_successors(program, at) for at in range(len(body))]
    earlier: list[frozenset] = []
    while earlier != before:
        earlier = [*before]
        for at in reversed(range(len(body))):
            before[at] = step(at, frozenset().union(*(before[n] for n in following[at])))
    return before


def liveness(program: Program) -> list[frozenset[Key]]:
    """Return the components that are live before each instruction and, last, at the end."""
    reads = [keys(uses(program, i)) for i in program.body]
    return backward(program, lambda at, after: after - {*defines(program.body[at])} | reads[at])
