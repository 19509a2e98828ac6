"""What `python -m tools.llvm` keeps, and that it can still be made."""

import json

import pytest

import cypresskit as ck
from cypresskit.compiler import CompileError
from tools import llvm

KEPT = json.loads(llvm.FILE.read_text(encoding="utf-8"))
VERSION = ".".join(map(str, llvm.llvm.llvm_version_info))


@pytest.mark.parametrize("name", KEPT["kernels"])
def test_the_kept_figures_match_what_this_llvm_makes(name):
    made = llvm.opinion(ck.kernels[name].program)
    assert made["registers"] > 0 and made["loop_bundles"] > 0
    if VERSION == KEPT["llvm"]:  # another back end schedules as it likes
        assert made == KEPT["kernels"][name]


def test_kernels_left_out_are_rejected_with_a_reason():
    left_out = [kernel for name, kernel in ck.kernels.items() if name not in KEPT["kernels"]]
    assert left_out
    for kernel in left_out:
        with pytest.raises(CompileError, match="LLVM's back end doesn't support"):
            llvm.opinion(kernel.program)
