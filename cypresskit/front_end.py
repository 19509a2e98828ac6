"""Whether a notebook is being read or run by a program, which its outputs should fit."""

import sys
from typing import Any

WIDGET = "application/vnd.jupyter.widget-view+json"


def has_user() -> bool | None:
    """Return whether the front end of the running kernel lets its user answer questions, as
    JupyterLab does, and nbval, nbclient and nbconvert don't. None outside a kernel.
    """
    ipython = sys.modules.get("IPython")
    kernel: Any = getattr(ipython.get_ipython(), "kernel", None) if ipython else None
    if not hasattr(kernel, "get_parent"):
        return None
    return bool(kernel.get_parent().get("content", {}).get("allow_stdin"))


def without_dead_widget(data: dict[str, Any]) -> dict[str, Any]:
    """Leave the widget out of an output's ``data`` where no user can move it: a page that nbconvert
    writes would show it, empty without a network, in place of what else ``data`` has.
    """
    if has_user() is False:
        return {kind: part for kind, part in data.items() if kind != WIDGET}
    return data
