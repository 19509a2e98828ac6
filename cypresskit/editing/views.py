"""The views of the kernel on the workbench, at sizes that take about a second."""

from typing import Any

from cypresskit.draw.display import scripts
from cypresskit.kernels import Kernel

N = 256  # m = n = k, for the chip and its wavefronts

#: The functions of ``draw`` that make the views, and their buttons' labels.
VIEWS = {
    "chip": f"The chip, at N = {N}",
    "register_block": "Register block",
    "bundles": "Bundles",
    "texture_fetch": "Fetches",
    "wavefronts": f"Wavefronts, at N = {N}",
}
#: Their arguments besides the kernel.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "chip": {"sizes": [N]},
    "wavefronts": {"n": N, "window": (0, 4000)},
}


def view_page(mine: Kernel, view: str) -> str:
    """Return a page, as HTML, that plays a view of a kernel. Raises ``KeyError`` for an unknown
    view, ``ImportError`` without Bokeh, and what the view raises for a kernel that it can't show.
    """
    from cypresskit import draw

    if view not in VIEWS:
        raise KeyError(view)
    player = getattr(draw, view)(mine, **ARGUMENTS.get(view, {}))
    return player.page(f"<script>{scripts()}</script>")
