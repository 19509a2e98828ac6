"""Run the `cypresskit` command: `python -m cypresskit`."""

import sys

from cypresskit.cli import main

sys.exit(main())
