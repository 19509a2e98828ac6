"""Serves the lessons by JupyterLab, and runs the first one, with whatever versions are here."""

import os
import re
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbconvert.preprocessors import ExecutePreprocessor

SERVED = re.compile(r"http://127\.0\.0\.1:\d+/lab\S*")


def read(address: str) -> str:
    """A page of a server that may still be starting."""
    for _ in range(120):
        with suppress(OSError):
            return urllib.request.urlopen(address, timeout=60).read().decode()
        time.sleep(0.5)
    raise TimeoutError(f"no server answers at {address}")


with TemporaryDirectory() as folder:
    command = [sys.executable, "-m", "cypresskit", "lab", folder, "--no-browser"]
    if hasattr(os, "getuid") and os.getuid() == 0:
        command.append("--allow-root")
    server = subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
    try:
        lines = iter(server.stdout.readline, "")
        address = next(found[0] for line in lines if (found := SERVED.search(line)))
        page = read(address)
        assert "jupyter-config-data" in page, page[:300]
    finally:
        server.terminate()
        server.wait()

    lesson = sorted(Path(folder).glob("00*.ipynb"))[0]
    book = nbformat.read(lesson, as_version=4)
    ExecutePreprocessor(timeout=600).preprocess(book, {"metadata": {"path": folder}})
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    assert any("text/html" in output.get("data", {}) for output in outputs), "no picture"
    print(f"JupyterLab serves the lessons; {lesson.stem} has {len(outputs)} outputs")
