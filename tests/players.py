"""Pictures that tests look at. ``view`` draws each once."""

from collections import namedtuple
from functools import cache, partial

import hostile
import numpy as np
from products import whole_numbers

import cypresskit as ck
from cypresskit import draw, host
from cypresskit.draw import published_charts
from cypresskit.host import Task, run_tasks
from cypresskit.teach import l01_register_block as register_block
from cypresskit.timing import simulate

#: A of 16 x 8, transposed, and B of 8 x 24: two by three blocks of C.
A_AND_B = whole_numbers(4, (8, 16), (8, 24))


@cache
def reports():
    return [simulate("sgemm_tn", n) for n in (128, 512)]


def two_pipelines():
    """Pipelines of two chips that compute one product, all of whose resources are drawn."""
    runs = [make(8192, 8192, 2048, host.Machine()) for make in (host.four_stage, host.five_stage)]
    return draw.timeline(*runs, names=("four stages", "five stages"))


@cache
def pipeline():
    """Three tasks on a chip, each behind a copy; the bus is shared with a second queue."""
    tasks = []
    for n in range(3):
        about = {"matrix": "C", "place": (n,), "chip": 0, "label": str(n)}
        a, c = {f"a{n}": "a"}, {f"c{n}": "c"}
        tasks += [
            Task(f"load2 {n}", "load2", "DMA 0", {"bus": 2.0}, {}, a, 2e6, **about),
            Task(f"mult {n}", "mult", "chip 0", {"chip 0": 3.0}, a, c, **about),
            Task(f"store {n}", "store", "thread 0", {"bus": 1.0}, c, {}, 1e6, **about),
        ]
    return run_tasks(tasks, {"chip 0": 100.0, "bus": 100.0}, 1e9)


def two_lines():
    return draw.line_chart(
        {"a": {0: 3.25, 1: 5.5, 2: 9.125}, "b": {0: 1, 2: 4}},
        *"xy",
        kind="counted",
        about="Two lines.",
        notes={("a", 1): "beside a"},
    )


def growing():
    stages = {
        "units": {"sgemm_tn": 2300, "sgemm_tn_37": 1950},
        "pauses": {"sgemm_tn": 2100, "sgemm_tn_37": 1700},
        "memory": {"sgemm_tn": 2000, "sgemm_tn_37": 1600},
    }
    return ck.teach.build_the_clock.growing(stages)


def peak_chart():
    speeds, title = {"1 x 1": 55.0, "8 x 8": 1800.0}, "From {} to {} %, and from {} to {} %"
    return ck.teach.what_is_left.peak_chart("block", speeds, "a block", "N = 8", title, (1, 8))


def record_launch(kernel, a, b, *items):
    """What work-items do in one launch of a kernel of the catalog."""
    launched, recorders = ck.kernels[kernel], [ck.Recorder(item) for item in items]
    ck.launch(launched.program, **launched.arguments(a, b, None, 1, 0), observers=recorders)
    return [recorder.recording for recorder in recorders]


#: A view as tests make it: an example; of a hostile text, if a reader's can get in otherwise than
#: as a kernel's name; a kernel of the catalog, and what makes the view of a kernel, if it takes
#: one; and its kind, of a chart whether it has "curves" or "dots".
View = namedtuple("View", "make, of_text, own, kind", defaults=(None, "player"))
#: Every view, and further examples. Those of ``explore`` are views above, of the same texts.
VIEWS = {
    "register_block": View(
        lambda: draw.register_block(*record_launch("sgemm_tn", *A_AND_B, (2, 1), (0, 0))),
        None,
        ("sgemm_nn", draw.register_block),
    ),
    "texture_fetch": View(
        draw.texture_fetch,
        None,
        ("sgemm_tt", draw.texture_fetch),
    ),
    "lds_transpose": View(
        lambda: ck.teach.lds.lds_transpose("sgemm_64x64_lds", "sgemm_64x64_lds_rows"),
        None,
        ("sgemm_64x64_lds", ck.teach.lds.lds_transpose),
    ),
    "bundles": View(
        lambda: draw.bundles("sgemm_tn"),
        lambda text: draw.bundles(ck.compile(hostile.commented(text))),
        ("sgemm_tn", draw.bundles),
    ),
    "wavefronts": View(
        lambda: draw.wavefronts(*reports()[1:]),
        lambda text: draw.wavefronts(hostile.report_called(text, reports()[1])),
        ("sgemm_tn", lambda kernel: draw.wavefronts(kernel, n=512, window=(0, 3000))),
    ),
    "chip": View(
        lambda: draw.chip(reports()[1]),
        lambda text: draw.chip(hostile.report_called(text, reports()[1])),
        ("dgemm_tn", lambda kernel: draw.chip(kernel, (256,))),
    ),
    "chip_sizes": View(lambda: draw.chip(reports()), None),
    "timeline": View(
        lambda: draw.timeline(pipeline(), pipeline(), names=("one", "two")),
        lambda text: draw.timeline(hostile.timeline(text), names=(text,)),
    ),
    "timeline_default": View(two_pipelines, None),
    "block_race": View(lambda: register_block.block_race((1, 2, 8)), None),
    "digits": View(
        lambda: ck.teach.double_double.digits(*ck.teach.double_double.hilbert(8), (2, 4)), None
    ),
    "explore": View(
        lambda: draw.explore("sgemm_tn", 64),
        None,
        ("sgemm_nn", lambda kernel: draw.explore(kernel, 128)),
        "journey",
    ),
    "lds_pitch": View(ck.teach.lds.lds_pitch, None, kind="toy"),
    "climb": View(draw.climb, None, kind="dots"),
    "compilers": View(
        partial(draw.compilers, "sgemm_tn", 64),
        None,
        ("sgemm_tn", lambda kernel: draw.compilers(kernel, 256)),
        "curves",
    ),
    "roofline": View(ck.teach.why_blocks.roofline, None, kind="dots"),
    "growing": View(growing, None, kind="dots"),
    "peak_chart": View(peak_chart, None, kind="curves"),
    "line_chart": View(two_lines, hostile.line_chart, kind="curves"),
}
VIEWS |= {
    f"published, {name}": View(partial(draw.published, name), None, kind="curves")
    for name in published_charts.CHARTS
}


def makers(*kinds):
    """What makes the views of these kinds, by name."""
    return {name: view.make for name, view in VIEWS.items() if view.kind in kinds}


PLAYERS, CHARTS = makers("player"), makers("curves", "dots")


def timeline(**runs):
    return draw.timeline(*runs.values(), names=tuple(runs))


def stages(make, **more):
    return make(4096, 4096, 1024, host.Machine(), **more)


#: Every picture as it was looked at: see test_pictures. No name stands for another player above.
PICTURES = {
    **{name: PLAYERS[name] for name in ("register_block", "lds_transpose", "digits", "timeline")},
    "explore": VIEWS["explore"].make,
    "explore a short launch": lambda: draw.explore("sgemm_tn", 8),
    "chip at three sizes": lambda: draw.chip([simulate("sgemm_tn", n) for n in (128, 1024, 2048)]),
    "wavefronts of one round": partial(draw.wavefronts, n=256),
    "bundles of double-doubles": lambda: draw.bundles("ddgemm_tn_nofma"),
    "bundles with the LDS": lambda: draw.bundles("sgemm_64x64_lds"),
    "register_block of a workgroup's": lambda: draw.register_block(
        *record_launch("sgemm_64x64", *whole_numbers(4, (64, 8), (8, 64)), 9)
    ),
    "texture_fetch of doubles": lambda: draw.texture_fetch("dgemm_nn"),
    "texture_fetch of rows of four": lambda: draw.texture_fetch("sgemm_tn_compute"),
    "lds_transpose in its lesson": ck.teach.lds.lds_transpose,
    "block_race in its lesson": ck.teach.register_block.block_race,
    "timeline of stages": lambda: timeline(
        four=stages(host.four_stage), five=stages(host.five_stage)
    ),
    "timeline with a CPU": lambda: timeline(hybrid=stages(host.five_stage, cpu_share=0.1)),
    "timeline of round trips": lambda: timeline(
        **{f"N = {n}": host.round_trip_timeline(n, 3e9, 450e9) for n in (600, 2400)}
    ),
    "timeline by hand": lambda: timeline(hand=ck.teach.pipelines.by_hand([2, 3, 1], units=4)),
} | CHARTS


@cache
def view(name):
    return (PLAYERS | PICTURES)[name]()


def frames(player, name, column):
    """What a source shows over the frames."""
    return next(t.frames for t in player.tracks if t.source.name == name and t.column == column)


def finish(player, name):
    """The clock at which a racing variant is shown as done."""
    return int(frames(player, f"finish {name}", "value").max())


def record(name, item=(1, 1)):
    """A recorded run of a kernel of the catalog; A and B as stored, and the recording."""
    kernel = ck.kernels[name]
    rng = np.random.default_rng(3)
    (rows, columns), k = kernel.convention.multiple, kernel.k_step * 3
    m, n = 2 * rows, 3 * columns
    shapes = ((k, m) if kernel.trans_a else (m, k)), (k, n)
    a, b = (rng.standard_normal(shape).astype(kernel.dtype) for shape in shapes)
    return kernel, a, b, record_launch(name, a, b, item)[0]
