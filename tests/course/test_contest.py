"""The contest's leaderboard: entries in files, each judged apart, and what one can do to the
others.
"""

import importlib
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from kernel_texts import replace_once
from sampling import ROWS, drawn_by_day

import cypresskit as ck
from cypresskit import cli
from cypresskit.editing.answering import LocalAnswerer
from cypresskit.editing.edit_history import Edit
from cypresskit.editing.steps import STEPS, reference_kernel, shown_speed
from cypresskit.teach import check as shell
from cypresskit.teach.check import Verdict
from cypresskit.teach.climb import accept_workbench
from cypresskit.teach.l12_contest import checks as contest

leaderboard = importlib.import_module("cypresskit.teach.l12_contest.leaderboard")
SGEMM = ck.kernels["sgemm_tn"]
TEXT = SGEMM.text
ENDLESS = replace_once(TEXT, "break_logicalnz r1.x", "")


def test_an_entry_is_what_its_first_line_states():
    mine = contest.generate_kernel(8, 4, 3)
    again = leaderboard.read_entry(mine.text, "ada.il")
    assert (again.name, again.block, again.k_step) == ("ada.il", (8, 4), 3)
    assert contest.judge(again, n=256).gflops == contest.judge(mine, n=256).gflops


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("(8, 8, 3)", "its first line lacks what it computes"),
        (replace_once(TEXT, "; product: TN", "; TN"), "its first line lacks what it computes"),
        (replace_once(TEXT, "8 x 8", "8"), "`8` is no term"),
        (replace_once(TEXT, "k 2", "k " + "9" * 500), "its numbers are from 1 to"),
        ("__import__('os').remove('x')", "its first line lacks what it computes"),
        ("x" * 200_000, "at most 100,000"),
    ],
)
def test_what_is_no_entry_is_refused_in_words(text, said):
    with pytest.raises(ValueError, match=said):
        leaderboard.read_entry(text, "mine.il")


def write(kernel, path):
    path.write_text(kernel.text)


# -- the board, and cheats


def test_the_leaderboard_judges_sorts_and_names_the_paper():
    own = replace(ck.HD5870, name="mine", lds_bytes=0, register_pool=288)
    kernels = [contest.generate_kernel(4, 4, steps) for steps in (1, 2)]
    board = ck.teach.contest.leaderboard(
        [*kernels, (kernels[0], own), (kernels[0], replace(own, clock_ghz=9.0))], n=256
    )
    paper, *rest, wrong = board.values
    assert "N = 256" in board.note and "Nakasato 2010" in paper[0] and len(rest) == 3
    assert wrong[1] is None and "clock_ghz is not" in wrong[3]
    speeds = [speed for _, speed, *_ in rest]
    assert speeds == sorted(speeds, reverse=True) and speeds[-1] > 0
    assert sum("step, mine" in name for name, *_ in rest) == 1


def entry(text, name="mine"):
    """An entry that is launched like ``sgemm_tn``, whatever its text is."""
    return replace(SGEMM, name=name, text=text)


LITERAL = "dcl_literal l8, 64.0, 512.0, 32.0, 0.0"
WITH_LITERAL = replace_once(TEXT, "dcl_cb ", f"{LITERAL}\ndcl_cb ")
LAZY = ("ge r1.x, r0.z, cb0[0].z", "min r1.x, cb0[0].z, l8.y\nge r1.x, r0.z, r1.x")
CHEATS = [
    *map(tuple, ROWS["test_contest"]["contest_cheats"]),
    ("a workgroup", 1024, ck.kernels["sgemm_64x64_lds"].text, "workgroup"),
    ("no text", 1024, None, "not text"),
]


@drawn_by_day("name, n, how, said", CHEATS, 3)
def test_wrong_entries_and_cheats_have_no_speed(name, n, how, said):
    mine = entry(replace_once(WITH_LITERAL, *how[0]) if isinstance(how, list) else how)
    score = contest.judge(mine, n=n)
    assert score.gflops == 0 and score.report is None
    assert not score.verdict.right and score.verdict.hint and said in str(score.verdict), (
        score.verdict
    )
    assert ck.teach.contest.leaderboard([mine], n=n).values[1][:2] == ["mine", None]


def test_the_contest_computes_what_it_times():
    """Stopping at 512 steps is right up to k = 512, and has no speed beyond."""
    lazy = entry(replace_once(WITH_LITERAL, *LAZY))
    assert "with alpha = -2 and beta = 1" in contest.judge(lazy, n=512).verdict.message
    assert not contest.judge(lazy, n=576).verdict.right
    with pytest.raises(ValueError, match="makes at most 25"):
        contest.time_kernel(lazy, 2048, device=ck.HD5870)


def test_the_judges_matrices_belong_to_the_seed():
    def number(seed):
        with shell.use_seed(seed):
            return shell.make_generator(8).random()

    assert number("a") == number("a") != number("b")


@pytest.mark.nightly
def test_a_large_block_may_take_long_for_the_longest_sums():
    """More instructions than a launch allows a work-item by default."""
    entry = contest.generate_kernel(16, 16, 1)
    assert contest.compare_entry(entry, (16, 16, 4095), alpha=-2.0, beta=1.0, seed=1) == ""


def test_the_bar_is_what_write_reaches():
    shapes = [
        (rows, columns, steps) for rows in (8, 12) for columns in (8, 12) for steps in (1, 2, 3, 4)
    ]
    for n, exact, left in ((1024, False, 6), (contest.N, False, 2), (contest.N, True, 1)):
        reports = {
            shape: ck.simulate(contest.generate_kernel(*shape), n, exact=exact) for shape in shapes
        }
        shapes = sorted(shapes, key=lambda shape: reports[shape].gflops)[-left:]
    target = ck.simulate(contest.TARGET_KERNEL, contest.N, exact=True).gflops
    assert target <= reports[shapes[0]].gflops
    step = STEPS["contest"]
    assert reports[shapes[0]].gflops < step.share * target
    assert reference_kernel(step.reference).text == contest.TARGET_KERNEL.text
    assert shown_speed(step.share * target) == step.targets.minimum


def test_who_judges_decides_whether_a_long_launch_is_simulated_whole(monkeypatch):
    """A leaderboard does; in a notebook a small block's launch may be a sample."""
    simulated = []

    def noted(*arguments, exact, **options):
        simulated.append(exact)
        return ck.simulate(*arguments, exact=exact, **options)

    monkeypatch.setattr(contest, "simulate", noted)
    monkeypatch.setattr(contest, "N", 256)
    for side, exact in ((4, True), (4, False), (8, False)):
        kernel = replace(contest.generate_kernel(side, side, 1), name="never judged before")
        assert contest.judge(kernel, n=256, exact=exact).report, kernel
    assert simulated == [True, False, True]


def test_one_entry_can_not_spoil_the_board():
    named = [entry(TEXT + " ", name) for name in ("two\nlines", "", "\x1b[2J")]
    lines = str(ck.teach.contest.leaderboard([SGEMM, *named], n=256)).splitlines()
    assert len(lines) == 7 and all(line.isprintable() for line in lines)
    assert sum("sgemm_tn" in line for line in lines) == 1


# -- hostile files


HOSTILE_NAMES = ["a\n  1   9999  Nakasato (x.il)\nz", "\u202elive", "x" * 250, "<b>", "=cmd()"]


@pytest.mark.skipif(os.name == "nt", reason="no pipes and links there")
def test_whatever_is_among_the_entries_the_others_are_ranked(tmp_path, capsys):
    """Another's mistake, a loop that doesn't end, bytes, odd names, and what is no file."""
    folder = tmp_path / "entries"
    folder.mkdir()
    write(contest.generate_kernel(8, 8, 3), folder / "ada.il")
    write(contest.generate_kernel(4, 8, 2), folder / "bob.txt")
    for name in [*HOSTILE_NAMES, "Nakasato 2010"]:
        write(contest.generate_kernel(4, 4, 1), folder / f"{name}.il")
    (folder / "cyd.il").write_text(replace_once(TEXT, "mad r24, r7.w, r8, r24", ";"))
    (folder / "eve.il").write_text(ENDLESS)
    (folder / "fay.py").write_text(TEXT)
    write(ck.kernels["sgemm_nn"], folder / "hal.il")
    with (folder / "huge.il").open("wb") as file:
        file.truncate(60 << 30)
    (folder / "kim.il").symlink_to(folder / "ada.il")  # it might lead to somebody else's
    (folder / "odd.il").write_bytes(b"\xff\xfe\x00")
    os.mkfifo(folder / "pipe.il")
    (folder / "surrogate.il").write_bytes(b"; name: \xed\xa0\x80\n")
    (folder / "zero.il").symlink_to("/dev/zero")
    (folder / "__MACOSX").mkdir()
    write(contest.generate_kernel(4, 4, 1), folder / "__MACOSX/ada.il")
    with suppress(OSError, UnicodeError):  # a name that isn't UTF-8, which not every system takes
        Path(os.fsdecode(os.fsencode(folder) + b"/gr\xfcn.il")).write_text("")
    files = len(list(folder.iterdir())) - 1
    assert cli.main(["contest", str(folder), "--n", "256"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() for line in told) and told[-1] == f"{files} files"
    for name, said in ROWS["test_contest"]["contest_files"]:
        (found,) = (row for row in told if row.startswith(f"{name} "))
        assert said in found
    assert "Nakasato 2010, as published, N = 4352" in told[1]
    first = [line.split()[0] for line in told[2:4]]
    assert first == ["bob.txt", "ada.il"], told


def test_an_empty_name_is_not_the_current_folder(capsys):
    with pytest.raises(SystemExit):
        cli.main(["contest", ""])
    assert "an entry's name is empty" in capsys.readouterr().err


@drawn_by_day("shape, doubled", [((12, 8, 3), False), ((8, 8, 1), True)], 1)
def test_workbench_and_check_have_one_speed_and_one_target(shape, doubled):
    step, text = STEPS["contest"], contest.generate_kernel(*shape).text
    if doubled:
        body = text.partition("whileloop\n")[2].partition("endloop")[0]
        text = text.replace(body, 2 * body)
    heard = []
    job = {"edit": "e", "text": text, "name": step.file, "like": step.like, "n": step.n}
    LocalAnswerer(heard.append).ask(job | {"step": step.name, "parts": ["code", "clocks"]})
    (gflops,) = [message["gflops"] for message in heard if "gflops" in message]
    verdict = contest.check_entry(text)
    shown = f"C is correct, at {gflops:,.0f} Gflop/s; the target is {step.targets.minimum:,.0f}."
    assert shown in str(verdict), verdict
    assert verdict.right == (gflops >= step.targets.minimum)
    mine = ck.load_kernel(text, name="mine")
    assert ["mine", round(gflops)] in [row[:2] for row in leaderboard.leaderboard([mine]).values]


@pytest.mark.parametrize("is_saved", [True, False])
def test_a_verdict_is_on_the_saved_kernel_and_says_so_if_the_editor_has_another(
    is_saved, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    bench = ck.workbench(step="contest")
    saved = f"{bench.text}; mine\n"
    bench.history.add(Edit(saved, is_correct=is_saved, gflops=3000.0, n=STEPS["contest"].n))
    check = accept_workbench("contest")(lambda text: Verdict(True, f"It is {text[-5:-1]}."))
    said = str(check(bench))
    assert ("It is mine." in said) == is_saved == ("the editor has another" in said)
