"""No text and no launch can hurt: what asks for too much is refused before it takes it, with words
that help.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from conftest import by_day

import cypresskit as ck
from cypresskit.files.atomic import save_file
from cypresskit.machine.checks import check

HEAD = "il_ps_2_0\n"


NO_HEAD = {
    "empty": ("", "the kernel is empty"),
    "blank": ("\n \t\n", "the kernel is empty"),
    "a comment": ("; nothing", "the kernel is empty"),
    "every byte": (
        bytes(range(256)).decode("latin-1") * 200,
        "the character U+0000 can only stand in a comment",
    ),
}
BODIES = {
    "zeros": ("\0\0", "2:1: the character U+0000 can only"),
    "half a character": ("\ud800", "2:1: the character U+D800 can only"),
    "letters of other scripts": (
        "m\u00f6v r0, r1",
        "2:2: the character `\u00f6`, U+00F6 (latin small letter o with",
    ),
    "digits of other scripts": (
        "dcl_literal l0, \u0661, 2, 3, 4",
        "2:17: the character `\u0661`, U+0661 (arabic-indic",
    ),
    "a minus of a text processor": (
        "dcl_literal l0, \u22121.0, 2, 3, 4",
        "U+2212 (minus sign) can only",
    ),
    "a blank that does not break": (
        "mov\u00a0r0, r1",
        "2:4: the character U+00A0 (no-break space) can only",
    ),
    "a bracket in a bracket": (
        "sample_resource((0))_sampler(0) r0, r1",
        "number in brackets, found none",
    ),
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
    "a million registers": ("mov r1000000, r0", "register numbers end at 65535"),
    "nested addresses": (
        "mov r0, " + "g[" * 500 + "r0.x" + "]" * 500 + "",
        "an address is one component",
    ),
    "a macro that calls itself": (
        "mdef(0)_out(0)_in(0)\nmcall(0) (), ()\nmend\nmcall(0) (), ()",
        "`mcall` inside a macro",
    ),
    "long macros": (
        "mdef(0)_out(0)_in(0)\n" + "mov r0, r1\n" * 900 + "mend\n" + "mcall(0) (), ()\n" * 3,
        "more than 2,000 instructions",
    ),
    "unclosed": ("if_logicalnz r0.x\n" * 1_000, "never closed"),
}
TEXTS = NO_HEAD | {name: (f"{HEAD}{body}\nend", said) for name, (body, said) in BODIES.items()}


@pytest.mark.parametrize("name", by_day(TEXTS, 6))
def test_texts_are_refused_in_words(name):
    text, words = TEXTS[name]
    with pytest.raises(ck.ILError) as caught:
        ck.assemble(text)
    assert words in str(caught.value)
    str(caught.value).encode()
    assert len(str(caught.value)) < 20_000


def test_the_explaining_engine_takes_no_more_memory_than_it_says():
    for line in ("mov r0, r1", ""):
        with pytest.raises(ValueError, match="take a smaller domain"):
            ck.launch(ck.assemble(f"{HEAD}{line}\nend"), (1 << 14, 1 << 14), engine="interpreter")
    registers = "".join(f"mov r{n}, r{n + 1}\n" for n in range(1_900))
    with pytest.raises(ValueError, match="take a smaller domain"):
        ck.launch(ck.assemble(f"{HEAD}{registers}end"), (1024, 1024), engine="interpreter")


def test_rejects_a_check_of_a_huge_domain_in_advance():
    store = ck.assemble("il_cs_2_0\nmov g[vaTid0.x], vaTid0\nend")
    with pytest.raises(ValueError, match="take a smaller domain"):
        check(store, 1 << 28, global_memory=np.zeros((64, 4), np.float32))


def test_threads_may_save_one_file_with_the_longest_name(tmp_path):
    path, texts = tmp_path / ("n" * 250), ["a" * 100_000, "b" * 200_000]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(save_file, path), texts * 20))
    assert path.read_text() in texts and list(tmp_path.iterdir()) == [path]


def test_a_file_behind_a_link_keeps_its_permissions(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.touch()
    real.chmod(0o640)
    link.symlink_to(real)
    save_file(link, "text")
    assert link.is_symlink() and real.read_text() == "text" and real.stat().st_mode & 0o777 == 0o640


def test_comments_may_hold_any_character():
    assert ck.assemble(f"\ufeff{HEAD}; Größe \u2212 \0\nmov r0, r1 // 字\nend").body


def test_kernel_text_is_never_run_as_python(capsys):
    for text in (
        "print(1)",
        "__import__('os').system('echo hello')",
        "{1/0}",
        "%s%n",
        "il_ps_2_0\nprint(1)\nend",
    ):
        with pytest.raises(ck.ILError):
            ck.assemble(text)
    assert capsys.readouterr().out == ""
