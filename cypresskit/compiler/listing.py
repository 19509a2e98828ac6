"""Print compiled code in the style of AMD's disassembly.

The head of a clause has its number of slots or fetches and the constants that it locks. Bundles and
fetches are numbered. A bundle has one line per slot: operation, destination (``____`` if only PV or
PS take the result), operands, bank swizzle if not the default, other notes, and its
line of IL. T0 to T3 are the clause temporaries.
"""

import struct

from cypresskit.compiler.assembly import (
    Control,
    FetchInstruction,
    Operation,
    Read,
    StoreInstruction,
)
from cypresskit.compiler.isa import INLINE, SLOTS
from cypresskit.devices import FIRST_TEMPORARY
from cypresskit.il.program import LETTERS

COLUMN = 104  # of the IL line numbers
USUAL = ("VEC_012", "SCL_210")


def listing(controls: tuple[Control, ...]) -> str:
    """Return the listing of a kernel's code."""
    lines: list[str] = []
    number = 0
    for n, control in enumerate(controls):
        indent = "  " * (control.depth - (control.name in ("LOOP_START_DX10", "LOOP_END")))
        lines.append(
            _line(
                f"{n:02d} {indent}{_head(control)}", control.store.line if control.store else None
            )
        )
        clause = [[(fetch_text(f), f.line)] for f in control.fetches]
        clause += [
            [(f"{SLOTS[o.slot]}: {operation_text(o)}", o.line) for o in b.operations]
            for b in control.bundles
        ]
        for parts in clause:
            for k, (text, line) in enumerate(parts):
                lines.append(_line(f"   {indent}{'' if k else number:>5}  {text}", line))
            number += 1
    return "\n".join(lines) + "\n"


def _line(text: str, line: int | None) -> str:
    return text if line is None else f"{text:<{COLUMN}} ; line {line}"


def _head(control: Control) -> str:
    name = control.name
    if control.bundles:
        locked = "".join(
            f" KCACHE{n}(CB{b}:{first}-{first + 31})"
            for n, (b, first) in enumerate(control.windows)
        )
        return f"{name}: CNT({control.slots}){locked}"
    if control.fetches:
        return f"{name}: CNT({len(control.fetches)})"
    if control.store is not None:
        return store_text(control.store)
    loops = {"LOOP_START_DX10": "FAIL_JUMP_ADDR", "LOOP_END": "PASS_JUMP_ADDR"}
    jump = f"{name} {loops.get(name, 'ADDR')}({control.target:02d})"
    return name if control.target < 0 else jump


def store_text(store: StoreInstruction) -> str:
    """Return a store as the listing shows it."""
    mask = "" if store.select == LETTERS else f".{store.select}"
    if store.name == "EXPORT":
        return f"EXPORT: o{store.offset}, R{store.source}{mask}"
    index = "" if store.index is None else f"+R{store.index}.x"
    place = f"DWORD_PTR[{4 * store.offset}{index}]"
    return f"{store.name}: {place}, R{store.source}{mask}, ELEM_SIZE(3)"


def fetch_text(f: FetchInstruction) -> str:
    """Return a fetch as the listing shows it."""
    dest = f"R{f.dest}" + ("" if f.select == LETTERS else f".{f.select}")
    if f.name == "MEM_READ":
        register = "" if f.source is None else f"+R{f.source}.{f.coordinates}"
        place = f"DWORD_PTR[{4 * f.offset[0]}{register}]"
        return f"MEM_EXPORT_READ_IND {dest + ',':<9} {place}"
    source = f"R{0 if f.source is None else f.source}.{f.coordinates:0<4}"
    offsets = "".join(f"{axis}OFFSET({o})".ljust(12) for axis, o in zip("XYZ", f.offset) if o)
    return (
        f"{f.name:<7} {dest + ',':<9} {source + ',':<10} t{f.resource}, s{f.resource} "
        f" UNNORM(XYZW)  {offsets}".rstrip()
    )


def operation_text(o: Operation) -> str:
    """Return an operation as the listing shows it, without its slot."""
    dest = [] if not (o.row.words or o.row.is_test) else ["____"]
    if o.dest is not None:
        dest = [f"{_register(o.dest[0])}.{LETTERS[o.dest[1]]}"]
    *first, last = dest + [_read(r) for r in o.reads] or [""]
    operands = "".join(f"{text + ',':<8}" for text in first) + last
    notes = []
    if o.lds and o.name in ("LDS_READ_REL_RET", "LDS_WRITE_REL"):
        notes.append(f"OFFSET({o.lds.offset})")
    notes += ["UPDATE_EXEC_MASK"] if o.row.is_test else []
    swizzle = "" if o.swizzle in USUAL else o.swizzle
    return f"{o.name:<16} {operands:<46} {swizzle:<7} {' '.join(notes)}".rstrip()


def _register(number: int) -> str:
    return f"R{number}" if number < FIRST_TEMPORARY else f"T{number - FIRST_TEMPORARY}"


def _read(r: Read) -> str:
    channel = LETTERS[r.channel]
    if r.kind == "gpr":
        text = f"{_register(r.index)}.{channel}"
    elif r.kind in ("pv", "ps"):
        text = f"PV.{channel}" if r.kind == "pv" else "PS"
    elif r.kind == "constant":
        text = f"KC{r.index}[{r.element}].{channel}"
    elif r.kind == "queue":
        text = f"LDS_OQ_{'AB'[r.index]}_POP"
    elif r.kind == "inline":
        text = INLINE[r.bits]
    else:
        text = f"(0x{r.bits:08X}, {struct.unpack('<f', struct.pack('<I', r.bits))[0]:g}f).{channel}"
    return f"-{text}" if r.neg else text
