"""Decide whether to show progress: only where it can be watched, and after ``DELAY`` seconds.

A notebook that a program runs (nbval, nbclient, nbconvert) must have the same outputs on a slow
machine and on a fast one, with compiled code on disk or without.
"""

import os
import sys

from cypresskit.session import has_user

#: Seconds after which a progress bar is shown.
DELAY = 2.0


def is_watched() -> bool:
    """Return whether standard error is a terminal, or the output of a notebook that has a user.
    False if tqdm's own variable TQDM_DISABLE is set.
    """
    if os.environ.get("TQDM_DISABLE", "0") not in ("", "0"):
        return False
    in_notebook = has_user()
    if in_notebook is None:
        return sys.stderr is not None and sys.stderr.isatty()
    return in_notebook
