"""The controls of the lessons: every number that they show, for the choices that they offer.

A lesson's own code is run, no further than its control needs. What it times on the way is recorded,
and each line that it shows is held against that, or against a formula.
"""

import ast
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import pytest
from conftest import ROOT
from said import Said, assert_true

import cypresskit as ck
from cypresskit import draw, host, timing
from cypresskit.host.blocked import choose_block
from cypresskit.teach.bindings import find_needed_cells
from cypresskit.teach.l02_why_blocks import checks as why_blocks
from cypresskit.teach.l10_larger import checks as larger
from cypresskit.teach.l12_contest import checks as contest

SOME = 3  # settings that are tried
#: What times something for a lesson, and so has what is to be shown.
TIMERS = [
    (ck, "simulate"),
    (timing, "simulate"),
    (why_blocks, "simulate_block"),
    (contest, "time_kernel"),
    (host, "blocked_timeline"),
    (larger, "blocked_timeline"),
    (host, "five_stage"),
]


@dataclass
class Control:
    """A lesson's control: what it shows for arguments, and what was timed for that."""

    view: Callable = str
    choices: dict = field(default_factory=dict)
    timed: list = field(default_factory=list)

    def listen(self, timer: Callable) -> Callable:
        """The function, whose results are kept."""

        def run(*args, **how):
            result = timer(*args, **how)
            self.timed.append(result)
            return result

        return run

    def offer(self, view: Callable, start: dict | None = None, **choices) -> None:
        """In place of ``draw.interactive``: keep what it is given."""
        self.view, self.choices = view, choices

    def settings(self) -> list[dict]:
        """Some of all choices, at random."""
        settings = [dict(zip(self.choices, chosen)) for chosen in product(*self.choices.values())]
        return random.Random(len(settings)).sample(settings, SOME)

    def show(self, setting: dict) -> tuple[list[str], list]:
        """The lines of the text, and what was timed for it."""
        self.timed.clear()
        with self.listening():
            lines = str(self.view(**setting)).split("\n")
        return lines, list(self.timed)

    @contextmanager
    def listening(self) -> Iterator[pytest.MonkeyPatch]:
        """Keep what any of ``TIMERS`` gives."""
        with pytest.MonkeyPatch.context() as patch:
            for module, name in TIMERS:
                patch.setattr(module, name, self.listen(getattr(module, name)))
            yield patch


@cache
def control(lesson: str) -> Control:
    """The last control of a lesson, made by the lesson's code."""
    (path,) = sorted((ROOT / "notebooks/source").glob(f"{lesson}_*.md"))
    cells = re.findall(r"^```python[^\n]*\n(.*?)^```", path.read_text(), re.M | re.S)
    plain = [re.sub(r"(?m)^[%!].*", "", cell) for cell in cells]
    statements = [ast.unparse(s) for cell in plain for s in ast.parse(cell).body]
    place = max(n for n, code in enumerate(statements) if "draw.interactive(" in code)
    made, names = Control(), dict[str, object]()
    with made.listening() as patch:
        patch.setattr(draw, "interactive", made.offer)
        for n in [*find_needed_cells(statements[:place], statements[place]), place]:
            exec(compile(statements[n], path.name, "exec"), names)
    return made


def numbers(setting: dict, timed: Sequence) -> list[frozenset[float]]:
    """What a line may say of a setting: its own numbers, and those of one thing that was timed."""
    chosen = [value for value in setting.values() if isinstance(value, int | float)]
    things = [frozenset(chosen)]
    for of in timed:
        if isinstance(of, timing.Report):
            of_units = *of.busy.values(), *of.hits.values(), of.simulated
            shares = [100 * part for part in of_units]
            sizes = *of.size, of.wavefronts, of.active_wavefronts, of.registers
            speed = of.gflops, of.percent, of.clocks, 1e3 * of.seconds
            moved = [count / 1e6 for count in of.bytes.values()]
            fit = [n for n in range(1, 129) if 256 // n == of.active_wavefronts]  # registers
            things.append(frozenset([*chosen, *sizes, *speed, *shares, *moved, *fit]))
        else:
            queues = {span.task.queue == "CPU" for span in of.spans}
            ends = [max(s.end for s in of.spans if (s.task.queue == "CPU") == q) for q in queues]
            things.append(frozenset([*chosen, of.seconds, of.gflops, 0, *ends]))
    if "bus" in setting:  # three matrices to the chip and one back, then 2 n^3 flops
        n, bus, kernel = (setting[name] for name in ("n", "bus", "kernel"))
        rate = 2 * n**3 / (32 * n**2 / bus + 2 * n**3 / kernel)
        things.append(frozenset([n, bus, kernel, rate, 100 * rate / kernel, 16 * kernel / bus]))
    if "block" in setting:
        n, machine = setting["n"], host.Machine(ck.HD5870)
        for block, run in zip((setting["block"], choose_block(n, n, n, machine)), timed):
            whole = -(-n // block) * block
            gflops = 2 * n**3 / run.seconds / 1e9
            things.append(frozenset([n, block, whole, 100 * (1 - (n / whole) ** 2), gflops]))
    return things


TEXTS = ("04", "09", "10", "11", "12")


@pytest.mark.slow
@pytest.mark.parametrize("lesson", TEXTS)
def test_every_number_that_a_control_shows_is_what_was_timed(lesson):
    shown = control(lesson)
    for setting in shown.settings():
        lines, timed = shown.show(setting)
        where = f"lesson {lesson}, {setting}"
        assert_true([Said(line, 0, where) for line in lines], numbers(setting, timed))


def test_every_control_of_a_lesson_is_held():
    """The first of lesson 04 shows lines of waiting: see test_draw_wavefronts."""
    sources = sorted((ROOT / "notebooks/source").glob("*.md"))
    offer = {path.name[:2] for path in sources if "draw.interactive(" in path.read_text()}
    assert offer == {*TEXTS}
