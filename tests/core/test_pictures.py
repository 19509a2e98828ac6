"""Every picture is one that was looked at: each mark at each frame, its place and its text.

``looked_at.toml`` has a sum of each part of each picture, and its short texts. Whoever changes what
is drawn looks at it, and then accepts them: ``pytest tests/core/test_pictures.py --accept``. A sum
can't tell a right place from a wrong one; that is what test_places is for.
"""

import hashlib
import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from bokeh.models import HoverTool
from players import finish, pipeline, recorded, view, whole_numbers
from repository import ROOT

import cypresskit as ck
from cypresskit import draw, host
from cypresskit.draw.chart import NARROW, WIDE, Chart
from cypresskit.draw.explore import Journey
from cypresskit.draw.player import Player
from cypresskit.draw.published_charts import CHARTS
from cypresskit.timing import simulate

FILE = ROOT / "tests/cases/looked_at.toml"
TEXTS = "legend", "opens", "pointing"  # kept whole
STEP = 0.02  # of a figure's units: less than is seen
#: What captions say before anything has happened.
IDLE = re.compile("No fetch has|LDS is empty|Nothing is fetched|at most 0 words| 0 wavefronts are")
KEY = re.compile('class="key (.*?)" style="color:(.*?)"></span>(.*?)<')  # of a legend


def timeline(**runs):
    return draw.timeline(*runs.values(), names=tuple(runs))


def stages(make, **more):
    return make(4096, 4096, 1024, host.Machine(), **more)


LDS = "sgemm_64x64_lds"
PICTURES: dict[str, Callable[[], Player | Chart | Journey]] = {
    "explore": lambda: draw.explore("sgemm_tn", 64),
    "chip": lambda: draw.chip([simulate("sgemm_tn", n) for n in (128, 1024, 2048)]),
    "wavefronts": lambda: draw.wavefronts(n=256),
    "bundles": lambda: draw.bundles("ddgemm_tn_nofma"),
    "bundles with the LDS": lambda: draw.bundles(LDS),
    "compilers": lambda: draw.compilers("sgemm_tn", 64),
    "register_block": lambda: draw.register_block(
        *recorded("sgemm_tn", *whole_numbers(4, (8, 16), (8, 24)), (2, 1), (0, 0))
    ),
    "register_block of a workgroup's": lambda: draw.register_block(
        *recorded("sgemm_64x64", *whole_numbers(4, (64, 8), (8, 64)), 9)
    ),
    "texture_fetch": lambda: draw.texture_fetch("dgemm_nn"),
    "texture_fetch of rows of four": lambda: draw.texture_fetch("sgemm_tn_compute"),
    "lds_transpose": ck.teach.lds.lds_transpose,
    "lds_transpose, rows": lambda: ck.teach.lds.lds_transpose(LDS, f"{LDS}_rows"),
    "split_k": ck.teach.small.split_k,
    "split_k by a vector": lambda: ck.teach.small.split_k("sgemv_n_reduce4"),
    "block_race": ck.teach.register_block.block_race,
    "digits": lambda: view("digits"),
    "timeline": lambda: timeline(one=pipeline(), two=pipeline()),
    "timeline of stages": lambda: timeline(
        four=stages(host.four_stage), five=stages(host.five_stage)
    ),
    "timeline with a CPU": lambda: timeline(hybrid=stages(host.five_stage, cpu_share=0.1)),
    "timeline of round trips": lambda: timeline(
        **{f"N = {n}": host.round_trip_timeline(n, 3e9, 450e9) for n in (600, 2400)}
    ),
    "timeline by hand": lambda: timeline(hand=ck.teach.pipelines.by_hand([2, 3, 1], units=4)),
    "roofline": ck.teach.why_blocks.roofline,
    "climb": draw.climb,
    "product": lambda: draw.product("sgemm_tn", 64),
    "line_chart": lambda: draw.line_chart(
        {"a": {0: 3.25, 1: 5.5, 2: 9.125}, "b": {0: 1, 2: 4}},
        *"xy",
        kind="counted",
        about="Two lines.",
        notes={1: "beside a"},
    ),
    "growing": lambda: ck.teach.build_the_clock.growing(
        {
            "units": {"sgemm_tn": 2300, "sgemm_tn_37": 1950},
            "pauses": {"sgemm_tn": 2100, "sgemm_tn_37": 1700},
            "memory": {"sgemm_tn": 2000, "sgemm_tn_37": 1600},
        }
    ),
} | {f"published, {name}": lambda name=name: draw.published(name) for name in CHARTS}


def rounded(column):
    """A column, its numbers in steps that are seen. Their edges are at no round number, so that
    another processor's last bit is no change.
    """
    values = np.asarray(column)
    if values.dtype.kind not in "bfiu":
        return values.tolist()
    return np.floor(np.nan_to_num(values, nan=-1e9) / STEP + 1 / np.pi).tolist()


def parts(picture):
    """The sums of a picture's parts: of each source, over all frames and with how it is drawn, and
    of each kind of text.
    """
    found = defaultdict[str, list](list)
    if isinstance(picture, Journey):
        for level in picture.levels:
            found[level.name] = [level.hint, {**level.links}, sorted(parts(level.player).items())]
        return sums(found)
    if isinstance(picture, Chart):
        look = re.compile('<style>.*?</style>| onkeydown=".*?"')
        for width in (WIDE, NARROW):
            found[f"{width} pixels"] = [look.sub("", picture.to_svg(width))]
        return sums(found)
    found["captions"] = picture.captions
    found["told"] = [(int(key), words) for key, words in picture.about.items()]
    found["legend"] = [" ".join(key) for key in KEY.findall(picture.html)]
    found["opens"] = [picture.captions[picture.figures[0].tags[0]["opens"]]]
    for figure in picture.figures:
        found["pointing"] += sorted(tool.tooltips for tool in figure.select(HoverTool))
        for renderer in figure.renderers:
            found["order"].append(renderer.data_source.name)
            part = found[f"source {renderer.data_source.name}"]
            look = renderer.glyph.properties_with_values(include_defaults=False)
            part += [re.sub(r"'p\d+'", "", f"{name} {value}") for name, value in look.items()]
            part += [of.palette for of in renderer.glyph.references() if hasattr(of, "palette")]
            part += [rounded(column) for column in renderer.data_source.data.values()]
    for track in picture.tracks:
        part = found[f"source {track.source.name}"]
        part += [track.column, rounded(track.frames), track.text, track.prefix, [*track.names]]
    return sums(found)


def sums(found):
    texts = {name: "; ".join(dict.fromkeys(found.pop(name, []))) for name in TEXTS}
    sums = {name: hashlib.sha256(repr(of).encode()).hexdigest()[:8] for name, of in found.items()}
    return {name: text for name, text in texts.items() if text} | sums


def accept(name, now):
    """Write the sums of a picture."""
    known = tomllib.loads(FILE.read_text()) | {name: now}
    rows = []
    for each in filter(known.__contains__, PICTURES):
        rows += ["", f"[{json.dumps(each)}]"]
        rows += [
            f"{json.dumps(part)} = {json.dumps(of, ensure_ascii=False)}"
            for part, of in sorted(known[each].items())
        ]
    FILE.write_text("\n".join(rows).lstrip() + "\n")


@pytest.mark.parametrize("name", PICTURES)
def test_every_part_of_a_picture_was_looked_at(name, request):
    """And it opens when something happens, and every figure has a name for those who listen."""
    picture = PICTURES[name]()
    now = parts(picture)
    if request.config.getoption("accept"):
        accept(name, now)
    then = tomllib.loads(FILE.read_text())[name]
    assert now == then, "look at it, and if it is as it should be, accept it: see the head"
    if isinstance(picture, Player):
        spec = picture.figures[0].tags[0]
        assert all(spec["labels"]) and not IDLE.search(picture.captions[spec["opens"]])


def test_each_block_of_the_race_is_done_with_its_last_word():
    """For products of 8 x 8 x 8, blocks of b x b fetch 2 * 8**3 / b words."""
    race, n = view("block_race"), 8
    assert [finish(race, f"{b} x {b}") for b in (1, 2, 8)] == [2 * n**3 // b for b in (1, 2, 8)]
