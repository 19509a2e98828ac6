"""Lesson 01, register blocks: its checks and helpers, and pictures of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {"block_race": "block_race"}, others="checks")
