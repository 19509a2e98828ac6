"""`cypresskit lab`: the lessons in JupyterLab."""

import argparse
import os
from pathlib import Path
from shutil import copy

from cypresskit.cli.command import CommandError, command

PACKAGE = Path(__file__).resolve().parents[1]
# Its labconfig folder has JupyterLab's settings: line numbers, since errors in IL name lines; and no news over the
# first picture.
SETTINGS = Path(__file__).resolve().parent
CHECKOUT, INSTALLED = PACKAGE.parent / "notebooks", PACKAGE / "lessons"
FOLDER = "cypresskit-lessons"  # where an installed package's lessons are copied to


@command(
    "lab",
    "open the workbook in JupyterLab",
    "It opens the lessons of a source checkout or of the current directory. Where there are none, the lessons that "
    f"were installed are copied to {FOLDER} first; a file that is there already stays as it is, with the work in it. "
    "Other options go to JupyterLab.",
    example="cypresskit lab --no-browser --port 9000",
)
def lab(args: argparse.Namespace) -> None:
    """Start JupyterLab on the first lesson; ``args.options`` are its own."""
    try:
        from jupyterlab.labapp import LabApp
    except ImportError:
        raise CommandError("JupyterLab isn't installed here: try `pip install 'cypresskit[lab]'`.") from None
    from cypresskit.timing import simulate

    lessons = find_lessons()
    options = [f"--ServerApp.root_dir={lessons[0].parent}", f"--LabApp.default_url=/lab/tree/{lessons[0].name}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")  # usual in a container, where Jupyter would otherwise refuse to start
    paths = [os.environ.get("JUPYTER_CONFIG_PATH"), str(SETTINGS)]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    simulate("sgemm_64x64_lds", 64)  # the timing engine is compiled before the first lesson asks for it
    LabApp.launch_instance([*options, *args.options])


def find_lessons() -> list[Path]:
    """The lesson notebooks in their order, at least one; CommandError says where they were looked for."""
    here = Path.cwd()
    places = [CHECKOUT, here / "notebooks", here]
    for place in places:
        if lessons := _lessons(place):
            return lessons
    if not (installed := _lessons(INSTALLED)):
        looked = "\n".join(f"  {place}" for place in (*places, INSTALLED))
        raise CommandError(f"the lessons aren't here: install the package, or run `make lab`. Looked in:\n{looked}")
    try:
        (here / FOLDER).mkdir(exist_ok=True)
        for lesson in installed:
            if not (here / FOLDER / lesson.name).exists():
                copy(lesson, here / FOLDER)
    except OSError as error:
        raise CommandError(f"can't copy the lessons to {here / FOLDER}: {error.strerror or error}") from None
    return _lessons(here / FOLDER)


def _lessons(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"))
