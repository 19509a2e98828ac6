"""What the workbench's panels "IL in a minute" and "Legend" show: the tables of ``legend.toml``."""

import tomllib
from typing import Any

from cypresskit.draw.scripts import read_packaged

#: What a page gets: terms, and their meanings. Lesson 00 shows ``il_minute``, too.
TABLES: dict[str, list[Any]] = tomllib.loads(read_packaged("editing/legend.toml"))
#: The statistics of a kernel: name, field of ``KernelStats``, and meaning.
STATISTICS = TABLES["statistics"]
TABLES["legend"] += [[name, meaning] for name, _, meaning in STATISTICS]
