"""Lessons to hand out: without solutions, with the glossary, and with links that lead somewhere."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cypresskit.marks import course
from cypresskit.saving import save_file

LINK = re.compile(r"\[([^\]]*)\]\((?:\.\./docs/)?([^)#]*\.(?:ipynb|md))(#[^)]*)?\)")
GLOSSARY = "glossary.ipynb"


def hand_out(lessons: Sequence[Path], target: Path) -> None:
    """Write ``lessons`` and the glossary into ``target``. Raises ``OSError`` if that fails."""
    target.mkdir(parents=True, exist_ok=True)
    names = {lesson.name for lesson in lessons}
    for lesson in lessons:
        notebook = _read(lesson)
        given = [
            cell
            for cell in notebook["cells"]
            if course.entry_of(cell).get("part") not in course.NOT_FOR_STUDENTS
        ]
        _save(target / lesson.name, notebook | {"cells": [_linked(cell, names) for cell in given]})
    first = _read(lessons[0].parent / "00_start_here.ipynb")
    words = next(c for c in first["cells"] if course.entry_of(c).get("part") == "glossary")
    unfolded = _source(words).replace("<details>", "<details open>", 1)
    title = words | {"id": "glossary-title", "source": "# Glossary"}
    glossary = [title, _linked(words | {"source": unfolded}, names)]
    _save(target / GLOSSARY, first | {"cells": glossary})


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _save(path: Path, notebook: dict) -> None:
    save_file(path, json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def _source(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _linked(cell: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """The cell with links to what is handed out; others are their words alone."""

    def linked(match: re.Match) -> str:
        words, file, place = match.groups()
        if file in names:
            return match[0]
        return f"[{words}]({GLOSSARY})" if place == "#Glossary" else words

    if cell["cell_type"] != "markdown":
        return cell
    return cell | {"source": LINK.sub(linked, _source(cell))}
