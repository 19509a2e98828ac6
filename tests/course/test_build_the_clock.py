"""Lesson 14: the reader's clock, what it is compared with, and the twenty-five lines of
docs/model.md.
"""

import random
import re

import numpy as np
import pytest
from answers import read_planted
from answers.l14 import BY_NUMBER, LAUNCH, RUN, TIMED, make_function
from repository import ROOT
from sampling import seeded

import cypresskit as ck
from cypresskit.devices import HD5850, HD5870
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.teach import check as shell
from cypresskit.teach.check import use_seed
from cypresskit.teach.l14_build_the_clock import checks as lesson
from cypresskit.teach.l14_build_the_clock.choose import Clock, Scattered, choose
from cypresskit.teach.l14_build_the_clock.modeled import WITHOUT, modeled
from cypresskit.timing import simulate

FOUR = "sgemm_tn", "sgemm_tn_37", "dgemm_tn", "dgemm_nn"
KERNELS = [*FOUR, "sgemm_nn", "sgemm_64x64", "ddgemm_tn_fma", "dgemm_tn_compute"]


CLOCK = Clock(lesson.right_steps, lesson.right_rows)
speed = CLOCK.speed


# -- what the clock gets


@pytest.mark.parametrize("kernel", KERNELS)
def test_clauses_are_those_that_are_compiled_and_recorded(kernel):
    clauses = lesson.clauses(kernel)
    bundles, texture = (sum(n for unit, n in clauses if unit == each) for each in ("ALU", "TEX"))
    assert bundles == kernel_stats(kernel).bundles_per_iteration
    assert texture == ck.teach.texture_cache.ceiling(kernel)[1]


@pytest.mark.parametrize("kernel", KERNELS)
def test_with_the_units_alone_the_ceiling_comes_out(kernel):
    """The slower unit's clocks of an iteration; the first fetches and the last results cost up to
    one percent.
    """
    clauses = lesson.clauses(kernel)
    alu, texture = (sum(a for u, a in clauses if u == unit) for unit in ("ALU", "TEX"))
    flops = kernel_stats(kernel).flops * HD5870.wavefront
    ceiling = flops / max(4 * alu, texture) * HD5870.simd_engines * HD5870.clock_ghz
    assert 0.985 * ceiling < speed(kernel, 0, 0, 0) <= ceiling


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_an_answer_does_to_its_clauses_is_forgotten(kernel):
    def emptied(clauses, *numbers):
        yield from lesson.right_steps([clauses.pop(0) for _ in [*clauses]], *numbers)

    assert Clock(emptied, lesson.right_rows).speed(kernel) == speed(kernel)


def test_a_file_that_is_written_anew_is_another_kernel(tmp_path):
    """By the reader's clock and by the model."""
    file, clock = tmp_path / "own.il", Clock(lesson.right_steps, lesson.right_rows)
    for kernel in ("sgemm_tn", "sgemm_naive"):
        file.write_text(ck.kernels[kernel].text)
        assert clock.speed(file) == clock.speed(kernel)
        assert modeled(file).gflops == modeled(kernel).gflops


# -- the checks


@seeded(2)
@pytest.mark.parametrize("check", [lesson.check_timed, lesson.check_run, lesson.check_launch])
def test_whatever_steps_are_drawn_the_verdict_is_the_same(check, seed):
    """And the hint: of answers that are drawn from the table."""
    row = read_planted()[check]
    drawn = random.Random(seed).sample(row.wrong, 4)
    with use_seed(f"student {seed}"):
        assert check(row.right[0]).right
        for answer, words in drawn:
            verdict = check(answer)
            assert not verdict.right
            assert all(word in str(verdict) for word in words), verdict


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (lesson.check_run, [RUN, "w, n + 1))", "w, n))"]),
        (lesson.check_run, [RUN, "n + 1 < iterations * len(steps)", "n % len(steps) < iterations"]),
        (lesson.check_launch, [LAUNCH, "            begun += 1\n", ""]),
    ],
)
def test_a_loop_that_never_ends_is_told_what_ends_it(check, answer, monkeypatch):
    monkeypatch.setattr(shell, "SECONDS", 1.0)
    verdict = check(make_function(*answer))
    assert "does its loop end" in verdict.message
    assert "`ready` is empty" in verdict.hint


def random_launch(draw):
    units = ["TEX", *["ALU"] * draw.randint(1, 3)]
    steps = [(unit, draw.randint(1, 90), draw.randint(1, 400)) for unit in units]
    slots = draw.choice([0, 2, 4])
    return steps, draw.randint(4, 9), draw.randint(2, 6), slots


@seeded(20)
def test_wavefronts_that_are_alike_may_be_served_in_any_order(seed):
    launch = random_launch(random.Random(seed))
    swap = {0: 1, 1: 0}
    renamed = [(swap.get(w, w), *others) for w, *others in lesson.right_rows(*launch)]
    lesson.judge_rows("run(...)", renamed, launch)


@seeded(20)
def test_of_two_late_rows_the_first_is_shown(seed):
    """On random steps. A row that is missing is counted."""
    draw = random.Random(seed)
    launch = random_launch(draw)
    rows = lesson.right_rows(*launch)
    first, second = sorted(draw.sample(range(len(rows)), 2))
    for number in first, second:
        w, unit, begin, free, again = rows[number]
        rows[number] = w, unit, begin + 0.5, free + 0.5, again + 0.5
    with pytest.raises(shell.CheckStopped) as stopped:
        lesson.judge_rows("run(...)", rows, launch)
    w, unit, begin, *_ = rows[first]
    assert f"({w}, {unit}, {begin:g}, " in str(stopped.value)
    with pytest.raises(shell.CheckStopped, match="rows, and should have"):
        lesson.judge_rows("run(...)", rows[:-1], launch)


def test_the_readers_functions_are_used_only_if_they_are_right(capsys):
    timed, run, launch = make_function(TIMED), make_function(RUN), make_function(LAUNCH)
    assert choose(timed, run, launch) == Clock(timed, run, launch)
    assert capsys.readouterr().out == "timed: yours\nrun: yours\nlaunch: yours\n"
    assert choose(launch, timed, run) == Clock(timed, run, launch)
    capsys.readouterr()
    wrong = make_function(BY_NUMBER)
    assert choose(timed, wrong) == Clock(timed, lesson.right_rows)
    assert "timed: yours\nrun: the reference's" in capsys.readouterr().out


@seeded(20)
def test_each_rule_is_broken_by_a_change_of_one_number(seed):
    """On random launches: whatever number of whichever row is changed, a check sees it."""
    draw = random.Random(seed)
    launch = random_launch(draw)
    rows = lesson.right_rows(*launch)
    lesson.judge_rows("run(...)", rows, launch)
    number, part = draw.randrange(len(rows)), draw.choice([0, 2, 3, 4])
    row = list(rows[number])
    row[part] += draw.choice([-1, 1])
    rows[number] = tuple(row)
    with pytest.raises(shell.CheckStopped):
        lesson.judge_rows("run(...)", rows, launch)


# -- what the lesson says


def distances(overhead, scatter=0):
    """By how many clocks each of six wavefronts is behind the first, in the later iterations."""
    steps = Scattered(CLOCK.steps("sgemm_tn_37", overhead, 40, 320), scatter)
    rows = lesson.right_rows(steps, 6, 120)
    begun = np.array([[begin for v, _, begin, *_ in rows if v == w] for w in range(6)])
    later = begun[:, 60 * len(steps) :: len(steps)]
    return {tuple(column) for column in (later - later[0]).T.tolist()}


def test_in_each_iteration_the_same_wavefronts_meet_but_not_with_one_more_clock():
    assert len(distances(8)) == 1
    assert len(distances(9)) > 1 and len(distances(8, scatter=2)) > 1


@pytest.mark.parametrize("kernel", ["sgemm_64x64_lds_worst", "dgemm_tn_buffer", "dgemm_nn_buffer"])
def test_without_what_the_clock_lacks_the_model_comes_to_it(kernel):
    """The three misses; of the gap, nine tenths go with the limit that the table names."""
    report, own = modeled(kernel), speed(kernel)
    assert report.limit in WITHOUT
    without = modeled(kernel, without=report.limit).gflops
    assert own > 1.3 * report.gflops
    assert abs(own - without) < 0.25 * (own - report.gflops)


@pytest.mark.parametrize("kernel", [*FOUR, "sgemm_64x64", "sgemm_64x64_lds", "ddgemm_tn_fma"])
def test_what_it_has_is_enough_for_most(kernel):
    assert speed(kernel) == pytest.approx(modeled(kernel).gflops, rel=0.05)


def test_a_board_with_fewer_engines_is_slower_by_its_last_round():
    """By engines and GHz, an HD 5850 would have the same share of all kernels' speed."""
    m, n, k = lesson.size_of_launch("sgemm_tn", 60, 20, 128)
    own, model = (
        speed(HD5850) / speed(HD5870)
        for speed in (
            lambda board: CLOCK.launched("sgemm_tn", (m, n, k), board),
            lambda board: simulate("sgemm_tn", m=m, n=n, k=k, device=board).gflops,
        )
    )
    assert own == pytest.approx(model, abs=0.015)
    assert model < 18 / 20 * HD5850.clock_ghz / HD5870.clock_ghz


# -- pictures


def test_twins_show_what_was_run_and_no_name():
    steps = lesson.right_steps(lesson.clauses("sgemm_tn_37"), *lesson.USUAL)
    rows = lesson.right_rows(steps, 6, 200)
    own, other = CLOCK.twins()
    assert other.timeline == simulate("sgemm_tn_37", m=3840, n=1024, k=128).timeline
    assert len(own.timeline) == len(rows)
    for event, (w, unit, begin, free, ready) in zip(own.timeline, rows, strict=True):
        assert (event.wavefront, event.kind, event.start, event.served) == (w, unit, begin, free)
        assert event.end == (ready - 40 if unit == "TEX" else free)
    page = ck.draw.wavefronts(own, other, window=(0, 3000)).to_html()
    assert "sgemm" not in page


# -- docs/model.md

MODEL = (ROOT / "docs/model.md").read_text()


def read_stated(name):
    """A number of docs/model.md."""
    return float(re.search(rf"<!-- {name} -->([\d.]+)<!-- end -->", MODEL)[1])


def test_the_lines_of_the_document_are_a_right_clock():
    names = {}
    text = re.search(r"```python\n(.*?)```", MODEL, re.S)[1]
    exec(text, names)
    clauses = lesson.clauses("sgemm_tn")
    steps = names["timed"](clauses)
    assert steps == lesson.right_steps(clauses, *lesson.USUAL)
    rows = names["run"](steps, 10, 20)
    assert rows == lesson.right_rows(steps, 10, 20)
    assert sum(bool(line.strip()) and "import" not in line for line in text.splitlines()) <= 25


SIZE = {"m": 3840, "n": 1280, "k": 512}


@pytest.mark.parametrize("kernel", ["sgemm_tn", "sgemm_tn_37", "dgemm_nn_buffer"])
def test_the_speeds_of_the_document_are_the_models_and_the_lines(kernel):
    assert read_stated(f"own {kernel}") == round(speed(kernel))
    assert read_stated(f"model {kernel}") == round(simulate(kernel, **SIZE).gflops)


def test_why_a_constant_memory_works():
    """Data in flight, and what the lines give with their median, and with each drawn from them."""
    report = simulate("sgemm_tn_37", **SIZE)
    flights = [event.end - event.served for event in report.timeline if event.kind == "TEX"]
    names = "quarter", "median", "three quarters"
    assert [read_stated(name) for name in names] == np.percentile(
        flights, [25, 50, 75]
    ).round().tolist()
    assert read_stated("by median") == round(speed("sgemm_tn_37", memory=float(np.median(flights))))

    draw = random.Random(0)

    class Drawn(list):
        def __getitem__(self, n):
            unit, busy, away = super().__getitem__(n)
            return unit, busy, 40 + draw.choice(flights) if unit == "TEX" else away

    def run(steps, *launch):
        return lesson.right_rows(Drawn(steps), *launch)

    drawn = Clock(lesson.right_steps, run).speed("sgemm_tn_37")
    assert read_stated("by drawing") == pytest.approx(drawn, rel=0.005)
