"""What stands in the compile page for `cypresskit.il.fused`, whose loops LLVM compiles."""

from numpy import multiply_add as multiply_add  # type: ignore[attr-defined]  # the stand-in
