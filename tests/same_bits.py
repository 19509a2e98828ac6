"""Where two arrays differ in their bits."""

import numpy as np


def differences(operands, one, other):
    """The operands whose results differ in their bits; all NaNs are alike."""
    word = np.dtype(f"u{one.itemsize}")
    differs = (one.view(word) != other.view(word)) & ~(np.isnan(one) & np.isnan(other))
    return [*zip(*(x[differs] for x in operands))]
