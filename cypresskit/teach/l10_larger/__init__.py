"""Lesson 10, matrices larger than the card: its checks and helpers."""

from cypresskit.lazy import import_later

import_later(__name__, {}, others="checks")
