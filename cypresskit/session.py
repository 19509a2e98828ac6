"""Set up the running IPython session, and find out whether a person watches it.

Importing the package changes nothing in the session. Modules register what they would set up
(``register_extension``); ``load()`` and ``%load_ext cypresskit`` then do it. A notebook that is run
by a program (nbval, nbclient, nbconvert) has no user. Its outputs must not depend on the machine,
so it shows no notices.
"""

import sys
from collections.abc import Callable
from typing import Any

WIDGET_MIME = "application/vnd.jupyter.widget-view+json"

_extensions: list[Callable[[Any], None]] = []
_shells: list[Any] = []  # the shells in which load() was called


def register_extension(install: Callable[[Any], None]) -> None:
    """Register ``install``, which sets up a shell when ``load()`` is called in it.

    Shells in which it has been called are set up at once.
    """
    _extensions.append(install)
    for shell in _shells:
        install(shell)


def set_up(shell: Any = None) -> None:
    """Set up ``shell``, by default the running IPython, if there is one.

    Each shell is set up once.
    """
    shell = shell or running_shell()
    if shell is None or any(shell is begun for begun in _shells):
        return
    _shells.append(shell)
    for install in _extensions:
        install(shell)


def running_shell() -> Any:
    """Return the running IPython, or None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def has_user() -> bool | None:
    """Return whether the front end of the running kernel lets its user answer questions.

    JupyterLab does; nbval, nbclient and nbconvert don't. None outside of a kernel.
    """
    kernel: Any = getattr(running_shell(), "kernel", None)
    if not hasattr(kernel, "get_parent"):
        return None
    return bool(kernel.get_parent().get("content", {}).get("allow_stdin"))


def is_watched() -> bool:
    """Return whether standard error is a terminal, or the output of a notebook with a user."""
    in_notebook = has_user()
    if in_notebook is None:
        return sys.stderr is not None and sys.stderr.isatty()
    return in_notebook


def drop_dead_widget(data: dict[str, Any]) -> dict[str, Any]:
    """Drop the widget from an output's ``data`` (by MIME type) if the notebook has no user.

    A page that nbconvert writes would show the widget instead of the other data; and without a
    network, a widget stays empty.
    """
    if has_user() is False:
        return {kind: part for kind, part in data.items() if kind != WIDGET_MIME}
    return data
