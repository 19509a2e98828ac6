"""Convert the package's pictures and the lessons' notebooks to pages of the site.

Pictures play. A result that the reader should predict is folded below an input field. Figures with
controls, which need running Python, show their initial state. Solutions are left out unless
requested.
"""

import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from cypresskit import draw, host, teach
from cypresskit.draw.chart import Chart
from cypresskit.draw.display import Displayable, embed
from cypresskit.draw.predict import BETWEEN
from cypresskit.editing.steps import STEPS
from cypresskit.editing.workbench import STILL_TEXT
from cypresskit.grading import course
from cypresskit.timing import simulate

#: By name of the page: the picture's title in the list, and the function that draws it.
VIEWS: dict[str, tuple[str, Callable[[], Displayable]]] = {
    "explore": ("From the chip to the register, click by click", draw.explore),
    "register_block": (
        "A work-item's 8 x 8 block fills up",
        lambda: draw.register_block("sgemm_tn"),
    ),
    "block_race": ("Blocks race: words per flop", teach.register_block.block_race),
    "texture_fetch": (
        "Lines and clocks of a wavefront's fetches: TN against NN",
        draw.texture_fetch,
    ),
    "lds_transpose": (
        "A tile of A through the LDS, with and without bank conflicts",
        teach.lds.lds_transpose,
    ),
    "lds_pitch": ("The same rows at other pitches: which banks they share", teach.lds.lds_pitch),
    "published": ("A paper's plot, and the model's", lambda: draw.published("nakasato_4")),
    "bundles": ("VLIW bundles of SGEMM", draw.bundles),
    "compilers": ("A loop by two compilers: AMD's way, and LLVM's", draw.compilers),
    "wavefronts": ("Wavefronts of an engine: 25 against 37 registers", draw.wavefronts),
    "chip": ("The chip at work, over time", lambda: draw.chip(simulate("sgemm_tn", 1024))),
    "chip_sizes": ("The chip at work: five products, from N = 2,048 to 128", draw.chip),
    "roofline": ("The roofline, and three published kernels under it", teach.why_blocks.roofline),
    "timeline": (
        "Four and five stages of a pipeline, and their critical paths",
        lambda: draw.timeline(
            host.four_stage(8192, 8192, 2048, host.Machine()),
            host.five_stage(8192, 8192, 2048, host.Machine()),
            names=("four stages", "five stages"),
            rows=("chip 0", "chip 1"),
        ),
    ),
    "digits": (
        "One sum, digit by digit, in three precisions",
        lambda: teach.double_double.digits(*teach.double_double.hilbert(8), (2, 4)),
    ),
}
LOOKS = "light", "dark"

GUESS = re.compile(r"Your guess: (.*?) …(.*?) *\(Run this cell to enter it\.\)")
#: In the static picture of a step's workbench: the link to the page that runs it.
BENCH = re.compile(r"Workbench: (\w+)\.il")
NO_GUESS = re.compile(r" *\(You made no guess\.\)")
FOLDED = {
    "tags": ["hide-output"],
    "mystnb": {
        "code_prompt_show": "The result: guess first, then open this",
        "code_prompt_hide": "The result",
    },
}


def write_pages(folder: Path) -> str:
    """Write a page and an image of each picture.

    Returns
    -------
    str
        HTML links with the images, for a page in a folder next to it.
    """
    from tools import stills  # here: readers of lessons have no Playwright

    folder.mkdir(parents=True, exist_ok=True)
    scripts = '<script src="../_static/players.js" async></script>'
    links = '<a href="../docs/views.html">More pictures</a>'
    made = [make() for _, make in VIEWS.values()]
    playing = [shown.to_html() for shown in made if shown.plays]
    images = [[still.image for still in stills.take(playing, scheme=look)] for look in LOOKS]
    looks = iter(zip(*images))
    cards = []
    for (name, (title, _)), shown in zip(VIEWS.items(), made):
        (folder / f"{name}.html").write_text(shown.page(scripts, links), encoding="utf-8")
        drawn: dict[str, bytes] = {}  # by the image's name; of a look, it has the theme's class
        if isinstance(shown, Chart):
            drawn[f"{name}.svg"] = shown.to_svg().encode()
        else:
            drawn |= zip((f"{name}_{look}.webp" for look in LOOKS), next(looks))
        still = ""
        for image, content in drawn.items():
            (folder / image).write_bytes(content)
            look = next((f' class="only-{look}"' for look in LOOKS if look in image), "")
            still += f'<img{look} src="../pictures/{image}" alt="" loading="lazy">'
        cards.append(f'<a href="../pictures/{name}.html">{still}{escape(title)}</a>')
    return f'<div class="stills">{"".join(cards)}</div>'


def read_lesson(text: str, solutions: bool = False) -> NotebookNode:
    """Return a notebook as the site shows it.

    Links to headings become lowercase, as the site's anchors are.
    """
    small = re.sub(r"(\]\([\w.]*#)([\w-]+)\)", lambda link: f"{link[1]}{link[2].lower()})", text)
    book = nbformat.reads(small, as_version=4)
    left = () if solutions else (*course.NOT_FOR_STUDENTS, "sentence")
    book.cells = [cell for cell in book.cells if course.find_entry(cell).get("part") not in left]
    for cell in book.cells:
        if cell.metadata.get("jupyter", {}).get("outputs_hidden"):
            cell.metadata |= FOLDED
        for output in cell.get("outputs", ()):
            ask_on_a_page(output)
    return book


def field(question: str, after: str) -> str:
    """Return HTML with a question and its choices, or an input field (see guess_page.js).

    ``after`` is the text after the question in a prediction's plain text.
    """
    listed = re.fullmatch(r" \((.*)\)", after)
    choices = listed[1].split(BETWEEN) if listed else []
    data = {"question": question, "choices": choices, "unit": "" if listed else after.strip()}
    words = escape(f"{question}{after}")
    still = f'<div class="cypresskit-still"><p><b>Your guess:</b> {words}</p></div>'
    return embed("guess", json.dumps(data), still)


def ask_on_a_page(output: NotebookNode) -> None:
    """Replace an output that asks for a guess with an input field, and the end of a step's static
    picture with a link. Drop ``NO_GUESS``.
    """
    data = output.get("data", {})
    if (shown := BENCH.match(data.get("text/plain", ""))) and shown[1] in STEPS:
        address = f"../bench/index.html?step={shown[1]}"
        link = f'<a class="step" href="{address}">Edit this kernel in your browser</a>'
        data["text/html"] = data.get("text/html", "").replace(STILL_TEXT, link)
    if match := GUESS.match(output.get("data", {}).get("text/plain", "")):
        output["data"] = {"text/html": field(*match.groups())}
    elif "text" in output:
        output["text"] = NO_GUESS.sub("", output["text"])
