"""For nbval: lessons give the same outputs each time, whatever a reader has done in their folder.

pytest loads this where cypresskit is installed, so ``pytest --nbval LESSONS`` needs no option, in
any folder. It imports nothing of the package, whose coverage couldn't be measured otherwise.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """Name our file of what may differ to nbval, unless the command names another one."""
    package = find_spec("cypresskit")
    if package and getattr(config.option, "nbval_sanitize_with", "") is None:
        differs = Path(package.origin).with_name("data") / "nbval_sanitize.cfg"
        config.option.nbval_sanitize_with = str(differs)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Have each notebook begin without kernels of its reader, or of the notebook before."""
    if type(item).__name__ == "IPyNbCell" and item.parent.kernel is None:
        item.parent.climb = TemporaryDirectory(prefix="cypresskit-")
        os.environ["CYPRESSKIT_CLIMB"] = item.parent.climb.name
