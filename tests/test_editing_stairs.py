"""The climb as a picture: its figures are the history's, and its link holds the last kernel."""

import base64
import re
import zlib
from xml.etree import ElementTree

import pytest

import cypresskit as ck
from cypresskit.editing.edits import Edit, Edits
from cypresskit.editing.stairs import CODE, WIDTH, Stairs
from cypresskit.editing.steps import STEPS, book_text

KEPT = {"00": ("00", 45.0), "01a": ("block_2x2", 271.0), "12": ("sgemm_tn", 1988.0)}


@pytest.fixture
def edits(tmp_path):
    """A history with three steps kept, a branch, and a wrong edit between."""
    history = Edits(tmp_path / "history.json")
    for step, (text, gflops) in KEPT.items():
        history.add(Edit(0, f"; tried\n{book_text(text)}", right=False))
        history.keep(step, book_text(text), gflops)
    history.keep("06", book_text("dgemm_tn"), 9999.0)
    return history


def test_its_sentence_is_computed(edits):
    stairs = Stairs(edits)
    assert stairs.sentence == "45 to 1,988 Gflop/s in 4 edits: 99% of the paper's 2,014"
    assert [stair.step.name for stair in stairs.stairs] == list(KEPT), "no branch"
    rows = repr(stairs).splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["1,988", "271", "45"]


def test_a_step_that_is_no_faster_is_no_stair(edits):
    edits.keep("02", book_text("block_8x8"), 270.0)
    assert "02" not in [stair.step.name for stair in Stairs(edits).stairs]


def test_the_line_of_a_stair_is_the_readers(edits):
    step = STEPS["02"]
    line = "mad r14, r2.x, r4, r14"
    text = step.book.replace("; the right half: your lines go below this one", line)
    edits.keep("01b", step.book, 500.0)
    edits.keep("02", text, 1352.0)
    assert next(s.line for s in Stairs(edits).stairs if s.step is step) == line


def test_the_link_holds_the_kernel(edits):
    link = Stairs(edits).link("https://example.org/book/")
    assert link.startswith("https://example.org/book/compile/#like=")
    packed = link.rpartition("text=")[2]
    data = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
    assert zlib.decompress(data, -15).decode() == book_text("sgemm_tn")


def test_it_is_sound_svg_within_its_page(edits):
    picture = Stairs(edits).svg("https://example.org")
    root = ElementTree.fromstring(picture)
    boxes = [dict(node.attrib) for node in root.iter() if node.tag.endswith("rect")]
    assert all(float(b.get("x", 0)) + float(b["width"]) <= WIDTH for b in boxes)
    stairs = [float(b["width"]) for b in boxes if float(b["width"]) < CODE and b["width"] != "4"]
    assert stairs == sorted(stairs) and len(stairs) == 3, "the last is the longest"
    lowest = max(float(n.attrib["y"]) for n in root.iter() if n.tag.endswith("text"))
    assert 0 < float(root.attrib["height"]) - lowest < 40, "nothing is empty below it"
    assert re.search(r'<a href="https://example\.org/compile/#like=', picture)


def test_an_empty_climb_says_so(tmp_path):
    assert "No step is kept yet" in repr(Stairs(Edits(tmp_path / "none.json")))
    assert "<svg" in Stairs(Edits(tmp_path / "none.json")).svg()
    bench = ck.workbench(tmp_path / "my.il", like="sgemm_naive")
    assert isinstance(bench.climb, Stairs)
