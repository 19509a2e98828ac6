"""Build the documentation as a site that works from disk, without a network: `make docs`, or
`python -m tools.site FOLDER`.

Sphinx builds it with `docs/conf.py`; its first page is that of `tools/climb_page`. Then every link
in every page is checked, and the site's size. `--solutions` adds the solutions, and the pages of
answers for teachers.
"""

import argparse
import shutil
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup
from sphinx.cmd.build import build_main

from tools import bench_page, climb_page, questions_page, workbook

ROOT = Path(__file__).parent.parent
#: The most bytes of each folder that runs Python, and of all other pages ("").
MAX_BYTES = {"": 12_000_000, "bench": bench_page.MAX_BYTES, "workbook": workbook.MAX_BYTES}


def faults(site: Path) -> list[str]:
    """Return the faults of a built site: broken links, files from the network, too large a size."""
    pages = {
        file.resolve(): BeautifulSoup(file.read_bytes(), "html.parser")
        for file in site.rglob("*.html")
        if file.relative_to(site).parts[0] != "workbook" or file.parent.name == "workbook"
    }
    anchors = {
        file: {tag.get(a) for tag in page.find_all(True) for a in ("id", "name")}
        for file, page in pages.items()
    }
    found = []
    for file, page in pages.items():
        name = file.relative_to(site.resolve())
        for tag in page.find_all(True):
            for link in filter(None, map(tag.get, ("href", "src", "srcset"))):
                parts = urlsplit(str(link))
                if parts.scheme or parts.netloc:
                    if tag.name != "a" and parts.scheme != "data":
                        found.append(f"{name} loads {link}")
                    continue
                target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
                anchor = unquote(parts.fragment)
                is_there = not anchor or anchor in anchors.get(target, {anchor})
                if not (is_there and target.is_file()):
                    found.append(f"{name} links to {link}, which isn't there")
    for inside, size in sizes(site).items():
        if size > MAX_BYTES[inside]:
            part = inside or "the site"
            found.append(f"{part} has {size:,} bytes, and {MAX_BYTES[inside]:,} are allowed")
    return found


def sizes(site: Path) -> dict[str, int]:
    """Return the bytes of each part of ``MAX_BYTES``."""
    bytes_of = dict.fromkeys(MAX_BYTES, 0)
    for file in site.rglob("*"):
        part = file.relative_to(site).parts[0]
        if file.is_file():
            bytes_of[part if part in MAX_BYTES else ""] += file.stat().st_size
    return bytes_of


def build(site: Path, solutions: bool = False, launches: bool = False) -> None:
    """Build the site anew, with or without ``solutions`` and results of ``launches`` (in minutes).
    Raises ``SystemExit`` if Sphinx warns, or if the folder contains other files.
    """
    if site.exists() and any(site.iterdir()) and not (site / "searchindex.js").exists():
        raise SystemExit(f"{site} contains files, and isn't an earlier site: use an empty folder")
    with TemporaryDirectory() as folder:  # in which Sphinx leaves more than the site
        fresh = Path(folder, "site")
        try:
            bench_page.write_page(fresh / "bench")
            workbook.write_workbook(fresh / "workbook", workbook.lessons() if launches else [])
        except bench_page.NotAvailable as why:
            print(f"The site has no Python, or no workbook: {why}.", file=sys.stderr)
        options = ["-q", "-W", "--keep-going", "-j", "auto", "-b", "html", "-c", str(ROOT / "docs")]
        if solutions:
            options += ["-t", "solutions"]
        if build_main([*options, "-d", str(Path(folder, "trees")), str(ROOT), str(fresh)]):
            raise SystemExit("the site has faults: see above")
        if solutions:
            questions_page.write(fresh / "docs/slides.html")
        climb_page.write(fresh, public_address("Homepage"), public_address("Source"))
        shutil.rmtree(site, ignore_errors=True)
        shutil.move(fresh, site)


def public_address(of: str) -> str:
    """Return the address of the site or its sources; "" until `make address` has set them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project.get("urls", {}).get(of, ""))


def main() -> int:
    """Run the command. Return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.site", description="Build the documentation as a site."
    )
    parser.add_argument("site", type=Path, help="the folder to write into")
    parser.add_argument(
        "--solutions", action="store_true", help="with solutions, and the answers for teachers"
    )
    parser.add_argument(
        "--launches",
        action="store_true",
        help="with the results of the lessons' launches for the workbook: all lessons run once",
    )
    options = parser.parse_args()
    build(options.site, options.solutions, options.launches)
    found = faults(options.site)
    print(*found or [f"open {options.site}/index.html"], sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
