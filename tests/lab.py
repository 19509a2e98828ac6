"""A JupyterLab that runs for the whole session.

A browser test asks for `lab` and `page`::

    def test_lesson_runs(lab, page):
        lab.open(page, "01_register_block.ipynb")
        lab.run_all(page)

Cells are run by JupyterLab's own commands, since typed Shift+Enter loses key presses. JupyterLab
serves a copy of notebooks/, so nothing a test does there changes the work tree.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

import pytest
from browsing import JS
from repository import ROOT
from waiting import wait_for


class Lab:
    """A running JupyterLab: `url` with no slash at its end, the path that it `opens`, the directory
    `root` served.
    """

    def __init__(self, url, opens, root):
        self.url, self.opens, self.root = url, opens, root

    def open(self, page, notebook):
        """Show `notebook` (a path below `root`) alone and wait until its kernel is idle."""
        page.goto(f"{self.url}/lab/workspaces/auto-{time.monotonic_ns()}/tree/{notebook}")
        page.wait_for_function(JS.idle, arg=notebook, timeout=600_000)

    def write(self, page, name, *cells, outputs=(), markdown=""):
        """Make a notebook of code cells, of which the last has the outputs, perhaps below a text,
        and open it.
        """
        import nbformat  # not at the top: the core's tests run without it

        *cells, last = map(nbformat.v4.new_code_cell, cells)
        last.outputs += outputs
        texts = [nbformat.v4.new_markdown_cell(markdown)] if markdown else []
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        nbformat.write(
            nbformat.v4.new_notebook(cells=[*texts, *cells, last], metadata=kernel),
            self.root / name,
        )
        self.open(page, name)

    def run_all(self, page):
        """Run every cell of the notebook shown and wait for the last; an error in a cell fails the
        test.
        """
        page.evaluate(JS.runAll, 1200)
        errors = [
            out for cell in self.outputs(page) for out in cell if out["output_type"] == "error"
        ]
        assert not errors, "\n".join(f"{out['ename']}: {out['evalue']}" for out in errors)

    def run(self, page, *texts):
        """Run the first code cell that has each text; of a text, an old word and a new one, with
        the word replaced.
        """
        page.evaluate(JS.run, texts)

    def run_until(self, page, cell, said):
        """Run the last code cell, whose text is given, until its output has some words: what the
        page has sent before may still be on its way.
        """
        wait_for(lambda: said in str(self.outputs(page)[-1]), lambda: self.run(page, cell))

    def outputs(self, page):
        """What each code cell of the notebook shown has put out, as a notebook file would hold
        it.
        """
        return page.evaluate(JS.outputs)


def address(server, log):
    """Where JupyterLab answers, and the path that it opens; fail, showing the log, if it died or
    the time is up.
    """
    end = time.monotonic() + 600
    while server.poll() is None and time.monotonic() < end:
        if found := re.search(r"(http://127\.0\.0\.1:\d+)(/lab\S*)\n", log.read_text()):
            with suppress(OSError):
                urllib.request.urlopen(f"{found[1]}/api/status", timeout=5).close()
                return found[1], found[2]
        time.sleep(0.1)
    pytest.fail(f"JupyterLab did not answer. Its log ends:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """JupyterLab as `cypresskit lab` starts it, but on a copy of notebooks/, without a token, with
    its own settings.
    """
    home = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", home / "notebooks", ignore=shutil.ignore_patterns(".*"))
    options = {
        "port": 0,  # a free one
        "IdentityProvider.token": "",
        "LabApp.expose_app_in_browser": True,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.user_settings_dir": home / "settings",
    }
    directories = {
        f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")
    }
    command = [
        sys.executable,
        "-m",
        "cypresskit",
        "lab",
        "--no-browser",
        *(f"--{name}={value}" for name, value in options.items()),
    ]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=home / "notebooks", env=os.environ | directories, stdout=log, stderr=log
        )
    try:
        yield Lab(*address(server, home / "log"), home / "notebooks")
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
