"""`python -m cypresskit` is the `cypresskit` command."""

import sys

from cypresskit.cli import main

sys.exit(main())
