"""Write lessons for students, with the glossary: without solutions and broken links."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from cypresskit.files.atomic import save_file
from cypresskit.grading import course

GLOSSARY = "glossary.ipynb"
LINK = re.compile(r"\[([^\]]*)\]\((?:\.\./docs/)?([^)#]*\.(?:ipynb|md))(?:#[^)]*)?\)")


def hand_out(lessons: Sequence[Path], target: Path) -> None:
    """Write lessons to a folder.

    Raises
    ------
    ValueError
        If this would overwrite files with other contents. Nothing is written then.
    OSError
        If a file can't be written.
    """
    texts = make_handouts(lessons)
    others = [name for name, text in texts.items() if _is_another(target / name, text)]
    if others:
        raise ValueError(
            f"{target} has other files of these names: {', '.join(others)}. Move them, or choose"
            " another folder"
        )
    target.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        save_file(target / name, text)


def make_handouts(lessons: Sequence[Path]) -> dict[str, str]:
    """Return the contents of the files to hand out, by name, in JupyterLab's format."""
    texts = {}
    notebooks = [*lessons, course.lessons_folder() / GLOSSARY]
    names = {notebook.name for notebook in notebooks}

    def linked(match: re.Match) -> str:
        words, file = match.groups()
        return match[0] if file in names else words

    for path in notebooks:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notebook["cells"] = [cell for cell in notebook["cells"] if course.is_handed_out(cell)]
        for number, cell in enumerate(notebook["cells"]):
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and (text := LINK.sub(linked, source)) != source:
                cell |= {"source": text, "id": f"{course.cell_id(text)}-{number}"}
        text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)
        texts[path.name] = f"{text}\n"
    return texts


def _is_another(path: Path, text: str) -> bool:
    """Return whether a file exists and has other contents."""
    try:
        return path.read_bytes() != text.encode()
    except OSError:
        return path.is_file()
