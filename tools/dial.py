"""Simulate the grid of lesson 04's dial anew, a minute or so of processor time: ``python -m tools.dial``."""

import base64
import json
import zlib
from pathlib import Path

import numpy as np

from cypresskit.draw.dial import point, settings, timed

made = [point(timed(*setting)) for setting in settings()]
arrays = [part for one in made for part in (*one.bars, one.alu, one.texture)]
numbers = np.concatenate([part.ravel() for part in arrays]).astype(np.uint16)
parts = base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()
kept = {"gflops": [one.gflops for one in made], "rows": [len(part) for part in arrays], "parts": parts}
Path("cypresskit/draw/dial.json").write_text(json.dumps(kept) + "\n", encoding="utf-8")
