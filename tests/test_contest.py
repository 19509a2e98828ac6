"""The contest's leaderboard: entries in files, each judged apart, and what one can do to the
others.
"""

import csv
import io
import math
import os
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest
from answers import given

import cypresskit as ck
from cypresskit import cli
from cypresskit.teach import apart, leaderboard
from cypresskit.teach import l12_contest as contest
from cypresskit.teach.kernels import Written

HEAD = "; name: {}\n; block: 8 x 8\n; steps: 2\n"
TEXT = ck.kernels["sgemm_tn"].text
ENDLESS = HEAD.format("endless") + TEXT.replace("break_logicalnz r1.x", "")


def test_what_two_steps_of_ones_own_lose_to_the_written_ones():
    """Lesson 12 says after exercise 1: bundles by the order of the products, and a round by the
    registers.
    """
    loop = given("12_beat_the_paper", "loop", solution=True)
    lines = loop.splitlines()
    at = [n for n, line in enumerate(lines) if "mad " in line]
    ordered = [at[first + n] for first in (0, 16) for side in (0, 1) for n in range(side, 16, 2)]
    by_columns = list(lines)
    for n, taken in zip(at, ordered):
        by_columns[n] = lines[taken]
    written = contest.write(8, 8, 2)

    def measured(kernel: Written, **chip) -> tuple[int, int, int, int]:
        report = contest.timed(kernel, 1024, device=replace(ck.HD5870, **chip))
        bundles = ck.compile(kernel.program).card(2).loop_bundles
        return bundles, report.registers, report.active, round(report.gflops)

    assert measured(contest.with_loop(loop)) == (35, 25, 10, 1230)
    assert measured(contest.with_loop("\n".join(by_columns) + "\n")) == (31, 25, 10, 1329)
    assert measured(written) == (31, 26, 9, 1402)
    assert measured(written, register_pool=260)[2:] == (10, 1319), (
        "with ten wavefronts it is no better"
    )


def test_what_is_saved_is_read_again(tmp_path):
    mine = contest.write(8, 4, 3)
    assert "by Ada B, to hand in" in contest.save(mine, tmp_path / "a.il", "Ada\nB")
    again, chip = leaderboard.read((tmp_path / "a.il").read_text())
    assert (again.name, again.block, again.k_step, chip) == ("Ada B", (8, 4), 3, ck.HD5870)
    assert contest.judge(again, n=256).gflops == contest.judge(mine, n=256).gflops


@pytest.mark.parametrize("text", ["(8, 8, 3)", " 8,8,3\n"])
def test_a_shape_is_an_entry(text):
    assert leaderboard.read(text)[0].text == contest.write(8, 8, 3).text


def test_a_chip_is_handed_in_with_a_kernel(tmp_path):
    contest.save(
        contest.write(8, 8, 3),
        tmp_path / "a.il",
        "Ada",
        replace(ck.HD5870, lds_bytes=0, register_pool=288),
    )
    _, chip = leaderboard.read((tmp_path / "a.il").read_text())
    assert (
        contest.changes(chip) == "register_pool 288, lds_bytes 0"
        and contest.chip_fault(chip) is None
    )


SHAPELESS = ("-8, 8, 1", "6, 8, 1", "8, 6, 1", "0, 8, 1", "8, 8, 0", "32, 32, 1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        *((f"({shape})", "multiples of 4") for shape in SHAPELESS),
        (TEXT, "its head lacks"),
        (TEXT + HEAD, "its head lacks"),
        ("; block: 8\n; steps: 2\n" + TEXT, "its head lacks"),
        ("; block: 8 x 8\n; steps: " + "9" * 5000 + "\n" + TEXT, "its head lacks"),
        ("__import__('os').remove('x')", "its head lacks"),
        ("x" * 200_000, "at most 100,000"),
        (HEAD.format("x") + "; chip: clock_ghz 9\n" + TEXT, "a chip is sizes of register_pool"),
        *(
            (HEAD.format("x") + f"; chip: {chip}\n" + TEXT, "a chip is sizes of register_pool")
            for chip in (
                "large",
                "",
                "register_pool 288, lds_bytes zero",
                "register_pool 288, clock_ghz 5.0",
            )
        ),
    ],
)
def test_what_is_no_entry_is_refused_in_words(text, said):
    with pytest.raises(ValueError, match=said):
        leaderboard.read(text)


@pytest.mark.slow
def test_a_class_gets_its_leaderboard_whatever_is_among_the_entries(tmp_path, capsys):
    """Right ones, and what might spoil it: another's mistake, bytes, a loop that doesn't end, HTML,
    a formula, a name that is taken, a program that is another's, who looks like the paper.
    """
    folder, page, table = tmp_path / "entries", tmp_path / "b.html", tmp_path / "b.csv"
    folder.mkdir()
    contest.save(contest.write(8, 8, 3), folder / "ada.il", "=Ada<script>")
    (folder / "bob.txt").write_text("(4, 8, 2)")
    (folder / "cyd.il").write_text(HEAD.format("Cyd") + TEXT.replace("mad r24, r7.w, r8, r24", ";"))
    (folder / "dan.il").write_bytes(b"\xff\xfe\x00")
    (folder / "eve.il").write_text(ENDLESS)
    (folder / "fay.py").write_text("(8, 8, 3)")
    (folder / "kim.il").symlink_to(folder / "ada.il")  # it might lead to somebody else's
    contest.save(contest.write(4, 8, 2), folder / "gus.il", "cyd")
    contest.save(contest.write(4, 4, 1), folder / "hal.il", "Nakasato 2010, measured at N = 4352")
    contest.save(
        contest.write(8, 8, 3),
        folder / "ida.il",
        "Ida",
        replace(ck.HD5870, lds_bytes=0, register_pool=288),
    )
    contest.save(
        contest.write(8, 8, 3), folder / "jon.il", "Jon", replace(ck.HD5870, register_pool=512)
    )
    with suppress(OSError, UnicodeError):  # a name that isn't UTF-8, which not every system takes
        Path(os.fsdecode(os.fsencode(folder) + b"/gr\xfcn.il")).write_text("")
    assert (
        cli.main(["contest", str(folder), "--n", "256", "--html", str(page), "--csv", str(table)])
        == 0
    )
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    places = {row["file"]: row["place"] for row in rows if row["file"]}
    assert {who: place for who, place in places.items() if place} == {
        "bob.txt": "1",
        "gus.il": "1",
        "ada.il": "1",
        "hal.il": "4",
        "ida.il": "1",
    }
    own = [row for row in rows if row["chip"]]
    for part in ([row for row in rows if not row["chip"]], own):
        speeds = [float(row["gflops"]) for row in part]
        assert speeds == sorted(speeds, reverse=True) and speeds[2] > 0 == speeds[-1]
    assert [row["place"] for row in rows if not row["file"]] == [""] * 4
    paper, bar = rows[0], next(row for row in rows if row["name"] == "to beat: 8 x 8, 3 steps")
    assert (
        "measured at N = 4352" in paper["name"]
        and paper["wavefronts"] == ""
        and int(bar["wavefronts"]) == 8
    )
    assert [row["chip"] for row in own if row["file"] == "ida.il"] == [
        "register_pool 288, lds_bytes 0"
    ]
    said, note = ({row["file"]: row[which] for row in rows} for which in ("verdict", "note"))
    assert note["bob.txt"] == "same program as in gus.il" and note["hal.il"] == "" == note["ida.il"]
    assert note["gus.il"] == "same program as in bob.txt, same name as in cyd.il"
    assert "bytes more than" in said["jon.il"] and "On chips of their own" in page.read_text()
    assert "<td>hal.il</td>" in page.read_text(), "who calls himself Nakasato has a file"
    assert "answer" in said["cyd.il"] or "wrong" in said["cyd.il"]
    assert "isn't text" in said["dan.il"] and "endless" in said["eve.il"]
    assert next(row["name"] for row in rows if row["file"] == "ada.il") == "'=Ada<script>"
    assert "<script" not in page.read_text() and "=Ada&lt;script&gt;" in page.read_text()
    told = capsys.readouterr()
    assert f"{len(places)} entries" in told.out and "fay.py is left out" in told.err


def test_who_is_as_fast_within_half_a_per_cent_shares_a_place():
    rows = [
        leaderboard.Row(name, f"{name}.il", speed)
        for name, speed in zip("abcd", (9.04, 8.0, 9.0, 0.0))
    ]
    places = {of.name: place for place, of in leaderboard.ranked(rows, 256)}
    assert [places[name] for name in "abcd"] == [1, 3, 1, ""]


def test_a_file_that_is_not_there_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["contest", "none.il"]) == 1 and "no such file" in capsys.readouterr().err


# -- a process of its own


@pytest.mark.parametrize("how", sorted({"spawn", apart.context.get_start_method()}))
def test_a_call_returns_what_the_function_does(how, monkeypatch):
    monkeypatch.setattr(apart, "context", get_context(how))
    assert apart.call(math.sqrt, 4.0, seconds=1e30) == 2.0, (
        "longer than a process can be waited for"
    )
    with pytest.raises(apart.Lost, match="ValueError: "):
        apart.call(math.sqrt, -4.0)
    with pytest.raises(FileNotFoundError):  # which isn't the copy's end
        apart.call(apart.tell, "no file", hear=open)


@pytest.mark.skipif(not apart.FORKS, reason="no limits but elapsed time here")
@pytest.mark.parametrize(
    ("code", "said", "hint"),
    [
        ("while True: pass", "not ended", "ends"),
        ("bytes(10**10)", "needs more than", "grows"),
        ("import os; os._exit(3)", "with 3", "quit"),
        ("import os; os.kill(os.getpid(), 9)", "from outside", ""),
        ("with limits(9, 400), limits(9, 4000): bytes(10**9)", "needs more than", "grows"),
        (
            "class X:\n    __reduce__ = lambda _: (float, ('x',))\ntell(X())",
            "can't be read, ValueError",
            "",
        ),
        ("import time; time.sleep(60)", "not ended after 4 s", "ends"),
    ],
)
def test_what_runs_away_is_lost_and_told(code, said, hint):
    with pytest.raises(apart.Lost, match=said) as lost:
        apart.call(exec, code, vars(apart), seconds=1)
    assert hint in lost.value.hint
