"""Correct kernels for any statement whose C is in ``g[]``: block, layout, workgroup, precision.

They are plain: a work-item adds up each element of its block by itself, and stores it into the
component in which it lies, whatever its neighbors store beside it.
"""

from kernel_texts import TEXTURE

NUMBERS = {"single": ("x", "y", "z", "w"), "double": ("xy", "zw")}  # of a texel
FIRST_SUM = 40  # its register
FIRST_FETCHED = 10, 24  # of A, of B


def random_statement(rng):
    """What a statement says. Texels of A and B are whole; elements of C need not be."""
    precision = rng.choice(list(NUMBERS))
    held = len(NUMBERS[precision])
    letters = rng.choice(["NN", "NT", "TN", "TT"])
    rows = held if letters[0] == "T" else rng.randint(1, 4)
    columns = held * rng.randint(1, 2) if letters[1] == "N" else rng.randint(1, 7)
    down = 1 << rng.randint(0, 6)  # blocks in a workgroup of 64
    group = (down * rows, 64 // down * columns) if rng.random() < 0.5 else None
    if group and (max(group) > 256 or group[1] == 1):
        group = None
    return {"letters": letters, "block": (rows, columns), "precision": precision, "group": group}


def plain_kernel(letters, block, precision, group):
    """The text of a kernel, which states all this."""
    (rows, columns), names = block, NUMBERS[precision]
    held = len(names)
    is_double = precision == "double"
    beta = "cb0[1].zw" if is_double else "cb0[0].y"
    sums = {(i, j): f"r{FIRST_SUM + i * columns + j}" for i in range(rows) for j in range(columns)}
    mad = "dmad {0}.xy, {1}, {2}, {0}.xy" if is_double else "mad {0}.x, {1}, {2}, {0}.x"
    terms = [letters, f"{rows} x {columns}", f"k {held}", precision]
    terms += [f"group {group[0]} x {group[1]}"] if group else []
    lines = [f"il_{'c' if group else 'p'}s_2_0 ; product: {', '.join(terms)}"]
    lines += [*map(TEXTURE.format, range(2)), "dcl_cb cb0[5]"]
    lines += [f"dcl_literal l0, {rows}, {columns}, {held - 1}, {held.bit_length() - 1}"]
    lines += ["dcl_literal l1, 0, 1, 2, 3", f"dcl_literal l2, 0.0, {1 / held}, 1.0, {held}.0"]
    lines += [*(_place_in_group(block, group) if group else _pixel())]
    lines += ["imul r2.x, r1.y, l0.x", "imul r2.y, r1.x, l0.y"]  # the block's row and column
    lines += ["itof r3.xy, r2.xy", "mov r0, l2.x"]  # r0: k, and k in texels
    lines += [f"mov {register}, l2.x" for register in sums.values()]
    lines += ["whileloop", "breakc_relop(ge) r0.x, cb0[0].z", "mul r0.y, r0.x, l2.y"]
    read = {}
    for matrix, (letter, side, begin) in enumerate(zip("NT", block, ("r3.x", "r3.y"))):
        is_along_k = letters[matrix] == letter
        for at in range(side if is_along_k else side // held):
            for k in range(1 if is_along_k else held):
                register = f"r{FIRST_FETCHED[matrix] + (at if is_along_k else held * at + k)}"
                if is_along_k:
                    lines += ["mov r4.x, r0.y", f"mov r4.y, {begin}"]
                    lines += ["add r4.y, r4.y, l2.z"] * at
                else:
                    lines += [f"mul r4.x, {begin}, l2.y", "mov r4.y, r0.x"]
                    lines += ["add r4.x, r4.x, l2.z"] * at + ["add r4.y, r4.y, l2.z"] * k
                lines += [f"sample_resource({matrix})_sampler({matrix}) {register}, r4.xy00"]
                for n, name in enumerate(names):
                    place = (at, n) if is_along_k else (held * at + n, k)
                    read[matrix, *place] = f"{register}.{name}"
    for (i, j), register in sums.items():
        lines += [mad.format(register, read[0, i, k], read[1, j, k]) for k in range(held)]
    lines += ["add r0.x, r0.x, l2.w", "endloop"]
    for (i, j), register in sums.items():
        scaled = "dmul {0}.xy, {0}.xy, cb0[1].xy" if is_double else "mul {0}.x, {0}.x, cb0[0].x"
        lines += [scaled.format(register), "mov r7.xy, r2.xy"]
        lines += ["iadd r7.x, r7.x, l1.y"] * i + ["iadd r7.y, r7.y, l1.y"] * j
        lines += ["iand r7.z, r7.y, l0.z", "ishr r7.y, r7.y, l0.w"]
        lines += ["imad r7.x, r7.x, cb0[0].w, r7.y"]
        for n, name in enumerate(names):
            lines += [f"ieq r8.x, r7.z, l1.{'xyzw'[n]}", "if_logicalnz r8.x"]
            lines += ["if_logicalnz cb0[4].x", f"mov r9.{name}, g[r7.x]"]
            lines += [mad.format(register, f"r9.{name}", beta), "endif"]
            lines += [f"mov g[r7.x].{name}, {register}.{'xyxy' if is_double else 'x'}", "endif"]
    return "\n".join([*lines, "end", ""])


def _pixel():
    """Lines that set r1 to the block's place, (across, down)."""
    yield "dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__"
    yield "ftoi r1.xy, vWinCoord0.xy"


def _place_in_group(block, group):
    """The same of a workgroup, whose blocks are counted row by row."""
    down, across = (side // part for side, part in zip(group, block))
    yield "dcl_num_thread_per_group 64"
    yield f"dcl_literal l3, {across}, {down}, {across - 1}, {across.bit_length() - 1}"
    yield "udiv r1.y, vThreadGrpIdFlat.x, cb0[4].y"
    yield "umod r1.x, vThreadGrpIdFlat.x, cb0[4].y"
    yield "imul r1.xy, r1.xy, l3.xy"
    yield "iand r1.z, vTidInGrpFlat.x, l3.z"
    yield "ishr r1.w, vTidInGrpFlat.x, l3.w"
    yield "iadd r1.xy, r1.xy, r1.zw"
