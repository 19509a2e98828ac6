"""The instruction table: every IL opcode, once.

The parser reads what operands an opcode takes, the engines what it means, the compiler which VLIW slots may hold it,
and `cypresskit il` prints it as documentation. Sources: the IL specification v2.4 for meanings; AMD's Evergreen
instruction set, chapters 4 and 9, and the APP guide, table 4.14, for slots.

Types are one letter: ``f`` float32, ``i`` int32, ``u`` uint32, ``d`` float64 in a pair of components, ``b`` 32 bits of
any kind; a quote behind a source's letter says that its bits are passed on as they are. Slots are the VLIW slots an
operation may use: ``xyzwt`` any, ``xyzw`` not t, ``t`` only t, ``pair`` two slots (xy or zw), ``quad`` all of x y z w;
``mov`` two, as a ``mov`` of two components; a dash means that the compiler expands it into several operations.
"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple


class Relation(NamedTuple):
    """A relation between two numbers: the one that holds with its operands exchanged (``flipped``), and the one that
    holds where this one doesn't (``negated``; of floats only for eq and ne, since a NaN fails all others)."""

    flipped: str
    negated: str


RELATIONS = {
    "lt": Relation("gt", "ge"),
    "le": Relation("ge", "gt"),
    "eq": Relation("eq", "ne"),
    "ne": Relation("ne", "eq"),
    "ge": Relation("le", "lt"),
    "gt": Relation("lt", "le"),
}


@dataclass(frozen=True)
class Opcode:
    """A row: ``types`` has the result's type, then one letter per source ("fff": float = op(float, float)).

    ``kind`` is "alu", "fetch", "lds", "flow", "fence", "macro", "declaration" or "end"; ``example``: lines of IL, or ""
    where the operands tell them; ``flow``: the role in control flow ("loop", "if", "else", "endif", "endloop", "break",
    "continue"); ``vector``: not done component by component (dp4, doubles, fetches); ``flops``: floating-point
    operations per result; ``passed``: the sources whose bits are passed on, to the result or to memory; ``relation``:
    what a comparison tests, a branch against 0; ``store`` and ``words``: whether an LDS access stores, and how many
    words at most; ``across``: how many components a dot product sums; ``controls``: what may stand in brackets or
    behind the name, in the order in which one writes it; ``needs``: those that must.
    """

    name: str
    kind: str
    types: str
    slots: str
    meaning: str
    example: str = ""
    flow: str = ""
    vector: bool = False
    flops: int = 0
    passed: tuple[int, ...] = ()
    relation: str = ""
    store: bool = False
    words: int = 0
    across: int = 0
    controls: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def result(self) -> str:
        """The result's type letter, or ``-`` if nothing is written."""
        return self.types[0] if self.types else "-"

    @property
    def sources(self) -> str:
        return self.types[1:]

    def float_modifiers(self, n: int) -> bool:
        """Whether source ``n`` is modified as a float (abs, bias, ...); integers can only be negated."""
        return self.sources[n] == "f" or n in self.passed

    @property
    def double(self) -> bool:
        return "d" in self.types

    @property
    def copies(self) -> bool:
        """Whether the result is a source's bits."""
        return self.kind == "alu" and bool(self.passed)


OPCODES: dict[str, Opcode] = {}

_TABLE = """
alu:
    mov          bb'    xyzwt             | d = a
    add          fff    xyzwt flops=1     | d = a + b
    sub          fff    xyzwt flops=1     | d = a - b
    mul          fff    xyzwt flops=1     | d = a * b
    mad          ffff   xyzwt flops=2     | d = a * b + c, rounded once
    flr          ff     xyzwt             | d = floor(a)
    frc          ff     xyzwt             | d = a - floor(a)
    min          fff    xyzwt             | d = a < b ? a : b
    max          fff    xyzwt             | d = a >= b ? a : b
    round_nearest ff    xyzwt             | d = a rounded to a whole number, halves to even
    round_neginf ff     xyzwt             | d = floor(a)
    round_plusinf ff    xyzwt             | d = ceiling of a
    round_z      ff     xyzwt             | d = a rounded to a whole number towards zero
    lt           bff    xyzwt relation=lt | d = a < b ? all ones : 0
    ge           bff    xyzwt relation=ge | d = a >= b ? all ones : 0
    eq           bff    xyzwt relation=eq | d = a == b ? all ones : 0
    ne           bff    xyzwt relation=ne | d = a != b ? all ones : 0
    iadd         iii    xyzwt             | d = a + b, modulo 2^32
    isub         iii    xyzwt             | d = a - b, modulo 2^32
    inegate      ii     xyzwt             | d = -a, modulo 2^32
    ishl         iii    xyzwt             | d = a shifted left by the low five bits of b
    ishr         iii    xyzwt             | d = a shifted right by the low five bits of b, keeping the sign
    ushr         uuu    xyzwt             | d = a shifted right by the low five bits of b, filling with 0
    iand         bbb    xyzwt             | d = a and b, bit by bit
    ior          bbb    xyzwt             | d = a or b, bit by bit
    ixor         bbb    xyzwt             | d = a exclusive-or b, bit by bit
    inot         bb     xyzwt             | d = not a, bit by bit
    imin         iii    xyzwt             | d = smaller of a and b, signed
    imax         iii    xyzwt             | d = larger of a and b, signed
    umin         uuu    xyzwt             | d = smaller of a and b, unsigned
    umax         uuu    xyzwt             | d = larger of a and b, unsigned
    ilt          bii    xyzwt relation=lt | d = a < b ? all ones : 0, signed
    ige          bii    xyzwt relation=ge | d = a >= b ? all ones : 0, signed
    ieq          bii    xyzwt relation=eq | d = a == b ? all ones : 0
    ine          bii    xyzwt relation=ne | d = a != b ? all ones : 0
    ult          buu    xyzwt relation=lt | d = a < b ? all ones : 0, unsigned
    uge          buu    xyzwt relation=ge | d = a >= b ? all ones : 0, unsigned
    cmov_logical bbb'b' xyzwt             | d = any bit of a set ? b : c
    icarry       iii    xyzwt             | d = 1 where a + b exceeds 2^32 - 1, else 0
    iborrow      iii    xyzwt             | d = 1 where a < b, unsigned, else 0
    ibit_extract iuui   xyzw              | d = a bits of c from bit b on (five bits of each), the sign kept
    ubit_extract uuuu   xyzw              | d = a bits of c from bit b on (five bits of each)
    icbits       uu     xyzw              | d = how many bits of a are set
    umul24       uuu    xyzw              | d = low 32 bits of the product of the low 24 bits of a and b
    umul24_high  uuu    xyzw              | d = high 16 of the 48 bits of the product of the low 24 bits of a and b
    umad24       uuuu   xyzw              | d = low 32 bits of the product of the low 24 bits of a and b, plus c
    fma          ffff   xyzw  flops=2     | d = a * b + c, rounded once
    imul         iii    t                 | d = low 32 bits of a * b
    umul         uuu    t                 | d = low 32 bits of a * b
    imul_high    iii    t                 | d = high 32 bits of a * b, signed
    umul_high    uuu    t                 | d = high 32 bits of a * b, unsigned
    ftoi         if     t                 | d = a rounded towards zero, clamped to int32; NaN gives 0
    ftou         uf     t                 | d = a rounded towards zero, clamped to uint32; NaN gives 0
    itof         fi     t                 | d = a as float, rounded to nearest
    utof         fu     t                 | d = a as float, rounded to nearest
    rcp          ff     t     flops=1     | d = 1 / a.w in every component (the chip approximates)
    rcp_vec      ff     t     flops=1     | d = 1 / a (the chip approximates)
    rsq          ff     t     flops=1     | d = 1 / square root of a.w in every component (the chip approximates)
    rsq_vec      ff     t     flops=1     | d = 1 / square root of a (the chip approximates)
    sqrt_vec     ff     t     flops=1     | d = square root of a (the chip approximates)
    sqrt         ff     t     flops=1     | d = square root of a.w in every component (the chip approximates)
    ubit_insert  uuuuu  -                 | d = the last source with a bits of c from bit b on (five bits of each)
    imad         iiii   -                 | d = low 32 bits of a * b, plus c
    umad         uuuu   -                 | d = low 32 bits of a * b, plus c
    udiv         uuu    -                 | d = a / b rounded down; all ones where b is 0
    umod         uuu    -                 | d = a mod b; all ones where b is 0
    div          fff    -     flops=1     | d = a / b, correctly rounded (the chip: by reciprocal)
    mod          fff    -     flops=1     | d = a - b trunc(a r) with r = 1 / b, each rounded, so at times one b off
    dp2          fff    -     flops=3 across=2 | d = a.x b.x + a.y b.y in every component, each step rounded
    dp3          fff    -     flops=5 across=3 | d = a.x b.x + a.y b.y + a.z b.z in every component, each step rounded
    dp4          fff    -     flops=7 across=4 | d = a.x b.x + a.y b.y + a.z b.z + a.w b.w everywhere, each step rounded
    ddiv         ddd    -     flops=1     | d = a / b, correctly rounded (the chip: by iteration)
    dmov         dd     mov               | d = a, bit by bit: assembled as a mov of two components
    dadd         ddd    pair  flops=1     | d = a + b
    dmin         ddd    pair              | d = a < b ? a : b
    dmax         ddd    pair              | d = a >= b ? a : b
    dfrac        dd     pair              | d = a - floor(a)
    d2f          fd     pair              | d = a as float in every component
    f2d          df     pair              | d = a.x as double
    dlt          bdd    pair  relation=lt | d = a < b ? all ones : 0 in every component
    dge          bdd    pair  relation=ge | d = a >= b ? all ones : 0 in every component
    deq          bdd    pair  relation=eq | d = a == b ? all ones : 0 in every component
    dne          bdd    pair  relation=ne | d = a != b ? all ones : 0 in every component
    dmul         ddd    quad  flops=1     | d = a * b
    dmad         dddd   quad  flops=2     | d = a * b + c, rounded once (FMA_64)
fetch:
    sample bf     controls=resource!,sampler,aoffimmi,coordtype | d = the texel at float coordinates a.xy; outside 0 \
        | sample_resource(0)_sampler(0) r0, r1
    load   bi     controls=resource!,aoffimmi | d = the texel at integer coordinates a.xy; outside 0 \
        | load_resource(0) r0, r1
lds:
    lds_load      bb     xyzw  words=1 controls=id! | d = the LDS word at byte a.x (struct: record a.x byte a.y)
    lds_load_vec  bbb    xyzw  words=4 controls=id! | d = LDS words from byte a.x (struct: record a.x byte b.x)
    lds_store     -bb'   xyzw  words=1 access=store controls=id! | word at byte a.x (struct: record a.x byte a.y) = b.x
    lds_store_vec bbbb'  xyzw  words=4 access=store controls=id! | words from byte a.x (struct: record a.x byte b.x) = c
flow:
    whileloop          -      flow=loop                   | runs its body until a break | whileloop; break; endloop
    endloop            -      flow=endloop                | end of a loop's body | whileloop; break; endloop
    break              -      flow=break                  | leaves the loop
    break_logicalnz    -b     flow=break relation=ne      | leaves the loop if any bit of a.x is set
    break_logicalz     -b     flow=break relation=eq      | leaves the loop if a.x is 0
    breakc             -ff    flow=break controls=relop!  | leaves the loop if a.x relop b.x (float)
    continue           -      flow=continue               | starts the loop's next turn
    continuec          -ff    flow=continue controls=relop! | starts the loop's next turn if a.x relop b.x (float)
    continue_logicalnz -b     flow=continue relation=ne   | starts the loop's next turn if any bit of a.x is set
    continue_logicalz  -b     flow=continue relation=eq   | starts the loop's next turn if a.x is 0
    if_logicalnz       -b     flow=if relation=ne         | runs what follows if any bit of a.x is set
    if_logicalz        -b     flow=if relation=eq         | runs what follows if a.x is 0
    ifc                -ff    flow=if controls=relop!     | runs what follows if a.x relop b.x (float)
    else               -      flow=else                   | runs what follows otherwise | if_logicalnz r1.x; else; endif
    endif              -      flow=endif                  | end of an if | if_logicalnz r1.x; endif
fence:
    fence controls=threads,lds,memory | waits for what its name says: the workgroup, accesses to LDS, to memory \
        | fence_threads_lds
macro:
    mcall controls=k! | expands the macro of that number | mcall(7) (r0), (r1)
end:
    end     | ends the program
    endmain | ends the main program
    ret_dyn | returns from the main program: its last instruction, outside of loops and ifs
declaration:
    dcl_literal                 | four 32-bit constants: hexadecimal, float or integer text \
        | dcl_literal l1, 0x3f800000, 1.0, -0.5, 2
    dcl_resource                | an input texture \
        | dcl_resource_id(1)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
    dcl_cb                      | a constant buffer and its size in elements | dcl_cb cb0[4]
    dcl_input_position_interp   | the pixel's place, centres at .5 \
        | dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
    dcl_input                   | the pixel's place as v0: `dcl_input_interp(linear) v0.xy__` \
        | dcl_input_interp(linear) v0.xy__
    dcl_output_generic          | an output stream | dcl_output_generic o0
    dcl_output_usage            | an output stream | dcl_output_usage(generic) o0
    dcl_num_thread_per_group    | the workgroup's size along x, y, z | dcl_num_thread_per_group 8, 8
    dcl_max_thread_per_group    | the most work-items of a workgroup: here its size, unless the other is declared \
        | dcl_max_thread_per_group 64
    dcl_lds                     | an LDS array of so many bytes | dcl_lds_id(1) 1024
    dcl_struct_lds              | an LDS array of records: bytes of one, count | dcl_struct_lds_id(1) 16, 64
"""


def _read(table: str) -> None:
    """Rows of a name, types, slots and facts by name, and behind bars the meaning and an example; ``!`` marks a control
    that must be there."""
    kind = ""
    for row in table.strip().splitlines():
        head, *texts = (part.strip() for part in row.split("|"))
        if not texts:
            kind = head.strip(":")
            continue
        name, *words = head.split()
        facts: dict[str, Any] = dict(word.split("=") for word in words if "=" in word)
        types, slots = (*(word for word in words if "=" not in word), "-", "-")[:2]
        letters = re.findall("[a-z-]'?", types)
        controls = facts.pop("controls").split(",") if "controls" in facts else []
        OPCODES[name] = Opcode(
            name,
            kind,
            types.replace("'", "") if types != "-" else "",
            slots,
            texts[0],
            texts[1] if texts[1:] else "",
            vector="d" in types or kind in ("fetch", "lds") or "across" in facts,
            passed=tuple(n for n, letter in enumerate(letters[1:]) if "'" in letter),
            store=facts.pop("access", "") == "store",
            controls=tuple(c.strip("!") for c in controls),
            needs=tuple(c.strip("!") for c in controls if "!" in c),
            **facts | {fact: int(facts.get(fact, 0)) for fact in ("flops", "words", "across")},
        )


_read(_TABLE)


def opcode_in(text: str) -> str:
    """The longest opcode that text begins with, with or without controls; "" if there is none."""
    parts = re.split(r"\W", text, maxsplit=1)[0].lower().split("_")
    names = ("_".join(parts[:n]) for n in range(min(len(parts), 5), 0, -1))  # no name has more parts
    return next((name for name in names if name in OPCODES), "")
