"""The rows of `make bench` run; how fast anything is, is no test's business."""

import os
import subprocess
import sys

from sampling import drawn_by_day

from tools import bench

#: Those that start no browser, but for the costs of lines: a launch is simulated for them first.
QUICK = [name for name in bench.ROWS if not name.startswith(("page", "costs"))]


@drawn_by_day("name", QUICK, 2)
def test_a_row_can_be_timed(name):
    prepared, timed = bench.ROWS[name]
    settings = os.environ | {"CYPRESSKIT_KEEP": "0"}
    program = f"{prepared}\n{timed.replace('4096', '64').replace('1024', '64')}"
    subprocess.run([sys.executable, "-c", program], cwd=bench.ROOT, env=settings, check=True)


def test_the_page_and_all_lessons_have_rows():
    assert len(bench.LESSONS) == len(list(bench.ROOT.glob("notebooks/source/*.md"))) > 12
    for prepared, timed in bench.ROWS.values():
        compile(f"{prepared}\n{timed}", "row", "exec")


def test_a_row_is_printed_with_its_time_and_an_unknown_one_is_refused(capfd):
    assert bench.main(["loop"]) == 0
    assert "loop of ten million iterations" in capfd.readouterr().out
    assert bench.main(["clocks"]) == 1
    assert "No row begins with clocks" in capfd.readouterr().out
