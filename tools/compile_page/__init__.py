"""The compile page of the site: the workbench without clocks, in the reader's browser.

``il``, ``compiler`` and ``editing.pure_answers`` go there as they are; ``stand_ins`` has the
little of numpy that they ask for. Pyodide's core comes from npm when the site is built, and is in
no commit. Node then brings Python up once, imports all of it and writes its memory down; a worker
in the reader's browser begins with that memory. Where npm can't bring Pyodide, the site is built
without the page.
"""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import zipfile
import zlib
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

import cypresskit
from cypresskit.compiler import compile
from cypresskit.draw.scripts import packaged
from cypresskit.editing import pure_answers
from cypresskit.kernels import KERNELS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "cypresskit"
KEPT = ROOT / ".pyodide"  # what npm brought, by version
VERSION = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["pyodide"]
#: The files of Pyodide that a page needs.
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json")
#: And what Python is brought up with, once, when the page is written.
CORE = (*RUNTIME, "python_stdlib.zip")
OWN = ("page.js", "worker.js")
#: The workbench as it is in a notebook: what its modules import lies where they look for it.
WORKBENCH = ("draw/shell.js", "draw/il_colours.js", "editing/*.js", "editing/workbench.css")
#: What of the package goes to the page as it is.
PACKED = (
    "il/*.py",
    "il/*.txt",
    "compiler/*.py",
    "devices.py",
    "tables.py",
    "data/left_out.json",
    "data/reference.json",
    "editing/__init__.py",
    "editing/protocol.py",
    "editing/pure_answers.py",
)
#: What stands there for what isn't: a name in the archive, and its file here.
STAND_INS = {
    "numpy.py": "stand_ins/numpy.py",
    "cypresskit/il/fused.py": "stand_ins/fused.py",
    "answering.py": "answering.py",
}
MOST_BYTES = 19_000_000  # of the page
WARM = "sgemm_tn"  # the kernel that the page opens with
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file, so that equal files make equal archives


class NoPyodide(RuntimeError):
    """Pyodide couldn't be had, and why."""


def archive() -> bytes:
    """The Python of the page, as a zip file."""
    files = {
        f"cypresskit/{file.relative_to(PACKAGE).as_posix()}": file.read_text(encoding="utf-8")
        for pattern in PACKED
        for file in sorted(PACKAGE.glob(pattern))
    }
    own = (
        f'"""What of cypresskit runs in a browser."""\n\n__version__ = "{cypresskit.__version__}"\n'
    )
    files["cypresskit/__init__.py"] = own
    for name, file in STAND_INS.items():
        files[name] = (HERE / file).read_text(encoding="utf-8")

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in sorted(files.items()):
            target.writestr(zipfile.ZipInfo(name, EPOCH), text, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def pyodide() -> Path:
    """The folder with Pyodide's core, fetched if it isn't there yet. Raises ``NoPyodide``."""
    folder = KEPT / VERSION
    if all((folder / name).is_file() for name in CORE):
        return folder
    npm = shutil.which("npm")
    if npm is None:
        raise NoPyodide("npm isn't here")

    KEPT.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=KEPT) as own:  # another process may be at it, too
        command = [npm, "pack", f"pyodide@{VERSION}", "--silent", "--pack-destination", own]
        try:
            done = subprocess.run(command, cwd=own, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            raise NoPyodide("npm had not brought it after five minutes") from None
        if done.returncode:
            raise NoPyodide(f"npm can't bring it: {(done.stderr or done.stdout).strip()[-300:]}")

        (packed,) = Path(own).glob("*.tgz")
        folder.mkdir(exist_ok=True)
        with tarfile.open(packed) as source:
            for name in CORE:
                data = source.extractfile(f"package/{name}")
                assert data is not None, f"pyodide {VERSION} has no {name}"
                part = Path(own) / name
                part.write_bytes(data.read())
                part.replace(folder / name)
    return folder


def snapshot(core: Path) -> bytes:
    """The memory of a Python that has imported the page's modules and answered once, compressed.

    Raises ``NoPyodide`` if Node isn't there.
    """
    node = shutil.which("node")
    if node is None:
        raise NoPyodide("node isn't here")

    with TemporaryDirectory() as temporary:
        packed, kernel, written = (Path(temporary) / name for name in ("zip", "il", "gz"))
        packed.write_bytes(archive())
        kernel.write_text(KERNELS[WARM].text, encoding="utf-8")
        command = [node, *map(str, (HERE / "snapshot.mjs", core, packed, kernel, written))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        # Node shows the line of a fault, and Pyodide's lines have a million letters.
        assert done.returncode == 0, f"the snapshot can't be made: {done.stderr[-2000:]}"
        return written.read_bytes()


def beginnings() -> str:
    """What the page begins with, as JSON: what the language's words mean and, of each kernel of the
    catalogue, its text, what it teaches, its ``turn`` (``Convention.turn``), and
    the ``mads`` of a turn.
    """
    kernels = {
        name: {
            "text": kernel.text,
            "teaches": kernel.teaches,
            "turn": kernel.convention.turn,
            "mads": compile(kernel.program).card().mads,
        }
        for name, kernel in KERNELS.items()
    }
    return json.dumps({"words": pure_answers.words(), "kernels": kernels})


def write_page(folder: Path) -> None:
    """Write the compile page into ``folder``. Raises ``NoPyodide``."""
    core = pyodide()
    files = {name: (core / name).read_bytes() for name in RUNTIME}
    files |= {name: (HERE / name).read_bytes() for name in OWN}
    for pattern in WORKBENCH:
        for file in sorted(PACKAGE.glob(pattern)):
            files[file.relative_to(PACKAGE).as_posix()] = file.read_bytes()
    files["begin.json"] = beginnings().encode()
    files["snapshot.gz"] = snapshot(core)
    page = Template((HERE / "page.html").read_text(encoding="utf-8"))
    megabytes = f"{sum(len(zlib.compress(data)) for data in files.values()) / 1e6:.0f}"  # as sent
    files["index.html"] = page.substitute(
        look=packaged("draw/look.css"), megabytes=megabytes
    ).encode()

    # What is kept for reading offline has a name that changes with any of it.
    whole = hashlib.sha256()
    for data in files.values():
        whole.update(data)
    offline = Template((HERE / "offline.js").read_text(encoding="utf-8"))
    names = json.dumps(["./", *files])
    files["offline.js"] = offline.substitute(names=names, key=whole.hexdigest()[:12]).encode()
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
