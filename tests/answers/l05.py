"""Lesson 05."""

from answers import given


def loop(texels, width):
    touched = []
    for x, y in texels:
        if (y * width + x) // 4 not in touched:
            touched.append((y * width + x) // 4)
    return len(touched)


LINES = given("05_texture_cache", "numbering")
SQUARES = given("05_texture_cache", "numbering", solution=True)
UPRIGHT = "mov r2.x, r1.z\nmov r1.z, r1.w\nmov r1.w, r2.x"
RATE = 64 * 20 * 0.85
