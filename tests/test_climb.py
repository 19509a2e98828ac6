"""The climb: right texts are kept with their speed, wrong ones are told what is wrong."""

import json
import random
import re

import numpy as np
import pytest
from answers import given

import cypresskit as ck
from cypresskit.draw.road import FIGURES
from cypresskit.kernels.generated import block_kernel
from cypresskit.teach import climb

FOUR = given("01_register_block", "four_by_four", solution=True)
FOUR_BY_EIGHT = given("02_why_blocks", "four_by_eight", solution=True)
RIGHT = [
    ("00", climb.NAIVE, 45, "good, 45, reached"),
    ("01", FOUR, 1010, r"good, 1,01\d, reached"),
    ("02", FOUR_BY_EIGHT, 1413, r"good, 1,8\d\d, not yet"),
    ("02", block_kernel(8, 8).text, 1850, r"good, 1,8\d\d, reached; the paper's, 2,014, not yet"),
]
MAD = "mad r10.x, r2.x, r3.x, r10.x"
WRONG = [
    ("00", climb.NAIVE.replace(MAD, "mad r10.x, r2.x, r2.x, r10.x"), "C[0, 0] is"),
    ("00", climb.NAIVE.replace(MAD, "mul r10.x, r2.x, r3.x"), "and should be"),
    ("00", climb.NAIVE.replace("r0.zx00", "r0.xz00"), "C["),
    ("00", climb.NAIVE.replace("add r0.z", "add r0.w"), "has not ended"),
    ("00", climb.NAIVE.replace("mad r10", "mda r10"), "Did you mean `mad`"),
    ("00", "", "C[0, 0] is 0"),
    ("01", given("01_register_block", "four_by_four"), "C[1, 0] is 0"),
    ("01", FOUR.replace("r2.z, r3", "r2.y, r3"), "C[2, 0] is"),
    ("02", given("02_why_blocks", "four_by_eight"), "C[0, 4] is 0"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("lesson", "text", "gflops", "said"), RIGHT)
def test_a_right_text_is_kept_with_its_speed(lesson, text, gflops, said):
    words = climb.keep(lesson, text)
    found = re.match(r"Right, and kept in my_kernel\.il: ([\d,]+) Gflop/s at N = 2048\.", words)
    assert found and float(found[1].replace(",", "")) == pytest.approx(gflops, rel=0.02)
    assert re.search(said, words)
    assert ck.assemble(climb.FILE.read_text()).registers
    assert climb.so_far("12") == climb.FILE.read_text() == climb.start("12")[0]
    mine = climb.FILE.read_text()
    verified = ck.verify(ck.kernel(mine, like=climb.mine_so_far()[f"my {lesson}"].launched))
    assert verified.right, "with any alpha and beta"
    report = climb.mine_so_far()[f"my {lesson}"]
    assert report.gflops == pytest.approx(gflops, rel=0.02)
    climb._reports.clear()
    assert ck.simulate(climb.mine_so_far()[f"my {lesson}"], 2048).gflops == report.gflops


def test_the_contest_begins_where_i_am():
    contest = ck.teach.contest
    assert climb.start("12") == (contest.write(8, 8, 1).text, (8, 8), 1)
    climb.keep("02", FOUR_BY_EIGHT)
    text, block, steps = climb.start("12")
    assert (block, steps) == ((4, 8), 1)
    assert contest.judge(contest.entry(text, block, steps), n=256).report


def test_the_road_has_my_bars():
    climb.keep("00", climb.NAIVE)
    climb.keep("01", FOUR)
    caption = ck.draw.road(1, mine=climb.mine_so_far()).captions[0]
    assert "**Yours: my 00**" in caption and "**Yours: my 01**" in caption
    assert "45 Gflop/s, as fast as sgemm_naive" in caption


@pytest.mark.parametrize("shape", [(4, 8), (8, 8)])
@pytest.mark.parametrize("edit", ["{}\n; a remark\n", "{}\nnonsense\n", "nonsense", ""])
def test_a_text_edited_elsewhere_keeps_its_block(shape, edit):
    climb.keep("01", FOUR)
    climb.keep("02", block_kernel(*shape).text)
    changed = edit.format(climb.FILE.read_text())
    climb.FILE.write_text(changed)
    assert climb.start("12") == (changed, shape, 1)


def test_a_block_of_another_shape_is_found_in_the_text():
    climb.keep("01", FOUR)
    climb.FILE.write_text(block_kernel(4, 8, scaled=True).text)
    assert climb.start("12")[1:] == ((4, 8), 1)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"00": 3}', '{"00": {"text": ""}}'])
def test_a_damaged_file_is_no_kernel(text):
    climb.KEPT.write_text(text)
    assert climb.mine_so_far() == {}


def test_whatever_is_damaged_the_rest_is_kept():
    chance = random.Random(12)
    right = {"text": climb.scaled(FOUR), "block": [4, 4], "k_step": 1}
    odd = [None, True, 3, 0, -1, 2.5, 10**400, "x", "", [], [4], [4, "x"], [0, 4], [4, 4, 4], {}]
    for _ in range(300):
        damaged = right | {chance.choice(list(right)): chance.choice(odd)}
        broken = damaged["block"] != [4, 4] or damaged["k_step"] is True
        broken |= damaged["k_step"] not in (1, 3) or damaged["text"] != right["text"]
        climb.KEPT.write_text(json.dumps({"00": chance.choice(odd), "01": right, "02": damaged}))
        names = ["my 01"] if broken else ["my 01", "my 02"]
        assert list(climb.mine_so_far()) == names, damaged
        assert climb.start("01")[2] == 1


@pytest.mark.parametrize(("lesson", "text", "said"), WRONG)
def test_a_wrong_text_is_not_kept(lesson, text, said):
    climb.keep("00", climb.NAIVE)
    before = climb.FILE.read_text(), climb.KEPT.read_text()
    words = climb.keep(lesson, text)
    assert words.startswith("Not kept yet: ") and said in words
    assert (climb.FILE.read_text(), climb.KEPT.read_text()) == before


def test_a_kernel_breaks_in_colour():
    right = climb.seen("00", climb.NAIVE)
    assert "all right" in repr(right) and "#d55e00" not in right._repr_html_()
    broken = climb.seen("00", climb.NAIVE.replace(MAD, "mul r10.x, r2.x, r3.x"))
    assert broken._repr_html_().count("#d55e00") == int(np.sum(broken.wrong)) > 50
    assert repr(broken).count("!") == int(np.sum(broken.wrong))
    assert "Did you mean" in climb.seen("00", climb.NAIVE.replace("mad r10", "mda r10"))


def test_an_error_names_the_line_of_the_cell():
    text = "\n" + climb.NAIVE.replace("mad r10", "mda r10")
    line = 1 + next(n for n, row in enumerate(text.splitlines()) if "mda" in row)
    assert f"my_kernel.il:{line}:" in climb.keep("00", text)


def test_whoever_skips_a_lesson_gets_the_text_so_far():
    for lesson, block in (("00", 1), ("01", 1), ("02", 4), ("12", 8)):
        text = climb.so_far(lesson)
        assert len(re.findall(r"(?m)^ *mad r[1-9]\d*(?:\.x)?, r\d+\.", text)) >= block**2 // 4
    assert {step.good for step in climb.STEPS.values()} <= set(FIGURES)
