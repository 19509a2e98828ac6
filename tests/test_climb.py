"""The climb: right texts are kept with their speed, wrong ones are told what is wrong."""

import json
import random
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from answers import given
from answers.l12 import twice_a_turn

import cypresskit as ck
from cypresskit.draw.predict import RED
from cypresskit.draw.road import FIGURES, RoadLaunch
from cypresskit.kernels.generated import block_kernel
from cypresskit.teach import climb

FOUR = given("01_register_block", "four_by_four", solution=True)
FOUR_BY_EIGHT = given("02_why_blocks", "four_by_eight", solution=True)
#: The text that each later step asks for: where it stands, and its name there.
ASKED = {
    "01 2x2": ("01_register_block", "two_by_two"),
    "03": ("03_bundles", "loop"),
    "04": ("04_registers_and_wavefronts", "with_c"),
    "05": ("05_texture_cache", "numbering"),
    "06": ("06_double_double", "in_double"),
    "07": ("07_lds_transpose", "through_lds"),
    "12": ("12_beat_the_paper", "loop"),
}
SOLVED = {lesson: given(*place, solution=True) for lesson, place in ASKED.items()}
STUDENTS = {lesson: given(*place) for lesson, place in ASKED.items()}
#: What the lessons say of a good par beyond the exercise, done to its solution: from 4 x 8 to 8 x 8
#: downwards, and four steps of k in a turn, counted at once.
FETCH_B = "    sample_resource(1)_sampler(1) r3, r0.yz00\n"
FETCH_A = "    sample_resource(0)_sampler(0)_aoffimmi(1,0,0) r5, r0.xz00\n"
NEXT_ROW = "iadd r1.x, r1.x, cb0[0].w\n"


def _eight_by_eight() -> str:
    text = FOUR_BY_EIGHT.replace("4.0, -2.0", "8.0, -4.0").replace(
        "1.0, 2.0, -0.5", "2.0, 2.0, -1.0"
    )
    text = text.replace("mov r17, l0.x\n", "".join(f"mov r{n}, l0.x\n" for n in range(17, 26)))
    for last, fetched, first in (
        ("mad r13, r2.w, r3, r13", "r3", 18),
        ("mad r17, r2.w, r4, r17", "r4", 22),
    ):
        rows = [(first + row, "xyzw"[row]) for row in range(4)]
        lower = [f"    mad r{row}, r5.{part}, {fetched}, r{row}\n" for row, part in rows]
        text = text.replace(f"    {last}\n", f"    {last}\n{''.join(lower)}")
    text = text.replace(FETCH_B, FETCH_B + FETCH_A)
    stores = [
        f"{NEXT_ROW}mov g[r1.x], r{18 + row}\nmov g[r1.x+1], r{22 + row}\n" for row in range(4)
    ]
    return text.replace("endmain", f"{''.join(stores)}endmain")


def _four_steps() -> str:
    before, loop = SOLVED["06"].split("    sample_resource", 1)
    body, count, after = f"    sample_resource{loop}".partition("    add r0.z, r0.z, l9.x\n")
    plain = re.sub(r"(_sampler\(\d\)) ", r"\1_aoffimmi(0,0,0) ", body)
    steps = [re.sub(r"aoffimmi\((\d),0", rf"aoffimmi(\1,{step}", plain) for step in range(4)]
    return before + "".join(steps) + count.replace("l9.x", "l0.w") + after


def _changed(step: str) -> str:
    """A lesson's text with two of its products exchanged: a reader's, and as slow."""
    lines = STUDENTS[step].splitlines()
    first, second = [n for n, line in enumerate(lines) if line.lstrip().startswith("mad ")][-2:]
    lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines)


CHANGED = {step: _changed(step) for step in ("03", "04", "12")}
#: Of 05: the last of the row's three bits is the last of the number's.
COLUMNS = """
iand r1.z, vTidInGrpFlat.x, l8.w
ushr r1.w, vTidInGrpFlat.x, l8.y
"""
#: The contest's solution: its kernel with the loop's body twice in a turn.
ENTRY = twice_a_turn(12, 8, 3)
RIGHT = [
    ("00", climb.NAIVE, 45, "good, 45, reached"),
    ("01 2x2", SOLVED["01 2x2"], 271, "good, 271, reached"),
    ("01", FOUR, 1010, r"good, 1,01\d, reached"),
    ("02", FOUR_BY_EIGHT, 1352, r"good, 1,8\d\d, not yet"),
    ("02", _eight_by_eight(), 1843, r"good, 1,8\d\d, reached"),
    ("02", block_kernel(8, 8).text, 1850, r"good, 1,8\d\d, reached; the paper's, 2,014, not yet"),
    ("03", CHANGED["03"], 1706, r"good, 1,8\d\d, not yet"),
    ("03", SOLVED["03"], 1843, r"good, 1,8\d\d, reached; the paper's, 2,014, not yet"),
    ("04", CHANGED["04"], 1094, r"good, 1,8\d\d, not yet"),
    ("04", SOLVED["04"], 1843, r"good, 1,8\d\d, reached"),
    ("05", COLUMNS, 1399, r"good, 1,8\d\d, not yet"),
    ("05", SOLVED["05"], 1841, r"good, 1,8\d\d, reached"),
    ("06", SOLVED["06"], 432, r"good, 49\d, not yet; the paper's, 472, not yet"),
    ("06", _four_steps(), 497, r"good, 49\d, reached; the paper's, 472, reached"),
    ("07", SOLVED["07"], 1637, r"good, 1,63\d, reached; the paper's, 1,750, not yet"),
    ("12", CHANGED["12"], 1668, r"good, 1,8\d\d, not yet"),
    ("12", SOLVED["12"], 1862, r"good, 1,8\d\d, reached"),
    ("contest", ENTRY, 2076, r"good, 1,8\d\d, reached; the paper's, 2,014, reached"),
    ("larger N", ENTRY, 2122, r"good, 2,07\d, reached; .* 2,014, reached"),
    ("larger N", ck.kernels["sgemm_tn"].text, 2073, r"good, 2,07\d, reached; .* 2,014, reached"),
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
    ("01 2x2", STUDENTS["01 2x2"], "C[1, 0] is 0"),
    ("03", SOLVED["03"].replace("r3.w", "r3.z"), "C[7, 0] is"),
    ("05", "", "C["),
    ("06", STUDENTS["06"], "C[1, 0] is 0"),
    ("07", STUDENTS["07"], "C[0, 0] is 0"),
    ("12", SOLVED["12"].replace("r9, r25", "r8, r25"), "C[7, 4] is"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("lesson", "text", "gflops", "said"), RIGHT)
def test_a_right_text_is_kept_with_its_speed(lesson, text, gflops, said):
    words = climb.keep(lesson, text)
    found = re.match(r"Right, and kept in my_\w+\.il: ([\d,]+) Gflop/s at N = (\d+)\.", words)
    assert found and float(found[1].replace(",", "")) == pytest.approx(gflops, rel=0.02)
    assert re.search(said, words)
    file = climb.STEPS[lesson].file
    assert ck.assemble(file.read_text()).registers
    if file == climb.FILE:
        assert climb.so_far("12") == file.read_text() == climb.start("12")[0]
    mine = file.read_text()
    verified = ck.verify(ck.kernel(mine, like=climb.mine_so_far()[f"my {lesson}"].launched))
    assert verified.right, "with any alpha and beta"
    report = climb.mine_so_far()[f"my {lesson}"]
    assert report.gflops == pytest.approx(gflops, rel=0.02)
    climb._reports.clear()
    assert ck.simulate(climb.mine_so_far()[f"my {lesson}"], int(found[2])).gflops == report.gflops


def test_some_text_that_follows_the_lesson_reaches_each_good_par():
    reached = {step for step, _, _, words in RIGHT if re.search(r"good, [^;]*, reached", words)}
    assert reached == set(climb.STEPS)


def test_branches_leave_my_kernel_as_it_is():
    climb.keep("03", SOLVED["03"])
    before = climb.start("12")
    for lesson in ("05", "06", "07"):
        climb.keep(lesson, SOLVED[lesson])
    assert climb.start("12") == before
    assert list(climb.mine_so_far()) == ["my 03", "my 05", "my 06", "my 07"]


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_the_steps_of_k_in_a_turn_are_found_out(steps):
    text = block_kernel(8, 8, steps).text
    assert climb.STEPS["02"].kernel(text).k_step == steps


def test_a_file_edited_on_the_workbench_is_kept():
    climb.keep("03", CHANGED["03"])
    climb.FILE.write_text(block_kernel(8, 8, scaled=True).text)
    assert climb.keep("03", climb.FILE).startswith("Right")
    assert "can't read nothing.il" in climb.keep("03", Path("nothing.il"))


def test_what_is_right_and_slow_is_told_where_to_look():
    given = climb.STEPS["03"].kernel(STUDENTS["03"])
    speed = f"{ck.simulate(given, 2048).gflops:,.0f} Gflop/s"
    verdict = ck.teach.bundles.check_products(STUDENTS["03"])
    assert not verdict.right and speed in verdict.finding and "share" in verdict.hint
    assert ck.teach.bundles.check_products(SOLVED["03"]).right


def test_the_contest_begins_where_i_am():
    contest = ck.teach.contest
    assert climb.start("12") == (contest.write(8, 8, 1).text, (8, 8), 1)
    climb.keep("02", FOUR_BY_EIGHT)
    text, block, steps = climb.start("12")
    assert (block, steps) == ((4, 8), 1)
    assert contest.judge(contest.entry(text, block, steps), n=256).report


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


@pytest.mark.parametrize("step", ["03", "04", "05", "12"])
def test_a_text_as_it_was_given_is_not_kept(step):
    remarks = STUDENTS[step].replace("\n", "   ; as it was\n\n")
    for text in (STUDENTS[step], remarks):
        assert climb.keep(step, text).startswith("Not kept yet: this is the text as it was given")
    assert not climb.KEPT.exists() and not climb.STEPS[step].file.exists()


@pytest.mark.parametrize("step", ASKED)
def test_what_a_lesson_gives_is_known(step):
    given_right = climb.STEPS[step].given
    assert climb.digest(STUDENTS[step]) == given_right or not given_right
    assert climb.digest(SOLVED[step]) != given_right
    assert bool(given_right) == (step not in ("01 2x2", "06", "07")), "their texts are wrong"
    assert climb.STEPS["00"].given == climb.digest(given("00_start_here", "mine"))


@pytest.mark.parametrize("step", climb.CONTEST)
def test_whoever_has_no_kernel_of_their_own_enters_none(step):
    words = climb.keep(step, climb.start("12")[0])
    assert words.startswith("Not kept yet: this is the text as it was given")
    climb.keep("02", block_kernel(8, 8).text)
    assert climb.keep(step, climb.start("12")[0]).startswith("Right, and kept in my_kernel.il")


def test_the_first_lesson_again_leaves_a_kernel_that_has_climbed():
    climb.keep("00", climb.NAIVE)
    climb.keep("03", SOLVED["03"])
    climbed = climb.FILE.read_text()
    words = climb.keep("00", climb.NAIVE)
    assert climb.FILE.read_text() == climbed
    assert "my_kernel.il stays as it is: it holds your 03, 1,843 Gflop/s." in words
    assert words.endswith('To begin anew: ck.teach.climb.back_to("00")')
    words = climb.back_to("00")
    assert climb.FILE.read_text() == climb.HEAD + climb.NAIVE + climb.TAIL
    assert 'ck.teach.climb.back_to("03")' in words
    climb.back_to("03")
    assert climb.FILE.read_text() == climbed
    assert "my_climb.json has 00, 03" in climb.back_to("12")


def test_a_damaged_memory_is_set_aside():
    climb.KEPT.write_text('{"03": ')
    assert "What my_climb.json held is in my_climb_1.json now." in climb.keep("01", FOUR)
    assert Path("my_climb_1.json").read_text() == '{"03": '
    later = json.loads(climb.KEPT.read_text()) | {"of a later edition": 1}
    climb.KEPT.write_text(json.dumps(later))
    climb.keep("02", FOUR_BY_EIGHT)
    assert list(json.loads(climb.KEPT.read_text())) == ["01", "of a later edition", "02"]


#: What a reader may keep, and write into the file elsewhere: right, wrong, and half a line.
CELLS = [
    *(("00", climb.NAIVE), ("00", climb.NAIVE.replace("= k + 1", "= the next k"))),
    *(("01", FOUR), ("02", FOUR_BY_EIGHT), ("02", block_kernel(8, 8).text)),
    *((step, text) for texts in (STUDENTS, CHANGED, SOLVED) for step, text in texts.items()),
    ("02", FOUR_BY_EIGHT.replace("mad r13", "mda r13")),
]
EDITS = [
    *(block_kernel(8, 8, steps, scaled=True).text for steps in (1, 2)),
    *(block_kernel(4, 8, scaled=True).text, FOUR.replace("r2.z, r3", "r2.y, r3"), "half a li", ""),
]


@pytest.mark.parametrize("seed", range(5))
def test_no_text_of_the_reader_is_lost(seed, monkeypatch):
    """Cells in any order, lessons run again, edits of the file, and the calls that were named: the
    fastest right text stays in the file, or where a sentence has said that it is; so does whatever
    the reader wrote into the file; and what they didn't write never gets there.
    """
    monkeypatch.setattr(climb, "simulate", lambda mine, n: simulated(mine.text, mine, n))
    chance = random.Random(seed)
    cells = [cell for cell in CELLS if climb.STEPS[cell[0]].file == climb.FILE]
    speeds: dict[str, float] = {}  # of what the reader wrote, each without its last line's end
    named: set[str] = set()  # steps that a sentence has named
    theirs = {climb.step_kernel(step, STUDENTS[step]).text.rstrip() for step in CHANGED}
    for _ in range(30):
        before = text_of(climb.FILE)
        act = chance.choice(["keep", "keep", "keep", "from the top", "edit", "back", "new session"])
        if act == "new session":
            climb._reports.clear()
        elif act == "edit":
            if before and not is_kept(before):
                speeds.pop(before, None)  # the reader replaced it
            edited = chance.choice([*EDITS, f"{before}\n; a remark"])
            climb.FILE.write_text(edited)
            speeds[edited.rstrip()] = speed_of(edited)
        else:
            if act == "back" and named:
                words = climb.back_to(chance.choice(sorted(named)))
            else:
                step, text = cells[0] if act == "from the top" else chance.choice(cells)
                words = climb.keep(step, text)
                if words.startswith("Right"):
                    whole = climb.step_kernel(step, text).text
                    speeds[whole.rstrip()] = speed_of(whole)
            named |= set(re.findall(r'back_to\("([^"]+)"\)', words))
            aside = {text_of(Path(name)) for name in re.findall(r"is in (\S+) now", words)}
            held = text_of(climb.FILE)
            assert held not in theirs, words
            assert (
                not before
                or before in aside | {held}
                or is_kept(before)
                or (speeds[before] <= speeds[held])
            ), words
            safe = aside | {held} | {text_of_step(step) for step in named}
            for text in aside:
                speeds.pop(text, None)  # it was said where it is
            if words.startswith("Not kept"):
                continue
            reached = max((speeds.get(text, 0.0) for text in safe), default=0.0)
            assert reached >= max(speeds.values(), default=0.0) / climb.CLOSE, words


def text_of(file: Path) -> str:
    return file.read_text().rstrip() if file.exists() else ""


def text_of_step(step: str) -> str:
    return json.loads(climb.KEPT.read_text())[step]["text"].rstrip()


def is_kept(text: str) -> bool:
    kept = json.loads(climb.KEPT.read_text()) if climb.KEPT.exists() else {}
    return any(entry["text"].rstrip() == text for entry in kept.values())


@cache
def speed_of(text: str) -> float:
    """The Gflop/s of a whole text; 0 for one that is wrong."""
    try:
        mine = ck.kernel(text)
        return simulated(mine.text, mine, 2048).gflops if climb._is_right(mine) else 0.0
    except ValueError:
        return 0.0


REPORTS = {}


def simulated(text: str, mine, n: int):
    """The report of a text, which is simulated once."""
    if (text, n) not in REPORTS:
        REPORTS[text, n] = ck.simulate(mine, n)
    return REPORTS[text, n]


def test_a_kernel_breaks_in_colour():
    right = climb.seen("00", climb.NAIVE)
    assert "all right" in repr(right) and "#d55e00" not in right._repr_html_()
    broken = climb.seen("00", climb.NAIVE.replace(MAD, "mul r10.x, r2.x, r3.x"))
    assert broken._repr_html_().count("#d55e00") == int(np.sum(broken.wrong)) > 50
    assert repr(broken).count("!") == int(np.sum(broken.wrong))
    wrong = climb.seen("00", climb.NAIVE.replace("mad r10", "mda r10"))
    reason, line, caret = repr(wrong).splitlines()
    assert "Did you mean `mad`" in reason and line[caret.index("^") :].startswith("mda r10.x")
    assert "pre-wrap" in wrong._repr_html_() and "Did you mean" in wrong._repr_html_()


def test_what_is_kept_of_the_lds_is_what_its_check_accepts():
    """A missing fence is the same sentence in both, whatever numbers came out."""
    fence = "fence_threads_lds\n"
    for text in (SOLVED["07"].replace(fence, "\n"), SOLVED["07"].replace(fence, "\n", 1)):
        finding = ck.teach.lds.check_through_lds(text).finding
        assert "with no fence between" in finding
        assert climb.keep("07", text) == f"Not kept yet: {finding}"


def test_an_error_names_the_line_of_the_cell():
    text = "\n" + climb.NAIVE.replace("mad r10", "mda r10")
    line = 1 + next(n for n, row in enumerate(text.splitlines()) if "mda" in row)
    for words in (climb.keep("00", text), repr(climb.seen("00", text))):
        assert f"line {line} of the cell: `mda` is no instruction" in words
        assert "my_kernel" not in words
    Path("other.il").write_text(f"{climb.HEAD}mda r1, r2\n{climb.TAIL}")
    assert f"other.il:{climb.HEAD.count(chr(10)) + 1}:1: " in climb.keep("00", Path("other.il"))


def test_whoever_skips_a_lesson_gets_the_text_so_far():
    for lesson, block in (("00", 1), ("01", 1), ("02", 4), ("03", 8), ("12", 8)):
        text = climb.so_far(lesson)
        assert len(re.findall(r"(?m)^ *mad r[1-9]\d*(?:\.x)?, r\d+\.", text)) >= block**2 // 4
    assert {RoadLaunch(*step.good) for step in climb.STEPS.values()} <= set(FIGURES)


def test_why_there_is_no_product_is_as_red_as_a_missed_guess():
    assert f"color: {RED};" in climb.NoProduct("no `end`")._repr_html_()
