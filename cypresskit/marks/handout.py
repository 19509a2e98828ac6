"""Lessons to hand out: without solutions, with the glossary, and with links that lead somewhere.

With a seed, a lesson's checks show other numbers: each student's own, which ``cypresskit marks
--own-numbers`` knows again.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cypresskit.marks import course
from cypresskit.saving import save_file
from cypresskit.teach.check import own_seed

SOLUTION = re.compile(rf"\s*{course.SOLUTION}")
LINK = re.compile(r"\[([^\]]*)\]\((?:\.\./docs/)?([^)#]*\.(?:ipynb|md))(#[^)]*)?\)")
GLOSSARY = "glossary.ipynb"
WORDS = re.compile(r"<details><summary>All words</summary>\s*(.*?)\s*</details>", re.S)
OWN = "# The numbers of this notebook's exercises are yours: keep this cell.\nck.teach.own({!r})"


def hand_out(lessons: Sequence[Path], target: Path, student: str = "", seed: str = "") -> None:
    """Write ``lessons`` and the glossary into ``target``; of a ``student`` with own numbers if
    ``seed`` is given, the class's. Raises ``OSError`` if that fails.
    """
    target.mkdir(parents=True, exist_ok=True)
    names = {lesson.name for lesson in lessons}
    for lesson in lessons:
        notebook = json.loads(lesson.read_text(encoding="utf-8"))
        cells = [_without_solution(cell, names) for cell in notebook["cells"]]
        notebook["cells"] = [cell for cell in cells if _source(cell)]
        if seed:
            _insert_own(notebook["cells"], own_seed(seed, student))
        _save(target / lesson.name, notebook)
    first = json.loads((lessons[0].parent / "00_start_here.ipynb").read_text(encoding="utf-8"))
    matches = (WORDS.search(_source(cell)) for cell in first["cells"])
    words = next((match[1] for match in matches if match), "")
    prose = {"cell_type": "markdown", "id": "words", "metadata": {}}
    first["cells"] = [prose | {"source": f"# Glossary\n\n{_linked(words, names)}"}]
    _save(target / GLOSSARY, first)


def _save(path: Path, notebook: dict) -> None:
    save_file(path, json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def _source(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _without_solution(cell: dict[str, Any], names: set[str]) -> dict[str, Any]:
    if cell["cell_type"] != "markdown":
        return cell
    return cell | {"source": _linked(SOLUTION.sub("", _source(cell)), names)}


def _linked(text: str, names: set[str]) -> str:
    """The text with links to what is handed out; others are their words alone."""

    def linked(match: re.Match) -> str:
        words, file, place = match.groups()
        if file in names:
            return match[0]
        return f"[{words}]({GLOSSARY})" if place == "#Glossary" else words

    return LINK.sub(linked, text)


def _insert_own(cells: list[dict[str, Any]], token: str) -> None:
    """A cell behind the one that imports, which gives the checks the student's numbers."""
    imports = (n for n, c in enumerate(cells) if "import cypresskit as ck" in _source(c))
    place = next(imports, -1) + 1
    cell = {"cell_type": "code", "id": "own", "metadata": {"deletable": False}, "outputs": []}
    cells.insert(place, cell | {"execution_count": None, "source": OWN.format(token)})
