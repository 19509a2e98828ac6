"""Lesson 05."""

from answers import given, number, text
from cypresskit.teach.l05_texture_cache import check_ceiling, check_lines, check_numbering


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


CHECKS = {
    check_lines: number(
        [loop, lambda texels, width: len({(16 * (y * width + x)) >> 6 for x, y in texels})],
        [
            (lambda texels, width: 0, "gives 0"),
            (lambda texels, width: len(set(texels)), "four neighbours in a row share a line"),
            (lambda texels, width: len({x // 4 for x, y in texels}), "the row counts too"),
            (lambda texels, width: len({(x // 4, y) for x, y in texels}), "a line may end in the next row"),
            (lambda texels, width: len({y for x, y in texels}), "a row has many lines"),
            (lambda texels, width: len({y * width + x for x, y in texels}), "share a line"),
            (lambda texels, width: len({(x * width + y) // 4 for x, y in texels}), "row y begins at texel y * width"),
            (lambda texels, width: len({(y * width + x) // 16 for x, y in texels}), "room for four texels, not 16"),
            (lambda texels, width: len({(y * width + x) // 64 for x, y in texels}), "divide by four"),
            (lambda texels, width: len({(y * 64 + x) // 4 for x, y in texels}), "a line may end in the next row"),
            (lambda texels, width: len({y * (width // 4) + x // 4 for x, y in texels}), "it should be 4"),
            (lambda texels, width: len([(y * width + x) // 4 for x, y in texels]), "a set keeps each line once"),
            (lambda texels, width: {(y * width + x) // 4 for x, y in texels}, "returns a set, not a number"),
            (lambda texels, width: texels.clear() or 1, "use its arguments"),
            (lambda texels, width: [][0], "IndexError"),
        ],
    ),
    check_numbering: text(
        [kernel(lines) for lines in [SQUARES, f"{SQUARES}\n{UPRIGHT}"]],
        [
            (kernel(lines), said)
            for lines, said in [
                (PLACE, "B 32. Sixteen are enough"),
                (UPRIGHT, "A costs 32"),
                ("mov r1.x, l1.w\nmov r1.y, l1.w", "63 of 64 elements of the tile are not right"),
                (SQUARES.replace("r2.x, l0.w\nior r1.x", "r2.x, l0.y\nior r1.x"), "not computed at all"),
                ("iand r1.x, vTidInGrpFlat, l9.x", "does not assemble"),
                ("ishl r1.y, r1.y, l0.y", "does not run"),
                ("whileloop\nendloop", "does not run"),
            ]
        ],
    ),
    check_ceiling: number(
        [
            lambda f, b, c: f * RATE / max(4 * b, c),
            lambda f, b, c: min(f * RATE / c, f * 320 * 0.85 / b),
        ],
        [
            (lambda f, b, c: 0.0, "gives 0 Gflop/s; it should be 2176"),
            (lambda f, b, c: f * RATE / (4 * b + c), "at the same time"),
            (lambda f, b, c: f * RATE / min(4 * b, c), "not the faster one"),
            (lambda f, b, c: f * RATE / max(16 * b, c), "16 of 64 work-items"),
            (
                lambda f, b, c: f * RATE / max(4 * b, 16 * c),
                "all of a turn's fetches already",
            ),
            (lambda f, b, c: 2 * f * RATE / max(4 * b, c), "two flops already"),
            (lambda f, b, c: max(4 * b, c) / (f * RATE), "flops over time"),
            (lambda f, b, c: f * 64 * 20 / max(4 * b, c), "how many clocks has a second"),
            (lambda f, b, c: f * 64 * 20 * 850 / max(4 * b, c), "not 850"),
            (
                lambda f, b, c: f * RATE / max(b, c),
                "a bundle of a wavefront takes 4 clocks",
            ),
            (lambda f, b, c: f * 17 / max(4 * b, c), "a wavefront has 64"),
            (lambda f, b, c: f * 54.4 / max(4 * b, c), "20 SIMD engines"),
            (lambda f, b, c: f * RATE / (4 * b), "the texture unit has to keep up"),
            (lambda f, b, c: f * RATE / c, "the arithmetic takes its time"),
            (lambda f, b, c: 1e9 * f * RATE / max(4 * b, c), "in Gflop/s"),
        ],
    ),
}
