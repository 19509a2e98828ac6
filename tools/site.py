"""The documentation as a site that works from disk, without network: `make docs`, or `python -m tools.site FOLDER`.

Sphinx builds it as `docs/conf.py` says; then every link in every page, and the site's size, are checked. Solutions, and
the pages of answers for teachers, are left out unless asked for with `--solutions`.
"""

import argparse
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from sphinx.cmd.build import build_main

ROOT = Path(__file__).parent.parent
MOST_BYTES = 12_000_000


class Page(HTMLParser):
    """The links of a page, and the places in it that links can lead to."""

    def __init__(self, file: Path):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()  # without a click
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name"):
                self.anchors.add(value or "")
            elif name in ("href", "src", "srcset"):
                (self.links if tag == "a" else self.loaded).add(value or "")


def faults(site: Path) -> list[str]:
    """The faults of a built site: links that lead nowhere, things that need the network, and too large a size."""
    pages = {file.resolve(): Page(file) for file in site.rglob("*.html")}
    wrong = []
    for file, page in pages.items():
        where = file.relative_to(site.resolve())
        wrong += [f"{where} loads {link}" for link in page.loaded if link.startswith(("http:", "https:", "//"))]
        for link in page.links | page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not link:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            lost = not target.is_file() or (
                parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors
            )
            wrong += [f"{where} links to {link}, which isn't there"] if lost else []
    size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
    return wrong + ([f"{size:,} bytes, and {MOST_BYTES:,} are allowed"] if size > MOST_BYTES else [])


def build(site: Path, solutions: bool = False) -> None:
    """Build the site from scratch, with or without ``solutions``. Raises ``SystemExit`` if Sphinx warns, or if the
    folder holds something else."""
    if site.exists() and any(site.iterdir()) and not (site / "searchindex.js").exists():
        raise SystemExit(f"{site} holds something that isn't an earlier site: name an empty folder")
    shutil.rmtree(site, ignore_errors=True)
    with TemporaryDirectory() as trees:
        options = ["-q", "-W", "--keep-going", "-j", "auto", "-b", "html", "-c", str(ROOT / "docs"), "-d", trees]
        options += ["-t", "solutions"] * solutions
        if build_main([*options, str(ROOT), str(site)]):
            raise SystemExit("the site has faults: see above")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.site", description="The documentation as a site.")
    parser.add_argument("site", type=Path, help="the folder to write into")
    parser.add_argument("--solutions", action="store_true", help="with solutions, and the answers for teachers")
    asked = parser.parse_args()
    build(asked.site, asked.solutions)
    print(*(lost := faults(asked.site)) or [f"open {asked.site}/index.html"], sep="\n")
    sys.exit(bool(lost))
