"""The views of the kernel on the workbench, at sizes that take about a second."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cypresskit.kernels import Kernel

N = 256  # m = n = k, for the chip and its wavefronts

#: The names of views, and their buttons' labels.
VIEWS = {
    "chip": f"The chip, at N = {N}",
    "register_block": "Register block",
    "bundles": "Bundles",
    "texture_fetch": "Fetches",
    "wavefronts": f"Wavefronts, at N = {N}",
}


def view_page(mine: Kernel, view: str) -> str:
    """Return a page, as HTML, that plays a view of a kernel. Raises ``KeyError`` for an unknown
    view, ``ImportError`` without Bokeh, and what the view raises for a kernel that it can't show.
    """
    from cypresskit import draw

    makers: dict[str, Callable[[], Any]] = {
        "chip": lambda: draw.chip(mine, [N]),
        "register_block": lambda: draw.register_block(mine),
        "bundles": lambda: draw.bundles(mine.program),
        "texture_fetch": lambda: draw.texture_fetch(mine),
        "wavefronts": lambda: draw.wavefronts(mine, n=N, window=(0, 4000)),
    }
    player = makers[view]()
    with TemporaryDirectory() as folder:
        return player.save(Path(folder, "view.html")).read_text(encoding="utf-8")
