"""The record of a current GPU, and what lessons say of it."""

import re
from math import ceil
from time import sleep

import numba
import numpy as np
import pytest
from conftest import ROOT

from cypresskit.teach.l07_lds.checks import busiest_bank
from cypresskit.teach.l13_what_is_left import checks as lesson
from cypresskit.today import figures, record


def test_the_record_is_of_a_real_gpu_and_steady():
    gpu = record()
    assert re.fullmatch(r"NVIDIA \w+", gpu["device"]) and re.fullmatch(r"[\d.]+", gpu["driver"])
    assert {"cypresskit", "numba-cuda", "numba"} <= gpu["versions"].keys() and re.fullmatch(
        r"\d{4}-\d\d-\d\d", gpu["date"]
    )
    for row in gpu["rows"]:
        host = row["case"] in ("128", "pageable")  # what the host does is in it
        assert row["value"] > 0 and row["spread"] < (0.15 if host else 0.05), row
    assert len({(row["experiment"], row["case"]) for row in gpu["rows"]}) == len(gpu["rows"])


class Gpu:
    """A CUDA GPU's place in numba. Its kernels compile where numpy still has a certain name."""

    name: str | bytes = "Sky"

    def __getattr__(self, name):
        return lambda *arguments: self

    def jit(self, kernel):
        return self

    def to_device(self, array):
        return array

    def __getitem__(self, configuration):
        assert hasattr(np, "row_stack")
        return self.run


def timed(monkeypatch, run):
    gpu = Gpu()
    gpu.run = run
    monkeypatch.setattr(numba, "cuda", gpu, raising=False)
    monkeypatch.delattr(np, "row_stack", raising=False)  # as numpy 2.5
    return lesson.speed_here(lambda a, b: numba.cuda.jit(print)[1, 1](a, b))


@pytest.mark.parametrize("name", ["Sky", b"Sky"])
def test_a_kernel_is_timed_on_a_gpu_of_this_computer(name, monkeypatch):
    monkeypatch.setattr(Gpu, "name", name)
    assert re.fullmatch(
        r"[\d,]+ Gflop/s on Sky, measured just now", timed(monkeypatch, lambda a, b: sleep(0.001))
    )


def test_a_gpu_that_fails_is_told(monkeypatch):
    def run(a, b):
        raise MemoryError("no room")

    assert timed(monkeypatch, run) == "Your kernel wasn't timed. MemoryError: no room"


def test_figures_side_by_side():
    table = lesson.comparison_table("layout", {"NN": 100.0, "TN": 150.0})
    assert table.heads[1::2] == ["Cypress, Gflop/s", f"{record()['device']}, Gflop/s"]
    nn, tn = (figures("layout")[case] for case in ("NN", "TN"))
    assert table.values[1] == ["TN", 150, 1.5, tn, tn / nn] and table.values[2][1:3] == [None, None]
    assert (
        lesson.gain("layout", "NN", "TN") == tn / nn
        and lesson.gain("bank, 32 warps", "32", "33") > 1
    )


LIBRARY, PINNED = figures("library"), figures("bus")["pinned"]
#: The number of the record that each of the other lessons names, as it is written there.
NAMED = (
    f"{LIBRARY['single'] / 1e3:.0f} Tflop/s",
    f"{lesson.gain('block', '1 x 1', '8 x 8'):.1f} times as fast",
    f"{figures('shared memory')['128 x 128'] / figures('block')['8 x 8']:.1f} times as fast",
    f"{next(row['registers'] for row in record()['rows'] if row['case'] == '8 x 8')} registers",
    f"{lesson.gain('warps', '5', '16'):.1f} times as fast",
    f"differ by {100 * abs(1 - lesson.gain('layout', 'NN', 'TN')):.0f} %",
    f"{max(figures('double').values()) / figures('double-double')['1 x 1']:.1f} times slower",
    f"{lesson.gain('bank, 32 warps', '32', '33'):.0f} times as long",
    f"{100 / lesson.gain('size', '256', '4096'):.0f} % of the speed",
    f"{PINNED:.0f} GB/s",
    f"{round(16 * LIBRARY['double'] / PINNED, -2):,.0f}",
    f"{lesson.gain('bus', 'pageable', 'pinned'):.1f} times as fast",
    f"{100 * figures('block')['8 x 8'] / LIBRARY['single']:.0f} %",
)


@pytest.mark.parametrize(("number", "named"), [*enumerate(NAMED)])
def test_each_other_lesson_names_a_number_of_the_record(number, named):
    (source,) = (ROOT / "notebooks/source").glob(f"{number:02}_*.md")
    said = source.read_text(encoding="utf-8").split("\n## On a GPU of today\n")[1].split("\n## ")[0]
    assert named in " ".join(said.split())
    paragraph = said.strip().split("\n\n")[0] + "\n"
    assert len(re.findall(r"\.\s", paragraph.replace("x 8.\n", ""))) in (3, 4, 5)


def from_l1(warps: str) -> float:
    """Clocks of an iteration whose operands all come from L1."""
    return lesson.iteration_clocks(figures("two rows: L1")[warps])


def gained(warps: str) -> float:
    """How many times as fast the kernel is if no warp waits for memory."""
    return figures("two rows: L1")[warps] / figures("two rows: memory")[warps]


def registers(case: str) -> int:
    return next(row["registers"] for row in record()["rows"] if row["case"] == case)


def clocks(ns: float) -> float:
    return ns * lesson.clock_ghz()


def load_clocks(words: list[int]) -> int:
    """Return the clocks of a warp's load in L1, by lesson 07's rule: the different words of the
    busiest bank, and at most four lines of 32 words per clock.
    """
    return max(busiest_bank(words), ceil(len({word // 32 for word in words}) / 4))


def iteration_needs() -> dict[str, int]:
    """Return the clocks that a warp of 8 x 4 threads, each with 8 x 8 of C, needs per iteration: of
    the arithmetic, and of L1 for its loads with A transposed (TN) or not (NN).
    """
    row = record()["n"]
    of_b = load_clocks([8 * (lane % 8) for lane in range(32)])
    of_a = {
        kind: load_clocks([apart * (lane // 8) for lane in range(32)])
        for kind, apart in (("TN", 8), ("NN", 8 * row))
    }
    needs = {"multiply-adds": 8 * 8 * 32 // 128}
    return needs | {kind: 8 * (clocks + of_b) for kind, clocks in of_a.items()}


def near(figure: float, said: float, off: float = 0.05) -> bool:
    return abs(figure / said - 1) < off


def step(kind: str) -> float:
    return lesson.iteration_clocks(figures("layout")[kind])


#: What lesson 13 says of the record, and whether it is so.
CLAIMS = {
    "the H200 28 % (N = 4096)": lambda: near(figures("block")["8 x 8"], 0.28 * 66_908, 0.02),
    "L1 works 42 % of the time": lambda: near(iteration_needs()["TN"] / step("TN"), 0.42, 0.02),
    "the speed is 3.2 times as high": lambda: near(lesson.gain("warps", "5", "16"), 3.2, 0.02),
    "From 12 to 16 warps it rises by half": lambda: near(lesson.gain("warps", "12", "16"), 1.5),
    "with 20 warps, the most that fit, the kernel is 3 % slower": lambda: (
        near(figures("block")["8 x 8"], 0.97 * figures("warps")["16"], 0.01)
        and lesson.share_warps(registers("8 x 8"), 64, 0) == 20
    ),
    "without it, an iteration takes a third of the time": lambda: near(gained("5"), 3),
    "Without the wait it is a third faster": lambda: near(gained("16"), 4 / 3),
    "from L1, 16 and 20 warps need 43 and 42 clocks, which is 38 % of the peak": lambda: (
        [round(from_l1(warps)) for warps in ("16", "20")] == [43, 42]
        and near(figures("two rows: L1")["20"], 0.38 * 66_908, 0.02)
    ),
    "Of 109 instructions (counted by the card) 64 are multiply-adds": lambda: (
        figures("instructions")["8 x 8"] == 109
    ),
    "They can't start in fewer than 27 clocks": lambda: near(
        figures("instructions")["8 x 8"] / 4, 27, 0.02
    ),
    "a quarter of the loads: a gain of 7 %": lambda: near(
        lesson.gain("layout", "TN", "TN, wide"), 1.07, 0.01
    ),
    "L1 is busy for 48 of the 56 clocks of an iteration, in TN for 24 of 57": lambda: (
        (iteration_needs()["NN"], iteration_needs()["TN"]) == (48, 24)
        and (round(step("NN")), round(step("TN"))) == (56, 57)
    ),
    "NN is near the limit of L1, and TN is not": lambda: (
        iteration_needs()["NN"] > 0.8 * step("NN") and iteration_needs()["TN"] < step("TN") / 2
    ),
    "With 32, a store and a load take 64 clocks": lambda: all(
        near(clocks(figures("bank, 32 warps")[f"{pitch}"]), 2 * pitch, 0.03)
        for pitch in (2, 4, 8, 16, 32)
    ),
    "That is 19 times as long as without conflicts": lambda: near(
        lesson.gain("bank, 32 warps", "32", "1"), 19, 0.02
    ),
    "At N = 1024 it is at 45 %": lambda: near(
        figures("size")["1024"] / figures("size")["4096"], 0.45, 0.02
    ),
    "they are a dozen times as fast as the ordinary units": lambda: near(
        figures("library")["half"] / figures("library")["single"], 12.5
    ),
    "The bus is nine times as fast": lambda: near(figures("bus")["pinned"], 9 * 6, 0.05),
    "L1 works for 72 of the 85 clocks of an iteration": lambda: near(
        lesson.iteration_clocks(figures("exercise")["32 x 1"]), 85, 0.01
    ),
}


def prose() -> str:
    text = (ROOT / "notebooks/source/13_what_is_left.md").read_text(encoding="utf-8")
    return " ".join(text.split())


@pytest.mark.parametrize("said", CLAIMS)
def test_what_lesson_13_says_is_in_its_record(said):
    assert said in prose() and CLAIMS[said]()


def test_a_record_that_says_otherwise_is_noticed(monkeypatch):
    """Every claim fails on some record: here with one figure three times or a third as large."""
    rows = record()["rows"]
    noticed = set()
    for n, row in enumerate(rows):
        for factor in (3, 1 / 3):
            other = [*rows[:n], row | {"value": row["value"] * factor}, *rows[n + 1 :]]
            with monkeypatch.context() as changed:
                changed.setitem(record(), "rows", other)
                noticed |= {said for said, holds in CLAIMS.items() if not holds()}
    assert noticed == CLAIMS.keys()


def test_loads_of_l1_cost_what_lesson_07_says():
    """The rule against every measured pattern: within 7 %, but where the measuring loop is the
    limit.
    """
    for words in (32, 8):
        for pitch, ns in figures(f"L1, {words} words").items():
            places = [int(pitch) * (thread * words // 32) for thread in range(32)]
            rule = load_clocks(places)
            assert near(clocks(ns), max(rule, 1.51), 0.07), (words, pitch)
