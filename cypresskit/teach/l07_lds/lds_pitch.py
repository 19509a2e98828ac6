"""The rows of A in the LDS: the reader chooses a pitch from row to row, or drags rows to banks.

Sixteen work-items request words together, from sixteen rows. All such groups have the same layout,
so sixteen rows give the clocks of a whole iteration. ``lds_pitch.js`` counts them in the browser.
Left out: the other units.
"""

import json

from cypresskit.devices import HD5870
from cypresskit.draw import theme
from cypresskit.draw.display import Displayable, embed, text_form
from cypresskit.draw.scripts import join_modules
from cypresskit.today import clock_ghz, figures, record

PITCHES = range(4, 36)  # that have a bar; any up to what the LDS holds can be typed
CHOICES = 4, 5, 6, 8, 16, 32
TOGETHER = HD5870.lds_items_clock  # work-items served together
MODULES = "draw/shell.js", "draw/guess.js", "teach/l07_lds/lds_pitch.js"
#: Registers the script, which ``picture.js`` calls.
SCRIPT = """<script>(() => {{
{modules}
globalThis.cypresskitFigures ??= {{}}
globalThis.cypresskitFigures.lds_pitch = beginPitch
window.dispatchEvent(new Event("cypresskit-loaded"))
}})()</script>"""


class PitchFigure(Displayable):
    """Rows of A in the banks, which the reader moves. It has its own script, and no frames."""

    title = "Rows of A in the LDS, and the pitch between them"

    def __repr__(self) -> str:
        return f"{self.title}: which rows conflict?"

    def to_html(self) -> str:
        data = json.dumps(_data() | {"title": self.title, "series": theme.SERIES})
        picture = embed("lds_pitch", data, text_form(repr(self)))
        return picture + SCRIPT.format(modules=join_modules(*MODULES))


def lds_pitch() -> PitchFigure:
    """Return the picture in which a reader lays out sixteen rows of A in the LDS banks.

    It shows the words that a store and a load request from each bank, and an iteration's clocks.
    """
    return PitchFigure()


def _data() -> dict:
    """Return the script's data."""
    return {
        "banks": HD5870.lds_banks,
        "groups": 64 // TOGETHER,
        "rows": TOGETHER,
        "pitches": list(PITCHES),
        "choices": CHOICES,
        "most": HD5870.lds_bytes // 256,
        "gpu": record()["device"],
        "today": figures("L1, 32 words"),  # nanoseconds by pitch
        "ghz": clock_ghz(),
    }
