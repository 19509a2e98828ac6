"""A lesson survives Ctrl-C at any moment of its first run: the cell runs again, then all others."""

import os
import signal
import threading
import time
from contextlib import suppress

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from repository import ROOT

from cypresskit.cli.ahead import CELL_SECONDS

MOMENTS = 20
LESSONS = [next((ROOT / "notebooks").glob(f"{number}_*.ipynb")) for number in ("00", "06", "12")]


def run_interrupted(lesson, folder, environment, moment=None):
    """Run a lesson's cells with nothing cached, and return the seconds that they took. Interrupt
    them after some seconds: the cell that this ends runs again.
    """
    book = nbformat.read(lesson, 4)
    client = NotebookClient(book, timeout=CELL_SECONDS, kernel_name="python3")
    client.resources = {"metadata": {"path": str(folder)}}
    environment.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    environment.setenv("CYPRESSKIT_KEEP", "1")
    environment.delenv("NUMBA_CACHE_DIR", raising=False)
    with client.setup_kernel():
        begin = time.monotonic()

        def interrupt():
            with suppress(ProcessLookupError):  # the lesson took less time than expected
                os.kill(client.km.provisioner.pid, signal.SIGINT)

        timer = threading.Timer(moment or CELL_SECONDS, interrupt)
        timer.start()
        try:
            for number, cell in enumerate(book.cells):
                try:
                    client.execute_cell(cell, number)
                except CellExecutionError as error:
                    if error.ename != "KeyboardInterrupt":
                        raise
                    client.execute_cell(cell, number)
        finally:
            timer.cancel()
        return time.monotonic() - begin


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(MOMENTS))
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem[:2])
def test_a_lesson_survives_an_interrupt(lesson, part, tmp_path, monkeypatch, once):
    whole = tmp_path / "whole"
    whole.mkdir()
    lasts = once(f"lasts {lesson.stem}", lambda: run_interrupted(lesson, whole, monkeypatch))
    run_interrupted(lesson, tmp_path, monkeypatch, lasts * (part + 0.5) / MOMENTS)
