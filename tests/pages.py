"""Pages with players: the views that the tests look at, each built once, and what looks at them:
see pages.js.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import nbformat
import numpy as np
import pytest
from browsing import JS

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.player import Player
from cypresskit.host import Task, run_tasks
from cypresskit.teach import l01_register_block as register_block
from cypresskit.timing import simulate
from tools import bench_page, gallery, workbook

LAUNCH = "import cypresskit as ck; print(ck.simulate('sgemm_tn', {}).clocks)"


def make_python_site(folder: Path, lessons: Sequence[Path] = ()) -> tuple[Path, str]:
    """Write a site of a first page and of the two parts that run Python, of which the workbook has
    the results of the launches in ``lessons``, or else of one. Return its folder, and why it has
    no such parts, or "".
    """
    launching = folder / "launch.ipynb"
    cell = nbformat.v4.new_code_cell(LAUNCH.format(256), id="launch")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), launching)
    site = folder / "site"
    site.mkdir()
    (site / "index.html").write_text("<!DOCTYPE html><title>The site</title>")
    try:
        bench_page.write_page(site / "bench")
        workbook.write_workbook(site / "workbook", lessons or [launching])
    except bench_page.NotAvailable as why:
        return site, str(why)
    return site, ""


def require(made: tuple[Path, str]) -> Path:
    """The folder of that site. Without Python for browsers the test is skipped."""
    folder, problem = made
    if problem:
        pytest.skip(f"a page can't be made: {problem}")
    return folder


@cache
def reports():
    return [simulate("sgemm_tn", n) for n in (128, 512)]


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


def recorded(kernel: str, a, b, *items) -> list[ck.Recording]:
    """What work-items do in one launch of a kernel of the catalogue."""
    launched, recorders = ck.kernels[kernel], [ck.Recorder(item) for item in items]
    ck.launch(launched.program, **launched.arguments(a, b, None, 1, 0), observers=recorders)
    return [recorder.recording for recorder in recorders]


def whole_numbers(seed: int, *shapes) -> list[np.ndarray]:
    """Matrices of small whole numbers, in single precision, whose sums are exact."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes]


VIEWS = {
    "register_block": lambda: draw.register_block("sgemm_tn"),
    "texture_fetch": draw.texture_fetch,
    "lds_transpose": lambda: ck.teach.lds.lds_transpose("sgemm_64x64_lds", "sgemm_64x64_lds_rows"),
    "bundles": lambda: draw.bundles("sgemm_tn"),
    "wavefronts": lambda: draw.wavefronts(*reports()[1:]),
    "chip": lambda: draw.chip(reports()[1]),
    "chip_sizes": lambda: draw.chip(reports()),
    "timeline": lambda: draw.timeline(pipeline(), pipeline(), names=("one", "two")),
    "block_race": lambda: register_block.block_race((1, 2, 8)),
    "timeline_default": gallery.VIEWS["timeline"][1],
    "digits": lambda: ck.teach.double_double.digits(*ck.teach.double_double.hilbert(8), (2, 4)),
}
#: As a lesson draws them, where that differs.
IN_LESSONS = {
    "bundles": lambda: draw.bundles("sgemm_64x64_lds"),
    "block_race": register_block.block_race,
    "wavefronts": lambda: draw.wavefronts(n=256),
    "lds_transpose": ck.teach.lds.lds_transpose,
}


@cache
def view(name: str, in_lesson: bool = False) -> Player:
    return (VIEWS | IN_LESSONS if in_lesson else VIEWS)[name]()


def at(page, frame: int | None = None, source: str = "") -> dict:
    """What the player shows at a frame."""
    return page.evaluate(JS.at, [frame, source])


def hold_clock(page) -> None:
    """Stop the page's clock. It goes on by `page.clock.run_for`, however long that takes here. For
    tests that ask for ``clock``.
    """
    from playwright.sync_api import Error  # not at the top: the core's tests run without it

    for ahead in 0.2, 0.5, 1, 2, 4:  # seconds: on a busy computer the moment may be over already
        try:
            page.clock.pause_at(page.evaluate("Date.now()") / 1000 + ahead)
            return
        except Error as error:
            if "past" not in str(error):
                raise
    raise AssertionError("this page's clock runs away from the test")


#: A rule that the checker has, and doesn't follow by itself: a fold is called what it shows.
MISNAMED = "label-content-name-mismatch"


def axe_finds(page, *rules: str) -> list:
    """What a checker of accessibility, or some rules of it, finds serious on the page, and goes on
    to find: on a busy computer the colors may still be those of the theme before.
    """
    axe, serious = pytest.importorskip("axe_playwright_python.sync_playwright").Axe(), []
    options = {"runOnly": rules} if rules else {"rules": {MISNAMED: {"enabled": True}}}
    for _ in range(3):
        found = axe.run(page, options=options).response["violations"]
        serious = [(v["id"], v["help"]) for v in found if v["impact"] in ("serious", "critical")]
        if not serious:
            break
        page.wait_for_timeout(300)
    return serious


#: The screens on which everybody can read a picture, and in which look; and a page.
FOR_PICTURES = (1366, 768, "light"), (1366, 768, "dark"), (390, 844, "light")
SCREENS = *FOR_PICTURES, (320, 640, "dark")


def unreadable(page, show=lambda: None, screens=SCREENS) -> list:
    """What keeps somebody from reading a page that ``show`` shows on each of the screens: it
    scrolls sideways, a script fails, or what a checker of accessibility finds.
    """
    found = []

    def note(error) -> None:
        found.append(str(error))

    page.on("pageerror", note)
    for width, height, look in screens:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=look)
        show()
        wide = page.evaluate("document.documentElement.scrollWidth")
        found += [f"{wide} of {width} pixels"] * (wide > width) + axe_finds(page)
    page.remove_listener("pageerror", note)
    return found


def play_all(page) -> None:
    """Go to each picture of the first page, and wait until it plays."""
    for stage in page.locator("figure .stage").all():
        stage.scroll_into_view_if_needed()
        stage.locator("cypresskit-picture > [data-ready]").wait_for(state="attached")


#: The letters of an element and of all inside it have no color, or have it again.
LETTERS = """(it, color) => [it, ...it.querySelectorAll("*")].forEach((one) =>
  one.style.setProperty("-webkit-text-fill-color", color))"""


def painted(said) -> bool:
    """Whether an element's words are seen: without their letters, the same place looks otherwise.
    The text of a node is there even if nothing shows it.
    """
    if not said.is_visible() or not said.inner_text().strip():
        return False
    before = said.screenshot(animations="disabled")
    said.evaluate(LETTERS, "transparent")
    after = said.screenshot(animations="disabled")
    said.evaluate(LETTERS, "")
    return before != after


def frames(player: Player, name: str, column: str) -> np.ndarray:
    """What a source shows over the frames."""
    return next(t.frames for t in player.tracks if t.source.name == name and t.column == column)


def finish(player: Player, name: str) -> int:
    """The clock at which a racing variant is shown as done."""
    return int(frames(player, f"finish {name}", "value").max())


def drawn(player: Player, name: str) -> dict:
    """The data of a source."""
    return next(m for m in player.figures[0].references() if m.name == name).data


def record(name: str, item=(1, 1), iterations: int = 3, integers: bool = False):
    """A recorded run of a kernel of the catalogue; A and B as stored, and the recording."""
    kernel = ck.kernels[name]
    rng = np.random.default_rng(3)
    (rows, columns), k = kernel.convention.multiple, kernel.k_step * iterations
    m, n = 2 * rows, 3 * columns
    shapes = ((k, m) if kernel.trans_a else (m, k)), (k, n)
    draw = (lambda s: rng.integers(-4, 5, s)) if integers else rng.standard_normal
    a, b = (draw(shape).astype(kernel.dtype) for shape in shapes)
    return kernel, a, b, recorded(name, a, b, item)[0]
