"""Views of a kernel of one's own: the same as of the catalog's kernel with the same text."""

import re
from inspect import signature

from players import VIEWS
from sampling import drawn_by_day

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.chart import Chart
from tools import gallery

OWN = {name: view.own for name, view in VIEWS.items() if view.own}


def test_every_view_has_its_row_and_a_page_on_the_site():
    """And is drawn of a reader's kernel, if it takes one."""
    views = {name for name in draw.VIEWS if name.islower()} - {"interactive", "load", "predict"}
    rows = {name.partition(",")[0]: row for name, row in VIEWS.items()}
    assert views <= rows.keys()
    assert views - {"climb", "line_chart"} <= gallery.VIEWS.keys()
    assert all(rows[name].own for name in views if "Kernel" in str(signature(getattr(draw, name))))


def text_of(picture):
    """What a picture says, and what of it changes from frame to frame."""
    levels = getattr(picture, "levels", ())
    if isinstance(picture, Chart):
        return f"{picture!r} {picture.to_svg()}"
    players = [level.player for level in levels] or [picture]
    shown = [(p.captions, p.about, [t.frames.tolist() for t in p.tracks]) for p in players]
    return f"{picture!r} {shown}"


@drawn_by_day("view", OWN, 3)
def test_a_view_of_a_copy_is_that_of_the_catalog_s(view, tmp_path):
    name, drawn = OWN[view]
    path = tmp_path / "mine.il"
    path.write_text(ck.kernels[name].text)
    own, theirs = drawn(path), drawn(name)
    shown = name.removeprefix("sgemm_64x64_") if view == "lds_transpose" else name
    assert re.sub(r"\bmine\b", shown, text_of(own)) == text_of(theirs)


def test_a_remark_is_no_code_however_it_begins():
    text = ck.kernels["sgemm_tn"].text
    told = [
        [draw.bundles(mine).captions, draw.register_block(mine).captions]
        for remark in (";", "//")
        for mine in [ck.load_kernel(text.replace("; ", f"{remark} "), like="sgemm_tn", name="mine")]
    ]
    assert told[0] == told[1]
