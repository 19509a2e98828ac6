"""Kernels of a few lines."""

import cypresskit as ck

TEXTURE = "dcl_resource_id({})_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"


def pixel(*lines):
    """A pixel kernel of these lines or texts."""
    return ck.assemble("\n".join(["il_ps_2_0", *map(str.strip, lines), "end"]), "test.il")


def compute(*lines):
    """A compute kernel of these lines or texts."""
    return ck.assemble("\n".join(["il_cs_2_0", *map(str.strip, lines), "end"]), "test.il")
