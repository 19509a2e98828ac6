"""Lesson 07."""

from answers import given


def by_bank(words):
    return max(len({w for w in words if w % 32 == bank}) for bank in range(32))


def sorting(words):
    banks = [word % 32 for word in set(words)]
    return max(banks.count(bank) for bank in banks)


def lines(pitch: str, fence: str = "fence_threads_lds") -> list[str]:
    store = [
        f"umad r1.z, r1.y, {pitch}, r1.x",
        "ishl r1.z, r1.z, l0.z",
        "lds_store_id(0) r1.z, r3.x",
    ]
    return [
        *store,
        fence,
        f"umad r1.w, r1.x, {pitch}, r1.y",
        "ishl r1.w, r1.w, l0.z",
        "lds_load_id(0) r4.x, r1.w",
    ]


def kernel(*lines: str) -> str:
    return given("07_lds_transpose", "transposing").replace(
        "; your lines go below this one", "\n".join(lines)
    )
