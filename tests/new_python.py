"""What a new Python prints."""

import os
import subprocess
import sys


def printed_by(code, **environment):
    """Return what a new Python prints that runs some code to its end."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
