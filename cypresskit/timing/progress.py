"""Decide whether to show progress: only where it can be watched, and after ``DELAY`` seconds.

A notebook that a program runs (nbval, nbclient, nbconvert) must have the same outputs on a slow
machine and on a fast one, with compiled code on disk or without.
"""

import os
import sys

#: Seconds after which a progress bar is shown.
DELAY = 2.0


def is_watched() -> bool:
    """Return whether standard error is a terminal, or an output of a notebook whose front end lets
    its user answer questions, as JupyterLab does and no program. False if tqdm's own variable
    TQDM_DISABLE is set.
    """
    if os.environ.get("TQDM_DISABLE", "0") not in ("", "0"):
        return False
    ipython = sys.modules.get("IPython")
    kernel = getattr(ipython.get_ipython(), "kernel", None) if ipython else None
    if kernel is None:
        return sys.stderr is not None and sys.stderr.isatty()
    request = kernel.get_parent() if hasattr(kernel, "get_parent") else {}
    return bool(request.get("content", {}).get("allow_stdin"))
