"""Build the whole workbook for the browser, ``site/workbook/``: JupyterLite with the lessons, and a
kernel on the Python of the page ``bench/``, whose folder lies beside it.

JupyterLite comes from the package index, and the packages of Python from this environment. No
bundler is needed: the extension is one script.
"""

import importlib.metadata
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

import nbformat

from cypresskit.cli import cmd_lab
from tools import bench_page
from tools.book import GLOSSARY

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAME = "cypresskit-kernel"  # of the extension
EXTENSIONS = "@jupyter-widgets/jupyterlab-manager", "anywidget", NAME
MODULE = "kernel_python.py"
MAX_BYTES = 60_000_000  # of the folder
#: Packages of this environment that the lessons need besides those in the page ``bench/``.
PACKAGES = """
    anywidget asttokens bokeh comm executing ipython
    ipython_pygments_lexers ipywidgets jinja2 markupsafe matplotlib_inline narwhals packaging
    prompt_toolkit psygnal pure_eval pygments python-dateutil pyyaml six stack_data traitlets
    typing_extensions wcwidth xyzservices
""".split()
SUFFIXES = ".py", ".json", ".css", ".html", ".js", ".txt", ".jinja", ".ts", ".mjs"
LEFT_OUT = """
    anywidget/labextension/ bokeh/sampledata/ bokeh/server/static/ narwhals/testing/
    pygments/lexers/
""".split()
#: What is kept of these folders: of pygments, what IPython imports.
KEPT = """
    bokeh/server/static/js/bokeh.min.js bokeh/server/static/js/types.json
    pygments/lexers/__init__ pygments/lexers/_css_builtins pygments/lexers/_lilypond_builtins
    pygments/lexers/_mapping pygments/lexers/_scheme_builtins pygments/lexers/css
    pygments/lexers/data pygments/lexers/html pygments/lexers/javascript pygments/lexers/jvm
    pygments/lexers/lilypond pygments/lexers/lisp pygments/lexers/markup pygments/lexers/perl
    pygments/lexers/python pygments/lexers/ruby pygments/lexers/shell pygments/lexers/special
""".split()


def lessons() -> list[Path]:
    """Return the notebooks of the lessons, in order."""
    return sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def packages() -> dict[str, str]:
    """Return the text files of the packages, by name."""
    files = {MODULE: (HERE / MODULE).read_text(encoding="utf-8")}
    for name in PACKAGES:
        held = importlib.metadata.distribution(name)
        for file in held.files or []:
            path = file.as_posix()
            is_left_out = path.startswith((*LEFT_OUT,)) and not path.startswith((*KEPT,))
            if {"test", "tests"} & {*file.parts} or ".." in file.parts or is_left_out:
                continue
            if file.suffix in SUFFIXES or file.name == "METADATA":
                files[path] = Path(str(file.locate())).read_text(encoding="utf-8")
    return files


def write_workbook(folder: Path, ran: Sequence[Path] = ()) -> None:
    """Write the workbook into a folder beside ``bench``. Raises ``bench_page.NotAvailable``.

    The results of the launches in the lessons ``ran`` are computed now, so that a browser needn't;
    those of a lesson that hasn't changed are kept.
    """
    build_lite(folder)
    extension = folder / "extensions" / NAME
    (extension / "static").mkdir(parents=True)
    names = [lesson.name for lesson in ran]
    saved = bench_page.launches("launches", names, "cypresskit.cli.ahead", *map(str, ran))
    for file in saved:
        shutil.copy(file, folder.parent / "bench/launches")
    data = bench_page.compress(json.dumps(packages()).encode())
    (folder / "packages.json.gz").write_bytes(data)
    loaded = [folder / "packages.json.gz", *(folder.parent / "bench").glob("*.gz")]
    script = Template((HERE / "extension.js").read_text(encoding="utf-8")).safe_substitute(
        bench="../../../../bench/",
        packages="../workbook/packages.json.gz",
        launches=json.dumps([file.name for file in saved]),
        problems=json.dumps(bench_page.PROBLEMS),
        megabytes=round(sum(file.stat().st_size for file in loaded) / 1e6),
        key=f"workbook-{bench_page.state('', *sorted(loaded))}",
    )
    # JupyterLite keeps a script for ten minutes: a new one has a new name.
    entry = f"remoteEntry.{bench_page.state(script)}.js"
    (extension / "static" / entry).write_text(script, encoding="utf-8")
    build = {"name": NAME, "load": f"static/{entry}", "extension": "./extension"}
    for file in [folder / "jupyter-lite.json", *folder.glob("*/jupyter-lite.json")]:
        configure(file, build)
    write_start_page(folder)


def build_lite(folder: Path) -> None:
    """Build JupyterLite with the lessons, and with the settings of ``cypresskit lab``."""
    settings = cmd_lab.SETTINGS / "labconfig/default_setting_overrides.json"
    with TemporaryDirectory() as empty:
        contents = Path(empty, "contents")
        contents.mkdir()
        # JupyterLite would show a text that is a list of lines with commas.
        for path in (*lessons(), ROOT / "notebooks" / GLOSSARY):
            notebook = nbformat.read(path, 4)
            nbformat.write(notebook, contents / path.name, split_lines=False)
        shutil.copy(settings, Path(empty, "overrides.json"))
        command = [sys.executable, "-m", "jupyterlite_core", "build", "--contents", str(contents)]
        command += ["--output-dir", str(folder.absolute()), "--apps", "lab", "--no-sourcemaps"]
        command += ["--no-unused-shared-packages", "--settings-overrides", "overrides.json"]
        done = subprocess.run(command, cwd=empty, capture_output=True, text=True)
    if done.returncode:
        raise bench_page.NotAvailable(f"JupyterLite can't be built: {done.stderr[-500:]}")
    shutil.copy(cmd_lab.SETTINGS / "labconfig/custom.css", folder)
    page = folder / "lab/index.html"
    link = '<link rel="stylesheet" href="../custom.css" /></head>'
    page.write_text(page.read_text(encoding="utf-8").replace("</head>", link), encoding="utf-8")


def configure(file: Path, build: dict[str, str]) -> None:
    """Name the kernel and the extensions in a file of JupyterLite's settings."""
    config = json.loads(file.read_text(encoding="utf-8"))
    data = config.setdefault("jupyter-config-data", {})
    known = data.get("federated_extensions", [])
    if known:
        kept = [one for one in known if one["name"] in EXTENSIONS]
        data["federated_extensions"] = [*kept, build]
    data |= {"defaultKernelName": "python3", "appName": "cypresskit"}
    file.write_text(json.dumps(config, indent=1), encoding="utf-8")


def write_start_page(folder: Path) -> None:
    """Write the page that the folder opens with: it opens a lesson, in a browser that can."""
    heads = {lesson.name: nbformat.read(lesson, 4).cells[0].source for lesson in lessons()}
    page = bench_page.templates(HERE).get_template("start.html")
    text = page.render(lessons=heads, problems=bench_page.PROBLEMS)
    (folder / "index.html").write_text(text, encoding="utf-8")
