"""Guesses that are kept: those made in pictures, and how they got better."""

import json
import random
from statistics import median

import pytest
from said import Rule, Said, assert_held

from cypresskit import draw
from cypresskit.draw.guesses import MOST
from cypresskit.draw.keeper import Asked, Keeper
from cypresskit.draw.predict import KEPT, kept_guesses


def kept(question: str, guess, truth) -> dict:
    return {"question": question, "guess": guess, "truth": truth}


def write(folder, name: str, *made) -> None:
    """A lesson's notebook that keeps these guesses, one of its outputs for each."""
    outputs = [{"output_type": "display_data", "metadata": {KEPT: each}} for each in made]
    text = json.dumps({"cells": [{"cell_type": "code", "outputs": outputs}]})
    (folder / f"{name}.ipynb").write_text(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    chance, folder = random.Random(5), tmp_path_factory.mktemp("lessons")
    for lesson in range(6):
        made = []
        for n in range(chance.randint(1, 4)):
            truth = chance.choice([31.0, 2400, 0.125])
            guess = truth * chance.choice([1, 1.04, 1.3, 4, 0.5, 40])
            made.append(kept(f"Question {'abcd'[n]} of lesson {'stuvwx'[lesson]}?", guess, truth))
        made.append([kept("Which?", chance.choice(["TN", "NN"]), "TN"), kept("None?", None, "x")])
        write(folder, f"{lesson:02}_lesson", *made)
    return folder


def judged(folder) -> dict[str, list[tuple]]:
    """(guess, truth) of each lesson, read without the package."""
    lessons = {}
    for path in sorted(folder.glob("*.ipynb")):
        saved = [o["metadata"][KEPT] for o in json.loads(path.read_text())["cells"][0]["outputs"]]
        flat = [each for part in saved for each in (part if isinstance(part, list) else [part])]
        lessons[path.stem[:2]] = [(e["guess"], e["truth"]) for e in flat if e["guess"] is not None]
    return lessons


def off(guess: float, truth: float) -> float:
    return max(guess / truth, truth / guess)


def right(pair: tuple) -> bool:
    guess, truth = pair
    return guess == truth if isinstance(truth, str) else off(guess, truth) <= 1.1


def rules(folder) -> dict[str, Rule]:
    lessons = judged(folder)

    def middle(pairs: list[tuple]) -> list[float]:
        offs = [min(off(*pair), MOST) for pair in pairs if not isinstance(pair[1], str)]
        return [median(offs)] if offs else []

    def caption(say: Said, _):
        name = list(lessons)[say.frame]
        mine = lessons[name]
        true = [int(name), sum(map(right, mine)), len(mine), *middle(mine)]
        if say.frame == len(lessons) - 1:
            for half in (("00", "01", "02"), ("03", "04", "05")):
                pairs = [pair for name in half for pair in lessons[name]]
                share = 100 * sum(map(right, pairs)) / len(pairs)
                true += [int(half[0]), int(half[-1]), share, *middle(pairs)]
        return true

    def tip(say: Said, shown):
        pairs = [pair for made in lessons.values() for pair in made]
        for guess, truth in pairs:
            if isinstance(truth, str):
                continue
            true = [guess, truth]
            if not right((guess, truth)):
                true.append(min(off(guess, truth), MOST))
            if len(shown) == len(true) and all(
                abs(number - part) <= 0.06 * abs(part) for number, part in zip(shown, true)
            ):
                return True
        return False

    ticks = [1.5, 2, 3, 5, 10]
    return {
        r"Lesson #: .*(\n.*)?": caption,
        r"Question .*": tip,
        r"# times": lambda say, _: [ticks[say.index - 1]],
        r"#": lambda say, _: [say.index],
    }


def test_every_number_is_of_a_kept_guess(folder):
    player = draw.guesses(folder)
    assert len(player) == 6
    assert_held(player, rules(folder), frames=range(6))


def test_no_guess_is_drawn_before_its_lesson(folder):
    player, lessons = draw.guesses(folder), judged(folder)
    counts = [0] * 6
    for track in player.tracks:
        if track.source.name.startswith("guesses") and track.column == "x":
            for frame, places in enumerate(track.frames):
                counts[frame] += int((places == places).sum())
    so_far = [sum(map(len, list(lessons.values())[: n + 1])) for n in range(6)]
    assert counts == so_far


def test_a_folder_without_guesses_says_so(tmp_path):
    write(tmp_path, "00_lesson", kept("?", None, 3))
    (tmp_path / "01_broken.ipynb").write_text("{")
    (tmp_path / "02_odd.ipynb").write_text('{"cells": [3]}')
    assert "No guess is kept" in draw.guesses(tmp_path).captions[0]
    with pytest.raises(NotADirectoryError, match="no folder with lessons"):
        draw.guesses(tmp_path / "none")


class Handle:
    """What a notebook would get."""

    def __init__(self) -> None:
        self.metadata: list = []

    def update(self, _shown, metadata) -> None:
        self.metadata.append(metadata)


def test_a_choice_made_in_a_picture_is_kept_beside_the_answer():
    keeper, keeper_handle = Keeper(), Handle()
    keeper._handle = keeper_handle
    keeper.ask(Asked("Which?", ("TN", "NN"), "TN"))
    keeper.ask(Asked("And then?", ("a", "b"), "b"))
    keeper.hear(None, {"question": "Which?", "choice": 1})
    keeper.hear(None, {"question": "And then?", "choice": 1})
    last = keeper_handle.metadata[-1][KEPT]
    assert last == [kept("Which?", "NN", "TN"), kept("And then?", "b", "b")]
    cells = [{"outputs": [{"metadata": {KEPT: last}}]}]
    assert kept_guesses(cells) == {"Which?": ("NN", "TN"), "And then?": ("b", "b")}


@pytest.mark.parametrize(
    "message",
    [
        None,
        "text",
        {},
        {"question": "Which?"},
        {"question": "Which?", "choice": 2},
        {"question": "Which?", "choice": -1},
        {"question": "Which?", "choice": True},
        {"question": "Which?", "choice": "0"},
        {"question": ["Which?"], "choice": 0},
        {"question": "Another?", "choice": 0},
    ],
)
def test_what_is_no_choice_is_nobodys_guess(message):
    keeper, handle = Keeper(), Handle()
    keeper._handle = handle
    keeper.ask(Asked("Which?", ("TN", "NN"), "TN"))
    keeper.hear(None, message)
    assert not keeper.made and not handle.metadata


def test_a_picture_that_asks_brings_its_answer_for_marks():
    asks, shows = draw.texture_fetch(fetches=2), draw.exponents()
    (_, metadata), (_, none) = asks._repr_mimebundle_(), shows._repr_mimebundle_()
    assert none == {}
    tag = asks.figures[0].tags[0]
    assert metadata[KEPT] == kept(tag["asked"], None, tag["right"])
