"""Every picture is one that was looked at: each mark at each frame, its place and its text.

``looked_at.toml`` has each picture's short texts, and of each part how much is drawn, from where to
where, and a sum. Whoever changes what is drawn looks at it, and then accepts them: ``pytest
tests/core/test_pictures.py --accept``. These can't tell a right place from a wrong one; that is
what test_places is for.
"""

import hashlib
import re
from collections import defaultdict

import numpy as np
import pytest
from bokeh.models import HoverTool
from case_files import cases, compare_with_case
from charted import Charted
from players import PICTURES, finish, view
from repository import ROOT

from cypresskit.draw.chart import NARROW, WIDE
from cypresskit.draw.explore import Journey
from cypresskit.draw.player import Player

FILE = ROOT / "tests/cases/looked_at.toml"
STEP = 0.02  # of a figure's units: less than is seen
#: What captions say before anything has happened.
IDLE = re.compile("No fetch has|LDS is empty|at most 0 words| 0 wavefronts are")
UNSEEN = re.compile('<style>.*?</style>| onkeydown=".*?"')  # of a chart's SVG
KEY = re.compile('class="key (.*?)" style="color:(.*?)"></span>(.*?)<')  # of a legend


def rounded(column):
    """A column's values, its numbers in steps that are seen. Their edges are at no round number, so
    that another processor's last bit is no change.
    """
    values = np.ravel(column)
    if values.dtype.kind not in "bfiu":
        return [str(value) for value in values]
    return np.floor(values / STEP + 1 / np.pi).tolist()


def ends(values):
    """The first and last of a column's values; of numbers, whose steps are given, the extent."""
    if isinstance(values[0], str):
        return " ... ".join(dict.fromkeys(value[:30] for value in (values[0], values[-1])))
    low, high = (
        limit((step for step in values if step == step), default=np.nan) for limit in (min, max)
    )
    first, last, low, high = (f"{step * STEP:g}" for step in (values[0], values[-1], low, high))
    told = " ... ".join(dict.fromkeys((first, last)))
    return told if {low, high} == {first, last} else f"{told} in {low} to {high}"


def summary(columns):
    """Of each column how many values it has, and their ends; and a sum of all."""
    told = [f"{name} {len(values)}: {ends(values)}" for name, values in columns if values]
    total = hashlib.sha256(repr(columns).encode()).hexdigest()[:8]
    return "; ".join(dict.fromkeys([*told, total]))


def chart_parts(chart):
    """The columns of a chart, and of its dots and lines in pixels, at both widths."""
    for width in (WIDE, NARROW):
        svg, seen = UNSEEN.sub("", chart.to_svg(width)), Charted(chart, width)
        yield f"{width} pixels", "svg", [svg]
        yield f"{width} pixels", "texts", [label.text for label in seen.labels]
        for name, marks in (seen.marks | seen.lines).items():
            for axis, column in zip("xy", zip(*marks)):
                yield f"{width} pixels, {name}", axis, column


def player_parts(player):
    """The columns of a player's sources, over all frames, how these are drawn, and its texts."""
    yield "captions", "text", player.captions
    yield "told", "keys", [*player.about]
    yield "told", "text", [str(text) for text in player.about.values()]
    moving = {
        (track.source, name) for track in player.tracks for name in (track.column, track.text)
    }
    for figure in player.figures:
        for renderer in figure.renderers:
            source = renderer.data_source
            look = renderer.glyph.properties_with_values(include_defaults=False).items()
            look = [re.sub(r"'p\d+'", "", f"{name} {value}") for name, value in look]
            look += [
                mapper.palette
                for mapper in renderer.glyph.references()
                if hasattr(mapper, "palette")
            ]
            yield source.name, type(renderer.glyph).__name__, [str(look)]
            for column, values in source.data.items():
                if (source, column) not in moving:
                    yield source.name, column, values
    for track in player.tracks:
        name, column = track.source.name, f"{track.column} over {len(track.frames)} frames"
        yield name, column, track.frames
        if track.text:
            yield name, track.text, [track.prefix, *track.names]


def describe(picture):
    """What is compared of a picture: its texts, and a summary of each of its parts."""
    if isinstance(picture, Journey):
        return [
            f"{level.name}: {line}"
            for level in picture.levels
            for line in [level.hint, f"links {[*level.links.items()]}", *describe(level.player)]
        ]
    texts, find_parts, columns = {}, chart_parts, defaultdict(list)
    if isinstance(picture, Player):
        find_parts = player_parts
        tips = [tool.tooltips for figure in picture.figures for tool in figure.select(HoverTool)]
        texts = {
            "legend": [" ".join(key) for key in KEY.findall(picture.html)],
            "opens": [picture.captions[picture.figures[0].tags[0]["opens"]]],
            "pointing": sorted({*tips}),
            "order": [r.data_source.name for figure in picture.figures for r in figure.renderers],
        }
    for part, name, column in find_parts(picture):
        columns[part].append((name, rounded(column)))
    told = {part: "; ".join(found) for part, found in texts.items() if found}
    told |= {part: summary(found) for part, found in columns.items()}
    return [f"{part}: {found}" for part, found in told.items()]


@pytest.mark.parametrize("name", PICTURES | cases(FILE.read_text()))
def test_every_part_of_a_picture_was_looked_at(name, request):
    """And it opens when something happens, and every figure has a name for those who listen."""
    picture = PICTURES[name]()
    compare_with_case(request, FILE, name, describe(picture))
    players = [level.player for level in getattr(picture, "levels", ())] or [picture]
    for player in players if picture.plays else []:
        spec = player.figures[0].tags[0]
        assert all(spec["labels"]) and not IDLE.search(player.captions[spec["opens"]])


def test_each_block_of_the_race_is_done_with_its_last_word():
    """For products of 8 x 8 x 8, blocks of b x b fetch 2 * 8**3 / b words."""
    race, n = view("block_race"), 8
    assert [finish(race, f"{b} x {b}") for b in (1, 2, 8)] == [2 * n**3 // b for b in (1, 2, 8)]
