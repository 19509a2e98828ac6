"""Tools for working on cypresskit, run from a clone: the fuzzer, the notebook and page makers, the
oracle.
"""

import os

os.environ.setdefault("CYPRESSKIT_KEEP", "0")  # what tools measure and write down is timed anew
