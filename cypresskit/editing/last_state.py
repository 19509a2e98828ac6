"""A still of the workbench: what places without a running kernel show, such as a saved notebook on
a page, or print. An SVG picture of the text's main loop, its bundles, and the figures.
"""

import base64
from collections.abc import Iterator, Mapping
from html import escape

from cypresskit.draw import svg
from cypresskit.draw.theme import SERIES, elided
from cypresskit.editing.pure_answers import Answer

WIDTH, HIGH = 1000, 470
TEXT, GRID, FIGURES = 10, 560, 850  # left edges of the three parts
TOP, LINE = 66, 16  # where they begin, and the height of a line of IL
LINES = 24
LETTERS = 62  # of a line
STYLE = (
    "text{font:12px sans-serif;fill:var(--ink)}.soft{fill:var(--soft)}.code{font:12px monospace}"
    ".head{font-size:18px;font-weight:600}"
    ".speed{font-size:24px;font-weight:600;fill:var(--green)}.bad{fill:var(--wait)}"
)
NOTE = "This is a still. Run the cell to edit the kernel."
AS_IT_WAS = "This is a still of the workbench."


def still_html(name: str, text: str, answers: Mapping[str, Answer], note: str = NOTE) -> str:
    """The still as HTML, with its words for those who can't see it."""
    image = base64.b64encode(still_svg(name, text, answers).encode()).decode()
    return (
        f'<cypresskit-workbench><img alt="{escape(headline(answers))}"'
        f' src="data:image/svg+xml;base64,{image}" style="max-width: 100%"><p>{note}</p>'
        "</cypresskit-workbench>"
    )


def headline(answers: Mapping[str, Answer]) -> str:
    """The picture's sentence."""
    faults = answers.get("text", {}).get("faults")
    if faults:
        return f"Line {faults[0]['line']}: {faults[0]['message']}"
    code = answers.get("code", {})
    if "refusal" in code:
        return code["refusal"]["message"].splitlines()[-1].strip()
    if "verdict" in answers:
        return answers["verdict"]["message"]
    return "It assembles."


def still_svg(name: str, text: str, answers: Mapping[str, Answer]) -> str:
    """The still as SVG, for light pages and dark ones."""
    rows = [row for row in answers.get("code", {}).get("rows", ()) if row["parts"]]
    loop = [row for row in rows if row["loop"]] or rows
    used = sorted({part[2] for row in loop for part in row["parts"]})
    colours = {line: SERIES[n % len(SERIES)] for n, line in enumerate(used)}
    kind = "head" if answers.get("verdict", {}).get("right") else "head bad"
    parts = [
        svg.words(TEXT, 28, elided(headline(answers), 72), kind),
        svg.words(TEXT, TOP - 10, name, "soft"),
        *_speed(answers),
        *_listing(text, colours),
        *_grid(loop, colours),
        *_figures(answers),
    ]
    return svg.picture(parts, (WIDTH, HIGH), style=STYLE, title=name)


def _speed(answers: Mapping[str, Answer]) -> Iterator[str]:
    clocks = answers.get("clocks", {})
    if "gflops" in clocks:
        yield svg.words(FIGURES, 28, f"{clocks['gflops']:,.0f}", "speed")
        yield svg.words(FIGURES, 46, f"Gflop/s at {clocks['at']}", "soft")


def _listing(text: str, colours: Mapping[int, str]) -> Iterator[str]:
    """The lines of IL from the main loop on, each with its colour."""
    lines = text.splitlines()
    first = max(0, min(min(colours, default=1) - 3, len(lines) - LINES))
    for n, line in enumerate(lines[first : first + LINES]):
        y, number = TOP + n * LINE, first + n + 1
        yield svg.words(TEXT, y + 12, f"{number:4}", "code soft")
        if number in colours:
            yield svg.box(TEXT + 36, y + 2, 5, 12, colours[number])
        yield svg.words(TEXT + 48, y + 12, elided(line, LETTERS), "code")


def _grid(rows: list[Answer], colours: Mapping[int, str]) -> Iterator[str]:
    """The bundles of the loop: a box for each slot; a fetch fills its row."""
    if not rows:
        return
    high = min(16.0, (HIGH - TOP - 10) / len(rows))
    yield from (
        svg.words(GRID + 54 * n + 22, TOP - 10, letter, "soft") for n, letter in enumerate("xyzwt")
    )
    for n, row in enumerate(rows):
        for slot, _, line, _ in row["parts"]:
            wide = 50 if row["kind"] == "alu" else 266
            x, y = GRID + 54 * slot, TOP + n * high
            colour = colours.get(line, SERIES[-1])
            yield svg.box(x, y, wide, high - 2, colour, fill_opacity=0.55, rx=2)


def _figures(answers: Mapping[str, Answer]) -> Iterator[str]:
    card, clocks = answers.get("code", {}).get("card"), answers.get("clocks", {})
    if card is None:
        return
    figures = [
        f"{card['loop_bundles']} bundles a turn, least {card['bundles_bound']}",
        f"{card['gprs']} registers, least {card['gprs_bound']}",
        f"{card['wavefronts']} wavefronts an engine",
        f"{card['fetches']} fetches a turn",
    ]
    if "bound" in clocks:
        figures.append(f"bound by {clocks['bound']}")
        figures += [f"{unit} {share:.0%}" for unit, share in clocks.get("busy", {}).items()]
    yield from (svg.words(FIGURES, TOP + 12 + 20 * n, line) for n, line in enumerate(figures))
