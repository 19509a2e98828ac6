"""How the reader's guesses got better: those kept in the lessons, each as far off as it was.

From the notebooks of a folder, as they were last saved: predictions and what pictures asked. A
number is off by a factor, drawn on a logarithmic axis; of choices the right ones count. Left out:
questions that nobody answered.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from math import inf, log
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cypresskit.draw.player import Player
from cypresskit.draw.predict import kept_guesses
from cypresskit.draw.sheet import Sheet

WIDE, TOP, FOOT = 1100, 44, 340  # the stage; where the axis begins and ends
LEFT, RIGHT = 92, 1070  # the columns of lessons
MOST = 10.0  # times that a guess is off: larger ones are drawn there
CLOSE = 1.1  # a number that is off by less is a good guess
TICKS = (1, 1.5, 2, 3, 5, 10)


class Judged(NamedTuple):
    """A guess beside what came out. ``off`` is the factor between two numbers; without one it was a
    choice.
    """

    question: str
    guess: object
    truth: object
    off: float | None

    @property
    def right(self) -> bool:
        return self.guess == self.truth if self.off is None else self.off <= CLOSE

    def say(self) -> str:
        off = "" if self.off is None or self.right else f", off by {_times(self.off)}"
        return f"{self.question}: you said {_short(self.guess)}, it is {_short(self.truth)}{off}"


def guesses(folder: str | Path = ".") -> Player:
    """A player of the guesses kept in the lessons' notebooks of a ``folder``, lesson by lesson.

    A notebook that can't be read is left out. Raises ``NotADirectoryError`` for what is no folder.
    """
    if not Path(folder).is_dir():
        raise NotADirectoryError(f"{folder} is no folder with lessons")
    judged = {path.stem[:2]: list(_judged(path)) for path in sorted(_lessons(Path(folder)))}
    lessons = {name: made for name, made in judged.items() if made}
    sheet = Sheet("How my guesses got better")
    sheet.stage("Each guess, by lesson: how many times it was off", WIDE, FOOT + 40)
    _draw_axes(sheet, list(judged))
    _draw_guesses(sheet, list(judged), lessons)
    captions = [_say(list(lessons), lessons, n) for n in range(len(lessons))]
    captions = captions or [
        "No guess is kept in this folder yet: make one, run the next cell, save."
    ]
    lines = [f"{name}: {g.say()}" for name, made in lessons.items() for g in made]
    legend = sheet.legend(
        ("a number", "read", "box"), ("a right choice", "c", "box"), ("a wrong one", "wrote", "box")
    )
    return sheet.player(captions, lines, below=[legend], step="Lesson", seconds=8)


def _lessons(folder: Path) -> Iterable[Path]:
    return folder.glob("[0-9][0-9]_*.ipynb")


def _judged(path: Path) -> Iterator[Judged]:
    """The guesses that a notebook keeps."""
    try:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        pairs = kept_guesses([{"outputs": cell.get("outputs", [])} for cell in cells])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return
    for question, (guess, truth) in pairs.items():
        if guess is not None and isinstance(guess, str | int | float):
            yield Judged(question, guess, truth, _off(guess, truth))


def _off(guess: object, truth: object) -> float | None:
    """The factor between two numbers; infinite if one of them is 0, None for what is no number."""
    if not all(type(value) in (int, float) for value in (guess, truth)):
        return None
    small, large = sorted((abs(float(guess)), abs(float(truth))))  # type: ignore[arg-type]
    same_sign = (float(guess) < 0) == (float(truth) < 0)  # type: ignore[arg-type]
    if small == large and same_sign:
        return 1.0
    return large / small if small and same_sign else inf


def _times(off: float) -> str:
    return f"more than {MOST:g} times" if off > MOST else f"{off:.2g} times"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:40]


def _column(lessons: list[str]) -> float:
    return (RIGHT - LEFT) / max(len(lessons), 1)


def _y(off: float) -> float:
    part = min(log(max(off, 1.0)) / log(MOST), 1.0)
    return FOOT - 40 - (FOOT - 40 - TOP) * part


def _draw_axes(sheet: Sheet, lessons: list[str]) -> None:
    """The lessons below, the factors at the left, and the row of choices."""
    x = LEFT + _column(lessons) * (np.arange(len(lessons)) + 0.5)
    ticks = [_y(tick) for tick in TICKS]
    sheet.boxes("levels", (LEFT + RIGHT) / 2, ticks, RIGHT - LEFT, 1, ink="line", alpha=0.5)
    names = ["right", *(f"{tick:g} times" for tick in TICKS[1:])]
    sheet.words(LEFT - 8, ticks, names, "soft", align="right", size=12)
    sheet.words(LEFT - 8, FOOT - 8, "choices", "soft", align="right", size=12)
    sheet.words(4, 16, "off by", "soft", size=12)
    if lessons:
        sheet.words(x, FOOT + 22, lessons, bold=True, align="center", size=14)


def _draw_guesses(sheet: Sheet, lessons: list[str], made: Mapping[str, list[Judged]]) -> None:
    """A mark for each guess; those of a lesson come together."""
    if not made:
        return
    order = list(made)
    kinds: dict[str, list] = {"read": [], "c": [], "wrote": []}
    for come, (lesson, all_of_it) in enumerate(made.items()):
        middle = LEFT + _column(lessons) * (lessons.index(lesson) + 0.5)
        numbers = [guess for guess in all_of_it if guess.off is not None]
        choices = [guess for guess in all_of_it if guess.off is None]
        for group in (numbers, choices):
            for n, guess in enumerate(group):
                x = middle + 13 * (n - (len(group) - 1) / 2)
                y = FOOT - 8 if guess.off is None else _y(guess.off)
                ink = "read" if guess.off is not None else "c" if guess.right else "wrote"
                kinds[ink].append((x, y, come, guess.say()))
    frame = np.arange(len(order))[:, np.newaxis]
    for ink, marks in kinds.items():
        if not marks:
            continue
        across, down, comes, words = zip(*marks)
        place = np.where(np.array(comes) <= frame, np.array(across), np.nan).astype(np.float32)
        sheet.boxes(f"guesses {ink}", place, down, 10, 10, ink=ink, round=5, words=list(words))


def _median(made: list[Judged]) -> float | None:
    """The middle factor by which a lesson's numbers were off, at most ``MOST``."""
    offs = [min(guess.off, MOST) for guess in made if guess.off is not None]
    return float(np.median(offs)) if offs else None


def _say(order: list[str], made: Mapping[str, list[Judged]], n: int) -> str:
    """What came out in a lesson, and at the end the first half beside the second."""
    mine = made[order[n]]
    right = sum(guess.right for guess in mine)
    sentence = f"**Lesson {order[n]}**: {right} of {len(mine)} guesses right."
    middle = _median(mine)
    if middle is not None:
        sentence += f" Numbers off by {_times(middle)}, in the middle."
    if n + 1 < len(order) or n == 0:
        return sentence
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    parts = []
    for half in halves:
        all_of_it = [guess for name in half for guess in made[name]]
        share = sum(guess.right for guess in all_of_it) / len(all_of_it)
        middle = _median(all_of_it)
        off = "" if middle is None else f", numbers off by {_times(middle)}"
        parts.append(f"{half[0]} to {half[-1]}: {100 * share:.0f} % right{off}")
    return f"{sentence}\n**{'; '.join(parts)}.**"
