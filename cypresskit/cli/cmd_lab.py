"""`cypresskit lab`: open the lessons in JupyterLab."""

import argparse
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from cypresskit.cli.command import CommandError, command
from cypresskit.files.atomic import save_file

PACKAGE = Path(__file__).resolve().parents[1]
# Its folder labconfig has a style sheet and JupyterLab's settings: line numbers, since errors in IL
# name lines; no question about news; a notebook is saved every 20 seconds, also in a browser, whose
# tab may die.
SETTINGS = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent / "notebooks"
INSTALLED = PACKAGE / "lessons"
FOLDER = "cypresskit-lessons"  # the student's copy
AHEAD = "--no-ahead"
COPYING = ".copying"  # a folder there, while lessons are copied: after an interruption it is left
HIDDEN = ".jupyterlab"  # JupyterLab's layout, in that folder


@command(
    "lab",
    "open the workbook in JupyterLab",
    "`cypresskit lab FOLDER` copies the lessons to FOLDER and opens the first. Files that exist"
    f" there are kept, with your work in them. The default FOLDER is ./{FOLDER}, or in a source"
    " checkout the checkout's; if the current folder has lessons, it is that one. Options are"
    " passed on to JupyterLab. In the background the lessons are run once, at the lowest"
    " priority, so that their cells answer at once. On a battery, or on a single processor, they"
    " aren't, nor with --no-ahead: that is for shared servers.",
    {},
    "cypresskit lab my-lessons --no-browser --port 9000",
)
def lab(args: argparse.Namespace) -> None:
    """Start JupyterLab on the first lesson.

    ``args.options`` is the folder, if one is given, and JupyterLab's options.
    """
    try:
        from jupyter_core.paths import jupyter_config_dir, jupyter_runtime_dir
        from jupyterlab.labapp import LabApp
    except ImportError:
        raise CommandError(
            "JupyterLab isn't installed: run `pip install 'cypresskit[lab]'`"
        ) from None
    from cypresskit.cli import ahead

    folder, passed_on = _folder_and_options(args.options, {*LabApp.flags, AHEAD.lstrip("-")})
    runs_ahead = AHEAD not in passed_on
    passed_on = [option for option in passed_on if option != AHEAD]
    lessons = find_lessons(folder)
    own = lessons[0].parent
    options = [f"--ServerApp.root_dir={own}", f"--LabApp.default_url=/lab/tree/{lessons[0].name}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        print("Starting JupyterLab with --allow-root, since you are root.")
        options.append("--allow-root")
    readers = Path(jupyter_config_dir(), "custom")
    sheets = [str(write_style_sheet(Path(jupyter_runtime_dir()), readers)), str(readers)]
    options.append("--LabApp.custom_css=True")
    options.append(f"--ServerApp.tornado_settings={ {'static_custom_path': sheets}!r}")
    paths = [os.environ.get("JUPYTER_CONFIG_PATH"), str(SETTINGS)]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    if not any("workspaces_dir" in option for option in passed_on):
        options.append(f"--LabApp.workspaces_dir={hidden_files(own / HIDDEN)}")
    where = f"Your lessons and your work are in {own}"
    print("Starting JupyterLab, which opens in your browser. To stop it, press Ctrl+C here.")
    print(where, flush=True)
    in_order = [*(_lessons(CHECKOUT) or _lessons(INSTALLED)), *_lessons(CHECKOUT / "solutions")]
    running = ahead.start(in_order if runs_ahead else [])
    try:
        LabApp.launch_instance([*options, *passed_on])
    finally:
        if running is not None:
            running.terminate()
        print(where, flush=True)  # again, after the server's output


def _folder_and_options(words: list[str], flags: Collection[str]) -> tuple[Path | None, list[str]]:
    """Return the folder, or None, and the options, before and after a ``--``.

    The folder is the first word that is neither an option nor the value of one. ``flags`` are the
    options without a value.
    """
    words = [word for word in words if word != "--"]
    for n, (previous, word) in enumerate(zip(["", *words], words)):
        name = previous.lstrip("-")
        takes_value = name != previous and "=" not in name and name not in flags
        if not word.startswith("-") and not takes_value:
            return Path(os.path.expanduser(word)).absolute(), [*words[:n], *words[n + 1 :]]
    return None, words


def write_style_sheet(runtime: Path, readers: Path) -> Path:
    """Write JupyterLab's style sheet: the lessons', and then the reader's own custom.css, which has
    its say. Return the folder.
    """
    folder, own = runtime / "cypresskit", readers / "custom.css"
    text = (SETTINGS / "labconfig" / "custom.css").read_text(encoding="utf-8")
    with suppress(OSError):
        text += own.read_text(encoding="utf-8", errors="replace")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "custom.css").write_text(text, encoding="utf-8")
    return folder


def hidden_files(folder: Path) -> Path:
    """Copy JupyterLab's layout to ``folder``, and return that.

    The layout has no file browser, to leave more room for pictures.
    """
    layout = folder / "default-37a8.jupyterlab-workspace"
    with suppress(OSError):  # the folder may be read-only
        folder.mkdir(parents=True, exist_ok=True)
        if not layout.exists():
            save_file(layout, (SETTINGS / "workspace.json").read_bytes())
    return folder


def find_lessons(folder: Path | None = None) -> list[Path]:
    """Return the student's lessons in order, copied to their folder if necessary. A copy that was
    interrupted is completed.

    Parameters
    ----------
    folder
        Their folder; by default the current one if it has lessons, else ``FOLDER``.

    Raises
    ------
    CommandError
        If there are no lessons to copy, or they can't be copied.
    """
    current = Path.cwd()
    if folder is None and _lessons(current):
        folder = current
    if folder and _lessons(folder) and not (folder / COPYING).is_dir():
        return _lessons(folder)
    in_checkout = bool(_lessons(CHECKOUT))
    source = CHECKOUT if in_checkout else INSTALLED
    if not _lessons(source):
        looked = "\n".join(f"  {place}" for place in (folder or current, CHECKOUT, INSTALLED))
        raise CommandError(
            f"no lessons found: install the package, or run `make lab`. Looked in:\n{looked}"
        )
    inside = in_checkout and CHECKOUT.parent in (current, *current.parents)
    own = folder or (CHECKOUT.parent if inside else current) / FOLDER
    try:
        own.mkdir(parents=bool(folder), exist_ok=True)
        books = source.glob("*.ipynb")  # the lessons and their glossary
        missing = [book for book in books if not (own / book.name).exists()]
        mark = own / COPYING
        if missing:
            mark.mkdir(exist_ok=True)
        for book in missing:
            save_file(own / book.name, book.read_bytes())
        if mark.is_dir():
            mark.rmdir()
    except OSError as error:
        raise CommandError(f"can't copy the lessons to {own}: {error.strerror or error}") from None
    return _lessons(own)


def _lessons(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"))
