"""Make and run the lessons' notebooks: from one source per lesson, a student's and a solved one.

``python -m tools.book notebooks [01 ...]`` does it; notebooks/README.md describes the sources. It
also makes the glossary, of the words in CONTRIBUTING.md. The outputs of the run are saved, except
for those that differ each time: notices, and the cell that loads the players' scripts. Pictures get
an image, which is seen where no script runs. Markdown cells can't be edited, since that would
reveal folded solutions, and checks can't be deleted. A student's checks have no saved outputs.

The metadata of a cell state its role in an exercise under the key ``METADATA_KEY``, for grading,
handouts and the site: the number of the ``exercise``, and the ``part``, with further values:

    "title"      the exercise's ``title``
    "answer"     the cell for the answer; of a workbench, the climb's ``step``
    "check"      the ``check`` as it is called, ``ck.teach.bus.check_seconds(seconds)``
    "solution"   the folded solution
    "question"   the ``question`` that asks for an explanation
    "sentence"   the cell for the explanation, ``ck.teach.explanation(...)``
    "good"       the folded ``good`` explanation
"""

import argparse
import hashlib
import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbformat import NotebookNode

from cypresskit.chip.numba_native import NOTICE
from cypresskit.cli.ahead import CELL_SECONDS
from cypresskit.editing import legend
from cypresskit.grading.course import METADATA_KEY
from cypresskit.tables import markdown
from cypresskit.teach.explanations import explanation_cell

SOLUTION = re.compile(
    r"^[ \t]*### BEGIN SOLUTION\n(.*?)^[ \t]*### END SOLUTION(?:\n|\Z)", re.M | re.S
)
# Given code that only the student's notebook has
GIVEN = re.compile(r"^[ \t]*### BEGIN GIVEN\n(.*?)^[ \t]*### END GIVEN(?:\n|\Z)", re.M | re.S)
FOLD = "<!-- solution -->"
TITLE = re.compile(r"## (?:Exercise (\d+): (.+))?")
CHECK = re.compile(r"^(?:\w+ = )?(ck\.teach\.\w+\.check_\w+\(.*\))\s*\Z", re.M | re.S)
STEP = re.compile(r'^\w+ = ck\.workbench\(.*\bstep="([^"]+)"', re.M)
WHY = re.compile(r"<!-- why: (.*?\?)\s+(.*?)\s+-->", re.S)  # question, good sentence
ASKS = "**In one sentence:** "
GOOD = "<details><summary>A good sentence</summary>\n\n{}\n\n</details>"
# The beginning of a Markdown cell
APART = re.compile(r"\n(?=## |<!-- (?:why: |solution)|\*\*What you will do)")
GLOSSARY = "glossary.ipynb"  # beside the lessons, which link to it
IL_MINUTE = "<!-- il in a minute -->"
WORDS = re.compile(r"(?s)\n## Words\n.*?(\| word .*?)\n\n")  # of CONTRIBUTING.md
PREDICT = "ck.draw.predict("
LOADER = "nbval-ignore-output"
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read(path: Path) -> NotebookNode:
    """Return a lesson's source as a notebook, with its solution markers.

    Raises
    ------
    ValueError
        If BEGIN and END markers don't pair.
    """
    import jupytext

    cells = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md").cells
    for cell in cells:
        left = GIVEN.sub("", SOLUTION.sub("", cell.source))
        for word in ("SOLUTION", "GIVEN"):
            if f"BEGIN {word}" in left or f"END {word}" in left:
                raise ValueError(
                    f"{path.name}: in this cell BEGIN {word} and END {word} don't"
                    f" pair:\n{cell.source}"
                )
    pieces = []
    for cell in cells:
        parts = APART.split(cell.source) if cell.cell_type == "markdown" else [cell.source]
        tags = {name: value for name, value in cell.metadata.items() if name == "tags"}
        pieces += [_cell(cell.cell_type, part, tags) for part in parts]
    number = 0
    for cell in pieces:
        if IL_MINUTE in cell.source:
            cell.source = cell.source.replace(IL_MINUTE, il_minute())
        title = TITLE.match(cell.source)
        if title and cell.cell_type == "markdown":
            number = int(title[1] or 0)
        if entry := _entry(cell):
            cell.metadata[METADATA_KEY] = ({"exercise": number} if number else {}) | entry
    return _notebook(pieces)


def glossary() -> NotebookNode:
    """Return the notebook to which all lessons link: the words of CONTRIBUTING.md."""
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    words = WORDS.search(text)
    assert words, "CONTRIBUTING.md has lost its glossary"
    return _notebook([_cell("markdown", f"# Glossary\n\n{words[1]}", {})])


def il_minute() -> str:
    """Return the table of the workbench's card "IL in a minute"."""
    return markdown(("you see", "it means"), legend.TABLES["il_minute"])


def _entry(cell: NotebookNode) -> dict:
    """Return the role of a source's cell in its exercise; empty if it has none."""
    text = cell.source
    if cell.cell_type == "code":
        if check := CHECK.search(text):
            return {"part": "check", "check": check[1]}
        if step := STEP.search(text):
            return {"part": "answer", "step": step[1]}
        return {"part": "answer"} if SOLUTION.search(text) else {}
    title = TITLE.match(text)
    if title and title[1]:
        return {"part": "title", "title": title[2]}
    if why := WHY.search(text):
        question, good = (" ".join(part.split()) for part in why.groups())
        return {"part": "question", "question": question, "good": good}
    if text.startswith(FOLD):
        return {"part": "solution"}
    return {}


def student(source: NotebookNode) -> NotebookNode:
    """Return the student's notebook:

    solutions are left out, or folded where the source states it.
    """
    return _made(source, solved=False)


def solved(source: NotebookNode) -> NotebookNode:
    """Return the solved notebook, with solutions and explanations filled in."""
    return _made(source, solved=True)


def _made(source: NotebookNode, solved: bool) -> NotebookNode:
    """Return the notebook with solutions, or with the given code in their place.

    A ``FOLD`` shows the solutions between it and the previous one.
    """
    cells: list[NotebookNode] = []
    above = ""
    for cell in source.cells:
        text, part = cell.source, cell.metadata.get(METADATA_KEY, {}).get("part")
        if part == "question":
            cells += _asked(cell, solved)
            continue
        if cell.cell_type == "code":
            above += "".join(SOLUTION.findall(text))
        if part == "solution":
            fold = (
                f"<details><summary>Solution</summary>\n\n```\n{above.rstrip()}\n```\n\n</details>"
            )
            text, above = text.replace(FOLD, fold), ""
        text = _solution(text) if solved else GIVEN.sub(r"\1", SOLUTION.sub("", text))
        metadata = dict(cell.metadata)
        if part == "check" and not solved:
            metadata["tags"] = [LOADER]  # its output isn't saved
        cells.append(_cell(cell.cell_type, text, metadata))
    return _notebook(cells)


def _solution(text: str) -> str:
    """Return the source of a cell with the solution filled in."""
    return GIVEN.sub("", SOLUTION.sub(r"\1", text))


def _asked(cell: NotebookNode, solved: bool) -> Iterator[NotebookNode]:
    """Yield the cells of a question, its explanation and a good one; then the cell's rest."""
    entry = cell.metadata[METADATA_KEY]
    question, good = entry["question"], entry["good"]
    exercise = {"exercise": entry["exercise"]}
    asks = exercise | {"part": "question", "question": question}
    yield _cell("markdown", ASKS + question, {METADATA_KEY: asks})
    written = textwrap.fill(good, 100) if solved else ""
    yield _cell("code", explanation_cell(written), {METADATA_KEY: exercise | {"part": "sentence"}})
    yield _cell(
        "markdown", GOOD.format(good), {METADATA_KEY: exercise | {"part": "good", "good": good}}
    )
    if rest := WHY.sub("", cell.source).strip():
        yield _cell("markdown", rest, {})


def execute(notebook: NotebookNode) -> None:
    """Run a notebook from top to bottom in a temporary folder, and store its outputs in it."""
    from nbclient import NotebookClient

    options: dict = {
        "timeout": CELL_SECONDS,
        "kernel_name": "python3",
        "coalesce_streams": True,
        "record_timing": False,
    }
    with TemporaryDirectory() as where:
        NotebookClient(notebook, resources={"metadata": {"path": where}}, **options).execute()
    # The same metadata as JupyterLab's, so that an opened lesson doesn't count as changed
    language = notebook.metadata.language_info
    notebook.metadata = NotebookNode(METADATA | {"language_info": language})
    for cell in notebook.cells:
        if "outputs" in cell:
            loads = LOADER in cell.metadata.get("tags", ())
            cell.outputs = [] if loads else [output for output in cell.outputs if lasting(output)]


def lasting(output: NotebookNode) -> bool:
    """Return whether to save an output, which isn't the notice on compiling."""
    text: str = output.get("text", "")
    return not text.startswith(NOTICE)


def write(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook in JupyterLab's format:

    indented by one space per level, with sorted keys.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def sources(book: Path, chosen: list[str] | None = None) -> list[Path]:
    """Return the sources whose names begin with one of ``chosen``, by default all."""
    return [
        p
        for p in sorted((book / "source").glob("*.md"))
        if not chosen or p.name.startswith(tuple(chosen))
    ]


def _cell(kind: str, text: str, metadata: dict) -> NotebookNode:
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return make(text.rstrip("\n"), metadata=dict(metadata), id="unnamed")


def _notebook(cells: list[NotebookNode]) -> NotebookNode:
    """Return a notebook of these cells, with all metadata.

    Cell ids are hashes of the cells' sources, so they change only with these.
    """
    seen: dict[str, int] = {}
    for cell in cells:
        name = hashlib.sha1(cell.source.encode()).hexdigest()[:8]
        seen[name] = seen.get(name, 0) + 1
        cell.id = name if seen[name] == 1 else f"{name}-{seen[name]}"
    for asks, cell in pairwise(cells):
        answers = PREDICT in asks.source and PREDICT not in cell.source
        if answers or "folded" in cell.metadata.get("tags", ()):
            cell.metadata |= {"jupyter": {"outputs_hidden": True}, "collapsed": True}
    for cell in cells:
        part = cell.metadata.get(METADATA_KEY, {}).get("part")
        if cell.cell_type == "markdown":
            cell.metadata["editable"] = False
        elif part in ("check", "sentence"):
            cell.metadata["deletable"] = False
    shown = slides([(cell.cell_type, cell.source) for cell in cells])
    for number, cell in enumerate(cells):
        cell.metadata["slideshow"] = {"slide_type": shown.get(number, "skip")}
    return nbformat.v4.new_notebook(cells=cells, metadata=METADATA)


def slides(cells: list[tuple[str, str]]) -> dict[int, str]:
    """Return the slide type of the cells on nbconvert's eight slides, by cell number.

    The slides are: title, case by hand, picture, its questions, a prediction, its result, what was
    measured, summary.
    """

    def find(words: str, kind: str = "markdown", after: int = -1) -> int:
        places = range(after + 1, len(cells))
        return next(
            (n for n in places if cells[n][0] == kind and re.search(words, cells[n][1])), after
        )

    hand, measured, questions = (
        find("^## "),
        find("^## What was m"),
        find(r"(?m)^1\. ", after=find("^## The picture")),
    )
    picture = max((n for n in range(questions) if cells[n][0] == "code"), default=0)
    guess = find(r"\*\*Predict first", after=questions)
    result = find(rf"(?s)\A(?!.*{re.escape(PREDICT)})", "code", guess)
    goes_on = find("", "code", hand), find("", "code", measured), *range(guess + 1, result)
    begins = 0, hand, picture, questions, guess, result, measured, find("^## Summary")
    return dict.fromkeys(goes_on, "-") | dict.fromkeys(begins, "slide")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.book", description="Make the lessons' notebooks."
    )
    parser.add_argument("book", type=Path, help="the folder with source/, usually notebooks")
    parser.add_argument(
        "lessons", nargs="*", help="numbers of the lessons to make, such as 01; by default all"
    )
    args = parser.parse_args(arguments)
    chosen = sources(args.book, args.lessons)
    if not chosen:
        print(
            f"There is no lesson {' '.join(args.lessons) or 'at all'} in {args.book / 'source'}",
            file=sys.stderr,
        )
        return 1
    from tools import stills  # here: it needs Playwright, which reading a source doesn't
    from tools.bench_page.browser import find_chromium

    if not find_chromium():
        print("Chromium is missing: a lesson would be saved without images", file=sys.stderr)
        return 1
    for path in chosen:
        source = read(path)
        for notebook, place in (
            (student(source), args.book),
            (solved(source), args.book / "solutions"),
        ):
            execute(notebook)
            stills.put_in(notebook)
            target = place / f"{path.stem}.ipynb"
            write(notebook, target)
            print(f"{target}: {target.stat().st_size / 1000:.0f} kB")
    write(glossary(), args.book / GLOSSARY)
    return 0


if __name__ == "__main__":
    sys.exit(main())
