"""Sliders and menus round a view that has to be computed anew, in a notebook with a running kernel.

``controls(view, n=[256, 512])`` calls ``view(n=256)``, shows the player or the text, and calls again when the reader
chooses. What takes longer than a blink says so meanwhile. A click in the player may choose, too, where it is on what
another choice would show. Players themselves need none of it: they play without Python.
"""

from collections.abc import Callable, Mapping, Sequence

from cypresskit.draw.player import Shown

TEXT = "Controls for "  # how the text form begins, which a saved notebook shows before its cell is run


def controls(view: Callable[..., Shown | str], start: Mapping | None = None, **choices: Sequence):
    """A widget with a slider (for numbers) or menu (for anything else, with None as "empty") for each argument of
    ``view`` in ``choices``, above the player or the text that ``view`` returns. They begin with what ``start`` says, or
    the first. Raises ``ValueError`` for an argument without choices."""
    import ipywidgets as widgets  # here, since it takes its time and only notebooks have it

    empty = [name for name, values in choices.items() if not len(values)]
    if empty or not choices:
        raise ValueError(f"controls need something to choose for {', '.join(empty) or 'at least one argument'}")
    status = widgets.HTML(layout={"min_height": "1.6em"})
    place = widgets.Output()
    chosen, sliders = {}, []
    for name, values in choices.items():
        numbers = all(isinstance(value, int | float) for value in values)
        options = [("empty" if value is None else str(value), value) for value in values]
        given = {"options": options, "value": (start or {}).get(name, values[0]), "description": name}
        if numbers:
            sliders.append(name)
            chosen[name] = widgets.SelectionSlider(continuous_update=False, **given)
        else:
            small = {"style": {"description_width": "initial"}, "layout": {"flex": "1 1 180px", "max_width": "240px"}}
            chosen[name] = widgets.Dropdown(**given, **small)

    def draw(_=None) -> None:
        arguments = {name: widget.value for name, widget in chosen.items()}
        words = ", ".join(f"{name} = {arguments[name]}" for name in sliders)  # a menu says itself what it is at
        status.value = f'<span role="status">Computing {words} ...</span>'
        try:
            shown = view(**arguments)
        except ValueError as error:
            status.value = f'<span role="alert">{words}: {error}</span>'
            return
        # Set, not displayed: what is displayed here would, without a browser, become an output of the cell itself.
        data = {"text/plain": shown} if isinstance(shown, str) else shown._repr_mimebundle_()
        place.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)
        status.value = f'<span role="status">{words}</span>'

    def answer(_) -> None:
        name, _, value = asked.value.partition("=")
        if name in chosen and value in map(str, choices[name]):
            chosen[name].value = next(one for one in choices[name] if str(one) == value)

    # What the player's script writes here, "item=4", it asks of Python.
    asked = widgets.Text(continuous_update=False, layout={"display": "none"}).add_class("cypresskit-asked")
    asked.observe(answer, "value")
    for widget in chosen.values():
        widget.observe(draw, "value")
    draw()
    row = widgets.Box([asked, *chosen.values()], layout={"flex_flow": "row wrap"})
    whole = widgets.VBox([row, status, place]).add_class("cypresskit-controls")
    made, text = whole._repr_mimebundle_, f"{TEXT}{', '.join(chosen)} (run this cell to use them)"
    whole._repr_mimebundle_ = lambda **options: made(**options) | {"text/plain": text}
    return whole
