"""The instruction table: every IL opcode, once.

The parser reads what operands an opcode takes, the engines what it means, the compiler which VLIW slots may hold it,
and ``opcode_table`` prints it as documentation. Sources: the IL specification v2.4 for meanings; AMD's Evergreen
instruction set, chapters 4 and 9, and the APP guide, table 4.14, for slots.

Types are one letter: ``f`` float32, ``i`` int32, ``u`` uint32, ``d`` float64 in a pair of components, ``b`` 32 bits of
any kind. Slots are the VLIW slots an operation may use: ``xyzwt`` any, ``xyzw`` not t, ``t`` only t, ``pair`` two slots
(xy or zw), ``quad`` all of x y z w; a dash means that the compiler expands it into several operations.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Opcode:
    """A row: ``types`` has the result's type, then one letter per source ("fff": float = op(float, float)).

    ``kind`` is "alu", "fetch", "lds", "flow", "fence", "macro", "declaration" or "end"; ``flow`` the role in control
    flow ("loop", "if", "else", "endif", "endloop", "break", "continue"); ``vector`` marks operations that are not done
    component by component (dp4, doubles, fetches).
    """

    name: str
    kind: str
    types: str
    slots: str
    meaning: str
    flow: str = ""
    vector: bool = False

    @property
    def result(self) -> str:
        """The result's type letter, or ``-`` if nothing is written."""
        return self.types[0] if self.types else "-"

    @property
    def sources(self) -> str:
        """The sources' type letters."""
        return self.types[1:]

    def float_modifiers(self, n: int) -> bool:
        """Whether source ``n`` is modified as a float (abs, bias, ...); integers can only be negated."""
        return self.sources[n] == "f" or (self.name, n) in BITS_AS_FLOAT

    @property
    def double(self) -> bool:
        """Whether any operand is a double."""
        return "d" in self.types


#: Sources that carry bits of any kind and are modified as floats.
BITS_AS_FLOAT = {("mov", 0), ("cmov_logical", 1), ("cmov_logical", 2), ("lds_store", 1), ("lds_store_vec", 2)}

OPCODES: dict[str, Opcode] = {}


def _add(kind: str, slots: str, rows: str, vector: bool = False) -> None:
    for row in rows.strip().splitlines():
        name, types, meaning = (part.strip() for part in row.split(None, 2))
        OPCODES[name] = Opcode(name, kind, types.replace(".", ""), slots, meaning, vector=vector)


_add(
    "alu",
    "xyzwt",
    """
    mov     bb    d = a
    add     fff   d = a + b
    sub     fff   d = a - b
    mul     fff   d = a * b
    mad     ffff  d = a * b + c, rounded once
    flr     ff    d = floor(a)
    frc     ff    d = a - floor(a)
    min     fff   d = a < b ? a : b
    max     fff   d = a >= b ? a : b
    lt      bff   d = a < b ? all ones : 0
    ge      bff   d = a >= b ? all ones : 0
    eq      bff   d = a == b ? all ones : 0
    ne      bff   d = a != b ? all ones : 0
    iadd    iii   d = a + b, modulo 2^32
    isub    iii   d = a - b, modulo 2^32
    inegate ii    d = -a, modulo 2^32
    ishl    iii   d = a shifted left by the low five bits of b
    ishr    iii   d = a shifted right by the low five bits of b, keeping the sign
    ushr    uuu   d = a shifted right by the low five bits of b, filling with 0
    iand    bbb   d = a and b, bit by bit
    ior     bbb   d = a or b, bit by bit
    ixor    bbb   d = a exclusive-or b, bit by bit
    inot    bb    d = not a, bit by bit
    imin    iii   d = smaller of a and b, signed
    imax    iii   d = larger of a and b, signed
    umin    uuu   d = smaller of a and b, unsigned
    umax    uuu   d = larger of a and b, unsigned
    ilt     bii   d = a < b ? all ones : 0, signed
    ige     bii   d = a >= b ? all ones : 0, signed
    ieq     bii   d = a == b ? all ones : 0
    ine     bii   d = a != b ? all ones : 0
    ult     buu   d = a < b ? all ones : 0, unsigned
    uge     buu   d = a >= b ? all ones : 0, unsigned
    cmov_logical bbbb d = any bit of a set ? b : c
""",
)
_add(
    "alu",
    "xyzw",
    """
    fma     ffff  d = a * b + c, rounded once
""",
)
_add(
    "alu",
    "t",
    """
    imul    iii   d = low 32 bits of a * b
    umul    uuu   d = low 32 bits of a * b
    ftoi    if    d = a rounded towards zero, clamped to int32; NaN gives 0
    ftou    uf    d = a rounded towards zero, clamped to uint32; NaN gives 0
    itof    fi    d = a as float, rounded to nearest
    utof    fu    d = a as float, rounded to nearest
    rcp     ff    d = 1 / a, correctly rounded here (the chip: 1 ulp)
    sqrt    ff    d = square root of a, correctly rounded here (the chip: 1 ulp)
""",
)
_add(
    "alu",
    "-",
    """
    imad    iiii  d = low 32 bits of a * b, plus c
    umad    uuuu  d = low 32 bits of a * b, plus c
    udiv    uuu   d = a / b rounded down; all ones where b is 0
    umod    uuu   d = a mod b; all ones where b is 0
    div     fff   d = a / b, correctly rounded here (the chip: by reciprocal)
""",
)
_add(
    "alu",
    "-",
    """
    dp4     fff   d = a.x b.x + a.y b.y + a.z b.z + a.w b.w in every component, each step rounded, from the left
    ddiv    ddd   d = a / b, correctly rounded here (the chip: by iteration)
""",
    vector=True,
)
_add(
    "alu",
    "pair",
    """
    dadd    ddd   d = a + b
    d2f     fd    d = a as float in every component
    f2d     df    d = a.x as double
    dlt     bdd   d = a < b ? all ones : 0 in every component
    dge     bdd   d = a >= b ? all ones : 0 in every component
    deq     bdd   d = a == b ? all ones : 0 in every component
    dne     bdd   d = a != b ? all ones : 0 in every component
""",
    vector=True,
)
_add(
    "alu",
    "quad",
    """
    dmul    ddd   d = a * b
    dmad    dddd  d = a * b + c, rounded once (FMA_64)
""",
    vector=True,
)
_add(
    "fetch",
    "-",
    """
    sample  bf    d = texel of a resource at float coordinates a.xy, nearest neighbour; outside it 0
    load    bi    d = texel of a resource at integer coordinates a.xy; outside it 0
""",
    vector=True,
)
_add(
    "lds",
    "xyzw",
    """
    lds_load      bb    d = the LDS word at byte a.x (struct: a.x * stride + a.y), in every component
    lds_load_vec  bbb   d = up to four LDS words from byte a.x (struct: a.x * stride + b.x)
    lds_store     -bb   LDS word at byte a.x (struct: a.x * stride + a.y) = b.x
    lds_store_vec bbbb  LDS words from byte a.x (struct: a.x * stride + b.x) = c, as many as the mask of mem says
""",
    vector=True,
)

_FLOW = """
    whileloop          -    loop     runs its body until a break
    endloop            -    endloop  end of a loop's body
    break              -    break    leaves the loop
    break_logicalnz    -b   break    leaves the loop if any bit of a.x is set
    break_logicalz     -b   break    leaves the loop if a.x is 0
    breakc             -ff  break    leaves the loop if a.x relop b.x (float)
    continue           -    continue starts the loop's next turn
    continue_logicalnz -b   continue starts the loop's next turn if any bit of a.x is set
    continue_logicalz  -b   continue starts the loop's next turn if a.x is 0
    if_logicalnz       -b   if       runs what follows if any bit of a.x is set
    if_logicalz        -b   if       runs what follows if a.x is 0
    ifc                -ff  if       runs what follows if a.x relop b.x (float)
    else               -    else     runs what follows otherwise
    endif              -    endif    end of an if
"""
for _row in _FLOW.strip().splitlines():
    _name, _types, _role, _meaning = _row.split(None, 3)
    OPCODES[_name] = Opcode(_name, "flow", _types, "-", _meaning, flow=_role)

_REST = """
    fence    fence       waits as its name says: _threads for the workgroup, _lds and _memory for accesses to them
    mcall    macro       expands the macro of that number
    end      end         ends the program
    endmain  end         ends the main program
    dcl_literal                 declaration  four 32-bit constants: hexadecimal, float or integer text
    dcl_resource                declaration  an input texture
    dcl_cb                      declaration  a constant buffer and its size in elements
    dcl_input_position_interp   declaration  the pixel's place, centres at .5
    dcl_output_generic          declaration  an output stream
    dcl_output_usage            declaration  an output stream
    dcl_num_thread_per_group    declaration  the workgroup's size along x, y, z
    dcl_lds                     declaration  an LDS block of so many bytes
    dcl_struct_lds              declaration  an LDS block of records: bytes of one, count
"""
for _row in _REST.strip().splitlines():
    _name, _kind, _meaning = _row.split(None, 2)
    OPCODES[_name] = Opcode(_name, _kind, "", "-", _meaning)

RELOPS = ("lt", "le", "eq", "ne", "ge", "gt")

REFUSED = {
    "dcl_lds_size_per_thread": "belongs to an earlier chip (R700). Here a block of LDS is declared with "
    "`dcl_lds_id(0) BYTES` or `dcl_struct_lds_id(0) STRIDE, COUNT`",
    "lds_read_vec": "belongs to an earlier chip (R700). Use `lds_load_id(0)` or `lds_load_vec_id(0)`",
    "lds_write_vec": "belongs to an earlier chip (R700). Use `lds_store_id(0)` or `lds_store_vec_id(0)`",
}


def opcode_table() -> str:
    """The whole table as Markdown, for the documentation."""
    lines = ["| opcode | result, sources | slots | meaning |", "|---|---|---|---|"]
    lines += [f"| `{o.name}` | {o.types or '-'} | {o.slots} | {o.meaning} |" for o in OPCODES.values()]
    return "\n".join(lines)
