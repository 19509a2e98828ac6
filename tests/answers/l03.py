"""Lesson 03."""

from answers import function, given, number, text
from cypresskit.teach.l03_bundles import check_fits, check_least, check_sum


def least(plain, scalar, doubles):
    return max(-(-(plain + scalar + 4 * doubles) // 5), scalar, doubles)


def fits(reads):
    return all(len({r for r, c in reads if c == channel}) <= 3 for channel in "xyzw")


PAIRS = "add r5, r1, r2 \n add r6, r3, r4 \n add r5, r5, r6 \n"
LAST = "add r5.xy, r5.xy, r5.zw \n add r0.x, r5.x, r5.y"
IN_A_ROW = "add r5.x, r5.x, r5.y \n add r5.x, r5.x, r5.z \n add r0.x, r5.x, r5.w"
DOT = "dcl_literal l1, 1.0, 1.0, 1.0, 1.0 \n dp4 r0.x, r5, l1"
ONE_BY_ONE = "\n".join(f"add r0.x, r0.x, r{n // 4 + 1}.{'xyzw'[n % 4]}" for n in range(16))


def answered(lines: str) -> str:
    return given("03_bundles", "sum_of_16").replace("; your lines go below this one", lines)


CHECKS = {
    check_least: number(
        [least],
        [
            (lambda p, s, d: 0, "Where to look: three things"),
            (lambda p, s, d: max((p + s + 4 * d) / 5, s, d), "no part of a bundle"),
            (lambda p, s, d: max((p + s + 4 * d) // 5, s, d), "not down"),
            (lambda p, s, d: max(-(-(p + s + 4 * d) // 5), d), "each scalar operation"),
            (lambda p, s, d: max(-(-(p + s + 4 * d) // 5), s), "no two double"),
            (lambda p, s, d: max(-(-(p + s + d) // 5), s, d), "four slots"),
            (lambda p, s, d: -(-p // 5) + s + d, "slots are shared"),
            (lambda p, s, d: max(-(-(p + s + 4 * d) // 5), s + d), "leaves t free"),
            (lambda p, s, d: (p + s + 4 * d) // 5 + 1, "three things"),
            (lambda p, s, d: p.bundles, "the call was"),
            (len, "len() takes exactly one argument (3 given)"),
        ],
    ),
    check_fits: function(
        [fits],
        [
            (lambda reads: True, "gives True; it should be False"),
            (lambda reads: False, "gives False; it should be True"),
            (lambda reads: len(reads) <= 12, "how many different registers"),
            (lambda reads: len(set(reads)) <= 4, "Three is the most"),
            (lambda reads: all(sum(c == x for _, c in reads) <= 3 for x in "xyzw"), "different registers"),
            (lambda reads: len({r for r, _ in reads}) <= 3, "Three is the most"),
            (lambda reads: all(len({r for r, c in reads if c == x}) <= 4 for x in "xyzw"), "6 of 8 calls are right"),
            (lambda reads: None, "returns nothing"),
            (lambda reads: 1, "not True or False"),
            (lambda reads: reads[0][2], "the call was"),
        ],
    ),
    check_sum: text(
        [answered(lines) for lines in [PAIRS + LAST, PAIRS.replace("r5", "r8") + LAST.replace("r5", "r8")]],
        [
            (answered(lines), said)
            for lines, *said in [
                ("", "0 in place of", "r0.x is left as it was"),
                (PAIRS + LAST.replace("r0.x", "r0.y"), "0 in place of", "r0.x is left as it was"),
                (PAIRS + "add r0.x, r5.x, r5.y", "", "but not z and w"),
                (ONE_BY_ONE, "and takes 1", "which could be done at once"),
                (PAIRS + IN_A_ROW, "takes 6 bundles", "at once"),
                (PAIRS + "mov r0.x, r5.x", "", "not their four numbers"),
                ("add r5.xy, r1.xy, r1.zw \n add r0.x, r5.x, r5.y", "", "only one of the four texels"),
                ("add r5, r1, r2 \n add r5, r5, r3 \n" + LAST, "", "the last texel is left out"),
                (PAIRS.replace("r4", "r3") + LAST, "is the first wrong element", ""),
                (PAIRS + LAST.replace("r0.x", "r0.q"), "does not assemble", "caret"),
                ("add r5, r7, r8 \n" + LAST, "", ""),
                ((PAIRS + LAST).replace("add", "iadd"), "0.000100613", "which of the 16 numbers does r0.x hold"),
                (PAIRS + DOT, "takes 7 bundles", "three additions"),
            ]
        ],
    ),
}
