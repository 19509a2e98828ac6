"""The views of the kernel on the workbench, at sizes that take about a second."""

from typing import Any

from cypresskit.draw.display import scripts
from cypresskit.kernels import Kernel

N = 256  # m = n = k, for the chip and its wavefronts

#: By function of ``draw``: the button's label, and arguments besides the kernel.
VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "chip": (f"The chip, at N = {N}", {"sizes": [N]}),
    "register_block": ("Register block", {}),
    "bundles": ("Bundles", {}),
    "texture_fetch": ("Fetches", {}),
    "wavefronts": (f"Wavefronts, at N = {N}", {"n": N, "window": (0, 4000)}),
}


def view_page(mine: Kernel, view: str) -> str:
    """Return a page, as HTML, that plays a view of a kernel. Raises ``KeyError`` for an unknown
    view, ``ImportError`` without Bokeh, and what the view raises for a kernel that it can't show.
    """
    from cypresskit import draw

    _, arguments = VIEWS[view]
    player = getattr(draw, view)(mine, **arguments)
    return player.page(f"<script>{scripts()}</script>")
