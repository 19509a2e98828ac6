"""The book tool: from one source per lesson, the student's notebook and the solved one.

``python -m tools.book notebooks [01 ...]`` makes and runs them; notebooks/README.md says how a
source is written. Saved outputs are those of the run, except for what differs each time: the cell
that loads the players' scripts, the ids of widgets, progress bars. Prose, which would reveal folded
solutions, can't be edited, and checks can't be deleted.
"""

import argparse
import hashlib
import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbformat import NotebookNode

from cypresskit.marks.course import ASKS, CHECK, PLACE, WHY
from cypresskit.timing.native import NOTICE

MARKS = re.compile(r"^[ \t]*### BEGIN SOLUTION\n(.*?)^[ \t]*### END SOLUTION(?:\n|\Z)", re.M | re.S)
# What a solution does without: it stands in the student's notebook alone
GIVEN = re.compile(r"^[ \t]*### BEGIN GIVEN\n(.*?)^[ \t]*### END GIVEN(?:\n|\Z)", re.M | re.S)
FOLD = "<!-- solution -->"
ASKED = rf"{ASKS}\1\n\n{PLACE}"
SENTENCE = r"<details><summary>A good sentence</summary>\n\n\2\n\n</details>"  # the cell below
APART = re.compile(r"\n(?=## |<!-- why: |\*\*What you will do)")  # what begins a cell of prose
GLOSSARY = "<!-- glossary -->"
WORDS = re.compile(r"(?s)\n## Words\n.*?(\| word .*?)\n\n")  # of CONTRIBUTING.md
PREDICT = "ck.draw.predict("
LOADER = "nbval-ignore-output"
# What only a busy or new computer says
BUSY = re.compile(r"\s*simulating:|" + re.escape(NOTICE))
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read(path: Path) -> NotebookNode:
    """A lesson's source as a notebook, solutions still marked. Raises ``ValueError`` if marks don't
    pair.
    """
    import jupytext

    cells = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md").cells
    for cell in cells:
        left = GIVEN.sub("", MARKS.sub("", cell.source))
        for word in ("SOLUTION", "GIVEN"):
            if f"BEGIN {word}" in left or f"END {word}" in left:
                raise ValueError(
                    f"{path.name}: in this cell BEGIN {word} and END {word} don't"
                    f" pair:\n{cell.source}"
                )
        if GLOSSARY in cell.source:
            glossary = WORDS.search(
                (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
            )
            assert glossary, "CONTRIBUTING.md has lost its glossary"
            fold = f"<details><summary>All words</summary>\n\n{glossary[1]}\n\n</details>"
            cell.source = cell.source.replace(GLOSSARY, fold)
    pieces = []
    for cell in cells:
        parts = APART.split(cell.source) if cell.cell_type == "markdown" else [cell.source]
        tags = {name: value for name, value in cell.metadata.items() if name == "tags"}
        pieces += [_cell(cell.cell_type, part, tags) for part in parts]
    return _notebook(pieces)


def student(source: NotebookNode) -> NotebookNode:
    """The student's notebook: solutions left out, or folded where the source says so."""
    return _made(source, "", r"\1", ASKED)


def solved(source: NotebookNode) -> NotebookNode:
    """The solved notebook: solutions and sentences in their places."""
    return _made(source, r"\1", "", rf"{ASKED}\n\n\2")


def _made(source: NotebookNode, lines: str, given: str, why: str) -> NotebookNode:
    """The notebook with ``lines`` in place of each solution, ``given`` of what a solution does
    without, and ``why`` in place of each question, with a good sentence folded in a cell below. A
    ``FOLD`` shows the solutions marked between it and the fold before.
    """
    cells, above = [], ""
    for cell in source.cells:
        text = cell.source
        above += "".join(MARKS.findall(text)) if cell.cell_type == "code" else ""
        if FOLD in text:
            fold = (
                f"<details><summary>Solution</summary>\n\n```\n{above.rstrip()}\n```\n\n</details>"
            )
            text, above = text.replace(FOLD, fold), ""
        asks = WHY.search(text)
        text = GIVEN.sub(given, MARKS.sub(lines, text))
        cells.append(_cell(cell.cell_type, WHY.sub(why, text), cell.metadata))
        if asks:
            cells.append(_cell("markdown", asks.expand(SENTENCE), {}))
    return _notebook(cells)


def execute(notebook: NotebookNode) -> None:
    """Run a notebook from top to bottom, in a folder of its own, keeping its outputs."""
    from nbclient import NotebookClient

    options: dict = {
        "timeout": 120,
        "kernel_name": "python3",
        "coalesce_streams": True,
        "record_timing": False,
    }
    with TemporaryDirectory() as where:
        NotebookClient(notebook, resources={"metadata": {"path": where}}, **options).execute()
    # As JupyterLab would save it, so that a lesson just opened isn't marked as changed.
    language = notebook.metadata.language_info
    notebook.metadata = NotebookNode(METADATA | {"language_info": language})
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            for data in (output.get("data", {}), output.get("metadata", {})):
                data.pop("application/vnd.jupyter.widget-view+json", None)
        if "outputs" in cell:
            loads = LOADER in cell.metadata.get("tags", ())
            cell.outputs = [] if loads else [output for output in cell.outputs if lasting(output)]


def lasting(output: NotebookNode) -> bool:
    """Whether to keep an output: not a progress bar, nor the notice that the engine is being
    compiled.
    """
    return not BUSY.match(output.get("text") or output.get("data", {}).get("text/plain", ""))


def write(notebook: NotebookNode, path: Path) -> None:
    """Save as JupyterLab does: indented by one space a level, keys sorted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def write_sentences(book: Path) -> None:
    """Save the good answers to all questions, which `cypresskit marks` shows beside students' own:
    an installed package has no sources.
    """
    sentences = {}
    for path in sources(book):
        answers = [answer for _, answer in WHY.findall(path.read_text(encoding="utf-8"))]
        sentences[path.stem] = [" ".join(answer.split()) for answer in answers]
    text = json.dumps(sentences, indent=1, ensure_ascii=False) + "\n"
    (book / "sentences.json").write_text(text, encoding="utf-8")


def sources(book: Path, chosen: list[str] | None = None) -> list[Path]:
    """The book's sources in order; of lessons whose names begin with one of ``chosen``, by default
    all.
    """
    return [
        p
        for p in sorted((book / "source").glob("*.md"))
        if not chosen or p.name.startswith(tuple(chosen))
    ]


def _cell(kind: str, text: str, metadata: dict) -> NotebookNode:
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return make(text.rstrip("\n"), metadata=dict(metadata), id="unnamed")


def _notebook(cells: list[NotebookNode]) -> NotebookNode:
    """A notebook whose cell ids are hashes of their contents, so that they change only with
    these.
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
        if cell.source.startswith((ASKS, "<!-- why: ")):
            cell.metadata["deletable"] = False
        elif cell.cell_type == "markdown":
            cell.metadata["editable"] = False
        elif CHECK.search(cell.source):
            cell.metadata["deletable"] = False
    shown = slides([(cell.cell_type, cell.source) for cell in cells])
    for number, cell in enumerate(cells):
        cell.metadata["slideshow"] = {"slide_type": shown.get(number, "skip")}
    return nbformat.v4.new_notebook(cells=cells, metadata=METADATA)


def slides(cells: list[tuple[str, str]]) -> dict[int, str]:
    """The cells of nbconvert's eight slides, by number: title, case by hand, picture, its
    questions, a guess, its result, what was measured, summary.
    """

    def find(words: str, kind: str = "markdown", after: int = -1) -> int:
        places = range(after + 1, len(cells))
        return next(
            (n for n in places if cells[n][0] == kind and re.search(words, cells[n][1])), after
        )

    hand, measured, asked = (
        find("^## "),
        find("^## What was m"),
        find(r"(?m)^1\. ", after=find("^## The picture")),
    )
    picture = max(
        (n for n in range(asked) if re.search(r"(?m)^ck\.draw\.(?!load|predict)", cells[n][1])),
        default=0,
    )
    guess = find(r"\*\*Predict first", after=asked)
    result = find(rf"(?s)\A(?!.*{re.escape(PREDICT)})", "code", guess)
    goes_on = find("", "code", hand), find("", "code", measured), *range(guess + 1, result)
    begins = 0, hand, picture, asked, guess, result, measured, find("^## Summary")
    return dict.fromkeys(goes_on, "-") | dict.fromkeys(begins, "slide")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.book", description="Make the lessons' notebooks."
    )
    parser.add_argument("book", type=Path, help="the directory with source/, usually notebooks")
    parser.add_argument(
        "lessons", nargs="*", help="how the names begin of those to make, as 01; by default all"
    )
    asked = parser.parse_args(arguments)
    chosen = sources(asked.book, asked.lessons)
    if not chosen:
        print(
            f"There is no lesson {' '.join(asked.lessons) or 'at all'} in {asked.book / 'source'}",
            file=sys.stderr,
        )
        return 1
    for path in chosen:
        source = read(path)
        for notebook, place in (
            (student(source), asked.book),
            (solved(source), asked.book / "solutions"),
        ):
            execute(notebook)
            target = place / f"{path.stem}.ipynb"
            write(notebook, target)
            print(f"{target}: {target.stat().st_size / 1000:.0f} kB")
    write_sentences(asked.book)
    return 0


if __name__ == "__main__":
    sys.exit(main())
