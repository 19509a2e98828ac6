"""`cypresskit lab`: the lessons in JupyterLab."""

import argparse
import os
from contextlib import suppress
from pathlib import Path
from shutil import copyfile

from cypresskit.cli.command import CommandError, command

PACKAGE = Path(__file__).resolve().parents[1]
# Its labconfig folder has JupyterLab's settings: line numbers, since errors in IL name lines; no
# question about news.
SETTINGS = Path(__file__).resolve().parent
CHECKOUT, INSTALLED = PACKAGE.parent / "notebooks", PACKAGE / "lessons"
FOLDER = "cypresskit-lessons"  # a student's own


@command(
    "lab",
    "open the workbook in JupyterLab",
    f"It copies the lessons to the folder {FOLDER}, in a source checkout or where you are, and"
    " opens the first; a file that is there already stays as it is, with your work in it. In a"
    " folder that has lessons, it opens those. Other options go to JupyterLab.",
    example="cypresskit lab --no-browser --port 9000",
)
def lab(args: argparse.Namespace) -> None:
    """Start JupyterLab on the first lesson, with ``args.options`` of JupyterLab's own."""
    try:
        from jupyterlab.labapp import LabApp
    except ImportError:
        raise CommandError(
            "JupyterLab isn't installed here: try `pip install 'cypresskit[lab]'`."
        ) from None
    from cypresskit.timing import simulate

    lessons = find_lessons()
    print(f"Your lessons, and what you write in them, are in {lessons[0].parent}", flush=True)
    options = [
        f"--ServerApp.root_dir={lessons[0].parent}",
        f"--LabApp.default_url=/lab/tree/{lessons[0].name}",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append(
            "--allow-root"
        )  # usual in a container, where Jupyter would otherwise refuse to start
    paths = [os.environ.get("JUPYTER_CONFIG_PATH"), str(SETTINGS)]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    if not any("workspaces_dir" in option for option in args.options):
        options.append(f"--LabApp.workspaces_dir={hidden_files(lessons[0].parent / '.jupyterlab')}")
    simulate(
        "sgemm_64x64_lds", 64, progress=False
    )  # the timing engine is compiled now, not in a lesson
    print(
        "Starting JupyterLab, which opens in your browser. To stop it, press Ctrl+C here.",
        flush=True,
    )
    LabApp.launch_instance([*options, *args.options])


def hidden_files(folder: Path) -> Path:
    """Copy a JupyterLab layout into ``folder``, and return that: one without the list of files,
    which would take the pictures' room.
    """
    layout = folder / "default-37a8.jupyterlab-workspace"
    with suppress(OSError):  # a folder that can't be written
        folder.mkdir(parents=True, exist_ok=True)
        if not layout.exists():
            copyfile(SETTINGS / "workspace.json", layout)
    return folder


def find_lessons() -> list[Path]:
    """The student's lessons in order, copied there first if need be; ``CommandError`` if there are
    none.
    """
    here = Path.cwd()
    if lessons := _lessons(here):
        return lessons
    source, own = (
        (CHECKOUT, CHECKOUT.parent / FOLDER) if _lessons(CHECKOUT) else (INSTALLED, here / FOLDER)
    )
    if not _lessons(source):
        looked = "\n".join(f"  {place}" for place in (here, CHECKOUT, INSTALLED))
        raise CommandError(
            f"no lessons here: install the package, or run `make lab`. Looked in:\n{looked}"
        )
    try:
        own.mkdir(exist_ok=True)
        for lesson in _lessons(source):
            if not (own / lesson.name).exists():
                copyfile(
                    lesson, own / lesson.name
                )  # not its mode: an installed one may be read-only
    except OSError as error:
        raise CommandError(f"can't copy the lessons to {own}: {error.strerror or error}") from None
    return _lessons(own)


def _lessons(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"))
