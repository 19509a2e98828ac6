"""What the lessons' guesses are answered by where a launch costs nothing; a program, since it
changes the boards: ``python tests/without_launch.py`` prints it as JSON.
"""

import json
import re
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import cypresskit as ck
from cypresskit.devices import DEVICES
from cypresskit.draw import Prediction
from tools import book

timing = import_module("cypresskit.timing.simulate")  # the package has a function of that name
BOARDS = *DEVICES.values(), ck.today.H200


def nothing(*given, **how) -> None:
    """Stand in for what shows something."""


def missing(board) -> list[str]:
    """The parts that a board lacks and the HD 5870 has."""
    fields = vars(ck.HD5870)
    return [name for name, value in vars(board).items() if value == 0 != fields[name]]


class Notes:
    """What a lesson's cells do: ``said``, answers of guesses; ``curves``, answers of guessed
    curves; ``boards``, launches and the parts that their board lacks.
    """

    def __init__(self) -> None:
        self.said: list[tuple] = []
        self.curves: list[tuple] = []
        self.boards: list[tuple] = []
        self._ask = timing.run_request

    def say(self, guess, truth) -> str:
        self.said.append((guess.question, truth))
        return ""

    def draw_curves(self, series, *given, guess=None, **how) -> None:
        if guess is not None:
            points = {name: list(curve.items()) for name, curve in series.items()}
            self.curves.append((guess.question, points))

    def run_request(self, question):
        launch = f"{question.name} {question.size}"
        self.boards.append((launch, missing(question.device)))
        return self._ask(question)


def noted(path: Path) -> dict:
    """The notes on a student's notebook, run without pictures, checks and workbenches."""
    notes = Notes()
    drawn = dict.fromkeys(ck.draw.VIEWS, nothing)
    drawn |= {"predict": ck.draw.predict, "line_chart": notes.draw_curves}
    names = {"ck": ck}
    skipped: set[str] = set()
    with ExitStack() as stack:
        for patched in (
            patch.object(Prediction, "reveal", lambda guess, truth: notes.say(guess, truth)),
            patch.object(timing, "run_request", notes.run_request),
            patch.object(ck, "draw", SimpleNamespace(**drawn)),
            patch("IPython.display.display", nothing),
            patch("builtins.print", nothing),
        ):
            stack.enter_context(patched)
        for cell in book.student(book.read(path)).cells:
            used = set(re.findall(r"\w+", cell.source))
            checked = cell.metadata.get(book.METADATA_KEY, {}).get("part") == "check"
            if cell.cell_type != "code" or checked or used & skipped:
                continue
            if "ck.workbench(" in cell.source:
                skipped |= set(re.findall(r"(?m)^(\w+) = ", cell.source))
                continue
            exec(compile(cell.source, path.name, "exec"), names)
    return {"said": notes.said, "curves": notes.curves, "boards": notes.boards}


if __name__ == "__main__":
    for board in BOARDS:
        object.__setattr__(board, "launch_overhead_us", 0.0)
    found = {path.stem: noted(path) for path in book.sources(Path("notebooks"))}
    print(json.dumps(found, default=float))
