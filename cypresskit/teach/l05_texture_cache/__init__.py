"""Lesson 05, the texture cache: its checks and helpers."""

from cypresskit.lazy import import_later

import_later(__name__, {}, others="checks")
