"""Run the builder."""

import argparse
from pathlib import Path

from tools.climb_page.page import write

parser = argparse.ArgumentParser(prog="python -m tools.climb_page", description="Build the page.")
parser.add_argument("folder", type=Path, help="an empty folder to write into")
write(parser.parse_args().folder)
