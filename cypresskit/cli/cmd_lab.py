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
CHECKOUT = PACKAGE.parent / "notebooks"
INSTALLED = PACKAGE / "lessons"
FOLDER = "cypresskit-lessons"  # a student's own
HIDDEN = ".jupyterlab"  # in it: JupyterLab's layout


@command(
    "lab",
    "open the workbook in JupyterLab",
    "`cypresskit lab FOLDER` copies the lessons to FOLDER and opens the first; a file that is there"
    f" already stays as it is, with your work in it. Without FOLDER it is ./{FOLDER}, inside a"
    " source checkout the checkout's; in a folder that has lessons, it opens those. Other options,"
    " behind FOLDER, go to JupyterLab.",
    example="cypresskit lab my-lessons --no-browser --port 9000",
)
def lab(args: argparse.Namespace) -> None:
    """Start JupyterLab on the first lesson. ``args.options``: a folder or none, then JupyterLab's
    own.
    """
    try:
        from jupyterlab.labapp import LabApp
    except ImportError:
        raise CommandError(
            "JupyterLab isn't installed here: try `pip install 'cypresskit[lab]'`."
        ) from None
    from cypresskit.timing import simulate

    folder, passed_on = _folder_and_options(args.options)
    lessons = find_lessons(folder)
    own = lessons[0].parent
    options = [f"--ServerApp.root_dir={own}", f"--LabApp.default_url=/lab/tree/{lessons[0].name}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        print("You are root, which JupyterLab refuses: it is started with --allow-root.")
        options.append("--allow-root")
    paths = [os.environ.get("JUPYTER_CONFIG_PATH"), str(SETTINGS)]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    if not any("workspaces_dir" in option for option in passed_on):
        options.append(f"--LabApp.workspaces_dir={hidden_files(own / HIDDEN)}")
    # The timing engine is compiled now, not in a lesson.
    simulate("sgemm_64x64_lds", 64, progress=False)
    where = f"Your lessons, and what you write in them, are in {own}"
    print("Starting JupyterLab, which opens in your browser. To stop it, press Ctrl+C here.")
    print(where, flush=True)
    try:
        LabApp.launch_instance([*options, *passed_on])
    finally:
        print(where, flush=True)  # again, below what the server has printed


def _folder_and_options(words: list[str]) -> tuple[Path | None, list[str]]:
    """The folder that stands before all options, or None, and the options."""
    if words and not words[0].startswith("-"):
        return Path(os.path.expanduser(words[0])).absolute(), words[1:]
    return None, words


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


def find_lessons(folder: Path | None = None) -> list[Path]:
    """The student's lessons in order, in ``folder`` or where one would look for them, copied there
    first if need be; ``CommandError`` if there are none.
    """
    current = Path.cwd()
    lessons = _lessons(current)
    if folder is None and lessons:
        return lessons
    in_checkout = bool(_lessons(CHECKOUT))
    source = CHECKOUT if in_checkout else INSTALLED
    if not _lessons(source):
        looked = "\n".join(f"  {place}" for place in (folder or current, CHECKOUT, INSTALLED))
        raise CommandError(
            f"no lessons here: install the package, or run `make lab`. Looked in:\n{looked}"
        )
    inside = in_checkout and CHECKOUT.parent in (current, *current.parents)
    own = folder or (CHECKOUT.parent if inside else current) / FOLDER
    if folder and _lessons(folder):
        return _lessons(folder)
    try:
        own.mkdir(parents=bool(folder), exist_ok=True)
        for lesson in _lessons(source):
            if not (own / lesson.name).exists():
                copyfile(lesson, own / lesson.name)  # not its mode: it may be read-only
    except OSError as error:
        raise CommandError(f"can't copy the lessons to {own}: {error.strerror or error}") from None
    return _lessons(own)


def _lessons(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"))
