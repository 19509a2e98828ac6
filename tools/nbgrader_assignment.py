"""Make a lesson an assignment of nbgrader: `python -m tools.nbgrader_assignment 09 course/source`.

It writes the instructor's version, `09_bus/09_bus.ipynb`, from which nbgrader makes the students'.
A check gives its points by itself; a sentence waits for the teacher. An answer that a workbench
saves can't be graded so, since nbgrader clears the outputs, where its kernel is.
"""

import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from cypresskit.grading.course import METADATA_KEY
from tools import book

POINTS = {"check": 20, "sentence": 13}  # with three exercises 60 to 39: a lesson here is 60 to 40
STUB = "### BEGIN SOLUTION\n{}\n### END SOLUTION"  # what students get without the lines between


def assignment(source: NotebookNode) -> NotebookNode:
    """Return a lesson with nbgrader's metadata. Raises ``ValueError`` if it has a workbench."""
    made, marked = book.student(source), {}
    for cell in source.cells:
        entry = cell.metadata.get(METADATA_KEY, {})
        if "step" in entry:
            raise ValueError(
                "its answers are saved by a workbench, in outputs: nbgrader clears these"
            )
        if entry.get("part") == "answer":
            marked[entry["exercise"]] = book.GIVEN.sub("", cell.source)
    made.cells = [cell for cell in made.cells if part_of(cell) not in ("solution", "good")]
    for cell in made.cells:
        part, number = part_of(cell), cell.metadata.get(METADATA_KEY, {}).get("exercise")
        if part == "answer":
            cell.source = marked[number]
        elif part == "check":
            cell.source = f"verdict = {cell.source}\nassert verdict.right, str(verdict)"
        elif part == "sentence":
            cell.cell_type, cell.source = "markdown", STUB.format("a sentence")
            del cell["outputs"], cell["execution_count"]
        if part in ("answer", "check", "sentence"):
            points = {"points": POINTS[part]} if part in POINTS else {}
            kind = {"grade": bool(points), "solution": part != "check", "locked": part == "check"}
            name = {"grade_id": f"{part}-{number}", "schema_version": 3, "task": False}
            cell.metadata["nbgrader"] = {"cell_type": cell.cell_type, **kind, **name, **points}
    return made


def part_of(cell: NotebookNode) -> str:
    """Return a cell's part in an exercise, or ""."""
    return str(cell.metadata.get(METADATA_KEY, {}).get("part", ""))


def main() -> None:
    """Run the command."""
    number, course = sys.argv[1:]
    (path,) = book.sources(Path(__file__).parents[1] / "notebooks", [number])
    folder = Path(course, path.stem)
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(assignment(book.read(path)), folder / f"{path.stem}.ipynb")


if __name__ == "__main__":
    main()
