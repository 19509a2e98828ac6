"""A still of the workbench: what places without a running kernel show, such as a saved notebook on
a page, or print. An SVG picture of the text's main loop, its bundles, and the figures.
"""

import base64
from collections.abc import Iterator, Mapping
from html import escape

from cypresskit.editing.pure_answers import Answer

WIDTH, HIGH = 1000, 470
TEXT, GRID, FIGURES = 10, 560, 850  # left edges of the three parts
TOP, LINE = 66, 16  # where they begin, and the height of a line of IL
LINES = 24
LETTERS = 62  # of a line
#: Of lines, as SERIES in draw/theme.py.
COLOURS = "#0072b2 #56b4e9 #009e73 #e0cf30 #e69f00 #d55e00 #cc79a7 #909090".split()
STYLE = (
    "text{font:12px sans-serif;fill:#1b1b1f}.soft{fill:#5c5c66}.code{font:12px monospace}"
    ".head{font-size:18px;font-weight:600}.speed{font-size:24px;font-weight:600;fill:#00694b}"
    ".bad{fill:#d2321e}rect.page{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#ececf1}.soft{fill:#b0b0bc}.speed{fill:#35c99a}"
    ".bad{fill:#ff7a66}rect.page{fill:#17171b}}"
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
    colours = {line: COLOURS[n % len(COLOURS)] for n, line in enumerate(used)}
    kind = "head" if answers.get("verdict", {}).get("right") else "head bad"
    parts = [
        f'<rect class="page" width="{WIDTH}" height="{HIGH}"/>',
        _words(TEXT, 28, _cut(headline(answers), 72), kind),
        _words(TEXT, TOP - 10, name, "soft"),
        *_speed(answers),
        *_listing(text, colours),
        *_grid(loop, colours),
        *_figures(answers),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HIGH}" width="{WIDTH}"'
        f' height="{HIGH}"><style>{STYLE}</style>{"".join(parts)}</svg>'
    )


def _words(x: float, y: float, words: object, kind: str = "") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" class="{kind}" xml:space="preserve">{escape(str(words))}</text>'
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _speed(answers: Mapping[str, Answer]) -> Iterator[str]:
    clocks = answers.get("clocks", {})
    if "gflops" in clocks:
        yield _words(FIGURES, 28, f"{clocks['gflops']:,.0f}", "speed")
        yield _words(FIGURES, 46, f"Gflop/s at {clocks['at']}", "soft")


def _listing(text: str, colours: Mapping[int, str]) -> Iterator[str]:
    """The lines of IL from the main loop on, each with its colour."""
    lines = text.splitlines()
    first = max(0, min(min(colours, default=1) - 3, len(lines) - LINES))
    for n, line in enumerate(lines[first : first + LINES]):
        y, number = TOP + n * LINE, first + n + 1
        yield _words(TEXT, y + 12, f"{number:4}", "code soft")
        if number in colours:
            chip = f'x="{TEXT + 36}" y="{y + 2}" width="5" height="12"'
            yield f'<rect {chip} fill="{colours[number]}"/>'
        yield _words(TEXT + 48, y + 12, _cut(line, LETTERS), "code")


def _grid(rows: list[Answer], colours: Mapping[int, str]) -> Iterator[str]:
    """The bundles of the loop: a box for each slot; a fetch fills its row."""
    if not rows:
        return
    high = min(16.0, (HIGH - TOP - 10) / len(rows))
    yield from (
        _words(GRID + 54 * n + 22, TOP - 10, letter, "soft") for n, letter in enumerate("xyzwt")
    )
    for n, row in enumerate(rows):
        for slot, _, line, _ in row["parts"]:
            wide = 50 if row["kind"] == "alu" else 266
            x, y = GRID + 54 * slot, TOP + n * high
            look = f'fill="{colours.get(line, "#909090")}" fill-opacity="0.55" rx="2"'
            yield f'<rect x="{x}" y="{y:.1f}" width="{wide}" height="{high - 2:.1f}" {look}/>'


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
    yield from (_words(FIGURES, TOP + 12 + 20 * n, line) for n, line in enumerate(figures))
