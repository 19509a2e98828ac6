"""Play it: the views of a step, made of the kernel that stands on the workbench, at sizes that
answer in a second. ``ck.draw`` is imported when one is asked for.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cypresskit.kernels import Kernel

N = 256  # at which the chip and its wavefronts are shown

#: The names of views, and what their buttons say.
VIEWS = {
    "chip": f"The chip, at N = {N}",
    "register_block": "Register block",
    "bundles": "Bundles",
    "texture_fetch": "Fetches",
    "wavefronts": f"Wavefronts, at N = {N}",
}


def view_page(mine: Kernel, view: str) -> str:
    """A page that plays a view of a kernel. Raises ``KeyError`` for a view that isn't known, and
    what the view raises for a kernel that it can't show; ``ImportError`` without Bokeh.
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
