"""Tools for developers, run from a clone: the fuzzer, and the builders of notebooks and pages."""

import os

os.environ.setdefault("CYPRESSKIT_KEEP", "0")  # tools must not record cached times
