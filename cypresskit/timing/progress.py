"""When a bar of progress is shown: after ``SILENT`` seconds, of which CYPRESSKIT_SILENT sets
another number.
"""

import os
import warnings


def seconds_of_silence(text: str) -> float:
    """The seconds that ``text``, the variable CYPRESSKIT_SILENT, asks for; 2 if it isn't a number,
    with a warning.
    """
    try:
        return float(text)
    except ValueError:
        message = f"CYPRESSKIT_SILENT = {text!r} isn't a number of seconds: it is taken to be 2"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return 2.0


#: Seconds that may pass before a bar of progress is shown.
SILENT = seconds_of_silence(os.environ.get("CYPRESSKIT_SILENT", "2"))
