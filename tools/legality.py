"""Check compiled code against the rules of the hardware, independently of the scheduler.

The rules are written from the text of the ISA. Tests and the fuzzer check all code that they
compile.

- Clauses have the right length (ISA 2.4).
- A slot writes its channel, and executes only its operations (4.4, 4.8); doubles use their slots
  (4.12).
- Read ports follow the mapping algorithm of 4.7.9; constants and literals, 4.7.5 and 4.7.6.
- Negated operands (4.7.2).

Each function yields a sentence per violation.

Not covered: whether the code computes what the IL does. ``trace.vliw`` runs it, with the control
flow, PV, PS, clause temporaries and LDS queue of the hardware; a word that isn't there is poison.
"""

from collections.abc import Iterable, Iterator

from cypresskit.compiler.assembly import (
    Bundle,
    Control,
    FetchInstruction,
    Operation,
    Read,
    StoreInstruction,
)
from cypresskit.compiler.code import Code
from cypresskit.compiler.isa import SCALAR_SWIZZLES, SLOTS, VECTOR_SWIZZLES
from cypresskit.devices import FIRST_TEMPORARY, Device

CONSTANTS = ("constant", "literal", "inline")
SLOT_SETS = {  # by ``HardwareOp.slots``: the alternatives, sets of slots
    "any": [[0], [1], [2], [3], [4]],
    "vector": [[0], [1], [2], [3]],
    "t": [[4]],
    "x": [[0]],
    "pair": [[0, 1], [2, 3]],
    "quad": [[0, 1, 2, 3]],
}
OFFSETS = range(-8, 8)  # of a fetch, in texels: five bits, one of them a fraction (ISA 5)

Violations = Iterator[str]


def check(code: Code) -> list[str]:
    """Return all violations in ``code``, each with its place."""
    return list(violations(code))


def violations(code: Code) -> Violations:
    """Yield the violations in ``code``, each with its place."""
    device = code.device
    most = min(device.gpr_limit, FIRST_TEMPORARY)
    if code.gprs > most:
        yield f"{code.gprs} registers, {most} exist"
    operations = [o for c in code.controls for b in c.bundles for o in b.operations]
    last = max((o.dest[0] for o in operations if o.dest is not None), default=0)
    if code.temporaries != max(0, last + 1 - FIRST_TEMPORARY):
        yield f"{code.temporaries} temporaries, and the last register is {last}"

    for n, control in enumerate(code.controls):
        where = f"{n:02d} {control.name}"
        if control.store is not None:
            faults = _store(control.store, code.gprs)
        elif control.name == "TEX":
            faults = _fetch_clause(control, code.gprs, device)
        elif control.name.startswith("ALU"):
            faults = _alu_clause(control, code.gprs, device)
        else:
            continue
        for fault in faults:
            yield f"{where}{'' if fault.startswith(' bundle') else ':'} {fault.lstrip()}"


def _registers(numbers: Iterable[int | None], gprs: int) -> Violations:
    """Check that registers are below ``gprs``."""
    for number in numbers:
        if number is not None and not 0 <= number < gprs:
            yield f"R{number} of {gprs} registers"


def _store(store: StoreInstruction, gprs: int) -> Violations:
    yield from _registers((store.source, store.index), gprs)
    straight = all(s in (letter, "_") for s, letter in zip(store.select, "xyzw"))
    if store.name == "MEM_WRITE" and not straight:
        yield f"a memory write can't swizzle: {store.select}"


# Fetch clauses


def _fetch_clause(clause: Control, gprs: int, device: Device) -> Violations:
    count = len(clause.fetches)
    if not 0 < count <= device.tex_clause_fetches:
        yield f"{count} fetches"
    written: set[tuple[int, str]] = set()
    for fetch in clause.fetches:
        yield from _registers((fetch.dest, fetch.source), gprs)
        yield from _fetch(fetch, written)
        written |= {
            (fetch.dest, channel) for channel, letter in zip("xyzw", fetch.select) if letter != "_"
        }


def _fetch(f: FetchInstruction, written: set[tuple[int, str]]) -> Violations:
    """Check a fetch, after others of its clause have ``written`` words."""
    for letter in f.coordinates:
        if (f.source, letter) in written:
            yield f"reads R{f.source}.{letter}, which an earlier fetch of the clause writes"
    if not set(f.select) <= set("xyzw01_"):
        yield f"select {f.select}"
    if f.name == "MEM_READ":
        return
    if any(offset not in OFFSETS for offset in f.offset):
        yield f"offset {f.offset}"
    if len(f.coordinates) != 2:
        yield f"coordinates {f.coordinates}"


# ALU clauses


def _alu_clause(clause: Control, gprs: int, device: Device) -> Violations:
    if not 0 < clause.slots <= device.alu_clause_slots:
        yield f"{clause.slots} slots"
    if len(clause.windows) > 2:
        yield f"{len(clause.windows)} constant windows"

    for n, bundle in enumerate(clause.bundles):
        for what in _bundle(bundle, gprs, device):
            yield f" bundle {n}: {what}"


def _bundle(bundle: Bundle, gprs: int, device: Device) -> Violations:
    """Check a bundle."""
    yield from _shape(bundle)
    yield from _ports(bundle)
    yield from _constants(bundle)
    for operation in bundle.operations:
        yield from _operands(operation, gprs)
        yield from _result(operation, gprs, device)
    writes = [o.dest for o in bundle.operations if o.dest is not None]
    if len(set(writes)) < len(writes):
        yield "two slots write the same word"


def _shape(bundle: Bundle) -> Violations:
    """Check the slots of a bundle and the operations in them."""
    slots = [o.slot for o in bundle.operations]
    if not slots or slots != sorted(set(slots)):
        yield f"slots {slots}"
    for o in bundle.operations:
        if o.slot < 4 and o.channel != o.slot:
            yield f"slot {SLOTS[o.slot]} writes channel {SLOTS[o.channel]}"
        if o.dest is not None and o.dest[1] != o.channel:
            yield f"{o.name} writes channel {SLOTS[o.dest[1]]} from channel {SLOTS[o.channel]}"
    for parts in bundle.parts:
        yield from _parts(parts)

    rows = [o.row for o in bundle.operations]
    if sum(row.is_test for row in rows) > 1:
        yield "two tests in a bundle"
    if sum(row.kind == "lds" for row in rows) > 1:
        yield "two LDS instructions in a bundle"
    if len(rows) > 1 and any(row.kind == "sync" for row in rows):
        yield "a barrier is not alone"


def _parts(parts: tuple[Operation, ...]) -> Violations:
    """Check the slots of one operation."""
    first = parts[0]
    slots = [part.slot for part in parts]
    if any(read.kind == "queue" for read in first.reads):
        if any(part.name != "MOV" for part in parts):
            yield "only MOV reads the LDS queue here"
    elif slots not in SLOT_SETS[first.row.slots]:
        yield f"{first.name} in slots {slots}"
    halves = {part.dest[1] // 2 for part in parts if part.dest is not None}
    if first.row.words == 2 and len(halves) > 1:
        yield f"{first.name} splits its result"


def _ports(bundle: Bundle) -> Violations:
    """Check a bundle by the read-port mapping algorithm of ISA 4.7.9.

    If a bank is read for more registers than there are cycles, only that is reported. Otherwise
    conflicts in a cycle are, which another bank swizzle could avoid.
    """
    reserved: dict[tuple[int, int], int] = {}
    banks: dict[int, dict[int, None]] = {}
    clashes = []
    for o in bundle.operations:
        scalar = o.slot == 4
        name, swizzles = ("t", SCALAR_SWIZZLES) if scalar else (o.name, VECTOR_SWIZZLES)
        constants = sum(r.kind in CONSTANTS for r in o.reads) if scalar else 0
        if constants > 2:
            yield f"t reads {constants} constants"
        for n, r in enumerate(o.reads):
            if not _takes_cycle(o, n, scalar):
                continue
            if o.swizzle not in swizzles:
                yield f"{name} has bank swizzle {o.swizzle or 'none'}"
            cycle = swizzles.get(o.swizzle, (0, 1, 2))[n]
            if cycle < constants:
                yield f"t loads operand {n} in cycle {cycle} beside {constants} constants"
            if r.kind == "gpr":
                held = reserved.setdefault((cycle, r.channel), r.index)
                banks.setdefault(r.channel, {})[r.index] = None
                if held != r.index:
                    bank = f"cycle {cycle} bank {SLOTS[r.channel]}"
                    clashes.append(f"{bank} reads R{held} and R{r.index} at once")

    crowded = {channel: list(bank) for channel, bank in banks.items() if len(bank) > 3}
    for channel, numbers in crowded.items():
        *names, last = (f"R{number}" for number in numbers)
        gives = f"bank {SLOTS[channel]} has to give {', '.join(names)} and {last}"
        yield f"{gives}: {len(numbers)} registers in three cycles"
    if not crowded:
        yield from clashes


def _takes_cycle(o: Operation, n: int, scalar: bool) -> bool:
    """Return whether a slot loads operand ``n`` in a separate cycle.

    It does for registers, and in slot t also for PV and PS. A vector slot reads equal operands 0
    and 1 once.
    """
    read = o.reads[n]
    if scalar:
        return read.kind in ("gpr", "pv", "ps")
    return read.kind == "gpr" and not (n == 1 and _same_place(o.reads[0], read))


def _same_place(a: Read, b: Read) -> bool:
    return (a.kind, a.index, a.channel) == (b.kind, b.index, b.channel)


def _constants(bundle: Bundle) -> Violations:
    reads = [r for o in bundle.operations for r in o.reads]
    pairs = {(r.index, r.element, r.channel // 2) for r in reads if r.kind == "constant"}
    if len(pairs) > 2:
        yield f"{len(pairs)} pairs of constants"
    if len(bundle.literals) > 4:
        yield f"{len(bundle.literals)} literals"
    for r in reads:
        if r.kind == "literal" and bundle.literals[r.channel : r.channel + 1] != (r.bits,):
            yield f"literal {r.bits:#x} is not where it is read"


def _operands(o: Operation, gprs: int) -> Violations:
    for r in o.reads:
        if r.kind == "gpr" and r.index < FIRST_TEMPORARY:
            yield from _registers((r.index,), gprs)
        if r.neg and o.row.kind not in ("float", "double"):
            yield f"{o.name} can't negate operands"


def _result(o: Operation, gprs: int, device: Device) -> Violations:
    if o.dest is not None:
        if not o.row.words:
            yield f"{o.name} writes nothing"
        if not FIRST_TEMPORARY <= o.dest[0] < FIRST_TEMPORARY + device.clause_temporaries:
            yield from _registers((o.dest[0],), gprs)
