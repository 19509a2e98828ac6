"""The tables in the README are what the commands above them print today."""

import re
from pathlib import Path

import pytest

from cypresskit.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text()
TABLES = re.findall(r"<!-- cypresskit (.+?) -->\n(.+?)<!-- end -->", README, re.DOTALL)


@pytest.mark.parametrize(("command", "table"), TABLES, ids=[command for command, _ in TABLES])
def test_a_table_of_the_readme_is_current(command, table, capsys):
    assert main(command.split()) == 0
    assert capsys.readouterr().out == table, f"put what `cypresskit {command}` prints into the README"


def test_the_readme_has_its_tables():
    assert [command.split()[0] for command, _ in TABLES] == ["card", "score"]
