"""Checks find the bug and say what to do: the bug zoo, answers that are wrong, and how fast they are.

A file of tests/zoo holds a title, a launch, a kernel with a bug, and a near miss that must stay silent. A line of the
kernel that a finding is expected at ends in ``;! kind | work-item | element | N more | words of the advice``, and for
two sides ``| other WORK-ITEM line N``; a dash leaves a field out.
"""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

import cypresskit as ck
from cypresskit.machine.checks import Finding, Findings, check
from cypresskit.machine.checks.report import of_text

ZOO = sorted((Path(__file__).parent / "zoo").glob("*.txt"))


def array(shape: list) -> np.ndarray:
    """An array of a zoo file: its shape, then what it holds if that isn't 1, 2, 3, ..."""
    kind = shape.pop() if isinstance(shape[-1], str) else ""
    values = np.arange(1, 1 + int(np.prod(shape)), dtype=np.float64 if kind == "double" else np.float32).reshape(shape)
    if kind == "huge":
        values = values * np.float32(1e18) + np.float32(1e20)
    if kind == "one nan":
        values[3, 5, 2] = np.nan
    return values


def launch_of(text: str) -> dict:
    """The arguments that a zoo file's launch stands for."""
    launch = json.loads(text)
    for name in ("inputs", "constants", "outputs"):
        if name in launch:
            launch[name] = {int(n): array(shape) for n, shape in launch[name].items()}
    if "global_memory" in launch:
        launch["global_memory"] = array(launch["global_memory"])
    launch["names"] = {int(n) if n.isdigit() else n: name for n, name in launch.get("names", {}).items()}
    return launch


def parts(path: Path) -> tuple[str, str, dict, dict]:
    """The kernel with the bug, the near miss, and the launch of each."""
    head, rest = path.read_text().split("\n\n", 1)
    bug, near = re.split(r"\n\n---- near miss: .+\n\n", rest)
    launches = dict(line.split(": ", 1) for line in head.splitlines()[1:])
    bug_launch, near_launch = launches["launch"], launches.get("near launch", launches["launch"])
    return bug, near, launch_of(bug_launch), launch_of(near_launch)


def checked(text: str, launch: dict) -> Findings:
    try:
        program = ck.assemble(text, "zoo.il")
    except ck.ILError as error:
        return of_text(error)
    return check(program, **launch)


def described(finding: Finding) -> str:
    return f"{finding.kind} | {finding.work_item} | {finding.element or '-'} | {finding.more} more"


@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_the_zoo_is_found(path):
    bug, _, launch, _ = parts(path)
    found = list(checked(bug, launch))
    for number, line in enumerate(bug.splitlines(), 1):
        if ";!" not in line:
            continue
        fields = [part.strip() for part in line.split(";!")[1].split(" | ")]
        kind, item, element, more, advice, *other = fields
        here = [f for f in found if f.line == number]
        assert here, f"nothing was found in line {number}: {line}\nfound:\n{Findings(found)}"
        finding = here[0]
        found.remove(finding)
        wanted = f"{kind} | {None if item == '-' else ast.literal_eval(item)} | {element} | {more}"
        assert described(finding) == wanted, str(finding)
        assert advice in finding.advice, str(finding)
        assert finding.text[finding.column - 1] != " "
        if other:
            item, where = re.fullmatch(r"other (.+) line (\d+)", other[0]).groups()
            assert (f"work-item {item}" in finding.other, finding.other_line) == (True, int(where)), str(finding)
    assert not found, f"found as well:\n{Findings(found)}"


@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_near_misses_stay_silent(path):
    _, near, _, launch = parts(path)
    assert not (found := checked(near, launch)), str(found)


def test_the_zoo_has_enough_kinds():
    assert len(ZOO) >= 24
