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
from said import Rule, Said, assert_true

import cypresskit as ck
from cypresskit import draw, host, timing
from cypresskit.host.blocked import choose_block
from cypresskit.teach.bindings import find_needed_cells
from cypresskit.teach.l02_why_blocks import checks as why_blocks
from cypresskit.teach.l10_larger import checks as larger
from cypresskit.teach.l12_contest import checks as contest

SOME = 10  # settings that are tried
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
    """The control of a lesson, made by the lesson's code."""
    (path,) = sorted((ROOT / "notebooks/source").glob(f"{lesson}_*.md"))
    cells = re.findall(r"^```python[^\n]*\n(.*?)^```", path.read_text(), re.M | re.S)
    plain = [re.sub(r"(?m)^[%!].*", "", cell) for cell in cells]
    statements = [ast.unparse(s) for cell in plain for s in ast.parse(cell).body]
    place = next(n for n, code in enumerate(statements) if "draw.interactive(" in code)
    made, names = Control(), dict[str, object]()
    with made.listening() as patch:
        patch.setattr(draw, "interactive", made.offer)
        for n in [*find_needed_cells(statements[:place], statements[place]), place]:
            exec(compile(statements[n], path.name, "exec"), names)
    return made


def report_lines(report: timing.Report, before: Sequence[float] = ()) -> dict[str, Rule]:
    """The rules of a report's text, whose first line has other numbers ``before`` its own."""
    sizes, busy, hits = report.size, report.busy, report.hits
    seconds = report.seconds
    gflops = report.flops / seconds / 1e9
    megabytes = {name: n / 1e6 for name, n in report.bytes.items()}
    clock = report.device.clock_ghz * 1e9
    return {
        r".* on @: # Gflop/s, .*": lambda *_: [
            *before,
            *sizes,
            gflops,
            100 * gflops / report.peak_gflops,
        ],
        r" *# clocks, # ms": lambda *_: [
            report.clocks,
            1e3 * report.clocks / clock,
        ],
        r" *# wavefronts; # per SIMD engine, # registers": lambda *_: [
            report.wavefronts,
            report.active_wavefronts,
            report.registers,
        ],
        r" *# wavefronts \(# % of their work simulated, .*": lambda *_: [
            report.wavefronts,
            100 * report.simulated,
            report.active_wavefronts,
            report.registers,
        ],
        r" *busy .*": lambda *_: [100 * busy[name] for name in busy],
        r" *hits .*": lambda *_: [100 * hits[name] for name in hits],
        r" *MB .*": lambda *_: [megabytes[name] for name in megabytes],
    }


def lesson_08(setting: dict, timed: list) -> dict[str, Rule]:
    of = {report.kernel: report for report in timed}

    def row(say: Said, _):
        report = of[say.text.split()[0]]
        assert say.text.endswith(f"bound by {report.bound}")
        parts = ck.kernels[report.kernel].convention.parts
        rows = ck.kernels[report.kernel].block[0]
        return [
            2 * setting["rows"] * setting["columns"] / report.seconds / 1e9,
            -(-setting["rows"] * parts // rows // 64),
        ]

    return {
        r"# rows, # columns.*": lambda *_: [setting["rows"], setting["columns"]],
        r" *@ +# Gflop/s, wavefronts: #, bound by .*": row,
    }


def lesson_09(setting: dict, _) -> dict[str, Rule]:
    """Three matrices to the chip and one back, over the bus, then 2 n^3 flops."""
    n, bus, kernel = (setting[name] for name in ("n", "bus", "kernel"))
    moves, computes = 32 * n**2 / (bus * 1e9), 2 * n**3 / (kernel * 1e9)
    rate = 2 * n**3 / (moves + computes) / 1e9
    return {
        r"N = #, bus # GB/s, .*": lambda *_: [n, bus, kernel, rate],
        r" *the kernel's share .*": lambda *_: [100 * rate / kernel, 16 * kernel / bus],
    }


def lesson_10(setting: dict, timed: list) -> dict[str, Rule]:
    n = setting["n"]
    sizes = {"block": setting["block"], "chosen": choose_block(n, n, n, host.Machine(ck.HD5870))}

    def row(say: Said, _):
        name = next(name for name in sizes if f", {name} " in say.text)
        run = timed[list(sizes).index(name)]
        whole = -(-n // sizes[name]) * sizes[name]
        gflops = 2 * n**3 / run.seconds / 1e9
        return [n, sizes[name], whole, 100 * (1 - (n / whole) ** 2), gflops]

    return {r"N = #, (block|chosen) #: computed as #, # % wasted, # Gflop/s": row}


def lesson_11(setting: dict, timed: list) -> dict[str, Rule]:
    (run,) = timed
    ends = [
        max((s.end for s in run.spans if (s.task.queue == "CPU") == on_cpu), default=0)
        for on_cpu in (True, False)
    ]
    gflops = 2 * 16384**2 * setting["k"] / run.seconds / 1e9
    return {
        r"k = #, CPU share #: # Gflop/s": lambda *_: [setting["k"], setting["share"], gflops],
        r" *the CPU ends after # s, the chips after # s": lambda *_: ends,
    }


def lesson_12(setting: dict, timed: list) -> dict[str, Rule]:
    return report_lines(timed[-1], [setting["rows"], setting["columns"], setting["steps"]])


RULES = {
    "08": lesson_08,
    "09": lesson_09,
    "10": lesson_10,
    "11": lesson_11,
    "12": lesson_12,
}


@pytest.mark.slow
@pytest.mark.parametrize("lesson", RULES)
def test_every_number_that_a_control_shows_is_what_was_timed(lesson):
    shown = control(lesson)
    for setting in shown.settings():
        lines, timed = shown.show(setting)
        where = f"lesson {lesson}, {setting}"
        texts = [Said(line, 0, where, n) for n, line in enumerate(lines)]
        assert_true(texts, RULES[lesson](setting, timed))


def test_every_control_of_a_lesson_is_held():
    """Those of lessons 00 and 04 show pictures: see test_draw_chip and test_draw_wavefronts."""
    sources = sorted((ROOT / "notebooks/source").glob("*.md"))
    offer = {path.name[:2] for path in sources if "draw.interactive(" in path.read_text()}
    assert offer == {"00", "04", *RULES}
