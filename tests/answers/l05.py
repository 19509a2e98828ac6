"""Lesson 05."""

from cypresskit.editing.steps import starter_text

PLACE = "; row and column: your lines in place of the next two\n"
BEFORE, _, GIVEN = starter_text("05").partition(PLACE)
LINES = "\n".join(GIVEN.splitlines()[:2])
AFTER = "\n".join(GIVEN.splitlines()[2:])
SQUARES = """iand r1.w, vTidInGrpFlat.x, l8.x
ushr r2.x, vTidInGrpFlat.x, l8.x
iand r2.y, r2.x, l8.z
ior r1.w, r1.w, r2.y
iand r1.z, r2.x, l8.x
ushr r2.x, vTidInGrpFlat.x, l8.y
iand r2.y, r2.x, l8.z
ior r1.z, r1.z, r2.y
"""
UPRIGHT = "mov r2.x, r1.z\nmov r1.z, r1.w\nmov r1.w, r2.x"
RATE = 64 * 20 * 0.85


def numbered(lines):
    return f"{BEFORE}{lines}\n{AFTER}\n"
