"""What ``load()`` sets up in a running IPython besides the players' scripts.

Importing the package changes nothing of its host. Rooms above this one say here what they would
set up (``extend``), and ``load`` or ``%load_ext cypresskit`` does it.
"""

import sys
from collections.abc import Callable
from typing import Any

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
