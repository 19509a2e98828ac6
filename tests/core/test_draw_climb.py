"""The climb: what the book's says is what was timed for it, a reader's what the history has."""

import pytest
from repository import ROOT
from sampling import drawn_by_day

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.climb_picture import Climb
from cypresskit.editing.edit_history import Edit, Edits
from cypresskit.editing.judgment import verify_text
from cypresskit.editing.own_climb import make_own_climb
from cypresskit.editing.steps import STEPS, reference_kernel, starter_text
from cypresskit.gains import FIGURES, IDEAS, LAUNCHES, REFERENCE, Timed, idea_of
from cypresskit.timing import simulate
from tools import stored_figures

KEPT = {"00": ("00", 45.0), "01a": ("block_2x2", 271.0), "12": ("block_8x8x2", 1988.0)}


# -- the book's


def test_each_step_starts_from_the_one_before():
    """And its title is the workbench's. The steps are in the workbench's order."""
    steps = [idea for idea in IDEAS if idea.is_step]
    assert [step.before for step in steps] == [None, *(step.launch for step in steps[:-1])]
    assert [step.name for step in steps] == [STEPS[step.step].title for step in steps]
    names = [step.step for step in steps]
    assert names == sorted(names, key=list(STEPS).index)


@drawn_by_day("name", ["01a", "01b", "02", "03"], 2)
def test_our_solution_is_a_correct_kernel_of_the_speed_in_the_list(name):
    """It is the given kernel with our lines; of step 03, step 02's with its products moved."""
    step = STEPS[name]
    kernel = reference_kernel(f"our_step_{name}")
    assert verify_text(kernel.text, step.file, step.like).is_correct
    before = "\n".join([step.starter, *step.solution])
    if name == "03":
        before = STEPS["02"].with_solution()
    lines = {line.strip() for line in before.splitlines()}
    assert {line.strip() for line in kernel.text.splitlines()} <= lines
    assert simulate(kernel, REFERENCE).gflops == pytest.approx(idea_of(name).gflops, abs=0.06)


def test_two_causes_multiply_to_the_gain():
    idea = idea_of("01a")
    block, transposed = idea.causes
    assert block * transposed == pytest.approx(idea.factor)
    assert (round(block, 1), round(transposed, 1), round(idea.factor, 1)) == (4.0, 1.5, 6.0)


@pytest.mark.nightly
def test_the_books_figures_are_the_models():
    targets = {Timed(step.reference, step.n) for step in STEPS.values()}
    assert set(FIGURES) == targets | LAUNCHES
    for launch in (Timed("sgemm_naive"), Timed("block_4x4"), Timed("round_trip_timeline")):
        gflops, ceiling, unit = stored_figures.climb(launch)
        assert [gflops, ceiling] == pytest.approx(FIGURES[launch][:2], rel=0.005), (
            "make it anew: python -m tools.stored_figures"
        )
        assert gflops <= ceiling and unit == FIGURES[launch][2]
    assert (ROOT / "docs/pictures/climb.svg").read_text() == draw.climb().to_svg(is_whole=True), (
        "save it anew"
    )


# -- a reader's own


@pytest.fixture
def make(tmp_path):
    """Let a step's history have a correct text, and an incorrect one before it."""

    def made(histories, step, text, gflops):
        edits = histories.setdefault(step, Edits(tmp_path / step))
        edits.add(Edit(f"; tried\n{text}", is_correct=False))
        edits.add(Edit(text, is_correct=True, gflops=gflops, n=STEPS[step].n))

    return made


@pytest.fixture
def edits(make):
    """Three steps kept, and one beside the climb."""
    histories = {}
    for step, (text, gflops) in KEPT.items():
        make(histories, step, starter_text(text), gflops)
    make(histories, "06", starter_text("dgemm_tn"), 9999.0)
    return histories


def test_a_readers_sentence_is_computed(edits):
    climb = make_own_climb(edits)
    assert climb.title == "3 steps: 45 to 1,988 Gflop/s, 101 % of the record's 1,971, modeled"
    assert [bar.name for bar in climb.bars] == [STEPS[step].title for step in KEPT], "none beside"
    assert [bar.before for bar in climb.bars] == [0.0, 45.0, 271.0]
    rows = repr(climb).splitlines()[2:-1]
    assert [row.split()[0] for row in rows] == ["1,988", "271", "45"]


def test_a_step_that_is_no_faster_is_left_out(make, edits):
    make(edits, "01a", starter_text("block_2x2"), 1900.0)
    make(edits, "02", starter_text("block_8x8"), 1800.0)
    assert STEPS["02"].title not in [bar.name for bar in make_own_climb(edits).bars]


def test_a_step_that_only_reorders_stands_where_it_is_as_fast(make, edits):
    """The reader's products of the step before may have been in order. A slower one is no step."""
    step = STEPS["03"]
    make(edits, "02", starter_text("block_8x8"), 1828.0)
    make(edits, "03", step.with_solution(), 1755.0)
    assert step.title not in [bar.name for bar in make_own_climb(edits).bars]
    make(edits, "03", f"{step.with_solution()}; again\n", 1828.0)
    assert step.title in [bar.name for bar in make_own_climb(edits).bars]


def test_the_line_of_a_step_is_the_readers(make, edits):
    step = STEPS["02"]
    line = "mad r14, r3.x, r4, r14"
    text = step.starter.replace("; twelve more products: your lines go below this one", line)
    make(edits, "01b", step.starter, STEPS["01b"].targets.minimum)
    make(edits, "02", text, 1352.0)
    said = next(bar.details for bar in make_own_climb(edits).bars if bar.name == step.title)
    assert said.endswith(f"is now {line}")


def test_an_empty_climb_says_so(tmp_path):
    assert "No step of the climb is saved yet" in repr(make_own_climb({}))
    assert "<svg" in make_own_climb({}).to_svg()
    bench = ck.workbench(tmp_path / "my.il", like="sgemm_naive")
    assert isinstance(bench.climb, Climb)
    assert REFERENCE == STEPS["12"].n
