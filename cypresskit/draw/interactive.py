"""Sliders that recompute a view, in a notebook with a running kernel.

``interactive(view, n=[256, 512])`` calls ``view(n=256)`` and shows the result. When the reader
chooses another value, it calls ``view`` again. If several choices are made during a computation,
only the last one counts. A status line reports progress and errors. A saved notebook keeps the
first result. Players don't need this module: they play without Python.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from cypresskit.draw import theme
from cypresskit.draw.display import Displayable
from cypresskit.draw.widget_channel import hear_beside_cells
from cypresskit.session import drop_dead_widget
from cypresskit.tables import in_columns

DEBOUNCE_SECONDS = 0.05  # a newer choice within this time replaces an older one
#: Shown in the place of controls: by a page without Python, and by a file not saved since they ran.
SAVED_NOTE = "<p><em>This is the first picture. Run this cell to use the controls.</em></p>"


def _slider(name: str, values: Sequence, start: Mapping):
    """Return the slider for one argument."""
    import ipywidgets as widgets

    slider = widgets.SelectionSlider(
        options=[(theme.make_readable(str(value)), value) for value in values],
        value=start.get(name, values[0]),
        description=theme.make_readable(name),
        continuous_update=False,
    )
    hear_beside_cells(slider)
    return slider


def interactive(
    view: Callable[..., Displayable | str], start: Mapping | None = None, **choices: Sequence
):
    """Show sliders above the result of ``view``.

    Parameters
    ----------
    view
        Called with one value per argument; returns a picture or a text.
    start
        The first value of some arguments; by default the first of their choices.
    choices
        For each argument of ``view``, the list of values to choose from.

    Raises
    ------
    ValueError
        If there is nothing to choose from.
    TypeError
        If the choices aren't a list.

    Examples
    --------
    >>> ck.draw.interactive(lambda n: ck.draw.chip("sgemm_tn", [n]), n=[256, 512, 1024])
    """
    import ipywidgets as widgets  # here: it is slow to import, and optional

    for name, values in choices.items():
        if not hasattr(values, "__len__"):
            raise TypeError(
                f"ck.draw.interactive takes lists to choose from; found {name} = {values!r}"
            )
    empty = [name for name, values in choices.items() if not len(values)]
    if empty or not choices:
        raise ValueError(
            f"there is nothing to choose for {', '.join(empty) or 'any argument'}: pass lists of"
            " values, as in n=[256, 512]"
        )
    status = widgets.HTML(layout={"min_height": "1.6em"})
    place = widgets.Output()
    chosen = {name: _slider(name, values, start or {}) for name, values in choices.items()}
    waiting: list[asyncio.TimerHandle] = []
    first: str | None = None

    def slider_values() -> str:
        """Return the sliders' values as HTML."""
        values = (f"{name} = {slider.value}" for name, slider in chosen.items())
        return theme.escape_html(", ".join(values))

    def draw() -> None:
        status.value = f'<span role="status">Computing {slider_values()} ...</span>'
        try:
            shown = view(**{name: widget.value for name, widget in chosen.items()})
        # Show every error: a widget's callback would otherwise lose it.
        except (Exception, KeyboardInterrupt) as error:
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            problem = theme.escape_html(f"{kind}{error}")
            status.value = f'<span role="alert">{slider_values()}: {problem}</span>'
            return
        # Assigning `outputs` works without a browser; `display` would add an output to the cell.
        nonlocal first
        if isinstance(shown, str):
            data = {"text/plain": theme.make_readable(shown)}
        else:
            data = shown.bundle()
        if first is None:
            first = data.get("text/html") or in_columns(data["text/plain"])
        place.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)
        status.value = f'<span role="status" style="{theme.ONLY_HEARD}">{slider_values()}</span>'

    def choose(_) -> None:
        """Draw once pending messages are handled, since these may change the choice again."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return draw()
        if waiting:
            waiting.pop().cancel()
        waiting.append(loop.call_later(DEBOUNCE_SECONDS, draw))

    for widget in chosen.values():
        widget.observe(choose, "value")
    draw()
    row = widgets.Box(list(chosen.values()), layout={"flex_flow": "row wrap"})
    whole = widgets.VBox([row, status, place]).add_class("cypresskit-controls")
    settings = "".join(
        f"<p>{theme.escape_html(name)}: <b>{theme.escape_html(widget.value)}</b></p>"
        for name, widget in chosen.items()
    )
    names = theme.make_readable(", ".join(chosen))
    saved = {"text/plain": f"Controls for {names} (run this cell to use them)"}
    if first is not None:
        saved["text/html"] = settings + first + SAVED_NOTE
    made = whole._repr_mimebundle_
    whole._repr_mimebundle_ = lambda **options: drop_dead_widget(made(**options) | saved)
    return whole
