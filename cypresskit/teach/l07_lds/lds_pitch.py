"""The rows of A in the LDS: the reader chooses a pitch from row to row, or drags rows to banks.

Sixteen work-items request words together, from sixteen rows. All such groups have the same layout,
so sixteen rows give the clocks of a whole iteration. ``lds_pitch.js`` counts them in the browser.
Left out: the other units.
"""

from cypresskit.devices import HD5870
from cypresskit.draw import svg, theme
from cypresskit.draw.interactive_figure import InteractiveFigure
from cypresskit.today import clock_ghz, figures, record

PITCHES = range(4, 36)  # that have a bar; any up to what the LDS holds can be typed
CHOICES = 4, 5, 6, 8, 16, 32
TOGETHER, ROW = HD5870.lds_items_clock, 4  # work-items served together, words of a row


def lds_pitch() -> InteractiveFigure:
    """Return the picture in which a reader lays out sixteen rows of A in the LDS banks.

    It shows the words that a store and a load request from each bank, and an iteration's clocks.
    """
    data = {
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
    title = "Rows of A in the LDS, and the pitch between them"
    keys = (
        "up and down choose a row, left and right move it by a bank, R lays all rows out by the"
        " pitch"
    )
    return InteractiveFigure(
        title=title,
        keys=keys,
        text=f"{title}: which rows conflict?",
        kind="lds_pitch",
        modules=("teach/l07_lds/lds_pitch.js",),
        begin="beginPitch",
        marks=_marks(),
        size=(1100, 400),
        data=data,
    )


def _marks() -> list[str]:
    """Return the SVG of the static image: the banks of sixteen rows at a pitch of 4 words."""
    boxes = [
        (row, (ROW * row + word) % HD5870.lds_banks)
        for row in range(TOGETHER)
        for word in range(ROW)
    ]
    return [
        svg.text(8, 22, "32 banks, and 16 rows of A at a pitch of 4"),
        *(svg.box(8 + 34 * n, 36, 31, 354, "var(--faint)") for n in range(HD5870.lds_banks)),
        *(
            svg.box(9 + 34 * bank, 40 + 22 * row, 29, 18, theme.SERIES[row % 8])
            for row, bank in boxes
        ),
    ]
