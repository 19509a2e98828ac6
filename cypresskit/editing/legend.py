"""What the workbench's panels "IL in a minute" and "Legend" show: the tables of ``legend.toml``."""

import tomllib
from importlib.resources import files
from typing import Any

#: What a page gets: terms, and their meanings. Lesson 00 shows ``il_minute``, too.
TABLES: dict[str, list[Any]] = tomllib.loads(
    files("cypresskit").joinpath("editing/legend.toml").read_text(encoding="utf-8")
)
#: The statistics of a kernel: name, field of ``KernelStats``, and meaning.
STATISTICS = TABLES["statistics"]
TABLES["legend"] += [[name, meaning] for name, _, meaning in STATISTICS]
