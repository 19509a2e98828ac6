"""Exits with a list if a dependency that is installed here isn't the one of constraints.txt."""

import sys
from importlib.metadata import requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

lines = Path(__file__).parent.with_name("constraints.txt").read_text(encoding="utf-8").splitlines()
pinned = {}
for requirement in (Requirement(line) for line in lines if line and line[0] != "#"):
    if requirement.marker is None or requirement.marker.evaluate():
        pinned[canonicalize_name(requirement.name)] = requirement.specifier

different = []
for text in requires("cypresskit") or ():
    requirement = Requirement(text)
    name = canonicalize_name(requirement.name)
    wanted = requirement.marker is None or any(
        requirement.marker.evaluate({"extra": extra}) for extra in ("draw", "lab")
    )
    if wanted and name != "cypresskit" and version(name) not in pinned[name]:
        different.append(f"{name} {version(name)} is installed, and {pinned[name]} pinned")
if different:
    sys.exit("\n".join(different))
