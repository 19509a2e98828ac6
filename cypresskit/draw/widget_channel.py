"""Messages between a widget's page and Python that arrive, however busy both are.

Two hosts would lose or delay them:

- anywidget waits two seconds for a widget's module. If the page is busy for longer, the widget is
  shown, and Python hears it, but it never hears Python. So each anywidget that needs an answer
  takes a channel: a widget without a module.
- ipykernel 7.4 passes a page's message to the thread that sent last, which may be running a cell.
  JupyterLab asks for a thread that is free (a subshell): ``hear_beside_cells`` lets it have that.
"""

from typing import Any


def make_channel() -> Any:
    """Return a widget without a view, which only sends and receives messages.

    The page finds it by its ``model_id`` (``widget_manager.get_model``).
    """
    from ipywidgets import Widget  # here: it is slow to import, and optional

    channel = Widget()
    hear_beside_cells(channel)
    return channel


def hear_beside_cells(widget: Any) -> None:
    """Let a widget's messages reach Python while a cell runs, where page and kernel can do so."""
    widget.comm._reply_subshell_for = lambda _, wanted: wanted
