"""Lesson 07."""

from answers import function, given, number, text
from cypresskit.teach.l07_lds import check_bank_clocks, check_place, check_transpose


def by_bank(words):
    return max(len({w for w in words if w % 32 == bank}) for bank in range(32))


def sorting(words):
    banks = [word % 32 for word in set(words)]
    return max(banks.count(bank) for bank in banks)


def lines(pitch: str, fence: str = "fence_threads_lds") -> list[str]:
    store = [f"umad r1.z, r1.y, {pitch}, r1.x", "ishl r1.z, r1.z, l0.z", "lds_store_id(0) r1.z, r3.x"]
    return [*store, fence, f"umad r1.w, r1.x, {pitch}, r1.y", "ishl r1.w, r1.w, l0.z", "lds_load_id(0) r4.x, r1.w"]


def kernel(*lines: str) -> str:
    return given("07_lds_transpose", "transposing").replace("; your lines go below this one", "\n".join(lines))


CHECKS = {
    check_bank_clocks: number(
        [by_bank, sorting],
        [
            (lambda words: 0, "gives 0; it should be 1"),
            (lambda words: max([w % 32 for w in words].count(b) for b in range(32)), "served at once"),
            (lambda words: len({w % 32 for w in words}), "not the banks"),
            (lambda words: len(set(words)), "don't count all the words"),
            (lambda words: 1 + len(set(words)) - len({w % 32 for w in words}), "not the sum"),
            (lambda words: max(len({w for w in words if w % 16 == b}) for b in range(16)), "the chip has 32 banks"),
            (lambda words: max(len({w for w in words if w // 32 == b}) for b in range(512)), "// 32 is its row"),
            (lambda words: max(len({w for w in words if w // 4 % 32 == b}) for b in range(32)), "not bytes"),
            (lambda words: len({w for w in words if w % 32 == words[0] % 32}), "7 of 8 calls are right"),
            (lambda words: by_bank(words) - 1, "the first one takes a clock as well"),
            (lambda words: (len(set(words)), words.clear())[0], "don't count all the words"),
            (lambda words: 1, "use its arguments"),
            (lambda words: words.sort(), "returns nothing"),
            (lambda words: words[16], "IndexError"),
        ],
    ),
    check_place: function(
        [lambda row: 4 * row + 2 * (row // 8), lambda row: row // 8 * 34 + row % 8 * 4],
        [
            (lambda row: 4 * row, "In which banks do rows r and r + 8 begin?"),
            (lambda row: 4 * row + 4 * (row // 8), "the loads are fine"),
            (lambda row: 4 * row + row // 8, "Storing takes"),
            (lambda row: 4 * row + 8 * (row // 8), "not in bytes"),
            (lambda row: 8 * row, "The tile takes words 0 to 507"),
            (lambda row: row, "Rows 0 and 1 overlap"),
            (lambda row: 4 * (row % 8), "Rows 0 and 8 overlap"),
            (lambda row: 4 * row - 8, "The tile takes words -8"),
            (lambda row: float("nan"), "parts of a word"),
            (lambda row: 4.25 * row, "parts of a word"),
            (lambda row: 4 * row + 2 * (row // 4), "the loads are fine"),
            (lambda row: None, "place(0) returns None, not a number"),
            (lambda row: "34", "place(0) returns a str, not a number"),
        ],
    ),
    check_transpose: text(
        [kernel(*lines(pitch)) for pitch in ["l2.y", "l2.w"]],
        [
            (kernel(*text), said)
            for text, said in [
                ([], "nothing arrives in r4.x"),
                (["mov r4.x, r3.x"], "nothing was exchanged"),
                (["itof r2.xy, r1.yx", "sample_resource(0)_sampler(0) r4, r2.xy00"], "the LDS was busy for 0 clocks"),
                (
                    [
                        "itof r2.xy, r1.yx",
                        "sample_resource(0)_sampler(0) r5, r2.xy00",
                        *lines("l2.y"),
                        "mov r4.x, r5.x",
                    ],
                    "work-items fetch more than an element each",
                ),
                (lines("l2.y", "if_logicalnz r1.x\nfence_threads_lds\nendif"), "does not run"),
                (lines("l0.w"), "take 12 clocks"),
                (lines("l2.x"), "clocks of the LDS; 8 are possible"),
                (lines("l2.y", fence=""), "right, by luck"),
                (lines("l0.x"), "is "),
                ([line for line in lines("l2.y") if "ishl" not in line], "bytes are four times words"),
                (lines("l2.y")[:3], "nothing arrives in r4.x"),
                ([*lines("l2.y"), "lds_laod_id(0) r4.x, r1.w"], "does not assemble"),
                (["ishl r1.z, r1.x, l0.w", *lines("l2.y")[2:]], "does not run"),
            ]
        ],
    ),
}
