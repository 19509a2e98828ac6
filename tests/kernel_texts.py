"""Kernels of a few lines, and those of the catalog with a part changed."""

import cypresskit as ck

TEXTURE = "dcl_resource_id({})_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"


def pixel(*lines):
    """A pixel kernel of these lines or texts."""
    return ck.assemble("\n".join(["il_ps_2_0", *map(str.strip, lines), "end"]), "test.il")


def compute(*lines):
    """A compute kernel of these lines or texts."""
    return ck.assemble("\n".join(["il_cs_2_0", *map(str.strip, lines), "end"]), "test.il")


def replace_once(text, old, new):
    """A text with a part, which it has, in another form the first time that it stands there."""
    assert old in text, f"no {old!r}"
    return text.replace(old, new, 1)


def alter_kernel(name, old, new):
    """A kernel of the catalog with a part of its text in another form."""
    return ck.load_kernel(replace_once(ck.kernels[name].text, old, new))
