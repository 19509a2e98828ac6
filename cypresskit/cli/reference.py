"""The reference of the language, made from the tables that parser and engines read: a page, or one name's entry."""

from cypresskit.il.left_out import LEFT_OUT, unknown
from cypresskit.il.opcodes import OPCODES, Opcode

TYPES = {"f": "float", "i": "int", "u": "unsigned", "d": "double", "b": "32 bits"}
SLOTS = {
    "xyzwt": "any slot, 4 clocks a bundle",
    "xyzw": "x, y, z or w, 4 clocks a bundle",
    "t": "t alone, 4 clocks a bundle",
    "pair": "two slots (xy or zw), 4 clocks a bundle",
    "quad": "all of x y z w, 4 clocks a bundle",
    "mov": "two slots, as a `mov` of two components, 4 clocks a bundle",
    "-": "several operations",
}
REGISTERS = {
    "r0": "general registers, of four 32-bit components; 65,536 names, of which the compiler makes up to 128",
    "l0": "literals, by `dcl_literal`",
    "cb0[3]": "elements of constant buffers, by `dcl_cb`",
    "g[r1.x+1]": "elements of 16 bytes of global memory; the address is a component of a register or a literal",
    "o0": "output streams o0 to o7 (pixel mode)",
    "mem": "LDS, as a destination with a mask",
    "vWinCoord0": "the pixel's place, centres at .5; also v0",
    "vAbsTid": "the work-item in the domain; vAbsTidFlat, also vaTid: as one number",
    "vTidInGrp": "the work-item in its workgroup; vTidInGrpFlat, also vTid: as one number",
    "vThreadGrpId": "the workgroup; vThreadGrpIdFlat, also vTGroupid: as one number",
}
MODIFIERS = {
    "_neg(xw)": "of a source: negated at these positions, or without brackets at all",
    "_abs": "of a source: its size",
    "_x2": "of a source or a result: doubled; of results also _x4, _x8, _d2, _d4, _d8",
    "_bias": "of a source: minus 0.5; _bx2: then doubled",
    "_invert": "of a source: 1 minus it",
    "_sign": "of a source: -1, 0 or 1",
    "_sat": "of a result: clamped to 0..1, NaN to 0",
    "_ieee": "of an instruction: taken, and what is done anyway",
    "_zeroop(infinity)": "of a reciprocal: taken, and whatever it says 1 / 0 is infinity",
}
ROUNDING = """Single precision rounds to nearest even once for each operation, also `mad`; subnormal operands and
results become zero; a NaN that arithmetic makes is 0x7fc00000. Doubles are IEEE, with subnormals. 0
times infinity is NaN. Where the meaning says "the chip approximates", the result here is the exact one,
rounded: AMD's Evergreen instruction set (chapter 9) calls reciprocal and roots approximations and states no
bound. `ddiv` and `div` are several operations there."""


def example(op: Opcode) -> str:
    if op.example:
        return op.example.replace("; ", "\n")
    name, dest = op.name, {"-": [], "d": ["r0.xy"]}.get(op.result, ["r0"])
    sources = [f"r{n + 1}{'.xy' if t == 'd' else ''}" for n, t in enumerate(op.sources)]
    if op.kind == "lds":
        name, sources = f"{name}_id(0)", [f"{source}.x" for source in sources]
    if "relop" in op.controls:
        name += "_relop(lt)"
    if op.store and op.words > 1:
        dest = ["mem.xy"]
    line = f"{name} {', '.join([*dest, *sources])}".strip()
    if op.flow == "if":
        return f"{line}\nendif"
    if op.flow:
        return f"whileloop\nbreak_logicalz r3.x\n{line}\nendloop"
    return line


def entry(op: Opcode) -> list[str]:
    """Name, operands, slots and clocks, meaning, example."""
    operands = ", ".join([f"to {TYPES[r]}" for r in op.result if r in TYPES] + [TYPES[t] for t in op.sources])
    cost = "16 clocks a wavefront at best" if op.kind == "fetch" else "-"
    if op.kind in ("alu", "lds"):
        cost = SLOTS[op.slots]
    return [op.name, operands or "-", cost, op.meaning, example(op)]


def describe(name: str) -> str:
    """The entry of an opcode, a register or a modifier; ``ValueError`` for a name that isn't in the subset."""
    for table in (REGISTERS, MODIFIERS):
        if name in table:
            return f"{name}: {table[name]}"
    if name not in OPCODES:
        raise ValueError(unknown(name, OPCODES))
    title, operands, cost, meaning, line = entry(OPCODES[name])
    line = line.replace("\n", "; ")
    return f"{title}\n  operands  {operands}\n  cost      {cost}\n  meaning   {meaning}\n  example   {line}"


def page() -> str:
    """The whole reference as Markdown: `docs/il.md`."""
    parts = ["# The language: cypresskit's subset of AMD's IL", "Written by `cypresskit il --markdown`.", ROUNDING]
    kinds = {"alu": "Arithmetic", "fetch": "Fetches", "lds": "Local data share", "flow": "Control flow"}
    kinds |= {"fence": "Fences", "macro": "Macros", "end": "Ends", "declaration": "Declarations"}
    for kind, title in kinds.items():
        rows = [entry(op) for op in OPCODES.values() if op.kind == kind]
        shown = [f"| `{n}` | {o} | {c} | {m} | `{e.replace(chr(10), '; ')}` |" for n, o, c, m, e in rows]
        head = ["| name | operands | cost | meaning | example |", "|---" * 5 + "|"]
        parts += [f"## {title}", "\n".join([*head, *shown])]
    for title, table in (("Registers", REGISTERS), ("Modifiers", MODIFIERS)):
        parts += [f"## {title}", "\n".join(f"- `{name}`: {what}" for name, what in table.items())]
    left = [f"- {where}, {kind}: {', '.join(f'`{name}`' for name in names)}" for where, kind, names in LEFT_OUT]
    parts += ["## Left out", "By sections of AMD's specification, version 2.4; a star stands for any ending."]
    parts += ["\n".join(left)]
    return "\n\n".join(parts) + "\n"
