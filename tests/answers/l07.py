"""Lesson 07."""

from cypresskit.editing.steps import starter_text


def by_bank(words):
    return max(len({w for w in words if w % 32 == bank}) for bank in range(32))


def sorting(words):
    banks = [word % 32 for word in set(words)]
    return max(banks.count(bank) for bank in banks)


THROUGH = starter_text("07")
EXCHANGE = [
    "fence_threads_lds",
    "lds_store_id(0) r3.x, r4.{part}",
    "fence_threads_lds",
    "lds_load_vec_id(0) r20, r3.y, r3.y",
    "lds_load_vec_id(0) r21, r3.z, r3.z",
]


def through_lds(exchange):
    text = THROUGH
    for column, part in enumerate("xyzw"):
        here = f"    ; column {column} of A\n"
        text = text.replace(here, "".join(f"{line}\n" for line in exchange).replace("{part}", part))
    return text
