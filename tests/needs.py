"""What a test needs of this computer: without it a test is skipped, and the last line of a run says
how to get it.
"""

import os
from collections import Counter

import pytest

from cypresskit.isolated.process import find_sandbox

IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
#: What a skipped test lacks, and how to get it.
LACKING = {
    "bubblewrap": "apt-get install bubblewrap",
    "Chromium": "apt-get install chromium",
    "Python for browsers": "apt-get install npm",
    "axe": "pip install axe-playwright-python",
    "anywidget": "pip install anywidget",
}


def describe_skipped(reasons):
    """Return what was skipped and how to get it, on one line; "" if nothing was."""
    lacked = Counter(what for what in LACKING for r in reasons if r.startswith(f"Skipped: {what}"))
    parts = [f"{count} need {what}: `{LACKING[what]}`" for what, count in lacked.items()]
    others = len(reasons) - lacked.total()
    parts += [f"{others} for reasons that `-rs` shows"] * (others > 0)
    return f"{len(reasons)} tests were skipped: {'; '.join(parts)}" if reasons else ""


def pytest_unconfigure(config):
    """End with one line on what was skipped, below pytest's own summary."""
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        skipped = reporter.stats.get("skipped", [])
        reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
        reporter.write_line(describe_skipped(reasons) or "no test was skipped")


def demand(found, what, why=""):
    """What was found. Without it a test is skipped, saying how to get it; in CI it fails."""
    if not found:
        reason = f"{what} is missing or doesn't work here, and this test needs it:"
        (pytest.fail if IN_CI else pytest.skip)(f"{reason} `{LACKING[what]}` {why}")
    return found


@pytest.fixture(scope="session")
def sandbox():
    """The walls in which answers are judged."""
    return demand(find_sandbox(), "bubblewrap")
