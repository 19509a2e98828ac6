"""The surroundings of all tests, and what tests of several folders share."""

import fcntl
import os
import pickle
import signal
import sys
import tempfile
from pathlib import Path

import pytest

# What tests compile is kept, but not among the reader's own: set before the package looks.
os.environ["XDG_CACHE_HOME"] = str(Path(sys.prefix, "cache"))

from kept import forget

# In the background of a script tests of interrupts would hang.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# As in some containers: what Jupyter and Chromium keep goes elsewhere.
if not os.access(Path.home(), os.W_OK):
    os.environ["HOME"] = tempfile.mkdtemp()

# Each launch is timed anew, except in tests of notebooks and of pages.
os.environ["CYPRESSKIT_KEEP"] = "0"

# A grammar that jsonschema compiles for a second, and nothing here needs.
sys.modules["rfc3987_syntax"] = None

pytest_plugins = ["sampling", "needs", "no_trace", "browsing", "lab"]


@pytest.fixture
def saved_results(tmp_path, monkeypatch):
    """The folder of simulated times and compiled code: empty, in use, with none in memory."""
    monkeypatch.setenv("CYPRESSKIT_KEEP", "1")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget()
    yield tmp_path / "cache/cypresskit"
    forget()


@pytest.fixture(scope="session")
def once(tmp_path_factory, request):
    """A function that makes something, which can be pickled, once for all processes that run tests;
    they wait for it and get it by its name.
    """
    ours = tmp_path_factory.getbasetemp()
    folder = (ours.parent if hasattr(request.config, "workerinput") else ours) / "once"
    folder.mkdir(exist_ok=True)

    def get(name, make):
        made = folder / name
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # by one process alone; the system frees a dead one's
            if not made.exists():
                part = made.with_suffix(".part")
                part.write_bytes(pickle.dumps(make()))
                part.replace(made)
        return pickle.loads(made.read_bytes())

    return get
