"""Lesson 14, a kernel in CUDA, and its speed: its checks and helpers."""

from cypresskit.lazy import import_later

import_later(__name__, {}, others="checks")
