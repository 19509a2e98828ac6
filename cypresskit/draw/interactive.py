"""Sliders and menus around a view that has to be computed anew, in a notebook with a running
kernel.

``interactive(view, n=[256, 512])`` calls ``view(n=256)``, shows the player or text that it returns,
and calls it again whenever the reader makes a choice. Of the choices made during a computation only
the last counts. A status line says that it is computing. Players themselves need none of this: they
play without Python. A saved notebook holds what the controls show at first.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from threading import current_thread, main_thread

from cypresskit.draw import theme
from cypresskit.draw.display import Displayable
from cypresskit.session import without_dead_widget
from cypresskit.tables import in_columns

PAUSE = 0.05  # seconds in which a newer choice takes an older one's place
HEARD = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)"
MOVES = (
    "<p><em>In a notebook these controls compute anew; this is what they show at first.</em></p>"
)


def _chooser(name: str, values: Sequence, start: Mapping, slider: bool):
    """The slider or menu for one argument."""
    import ipywidgets as widgets

    options = [(_label(value), value) for value in values]
    given = {
        "options": options,
        "value": start.get(name, values[0]),
        "description": theme.readable(name),
    }
    if slider:
        return widgets.SelectionSlider(continuous_update=False, **given)
    small = {
        "style": {"description_width": "initial"},
        "layout": {"flex": "1 1 180px", "max_width": "240px"},
    }
    return widgets.Dropdown(**given, **small)


def _label(value) -> str:
    return "empty" if value is None else theme.readable(str(value))


def _saved(shown: Displayable | str) -> str:
    """What a saved notebook holds of a view, as HTML."""
    if isinstance(shown, str):
        return in_columns(theme.readable(shown))
    return shown.bundle()["text/html"]


@contextmanager
def _stoppable():
    """Let the stop button interrupt what runs here, even between two messages, when a notebook's
    kernel ignores it.
    """
    # JupyterLab may send a slider's messages to a thread of their own, which can set no signals.
    ignored = (
        current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    )
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def interactive(
    view: Callable[..., Displayable | str], start: Mapping | None = None, **choices: Sequence
):
    """Sliders (for numbers) and menus (for anything else; None is shown as "empty") above what
    ``view`` returns for them.

    ``view`` returns a player or a text. ``choices``: an argument of ``view`` to the values to
    choose from. ``start``: an argument to its first value, by default the first of its choices.
    Raises ``ValueError`` for an empty choice, ``TypeError`` for one that is no list.
    """
    import ipywidgets as widgets  # here, since it takes its time and only notebooks have it

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
    sliders = [
        name for name, values in choices.items() if all(isinstance(value, Real) for value in values)
    ]
    chosen = {name: _chooser(name, choices[name], start or {}, name in sliders) for name in choices}
    waiting: list[asyncio.TimerHandle] = []
    first: str | None = None

    def words() -> str:
        """What the sliders are at, as HTML. A menu says itself what it is at."""
        return theme.escaped(", ".join(f"{name} = {chosen[name].value}" for name in sliders))

    def draw() -> None:
        status.value = f'<span role="status">Computing {words()} ...</span>'
        try:
            with _stoppable():
                shown = view(**{name: widget.value for name, widget in chosen.items()})
        # Whatever it is, whoever moved the slider has to see it.
        except (Exception, KeyboardInterrupt) as error:
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            problem = theme.escaped(f"{kind}{error}")
            status.value = f'<span role="alert">{words()}: {problem}</span>'
            return
        # Set, not displayed: what is displayed here would, without a browser, become an output of
        # the cell itself.
        # A notebook that is saved keeps the still of what the controls showed at first; what is
        # redrawn all the time carries none.
        nonlocal first
        if first is None:
            first = _saved(shown)
        data = (
            {"text/plain": theme.readable(shown)}
            if isinstance(shown, str)
            else shown.bundle(still=False)
        )
        place.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)
        # The sliders say for themselves what they are at, but not to those who only listen.
        status.value = f'<span role="status" style="{HEARD}">{words()}</span>'

    def choose(_) -> None:
        """Draw, in a notebook after the waiting messages have been read, since they may change the
        choice.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return draw()
        status.value = f'<span role="status">Computing {words()} ...</span>'
        if waiting:
            waiting.pop().cancel()
        waiting.append(loop.call_later(PAUSE, draw))

    for widget in chosen.values():
        widget.observe(choose, "value")
    draw()
    row = widgets.Box(list(chosen.values()), layout={"flex_flow": "row wrap"})
    whole = widgets.VBox([row, status, place]).add_class("cypresskit-controls")
    settings = "".join(
        f"<p>{theme.escaped(name)}: <b>{theme.escaped(_label(widget.value))}</b></p>"
        for name, widget in chosen.items()
    )
    names = theme.readable(", ".join(chosen))
    saved = {"text/plain": f"Controls for {names} (run this cell to use them)"}
    if first is not None:
        saved["text/html"] = settings + first + MOVES
    made = whole._repr_mimebundle_
    whole._repr_mimebundle_ = lambda **options: without_dead_widget(made(**options) | saved)
    return whole
