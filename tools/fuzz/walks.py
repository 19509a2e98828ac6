"""Random walks through memory: loops in loops and one after another that step coordinates and
fetch, load and store where these point.

This is what the fast engine does without a check of every access, if it has proven that none leaves
its array (`cypresskit.machine.fast.strips`). Each way in which such a proof may fail is written
here: a coordinate is stepped inside the loop, in the loop around it, in one before it, in a branch,
before or behind the fetch, by several instructions, by whole numbers or by others; it is reset or
goes on from where it was; the loop's end is found at its top, in its middle or behind; arrays are
as large as the walk, or end one texel earlier.

Registers: r0 to r2 hold coordinates, whose components are loops' counters, too; r3 a float of the
work-item's own; r4 to r11 what is fetched and summed up; r12, r13 tests; r14 elements of global
memory; r15 an address in LDS; r30.x is the work-item's number.
"""

import random
from typing import Any

import numpy as np

from tools.fuzz.grammar import Writer, random_words

COORDINATES = [f"r{n}.{letter}" for n in range(3) for letter in "xyzw"]
OWN = 4  # elements of global memory that belong to a work-item
SHARED = 12  # behind those: elements that are only read
LETTERS = "{x|y|z|w}"
GRAMMAR = {
    "data": "r{4|5|6|7}",
    "sum": "r{8|9|10|11}",
    "coordinate": f"r{{0|0|1|2}}.{LETTERS}",
    # a pair of coordinates, now and then a sign or a place that work-items don't share
    "pair": f"r{{0|0|0|1|2}}.{{xy|yx|xz|zx|xx|{LETTERS}{LETTERS}}}{{|||||||_abs|_neg(x)}}",
    "own pair": "r3.{xy|yx|xz|zx}",
    "offset": "|||_aoffimmi({-1|0|1|2},{-1|0|1|2},0)|_aoffimmi({0|1},0,0)",
    "mask": "|||||.x|.xy|.xy_w",
    "fetch": "{sample}{offset} {data}{mask}, {{pair}|{pair}|{own pair}}",
    "neighbours": (
        "sample_resource({texture})_sampler({texture}) r4, {place}\n"
        "sample_resource({texture})_sampler({texture})_aoffimmi(1,0,0) r5, {place}"
    ),
    "whole fetch": "ftoi r12.xy, {pair}\n{texel}{offset} {data}, r12.xy",
    "read": "mov {data}, g[r14.x+{0|1|2|3}]",
    "write": "mov g[r30.y+{0|1|2|3}], {sum}",
    "step element": "iadd r14.x, r14.x, l3.{x|x|y}",
    "load": "lds_load_vec_id(0) {data}, r15.x, r15.x|lds_load_id(0) {data}.x, r15.x",
    "step address": "iadd r15.x, r15.x, l3.{z|z|w}",
    "add up": (
        "add {sum}, {sum}, {data}|mad {sum}, {data}, {data}, {sum}"
        "|mad {sum}, {data}.{x|y|z|w}, {data}, {sum}"
    ),
    "add up doubles": (
        "dadd {sum}.{xy|zw}, {sum}.xy, {data}.{xy|zw}|dmad {sum}.xy, {data}.xy, {data}.zw, {sum}.xy"
    ),
    "step": "l1.{x|x|x|x|x|x|x|y|y|z|w}",  # 1, 2, -1, 0.5
    "start": "l2.{x|x|x|y|z|w}",  # 0, -1, 1.5, 1
}


def random_walk(rng: random.Random, statements: int = 12) -> tuple[str, dict]:
    """A random walk's text, and the arguments of ``launch`` for it, whose arrays a launch changes.

    The program ends: every loop adds to a counter that nothing inside of it takes back.
    """
    return _Walk(rng, statements).program()


class _Walk(Writer):
    def __init__(self, rng: random.Random, statements: int):
        super().__init__(rng, {})
        self.left = statements
        self.pixels = rng.random() < 0.75
        self.group = rng.choice((16, 64, 5))
        self.domain = (rng.randint(1, 9), rng.randint(1, 4)) if self.pixels else (self.group, 1)
        self.doubles = rng.random() < 0.25
        self.textures = [rng.choice(("2d", "2d", "2d", "1d")) for _ in range(rng.randint(1, 3))]
        self.counters: list[str] = []  # of the loops around
        self.bounds = [rng.choice((1.0, 2.0, 3.0, 4.0, 5.5)) for _ in range(4)]
        self.nested = 3  # loops in each other, at most
        if rng.random() < 0.06:
            self.bounds[0] = rng.choice((70.0, 130.0, 1100.0))  # turns of more than a strip
            self.nested = 1
        numbers = range(len(self.textures))
        self.grammar = GRAMMAR | {
            "texture": "|".join(map(str, numbers)),
            "sample": "|".join(f"sample_resource({n})_sampler({n})" for n in numbers),
            "texel": "|".join(f"load_resource({n})" for n in numbers),
            "bound": "cb0[0].{x|y|z|w}|l4.{x|y|z|w}",
        }

    @property
    def items(self) -> int:
        return self.domain[0] * self.domain[1]

    def program(self) -> tuple[str, dict]:
        self.declare()
        self.prepare()
        self.block()
        for n in range(OWN):
            self.say(f"mov g[r30.y+{n}], r{8 + n}")
        if self.pixels:
            self.say("mov o0, {sum}")
        self.say("end")
        return self.text, self.arguments()

    def declare(self) -> None:
        self.say("il_ps_2_0" if self.pixels else "il_cs_2_0")
        if self.pixels:
            self.say("dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__")
            self.say("dcl_output_generic o0")
        else:
            self.say(f"dcl_num_thread_per_group {self.group}\ndcl_lds_id(0) {16 * self.group}")
        for n, kind in enumerate(self.textures):
            formats = "_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"
            self.say(f"dcl_resource_id({n})_type({kind},unnorm){formats}")
        self.say("dcl_cb cb0[1]")
        self.say(f"dcl_literal l0, 0, {OWN}, {self.domain[0]}, {OWN * self.items}")
        self.say("dcl_literal l1, 1.0, 2.0, -1.0, 0.5")
        self.say("dcl_literal l2, 0.0, -1.0, 1.5, 1.0")
        self.say("dcl_literal l3, 1, 2, 16, 4")
        self.say(f"dcl_literal l4, {', '.join(map(str, self.bounds))}")

    def prepare(self) -> None:
        """Set the registers that statements read."""
        if self.pixels:
            self.say("ftoi r30.xy, vWinCoord0\nimad r30.x, r30.y, l0.z, r30.x")
            self.say("mov r3, vWinCoord0.xyxy{||_neg(x)}")
        else:
            self.say("mov r30.x, vaTid.x\nitof r3, vTidInGrpFlat")
        self.say("imul r30.y, r30.x, l0.y\nmov r14, l0.wwww\nmov r15, l0.xxxx")
        for n in range(3):
            self.say(f"mov r{n}, {{start}}")
        for n in range(4, 12):
            self.say(f"mov r{n}, l0.xxxx")
        if not self.pixels:
            self.say("ishl r13.x, vTidInGrpFlat.x, l0.y")  # 16 bytes for each
            self.say("lds_store_vec_id(0) mem, r13.x, r13.x, r3\nfence_threads_lds")

    def block(self, statements: int | None = None) -> None:
        """Write as many statements, or all that are left."""
        end = 0 if statements is None else max(0, self.left - statements)
        while self.left > end:
            self.left -= 1
            self.statement()

    def statement(self) -> None:
        """Write one statement."""
        adding = "add up doubles" if self.doubles else "add up"
        weights = {
            "{fetch}": 10,
            "{neighbours}": 2,
            "{whole fetch}": 2,
            f"{{{adding}}}": 10,
            "{read}": 2,
            "{write}": 1,
            "{step element}": 2,
            "{load}": 0 if self.pixels else 3,
            "{step address}": 0 if self.pixels else 3,
            "step": 6,
            "reset": 2,
            "branch": 4 if self.depth < 4 else 0,
            "loop": 9 if len(self.counters) < self.nested else 0,
            "nest": 5 if len(self.counters) + 1 < self.nested else 0,
        }
        (kind,) = self.rng.choices(list(weights), [*weights.values()])
        if kind == "{neighbours}":
            numbers, place = self.rng.randrange(len(self.textures)), "r3.xy"
            kind = GRAMMAR["neighbours"].replace("{texture}", str(numbers))
            self.say(kind.replace("{place}", self.rng.choice((place, "r0.xy", "r0.yx"))))
        elif kind.startswith("{"):
            self.say(kind)
        else:
            getattr(self, kind)()

    def free(self) -> list[str]:
        """Coordinates that no loop around counts with."""
        return [name for name in COORDINATES if name not in self.counters]

    def step(self) -> None:
        """Step a coordinate: a loop's own counter only upwards."""
        if self.counters and self.rng.random() < 0.2:
            counter = self.rng.choice(self.counters)
            self.say(f"add {counter}, {counter}, l1.{{x|y}}")
            return
        coordinate = self.rng.choice(
            [name for name in self.free() if name[:2] == "r0"] or self.free()
        )
        self.say(f"add {coordinate}, {coordinate}, {{step}}")

    def reset(self) -> None:
        """Set a coordinate, perhaps to what only this work-item has."""
        self.say(f"mov {self.rng.choice(self.free())}, {{{{start}}|{{start}}|{{start}}|r3.x}}")

    def branch(self) -> None:
        """Write an if; which way is the same for all work-items, or not."""
        test = self.rng.choice(
            (
                "ge r13.x, cb0[0].{x|y}, {bound}",
                "ge r13.x, {coordinate}, {bound}",
                "ge r13.x, {coordinate}, {bound}",
                "ge r13.x, r3.x, {bound}",
            )
        )
        self.say(f"{test}\nif_logical{{nz|z}} r13.x")
        self.arm()
        if self.rng.random() < 0.3:
            self.say("else")
            self.arm()
        self.say("endif")

    def arm(self) -> None:
        """Write the body of a branch."""
        self.depth += 1
        self.block(self.rng.randint(1, 3))
        self.depth -= 1

    def loop(self) -> None:
        """Write a loop; another may follow at once, with the same counter or another."""
        rng = self.rng
        counter = rng.choice([name for name in self.free() if name[:2] == "r0"] or self.free())
        if rng.random() < 0.7:
            self.say(f"mov {counter}, {{start}}")
        self.say("whileloop")
        self.depth += 1
        self.counters.append(counter)
        pieces = [self._leave, self._advance]
        rng.shuffle(pieces)
        for piece in pieces:
            self.block(rng.choice((0, 0, 1, 2, 3)))
            piece(counter)
        self.block(rng.choice((0, 0, 1, 2)))
        self.counters.pop()
        self.depth -= 1
        self.say("endloop")

    def nest(self) -> None:
        """Write a walk over a texture: a coordinate is stepped by one loop, or by a branch, and
        another by a loop inside of it or behind it, which fetches.
        """
        rng = self.rng
        free = [name for name in self.free() if name[:2] == "r0"]
        if len(free) < 2:
            return
        slow, quick = rng.sample(free, 2)
        place = f"r0.{slow[-1]}{quick[-1]}" if rng.random() < 0.5 else f"r0.{quick[-1]}{slow[-1]}"
        outside = rng.choice(("loop", "loop", "branch", "before"))
        inside = rng.random() < 0.6 or outside != "loop"
        fetch = [f"{{sample}}{{offset}} {{data}}, {place}", "{add up}"]
        self.say(f"mov {slow}, {{start}}")
        if outside == "loop":
            self.open(slow)
        if outside == "branch":
            self.say("ge r13.x, cb0[0].x, {bound}\nif_logicalz r13.x")
            self.say(f"    add {slow}, {slow}, l1.x\nendif")
        if not inside:
            self.block(rng.choice((0, 1)))
            self.say("\n".join(fetch))
            self.close(slow)
        self.say(f"mov {quick}, {{start}}")
        self.open(quick)
        self.say("\n".join(fetch))
        self.block(rng.choice((0, 0, 1)))
        self.close(quick)
        if outside == "loop" and inside:
            self.close(slow)

    def open(self, counter: str) -> None:
        """Begin a loop that ends where its counter reaches a bound."""
        self.say("whileloop")
        self.depth += 1
        self.counters.append(counter)
        self._leave(counter)

    def close(self, counter: str) -> None:
        """End the innermost loop, with a step of its counter."""
        self._advance(counter)
        self.counters.remove(counter)
        self.depth -= 1
        self.say("endloop")

    def _leave(self, counter: str) -> None:
        kind = self.rng.random()
        if kind < 0.8:
            self.say(f"ge r12.x, {counter}, {{bound}}\nbreak_logicalnz r12.x")
        elif kind < 0.9:
            self.say(f"lt r12.x, {counter}, {{bound}}\nbreak_logicalz r12.x")
        elif kind < 0.95:
            self.say(f"breakc_relop(ge) {counter}, {{bound}}")
        else:
            self.say(f"ge r12.x, {counter}, {{bound}}\nif_logicalnz r12.x\n    break\nendif")

    def _advance(self, counter: str) -> None:
        self.say(f"add {counter}, {counter}, l1.{{x|x|x|x|y|w}}")

    def arguments(self) -> dict:
        """Arrays about as large as the walk goes."""
        rng = self.rng
        reach = [*map(int, self.bounds), 1, 2, 8, 9]
        inputs = {}
        for n, kind in enumerate(self.textures):
            sizes = (rng.choice(reach),) if kind == "1d" else (rng.choice(reach), rng.choice(reach))
            dtype = np.float64 if self.doubles else np.float32
            words = random_words(rng, (*sizes, 4 if self.doubles else rng.choice((1, 2, 4, 4))))
            inputs[n] = words.view(dtype)
        words = np.array([[rng.choice((1.0, 2.0, 3.0, 4.5))] * 4], np.float32)
        words[0, rng.randrange(4)] = rng.choice((-2.0, 0.0, 1.0, 5.0, 6.0))
        result: dict[str, Any] = {
            "domain": self.domain,
            "inputs": inputs,
            "constants": {0: words},
            "global_memory": random_words(rng, (self.items * OWN + SHARED, 4)),
        }
        if self.pixels:
            width, height = self.domain
            shape = (height, width, rng.choice((1, 2, 4)))
            result["outputs"] = {0: random_words(rng, shape).view(np.float32)}
        else:
            result["domain"] = self.group
        return result
