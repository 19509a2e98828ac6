"""Write random IL programs that are valid, end, and don't race, with arrays to launch them on.

All opcodes occur, with all kinds of masks, swizzles and modifiers; nested branches; loops that
work-items leave after different numbers of iterations; texture coordinates in and out of range;
macros; and data full of NaN, infinities and subnormal numbers. Each work-item writes its
own four elements of global memory, and reads these and a part that is never written. LDS is written
and read alternately, with a fence between, in uniform control flow.

``GRAMMAR`` has the free choices, ``_Mixture`` those that depend on other statements. Registers: r0
to r11 are free; r20.. count loops; r30.x is the work-item's first element of ``g``, r31 a random
address, r32.x its first byte of an LDS array, r33 an address to read in LDS.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cypresskit.il import OPCODES, Opcode
from tools.fuzz.grammar import Writer, random_words

PLAYED = 12  # registers r0.. that statements read and write
CROWD = range(112, 124)  # registers r100.. that a crowded program keeps alive from end to end
CROWDED = 1 / 16  # of the programs
OWN = 4  # elements of global memory that belong to a work-item
SHARED = 16  # elements of global memory, after the work-items' own, that are only read
TYPES = np.float32, np.uint32  # of textures
ARITHMETIC = [op for op in OPCODES.values() if op.kind == "alu"]
GRAMMAR = {  # a name and its alternatives; {a|b} stands for one of two anywhere
    "r": "|".join(f"r{n}" for n in range(PLAYED)),
    "own": f"g[r30.x+{{{'|'.join(map(str, range(OWN)))}}}]",
    "any": "{r}|{r}|{r}|{r}|{r}|{r}|{r}|{constant}|{own}|l{0|1|2|3}|l{0|1|2|3}|{id}",
    "component": "{any}.{x|y|z|w}",
    # operands, by the type that their instruction takes
    "float": "{any}{swizzle}{||{negated}}",
    "bits": "{any}{swizzle}{||{negated}}",
    "double": "{any}{.xy|.zw|||.xyzw|.yx|.x1}",
    "swizzle": "|||.{s}|.{s}|.{s}{s}|.{s}{s}{s}|.{s}{s}{s}{s}",
    "s": "x|y|z|w|x|y|z|w|x|y|z|w|r|g|b|a|0|1",
    "negated": "_neg{(xyzw)|}",
    # results
    "mask": "||.x{my}{mz}{mw}|.{mx}y{mz}{mw}|.{mx}{my}z{mw}|.{mx}{my}{mz}w",
    "mx": "x|_",
    "my": "y|_",
    "mz": "z|_",
    "mw": "w|_",
    "double mask": "||.xy|.zw|.__zw",
    # statements
    "other": "|; a comment|// a comment|\tmov r0, r0 ; moves nothing|fence_memory",
    "read": "iand r31.x, {r}.{x|y|z|w}, l1.x\niadd r31.x, r31.x, l1.z\nmov {r}, g[r31.x{far}]",
    "fence": "fence_threads_lds|fence_threads_lds_memory|fence_lds_threads",
    "store": (
        "{lds_store_vec_id(0) mem{some}, r32.x, r32.z|lds_store_vec_id(1) mem{some}, r32.x, r32.z"
        "|lds_store_id(0) r32.x|lds_store_id(1) r32.x}, {r}{swizzle}"
    ),
    "some": "|.x|.xy|.xyz|._y__|.x__w|.__zw",
    "load": (
        "{iand r33.x, {r}.{x|y|z|w}, l1.x|{item}|{item}|{item}}\nishl r33.x, r33.x, l0.{z|w}\n"
        "{lds_load_vec_id({0|1}) {r}{mask}, r33.x{|, r33.y}|lds_load_id({0|1}) {r}{mask}, r33.xy}"
    ),
    "item": "umod r33.x, {r}.{x|y|z|w}, l1.w",
    "fetch": "{{inside}|{inside}|{anywhere}}",
    "inside": (
        "iand r31.yz, {r}, l1.x\nitof r31.yz, r31\n"
        "{sample}{offset} {r}{mask}, r31.yz00{||{negated}}"
    ),
    "anywhere": "{sample}{offset} {r}{mask}, {at}",
    # registers and a literal that have the names of others outside
    "macro": (
        "mdef(0)_out(2)_in(3)\ndcl_literal l0, 3, -1, 1.5, 0x7fc00000\nmov r0, {in0|in1}\nmov r1,"
        " in2\n{add|mul|max} r{0|1}{mask}, {given}, {given}\nmov out0, {given}\nmov out1,"
        " {given}\nmend"
    ),
    "given": "{in0|in1|in2|r0|r1|l0}{swizzle}",
    "call": "mcall(0) (r{0|1|2}{mask}, r{3|4|5}{mask}), ({float}, {float}, {bits})",
    "offset": "||_aoffimmi({-8|-2|-1|0|1|2|7},{-8|-2|-1|0|1|2|7},0)",
    "compared": "relop({lt|le|eq|ne|ge|gt}) {float}, {float}",
    "same if": "iand r31.w, {vThreadGrpIdFlat|cb0[0]|l3}.{x|y|z|w}, l0.y\nif_logical{nz|z} r31.w",
    "if": "{|{bit}|{bit}}{if_logical{nz|z} {r31.w|r31.w|{component}}|ifc_{compared}}",
    "bit": "iand r31.w, {component}, l0.{y|z|w}\n",  # goes both ways more often than any bits do
    "leave": (
        "iand r31.w, {component}, l1.x\n{break_logical{nz|z} {r31.w|{component}}|breakc_{compared}}"
    ),
}


def random_program(
    rng: random.Random,
    mode: str | None = None,
    statements: int = 40,
    opcodes: Sequence[Opcode] = ARITHMETIC,
) -> tuple[str, dict]:
    """Return the text of a random program, and the arguments of ``launch`` for it.

    A launch changes their arrays: copy them to run the program twice.

    Parameters
    ----------
    mode
        "pixel" or "compute"; by default either.
    statements
        Its approximate number of statements.
    opcodes
        Those of its arithmetic.
    """
    mode = mode or rng.choice(("pixel", "compute"))
    return _Mixture(rng, mode, statements, opcodes).program()


class _Mixture(Writer):
    def __init__(self, rng: random.Random, mode: str, statements: int, opcodes: Sequence[Opcode]):
        super().__init__(rng, {})
        self.mode, self.left, self.opcodes = mode, statements, opcodes
        self.loops = 0
        self.leaving = False  # whether work-items may leave the innermost loop each on its own
        self.storing = True  # LDS: between fences it is either written or read
        self.group = 1
        self.domain: tuple[int, ...] = (rng.randint(1, 19), rng.randint(1, 11))
        if mode == "compute":
            self.group = rng.choice((64, 64, 16, 128, 4, 130))
            self.domain = (self.group * rng.randint(1, 6),)
        self.items = int(np.prod(self.domain))
        self.outputs = sorted(rng.sample(range(8), rng.randint(1, 4))) if mode == "pixel" else []
        self.textures = [
            (rng.choice((1, 2, 4)), rng.choice(TYPES)) for _ in range(rng.randint(1, 4))
        ]
        self.constants = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]
        self.grammar = GRAMMAR | {
            "id": (
                "vWinCoord0"
                if mode == "pixel"
                else "{vAbsTidFlat|vaTid|vaTid0|vTid|vTidInGrpFlat|vThreadGrpIdFlat|vTGroupid}"
            ),
            "constant": "|".join(
                f"cb{n}[{at}]" for n, size in enumerate(self.constants) for at in range(size)
            ),
            "sample": "|".join(
                f"sample_resource({n})_sampler({n})" for n in range(len(self.textures))
            ),
            "at": "vWinCoord0.xy" if mode == "pixel" else "{r}{swizzle}",
            "far": f"|+1|+{SHARED}|{'-1' * (self.items == 1)}",
            "target": (
                "{r}|" * 14
                + "{own}"
                + f"|o{{{'|'.join(map(str, self.outputs))}}}" * bool(self.outputs)
            ),
        }

    def program(self) -> tuple[str, dict]:
        self.say("il_ps_2_0" if self.mode == "pixel" else "il_cs_2_0")
        self.say("{macro}")
        self.declare()
        self.prepare()
        crowd = self.rng.choice(CROWD) if self.rng.random() < CROWDED else 0
        for n in range(100, 100 + crowd):
            self.say(f"iadd r{n}, r{n - 1 if n > 100 else 0}, r{n % PLAYED}")
        self.block(uniform=True)
        for n in range(101, 100 + crowd):
            self.say(f"iadd r100, r100, r{n}")
        for n in range(PLAYED if crowd else 0):  # all results depend on all of them
            self.say(f"ixor r{n}, r{n}, r100")
        for place in (*(f"g[r30.x+{n}]" for n in range(OWN)), *(f"o{n}" for n in self.outputs)):
            self.say(f"mov {place}, {{r}}")
        self.say("endmain\nend")
        return self.text, self.arguments()

    def arguments(self) -> dict:
        rng = self.rng
        inputs = {}
        for n, (count, dtype) in enumerate(self.textures):
            shape = rng.randint(1, 9), rng.randint(1, 9)
            inputs[n] = random_words(rng, (*shape, max(count, dtype(0).itemsize // 4))).view(dtype)
        result: dict = {"domain": self.domain, "inputs": inputs}
        result["constants"] = {
            n: random_words(rng, (size, 4)) for n, size in enumerate(self.constants)
        }
        result["global_memory"] = random_words(rng, (self.items * OWN + SHARED, 4))
        if self.outputs:
            width, height = self.domain
            shapes = [(height, width, rng.choice((1, 2, 4))) for _ in self.outputs]
            result["outputs"] = {
                n: random_words(rng, s).view(np.float32) for n, s in zip(self.outputs, shapes)
            }
        return result

    def declare(self) -> None:
        if self.mode == "pixel":
            self.say("dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__")
        else:
            self.say(f"dcl_num_thread_per_group {self.group}")
            size = 16 * self.group
            self.say(f"dcl_lds_id(0) {size}\ndcl_lds_id(1) {size}")
        for n in self.outputs:
            self.say(f"dcl_output_generic o{n}")
        for n in range(len(self.textures)):
            formats = "{_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)|_fmtx(unknown)}"
            self.say(f"dcl_resource_id({n})_type(2d,unnorm){formats}")
        for n, size in enumerate(self.constants):
            self.say(f"dcl_cb cb{n}[{size}]")
        self.say(f"dcl_literal l0, 0, 1, 2, {OWN}")
        self.say(f"dcl_literal l1, 15, {self.domain[0]}, {self.items * OWN}, {self.group}")
        self.say("dcl_literal l2, 1.0, -0.5, 3.0, 8.0")
        self.say("dcl_literal l3, " + ", ".join(f"0x{w:08x}" for w in random_words(self.rng, (4,))))

    def prepare(self) -> None:
        """Set every register that is read later."""
        if self.mode == "pixel":
            self.say("ftoi r30.xy, vWinCoord0\nimad r30.x, r30.y, l1.y, r30.x")
        else:
            self.say("mov r30.x, vAbsTidFlat.x\nishl r32.x, vTidInGrpFlat.x, l0.w")
        self.say(
            "mov r32.z, l0.x\nimul r30.x, r30.x, l0.w\nmov r31.x, l1.z\nmov r31.yzw, l0.x\nmov r33,"
            " l0.x"
        )
        for n in range(PLAYED):
            self.say(f"mov r{n}, {{{{own}}|{{own}}|l3|{{id}}|cb0[0]|cb0[0]}}")
        if self.mode == "compute":
            self.say(
                "lds_store_vec_id(0) mem, r32.x, r32.z, r0\nlds_store_vec_id(1) mem, r32.x,"
                " r32.z, r1"
            )
            self.say("{fence}\n{fence}")

    def block(self, uniform: bool, statements: int | None = None) -> None:
        """Write at most ``self.left`` or ``statements`` statements; ``uniform`` if whole workgroups
        execute them.
        """
        end = 0 if statements is None else max(0, self.left - statements)
        while self.left > end:
            self.left -= 1
            self.statement(uniform)

    def statement(self, uniform: bool) -> None:
        compute = self.mode == "compute"
        weights: dict[Callable[[], None] | str, float] = {
            self.arithmetic: 50,
            "{fetch}": 8,
            "{read}": 4,
            "{store}" if self.storing else "{load}": 8 * compute,
            self.fence: 3 * (compute and uniform),
            "{call}": 3,
            partial(self.branch, uniform): 12 * (self.depth < 4),
            partial(self.loop, uniform): 7 * (self.loops < 2),
            "{leave}" if self.leaving else "{other}": 8,
        }
        (kind,) = self.rng.choices(list(weights), [*weights.values()])
        self.say(kind) if isinstance(kind, str) else kind()

    def source(self, op: Opcode, n: int) -> str:
        if op.sources[n] == "d":
            return "{double}{||{negated}}"
        return "{float}" if op.float_modifiers(n) else "{bits}"

    def arithmetic(self) -> None:
        rng = self.rng
        op = rng.choice(self.opcodes)
        name = rng.choice((op.name, op.name, op.name.upper()))
        mask = "{double mask}" if op.result == "d" else "{mask}"
        sources = [self.source(op, n) for n in range(len(op.sources))]
        self.say(f"{name} {', '.join([f'{{target}}{mask}', *sources])}")

    def fence(self) -> None:
        self.storing = not self.storing
        self.say("{fence}")

    def branch(self, uniform: bool) -> None:
        """Write an if; some are uniform in a workgroup, with fences inside."""
        rng = self.rng
        uniform = uniform and self.mode == "compute" and rng.random() < 0.3
        self.say("{same if}" if uniform else "{if}")
        self.arm(uniform)
        if self.leaving and rng.random() < 0.15:
            self.say("    break")
        if rng.random() < 0.5:
            self.say("else")
            self.arm(uniform)
        self.say("endif")

    def arm(self, uniform: bool, least: int = 0, most: int = 8) -> None:
        """Write the body of a branch or iteration. It leaves LDS in the phase, written or read, in
        which it was.
        """
        storing = self.storing
        self.depth += 1
        self.block(uniform, self.rng.randint(least, most))
        if self.storing != storing:
            self.fence()
        self.depth -= 1

    def loop(self, uniform: bool) -> None:
        """Write a loop of at most four iterations. All work-items leave a uniform loop together."""
        rng = self.rng
        counter = f"r{20 + self.loops}"
        uniform = uniform and rng.random() < 0.6
        if uniform and self.mode == "compute" and not self.storing:
            self.fence()
        limit, relop, bound = "l0.w", "gt", "l2.z"
        if not uniform and rng.random() < 0.5:
            limit, relop, bound = f"{counter}.w", "ge", f"{counter}.z"
            self.say(f"iand {counter}.w, {{component}}, l1.x\numin {counter}.w, {counter}.w, l0.w")
        self.say(f"mov {counter}.x, l0.x\nwhileloop")
        if rng.random() < 0.3:
            self.say(
                f"    itof {counter}.yz, {counter}.xxww\n    breakc_relop({relop}) {counter}.y,"
                f" {bound}"
            )
        else:
            self.say(f"    ige {counter}.y, {counter}.x, {limit}\n    break_logicalnz {counter}.y")
        self.say(f"    iadd {counter}.x, {counter}.x, l0.y")
        self.loops += 1
        leaving, self.leaving = self.leaving, not uniform
        self.arm(uniform, 1, 10)
        self.leaving = leaving
        self.loops -= 1
        self.say("endloop")
