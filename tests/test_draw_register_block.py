"""The register block: what it says is what was recorded, and what the matrices hold."""

import re
import sys
from functools import cache

import numpy as np
import pytest
from pages import recorded, whole_numbers
from said import NUMBER, Rule, Said, assert_held, unheld, value

from cypresskit import draw

A, B = whole_numbers(4, (8, 16), (8, 24))
PLACES = [(x, y) for y in range(2) for x in range(3)]


@pytest.fixture(scope="module")
def recordings():
    """All work-items of a product whose sums are exact: A is stored transposed, so it is k x m."""
    return recorded("sgemm_tn", A, B, *PLACES)


def rules(recordings, steps: int | None = None) -> dict[str, Rule]:
    lengths = [min(len(r), steps or len(r)) for r in recordings]
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
        return True if say.where.startswith("cells") else shown[0] in (*range(8), -1)

    return {
        r"Step # of #, line #: .*": caption,
        r"C\[#, #\], in r\d+\.\w.*": total,
        r"r\d+\.\w = #": cell,
        r"[wW]ork-item \(#, #\): C\[#:#, #:#\](, not recorded here)?\.?": item,
        r"block C\[#:#, #:#\]": block,
        r"k=#": drawn,
        r"#": drawn,
        r"[ABC]  # x #": lambda say, _: {"A": A.shape, "B": B.shape, "C": (16, 24)}[say.text[0]],
    }


def test_every_number_is_the_recordings(recordings):
    player = draw.register_block(*recordings, element=(5, 3))
    assert_held(player, rules(recordings))


def test_every_step_of_one_work_item_is_told_as_recorded(recordings):
    player = draw.register_block(recordings[4])
    frames = sorted({*range(0, len(player), 9), *range(100, 118)})
    assert_held(player, rules([recordings[4]]), frames=frames)


def test_another_work_items_numbers_are_found(recordings):
    faults = unheld(draw.register_block(recordings[0]), rules([recordings[1]]))
    assert len({fault.split()[0] for fault in faults}) >= 3


def test_a_sum_with_a_term_too_many_is_found(recordings, monkeypatch):
    frames = sys.modules["cypresskit.draw.register_block"]._Frames
    true = frames.sums

    def off(self, first):
        for n, (frame, words) in true(self, first):
            yield n, (frame, words.replace(", after 8 terms", ", after 9 terms"))

    monkeypatch.setattr(frames, "sums", off)
    assert unheld(draw.register_block(recordings[0]), rules([recordings[0]]))
