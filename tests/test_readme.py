"""The tables in the README are what the commands above them print today."""

import re
from pathlib import Path

import pytest

from cypresskit.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text()
TABLES = re.findall(r"<!-- cypresskit (.+?) -->\n(.+?)<!-- end -->", README, re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "table"), TABLES, ids=[command for command, _ in TABLES])
def test_a_table_of_the_readme_is_current(command, table, capsys, scored, monkeypatch):
    monkeypatch.setattr("cypresskit.timing.scoring.score", lambda executor: scored.kernels)
    monkeypatch.setattr("cypresskit.host.host_rows", lambda: scored.hosts)
    assert main(command.split()) == 0
    assert capsys.readouterr().out == table, f"put what `cypresskit {command}` prints into the README"


def test_the_readme_has_its_tables():
    assert [command.split()[0] for command, _ in TABLES] == ["card", "score"]


def test_the_top_speeds_are_as_near_as_the_readme_says():
    """In the prose above the table: seven kernels and the hybrid product within 5 %, small packed products not."""
    rows = [
        line.strip("| ").split(" | ") for line in dict(TABLES)["score --markdown"].splitlines()[2:] if line[:1] == "|"
    ]
    top = {row[0]: float(row[4]) for row in rows if row[1] in ("gflops_max", "hybrid_gflops")}
    assert len(top) == 8 and all(0.95 < ratio < 1.05 for ratio in top.values()), top
    (packed,) = [row[4] for row in rows if row[0] == "sgemm_packed4" and row[1] == "gflops_range"]
    assert 1.1 < max(map(float, packed.split(" to "))) < 1.3
