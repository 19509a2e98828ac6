"""Lesson 05, the texture cache: its checks and helpers."""

from cypresskit.lazy import import_later

import_later(__name__, {"first_updates": "first_updates"}, others="checks")
