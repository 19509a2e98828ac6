"""Where the repository is, and the tables that a page of its docs/ has between two marks."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def marked_lines(name, page="model.md"):
    """Return the lines of a table, below its head."""
    text = (ROOT / "docs" / page).read_text()
    table = text.split(f"<!-- {name} -->")[1].split(f"<!-- end of {name} -->")[0]
    return table.strip().splitlines()[2:]


def marked_cells(name, page="model.md"):
    """Return the cells of a table, row by row."""
    return [line.strip("| ").split(" | ") for line in marked_lines(name, page)]
