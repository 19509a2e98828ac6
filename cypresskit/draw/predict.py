"""Ask the reader for a guess, and show it beside the result in the next cell.

``guess = ck.draw.predict("How many?")`` asks, ``guess.value`` is the answer or None, and
``guess.reveal(31)`` returns a line with question, guess and result. The reader draws a curve on a
chart; ``line_chart`` draws the result over this guess.
"""

import re
from collections.abc import Sequence
from math import inf, isfinite
from typing import Any

from cypresskit.draw import theme
from cypresskit.draw.guess_chart import guess_chart
from cypresskit.session import drop_dead_widget

BETWEEN = " | "  # separates choices in the text form
RED = "light-dark({}, {})".format(*theme.TOKENS["wait"])
#: The choices: of a dark theme, a button and the chosen one are hardly seen.
STYLE = """<style>
.cypresskit-choices button { border: 1px solid var(--jp-ui-font-color2, gray) }
.cypresskit-choices button.mod-active {
  box-shadow: inset 0 0 0 2px var(--jp-ui-font-color1, black)
}
</style>"""


class Prediction:
    """A question and the reader's guess."""

    def __init__(
        self, question: str, choices: Sequence, curve: Sequence[float], top: float, unit: str
    ) -> None:
        self.question, self.unit = theme.make_readable(question), theme.make_readable(unit)
        self.choices, self.curve, self.top = choices, curve, top
        self._widget: Any = None
        self._entry: Any = None

    @property
    def value(self):
        """The guess: a choice, a number, or a dict from x to height. None before anything is
        entered.
        """
        if self._entry is None:
            return None
        entered = self._entry.value
        if self.curve:
            return dict(zip(self.curve, entered)) if any(entered) else None
        return entered if self.choices else read_number(entered, self.unit)

    @property
    def _typed(self) -> str:
        """The text in the field of a number."""
        if self._entry is None or self.curve or self.choices:
            return ""
        return self._entry.value.strip()[:40]

    def enter(self, value) -> None:
        """Enter a guess in the reader's place: a choice, a number's text, or a curve's heights."""
        if self._widget is None:
            self._build()
        self._entry.value = value

    def reveal(self, truth) -> str:
        """Return the question, the guess and the result as a line of text.

        For example "How many? You said 4, and it is 8 wavefronts." Without a guess, the line has
        only the result.
        """
        numeric = isinstance(truth, int | float)
        unit = self.unit.removesuffix("s") if truth == 1 and self.unit.isalpha() else self.unit
        is_ = f"it is {_shown(truth) if numeric else truth} {unit}".rstrip()
        gap, you, it = (" ", "You", "It") if self.question.endswith("?") else (": ", "you", "it")
        if self.value is None:
            typed = self._typed
            why = f"`{typed}` can't be read as a number" if typed else "You made no guess"
            return f"{self.question}{gap}{it}{is_[2:]}. ({why}.)"
        right = (
            abs(self.value - truth) <= 0.1 * abs(truth)
            if numeric and not (self.choices or self.curve)
            else self.value == truth
        )
        well = right and len(self.choices) != 2  # praise would be cheap with two choices
        return (
            f"{self.question}{gap}{you} said {_shown_guess(self.value)}, and"
            f" {is_}{': well guessed!' if well else '.'}"
        )

    def __repr__(self) -> str:
        what = f"({BETWEEN.join(map(str, self.choices))})" if self.choices else self.unit
        return f"Your guess: {self.question} … {what}".rstrip() + " (Run this cell to enter it.)"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        if self._widget is None:
            self._build()
        return drop_dead_widget(self._widget._repr_mimebundle_() | {"text/plain": repr(self)})

    def _build(self) -> None:
        import ipywidgets as widgets  # here, since it takes its time and only notebooks have it

        unit = []
        label = f"Your guess: {self.question}"
        if self.curve:
            self._entry = guess_chart(label, self.curve, self.top)
        elif self.choices:
            options = [(theme.make_readable(str(choice)), choice) for choice in self.choices]
            self._entry = widgets.ToggleButtons(
                options=options, value=None, style={"button_width": "initial"}, tooltip=label
            ).add_class("cypresskit-choices")
        else:
            field = {"placeholder": "a number", "layout": {"width": "9em"}, "tooltip": label}
            self._entry = widgets.Text(**field)
            unit = [widgets.Label(self.unit)]
        asked = f"<b>Your guess:</b> {theme.escape_html(self.question)}"
        question = widgets.HTML(STYLE + asked if self.choices else asked)
        self._status = widgets.HTML(self.feedback)
        self._entry.observe(self._note, "value")
        row = widgets.HBox([self._entry, *unit])
        self._widget = widgets.VBox([question, row, self._status])

    def _note(self, _) -> None:
        self._status.value = self.feedback

    @property
    def feedback(self) -> str:
        """What is shown of what is being entered, as HTML."""
        if self._typed and self.value is None:
            problem = f"{self._typed!r} can't be read as a number: try one like 8, 1.5 or 1/70."
            return f'<b role="alert" style="color: {RED}">{theme.escape_html(problem)}</b>'
        if self.value is None:
            return "Enter your guess, then run the next cell."
        value = "your curve" if self.curve else _shown_guess(self.value)
        return (
            f'<span role="status">Noted: {theme.escape_html(value)}. Now run the next cell.</span>'
        )


def read_number(text: str, unit: str) -> float | None:
    """Return the number in a text as people write it, with words around it, or None.

    1,3 and 0,125 are decimals, 1 000 and 1,000 thousands, 1/70 is a fraction. A ``~`` or ``≈`` may
    stand before it without a space, and a period, an ``x``, a ``%``, ``-fold`` or the ``unit``
    after it. 2k, 0x10, 1.3.4 and 20-30 aren't numbers. In percent, 1/4 and 100/4 are 25.
    """
    thousands = r"(?<![\d.,])[1-9]\d{0,2}(?:[,'\s]\d{3})+(?!\d)"
    plain = re.sub(thousands, lambda each: re.sub(r"\D", "", each[0]), text.replace("\u2212", "-"))
    number = r"(?:\D*[\s~≈])?([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?:\s*/\s*(\d+))?"
    after = rf"(?:x|%|-fold|{re.escape(unit or 'x')})?\.?(?:\s\D*)?"
    match = re.fullmatch(number + after, plain.strip().replace(",", "."), re.I)
    if not match:
        return None
    divisor = float(match[2] or 1)
    value = float(match[1]) / divisor if divisor else inf
    if match[2] and abs(value) <= 1 and unit.startswith("%") and "%" not in text:
        value *= 100
    return value if isfinite(value) else None


def _shown_guess(value) -> str:
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, dict):  # a curve
        return ", ".join(f"{_shown_guess(height)} at {place}" for place, height in value.items())
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"


def _shown(number: float) -> str:
    """Return a number as text: rounded to a whole number from 10 on, else to two digits."""
    return f"{number:,.0f}" if abs(number) >= 10 or number % 1 == 0 else f"{number:.2g}"


def predict(
    question: str,
    choices: Sequence = (),
    *,
    curve: Sequence[float] = (),
    top: float = 0.0,
    unit: str = "",
) -> Prediction:
    """Ask for a guess.

    Parameters
    ----------
    question
        Shown before the field.
    choices
        The possible answers. Without choices and ``curve``, the reader enters a number.
    curve
        The x values at which the reader draws a height.
    top
        The largest height of a curve.
    unit
        The unit of a number.

    Returns
    -------
    Prediction
        Its ``value`` is the guess; ``reveal`` compares it with the result.
    """
    from IPython.display import display

    if curve and not top > 0:
        raise ValueError("a curve needs `top`, the largest height that can be guessed")
    guess = Prediction(question, choices, curve, top, unit)
    display(guess)
    return guess
