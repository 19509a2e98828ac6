"""Lesson 05."""

from answers import given
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
    check_lines: (
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
            (lambda texels, width: len([(y * width + x) // 4 for x, y in texels]), "a set keeps each line once"),
            (lambda texels, width: {(y * width + x) // 4 for x, y in texels}, "returns a set, not a number"),
            (lambda texels, width: texels.clear() or 1, "use its arguments"),
            (lambda texels, width: None, "returns nothing"),
            (lambda texels, width: [][0], "IndexError"),
            (lambda texels: 1, "TypeError"),
            ("two", "not a function"),
        ],
    ),
    check_numbering: (
        [kernel(lines) for lines in [SQUARES, f"{SQUARES}\n{UPRIGHT}"]],
        [
            (kernel(lines), said)
            for lines, said in [
                (PLACE, "B 32. Sixteen are enough"),
                (UPRIGHT, "A costs 32"),
                ("mov r1.x, l1.w\nmov r1.y, l1.w", "63 of 64 elements of the tile are not right"),
                (
                    SQUARES.replace("iand r2.y, r2.x, l0.w\nior r1.x", "iand r2.y, r2.x, l0.y\nior r1.x"),
                    "not computed at all",
                ),
                ("iand r1.x, vTidInGrpFlat, l9.x", "does not assemble"),
                ("ishl r1.y, r1.y, l0.y", "does not run"),
                ("whileloop\nendloop", "does not run"),
            ]
        ]
        + [(None, "None, not text")],
    ),
    check_ceiling: (
        [
            lambda flops, bundles, clocks: flops * RATE / max(4 * bundles, clocks),
            lambda flops, bundles, clocks: min(flops * RATE / clocks, flops * 320 * 0.85 / bundles),
        ],
        [
            (lambda flops, bundles, clocks: 0.0, "gives 0 Gflop/s; it should be 2176"),
            (lambda flops, bundles, clocks: flops * RATE / (4 * bundles + clocks), "at the same time"),
            (lambda flops, bundles, clocks: flops * RATE / min(4 * bundles, clocks), "not the faster one"),
            (lambda flops, bundles, clocks: flops * RATE / max(16 * bundles, clocks), "16 of 64 work-items"),
            (
                lambda flops, bundles, clocks: flops * RATE / max(4 * bundles, 16 * clocks),
                "all of a turn's fetches already",
            ),
            (lambda flops, bundles, clocks: 2 * flops * RATE / max(4 * bundles, clocks), "two flops already"),
            (lambda flops, bundles, clocks: max(4 * bundles, clocks) / (flops * RATE), "flops over time"),
            (lambda flops, bundles, clocks: flops * 64 * 20 / max(4 * bundles, clocks), "how many clocks has a second"),
            (lambda flops, bundles, clocks: flops * 64 * 20 * 850 / max(4 * bundles, clocks), "not 850"),
            (lambda flops, bundles, clocks: float("inf"), "gives inf"),
            (
                lambda flops, bundles, clocks: flops * RATE / max(bundles, clocks),
                "a bundle of a wavefront takes 4 clocks",
            ),
            (lambda flops, bundles, clocks: flops * 17 / max(4 * bundles, clocks), "a wavefront has 64"),
            (lambda flops, bundles, clocks: flops * 54.4 / max(4 * bundles, clocks), "20 SIMD engines"),
            (lambda flops, bundles, clocks: flops * RATE / (4 * bundles), "the texture unit has to keep up"),
            (lambda flops, bundles, clocks: flops * RATE / clocks, "the arithmetic takes its time"),
            (lambda flops, bundles, clocks: 1e9 * flops * RATE / max(4 * bundles, clocks), "in Gflop/s"),
            (lambda flops, bundles, clocks: "fast", "returns a text, not a number"),
            (2176, "not a function"),
        ],
    ),
}
