"""Lessons that are run ahead: what they time is cached, once, and a release may bring it."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import nbformat
import psutil
import pytest
from forbidden import forbid
from kept import forget
from new_python import printed_by
from waiting import is_alive, wait_for

import cypresskit as ck
from cypresskit.cli import ahead
from cypresskit.files import result_cache

SHAPE = {"n": 96, "k": 40}


@pytest.fixture(autouse=True)
def folder(saved_results):
    """An empty folder of cached results, in use."""
    return saved_results


def lesson(tmp_path, *cells):
    path = tmp_path / "00_short.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)]), path)
    return path


def test_a_lesson_is_run_once_and_its_times_are_cached(tmp_path, folder, monkeypatch):
    ran = tmp_path / "ran"
    notebook = lesson(
        tmp_path,
        f"import cypresskit as ck; ck.simulate('sgemm_tn', {SHAPE['n']}, k={SHAPE['k']})",
        f"open({str(ran)!r}, 'a').write('once')",
    )
    before = notebook.read_bytes()

    assert ahead.main([str(notebook)]) == 0
    assert ahead.main([str(notebook)]) == 0

    assert ran.read_text() == "once"
    assert notebook.read_bytes() == before
    monkeypatch.setattr("cypresskit.timing.sampling.run", forbid("simulate again"))
    assert ck.simulate("sgemm_tn", **SHAPE).clocks > 0


def test_a_lesson_that_fails_is_named_and_run_again(tmp_path, capsys):
    notebook = lesson(tmp_path, "1 / 0")
    for _ in range(2):
        assert ahead.main([str(notebook)]) == 1
        assert "00_short.ipynb" in capsys.readouterr().err


def test_nothing_runs_ahead_where_nothing_is_cached(monkeypatch):
    monkeypatch.setenv("CYPRESSKIT_KEEP", "0")
    monkeypatch.setattr(ahead, "Popen", forbid("start a process"))
    assert ahead.start([]) is None


@pytest.mark.parametrize("count, plugged", [(1, None), (1, True), (2, False)])
def test_no_lesson_is_run_on_one_processor_or_a_battery(tmp_path, monkeypatch, count, plugged):
    battery = None if plugged is None else SimpleNamespace(power_plugged=plugged)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: battery)
    monkeypatch.setattr(ahead, "processors", lambda: count)
    monkeypatch.setattr(ahead, "simulate", lambda *_: None)
    monkeypatch.setattr(ahead, "put_last", lambda _: None)
    monkeypatch.setattr(os, "nice", lambda _: None)
    monkeypatch.setattr(ahead, "wait_for_reader", forbid("wait for a lesson"))
    assert ahead.main([ahead.IDLE, str(lesson(tmp_path, "1 / 0"))]) == 0


def test_the_process_begins_with_a_kernel_and_ends_with_what_started_it(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    began, ended = tmp_path / "began", tmp_path / "ended"
    (tmp_path / "kernel-gone.json").symlink_to(tmp_path / "gone")  # its kernel ended just now
    notebook = lesson(
        tmp_path,
        f"import pathlib, time; pathlib.Path({str(began)!r}).write_text('')",
        f"while pathlib.Path({str(began)!r}).exists(): time.sleep(0.05)",
        f"pathlib.Path({str(ended)!r}).write_text('')",
    )
    run = (  # on a busy computer, the lowest priority would get no time at all
        "import os; from cypresskit.cli import ahead\n"
        "os.nice = ahead.put_last = ahead.simulate = lambda *_: None\n"
        f"ahead.main([ahead.IDLE, {str(notebook)!r}])"
    )
    start = (
        "import subprocess, sys\n"
        f"print(subprocess.Popen([sys.executable, '-c', {run!r}]).pid, flush=True)\n"
        "input()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    child = int(parent.stdout.readline())
    kernel = tmp_path / "kernel-of-the-reader.json"

    def read():
        kernel.touch()
        time.sleep(0.05)

    wait_for(lambda: began.exists() or not is_alive(child), read)

    print(file=parent.stdin, flush=True)
    parent.wait()  # not for the end of what it prints: its child holds that pipe
    began.unlink()  # the second cell ends
    wait_for(lambda: not is_alive(child))
    assert not ended.exists()


def test_a_release_brings_results(tmp_path, folder, monkeypatch):
    expected = ck.simulate("sgemm_tn", **SHAPE).clocks
    archive = tmp_path / "results.zip"
    with ZipFile(archive, "w") as files:
        for file in result_cache.saved_files(folder):
            files.write(file, file.name)
    for file in folder.glob("*"):
        file.unlink()
    forget()
    with monkeypatch.context() as patch:
        patch.setattr(result_cache, "RELEASED", archive)
        patch.setattr("cypresskit.timing.sampling.run", forbid("simulate again"))
        assert ck.simulate("sgemm_tn", **SHAPE).clocks == expected


@pytest.mark.parametrize("damage", ["cut", "noise", "another's contents"])
def test_a_damaged_release_is_simulated_anew(tmp_path, folder, monkeypatch, damage):
    expected = ck.simulate("sgemm_tn", **SHAPE).clocks
    kept = result_cache.saved_files(folder)  # the clocks, and perhaps the code
    assert kept
    archive = tmp_path / "results.zip"
    with ZipFile(archive, "w") as files:
        for file in kept:
            files.writestr(file.name, b"not the result of a launch")
    if damage == "cut":
        archive.write_bytes(archive.read_bytes()[:50])
    elif damage == "noise":
        archive.write_bytes(random.randbytes(500))
    for file in kept:
        file.unlink()
    forget()
    monkeypatch.setattr(result_cache, "RELEASED", archive)
    assert ck.simulate("sgemm_tn", **SHAPE).clocks == expected


def test_clocks_do_not_depend_on_the_processor(tmp_path):
    """So results of one machine serve on another: their key has no processor."""
    code = (
        "import cypresskit as ck\n"
        "for name in 'sgemm_tn', 'dgemm_nn', 'sgemm_64x64_lds', 'ddgemm_tn_fma':\n"
        "    report = ck.simulate(name, 320)\n"
        "    print(report.clocks, report.busy, report.bytes, report.hits, ck.line_costs(report))"
    )
    other = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CPU_NAME": "generic"}
    assert printed_by(code) == printed_by(code, **other)


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="Linux's sessions have none")
def test_the_whole_session_of_a_kernel_comes_last(tmp_path):
    """Its low priority alone counts only within that session."""
    group = tmp_path / "group"
    notebook = lesson(
        tmp_path, f"open({str(group)!r}, 'w').write(open('/proc/self/autogroup').read())"
    )
    ahead.run(notebook, os.getppid())
    assert group.read_text().endswith("nice 19\n")
