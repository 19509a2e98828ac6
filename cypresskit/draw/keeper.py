"""Guesses made in pictures, kept in the notebook: they reach the same place as a prediction's.

A picture asks in the browser, and Python hears nothing of it. So ``load`` shows a widget that
listens there, and sends on which choice was made; the answer is kept in the metadata of the
widget's output. Pages without a kernel have no such widget, and keep nothing.
"""

from typing import Any, NamedTuple

from cypresskit.draw.predict import KEPT

LISTENS = """
export default {
  render({model, el}) {
    let notebook = null
    const hear = (event) => {
      notebook = el.closest(".jp-Notebook") ?? notebook // it may be off the page while one scrolls
      const theirs = event.target.closest(".jp-Notebook")
      if (!notebook || !theirs || notebook === theirs) model.send(event.detail)
    }
    el.hidden = true
    document.addEventListener("cypresskit-guess", hear)
    return () => document.removeEventListener("cypresskit-guess", hear)
  },
}
"""


class Asked(NamedTuple):
    """A picture's question, what can be answered, and what is right."""

    question: str
    choices: tuple[str, ...]
    right: str

    def kept(self, guess: str | None = None) -> dict:
        """As a notebook holds it."""
        return {"question": self.question, "guess": guess, "truth": self.right}


class Keeper:
    """What the pictures of a running notebook have asked, and what was answered."""

    def __init__(self) -> None:
        self.asked: dict[str, Asked] = {}
        self.made: dict[str, dict] = {}  # by question
        self._widget: Any = None
        self._handle: Any = None

    def ask(self, asked: Asked) -> None:
        """Remember what a picture that is about to be shown asks."""
        self.asked[asked.question] = asked

    def hear(self, _widget, content: object, _buffers=None) -> None:
        """Keep a choice that was made in the browser. What isn't one of a question's choices is
        nobody's guess.
        """
        if not isinstance(content, dict):
            return
        asked = self.asked.get(str(content.get("question")))
        number = content.get("choice")
        if asked is None or type(number) is not int or not 0 <= number < len(asked.choices):
            return
        self.made[asked.question] = asked.kept(asked.choices[number])
        if self._handle:
            self._handle.update(self._widget, metadata={KEPT: list(self.made.values())})

    def show(self) -> None:
        """Show the widget that listens, if this is a notebook with a kernel."""
        from IPython import get_ipython
        from IPython.display import display

        if not hasattr(get_ipython(), "kernel"):
            return
        import anywidget  # here, since it takes its time and only notebooks have it

        self._widget = anywidget.AnyWidget(_esm=LISTENS)
        self._widget.on_msg(self.hear)
        self._handle = display(self._widget, display_id=True)


KEEPER = Keeper()
