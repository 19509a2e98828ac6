"""The IPython session that runs: what ``load()`` sets up in it, and whether it has a user.

Importing the package changes nothing in its host. Packages register here what they would set up
(``extend``), and ``load`` or ``%load_ext cypresskit`` does it. A notebook that a program runs has
no user, and its outputs should not depend on one.
"""

import sys
from collections.abc import Callable
from typing import Any

WIDGET = "application/vnd.jupyter.widget-view+json"

_extensions: list[Callable[[Any], None]] = []
_begun: list[Any] = []  # the shells that load() was called in


def extend(install: Callable[[Any], None]) -> None:
    """Let ``install`` set up the shell once ``load()`` is called; now, if it was."""
    _extensions.append(install)
    for shell in _begun:
        install(shell)


def begin(shell: Any = None) -> None:
    """Set up ``shell``, by default the running IPython, if there is one; each shell once."""
    if shell is None and "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
    if shell is None or any(shell is begun for begun in _begun):
        return
    _begun.append(shell)
    for install in _extensions:
        install(shell)


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
