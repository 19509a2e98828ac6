"""The compiler's middle form as text, after each pass."""

import re

import pytest

import cypresskit as ck
from cypresskit.compiler import compile, passes

NAMES = ["lower", "simplify", "vregs", "schedule", "emit"]
KERNELS = ["sgemm_naive", "ddgemm_naive", "sgemm_64x64_lds", "sgemv_n_reduce4"]


@pytest.mark.parametrize("name", KERNELS)
def test_every_pass_shows_a_whole_function(name):
    program = ck.kernels[name].program
    shown = passes(program)
    assert [pass_name for pass_name, _ in shown] == NAMES

    *texts, listing = (text for _, text in shown)
    assert listing == compile(program).listing()
    for text in texts:
        assert "?" not in text, "a word that nobody defines, or a block that isn't there"
    assert texts[1].count("\n") < texts[0].count("\n"), "simplified"


def test_a_word_shows_its_virtual_register_and_then_its_channel():
    texts = dict(passes(ck.kernels["sgemm_naive"].program))
    sum_of = r"w\d+{0} = MULADD_IEEE w\d+{1}, w\d+{1}, w\d+{0}  ; line 33"
    assert re.search(sum_of.format("", ""), texts["simplify"])
    assert re.search(sum_of.format(r"@v8", r"@v\d+"), texts["vregs"]), "the sum stays in place"
    assert re.search(sum_of.format(r"@v8\.x", r"@v\d+\.x"), texts["schedule"])
