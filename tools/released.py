"""Put what the lessons time into the package: ``make released``, before a release is built.

A release so answers at once on any machine. The archive is in no commit: an installation from a
clone computes it (``cypresskit.cli.ahead``).
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from cypresskit.files.result_cache import RELEASED, saved_files

ROOT = Path(__file__).parents[1]


def compute_results(folder: Path) -> list[Path]:
    """Run all lessons, as delivered and solved, and return the files that were cached in a folder.

    Lessons whose results are there already aren't run again.
    """
    lessons = sorted(ROOT.glob("notebooks/**/[0-9][0-9]_*.ipynb"))
    settings = os.environ | {"XDG_CACHE_HOME": str(folder), "CYPRESSKIT_KEEP": "1"}
    command = [sys.executable, "-m", "cypresskit.cli.ahead", *map(str, lessons)]
    subprocess.run(command, check=True, env=settings)
    return saved_files(folder)


def main() -> None:
    """Write the archive."""
    with TemporaryDirectory() as folder, ZipFile(RELEASED, "w") as archive:
        for file in compute_results(Path(folder)):
            archive.write(file, file.name)
    print(f"{RELEASED}: {RELEASED.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
