"""Tells a Python that is too old so, before pip looks for packages. pyproject.toml has all else."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (older Pythons read this file)
    version = ".".join(map(str, sys.version_info[:3]))
    sys.exit("cypresskit needs Python 3.11 or later, and this is " + version + ".")

from setuptools import setup

setup()
