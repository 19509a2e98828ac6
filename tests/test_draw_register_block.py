"""The register block: what it says is what was recorded, and what the matrices hold."""

import re
from functools import cache

import numpy as np
import pytest
from pages import (
    record,
    recorded,
    whole_numbers,
)
from said import NUMBER, Rule, Said, assert_held, value

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.block import find_block
from cypresskit.draw.block_steps import BlockSteps
from cypresskit.draw.player import format_short
from cypresskit.kernels import samples

A, B = whole_numbers(4, (8, 16), (8, 24))
PLACES = [(x, y) for y in range(2) for x in range(3)]


@pytest.fixture(scope="module")
def recordings():
    """All work-items of a product whose sums are exact: A is stored transposed, so it is k x m."""
    return recorded("sgemm_tn", A, B, *PLACES)


def rules(recordings) -> dict[str, Rule]:
    lengths = [len(r) for r in recordings]
    starts = np.cumsum([0, *lengths])

    def at(say: Said):
        """The recording of a frame, its step, and the frame's scene."""
        scene = int(np.searchsorted(starts, say.frame, "right")) - 1
        return recordings[scene], say.frame - int(starts[scene]), scene

    @cache
    def registers(scene: int, step: int) -> dict[int, np.ndarray]:
        return recordings[scene].registers(step)

    def bits(say: Said, register: int, component: int) -> np.ndarray:
        _, step, scene = at(say)
        words = registers(scene, step).get(register, np.zeros(4, np.uint32))
        return words[component : component + 1]

    def either(words: np.ndarray) -> list[float]:
        """A register's bits as a float and as whole numbers."""
        kinds = (np.float32, np.int32, np.uint32)
        return [float(words.view(kind)[0]) for kind in kinds]

    def caption(say: Said, shown):
        recording, step, _ = at(say)
        line = recording.line(step)
        code = recording.program.lines[line - 1].split(";")[0].strip()
        head = f"Step {step + 1} of {len(recording)}, line {line}: `{code}` "
        assert say.text.startswith(head), head
        return result(say, say.text.removeprefix(head), recording, step)

    def last(say: Said, shown):
        """A run's last caption: its last step, and then what the run came to."""
        recording, step, _ = at(say)
        assert step + 1 == len(recording)
        words, _, summary = say.text.partition("\n")
        top, below, left, right = block(say, ())
        products = 8 * 8 * len(A)
        numbers = 2 * 8 * len(A)
        uses = 2 * products / numbers
        true = [len(recording.fetches), numbers, uses, products, len(recording.stores)]
        return (
            caption(say._replace(text=words), shown)
            and summary.startswith(f"**C[{top}:{below}, {left}:{right}] is complete**: ")
            and [value(n) for n in NUMBER.findall(summary.partition(": ")[2])] == true
        )

    def result(say: Said, words: str, recording, step: int) -> bool:
        """Whether what an instruction did is told as it was recorded."""
        numbers = [value(n) for n in NUMBER.findall(words.split("to ")[-1].split(": ")[-1])]
        if found := re.match(r"fetches ([AB])\[(\d+), (\d+):(\d+)\]", words):
            k, low, high = map(int, found.groups()[1:])
            return numbers == {"A": A, "B": B}[found[1]][k, low:high].tolist()
        if found := re.match(r"C\[(\d+), (\d+):(\d+)\] grows by A\[(\d+), \d+\]", words):
            i, low, high, k = map(int, found.groups())
            return numbers == [float(A[: k + 1, i] @ B[: k + 1, j]) for j in range(low, high)]
        if found := re.match(r"stores r\d+ to element (\d+)", words):
            return dict(recording.stores.tolist())[step] == int(found[1])
        if found := re.match(r"sets r(\d+)\.?([xyzw]*)", words):
            written = found[2] or "xyzw"
            held = [either(bits(say, int(found[1]), "xyzw".index(c))) for c in written]
            shown = numbers if len(numbers) > 1 else numbers * len(held)
            return all(map(same, shown, held))
        return not numbers

    def same(number: float, held: list[float]) -> bool:
        """Whether three digits are those of a register, as a float or as a whole number."""
        return any(number == h or abs(number - h) < 1e-2 * abs(h) for h in held)

    def same_digits(number: float, held: float) -> bool:
        return abs(number - held) <= 5.1e-3 * abs(held)

    def total(say: Said, _):
        """An element's sum so far, term by term."""
        found = re.match(r"\*\*C\[(\d+), (\d+)\]\*\*, in r(\d+)\.(\w)", say.text)
        i, j, register = map(int, found.groups()[:3])
        held = float(bits(say, register, "xyzw".index(found[4])).view(np.float32)[0])
        if "nothing added yet" in say.text:
            return held == 0 or "term" not in say.text
        k = int(re.search(r"after (\d+) term", say.text)[1])
        if k > len(A):
            return False
        terms = [f"{A[n, i]:g} \N{MULTIPLICATION SIGN} {B[n, j]:g}" for n in range(k)]
        shown = "... + " * (k > 6) + " + ".join(terms[-6:])
        so_far = float(A[:k, i] @ B[:k, j])
        middle = f" = {shown} = {so_far:g}, after {k} term{'s' * (k > 1)}; the last is"
        ends = f"{middle} A[{k - 1}, {i}] times B[{k - 1}, {j}]."
        return say.text.endswith(ends) and so_far == held

    def cell(say: Said, _):
        found = re.match(r"r(\d+)\.(\w) = ", say.text)
        return either(bits(say, int(found[1]), "xyzw".index(found[2])))[:1]

    def item(say: Said, _):
        y, x = divmod(say.index % 10_000, 3)
        return [x, y, 8 * y, 8 * y + 8, 8 * x, 8 * x + 8]

    def block(say: Said, _):
        x, y = at(say)[0].place
        return [8 * y, 8 * y + 8, 8 * x, 8 * x + 8]

    def drawn(say: Said, shown):
        """A cell's number, as its register holds it."""
        if say.where.startswith("cells"):
            name, component = say.cell("register").split(".")
            held = either(bits(say, int(name[1:]), "xyzw".index(component)))
            return any(map(same_digits, shown * len(held), held))
        return shown[0] in (*range(8), -1)

    return {
        r"Step # of #, line #: .*": caption,
        r"Step # of #, line #: .*\nC\[#:#, #:#\] is complete: .*": last,
        r"C\[#, #\], in r\d+\.\w.*": total,
        r"r\d+\.\w = #": cell,
        r"[wW]ork-item \(#, #\): C\[#:#, #:#\](, not recorded here)?\.?": item,
        r"block C\[#:#, #:#\]": block,
        r"k=#": drawn,
        r"#": drawn,
        r"[ABC]  # x #": lambda say, _: {"A": A.shape, "B": B.shape, "C": (16, 24)}[say.text[0]],
    }


def test_every_number_is_the_recordings(recordings):
    player = draw.register_block(*recordings)
    assert_held(player, rules(recordings))


def test_a_run_that_is_cut_off_has_no_summary(recordings):
    whole = recordings[0]
    recorder = ck.Recorder(0, len(whole) - 1)
    samples.run(ck.kernels["sgemm_tn"], 16, 24, 8, recorder)
    assert len(recorder.recording) == len(whole) - 1
    assert "is complete" not in draw.register_block(recorder.recording).captions[-1]
    assert "is complete" in draw.register_block(whole).captions[-1]


@pytest.mark.slow
def test_every_step_of_a_work_item_matches_the_recording(recordings):
    player = draw.register_block(recordings[4])
    frames = sorted({*range(0, len(player), 9), *range(100, 118)})
    assert_held(player, rules([recordings[4]]), frames=frames)


@pytest.fixture(scope="module")
def run():
    return record("sgemm_tn")


def test_a_recording_has_the_registers_of_its_work_item_alone(run):
    _, a, b, recording = run
    block = find_block(recording)
    registers = recording.registers(block.updates[-1].step)
    values = {place: registers[r].view(np.float32)[c] for place, (r, c) in block.totals.items()}
    exact = a.T.astype(np.float64) @ b
    assert sorted(values) == [(i, j) for i in range(8, 16) for j in range(8, 16)]
    for (i, j), held in values.items():
        assert held == pytest.approx(exact[i, j], abs=1e-5)


def test_fetches_are_the_work_items_stripes(run):
    fetches = run[3].fetches
    for resource in (0, 1):
        _, _, x, y, inside = fetches[fetches[:, 1] == resource].T
        assert set(x) == {2, 3} and set(y) == set(range(6)) and inside.all()


@pytest.mark.parametrize("item", [(3, 0), (0, 2), (-1, 0), 6, -1])
def test_a_work_item_outside_the_domain_is_refused(item):
    with pytest.raises(ValueError, match=r"no work-item .* in a domain of 3 x 2"):
        record("sgemm_tn", item=item)


def test_every_frame_has_the_recorded_values(run):
    recording = run[3]
    block = find_block(recording)
    frames = BlockSteps(recording, block)
    groups = (block.totals, block.b, block.a)
    for step in range(0, len(recording), 7):
        registers = recording.registers(step)
        for shown, cells in zip(frames.groups, groups):
            want = [
                registers.get(r, np.zeros(4, np.uint32)).view(np.float32)[c]
                for r, c in cells.values()
            ]
            assert np.array_equal(shown.values[step], np.array(want, np.float32))


def test_captions_name_the_elements_that_an_instruction_works_on(run):
    _, _, b, recording = run
    captions = ck.draw.register_block(recording).captions
    assert len(captions) == len(recording)
    fetch = next(c for c in captions if "fetches B" in c)
    assert (
        "fetches B[0, 8:12] into r4: "
        + f"({', '.join(format_short(float(v)) for v in b[0, 8:12])})"
        in fetch
    )
    grows = [c for c in captions if "grows by" in c]
    assert len(grows) == 6 * 16
    assert "C[10, 8:12] grows by A[0, 10] times B[0, 8:12], to " in grows[2]
    assert "leaves the loop" in "".join(captions) and "of global memory\n" in captions[-1]


def test_k_is_shown_only_when_a_whole_column_is_there(run):
    recording = run[3]
    frames = BlockSteps(recording, find_block(recording))
    step = {int(f[0]): f for f in recording.fetches}
    first = sorted(step)[0]
    assert frames.k[first].tolist() == [-1, -1, -1, -1]
    assert frames.k[sorted(step)[7]].tolist() == [0, 1, 0, 1]


@pytest.fixture(scope="module")
def several():
    """All six work-items of one launch."""
    a, b = whole_numbers(4, (8, 16), (8, 24))
    return a, b, recorded("sgemm_tn", a, b, *((x, y) for y in range(2) for x in range(3)))


def test_the_map_of_c_chooses_the_work_item_that_is_shown(several):
    a, b, recordings = several
    player = ck.draw.register_block(*recordings)
    assert [name for name, _ in player.scenes] == [
        "(0, 0)",
        "(1, 0)",
        "(2, 0)",
        "(0, 1)",
        "(1, 1)",
        "(2, 1)",
    ]
    tag = player.figures[0].tags[0]
    assert sorted(tag["sceneOfKey"]) == [(10_000 + item, item) for item in range(6)]
    assert len(player.bundle()["text/html"]) < 300_000
    values = next(
        t.frames for t in player.tracks if t.source.name == "cells C" and t.column == "value"
    )
    exact, last = a.T @ b, -1
    for n, (recording, (_, frames)) in enumerate(zip(recordings, player.scenes)):
        block, last = find_block(recording), last + frames
        done = last - frames + 1 + block.updates[-1].step
        for cell, (i, j) in enumerate(block.totals):
            assert values[done, cell] == exact[i, j], f"scene {n}"


def test_work_items_of_two_launches_are_no_scenes(several):
    with pytest.raises(ValueError, match="work-items of one launch"):
        ck.draw.register_block(several[2][0], record("sgemm_tn")[3])


def test_a_sum_is_shown_term_by_term(several):
    a, b, recordings = several
    player = ck.draw.register_block(recordings[4])
    block = find_block(recordings[4])
    for cell, (i, j) in enumerate(block.totals):
        told = player.about[cell]
        assert "nothing added yet" in told[0][1] and len(told) == 1 + 8
        for k, (frame, words) in enumerate(told[1:]):
            so_far = int(a[: k + 1, i] @ b[: k + 1, j])
            assert (
                words.startswith(f"**C[{i}, {j}]**")
                and f" = {so_far}, after {k + 1} term{'s' * (k > 0)}; " in words
            )
            assert words.endswith(f"A[{k}, {i}] times B[{k}, {j}].")
            register, channel = block.totals[i, j]
            assert recordings[4].registers(frame)[register].view(np.float32)[channel] == so_far


def test_the_text_form_says_what_is_drawn_and_not_what_comes_out():
    text = repr(ck.draw.register_block(record("sgemm_tn", integers=True)[3]))
    assert re.fullmatch(
        r".+ work-item \(1, 1\)\nC\[8:16, 8:16\], 8 x 8 float32, \d+ steps, 6 rank-1 updates", text
    )
