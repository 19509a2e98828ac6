"""Write random programs in which work-items of a wavefront exchange numbers without a fence.

They use LDS and ``g[]``, like programs that rely on work-items running in step. Each wavefront has
its own part of both memories. Registers: r0 to r5 are free, r6 holds addresses, r7 counts loops,
r8.x is the wavefront's first element in ``g`` and r8.y its first byte in LDS, r9 the work-item's
number in its wavefront.
"""

import random
from typing import Any

import numpy as np

from tools.fuzz.grammar import Writer, random_words

PLACES = 64  # of a wavefront in each memory, 16 bytes each
GRAMMAR = {
    "r": "r{0|1|2|3|4|5}",
    "mask": "||||.x|.yz|._y_w|.xyz",
    "component": "{x|y|z|w}",
    # a place in the wavefront's own: the work-item's, one beside it, or any
    "place": (
        "mov r6.x, r9.x|iadd r6.x, r9.x, l1.{component}|ixor r6.x, r9.x, l1.{component}"
        "|iadd r6.x, {r}.{component}, r9.x|mov r6.x, {r}.{component}|mov r6.x, l1.{component}"
    ),
    "g": "g[r6.x{|||+1}]",
    "compute": (
        "add {r}{mask}, {r}, {r}|iadd {r}{mask}, {r}, r9|mov {r}{mask}, {r}.{component}"
        "|dadd {r}.{xy|zw}, {r}.xy, {r}.zw"
    ),
    "load": "mov {r}{mask}, {g}|add {r}{mask}, {g}, {r}",
    "store": "mov {g}{mask}, {r}|add {g}, {r}, {r}|mov {g}{mask}, {g}",
    "load lds": "lds_load_vec_id(0) {r}{mask}, r6.y, r6.y|lds_load_id(0) {r}{mask}, r6.y",
    "store lds": "lds_store_vec_id(0) mem{mask}, r6.y, r6.y, {r}|lds_store_id(0) r6.y, {r}.x",
}
DECLARATIONS = """\
dcl_literal l0, 0, 1, 4, 63
dcl_literal l1, 1, 2, 5, 32
dcl_literal l2, 6, 3, 7, 62
dcl_literal l3, {across}, 1024, 0, 0"""
PIXEL = """\
il_ps_2_0
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
{declarations}
ftoi r0.xy, vWinCoord0
iand r9.xy, r0, l2.zzzz
ishl r9.y, r9.y, l2.y
iadd r9, r9.x, r9.y
ishr r0.xy, r0, l2.yyyy
imad r8.x, r0.y, l3.x, r0.x
ishl r8.x, r8.x, l2.x"""
COMPUTE = """\
il_cs_2_0
dcl_num_thread_per_group {group}
dcl_lds_id(0) {lds}
{declarations}
iand r9, vTidInGrpFlat, l0.wwww
ushr r8.y, vTidInGrpFlat.x, l2.x
umad r8.x, vThreadGrpIdFlat.x, l3.x, r8.y
ishl r8.x, r8.x, l2.x
imul r8.y, r8.y, l3.y"""


def random_exchange(rng: random.Random, statements: int = 12) -> tuple[str, dict]:
    """Return the text of a random program, and the arguments of ``launch`` for it."""
    return _Exchange(rng).program(statements)


class _Exchange(Writer):
    def __init__(self, rng: random.Random):
        super().__init__(rng, GRAMMAR)
        self.pixels = rng.random() < 0.3
        self.group = rng.choice((64, 64, 8, 100, 128))
        self.domain = rng.choice(((8, 8), (11, 17))) if self.pixels else (2 * self.group,)
        tiles = -(-self.domain[0] // 8)
        self.wavefronts = tiles * -(-self.domain[-1] // 8) if self.pixels else 4
        across = tiles if self.pixels else -(-self.group // 64)
        declarations = DECLARATIONS.format(across=across)
        head = PIXEL if self.pixels else COMPUTE
        lds = across * PLACES * 16
        self.say(head.format(group=self.group, lds=lds, declarations=declarations))

    def program(self, statements: int) -> tuple[str, dict[str, Any]]:
        for n in range(6):
            self.say(f"iadd r{n}, r9, l1.{{component}}")
        self.block(statements)
        for _ in range(6):
            self.access("store")
        self.say("end")
        memory = random_words(self.rng, (PLACES * self.wavefronts + 2, 4)).view(np.float32)
        return self.text, {"domain": self.domain, "global_memory": memory}

    def block(self, statements: int) -> None:
        """Write statements; a branch or a loop counts as one."""
        for _ in range(statements):
            kinds = ["compute", "load", "store", "store"]
            if not self.pixels:
                kinds += ["load lds", "store lds", "store lds"]
            if self.depth < 2:
                kinds += ["branch", "loop"]
            if not self.pixels and not self.depth:
                kinds += ["fence"]
            kind = self.rng.choice(kinds)
            if kind in ("branch", "loop"):
                getattr(self, kind)()
            elif kind == "fence":
                self.say("fence_{threads_lds|threads_memory|lds|memory}")
            elif kind == "compute":
                self.say("{compute}")
            else:
                self.access(kind)

    def access(self, kind: str) -> None:
        """Write a load or a store in the wavefront's part of a memory."""
        self.say("{place}\niand r6.x, r6.x, l2.w")
        if "lds" in kind:
            self.say("ishl r6.y, r6.x, l0.z\niadd r6.y, r6.y, r8.y")
        else:
            self.say("iadd r6.x, r6.x, r8.x")
        self.say(f"{{{kind}}}")

    def branch(self) -> None:
        """Write an if that all work-items enter, or some of them."""
        self.say("{if_logicalnz r8.x|if_logicalz r7.x|ilt r7.y, r9.x, l1.w\nif_logicalnz r7.y}")
        self.depth += 1
        self.block(self.rng.randint(1, 3))
        self.depth -= 1
        self.say("endif")

    def loop(self) -> None:
        """Write a loop of three iterations. A nested loop shares its counter."""
        counter = "xyzw"[self.depth]
        self.say(f"mov r10.{counter}, l0.x\nwhileloop")
        self.depth += 1
        self.say(f"ige r7.y, r10.{counter}, l2.y\nbreak_logicalnz r7.y")
        self.block(self.rng.randint(1, 4))
        self.say(f"iadd r10.{counter}, r10.{counter}, l0.y")
        self.depth -= 1
        self.say("endloop")
