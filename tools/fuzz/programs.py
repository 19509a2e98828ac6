"""Random IL programs that are valid, end, and don't race, with arrays to launch them on: what engines are compared by.

The whole instruction table comes up, with masks, swizzles and modifiers of every kind, nested branches, loops that
work-items leave at different turns, texture coordinates in and out of range, macros, and data full of NaN, infinities
and subnormal numbers. Each work-item writes four elements of global memory of its own and reads these and a part that
nobody writes; LDS is written and read in turns, with a fence between, where the flow is uniform.

Registers: r0 to r11 are played with; r20.. count loops; r30.x is the first own element of ``g``, r31 an address made up
at random, r32 = (own byte of LDS array 0, own record of array 1), r33 a place to read in LDS.
"""

import random

import numpy as np

from cypresskit.il import OPCODES, Opcode

LETTERS = "xyzw"
PLAYED = 12  # registers r0.. that statements read and write
OWN = 4  # elements of global memory that belong to a work-item
SHARED = 16  # elements of global memory, behind the own ones, that are only read
INPUTS = (
    "vAbsTid",
    "vAbsTidFlat",
    "vaTid",
    "vaTid0",
    "vTid",
    "vTidInGrp0",
    "vTidInGrpFlat",
    "vThreadGrpId",
    "vTGroupid",
)
SPECIAL = np.array(
    [0, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC01234, 0x7F800001, 1, 0x807FFFFF,
     0x00800000, 0x80800001, 0x7F7FFFFF, 0x4B7FFFFF, 0x4F000000, 0x3F7FFFFF, 0x20000000, 0x1FFFFFFF, 0x00400000,
     0x3FF00000, 0x7FF00000, 0x000FFFFF, 0xFFFFFFFF, 2, 3, 7, 31, 0x40490FDB, 0x3EAAAAAB], np.uint32)  # fmt: skip


def random_program(rng: random.Random, mode: str | None = None, statements: int = 40) -> tuple[str, dict]:
    """A program's text and the arguments of ``launch`` for it (``domain``, ``inputs``, ``constants``, ``outputs`` in
    pixel mode, ``global_memory``), whose arrays a launch changes: copy them to run it twice.

    ``mode`` is "pixel" or "compute", by default either; ``statements`` about how many the program has.
    """
    return _Writer(rng, mode or rng.choice(("pixel", "compute")), statements).program()


def random_words(rng: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    """uint32 patterns: numbers of many sizes, whole numbers, special values, and any bits."""
    draw = np.random.default_rng(rng.getrandbits(64))
    plain = (draw.standard_normal(shape) * 2.0 ** draw.integers(-4, 5, shape)).astype(np.float32)
    with np.errstate(over="ignore"):  # some become infinite
        wide = (draw.standard_normal(shape) * 2.0 ** draw.integers(-130, 127, shape).astype(float)).astype(np.float32)
    whole = draw.integers(-9, 10, shape)
    double = draw.standard_normal((*shape, 1)).view(np.uint32)[..., 1]
    kinds = [plain, plain, wide, whole.astype(np.float32), whole.astype(np.int32), double, draw.choice(SPECIAL, shape),
             draw.integers(0, 2**32, shape, np.uint32)]  # fmt: skip
    return np.choose(draw.integers(0, len(kinds), shape), [kind.view(np.uint32) for kind in kinds])


class _Writer:
    def __init__(self, rng: random.Random, mode: str, statements: int):
        self.rng, self.mode, self.left = rng, mode, statements
        self.lines: list[str] = []
        self.depth = self.loops = 0
        self.leaving = False  # whether work-items may leave the innermost loop each on its own
        self.storing = True  # LDS: between fences it is either written or read
        self.macros: list[tuple[int, int, int]] = []
        if mode == "pixel":
            self.domain: tuple[int, ...] = (rng.randint(1, 19), rng.randint(1, 11))
            self.group: tuple[int, ...] = ()
            items = self.domain[0] * self.domain[1]
        else:
            self.group = rng.choice(((64,), (64,), (16,), (8, 8), (4, 2, 2), (128,), (4,), (65, 1, 2)))
            groups = [rng.randint(1, 3) for _ in self.group]
            self.domain = tuple(g * n for g, n in zip(self.group, groups))
            items = int(np.prod(self.domain))
        self.items, self.group_items = items, int(np.prod(self.group or (1,)))
        self.outputs = sorted(rng.sample(range(8), rng.randint(1, 4))) if mode == "pixel" else []
        self.textures = [
            (rng.choice(("1d", "2d", "2d")), rng.random() < 0.7, rng.choice((1, 2, 4)), rng.choice("ffid"))
            for _ in range(rng.randint(1, 4))
        ]
        self.constants = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]

    def program(self) -> tuple[str, dict]:
        rng = self.rng
        self.say("il_ps_2_0" if self.mode == "pixel" else "il_cs_2_0")
        for n in range(rng.choice((0, 0, 1, 2))):
            self.macro(n)
        self.declare()
        self.prepare()
        self.block(uniform=True)
        for n in range(OWN):
            self.say(f"mov g[r30.x+{n}], r{rng.randrange(PLAYED)}")
        for n in self.outputs:
            self.say(f"mov o{n}, r{rng.randrange(PLAYED)}")
        self.say("end")
        return "\n".join(self.lines) + "\n", self.arguments()

    def say(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def arguments(self) -> dict:
        rng = self.rng
        inputs = {}
        for n, (kind, _, count, dtype) in enumerate(self.textures):
            shape = (rng.randint(1, 9),) if kind == "1d" else (rng.randint(1, 9), rng.randint(1, 9))
            if dtype == "d":
                words = random_words(rng, (*shape, 2 if count == 1 else count))
                inputs[n] = words.view(np.float64)[..., :2]
            else:
                words = random_words(rng, (*shape, count))
                inputs[n] = words.view(np.float32 if dtype == "f" else np.int32)
        result: dict = {"domain": self.domain, "inputs": inputs}
        result["constants"] = {n: random_words(rng, (size, 4)) for n, size in enumerate(self.constants)}
        result["global_memory"] = random_words(rng, (self.items * OWN + SHARED, 4))
        if self.outputs:
            width, height = self.domain
            shapes = [(height, width, rng.choice((1, 2, 4))) for _ in self.outputs]
            result["outputs"] = {n: random_words(rng, s).view(np.float32) for n, s in zip(self.outputs, shapes)}
        return result

    def declare(self) -> None:
        rng = self.rng
        if self.mode == "pixel":
            self.say("dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__")
        else:
            self.say(f"dcl_num_thread_per_group {', '.join(map(str, self.group))}")
            self.say(f"dcl_lds_id(0) {16 * self.group_items}")
            self.say(f"dcl_struct_lds_id(1) 16, {self.group_items}")
        for n in self.outputs:
            self.say(f"dcl_output_generic o{n}")
        for n, (kind, unnormalised, _, _) in enumerate(self.textures):
            formats = rng.choice(("_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)", "_fmtx(unknown)"))
            self.say(f"dcl_resource_id({n})_type({kind}{',unnorm' * unnormalised}){formats}")
        for n, size in enumerate(self.constants):
            self.say(f"dcl_cb cb{n}[{size}]")
        self.say(f"dcl_literal l0, 0, 1, 2, {OWN}")
        self.say(f"dcl_literal l1, 15, {self.domain[0]}, {self.items * OWN}, {self.group_items}")
        self.say("dcl_literal l2, 1.0, -0.5, 3.0, 8.0")
        self.say("dcl_literal l3, " + ", ".join(f"0x{w:08x}" for w in random_words(rng, (4,))))

    def prepare(self) -> None:
        """Give every register that is read later a value."""
        if self.mode == "pixel":
            self.say("ftoi r30.xy, vWinCoord0")
            self.say("imad r30.x, r30.y, l1.y, r30.x")
        else:
            self.say("mov r30.x, vAbsTidFlat.x")
            self.say("ishl r32.x, vTidInGrpFlat.x, l0.w")
            self.say("mov r32.y, vTidInGrpFlat.x")
            self.say("mov r32.z, l0.x")
        self.say("imul r30.x, r30.x, l0.w")
        self.say("mov r31.x, l1.z")
        self.say("mov r33, l0.x")
        self.say("mov r31.yzw, l0.x")
        for n in range(PLAYED):
            place = self.rng.randrange(6)
            if place < 2:
                self.say(f"mov r{n}, g[r30.x+{self.rng.randrange(OWN)}]")
            elif place == 2:
                self.say(f"mov r{n}, l3")
            elif place == 3:
                self.say(f"mov r{n}, {self.identifier()}")
            else:
                self.say(f"mov r{n}, cb0[0]")
        if self.mode == "compute":
            self.say("lds_store_vec_id(0) mem, r32.x, r32.z, r0")
            self.say("lds_store_vec_id(1) mem, r32.y, r32.z, r1")
            self.fence()
            self.fence()

    def identifier(self) -> str:
        return "vWinCoord0" if self.mode == "pixel" else self.rng.choice(INPUTS)

    # Operands

    def swizzle(self) -> str:
        kind = self.rng.randrange(10)
        if kind < 4:
            return ""
        length = 1 if kind < 6 else self.rng.randint(2, 4)
        return "." + "".join(self.rng.choice("xyzwxyzwxyzwrgba01") for _ in range(length))

    def modifiers(self, letter: str, floating: bool) -> str:
        rng = self.rng
        if rng.random() < 0.65:
            return ""
        negate = "_neg(" + "".join(c for c in LETTERS if rng.random() < 0.6) + ")"
        if floating:
            return rng.choice((negate, negate, "_abs", "_x2", "_bias", "_bx2", "_invert", "_sign", f"_abs{negate}"))
        return rng.choice((negate, "_abs", "_abs_neg(x)")) if letter == "d" else negate

    def register(self, macro: bool = False) -> str:
        rng = self.rng
        kind = rng.randrange(12)
        if macro:
            inside = f"r{rng.randrange(2)}" if kind < 6 else "l0"
            return inside if kind < 7 else f"in{rng.randrange(self.macro_inputs)}"
        if kind < 7:
            return f"r{rng.randrange(PLAYED)}"
        if kind == 7:
            n = rng.randrange(len(self.constants))
            return f"cb{n}[{rng.randrange(self.constants[n])}]"
        if kind == 8:
            return f"g[r30.x+{rng.randrange(OWN)}]"
        return f"l{rng.randrange(4)}" if kind < 11 else self.identifier()

    def source(self, op: Opcode, n: int, macro: bool = False) -> str:
        letter = op.sources[n]
        swizzle = self.rng.choice((".xy", ".zw", "", "", ".xyzw", ".yx", ".x1")) if letter == "d" else self.swizzle()
        modifiers = self.modifiers(letter, op.float_modifiers(n))
        return self.register(macro) + swizzle + (modifiers.replace("_abs", "") if op.name == "dmov" else modifiers)

    def mask(self, op: Opcode) -> str:
        rng = self.rng
        if op.result == "d":
            return rng.choice(("", "", ".xy", ".zw", ".__zw", ".xy01", ".01zw", ".xy_1"))
        if rng.random() < 0.4:
            return ""
        mask = "".join(c if rng.random() < 0.6 else rng.choice("___01") for c in LETTERS)
        return "." + (mask if set(mask) & set(LETTERS) else "x___")

    def target(self, op: Opcode, macro: bool = False) -> str:
        rng = self.rng
        if macro:
            name = f"out{rng.randrange(self.macro_outputs)}" if rng.random() < 0.4 else f"r{rng.randrange(2)}"
        elif rng.random() < 0.06:
            name = f"g[r30.x+{rng.randrange(OWN)}]"
        elif self.outputs and rng.random() < 0.06:
            name = f"o{rng.choice(self.outputs)}"
        else:
            name = f"r{rng.randrange(PLAYED)}"
        return name + self.mask(op)

    # Statements

    def block(self, uniform: bool, statements: int | None = None) -> None:
        """Statements, about ``self.left`` or ``statements``; ``uniform`` where whole workgroups come through."""
        end = 0 if statements is None else max(0, self.left - statements)
        while self.left > end:
            self.left -= 1
            self.statement(uniform)

    def statement(self, uniform: bool) -> None:
        rng = self.rng
        kind = rng.random()
        if kind < 0.50:
            self.arithmetic()
        elif kind < 0.58:
            self.fetch()
        elif kind < 0.62:
            self.say(f"iand r31.x, r{rng.randrange(PLAYED)}.{rng.choice(LETTERS)}, l1.x")
            self.say("iadd r31.x, r31.x, l1.z")
            far = rng.choice(("", "+1", f"+{SHARED}", "-1" if rng.random() < 0.2 and self.items == 1 else ""))
            self.say(f"mov r{rng.randrange(PLAYED)}, g[r31.x{far}]")
        elif kind < 0.70 and self.mode == "compute":
            self.lds()
        elif kind < 0.73 and self.mode == "compute" and uniform:
            self.fence()
        elif kind < 0.76 and self.macros:
            self.call()
        elif kind < 0.85 and self.depth < 4:
            self.branch(uniform)
        elif kind < 0.92 and self.loops < 2:
            self.loop(uniform)
        elif self.leaving:
            self.leave()
        else:
            self.say(rng.choice(("", "; a comment", "// a comment", "\tmov r0, r0 ; moves nothing", "fence_memory")))

    def arithmetic(self, macro: bool = False) -> None:
        rng = self.rng
        op = rng.choice([op for op in OPCODES.values() if op.kind == "alu"])
        name = op.name
        if ("f" in op.result or name == "mov") and rng.random() < 0.2:
            name += rng.choice(("_x2", "_x4", "_x8", "_d2", "_d4", "_d8", "")) + rng.choice(("", "_sat"))
        sources = [self.source(op, n, macro) for n in range(len(op.sources))]
        self.say(f"{rng.choice((name, name, name.upper()))} {', '.join([self.target(op, macro), *sources])}")

    def fetch(self) -> None:
        rng = self.rng
        n = rng.randrange(len(self.textures))
        unnormalised = self.textures[n][1]
        at = f"r{rng.randrange(PLAYED)}{self.swizzle()}"
        whole = rng.random() < 0.3
        if rng.random() < 0.7:  # in range, mostly
            self.say(f"iand r31.yz, r{rng.randrange(PLAYED)}, l1.x")
            at = "r31.yz00"
            if not whole:
                self.say("itof r31.yz, r31")
                if not unnormalised:
                    self.say("mul r31.yz, r31, l2.y_neg(xyzw)")
                at += rng.choice(("", "", "_abs", "_neg(x)", "_bias"))
        elif self.mode == "pixel" and not whole:
            at = "vWinCoord0.xy"
        offset = f"_aoffimmi({rng.randint(-2, 2)},{rng.randint(-2, 2)},0)" if rng.random() < 0.4 else ""
        name = f"load_resource({n}){offset}" if whole else f"sample_resource({n})_sampler({n}){offset}"
        self.say(f"{name} r{rng.randrange(PLAYED)}{self.mask(OPCODES['sample'])}, {at}")

    def fence(self) -> None:
        self.storing = not self.storing
        self.say(self.rng.choice(("fence_threads_lds", "fence_threads_lds_memory", "fence_lds_threads")))

    def lds(self) -> None:
        rng = self.rng
        struct, vector, value = rng.random() < 0.5, rng.random() < 0.6, f"r{rng.randrange(PLAYED)}"
        own = ("r32.y", "r32.z") if struct else ("r32.x", "r32.z")
        if self.storing:
            if vector:
                mask = rng.choice(("", ".x", ".xy", ".xyz", "._y__", ".x__w", ".__zw"))
                self.say(f"lds_store_vec_id({int(struct)}) mem{mask}, {', '.join(own)}, {value}{self.swizzle()}")
            else:
                self.say(f"lds_store_id({int(struct)}) {'r32.yz' if struct else 'r32.x'}, {value}{self.swizzle()}")
            return
        if rng.random() < 0.2:
            self.say(f"iand r33.x, {value}.{rng.choice(LETTERS)}, l1.x")
        else:
            self.say(f"umod r33.x, {value}.{rng.choice(LETTERS)}, l1.w")
        if not struct:
            self.say(f"ishl r33.x, r33.x, l0.{rng.choice('zw')}")
        name = "lds_load_vec" if vector else "lds_load"
        place = ("r33.x, r33.y" if struct or rng.random() < 0.5 else "r33.x") if vector else "r33.xy"
        mask = self.mask(OPCODES[name])
        self.say(f"{name}_id({int(struct)}) r{rng.randrange(PLAYED)}{mask}, {place}")

    def condition(self) -> str:
        return f"{self.register()}.{self.rng.choice('xyzw')}"

    def compared(self) -> str:
        rng = self.rng
        op = OPCODES["ifc"]
        return f"relop({rng.choice(('lt', 'le', 'eq', 'ne', 'ge', 'gt'))}) {self.source(op, 0)}, {self.source(op, 1)}"

    def branch(self, uniform: bool) -> None:
        """An if; now and then one that a workgroup takes as a whole, with fences in it."""
        rng = self.rng
        uniform = uniform and self.mode == "compute" and rng.random() < 0.3
        if uniform:
            self.say(f"iand r31.w, {rng.choice(('vThreadGrpIdFlat', 'cb0[0]', 'l3'))}.{rng.choice(LETTERS)}, l0.y")
            condition = "r31.w"
        elif rng.random() < 0.6:  # one that goes both ways more often than any bits do
            self.say(f"iand r31.w, {self.condition()}, l0.{rng.choice('yzw')}")
        if not uniform:
            condition = rng.choice(("r31.w", "r31.w", self.condition()))
        kinds = [f"if_logicalnz {condition}", f"if_logicalz {condition}", f"ifc_{self.compared()}"]
        self.say(rng.choice(kinds[:2] if uniform else kinds))
        self.arm(uniform)
        if self.leaving and rng.random() < 0.15:
            self.say("    " + rng.choice(("break", "continue")))
        if rng.random() < 0.5:
            self.say("else")
            self.arm(uniform)
        self.say("endif")

    def arm(self, uniform: bool) -> None:
        """What a branch runs; it leaves LDS as it found it, being written or being read."""
        storing = self.storing
        self.depth += 1
        self.block(uniform, self.rng.randint(0, 8))
        if self.storing != storing:
            self.fence()
        self.depth -= 1

    def loop(self, uniform: bool) -> None:
        """A loop of at most four turns; a uniform one is left by all work-items together."""
        rng = self.rng
        counter = f"r{20 + self.loops}"
        uniform = uniform and rng.random() < 0.6
        if uniform and self.mode == "compute" and not self.storing:
            self.fence()
        limit = "l0.w" if uniform or rng.random() < 0.5 else f"{counter}.w"
        if limit != "l0.w":
            self.say(f"iand {counter}.w, {self.condition()}, l1.x")
            self.say(f"umin {counter}.w, {counter}.w, l0.w")
        self.say(f"mov {counter}.x, l0.x")
        self.say("whileloop")
        self.depth += 1
        self.loops += 1
        if rng.random() < 0.3:
            self.say(f"itof {counter}.yz, {counter}.xxww")
            relop, bound = ("gt", "l2.z") if limit == "l0.w" else ("ge", f"{counter}.z")
            self.say(f"breakc_relop({relop}) {counter}.y, {bound}")
        else:
            self.say(f"ige {counter}.y, {counter}.x, {limit}")
            self.say(f"break_logicalnz {counter}.y")
        self.say(f"iadd {counter}.x, {counter}.x, l0.y")  # before the body: a continue must not skip it
        storing, leaving, self.leaving = self.storing, self.leaving, not uniform
        self.block(uniform, rng.randint(1, 10))
        if self.storing != storing:
            self.fence()
        self.leaving = leaving
        self.depth -= 1
        self.loops -= 1
        self.say("endloop")

    def leave(self) -> None:
        rng = self.rng
        self.say(f"iand r31.w, {self.condition()}, l1.x")
        name = rng.choice(("break", "continue")) + rng.choice(("_logicalnz", "_logicalz"))
        self.say(
            rng.choice(
                (
                    f"{name} r31.w",
                    f"{name} {self.condition()}",
                    f"{rng.choice(('breakc', 'continuec'))}_{self.compared()}",
                )
            )
        )

    # Macros

    def macro(self, number: int) -> None:
        rng = self.rng
        self.macro_outputs, self.macro_inputs = rng.randint(1, 2), rng.randint(1, 3)
        self.macros.append((number, self.macro_outputs, self.macro_inputs))
        self.say(f"mdef({number})_out({self.macro_outputs})_in({self.macro_inputs})")
        self.depth += 1
        self.say("dcl_literal l0, " + ", ".join(f"0x{w:08x}" for w in random_words(rng, (4,))))
        for name in ("r0", "r1", *(f"out{n}" for n in range(self.macro_outputs))):
            self.say(f"mov {name}, in{rng.randrange(self.macro_inputs)}")
        for _ in range(rng.randint(1, 5)):
            self.arithmetic(macro=True)
        self.depth -= 1
        self.say("mend")

    def call(self) -> None:
        number, outputs, inputs = self.rng.choice(self.macros)
        op = OPCODES["mov"]
        targets = [f"r{n}{self.mask(op)}" for n in self.rng.sample(range(PLAYED), outputs)]
        sources = ", ".join(self.source(op, 0) for _ in range(inputs))
        self.say(f"mcall({number}) ({', '.join(targets)}), ({sources})")
