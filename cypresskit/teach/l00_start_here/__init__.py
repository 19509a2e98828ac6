"""Lesson 00, the chip: its checks and helpers."""

from cypresskit.lazy import import_later

import_later(__name__, {}, others="checks")
