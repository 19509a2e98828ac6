"""Find each student's notebooks in a folder of submissions, or take a single notebook.

Each folder or file directly in the folder belongs to one student; Moodle's two folders of a
student, and Canvas's files of a student, are combined. Contents may be anything: links are not
followed, only plain files are read, at most ``MAX_NOTEBOOK_BYTES`` of each, and no archive. Each
file that isn't read is listed with the reason in the student's ``notes``. Characters that aren't
printable are escaped in names.
"""

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from cypresskit.files.received import (
    explain_unreadable,
    find_files,
    is_hidden,
    printable_name,
    read_plain,
)
from cypresskit.grading.course import Notebook, parse_notebook
from cypresskit.tables import one_line

MOODLE, CANVAS = "Moodle", "Canvas"
NAMES = {
    MOODLE: re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_[a-z]*_?(?P<file>.*)", re.S),
    CANVAS: re.compile(
        r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_(?:(?P<work>\d+)_|(?=text\b|link\b))(?P<file>.+)",
        re.S,
    ),
}
NOTEBOOK = ".ipynb"
ARCHIVES = ".7z", ".bz2", ".gz", ".rar", ".tar", ".tgz", ".xz", ".zip"  # endings of archives
ENDING = re.compile(rf"({'|'.join(map(re.escape, (NOTEBOOK, *ARCHIVES)))})\b.*", re.S | re.I)
MAX_NOTEBOOK_BYTES = 100_000_000  # a lesson has less than one million, if it doesn't print much
ARCHIVE = "archives aren't read: unpack it"
MAX_PAGE_NAME = 100  # characters in the file name of a page


@dataclass
class Student:
    """A student and what they submitted."""

    id: str
    name: str
    notebooks: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  #: on files that aren't read
    system: str = ""  #: ``MOODLE`` or ``CANVAS``, if ``id`` is the number there

    @property
    def page(self) -> str:
        """The file name of the student's page: unique, and valid on any file system."""
        whole = f"{self.name}_{self.id}" if self.name != self.id else self.id
        plain = re.sub(r"[^\w .=+@-]", "_", whole).strip(" .")[:MAX_PAGE_NAME]
        if plain == whole:
            return f"{plain}.html"
        return f"{plain}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}.html"


def find_students(submitted: Path) -> tuple[list[Student], list[str]]:
    """Return the students whose work is in a folder, or whose notebook this is, and the names of
    hidden entries in the folder.

    Raises
    ------
    OSError
        If the folder can't be read.
    """
    found: dict[str, Student] = {}
    is_single = submitted.suffix.lower() == NOTEBOOK and submitted.is_file()
    with os.scandir(submitted.parent if is_single else submitted) as entries:
        chosen = (entry for entry in entries if not is_single or entry.name == submitted.name)
        inside = sorted(chosen, key=lambda entry: entry.name)
    names = {entry.name: _shown(entry.name) for entry in inside}
    left_out = [one_line(shown) for name, shown in names.items() if is_hidden(name)]
    inside = [entry for entry in inside if not is_hidden(entry.name)]
    system = _system([names[entry.name] for entry in inside]) if not is_single else MOODLE
    for entry in inside:
        shown = names[entry.name]
        is_folder = entry.is_dir(follow_symlinks=False)
        match = NAMES[system].match(shown)
        plain = shown if is_folder else ENDING.sub("", shown)
        id, name = (match["id"], match["name"]) if match else (plain, plain)
        student = Student(one_line(id), one_line(name), system=system if match else "")
        student = found.setdefault(id, student)
        if is_folder:
            for path, why in find_files(Path(entry.path)):
                _take(student, path, path.name, why)
        else:
            file = match["file"] if match and not entry.is_symlink() else shown
            _take(student, Path(entry.path), file, explain_unreadable(entry))
    return list(found.values()), left_out


def _shown(name: str) -> str:
    """Return a name with bytes that aren't UTF-8 escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _system(names: list[str]) -> str:
    """Return the system that delivers a folder with these names: Canvas if all are such as Canvas
    gives, each with another work's number, or a student's text or link; else Moodle, whose names
    are like no others.
    """
    matches = [NAMES[CANVAS].fullmatch(name) for name in names]
    works = {match["work"] or match[0] for match in matches if match}
    return CANVAS if names and len(works) == len(names) else MOODLE


def _take(student: Student, path: Path, name: str, why: str) -> None:
    """Add a file to a student's notebooks, or else a note.

    ``name`` is its name as the student gave it; ``why`` says why it can't be read, or is "".
    """
    kind = name.lower()
    if not why and (NOTEBOOK in kind or kind.endswith(".json")):
        student.notebooks.append(path)
        return
    if not why:
        is_archive = kind.endswith(ARCHIVES)
        why = ARCHIVE if is_archive else "not read, since only notebooks are (.ipynb)"
    student.notes.append(f"{printable_name(path)}: {why}")


def read_notebook(notebook: Path) -> Notebook:
    """Return a submitted notebook.

    Raises
    ------
    ValueError
        If it is no notebook, or can't be read.
    """
    return parse_notebook(read_plain(notebook, MAX_NOTEBOOK_BYTES))
