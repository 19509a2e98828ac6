"""The documentation as a site that works from disk, without network: `make docs`, or `python -m
tools.site FOLDER`.

Sphinx builds it as `docs/conf.py` says; then every link in every page, and the site's size, are
checked. Solutions, and the pages of answers for teachers, are left out unless asked for with
`--solutions`.
"""

import argparse
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup
from sphinx.cmd.build import build_main

from tools import bench_page

ROOT = Path(__file__).parent.parent
BENCH = "bench"  # the folder of the workbench
MOST_BYTES = {False: 12_000_000, True: bench_page.MOST_BYTES}  # of all else, and of that page


def faults(site: Path) -> list[str]:
    """The faults of a built site: links that lead nowhere, things that need the network, and too
    large a size.
    """
    pages = {
        file.resolve(): BeautifulSoup(file.read_bytes(), "html.parser")
        for file in site.rglob("*.html")
    }
    places = {
        file: {tag.get(a) for tag in page.find_all(True) for a in ("id", "name")}
        for file, page in pages.items()
    }
    wrong = []
    for file, page in pages.items():
        where = file.relative_to(site.resolve())
        values = [
            (tag.name, tag.get(a)) for tag in page.find_all(True) for a in ("href", "src", "srcset")
        ]
        for tag, link in ((tag, str(value)) for tag, value in values if value):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                wrong += [f"{where} loads {link}"] if tag != "a" and parts.scheme != "data" else []
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            fine = (
                unquote(parts.fragment) in places.get(target, {parts.fragment})
                or not parts.fragment
            )
            wrong += (
                [] if fine and target.is_file() else [f"{where} links to {link}, which isn't there"]
            )
    for inside, size in sizes(site).items():
        most = MOST_BYTES[inside]
        if size > most:
            part = "the workbench" if inside else "the site"
            wrong.append(f"{part} has {size:,} bytes, and {most:,} are allowed")
    return wrong


def sizes(site: Path) -> dict[bool, int]:
    """The bytes of a built site, by whether they are the workbench's."""
    bytes_of = dict.fromkeys(MOST_BYTES, 0)
    for file in site.rglob("*"):
        if file.is_file():
            bytes_of[file.relative_to(site).parts[0] == BENCH] += file.stat().st_size
    return bytes_of


def build(site: Path, solutions: bool = False) -> None:
    """Build the site from scratch, with or without ``solutions``. Raises ``SystemExit`` if Sphinx
    warns, or if the folder holds something else.
    """
    if site.exists() and any(site.iterdir()) and not (site / "searchindex.js").exists():
        raise SystemExit(f"{site} holds something that isn't an earlier site: name an empty folder")
    shutil.rmtree(site, ignore_errors=True)
    try:
        bench_page.write_page(site / BENCH)
    except bench_page.NotHere as why:
        print(f"The site has no workbench: {why}.", file=sys.stderr)
    with TemporaryDirectory() as trees:
        options = [
            "-q",
            "-W",
            "--keep-going",
            "-j",
            "auto",
            "-b",
            "html",
            "-c",
            str(ROOT / "docs"),
            "-d",
            trees,
        ]
        options += ["-t", "solutions"] * solutions
        if build_main([*options, str(ROOT), str(site)]):
            raise SystemExit("the site has faults: see above")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tools.site", description="The documentation as a site."
    )
    parser.add_argument("site", type=Path, help="the folder to write into")
    parser.add_argument(
        "--solutions", action="store_true", help="with solutions, and the answers for teachers"
    )
    asked = parser.parse_args()
    build(asked.site, asked.solutions)
    print(*(lost := faults(asked.site)) or [f"open {asked.site}/index.html"], sep="\n")
    sys.exit(bool(lost))
