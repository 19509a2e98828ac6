"""Lesson 00, the chip: its checks and helpers, and pictures of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {}, others="checks")
