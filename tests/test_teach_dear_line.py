"""The dear line: it is asked before each edit of the climb, and the dearest kind is right."""

import re

import pytest
from answers import ROOT, given
from test_climb import ASKED

import cypresskit as ck
from cypresskit.draw.predict import Prediction
from cypresskit.teach import climb, dear_line
from tools import book

KERNELS = {
    "00": climb.NAIVE,
    "05": given(*ASKED["05"]),
    "07": given(*ASKED["07"], solution=True),
    "12": given(*ASKED["12"]),
    "contest": ck.teach.contest.write(12, 8, 3),
}


class Guessed(Prediction):
    """A guess that was made."""

    value = None

    def __init__(self, value: str | None) -> None:
        super().__init__("Which?", dear_line.KINDS, (), 0.0, "")
        self.value = value


def kind_of(text: str, inside: bool) -> str:
    """The kind of a line, by its first words."""
    if match := re.match(r"\s*sample_resource\((\d)\)", text):
        return (dear_line.A, dear_line.B, dear_line.OTHER)[int(match[1])]
    if not inside or "lds_" in text:
        return dear_line.OTHER
    return dear_line.PRODUCT if re.match(r"\s*d?mad ", text) else dear_line.LOOP


def dearest_kinds(step: str) -> dict[str, float]:
    """The highest price of each kind in a step's kernel, from its text and ``ck.price``."""
    kernel = climb.step_kernel(step, KERNELS[step])
    prices = ck.price(ck.simulate(kernel, dear_line.N, k=dear_line.K))
    lines = [text.split(";")[0] for text in kernel.program.lines]
    first = next(n for n, text in enumerate(lines, 1) if "whileloop" in text)
    last = max(n for n, text in enumerate(lines, 1) if "endloop" in text)
    highest: dict[str, float] = {}
    for line in prices.lines:
        text = lines[line.line - 1] if line.line > 0 else ""  # the book's, before the reader's
        kind = kind_of(text, first <= line.line <= last)
        highest[kind] = max(highest.get(kind, -1.0), line.price)
    return highest


@pytest.mark.parametrize("step", KERNELS)
def test_the_dearest_kinds_are_those_of_the_prices(step):
    said = dear_line.compared(step, KERNELS[step], Guessed(None))
    shown = {kind: float(percent) for percent, kind in re.findall(r"(\S+) %  (.{22})  ", said)}
    highest = dearest_kinds(step)
    assert {kind.strip() for kind in shown} == set(highest)
    for kind, percent in shown.items():
        assert percent == pytest.approx(100 * highest[kind.strip()], abs=0.051)
    top = max(highest.values())
    as_dear = [k for k in dear_line.KINDS if highest.get(k, -1.0) >= dear_line.EQUAL * top]
    assert said.endswith(f"It is {', or '.join(as_dear)}. (You made no guess.)")
    for kind in dear_line.KINDS:
        right = highest.get(kind, -1.0) >= dear_line.EQUAL * top
        answer = dear_line.compared(step, KERNELS[step], Guessed(kind))
        assert answer.endswith("well guessed!") == right, answer


@pytest.mark.parametrize(
    ("text", "reason"), [("mda r1, r2", "Did you mean"), ("", "No prices yet")]
)
def test_what_is_no_kernel_gets_the_reason(text, reason):
    assert reason in dear_line.compared("01", f"il_ps_2_0\n{text}\n", Guessed(None))


def test_every_edit_of_the_climb_is_asked_for_its_dear_line_first():
    """Before what keeps a step, its lesson asks for the dear line and shows it; where an edit
    begins with the kernel of the step before, that one's counts.
    """
    asked_of = {"01": "01 2x2", "01 2x2": "00", "larger N": "contest"}
    asked: list[str] = []
    kept = []
    for path in book.sources(ROOT / "notebooks"):
        for cell in book.read(path).cells:
            if cell.cell_type == "code":
                asked += re.findall(r'dear_line\.compared\("([^"]+)"', cell.source)
                steps = re.findall(r'climb\.keep\("([^"]+)"', cell.source)
                kept += steps
                unasked = [step for step in steps if asked_of.get(step, step) not in asked]
                assert not [step for step in unasked if step != "00"], path.name
    assert set(kept) == set(climb.STEPS) and len(asked) == len({*asked})
