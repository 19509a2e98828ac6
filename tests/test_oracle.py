"""The tool that prints what a redesign must leave as it is."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def oracle(*arguments):
    command = [sys.executable, "tools/oracle.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_help_names_the_parts():
    shown = oracle("--help")
    assert shown.returncode == 0
    assert "kernels, zoo, verdicts, views, host" in " ".join(shown.stdout.split())


def test_rejects_a_part_that_there_is_not():
    refused = oracle("zooo")
    assert refused.returncode == 2
    assert "zooo: a part is one of kernels, zoo" in " ".join(refused.stderr.split())


@pytest.mark.nightly
@pytest.mark.slow
def test_prints_what_was_asked_for():
    assert oracle("host").stdout.startswith("host: five stages: ")
