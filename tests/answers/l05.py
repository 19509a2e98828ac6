"""Lesson 05."""

from answers import given


def loop(texels, width):
    touched = []
    for x, y in texels:
        if (y * width + x) // 4 not in touched:
            touched.append((y * width + x) // 4)
    return len(touched)


PLACE = "; another column and row: your lines go below this one"
SQUARES = """iand r1.x, vTidInGrpFlat.x, l0.x
ushr r2.x, vTidInGrpFlat.x, l0.x
iand r2.y, r2.x, l0.w
ior r1.x, r1.x, r2.y
iand r1.y, r2.x, l0.x
ushr r2.x, vTidInGrpFlat.x, l0.z
iand r2.y, r2.x, l0.w
ior r1.y, r1.y, r2.y"""
UPRIGHT = "mov r2.x, r1.x\nmov r1.x, r1.y\nmov r1.y, r2.x"
RATE = 64 * 20 * 0.85


def kernel(lines: str = PLACE) -> str:
    return given("05_texture_cache", "numbering").replace(PLACE, lines)
