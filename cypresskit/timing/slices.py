"""The slice of a program: every instruction that an address, or a branch, depends on, and nothing of the data.

It is found by walking back from the addresses until nothing new is alive before any instruction. A slice that reads
memory is refused, with both lines: the one that reads, and the one whose address or branch it makes.
"""

from cypresskit.il import Instruction, Program

Place = tuple[int, int]  # number of an r register, component


class SliceError(ValueError):
    """A kernel that can't be timed without its data."""


def reads(i: Instruction, wanted: set[int] | None = None) -> set[Place]:
    """Places that the results ``wanted`` (components; None: all) of an instruction depend on."""
    places = set()
    for source in i.sources:
        letters = source.swizzle
        if wanted is not None and not i.op.vector and not i.op.flow:
            letters = "".join(source.swizzle[c] for c in wanted)
        if source.register.kind == "r":
            places |= {(source.register.index, "xyzw".index(c)) for c in letters if c in "xyzw"}
    return places


def address_reads(i: Instruction, program: Program) -> set[Place]:
    """Places that an instruction's address, or its branch, depends on."""
    places: set[Place] = set()
    registers = [s.register for s in i.sources] + ([i.dest.register] if i.dest else [])
    used = [(r.address, 1) for r in registers if r.address is not None]
    if i.op.kind == "fetch":
        used.append((i.sources[0], program.textures[i.control("resource")].dimensions))
    elif i.op.kind == "lds":
        struct, vector = program.lds[i.control("id")][0] > 0, i.opcode.endswith("vec")
        used.append((i.sources[0], 2 if struct and not vector else 1))
        used += [(i.sources[1], 1)] if struct and vector else []
    elif i.op.flow:
        used += [(source, 1) for source in i.sources]
    for source, letters in used:
        if source.register.kind == "r":
            places |= {(source.register.index, "xyzw".index(c)) for c in source.swizzle[:letters] if c in "xyzw"}
    return places


def find_slice(program: Program) -> tuple[dict[int, set[int]], list[set[Place]]]:
    """The slice: index in ``program.body`` to the components of its result that matter, and what is alive before each.

    Raises ``SliceError`` if an address or a branch depends on what a kernel reads.
    """
    body, match = program.body, program.matching
    alive: list[set[Place]] = [set() for _ in range(len(body) + 1)]
    chosen: dict[int, set[int]] = {}
    changed = True
    while changed:
        changed = False
        for at in range(len(body) - 1, -1, -1):
            i = body[at]
            after = set().union(*(alive[next_] for next_ in _successors(at, i, match)))
            before = after | address_reads(i, program)
            if i.dest is not None and i.dest.register.kind == "r":
                written = {c for c in range(4) if i.dest.mask[c] != "_"}
                matter = {c for c in written if (i.dest.register.index, c) in after}
                if matter:
                    _check_data(program, at, matter)
                    chosen[at] = chosen.get(at, set()) | matter
                    before = (before - {(i.dest.register.index, c) for c in written}) | reads(i, matter)
            if before != alive[at]:
                alive[at], changed = before, True
    return chosen, alive


def _successors(at: int, i: Instruction, match: dict[int, int]) -> list[int]:
    flow = i.op.flow
    if flow == "endloop":
        return [match[at] + 1]
    if flow in ("break", "continue"):
        out = match[match[at]] + 1 if flow == "break" else match[at] + 1
        return [out, at + 1] if i.sources else [out]
    if flow == "if":
        return [at + 1, match[at] + 1]
    return [match[at] + 1] if flow == "else" else [at + 1]


def _check_data(program: Program, at: int, matter: set[int]) -> None:
    """Refuse an instruction of the slice that reads memory, naming what its result goes into."""
    i, body = program.body[at], program.body
    assert i.dest is not None
    if i.op.kind not in ("fetch", "lds") and all(s.register.kind != "g" for s in i.sources):
        return
    tainted, used = {(i.dest.register.index, c) for c in matter}, ""
    for user in (*body[at + 1 :], *body[:at]):
        if address_reads(user, program) & tainted:
            used = f", the one in\n{program.where(user.line)}"
            break
        if user.dest is not None and reads(user) & tainted:
            tainted |= {(user.dest.register.index, c) for c in user.dest.written}
    raise SliceError(
        f"{program.where(i.line)}\n    reads data that an address or a branch depends on{used}\n    Timing runs the "
        "address arithmetic without data: take addresses from the work-item's id, constants and counters instead."
    )
