"""No text and no launch can hurt: what asks for too much is refused before it takes it, with words
that help.
"""

import pytest
from sampling import drawn_by_day

import cypresskit as ck

HEAD = "il_ps_2_0\n"

BODIES = {
    "10 MB of lines": ("mov r0, r1\n" * 950_000, "characters are no kernel"),
    "4 MB in one line": (
        "mov" + "_x2" * 1_300_000 + " r0, r1",
        "this line has 3,900,010 characters",
    ),
    "4 MB of long lines": (("mov" + "_a" * 990 + " r0, r1\n") * 1_990, "`mov` has no control `_a`"),
    "too many instructions": ("mov r0, r1\n" * 350_000, "more than 2,000 instructions"),
    "a page of moves": (
        "".join(f"mov r{n % 100}, r{n * 7 % 100}\n" for n in range(20_000)),
        "more than 2,000 instructions",
    ),
    "nested addresses": (
        "mov r0, " + "g[" * 500 + "r0.x" + "]" * 500 + "",
        "an address is one component",
    ),
    "long macros": (
        "mdef(0)_out(0)_in(0)\n" + "mov r0, r1\n" * 900 + "mend\n" + "mcall(0) (), ()\n" * 3,
        "more than 2,000 instructions",
    ),
    "unclosed": ("if_logicalnz r0.x\n" * 1_000, "never closed"),
    "every byte": (bytes(range(256)).decode("latin-1") * 200, "the character U+0000 can only"),
}


@drawn_by_day("name", BODIES, 6)
def test_texts_are_refused_in_words(name):
    body, words = BODIES[name]
    with pytest.raises(ck.ILError) as caught:
        ck.assemble(f"{HEAD}{body}\nend")
    assert words in str(caught.value)
    str(caught.value).encode()
    assert len(str(caught.value)) < 20_000


def test_comments_may_hold_any_character():
    assert ck.assemble(f"\ufeff{HEAD}; Größe \u2212 \0\nmov r0, r1 // 字\nend").body
