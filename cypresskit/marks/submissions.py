"""What students handed in, whatever that is: folders to students, files to cells.

No link is followed, nothing but a plain file is read, and no more of it than ``LARGEST``. Hidden
folders and ``__MACOSX`` are left out. Moodle's two folders of a student are one student. Names are
shown with what isn't printable escaped.
"""

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from cypresskit.marks.course import Cell, cells_of
from cypresskit.saving import LEFT_OUT, plain_files, read_plain
from cypresskit.tables import one_line

MOODLE = re.compile(r"(.+?)_(\d+)_assignsubmission", re.S)
KERNEL = "my_kernel.il"  # the student's own, beside the notebooks
LONGEST = 200_000  # bytes of it that are looked at
LARGEST = 30_000_000  # bytes of a notebook; a lesson with all its outputs has less than one million
NAME = 100  # characters of a page's name


@dataclass
class Student:
    """A student, from the names of folders: ``page`` is the name of the feedback's file."""

    id: str
    name: str
    folders: list[Path] = field(default_factory=list)

    @property
    def page(self) -> str:
        """A name that any file system takes, another one for each student."""
        whole = f"{self.name}_{self.id}" if self.name != self.id else self.id
        plain = re.sub(r"[^\w .=+@-]", "_", whole).strip(" .")[:NAME]
        if plain == whole:
            return f"{plain}.html"
        return f"{plain}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}.html"


def students(submitted: Path) -> list[Student]:
    """The students who have a folder in ``submitted``, by their folders' names. Raises ``OSError``
    if it can't be read.
    """
    by_number: dict[str, Student] = {}
    with os.scandir(submitted) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    for name in names:
        if name.startswith(".") or name == LEFT_OUT:
            continue
        shown = os.fsencode(name).decode("utf-8", "backslashreplace")
        match = MOODLE.match(shown)
        person, number = match.groups() if match else (shown, shown)
        student = by_number.setdefault(number, Student(one_line(number), one_line(person)))
        student.folders.append(submitted / name)
    return [by_number[number] for number in by_number]


def notebooks(folder: Path) -> list[Path]:
    """The notebooks in a student's folder and its folders."""
    return [file for file in plain_files(folder) if file.suffix == ".ipynb"]


def read_cells(notebook: Path) -> list[Cell]:
    """A notebook's cells. Raises ``ValueError`` for what is no notebook, or can't be read."""
    return cells_of(read_plain(notebook, LARGEST))


def own_kernel(folder: Path) -> str:
    """The text of ``my_kernel.il`` in a folder, "" if there is none. Raises ``ValueError`` for one
    that is no text, or longer than ``LONGEST`` bytes.
    """
    file = next((file for file in plain_files(folder) if file == folder / KERNEL), None)
    if file is None:
        return ""
    try:
        return read_plain(file, LONGEST).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{KERNEL} isn't text: {error}"[:200]) from None
